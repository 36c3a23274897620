/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/regress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiments/decide.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

static const double MAD_TO_SD = 1.4826; /* of a normal distribution */
static const double OUTLIER_SD = 3.5;
static const double WITHIN_SD = 2;
static const double GONE_P = 1e-4;
/* Of a whole suspicion, shared out over its nights of re-runs. */
static const double PAIRS_ALPHA = 0.01;
static const double HISTORY_ALPHA = 0.0005;
/* Of each of two nights that agree. */
static const double AGREE_P = 0.002;
/* Of each of three and more that all agree. */
static const double ALL_AGREE_P = 0.01;
static const double HOPELESS_P = 0.1;
static const double HANG_SD = 5;
static const double HANG_SHARE = 0.05; /* of nights: that much wider than the others */
static const double STEP_SDS_MAX = 20; /* no night says more than that */
static const double LEVEL_SD = 0.5;
static const double UNRECORDED = 0.02;
static const double SCORE_LEAST = 1e-6;
static const double NODE_HINT = 0.05; /* one replicate may be slow for any reason */
enum {
	DAY_S = 86400,
	STEP_MAX = 20,
	LAST_MIN = 3,
	TOGETHER_NIGHTS = 7,
	CALM_SIDE = 2,
	PAIRS_MAX = 6,
	SHARES = 16, /* of series that feel it, that are tried */
	LEVELS = 5,
	SIZES = 6
};

/* -- nights and scale ------------------------------------------------------------------------ */

/* The number of up to four digits at *s; -1: there is another character. */
static int digits(const char *s, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		v = v * 10 + s[i] - '0';
	}
	return v;
}

/* Days since 1970-01-01; the year begins in March, so that the odd day is its last one. */
static int64_t days_of(int64_t y, int m, int d)
{
	y -= m <= 2;
	m += m <= 2 ? 9 : -3;
	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 1 - 719468;
}

int64_t regress_day(const char *night)
{
	int y, m, d;
	int64_t day;

	if (!night || strlen(night) != 10 || night[4] != '-' || night[7] != '-')
		return INT64_MIN;
	y = digits(night, 4);
	m = digits(night + 5, 2);
	d = digits(night + 8, 2);
	if (y < 1 || m < 1 || m > 12 || d < 1)
		return INT64_MIN;
	day = days_of(y, m, d);
	return day < days_of(y + m / 12, m % 12 + 1, 1) ? day : INT64_MIN;
}

void regress_night(int64_t day, char out[11])
{
	struct tm tm = {0};
	time_t t = day * DAY_S;

	gmtime_r(&t, &tm);
	strftime(out, 11, "%Y-%m-%d", &tm);
}

bool regress_scale(const double *v, size_t n, double *y)
{
	bool logs = true;

	for (size_t i = 0; i < n; i++)
		logs = logs && v[i] > 0;
	for (size_t i = 0; i < n; i++)
		y[i] = logs ? log(v[i]) : v[i];
	return logs;
}

double regress_relative(double diff, double mean_before, bool logs)
{
	if (logs)
		return stats_relative(diff);
	if (diff == 0)
		return 0;
	return diff / fabs(mean_before);
}

/* -- the level before ------------------------------------------------------------------------ */

struct regress_noise regress_noise(const double *y, size_t n)
{
	struct regress_noise out = {.mean = NAN, .sd = NAN};
	double kept[REGRESS_BEFORE_MAX], middle, reach;

	if (n > REGRESS_BEFORE_MAX) {
		y += n - REGRESS_BEFORE_MAX;
		n = REGRESS_BEFORE_MAX;
	}
	middle = stats_median(y, n);
	reach = OUTLIER_SD * MAD_TO_SD * stats_mad(y, n);
	for (size_t i = 0; i < n; i++)
		if (reach == 0 || fabs(y[i] - middle) <= reach)
			kept[out.n++] = y[i];
	out.mean = stats_mean(kept, out.n);
	out.sd = stats_sd(kept, out.n);
	return out;
}

/* Standard error of the mean of k new nights against before. */
static double fresh_se(const struct regress_noise *before, size_t k)
{
	return before->sd * sqrt(1 / (double)k + 1 / (double)before->n);
}

double regress_fresh_p(const struct regress_noise *before, double mean, size_t nights, int sign)
{
	if (before->n < 2 || nights == 0)
		return 1;
	return stats_t_p_greater(sign * (mean - before->mean), fresh_se(before, nights),
				 (double)before->n - 1);
}

