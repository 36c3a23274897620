/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A campaign at a glance, the same for `run`, `resume`, `watch` and `status`: which of the five
 * steps, what is compared, how far that is and what it shows, jobs, time left, budget, alpha.
 *
 * view_load() reads it from the database (of a running campaign too, read-only), view_lines() makes
 * the lines of it: a pure function of the struct and of what the terminal can show. Names come from
 * recipes and logs: no byte of them acts on a terminal. cmd/screen.h puts lines on one.
 */
#ifndef FETTLE_CMD_VIEW_H
#define FETTLE_CMD_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/workspace.h"
#include "orchestrator/script/script.h"

enum {
	VIEW_TRIALS = 240, /* most values of the sparkline */
	VIEW_DRAWN = 60,   /* columns of a picture, however wide the terminal */
	VIEW_ALL_DONE = 6,
};

/* What a comparison shows after so many pairs: relative effect, + is better, with its plain
 * two-sided 95 % interval, which decides nothing. */
struct view_interval {
	double est, lo, hi;
	size_t pairs;
};

/* Texts are owned; NULL or 0 where nothing is known, NaN for figures. */
struct view {
	int64_t id;
	char *name, *scheduler;
	const char *state; /* "running", ... */
	bool running;
	char *reason;                              /* why it stopped, failed or waits */
	int64_t created_us, ended_us, deadline_us; /* ended_us, deadline_us 0: not, none */
	char *driver; /* "process 12 on login1"; NULL: nobody drives it */

	int step;          /* 1..5; 0: not begun, VIEW_ALL_DONE */
	unsigned steps;    /* bit n: step n was gone through */
	const char *stage; /* kind of the open stage; NULL: none */
	int round;
	char *note; /* what the newest closed stage concluded, when none is open */
	/* What is compared, of a screen the leading arm; from NULL: was not set; knob NULL: `about`
	 * says it. */
	char *knob, *from, *to, *about;
	size_t arms; /* treatments of the open stage */
	int blocks_done, blocks_planned, blocks_running;
	bool at_most; /* the stage may end before its planned blocks */
	/* Of a confirm or final stage, and of the leading arm of a screen: after each pair from the
	 * second on; heap. `band`: what is as good as equal, +-. */
	struct view_interval *effect;
	size_t n_effect;
	double band;

	char *objective, *unit;
	bool down;      /* less of it is better */
	double *trials; /* newest last; NaN: failed; heap */
	size_t n_trials;
	int64_t trials_all;

	int jobs_running, jobs_waiting;
	char *nodes; /* that agents told: "n03, n04" */

	/* Time of one block, and where that is known from: "", or the stage ("aa"). */
	double block_s;
	char *basis;
	int64_t block_start_us; /* since when the next block to end may have run; 0: none runs */

	double node_s;
	/* What counts against the budgets, and those; 0: no bound. */
	double spent_node_s, budget_node_s, budget_gpu_s, gpus;
	int64_t spent_trials, budget_trials;
	double budget_wall_s;
	double alpha, alpha_spent;
	size_t tests_left, candidates, candidates_left;
	char *fix; /* "num_workers=4: validated, +3.9 % [+2.1, +5.7]" */
};

struct view_style {
	size_t width; /* columns; 0: lines are as long as they are */
	bool ascii, colour;
};

/* `r` NULL: without the recipe there is no effect, no objective, and no budget but time. */
int view_load(struct workspace *w, int64_t id, const struct recipe *r, struct view *out,
	      struct err *e);
void view_done(struct view *v);

/* Seconds that the open stage still takes at most; NaN: there is no telling. */
double view_left_s(const struct view *v, int64_t now_us);
/* "about 14 min: at most 6 blocks at 2.3 min"; heap, NULL: there is no telling. */
char *view_left_text(const struct view *v, int64_t now_us);
/* "screen, 6 of at most 12 blocks", "soak done: ...", "not begun"; heap. */
char *view_stage_text(const struct view *v);
char *view_blocks_text(const struct view *v); /* "6 of at most 12 blocks"; heap */

/* The picture as lines without newlines, none longer than the width. */
void view_lines(const struct view *v, int64_t now_us, const struct view_style *s,
		struct strv *lines);
/* What status --json says of it, added to an object. */
void view_json(const struct view *v, int64_t now_us, struct json *o);

/* "90 s", "14 min", "2.3 h" into out (n >= 16). */
void view_duration(double s, char *out, size_t n);

#endif
