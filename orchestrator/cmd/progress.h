/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Progress of a campaign for people and programs: lines as they come when piped; on a terminal the
 * same lines, without the blocks, above a view of the campaign that is redrawn in place
 * (cmd/view.h, cmd/screen.h); JSON lines on request. NO_COLOR and TERM=dumb are respected; nothing
 * is redrawn when piped.
 */
#ifndef FETTLE_CMD_PROGRESS_H
#define FETTLE_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "orchestrator/cmd/screen.h"
#include "orchestrator/cmd/terminal.h"
#include "orchestrator/cmd/view.h"
#include "orchestrator/method/campaign.h"

enum progress_style { STYLE_PLAIN, STYLE_LIVE, STYLE_JSON, STYLE_QUIET };

struct progress_view {
	FILE *out;
	enum progress_style style;
	bool colour;
	int64_t start_us; /* of this view */
	struct screen screen;
	/* Whose campaign is shown; NULL: none. Borrowed. */
	struct workspace *w;
	int64_t campaign;
	const struct recipe *recipe;
	struct view view;
	bool loaded, stale; /* the view was read; something happened since */
	int64_t loaded_us, drawn_us;
};

/* LIVE when out is a terminal, PLAIN otherwise; `json` and `quiet` win. */
void progress_init(struct progress_view *v, FILE *out, bool json, bool quiet,
		   enum terminal_colours when);
/* From now on the view shows this campaign; recipe NULL: without what needs it. */
void progress_follow(struct progress_view *v, struct workspace *w, int64_t campaign,
		     const struct recipe *recipe);
/* A progress_f; ctx is the view. */
void progress_tell(void *ctx, const struct progress *p);
/* Redraw the view when it is due (now_us for the time left); nothing in the other styles. */
void progress_tick(struct progress_view *v, int64_t now_us);
/* It is due: the terminal changed, or something else in the campaign than progress_tell() said. */
void progress_touch(struct progress_view *v);
/* "42 node-s" below six minutes, "1.25 node-h" above. */
void progress_cost(double node_s, char *out, size_t n);
/* Takes the view away: others may write. The next tick draws it again. */
void progress_hide(struct progress_view *v);
void progress_end(struct progress_view *v); /* for good */

#endif
