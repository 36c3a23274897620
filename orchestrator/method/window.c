/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"

enum {
	/* Metrics x label sets of one trial: nccl-tests with 40 sizes gives 400, a node with 200
	   disks 2,000. */
	WINDOW_MAX_SERIES = 8192,
	/* Values of a trial: a day of steps at 100 ms. More is cut, and said. */
	WINDOW_MAX_VALUES = 4 << 20,
	WINDOW_MAX_FACTS = 2000,
	LABELS_MAX = 512,
	/* Points of a curve: four octaves of 8. A batch is seldom changed by more than 16 times. */
	CURVE_OCTAVE = 8,
	CURVE_POINTS = 4 * CURVE_OCTAVE,
	PLACES_FIRST = 1024, /* of steps, to begin with */
};

struct series {
	char *metric, *labels;
	double *v;
	size_t n, cap;
	int64_t first_step, last_step;
	const char *missing; /* static text of the first nan or inf */
	int64_t missing_step;
};

/* A metric from the first step on: ordinal of the step and value. */
struct curve {
	char *metric;
	int64_t *at;
	double *v;
	size_t n, cap, cap_at;
};

/* Keys numbered in order of appearance, hashed: a log may count down, or jump. */
struct number {
	int64_t key, number; /* number -1: free */
};
struct numbers {
	struct number *v;
	size_t n, cap; /* cap: a power of two */
};

struct window {
	int64_t warmup, n_steps, from_us, to_us;
	struct numbers steps, taken; /* steps as they appeared; (series, step) that have a value */
	struct series *series;
	size_t n_series, cap_series, total;
	size_t last; /* series of the last value: the next one is mostly the one after it */
	struct window_fact *facts;
	size_t n_facts, cap_facts;
	struct curve *curves;
	size_t n_curves, cap_curves;
	bool cut; /* one of the bounds was met */
};

struct window *window_new(int64_t warmup, int64_t steps)
{
	struct window *w = xcalloc(1, sizeof *w);

	w->warmup = warmup;
	w->n_steps = steps;
	return w;
}

void window_free(struct window *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n_series; i++) {
		free(w->series[i].metric);
		free(w->series[i].labels);
		free(w->series[i].v);
	}
	for (size_t i = 0; i < w->n_facts; i++) {
		free(w->facts[i].key);
		free(w->facts[i].text);
	}
	for (size_t i = 0; i < w->n_curves; i++) {
		free(w->curves[i].metric);
		free(w->curves[i].at);
		free(w->curves[i].v);
	}
	free(w->curves);
	free(w->series);
	free(w->facts);
	free(w->steps.v);
	free(w->taken.v);
	free(w);
}

void window_bounds(struct window *w, int64_t from_us, int64_t to_us)
{
	w->from_us = from_us;
	w->to_us = to_us;
}

void window_span(const struct window *w, int64_t *from_us, int64_t *to_us)
{
	*from_us = w->from_us;
	*to_us = w->to_us;
}

bool window_cut(const struct window *w)
{
	return w->cut;
}

size_t window_steps(const struct window *w)
{
	return w->steps.n;
}

/* Where a key is, or the free place where it belongs. */
static struct number *find_number(const struct numbers *t, int64_t key)
{
	/* Fibonacci hashing: neighbours, which steps are, land far apart. */
	size_t i = (size_t)(((uint64_t)key * 0x9e3779b97f4a7c15u) >> 32) & (t->cap - 1);

