/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the pictures of the tuning log share: the card around them, labels, an axis of effects. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/text.h"

enum { TICKS = 4, TICKS_MAX = 16 };

const char html_pictures_css[] =
	"figure{margin:0 0 18px;max-width:900px}\n"
	"figcaption{margin-bottom:10px}figcaption h3{margin:0 0 2px}\n"
	"figcaption p{margin:0;font-size:13px;color:var(--soft);max-width:90ch}\n"
	".scroll{overflow-x:auto}.scroll svg{min-width:660px}.panels svg{min-width:0}\n"
	"svg .name{fill:var(--ink)}svg .head{font-weight:600;fill:var(--ink)}\n"
	"svg .better{fill:var(--better)}svg .worse{fill:var(--worse)}\n"
	".zero{stroke:var(--ink);opacity:.55}\n"
	".equal{fill:var(--soft);opacity:.14}\n"
	".ci{stroke:currentColor;stroke-width:2}\n"
	".est{fill:currentColor}.plain{color:var(--data)}\n"
	".hollow{fill:var(--card);stroke:currentColor;stroke-width:1.5}\n"
	".step{stroke:var(--soft);stroke-dasharray:2 3}\n"
	".bar.better{fill:var(--better)}.bar.worse{fill:var(--worse)}.bar.fix{fill:var(--data)}\n"
	".join{stroke:var(--data);opacity:.45;fill:none}.join.worse{stroke:var(--worse)}\n"
	".dot{fill:var(--data)}.mean{stroke:var(--ink);stroke-width:2.5}"
	".back{fill:var(--card)}.halo{stroke:var(--card);stroke-width:6}\n"
	".panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));"
	"gap:16px;max-width:1100px;margin-bottom:18px}.panels figure{margin:0}\n"
	/* Neighbours differ in hue for every kind of eye, and a gap lies between them. */
	":root{--p0:#33658a;--p1:#a85f00;--p2:#7a5aa6;--p3:#8f1d14}\n"
	"@media(prefers-color-scheme:dark){:root{--p0:#7db7e0;--p1:#f0b95a;--p2:#b9a2ee;"
	"--p3:#ff8a80}}\n"
	"@media print{:root{--p0:#33658a;--p1:#a85f00;--p2:#7a5aa6;--p3:#8f1d14}}\n"
	".part0{fill:var(--p0)}.part1{fill:var(--p1)}.part2{fill:var(--p2)}.part3{fill:var(--p3)}"
	".part4{fill:var(--soft);opacity:.35}[class^=part]{stroke:var(--card)}\n"
	"svg .on{fill:var(--card);font-weight:600}\n"
	".two{grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr))}\n"
	"@media screen and (max-width:640px){.scroll svg text{font-size:12px}"
	".series .scroll svg text{font-size:17px}}.series .scroll{overflow:visible}\n"
	".ran{fill:var(--data)}.vain{fill:var(--worse)}.open{fill:var(--suspect)}"
	".cross{stroke:var(--ink);stroke-width:1.5;fill:none}.strip{fill:var(--soft);opacity:.10}\n"
	"details{margin-top:10px}summary{cursor:pointer;color:var(--soft);font-size:13px}\n"
	"details .wide{max-height:360px;overflow:auto;margin-top:8px}\n"
	"@media print{.scroll svg{min-width:0}details:not([open]){display:none}"
	".two{grid-template-columns:1fr 1fr}}\n";

void html_figure_begin(struct buf *out, const char *title, const char *how_to_read)
{
	buf_str(out, "<figure class=\"card\"><figcaption><h3>");
	html_text(out, title);
	buf_str(out, "</h3><p>");
	html_text(out, how_to_read);
	buf_str(out, "</p></figcaption>\n<div class=\"scroll\" tabindex=\"0\">");
}

void html_figure_none(struct buf *out, const char *why)
{
	buf_str(out, "<p class=\"soft\">");
	html_text(out, why);
	buf_str(out, "</p>\n");
}

void html_figure_end(struct buf *out)
{
	buf_str(out, "</div></figure>\n");
}

void html_figure_table(struct buf *out)
{
	buf_printf(out, "</div><details><summary>%s</summary><div>\n", _("As a table"));
}

void html_figure_table_end(struct buf *out)
{
	buf_str(out, "</div></details></figure>\n");
}

/* Where the end of s begins that takes at most so many columns. */
static size_t end_of(const char *s, size_t columns)
{
	size_t at = text_fit(s, text_width(s) - columns);

	if (text_width(s + at) > columns) /* half of a wide one */
		at += text_fit(s + at, 2);
	return at;
}

char *html_figure_label(const char *s, size_t most)
{
	struct buf b = {0};
	size_t n, head = most / 2, tail = most - head - 1;
	char *label;

	text_line(&b, s);
	n = b.data ? text_width(b.data) : 0;
	if (n > most)
		label = xasprintf("%.*s…%s", (int)text_fit(b.data, head), b.data,
				  b.data + end_of(b.data, tail));
	else
		label = xstrdup(b.data ? b.data : "");
	buf_free(&b);
	return label;
}

/* Bytes of the first line: up to the last blank that leaves it at most so many columns. */
static size_t first_line(const char *s, size_t most)
{
	size_t fits = text_fit(s, most), at = fits;

	while (at > 0 && s[at] != ' ')
		at--;
	return at ? at : fits;
}

void html_figure_words(struct buf *out, const char *class, double x, double y,
		       enum svg_anchor anchor, const char *s, size_t most)
{
	_cleanup_free_ char *text = text_clean(s), *rest = NULL;
	size_t at;

	if (text_width(text) <= most) {
		svg_text(out, class, x, y + 4, anchor, text);
		return;
	}
	at = first_line(text, most);
	rest = html_figure_label(text + at + (text[at] == ' '), most);
	text[at] = '\0';
	svg_text(out, class, x, y - 2, anchor, text);
	svg_text(out, class, x, y + 11, anchor, rest);
}

char *html_figure_change(const struct hypothesis_row *h)
{
	return xasprintf("%s %s → %s", h->knob, h->from_value ? h->from_value : _("(not set)"),
			 h->value);
}

char *html_figure_stage(const struct report *r, const struct report_stage *s)
{
	for (size_t i = 0; i < r->n_hyps; i++)
		if (r->hyps[i].row.id == s->hypothesis)
			return html_figure_change(&r->hyps[i].row);
	return xstrdup(_("The fix against the default"));
}

void html_figure_percents(struct buf *out, const struct svg_axis *x, double top, double bottom)
{
	double v[TICKS_MAX];
	int digits;
	size_t n = svg_ticks(100 * x->lo, 100 * x->hi, TICKS, v, TICKS_MAX, &digits);

	for (size_t i = 0; i < n; i++) {
		double at = svg_at(x, v[i] / 100);
		char text[32];

		snprintf(text, sizeof text, v[i] == 0 ? "0" : "%+.*f %%", digits, v[i]);
		svg_line(out, v[i] == 0 ? "zero" : "grid", at, top, at, bottom);
		svg_text(out, "x", at, bottom + 16, SVG_MIDDLE, text);
	}
}
