/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MATHLIB_STANDALONE 1
#include <Rmath.h>

#include "orchestrator/base/mem.h"

/* -- location and spread ------------------------------------------------------------------- */

double stats_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n > 0 ? sum / (double)n : NAN;
}

static double sum_of_squares(const double *v, size_t n, double mean)
{
	double ss = 0;

	for (size_t i = 0; i < n; i++)
		ss += (v[i] - mean) * (v[i] - mean);
	return ss;
}

double stats_sd(const double *v, size_t n)
{
	return n > 1 ? sqrt(sum_of_squares(v, n, stats_mean(v, n)) / (double)(n - 1)) : NAN;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted_copy(const double *v, size_t n)
{
	double *copy = xcalloc(n, sizeof(*copy));

	memcpy(copy, v, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), compare_doubles);
	return copy;
}

double stats_quantile(const double *v, size_t n, double q)
{
	_cleanup_free_ double *sorted = NULL;
	double h;
	size_t k;

	if (n == 0 || !(q >= 0 && q <= 1))
		return NAN;
	sorted = sorted_copy(v, n);
	h = (double)(n - 1) * q;
	k = (size_t)h;
	if (k + 1 >= n)
		return sorted[n - 1];
	return sorted[k] + (h - (double)k) * (sorted[k + 1] - sorted[k]);
}

double stats_median(const double *v, size_t n)
{
	return stats_quantile(v, n, 0.5);
}

double stats_mad(const double *v, size_t n)
{
	_cleanup_free_ double *distance = NULL;
	double median;

	if (n == 0)
		return NAN;
	median = stats_median(v, n);
	distance = xcalloc(n, sizeof(*distance));
	for (size_t i = 0; i < n; i++)
		distance[i] = fabs(v[i] - median);
	return stats_median(distance, n);
}

double stats_trimmed_mean(const double *v, size_t n, double cut)
{
	_cleanup_free_ double *sorted = NULL;
	size_t out;

	if (n == 0 || !(cut >= 0 && cut < 0.5))
		return NAN;
	out = (size_t)(cut * (double)n);
	sorted = sorted_copy(v, n);
	return stats_mean(sorted + out, n - 2 * out);
}

/* -- Student's t --------------------------------------------------------------------------- */

double stats_t_cdf(double t, double df)
{
	return pt(t, df, 1, 0);
}

double stats_t_sf(double t, double df)
{
	return pt(t, df, 0, 0);
}

double stats_t_quantile(double p, double df)
{
	return qt(p, df, 1, 0);
}

double stats_relative(double log_effect)
{
	return expm1(log_effect);
}

double stats_t_p_greater(double est, double se, double df)
{
	if (se > 0)
		return stats_t_sf(est / se, df);
	return est > 0 ? 0 : est < 0 ? 1 : 0.5;
}

struct stats_mean_ci stats_mean_ci(const double *v, size_t n, double level)
{
	struct stats_mean_ci ci = {n, stats_mean(v, n), NAN, NAN, NAN, NAN, NAN, NAN};
	double half;

	if (n == 0)
		return ci;
	ci.df = (double)(n - 1);
	if (n == 1) {
		ci.lo = -INFINITY;
		ci.hi = INFINITY;
		ci.p_greater = 0.5;
		return ci;
	}
	ci.sd = stats_sd(v, n);
	ci.se = ci.sd / sqrt((double)n);
	half = stats_t_quantile(0.5 + level / 2, ci.df) * ci.se;
	ci.lo = ci.mean - half;
	ci.hi = ci.mean + half;
	ci.p_greater = stats_t_p_greater(ci.mean, ci.se, ci.df);
	return ci;
}

struct stats_mean_ci stats_paired(const double *a, const double *b, size_t n, double level)
{
	_cleanup_free_ double *d = xcalloc(n + 1, sizeof(*d));
	size_t pairs = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(a[i]) && !isnan(b[i]))
			d[pairs++] = b[i] - a[i];
	}
	return stats_mean_ci(d, pairs, level);
}

double stats_noise_of_same(const struct stats_mean_ci *d)
{
	double n = (double)d->n;

	return d->n > 1 ? sqrt(((n - 1) / n * d->sd * d->sd + d->mean * d->mean) / 2) : NAN;
}

bool stats_unlike(const struct stats_mean_ci *d, double useful)
{
	return fabs(d->mean) >= useful && (d->lo > 0 || d->hi < 0);
}

/* -- layouts ------------------------------------------------------------------------------- */

