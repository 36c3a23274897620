/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/terminal.h"
#include "orchestrator/report/text.h"

static const char *const step_names[] = {"",           "baseline",   "hypothesis",
					 "experiment", "validation", "fixing"};

void progress_init(struct progress_view *v, FILE *out, bool json, bool quiet)
{
	memset(v, 0, sizeof *v);
	v->out = out;
	v->style = json                 ? STYLE_JSON
		   : quiet              ? STYLE_QUIET
		   : terminal_live(out) ? STYLE_LIVE
					: STYLE_PLAIN;
	v->colour = v->style == STYLE_LIVE && terminal_colour(out);
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

static void clear_line(struct progress_view *v)
{
	if (v->line_open)
		fputs("\r\033[K", v->out);
	v->line_open = false;
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

static void tell_line(struct progress_view *v, const struct progress *p)
{
	int64_t s = (p->at_us - v->start_us) / 1000000;
	_cleanup_free_ char *text = text_clean(p->text); /* logs of trials are told in it */

	/* Blocks come and go on the live line; as lines they are for logs. */
	if (v->style == STYLE_LIVE && p->kind == PROGRESS_BLOCK)
		return;
	clear_line(v);
	fprintf(v->out, "%s[%3lld:%02lld] %s%s%s%s\n", v->colour ? colour_of(p) : "",
		(long long)(s / 60), (long long)(s % 60),
		p->kind == PROGRESS_STEP && p->step ? "== " : "   ",
		p->kind == PROGRESS_BLOCK && p->stage ? p->stage : "",
		p->kind == PROGRESS_BLOCK && p->stage ? ": " : "", text);
	if (v->colour)
		fputs("\033[0m", v->out);
	fflush(v->out);
}

/* Blocks of these stages hold two arms each: the time of one is a first guess for the next. */
static bool pairwise(const char *stage)
{
	return str_eq(stage, "aa") || str_eq(stage, "confirm") || str_eq(stage, "final");
}

/* How many blocks "block 1 (attempt 1) started" or "blocks 1 (attempt 1), 2 (attempt 1) started in
 * one allocation" names. */
static int blocks_named(const char *text)
{
	int n = 0;

	while ((text = strstr(text, "(attempt "))) {
		n++;
		text++;
	}
	return n;
}

/* From the first start of a stage to the newest end, shared among those that ended: so it holds for
 * blocks that run beside each other, and one after the other in one job. */
static void time_blocks(struct progress_view *v, const struct progress *p)
{
	if (p->kind != PROGRESS_BLOCK)
		return;
	if (strstr(p->text, " started")) {
		v->running += blocks_named(p->text);
		if (!v->stage_start_us)
			v->stage_start_us = v->block_start_us = p->at_us;
	} else if (strstr(p->text, " done") && v->stage_start_us) {
		v->running -= v->running > 0;
		v->block_start_us = p->at_us;
		v->blocks_timed++;
		v->block_s = (double)(p->at_us - v->stage_start_us) / 1e6 / v->blocks_timed;
		if (pairwise(v->stage))
			v->pair_s = v->block_s;
	}
}

static void enter_stage(struct progress_view *v, const char *stage)
{
	if (stage && strcmp(stage, v->stage) != 0) {
		v->block_s = pairwise(stage) ? v->pair_s : 0;
		v->blocks_timed = v->running = 0;
		v->stage_start_us = v->block_start_us = 0;
	}
	snprintf(v->stage, sizeof v->stage, "%s", stage ? stage : "");
}

void progress_tell(void *ctx, const struct progress *p)
{
	struct progress_view *v = ctx;

	if (!v->start_us)
		v->start_us = p->at_us;
	enter_stage(v, p->stage);
	time_blocks(v, p);
	v->last = *p;
	v->last.text = NULL;
	v->last.stage = v->stage;
	if (v->style == STYLE_JSON)
		tell_json(v, p);
	else if (v->style != STYLE_QUIET)
		tell_line(v, p);
	progress_tick(v, p->at_us);
}

static void effect_text(const struct progress *p, char *out, size_t n)
{
	out[0] = '\0';
	if (isfinite(p->est) && isfinite(p->lo) && isfinite(p->hi))
		snprintf(out, n, " | %+.1f %% [%+.1f, %+.1f]", 100 * p->est, 100 * p->lo,
			 100 * p->hi);
}

static void duration(double s, char *out, size_t n)
{
	if (s < 120)
		snprintf(out, n, "%.0f s", s > 1 ? ceil(s) : 1);
	else if (s < 7200)
		snprintf(out, n, "%.0f min", s / 60);
	else
		snprintf(out, n, "%.1f h", s / 3600);
}

/* At most so long: the stage's planned blocks at the rate of those that ended. */
static void left_text(const struct progress_view *v, int64_t now_us, const char *before,
		      const char *after, char *out, size_t n)
{
	const struct progress *p = &v->last;
	double s = v->block_s * (p->blocks_planned - p->blocks_done);
	char time[32];

	out[0] = '\0';
	if (!(v->block_s > 0) || !v->stage[0])
		return;
	if (v->running > 0)
		s -= (double)(now_us - v->block_start_us) / 1e6;
	duration(s, time, sizeof time);
	snprintf(out, n, " | %s%s%s", before, time, after);
}

static void head_text(const struct progress_view *v, int64_t now_us, bool wide, char *out, size_t n)
{
	const struct progress *p = &v->last;
	bool named = p->step >= 1 && p->step <= 5;
	long long s = (now_us - v->start_us) / 1000000;
	char step[40] = "starting", stage[80] = "";

	if (named)
		snprintf(step, sizeof step, "%d/5%s%s", p->step, wide || !v->stage[0] ? " " : "",
			 wide || !v->stage[0] ? step_names[p->step] : "");
	if (v->stage[0])
		snprintf(stage, sizeof stage, "%s%s, block %d of %s%d", wide ? ": " : " ", v->stage,
			 p->blocks_done + (v->running > 0),
			 wide && str_eq(v->stage, "confirm") ? "at most " : "", p->blocks_planned);
	snprintf(out, n, "[%3lld:%02lld] %s%s", s / 60, s % 60, step, stage);
}

void progress_cost(double node_s, char *out, size_t n)
{
	if (node_s < 360)
		snprintf(out, n, _("%.0f node-s"), node_s);
	else
		snprintf(out, n, _("%.2f node-h"), node_s / 3600);
}

/* The widest of these that fits: the effect is what people wait for, so it goes last. */
static void compose(const struct progress_view *v, int64_t now_us, size_t cols, char *out, size_t n)
{
	char head[2][160], left[2][80], effect[80], sum[32], cost[40];

	for (int wide = 0; wide < 2; wide++)
		head_text(v, now_us, wide, head[wide], sizeof head[wide]);
	left_text(v, now_us, "stage: at most ", " left", left[1], sizeof left[1]);
	left_text(v, now_us, "< ", " left", left[0], sizeof left[0]);
	effect_text(&v->last, effect, sizeof effect);
	progress_cost(v->last.node_s, sum, sizeof sum);
	snprintf(cost, sizeof cost, " | %s", sum);

	const char *const parts[][4] = {
		{head[1], effect, cost, left[1]}, {head[1], effect, cost, left[0]},
		{head[0], effect, cost, left[0]}, {head[0], effect, left[0], ""},
		{head[0], effect, "", ""},        {head[0], "", "", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(out, n, "%s%s%s%s", parts[i][0], parts[i][1], parts[i][2], parts[i][3]);
		if (strlen(out) < cols)
			return;
	}
	out[cols < n ? cols - 1 : n - 1] = '\0';
}

void progress_tick(struct progress_view *v, int64_t now_us)
{
	char line[TERMINAL_WIDTH_MAX + 1];

	if (v->style != STYLE_LIVE || !v->start_us)
		return;
	compose(v, now_us, terminal_width(v->out), line, sizeof line);
	fprintf(v->out, "\r\033[K%s", line);
	fflush(v->out);
	v->line_open = true;
}

void progress_end(struct progress_view *v)
{
	clear_line(v);
	fflush(v->out);
}
