/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"
#include "orchestrator/method/table.h"

/* One-sided error of a guard over all looks of a stage: of its bound where there is one look. */
static const double GUARD_ALPHA = 0.05;
/* Steps that differ by no more take the same batch: rates are rounded in logs. */
static const double SAME_BATCH = 0.01;

static double log_down(double v)
{
	return v > 0 ? -log(v) : NAN;
}

static double plain(double v)
{
	return v;
}

static void count_failures(struct pairs *p, const struct stage_row *s, const struct value_row *v,
			   size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int a = table_arm(s, v[i].arm);

		if (a < 0)
			continue;
		p->trials[a]++;
		if (v[i].state != TRIAL_FAILED)
			continue;
		p->failed[a]++;
		if (!p->fail_reason[a])
			p->fail_reason[a] = xasprintf("%s (log: %s)",
						      v[i].reason ? v[i].reason : "failed",
						      v[i].log_path ? v[i].log_path : "none");
	}
}

enum rows { ROWS_BLOCKS, ROWS_UNITS, ROWS_FIRST };

static int load(struct db *db, const struct recipe *r, const struct stage_row *s, enum rows rows,
		struct pairs *out, struct err *e)
{
	struct value_row *v = NULL;
	struct table t = {0};
	size_t n = 0;
	int rc = query_stage_values(db, s->id, r->objective, r->objective_stat, &v, &n, e);

	if (rc < 0)
		return rc;
	table_init(&t, s, v, n);
	table_fill(&t, s, v, n, r->better == BETTER_DOWN ? log_down : table_log);
	if (rows == ROWS_UNITS)
		table_cluster(&t, v, n);
	if (rows == ROWS_FIRST)
		table_first(&t, v, n);
	*out = (struct pairs){.y = t.y, .arms = t.arms, .blocks = t.blocks};
	out->failed = xcalloc(t.arms + 1, sizeof *out->failed);
	out->trials = xcalloc(t.arms + 1, sizeof *out->trials);
	out->fail_reason = xcalloc(t.arms + 1, sizeof *out->fail_reason);
	count_failures(out, s, v, n);
	free(t.n);
	value_rows_free(v, n);
	return 0;
}

/* A screen halves block by block, whatever allocation they shared: it ranks and claims nothing. */
int pairs_read(struct db *db, const struct recipe *r, const struct stage_row *s, struct pairs *out,
	       struct err *e)
{
	return load(db, r, s, s->kind == STAGE_SCREEN ? ROWS_BLOCKS : ROWS_UNITS, out, e);
}

int pairs_load(struct campaign *c, const struct stage_row *s, struct pairs *out, struct err *e)
{
	return pairs_read(c->ws->db, c->recipe, s, out, e);
}

int pairs_load_units(struct campaign *c, const struct stage_row *s, struct pairs *out,
		     struct err *e)
{
	return load(c->ws->db, c->recipe, s, ROWS_FIRST, out, e);
}

void pairs_done(struct pairs *p)
{
	free(p->y);
	free(p->failed);
	free(p->trials);
	for (size_t a = 0; p->fail_reason && a < p->arms; a++)
		free(p->fail_reason[a]);
	free(p->fail_reason);
	memset(p, 0, sizeof *p);
}

static size_t differences(const double *y, size_t blocks, size_t arms, size_t arm, double **d)
{
	size_t n = 0;

	*d = xcalloc(blocks + 1, sizeof **d);
	for (size_t b = 0; b < blocks; b++) {
		double diff = y[b * arms + arm] - y[b * arms];

		if (isfinite(diff))
			(*d)[n++] = diff;
	}
	return n;
}

size_t pairs_diff(const struct pairs *p, size_t arm, double **d)
{
	return differences(p->y, p->blocks, p->arms, arm, d);
}

char *pairs_hash(const struct pairs *p)
{
	char hex[33];

	fs_hash(p->y, p->blocks * p->arms * sizeof *p->y, hex);
	return xstrdup(hex);
}

/* Guards compare on the log scale where the metric is positive in every pair (a margin is
 * relative), else by the plain difference over the baseline's mean size. */