/* Of the five about it; at the beginning of the first five. */
static double about(const double *v, size_t i)
{
	return stats_median(i < CALM_SIDE ? v : v + i - CALM_SIDE, 2 * CALM_SIDE + 1);
}

void regress_calm(const double *v, size_t n, double *out)
{
	_cleanup_free_ double *d = xcalloc(n + 1, sizeof *d);
	double reach;

	memcpy(out, v, n * sizeof *v);
	if (n <= 2 * CALM_SIDE)
		return;
	for (size_t i = 0; i + CALM_SIDE < n; i++)
		d[i] = v[i] - about(v, i);
	reach = HANG_SD * MAD_TO_SD * stats_mad(d, n - CALM_SIDE);
	for (size_t i = 0; reach > 0 && i + CALM_SIDE < n; i++)
		if (fabs(d[i]) > reach)
			out[i] = about(v, i);
}

struct regress_step regress_step(const double *y, size_t n, size_t at)
{
	struct regress_noise before = regress_noise(y, at);
	size_t k = n - at < STEP_MAX ? n - at : STEP_MAX;
	struct regress_step out = {NAN, before.mean, 1};
	double se;

	if (before.n < 2 || k == 0)
		return out;
	out.diff = stats_median(y + at, k) - before.mean;
	se = before.sd * sqrt(M_PI_2 / (double)k + 1 / (double)before.n);
	out.p = 2 * stats_t_p_greater(fabs(out.diff), se, (double)before.n - 1);
	return out;
}

bool regress_lasts(double before, double diff, const double *y, size_t n)
{
	size_t shown = 0;

	for (size_t i = 0; i < n; i++)
		shown += (y[i] - before) / diff >= 0.5;
	return n >= LAST_MIN && 4 * (n - shown) <= n;
}

bool regress_back(const struct regress_noise *before, double after, const double *y, size_t n)
{
	double reach = fabs(after - before->mean) / 4;

	if (n == 0 || before->n == 0)
		return false;
	if (before->n > 1)
		reach = fmax(reach, WITHIN_SD * fresh_se(before, 1));
	for (size_t i = 0; i < n; i++)
		if (fabs(y[i] - before->mean) > reach ||
		    fabs(y[i] - before->mean) >= fabs(y[i] - after))
			return false;
	return true;
}

bool regress_gone(const struct regress_noise *before, double after, size_t n_after, const double *y,
		  size_t n)
{
	struct regress_noise there = *before;

	if (!regress_back(before, after, y, n) || n_after == 0)
		return false;
	if (before->n < 2)
		return true;
	there.mean = after;
	there.n = n_after;
	return stats_t_p_greater((before->mean > after ? 1 : -1) * (stats_mean(y, n) - after),
				 fresh_se(&there, n), (double)before->n - 1) <= GONE_P;
}

/* -- which change is it ---------------------------------------------------------------------- */

static struct regress_span within(const struct regress_span *s, int64_t nights)
{
	struct regress_span t = *s;

	if (t.first < t.day - nights)
		t.first = t.day - nights;
	if (t.last > t.day + nights)
		t.last = t.day + nights;
	return t;
}

struct regress_span regress_near(const struct regress_span *s)
{
	return within(s, REGRESS_SLACK);
}

bool regress_same(const struct regress_span *known, bool settled, const struct regress_span *found)
{
	struct regress_span near = regress_near(known);

	return found->day >= near.first - REGRESS_SLACK &&
	       found->day <= (settled ? known->last : near.last + REGRESS_SLACK);
}

bool regress_together(const struct regress_span *a, const struct regress_span *b)
{
	struct regress_span x = within(a, TOGETHER_NIGHTS), y = within(b, TOGETHER_NIGHTS);

	return x.first <= y.last + 1 && y.first <= x.last + 1;
}

bool regress_shift(const struct regress_move *a, const struct regress_move *b)
{
	double rest = fabs(a->diff + b->diff);

	if (!(a->diff * b->diff < 0))
		return false;
	return rest <= WITHIN_SD * hypot(a->se, b->se) &&
	       rest < fmin(fabs(a->diff), fabs(b->diff)) / 3;
}

/* -- judging a re-run ------------------------------------------------------------------------ */

static double share(size_t attempt)
{
	return attempt <= 1 ? 0.5 : 0.25;
}

