/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an experiment is, as plain values: no handles, no Lua, no SQL. A recipe is read into these
 * structs once and never changed; configurations are made from it by config_*(); everything that
 * is measured comes back as trial_result. Each struct owns what it points to and has one *_free.
 */
#ifndef FETTLE_EXPERIMENTS_MODEL_H
#define FETTLE_EXPERIMENTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/container.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* Every enum below has NAME_name(value) -> the word stored in the database and shown, and
 * NAME_parse(word, &out) -> false for an unknown word. The words are those of DESIGN 1. */
#define MODEL_ENUM(type)                      \
	const char *type##_name(enum type v); \
	bool type##_parse(const char *word, enum type *out);

enum better { BETTER_UP, BETTER_DOWN, BETTER_NONE }; /* up, down, none */
enum knob_class { CLASS_NEUTRAL, CLASS_NUMERICS, CLASS_OPTIMISATION };
enum knob_how { HOW_ENV, HOW_ARG, HOW_BUNDLE, HOW_KEY }; /* env, arg, bundle, key */
enum proof_level { PROOF_NONE, PROOF_DELIVERED, PROOF_ACKNOWLEDGED, PROOF_EFFECTIVE };
enum run_mode { MODE_QUICK, MODE_STANDARD, MODE_LONG, MODE_STRICT };
enum stage_kind {
	STAGE_AA,
	STAGE_VERIFY,
	STAGE_SCREEN,
	STAGE_CONFIRM,
	STAGE_ABLATE,
	STAGE_FINAL,
	STAGE_SOAK,
	STAGE_CANARY,
	STAGE_CONVERGE, /* the long run of a pending fix */
	STAGE_PROFILE,  /* one untimed trial of the incumbent under a profiler */
	STAGE_LADDER    /* a rung of the scaling ladder against the one below */
};
enum arm_role {
	ROLE_BASELINE,
	ROLE_TREATMENT
}; /* an A/A stage has one of each, of one configuration */
enum hypothesis_state { HYP_PROPOSED, HYP_LINTED_OUT, HYP_NOT_TRIED, HYP_SCREENED_OUT, HYP_TESTED };
enum bottleneck {
	BOTTLENECK_UNKNOWN,
	BOTTLENECK_COMPUTE,
	BOTTLENECK_COMMUNICATION,
	BOTTLENECK_STORAGE,
	BOTTLENECK_HOST,
	BOTTLENECK_MEMORY
};
enum trial_state {
	TRIAL_OK,
	TRIAL_FAILED,
	TRIAL_VOID,
	TRIAL_LOST
}; /* ok, failed (its arm's fault), void (infrastructure's), lost (no record) */
enum attempt_state {
	ATTEMPT_PLANNED,
	ATTEMPT_SUBMITTED,
	ATTEMPT_VALID,
	ATTEMPT_VOID,
	ATTEMPT_LOST
};
enum slot_kind { SLOT_WARMUP, SLOT_TIMED }; /* a warm-up trial is run and never counted */
enum campaign_state { CAMPAIGN_RUNNING, CAMPAIGN_STOPPED, CAMPAIGN_DONE, CAMPAIGN_FAILED };
enum verdict_outcome {
	VERDICT_INVALID,        /* no claim possible: see the reason */
	VERDICT_REJECTED_GUARD, /* a guard (loss, memory, tails, failures) is violated */
	VERDICT_ACCEPTED,
	VERDICT_EQUIVALENT,
	VERDICT_REJECTED_NO_GAIN,
	VERDICT_REJECTED_WORSE,
	VERDICT_INCONCLUSIVE,
};
/* What becomes of an accepted change when the fix is measured without it. */
enum ablation_outcome {
	ABLATION_PAYS,    /* removing it makes things worse */
	ABLATION_OPEN,    /* neither is shown: it is kept */
	ABLATION_USELESS, /* removing it costs less than the smallest useful effect; kept all the
			     same, since another one was dropped and both at once were not measured
			   */
	ABLATION_DROPPED, /* the same, and it was taken out of the fix */
};
/* Rules of trial quality: quality.h says what each looks at. */
enum quality_rule {
	QUALITY_FAIL_SLOW, /* steps become slower within a trial */
	QUALITY_STEADY,    /* most trials drift the same way */
	QUALITY_DRIFT,     /* one does */
	QUALITY_OUTLIERS,  /* single steps stand out */
	QUALITY_CLOCKS,    /* clocks differ between trials */
	QUALITY_THROTTLE,  /* a device protects itself in some trials */
	QUALITY_NEIGHBOUR, /* other load differs between trials */
};
enum { QUALITY_RULES = QUALITY_NEIGHBOUR + 1 };
/* Where blocks run: wherever the scheduler puts them; all on the nodes of the first; on as many
 * nodes as there are. */
