/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pictures in a page: a writer of inline SVG, and the axes that charts need. It knows no data and
 * no colours: elements have classes that the page's style sheet draws. Classes are constants of the
 * program; texts may be anything and are escaped. Coordinates are finite, in the units of the
 * picture, from its upper left corner, and are written to a tenth.
 *
 * Why not gnuplot: its svg terminal (5.4, tried with a forest of four effects) writes each colour
 * into each element, so that a page cannot turn dark or print; gives no point a title and a picture
 * no alternative text; takes `_` and `^` in names of knobs for sub- and superscripts unless told
 * otherwise; repeats the ids of its symbols in every picture of a page; and is one more program
 * that a login node must have.
 */
#ifndef FETTLE_REPORT_SVG_H
#define FETTLE_REPORT_SVG_H

#include "orchestrator/base/str.h"

/* How every picture looks: to be among the style sheets of a page that has one. */
extern const char svg_css[];

/* `alternative` says in words what the picture shows. It is as wide as its place in the page. */
void svg_begin(struct buf *out, double width, double height, const char *alternative);
void svg_end(struct buf *out);

void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2);
void svg_rect(struct buf *out, const char *class, double x, double y, double w, double h);
/* With a title as that of svg_dot(). */
void svg_rect_titled(struct buf *out, const char *class, double x, double y, double w, double h,
		     const char *title);
/* A disc; `title` (may be NULL) is shown when a pointer rests on it. */
void svg_dot(struct buf *out, const char *class, double x, double y, double r, const char *title);
/* A square on its corner, of half-diagonal r. */
void svg_diamond(struct buf *out, const char *class, double x, double y, double r,
		 const char *title);

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };
void svg_text(struct buf *out, const char *class, double x, double y, enum svg_anchor anchor,
	      const char *text);

/* A path: begin, then any number of moves and lines, then end. */
void svg_path_begin(struct buf *out, const char *class);
void svg_move_to(struct buf *out, double x, double y);
void svg_line_to(struct buf *out, double x, double y);
/* A dot of the path's own width, where its ends are round. */
void svg_point_at(struct buf *out, double x, double y);
void svg_path_end(struct buf *out);

/* From values lo..hi to coordinates from..to (which may run backwards). lo < hi. */
struct svg_axis {
	double lo, hi, from, to;
};
double svg_at(const struct svg_axis *a, double v);

/* Round values (1, 2 or 5 times a power of ten apart) within [lo, hi], about `want` of them,
 * ascending; at most max. Returns their number; 0 when lo < hi does not hold. *digits: decimals
 * that tell them apart. */
size_t svg_ticks(double lo, double hi, size_t want, double *out, size_t max, int *digits);

#endif
