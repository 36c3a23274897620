/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/cmd/viewpen.h"

enum {
	NARROWEST = 20, /* columns, however narrow the terminal */
	PIPED = 80,     /* of the heading where lines are as long as they are */
	BAR = 24,       /* of the blocks */
	SPARK_MIN = 16, /* of the sparkline beside its text */
	HALVES = 4,     /* half-widths that are told */
	/* pairs from which an interval sets the scale: two give one that is huge */
	SCALE_FROM = 3,
	AXIS_LABEL = 16, /* "-100 %" */
};

void view_duration(double s, char *out, size_t n)
{
	if (s < 120)
		snprintf(out, n, "%.0f s", s > 1 ? ceil(s) : 1);
	else if (s < 7200)
		snprintf(out, n, "%.0f min", s / 60);
	else
		snprintf(out, n, "%.1f h", s / 3600);
}

/* -- what it says -------------------------------------------------------------------------------
 */

static int blocks_left(const struct view *v)
{
	return v->blocks_planned > v->blocks_done ? v->blocks_planned - v->blocks_done : 0;
}

double view_left_s(const struct view *v, int64_t now_us)
{
	double s = v->block_s * blocks_left(v);

	if (!v->stage || !(v->block_s > 0))
		return NAN;
	if (v->block_start_us && now_us > v->block_start_us)
		s -= fmin((double)(now_us - v->block_start_us) / 1e6, v->block_s);
	return fmax(s, 0);
}

/* With a decimal where it says something: 2.3 min. */
static void block_duration(double s, char *out, size_t n)
{
	if (s < 10)
		snprintf(out, n, "%.1f s", s);
	else if (s >= 120 && s < 600)
		snprintf(out, n, "%.1f min", s / 60);
	else
		view_duration(s, out, n);
}

char *view_left_text(const struct view *v, int64_t now_us)
{
	double s = view_left_s(v, now_us);
	int n = blocks_left(v);
	char left[16], each[16];

	if (isnan(s))
		return NULL;
	view_duration(s, left, sizeof left);
	block_duration(v->block_s, each, sizeof each);
	return xasprintf("about %s: %s%d block%s at %s%s%s", left, v->at_most ? "at most " : "", n,
			 n == 1 ? "" : "s", each, v->basis ? ", as in " : "",
			 v->basis ? v->basis : "");
}

char *view_blocks_text(const struct view *v)
{
	return xasprintf("%d of %s%d blocks", v->blocks_done, v->at_most ? "at most " : "",
			 v->blocks_planned);
}

char *view_stage_text(const struct view *v)
{
	_cleanup_free_ char *blocks = view_blocks_text(v);

	if (v->stage)
		return xasprintf("%s, %s", v->stage, blocks);
	return xstrdup(v->note ? v->note : "not begun");
}

static char *change_text(const struct view *v, const char *arrow)
{
	if (v->knob)
		return xasprintf("%s %s %s %s", v->knob, v->from ? v->from : "default", arrow,
				 v->to ? v->to : "");
	return v->about ? xstrdup(v->about) : NULL;
}

/* -- the lines, from the top --------------------------------------------------------------------
 */

static const char *const step_names[] = {"",           "baseline",   "hypothesis",
					 "experiment", "validation", "fixing"};
enum { STEPS = 5 };

static enum pen_colour state_colour(const struct view *v)
{
	return str_eq(v->state, "done")     ? PEN_GOOD
	       : str_eq(v->state, "failed") ? PEN_BAD
	       : v->running                 ? PEN_STRONG
					    : PEN_OPEN;
}

static void heading(struct pen *p, const struct view *v, int64_t now_us)
{
	int64_t s = ((v->ended_us ? v->ended_us : now_us) - v->created_us) / 1000000;
	_cleanup_free_ char *what = xasprintf("campaign %lld on %s, %s", (long long)v->id,
					      v->scheduler, v->state);
	char clock[40];

	snprintf(clock, sizeof clock, "%lld:%02lld:%02lld", (long long)s / 3600,
		 (long long)s / 60 % 60, (long long)s % 60);
	pen_rule(p, v->name, state_colour(v), what, clock);
}

static const char *step_mark(const struct pen *p, const struct view *v, int step,
			     enum pen_colour *colour)
{
	*colour = PEN_DIM;
	if (step > v->step)
		return pen_sign(p, "·", ".");
	if (step < v->step && !(v->steps & 1u << step))
		return pen_sign(p, "–", "-");
	if (step < v->step) {
		*colour = PEN_GOOD;
		return pen_sign(p, "✓", "+");
	}
	*colour = state_colour(v);
	if (v->running)
		return pen_sign(p, "▸", ">");
	return str_eq(v->state, "failed") ? pen_sign(p, "✗", "x") : pen_sign(p, "‖", "=");
}

