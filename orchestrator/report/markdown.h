/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pieces of Markdown (CommonMark with tables). Everything that comes from outside goes through
 * md_text() or md_code(), so that it can neither break a table nor become markup or HTML. A number
 * that is not known prints as "unknown".
 */
#ifndef FETTLE_REPORT_MARKDOWN_H
#define FETTLE_REPORT_MARKDOWN_H

#include "orchestrator/base/str.h"

void md_text(struct buf *b, const char *s); /* on one line, escaped; NULL: nothing */
/* Not for cells. */
void md_code(struct buf *b, const char *s); /* `s`, whatever backticks it holds; NULL: nothing */

void md_number(struct buf *b, double v); /* four digits that matter: "9045", "0.6206" */
void md_percent(struct buf *b, double v, int digits);            /* 0.0123 -> "+1.2 %" */
void md_interval(struct buf *b, double lo, double hi);           /* "[+0.5, +1.9] %" */
void md_effect(struct buf *b, double est, double lo, double hi); /* "+1.2 % [+0.5, +1.9]" */
void md_time(struct buf *b, int64_t utc_us); /* "2026-11-29 13:21:44 UTC"; 0: "unknown" */

/* A table: the head, "left" or "right" a column as in ":--" and "--:"; then rows of cells. */
struct md_column {
	const char *title;
	bool right;
};
void md_table(struct buf *b, const struct md_column *c, size_t n);
void md_row(struct buf *b); /* begins a row */
void md_row_end(struct buf *b);
/* One cell each. */
void md_cell(struct buf *b, const char *s); /* md_text; NULL or "": "-" */
void md_cell_code(struct buf *b, const char *s);
void md_cell_number(struct buf *b, double v);
void md_cell_percent(struct buf *b, double v, int digits);
void md_cell_i64(struct buf *b, int64_t v);

#endif
