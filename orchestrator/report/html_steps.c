/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long the steps of each trial took, by block and arm: not only whether a change is faster, but
 * whether its tail is longer. */
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
	WIDTH = 420,
	HEIGHT = 230,
	LEFT = 62,
	RIGHT = 10,
	TOP = 26,
	BOTTOM = 26,
	TICKS = 4,
	TICKS_MAX = 12,
	LABEL_MOST = 22,
	PANELS_MOST = 12, /* stages, the newest */
	BLOCKS_MOST = 24, /* of a panel, the first: more are no more than a smear */
};
#define THICK 7

struct panel {
	const struct report *r;
	const struct report_stage *s;
	struct svg_axis y;
	int blocks; /* that are drawn */
	struct buf *out;
};

static void measure(struct panel *p)
{
	double lo = INFINITY, hi = -INFINITY, room;

	for (size_t i = 0; i < p->s->n_steps; i++) {
		const struct report_steps *t = &p->s->steps[i];

		if (t->block >= BLOCKS_MOST)
			continue;
		lo = fmin(lo, t->min);
		hi = fmax(hi, t->p99);
		p->blocks = t->block + 1 > p->blocks ? t->block + 1 : p->blocks;
	}
	room = hi > lo ? 0.06 * (hi - lo) : 0.01 * fabs(lo) + 1e-9;
	p->y = (struct svg_axis){lo - room, hi + room, HEIGHT - BOTTOM, TOP};
}

static double x_of(const struct panel *p, int block, size_t arm)
{
	double width = (WIDTH - LEFT - RIGHT) / (double)p->blocks;
	double apart = fmin(width / 4, 14);

	return LEFT + width * (block + 0.5) + (arm ? apart : -apart);
}

static void draw_grid(const struct panel *p)
{
	double v[TICKS_MAX];
	int digits, every = p->blocks / 12 + 1;
	size_t n = svg_ticks(p->y.lo, p->y.hi, TICKS, v, TICKS_MAX, &digits);
	char text[32];

	for (size_t i = 0; i < n; i++) {
		double y = svg_at(&p->y, v[i]);

		snprintf(text, sizeof text, "%.*f", digits, v[i]);
		svg_line(p->out, "grid", LEFT, y, WIDTH - RIGHT, y);
		svg_text(p->out, "y", LEFT - 8, y + 4, SVG_END, text);
	}
	for (int block = 0; block < p->blocks; block += every) {
		snprintf(text, sizeof text, "%d", block + 1);
		svg_text(p->out, "x", LEFT + (WIDTH - LEFT - RIGHT) * (block + 0.5) / p->blocks,
			 HEIGHT - 8, SVG_MIDDLE, text);
	}
}

static void draw_legend(const struct panel *p)
{
	double x = LEFT + 6;

	for (size_t arm = 0; arm < 2; arm++) {
		_cleanup_free_ char *name = recorded_text(p->s->arms[arm].label);
		_cleanup_free_ char *label = html_figure_label(name, LABEL_MOST);

		buf_printf(p->out, "<g class=\"%s\">", arm ? "plain" : "soft");
		svg_dot(p->out, arm ? "est" : "hollow", x, 10, 4, NULL);
		buf_str(p->out, "</g>");
		svg_text(p->out, "name", x + 10, 14, SVG_START, label);
		x += (WIDTH - LEFT - RIGHT) / 2.0;
	}
}

static void draw_trial(const struct panel *p, const struct report_steps *t)
{
	double x = x_of(p, t->block, t->arm), median = svg_at(&p->y, t->median);
	double p95 = svg_at(&p->y, t->p95);
	_cleanup_free_ char *title = xasprintf(
		_("block %d: median %.4g ms, 95 %% below %.4g ms, 99 %% below %.4g ms"),
		t->block + 1, t->median, t->p95, t->p99);

	buf_printf(p->out, "<g class=\"%s\">", t->arm ? "plain" : "soft");
	svg_line(p->out, "ci", x, svg_at(&p->y, t->min), x, svg_at(&p->y, t->p99));
	svg_rect(p->out, "est", x - THICK / 2.0, fmin(median, p95), THICK, fabs(median - p95));
	svg_dot(p->out, t->arm ? "est" : "hollow", x, median, 4, title);
	buf_str(p->out, "</g>");
}

static void draw_table(const struct panel *p)
{
	static const struct doc_column c[] = {
		{"block", true},  {"arm", false},       {"fastest step, ms", true},
		{"median", true}, {"95 % below", true}, {"99 % below", true}};
	struct doc doc = {.writer = &html_doc_writer, .out = p->out};

	html_figure_table(p->out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < p->s->n_steps; i++) {
		const struct report_steps *t = &p->s->steps[i];

		doc_row(&doc);
		doc_cell_i64(&doc, t->block + 1);
		doc_cell_recorded(&doc, p->s->arms[t->arm].label);
		doc_cell_number(&doc, t->min);
		doc_cell_number(&doc, t->median);
		doc_cell_number(&doc, t->p95);
		doc_cell_number(&doc, t->p99);
	}
	doc_end(&doc);
	html_figure_table_end(p->out);
}

static void draw(const struct panel *p)
{
	_cleanup_free_ char *title = html_figure_stage(p->r, p->s);
	_cleanup_free_ char *head = xasprintf(_("Step times: %s"), title);
	_cleanup_free_ char *how = xasprintf(
		_("Stage %d, %s, by block; ms. A stroke is a trial, from its fastest "
		  "step to the 99th percentile, thick from the median to the 95th.%s"),
		p->s->seq, lang_word("stage_kind", stage_kind_name(p->s->kind)),
		p->s->blocks_valid > BLOCKS_MOST ? _(" Later blocks are in the table.") : "");
	_cleanup_free_ char *words = xasprintf(
		_("Distribution of the step times of %zu trials in two arms, by block; "
		  "the table has them."),
		p->s->n_steps);

	html_figure_begin(p->out, head, how);
	svg_begin(p->out, WIDTH, HEIGHT, words);
	draw_grid(p);
	draw_legend(p);
	for (size_t i = 0; i < p->s->n_steps; i++)
		if (p->s->steps[i].block < BLOCKS_MOST)
			draw_trial(p, &p->s->steps[i]);
	svg_end(p->out);
	draw_table(p);
}

void html_steps(const struct report *r, struct buf *out)
{
	size_t n = 0, seen = 0;

	for (size_t i = 0; i < r->n_stages; i++)
		n += r->stages[i].n_steps > 0;
	if (n == 0)
		return;
	buf_str(out, "<div class=\"panels two\">\n");
	for (size_t i = 0; i < r->n_stages; i++) {
		struct panel p = {.r = r, .s = &r->stages[i], .out = out};

		if (p.s->n_steps == 0 || n - seen++ > PANELS_MOST)
			continue;
		measure(&p);
		draw(&p);
	}
	buf_str(out, "</div>\n");
}