enum placement { PLACEMENT_ANY, PLACEMENT_SAME, PLACEMENT_SPREAD };
enum quality_action { QUALITY_OFF, QUALITY_NOTE, QUALITY_VOID }; /* off, note, void */
/* Whether a campaign profiles its baseline and each new incumbent; unsaid: where it is a Python
 * program that runs. */
enum profile_wish { PROFILE_UNSAID, PROFILE_NO, PROFILE_YES };
/* How often `fettle nightly` runs a campaign file: night, week, none (never by itself). */
enum cadence { CADENCE_NIGHT, CADENCE_WEEK, CADENCE_NONE };
/* What is read for a key of the recipe's own in the environment: a file's first line, the first
 * line that a command prints, a variable of the trial. */
enum fingerprint_how { FINGERPRINT_FILE, FINGERPRINT_COMMAND, FINGERPRINT_ENV };
MODEL_ENUM(cadence)
MODEL_ENUM(fingerprint_how)
MODEL_ENUM(profile_wish)
MODEL_ENUM(quality_rule)
MODEL_ENUM(placement)
MODEL_ENUM(quality_action)
MODEL_ENUM(better)
MODEL_ENUM(knob_class)
MODEL_ENUM(knob_how)
MODEL_ENUM(proof_level)
MODEL_ENUM(run_mode)
MODEL_ENUM(stage_kind)
MODEL_ENUM(arm_role)
MODEL_ENUM(hypothesis_state)
MODEL_ENUM(bottleneck)
MODEL_ENUM(trial_state)
MODEL_ENUM(attempt_state)
MODEL_ENUM(slot_kind)
MODEL_ENUM(campaign_state)
MODEL_ENUM(ablation_outcome) /* "pays", "open", "useless", "dropped" */
MODEL_ENUM(verdict_outcome) /* "invalid", "rejected: guard", "accepted", "equivalent", "rejected: no
			       useful gain", "rejected: worse", "inconclusive" */

/* -- metrics ------------------------------------------------------------------------------- */

struct metric_def {
	const char *name, *unit;
	enum better better;
	double min, max; /* values outside are refused at ingest */
	const char *summary;
};
extern const struct metric_def metric_defs[]; /* from metrics.def; ends with name NULL */
const struct metric_def *metric_def_find(const char *name); /* NULL if not in the catalogue */
bool metric_name_valid(const char *name);                   /* [a-z][a-z0-9_.]*, at most 64 bytes */

/* -- recipe -------------------------------------------------------------------------------- */

/* Where a field stands in the user's text; line 0 when unknown. */
struct place {
	char *file;
	int line;
};

/* The proof that a setting took effect. `level` is what must be shown before a verdict may be
 * accepted; the others say how to show it. "{value}" in a pattern stands for the arm's value. */
