/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values of the arms of a stage, joined by block: the pairing made visible. What differs
 * between blocks (nodes, hours) moves a line as a whole; what the change does tilts it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/recorded.h"

enum {
	WIDTH = 320,
	HEIGHT = 230,
	LEFT = 62,
	RIGHT = 16,
	TOP = 10,
	BOTTOM = 26,
	INSET = 58, /* of the arms from the frame */
	MEAN = 24,  /* half the width of a mean's line */
	TICKS = 4,
	TICKS_MAX = 12,
	LABEL_MOST = 18,
	PANELS_MOST = 24,   /* stages, the newest */
	BLOCKS_MOST = 1000, /* of a panel */
};

struct panel {
	const struct report *r;
	const struct report_stage *s;
	struct svg_axis y;
	int blocks; /* one more than the largest index that is drawn */
	struct buf *out;
};

static double x_of(size_t arm)
{
	return arm == 0 ? LEFT + INSET : WIDTH - RIGHT - INSET;
}

/* Mean of an arm's trials in a block; NaN: there is none. */
static double block_mean(const struct report_arm *a, int block, size_t *at)
{
	double sum = 0;
	size_t n = 0;

	while (*at < a->n_values && a->values[*at].block < block)
		(*at)++;
	for (; *at < a->n_values && a->values[*at].block == block; (*at)++, n++)
		sum += a->values[*at].value;
	return n ? sum / (double)n : NAN;
}

static void measure(struct panel *p)
{
	double lo = INFINITY, hi = -INFINITY, room;

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < p->s->arms[i].n_values; k++) {
			const struct report_value *v = &p->s->arms[i].values[k];

			lo = fmin(lo, v->value);
			hi = fmax(hi, v->value);
			if (v->block < BLOCKS_MOST && v->block >= p->blocks)
				p->blocks = v->block + 1;
		}
	room = hi > lo ? 0.08 * (hi - lo) : lo != 0 ? 0.01 * fabs(lo) : 1;
	p->y = (struct svg_axis){lo - room, hi + room, HEIGHT - BOTTOM, TOP};
}

static void draw_grid(const struct panel *p)
{
	double v[TICKS_MAX];
	int digits;
	size_t n = svg_ticks(p->y.lo, p->y.hi, TICKS, v, TICKS_MAX, &digits);

	for (size_t i = 0; i < n; i++) {
		double y = svg_at(&p->y, v[i]);
		char text[32];

		if (fabs(v[i]) >= 1e6 || digits > 5)
			snprintf(text, sizeof text, "%.4g", v[i]);
		else
			snprintf(text, sizeof text, "%.*f", digits, v[i]);
		svg_line(p->out, "grid", LEFT, y, WIDTH - RIGHT, y);
		svg_text(p->out, "y", LEFT - 8, y + 4, SVG_END, text);
	}
	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *name = recorded_text(p->s->arms[i].label);
		_cleanup_free_ char *label = html_figure_label(name, LABEL_MOST);

		svg_text(p->out, "name", x_of(i), HEIGHT - 6, SVG_MIDDLE, label);
	}
}

static void draw_blocks(const struct panel *p)
{
	double sign = p->r->recipe->better == BETTER_DOWN ? -1 : 1;
	size_t at[2] = {0, 0};

	for (int block = 0; block < p->blocks; block++) {
		double a = block_mean(&p->s->arms[0], block, &at[0]);
		double b = block_mean(&p->s->arms[1], block, &at[1]);

		if (isfinite(a) && isfinite(b))
			svg_line(p->out, sign * (b - a) < 0 ? "join worse" : "join", x_of(0),
				 svg_at(&p->y, a), x_of(1), svg_at(&p->y, b));
	}
}

static void draw_arm(const struct panel *p, size_t arm)
{
	const struct report_arm *a = &p->s->arms[arm];

	for (size_t k = 0; k < a->n_values; k++) {
		struct buf title = {0};

		if (a->values[k].block >= BLOCKS_MOST)
			break;
		buf_printf(&title, _("block %d: "), a->values[k].block + 1);
		doc_put_number(&title, a->values[k].value);
		svg_dot(p->out, "dot", x_of(arm), svg_at(&p->y, a->values[k].value), 3.5,
			title.data);
		buf_free(&title);
	}
	if (isfinite(a->mean))
		svg_line(p->out, "mean", x_of(arm) - MEAN, svg_at(&p->y, a->mean), x_of(arm) + MEAN,
			 svg_at(&p->y, a->mean));
}

static void draw_table(const struct panel *p)
{
	const struct doc_column c[] = {{"block", true},
				       {p->s->arms[0].label, true},
				       {p->s->arms[1].label, true},
				       {"change", true}};
	struct doc doc = {.writer = &html_doc_writer, .out = p->out};
	size_t at[2] = {0, 0};

	html_figure_table(p->out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (int block = 0; block < p->blocks; block++) {
		double a = block_mean(&p->s->arms[0], block, &at[0]);
		double b = block_mean(&p->s->arms[1], block, &at[1]);

		if (!isfinite(a) && !isfinite(b))
			continue;
		doc_row(&doc);
		doc_cell_i64(&doc, block + 1);
		doc_cell_number(&doc, a);
		doc_cell_number(&doc, b);
		doc_cell_percent(&doc, a != 0 ? b / a - 1 : NAN, 1);
	}
	doc_end(&doc);
	html_figure_table_end(p->out);
}

static void draw(const struct panel *p)
{
	_cleanup_free_ char *title = html_figure_stage(p->r, p->s);
	_cleanup_free_ char *how = xasprintf(_("Stage %d, %s; %s"), p->s->seq,
					     lang_word("stage_kind", stage_kind_name(p->s->kind)),
					     p->r->unit && *p->r->unit ? p->r->unit
								       : p->r->recipe->objective);
	char mean[2][DOC_FIGURES_MAX];
	struct buf words = {0};

	buf_printf(&words, _("Values of %s and %s joined by block; means %s and %s."),
		   p->s->arms[0].label, p->s->arms[1].label,
		   doc_number_text(mean[0], p->s->arms[0].mean),
		   doc_number_text(mean[1], p->s->arms[1].mean));
	html_figure_begin(p->out, title, how);
	svg_begin(p->out, WIDTH, HEIGHT, words.data);
	draw_grid(p);
	draw_blocks(p);
	draw_arm(p, 0);
	draw_arm(p, 1);
	svg_end(p->out);
	draw_table(p);
	buf_free(&words);
}

static bool has_panel(const struct report_stage *s)
{
	return (s->kind == STAGE_CONFIRM || s->kind == STAGE_FINAL) && s->n_arms >= 2 &&
	       s->arms[0].n_values + s->arms[1].n_values > 0;
}

void html_pairs(const struct report *r, struct buf *out)
{
	size_t n = 0, seen = 0;

	for (size_t i = 0; i < r->n_stages; i++)
		n += has_panel(&r->stages[i]);
	if (n == 0)
		return;
	buf_str(out, "<div class=\"panels\">\n");
	for (size_t i = 0; i < r->n_stages; i++) {
		struct panel p = {.r = r, .s = &r->stages[i], .out = out};

		if (!has_panel(p.s) || n - seen++ > PANELS_MOST)
			continue;
		measure(&p);
		draw(&p);
	}
	buf_str(out, "</div>\n");
}
