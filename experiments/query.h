/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is stored about campaigns, and how it is asked for: one function a need, plain structs out.
 * Functions that write several rows run in the caller's transaction (db_begin); those marked [tx]
 * open their own. Arrays returned are heap, owned by the caller, freed by the *_free beside them.
 * Text members are owned by their struct.
 */
#ifndef FETTLE_EXPERIMENTS_QUERY_H
#define FETTLE_EXPERIMENTS_QUERY_H

#include "experiments/db.h"
#include "experiments/model.h"

/* -- workspace ------------------------------------------------------------------------------ */

/* The workspace's uuid (36 characters), made at the first call. [tx] */
int query_workspace_uuid(struct db *db, const struct clock *c, char out[37], struct err *e);

/* -- campaign ------------------------------------------------------------------------------- */

struct campaign_row {
	int64_t id;
	char *name, *recipe_path, *recipe_hash, *scheduler;
	enum campaign_state state;
	char *reason; /* why it stopped or failed; NULL */
	enum run_mode mode;
	uint64_t seed;
	double alpha;    /* of the whole campaign */
	int confirm_max; /* most confirm stages, fixed before the first result */
	char *env_json;  /* allow-listed environment captured at the first run */
	int64_t created_us, ended_us,
		deadline_us; /* deadline_us: created + budget.wall_s of running time, 0 none */
	/* Cost from which the budgets of trials and node hours count: 0, or what it was at the
	 * resume after they were used up. */
	int64_t resume_trials;
	double resume_node_s;
	char *user; /* who began it; NULL: not kept. Whoever writes when a row is created */
};
void campaign_row_done(struct campaign_row *c);

/* A source as it is stored: same order as struct script_sources. */
struct source_row {
	char *name, *path, *text, *hash;
};

/* New campaign with its sources. id comes back. [tx] */
int query_campaign_create(struct db *db, const struct campaign_row *c,
			  const struct source_row *sources, size_t n, int64_t *id, struct err *e);
int query_campaign_get(struct db *db, int64_t id, struct campaign_row *out,
		       struct err *e); /* ERR_NOT_FOUND */
/* Users other than that who submitted jobs of it, added to out. */
int query_campaign_submitters(struct db *db, int64_t id, struct strv *out, struct err *e);
/* Newest first; name NULL: all. */
int query_campaign_list(struct db *db, const char *name, struct campaign_row **out, size_t *n,
			struct err *e);
void campaign_rows_free(struct campaign_row *v, size_t n);
int query_campaign_sources(struct db *db, int64_t id, struct source_row **out, size_t *n,
			   struct err *e);
void source_rows_free(struct source_row *v, size_t n);
int query_campaign_state(struct db *db, int64_t id, enum campaign_state s, const char *reason,
			 int64_t ended_us, struct err *e);
/* Running again: budgets count from these costs, blocks have their attempts anew. */
int query_campaign_resume(struct db *db, int64_t id, int64_t trials, double node_s, struct err *e);
int query_campaign_deadline(struct db *db, int64_t id, int64_t deadline_us,
			    struct err *e); /* 0: none */

/* -- lease: one owner per campaign ---------------------------------------------------------- */

struct lease {
	char host[65];
	char boot_id[37];
	int64_t pid;
	uint64_t start_ticks;
	int64_t heartbeat_us;
	int64_t fence; /* grows by one at each take-over; the old owner's is stale */
};
/* Take the lease if it is free, ours, or lapsed (heartbeat older than lapse_us), or if `force`. The
 * caller judges whether a holder on this very host is dead before it forces. ERR_TEMP naming host,
 * pid and heartbeat when held. [tx] */
int query_lease_take(struct db *db, int64_t campaign, struct lease *mine, int64_t lapse_us,
		     bool force, struct err *e);
/* Take it from `dead`, a holder that the caller judged dead. ERR_TEMP when somebody else holds it
 * by now: of two that judge at once only one gets it. [tx] */
int query_lease_seize(struct db *db, int64_t campaign, struct lease *mine, const struct lease *dead,
		      struct err *e);