static void steps(struct pen *p, const struct view *v)
{
	size_t wide = 0;
	bool named;

	for (int i = 1; i <= STEPS; i++)
		wide += strlen(step_names[i]) + 4;
	named = wide <= p->limit;
	for (int i = 1; i <= STEPS; i++) {
		enum pen_colour colour;
		const char *mark = step_mark(p, v, i, &colour);

		pen_text(p, mark, colour);
		if (named) {
			pen_text(p, " ", PEN_PLAIN);
			pen_text(p, step_names[i], i == v->step ? colour : PEN_DIM);
			pen_text(p, i < STEPS ? "  " : "", PEN_PLAIN);
		}
	}
	if (!named && v->step >= 1 && v->step <= STEPS) {
		_cleanup_free_ char *text = xasprintf(" %s, %d of %d", step_names[v->step], v->step,
						      STEPS);

		pen_text(p, text, PEN_PLAIN);
	}
	pen_end(p);
}

static void now(struct pen *p, const struct view *v)
{
	_cleanup_free_ char *change = change_text(v, pen_sign(p, "→", "->"));
	_cleanup_free_ char *round = v->round > 1 ? xasprintf("round %d", v->round) : NULL;
	_cleanup_free_ char *arms = NULL;

	pen_label(p, v->stage ? v->stage : "last");
	if (!v->stage) {
		pen_part(p, v->note ? v->note : "nothing was begun yet", PEN_PLAIN);
		pen_end(p);
		return;
	}
	if (v->arms > 1 && change)
		arms = xasprintf("%zu candidates, ahead: %s", v->arms, change);
	pen_part(p, arms ? arms : change, PEN_STRONG);
	pen_part(p, round, PEN_PLAIN);
	pen_end(p);
}

static void blocks(struct pen *p, const struct view *v)
{
	int width = v->blocks_planned < BAR ? v->blocks_planned : BAR;
	_cleanup_free_ char *done = NULL, *running = NULL;

	if (!v->stage || v->blocks_planned <= 0)
		return;
	pen_label(p, "blocks");
	for (int i = 0; i < width; i++) {
		bool full = (i + 1) * v->blocks_planned <= v->blocks_done * width;

		pen_text(p, full ? pen_sign(p, "█", "#") : pen_sign(p, "░", "."),
			 full ? PEN_DATA : PEN_DIM);
	}
	pen_text(p, " ", PEN_PLAIN);
	done = xasprintf("%d of %s%d", v->blocks_done, v->at_most ? "at most " : "",
			 v->blocks_planned);
	pen_part(p, done, PEN_PLAIN);
	if (v->blocks_running)
		running = xasprintf("%d in flight", v->blocks_running);
	pen_part(p, running, PEN_PLAIN);
	pen_end(p);
}

/* -- the interval -------------------------------------------------------------------------------
 */

static enum pen_colour effect_colour(const struct view_interval *i)
{
	return i->lo > 0 ? PEN_GOOD : i->hi < 0 ? PEN_BAD : PEN_OPEN;
}

/* "± 5.3 → 3.1 → 1.8 %": how the interval shrinks, from the first to the newest. */
static char *halves(const struct pen *p, const struct view *v)
{
	size_t first = v->n_effect > 2 ? 1 : 0, n = v->n_effect - first;
	size_t told = n < HALVES ? n : HALVES;
	struct buf b = {0};

	buf_str(&b, pen_sign(p, "±", "+-"));
	for (size_t i = 0; i < told; i++) {
		size_t at = first + (told > 1 ? i * (n - 1) / (told - 1) : n - 1);
		const struct view_interval *e = &v->effect[at];

		buf_printf(&b, "%s%s%.1f", i ? " " : "", i ? pen_sign(p, "→ ", "> ") : " ",
			   50 * (e->hi - e->lo));
	}
	buf_str(&b, " %");
	return buf_take(&b);
}

/* The next of 1, 2, 5, 10, ... per cent, as a share. */
static double nice(double share)
{
	static const double steps_pct[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};

	for (size_t i = 0; i < ARRAY_LEN(steps_pct); i++)
		if (100 * share <= steps_pct[i])
			return steps_pct[i] / 100;
	return 10;
}

