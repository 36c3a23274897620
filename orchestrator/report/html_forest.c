/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every effect with its interval: what was tested, the fix, the default against itself, and what
 * was only screened. */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/recorded.h"

enum {
	TOP = 8,
	VALUES = 250,    /* room for words at the right */
	LABEL_MOST = 32, /* characters */
	WORDS_MOST = 38,
	/* The strongest of each kind; how many more there are is said. */
	TESTED_MOST = 120,
	SCREENED_MOST = 40,
};

struct row {
	const char *class, *what; /* what: accepted, ...; static or borrowed */
	char *label;
	double est, lo, hi; /* lo, hi NaN: no interval */
	bool fix;
	bool hollow; /* of a screen, which claims nothing */
};

struct forest {
	struct row *v;
	size_t n, cap, left_out;
	struct svg_axis x;
	struct buf *out;
};

static void add(struct forest *f, struct row row)
{
	f->v = xgrow(f->v, f->n, &f->cap, sizeof *f->v);
	f->v[f->n++] = row;
}

static const char *class_of(const struct verdict_row *v)
{
	enum verdict_outcome o;

	if (!verdict_outcome_parse(v->outcome, &o))
		return "plain";
	return o == VERDICT_ACCEPTED                                        ? "better"
	       : o == VERDICT_REJECTED_WORSE || o == VERDICT_REJECTED_GUARD ? "worse"
									    : "plain";
}

static void add_tested(struct forest *f, const struct report *r)
{
	_cleanup_free_ size_t *order = xcalloc(r->n_hyps + 1, sizeof *order);
	size_t n = report_ranking(r, order);

	for (size_t i = 0; i < n && i < TESTED_MOST; i++) {
		const struct report_hypothesis *h = &r->hyps[order[i]];

		add(f, (struct row){.class = class_of(&h->verdict),
				    .what = lang_word("verdict_outcome", h->verdict.outcome),
				    .label = html_figure_change(&h->row),
				    .est = h->verdict.est,
				    .lo = h->verdict.lo,
				    .hi = h->verdict.hi});
	}
	f->left_out += n > TESTED_MOST ? n - TESTED_MOST : 0;
}

static int by_effect(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->est < y->est) - (x->est > y->est);
}

static int by_strength(const void *a, const void *b)
{
	double x = fabs(((const struct row *)a)->est), y = fabs(((const struct row *)b)->est);

	return (x < y) - (x > y);
}

static void add_screened(struct forest *f, const struct report *r)
{
	size_t first = f->n;

	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (isfinite(h->screen_mean) && !(h->has_verdict && isfinite(h->verdict.est)))
			add(f, (struct row){.class = "soft",
					    .what = h->has_verdict ? _("screened: invalid")
								   : _("screened"),
					    .hollow = true,
					    .label = html_figure_change(&h->row),
					    .est = h->screen_mean,
					    .lo = NAN,
					    .hi = NAN});
	}
	if (f->n == first)
		return;
	qsort(f->v + first, f->n - first, sizeof *f->v, by_strength);
	for (; f->n - first > SCREENED_MOST; f->left_out++)
		free(f->v[--f->n].label);
	qsort(f->v + first, f->n - first, sizeof *f->v, by_effect);
}

/* `state`: of the fix. */
static void gather(struct forest *f, const struct report *r, const char *state)
{
	add_tested(f, r);
	if (r->has_fix && isfinite(r->fix.est))
		add(f, (struct row){.class = r->fix.lo > 0 ? "better" : "plain",
				    .what = state,
				    .label = xstrdup(_("the fix, on fresh blocks")),
				    .est = r->fix.est,
				    .lo = r->fix.lo,
				    .hi = r->fix.hi,
				    .fix = true});
	if (isfinite(r->aa_effect))
		add(f, (struct row){.class = "soft",
				    .what = _("noise"),
				    .label = xstrdup(_("default against itself")),
				    .est = r->aa_effect,
				    .lo = r->aa_lo,
				    .hi = r->aa_hi});
	add_screened(f, r);
}

/* What was measured with an interval is whole in the picture, and the band; a screen's effect that
 * lies further off than all that is wide is shown at the edge. */
static void set_axis(struct forest *f, double band)
{
	double lo = -1.5 * band, hi = 1.5 * band, span, far;

	for (size_t i = 0; i < f->n; i++) {
		const struct row *w = &f->v[i];

		if (w->hollow)
			continue;
		lo = fmin(lo, isfinite(w->lo) ? w->lo : w->est);
		hi = fmax(hi, isfinite(w->hi) ? w->hi : w->est);
	}
	if (!(hi > lo)) {
		lo = -0.01;
		hi = 0.01;
	}
	far = hi - lo;
	for (size_t i = 0; i < f->n; i++) {
		double est = f->v[i].est;

		if (isfinite(est) && est > lo - far && est < hi + far) {
			lo = fmin(lo, est);
			hi = fmax(hi, est);
		}
	}
	span = hi - lo;
	f->x = (struct svg_axis){lo - 0.05 * span, hi + 0.05 * span, FIGURE_LABEL + 10,
				 FIGURE_WIDTH - VALUES - 10};
}