int query_lease_get(struct db *db, int64_t campaign, struct lease *out, bool *held, struct err *e);
/* ERR_STATE when someone else has taken over (fenced). */
int query_lease_beat(struct db *db, int64_t campaign, const struct lease *mine, struct err *e);
/* Free it; the fence stays, so that the next owner's is larger. ERR_STATE when fenced. */
int query_lease_drop(struct db *db, int64_t campaign, const struct lease *mine, struct err *e);
/* For transactions that must not be an old owner's: call it after db_begin(), and roll back on
 * ERR_STATE. */
int query_lease_check(struct db *db, int64_t campaign, const struct lease *mine, struct err *e);

/* -- configurations and hypotheses ----------------------------------------------------------- */

int query_config_put(struct db *db, const struct config *c, int64_t *id,
		     struct err *e); /* same hash, same id */
int query_config_get(struct db *db, int64_t id, struct config *out, struct err *e);

struct hypothesis_row {
	int64_t id, campaign;
	int round, rank;                 /* rank: 1 is tried first */
	char *knob, *value, *from_value; /* from_value NULL: was not set */
	enum knob_class cls;
	enum proof_level proof;
	bool user_defined;
	enum bottleneck bottleneck;
	char *evidence;       /* supporting signals, a sentence */
	double gain, ceiling; /* predicted, relative; NaN unknown */
	enum hypothesis_state state;
	char *reason; /* of linted_out, not_tried, screened_out; NULL */
};
void hypothesis_rows_free(struct hypothesis_row *v, size_t n);
int query_hypothesis_add(struct db *db, const struct hypothesis_row *h, int64_t *id, struct err *e);
int query_hypothesis_state(struct db *db, int64_t id, enum hypothesis_state s, const char *reason,
			   struct err *e);
int query_hypotheses(struct db *db, int64_t campaign, struct hypothesis_row **out, size_t *n,
		     struct err *e); /* by round, rank */

/* What the diagnosis said, one row a finding. */
struct finding_row {
	int round;
	char *bottleneck, *evidence, *rule;
	double share;
};
int query_finding_add(struct db *db, int64_t campaign, const struct finding_row *f, struct err *e);
int query_findings(struct db *db, int64_t campaign, struct finding_row **out, size_t *n,
		   struct err *e);
void finding_rows_free(struct finding_row *v, size_t n);

/* -- stages, arms, blocks --------------------------------------------------------------------- */

struct arm_row {
	int64_t id, stage, config, hypothesis; /* hypothesis 0: none */
	int index;                             /* 0 is the baseline */
	enum arm_role role;
	char *label; /* "default", "num_workers=2" */
};
struct stage_row {
	int64_t id, campaign, hypothesis; /* hypothesis: of a confirm stage, else 0 */
	int seq, round;
	enum stage_kind kind;
	int planned_blocks; /* most blocks */
	double alpha_share; /* confirm and final; else 0 */
	double ssr;         /* confirm: screen's residual sum of squares handed in; else 0 */
	int df0;
	bool open;
	char *note;           /* why it was closed; NULL */
	char *avoid_nodes;    /* nodes that its blocks stay away from, comma separated, beside the
			     recipe's; NULL: none */
	struct arm_row *arms; /* by index */
	size_t n_arms;
};
void stage_rows_free(struct stage_row *v, size_t n);
/* Stage with its arms (ids are filled in). In verify, screen and confirm stages each treatment arm
 * with a hypothesis gets its row in `experiment`, against arm 0. */
int query_stage_add(struct db *db, struct stage_row *s, struct err *e);
int query_stage_close(struct db *db, int64_t id, const char *note, struct err *e);
int query_stages(struct db *db, int64_t campaign, struct stage_row **out, size_t *n,
		 struct err *e); /* by seq */

