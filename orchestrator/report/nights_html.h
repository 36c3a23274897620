/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page of nights.h, whose parts are written by two files: series with their time line
 * (nights_html.c), and regressions (nights_html_regressions.c).
 */
#ifndef FETTLE_REPORT_NIGHTS_HTML_H
#define FETTLE_REPORT_NIGHTS_HTML_H

#include "orchestrator/report/doc.h"
#include "orchestrator/report/html.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/regressions.h"

struct nights_page {
	const struct nights_series *v;
	size_t n;
	const struct regression_view *r;
	size_t n_r;
	int first_day, last_day; /* of all points; first > last: there is none */
	size_t rows;             /* of all points */
	struct buf *out;
};

static inline void put(struct nights_page *p, const char *text)
{
	buf_str(p->out, text);
}

static inline void text(struct nights_page *p, const char *s)
{
	html_text(p->out, s);
}

/* The class that colours a regression; a state as people read it; static. */
const char *nights_html_class(const struct regression_row *r);
const char *nights_html_state(enum regression_state s);
void nights_html_from_to(struct nights_page *p, const char *was, const char *is); /* " a -> b" */
/* A table up to its first row. */
void nights_html_table(struct nights_page *p, const struct doc_column *c, size_t n);

/* The section of regressions: cards of what is confirmed and open, tables of the others. */
void nights_html_regressions(struct nights_page *p);

#endif
