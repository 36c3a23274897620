/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the attempts at blocks ran, a lane a node: void and lost ones, and trials that failed, are
 * marked where they happened. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/recorded.h"

enum {
	TOP = 26,
	LABEL = 130,
	BAR = 14,
	STRIP_ROOM = 7, /* of a letter of a stage's name */
	TICKS = 5,
	TICKS_MAX = 12,
	LABEL_MOST = 18,
	LANES_MOST = 40,    /* nodes, the first by name */
	BARS_MOST = 5000,   /* of the page: some 100 bytes each, without titles beyond the next */
	TITLES_MOST = 1000, /* bars that tell what they are */
	ROWS_MOST = 1000,
};
#define S_US      1e6
#define BAR_LEAST 1.5 /* so that it is seen at all */

struct timeline {
	const struct report *r;
	struct svg_axis x; /* seconds since the first began */
	int64_t first_us;
	size_t in_vain, lanes, bars;
	bool unplaced; /* below the nodes a lane of what no node is known of */
	struct buf *out;
};

static bool ran(const struct run_row *v)
{
	return v->start_us > 0 && v->end_us >= v->start_us;
}

static bool in_vain(const struct run_row *v)
{
	return v->state == ATTEMPT_VOID || v->state == ATTEMPT_LOST;
}

static double at_us(const struct timeline *t, int64_t us)
{
	return svg_at(&t->x, (double)(us - t->first_us) / S_US);
}

static bool measure(struct timeline *t)
{
	int64_t last_us = 0;
	size_t n;

	for (size_t i = 0; i < t->r->n_runs; i++) {
		const struct run_row *v = &t->r->runs[i];

		t->in_vain += in_vain(v);
		if (!ran(v))
			continue;
		t->unplaced |= !report_places(t->r, v->allocation, &n) && t->r->n_hosts != 1;
		if (t->first_us == 0 || v->start_us < t->first_us)
			t->first_us = v->start_us;
		if (v->end_us > last_us)
			last_us = v->end_us;
	}
	if (last_us <= t->first_us)
		return false;
	t->x = (struct svg_axis){0, (double)(last_us - t->first_us) / S_US, LABEL + 10,
				 FIGURE_WIDTH - 20};
	t->lanes = t->r->n_hosts < LANES_MOST ? t->r->n_hosts : LANES_MOST;
	return true;
}

/* Hours where it took long, else minutes, else seconds. */
static void draw_axis(const struct timeline *t, double bottom)
{
	static const struct {
		double s;
		const char *name;
	} unit[] = {{86400, N_("d")}, {3600, "h"}, {60, "min"}, {1, "s"}};
	double v[TICKS_MAX];
	size_t u = 0, n;
	int digits;

	while (u + 1 < ARRAY_LEN(unit) && t->x.hi < 3 * unit[u].s)
		u++;
	n = svg_ticks(0, t->x.hi / unit[u].s, TICKS, v, TICKS_MAX, &digits);
	for (size_t i = 0; i < n; i++) {
		double x = svg_at(&t->x, v[i] * unit[u].s);
		char text[32];

		snprintf(text, sizeof text, v[i] == 0 ? "0" : "%.*f %s", digits, v[i],
			 _(unit[u].name));
		svg_line(t->out, "grid", x, TOP, x, bottom);
		svg_text(t->out, "x", x, bottom + 16, SVG_MIDDLE, text);
	}
}

static void bar_title(const struct run_row *v, struct buf *out)
{
	_cleanup_free_ char *reason = recorded_text(v->reason);

	buf_printf(out, _("block %d, attempt %d: %s"), v->block + 1, v->attempt,
		   lang_word("attempt_state", attempt_state_name(v->state)));
	if (reason)
		buf_printf(out, _(": %s"), reason);
	buf_printf(out, _(", %.0f s"), (double)(v->end_us - v->start_us) / S_US);
}

/* -- who and where ---------------------------------------------------------------------------- */

