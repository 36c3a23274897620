/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/changepoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"

const struct cp_params cp_otava = {
	.window = 50,
	.p_max = 0.001,
	.min_segment = 1,
};
const struct cp_params cp_strict = {
	.window = 50,
	.p_max = 1e-4,
	.min_magnitude = 0.02,
	.min_segment = 3,
	.logs = true,
	.sample_variance = true,
	.merge_fix = true,
	.weak_to_kappa = true,
	.autocorrelation = true,
};

static const double TIE = 1e-12; /* relative: sums of another order differ by less */

/* The measured points, on the scale of the analysis. */
struct series {
	struct cp_params p;
	double *z;
	size_t *at; /* index in the caller's array */
	size_t n;
	bool logs;
	int exponent;  /* without logs z = v / 2^exponent, so that no sum overflows */
	double inform; /* share of independent points that a point is worth, (0, 1] */
};

/* Points between two neighbouring change points. */
struct part {
	size_t n;
	double mean, ss; /* ss: sum of squares about the mean */
};

/* -- the series ---------------------------------------------------------------------------- */

static void swap(double *a, double *b)
{
	double x = *a;

	*a = *b;
	*b = x;
}

/* Hoare's selection: afterwards none of v[0..k) is above any of v[k..n). */
static void select_smallest(double *v, size_t n, size_t k)
{
	struct rng r = rng_at(0, n, k, 0); /* no order of the input is a bad one */
	size_t lo = 0, hi = n;

	while (lo + 1 < hi) {
		size_t i = lo, j = hi - 1;
		double pivot;

		swap(&v[lo], &v[lo + rng_below(&r, hi - lo)]);
		pivot = v[lo]; /* so that j ends below hi - 1 */
		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&v[i++], &v[j--]);
		}
		if (k <= j)
			hi = j + 1;
		else
			lo = j + 1;
	}
}

/* Mean of the squared differences of points `lag` apart without the largest tenth, two at least: a
 * step, or an outlier, is in one or two of them. n > lag + 2. */
static double squared_step(const struct series *s, size_t lag, double *room)
{
	size_t n = s->n - lag, keep = n - (n / 10 > 2 ? n / 10 : 2);

	for (size_t i = 0; i < n; i++) {
		double d = s->z[i + lag] - s->z[i];

		room[i] = d * d;
	}
	select_smallest(room, n, keep);
	return stats_mean(room, keep);
}

/* With correlation r of neighbours a mean of n points is worth n (1 - r) / (1 + r). Of differences,
 * since E(z[i+2] - z[i])^2 / E(z[i+1] - z[i])^2 = 1 + r whatever the level does. */
static double information(const struct series *s)
{
	double r, *room;

	if (!s->p.autocorrelation || s->n < 8)
		return 1;
	if (s->p.inform > 0)
		return fmin(s->p.inform, 1);
	room = xcalloc(s->n, sizeof(*room));
	r = squared_step(s, 2, room) / squared_step(s, 1, room) - 1;
	free(room);
	if (!(r > 0.25)) /* noise */
		return 1;
	r = fmin(r, 0.9);
	return (1 - r) / (1 + r);
}

static bool all_positive(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isfinite(v[i]) && v[i] <= 0)
			return false;
	return true;
}

static double largest(const double *v, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(v[i]))
			most = fmax(most, fabs(v[i]));
	return most;
}

static struct series series_open(const double *v, size_t n, const struct cp_params *params)
{
	struct series s = {.p = *params, .logs = params->logs && all_positive(v, n)};

	s.p.min_segment = s.p.min_segment > 0 ? s.p.min_segment : 1;
	s.p.window = s.p.window < CP_WINDOW_MAX ? s.p.window : CP_WINDOW_MAX;
	s.p.window = s.p.window > 2 ? s.p.window : 2;
	s.z = xcalloc(n + 1, sizeof(*s.z));
	s.at = xcalloc(n + 1, sizeof(*s.at));
	frexp(largest(v, n), &s.exponent);
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			continue;
		s.z[s.n] = s.logs ? log(v[i]) : ldexp(v[i], -s.exponent);
		s.at[s.n++] = i;
	}
	s.inform = information(&s);
	return s;
}

