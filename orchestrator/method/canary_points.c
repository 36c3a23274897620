/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A canary stage as points of series: the objective of the arm that is watched, of the reference
 * beside it and of the one over the other, and what else of the watched arm says why it moved. A
 * replicate is a unit: the blocks of one allocation on the same nodes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/method/canary.h"
#include "orchestrator/method/environment.h"
#include "orchestrator/method/method.h"
#include "orchestrator/method/table.h"

/* A change of less is not followed up, whatever a recipe calls useful: nights differ by as much. */
static const double EFFECT_AT_LEAST = 0.02;

/* Metrics of the watched arm that are followed beside the objective: each adds a series, and each
 * series some false alarms, so only those that name a culprit. Without the first, a changed rate
 * could not be told from a changed batch. */
static const struct followed {
	const char *metric, *stat;
} followed[] = {
	{"throughput_samples_per_s", "mean"},
	{"throughput_tokens_per_s", "mean"},
	{"step_time_ms", "mean"},
	{"step_time_ms", "p99"},
	{"data_wait_ratio", "mean"},
	{"comm_exposed_ratio", "mean"},
	{"busbw_avg_gb_per_s", "mean"},
	{"coll_busbw_gb_per_s", "mean"},
	{"sm_clock_mhz", "mean"},
	{"mem_clock_mhz", "mean"},
	{"alloc_retries", "max"},
	{"rdma_retrans_per_s", "mean"},
	{"mem_peak_reserved_gib", "max"},
	{"gpu_mem_used_mib", "max"},
	{"trial_maxrss_mib", "value"},
};

/* -- units ------------------------------------------------------------------------------------ */

size_t canary_watched(const struct stage_row *s)
{
	return s->n_arms > 1 ? 1 : 0;
}

static double plain(double v)
{
	return v;
}

/* A metric of a stage, one row a unit, and where each unit ran. */
struct units {
	struct table t;
	struct strv nodes; /* of each unit, comma separated */
};

static void units_done(struct units *u)
{
	free(u->t.y);
	free(u->t.n);
	strv_free(&u->nodes);
}

/* Nodes of an allocation; without its records, of the trial alone. Heap. */
static char *nodes_of(const struct place_row *p, size_t n, const struct value_row *v)
{
	struct strv nodes = {0};
	char *out;

	for (size_t i = 0; i < n; i++)
		if (p[i].allocation == v->allocation)
			strv_add(&nodes, p[i].node);
	if (nodes.n == 0 && v->node)
		strv_add(&nodes, v->node);
	out = place_join(&nodes);
	strv_free(&nodes);
	return out ? out : xstrdup("");
}

static void name_units(struct units *u, const struct value_row *v, size_t n,
		       const struct place_row *p, size_t n_places)
{
	size_t n_units, block = 0, blocks = u->t.blocks;
	_cleanup_free_ size_t *unit = table_units(v, n, blocks, &n_units);

	for (size_t i = 0; i < n; i++) {
		block += i && v[i].block_index != v[i - 1].block_index;
		if (unit[block] == u->nodes.n) {
			_cleanup_free_ char *nodes = nodes_of(p, n_places, &v[i]);

			strv_add(&u->nodes, nodes);
		}
	}
}

static int load(struct campaign *c, const struct stage_row *s, const char *metric, const char *stat,
		double (*f)(double), struct units *out, struct err *e)
{
	struct value_row *v = NULL;
	struct place_row *p = NULL;
	size_t n = 0, n_places = 0;
	int rc = query_stage_values(c->ws->db, s->id, metric, stat, &v, &n, e);

	*out = (struct units){0};
	if (rc == 0 && (rc = query_places(c->ws->db, c->row.id, &p, &n_places, e)) == 0) {
		table_init(&out->t, s, v, n);
		table_fill(&out->t, s, v, n, f);
		name_units(out, v, n, p, n_places);
		table_cluster(&out->t, v, n);
	}
	value_rows_free(v, n);
	place_rows_free(p, n_places);
	return rc;
}