static double inside(const struct forest *f, double v)
{
	return svg_at(&f->x, fmin(fmax(v, f->x.lo), f->x.hi));
}

static void effect_words(const struct row *w, struct buf *b)
{
	doc_put_percent(b, w->est, 1);
	if (isfinite(w->lo) && isfinite(w->hi))
		buf_printf(b, " [%+.1f, %+.1f]", 100 * w->lo, 100 * w->hi);
	buf_printf(b, _(", %s"), w->what);
}

/* A triangle at the edge: the value lies further off. */
static void draw_beyond(const struct forest *f, const char *class, double y, bool right)
{
	double x = right ? f->x.to : f->x.from, tip = right ? 7 : -7;

	svg_path_begin(f->out, class);
	svg_move_to(f->out, x - tip, y - 5);
	svg_line_to(f->out, x, y);
	svg_line_to(f->out, x - tip, y + 5);
	svg_path_end(f->out);
}

static void draw_row(const struct forest *f, const struct row *w, double y)
{
	_cleanup_free_ char *title = NULL;
	struct buf words = {0};

	effect_words(w, &words);
	title = xasprintf("%s: %s", w->label, words.data);
	html_figure_words(f->out, w->fix ? "head" : "name", FIGURE_LABEL, y, SVG_END, w->label,
			  LABEL_MOST);
	buf_printf(f->out, "<g class=\"%s\">", w->class);
	if (isfinite(w->lo) && isfinite(w->hi))
		svg_line(f->out, "ci", inside(f, w->lo), y, inside(f, w->hi), y);
	if (w->est < f->x.lo || w->est > f->x.hi)
		draw_beyond(f, "est", y, w->est > f->x.hi);
	else if (w->fix)
		svg_diamond(f->out, "est", inside(f, w->est), y, 7, title);
	else
		svg_dot(f->out, w->hollow ? "hollow" : "est", inside(f, w->est), y, 4.5, title);
	buf_str(f->out, "</g>");
	html_figure_words(f->out, "y", FIGURE_WIDTH - VALUES + 6, y, SVG_START, words.data,
			  WORDS_MOST);
	buf_free(&words);
}

static void draw(const struct forest *f, double band)
{
	double bottom = TOP + FIGURE_ROW * (double)f->n;
	_cleanup_free_ char *words = xasprintf(
		_("Forest plot of %zu effects on the objective; each is named with its "
		  "interval at its right."),
		f->n);

	svg_begin(f->out, FIGURE_WIDTH, bottom + 24, words);
	if (band > 0)
		svg_rect(f->out, "equal", inside(f, -band), TOP, inside(f, band) - inside(f, -band),
			 bottom - TOP);
	html_figure_percents(f->out, &f->x, TOP, bottom);
	for (size_t i = 0; i < f->n; i++)
		draw_row(f, &f->v[i], TOP + FIGURE_ROW * ((double)i + 0.5));
	svg_end(f->out);
}

static void draw_table(const struct forest *f)
{
	static const struct doc_column c[] = {
		{"change", false}, {"effect", true}, {"interval", true}, {"verdict", false}};
	struct doc doc = {.writer = &html_doc_writer, .out = f->out};

	html_figure_table(f->out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < f->n; i++) {
		const struct row *w = &f->v[i];

		doc_row(&doc);
		doc_cell(&doc, w->label);
		doc_cell_percent(&doc, w->est, 1);
		if (w->hollow)
			doc_cell(&doc, NULL);
		else
			doc_cell_interval(&doc, w->lo, w->hi);
		doc_cell(&doc, w->what);
	}
	doc_end(&doc);
	html_figure_table_end(f->out);
}

void html_forest(const struct report *r, struct buf *out)
{
	struct forest f = {.out = out};
	double band = r->recipe->min_effect;
	_cleanup_free_ char *how = NULL, *more = NULL, *state = recorded_text(r->fix.state);

	gather(&f, r, state);
	more = f.left_out ? xasprintf(_(" %zu weaker ones are in the tables."), f.left_out)
			  : xstrdup("");
	how = xasprintf(_("Relative change of the objective, right is better. Lines: the intervals "
			  "that the verdicts rest on, of 95 %% for the fix and for the default "
			  "against itself. Hollow: means of the screen, which claim nothing; a "
			  "triangle lies further off. Shaded: within ±%.3g %%, too small to be of "
			  "use.%s"),
			100 * band, more);
	if (f.n) {
		set_axis(&f, band);
		html_figure_begin(out, _("Effects"), how);
		draw(&f, band);
		draw_table(&f);
	}
	for (size_t i = 0; i < f.n; i++)
		free(f.v[i].label);
	free(f.v);
}
