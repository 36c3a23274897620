/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/progress.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

enum {
	/* Shortest time between two readings of the database, and between two drawings: a person
	 * sees no more, and a campaign on scheduler fake tells a thousand things a second. */
	LOAD_US = 400000,
	DRAW_US = 100000,
};

void progress_init(struct progress_view *v, FILE *out, bool json, bool quiet,
		   enum terminal_colours when)
{
	memset(v, 0, sizeof *v);
	v->out = out;
	v->screen.out = out;
	v->style = json                 ? STYLE_JSON
		   : quiet              ? STYLE_QUIET
		   : terminal_live(out) ? STYLE_LIVE
					: STYLE_PLAIN;
	v->colour = v->style != STYLE_JSON && terminal_colour(out, when);
}

void progress_follow(struct progress_view *v, struct workspace *w, int64_t campaign,
		     const struct recipe *recipe)
{
	view_done(&v->view);
	v->loaded = false;
	v->stale = true;
	v->w = w;
	v->campaign = campaign;
	v->recipe = recipe;
}

static const char *colour_of(const struct progress *p)
{
	switch (p->kind) {
	case PROGRESS_STEP:
		return "\033[1m";
	case PROGRESS_VERDICT:
		return strstr(p->text, "accepted")  ? "\033[32m"
		       : strstr(p->text, "invalid") ? "\033[35m"
						    : "\033[33m";
	case PROGRESS_NOTE:
		return "\033[2m";
	case PROGRESS_STAGE:
	case PROGRESS_BLOCK:
		break;
	}
	return "";
}

static void tell_json(struct progress_view *v, const struct progress *p)
{
	static const char *const kinds[] = {"step", "stage", "block", "verdict", "note"};
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL;

	json_set_i64(o, "at_us", p->at_us);
	json_set_text(o, "kind", kinds[p->kind]);
	json_set_i64(o, "step", p->step);
	json_set_text(o, "stage", p->stage);
	json_set_text(o, "text", p->text);
	json_set_i64(o, "blocks_done", p->blocks_done);
	json_set_i64(o, "blocks_planned", p->blocks_planned);
	json_set_number(o, "effect", p->est);
	json_set_number(o, "effect_lo", p->lo);
	json_set_number(o, "effect_hi", p->hi);
	json_set_number(o, "node_s", p->node_s);
	text = json_print(o, false);
	fprintf(v->out, "%s\n", text);
	fflush(v->out);
}

static void draw(struct progress_view *v, int64_t now_us)
{
	const struct view_style style = {
		.width = terminal_width(v->out), .ascii = !terminal_utf8(), .colour = v->colour};
	size_t rows = terminal_rows(v->out);
	struct strv lines = {0};

	view_lines(&v->view, now_us, &style, &lines);
	screen_draw(&v->screen, &lines, rows > 2 ? rows - 2 : 0);
	strv_free(&lines);
	v->drawn_us = now_us;
}

/* Names in the text come from recipes and logs. */
static void put_line(struct progress_view *v, const char *head, const char *text,
		     const char *colour)
{
	struct buf b = {0};

	if (v->colour)
		buf_str(&b, colour);
	buf_str(&b, head);
	text_line(&b, text);
	if (v->colour && *colour)
		buf_str(&b, "\033[0m");
	buf_char(&b, '\n');
	screen_say(&v->screen, b.data);
	buf_free(&b);
	if (v->style == STYLE_LIVE && v->loaded && terminal_foreground(v->out))
		draw(v, clock_utc_us(v->w->clock));
}

static void tell_line(struct progress_view *v, const struct progress *p)
{
	int64_t s = (p->at_us - v->start_us) / 1000000;
	bool block = p->kind == PROGRESS_BLOCK;
	char head[80];

	/* Blocks come and go in the view; as lines they are for logs. */
	if (v->style == STYLE_LIVE && block)
		return;
	snprintf(head, sizeof head, "[%3lld:%02lld] %s%s%s", (long long)(s / 60),
		 (long long)(s % 60), p->kind == PROGRESS_STEP && p->step ? "== " : "   ",
		 block && p->stage ? p->stage : "", block && p->stage ? ": " : "");
	put_line(v, head, p->text, colour_of(p));
}

void progress_tell(void *ctx, const struct progress *p)
{
	struct progress_view *v = ctx;

	if (!v->start_us)
		v->start_us = p->at_us;
	v->stale = true;
	if (v->style == STYLE_JSON)
		tell_json(v, p);
	else if (v->style != STYLE_QUIET)
		tell_line(v, p);
}

void progress_cost(double node_s, char *out, size_t n)
{
	if (node_s < 360)
		snprintf(out, n, _("%.0f node-s"), node_s);
	else
		snprintf(out, n, _("%.2f node-h"), node_s / 3600);
}

/* Clocks may be set back: what lies in the future is long ago, too. */
static bool is_due(int64_t now_us, int64_t last_us, int64_t period_us)
{
	return now_us < last_us || now_us - last_us >= period_us;
}

/* What cannot be read now is read at the next tick; the view as it was stays. */
static void refresh(struct progress_view *v, int64_t now_us)
{
	struct view fresh;

	if (v->loaded && !(v->stale && is_due(now_us, v->loaded_us, LOAD_US)))
		return;
	v->loaded_us = now_us;
	if (view_load(v->w, v->campaign, v->recipe, &fresh, NULL) < 0)
		return;
	view_done(&v->view);
	v->view = fresh;
	v->loaded = true;
	v->stale = false;
}

void progress_tick(struct progress_view *v, int64_t now_us)
{
	if (v->style != STYLE_LIVE || !v->w || v->screen.gone)
		return;
	if (v->screen.shown && !is_due(now_us, v->drawn_us, DRAW_US))
		return;
	if (!terminal_foreground(v->out)) {
		v->screen.shown = 0; /* the shell has written over it */
		return;
	}
	refresh(v, now_us);
	if (v->loaded)
		draw(v, now_us);
}

void progress_touch(struct progress_view *v)
{
	v->stale = true;
	v->drawn_us = 0;
}

void progress_hide(struct progress_view *v)
{
	if (v->style == STYLE_LIVE)
		screen_clear(&v->screen);
}

void progress_end(struct progress_view *v)
{
	progress_hide(v);
	fflush(v->out);
	view_done(&v->view);
	v->loaded = false;
	v->w = NULL;
}