struct proof {
	enum proof_level level;
	char *log_pattern; /* acknowledged: PCRE2, searched in the trial's output and in facts
			      "key=text" of the probes; the component's own line */
	char *fact;        /* acknowledged: a probe fact's key whose text must equal the value
			      ("nccl.env.NCCL_BUFFSIZE") */
	char *maps;        /* effective: a file whose name contains this is mapped into every rank
			      (libjemalloc) */
	char *metric; /* effective: mean of this sampled metric (tree_procs, tree_threads) ... */
	char *metric_expect; /* ... must differ from the baseline arm's in this direction: "up",
				"down", "change" */
	struct kvs env;      /* what makes the component talk: set in every arm, unless the workload
				does */
};

/* What is known of a knob beside what the method needs: for people, for lint, and for passing it in
 * a framework. */
struct knob_about {
	struct kvs passed;    /* framework or place -> how it is passed there (script/passed.h) */
	char *since, *gone;   /* "nccl 2.17.1": the first version with it, the first without it */
	struct kvs defaults;  /* "nccl 2.14.3" -> what it is from that version on, oldest first */
	char *documented;     /* "user", "system", "debug", "no" */
	char *applies;        /* transport or condition under which it does anything */
	struct strv excludes; /* knobs or variables that must not be set beside it */
	struct strv idle;     /* "NAME=VALUE": it does nothing while that is so */
	struct strv mistakes; /* what users get wrong, a sentence each */
	char *safe, *when;    /* safe values; when it is worth trying */
	char *evidence;       /* where else its effect shows */
};

/* One value of a knob that is a declared bundle: settings that change together. What it gains is
 * the bundle's and is credited to none of them. */
struct bundle {
	struct kvs env;      /* value NULL: the variable is taken out */
	struct strv command; /* in place of the workload's; empty: that stays */
};

struct knob {
	char *name, *summary;
	enum knob_how how;
	char *target; /* variable name, or argument ("--num-workers", or "--x=" for one token), or
			 key of the workload's configuration file ("a.b"); NULL: a bundle */
	char *subkey; /* inside a list "k:v,k:v" of the variable (PYTORCH_CUDA_ALLOC_CONF); NULL if
			 none */
	bool flag;    /* argument without a value: "true" puts it in, "false" takes it out */
	enum knob_class cls;
	char *default_value;    /* what the baseline has; NULL: not set at all */
	struct strv values;     /* candidate values, text; the default is not among them */
	struct bundle *bundles; /* HOW_BUNDLE: what each of the values stands for; else NULL */
	struct proof proof;
	struct strv
		implies; /* effective keys that may change with it: "env.NAME" or "arg.--name" */
	char *requires_knob;         /* meaningful only when this knob ... */
	struct strv requires_values; /* ... has one of these values in the incumbent
					(prefetch_factor needs num_workers > 0) */
	enum bottleneck bottleneck;  /* what it addresses, for the default rule */
	char *expect; /* function path for script_eval(): signals -> {gain=, ceiling=, why=}; NULL:
			 none */
	char *lint;   /* function path: (value, signals) -> nil or a reason to leave it out; NULL:
			 none */
	struct strv refused; /* of each value why lint leaves it out, "" where it does not; empty
				when it leaves out none */
	bool user_defined;  /* defined in the campaign itself: defaults to proof delivered, reported
			       as "effect unproved" */
	char *risk, *notes; /* one line each; NULL: none */
	struct knob_about about;
	struct place at;
};
/* What the workload's own command or environment already gives to the knob; heap, NULL: nothing. */
struct workload;
char *knob_present(const struct knob *k, const struct workload *w);
/* What a value of a bundle stands for; NULL for another knob, or a value that it does not have. */
const struct bundle *knob_bundle(const struct knob *k, const char *value);
/* For people: "A=1, without B, command ./x y"; heap. */
char *bundle_text(const struct bundle *b);
void bundle_done(struct bundle *b);
/* Why lint leaves this value out; NULL: it does not. Borrowed. */
const char *knob_refused(const struct knob *k, const char *value);
void knob_done(struct knob *k); /* what it holds, not k itself; NULL is fine */