/* index[i] = which unit, numbered by first appearance; returns how many there are. */
static size_t number_units(const size_t *unit, size_t n, size_t *index)
{
	_cleanup_free_ size_t *seen = xcalloc(n + 1, sizeof(*seen));
	size_t units = 0;

	for (size_t i = 0; i < n; i++) {
		size_t u = 0;

		while (u < units && seen[u] != unit[i])
			u++;
		if (u == units)
			seen[units++] = unit[i];
		index[i] = u;
	}
	return units;
}

size_t stats_unit_means(const double *v, const size_t *unit, size_t n, double *out)
{
	_cleanup_free_ size_t *index = xcalloc(n + 1, sizeof(*index));
	_cleanup_free_ size_t *count = xcalloc(n + 1, sizeof(*count));
	_cleanup_free_ double *sum = xcalloc(n + 1, sizeof(*sum));
	size_t units = number_units(unit, n, index);

	for (size_t i = 0; i < n; i++) {
		sum[index[i]] += v[i];
		count[index[i]]++;
	}
	for (size_t u = 0; u < units; u++)
		out[u] = sum[u] / (double)count[u];
	return units;
}

struct stats_components stats_components(const double *v, const size_t *unit, size_t n)
{
	struct stats_components c = {
		.n = n, .mean = stats_mean(v, n), .within_var = NAN, .between_var = NAN};
	_cleanup_free_ double *means = xcalloc(n + 1, sizeof(*means));
	_cleanup_free_ size_t *index = xcalloc(n + 1, sizeof(*index));
	_cleanup_free_ size_t *count = xcalloc(n + 1, sizeof(*count));
	double ss_within = 0, ss_between = 0, sum_squares = 0, n0;

	if (n == 0)
		return c;
	c.groups = stats_unit_means(v, unit, n, means);
	number_units(unit, n, index);
	for (size_t i = 0; i < n; i++) {
		ss_within += (v[i] - means[index[i]]) * (v[i] - means[index[i]]);
		count[index[i]]++;
	}
	for (size_t u = 0; u < c.groups; u++) {
		ss_between += (double)count[u] * (means[u] - c.mean) * (means[u] - c.mean);
		sum_squares += (double)count[u] * (double)count[u];
	}
	c.df_within = (double)(n - c.groups);
	c.df_between = (double)(c.groups - 1);
	if (n > c.groups)
		c.within_var = ss_within / c.df_within;
	if (c.groups > 1 && n > c.groups) {
		n0 = ((double)n - sum_squares / (double)n) / c.df_between;
		c.between_var = fmax(0, (ss_between / c.df_between - c.within_var) / n0);
	}
	return c;
}

/* Solve the symmetric non-negative definite system m x = rhs (size k, m row by row) by elimination
 * with diagonal pivots; unknowns that the data do not determine become 0. Destroys m and rhs.
 * Returns the rank. */
static size_t solve_symmetric(double *m, double *rhs, size_t k, double *x)
{
	/* A pivot of a connected table is at least 1/arms of a diagonal; rounding leaves 1e-13. */
	const double tolerance = 1e-9;
	_cleanup_free_ bool *done = xcalloc(k + 1, sizeof(*done));
	size_t rank = 0;
	double largest = 0;

	for (size_t i = 0; i < k; i++)
		largest = fmax(largest, m[i * k + i]);
	for (;; rank++) {
		size_t p = k;

		for (size_t i = 0; i < k; i++) {
			if (!done[i] && m[i * k + i] > tolerance * largest &&
			    (p == k || m[i * k + i] > m[p * k + p]))
				p = i;
		}
		if (p == k)
			break;
		done[p] = true;
		for (size_t i = 0; i < k; i++) {
			double f = m[i * k + p] / m[p * k + p];

			if (i == p)
				continue;
			for (size_t j = 0; j < k; j++)
				m[i * k + j] -= f * m[p * k + j];
			rhs[i] -= f * rhs[p];
		}
	}
	for (size_t i = 0; i < k; i++)
		x[i] = done[i] ? rhs[i] / m[i * k + i] : 0;
	return rank;
}

/* Mean over the blocks in which the arm has a value of y, or of block_effect when that is given. */
static double arm_mean(const double *y, const double *block_effect, size_t arms, size_t blocks,
		       size_t arm)
{
	double sum = 0;
	size_t n = 0;

	for (size_t b = 0; b < blocks; b++) {
		if (isnan(y[b * arms + arm]))
			continue;
		sum += block_effect ? block_effect[b] : y[b * arms + arm];
		n++;
	}
	return n > 0 ? sum / (double)n : NAN;
}

