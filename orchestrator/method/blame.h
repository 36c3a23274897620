/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What changed when a regression began: keys of the environment, ranked over all series that moved
 * then against those that did not; one node, if the change is on it alone; metrics of the same
 * canary that moved with it.
 */
#ifndef FETTLE_METHOD_BLAME_H
#define FETTLE_METHOD_BLAME_H

#include "orchestrator/base/str.h"
#include "orchestrator/method/past.h"

/* What a re-run said about the keys that it set back: comma separated; NULL: it set back none. */
struct blame_trial {
	const char *keys;
	bool proved;    /* they alone differed, and so did the arms */
	bool ruled_out; /* they differed, and the arms did not */
	bool together;  /* others were set back with them: proved for all, and for none alone */
};
/* Rank the causes of a regression anew and store them. Keys that an earlier re-run proved or ruled
 * out stay so. `t` may be NULL. */
int blame_rank(struct past *w, int64_t regression, const struct blame_trial *t, struct err *e);

/* When it was: the night that the ranges of most members have in common; false: it has none. */
bool blame_when(struct past *w, int64_t regression, struct regress_span *out);

/* Keys that re-runs set back together, and that none has told apart yet: half of them (one of two,
 * the likelier) as of blame_changed(), heap; NULL: there are not two. */
int blame_half(struct past *w, int64_t regression, char **json, struct err *e);

/* Keys that differ between the last night before the change and the end of its range:
 * {key: {was, is}} as JSON, heap; NULL: none. */
int blame_changed(struct past *w, const struct change_row *c, char **json, struct err *e);

/* Did a key of the environment become the same for both series, within these ranges? */
int blame_shared(struct past *w, const struct past_series *a, const struct regress_span *at_a,
		 const struct past_series *b, const struct regress_span *at_b, bool *out,
		 struct err *e);

/* Is what begins with points[at] of the series on one node alone? */
int blame_on_one_node(struct past *w, const struct past_series *s, size_t at, bool *out,
		      struct err *e);

#endif