struct guard {
	char *metric;
	char *stat;    /* "mean", "p95", "last", "max", ...: see metric_stat in query.h */
	double margin; /* relative, >= 0: how much worse it may be; NaN: only a limit */
	double at_most, at_least; /* absolute limits of the candidate, in the metric's unit; NaN */
	enum better better;       /* of the metric; none: neither way is allowed */
	char *equal;     /* compare arms at equal "step", "samples", "tokens"; NULL: by the batch */
	bool constraint; /* stands under `constraints` in the recipe */
	struct place at;
};
/* Must a guard's metric be known over the whole run of a trial, and not only at its end? For losses
 * and for what asks for it, where a knob of the recipe may change the batch. */
struct recipe;
bool guard_needs_curve(const struct guard *g, const struct recipe *r);

/* recipe.aa_blocks and recipe.final_blocks: the stage is left out (0: as many as the mode has). */
enum { BLOCKS_NONE = -1 };

enum metric_source {
	SOURCE_PROBE,
	SOURCE_PATTERN,
	SOURCE_METRICS_FILE
}; /* output through a probe; through a pattern; $FETTLE_METRICS */
MODEL_ENUM(metric_source)

/* The model that a workload trains, as far as its floating-point operations need it (derive.h). */
enum flops_formula { FLOPS_6N, FLOPS_PALM, FLOPS_CAUSAL, FLOPS_LORA };
enum flops_dtype { FLOPS_FP32, FLOPS_TF32, FLOPS_FP16, FLOPS_BF16, FLOPS_FP8 };
enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL };
struct model_shape {
	double params; /* that a token uses; 0: not told, and nothing is computed */
	double layers, hidden, seq_length; /* hidden: heads x dimension of a head; 0: not told */
	enum flops_formula formula;
	enum flops_dtype dtype;
	enum recompute recompute;
	char *gpu;          /* NULL: as nvidia-smi names it */
	double peak_tflops; /* 0: of the table */
};

/* The same training on fewer devices, which scaling efficiency is told against. */
struct scaling {
	double gpus, tokens_per_s, samples_per_s; /* rates of all of them; 0: not told */
};

struct workload {
	char *name;
	struct strv command;         /* argv; command[0] is looked up in PATH of the trial */
	char *workdir;               /* absolute, existing */
	struct kvs env;              /* on top of the captured allow-list */
	struct strv secrets;         /* names of variables passed by name, never stored */
	struct container container;  /* that trials run in; runtime NULL: none */
	int64_t warmup_steps, steps; /* measured window; steps 0: the trial runs to its own end */
	char *step_pattern; /* PCRE2 that matches once a step in the output; NULL with steps 0 or
			       source metrics_file */
	enum metric_source source;
	char *probe;           /* SOURCE_PROBE: probe name ("train_log") */
	char *pattern;         /* SOURCE_PATTERN: PCRE2 with named groups */
	bool whole_run;        /* no steps: objective trial_wall_s or a single value a run */
	int64_t trial_limit_s; /* a trial that runs longer is killed and failed */
	int64_t log_limit_bytes;
	struct model_shape model;
	struct scaling scaling;
	char *config;        /* JSON file of the framework, as the command names it; NULL: none */
	char *config_text;   /* what stood in it when the recipe was read */
	char *framework;     /* NULL: none; knobs are passed its way */
	struct strv told;    /* variables of env that proofs need and the recipe does not have */
	struct kvs versions; /* component -> version that it runs, as far as the recipe says */
	struct place at;     /* of its command */
};

/* Further options of a job, in the words that sbatch uses for them. Zero or NULL: not asked. */
struct job_options {
	char *gres; /* "gpu:h200:2,nvme:1": on each node */
	char *gpus; /* "8" or "h200:8": of the whole job */
	char *gpus_per_task;
	char *licenses;   /* "matlab:2" */
	char *switches;   /* "1" or "1@60": at most so many, waiting at most so many minutes */
	char *begin;      /* "2026-11-30T22:00", "now+2hours" */
	char *deadline;   /* the same: a job that cannot end by then is taken out of the queue */
	char *dependency; /* "afterok:1234" */
	char *comment;
	char *mail_type; /* "END,FAIL" */
	char *mail_user;
	int cpus_per_gpu, nice;
	int64_t mem_mib_per_cpu, mem_mib_per_gpu;
};

