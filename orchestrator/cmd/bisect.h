/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which change of the environment did it? For each key that changed with a regression and that the
 * campaign's recipe can set (`fingerprint` with `set`): the configuration as it is (A) against the
 * same with this key alone as it was (B), in paired blocks, as `fettle ab` compares two settings.
 * Of a key that cannot be set it says what a person would have to do. An answer is kept as the
 * cause's: proved, or not; a campaign that has its verdict already is not run again.
 */
#ifndef FETTLE_CMD_BISECT_H
#define FETTLE_CMD_BISECT_H

#include "orchestrator/base/json.h"
#include "orchestrator/cmd/ab.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/outline.h"
#include "orchestrator/report/regressions.h"

struct bisect_key {
	const struct cause_row *cause; /* of the regression's */
	char *cannot;                  /* why it cannot be set; NULL: it can */
	/* Of one that can: */
	char *recipe;  /* Lua text */
	char *command; /* the arguments of fettle for the same; NULL: `fettle ab` has none */
	char *name;    /* of its campaign */
	struct outline outline;
	int64_t campaign; /* that has its verdict, or was begun; 0: none */
};

struct bisect {
	struct regression_view view;
	const struct regression_moved *moved; /* what is measured */
	struct campaign_row campaign;         /* whose configuration it is */
	const char *scheduler;                /* that runs the blocks */
	struct bisect_key *keys;              /* by rank */
	size_t n;
};

/* ERR_STATE when no series of it is one that fettle measures, or no key of the environment is among
 * its causes. `scheduler` NULL: the campaign's. */
int bisect_plan(struct workspace *w, int64_t regression, const char *scheduler, struct bisect *out,
		struct err *e);
void bisect_done(struct bisect *b);

/* program: how fettle was called. */
void bisect_text(const struct bisect *b, const struct workspace *w, const char *program,
		 struct buf *out);
struct json *bisect_json(const struct bisect *b);

/* Run those that can be set, one after the other, and keep the answers; the exit status: 0, or that
 * of the first campaign that came to no verdict. w is open for writing. */
int bisect_run(const struct cmd *c, struct workspace *w, struct bisect *b,
	       const struct drive_options *o);

#endif