int canary_logs(struct campaign *c, const struct stage_row *s, bool paired, double **current,
		double **reference, size_t *n, struct err *e)
{
	const struct recipe *r = c->recipe;
	size_t arms = s->n_arms, a = canary_watched(s);
	struct units u;
	int rc = load(c, s, r->objective, r->objective_stat, table_log, &u, e);

	*current = *reference = NULL;
	*n = 0;
	if (rc < 0)
		return rc;
	*current = xcalloc(u.t.blocks + 1, sizeof **current);
	*reference = xcalloc(u.t.blocks + 1, sizeof **reference);
	for (size_t b = 0; b < u.t.blocks; b++) {
		double x = u.t.y[b * arms + a], y = u.t.y[b * arms];

		if (!isfinite(x) || (paired && !isfinite(y)))
			continue;
		(*current)[*n] = x;
		(*reference)[(*n)++] = y;
	}
	units_done(&u);
	return 0;
}

/* -- whose series ----------------------------------------------------------------------------- */

/* Where it is measured: what the recipe asks for, this machine where trials run on it. Heap. */
static char *place_of(const struct campaign *c)
{
	const struct resources *r = &c->recipe->resources;
	char host[65], boot[37];
	char *among;

	if (r->nodelist)
		return xstrdup(r->nodelist);
	if ((among = place_join(&r->among)))
		return among;
	if (r->partition)
		return xstrdup(r->partition);
	if (!str_eq(c->sched->name, "local"))
		return xstrdup("");
	proc_host(host, boot);
	return xstrdup(host);
}

bool canary_declares(const struct recipe *r)
{
	const struct bundle *b = &r->canary.reference;

	return !r->canary.blocks || b->env.n || b->command.n;
}

/* Without a reference of its own a canary is one configuration, whatever tonight's reference took
 * from an earlier environment; with one, its figures are of both. */
static int config_of(struct campaign *c, const struct stage_row *s, enum series_role role,
		     char **out, struct err *e)
{
	struct config current = {0}, reference = {0};
	int rc = query_config_get(c->ws->db, s->arms[canary_watched(s)].config, &current, e);

	*out = NULL;
	if (rc == 0)
		rc = query_config_get(c->ws->db, s->arms[0].config, &reference, e);
	if (rc == 0 && (role == SERIES_CURRENT || !canary_declares(c->recipe)))
		*out = xstrdup(current.hash);
	else if (rc == 0 && role == SERIES_REFERENCE)
		*out = xstrdup(reference.hash);
	else if (rc == 0)
		*out = xasprintf("%s/%s", current.hash, reference.hash);
	config_done(&current);
	config_done(&reference);
	return rc;
}

/* The series of a metric in that role; its texts are the caller's to free (series_row_done). */
static void make_series(const struct campaign *c, enum series_role role, const char *metric,
			const char *stat, const char *config, struct series_row *out)
{
	const struct metric_def *def = metric_def_find(metric);
	const struct recipe *r = c->recipe;
	bool objective = str_eq(metric, r->objective) && str_eq(stat, r->objective_stat);

	*out = (struct series_row){.source = SERIES_CANARY,
				   .workload = xstrdup(r->workload.name),
				   .config = xstrdup(config),
				   .place = place_of(c),
				   .role = role,
				   .metric = xstrdup(metric),
				   .stat = xstrdup(stat),
				   .unit = xstrdup(role == SERIES_PAIR ? "1"
						   : def               ? def->unit
								       : ""),
				   .better = objective ? r->better
					     : def     ? def->better
						       : BETTER_NONE,
				   .min_effect = fmax(r->min_effect, EFFECT_AT_LEAST),
				   .campaign = c->row.id};
}