struct slot {
	int64_t arm;
	int repeat;
	enum slot_kind kind;
	int index; /* in the block's plan; not read when a block is added */
};
struct block_row {
	int64_t id, stage;
	int index;
	/* What its newest attempt runs: the whole plan, but for the warm-up when another block of
	 * its allocation comes first. */
	struct slot *slots;
	size_t n_slots;
	/* its newest attempt; attempt 0: none yet */
	int64_t attempt_id;
	int attempt;
	int position; /* of that attempt in its allocation, from 0 */
	enum attempt_state state;
	char *reason, *dir; /* dir: relative to the workspace */
	int64_t allocation;
	char *token, *job_id; /* job_id NULL: never known to have been accepted */
	int voids; /* attempts of this block that ended void or lost since the last resume of a
		      stopped campaign; those that a user cancelled or that were preempted do not
		      count, nor those that were not begun (QUERY_NOT_BEGUN) */
};
void block_rows_free(struct block_row *v, size_t n);
int query_block_add(struct db *db, int64_t stage, int index, const struct slot *slots, size_t n,
		    int64_t *id, struct err *e);
int query_blocks(struct db *db, int64_t stage, struct block_row **out, size_t *n,
		 struct err *e); /* by index */
/* Only those without a valid attempt, by index, and how many blocks the stage has in all: what the
 * next step depends on. They hold what it gave before, or nothing: as a valid attempt stays one and
 * new blocks come last, only what was open and what is new is looked at, so that the cost does not
 * grow with the blocks that were run. On failure they are left as they were. */
int query_open_blocks(struct db *db, int64_t stage, struct block_row **v, size_t *n, size_t *total,
		      struct err *e);

/* -- allocations and attempts ----------------------------------------------------------------- */

/* Head of the reason of a void attempt whose allocation ended before its turn came. */
#define QUERY_NOT_BEGUN "not begun"

/* Intent: a new allocation and in it the next attempt of each block, in this order, committed
 * before the submit. The token is "fettle:<uuid8>:a<allocation id>"; the directory of an attempt is
 * "blocks/<block>.<attempt>". ERR_STATE, and nothing is stored, while a block has an open or a
 * valid attempt: a plan that is made twice is refused. n at least 1. [tx] */
int query_allocation_plan(struct db *db, int64_t campaign, const int64_t *blocks, size_t n,
			  const char *scheduler, int64_t now_us, int64_t *allocation,
			  char token[64], struct err *e);
/* The same for one block, telling its attempt. */
int query_attempt_plan(struct db *db, int64_t campaign, int64_t block, const char *scheduler,
		       int64_t now_us, int64_t *attempt_id, int *attempt, int64_t *allocation,
		       char token[64], struct err *e);
/* Its attempts become submitted. The same job id again changes nothing; another one: ERR_STATE. */
int query_allocation_submitted(struct db *db, int64_t allocation, const char *job_id,
			       int64_t now_us, struct err *e);
/* What the scheduler said in the end (state words of sched.h as text). Times only ever widen what
 * is known of the allocation: each of its blocks tells its own part; 0: not known. */
int query_allocation_end(struct db *db, int64_t allocation, const char *end, const char *reason,
			 const char *nodes, int64_t start_us, int64_t end_us, struct err *e);
/* void or lost, with the reason; no event is added. The same state again changes nothing; a valid
 * one: ERR_STATE. */
int query_attempt_fail(struct db *db, int64_t attempt_id, enum attempt_state s, const char *reason,
		       int64_t now_us, struct err *e);
/* Directories of all attempts of a campaign, relative to the workspace; *open: some are planned or
 * submitted. */
int query_attempt_dirs(struct db *db, int64_t campaign, struct strv *out, bool *open,
		       struct err *e);

/* Is the token that of an allocation of this campaign which has no block in flight? */
int query_allocation_over(struct db *db, int64_t campaign, const char *token, bool *over,
			  struct err *e);

/* How the allocations of a campaign ended (words of job_end_name), the newest first, `most` at
 * most; those before the last resume of a stopped campaign and those that a user cancelled are left
 * out.
 */
struct end_row {
	int64_t allocation;
	char *outcome, *reason;
	bool valid; /* it holds a valid attempt */
};
int query_ends(struct db *db, int64_t campaign, size_t most, struct end_row **out, size_t *n,
	       struct err *e);
