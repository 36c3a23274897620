/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a report says of two arms beside a verdict: means, and the change from one to the other with
 * its 95 % t-interval over the blocks in which both were measured. A verdict's own interval is that
 * of experiments/decide.h. Pure: arrays in, values out.
 */
#ifndef FETTLE_REPORT_PAIRS_H
#define FETTLE_REPORT_PAIRS_H

#include "experiments/query.h"
#include "experiments/stats.h"
#include "orchestrator/report/report.h"

/* A value of a timed trial that ended well. */
struct pairs_value {
	int64_t arm;
	int block; /* index in its stage */
	double value;
};

/* Rows of a stage in that form, by block: trials that failed and values that are not finite are
 * left out. out: room for n; returns their number. */
size_t pairs_of_values(const struct value_row *v, size_t n, struct pairs_value *out);
size_t pairs_of_curve(const struct curve_row *v, size_t n, struct pairs_value *out);

/* By logarithms, of geometric means of the arms' positive values, the others being left out: as
 * verdicts count. better: what + stands for; UP leaves the sign as it is. v is sorted by block.
 * est, lo, hi are relative; *logs (may be NULL) has the differences of logarithms themselves. */
struct report_pairs pairs_logs(const struct pairs_value *v, size_t n, int64_t base, int64_t arm,
			       enum better better, struct stats_mean_ci *logs);

/* Of any metric: as above where all values are positive, else by differences, relative to the mean
 * of `base`. + is more, whether that is good or not. Where that mean is 0 the change has no size,
 * but `moved` knows its direction. */
struct report_pairs pairs_any(const struct pairs_value *v, size_t n, int64_t base, int64_t arm);

#endif
