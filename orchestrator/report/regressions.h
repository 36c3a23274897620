/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regressions as a reader sees them: each with the series that moved together in it and with what
 * may have caused it, as tracking stored them. The series that speaks for a regression is one whose
 * change is confirmed, of these an objective (one that has a reference beside it) before a probe
 * metric, of these the one that moved most; a pair only where nothing else moved.
 */
#ifndef FETTLE_REPORT_REGRESSIONS_H
#define FETTLE_REPORT_REGRESSIONS_H

#include "experiments/history.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"

struct regression_moved {
	struct change_row change;
	struct series_row series;
	bool objective;
};

struct regression_view {
	struct regression_row row;
	struct regression_moved *moved; /* what speaks for it first, then by what it moved */
	size_t n_moved;
	struct cause_row *causes; /* likeliest first */
	size_t n_causes;
	struct strv nodes; /* that the first series' points of its night were measured on; of
			      regression_load() only */
};
void regression_view_done(struct regression_view *v);
void regression_views_free(struct regression_view *v, size_t n);

/* In the order of history_regressions(): those that are open or acknowledged, or all. */
int regressions_load(struct db *db, bool all, struct regression_view **out, size_t *n,
		     struct err *e);
int regression_load(struct db *db, int64_t id, struct regression_view *out, struct err *e);

/* Open or acknowledged: nobody and nothing has closed it. */
bool regression_watched(const struct regression_row *r);
/* 1 when a confirmed regression for the worse is open, else 0. */
int regressions_status(const struct regression_view *v, size_t n);

/* "worse", "better (suspect)", ...: what it is in two words; static. */
const char *regression_word(const struct regression_row *r);
/* "nvidia_driver 550.90 -> 570.12", "node n17", "busbw_gb_per_s": a cause in a line, clean. */
void regression_cause(const struct cause_row *c, struct buf *out);

/* `program` is how fettle was called and `workspace` what must be passed to it (NULL: nothing), for
 * what to type next. */
struct regression_style {
	bool colour;
	const char *program, *workspace;
};
void regressions_text(const struct regression_view *v, size_t n, const struct regression_style *st,
		      struct buf *out);
void regression_text(const struct regression_view *v, const struct regression_style *st,
		     struct buf *out);

/* orchestrator/report/HISTORY.md has the formats. */
struct json *regressions_json(const struct regression_view *v, size_t n);
struct json *regression_json(const struct regression_view *v);

#endif
