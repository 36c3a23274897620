/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

enum { WIDTH_DEFAULT = 80, WIDTH_MAX = 400 };

static const char *const step_names[] = {"",           "baseline",   "hypothesis",
					 "experiment", "validation", "fixing"};

void progress_init(struct progress_view *v, FILE *out, bool json, bool quiet)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool tty = isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;

	memset(v, 0, sizeof *v);
	v->out = out;
	v->style = json ? STYLE_JSON : quiet ? STYLE_QUIET : tty ? STYLE_LIVE : STYLE_PLAIN;
	v->colour = v->style == STYLE_LIVE && !(no_color && *no_color);
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

	/* Blocks come and go on the live line; as lines they are for logs. */
	if (v->style == STYLE_LIVE && p->kind == PROGRESS_BLOCK)
		return;
	clear_line(v);
	fprintf(v->out, "%s[%3lld:%02lld] %s%s%s%s\n", v->colour ? colour_of(p) : "",
		(long long)(s / 60), (long long)(s % 60),
		p->kind == PROGRESS_STEP && p->step ? "== " : "   ",
		p->kind == PROGRESS_BLOCK && p->stage ? p->stage : "",
		p->kind == PROGRESS_BLOCK && p->stage ? ": " : "", p->text);
	if (v->colour)
		fputs("\033[0m", v->out);
	fflush(v->out);
}

/* "block N (attempt M) started" and "block N done" bracket a block. */
static void time_blocks(struct progress_view *v, const struct progress *p)
{
	if (p->kind != PROGRESS_BLOCK)
		return;
	if (strstr(p->text, " started")) {
		v->block_start_us = p->at_us;
	} else if (strstr(p->text, " done") && v->block_start_us) {
		double s = (double)(p->at_us - v->block_start_us) / 1e6;

		v->block_s = (v->block_s * v->blocks_timed + s) / (v->blocks_timed + 1);
		v->blocks_timed++;
		v->block_start_us = 0;
	}
}

void progress_tell(void *ctx, const struct progress *p)
{
	struct progress_view *v = ctx;

	if (!v->start_us)
		v->start_us = p->at_us;
	time_blocks(v, p);
	if (!p->stage || strcmp(p->stage, v->stage) != 0) {
		v->block_s = 0;
		v->blocks_timed = 0;
	}
	snprintf(v->stage, sizeof v->stage, "%s", p->stage ? p->stage : "");
	v->last = *p;
	v->last.text = NULL;
	v->last.stage = v->stage;
	if (v->style == STYLE_JSON)
		tell_json(v, p);
	else if (v->style != STYLE_QUIET)
		tell_line(v, p);
	progress_tick(v, p->at_us);
}

static size_t width(const struct progress_view *v)
{
	struct winsize w;

	if (ioctl(fileno(v->out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		return w.ws_col < WIDTH_MAX ? w.ws_col : WIDTH_MAX;
	return WIDTH_DEFAULT;
}

static void effect_text(const struct progress *p, char *out, size_t n)
{
	out[0] = '\0';
	if (isfinite(p->est) && isfinite(p->lo) && isfinite(p->hi))
		snprintf(out, n, " | %+.1f %% [%+.1f, %+.1f]", 100 * p->est, 100 * p->lo,
			 100 * p->hi);
}

/* At most so long: the stage's planned blocks at the mean time of those that ended. */
static void left_text(const struct progress_view *v, int64_t now_us, char *out, size_t n)
{
	const struct progress *p = &v->last;
	double s = v->block_s * (p->blocks_planned - p->blocks_done);

	out[0] = '\0';
	if (!(v->block_s > 0))
		return;
	if (v->block_start_us)
		s -= (double)(now_us - v->block_start_us) / 1e6;
	snprintf(out, n, " | stage: at most %.0f s left", s > 0 ? s : 0);
}

void progress_cost(double node_s, char *out, size_t n)
{
	if (node_s < 360)
		snprintf(out, n, "%.0f node-s", node_s);
	else
		snprintf(out, n, "%.2f node-h", node_s / 3600);
}

void progress_tick(struct progress_view *v, int64_t now_us)
{
	const struct progress *p = &v->last;
	char line[WIDTH_MAX + 1], effect[80], left[64], cost[32];
	int64_t s = (now_us - v->start_us) / 1000000;
	size_t cols = width(v);

	if (v->style != STYLE_LIVE || !v->start_us)
		return;
	effect_text(p, effect, sizeof effect);
	left_text(v, now_us, left, sizeof left);
	progress_cost(p->node_s, cost, sizeof cost);
	snprintf(line, sizeof line, "[%3lld:%02lld] %d/5 %s, %s block %d of %d%s | %s%s",
		 (long long)(s / 60), (long long)(s % 60), p->step,
		 p->step >= 1 && p->step <= 5 ? step_names[p->step] : "start",
		 p->stage && *p->stage ? p->stage : "-", p->blocks_done + (v->block_start_us != 0),
		 p->blocks_planned, effect, cost, left);
	if (strlen(line) >= cols)
		line[cols - 1] = '\0';
	fprintf(v->out, "\r\033[K%s", line);
	fflush(v->out);
	v->line_open = true;
}

void progress_end(struct progress_view *v)
{
	clear_line(v);
	fflush(v->out);
}