void end_rows_free(struct end_row *v, size_t n);
/* The same by node: how many of its allocations since that resume ended so. */
struct node_end_row {
	char *node, *outcome;
	int n;
};
int query_node_ends(struct db *db, int64_t campaign, struct node_end_row **out, size_t *n,
		    struct err *e);
void node_end_rows_free(struct node_end_row *v, size_t n);
/* How many allocations of a campaign, of those after `after` and up to `upto`, each node was in; by
 * node. */
struct node_use_row {
	char *node;
	int n;
	int64_t newest; /* of them that holds a valid attempt; 0: none */
};
int query_node_use(struct db *db, int64_t campaign, int64_t after, int64_t upto,
		   struct node_use_row **out, size_t *n, struct err *e);
void node_use_rows_free(struct node_use_row *v, size_t n);
/* Every node of every allocation of a campaign, by allocation. */
struct place_row {
	int64_t allocation;
	char *node;
};
int query_places(struct db *db, int64_t campaign, struct place_row **out, size_t *n, struct err *e);
void place_rows_free(struct place_row *v, size_t n);
/* Mean of a metric (without labels) over the timed, ok trials of a campaign whose first node it is.
 */
struct node_mean_row {
	char *node;
	double mean;
	int n;
};
int query_node_means(struct db *db, int64_t campaign, const char *metric, const char *stat,
		     struct node_mean_row **out, size_t *n, struct err *e);
void node_mean_rows_free(struct node_mean_row *v, size_t n);
/* An attempt of a new block that was not planned: what another attempt of this allocation left. It
 * is submitted, and its results are stored as those of any other. */
int query_attempt_keep(struct db *db, int64_t block, int64_t allocation, int64_t *attempt_id,
		       struct err *e);

/* Everything of a finished attempt in one transaction; the attempt becomes valid. Each planned slot
 * must have its trial, of the planned arm, repeat and kind: else ERR_STATE and nothing is stored.
 * Keyed by (token, slot): the same bytes again change nothing; other bytes make an event `conflict`
 * and the first stay; results of an attempt given up before make an event `late`. In these three
 * cases *again is set. Values that are no number or outside the bounds of the catalogue are left
 * out, each with an event `out_of_range` (20 at most, then one with their number); metrics that it
 * does not know are stored without unit and bounds; labels are sorted; of a value given twice the
 * last one counts. [tx] */
int query_attempt_ingest(struct db *db, int64_t attempt_id, const char *manifest_hash,
			 const struct trial_result *trials, size_t n, const char *const *nodes,
			 size_t n_nodes, int64_t now_us, bool *again, struct err *e);

/* What a second reading of an attempt's files gave otherwise than the first. */
struct reread {
	struct revalue {
		int slot;
		char *metric, *stat, *labels;
		double was, is; /* NaN: it was not there, or is no longer */
	} * v;
	size_t n, cap;
	struct restate {
		int slot;
		enum trial_state was, is;
		char *reason; /* why it is that now, or NULL */
	} * states;
	size_t n_states, cap_states;
};
void reread_done(struct reread *r);
/* Put what the parsers of this program make of the files of a valid attempt in place of what is
 * stored: the trials' states, reasons, values and evidence, and the attempt's parser_rev. Nothing
 * else changes, whatever was decided by the old values. ERR_STATE, and nothing is changed, when the
 * attempt does not count, when its manifest is another (manifest_hash NULL: not asked) or a slot
 * has no trial. [tx] */
int query_attempt_reread(struct db *db, int64_t attempt_id, const char *manifest_hash,
			 const struct trial_result *trials, size_t n, int64_t now_us,
			 struct reread *out, struct err *e);

/* -- where it ran, and what ablation found --------------------------------------------------- */

/* Nodes of the valid attempts of a campaign's stages, by seq of the stage and name: what an
 * allocation was given, as its agent (or else the scheduler) told. */
struct node_row {
	int64_t stage;
	enum stage_kind kind;
	char *node;
	int blocks; /* valid ones of that stage on it */
};
int query_nodes(struct db *db, int64_t campaign, struct node_row **out, size_t *n, struct err *e);
void node_rows_free(struct node_row *v, size_t n);

/* Every attempt with the time that its allocation held, by its part: until the next attempt of the
 * allocation ended its own, when it was told; 0: not known. */
