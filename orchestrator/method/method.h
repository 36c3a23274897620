/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the method share: an open campaign, its facts, and the two tables that make the
 * state machine. The method never sleeps, prints or reads the time of day: the clock comes with the
 * workspace, waiting is the scheduler's, telling is the caller's through `tell`.
 *
 * A campaign moves by stages. What a kind of stage wants is a const struct stage_ops beside the
 * step that it belongs to: baseline.c (aa), experiment.c (screen), validate.c (confirm), fix.c
 * (final, soak). What comes after a stage is campaign_next(), a pure function of the stored facts.
 */
#ifndef FETTLE_METHOD_METHOD_H
#define FETTLE_METHOD_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/decide.h"
#include "experiments/model.h"
#include "experiments/query.h"
#include "orchestrator/method/campaign.h"
#include "orchestrator/method/workspace.h"
#include "orchestrator/sched/sched.h"
#include "orchestrator/script/script.h"

enum {
	/* Attempts of one block before it is dropped. Three: a node that voids twice in a row is
	 * seldom bad luck, a third try on other nodes settles it. */
	METHOD_MAX_ATTEMPTS = 3,
	/* Dropped blocks of a stage before the campaign stops and asks for a look at the cluster.
	 */
	METHOD_MAX_DROPPED = 3,
};

/* Everything that is stored about the campaign and that the next action depends on. */
struct facts {
	struct stage_row *stages;
	size_t n_stages;
	struct hypothesis_row *hyps;
	size_t n_hyps;
	struct verdict_row *verdicts;
	size_t n_verdicts;
	struct block_row *blocks; /* of the last stage, when it is open: those not valid yet */
	size_t n_blocks;
	size_t total, valid;       /* blocks of that stage */
	size_t in_flight, dropped; /* of `blocks` */
	int64_t trials;            /* timed and warm-up, so far */
	double node_s;             /* spent so far */
	bool over_budget;
	const char *budget_text; /* which bound, static */
};

struct campaign {
	struct workspace *ws;
	struct campaign_row row;
	struct recipe *recipe;
	struct script_sources sources;
	const struct sched *sched;
	struct sched_run *run;
	struct sched_config sched_config; /* borrowed by run */
	struct sched_capacity capacity;
	struct lease lease;
	bool leased;
	struct kvs env; /* captured at the first run */
	struct facts facts;
	int64_t trials; /* cost so far, added up: it equals query_cost()'s */
	double node_s;
	int64_t beat_us; /* last heartbeat, monotonic */
	size_t wanted;   /* valid blocks that the open stage wanted when it was last asked */
	progress_f tell;
	void *tell_ctx;
};

struct stage_ops {
	enum stage_kind kind;
	int step; /* 1..5 */
	/* How many valid blocks the stage wants by now. Asked when none is in flight; no more than
	 * there are means: conclude. */
	int (*wanted)(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e);
	/* Which arms (indices) take part in the block that comes after `valid` valid ones. */
	int (*block_arms)(struct campaign *c, const struct stage_row *s, size_t valid, size_t *out,
			  size_t *n, struct err *e);
	/* After a batch of blocks: store looks, drop invalid arms. NULL: nothing. Own transaction.
	 */
	int (*look)(struct campaign *c, const struct stage_row *s, struct err *e);
	/* Draw the conclusion and close the stage, in the caller's transaction. */
	int (*conclude)(struct campaign *c, const struct stage_row *s, struct err *e);
};
extern const struct stage_ops baseline_aa, experiment_screen, validate_confirm, fix_final, fix_soak;
const struct stage_ops *stage_ops_of(enum stage_kind k); /* NULL for a kind that no step runs yet */

/* -- facts.c -------------------------------------------------------------------------------- */

int facts_load(struct campaign *c, struct err *e);
void facts_done(struct facts *f);
const struct stage_row *facts_stage(const struct facts *f, enum stage_kind k,
				    int round); /* newest; round 0: any */
const struct hypothesis_row *facts_hypothesis(const struct facts *f, int64_t id);
/* The last row with a final outcome of a hypothesis in a confirm or screen stage; NULL. */
const struct verdict_row *facts_verdict(const struct facts *f, int64_t hypothesis);
bool facts_block_dropped(const struct block_row *b);
/* The stage that accepted last, NULL when the default is still the incumbent. */
const struct stage_row *facts_last_accepted(const struct facts *f);
struct alpha_ledger facts_ledger(const struct campaign *c);
int campaign_incumbent(struct campaign *c, struct config *out, struct err *e);
int campaign_default(struct campaign *c, struct config *out, struct err *e);

/* -- next.c: what to do, from the facts alone ------------------------------------------------- */

enum action_kind {
	ACT_PLAN_AA,
	ACT_HYPOTHESES, /* of round `round` */
	ACT_PLAN_SCREEN,
	ACT_PLAN_CONFIRM, /* of `hypothesis` */
	ACT_PLAN_FINAL,
	ACT_PLAN_SOAK,
	ACT_STAGE, /* the last stage is open: run its blocks, or conclude it, or stop over budget */
	ACT_FINISH,
	ACT_STOP, /* budget or window over: go on later */
};
struct action {
	enum action_kind kind;
	int round;
	int64_t hypothesis;
};
/* `ranking`: hypothesis ids of the round's screen that may be confirmed, best first. */
struct action campaign_next(const struct facts *f, const struct recipe *r, const int64_t *ranking,
			    size_t n);