/* Add one arm to the normal equations of the block effects, the arm effects being eliminated. */
static void eliminate_arm(const double *y, size_t arms, size_t blocks, size_t arm, double *m,
			  double *rhs)
{
	double mean = arm_mean(y, NULL, arms, blocks, arm);
	size_t n = 0;

	for (size_t b = 0; b < blocks; b++)
		n += !isnan(y[b * arms + arm]);
	for (size_t b = 0; b < blocks; b++) {
		if (isnan(y[b * arms + arm]))
			continue;
		rhs[b] += y[b * arms + arm] - mean;
		m[b * blocks + b] += 1;
		for (size_t c = 0; c < blocks; c++) {
			if (!isnan(y[c * arms + arm]))
				m[b * blocks + c] -= 1 / (double)n;
		}
	}
}

struct stats_two_way stats_two_way(const double *y, size_t arms, size_t blocks)
{
	_cleanup_free_ double *m = xcalloc(blocks * blocks + 1, sizeof(*m));
	_cleanup_free_ double *rhs = xcalloc(blocks + 1, sizeof(*rhs));
	_cleanup_free_ double *effect = xcalloc(blocks + 1, sizeof(*effect));
	struct stats_two_way r = {0, 0, 0};
	size_t rank = 0;

	for (size_t a = 0; a < arms; a++) {
		eliminate_arm(y, arms, blocks, a, m, rhs);
		rank += !isnan(arm_mean(y, NULL, arms, blocks, a));
	}
	rank += solve_symmetric(m, rhs, blocks, effect);
	for (size_t a = 0; a < arms; a++) {
		double y_mean = arm_mean(y, NULL, arms, blocks, a);
		double effect_mean = arm_mean(y, effect, arms, blocks, a);

		for (size_t b = 0; b < blocks; b++) {
			double e = y[b * arms + a] - y_mean - (effect[b] - effect_mean);

			if (isnan(e))
				continue;
			r.ssr += e * e;
			r.obs++;
		}
	}
	r.df = r.obs - rank;
	if (r.df == 0)
		r.ssr = 0;
	return r;
}

/* -- planning and checks ------------------------------------------------------------------- */

double stats_mde(double alpha, double power, double s, size_t n, size_t r)
{
	double df = (double)n - 1;

	if (n < 2)
		return INFINITY;
	return expm1((stats_t_quantile(1 - alpha, df) + stats_t_quantile(power, df)) * s *
		     sqrt(2 / ((double)n * (double)r)));
}

double stats_sign_flip_p(const double *d, size_t n)
{
	double signs[STATS_SIGN_FLIP_MAX];
	double observed = 0, size = 0, sum, least;
	size_t hits = 0;

	if (n < 1 || n > STATS_SIGN_FLIP_MAX)
		return NAN;
	for (size_t i = 0; i < n; i++) {
		observed += d[i];
		size += fabs(d[i]);
		signs[i] = 1;
	}
	/* Patterns that equal the observed one must count in spite of rounding. */
	least = observed - 1e-9 * size;
	sum = observed;
	/* In the order of a Gray code, so that one sign changes a step. */
	for (size_t pattern = 1; pattern <= (size_t)1 << n; pattern++) {
		size_t i = (size_t)__builtin_ctzll(pattern);

		hits += sum >= least;
		if (i == n)
			break;
		signs[i] = -signs[i];
		sum += 2 * signs[i] * d[i];
	}
	return (double)hits / (double)((size_t)1 << n);
}

struct stats_trend stats_trend(const double *v, size_t n)
{
	struct stats_trend t = {NAN, NAN, NAN, NAN};
	double x_mean = ((double)n - 1) / 2, y_mean = stats_mean(v, n), sxx = 0, sxy = 0, ssr = 0;

	if (n < 2)
		return t;
	for (size_t i = 0; i < n; i++) {
		sxx += ((double)i - x_mean) * ((double)i - x_mean);
		sxy += ((double)i - x_mean) * (v[i] - y_mean);
	}
	t.slope = sxy / sxx;
	if (n < 3)
		return t;
	for (size_t i = 0; i < n; i++) {
		double e = v[i] - y_mean - t.slope * ((double)i - x_mean);

		ssr += e * e;
	}
	t.df = (double)(n - 2);
	t.se = sqrt(ssr / t.df / sxx);
	t.p_two_sided = 2 * fmin(stats_t_p_greater(t.slope, t.se, t.df),
				 stats_t_p_greater(-t.slope, t.se, t.df));
	return t;
}
