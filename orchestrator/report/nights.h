/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Series over nights as a reader sees them: points, where they changed, and what of the environment
 * changed when. A list needs a glance at each; a plot and a page need all of a series. Changes are
 * those that tracking stored (experiments/history.h); what only the strict detector sees, because
 * no night has looked at an imported series yet, stands beside them and belongs to no regression.
 */
#ifndef FETTLE_REPORT_NIGHTS_H
#define FETTLE_REPORT_NIGHTS_H

#include "experiments/history.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"

struct nights_mark {
	char night[11], first[11], last[11]; /* the change came in first..last */
	enum change_direction direction;
	enum change_level level;
	double est, lo, hi, p;       /* as in struct change_row */
	int64_t regression;          /* 0: nobody tracks it */
	enum regression_state state; /* of that regression */
	char *why;                   /* NULL: nothing was said */
};

/* A key of the environment that differs from the point before. was, is NULL: it was not known. */
struct nights_event {
	char night[11];
	char *key, *was, *is;
};

struct nights_series {
	struct series_row row;
	struct point_row *points;
	size_t n;
	struct nights_mark *marks; /* by night */
	size_t n_marks, cap_marks;
	struct nights_event *events; /* by night and key */
	size_t n_events, cap_events;
};
void nights_series_done(struct nights_series *s);

/* One look at a series, for lists. */
struct nights_glance {
	struct series_row row;
	int64_t nights;
	char first[11], last[11]; /* "": it has no point */
	double value;             /* newest */
	/* Relative change of the newest value since the last one that is 7 (30) nights older, and
	 * at most twice that; NaN: there is none, or it is 0. */
	double week, month;
	/* Its newest change whose regression is open or acknowledged; regression 0: none. */
	int64_t regression;
	enum change_direction direction;
	enum change_level level;
	enum regression_state state;
};
void nights_glances_free(struct nights_glance *v, size_t n);

struct nights; /* the store, and what many series have in common: environments, regressions */
int nights_open(struct db *db, struct nights **out, struct err *e);
void nights_close(struct nights *n); /* NULL is fine */

/* All series, or those that `which` names: a number, a workload, a metric, or a part of them; in
 * the order of history_series_list(). Ended ones only with `ended`, or by number. ERR_NOT_FOUND
 * with what there is when nothing fits. */
int nights_glances(struct nights *n, const char *which, bool ended, struct nights_glance **out,
		   size_t *n_out, struct err *e);
/* All of one series, from a night on (NULL: from the first). */
int nights_load(struct nights *n, const struct series_row *row, const char *since,
		struct nights_series *out, struct err *e);

/* Do they stand under one heading: a configuration of a workload in a place? */
bool nights_same_group(const struct series_row *a, const struct series_row *b);
/* "worse", "better", or "changed" where neither is known; static. */
const char *nights_direction(enum change_direction d);
/* "steady", "worse, suspect (#3)", "worse (#3)", "ended 2026-11-01", ...; heap. */
char *nights_state(const struct nights_glance *g);
/* "step_time_ms median, current": what is in a series, without its workload and place; heap. */
char *nights_title(const struct series_row *s);
/* "+5.2 % [+4.8, +5.6]"; the interval only where both ends are finite. */
void nights_effect(double est, double lo, double hi, struct buf *out);
/* Is it a change for the worse that people should look at? Suspects count, closed ones do not. */
bool nights_alarming(const struct nights_mark *m);

/* A look at s, of whose changes only those are left that came to something: neither dismissed nor
 * gone by themselves. It borrows from s; free its marks alone. */
struct nights_series nights_lasting(const struct nights_series *s);

/* The columns of a list, the whole of a series (plot `width` columns wide), for a terminal. */
struct nights_style {
	size_t width;
	bool ascii, colour;
	bool all; /* every point in the table, not only the newest, and every change */
};
void nights_list_text(const struct nights_glance *v, size_t n, const struct nights_style *st,
		      struct buf *out);
void nights_series_text(const struct nights_series *s, const struct nights_style *st,
			struct buf *out);

/* orchestrator/report/HISTORY.md has the formats. */
struct json *nights_list_json(const struct nights_glance *v, size_t n);
int nights_series_json(struct nights *n, const struct nights_series *s, struct json **out,
		       struct err *e);
/* Add a point's replicates, each with its value and its nodes. */
int nights_json_replicates(struct nights *n, int64_t point, struct json *list, struct err *e);
/* The members that name a series, for other documents. */
void nights_json_series(struct json *o, const struct series_row *s);

/* The page: all of these series. `title` names the workspace. */
struct regression_view;
void nights_page(const char *title, const struct nights_series *v, size_t n,
		 const struct regression_view *r, size_t n_regressions, struct buf *out);

#endif