/* -- the five steps ------------------------------------------------------------------------- */

int baseline_plan(struct campaign *c, struct err *e);
int hypothesis_plan(struct campaign *c, int round, struct err *e);
int experiment_plan(struct campaign *c, int round, struct err *e);
/* Hypotheses of a round that may go to a confirm stage, best first; heap array. */
int experiment_ranking(struct campaign *c, int round, int64_t **ids, size_t *n, struct err *e);
int validate_plan(struct campaign *c, int64_t hypothesis, struct err *e);
int fix_plan_final(struct campaign *c, struct err *e);
int fix_plan_soak(struct campaign *c, struct err *e);
int fix_finish(struct campaign *c, struct err *e);

struct arm_plan {
	struct config config;
	int64_t hypothesis; /* 0: none */
	char *label;
};
/* The incumbent as arm 0, then the incumbent with one hypothesis each; heap, n + 1 elements. */
int experiment_arms(struct campaign *c, const struct hypothesis_row *const *hyps, size_t n,
		    struct arm_plan **out, struct err *e);
void experiment_arms_free(struct arm_plan *arms, size_t n);
/* Store a stage with one arm a configuration (treatments from index 1). Own transaction. */
int stage_plan(struct campaign *c, struct stage_row *s, const struct arm_plan *arms, size_t n,
	       struct err *e);

/* -- block.c: from a stage to files and jobs, and back ------------------------------------------
 */

/* Add the next block of the stage, its intent and its files, and submit it; or the next attempt of
 * a void one. */
int block_start(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		struct err *e);
/* Poll what is in flight, ingest what is done, mark what is lost. *changed: facts must be loaded
 * again. */
int block_collect(struct campaign *c, const struct stage_row *s, bool *changed, struct err *e);
int block_cancel_all(struct campaign *c, struct err *e);
/* Write block.json of an attempt into its directory (made here). */
int block_write(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		struct err *e);

/* -- ingest.c: from the agent's files to trial results ------------------------------------------
 */

struct attempt_files {
	struct trial_result *trials;
	size_t n;
	struct strv nodes;
	char hash[33];            /* of the manifest */
	int64_t start_us, end_us; /* of the allocation, by the agent; 0: not known */
	bool complete;            /* done.json says so and every record is there and intact */
	char *reason;             /* why not; NULL */
};
/* dir is absolute; `plan` is the block with this attempt as its newest: what was planned decides
 * what counts. -ERR_NOT_FOUND when there is no done.json. A broken file, a trial too few or one
 * that was never planned is no error: complete is false. */
int ingest_attempt(const struct recipe *r, const struct stage_row *s,
		   const struct hypothesis_row *hyps, size_t n_hyps, const struct block_row *plan,
		   const char *dir, struct attempt_files *out, struct err *e);
void attempt_files_done(struct attempt_files *a);

/* -- pairs.c: values of a stage as the statistics want them ---------------------------------------
 */

/* y[block * arms + arm] = log(objective), sign so that + is better, mean over repeats; NAN when the
 * arm has no ok trial in that block. Blocks in order of their index, valid ones only. */
struct pairs {
	double *y;
	size_t arms, blocks;
	size_t *failed, *trials; /* by arm: timed trials that failed, and all */
	char **fail_reason;      /* by arm: its first failure, with the path of the log, or NULL */
};
int pairs_load(struct campaign *c, const struct stage_row *s, struct pairs *out, struct err *e);
void pairs_done(struct pairs *p);
/* d of arm a against arm 0, pairs only; heap. */
size_t pairs_diff(const struct pairs *p, size_t arm, double **d);
char *pairs_hash(const struct pairs *p);
/* All guards of the recipe for arm `arm` against arm 0; text names the worst one (heap, NULL when
 * passed). */
int pairs_guards(struct campaign *c, const struct stage_row *s, size_t arm,
		 enum decide_guard *worst, char **text, struct err *e);

/* -- evidence.c ------------------------------------------------------------------------------- */

/* Everything that the trials of a stage showed, read once for all its arms. */
struct evidence;
int evidence_load(struct campaign *c, const struct stage_row *s, struct evidence **out,
		  struct err *e);
void evidence_free(struct evidence *v); /* NULL is fine */
/* Is the setting of treatment arm `arm` shown at the level that its knob requires, in every rank of
 * every trial that was read, and nothing undeclared with it? *reason NULL: yes. Else a sentence
 * (heap). */
int evidence_check(struct evidence *v, size_t arm, char **reason, struct err *e);

/* -- campaign.c ------------------------------------------------------------------------------ */

/* Is the campaign still ours? Asked before anything that reaches beyond the database; what is
 * written there asks by itself. ERR_STATE naming the new owner. */
int campaign_owned(struct campaign *c, struct err *e);

/* -- telling ------------------------------------------------------------------------------------
 */

void campaign_tell(struct campaign *c, enum progress_kind k, int step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int campaign_event(struct campaign *c, struct err *e, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
