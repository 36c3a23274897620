/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tqdm progress bar: `desc:  45%|###   | 7/15 [06:19<07:13, 50.1s/it, k=v, ...]`, or of an
 * endless data set, `desc: 7it [06:19, 50.1s/it, k=v]` or `desc: |    | 7/? [06:19<?, ...]`. */
#ifndef FETTLE_PROBES_BAR_H
#define FETTLE_PROBES_BAR_H

#include "probes/num.h"

struct bar {
	struct span desc;    /* before the percentage, without its colon; may be empty */
	int64_t n, total;    /* total 0: unknown */
	double elapsed_s;    /* -1 unknown */
	double step_s;       /* smoothed time of one "it"; -1 unknown, or the unit is another one */
	bool per_second;     /* the rate was written as it/s, not as s/it */
	bool other_unit;     /* the rate is of another unit than "it" */
	struct span postfix; /* "k=v, ..." */
};

/* The last bar in t. False when there is none that is whole (closed by its bracket). */
bool bar_find(struct span t, struct bar *b);

/* Parts of bars: "[D day(s), ][H:]MM:SS" in seconds, -1 when it is none; the time of one "it" in
 * seconds from "6.39s/it" or "1.83it/s" (it sets b's per_second or other_unit), -1 unknown. */
double bar_clock_s(struct span t);
double bar_rate_s(struct span t, struct bar *b);

/* Mean time of one "it" in seconds, from the rate or from elapsed over count, whichever is rounded
 * less: "0.09it/s" says little, 10 in 01:49 says 10.9 s. -1 unknown. */
double bar_step_s(const struct bar *b);

/* What the postfix says of n keys ("k=v"): v, or a span of NULL. Keys may hold blanks
 * ("train_step_timing in s"). */
void bar_postfix(const struct bar *b, const char *const *keys, size_t n, struct span *v);

#endif