/* All intervals from the third pair on fit, so that the scale stays while the interval shrinks. */
static void scale(const struct view *v, double *left, double *right)
{
	double lo = -1.5 * v->band, hi = 1.5 * v->band;

	for (size_t i = 0; i < v->n_effect; i++)
		if (v->effect[i].pairs >= SCALE_FROM || i == v->n_effect - 1) {
			lo = fmin(lo, v->effect[i].lo);
			hi = fmax(hi, v->effect[i].hi);
		}
	*left = -fmin(nice(fmax(-lo, 0.01)), 1);
	*right = nice(fmax(hi, 0.01));
}

struct axis {
	double left, right;
	size_t columns;
};

static long column_of(const struct axis *a, double x)
{
	double at = (x - a->left) / (a->right - a->left) * (double)(a->columns - 1);

	return lround(fmin(fmax(at, -1), (double)a->columns));
}

/* What stands in a column: the estimate before the interval before zero before the band. */
static void axis_cell(struct pen *p, const struct axis *a, const struct view *v, long x)
{
	const struct view_interval *e = &v->effect[v->n_effect - 1];
	long lo = column_of(a, e->lo), hi = column_of(a, e->hi), zero = column_of(a, 0);
	bool inside = x >= lo && x <= hi,
	     cut = (x == 0 && lo < 0) || (x == (long)a->columns - 1 && hi > x);

	if (inside && cut)
		pen_text(p, x == 0 ? pen_sign(p, "◂", "<") : pen_sign(p, "▸", ">"),
			 effect_colour(e));
	else if (x == column_of(a, e->est))
		pen_text(p, pen_sign(p, "●", "o"), effect_colour(e));
	else if (inside)
		pen_text(p, x == zero ? pen_sign(p, "┿", "+") : pen_sign(p, "━", "="),
			 effect_colour(e));
	else if (x == zero)
		pen_text(p, pen_sign(p, "│", "|"), PEN_PLAIN);
	else if (x >= column_of(a, -v->band) && x <= column_of(a, v->band))
		pen_text(p, pen_sign(p, "░", ":"), PEN_DIM);
	else
		pen_text(p, " ", PEN_PLAIN);
}

static void draw_interval(struct pen *p, const struct view *v)
{
	struct axis a;
	char left[AXIS_LABEL], right[AXIS_LABEL];
	size_t room, around;

	scale(v, &a.left, &a.right);
	snprintf(left, sizeof left, "%.0f %% ", 100 * a.left);
	snprintf(right, sizeof right, " %+.0f %%", 100 * a.right);
	around = PEN_LABEL + strlen(left) + strlen(right);
	room = p->limit > around ? p->limit - around : 0;
	a.columns = room < VIEW_DRAWN ? room : VIEW_DRAWN;
	if (a.columns < 8)
		return;
	pen_label(p, "");
	pen_text(p, left, PEN_DIM);
	for (size_t x = 0; x < a.columns; x++)
		axis_cell(p, &a, v, (long)x);
	pen_text(p, right, PEN_DIM);
	pen_end(p);
}

static void effect(struct pen *p, const struct view *v)
{
	const struct view_interval *e = v->n_effect ? &v->effect[v->n_effect - 1] : NULL;
	_cleanup_free_ char *text = NULL, *pairs = NULL, *shrinks = NULL;

	if (!e)
		return;
	text = xasprintf("%+.1f %% [%+.1f, %+.1f]", 100 * e->est, 100 * e->lo, 100 * e->hi);
	pairs = xasprintf("%zu pairs", e->pairs);
	shrinks = halves(p, v);
	pen_label(p, "effect");
	pen_part(p, text, effect_colour(e));
	pen_part(p, pairs, PEN_PLAIN);
	if (v->n_effect > 1)
		pen_part(p, shrinks, PEN_DIM);
	pen_end(p);
	draw_interval(p, v);
}

/* -- the trials ---------------------------------------------------------------------------------
 */

static void spark_cell(struct pen *p, double value, double lo, double hi)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
	double at = hi > lo ? (value - lo) / (hi - lo) : 0.5;
	size_t level = (size_t)lround(at * (double)(ARRAY_LEN(bars) - 1));

	pen_text(p, pen_sign(p, bars[level], plain[level]), PEN_DATA);
}