static void series_close(struct series *s)
{
	free(s->z);
	free(s->at);
}

/* -- comparing two parts ------------------------------------------------------------------- */

static struct part part_of(const double *z, size_t n)
{
	struct part part = {.n = n, .mean = stats_mean(z, n)};

	for (size_t i = 0; i < n; i++)
		part.ss += (z[i] - part.mean) * (z[i] - part.mean);
	return part;
}

/* Chan, Golub and LeVeque 1983. */
static struct part joined(struct part a, struct part b)
{
	double n = (double)(a.n + b.n), d = b.mean - a.mean;

	return (struct part){
		.n = a.n + b.n,
		.mean = a.mean + d * (double)b.n / n,
		.ss = a.ss + b.ss + d * d * (double)a.n * (double)b.n / n,
	};
}

static bool same_mean(struct part a, struct part b)
{
	return fabs(a.mean - b.mean) <= TIE * fmax(fabs(a.mean), fabs(b.mean));
}

/* Student's two-sided p, equal variances. */
static double p_of(const struct series *s, struct part a, struct part b)
{
	double n = (double)a.n, m = (double)b.n, df = n + m - 2, ss = a.ss + b.ss, t;

	if (df < 1 || same_mean(a, b))
		return 1;
	if (!s->p.sample_variance) /* Otava's sd has divisor n where the formula wants n - 1 */
		ss = a.ss * (n - 1) / n + b.ss * (m - 1) / m;
	t = fabs(a.mean - b.mean) / sqrt(ss / df * (1 / n + 1 / m));
	return fmin(1, 2 * stats_t_sf(t * sqrt(s->inform), df * s->inform));
}

static double magnitude(const struct series *s, struct part a, struct part b)
{
	if (s->logs)
		return expm1(fabs(b.mean - a.mean));
	return fmax(a.mean != 0 ? fabs(b.mean / a.mean - 1) : 0,
		    b.mean != 0 ? fabs(a.mean / b.mean - 1) : 0);
}

/* -- split: weak points of one window ------------------------------------------------------ */

struct interval {
	size_t s, e;       /* [s, e) */
	size_t tau, kappa; /* the best split, [s, tau) against [tau, kappa); tau 0: none */
	double q;
};

/* Room for one window. */
struct room {
	double *row;     /* row[t]: distances of point t to those after it, up to kappa */
	double *within;  /* within[k]: distances of the pairs in the first k points */
	double *left;    /* left[k]: within[k] / (k - 1) */
	double *inverse; /* inverse[k]: 1 / k; 0 of 0 */
	struct interval *interval;
	size_t intervals;
};

/* Of splits that tie, the earliest, then the one with the earlier end. */
static void consider(struct interval *best, size_t tau, size_t kappa, double q)
{
	double tie = TIE * fabs(best->q);
	bool earlier = tau < best->tau || (tau == best->tau && kappa < best->kappa);

	if (best->tau != 0 && !(q > best->q + tie) && !(q >= best->q - tie && earlier))
		return;
	best->tau = tau;
	best->kappa = kappa;
	best->q = best->tau != 0 ? fmax(q, best->q) : q;
}

/* The split of z[s..e) with the largest empirical energy distance, its right end free, in
 * O((e - s)^2) time and O(e - s) memory. */
