/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the method share: an open campaign, its facts, and the two tables that make the
 * state machine. The method never sleeps, prints or reads the time of day: the clock comes with the
 * workspace, waiting is the scheduler's, telling is the caller's through `tell`.
 *
 * A campaign moves by stages. What a kind of stage wants is a const struct stage_ops beside the
 * step that it belongs to: baseline.c (aa), experiment.c (screen), validate.c (confirm), ablate.c
 * (ablate), fix.c (final, soak), converge.c (converge), profile.c (profile), ladder.c (ladder),
 * canary.c (canary).
 * What comes after a stage is campaign_next(), a pure function of the stored facts.
 */
#ifndef FETTLE_METHOD_METHOD_H
#define FETTLE_METHOD_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/decide.h"
#include "experiments/model.h"
#include "experiments/quality.h"
#include "experiments/query.h"
#include "orchestrator/method/campaign.h"
#include "orchestrator/method/window.h"
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
	/* Jobs that failed on a node, through the node, before it is left out. Two: one may be bad
	 * luck, and a third would cost a block its last attempt. */
	METHOD_NODE_FAULTS = 2,
	METHOD_GRACE_S = 5, /* between TERM and KILL of a trial */
	/* The same for one under a profiler, which writes its report then. */
	METHOD_PROFILE_GRACE_S = 60,
};

/* Everything that is stored about the campaign and that the next action depends on. */
struct facts {
	struct stage_row *stages;
	size_t n_stages;
	struct hypothesis_row *hyps;
	size_t n_hyps;
	struct verdict_row *verdicts;
	size_t n_verdicts;
	struct ablation_row *ablations;
	size_t n_ablations;
	struct rung_row *rungs; /* of the ladder, as far as it was climbed */
	size_t n_rungs;
	struct block_row *blocks; /* of the last stage, when it is open: those not valid yet */
	size_t n_blocks;
	size_t total, valid;       /* blocks of that stage */
	size_t in_flight, dropped; /* of `blocks` */
	size_t allocations;        /* that hold those in flight */
	int64_t trials;            /* timed and warm-up, so far */
	double node_s;             /* spent so far */
	bool over_budget;
	const char *budget_text; /* which bound, static */
	double room;             /* useful trials that the budget still has room for; INFINITY */
	int unit;                /* allocation_unit() */
	bool profiles;           /* the baseline and each new incumbent */
};

/* What a useful trial takes of each budget, reserve.c; 0: not known. */
struct reserve_rates {
	double trials, node_s, wall_s;
};

/* What is told of the open comparison. */
struct effect {
	int64_t stage;
	size_t blocks; /* valid ones that it is of */
	double est, lo, hi;
};

struct campaign {
	struct workspace *ws;
	struct campaign_row row;
	const struct recipe *recipe;
	struct resources resources; /* of the open stage's jobs; borrows from the recipe */
	struct recipe *own_recipe;  /* the same, unless it is borrowed */
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
	struct reserve_rates rates;
	int64_t until_us;      /* nothing is started that cannot end by then; 0: no bound */
	int64_t wait_until_us; /* nobody waits longer; 0: no bound */
	double until_node_s;   /* nor once node_s is that; 0: no bound */
	int64_t beat_us;       /* last heartbeat, monotonic */
	struct kvs waits;      /* what was last said about a job that waits, by its id */
	int64_t capacity_us;   /* when capacity was asked for, monotonic */
	bool ends_changed;     /* a job ended since ends_stop_reason() looked */
	int64_t accounts_us; /* when the cluster's accounts were asked for, monotonic; 0: not yet */
	bool no_accounts;    /* it keeps none */
	size_t wanted;       /* valid blocks that the open stage wanted when it was last asked */
	struct effect effect;
	struct node_end_row *node_ends; /* until the next job is lost; NULL: not looked at yet */
	size_t n_node_ends;
	struct node_use_row *node_use; /* of allocations that are over, up to this one */
	size_t n_node_use;
	int64_t node_use_upto;
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
	/* What the values that are stored now say, beside what was concluded. Nothing is stored;
	 * without a conclusion nothing is filled in. NULL: the stage concludes nothing of its own.
	 */
	int (*again)(struct campaign *c, const struct stage_row *s, struct campaign_again *out,
		     struct err *e);
};
extern const struct stage_ops baseline_aa, experiment_screen, validate_confirm, ablate_ablate,
	fix_final, fix_soak, converge_converge, profile_profile, ladder_ladder, canary_canary;