struct run_row {
	int64_t stage, allocation;
	int block, attempt; /* block: index */
	enum attempt_state state;
	char *reason;
	int64_t start_us, end_us;
};
int query_runs(struct db *db, int64_t campaign, struct run_row **out, size_t *n,
	       struct err *e); /* by stage, block, attempt */
void run_rows_free(struct run_row *v, size_t n);

/* What an ablate stage found about one of its treatment arms, the fix without one change. */
struct ablation_row {
	int64_t stage, arm;
	char *knobs;        /* the change that is removed: names, comma separated */
	int n;              /* pairs */
	double est, lo, hi; /* relative effect of the removal, + is better without; lo and hi:
			       one-sided 95 % bounds; NaN unknown */
	enum ablation_outcome outcome;
	char *reason; /* what else decided (a guard); NULL */
};
int query_ablation_add(struct db *db, const struct ablation_row *a, struct err *e);
int query_ablations(struct db *db, int64_t campaign, struct ablation_row **out, size_t *n,
		    struct err *e); /* by seq of the stage, index of the arm */
void ablation_rows_free(struct ablation_row *v, size_t n);

/* What a rung of the scaling ladder keeps of the throughput a rank (1: all of it), against the rung
 * below and against the first; NaN: not measured. */
struct rung_row {
	int64_t stage;
	int round, nodes, tasks_per_node, n; /* n: pairs */
	double est, lo, hi, total, total_lo, total_hi;
	bool held; /* it lost no more than the recipe allows */
	/* Of the step's time on this rung, what came on top of the rung below; NaN: not known. */
	double communication, straggler, input, rest;
};
int query_rung_add(struct db *db, const struct rung_row *g, struct err *e);
/* Where the loss of a rung went. */
struct step_shares;
int query_rung_split(struct db *db, int64_t stage, const struct step_shares *loss, struct err *e);
/* By round; heap. */
int query_rungs(struct db *db, int64_t campaign, struct rung_row **out, size_t *n, struct err *e);

/* -- what was measured ------------------------------------------------------------------------ */

/* One timed trial of a valid attempt of a stage, with one metric of it. */
struct value_row {
	int64_t block, arm, trial;
	int64_t allocation;
	int block_index, repeat, slot;
	enum trial_state state;
	char *reason, *log_path, *node; /* node: its first */
	double value;                   /* NaN when the trial has none */
};
void value_rows_free(struct value_row *v, size_t n);
int query_stage_values(struct db *db, int64_t stage, const char *metric, const char *stat,
		       struct value_row **out, size_t *n, struct err *e); /* by block index, slot */
/* A point of a metric's curve (stat "at"): what a timed, ok trial had when it had consumed x. */
struct curve_row {
	int block_index;
	int64_t arm, allocation;
	char *node; /* the trial's first */
	double x, value;
};
/* axis "samples" or "tokens"; by block index, then x, the largest first. */
int query_stage_curve(struct db *db, int64_t stage, const char *metric, const char *axis,
		      struct curve_row **out, size_t *n, struct err *e);
void curve_rows_free(struct curve_row *v, size_t n);
/* The same for a metric with the label size_bytes (collectives): x is the size in bytes; by size,
 * then block index. */
int query_stage_sizes(struct db *db, int64_t stage, const char *metric, const char *stat,
		      struct curve_row **out, size_t *n, struct err *e);
/* Mean over the timed, ok trials of an arm of every (metric, stat) with empty labels: signals. */
struct signal_row {
	char *metric, *stat;
	double mean, sd;
	int64_t n;
};
int query_arm_signals(struct db *db, int64_t arm, struct signal_row **out, size_t *n,
		      struct err *e);
/*
 * The signals of a trial under a profiler (arm of a profile stage), and what the profiler cost: a
 * step in its trace and one of the timed trials of the same configuration in the last stage before,
 * in ms, NAN where unknown. The shares of the step on the device are given as they are without it.
 */
struct profile_price {
	double traced_ms, timed_ms;
};
int query_profile_signals(struct db *db, int64_t arm, struct signal_row **out, size_t *n,
			  struct profile_price *price, struct err *e);