static void search(const struct series *series, struct room *r, struct interval *iv)
{
	const double *z = series->z + iv->s;
	size_t length = iv->e - iv->s, least = series->p.min_segment;
	double column = 0; /* distances of point k - 1 to those before it */

	iv->tau = 0;
	iv->q = -INFINITY;
	r->row[0] = 0;
	for (size_t k = 1; k <= length; k++) {
		double right = 0, enough = iv->q - TIE * fabs(iv->q), left_n = (double)k, m = 0;

		r->within[k] = r->within[k - 1] + column;
		r->left[k] = r->within[k] * r->inverse[k - 1];
		column = 0;
		for (size_t t = k; t-- > 0;) {
			double d = fabs(z[t] - z[k]), cross, q;

			left_n -= 1;
			m += 1;
			right += r->row[t];
			cross = r->within[k] - r->within[t] - right;
			q = 2 * r->inverse[k] *
			    (cross - m * r->left[t] - left_n * right * r->inverse[k - t - 1]);
			if (q >= enough && t >= least && k - t >= least) {
				consider(iv, iv->s + t, iv->s + k, q);
				enough = iv->q - TIE * fabs(iv->q);
			}
			r->row[t] += d; /* of point k, the last of the next round */
			column += d;
		}
		r->row[k] = 0;
	}
}

/* The first test of a candidate; its own interval is left behind. */
static double weak_p(const struct series *s, const struct interval *iv)
{
	size_t end = s->p.weak_to_kappa ? iv->kappa : iv->e;

	return p_of(s, part_of(s->z + iv->s, iv->tau - iv->s),
		    part_of(s->z + iv->tau, end - iv->tau));
}

static struct interval *best_interval(struct room *r)
{
	struct interval *best = NULL;

	for (size_t i = 0; i < r->intervals; i++) {
		struct interval *iv = &r->interval[i];

		if (iv->tau != 0 && (!best || iv->q > best->q + TIE * fabs(best->q)))
			best = iv;
	}
	return best;
}

static void split_at(const struct series *s, struct room *r, struct interval *iv)
{
	size_t behind = r->intervals - (size_t)(iv - r->interval) - 1;

	memmove(iv + 2, iv + 1, behind * sizeof(*iv));
	r->intervals++;
	iv[1] = (struct interval){.s = iv->tau, .e = iv->e};
	iv->e = iv->tau;
	search(s, r, iv);
	search(s, r, iv + 1);
}

/* Splits [start, end) while its best candidate is significant; then the intervals are in r. */
static void divide(const struct series *s, struct room *r, size_t start, size_t end, double p_first)
{
	struct interval *best = r->interval;

	*best = (struct interval){.s = start, .e = end};
	r->intervals = 1;
	search(s, r, best);
	while ((best = best_interval(r)) != NULL && weak_p(s, best) <= p_first)
		split_at(s, r, best);
}

static struct room room_open(size_t window)
{
	struct room r = {
		.row = xcalloc(window + 1, sizeof(*r.row)),
		.within = xcalloc(window + 1, sizeof(*r.within)),
		.left = xcalloc(window + 1, sizeof(*r.left)),
		.inverse = xcalloc(window + 1, sizeof(*r.inverse)),
		.interval = xcalloc(window + 1, sizeof(*r.interval)),
	};

	for (size_t k = 1; k <= window; k++)
		r.inverse[k] = 1 / (double)k;
	return r;
}

static void room_close(struct room *r)
{
	free(r->row);
	free(r->within);
	free(r->left);
	free(r->inverse);
	free(r->interval);
}

/* Marks the weak points: weak[i] is set when z[i] is the first after a possible change. */
static void split(const struct series *s, bool *weak)
{
	double p = s->p.p_max, p_first = p < 0.05 ? 10 * p : p < 0.5 ? 2 * p : p;
	struct room r = room_open(s->p.window);
	size_t start = 0;

	while (start < s->n) {
		size_t end = start + s->p.window < s->n ? start + s->p.window : s->n, last;

		divide(s, &r, start, end, p_first);
		for (size_t i = 1; i < r.intervals; i++)
			weak[r.interval[i].s] = true;
		last = r.intervals > 1 ? r.interval[r.intervals - 1].s : 0;
		start = last > start + s->p.window / 2 ? last : start + s->p.window / 2;
	}
	room_close(&r);
}