const struct stage_ops *stage_ops_of(enum stage_kind k); /* NULL for a kind that no step runs yet */

/* Everything but the scheduler: for what looks at a campaign, or mends it, and runs nothing. Its
 * lease is ours, its state stays. */
int campaign_open_stored(struct workspace *w, int64_t id, const struct campaign_options *o,
			 struct campaign **out, struct err *e);
/* The heartbeat of the lease, when it is due. */
int campaign_beat(struct campaign *c, struct err *e);

/* -- accounts.c ----------------------------------------------------------------------------- */

/* Store what the cluster's accounts say of jobs that ended; asked once a minute at most. No answer
 * is no error. */
int accounts_take(struct campaign *c, struct err *e);
/* The same at the end of a campaign: the last records are waited for, some seconds. */
int accounts_take_last(struct campaign *c, struct err *e);

/* -- facts.c -------------------------------------------------------------------------------- */

int facts_load(struct campaign *c, struct err *e);
/* Only what attempts change: blocks of the last stage, cost, budget. Other rows stay where they
 * are. */
int facts_load_blocks(struct campaign *c, struct err *e);
void facts_done(struct facts *f);
const struct stage_row *facts_stage(const struct facts *f, enum stage_kind k,
				    int round); /* newest; round 0: any */
const struct hypothesis_row *facts_hypothesis(const struct facts *f, int64_t id);
/* The last row with a final outcome of a hypothesis in a confirm or screen stage; NULL. */
const struct verdict_row *facts_verdict(const struct facts *f, int64_t hypothesis);
bool facts_block_dropped(const struct block_row *b);
/* The stage that accepted last, NULL when the default is still the incumbent. */
const struct stage_row *facts_last_accepted(const struct facts *f);
bool facts_deadline_passed(const struct campaign *c); /* budget.deadline, which no resume moves */
/* Knobs that accepted hypotheses changed, each once. */
size_t facts_changes(const struct facts *f);
/* The arm that an ablate stage dropped to: the fix without one change; NULL when it kept all. */
const struct arm_row *facts_ablated(const struct facts *f, const struct stage_row *s);
struct alpha_ledger facts_ledger(const struct campaign *c);
/* The same of a campaign that is not open, from its stages and verdicts. */
struct alpha_ledger facts_alpha(const struct campaign_row *row, const struct facts *f);
int campaign_incumbent(struct campaign *c, struct config *out, struct err *e);
int campaign_default(struct campaign *c, struct config *out, struct err *e);

/* -- next.c: what to do, from the facts alone ------------------------------------------------- */

enum action_kind {
	ACT_PLAN_AA,
	ACT_PLAN_PROFILE, /* of the incumbent that round `round` starts from, or of that rung */
	ACT_PLAN_LADDER,  /* of rung `round` and the one below */
	ACT_PLAN_CANARY,  /* the first night of a campaign that tunes nothing */
	ACT_HYPOTHESES,   /* of round `round` */
	ACT_PLAN_SCREEN,
	ACT_PLAN_CONFIRM, /* of `hypothesis` */
	ACT_PLAN_ABLATE,
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
	/* What is left out for the sake of the final stage: candidates; the ablation. */
	bool ends_search, skips_ablation;
};
/* `ranking`: hypothesis ids of the round's screen that may be confirmed, best first. */
struct action campaign_next(const struct facts *f, const struct recipe *r, const int64_t *ranking,
			    size_t n);

/* -- reserve.c: what of the budget is kept for the fix
 * ---------------------------------------------
 */

/* Measure what a useful trial takes, when there is a budget. */
int reserve_load_rates(struct campaign *c, struct err *e);
double reserve_room(const struct campaign *c); /* facts.room */
/* What stages take, trials: so many blocks; a screen; a confirm stage until its first look; the
 * ablation of so many changes; the final stage and the soak (0: there is none); both of these for
 * what is accepted and `more` changes. */
double reserve_blocks(const struct recipe *r, size_t arms, size_t blocks);
double reserve_screen(const struct recipe *r, size_t candidates);
double reserve_first_look(const struct recipe *r, int unit);
double reserve_ablation(const struct recipe *r, int unit, size_t changes);
double reserve_final(const struct recipe *r, int unit);
double reserve_fix(const struct facts *f, const struct recipe *r, size_t more);
/* Must this open stage be concluded as it is, because `trials` more of it would take what the fix
 * needs? */