/*
 * A profiler slows the host down and lets kernels and copies take as long as before, so that in its
 * trace the device idles more than it does in fact. With steps `slower` times as long under it (1
 * or less, NAN: nothing is done), computing and copies get `slower` times their share, as far as
 * the step has room; communication and the wait for data keep theirs (who is waited for was slowed
 * down too); the rest of the idle time and its causes shrink alike to what is left. Ours. Programs
 * without a device (no gpu_idle_ratio) are left as they are: all of them is host.
 */
void signal_rows_without_profiler(struct signal_row *v, size_t n, double slower);
/* The means of every metric with empty labels in the timed, ok trials of a stage, by metric, then
 * block. */
struct mean_row {
	char *metric;
	int64_t arm;
	int block_index;
	double value;
};
int query_stage_means(struct db *db, int64_t stage, struct mean_row **out, size_t *n,
		      struct err *e);
void mean_rows_free(struct mean_row *v, size_t n);
/* Sum over the devices of one node of an arm's mean rate, without loopback; NaN: not sampled. */
int query_arm_rate(struct db *db, int64_t arm, const char *metric, double *out, struct err *e);
void signal_rows_free(struct signal_row *v, size_t n);
/* The row of this metric's mean, NULL when there is none; and that mean over the trials, NaN then.
 */
const struct signal_row *signal_rows_find(const struct signal_row *v, size_t n, const char *metric);
double signal_rows_mean(const struct signal_row *v, size_t n, const char *metric);
/* Effective values of the timed, ok trials of a stage: by block index, slot, rank, key. */
struct effective_row {
	int64_t block, arm, trial;
	int rank;
	char *key, *value;
	enum proof_level level;
};
int query_stage_effective(struct db *db, int64_t stage, struct effective_row **out, size_t *n,
			  struct err *e);
void effective_rows_free(struct effective_row *v, size_t n);
/* One more than the highest rank that showed any in the timed, ok trials of an arm; 0: none did. */
int query_arm_ranks(struct db *db, int64_t arm, int *out, struct err *e);
/* The same of one arm in short, for reports: each distinct (key, value, level) with the number of
 * ranks x trials that showed it, by key; without the hashes of other variables. */
struct shown_row {
	char *key, *value;
	enum proof_level level;
	int64_t n;
};
int query_arm_shown(struct db *db, int64_t arm, struct shown_row **out, size_t *n, struct err *e);
void shown_rows_free(struct shown_row *v, size_t n);

/* -- verdicts, fixes, events --------------------------------------------------------------------
 */

struct verdict_row {
	int64_t id, stage, hypothesis; /* hypothesis 0: none */
	int look, n;                   /* n: pairs */
	bool final_look;               /* no further look follows */
	char *outcome;                 /* a word of verdict_outcome, or "continue" */
	char *reason;
	/* Relative effect of the treatment on the objective, + is better. lo and hi are the rule's
	 * own repeated interval: a side errs with at most the stage's alpha share over all looks,
	 * so it agrees with the outcome. */
	double est, lo, hi;
	double df, p, p_star, alpha_spent;
	double sign_flip_p; /* NaN below n = 5 */
	bool pending_convergence;
	bool effect_unproved;
	char *inputs_hash; /* of the pairs it was computed from */
	int64_t at_us;
};
void verdict_rows_free(struct verdict_row *v, size_t n);
/* ERR_STATE for a second verdict of one (stage, hypothesis), or the same look with the same n and
 * outcome again. final_look must be set unless the outcome is "continue". */
int query_verdict_add(struct db *db, int64_t campaign, const struct verdict_row *v, int64_t *id,
		      struct err *e); /* append-only */
int query_verdicts(struct db *db, int64_t campaign, struct verdict_row **out, size_t *n,
		   struct err *e); /* by id */

/* What a guard said at a look, or about the fix in a stage of its own. Immutable like the verdict
 * that it belongs to. */
