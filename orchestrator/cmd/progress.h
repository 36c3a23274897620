/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Progress of a campaign for people and programs: lines as they come when piped, one live line
 * below them on a terminal (step, stage, block, effect so far, cost, time left), JSON lines on
 * request. NO_COLOR and TERM=dumb are respected; nothing is redrawn when piped.
 */
#ifndef FETTLE_CMD_PROGRESS_H
#define FETTLE_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "orchestrator/method/campaign.h"

enum progress_style { STYLE_PLAIN, STYLE_LIVE, STYLE_JSON, STYLE_QUIET };

struct progress_view {
	FILE *out;
	enum progress_style style;
	bool colour;
	int64_t start_us;       /* of this view */
	int64_t stage_start_us; /* of the stage's first block here; 0: none yet */
	int64_t block_start_us; /* the newest end of a block, or the first start */
	double block_s;         /* time of the stage for each block that ended; 0: none did */
	int blocks_timed, running;
	bool line_open;       /* a live line stands on the terminal */
	struct progress last; /* figures of the newest message */
	char stage[32];       /* open stage, "": none */
	double pair_s;        /* newest block_s of a stage with two arms */
};

/* LIVE when out is a terminal, PLAIN otherwise; `json` and `quiet` win. */
void progress_init(struct progress_view *v, FILE *out, bool json, bool quiet);
/* A progress_f; ctx is the view. */
void progress_tell(void *ctx, const struct progress *p);
/* Redraw the live line (now_us for the time left); nothing in the other styles. */
void progress_tick(struct progress_view *v, int64_t now_us);
/* "42 node-s" below six minutes, "1.25 node-h" above. */
void progress_cost(double node_s, char *out, size_t n);
void progress_end(struct progress_view *v); /* clears the live line */

#endif
