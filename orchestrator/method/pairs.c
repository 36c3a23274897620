/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

static int arm_index(const struct stage_row *s, int64_t arm)
{
	for (size_t i = 0; i < s->n_arms; i++)
		if (s->arms[i].id == arm)
			return (int)i;
	return -1;
}

/* A dense table [block][arm] of sums and counts, then means. `f` maps a value; NAN leaves it out.
 */
struct table {
	double *y;
	size_t *n;
	size_t blocks, arms;
};

static void table_init(struct table *t, const struct stage_row *s, const struct value_row *v,
		       size_t n)
{
	int last = -1;

	t->arms = s->n_arms;
	for (size_t i = 0; i < n; i++)
		if (v[i].block_index != last) {
			t->blocks++;
			last = v[i].block_index;
		}
	t->y = xcalloc(t->blocks * t->arms + 1, sizeof *t->y);
	t->n = xcalloc(t->blocks * t->arms + 1, sizeof *t->n);
}

static void table_fill(struct table *t, const struct stage_row *s, const struct value_row *v,
		       size_t n, double (*f)(double))
{
	size_t block = 0;

	for (size_t i = 0; i < n; i++) {
		int a = arm_index(s, v[i].arm);
		double y;

		block += i && v[i].block_index != v[i - 1].block_index;
		if (a < 0 || v[i].state != TRIAL_OK || !isfinite(v[i].value))
			continue;
		y = f(v[i].value);
		if (!isfinite(y))
			continue;
		t->y[block * t->arms + (size_t)a] += y;
		t->n[block * t->arms + (size_t)a]++;
	}
	for (size_t i = 0; i < t->blocks * t->arms; i++)
		t->y[i] = t->n[i] ? t->y[i] / (double)t->n[i] : NAN;
}

static double log_up(double v)
{
	return v > 0 ? log(v) : NAN;
}

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
		int a = arm_index(s, v[i].arm);

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

int pairs_load(struct campaign *c, const struct stage_row *s, struct pairs *out, struct err *e)
{
	const struct recipe *r = c->recipe;
	struct value_row *v = NULL;
	struct table t = {0};
	size_t n = 0;
	int rc = query_stage_values(c->ws->db, s->id, r->objective, r->objective_stat, &v, &n, e);

	if (rc < 0)
		return rc;
	table_init(&t, s, v, n);
	table_fill(&t, s, v, n, r->better == BETTER_DOWN ? log_down : log_up);
	*out = (struct pairs){.y = t.y, .arms = t.arms, .blocks = t.blocks};
	out->failed = xcalloc(t.arms + 1, sizeof *out->failed);
	out->trials = xcalloc(t.arms + 1, sizeof *out->trials);
	out->fail_reason = xcalloc(t.arms + 1, sizeof *out->fail_reason);
	count_failures(out, s, v, n);
	free(t.n);
	value_rows_free(v, n);
	return 0;
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

static char *guard_text(const struct guard *g, const struct decide_guard_result *r, bool logs)
{
	double mean = logs ? expm1(r->worsening) : r->worsening, lo = logs ? expm1(r->lo) : r->lo,
	       hi = logs ? expm1(r->hi) : r->hi;

	if (r->state == DECIDE_GUARD_PASSED)
		return NULL;
	if (r->n == 0)
		return xasprintf("guard %s: no pair of trials has this metric", g->metric);
	return xasprintf("guard %s (%s): worse by %+.2f %% [%.2f, %.2f], margin %.2f %%%s",
			 g->metric, g->stat, 100 * mean, 100 * lo, 100 * hi, 100 * g->margin,
			 r->state == DECIDE_GUARD_UNSETTLED ? " (not settled)" : "");
}

static int one_guard(struct campaign *c, const struct stage_row *s, const struct guard *g,
		     size_t arm, enum decide_guard *state, char **text, struct err *e)
{
	const struct metric_def *def = metric_def_find(g->metric);
	struct decide_guard_result res;
	_cleanup_free_ double *d = NULL;
	struct value_row *v = NULL;
	struct table t = {0};
	size_t rows = 0, n;
	bool logs;
	int rc = query_stage_values(c->ws->db, s->id, g->metric, g->stat, &v, &rows, e);

	if (rc < 0)
		return rc;
	table_init(&t, s, v, rows);
	table_fill(&t, s, v, rows, plain);
	n = guard_differences(&t, arm, &d, &logs);
	res = decide_guard(d, n, logs ? log1p(g->margin) : g->margin,
			   def ? def->better : BETTER_DOWN);
	*state = res.state;
	*text = guard_text(g, &res, logs);
	free(t.y);
	free(t.n);
	value_rows_free(v, rows);
	return 0;
}

int pairs_guards(struct campaign *c, const struct stage_row *s, size_t arm,
		 enum decide_guard *worst, char **text, struct err *e)
{
	*worst = DECIDE_GUARD_PASSED;
	*text = NULL;
	for (size_t i = 0; i < c->recipe->n_guards; i++) {
		enum decide_guard state;
		char *one = NULL;
		int rc = one_guard(c, s, &c->recipe->guards[i], arm, &state, &one, e);

		if (rc < 0) {
			free(*text);
			return rc;
		}
		if (decide_guard_worst(state, *worst) == *worst) {
			free(one);
			continue;
		}
		free(*text);
		*text = one;
		*worst = state;
	}
	return 0;
}