static size_t guard_differences(const struct table *t, size_t arm, double **d, bool *logs)
{
	bool positive = true;
	double size = 0;
	size_t n = 0, seen = 0;

	for (size_t i = 0; i < t->blocks; i++) {
		double b = t->y[i * t->arms], a = t->y[i * t->arms + arm];

		if (!isfinite(a) || !isfinite(b))
			continue;
		positive = positive && a > 0 && b > 0;
		size += fabs(b);
		seen++;
	}
	size = seen && size > 0 ? size / (double)seen : 1;
	*logs = positive;
	*d = xcalloc(t->blocks + 1, sizeof **d);
	for (size_t i = 0; i < t->blocks; i++) {
		double b = t->y[i * t->arms], a = t->y[i * t->arms + arm];

		if (isfinite(a) && isfinite(b))
			(*d)[n++] = positive ? log(a / b) : (a - b) / size;
	}
	return n;
}

/* What the guards of one arm are judged from. */
struct judge {
	struct campaign *c;
	const struct stage_row *stage;
	size_t arm;
	double p; /* of a bound, at each look */
	struct guard_results *out;
	size_t cap;
};

static const char *state_word(enum decide_guard s)
{
	switch (s) {
	case DECIDE_GUARD_PASSED:
		return "passed";
	case DECIDE_GUARD_UNSETTLED:
		return "unsettled";
	case DECIDE_GUARD_VIOLATED:
		return "violated";
	}
	return "unsettled";
}

/* Keeps the row and, when it is the worst so far, its text (owned). */
static void keep(struct judge *j, struct guard_row row, enum decide_guard state, char *text)
{
	struct guard_results *o = j->out;

	row.metric = xstrdup(row.metric);
	row.stat = xstrdup(row.stat);
	row.rule = xstrdup(row.rule);
	row.equal = xstrdup(row.equal);
	row.state = xstrdup(state_word(state));
	o->v = xgrow(o->v, o->n, &j->cap, sizeof *o->v);
	o->v[o->n++] = row;
	if (decide_guard_worst(state, o->worst) == o->worst) {
		free(text);
		return;
	}
	free(o->text);
	o->text = text;
	o->worst = state;
}

static const char *suffix(enum decide_guard s)
{
	return s == DECIDE_GUARD_UNSETTLED ? " (not settled)" : "";
}

/* Logs as the relative change that people read. */
static void make_relative(struct decide_guard_result *r)
{
	r->worsening = expm1(r->worsening);
	r->lo = expm1(r->lo);
	r->hi = expm1(r->hi);
}

static char *margin_text(const struct guard *g, const char *equal,
			 const struct decide_guard_result *r)
{
	bool step = str_eq(equal, "step");

	if (r->n == 0 && !step)
		return xasprintf("guard %s: no pair of trials has it at equal %s", g->metric,
				 equal);
	if (r->n == 0)
		return xasprintf("guard %s: no pair of trials has this metric", g->metric);
	return xasprintf("guard %s (%s%s): worse by %+.2f %% [%.2f, %.2f], margin %.2f %%%s",
			 g->metric, step ? "" : "at equal ", step ? g->stat : equal,
			 100 * r->worsening, 100 * r->lo, 100 * r->hi, 100 * g->margin,
			 suffix(r->state));
}

static size_t arm_values(const struct table *t, size_t arm, double *v)
{
	size_t n = 0;

	for (size_t b = 0; b < t->blocks; b++)
		if (isfinite(t->y[b * t->arms + arm]))
			v[n++] = t->y[b * t->arms + arm];
	return n;
}

static void judge_margin(struct judge *j, const struct guard *g, const struct table *t,
			 const char *equal, double value)
{
	_cleanup_free_ double *d = NULL;
	bool logs;
	size_t n = guard_differences(t, j->arm, &d, &logs);
	struct decide_guard_result r = decide_guard_at(d, n, logs ? log1p(g->margin) : g->margin,
						       g->better, j->p);
	struct guard_row row = {.metric = g->metric,
				.stat = g->stat,
				.rule = (char *)"margin",
				.equal = (char *)equal,
				.n = (int)n,
				.value = value,
				.bound = g->margin};

	if (logs)
		make_relative(&r);
	row.worsening = r.worsening;
	row.lo = r.lo;
	row.hi = r.hi;
	keep(j, row, r.state, margin_text(g, equal, &r));
}

