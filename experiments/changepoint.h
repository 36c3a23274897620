/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Change points of a series: the nights from which a metric differs. Arrays in, values out.
 *
 * E-divisive with means in overlapping windows (Matteson and James 2014, as Apache Otava 0.8 does
 * it), t tests, and a merge stage that deletes what is not significant or too small. Two parameter
 * sets: cp_otava fires early and often, it only raises suspicion; cp_strict repairs what makes it
 * do so and may speak for itself. A series is analysed whole each night: 1,000 points take well
 * under a millisecond, and an analysis that depends on the ones before it can be wrong for ever.
 *
 * Values that are not finite are missing and are left out (a night that was not measured is no
 * evidence); indexes are those of the caller's array. With `logs` the analysis is of logarithms,
 * unless a value is zero or negative: then the whole series is analysed as it is. A series of
 * fewer than 2 min_segment (at least 2) measured points, or one of equal values, has no change
 * points. Time O(n window), memory a copy of the series and O(window). The same input gives the
 * same output: ties within a relative 1e-12 go to the earlier point. experiments/STATISTICS.md has
 * the method and what it is worth.
 */
#ifndef FETTLE_EXPERIMENTS_CHANGEPOINT_H
#define FETTLE_EXPERIMENTS_CHANGEPOINT_H

#include <stdbool.h>
#include <stddef.h>

struct cp_params {
	size_t window;        /* points that are searched together, 2..CP_WINDOW_MAX */
	double p_max;         /* two-sided p of a change that is kept, below this; in (0, 1) */
	double min_magnitude; /* relative change of a point that is kept, above this; >= 0 */
	size_t min_segment;   /* points between change points and at both ends, at least; >= 1 */
	bool logs;            /* analyse logarithms where all values are positive */
	/* Where false, as Otava 0.8: */
	bool sample_variance; /* divisor n - 1 in the t test, not n */
	bool merge_fix;       /* a deletion renews both neighbours, not only the right one */
	bool weak_to_kappa;   /* first test up to the end that the search chose for the segment */
	bool autocorrelation; /* t and df shrink when neighbouring points resemble each other */
	double inform;        /* by this factor (cp_information); 0: as these points say */
};
enum { CP_WINDOW_MAX = 1024 }; /* the search is quadratic in it; a larger one is cut to this */

/* Otava 0.8: window 50, p 0.001, magnitude 0, min_segment 1, all flags off. */
extern const struct cp_params cp_otava;
/* Window 50, p 1e-4, magnitude 2 %, min_segment 3, all flags on (statistics.md 5.4). Copy it to
 * raise min_magnitude to the metric's min_effect. */
extern const struct cp_params cp_strict;

struct cp_point {
	size_t index; /* first point after the change; never 0, never a missing one */
	/* As the merge last saw it; without merge_fix sometimes stale, as Otava's. */
	double p;
	/* Between the neighbouring change points; on logs geometric means. In the metric's unit. */
	double mean_before, mean_after;
	/* mean_after / mean_before - 1 and its 95 % interval: Welch's t on logs, exponentiated,
	 * wider by the factor of autocorrelation. Without logs the difference of means over
	 * |mean_before|, infinite when that is 0. A side with one point leaves lo and hi infinite.
	 */
	double shift, lo, hi;
	/* The change came after the measured point first - 1 and by the point last: all splits
	 * whose two-segment fit is within the 95 % bound of the likelihood ratio, (1 - exp(-x/2))^2
	 * = 0.95 (Hansen 2000, Econometrica 68, theorem 2: x = 7.35). 1 <= first <= index <= last <
	 * n. */
	size_t first, last;
};

/* Change points of v[0..n) in ascending order. out has room for n. Returns their number. */
size_t cp_detect(const double *v, size_t n, const struct cp_params *params, struct cp_point *out);

/* What a point is worth of an independent one, in (0, 1]: on few points a guess, so that those of a
 * longer past are asked where there are any. */
double cp_information(const double *v, size_t n);

/* Change points of cp_otava that are among the `newest` measured points, ascending: each is a
 * suspicion unless it was one before (an index within CP_SAME of it). They are those of
 * cp_detect(..., &cp_otava, ...), so that nothing is suspected later than Otava would report it.
 * CP_NEWEST, a year of nights: a small change needs many nights until the rule sees it, and is then
 * no longer at the end. out has room for n. */
size_t cp_suspects(const double *v, size_t n, size_t newest, struct cp_point *out);
enum { CP_NEWEST = 365, CP_SAME = 3 };

#endif
