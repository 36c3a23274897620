/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/slow_nodes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

/* What may explain a slow node, if it was measured; `by`: from which relative difference on it is
 * worth a word. */
static const struct clue {
	const char *metric, *stat;
	double by;
} clues[] = {
	{"sm_clock_mhz", "mean", 0.02},
	{"mem_clock_mhz", "mean", 0.02},
	{"gpu_temp_c", "mean", 0.1},
	{"gpu_power_w", "mean", 0.05},
	{"clock_event_reasons", "any", 0.01},
	{"gpu_thermal_violation", "max", 0.01},
	{"gpu_power_violation_pct", "mean", 0.1},
	{"gpu_ecc_corrected_total", "max", 0.01},
	{"gpu_ecc_uncorrected_total", "max", 0.01},
	{"gpu_pcie_gen", "min", 0.01},
	{"gpu_pcie_width", "min", 0.01},
	{"ib_link_gbit_per_s", "min", 0.01},
	{"cpu_steal_pct", "mean", 0.1},
	{"data_wait_ratio", "mean", 0.1},
};

struct seen {
	double sum;
	int n;
};

struct slow_nodes_input {
	char **names;
	struct seen *seen; /* by node, then clue */
	int *faults;
	size_t n_names, cap_names, cap_seen, cap_faults;
	struct node_unit *units;
	size_t n_units, cap_units, stages;
};

struct slow_nodes_input *slow_nodes_new(void)
{
	return xcalloc(1, sizeof(struct slow_nodes_input));
}

void slow_nodes_free(struct slow_nodes_input *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->n_names; i++)
		free(in->names[i]);
	for (size_t i = 0; i < in->n_units; i++)
		free((void *)(uintptr_t)in->units[i].nodes);
	free(in->names);
	free(in->seen);
	free(in->faults);
	free(in->units);
	free(in);
}

static size_t name_index(struct slow_nodes_input *in, const char *name)
{
	for (size_t i = 0; i < in->n_names; i++)
		if (str_eq(in->names[i], name))
			return i;
	in->names = xgrow(in->names, in->n_names, &in->cap_names, sizeof *in->names);
	in->faults = xgrow(in->faults, in->n_names, &in->cap_faults, sizeof *in->faults);
	in->seen = xgrow(in->seen, in->n_names, &in->cap_seen, ARRAY_LEN(clues) * sizeof *in->seen);
	memset(&in->seen[in->n_names * ARRAY_LEN(clues)], 0, ARRAY_LEN(clues) * sizeof *in->seen);
	in->faults[in->n_names] = 0;
	in->names[in->n_names] = xstrdup(name);
	return in->n_names++;
}

/* -- units ------------------------------------------------------------------------------------ */

static bool counts(const struct value_row *v)
{
	return v->state == TRIAL_OK && isfinite(v->value) && v->value > 0;
}

/* Mean of log values of an arm in the stage. */
static double arm_mean(const struct value_row *v, size_t n, int64_t arm)
{
	double sum = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].arm == arm && counts(&v[i])) {
			sum += log(v[i].value);
			k++;
		}
	return k ? sum / (double)k : NAN;
}

/* Mean over the trials of an allocation of what its arms do not explain; NAN: none counts. */
static double unit_value(const struct value_row *v, size_t n, int64_t allocation)
{
	double sum = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].allocation == allocation && counts(&v[i])) {
			sum += log(v[i].value) - arm_mean(v, n, v[i].arm);
			k++;
		}
	return k ? sum / (double)k : NAN;
}

static size_t nodes_of(struct slow_nodes_input *in, const struct place_row *p, size_t n,
		       int64_t allocation, size_t **out)
{
	size_t *v = NULL, used = 0, cap = 0;

	for (size_t i = 0; i < n; i++)
		if (p[i].allocation == allocation) {
			v = xgrow(v, used, &cap, sizeof *v);
			v[used++] = name_index(in, p[i].node);
		}
	*out = v;
	return used;
}

static bool first_of_allocation(const struct value_row *v, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (v[k].allocation == v[i].allocation)
			return false;
	return true;
}

/* A stage with one unit says nothing about its node. */
static void add_stage(struct slow_nodes_input *in, const struct value_row *v, size_t n,
		      const struct place_row *p, size_t n_places, double sign)
{
	size_t before = in->n_units;

	for (size_t i = 0; i < n; i++) {
		struct node_unit u = {.stage = in->stages};
		size_t *nodes = NULL;

		if (!first_of_allocation(v, i))
			continue;
		u.y = sign * unit_value(v, n, v[i].allocation);
		u.n_nodes = nodes_of(in, p, n_places, v[i].allocation, &nodes);
		u.nodes = nodes;
		if (!isfinite(u.y) || u.n_nodes == 0) {
			free(nodes);
			continue;
		}
		in->units = xgrow(in->units, in->n_units, &in->cap_units, sizeof *in->units);
		in->units[in->n_units++] = u;
	}
	if (in->n_units - before >= 2) {
		in->stages++;
		return;
	}
	while (in->n_units > before)
		free((void *)(uintptr_t)in->units[--in->n_units].nodes);
}