bool reserve_cuts(const struct campaign *c, const struct stage_row *s, double trials);
/* Close the candidates that are left, and say so; say that nothing is taken out of the fix. */
int reserve_end_search(struct campaign *c, struct err *e);
int reserve_skip_ablation(struct campaign *c, struct err *e);

/* -- the five steps ------------------------------------------------------------------------- */

int baseline_plan(struct campaign *c, struct err *e);
int hypothesis_plan(struct campaign *c, int round, struct err *e);
int profile_plan(struct campaign *c, int round, struct err *e);
/* What a profile stage adds: to the environment of its arm, to block.json (`profiler`), and to the
 * block's directory. */
void profile_env(const struct campaign *c, const char *dir, struct config *config);
struct json *profile_command(void);
int profile_hook(const char *dir, struct err *e);
enum { PROFILE_STEPS = 12 }; /* of a trial's window: what the hook records, and some to spare */
/* Signals of a trial under a profiler, from what it left in `dir`; a remark in *note, heap. None
 * where the steps of the trace are shorter than those that the program counted, own_step_ms (NAN:
 * it counts none): they are others. A file whose read fails is told in e, which keeps what it has.
 */
void profile_read(const char *dir, double own_step_ms, struct trial_result *t, char **note,
		  struct err *e);
int ladder_plan(struct campaign *c, int round, struct err *e);
/* What an arm of a stage runs on: a rung of the ladder, else what the recipe asks for. Borrows. */
struct resources ladder_resources(const struct recipe *r, const struct stage_row *s, size_t arm);
/* When the profile of rung `round` is concluded: store where that rung lost time. Nothing without a
 * ladder. */
int ladder_split(struct campaign *c, int round, struct err *e);
int experiment_plan(struct campaign *c, int round, struct err *e);
/* Hypotheses of a round that may go to a confirm stage, best first; heap array. */
int experiment_ranking(struct campaign *c, int round, int64_t **ids, size_t *n, struct err *e);
int validate_plan(struct campaign *c, int64_t hypothesis, struct err *e);
/* What is accepted, each change removed once, on a number of blocks fixed beforehand. */
int ablate_plan(struct campaign *c, struct err *e);
int fix_plan_final(struct campaign *c, struct err *e);
int fix_plan_soak(struct campaign *c, struct err *e);
/* Adds the stage of the long run to a campaign whose fix waits for it, and makes it running. */
int converge_plan(struct campaign *c, struct err *e);
/* A campaign that is over runs again, for what is added to it: budgets and attempts of blocks count
 * anew from here, its time is over at deadline_us (0: never). In the caller's transaction, if any.
 */
int campaign_reopen(struct campaign *c, int64_t deadline_us, struct err *e);
/* The workload as a stage of this kind runs it; borrows from the recipe. */
struct workload method_workload(const struct recipe *r, enum stage_kind k);
int fix_finish(struct campaign *c, struct err *e);
/* A stage of the fix against the original default, and what the guards say of it. */
struct stats_mean_ci;
struct guard_results;
int fix_measured(struct campaign *c, const struct stage_row *s, struct stats_mean_ci *ci,
		 struct guard_results *guards, struct err *e);
/* Words for what such a comparison found; `pending`: a long run waits. */
const char *fix_state(const struct stats_mean_ci *ci, enum decide_guard guard, bool pending);

struct arm_plan {
	struct config config;
	int64_t hypothesis; /* 0: none */
	char *label;
};
/* The incumbent as arm 0, then the incumbent with one hypothesis each; heap, n + 1 elements. */
int experiment_arms(struct campaign *c, const struct hypothesis_row *const *hyps, size_t n,
		    struct arm_plan **out, struct err *e);
void experiment_arms_free(struct arm_plan *arms, size_t n);
/* Store a stage with one arm a configuration (treatments from index 1), in the caller's
 * transaction. */
int stage_add(struct campaign *c, struct stage_row *s, const struct arm_plan *arms, size_t n,
	      struct err *e);
/* The same in a transaction of its own. */
int stage_plan(struct campaign *c, struct stage_row *s, const struct arm_plan *arms, size_t n,
	       struct err *e);
/* The same with two arms of the default configuration, called a and b. */
int stage_plan_default(struct campaign *c, struct stage_row *s, const char *a, const char *b,
		       struct err *e);
/* Hooks that most kinds of stage share: every arm in every block, and as many blocks as planned. */
int stage_all_arms(struct campaign *c, const struct stage_row *s, size_t valid, size_t *out,
		   size_t *n, struct err *e);
