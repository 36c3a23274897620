/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of a given width: labelled rows of parts, which go on in the next line where they do not
 * fit; one that is longer than a line is broken at its blanks, and a word that is, is cut. Widths
 * are columns of a terminal, not bytes; text is made harmless first (report/text.h), and in ASCII
 * what is none becomes a question mark.
 */
#ifndef FETTLE_CMD_VIEWPEN_H
#define FETTLE_CMD_VIEWPEN_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/str.h"

enum { PEN_LABEL = 9 }; /* columns of the label before a row */

/* By meaning. */
enum pen_colour {
	PEN_PLAIN,
	PEN_STRONG,
	PEN_DIM,
	PEN_GOOD,
	PEN_BAD,
	PEN_OPEN, /* undecided, or to be looked at */
	PEN_DATA,
};

/* Zero-initialise but for the first five. */
struct pen {
	struct strv *out;
	bool ascii, colour;
	size_t limit; /* columns of a line; SIZE_MAX: no bound */
	size_t ruled; /* columns of a rule */
	struct buf line;
	size_t column;
	bool parted; /* the row has a part in this line */
};

/* The sign that can be shown. */
const char *pen_sign(const struct pen *p, const char *utf8, const char *ascii);
/* Columns of a text; NULL: 0. */
size_t pen_width(const struct pen *p, const char *text);
/* Put text at the end of the line, cut where the line ends. */
void pen_text(struct pen *p, const char *text, enum pen_colour colour);
/* Begin a row; "": one without a label. */
void pen_label(struct pen *p, const char *label);
/* A part of the row, after a comma, or in the next line; NULL: none. */
void pen_part(struct pen *p, const char *text, enum pen_colour colour);
/* Go on in the next line of the row. */
void pen_break(struct pen *p);
void pen_end(struct pen *p);
/* A line across: -- title -- what ------ end --; `what` gives way, then the title. */
void pen_rule(struct pen *p, const char *title, enum pen_colour colour, const char *what,
	      const char *end);

#endif
