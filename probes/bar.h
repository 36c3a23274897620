/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tqdm progress bar: `desc:  45%|###   | 7/15 [06:19<07:13, 50.1s/it, k=v, ...]`. */
#ifndef FETTLE_PROBES_BAR_H
#define FETTLE_PROBES_BAR_H

#include "probes/num.h"

struct bar {
	struct span desc; /* before the percentage, without its colon; may be empty */
	int64_t n, total;
	double elapsed_s;    /* -1 unknown */
	double step_s;       /* smoothed time of one "it"; -1 unknown, or the unit is another one */
	struct span postfix; /* "k=v, ..." */
};

/* The last bar in t. False when there is none that is whole (closed by its bracket). */
bool bar_find(struct span t, struct bar *b);

#endif