void regress_judge_pairs(const double *d, size_t n, int sign, double min_effect, size_t attempt,
			 struct regress_judged *out)
{
	struct decide_plan plan = {.mode = MODE_QUICK,
				   .alpha = PAIRS_ALPHA * share(attempt),
				   .min_effect = min_effect};
	size_t used = n < PAIRS_MAX ? n : PAIRS_MAX;
	double y[PAIRS_MAX];
	struct decision at;

	for (size_t i = 0; i < used; i++)
		y[i] = sign * d[i];
	decide_confirm(&plan, y, used, &at);
	*out = (struct regress_judged){.answer = REGRESS_NOT_SHOWN,
				       .est = sign * at.est,
				       .lo = sign > 0 ? at.lo95 : -at.hi95,
				       .hi = sign > 0 ? at.hi95 : -at.lo95,
				       .p = at.p,
				       .n = at.n};
	if (at.done && at.verdict == VERDICT_ACCEPTED)
		out->answer = REGRESS_SHOWN;
	else if (!at.done && used < PAIRS_MAX)
		out->answer = REGRESS_MORE;
	else
		out->ruled_out = at.done && at.verdict != VERDICT_INCONCLUSIVE;
}

/* A difference from the level before, as a relative change; positive: as suspected. */
static double as_suspected(const struct regress_case *c, double y)
{
	return c->sign * regress_relative(y - c->before.mean, c->before.mean, c->logs);
}

size_t regress_nights_that_show(const struct regress_case *c, const double *y, size_t nights)
{
	size_t n = 0;

	for (size_t i = 0; i < nights; i++)
		n += as_suspected(c, y[i]) >= c->min_effect / 2;
	return n;
}

/* The median of the nights; of an even number the one that shows less. */
static double lower_median(const struct regress_case *c, const double *y, size_t nights)
{
	for (size_t i = 0; i < nights; i++) {
		size_t less = 0, same = 0;

		for (size_t k = 0; k < nights; k++) {
			less += c->sign * (y[k] - y[i]) < 0;
			same += y[k] == y[i];
		}
		if (less <= (nights - 1) / 2 && (nights - 1) / 2 < less + same)
			return y[i];
	}
	return y[0];
}

/* Three nights and more, none of which is like those before. */
static bool all_agree(const struct regress_case *c, const double *y, size_t nights)
{
	for (size_t i = 0; i < nights; i++)
		if (regress_fresh_p(&c->before, y[i], 1, c->sign) > ALL_AGREE_P)
			return false;
	return nights >= REGRESS_SEEN;
}

/* A change of level has the same size again; what is far from it may be another bad night. */
static bool unlike(const struct regress_case *c, double y)
{
	double now = fabs(y - c->before.mean), then = fabs(c->suspected - c->before.mean);

	return now > 2 * then || now < then / 2;
}

void regress_judge_history(const struct regress_case *c, const double *y, size_t nights,
			   struct regress_judged *out)
{
	const struct regress_noise *before = &c->before;
	double level, effect, half, alpha;

	*out = (struct regress_judged){
		.answer = REGRESS_LATER, .est = NAN, .lo = NAN, .hi = NAN, .p = 1, .n = nights};
	if (nights == 0 || before->n < REGRESS_BEFORE_MIN)
		return;
	out->shows = regress_nights_that_show(c, y + nights - 1, 1) > 0;
	if (!out->shows) {
		y += nights - 1;
		out->n = nights = 1;
	}
	level = lower_median(c, y, nights);
	effect = as_suspected(c, level);
	out->est = level - before->mean;
	out->p = regress_fresh_p(before, level, 1, c->sign);
	half = fresh_se(before, 1) * stats_t_quantile(0.975, (double)before->n - 1);
	out->lo = out->est - half;
	out->hi = out->est + half;
	alpha = nights > 1 ? AGREE_P : HISTORY_ALPHA * share(c->attempt);
	if ((out->p <= alpha || all_agree(c, y, nights)) && effect >= c->min_effect &&
	    c->seen + regress_nights_that_show(c, y, nights) >= REGRESS_SEEN &&
	    (!unlike(c, y[nights - 1]) || regress_nights_that_show(c, y, nights) > 1))
		out->answer = REGRESS_SHOWN;
	else if (c->attempt >= REGRESS_RERUNS ||
		 ((effect < c->min_effect / 2 || out->p > HOPELESS_P) &&
		  as_suspected(c, y[nights - 1]) < c->min_effect))
		out->answer = REGRESS_NOT_SHOWN;
}

/* -- causes ---------------------------------------------------------------------------------- */

