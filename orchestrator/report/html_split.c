/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the time of a step goes, of each configuration that was looked at under the profiler. */
#include <math.h>
#include <stdio.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html_pictures.h"

enum {
	TOP = 30,
	ROW = 34,
	BAR = 20,
	LABEL_MOST = 32,
	WRITTEN = 40, /* a part this wide has its number in it */
};

static const char *const part_class[REPORT_PARTS] = {"part0", "part1", "part2", "part3", "part4"};

static void draw_legend(struct buf *out)
{
	static const double at[REPORT_PARTS] = {0, 104, 300, 376, 510};

	for (size_t k = 0; k < REPORT_PARTS; k++) {
		svg_rect(out, part_class[k], at[k], 2, 12, 12);
		svg_text(out, "y", at[k] + 18, 13, SVG_START,
			 _(report_part_name((enum report_part)k)));
	}
}

static void draw_bar(const struct report_profile *f, double y, struct buf *out)
{
	const struct svg_axis x = {0, 1, FIGURE_LABEL + 10, FIGURE_WIDTH - 10};
	_cleanup_free_ char *name = xasprintf(f->profiler ? "%s" : _("%s, timed trials"),
					      f->config_text);
	_cleanup_free_ char *label = html_figure_label(name, LABEL_MOST);
	double at = 0;

	svg_text(out, "name", FIGURE_LABEL, y + BAR / 2.0 + 4, SVG_END, label);
	for (size_t k = 0; k < REPORT_PARTS; k++) {
		double from = svg_at(&x, at), to = svg_at(&x, at + f->part[k]);
		char text[16];

		if (!(to - from >= 0.05))
			continue;
		at += f->part[k];
		svg_rect(out, part_class[k], from, y, to - from, BAR);
		if (to - from < WRITTEN)
			continue;
		snprintf(text, sizeof text, "%.1f %%", 100 * f->part[k]);
		svg_text(out, k + 1 == REPORT_PARTS ? "name" : "on", (from + to) / 2,
			 y + BAR / 2.0 + 4, SVG_MIDDLE, text);
	}
}

static const char *how_to_read(const struct report *r)
{
	if (!r->profiles[0].profiler)
		return N_(
			"Shares of a step, before and after. No profiler looked: timed trials "
			"tell only how long a step waits for data, and the rest is not told apart.");
	if (r->n_profiles == 1)
		return N_(
			"Shares of a step on the device, as a trial under the profiler shows "
			"them, less the idle time that it adds. Only this configuration was looked at, so there is no bar for "
			"after.");
	if (!r->profiles[r->n_profiles - 1].profiler)
		return N_(
			"Shares of a step: the default on the device, as a trial under the "
			"profiler shows it, less the idle time that it adds; then, from the timed trials of the final stage, "
			"how long default and fix wait for data; the rest is not told apart.");
	return N_("Shares of a step on the device, before and after what was accepted, as a trial "
		  "under the profiler each shows them, less the idle time that it adds.");
}

void html_split(const struct report *r, struct buf *out)
{
	double bottom = TOP + ROW * (double)r->n_profiles;
	_cleanup_free_ char *words = xasprintf(
		_n("Shares of a step in %zu configuration; the table below has them.",
		   "Shares of a step in %zu configurations; the table below has them.",
		   r->n_profiles),
		r->n_profiles);

	if (r->n_profiles == 0) {
		if (r->n_hyps)
			html_figure_none(out,
					 _("No trial ran under the profiler: how the time of a "
					   "step is split was not measured."));
		return;
	}
	html_figure_begin(out, _("Where the time of a step goes"), how_to_read(r));
	svg_begin(out, FIGURE_WIDTH, bottom, words);
	draw_legend(out);
	for (size_t i = 0; i < r->n_profiles; i++)
		draw_bar(&r->profiles[i], TOP + ROW * (double)i, out);
	svg_end(out);
	html_figure_end(out);
}