struct guard_row {
	int64_t verdict, stage; /* one of them, the other is 0 */
	char *metric, *stat;
	char *rule;  /* "margin", "at_most", "at_least", "failures" */
	char *equal; /* compared at equal "step", "samples" or "tokens" */
	int n;       /* pairs, or blocks of the candidate; failures: its trials */
	/* The candidate's mean in the metric's unit, and how much worse it is: relative to the
	 * baseline (margin), over the limit as a share of it, or as a share of trials (failures).
	 * lo, hi: its bounds. bound: the margin, or the limit in the metric's unit. */
	double value, worsening, lo, hi, bound;
	char *state; /* "passed", "unsettled", "violated" */
};
void guard_rows_free(struct guard_row *v, size_t n);
int query_guard_add(struct db *db, const struct guard_row *g, struct err *e);
int query_guards(struct db *db, int64_t campaign, struct guard_row **out, size_t *n,
		 struct err *e); /* by verdict, in the order of the recipe */
/* Of the final stage and the soak. */
int query_fix_guard_add(struct db *db, const struct guard_row *g, struct err *e);
int query_fix_guards(struct db *db, int64_t campaign, struct guard_row **out, size_t *n,
		     struct err *e); /* by stage, in the order of the recipe */

struct fix_row {
	int64_t id, campaign, config, stage;
	double est, lo, hi;
	int n;
	char *state;  /* "validated", "accepted, pending convergence", "gain not seen again", "not
			 measured", "rejected: guard", "rejected: loss not held" */
	char *reason; /* what a guard of the fix said that did not pass; NULL */
	char *fingerprint; /* JSON of the environment it holds for */
	double soak_drift; /* relative; NaN: no soak */
	int64_t at_us;
};
int query_fix_put(struct db *db, const struct fix_row *f, int64_t *id,
		  struct err *e); /* one a campaign: replaced */
int query_fix_get(struct db *db, int64_t campaign, struct fix_row *out, bool *found, struct err *e);
void fix_row_done(struct fix_row *f);

struct event_row {
	int64_t id, at_us;
	char *kind, *text; /* kind: "conflict", "void", "lost", "resumed", "stopped", "lint", ... */
};
int query_event_add(struct db *db, int64_t campaign, int64_t at_us, const char *kind,
		    const char *text, struct err *e);
int query_events(struct db *db, int64_t campaign, struct event_row **out, size_t *n, struct err *e);
void event_rows_free(struct event_row *v, size_t n);
/* The newest event of a kind whose text starts so. */
int query_event_last(struct db *db, int64_t campaign, const char *kind, const char *start,
		     struct event_row *out, bool *found, struct err *e);
void event_row_done(struct event_row *v);
/* Where the node hours of a campaign went, the most first; they sum up to query_cost()'s. Kinds:
 * "timed trials", "failed trials", "warm-up trials", "between trials" (start, cleaning), "void
 * attempts", "jobs that ended: <outcome>", "in flight" (not counted yet). */
struct account_row {
	char *kind;
	int64_t allocations;
	double node_s;
};
int query_account(struct db *db, int64_t campaign, struct account_row **out, size_t *n,
		  struct err *e);
void account_rows_free(struct account_row *v, size_t n);
/* What the cluster's accounts say that jobs took: those of one, or of a whole campaign. Below 0:
 * not recorded. */
struct consumed_row {
	int64_t jobs, jobs_all; /* of a campaign: jobs with accounts, and all of them */
	int64_t elapsed_s;
	int64_t maxrss_kib; /* the most that a task of any of them used */
	int64_t energy_j;   /* of their nodes, by their own sensors */
	int64_t energy_s;   /* time of those jobs whose energy is known */
	char *tres;         /* what one held; NULL */
};
int query_account_put(struct db *db, int64_t allocation, const struct consumed_row *c,
		      int64_t now_us, struct err *e);
int query_consumed(struct db *db, int64_t campaign, struct consumed_row *out, struct err *e);
void consumed_row_done(struct consumed_row *c);
/* Allocations that ended since then and have no accounts yet, `most` at most. */
struct unaccounted_row {
	int64_t allocation;
	char *job_id;
};
int query_unaccounted(struct db *db, int64_t campaign, int64_t since_us, size_t most,
		      struct unaccounted_row **out, size_t *n, struct err *e);