enum job_option_kind { JOB_OPTION_TEXT, JOB_OPTION_COUNT, JOB_OPTION_MIB };

/* Each of them: its member, its long option of sbatch. Ends with key NULL. */
struct job_option {
	const char *key, *sbatch;
	enum job_option_kind kind;
	size_t offset;
};
extern const struct job_option job_option_table[];
/* The value as sbatch takes it ("4096M"); heap, NULL when it is not asked for. */
char *job_option_value(const struct job_options *o, const struct job_option *k);

/* What to ask from the scheduler, a trial. Zero or NULL: not asked. */
struct resources {
	int nodes, tasks_per_node, cpus_per_task, gpus_per_node;
	int64_t mem_mib_per_node;
	int64_t time_limit_s; /* of a whole allocation; 0: derived from trials */
	char *partition, *account, *qos, *reservation, *constraint, *nodelist, *exclude;
	char *launcher; /* "exec" (default for one task), "srun", "mpirun", "torchrun", "script" */
	struct job_options options;
	enum placement placement;
	struct strv among; /* nodes that blocks take turns on; empty: all */
};

/* What is sampled beside a trial (orchestrator/agent/sampler.h). */
struct samplers {
	int64_t period_ms;
	bool every_node; /* of an allocation; else of the first only, and ranks of others are not
			    proved */
	char *dcgm_exporter; /* address of each node's own; NULL: none */
};

/* How the agent comes to the nodes. */
struct agent_options {
	bool sbcast; /* each node gets a copy of its own first */
	char *dir;   /* where */
};

struct budget {
	double wall_s;         /* 0: no bound */
	double node_hours;     /* 0: no bound */
	int64_t trials;        /* 0: no bound */
	double gpu_hours;      /* 0: no bound; needs resources.gpus_per_node */
	double gpu_hour_price; /* 0: not told */
	int jobs;              /* most jobs in flight; 0: as many as make sense */
	int nodes;             /* most nodes that those have together; 0: no bound */
	int idle_nodes;        /* a job is submitted only while so many nodes are idle */
	char *deadline;        /* nothing is started after it, see base/hours.h; NULL: none */
	struct strv window, site_window; /* hours in which blocks run, see base/hours.h; empty:
					    all */
	double stuck_s; /* a job that waits so long to be released, or for nodes that are down, is
			   given up */
};

struct quality_settings {
	enum quality_action action[QUALITY_RULES];
	/* Relative changes from which on a rule speaks: of step times after a change point, between
	 * the thirds of a window, of clocks; and of all CPUs, as a share. */
	double slow_by, drift_by, clocks_by, busy_by;
};

/* The long run of a fix that waits for convergence. */
struct converge {
	int64_t steps; /* of each run; 0: ten measured windows */
	int seeds;     /* paired runs */
	char *metric, *stat;
	double margin;         /* relative: how much worse it may be */
	char *seed_env;        /* the variable that carries the seed, 1, 2, ... */
	int64_t trial_limit_s; /* 0: the trial's, as many times as the run is longer */
};

/* A rung of the scaling ladder: the workload on so many nodes, with so many ranks on each. */
struct rung {
	int nodes, tasks_per_node;
};
int rung_tasks(const struct rung *g); /* ranks of all nodes together */

struct ladder {
	struct rung *rungs; /* by ranks, fewest first */
	size_t n;           /* 0: the campaign has no ladder */
	int blocks;         /* of each rung with the one below */
	/* of efficiency from one rung to the next: a larger one ends the climb */
	double max_loss;
};

struct schedule {
	enum cadence every;
	bool after_change; /* also on the first night whose environment differs */
};

