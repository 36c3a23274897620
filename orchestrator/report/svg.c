/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/report/html.h"

const char
	svg_css[] = "svg{display:block;width:100%;height:auto;overflow:visible}\n"
		    "svg text{font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}\n"
		    ".grid{stroke:var(--line)}\n";

/* A tenth, without what says nothing: "12", "-0.5". A page holds ten thousands of these. */
static void put(struct buf *out, double v)
{
	char text[64];
	size_t n;

	snprintf(text, sizeof text, "%.1f", v);
	n = strlen(text);
	if (n > 2 && text[n - 1] == '0')
		text[n - 2] = '\0';
	buf_str(out, strcmp(text, "-0") == 0 ? "0" : text);
}

static void put_pair(struct buf *out, double x, double y)
{
	put(out, x);
	buf_char(out, ' ');
	put(out, y);
}

static void attribute(struct buf *out, const char *name, double v)
{
	buf_printf(out, " %s=\"", name);
	put(out, v);
	buf_char(out, '"');
}

/* The end of an element that may have a title in it. */
static void close_titled(struct buf *out, const char *element, const char *title)
{
	if (!title) {
		buf_str(out, "/>");
		return;
	}
	buf_str(out, "><title>");
	html_text(out, title);
	buf_printf(out, "</title></%s>", element);
}

void svg_begin(struct buf *out, double width, double height, const char *alternative)
{
	buf_str(out, "<svg viewBox=\"0 0 ");
	put_pair(out, width, height);
	buf_str(out, "\" role=\"img\" aria-label=\"");
	html_text(out, alternative);
	buf_str(out, "\">");
}

void svg_end(struct buf *out)
{
	buf_str(out, "</svg>\n");
}

void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
	buf_printf(out, "<line class=\"%s\"", class);
	attribute(out, "x1", x1);
	attribute(out, "y1", y1);
	attribute(out, "x2", x2);
	attribute(out, "y2", y2);
	buf_str(out, "/>");
}

void svg_rect(struct buf *out, const char *class, double x, double y, double w, double h)
{
	svg_rect_titled(out, class, x, y, w, h, NULL);
}

void svg_rect_titled(struct buf *out, const char *class, double x, double y, double w, double h,
		     const char *title)
{
	buf_printf(out, "<rect class=\"%s\"", class);
	attribute(out, "x", x);
	attribute(out, "y", y);
	attribute(out, "width", w);
	attribute(out, "height", h);
	close_titled(out, "rect", title);
}

void svg_dot(struct buf *out, const char *class, double x, double y, double r, const char *title)
{
	buf_printf(out, "<circle class=\"%s\"", class);
	attribute(out, "cx", x);
	attribute(out, "cy", y);
	attribute(out, "r", r);
	close_titled(out, "circle", title);
}

void svg_diamond(struct buf *out, const char *class, double x, double y, double r,
		 const char *title)
{
	svg_path_begin(out, class);
	svg_move_to(out, x - r, y);
	svg_line_to(out, x, y - r);
	svg_line_to(out, x + r, y);
	svg_line_to(out, x, y + r);
	buf_str(out, "z\"");
	close_titled(out, "path", title);
}

void svg_text(struct buf *out, const char *class, double x, double y, enum svg_anchor anchor,
	      const char *text)
{
	static const char *const names[] = {"start", "middle", "end"};

	buf_printf(out, "<text class=\"%s\" text-anchor=\"%s\"", class, names[anchor]);
	attribute(out, "x", x);
	attribute(out, "y", y);
	buf_char(out, '>');
	html_text(out, text);
	buf_str(out, "</text>");
}

void svg_path_begin(struct buf *out, const char *class)
{
	buf_printf(out, "<path class=\"%s\" d=\"", class);
}

void svg_move_to(struct buf *out, double x, double y)
{
	buf_char(out, 'M');
	put_pair(out, x, y);
}

void svg_line_to(struct buf *out, double x, double y)
{
	buf_char(out, 'L');
	put_pair(out, x, y);
}

void svg_point_at(struct buf *out, double x, double y)
{
	svg_move_to(out, x, y);
	buf_str(out, "h0");
}

void svg_path_end(struct buf *out)
{
	buf_str(out, "\"/>");
}

double svg_at(const struct svg_axis *a, double v)
{
	return a->from + (v - a->lo) / (a->hi - a->lo) * (a->to - a->from);
}

size_t svg_ticks(double lo, double hi, size_t want, double *out, size_t max, int *digits)
{
	double rough, power, step;
	size_t n = 0;

	*digits = 0;
	if (!(lo < hi) || !isfinite(hi - lo) || want == 0)
		return 0;
	rough = (hi - lo) / (double)want;
	power = pow(10, floor(log10(rough)));
	step = power * (rough <= 1.5 * power ? 1
			: rough <= 3 * power ? 2
			: rough <= 7 * power ? 5
					     : 10);
	*digits = (int)fmax(0, -floor(log10(step) + 1e-9));
	/* By number, not by sum: the tenth tick is as round as the first. */
	for (double k = ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9 && n < max; k++)
		out[n++] = k * step == 0 ? 0 : k * step;
	return n;
}
