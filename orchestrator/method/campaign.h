/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A campaign: one run of the five steps for one workload. The caller creates or opens it, calls
 * campaign_step() until it is over, and waits in between. It can be killed at any point: open it
 * again and go on; nothing is lost, nothing is measured twice.
 */
#ifndef FETTLE_METHOD_CAMPAIGN_H
#define FETTLE_METHOD_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "experiments/query.h"
#include "orchestrator/base/err.h"
#include "orchestrator/method/workspace.h"
#include "orchestrator/sched/sched.h"
#include "orchestrator/script/script.h"

struct campaign;

enum progress_kind {
	PROGRESS_STEP,  /* one of the five steps begins */
	PROGRESS_STAGE, /* a stage begins or ends */
	PROGRESS_BLOCK, /* a block was started or ended */
	PROGRESS_VERDICT,
	PROGRESS_NOTE, /* void attempts, conflicts, adopted jobs */
};

/* What a listener is told: a sentence, and the figures for a live view. */
struct progress {
	enum progress_kind kind;
	int step;         /* 1..5, 0: none */
	const char *text; /* borrowed */
	int64_t at_us;
	const char *stage; /* kind of the open stage or NULL */
	int blocks_done, blocks_planned;
	double est, lo, hi; /* of the open confirm or final stage, relative; NaN: none yet */
	double node_s;      /* spent so far */
};
typedef void (*progress_f)(void *ctx, const struct progress *p);

struct campaign_options {
	const struct sched *sched;  /* NULL: as stored */
	const char *agent, *helper; /* paths of fettle-agent and fettle-slurm */
	/* The plan that its sources give, when the caller has read them already; used if its hash
	 * says so. Borrowed until the campaign is closed. NULL: the stored sources are read. */
	const struct recipe *recipe;
	const char *spec; /* of the scheduler, see struct sched_config */
	bool take_over;   /* force the lease of another host */
	/* Of an unattended night. Nothing is started that cannot end by `until_us` (UTC; 0: no
	 * bound), nor once the campaign has cost `spend_node_s` since it was opened (0: no bound):
	 * campaign_step() then says CAMPAIGN_LATER. */
	int64_t until_us;
	double spend_node_s;
	/* From then on (UTC; 0: no bound) it says so too in place of CAMPAIGN_WAIT: jobs in flight,
	 * of which a scheduler may never tell anything, are left to whoever opens it next. */
	int64_t wait_until_us;
	progress_f tell; /* may be NULL */
	void *tell_ctx;
};

/* Store a new campaign: recipe, sources, captured environment, alpha and the most confirm stages,
 * all fixed here. Nothing runs yet. */
int campaign_create(struct workspace *w, const struct recipe *r, const struct script_sources *s,
		    const char *path, const char *scheduler, int64_t *id, struct err *e);

/* The texts that a campaign runs on, as they were when it was created; free with
 * script_sources_free(). */
int campaign_sources(struct workspace *w, int64_t id, struct script_sources *out, struct err *e);

/* Open with the lease of this process. ERR_TEMP when another live process owns it. Opening adopts
 * what an earlier process left: submitted jobs are looked up by token. */
int campaign_open(struct workspace *w, int64_t id, const struct campaign_options *o,
		  struct campaign **out, struct err *e);
/* Did the process that holds a campaign die on this host? Of another host that is not known. */
bool campaign_holder_is_dead(const struct lease *held);
void campaign_close(struct campaign *c); /* drops the lease; jobs go on; NULL is fine */

enum campaign_step {
	CAMPAIGN_AGAIN, /* something was done: call again at once */
	CAMPAIGN_WAIT,  /* jobs are in flight: wait, then call again */
	/* nothing is in flight and nothing may start now: its reason is in the store */
	CAMPAIGN_LATER,
	CAMPAIGN_OVER, /* done, stopped or failed: see campaign_row() */
};
/* Do the next thing. Every change is committed when it returns. */
int campaign_step(struct campaign *c, enum campaign_step *out, struct err *e);
/* Wait for the scheduler, at most timeout_us; `fd` (-1: none) ends the wait when readable. */
int campaign_wait(struct campaign *c, int64_t timeout_us, int fd, struct err *e);
/* Cancel all jobs in flight; their attempts become void. The campaign stays resumable. */
int campaign_cancel(struct campaign *c, const char *why, struct err *e);

/* Plan the long run of a fix that is accepted, pending convergence (or go on with one that was
 * begun): the campaign is running again and campaign_step() does it. ERR_STATE when its fix needs
 * none. */
int campaign_converge(struct workspace *w, int64_t id, const struct campaign_options *o,
		      struct err *e);

/* A conclusion, and what the values that are stored now would say. */
struct campaign_again {
	char *about;        /* "confirm 5: num_workers=2" */
	char *was, *is;     /* words of a verdict or of a fix; NULL: nothing was concluded */
	double est, est_is; /* relative effects */
};
/* What a second reading of a campaign's raw files changed. */
struct campaign_reparse {
	size_t attempts;  /* read again */
	struct strv kept; /* attempts whose old values stay, and why: "blocks/3.1: ..." */
	struct reparse_change {
		char *metric, *stat;
		size_t changed, added, gone; /* values */
		double low, high;            /* of those changed, relative to the old ones */
	} * changes;                         /* by metric and stat */
	size_t n_changes, cap_changes;
	struct strv states;           /* trials: "blocks/3.1, slot 2: failed -> ok" */
	struct campaign_again *again; /* conclusions, by stage */
	size_t n_again, cap_again;
};
/* Read the raw files of every attempt that counts again with the parsers of this program, and put
 * what they give in place of the stored values, one transaction an attempt: whoever is killed has
 * some attempts read anew and the others not, and does it again. What was concluded stays. ERR_TEMP
 * while another process runs the campaign. */
int campaign_reread(struct workspace *w, int64_t id, struct campaign_reparse *out, struct err *e);
void campaign_reparse_done(struct campaign_reparse *r);
bool campaign_again_differs(const struct campaign_again *a);

/* Does a campaign of this recipe profile its baseline and each new incumbent, as far as the recipe
 * says? Made-up trials are not profiled. */
bool profile_wanted(const struct recipe *r);

#endif