static int add_stages(struct slow_nodes_input *in, struct db *db, int64_t campaign,
		      const struct recipe *r, const struct place_row *p, size_t n_places,
		      struct err *e)
{
	double sign = r->better == BETTER_DOWN ? -1 : 1;
	struct stage_row *s = NULL;
	size_t n = 0;
	int rc = query_stages(db, campaign, &s, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct value_row *v = NULL;
		size_t n_values = 0;

		/* a soak is one block, and a long run may fall out of step with its seed */
		if (s[i].kind == STAGE_SOAK || s[i].kind == STAGE_CONVERGE)
			continue;
		rc = query_stage_values(db, s[i].id, r->objective, r->objective_stat, &v, &n_values,
					e);
		if (rc == 0)
			add_stage(in, v, n_values, p, n_places, sign);
		value_rows_free(v, n_values);
	}
	stage_rows_free(s, n);
	return rc;
}

/* -- what else was seen ------------------------------------------------------------------------ */

static int add_clues(struct slow_nodes_input *in, struct db *db, int64_t campaign, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < ARRAY_LEN(clues); k++) {
		struct node_mean_row *v = NULL;
		size_t n = 0;

		rc = query_node_means(db, campaign, clues[k].metric, clues[k].stat, &v, &n, e);
		for (size_t i = 0; rc == 0 && i < n; i++) {
			size_t at = name_index(in, v[i].node) * ARRAY_LEN(clues) + k;

			in->seen[at].sum += v[i].mean * v[i].n;
			in->seen[at].n += v[i].n;
		}
		node_mean_rows_free(v, n);
	}
	return rc;
}

static int add_faults(struct slow_nodes_input *in, struct db *db, int64_t campaign, struct err *e)
{
	struct node_end_row *v = NULL;
	size_t n = 0;
	int rc = query_node_ends(db, campaign, &v, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (str_eq(v[i].outcome, "node_fail") || str_eq(v[i].outcome, "launch_failed"))
			in->faults[name_index(in, v[i].node)] += v[i].n;
	node_end_rows_free(v, n);
	return rc;
}

int slow_nodes_add(struct slow_nodes_input *in, struct db *db, int64_t campaign,
		   const struct recipe *r, struct err *e)
{
	struct place_row *p = NULL;
	size_t n = 0;
	int rc = query_places(db, campaign, &p, &n, e);

	if (rc == 0)
		rc = add_stages(in, db, campaign, r, p, n, e);
	if (rc == 0)
		rc = add_clues(in, db, campaign, e);
	if (rc == 0)
		rc = add_faults(in, db, campaign, e);
	place_rows_free(p, n);
	return rc;
}

/* -- estimating -------------------------------------------------------------------------------- */

static int slowest_first(const void *a, const void *b)
{
	const struct slow_node *x = a, *y = b;
	double dx = x->effect.known ? x->effect.est : INFINITY,
	       dy = y->effect.known ? y->effect.est : INFINITY;

	if (x->effect.slow != y->effect.slow)
		return x->effect.slow ? -1 : 1;
	return dx < dy ? -1 : dx > dy ? 1 : strcmp(x->name, y->name);
}

/* Mean of a clue over the nodes that are not slow, but for node i. */
static double others_mean(const struct slow_nodes_input *in, const struct node_effect *v, size_t i,
			  size_t clue)
{
	double sum = 0;
	int n = 0;

	for (size_t k = 0; k < in->n_names; k++) {
		const struct seen *s = &in->seen[k * ARRAY_LEN(clues) + clue];

		if (k == i || v[k].slow || s->n == 0)
			continue;
		sum += s->sum;
		n += s->n;
	}
	return n ? sum / n : NAN;
}

static void find_evidence(const struct slow_nodes_input *in, const struct node_effect *v, size_t i,
			  struct slow_node *out)
{
	out->evidence = xcalloc(ARRAY_LEN(clues), sizeof *out->evidence);
	for (size_t k = 0; k < ARRAY_LEN(clues); k++) {
		const struct seen *s = &in->seen[i * ARRAY_LEN(clues) + k];
		double here = s->n ? s->sum / s->n : NAN, others = others_mean(in, v, i, k);

		if (!isfinite(here) || !isfinite(others) ||
		    fabs(here - others) < clues[k].by * fmax(fabs(others), 1e-9))
			continue;
		out->evidence[out->n_evidence++] = (struct node_evidence){
			clues[k].metric, report_unit_of(clues[k].metric), here, others};
	}
}

void slow_nodes_estimate(struct slow_nodes_input *in, double alpha, double min_slow,
			 struct slow_nodes *out)
{
	struct node_effect *v = xcalloc(in->n_names + 1, sizeof *v);

	*out = (struct slow_nodes){.n = in->n_names,
				   .units = in->n_units,
				   .stages = in->stages,
				   .alpha = alpha,
				   .min_slow = min_slow};
	out->v = xcalloc(in->n_names + 1, sizeof *out->v);
	out->estimated = nodes_estimate(in->units, in->n_units, in->n_names, in->stages, alpha,
					min_slow, v, &out->fit);
	for (size_t i = 0; i < in->n_names; i++) {
		out->v[i] = (struct slow_node){
			.name = xstrdup(in->names[i]), .effect = v[i], .faults = in->faults[i]};
		if (v[i].slow)
			find_evidence(in, v, i, &out->v[i]);
	}
	qsort(out->v, out->n, sizeof *out->v, slowest_first);
	free(v);
}

void slow_nodes_done(struct slow_nodes *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		free(s->v[i].evidence);
	}
	free(s->v);
	*s = (struct slow_nodes){0};
}

