/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the default over each accepted change to the fix, as gains: what each brought when it was
 * accepted, and what all of them bring together, measured anew. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"

enum {
	TOP = 8,
	VALUES = 290,
	LABEL_MOST = 32,
	BAR = 14,
};

struct waterfall {
	const struct report *r;
	const struct report_hypothesis **steps; /* accepted, in order */
	size_t n;
	struct svg_axis x;
	struct buf *out;
};

static bool is_accepted(const struct report_hypothesis *h)
{
	enum verdict_outcome o;

	return h->has_verdict && verdict_outcome_parse(h->verdict.outcome, &o) &&
	       o == VERDICT_ACCEPTED && isfinite(h->verdict.est);
}

static int by_verdict(const void *a, const void *b)
{
	const struct report_hypothesis *const *x = a, *const *y = b;

	return ((*x)->verdict.id > (*y)->verdict.id) - ((*x)->verdict.id < (*y)->verdict.id);
}

static void gather(struct waterfall *w)
{
	w->steps = xcalloc(w->r->n_hyps + 1, sizeof *w->steps);
	for (size_t i = 0; i < w->r->n_hyps; i++)
		if (is_accepted(&w->r->hyps[i]))
			w->steps[w->n++] = &w->r->hyps[i];
	qsort(w->steps, w->n, sizeof *w->steps, by_verdict);
}

static void set_axis(struct waterfall *w)
{
	double lo = 0, hi = 0, at = 1, room;

	for (size_t i = 0; i < w->n; i++) {
		at *= 1 + w->steps[i]->verdict.est;
		lo = fmin(lo, at - 1);
		hi = fmax(hi, at - 1);
	}
	if (w->r->has_fix && isfinite(w->r->fix.est)) {
		lo = fmin(lo, fmin(w->r->fix.est, w->r->fix.lo));
		hi = fmax(hi, fmax(w->r->fix.est, w->r->fix.hi));
	}
	room = hi > lo ? 0.04 * (hi - lo) : 0.01;
	w->x = (struct svg_axis){lo < 0 ? lo - room : 0, hi + room, FIGURE_LABEL + 10,
				 FIGURE_WIDTH - VALUES - 10};
}

static void draw_words(const struct waterfall *w, double y, const char *class, const char *name,
		       const char *value)
{
	_cleanup_free_ char *label = html_figure_label(name, LABEL_MOST);

	svg_text(w->out, class, FIGURE_LABEL, y + 4, SVG_END, label);
	svg_text(w->out, "y", FIGURE_WIDTH - VALUES + 6, y + 4, SVG_START, value);
}

/* From one gain to another. */
static void draw_bar(const struct waterfall *w, const char *class, double y, double from, double to)
{
	double a = svg_at(&w->x, from), b = svg_at(&w->x, to);

	svg_rect(w->out, class, fmin(a, b), y - BAR / 2.0, fabs(b - a), BAR);
}

static void put_value(const struct waterfall *w, double v, struct buf *b)
{
	doc_put_number(b, v);
	buf_printf(b, " %s", w->r->unit ? w->r->unit : "");
}

static double draw_step(const struct waterfall *w, const struct report_hypothesis *h, double y,
			double at)
{
	_cleanup_free_ char *name = html_figure_change(&h->row);
	double to = at * (1 + h->verdict.est);
	char gain[DOC_FIGURES_MAX];
	struct buf words = {0};

	buf_printf(&words, _("%s when it was accepted"), doc_percent_text(gain, h->verdict.est, 1));
	draw_words(w, y, "name", name, words.data);
	draw_bar(w, to < at ? "bar worse" : "bar better", y, at - 1, to - 1);
	svg_line(w->out, "step", svg_at(&w->x, to - 1), y + BAR / 2.0, svg_at(&w->x, to - 1),
		 y + FIGURE_ROW - BAR / 2.0);
	buf_free(&words);
	return to;
}