static const struct report_stage *stage_of(const struct report *r, int64_t id)
{
	for (size_t i = 0; i < r->n_stages; i++)
		if (r->stages[i].id == id)
			return &r->stages[i];
	return NULL;
}

static double lane_y(size_t lane)
{
	return TOP + FIGURE_ROW * ((double)lane + 0.5);
}

/* The lane of a node; t->lanes: it has none. */
static size_t lane_of(const struct timeline *t, const char *node)
{
	size_t i = 0;

	while (i < t->lanes && !str_eq(t->r->hosts[i].node, node))
		i++;
	return i;
}

/* The first trial of the attempt that failed; NULL. */
static const struct fault_row *failed(const struct timeline *t, const struct run_row *v)
{
	const struct report_stage *s = stage_of(t->r, v->stage);

	for (size_t i = 0; s && i < t->r->n_faults; i++) {
		const struct fault_row *f = &t->r->faults[i];

		if (f->stage_seq == s->seq && f->block_index == v->block &&
		    f->attempt == v->attempt && f->slot >= 0)
			return f;
	}
	return NULL;
}

/* -- drawing ---------------------------------------------------------------------------------- */

static void draw_cross(const struct timeline *t, double x, double y)
{
	svg_path_begin(t->out, "cross");
	svg_move_to(t->out, x - 5, y - 9);
	svg_line_to(t->out, x + 5, y + 9);
	svg_move_to(t->out, x + 5, y - 9);
	svg_line_to(t->out, x - 5, y + 9);
	svg_path_end(t->out);
}

static void draw_bar(struct timeline *t, const struct run_row *v, double y)
{
	double from = at_us(t, v->start_us), to = at_us(t, v->end_us);
	const char *class = in_vain(v) ? "vain" : v->state == ATTEMPT_VALID ? "ran" : "open";
	const struct fault_row *f = failed(t, v);
	struct buf title = {0};
	bool titled;

	if (t->bars >= BARS_MOST)
		return;
	titled = t->bars++ < TITLES_MOST;
	/* A gap between neighbours, where there is room for one. */
	if (to - from > 3)
		to -= 1;
	if (titled)
		bar_title(v, &title);
	svg_rect_titled(t->out, class, from, y - BAR / 2.0, fmax(to - from, BAR_LEAST), BAR,
			titled ? title.data : NULL);
	buf_free(&title);
	if (in_vain(v))
		draw_cross(t, (from + to) / 2, y);
	else if (f)
		svg_diamond(t->out, "bar worse", (from + to) / 2, y, 5, f->reason);
}

static void draw_run(struct timeline *t, const struct run_row *v)
{
	size_t n;
	const struct place_row *p = report_places(t->r, v->allocation, &n);

	if (n == 0) /* of one node in all there is no doubt */
		draw_bar(t, v, lane_y(t->r->n_hosts == 1 ? 0 : t->lanes));
	for (size_t i = 0; i < n; i++) {
		size_t lane = lane_of(t, p[i].node);

		if (lane < t->lanes)
			draw_bar(t, v, lane_y(lane));
	}
}

/* The time of a stage, behind the lanes, with its name above where there is room. */
static void draw_stage(const struct timeline *t, const struct report_stage *s, double bottom,
		       bool shaded)
{
	_cleanup_free_ char *name = xasprintf("%d %s", s->seq,
					      lang_word("stage_kind", stage_kind_name(s->kind)));
	int64_t first = 0, last = 0;
	double from, to;

	for (size_t i = 0; i < t->r->n_runs; i++) {
		const struct run_row *v = &t->r->runs[i];

		if (v->stage != s->id || !ran(v))
			continue;
		first = first == 0 || v->start_us < first ? v->start_us : first;
		last = v->end_us > last ? v->end_us : last;
	}
	if (first == 0)
		return;
	from = at_us(t, first);
	to = at_us(t, last);
	if (shaded)
		svg_rect(t->out, "strip", from, 0, to - from, bottom);
	if (to - from > STRIP_ROOM * (double)strlen(name))
		svg_text(t->out, "x", (from + to) / 2, 14, SVG_MIDDLE, name);
}