/* A campaign that tunes nothing: the same configuration night after night, and beside it in each
 * block another one that shows what the night itself does. */
struct canary {
	int blocks; /* a night; 0: the campaign is no canary */
	bool alone; /* reference = false: one arm */
	/* What the reference differs in; empty: in the keys of `fingerprint` that can be set, as
	 * they were on the first night or when they were last accepted. */
	struct bundle reference;
};

/* A key of the environment beside those that fettle knows; in place of one of the same name. */
struct fingerprint_key {
	char *name; /* [a-z][a-z0-9_.]*, at most 64 bytes */
	enum fingerprint_how how;
	char *file;          /* as the trial would open it; else NULL */
	struct strv command; /* argv, run in the workload's directory; else empty */
	char *env;           /* name of the variable; else NULL */
	/* How an old value is put back, "{value}" stands for it; empty: it cannot be. With `env`
	 * this is that variable, whatever the recipe says. */
	struct bundle set;
	struct place at;
};
enum {
	FINGERPRINT_KEYS_MAX = 32,   /* of a recipe: each may start a program */
	FINGERPRINT_VALUE_MAX = 200, /* bytes of a value that are kept */
};
/* `set` with the value in its place, into out (zeroed, the caller frees with bundle_done). */
void fingerprint_set(const struct fingerprint_key *k, const char *value, struct bundle *out);

struct recipe {
	char *name, *question;
	struct workload workload;
	struct resources resources;
	struct samplers samplers;
	struct agent_options agent;
	char *objective;      /* metric */
	char *objective_stat; /* "mean" over the window by default */
	enum better better;   /* of the objective */
	double target;        /* NaN: none; in the objective's unit */
	/* A second objective, for the report's table of trade-offs; no verdict rests on it. */
	char *second, *second_stat; /* NULL: none */
	enum better second_better;
	struct guard *guards;
	size_t n_guards;
	struct knob *knobs;
	size_t n_knobs;
	struct budget budget;
	enum run_mode mode;
	double alpha;      /* of the whole campaign, (0, 0.5], default 0.05 (strict 0.01) */
	double min_effect; /* smallest useful relative gain, default 0.01 */
	bool gain_stated;  /* the recipe says min_effect: a gain that it wants to find */
	int rounds;        /* most passes from hypothesis to verdict = most confirm stages */
	int aa_blocks, final_blocks; /* 0: by mode; BLOCKS_NONE: no such stage */
	int soak_trials;             /* 0: none */
	struct converge converge;
	int repeats;               /* runs of an arm in a block, default 1 */
	int blocks_per_allocation; /* of the stages whose units are compared, default 1 */
	int warmup_trials;         /* per allocation, default 1 */
	struct quality_settings quality;
	enum profile_wish profile;
	struct ladder ladder;
	struct schedule schedule;
	struct canary canary;
	struct fingerprint_key *fingerprint; /* by name */
	size_t n_fingerprint;
	struct kvs thresholds; /* limits of rules by their names, as text */
	uint64_t seed;         /* 0: derived from the campaign's uuid */
	char *scheduler;       /* a name of sched/; NULL: from the command line or local */
	char *hash;            /* of all sources */
};
/* What is put before a workload's command so that it runs on these resources: nothing for "exec",
 * else srun, mpirun or torchrun with their numbers. A "script" has srun or the like inside: env(1)
 * stands before it, so that ranks that are no children of it are looked for. Appends to out. */
void resources_launch(const struct resources *r, struct strv *out);
/* An argument of the workload's command with {nodes}, {tasks} and {tasks_per_node} replaced; heap.
 */
char *resources_fill(const struct resources *r, const char *arg);
void recipe_free(struct recipe *r); /* r itself too; NULL is fine */
const struct knob *recipe_knob(const struct recipe *r, const char *name);

/* -- configuration ------------------------------------------------------------------------- */