/* Nights between the interval in which a key turned and the range of the event. */
static int64_t nights_away(const struct regress_turn *t, const struct regress_span *event)
{
	if (t->by < event->first)
		return event->first - t->by;
	if (t->after >= event->last)
		return t->after + 1 - event->last;
	return 0;
}

/* Keys that turned near the event in a series that moved, one entry for each value that they got,
 * with the nearest turn. */
static size_t find_suspects(const struct regress_turn *v, size_t n, const int *moved,
			    const struct regress_span *event, struct regress_suspect **out)
{
	size_t used = 0, cap = 0, k;

	*out = NULL;
	for (size_t i = 0; i < n; i++) {
		int64_t away = nights_away(&v[i], event);

		if (moved[v[i].series] != 1 || away > REGRESS_SLACK)
			continue;
		for (k = 0; k < used; k++)
			if ((*out)[k].key == v[i].key && str_eq((*out)[k].is, v[i].is))
				break;
		if (k == used) {
			*out = xgrow(*out, used, &cap, sizeof **out);
			(*out)[used++] = (struct regress_suspect){.key = v[i].key,
								  .away = INT64_MAX};
		}
		if (away < (*out)[k].away) {
			(*out)[k].away = away;
			(*out)[k].was = v[i].was;
			(*out)[k].is = v[i].is;
		}
	}
	return used;
}

/* Log density of a night that is z standard deviations off, but for a constant. */
static double log_night(double z)
{
	return log((1 - HANG_SHARE) * exp(-z * z / 2) +
		   HANG_SHARE / HANG_SD * exp(-z * z / (2 * HANG_SD * HANG_SD)));
}

/* What the level may have become since it was taken, in sd: it drifts. */
static double level_sd(int l)
{
	return (l - LEVELS / 2) * LEVEL_SD;
}

static double log_sum(double a, double b)
{
	double most = fmax(a, b);

	return isinf(most) ? most : most + log1p(exp(fmin(a, b) - most));
}

/* Log densities of the nights of a window: of each without and with a step, for what the level may
 * have become since it was taken, and for each size of the step. */
struct densities {
	size_t n;
	double (*off)[LEVELS], (*on)[LEVELS][SIZES];
};
static const double sizes[SIZES] = {0.35, 0.5, 0.7, 1, 1.4, 2};

static void densities_done(struct densities *d)
{
	free(d->off);
	free(d->on);
}

static void densities_make(const struct regress_window *w, struct densities *d)
{
	double sd = fmax(w->before.sd * sqrt(1 + 1 / (double)w->before.n),
			 fabs(w->step) / STEP_SDS_MAX);

	d->n = w->n;
	d->off = xcalloc(w->n + 1, sizeof *d->off);
	d->on = xcalloc(w->n + 1, sizeof *d->on);
	for (size_t i = 0; i < w->n; i++)
		for (int l = 0; l < LEVELS; l++) {
			double z = (w->y[i] - w->before.mean) / sd - level_sd(l);

			d->off[i][l] = log_night(z);
			for (int k = 0; k < SIZES; k++)
				d->on[i][l][k] = log_night(z - sizes[k] * w->step / sd);
		}
}

/* Log likelihood of the nights with a step wherever on[] is set, against none. */
static double log_ratio(const struct densities *d, const bool *on)
{
	double with = -INFINITY, without = -INFINITY;

	for (int l = 0; l < LEVELS; l++) {
		double at[SIZES] = {0},
		       none = -level_sd(l) * level_sd(l) / (2 * LEVEL_SD * LEVEL_SD);

		for (int k = 0; k < SIZES; k++)
			at[k] = none - log(SIZES);
		for (size_t i = 0; i < d->n; i++) {
			none += d->off[i][l];
			for (int k = 0; k < SIZES; k++)
				at[k] += on[i] ? d->on[i][l][k] : d->off[i][l];
		}
		without = log_sum(without, none);
		for (int k = 0; k < SIZES; k++)
			with = log_sum(with, at[k]);
	}
	return with - without;
}

double regress_since(const struct regress_window *w, int64_t day)
{
	_cleanup_(densities_done) struct densities d = {0};
	_cleanup_free_ bool *on = xcalloc(w->n + 1, sizeof *on);

	if (w->n == 0)
		return 0;
	densities_make(w, &d);
	for (size_t i = 0; i < w->n; i++)
		on[i] = w->day[i] >= day;
	return log_ratio(&d, on);
}

