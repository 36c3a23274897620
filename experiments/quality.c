/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/quality.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define MATHLIB_STANDALONE 1
#include <Rmath.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"

/* A shape is a finding when chance gives it in one of a thousand trials without one. */
static const double SHAPE_P = 0.001;
static const double OUTLIER_LOG = 0.4054651081081644; /* log 1.5 */
static const double OUTLIER_MADS = 5;
static const double MAD_TO_SD = 1.4826;
/* Time in outliers from which on they are worth a note. */
static const double OUTLIER_SHARE = 0.01;

enum {
	SEGMENT_MIN = 6, /* steps on each side of a change point */
	/* Bits of NVML that say that the hardware protects itself (nvml.h, ClocksEventReasons):
	 * HW slowdown, SW thermal, HW thermal, HW power brake. A software power cap is no fault. */
	REASONS_OF_FAULT = 0x8 | 0x20 | 0x40 | 0x80,
};

/* -- step times of one trial ---------------------------------------------------------------- */

struct ranked {
	double v;
	size_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->v > y->v) - (x->v < y->v);
}

/* Mid-ranks, 1 to n. */
static void ranks(const double *v, size_t n, double *out)
{
	_cleanup_free_ struct ranked *r = xcalloc(n + 1, sizeof *r);

	for (size_t i = 0; i < n; i++)
		r[i] = (struct ranked){v[i], i};
	qsort(r, n, sizeof *r, by_value);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && !(r[j].v > r[i].v); j++)
			;
		for (size_t k = i; k < j; k++)
			out[r[k].at] = (double)(i + j + 1) / 2;
	}
}

/* Logs without the outliers; at[k] is the step that y[k] came from. Returns how many are left. */
static size_t without_outliers(const double *log_v, size_t n, double *y, size_t *at)
{
	double med = stats_median(log_v, n);
	double bound = fmax(OUTLIER_LOG, OUTLIER_MADS * MAD_TO_SD * stats_mad(log_v, n));
	size_t k = 0;

	for (size_t i = 0, j; i < n; i = j) {
		bool out = log_v[i] - med > bound;

		for (j = i + 1; j < n && (log_v[j] - med > bound) == out; j++)
			;
		if (out && j - i <= QUALITY_OUTLIER_RUN)
			continue;
		for (size_t s = i; s < j; s++) {
			y[k] = log_v[s];
			at[k++] = s;
		}
	}
	return k;
}

/* Where two means fit best (least squares): y[cut] begins the later part; 0 when it is too short.
 */
static size_t best_cut(const double *y, size_t n)
{
	double all = stats_mean(y, n) * (double)n, sum = 0, best = -1;
	size_t cut = 0;

	for (size_t k = 1; k + SEGMENT_MIN <= n; k++) {
		double left = (double)k, right = (double)(n - k), d, fit;

		sum += y[k - 1];
		d = (all - sum) / right - sum / left;
		fit = left * right / (left + right) * d * d;
		if (k >= SEGMENT_MIN && fit > best) {
			best = fit;
			cut = k;
		}
	}
	return cut;
}

/* Ranks decide whether there is a change, since their null distribution is that of any continuous
 * noise; least squares say where, since ranks place an early or late one badly. */
static void find_shift(const double *y, const size_t *at, size_t n, struct quality_shape *s)
{
	_cleanup_free_ double *r = xcalloc(n + 1, sizeof *r);
	double sum = 0, most = 0, m = (double)n;
	size_t cut = best_cut(y, n);

	if (cut == 0)
		return;
	ranks(y, n, r);
	for (size_t k = 1; k < n; k++) {
		sum += r[k - 1];
		most = fmax(most, fabs(2 * sum - (double)k * (m + 1)));
	}
	s->shift_at = at[cut];
	s->shift = expm1(stats_median(y + cut, n - cut) - stats_median(y, cut));
	s->shift_p = fmin(1, 2 * exp(-6 * most * most / (m * m * m + m * m)));
}

static void find_drift(const double *y, size_t n, struct quality_shape *s)
{
	size_t k = n / 3;
	_cleanup_free_ double *both = xcalloc(2 * k + 1, sizeof *both),
			      *r = xcalloc(2 * k + 1, sizeof *r);
	double sum = 0, m = (double)k;

	for (size_t i = 0; i < k; i++) {
		both[i] = y[i];
		both[k + i] = y[n - k + i];
	}
	ranks(both, 2 * k, r);
	for (size_t i = 0; i < k; i++)
		sum += r[k + i];
	sum = (sum - m * (2 * m + 1) / 2) / sqrt(m * m * (2 * m + 1) / 12);
	s->drift = expm1(stats_median(both + k, k) - stats_median(both, k));
	s->drift_p = 2 * pnorm(-fabs(sum), 0, 1, 1, 0);
}