static void spark(struct pen *p, const struct view *v, size_t width)
{
	size_t from = v->n_trials > width ? v->n_trials - width : 0;
	double lo = INFINITY, hi = -INFINITY;

	for (size_t i = from; i < v->n_trials; i++)
		if (isfinite(v->trials[i])) {
			lo = fmin(lo, v->trials[i]);
			hi = fmax(hi, v->trials[i]);
		}
	for (size_t i = from; i < v->n_trials; i++)
		if (isfinite(v->trials[i]))
			spark_cell(p, v->trials[i], lo, hi);
		else
			pen_text(p, pen_sign(p, "×", "x"), PEN_BAD);
}

static double newest(const struct view *v)
{
	for (size_t i = v->n_trials; i-- > 0;)
		if (isfinite(v->trials[i]))
			return v->trials[i];
	return NAN;
}

static void trials(struct pen *p, const struct view *v)
{
	double last = newest(v);
	_cleanup_free_ char *value = NULL, *of = NULL;
	size_t text, room;

	if (v->trials_all == 0)
		return;
	if (v->objective && isfinite(last))
		value = xasprintf("%s %.4g%s%s", v->objective, last, v->unit && *v->unit ? " " : "",
				  v->unit ? v->unit : "");
	of = xasprintf("%lld trial%s%s", (long long)v->trials_all, v->trials_all == 1 ? "" : "s",
		       !value    ? ""
		       : v->down ? ", less is better"
				 : ", more is better");
	pen_label(p, "trials");
	text = pen_width(p, value) + pen_width(p, of) + 3;
	room = p->limit > PEN_LABEL ? p->limit - PEN_LABEL : 0;
	if (v->n_trials) {
		bool beside = room >= text + SPARK_MIN;

		room -= beside ? text : 0;
		spark(p, v, room < VIEW_DRAWN ? room : VIEW_DRAWN);
		if (beside || v->n_trials + text <= room)
			pen_text(p, " ", PEN_PLAIN);
		else
			pen_break(p);
	}
	pen_part(p, value, PEN_PLAIN);
	pen_part(p, of, PEN_PLAIN);
	pen_end(p);
}

/* -- jobs, time, budget, alpha ------------------------------------------------------------------
 */

static void jobs(struct pen *p, const struct view *v)
{
	_cleanup_free_ char *running = NULL, *waiting = NULL;

	if (!v->jobs_running && !v->jobs_waiting)
		return;
	if (v->jobs_running)
		running = xasprintf("%d running%s%s", v->jobs_running, v->nodes ? " on " : "",
				    v->nodes ? v->nodes : "");
	if (v->jobs_waiting)
		waiting = xasprintf("%d waiting", v->jobs_waiting);
	pen_label(p, "jobs");
	pen_part(p, waiting, PEN_PLAIN);
	pen_part(p, running, PEN_PLAIN);
	pen_end(p);
}

static void left(struct pen *p, const struct view *v, int64_t now_us)
{
	_cleanup_free_ char *text = view_left_text(v, now_us);

	if (!v->running || !v->stage)
		return;
	pen_label(p, "left");
	pen_part(p, text ? text : "known when the first block has ended",
		 text ? PEN_PLAIN : PEN_DIM);
	pen_end(p);
}

static enum pen_colour budget_colour(double spent, double bound)
{
	return spent >= bound ? PEN_BAD : spent >= 0.9 * bound ? PEN_OPEN : PEN_PLAIN;
}

static void budget(struct pen *p, const struct view *v, int64_t now_us)
{
	char cost[32], text[80];

	pen_label(p, "budget");
	progress_cost(v->node_s, cost, sizeof cost);
	if (v->budget_node_s > 0)
		snprintf(text, sizeof text, "%.2f of %.4g node-h", v->spent_node_s / 3600,
			 v->budget_node_s / 3600);
	else
		snprintf(text, sizeof text, "%s", cost);
	pen_part(p, text,
		 budget_colour(v->spent_node_s,
			       v->budget_node_s > 0 ? v->budget_node_s : INFINITY));
	if (v->budget_gpu_s > 0) {
		double spent = v->spent_node_s * v->gpus;

		snprintf(text, sizeof text, "%.2f of %.4g GPU-h", spent / 3600,
			 v->budget_gpu_s / 3600);
		pen_part(p, text, budget_colour(spent, v->budget_gpu_s));
	}
	if (v->budget_wall_s > 0 && v->deadline_us) {
		int64_t at = v->ended_us ? v->ended_us : now_us;
		double spent = v->budget_wall_s - (double)(v->deadline_us - at) / 1e6;

		snprintf(text, sizeof text, "%.0f of %.0f min", fmax(spent, 0) / 60,
			 v->budget_wall_s / 60);
		pen_part(p, text, budget_colour(spent, v->budget_wall_s));
	}
	if (v->budget_trials > 0) {
		snprintf(text, sizeof text, "%lld of %lld trials", (long long)v->spent_trials,
			 (long long)v->budget_trials);
		pen_part(p, text, budget_colour((double)v->spent_trials, (double)v->budget_trials));
	}
	pen_end(p);
}