	while (t->v[i].number >= 0 && t->v[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return &t->v[i];
}

/* Twice the room, and everything in its new place; at most half full. */
static void grow_numbers(struct numbers *t)
{
	struct numbers old = *t;

	t->cap = old.cap ? 2 * old.cap : PLACES_FIRST;
	t->v = xcalloc(t->cap, sizeof *t->v);
	for (size_t i = 0; i < t->cap; i++)
		t->v[i].number = -1;
	for (size_t i = 0; i < old.cap; i++)
		if (old.v[i].number >= 0)
			*find_number(t, old.v[i].key) = old.v[i];
	free(old.v);
}

/* The number of a key in order of appearance; *first: it was not there yet. */
static int64_t number_of(struct numbers *t, int64_t key, bool *first)
{
	struct number *p;

	if (2 * t->n >= t->cap)
		grow_numbers(t);
	p = find_number(t, key);
	*first = p->number < 0;
	if (*first)
		*p = (struct number){.key = key, .number = (int64_t)t->n++};
	return p->number;
}

static bool inside(struct window *w, const struct probe_value *v)
{
	if (v->step >= 0) {
		bool first;
		int64_t i = number_of(&w->steps, v->step, &first);

		return i >= w->warmup && (w->n_steps == 0 || i < w->warmup + w->n_steps);
	}
	if (v->t_us >= 0 && w->to_us > 0)
		return v->t_us >= w->from_us && v->t_us <= w->to_us;
	return true;
}

static void labels_text(const struct probe_value *v, char out[LABELS_MAX])
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < v->n_labels && at < LABELS_MAX; i++) {
		int n = snprintf(out + at, LABELS_MAX - at, "%s%s=%s", i ? "," : "",
				 v->labels[i].key, v->labels[i].value ? v->labels[i].value : "");

		if (n < 0)
			return;
		at += (size_t)n;
	}
}

static struct series *series_of(struct window *w, const char *metric, const char *labels)
{
	struct series *s;

	for (size_t k = 1; k <= w->n_series; k++) {
		size_t i = (w->last + k) % w->n_series;

		if (strcmp(w->series[i].metric, metric) == 0 &&
		    strcmp(w->series[i].labels, labels) == 0) {
			w->last = i;
			return &w->series[i];
		}
	}
	if (w->n_series == WINDOW_MAX_SERIES)
		return NULL;
	w->series = xgrow(w->series, w->n_series, &w->cap_series, sizeof *w->series);
	w->last = w->n_series;
	s = &w->series[w->n_series++];
	s->metric = xstrdup(metric);
	s->labels = xstrdup(labels);
	return s;
}

/* Every rank may print the same step, some of them late: the first is kept (rank 0 prints first, or
 * alone). */
static bool is_repeat(struct window *w, const struct series *s, int64_t step)
{
	bool first = true;
	int64_t series = (int64_t)(s - w->series);

	if (step >= 0) /* numbers of steps are far below 2^32: each was a line */
		number_of(&w->taken, series << 32 | number_of(&w->steps, step, &first), &first);
	return !first;
}

void window_keep_curve(struct window *w, const char *metric)
{
	for (size_t i = 0; i < w->n_curves; i++)
		if (str_eq(w->curves[i].metric, metric))
			return;
	w->curves = xgrow(w->curves, w->n_curves, &w->cap_curves, sizeof *w->curves);
	w->curves[w->n_curves++] = (struct curve){.metric = xstrdup(metric)};
}

static void take_curve(struct window *w, const struct probe_value *v)
{
	int64_t at;
	bool first;

	if (v->step < 0 || v->missing || v->n_labels)
		return;
	for (size_t i = 0; i < w->n_curves; i++) {
		struct curve *c = &w->curves[i];

		if (!str_eq(c->metric, v->metric))
			continue;
		at = number_of(&w->steps, v->step, &first);
		if ((w->n_steps && at >= w->warmup + w->n_steps) ||
		    (c->n && at <= c->at[c->n - 1]) || w->total == WINDOW_MAX_VALUES)
			return;
		c->v = xgrow(c->v, c->n, &c->cap, sizeof *c->v);
		c->at = xgrow(c->at, c->n, &c->cap_at, sizeof *c->at);
		c->v[c->n] = v->value;
		c->at[c->n++] = at;
		w->total++;
	}
}

static void take_value(void *ctx, const struct probe_value *v)
{
	struct window *w = ctx;
	char labels[LABELS_MAX];
	struct series *s;

	take_curve(w, v);
	if (!inside(w, v))
		return;
	labels_text(v, labels);
	s = w->total < WINDOW_MAX_VALUES ? series_of(w, v->metric, labels) : NULL;
	if (!s) {
		w->cut = true;
		return;
	}
	if (v->missing) {
		if (!s->missing && strstr(v->missing, "nan")) {
			s->missing = "nan";
			s->missing_step = v->step;
		} else if (!s->missing && strstr(v->missing, "inf")) {
			s->missing = "inf";
			s->missing_step = v->step;
		}
		return;
	}
	if (is_repeat(w, s, v->step))
		return;
	s->v = xgrow(s->v, s->n, &s->cap, sizeof *s->v);
	if (s->n == 0)
		s->first_step = v->step;
	s->last_step = v->step;
	s->v[s->n++] = v->value;
	w->total++;
}

