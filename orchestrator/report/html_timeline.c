/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the blocks ran: a lane a stage, void and lost attempts marked. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/recorded.h"

enum {
	TOP = 8,
	LABEL = 110,
	BAR = 14,
	TICKS = 5,
	TICKS_MAX = 12,
	LANES_MOST = 40,    /* stages: the first, then a sentence */
	BARS_MOST = 5000,   /* of the page: some 100 bytes each, without titles beyond the next */
	TITLES_MOST = 1000, /* bars that tell what they are */
};
#define S_US      1e6
#define BAR_LEAST 1.5 /* so that it is seen at all */

struct timeline {
	const struct report *r;
	struct svg_axis x; /* seconds since the first began */
	int64_t first_us;
	size_t in_vain, lanes;
	struct buf *out;
};

static bool ran(const struct run_row *v)
{
	return v->start_us > 0 && v->end_us >= v->start_us;
}

static bool measure(struct timeline *t)
{
	int64_t last_us = 0;

	for (size_t i = 0; i < t->r->n_runs; i++) {
		const struct run_row *v = &t->r->runs[i];

		if (!ran(v))
			continue;
		if (t->first_us == 0 || v->start_us < t->first_us)
			t->first_us = v->start_us;
		if (v->end_us > last_us)
			last_us = v->end_us;
		t->in_vain += v->state == ATTEMPT_VOID || v->state == ATTEMPT_LOST;
	}
	if (last_us <= t->first_us)
		return false;
	t->x = (struct svg_axis){0, (double)(last_us - t->first_us) / S_US, LABEL + 10,
				 FIGURE_WIDTH - 20};
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

static void draw_bar(const struct timeline *t, const struct run_row *v, double y, bool titled)
{
	bool vain = v->state == ATTEMPT_VOID || v->state == ATTEMPT_LOST;
	double from = svg_at(&t->x, (double)(v->start_us - t->first_us) / S_US);
	double to = svg_at(&t->x, (double)(v->end_us - t->first_us) / S_US);
	const char *class = vain ? "vain" : v->state == ATTEMPT_VALID ? "ran" : "open";
	struct buf title = {0};

	/* A gap between neighbours, where there is room for one. */
	if (to - from > 3)
		to -= 1;
	if (titled)
		bar_title(v, &title);
	svg_rect_titled(t->out, class, from, y - BAR / 2.0, fmax(to - from, BAR_LEAST), BAR,
			titled ? title.data : NULL);
	buf_free(&title);
}

static void draw_lane(const struct timeline *t, const struct report_stage *s, double y,
		      size_t *bars)
{
	_cleanup_free_ char *name = xasprintf("%d %s", s->seq,
					      lang_word("stage_kind", stage_kind_name(s->kind)));

	svg_text(t->out, "name", LABEL, y + 4, SVG_END, name);
	for (size_t i = 0; i < t->r->n_runs && *bars < BARS_MOST; i++)
		if (t->r->runs[i].stage == s->id && ran(&t->r->runs[i]))
			draw_bar(t, &t->r->runs[i], y, (*bars)++ < TITLES_MOST);
}

static void draw(const struct timeline *t)
{
	double bottom = TOP + FIGURE_ROW * (double)t->lanes;
	_cleanup_free_ char *words = xasprintf(
		_("Time line of %zu attempts in %zu stages, %zu of them void or lost."),
		t->r->n_runs, t->r->n_stages, t->in_vain);
	size_t bars = 0;

	svg_begin(t->out, FIGURE_WIDTH, bottom + 24, words);
	draw_axis(t, bottom);
	for (size_t i = 0; i < t->lanes; i++)
		draw_lane(t, &t->r->stages[i], TOP + FIGURE_ROW * ((double)i + 0.5), &bars);
	svg_end(t->out);
}

void html_timeline(const struct report *r, struct buf *out)
{
	struct timeline t = {.r = r, .out = out};
	_cleanup_free_ char *how = NULL;
	char began[40];

	if (!measure(&t))
		return;
	t.lanes = r->n_stages < LANES_MOST ? r->n_stages : LANES_MOST;
	clock_iso(t.first_us, began, sizeof began);
	how = xasprintf(_("Attempts at blocks, a lane a stage, since %.10s %.8s UTC. %zu of %zu "
			  "were void or lost, in red.%s"),
			began, began + 11, t.in_vain, r->n_runs,
			r->n_stages > LANES_MOST ? _(" Later stages are left out.") : "");
	html_figure_begin(out, "When it ran", how);
	draw(&t);
	html_figure_end(out);
}