static void judge_limit(struct judge *j, const struct guard *g, const struct table *t, double value,
			bool at_most)
{
	_cleanup_free_ double *v = xcalloc(t->blocks + 1, sizeof *v);
	double limit = at_most ? g->at_most : g->at_least;
	size_t n = arm_values(t, j->arm, v);
	struct decide_guard_result r = decide_limit(v, n, limit, at_most, j->p);
	const char *rule = at_most ? "at_most" : "at_least";
	struct guard_row row = {.metric = g->metric,
				.stat = g->stat,
				.rule = (char *)rule,
				.equal = (char *)"step",
				.n = (int)n,
				.value = value,
				.worsening = r.worsening,
				.lo = r.lo,
				.hi = r.hi,
				.bound = limit};
	char *text = n ? xasprintf("guard %s (%s): %.6g, must be %s %.6g%s", g->metric, g->stat,
				   value, at_most ? "at most" : "at least", limit, suffix(r.state))
		       : xasprintf("guard %s: no trial has this metric", g->metric);

	keep(j, row, r.state, text);
}

/* -- equal samples or tokens -------------------------------------------------------------------
 */

/* Mean of a metric over the blocks of an arm; NAN unknown. */
static int arm_mean(struct judge *j, const char *metric, size_t arm, double *out, struct err *e)
{
	struct value_row *v = NULL;
	struct table t = {0};
	_cleanup_free_ double *own = NULL;
	size_t rows = 0;
	int rc = query_stage_values(j->c->ws->db, j->stage->id, metric, "mean", &v, &rows, e);

	if (rc < 0)
		return rc;
	table_init(&t, j->stage, v, rows);
	table_fill(&t, j->stage, v, rows, plain);
	own = xcalloc(t.blocks + 1, sizeof *own);
	*out = stats_mean(own, arm_values(&t, arm, own));
	free(t.y);
	free(t.n);
	value_rows_free(v, rows);
	return 0;
}

/* At what the arms are compared: as the guard says; else at equal samples or tokens where a step
 * takes more of them in one arm than in the other. */
static int basis(struct judge *j, const struct guard *g, const char **out, struct err *e)
{
	static const char *const what[] = {"samples", "tokens"}, *const metric[] = {
									 "samples_per_step",
									 "tokens_per_step"};

	*out = g->equal ? g->equal : "step";
	if (g->equal || !guard_needs_curve(g, j->c->recipe))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(what); i++) {
		double a, b;
		int rc = arm_mean(j, metric[i], 0, &a, e);

		if (rc == 0)
			rc = arm_mean(j, metric[i], j->arm, &b, e);
		if (rc < 0)
			return rc;
		if (fabs(b / a - 1) > SAME_BATCH) {
			*out = what[i];
			return 0;
		}
	}
	return 0;
}

/* Sums over the rows of one x: of arm 0 and of the arm that is judged. */
struct point {
	size_t k[2];
	double sum[2];
};

static struct point point_of(const struct judge *j, const struct curve_row *v, size_t n)
{
	struct point p = {0};

	for (size_t i = 0; i < n && v[i].x == v[0].x; i++) {
		int a = table_arm(j->stage, v[i].arm);

		if (a != 0 && a != (int)j->arm)
			continue;
		p.k[a != 0]++;
		p.sum[a != 0] += v[i].value;
	}
	return p;
}

static size_t next_point(const struct curve_row *v, size_t n, size_t i)
{
	double x = v[i].x;

	while (i < n && v[i].x == x)
		i++;
	return i;
}

/* Means at the largest x that every trial of both arms reached. Rows of one block, largest x first;
 * an arm has all its trials where it has the most points. */
static void equal_point(const struct judge *j, const struct curve_row *v, size_t n, double *base,
			double *arm)
{
	size_t most[2] = {1, 1};

	*base = *arm = NAN;
	for (size_t i = 0; i < n; i = next_point(v, n, i)) {
		struct point p = point_of(j, v + i, n - i);

		for (int side = 0; side < 2; side++)
			if (p.k[side] > most[side])
				most[side] = p.k[side];
	}
	for (size_t i = 0; i < n; i = next_point(v, n, i)) {
		struct point p = point_of(j, v + i, n - i);

		if (p.k[0] < most[0] || p.k[1] < most[1])
			continue;
		*base = p.sum[0] / (double)p.k[0];
		*arm = p.sum[1] / (double)p.k[1];
		return;
	}
}