static void take_fact(void *ctx, const struct probe_fact *f)
{
	struct window *w = ctx;
	struct window_fact *out;

	if (w->n_facts == WINDOW_MAX_FACTS)
		return;
	w->facts = xgrow(w->facts, w->n_facts, &w->cap_facts, sizeof *w->facts);
	out = &w->facts[w->n_facts++];
	out->key = xstrdup(f->key);
	out->text = xstrdup(f->text);
	out->rank = f->rank;
}

struct probe_sink window_sink(struct window *w)
{
	return (struct probe_sink){.value = take_value, .fact = take_fact, .ctx = w};
}

const struct window_fact *window_facts(const struct window *w, size_t *n)
{
	*n = w->n_facts;
	return w->facts;
}

const char *window_nonfinite(const struct window *w, const char *metric, int64_t *step)
{
	for (size_t i = 0; i < w->n_series; i++)
		if (w->series[i].missing && strcmp(w->series[i].metric, metric) == 0) {
			*step = w->series[i].missing_step;
			return w->series[i].missing;
		}
	return NULL;
}

static const struct series *find(const struct window *w, const char *metric)
{
	for (size_t i = 0; i < w->n_series; i++)
		if (w->series[i].n && !*w->series[i].labels &&
		    strcmp(w->series[i].metric, metric) == 0)
			return &w->series[i];
	return NULL;
}

const double *window_values(const struct window *w, const char *metric, size_t *n)
{
	const struct series *s = find(w, metric);

	*n = s ? s->n : 0;
	return s ? s->v : NULL;
}

/* A rate over a window is work over time, not the mean of rates: weight by the time of each step.
 */
static double rate_mean(const struct series *rate, const struct series *time)
{
	double work = 0, total = 0;

	if (!time || time->n != rate->n)
		return stats_mean(rate->v, rate->n);
	for (size_t i = 0; i < rate->n; i++) {
		work += rate->v[i] * time->v[i];
		total += time->v[i];
	}
	return total > 0 ? work / total : NAN;
}

static void emit_series(const struct window *w, const struct series *s, struct trial_result *t)
{
	bool rate = strncmp(s->metric, "throughput_", 11) == 0 && !*s->labels;
	double mean = rate ? rate_mean(s, find(w, "step_time_ms")) : stats_mean(s->v, s->n);

	trial_result_metric(t, s->metric, "mean", s->labels, mean);
	trial_result_metric(t, s->metric, "n", s->labels, (double)s->n);
	if (s->n == 1)
		return;
	trial_result_metric(t, s->metric, "median", s->labels, stats_median(s->v, s->n));
	trial_result_metric(t, s->metric, "p95", s->labels, stats_quantile(s->v, s->n, 0.95));
	trial_result_metric(t, s->metric, "p99", s->labels, stats_quantile(s->v, s->n, 0.99));
	trial_result_metric(t, s->metric, "min", s->labels, stats_quantile(s->v, s->n, 0));
	trial_result_metric(t, s->metric, "max", s->labels, stats_quantile(s->v, s->n, 1));
}

/* The last value of a curve is noisy: "last" is the mean of its last tenth, at least one value. */
static void emit_last(const struct series *s, struct trial_result *t)
{
	size_t k = s->n / 10 ? s->n / 10 : 1;

	trial_result_metric(t, s->metric, "last", s->labels, stats_mean(s->v + s->n - k, k));
}

static void emit_derived(const struct window *w, struct trial_result *t)
{
	const struct series *step = find(w, "step_time_ms"), *wait = find(w, "data_wait_ms");
	double mean = step ? stats_mean(step->v, step->n) : NAN;

	if (!(mean > 0))
		return;
	if (!find(w, "throughput_steps_per_s"))
		trial_result_metric(t, "throughput_steps_per_s", "mean", "", 1000 / mean);
	if (wait && !find(w, "data_wait_ratio"))
		trial_result_metric(t, "data_wait_ratio", "mean", "",
				    fmin(1, stats_mean(wait->v, wait->n) / mean));
}