int stage_fixed_blocks(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e);

/* -- allocation.c: from blocks to jobs -----------------------------------------------------------
 */

/* Blocks of one unit of the stages whose units are compared: the recipe's blocks_per_allocation,
 * unless the scheduler gives each block an allocation of its own. */
int allocation_unit(const struct campaign *c);
/* How long an allocation may take that holds one block of the stage with all its arms. */
int64_t allocation_length_s(const struct campaign *c, const struct stage_row *s);
/* Plan the next allocation of the stage, its intent, its files, and submit it: blocks whose last
 * attempt is void or lost, then new ones. */
int allocation_start(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		     struct err *e);
/* Write the files of a planned allocation again and submit it. -ERR_TEMP: in doubt, or not now; the
 * next collect looks for the token before it tries again. */
int allocation_submit(struct campaign *c, const struct stage_row *s, int64_t allocation,
		      struct err *e);
/* Its blocks that are in flight, in the order in which the agent runs them; out has room for
 * n_blocks. */
size_t allocation_crew(const struct facts *f, int64_t allocation, const struct block_row **out);
/* Is it the first of its allocation's blocks in flight? */
bool allocation_leads(const struct facts *f, const struct block_row *b);

/* -- block.c: from a stage to files, and back ---------------------------------------------------
 */

char *block_dir(const struct campaign *c, const struct block_row *b); /* of its attempt; heap */
/* Poll what is in flight, ingest what is done, mark what is lost. *changed: facts must be loaded
 * again. */
int block_collect(struct campaign *c, const struct stage_row *s, bool *changed, struct err *e);
int block_cancel_all(struct campaign *c, struct err *e);
/* Write block.json of an attempt into its directory (made here). first: directory, relative to the
 * workspace, of the first block of its allocation, where the agent's output goes. */
int block_write(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		const char *first, struct err *e);

/* -- canary.c, canary_judge.c, canary_nodes.c, canary_points.c
 * ---------------------------------------------------
 */

enum {
	/* Blocks of a re-run: judged after the third, the fewest that can show anything at all, and
	 * after each further one; what six do not show is too small to be looked for. */
	CANARY_RERUN_MIN = 3,
	CANARY_RERUN_MAX = 6,
};
/* The first night of a canary that was only created. */
int canary_begin(struct campaign *c, struct err *e);
/* Index of the arm that a canary stage watches; the other one is the reference. */
size_t canary_watched(const struct stage_row *s);
/* Does its reference stand in the recipe, or is it the default beside a fix? Else it is the same
 * configuration in the environment of an earlier night. */
bool canary_declares(const struct recipe *r);
int canary_wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e);
int canary_look(struct campaign *c, const struct stage_row *s, struct err *e);
int canary_conclude(struct campaign *c, const struct stage_row *s, struct err *e);
/* Logs of the objective, one a unit, of the units that have it (paired: in both arms); heap. */
int canary_logs(struct campaign *c, const struct stage_row *s, bool paired, double **current,
		double **reference, size_t *n, struct err *e);
/* The series of the objective that the stage belongs to, role current. In the caller's transaction.
 */
int canary_series(struct campaign *c, const struct stage_row *s, int64_t *id, struct err *e);
/* Store the stage's points, in the caller's transaction. */
struct canary_night {
	size_t units;      /* values of the objective; 0: there is no point */
	double mean, pair; /* in its unit; current over reference less 1, NaN: none */
};
int canary_points(struct campaign *c, const struct stage_row *s, const char *night,
		  struct canary_night *out, struct err *e);
/* JSON of the environment that the reference of this configuration holds on to: that of its first
 * night, or of the one from which a regression was accepted. NULL: none yet. */
int canary_reference_environment(struct campaign *c, const char *config, char **json,
				 struct err *e);
/* Nodes that a re-run stays away from (heap, NULL: none): those of the nights in doubt, since what
 * belongs to one of them is not to be seen again. */
struct wanted_row;
int canary_avoid_suspects(struct campaign *c, const struct wanted_row *r, char **avoid,
			  struct err *e);

/* -- ends.c: what follows from the end of a job; orchestrator/slurm/STATES.md ---------------- */