static void cluster_curves(struct table *t, const struct curve_row *v, size_t n)
{
	_cleanup_free_ struct value_row *at = xcalloc(n + 1, sizeof *at);

	for (size_t i = 0; i < n; i++)
		at[i] = (struct value_row){.block_index = v[i].block_index,
					   .allocation = v[i].allocation,
					   .node = v[i].node};
	table_cluster(t, at, n);
}

/* The table of a guard at equal samples or tokens: arms 0 and j->arm of it are filled. */
static int equal_table(struct judge *j, const struct guard *g, const char *axis, struct table *t,
		       struct err *e)
{
	struct curve_row *v = NULL;
	size_t n = 0, from = 0;
	int rc = query_stage_curve(j->c->ws->db, j->stage->id, g->metric, axis, &v, &n, e);

	if (rc < 0)
		return rc;
	*t = (struct table){.arms = j->stage->n_arms};
	t->y = xcalloc(n * t->arms + 1, sizeof *t->y);
	for (size_t i = 1; i <= n; i++) {
		double *row = &t->y[t->blocks * t->arms];

		if (i < n && v[i].block_index == v[i - 1].block_index)
			continue;
		for (size_t a = 0; a < t->arms; a++)
			row[a] = NAN;
		equal_point(j, v + from, i - from, &row[0], &row[j->arm]);
		t->blocks++;
		from = i;
	}
	cluster_curves(t, v, n);
	curve_rows_free(v, n);
	return 0;
}

static int judge_at(struct judge *j, const struct guard *g, const struct table *step, double value,
		    struct err *e)
{
	struct table t = {0};
	const char *equal;
	_cleanup_free_ double *own = NULL;
	int rc = basis(j, g, &equal, e);

	if (rc < 0)
		return rc;
	if (str_eq(equal, "step")) {
		judge_margin(j, g, step, equal, value);
		return 0;
	}
	rc = equal_table(j, g, equal, &t, e);
	if (rc == 0) {
		own = xcalloc(t.blocks + 1, sizeof *own);
		value = stats_mean(own, arm_values(&t, j->arm, own));
		judge_margin(j, g, &t, equal, value);
	}
	free(t.y);
	return rc;
}

static int judge_guard(struct judge *j, const struct guard *g, struct err *e)
{
	struct value_row *v = NULL;
	struct table t = {0};
	_cleanup_free_ double *own = NULL;
	size_t rows = 0;
	double value;
	int rc = query_stage_values(j->c->ws->db, j->stage->id, g->metric, g->stat, &v, &rows, e);

	if (rc < 0)
		return rc;
	table_init(&t, j->stage, v, rows);
	table_fill(&t, j->stage, v, rows, plain);
	table_cluster(&t, v, rows);
	own = xcalloc(t.blocks + 1, sizeof *own);
	value = stats_mean(own, arm_values(&t, j->arm, own));
	if (!isnan(g->margin))
		rc = judge_at(j, g, &t, value, e);
	if (!isnan(g->at_most))
		judge_limit(j, g, &t, value, true);
	if (!isnan(g->at_least))
		judge_limit(j, g, &t, value, false);
	free(t.y);
	free(t.n);
	value_rows_free(v, rows);
	return rc;
}

static void judge_failures(struct judge *j, const struct pairs *p)
{
	size_t a = j->arm, bf = p->failed[0], bn = p->trials[0], cf = p->failed[a],
	       cn = p->trials[a];
	enum decide_guard state = decide_failures(bf, bn, cf, cn, NULL);
	double base = bn ? (double)bf / (double)bn : 0, cand = cn ? (double)cf / (double)cn : 0;
	struct guard_row row = {.metric = (char *)"trial_failed",
				.stat = (char *)"mean",
				.rule = (char *)"failures",
				.equal = (char *)"step",
				.n = (int)cn,
				.value = cand,
				.worsening = cand - base,
				.lo = NAN,
				.hi = NAN,
				.bound = NAN};

	keep(j, row, state,
	     xasprintf("%zu of %zu trials failed (baseline %zu of %zu): %s", cf, cn, bf, bn,
		       p->fail_reason[a] ? p->fail_reason[a] : "no reason given"));
}