void window_emit(struct window *w, struct trial_result *t)
{
	for (size_t i = 0; i < w->n_series; i++)
		if (w->series[i].n) {
			emit_series(w, &w->series[i], t);
			emit_last(&w->series[i], t);
		}
	emit_derived(w, t);
}

void window_emit_brief(const struct window *w, const char *label, struct trial_result *t)
{
	for (size_t i = 0; i < w->n_series; i++) {
		const struct series *s = &w->series[i];
		_cleanup_free_ char *labels = xasprintf("%s%s%s", label, *s->labels ? "," : "",
							s->labels);

		if (s->n == 0)
			continue;
		trial_result_metric(t, s->metric, "mean", labels, stats_mean(s->v, s->n));
		if (*s->labels)
			continue;
		trial_result_metric(t, s->metric, "p95", labels, stats_quantile(s->v, s->n, 0.95));
		trial_result_metric(t, s->metric, "max", labels, stats_quantile(s->v, s->n, 1));
	}
}

/* -- curves ---------------------------------------------------------------------------------- */

/* What one step takes of samples or tokens; NAN unknown. */
static double per_step(const struct window *w, const char *what)
{
	_cleanup_free_ char *own = xasprintf("%s_per_step", what),
			    *consumed = xasprintf("consumed_%s", what),
			    *rate = xasprintf("throughput_%s_per_s", what);
	const struct series *s = find(w, own), *c = find(w, consumed), *r = find(w, rate),
			    *t = find(w, "step_time_ms");

	if (s)
		return stats_mean(s->v, s->n);
	if (c && c->n > 1 && c->last_step > c->first_step)
		return (c->v[c->n - 1] - c->v[0]) / (double)(c->last_step - c->first_step);
	if (r && t)
		return rate_mean(r, t) * stats_mean(t->v, t->n) / 1000;
	return NAN;
}

/* Mean of the curve, taken as piecewise linear, over what was consumed from 0.9 n to n: steps of
 * different size then lie at different places of the same curve without a bias. Where no segment is
 * there: the last value before n; NAN when there is none. */
static double curve_at(const struct curve *c, double step, double n)
{
	double area = 0, covered = 0, last = NAN;

	for (size_t i = 0; i < c->n; i++) {
		double x0 = step * (double)(c->at[i] + 1), x1, lo, hi;

		if (x0 > n)
			break;
		last = c->v[i];
		if (i + 1 == c->n)
			break;
		x1 = step * (double)(c->at[i + 1] + 1);
		lo = fmax(x0, 0.9 * n);
		hi = fmin(x1, n);
		if (hi <= lo)
			continue;
		area += (hi - lo) *
			(c->v[i] + (c->v[i + 1] - c->v[i]) * ((lo + hi) / 2 - x0) / (x1 - x0));
		covered += hi - lo;
	}
	return covered > 0 ? area / covered : last;
}

/* The grid is one for all trials: equal points get equal labels. A batch computed from rounded
 * rates ends a little short of a point that it reached. */
static void emit_curve(const struct curve *c, const char *what, double step, struct trial_result *t)
{
	const double slack = 1.001;
	double end = step * (double)(c->at[c->n - 1] + 1);
	int top = (int)floor(CURVE_OCTAVE * log2(end * slack));

	for (int k = top; k > top - CURVE_POINTS && k > 0; k--) {
		double n = exp2((double)k / CURVE_OCTAVE), v = curve_at(c, step, n * slack);
		char label[64];

		if (!isfinite(v))
			return;
		snprintf(label, sizeof label, "%s=%.6g", what, n);
		trial_result_metric(t, c->metric, "at", label, v);
	}
}

void window_emit_curves(const struct window *w, struct trial_result *t)
{
	static const char *const whats[] = {"samples", "tokens"};

	for (size_t k = 0; w->n_curves && k < ARRAY_LEN(whats); k++) {
		double step = per_step(w, whats[k]);
		_cleanup_free_ char *name = xasprintf("%s_per_step", whats[k]);

		if (!(step > 0) || !isfinite(step))
			continue;
		if (!find(w, name))
			trial_result_metric(t, name, "mean", "", step);
		for (size_t i = 0; i < w->n_curves; i++)
			if (w->curves[i].n)
				emit_curve(&w->curves[i], whats[k], step, t);
	}
}
