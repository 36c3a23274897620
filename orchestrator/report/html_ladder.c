/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scaling ladder: how much of its throughput a rank keeps on each rung, with the interval, and
 * where the rest of the step went. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html_pictures.h"

enum {
	TOP = 30,
	ROW = 36,
	BAR = 18,
	VALUES = 230,
	LOSSES = 4,
	TICKS = 5,
	TICKS_MAX = 12,
};

static const char *const loss_name[LOSSES] = {N_("communication"), N_("stragglers"), N_("input"),
					      N_("rest")};
static const char *const loss_class[LOSSES] = {"part1", "part2", "part3", "part4"};

static double width_of(const struct report *r)
{
	double most = 1;

	for (size_t i = 0; i < r->n_rungs; i++)
		if (isfinite(r->rungs[i].hi))
			most = fmax(most, r->rungs[i].hi);
	return fmin(most, 1.5);
}

static void draw_legend(struct buf *out)
{
	static const double at[LOSSES + 1] = {0, 190, 320, 420, 490};

	svg_rect(out, "part0", at[0], 2, 12, 12);
	svg_text(out, "y", at[0] + 18, 13, SVG_START, _("kept of the rung below"));
	for (size_t k = 0; k < LOSSES; k++) {
		svg_rect(out, loss_class[k], at[k + 1], 2, 12, 12);
		svg_text(out, "y", at[k + 1] + 18, 13, SVG_START, _(loss_name[k]));
	}
	svg_diamond(out, "est", 570, 8, 6, NULL);
	svg_text(out, "y", 582, 13, SVG_START, _("kept of the first rung"));
}

static void draw_axis(const struct svg_axis *x, double bottom, struct buf *out)
{
	double v[TICKS_MAX];
	int digits;
	size_t n = svg_ticks(100 * x->lo, 100 * x->hi, TICKS, v, TICKS_MAX, &digits);

	for (size_t i = 0; i < n; i++) {
		double at = svg_at(x, v[i] / 100);
		char text[32];

		snprintf(text, sizeof text, "%.*f %%", digits, v[i]);
		svg_line(out, v[i] == 100 ? "zero" : "grid", at, TOP, at, bottom);
		svg_text(out, "x", at, bottom + 16, SVG_MIDDLE, text);
	}
}

/* What was lost, part by part, from what was kept up to all of it. */
static void draw_losses(const struct rung_row *g, const struct svg_axis *x, double y,
			struct buf *out)
{
	const double loss[LOSSES] = {g->communication, g->straggler, g->input, g->rest};
	double at = g->est;

	for (size_t k = 0; k < LOSSES && at < 1; k++) {
		double to = fmin(1, at + fmax(0, loss[k]));

		if (!(to > at))
			continue;
		svg_rect(out, loss_class[k], svg_at(x, at), y - BAR / 2.0,
			 svg_at(x, to) - svg_at(x, at), BAR);
		at = to;
	}
}

static void draw_rung(const struct rung_row *g, const struct svg_axis *x, double y, struct buf *out)
{
	_cleanup_free_ char *name = xasprintf(_n("%d node with %d ranks",
						 "%d nodes with %d ranks each", g->nodes),
					      g->nodes, g->tasks_per_node);
	_cleanup_free_ char *words = NULL;

	svg_text(out, g->held ? "name" : "head", FIGURE_LABEL, y + 4, SVG_END, name);
	if (!isfinite(g->est)) {
		svg_text(out, "y", FIGURE_WIDTH - VALUES + 6, y + 4, SVG_START, _("not measured"));
		return;
	}
	svg_rect(out, "part0", svg_at(x, 0), y - BAR / 2.0, svg_at(x, g->est) - svg_at(x, 0), BAR);
	draw_losses(g, x, y, out);
	if (isfinite(g->lo) && isfinite(g->hi)) {
		double lo = svg_at(x, fmax(g->lo, x->lo)), hi = svg_at(x, fmin(g->hi, x->hi));

		svg_line(out, "halo", lo - 2, y, hi + 2, y);
		svg_line(out, "mean", lo, y, hi, y);
	}
	if (isfinite(g->total)) {
		svg_diamond(out, "back", svg_at(x, fmin(fmax(g->total, 0), x->hi)), y, 8, NULL);
		svg_diamond(out, "est", svg_at(x, fmin(fmax(g->total, 0), x->hi)), y, 6, NULL);
	}
	words = xasprintf(g->held ? "%.1f %% [%.1f, %.1f]"
				  : _("%.1f %% [%.1f, %.1f], too much lost"),
			  100 * g->est, 100 * g->lo, 100 * g->hi);
	svg_text(out, "y", FIGURE_WIDTH - VALUES + 6, y + 4, SVG_START, words);
}

void html_ladder(const struct report *r, struct buf *out)
{
	struct svg_axis x = {0, width_of(r), FIGURE_LABEL + 10, FIGURE_WIDTH - VALUES - 10};
	double bottom = TOP + ROW * (double)r->n_rungs;
	_cleanup_free_ char *words = xasprintf(
		_("Efficiency of %zu rungs of the scaling ladder; the table above has the figures."),
		r->n_rungs);

	if (r->n_rungs == 0)
		return;
	html_figure_begin(out, "The scaling ladder",
			  "What a rank keeps of its throughput when there are more of them: bars "
			  "against the rung below, with the 95 % interval; what is lost stands "
			  "behind them as shares of a step, as far as the profiler told it apart.");
	svg_begin(out, FIGURE_WIDTH, bottom + 24, words);
	draw_legend(out);
	draw_axis(&x, bottom, out);
	for (size_t i = 0; i < r->n_rungs; i++)
		draw_rung(&r->rungs[i], &x, TOP + ROW * ((double)i + 0.5), out);
	svg_end(out);
	html_figure_end(out);
}