/* -- merge: what is significant and large enough ------------------------------------------- */

struct change {
	size_t index; /* of the series */
	double p, magnitude;
};

/* Change k lies between part k and part k + 1. */
struct partition {
	struct change *change;
	struct part *part;
	size_t changes;
};

static void renew(const struct series *s, struct partition *pt, size_t k)
{
	if (k >= pt->changes) /* also below the first: its number wraps */
		return;
	pt->change[k].p = p_of(s, pt->part[k], pt->part[k + 1]);
	pt->change[k].magnitude = magnitude(s, pt->part[k], pt->part[k + 1]);
}

static struct partition partition_open(const struct series *s, const bool *weak)
{
	struct partition pt = {0};
	size_t begin = 0;

	for (size_t i = 1; i < s->n; i++)
		pt.changes += weak[i];
	pt.change = xcalloc(pt.changes + 1, sizeof(*pt.change));
	pt.part = xcalloc(pt.changes + 1, sizeof(*pt.part));
	for (size_t i = 1, k = 0; i <= s->n; i++) {
		if (i < s->n && !weak[i])
			continue;
		pt.change[k].index = i;
		pt.part[k++] = part_of(s->z + begin, i - begin);
		begin = i;
	}
	for (size_t k = 0; k < pt.changes; k++)
		renew(s, &pt, k);
	return pt;
}

static void partition_close(struct partition *pt)
{
	free(pt->change);
	free(pt->part);
}

/* The change that has to go next; `changes` when all may stay. */
static size_t weakest(const struct series *s, const struct partition *pt)
{
	size_t worst = 0, least = 0;

	for (size_t k = 1; k < pt->changes; k++) {
		if (pt->part[k].n < s->p.min_segment) /* windows overlap: two found one change */
			return pt->change[k - 1].p > pt->change[k].p ? k - 1 : k;
		if (pt->change[k].p > pt->change[worst].p)
			worst = k;
		if (pt->change[k].magnitude < pt->change[least].magnitude)
			least = k;
	}
	if (pt->changes > 0 && !(pt->change[worst].p < s->p.p_max))
		return worst;
	if (pt->changes > 0 && !(pt->change[least].magnitude > s->p.min_magnitude))
		return least;
	return pt->changes;
}

static void merge(const struct series *s, struct partition *pt)
{
	size_t k;

	while ((k = weakest(s, pt)) < pt->changes) {
		size_t behind = pt->changes - k - 1;

		pt->part[k] = joined(pt->part[k], pt->part[k + 1]);
		memmove(&pt->change[k], &pt->change[k + 1], behind * sizeof(*pt->change));
		memmove(&pt->part[k + 1], &pt->part[k + 2], behind * sizeof(*pt->part));
		pt->changes--;
		if (s->p.merge_fix)
			renew(s, pt, k - 1);
		renew(s, pt, k);
		renew(s, pt, k + 1); /* Otava renews this one; it may be stale there */
	}
}

/* -- what is said of a change -------------------------------------------------------------- */

/* A difference on the scale of the analysis as a share of the mean before. */
static double relative(const struct series *s, double difference, double before)
{
	if (s->logs)
		return isinf(difference) ? difference : expm1(difference);
	if (before == 0)
		return difference == 0 ? 0 : copysign(INFINITY, difference);
	return difference / fabs(before);
}

/* Half of Welch's 95 % interval of the difference of the means. */
static double half_width(const struct series *s, struct part a, struct part b)
{
	double va, vb, share, df;

	if (a.n < 2 || b.n < 2)
		return INFINITY;
	va = a.ss / (double)(a.n - 1) / (double)a.n;
	vb = b.ss / (double)(b.n - 1) / (double)b.n;
	if (va + vb <= 0)
		return 0;
	share = va / (va + vb);
	df = 1 /
	     (share * share / (double)(a.n - 1) + (1 - share) * (1 - share) / (double)(b.n - 1));
	return stats_t_quantile(0.975, df * s->inform) * sqrt((va + vb) / s->inform);
}

