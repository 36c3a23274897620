/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pictures of the tuning log, one a file html_NAME.c: figures with a text alternative and,
 * where the log has no table of the same numbers beside it, one behind the picture. Each writes
 * nothing, or a sentence, where the campaign has no data for it. Pure functions of the report.
 */
#ifndef FETTLE_REPORT_HTML_PICTURES_H
#define FETTLE_REPORT_HTML_PICTURES_H

#include "orchestrator/report/report.h"
#include "orchestrator/report/svg.h"

typedef void html_picture(const struct report *r, struct buf *out);

/* Every effect with its interval, beside the band of those too small to matter. */
void html_forest(const struct report *r, struct buf *out);
/* From the default over each accepted change to the fix. */
void html_waterfall(const struct report *r, struct buf *out);
/* The values of both arms, joined by block, of each confirm stage and the final one. */
void html_pairs(const struct report *r, struct buf *out);
/* How long the steps of each trial took, by block and arm. */
void html_steps(const struct report *r, struct buf *out);
/* What each rung of the scaling ladder keeps, and where the rest went. */
void html_ladder(const struct report *r, struct buf *out);
/* The series that the campaign feeds, with their changes. */
void html_series(const struct report *r, struct buf *out);
/* Where the time of a step goes, of each configuration that was profiled. */
void html_split(const struct report *r, struct buf *out);
/* When and on which nodes the attempts ran, and which were in vain. */
void html_timeline(const struct report *r, struct buf *out);

/* -- html_figure.c: what they share ------------------------------------------------------------ */

extern const char html_pictures_css[];

enum {
	FIGURE_WIDTH = 860, /* of a picture as wide as the page */
	FIGURE_LABEL = 236, /* room for names at its left */
	FIGURE_ROW = 26,
};

/* A card with its heading and a line that says how to read it; then the picture;
 * then one of the two ends: that, or the table behind the picture, folded, and its end. */
void html_figure_begin(struct buf *out, const char *title, const char *how_to_read);
void html_figure_end(struct buf *out);
void html_figure_table(struct buf *out);
void html_figure_table_end(struct buf *out);

/* In place of a picture. */
void html_figure_none(struct buf *out, const char *why);

/* s on one line, at most so many columns: of a longer one both ends, an ellipsis between; heap. */
char *html_figure_label(const char *s, size_t most);
/* s as the text of a row whose middle is y: in two lines where one of so many columns is too short,
 * broken at a blank. A label as above where two are. */
void html_figure_words(struct buf *out, const char *class, double x, double y,
		       enum svg_anchor anchor, const char *s, size_t most);
/* "knob from -> to" of a hypothesis; heap. */
char *html_figure_change(const struct hypothesis_row *h);
/* What a confirm or final stage compared; heap. */
char *html_figure_stage(const struct report *r, const struct report_stage *s);
/* The vertical lines of an axis of relative effects ("+5 %"), and its labels below. */
void html_figure_percents(struct buf *out, const struct svg_axis *x, double top, double bottom);

#endif
