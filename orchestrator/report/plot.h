/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plot of points on a terminal: braille dots (two by four in a character), or plain ASCII. Under
 * the axis stand the marks of changes and of events, each with the sign by which a list explains
 * it. Gaps stay gaps: nothing is drawn where nothing was measured.
 */
#ifndef FETTLE_REPORT_PLOT_H
#define FETTLE_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/str.h"

enum plot_row { PLOT_CHANGES, PLOT_EVENTS };
enum { PLOT_ROWS = PLOT_EVENTS + 1 };

struct plot_mark {
	double x;
	enum plot_row row;
	char sign;          /* '1', 'a', ... */
	const char *colour; /* escape sequence; NULL: none */
};

struct plot {
	const double *x, *y; /* finite; x ascending */
	size_t n;            /* at least 1 */
	const struct plot_mark *marks;
	size_t n_marks;
	const char *left, *right;        /* labels of the axis' ends */
	const char *row_name[PLOT_ROWS]; /* of marks, at most 10 columns */
	size_t width, height;            /* characters: whole picture; rows of dots, >= 2 */
	bool ascii, colour;
};
void plot_draw(const struct plot *p, struct buf *out);

#endif