struct end_rule {
	enum job_end end;
	bool voids;        /* its attempt without a manifest is void; else lost */
	bool counts;       /* as one of the METHOD_MAX_ATTEMPTS of its block */
	bool blames_nodes; /* a fault of its nodes: after METHOD_NODE_FAULTS they are left out */
	int stop_after;    /* so many in a row stop the campaign */
	const char *advice;
};
const struct end_rule *end_rule_of(enum job_end end); /* NULL: END_NONE */
/* Why the campaign must stop because its jobs keep ending alike; heap, NULL: it need not. */
int ends_stop_reason(struct campaign *c, char **out, struct err *e);
/* Nodes to leave out, the worst first, never so many that no job finds room. */
int ends_faulty_nodes(struct campaign *c, struct strv *out, struct err *e);
void ends_forget_nodes(struct campaign *c); /* what was read for it */
/* A job was lost: tell, once each, which those are now. */
int ends_note_nodes(struct campaign *c, struct err *e);

/* -- waits.c: jobs that wait for what may not come ----------------------------------------------
 */

/* *give_up: it has waited for that long enough. */
int waits_pending(struct campaign *c, const struct block_row *b, const struct sched_status *st,
		  bool *give_up, struct err *e);
int waits_suspended(struct campaign *c, const struct block_row *b, struct err *e); /* note it */
bool waits_was_suspended(struct campaign *c, const struct block_row *b);

/* -- place.c: where ------------------------------------------------------------------------------
 */

/* Adds to the nodes to leave out, or gives those to use (heap, NULL: any). */
char *place_join(const struct strv *nodes); /* comma separated; heap, NULL: none */
int place_block(struct campaign *c, struct strv *exclude, char **nodelist, struct err *e);
/* For a stage that is planned: stay away from these n nodes (comma separated; NULL: none known),
 * where enough others are idle now. An event says which, `what` names the stage and `whose` the
 * nodes. *avoid: heap, NULL: any node. */
int place_away(struct campaign *c, const char *what, const char *whose, const char *nodes, int n,
	       char **avoid, struct err *e);

/* For a night's look of so many blocks: the same, away from the nodes that the campaign's canaries
 * looked at last (see due_avoid()). Nothing where the recipe names nodes or places its blocks. */
int place_night(struct campaign *c, int blocks, char **avoid, struct err *e);

/* -- limits.c: when, and how much at a time -----------------------------------------------------
 */

/* The end of the window that is open now, or of the night; 0: neither, or it is closed. */
int64_t limits_close_us(const struct campaign *c);
/* The night that it is, or that comes next: the local date on which its window opens. */
void limits_night(const struct campaign *c, char out[11]);
/* How long an allocation that is submitted now may last; INT64_MAX: no window; 0 or less: not at
 * all. */
int64_t limits_left_s(const struct campaign *c);
/* Why an allocation of this length may not be submitted now; heap, NULL: it may. */
char *limits_window_text(const struct campaign *c, int64_t length_s);
/* Why nobody waits for what is in flight any longer; heap, NULL: to wait. */
char *limits_wait_text(const struct campaign *c);
bool limits_nodes_idle(struct campaign *c);      /* as many as the budget wants to see */
size_t limits_at_once(const struct campaign *c); /* most allocations that run at a time */
/* The same with those that may wait behind them. */
size_t limits_in_flight(const struct campaign *c);

/* -- keep.c -------------------------------------------------------------------------------------
 */

/* Store the complete passes of a preempted attempt as a block of their own; *passes: how many, 0:
 * nothing to keep. In the caller's transaction. */
int keep_pairs(struct campaign *c, const struct stage_row *s, const struct block_row *b,
	       const char *dir, size_t *passes, struct err *e);

/* -- ingest.c: from the agent's files to trial results ------------------------------------------
 */

/* dir is absolute; `plan` is the block with this attempt as its newest: what was planned decides
 * what counts. -ERR_NOT_FOUND when there is no done.json. A broken file, a trial too few or one
 * that was never planned is no error: complete is false. -ERR_READ when a file is there and a read
 * of it failed: nothing is known, the attempt is to be read again. *out is the caller's in any
 * case.
 */
int ingest_attempt(const struct recipe *r, const struct stage_row *s,
		   const struct hypothesis_row *hyps, size_t n_hyps, const struct block_row *plan,
		   const char *dir, struct attempt_files *out, struct err *e);

/* The same of results that came without files and whose steps are still to be read: as lines of
 * $FETTLE_METRICS are. */
void ingest_steps(const struct recipe *r, const struct stage_row *s, struct attempt_files *a);