int canary_series(struct campaign *c, const struct stage_row *s, int64_t *id, struct err *e)
{
	_cleanup_free_ char *config = NULL;
	struct series_row row = {0};
	int rc = config_of(c, s, SERIES_CURRENT, &config, e);

	if (rc < 0)
		return rc;
	make_series(c, SERIES_CURRENT, c->recipe->objective, c->recipe->objective_stat, config,
		    &row);
	rc = history_series_put(c->ws->db, &row, clock_utc_us(c->ws->clock), e);
	*id = row.id;
	series_row_done(&row);
	return rc;
}

/* -- the environment that the reference holds on to ------------------------------------------- */

static bool same_series(const struct series_row *a, const struct series_row *b)
{
	return a->source == b->source && a->role == b->role && str_eq(a->workload, b->workload) &&
	       str_eq(a->config, b->config) && str_eq(a->place, b->place) &&
	       str_eq(a->metric, b->metric) && str_eq(a->stat, b->stat);
}

/* The series of the objective if it has been measured; *id 0: not yet. */
static int find_series(struct campaign *c, const char *config, int64_t *id, struct err *e)
{
	struct series_row want, *v = NULL;
	size_t n = 0;
	int rc = history_series_list(c->ws->db, 0, &v, &n, e);

	*id = 0;
	if (rc < 0)
		return rc;
	make_series(c, SERIES_CURRENT, c->recipe->objective, c->recipe->objective_stat, config,
		    &want);
	for (size_t i = 0; i < n; i++)
		if (same_series(&v[i], &want))
			*id = v[i].id;
	series_row_done(&want);
	series_rows_free(v, n);
	return 0;
}

/* The last night from which a change of the series was accepted as the new normal; "": none. */
static int accepted_night(struct campaign *c, int64_t series, char out[11], struct err *e)
{
	struct change_row *v = NULL;
	size_t n = 0;
	int rc = history_changes(c->ws->db, 0, series, &v, &n, e);

	out[0] = '\0';
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct regression_row r = {0};

		rc = history_regression_get(c->ws->db, v[i].regression, &r, e);
		if (rc == 0 && r.state == REGRESSION_ACCEPTED && strcmp(v[i].night, out) > 0)
			str_copy(out, 11, v[i].night);
		regression_row_done(&r);
	}
	change_rows_free(v, n);
	return rc;
}

int canary_reference_environment(struct campaign *c, const char *config, char **json, struct err *e)
{
	struct point_row *v = NULL;
	char from[11];
	size_t n = 0, i = 0;
	int64_t series;
	int rc = find_series(c, config, &series, e);

	*json = NULL;
	if (rc < 0 || !series || (rc = accepted_night(c, series, from, e)) < 0 ||
	    (rc = history_points(c->ws->db, series, from[0] ? from : NULL, &v, &n, e)) < 0)
		return rc;
	while (i < n && !v[i].environment)
		i++;
	if (i < n)
		rc = history_environment_get(c->ws->db, v[i].environment, json, e);
	free(v);
	return rc;
}

/* -- storing points --------------------------------------------------------------------------- */

/* What the points of one stage have in common. */
struct night {
	struct campaign *c;
	const struct stage_row *stage;
	const char *night;
	int64_t environment, now_us;
};

/* v[i] of unit i; those that are NaN are left out, and without any there is no point. */
static int put_point(const struct night *t, enum series_role role, const char *metric,
		     const char *stat, const double *v, const struct strv *nodes, struct err *e)
{
	struct db *db = t->c->ws->db;
	_cleanup_free_ struct replicate *reps = xcalloc(nodes->n + 1, sizeof *reps);
	_cleanup_free_ char *config = NULL;
	struct series_row row = {0};
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < nodes->n; i++)
		if (isfinite(v[i]))
			reps[n++] = (struct replicate){v[i], *nodes->v[i] ? nodes->v[i] : NULL};
	if (n == 0)
		return 0;
	if ((rc = config_of(t->c, t->stage, role, &config, e)) < 0)
		return rc;
	make_series(t->c, role, metric, stat, config, &row);
	if ((rc = history_series_put(db, &row, t->now_us, e)) == 0)
		rc = history_series_follow(db, row.id, t->now_us, e);
	/* Another campaign of the same canary may have been there tonight: the later one counts. */
	if (rc == 0)
		rc = history_point_put(db, row.id, t->night, t->now_us, reps, n, t->environment,
				       t->stage->id, true, NULL, e);
	series_row_done(&row);
	return rc;
}

