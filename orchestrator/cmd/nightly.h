/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A night of `fettle nightly DIR`, in four files: what there is to do (nightly_gather.c, decided by
 * method/due.h), doing it (nightly_run.c), and the page about it as text (nightly_page.c) and JSON
 * (nightly_json.c). What was done is taken from the database, so the page of a night that was
 * killed and begun again is whole.
 */
#ifndef FETTLE_CMD_NIGHTLY_H
#define FETTLE_CMD_NIGHTLY_H

#include "experiments/history.h"
#include "orchestrator/base/hours.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/outlets.h"
#include "orchestrator/method/due.h"
#include "orchestrator/method/track.h"

/* Events of a campaign, "YYYY-MM-DD FINGERPRINT": a sweep was run that night; its canary was. */
#define NIGHTLY_SWEEP  "nightly"
#define NIGHTLY_CANARY "canary"

struct nightly_options {
	struct drive_options drive;
	struct outlets outlets;
	const char *dir;
	struct strv window;                    /* hours; empty: the site's, else all */
	double minutes, node_hours, gpu_hours; /* of this night; 0: no bound */
	const char *night;                     /* in place of tonight's date; NULL */
	bool plan;                             /* say what would run */
};

/* A file of DIR. */
struct nightly_recipe {
	char *path;
	struct recipe *r; /* NULL: it cannot be used */
	struct script_sources sources;
	char *fault;           /* why not; NULL */
	const char *scheduler; /* of its campaigns */
};

enum nightly_outcome {
	NIGHTLY_IDLE,    /* nothing was to be done */
	NIGHTLY_ENDED,   /* it came to its end tonight */
	NIGHTLY_LEFT,    /* the next night goes on with it, or begins it */
	NIGHTLY_STOPPED, /* it needs somebody */
};
const char *nightly_outcome_name(enum nightly_outcome o);

/* What became of something tonight. */
struct nightly_result {
	enum nightly_outcome outcome;
	int status;    /* its part in the exit status */
	char *said;    /* a phrase; NULL */
	double node_s; /* that it took */
};

/* A canary or a sweep. */
struct nightly_item {
	struct nightly_recipe *recipe;
	int64_t campaign; /* 0: not begun */
	bool watches_fix; /* of a tuning campaign: its validated fix against the default */
	struct due_item due;
	struct due_choice choice;
	struct strv nights; /* behind due.nights */
	struct nightly_result result;
};

/* The re-run of a suspicion, or the fix of a campaign that is validated again. */
struct nightly_check {
	int64_t regression, campaign; /* regression 0: a fix */
	char *about;                  /* "regression 4", "loader: kernel: 5.10 -> 6.1" */
	struct nightly_result result;
};

struct nightly {
	const struct nightly_options *o;
	struct workspace *w; /* NULL while there is none yet (a dry run) */
	struct drive_run drive;
	/* what `drive` was begun with: bounded anew for each campaign */
	struct drive_options bounds;
	char night[11];
	int64_t now_us, since_us; /* since_us: what was spent from then on counts */
	const struct strv *window;
	struct nightly_recipe *recipes;
	size_t n_recipes;
	struct nightly_item *items;
	size_t n_items, cap_items;
	struct nightly_check *checks; /* in the order in which they ran */
	size_t n_checks, cap_checks;
	struct due_budget left;           /* at the start */
	double spent_node_s, spent_gpu_s; /* of this night */
	struct track_result track;
	int alarms;             /* regressions that are open, confirmed and worse at the end */
	double false_wins_year; /* to expect at most */
};

/* Read the recipes of DIR. -ERR_USAGE: no directory, or no recipe in it. */
int nightly_read(struct nightly *n, struct err *e);
/* What each of them is due for, and the order. */
int nightly_gather(struct nightly *n, struct err *e);
/* The sweeps once more, after the canaries: these saw what changed tonight, and what is left. */
int nightly_reconsider(struct nightly *n, struct err *e);
/* Do it. Faults of one campaign are its own (said, status); an error is one of the night. */
int nightly_run(struct nightly *n, struct err *e);
/* The exit status: 4, then 1 (an open, confirmed regression), then 3 (something is left). */
int nightly_status(const struct nightly *n);
void nightly_done(struct nightly *n);

/* nightly_page.c: the page, or with o->plan what would run. */
int nightly_page(struct nightly *n, struct buf *out, struct err *e);
/* nightly_json.c: the same as a JSON object. */
int nightly_json(struct nightly *n, struct buf *out, struct err *e);

/* A regression as a page tells it; its largest change, its likeliest cause. */
struct nightly_regression {
	struct regression_row row;
	struct change_row *changes;
	size_t n_changes;
	const struct change_row *worst; /* NULL: none */
	struct series_row series;       /* of that one */
	bool may_rerun;                 /* a canary shows it: it can be measured again */
	struct cause_row *causes;
	size_t n_causes;
};
/* Those that are open or acknowledged, and those that tonight found, confirmed or closed. */
int nightly_regressions(struct nightly *n, struct nightly_regression **out, size_t *count,
			struct err *e);
void nightly_regressions_free(struct nightly_regression *v, size_t n);
bool nightly_is_alarm(const struct regression_row *r); /* open, confirmed, worse */

#endif