/* Series that a reason concerns, each with how much better it explains its nights. */
struct evidence {
	double share[SHARES]; /* log of the product, for each share of them that feel it */
};

static void add_series(struct evidence *e, double ratio)
{
	for (int i = 0; i < SHARES; i++) {
		double f = (i + 0.5) / SHARES;

		e->share[i] += log_sum(log(f) + ratio, log1p(-f));
	}
}

static double total(const struct evidence *e)
{
	double sum = -INFINITY;

	for (int i = 0; i < SHARES; i++)
		sum = log_sum(sum, e->share[i] - log(SHARES));
	return sum;
}

/* The nights of a series on which the key has its new value, or one that came after it: `turns` of
 * that series and key, in order. `any`: whatever it became near the event. False: it did not turn
 * then. */
static bool nights_with(const struct regress_turn *v, const size_t *turns, size_t n,
			const struct regress_suspect *s, bool any, const struct regress_span *event,
			const struct regress_window *w, bool *on)
{
	const struct regress_turn *to = NULL;
	int64_t away = REGRESS_SLACK + 1;

	for (size_t i = 0; i < n; i++) {
		const struct regress_turn *t = &v[turns[i]];

		if (nights_away(t, event) < away && (any || str_eq(t->is, s->is))) {
			away = nights_away(t, event);
			to = t;
		}
	}
	for (size_t i = 0; to && i < w->n; i++) {
		const char *value = v[turns[0]].was;

		for (size_t k = 0; k < n && v[turns[k]].by <= w->day[i]; k++)
			value = v[turns[k]].is;
		on[i] = str_eq(value, to->is) || (w->day[i] >= to->by && !str_eq(value, to->was));
	}
	return to != NULL;
}

/* What speaks for a key, and how many series it changed for. Turns are sorted by series and night.
 */
static double explains(const struct regress_turn *v, size_t n, const int *moved,
		       const struct regress_window *windows, const struct densities *d,
		       size_t n_series, const struct regress_span *event, struct regress_suspect *s,
		       bool any)
{
	_cleanup_free_ size_t *turns = xcalloc(n + 1, sizeof *turns);
	_cleanup_free_ bool *seen = xcalloc(n_series + 1, sizeof *seen);
	struct evidence e = {0};

	for (size_t i = 0, k; i < n; i = k) {
		const struct regress_window *w = &windows[v[i].series];
		_cleanup_free_ bool *on = xcalloc(w->n + 1, sizeof *on);
		size_t used = 0;

		for (k = i; k < n && v[k].series == v[i].series; k++)
			if (v[k].key == s->key)
				turns[used++] = k;
		if (!used || !nights_with(v, turns, used, s, any, event, w, on))
			continue;
		seen[v[i].series] = true;
		if (w->n)
			add_series(&e, log_ratio(&d[v[i].series], on));
	}
	s->moved = s->still = s->elsewhere = 0;
	for (size_t i = 0; i < n_series; i++) {
		s->moved += moved[i] == 1 && seen[i];
		s->still += moved[i] == 0 && seen[i];
		s->elsewhere += moved[i] == 1 && !seen[i];
	}
	return total(&e);
}

static void add_night(int64_t **v, size_t *n, size_t *cap, int64_t night)
{
	for (size_t i = *n; i > 0; i--)
		if ((*v)[i - 1] == night)
			return;
	*v = xgrow(*v, *n, cap, sizeof **v);
	(*v)[(*n)++] = night;
}

/* How often the key changes when nothing moves: the log of what that leaves to believe. */
static double habit(const struct regress_turn *v, size_t n, const int *moved, size_t n_series,
		    const struct regress_span *event, struct regress_suspect *s)
{
	_cleanup_free_ int64_t *nights = NULL;
	size_t cap = 0, own = 0, others = 0, n_moved = 0, n_still = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].key != s->key || v[i].moved || nights_away(&v[i], event) <= REGRESS_SLACK)
			continue;
		if (moved[v[i].series] == 1) {
			add_night(&nights, &s->idle, &cap, v[i].by);
			own++;
		} else if (moved[v[i].series] == 0) {
			others++;
		}
	}
	for (size_t i = 0; i < n_series; i++) {
		n_moved += moved[i] == 1;
		n_still += moved[i] == 0;
	}
	s->usual = n_still ? (double)others / (double)n_still : 0;
	return -log(0.5 + ((double)own + s->usual) / (double)(n_moved + (n_still > 0)));
}