static int put_arm(const struct night *t, const struct units *u, size_t arm, enum series_role role,
		   const char *metric, const char *stat, struct err *e)
{
	_cleanup_free_ double *v = xcalloc(u->t.blocks + 1, sizeof *v);

	for (size_t b = 0; b < u->t.blocks; b++)
		v[b] = u->t.y[b * u->t.arms + arm];
	return put_point(t, role, metric, stat, v, &u->nodes, e);
}

/* Current over reference, a value a unit. */
static int put_pair(const struct night *t, struct canary_night *out, struct err *e)
{
	const struct recipe *r = t->c->recipe;
	_cleanup_free_ double *v = NULL, *d = NULL;
	struct units u;
	size_t n = 0;
	int rc = load(t->c, t->stage, r->objective, r->objective_stat, table_log, &u, e);

	if (rc < 0)
		return rc;
	v = xcalloc(u.t.blocks + 1, sizeof *v);
	d = xcalloc(u.t.blocks + 1, sizeof *d);
	for (size_t b = 0; b < u.t.blocks; b++) {
		double diff = u.t.y[b * u.t.arms + 1] - u.t.y[b * u.t.arms];

		v[b] = exp(diff);
		if (isfinite(diff))
			d[n++] = diff;
	}
	out->pair = expm1(stats_mean(d, n));
	rc = put_point(t, SERIES_PAIR, r->objective, r->objective_stat, v, &u.nodes, e);
	units_done(&u);
	return rc;
}

static int put_objective(const struct night *t, struct canary_night *out, struct err *e)
{
	const struct recipe *r = t->c->recipe;
	size_t a = canary_watched(t->stage);
	_cleanup_free_ double *v = NULL;
	struct units u;
	int rc = load(t->c, t->stage, r->objective, r->objective_stat, plain, &u, e);

	if (rc == 0)
		rc = put_arm(t, &u, a, SERIES_CURRENT, r->objective, r->objective_stat, e);
	if (rc == 0 && a)
		rc = put_arm(t, &u, 0, SERIES_REFERENCE, r->objective, r->objective_stat, e);
	v = xcalloc(u.t.blocks + 1, sizeof *v);
	for (size_t b = 0; b < u.t.blocks; b++)
		if (isfinite(u.t.y[b * u.t.arms + a]))
			v[out->units++] = u.t.y[b * u.t.arms + a];
	out->mean = stats_mean(v, out->units);
	units_done(&u);
	return rc == 0 && a ? put_pair(t, out, e) : rc;
}

static int put_followed(const struct night *t, struct err *e)
{
	const struct recipe *r = t->c->recipe;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(followed); i++) {
		const struct followed *f = &followed[i];
		struct units u;

		if (str_eq(f->metric, r->objective) && str_eq(f->stat, r->objective_stat))
			continue;
		rc = load(t->c, t->stage, f->metric, f->stat, plain, &u, e);
		if (rc == 0)
			rc = put_arm(t, &u, canary_watched(t->stage), SERIES_CURRENT, f->metric,
				     f->stat, e);
		units_done(&u);
	}
	return rc;
}

int canary_points(struct campaign *c, const struct stage_row *s, const char *night,
		  struct canary_night *out, struct err *e)
{
	struct night t = {.c = c, .stage = s, .night = night, .now_us = clock_utc_us(c->ws->clock)};
	int rc;

	*out = (struct canary_night){.mean = NAN, .pair = NAN};
	rc = environment_of_stage(c, s, &t.environment, e);
	if (rc == 0)
		rc = put_objective(&t, out, e);
	return rc < 0 ? rc : put_followed(&t, e);
}