void unaccounted_rows_free(struct unaccounted_row *v, size_t n);
/* The switches above a node of an allocation ("s0.s3"); a node that is not of it is left out. */
int query_switches_put(struct db *db, int64_t allocation, const char *node, const char *switches,
		       struct err *e);
/* Each node that a campaign was on. */
struct host_row {
	char *node, *switches; /* switches: NULL unknown */
	int allocations;
	int first_rank, last_rank; /* that were seen there; -1: none */
	double clock_ms;           /* its clock less that of the first node, mean; NaN unknown */
	double sampler_pct;        /* of a core, that sampling it took; NaN unknown */
};
int query_hosts(struct db *db, int64_t campaign, struct host_row **out, size_t *n, struct err *e);
void host_rows_free(struct host_row *v, size_t n);

/* Was an event `drain` added since the campaign stopped last? Anybody may add one: its owner then
 * starts no further block, and stops when none is in flight. */
int query_draining(struct db *db, int64_t campaign, bool *out, struct err *e);

/* Trials that are not ok, and attempts that were given up (arm "", slot -1, log_path the agent's
 * own output), for the report, with stage, arm label and log path; after them the trials that are
 * ok and of which something was noticed. */
struct fault_row {
	char *stage, *arm, *state, *reason, *log_path;
	int block_index, slot, attempt;
	int stage_seq;
};
int query_faults(struct db *db, int64_t campaign, struct fault_row **out, size_t *n, struct err *e);
void fault_rows_free(struct fault_row *v, size_t n);

/* What the rules of trial quality found, for the report. */
struct quality_row {
	char *stage, *state;            /* kind of the stage; state of the attempt */
	int block_index, attempt, slot; /* slot -1: the attempt as a whole */
	enum quality_rule rule;
	enum quality_action action;
	double value, bound;
	char *text;
};
void quality_rows_free(struct quality_row *v, size_t n);
/* Finding number seq of an attempt; the same again replaces it. Uses slot to text of `q`. */
int query_quality_put(struct db *db, int64_t attempt_id, int seq, const struct quality_row *q,
		      struct err *e);
int query_quality(struct db *db, int64_t campaign, struct quality_row **out, size_t *n,
		  struct err *e); /* by stage, block, attempt */

/* -- a view of what runs ----------------------------------------------------------------------- */

/* Blocks of a stage that ended valid among those whose jobs were planned since then, when the first
 * of those jobs was planned and when the newest block ended; n 0: none. */
struct pace_row {
	int n;
	int64_t first_us, last_us;
};
int query_stage_pace(struct db *db, int64_t stage, int64_t since_us, struct pace_row *out,
		     struct err *e);
/* trials_all and node_s of query_cost(), at a fraction of its cost. */
int query_spent(struct db *db, int64_t campaign, int64_t *trials, double *node_s, struct err *e);
/* What a campaign has for what it spent: trials of attempts that count, and the time during which
 * something was planned, queued or running. */
struct useful_row {
	int64_t trials;
	double busy_s;
};
int query_useful(struct db *db, int64_t campaign, struct useful_row *out, struct err *e);
/* A metric of the newest `most` timed trials of a stage, the oldest of them first; NaN: the trial
 * failed or has no such value. *out is heap. */
int query_stage_recent(struct db *db, int64_t stage, const char *metric, const char *stat,
		       size_t most, double **out, size_t *n, struct err *e);

/* Cost so far. */
struct cost_row {
	int64_t trials_timed, trials_all, attempts, attempts_void, allocations;
	double trial_s; /* sum of wall time of all trials */
	double node_s;  /* sum over ended allocations of time x nodes; without a time from the
			   scheduler, that of its trials */
};
int query_cost(struct db *db, int64_t campaign, struct cost_row *out, struct err *e);
/* One allocation's part in trials_all and node_s: a campaign adds up what it settles, since
 * query_cost() walks over all of its trials. */
int query_allocation_cost(struct db *db, int64_t allocation, int64_t *trials, double *node_s,
			  struct err *e);

#endif