/* The same of the first slots, those of `plan`, of an attempt that did not come to its end: from
 * the records alone, with or without a manifest. out->hash is of the records. */
int ingest_prefix(const struct recipe *r, const struct stage_row *s,
		  const struct hypothesis_row *hyps, size_t n_hyps, const struct block_row *plan,
		  const char *dir, struct attempt_files *out, struct err *e);

/* If e is ERR_READ: what is read of the attempt does not count, and that is why. */
void ingest_unread(struct attempt_files *a, const struct err *e);

/* -- quality.c: was the machine fit to compare on ------------------------------------------------
 */

/* Read the step times of a trial and what its node did meanwhile. `steps` holds the workload's
 * values, `samples` those of the node (NULL: none), t what was made of both. */
void quality_read(const struct window *steps, const struct window *samples,
		  const struct trial_result *t, struct quality_trial *out);
/* Judge a complete attempt, blind to arms, and store what was found. *reason NULL: it counts; else
 * why it is void (heap). Nothing is void that holds a failed trial (failures are charged to their
 * arm) or belongs to a soak (which looks for drift); for the shape of its step times a block is
 * void once: what comes again is the workload's own. */
int quality_check(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		  const struct attempt_files *a, char **reason, struct err *e);

/* -- pairs.c: values of a stage as the statistics want them ---------------------------------------
 */

/* y[block * arms + arm] = log(objective), sign so that + is better, mean over repeats; NAN when the
 * arm has no ok trial in that block. Blocks in order of their index, valid ones only. Blocks of one
 * allocation on the same nodes are repeats of one unit: pairs_load() gives one row a unit, the mean
 * of its blocks, but for a screen one a block; pairs_load_units() gives the first block of each
 * unit: blocks of different units, whose noise is that of a unit of one block. */
struct pairs {
	double *y;
	size_t arms, blocks;
	size_t *failed, *trials; /* by arm: timed trials that failed, and all */
	char **fail_reason;      /* by arm: its first failure, with the path of the log, or NULL */
};
int pairs_load(struct campaign *c, const struct stage_row *s, struct pairs *out, struct err *e);
/* The same of a campaign that another process runs. */
int pairs_read(struct db *db, const struct recipe *r, const struct stage_row *s, struct pairs *out,
	       struct err *e);
int pairs_load_units(struct campaign *c, const struct stage_row *s, struct pairs *out,
		     struct err *e);
void pairs_done(struct pairs *p);
/* d of arm a against arm 0, pairs only; heap. */
size_t pairs_diff(const struct pairs *p, size_t arm, double **d);
char *pairs_hash(const struct pairs *p);
/* All guards of the recipe for arm `arm` against arm 0, and its failures against `p`'s: margins by
 * pairs of the same blocks, limits by the arm's own blocks. */
struct guard_results {
	struct guard_row *v; /* heap; without a verdict yet */
	size_t n;
	enum decide_guard worst;
	char *text; /* names the worst one; NULL when all passed */
};
int pairs_guard_results(struct campaign *c, const struct stage_row *s, size_t arm,
			const struct pairs *p, struct guard_results *out, struct err *e);
/* A stage that has one arm, each trial for itself: limits by its trials, and failures against those
 * of arm 0 of another stage. */
int pairs_alone(struct campaign *c, const struct stage_row *s, const struct pairs *alone,
		const struct pairs *base, struct guard_results *out, struct err *e);
void guard_results_done(struct guard_results *g);
/* The same in short, without failures; text is heap, NULL when passed. */
int pairs_guards(struct campaign *c, const struct stage_row *s, size_t arm,
		 enum decide_guard *worst, char **text, struct err *e);

/* One guard that is not the recipe's, at a single look; out is filled as above. */
int pairs_one_guard(struct campaign *c, const struct stage_row *s, size_t arm,
		    const struct guard *g, struct guard_results *out, struct err *e);

/* -- inputs.c --------------------------------------------------------------------------------- */

/* Why no verdict can follow from what the stage measured so far, a sentence (heap): the baseline
 * measured nothing, or a guard's metric is in no trial. NULL: nothing is wrong, or there is no
 * block yet. */
int inputs_fault(struct campaign *c, const struct stage_row *s, const struct pairs *p,
		 char **reason, struct err *e);

/* -- sweep.c ---------------------------------------------------------------------------------- */

/* Nothing is in flight any more: jobs of the campaign that live on all the same are cancelled. */
int sweep_jobs(struct campaign *c, struct err *e);

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