static void count_outliers(const double *log_v, size_t n, size_t left, const size_t *at,
			   struct quality_shape *s)
{
	double all = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		all += exp(log_v[i]);
	for (size_t i = 0; i < left; i++)
		kept += exp(log_v[at[i]]);
	s->outliers = n - left;
	s->outlier_share = all > 0 ? (all - kept) / all : 0;
	if (s->outliers == 0)
		s->outlier_share = 0;
}

struct quality_shape quality_shape(const double *v, size_t n)
{
	struct quality_shape s = {.drift_p = 1, .shift_p = 1};
	_cleanup_free_ double *log_v = xcalloc(n + 1, sizeof *log_v),
			      *y = xcalloc(n + 1, sizeof *y);
	_cleanup_free_ size_t *at = xcalloc(n + 1, sizeof *at);
	size_t used = 0, left;

	for (size_t i = 0; i < n; i++)
		if (v[i] > 0 && isfinite(v[i]))
			log_v[used++] = log(v[i]);
	if (used < QUALITY_MIN_STEPS)
		return s;
	left = without_outliers(log_v, used, y, at);
	count_outliers(log_v, used, left, at, &s);
	s.judged = left >= QUALITY_MIN_STEPS;
	if (s.judged) {
		find_shift(y, at, left, &s);
		find_drift(y, left, &s);
	}
	return s;
}

/* -- rules ---------------------------------------------------------------------------------- */

struct judge {
	const struct quality_settings *set;
	const struct quality_trial *t;
	const struct quality_shape *shape; /* of each */
	size_t n, judged;                  /* trials; of them with a shape */
	struct quality_finding *out;
	size_t n_out, cap;
};

static void __attribute__((format(printf, 6, 7)))
found(struct judge *j, enum quality_rule rule, int slot, double value, double bound,
      const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	if (j->set->action[rule] == QUALITY_OFF)
		return;
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	j->out = xgrow(j->out, j->n_out, &j->cap, sizeof *j->out);
	j->out[j->n_out++] = (struct quality_finding){.rule = rule,
						      .action = j->set->action[rule],
						      .slot = slot,
						      .value = value,
						      .bound = bound,
						      .text = buf_take(&text)};
}

static bool slows(const struct judge *j, const struct quality_shape *s)
{
	return s->judged && s->shift_p <= SHAPE_P && s->shift >= j->set->slow_by;
}

/* A change point towards slower steps that most trials show is the workload's own. */
static void rule_fail_slow(struct judge *j)
{
	size_t many = 0;

	for (size_t i = 0; i < j->n; i++)
		many += slows(j, &j->shape[i]);
	for (size_t i = 0; i < j->n; i++) {
		const struct quality_shape *s = &j->shape[i];
		size_t before = j->n_out;

		if (!slows(j, s))
			continue;
		found(j, QUALITY_FAIL_SLOW, j->t[i].slot, s->shift, j->set->slow_by,
		      "steps of slot %d are %.0f %% slower from step %zu of the window on%s",
		      j->t[i].slot, 100 * s->shift, s->shift_at + 1,
		      2 * many > j->judged ? "; most trials show it: the workload's own" : "");
		if (j->n_out > before && 2 * many > j->judged)
			j->out[before].action = QUALITY_NOTE;
	}
}

static bool drifts(const struct judge *j, const struct quality_shape *s)
{
	return s->judged && s->drift_p <= SHAPE_P && fabs(s->drift) >= j->set->drift_by;
}

/* Most trials drift the same way: the window begins too early, or the workload ages. */
static bool rule_steady(struct judge *j)
{
	size_t up = 0, down = 0;
	double sum = 0;

	for (size_t i = 0; i < j->n; i++) {
		if (!drifts(j, &j->shape[i]))
			continue;
		*(j->shape[i].drift > 0 ? &up : &down) += 1;
		sum += j->shape[i].drift;
	}
	if (2 * up <= j->judged && 2 * down <= j->judged)
		return false;
	found(j, QUALITY_STEADY, -1, sum / (double)(up + down), j->set->drift_by,
	      "the window is not steady: in %zu of %zu trials the last third of the steps is "
	      "%.1f %% %s than the first%s",
	      up > down ? up : down, j->judged, 100 * fabs(sum) / (double)(up + down),
	      up > down ? "slower" : "faster", up > down ? "" : "; raise window.warmup_steps");
	return true;
}

static void rule_drift(struct judge *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct quality_shape *s = &j->shape[i];

		if (!drifts(j, s) || slows(j, s))
			continue;
		found(j, QUALITY_DRIFT, j->t[i].slot, s->drift, j->set->drift_by,
		      "slot %d drifts: the last third of its steps is %.1f %% %s than the first",
		      j->t[i].slot, 100 * fabs(s->drift), s->drift > 0 ? "slower" : "faster");
	}
}

