/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Was the machine fit to compare on? Rules over the trials of one attempt of a block, told nothing
 * about arms: a trial is its step times and what the node did meanwhile. So a rule cannot know
 * which arm won, and swapping the arms changes no answer. Under the null hypothesis the arms of a
 * block are exchangeable, and stay so after any rule of this kind: voiding by them keeps the error
 * of the tests. What each rule finds makes the attempt void or is only noted, as the recipe says.
 *
 * Rules, their sources, and measured rates of false findings: experiments/STATISTICS.md.
 */
#ifndef FETTLE_EXPERIMENTS_QUALITY_H
#define FETTLE_EXPERIMENTS_QUALITY_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/model.h"

enum {
	/* Steps below which the shape of a trial is not judged: a third of them is 8. */
	QUALITY_MIN_STEPS = 24,
	/* Longest run of slow steps that is an outlier (a checkpoint, an evaluation) and no phase.
	 */
	QUALITY_OUTLIER_RUN = 3,
};

/* The shape of one trial's step times. Ratios are relative to the earlier part; p is 1 and ratios
 * are 0 where there are too few steps. */
struct quality_shape {
	bool judged; /* QUALITY_MIN_STEPS at least are left without outliers */
	/* Outliers: above the median by more than half and by more than 5 scaled MAD of the logs,
	 * in a run of at most QUALITY_OUTLIER_RUN. */
	size_t outliers;
	double outlier_share; /* of the window's time */
	/* Median of the last third over that of the first, less 1; two-sided p of Mann and Whitney
	 * (1947), normal approximation. Without outliers, as all below. */
	double drift, drift_p;
	/* A change point: approximate p by ranks (Pettitt 1979); where two means fit best (least
	 * squares): step at which the later part begins, its median over that of the earlier part
	 * less 1. */
	size_t shift_at;
	double shift, shift_p;
};
/* v: n values above 0, in order; others are left out. */
struct quality_shape quality_shape(const double *v, size_t n);

struct quality_finding {
	enum quality_rule rule;
	enum quality_action action; /* note or void */
	int slot;                   /* of the trial; -1: the attempt as a whole */
	double value, bound;
	char *text; /* a sentence */
};

/* All findings about the n trials of an attempt; heap, NULL when there is none. */
size_t quality_judge(const struct quality_settings *s, const struct quality_trial *t, size_t n,
		     struct quality_finding **out);
void quality_findings_free(struct quality_finding *f, size_t n);

#endif