int pairs_one_guard(struct campaign *c, const struct stage_row *s, size_t arm,
		    const struct guard *g, struct guard_results *out, struct err *e)
{
	struct judge j = {.c = c, .stage = s, .arm = arm, .p = GUARD_ALPHA, .out = out};
	int rc;

	*out = (struct guard_results){.worst = DECIDE_GUARD_PASSED};
	rc = judge_guard(&j, g, e);
	if (rc < 0)
		guard_results_done(out);
	return rc;
}

int pairs_guard_results(struct campaign *c, const struct stage_row *s, size_t arm,
			const struct pairs *p, struct guard_results *out, struct err *e)
{
	struct judge j = {.c = c,
			  .stage = s,
			  .arm = arm,
			  .p = s->kind == STAGE_CONFIRM ? decide_p_star(c->row.mode, GUARD_ALPHA, 0)
							: GUARD_ALPHA,
			  .out = out};
	int rc = 0;

	*out = (struct guard_results){.worst = DECIDE_GUARD_PASSED};
	for (size_t i = 0; rc == 0 && i < c->recipe->n_guards; i++)
		rc = judge_guard(&j, &c->recipe->guards[i], e);
	if (rc == 0 && p)
		judge_failures(&j, p);
	if (rc < 0)
		guard_results_done(out);
	return rc;
}

/* One row a trial in place of one a block: for a stage that has one arm in one allocation. */
static size_t trial_values(const struct value_row *v, size_t n, double *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].state == TRIAL_OK && isfinite(v[i].value))
			out[k++] = v[i].value;
	return k;
}

static int judge_alone(struct judge *j, const struct guard *g, struct err *e)
{
	struct value_row *v = NULL;
	struct table t = {.arms = 1};
	size_t rows = 0;
	double value;
	int rc;

	if (isnan(g->at_most) && isnan(g->at_least))
		return 0;
	rc = query_stage_values(j->c->ws->db, j->stage->id, g->metric, g->stat, &v, &rows, e);
	if (rc < 0)
		return rc;
	t.y = xcalloc(rows + 1, sizeof *t.y);
	t.blocks = trial_values(v, rows, t.y);
	value = stats_mean(t.y, t.blocks);
	if (!isnan(g->at_most))
		judge_limit(j, g, &t, value, true);
	if (!isnan(g->at_least))
		judge_limit(j, g, &t, value, false);
	free(t.y);
	value_rows_free(v, rows);
	return 0;
}

int pairs_alone(struct campaign *c, const struct stage_row *s, const struct pairs *alone,
		const struct pairs *base, struct guard_results *out, struct err *e)
{
	struct judge j = {.c = c, .stage = s, .p = GUARD_ALPHA, .out = out};
	size_t failed[2] = {base->failed[0], alone->failed[0]},
	       trials[2] = {base->trials[0], alone->trials[0]};
	char *reason[2] = {base->fail_reason[0], alone->fail_reason[0]};
	const struct pairs both = {.failed = failed, .trials = trials, .fail_reason = reason};
	int rc = 0;

	*out = (struct guard_results){.worst = DECIDE_GUARD_PASSED};
	for (size_t i = 0; rc == 0 && i < c->recipe->n_guards; i++)
		rc = judge_alone(&j, &c->recipe->guards[i], e);
	j.arm = 1; /* of `both` */
	if (rc == 0)
		judge_failures(&j, &both);
	if (rc < 0)
		guard_results_done(out);
	return rc;
}

void guard_results_done(struct guard_results *g)
{
	guard_rows_free(g->v, g->n);
	free(g->text);
	*g = (struct guard_results){0};
}

int pairs_guards(struct campaign *c, const struct stage_row *s, size_t arm,
		 enum decide_guard *worst, char **text, struct err *e)
{
	struct guard_results g;
	int rc = pairs_guard_results(c, s, arm, NULL, &g, e);

	if (rc < 0)
		return rc;
	*worst = g.worst;
	*text = g.text;
	g.text = NULL;
	guard_results_done(&g);
	return 0;
}
