/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the time of a step goes, of each configuration that was looked at under the profiler. */
#include <math.h>
#include <stdio.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"

enum {
	TOP = 30,
	ROW = 34,
	BAR = 20,
	LABEL_MOST = 32,
	WRITTEN = 40, /* a part this wide has its number in it */
};

static const char *const part_name[REPORT_PARTS] = {N_("computing"),
						    N_("communication in the open"), N_("copies"),
						    N_("waiting for data"), N_("idle, rest")};
static const char *const part_class[REPORT_PARTS] = {"part0", "part1", "part2", "part3", "part4"};

static void draw_legend(struct buf *out)
{
	static const double at[REPORT_PARTS] = {0, 104, 300, 376, 510};

	for (size_t k = 0; k < REPORT_PARTS; k++) {
		svg_rect(out, part_class[k], at[k], 2, 12, 12);
		svg_text(out, "y", at[k] + 18, 13, SVG_START, _(part_name[k]));
	}
}

static void draw_bar(const struct report_profile *f, double y, struct buf *out)
{
	const struct svg_axis x = {0, 1, FIGURE_LABEL + 10, FIGURE_WIDTH - 10};
	_cleanup_free_ char *label = html_figure_label(f->config_text, LABEL_MOST);
	double at = 0;

	svg_text(out, "name", FIGURE_LABEL, y + BAR / 2.0 + 4, SVG_END, label);
	for (size_t k = 0; k < REPORT_PARTS; k++) {
		double from = svg_at(&x, at), to = svg_at(&x, at + f->part[k]);
		char text[16];

		at += f->part[k];
		if (to - from < 0.05)
			continue;
		svg_rect(out, part_class[k], from, y, to - from, BAR);
		if (to - from < WRITTEN)
			continue;
		snprintf(text, sizeof text, "%.1f %%", 100 * f->part[k]);
		svg_text(out, k + 1 == REPORT_PARTS ? "name" : "on", (from + to) / 2,
			 y + BAR / 2.0 + 4, SVG_MIDDLE, text);
	}
}

static void draw_table(const struct report *r, struct buf *out)
{
	struct doc_column c[REPORT_PARTS + 2] = {{"round", true}, {"configuration", false}};
	struct doc doc = {.writer = &html_doc_writer, .out = out};

	for (size_t k = 0; k < REPORT_PARTS; k++)
		c[k + 2] = (struct doc_column){part_name[k], true};
	html_figure_table(out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_profiles; i++) {
		doc_row(&doc);
		doc_cell_i64(&doc, r->profiles[i].round);
		doc_cell_code(&doc, r->profiles[i].config_text);
		for (size_t k = 0; k < REPORT_PARTS; k++)
			doc_cell_printf(&doc, "%.1f %%", 100 * r->profiles[i].part[k]);
	}
	doc_end(&doc);
	html_figure_table_end(out);
}

void html_split(const struct report *r, struct buf *out)
{
	double bottom = TOP + ROW * (double)r->n_profiles;
	_cleanup_free_ char *words = xasprintf(
		_n("Shares of a step in %zu configuration, from the profiler.",
		   "Shares of a step in %zu configurations, from the profiler.", r->n_profiles),
		r->n_profiles);

	if (r->n_profiles == 0) {
		if (r->n_hyps)
			html_figure_none(out, "No trial ran under the profiler: how the time of a "
					      "step is split was not measured.");
		return;
	}
	html_figure_begin(out, "Where the time of a step goes",
			  r->n_profiles > 1
				  ? "Shares of a step on the device, before and after what was "
				    "accepted; a trial under the profiler each, which slows it."
				  : "Shares of a step on the device, in a trial under the "
				    "profiler, which slows it. Only this configuration was looked "
				    "at, so there is no bar for after.");
	svg_begin(out, FIGURE_WIDTH, bottom, words);
	draw_legend(out);
	for (size_t i = 0; i < r->n_profiles; i++)
		draw_bar(&r->profiles[i], TOP + ROW * (double)i, out);
	svg_end(out);
	draw_table(r, out);
}