/* What nobody recorded, on the night of the event: of a workload, a place, or all. */
static double unrecorded(const int *moved, const struct regress_window *windows,
			 const struct densities *d, size_t n_series,
			 const struct regress_span *event)
{
	double sum = -INFINITY;

	for (size_t lead = 0; lead < n_series; lead++) {
		if (moved[lead] != 1)
			continue;
		for (int scope = 0; scope < 3; scope++) {
			struct evidence e = {0};

			for (size_t i = 0; i < n_series; i++) {
				const struct regress_window *w = &windows[i];
				_cleanup_free_ bool *on = xcalloc(w->n + 1, sizeof *on);

				if (!w->n ||
				    (scope == 0 && w->workload != windows[lead].workload) ||
				    (scope == 1 && w->place != windows[lead].place))
					continue;
				for (size_t k = 0; k < w->n; k++)
					on[k] = w->day[k] >= event->day;
				add_series(&e, log_ratio(&d[i], on));
			}
			sum = fmax(sum, total(&e));
		}
	}
	return log(UNRECORDED) + sum;
}

static int by_score(const void *a, const void *b)
{
	const struct regress_suspect *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->key - y->key;
}

/* One entry a key: its likeliest value. They are sorted. */
static size_t one_each(struct regress_suspect *v, size_t n)
{
	size_t used = 0, k;

	for (size_t i = 0; i < n; i++) {
		for (k = 0; k < used && v[k].key != v[i].key; k++)
			;
		if (k == used)
			v[used++] = v[i];
	}
	return used;
}

size_t regress_rank(const struct regress_turn *v, size_t n, const int *moved,
		    const struct regress_window *windows, size_t n_series,
		    const struct regress_span *event, struct regress_suspect **out)
{
	size_t used = find_suspects(v, n, moved, event, out);
	struct regress_suspect *s = *out;
	struct densities *d = xcalloc(n_series + 1, sizeof *d);
	double all;

	for (size_t i = 0; i < n_series; i++)
		densities_make(&windows[i], &d[i]);
	all = unrecorded(moved, windows, d, n_series, event);

	for (size_t i = 0; i < used; i++) {
		double any = explains(v, n, moved, windows, d, n_series, event, &s[i], true);
		struct regress_suspect as_any = s[i];
		double same = explains(v, n, moved, windows, d, n_series, event, &s[i], false);

		if (any > same)
			s[i] = as_any;
		s[i].score = log_sum(any, same) - log(2) +
			     habit(v, n, moved, n_series, event, &s[i]);
		all = log_sum(all, s[i].score);
	}
	for (size_t i = 0; i < used; i++)
		s[i].score = fmin(fmax(exp(s[i].score - all), SCORE_LEAST), 1 - SCORE_LEAST);
	for (size_t i = 0; i < n_series; i++)
		densities_done(&d[i]);
	free(d);
	if (used > 1)
		qsort(s, used, sizeof *s, by_score);
	return one_each(s, used);
}

/* Does the comma separated list hold this name? */
static bool lists(const char *nodes, const char *name, size_t len)
{
	for (const char *at = nodes; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && memcmp(at, name, len) == 0)
			return true;
	return false;
}

/* Do the replicates on this node, and only they, carry the change? Returns their number, 0: no. */
static size_t carries(const struct regress_replicate *v, size_t n, double diff, const char *name,
		      size_t len)
{
	double on = 0, off = 0;
	size_t n_on = 0, n_off = 0;

	for (size_t i = 0; i < n; i++) {
		if (lists(v[i].nodes, name, len)) {
			on += v[i].diff;
			n_on++;
		} else {
			off += v[i].diff;
			n_off++;
		}
	}
	if (n_on == 0 || n_off == 0)
		return 0;
	on /= (double)n_on;
	off /= (double)n_off;
	return on / diff >= 1 && fabs(off) <= fmin(fabs(on) / 3, fabs(diff) / 2) ? n_on : 0;
}

bool regress_node(const struct regress_replicate *v, size_t n, double diff, char **node,
		  double *score)
{
	size_t best = 0;
	const char *name = NULL;

	if (diff == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *at = v[i].nodes;

		for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
			size_t k = carries(v, n, diff, at, strcspn(at, ","));

			if (k > best) {
				best = k;
				name = at;
			}
		}
	}
	if (!name)
		return false;
	*node = xstrndup(name, strcspn(name, ","));
	*score = best > 1 ? 0.9 * (double)(best - 1) / (double)best : NODE_HINT;
	return true;
}