/* -- showing ----------------------------------------------------------------------------------- */

static void text_head(const struct slow_nodes *s, struct buf *b)
{
	size_t slow = 0;

	for (size_t i = 0; i < s->n; i++)
		slow += s->v[i].effect.slow;
	buf_printf(b, "%zu node%s, %zu allocations", s->n, s->n == 1 ? "" : "s", s->units);
	if (!s->estimated) {
		buf_str(b, ": too few to tell nodes from noise; two or more allocations on each of "
			   "several nodes are needed (resources.placement = \"spread\")\n");
		return;
	}
	buf_printf(b, "; an allocation's own noise is %.2f %%; %zu slow\n",
		   100 * stats_relative(s->fit.sd), slow);
}

static void text_node(const struct slow_node *v, struct buf *b)
{
	const struct node_effect *e = &v->effect;
	_cleanup_free_ char *name = text_clean(v->name);

	buf_printf(b, "  %-20s %4d  ", name, e->units);
	if (e->known)
		buf_printf(b, "%+6.1f %%  %+6.1f .. %+6.1f %%", 100 * stats_relative(e->est),
			   100 * stats_relative(e->lo), 100 * stats_relative(e->hi));
	else
		buf_printf(b, "%8s  %20s", "-", "-");
	buf_printf(b, "  %6d%s\n", v->faults, e->slow ? "  slow" : "");
	for (size_t i = 0; i < v->n_evidence; i++) {
		_cleanup_free_ char *metric = text_clean(v->evidence[i].metric),
				    *unit = text_clean(v->evidence[i].unit);

		buf_printf(b, "      %s %.6g %s, the others %.6g\n", metric, v->evidence[i].here,
			   unit, v->evidence[i].others);
	}
}

void slow_nodes_text(const struct slow_nodes *s, struct buf *out)
{
	text_head(s, out);
	if (s->n)
		buf_printf(out, "  %-20s %4s  %8s  %20s  %6s\n", "node", "n", "effect", "interval",
			   "faults");
	for (size_t i = 0; i < s->n; i++)
		text_node(&s->v[i], out);
	if (s->estimated)
		buf_printf(
			out,
			"Effects are against the nodes that are not slow. Slow: the whole interval "
			"is below -%.1f %%; at most %.0f %% of such lists accuse a healthy node.\n",
			100 * s->min_slow, 100 * s->alpha);
}

static struct json *evidence_json(const struct slow_node *v)
{
	struct json *a = json_array();

	for (size_t i = 0; i < v->n_evidence; i++) {
		struct json *o = json_object();

		json_set_text(o, "metric", v->evidence[i].metric);
		json_set_text(o, "unit", v->evidence[i].unit);
		json_set_number(o, "here", v->evidence[i].here);
		json_set_number(o, "others", v->evidence[i].others);
		json_add(a, o);
	}
	return a;
}

static void set_effect(struct json *o, const char *key, bool known, double log_effect)
{
	json_set_number(o, key, known ? stats_relative(log_effect) : NAN);
}

struct json *slow_nodes_json(const struct slow_nodes *s)
{
	struct json *o = json_object(), *a = json_array();

	json_set_text(o, "format", "fettle.nodes/1");
	json_set_i64(o, "allocations", (int64_t)s->units);
	json_set_bool(o, "estimated", s->estimated);
	set_effect(o, "noise", s->estimated, s->fit.sd);
	json_set_number(o, "df", s->fit.df);
	json_set_number(o, "alpha", s->alpha);
	json_set_number(o, "min_slow", s->min_slow);
	for (size_t i = 0; i < s->n; i++) {
		const struct slow_node *v = &s->v[i];
		struct json *n = json_object();

		json_set_text(n, "node", v->name);
		json_set_i64(n, "allocations", v->effect.units);
		set_effect(n, "effect", v->effect.known, v->effect.est);
		set_effect(n, "lo", v->effect.known, v->effect.lo);
		set_effect(n, "hi", v->effect.known, v->effect.hi);
		json_set_bool(n, "slow", v->effect.slow);
		json_set_i64(n, "faults", v->faults);
		json_set(n, "evidence", evidence_json(v));
		json_add(a, n);
	}
	json_set(o, "nodes", a);
	return o;
}