static void rule_outliers(struct judge *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct quality_shape *s = &j->shape[i];

		if (s->outliers == 0 || s->outlier_share < OUTLIER_SHARE)
			continue;
		found(j, QUALITY_OUTLIERS, j->t[i].slot, s->outlier_share, OUTLIER_SHARE,
		      "slot %d: %zu of %zu steps stand out (checkpoint, evaluation, a stall) and "
		      "take %.1f %% of the window",
		      j->t[i].slot, s->outliers, j->t[i].n, 100 * s->outlier_share);
	}
}

/* Least and most of a value over the trials that have it; how many those are. */
struct range {
	size_t n, at_most;
	double least, most;
};

static void range_add(struct range *r, size_t i, double v)
{
	if (!isfinite(v))
		return;
	if (r->n == 0 || v < r->least)
		r->least = v;
	if (r->n == 0 || v > r->most) {
		r->most = v;
		r->at_most = i;
	}
	r->n++;
}

static void rule_clocks(struct judge *j)
{
	struct range r = {0};

	for (size_t i = 0; i < j->n; i++)
		range_add(&r, i, j->t[i].sm_clock_mhz);
	if (r.n < 2 || !(r.most > 0) || 1 - r.least / r.most < j->set->clocks_by)
		return;
	found(j, QUALITY_CLOCKS, -1, 1 - r.least / r.most, j->set->clocks_by,
	      "SM clocks differ between trials: from %.0f to %.0f MHz", r.least, r.most);
}

static void rule_throttle(struct judge *j)
{
	size_t known = 0, held = 0;
	uint64_t bits = 0;

	for (size_t i = 0; i < j->n; i++) {
		uint64_t b = j->t[i].clock_reasons & REASONS_OF_FAULT;

		known += j->t[i].reasons_known;
		held += j->t[i].reasons_known && b;
		bits |= j->t[i].reasons_known ? b : 0;
	}
	if (held == 0 || held == known)
		return;
	found(j, QUALITY_THROTTLE, -1, (double)held, 0,
	      "the device protected itself in %zu of %zu trials (clock event reasons 0x%llx)", held,
	      known, (unsigned long long)bits);
}

/* It pairs out and a rerun would not help: never more than a note. */
static void not_quiet(struct judge *j, const struct range *other)
{
	size_t before = j->n_out;

	if (other->n == 0 || other->least < 200 * j->set->busy_by)
		return;
	found(j, QUALITY_NEIGHBOUR, -1, other->least / 100, 2 * j->set->busy_by,
	      "the machine is not quiet: other processes used %.0f %% of the CPUs or more during "
	      "every trial",
	      other->least);
	if (j->n_out > before)
		j->out[before].action = QUALITY_NOTE;
}

static void rule_neighbour(struct judge *j)
{
	struct range other = {0}, steal = {0};

	for (size_t i = 0; i < j->n; i++) {
		range_add(&other, i, j->t[i].other_cpu_pct);
		range_add(&steal, i, j->t[i].steal_pct);
	}
	if (other.n > 1 && other.most - other.least >= 100 * j->set->busy_by)
		found(j, QUALITY_NEIGHBOUR, j->t[other.at_most].slot,
		      (other.most - other.least) / 100, j->set->busy_by,
		      "other processes used %.0f %% of the CPUs during slot %d, and %.0f %% during "
		      "the quietest trial",
		      other.most, j->t[other.at_most].slot, other.least);
	else
		not_quiet(j, &other);
	if (steal.n > 1 && steal.most - steal.least >= 100 * j->set->busy_by)
		found(j, QUALITY_NEIGHBOUR, j->t[steal.at_most].slot,
		      (steal.most - steal.least) / 100, j->set->busy_by,
		      "the hypervisor took %.0f %% of CPU time during slot %d, and %.0f %% during "
		      "the quietest trial",
		      steal.most, j->t[steal.at_most].slot, steal.least);
}

size_t quality_judge(const struct quality_settings *s, const struct quality_trial *t, size_t n,
		     struct quality_finding **out)
{
	_cleanup_free_ struct quality_shape *shape = xcalloc(n + 1, sizeof *shape);
	struct judge j = {.set = s, .t = t, .shape = shape, .n = n};

	for (size_t i = 0; i < n; i++) {
		shape[i] = quality_shape(t[i].step_ms, t[i].step_ms ? t[i].n : 0);
		j.judged += shape[i].judged;
	}
	rule_fail_slow(&j);
	if (!rule_steady(&j))
		rule_drift(&j);
	rule_outliers(&j);
	rule_clocks(&j);
	rule_throttle(&j);
	rule_neighbour(&j);
	*out = j.out;
	return j.n_out;
}

void quality_findings_free(struct quality_finding *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(f[i].text);
	free(f);
}