/* A configuration is a set of knob settings over the workload's own command and environment. */
struct config {
	struct kvs settings; /* knob name -> value; sorted; only what differs from the defaults */
	struct strv argv;    /* effective command */
	struct kvs env;      /* effective additions; value NULL: unset */
	char hash[33];       /* XXH3-128 over argv, env, workload name: the identity */
};
/* Build the configuration in which `settings` hold. ERR_RECIPE for an unknown knob or a value that
 * cannot be passed. */
int config_build(const struct recipe *r, const struct kvs *settings, struct config *out,
		 struct err *e);
/* Settings laid over it: what they do not name stays. */
void config_lay(const struct recipe *r, const struct bundle *b, struct config *c);
void config_copy(struct config *dst, const struct config *src);
void config_done(struct config *c);
/* "num_workers=2, prefetch_factor=4", or "default" when nothing is set; heap. */
char *config_text(const struct config *c);

/* Settings in a framework's JSON file (HOW_KEY, workload.config). A configuration has a copy of the
 * file with its settings; in its argv "MARK" stands for the directory of the block that the copy is
 * written to, and its name is the hash of its content. */
#define CONFIGFILE_MARK "{config}/"
/* The value at "a.b" of a JSON text; heap, NULL when there is none. */
char *configfile_get(const char *text, const char *key);
/* The file with these settings; heap, NULL when none of them stands in it. */
char *configfile_text(const struct recipe *r, const struct kvs *settings);
/* Does the command name the file at all? */
bool configfile_named(const struct workload *w);
/* Let argv name the copy. */
void configfile_apply(const struct recipe *r, struct config *c);
/* The token with the directory in place of the mark; heap, NULL for a token without. */
char *configfile_token(const char *token, const char *dir);
/* "HASH.json" of the copy; NULL: the configuration has none. */
const char *configfile_name(const struct config *c);

/* -- results of a trial -------------------------------------------------------------------- */

struct metric_value {
	char *metric, *stat; /* stat: mean median p95 p99 min max last n value */
	char *labels;        /* canonical "k=v,k=v", "" if none */
	double value;
};

struct effective_value {
	int rank;
	char *key; /* "env.NAME", "arg.--name", "maps.libjemalloc.so.2", "ack.NAME" */
	char *value;
	enum proof_level level;
};

/* Revision of what makes values out of raw files: the probes, and how a trial's window is cut and
 * summed up. Raise it with any change by which files that were read before give other values:
 * stored values carry it, and `fettle reparse` says what became of them. */
enum { PARSER_REV = 2 };

struct trial_result {
	int slot, repeat;
	int64_t arm; /* arm id */
	enum slot_kind kind;
	enum trial_state state;
	char *reason; /* one sentence; of one that is ok what was noticed about it, mostly NULL */
	int exit_status, term_signal;
	int64_t start_us, wall_us, user_us, sys_us, maxrss_kib;
	char *node, *log_path; /* first node; output, relative to the workspace */
	struct metric_value *metrics;
	size_t n_metrics, cap_metrics;
	struct effective_value *effective;
	size_t n_effective, cap_effective;
};
void trial_result_done(struct trial_result *t);

/* What the rules of trial quality look at of a trial that ended well; no word of its arm. */
struct quality_trial {
	double *step_ms; /* the measured window in order; NULL when unknown */
	size_t n;
	/* Means over the window; NAN unknown. other_cpu_pct: of all CPUs, used by processes that
	 * are not of the trial. */
	double steal_pct, other_cpu_pct, sm_clock_mhz;
	uint64_t clock_reasons; /* NVML's bits that were ever set; when reasons_known */
	bool reasons_known;
	int slot; /* for the text of a finding only */
};

void trial_result_metric(struct trial_result *t, const char *metric, const char *stat,
			 const char *labels, double value);
void trial_result_effective(struct trial_result *t, int rank, const char *key, const char *value,
			    enum proof_level level);
/* The value of (metric, stat, ""), or NaN. */
double trial_result_get(const struct trial_result *t, const char *metric, const char *stat);

#endif
