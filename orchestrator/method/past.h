/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The nights so far, as track.c looks at them: every series with its points up to a night, the
 * changes that are known of it, and the regressions that these belong to. Read from the store at
 * once; rows stay owned by this struct.
 */
#ifndef FETTLE_METHOD_PAST_H
#define FETTLE_METHOD_PAST_H

#include "experiments/history.h"
#include "experiments/regress.h"

struct past_series {
	struct series_row row;
	struct point_row *points; /* by night */
	int64_t *day;
	/* y: values on the scale of regress_scale(); calm: they by regress_calm(), since `start` */
	double *value, *y, *calm;
	size_t n;
	bool logs;
	size_t start; /* first point since the last change that was accepted as the new normal */
	/* A re-run measures it: objective of a canary, role current. Its pair and reference have
	 * the same campaign, metric and stat. */
	bool objective;
	double min_effect; /* of the row, at least REGRESS_MIN_EFFECT */
	bool filled;
};

struct past {
	struct db *db;
	int64_t day; /* what is later is left out */
	struct past_series *s;
	size_t n;
	struct regression_row *regressions;
	size_t n_regressions;
	struct change_row *changes;
	size_t n_changes;
};
/* All but the points. night NULL: there is no later one. ERR_PARSE for a night that is no date. */
int past_open(struct db *db, const char *night, struct past *out, struct err *e);
/* The points of all series of a campaign, 0: of all; those that are there are not read again. */
int past_fill(struct past *w, int64_t campaign, struct err *e);
void past_done(struct past *w);

struct past_series *past_series(struct past *w, int64_t id);        /* NULL: none */
struct regression_row *past_regression(struct past *w, int64_t id); /* NULL: none */
/* Where a change lies (regress_near), and the whole range as it is stored. */
struct regress_span past_span(const struct change_row *c);
struct regress_span past_whole_span(const struct change_row *c);
/* First point of the series on that day or later; n: none. */
size_t past_at(const struct past_series *s, int64_t day);
/* The level before a change whose range begins on `first`: points since the change before it that
 * was confirmed, be it in another series of the same event. */
struct regress_noise past_before(struct past *w, const struct past_series *s, int64_t first);
/* The series of that role of the same canary and metric; NULL: none. */
struct past_series *past_beside(struct past *w, const struct past_series *s, enum series_role role);
/* A metric that a canary records beside its objective: it explains, and no re-run asks for it. */
bool past_context(const struct past_series *s);
/* Where the change lies that gives a regression its night: a confirmed one before others, then the
 * clearest. Its range is that of the event, so that a chain of neighbours is none. False: it has no
 * change that stands. */
bool past_range(const struct past *w, int64_t regression, struct regress_span *out);
/* -1 or 1: which way the metric went. */
int past_sign(const struct change_row *c);
/* The regression is told of as it stands: open or acknowledged. */
bool past_live(const struct regression_row *r);

#endif