static void draw(struct timeline *t)
{
	double bottom = TOP + FIGURE_ROW * (double)(t->lanes + t->unplaced);
	_cleanup_free_ char *words = xasprintf(
		_("Time line of %zu attempts on %zu nodes, %zu of them void or lost."),
		t->r->n_runs, t->r->n_hosts, t->in_vain);

	svg_begin(t->out, FIGURE_WIDTH, bottom + 24, words);
	for (size_t i = 0; i < t->r->n_stages; i++)
		draw_stage(t, &t->r->stages[i], bottom, i % 2 == 0);
	draw_axis(t, bottom);
	for (size_t i = 0; i < t->lanes; i++) {
		_cleanup_free_ char *name = html_figure_label(t->r->hosts[i].node, LABEL_MOST);

		svg_text(t->out, "name", LABEL, lane_y(i) + 4, SVG_END, name);
	}
	if (t->unplaced)
		svg_text(t->out, "y", LABEL, lane_y(t->lanes) + 4, SVG_END, _("node not told"));
	for (size_t i = 0; i < t->r->n_runs; i++)
		if (ran(&t->r->runs[i]))
			draw_run(t, &t->r->runs[i]);
	svg_end(t->out);
}

static void cell_nodes(const struct report *r, const struct run_row *v, struct doc *doc)
{
	size_t n;
	const struct place_row *p = report_places(r, v->allocation, &n);

	doc_cell_begin(doc);
	for (size_t i = 0; i < n; i++) {
		if (i)
			doc_str(doc, ", ");
		doc_text(doc, p[i].node);
	}
	if (n == 0)
		doc_text(doc, "-");
	doc_cell_end(doc);
}

static void draw_table(const struct timeline *t)
{
	static const struct doc_column c[] = {{"stage", false},  {"block", true},
					      {"attempt", true}, {"state", false},
					      {"reason", false}, {"began", false},
					      {"took, s", true}, {"nodes", false}};
	struct doc doc = {.writer = &html_doc_writer, .out = t->out};

	html_figure_table(t->out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < t->r->n_runs && i < ROWS_MOST; i++) {
		const struct run_row *v = &t->r->runs[i];
		const struct report_stage *s = stage_of(t->r, v->stage);
		char began[DOC_FIGURES_MAX];

		doc_row(&doc);
		doc_cell_printf(&doc, "%d, %s", s ? s->seq : 0,
				s ? lang_word("stage_kind", stage_kind_name(s->kind)) : "");
		doc_cell_i64(&doc, v->block + 1);
		doc_cell_i64(&doc, v->attempt);
		doc_cell(&doc, lang_word("attempt_state", attempt_state_name(v->state)));
		doc_cell_recorded(&doc, v->reason);
		doc_cell(&doc, doc_time_text(began, v->start_us));
		doc_cell_number(&doc, ran(v) ? (double)(v->end_us - v->start_us) / S_US : NAN);
		cell_nodes(t->r, v, &doc);
	}
	doc_end(&doc);
	html_figure_table_end(t->out);
}

void html_timeline(const struct report *r, struct buf *out)
{
	struct timeline t = {.r = r, .out = out};
	_cleanup_free_ char *how = NULL;
	char began[DOC_FIGURES_MAX];

	if (!measure(&t))
		return;
	how = xasprintf(_("Attempts at blocks on each node, since %s. Crossed out: the %zu of %zu "
			  "that were void or lost; a diamond: a trial failed in it.%s"),
			doc_time_text(began, t.first_us), t.in_vain, r->n_runs,
			r->n_hosts > LANES_MOST ? _(" Further nodes are in the table.") : "");
	html_figure_begin(out, _("When it ran, and where"), how);
	draw(&t);
	draw_table(&t);
}
