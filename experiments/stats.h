/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plain statistics: arrays in, values out. No allocation is kept, nothing is read or written.
 *
 * Unless a function says otherwise, values must be finite and `n` counts them; a result that the
 * data cannot give (the sd of one value, the mean of none) is NAN. Distributions come from
 * r-mathlib. Effects are differences of logarithms, so 0.01 is about +1 %; stats_relative() turns
 * them into the relative change that people read. experiments/STATISTICS.md has the procedure.
 */
#ifndef FETTLE_EXPERIMENTS_STATS_H
#define FETTLE_EXPERIMENTS_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Arithmetic mean; NAN when n is 0. */
double stats_mean(const double *v, size_t n);

/* Standard deviation with divisor n - 1, two passes; NAN when n < 2. */
double stats_sd(const double *v, size_t n);

/* Quantile of type 7 (Hyndman and Fan 1996; the default of R): linear between order statistics at
 * 1 + (n - 1) q. q in [0, 1]. Sorts a copy. NAN when n is 0 or q is outside. */
double stats_quantile(const double *v, size_t n, double q);

/* The quantile at 0.5. */
double stats_median(const double *v, size_t n);

/* Median absolute deviation from the median, not scaled (1.4826 times it estimates a normal sd). */
double stats_mad(const double *v, size_t n);

/* Mean without the floor(cut * n) smallest and as many largest values; cut in [0, 0.5). */
double stats_trimmed_mean(const double *v, size_t n, double cut);

/* Student's t, df > 0, need not be whole. cdf: P(T <= t). sf: P(T > t). quantile: p in (0, 1). */
double stats_t_cdf(double t, double df);
double stats_t_sf(double t, double df);
double stats_t_quantile(double p, double df);

/* P(T_df >= est / se): the one-sided p of "above 0". se 0: 0, 0.5 or 1 by the sign of est. */
double stats_t_p_greater(double est, double se, double df);

/* log effect -> relative change: expm1(x). 0.0953 -> 0.10. */
double stats_relative(double log_effect);

/* One sample of differences, or any sample whose mean is wanted. */
struct stats_mean_ci {
	size_t n;
	double mean, sd, se; /* se = sd / sqrt(n) */
	double df;           /* n - 1 */
	double lo, hi;       /* two-sided t-interval of the mean at `level` */
	double p_greater;    /* one-sided P(T >= mean / se): small when the mean is above 0 */
};

/* Mean with its two-sided t-interval at `level` in (0, 1), 0.95 say. Valid for a number of values
 * fixed beforehand: the final stage, an A/A stage. For a stage that stops by its data use decide.h.
 * n = 1: sd and se are NAN, lo and hi infinite, p_greater 0.5. n = 0: all NAN. Equal values: sd 0,
 * lo = hi = mean, p_greater 0, 0.5 or 1. */
struct stats_mean_ci stats_mean_ci(const double *v, size_t n, double level);

/* The same for b[i] - a[i]: the paired comparison of arm b with arm a, one pair a block.
 * Pairs with a NAN on either side are left out. */
struct stats_mean_ci stats_paired(const double *a, const double *b, size_t n, double level);

/* The noise of one value within a block, from the paired differences of a configuration and itself:
 * sqrt(sum d^2 / 2n). Their true mean is 0, so it is not taken out: what the two arms differ by is
 * noise as well. NAN for n < 2: one pair tells little. */
double stats_noise_of_same(const struct stats_mean_ci *differences);

/* Do they differ all the same? By `useful` (on the scale of the differences) at least, and with an
 * interval that leaves 0 out, which chance does once in twenty. */
bool stats_unlike(const struct stats_mean_ci *differences, double useful);

/* Variance components of a one-way layout: values v[i] of group unit[i] (a block, an allocation, a
 * node), unbalanced. Analysis of variance (Searle, Casella and McCulloch 1992, 3.6):
 * within = MSW, between = max(0, (MSB - MSW) / n0), n0 = (N - sum n_u^2 / N) / (groups - 1). */
struct stats_components {
	size_t n, groups;
	double mean;
	double within_var;  /* NAN when no group has two values */
	double between_var; /* NAN when there is one group; then or with within unknown */
	double df_within, df_between;
};
struct stats_components stats_components(const double *v, const size_t *unit, size_t n);

/* Residual of y ~ arm + block by least squares on an unbalanced table. y[block * arms + arm];
 * NAN marks a missing cell. df = observations - rank of the design, which is
 * obs - arms - blocks + 1 when the table is connected. With df0 = 0 the SSR is 0. */
struct stats_two_way {
	double ssr;
	size_t df, obs;
};
struct stats_two_way stats_two_way(const double *y, size_t arms, size_t blocks);

/* Mean of the values of each unit, in order of the first appearance of the unit: blocks of one
 * allocation on the same nodes are repeats of one unit. out and unit have n elements at least.
 * Returns the number of units. */
size_t stats_unit_means(const double *v, const size_t *unit, size_t n, double *out);

/* Smallest detectable effect of a paired comparison with a fixed number of blocks, relative:
 * expm1((t_{1-alpha,df} + t_{power,df}) s sqrt(2 / (n r))), df = n - 1 (statistics.md 6.3).
 * alpha one-sided; s is the noise (log sd) of one run within a block; n >= 2 blocks with r >= 1
 * runs of each arm. INFINITY when n < 2. design_mde() is the one for a stage with looks. */
double stats_mde(double alpha, double power, double s, size_t n, size_t r);

/* Exact one-sided sign-flip p of mean > 0: the share of the 2^n sign patterns whose sum is at least
 * the observed one (Fisher's randomisation test). A cross-check that is printed and decides
 * nothing. 1 <= n <= STATS_SIGN_FLIP_MAX, else NAN. */
enum { STATS_SIGN_FLIP_MAX = 24 }; /* 2^24 patterns take 0.1 s; also the most blocks of a stage */
double stats_sign_flip_p(const double *d, size_t n);

/* Least-squares slope of v against its index: the drift of a soak, a unit a trial. */
struct stats_trend {
	double slope, se, df, p_two_sided; /* df = n - 2; NAN but for slope when n < 3 */
};
struct stats_trend stats_trend(const double *v, size_t n);

#endif