static void draw_fix(const struct waterfall *w, double y)
{
	const struct fix_row *f = &w->r->fix;
	struct buf words = {0};

	doc_put_percent(&words, f->est, 1);
	if (isfinite(f->lo) && isfinite(f->hi))
		buf_printf(&words, " [%+.1f, %+.1f]", 100 * f->lo, 100 * f->hi);
	if (isfinite(w->r->final_mean)) {
		buf_str(&words, ", ");
		put_value(w, w->r->final_mean, &words);
	}
	draw_words(w, y, "head", _("the fix, measured anew"), words.data);
	draw_bar(w, "bar fix", y, 0, f->est);
	if (isfinite(f->lo) && isfinite(f->hi)) {
		double lo = svg_at(&w->x, f->lo), hi = svg_at(&w->x, f->hi);

		svg_line(w->out, "halo", lo - 2, y, hi + 2, y);
		svg_line(w->out, "mean", lo, y, hi, y);
	}
	buf_free(&words);
}

static void draw(const struct waterfall *w)
{
	bool fixed = w->r->has_fix && isfinite(w->r->fix.est);
	double bottom = TOP + FIGURE_ROW * (double)(w->n + 1 + fixed), at = 1;
	double y = TOP + FIGURE_ROW / 2.0;
	struct buf value = {0};
	_cleanup_free_ char *words = xasprintf(
		fixed ? _n("Waterfall from the default over %zu accepted change to the fix.",
			   "Waterfall from the default over %zu accepted changes to the fix.", w->n)
		      : _n("Waterfall from the default over %zu accepted change.",
			   "Waterfall from the default over %zu accepted changes.", w->n),
		w->n);

	svg_begin(w->out, FIGURE_WIDTH, bottom + 24, words);
	html_figure_percents(w->out, &w->x, TOP, bottom);
	put_value(w, w->r->base_mean, &value);
	draw_words(w, y, "head", _("default"), isfinite(w->r->base_mean) ? value.data : "");
	svg_dot(w->out, "dot", svg_at(&w->x, 0), y, 4.5, NULL);
	for (size_t i = 0; i < w->n; i++)
		at = draw_step(w, w->steps[i], y += FIGURE_ROW, at);
	if (fixed)
		draw_fix(w, y + FIGURE_ROW);
	svg_end(w->out);
	buf_free(&value);
}

static void table_row(struct doc *doc, const char *name, double gain, double all)
{
	doc_row(doc);
	doc_cell(doc, name);
	doc_cell_percent(doc, gain, 1);
	doc_cell_percent(doc, all, 1);
}

static void draw_table(const struct waterfall *w)
{
	static const struct doc_column c[] = {
		{"change", false}, {"gain", true}, {"gain over the default", true}};
	struct doc doc = {.writer = &html_doc_writer, .out = w->out};
	double at = 1;

	html_figure_table(w->out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < w->n; i++) {
		_cleanup_free_ char *name = html_figure_change(&w->steps[i]->row);

		at *= 1 + w->steps[i]->verdict.est;
		table_row(&doc, name, w->steps[i]->verdict.est, at - 1);
	}
	if (w->r->has_fix)
		table_row(&doc, _("the fix, measured anew"), w->r->fix.est, w->r->fix.est);
	doc_end(&doc);
	html_figure_table_end(w->out);
}

void html_waterfall(const struct report *r, struct buf *out)
{
	struct waterfall w = {.r = r, .out = out};

	gather(&w);
	if (w.n) {
		set_axis(&w);
		html_figure_begin(
			out, _("From the default to the fix"),
			_("Gain in the objective over the default. Each step is what its "
			  "own validation found; the fix was measured anew against the "
			  "default on fresh blocks, with its 95 % interval. Where steps and "
			  "fix differ, changes do not simply add up, or a step was "
			  "overrated when it won."));
		draw(&w);
		draw_table(&w);
	} else if (r->n_hyps) {
		html_figure_none(out,
				 _("No change was accepted: there is no way from a default to a "
				   "fix to draw."));
	}
	free(w.steps);
}