/* tail[i]: the sum of squares of z[i..e) about its mean, i in [b, e). */
static void tails(const double *z, size_t b, size_t e, double *tail)
{
	double mean = 0, ss = 0;

	for (size_t i = e; i-- > b;) {
		double d = z[i] - mean;

		mean += d / (double)(e - i);
		ss += d * (z[i] - mean);
		tail[i] = ss;
	}
}

/* Splits of z[b..e) in two whose fit is within the bound of the best: the earliest and the latest.
 * tail has room for the whole series. */
static void range(const struct series *s, size_t b, size_t e, double *tail, struct cp_point *out)
{
	/* (1 - exp(-x/2))^2 = 0.95. */
	static const double BOUND = 7.352;
	double mean = 0, ss = 0, least = INFINITY, most, d;
	size_t first = e, last = b;

	tails(s->z, b, e, tail);
	for (size_t i = b; i + 1 < e; i++) { /* tail[i + 1]: of both parts when split at i + 1 */
		d = s->z[i] - mean;
		mean += d / (double)(i - b + 1);
		ss += d * (s->z[i] - mean);
		tail[i + 1] += ss;
		least = fmin(least, tail[i + 1]);
	}
	most = least * exp(BOUND / (s->inform * (double)(e - b))) + TIE * tail[b];
	for (size_t i = b + 1; i < e; i++) {
		if (tail[i] > most && s->at[i] != out->index)
			continue;
		first = i < first ? i : first;
		last = i;
	}
	out->first = s->at[first - 1] + 1;
	out->last = s->at[last];
}

static double in_unit(const struct series *s, double z)
{
	return s->logs ? exp(z) : ldexp(z, s->exponent);
}

static void describe(const struct series *s, const struct partition *pt, struct cp_point *out)
{
	double *tail = xcalloc(s->n, sizeof(*tail));

	for (size_t k = 0; k < pt->changes; k++) {
		struct part a = pt->part[k], b = pt->part[k + 1];
		double d = b.mean - a.mean, half = half_width(s, a, b);
		size_t index = pt->change[k].index;

		out[k] = (struct cp_point){
			.index = s->at[index],
			.p = pt->change[k].p,
			.mean_before = in_unit(s, a.mean),
			.mean_after = in_unit(s, b.mean),
			.shift = relative(s, d, a.mean),
			.lo = relative(s, d - half, a.mean),
			.hi = relative(s, d + half, a.mean),
		};
		range(s, index - a.n, index + b.n, tail, &out[k]);
	}
	free(tail);
}

/* ------------------------------------------------------------------------------------------ */

size_t cp_detect(const double *v, size_t n, const struct cp_params *params, struct cp_point *out)
{
	struct series s = series_open(v, n, params);
	bool *weak = xcalloc(s.n + 1, sizeof(*weak));
	struct partition pt;
	size_t changes;

	split(&s, weak);
	pt = partition_open(&s, weak);
	merge(&s, &pt);
	if (pt.changes > 0)
		describe(&s, &pt, out);
	changes = pt.changes;
	partition_close(&pt);
	free(weak);
	series_close(&s);
	return changes;
}

double cp_information(const double *v, size_t n)
{
	struct series s = series_open(v, n, &cp_strict);
	double out = s.inform;

	series_close(&s);
	return out;
}

size_t cp_suspects(const double *v, size_t n, size_t newest, struct cp_point *out)
{
	size_t changes = cp_detect(v, n, &cp_otava, out), begin = n, measured = 0, old = 0;

	while (begin > 0 && measured < newest)
		measured += isfinite(v[--begin]) ? 1 : 0;
	while (old < changes && out[old].index < begin)
		old++;
	memmove(out, out + old, (changes - old) * sizeof(*out));
	return changes - old;
}