static void alpha(struct pen *p, const struct view *v)
{
	_cleanup_free_ char *spent = xasprintf("%.3g of %.3g spent", v->alpha_spent, v->alpha);
	_cleanup_free_ char *tests = xasprintf("%zu test%s left", v->tests_left,
					       v->tests_left == 1 ? "" : "s");
	_cleanup_free_ char *candidates = NULL;

	if (!(v->alpha > 0)) /* it compares nothing */
		return;
	if (v->candidates)
		candidates = xasprintf("%zu of %zu candidates left", v->candidates_left,
				       v->candidates);
	pen_label(p, "alpha");
	pen_part(p, spent, PEN_PLAIN);
	pen_part(p, tests, PEN_PLAIN);
	pen_part(p, candidates, PEN_PLAIN);
	pen_end(p);
}

static void one(struct pen *p, const char *label, const char *text, enum pen_colour colour)
{
	if (!text)
		return;
	pen_label(p, label);
	pen_part(p, text, colour);
	pen_end(p);
}

void view_lines(const struct view *v, int64_t now_us, const struct view_style *s,
		struct strv *lines)
{
	struct pen p = {.out = lines, .ascii = s->ascii, .colour = s->colour};

	p.limit = s->width == 0 ? SIZE_MAX : s->width > NARROWEST ? s->width - 1 : NARROWEST;
	p.ruled = s->width == 0 ? PIPED : p.limit;
	heading(&p, v, now_us);
	steps(&p, v);
	now(&p, v);
	blocks(&p, v);
	effect(&p, v);
	trials(&p, v);
	jobs(&p, v);
	left(&p, v, now_us);
	budget(&p, v, now_us);
	alpha(&p, v);
	one(&p, "fix", v->fix, PEN_STRONG);
	one(&p, v->running ? "waits" : "why", v->reason, PEN_OPEN);
	if (v->running)
		one(&p, "driver", v->driver ? v->driver : "nobody drives it", PEN_DIM);
	buf_free(&p.line);
}

static void json_interval(const struct view *v, struct json *o)
{
	const struct view_interval *e = v->n_effect ? &v->effect[v->n_effect - 1] : NULL;

	json_set_number(o, "effect", e ? e->est : NAN);
	json_set_number(o, "effect_lo", e ? e->lo : NAN);
	json_set_number(o, "effect_hi", e ? e->hi : NAN);
	json_set_i64(o, "pairs", e ? (int64_t)e->pairs : 0);
	json_set_number(o, "equal_within", e ? v->band : NAN);
}

void view_json(const struct view *v, int64_t now_us, struct json *o)
{
	_cleanup_free_ char *stage = view_stage_text(v), *basis = view_left_text(v, now_us),
			    *change = change_text(v, "->");

	json_set_text(o, "stage", stage);
	json_set_text(o, "step", v->step >= 1 && v->step <= STEPS ? step_names[v->step] : NULL);
	json_set_text(o, "stage_kind", v->stage);
	json_set_i64(o, "blocks_done", v->blocks_done);
	json_set_i64(o, "blocks_planned", v->blocks_planned);
	json_set_i64(o, "blocks_in_flight", v->blocks_running);
	json_set_text(o, "change", change);
	json_interval(v, o);
	json_set_i64(o, "jobs_running", v->jobs_running);
	json_set_i64(o, "jobs_waiting", v->jobs_waiting);
	json_set_text(o, "nodes", v->nodes);
	json_set_number(o, "left_s", v->running ? view_left_s(v, now_us) : NAN);
	json_set_text(o, "left", v->running ? basis : NULL);
	json_set_i64(o, "trials", v->trials_all);
	json_set_number(o, "node_s", v->node_s);
	json_set_number(o, "alpha", v->alpha);
	json_set_number(o, "alpha_spent", v->alpha_spent);
	json_set_i64(o, "tests_left", (int64_t)v->tests_left);
	json_set_i64(o, "candidates", (int64_t)v->candidates);
	json_set_i64(o, "candidates_left", (int64_t)v->candidates_left);
	json_set_text(o, "fix", v->fix);
}
