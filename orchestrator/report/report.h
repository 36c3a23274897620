/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tuning log of a campaign: one model, loaded once, that every format prints. It holds what was
 * measured, decided and refused, in order of the five steps, and says what it does not know. Texts
 * are plain; numbers carry units.
 *
 * One format is one file format_<name>.c that defines `const struct report_format format_<name>`.
 */
#ifndef FETTLE_REPORT_REPORT_H
#define FETTLE_REPORT_REPORT_H

#include "experiments/db.h"
#include "experiments/decide.h"
#include "experiments/history.h"
#include "experiments/model.h"
#include "experiments/query.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/report/nights.h"

struct report_estimate {
	double est, lo, hi; /* relative; 95 % t-interval of n pairs */
	size_t n;
};
/* From one arm to another, over the blocks in which both were measured; NaN: unknown. */
struct report_pairs {
	double before, after;
	struct report_estimate effect;
	int moved; /* the interval lies above 0: 1, below: -1, else 0 */
};
/* What a stage showed beside the objective: treatment against baseline. */
struct report_effects {
	struct report_effect {
		char *metric;
		struct report_pairs pairs; /* + is more, whether that is good or not */
	} * v;
	size_t n;
	/* What its timed trials took: seconds, and hours of all their devices; 0: not known. */
	double trial_s, gpu_hours;
};

/* Mean and spread of the objective for one arm of a stage, in the objective's unit. */
struct report_arm {
	char *label, *config_text;
	size_t n, failed;
	double mean, sd; /* over timed, ok trials; NaN when none */
	struct report_value {
		int block; /* index in its stage */
		double value;
	} * values; /* of those trials, by block */
	size_t n_values;
};

/* Where the time of a step goes, as shares of it; they sum up to 1. */
enum report_part {
	PART_COMPUTE,
	PART_COMMUNICATION, /* that nothing hides */
	PART_COPIES,        /* likewise */
	PART_DATA,          /* waiting for it */
	PART_REST,
};
enum { REPORT_PARTS = PART_REST + 1 };
/* Of a configuration that was looked at under the profiler; or, as far as its timed trials tell, of
 * the two that the final stage compared. */
struct report_profile {
	int round;
	char *config_text;
	double part[REPORT_PARTS]; /* NaN: not told apart, and in PART_REST */
	bool profiler;
	struct profile_price price; /* of a profiler */
};

/* A stage as it went. */
struct report_stage {
	int64_t id, hypothesis; /* hypothesis: of a confirm stage, else 0 */
	enum stage_kind kind;
	int seq, round, blocks_planned, blocks_valid, blocks_void;
	double alpha_share; /* of a confirm stage, else 0 */
	bool open;
	char *note;       /* conclusion; NULL while open */
	struct strv dirs; /* of its valid attempts, relative to the workspace: raw logs */
	struct report_arm *arms;
	size_t n_arms;
	/* Of a confirm or final stage: how long the steps of each trial took, ms. By block. */
	struct report_steps {
		int block;
		size_t arm;
		double min, median, p95, p99;
	} * steps;
	size_t n_steps;
};

/* A hypothesis with all that became of it. */
struct report_hypothesis {
	struct hypothesis_row row;
	bool has_verdict;
	struct verdict_row verdict; /* last one */
	struct verdict_row *looks;  /* every look, in order */
	size_t n_looks;
	double screen_mean;            /* relative; NaN: not screened */
	size_t screen_runs;            /* timed runs of its arm in screens */
	struct report_effects effects; /* of its confirm stage */
	/* The stage of its newest look, its confirm stage or the screen that found it invalid:
	 * index in report.stages; -1 when it was not tested. */
	int stage;
	struct shown_row *proofs; /* what the processes of its treatment arm showed of the knob */
	size_t n_proofs;
};

/* What one sample, token or step costs at the throughput of an arm; NaN: not measured. */
struct report_unit_cost {
	char *label;
	const char *unit; /* "sample"; static */
	double per_s, node_hours, gpu_hours, net_bytes, storage_ops;
};
/* An arm in both objectives of the campaign. */
struct report_tradeoff {
	char *label;
	enum stage_kind stage;
	struct report_estimate first, second; /* + is better */
	bool beaten; /* another arm or the baseline is as good in both, and better in one */
};

/* Bus bandwidth of a collective by message size: an arm against the baseline of its blocks. */
struct report_sizes {
	char *label;
	enum stage_kind stage;
	int round;
	struct report_size {
		double bytes;
		struct report_pairs pairs; /* before, after: GB/s; + is better */
	} * v;                             /* by size */
	size_t n;
};

/* A canary stage, and a series that they feed. */
struct report_canary {
	struct canary_row row;
	const struct report_stage *stage; /* in report.stages */
};
struct report_series {
	struct series_row row;
	struct nights_series whole; /* all of its points and changes */
	size_t nights;
	char first_night[11], last_night[11]; /* "": no point yet */
	double last, usual; /* newest point, median of those before it; NaN: there is none */
	int64_t regression; /* newest that is open or acknowledged; 0: none */
	enum change_level level;
	char since[11];
};

enum report_target {
	TARGET_NONE, /* the campaign names none */
	TARGET_MET,
	TARGET_MISSED,
	TARGET_OPEN, /* the interval holds the target, or nothing was measured yet */
};

struct report {
	struct campaign_row campaign;
	struct strv submitters;      /* users other than campaign.user who submitted jobs of it */
	const struct recipe *recipe; /* borrowed */
	char *workspace;             /* absolute path */
	/* URLs from where the page will lie: of the workspace, that of the index (heap); NULL:
	 * there are no links to raw logs, there is no index. See report_lies_in(). */
	char *logs, *home;
	char *unit; /* of the objective */
	struct report_stage *stages;
	size_t n_stages;
	struct report_hypothesis *hyps;
	size_t n_hyps;
	struct finding_row *findings;
	size_t n_findings;
	struct report_profile *profiles; /* by round */
	size_t n_profiles;
	struct signal_row *signals; /* of the baseline */
	size_t n_signals;
	struct fault_row *faults;
	size_t n_faults;
	struct event_row *events;
	size_t n_events;
	struct quality_row *quality; /* what the rules of trial quality found */
	size_t n_quality;
	struct guard_row *guards; /* what guards said, by verdict */
	size_t n_guards;
	struct cost_row cost;
	struct consumed_row consumed; /* by the cluster's accounts; jobs 0: there are none */
	struct host_row *hosts;       /* each node */
	size_t n_hosts;
	struct account_row *account; /* where its node hours went */
	size_t n_account;
	struct report_unit_cost *costs; /* baseline, then treatment, of the last test */
	size_t n_costs;
	struct report_tradeoff *tradeoffs; /* none without a second objective */
	size_t n_tradeoffs;
	struct report_sizes *sizes; /* by stage, then arm; none: no metric has sizes */
	size_t n_sizes;
	bool has_fix;
	struct fix_row fix;
	struct guard_row *fix_guards; /* what guards said in the final stage and the soak */
	size_t n_fix_guards;
	struct config fix_config;          /* when has_fix */
	struct report_effects fix_effects; /* of the final stage */
	/* The baseline in numbers; NaN unknown. noise: log sd of an arm within a block. smallest:
	 * gain that a confirm stage finds with 80 % power at that noise. */
	double base_mean, noise, smallest, aa_effect, aa_lo, aa_hi;
	bool aa_differs;   /* the default from itself, by more than chance usually does */
	double final_mean; /* of the fix in the final stage; NaN */
	/* Two-sided 95 % interval of the mean that is held against the target, that of the fix in
	 * the final stage or else of the baseline, from the means of allocations; NaN. */
	double target_lo, target_hi;
	struct ablation_row *ablations;
	size_t n_ablations;
	struct rung_row *rungs; /* of the scaling ladder */
	size_t n_rungs;
	struct report_canary *canaries; /* newest night first */
	size_t n_canaries;
	struct report_series *series;
	size_t n_series;
	struct node_row *nodes;
	size_t n_nodes;
	struct run_row *runs;
	size_t n_runs;
	struct place_row *places; /* nodes of each allocation, by allocation */
	size_t n_places;
	struct kvs effective; /* knob -> value in the baseline's processes; absent: not seen */
	struct alpha_ledger alpha;
	struct source_row *sources; /* the texts that the campaign runs on */
	size_t n_sources;
	char *environment; /* JSON object of texts: of the newest stage that knows it; NULL */
	enum report_target target;
	struct strv archives; /* tar files that its raw files are packed in */
};

int report_load(struct db *db, int64_t campaign, const struct recipe *r, const char *workspace,
		struct report **out, struct err *e);
void report_free(struct report *r);

/* The story in words, about 15 lines: baseline with its noise, bottleneck and evidence, each
 * hypothesis with its state or verdict and interval, the validated configuration, the cost, what
 * was void. */
void report_summary(const struct report *r, struct buf *out);

struct report_format {
	const char *name;      /* "markdown", "json" */
	const char *extension; /* "md" */
	const char *summary;
	bool for_people; /* its words are in the language that is begun (base/lang.h) */
	int (*write)(const struct report *r, struct buf *out, struct err *e);
};
extern const struct report_format *const report_format_table[]; /* generated; NULL-terminated */
const struct report_format *report_format_find(const char *name);

/* -- what the formats share ------------------------------------------------------------------- */

/* Where a metric belongs: three dimensions of performance, and correctness, which comes first. */
enum report_dimension {
	DIMENSION_THROUGHPUT,
	DIMENSION_LATENCY,
	DIMENSION_UTILISATION,
	DIMENSION_CORRECTNESS,
};
enum { DIMENSIONS = DIMENSION_CORRECTNESS + 1 };
const char *report_dimension_name(enum report_dimension d); /* "throughput", ... */
enum report_dimension report_dimension_of(const char *metric);
const char *report_part_name(enum report_part p);     /* "computing", ... */
const char *report_target_name(enum report_target t); /* "none", "met", "missed", "open" */
const char *report_unit_of(const char *metric);       /* "" when not in the catalogue */
/* As hypothesis_state_name(), for people: "screened out". */
/* A branch of the diagnosis that could not be judged is stored as a finding without a bottleneck.
 */
bool report_finding_is_open(const struct finding_row *f);
const char *report_state_text(enum hypothesis_state s);
/* What a hypothesis about a declared bundle changes, for people; heap, NULL: it is one knob's. */
char *report_bundle(const struct report *r, const struct hypothesis_row *h);
/* Energy of a sample: the mean power of the jobs whose energy is known, between their trials too,
 * over the baseline's samples a second. J; NaN unknown. */
double report_energy_per_sample(const struct report *r);
/* +1: such a change is for the better, -1: for the worse, 0: neither, or not known. */
int report_judge(const char *metric, double change);
/* What became of a hypothesis in the end. */
enum report_fate {
	FATE_ACCEPTED,
	FATE_REFUTED,  /* no useful gain, worse, equivalent, or a guard */
	FATE_UNJUDGED, /* inconclusive, or invalid */
	FATE_SCREENED_OUT,
	FATE_NOT_TRIED, /* or taken out by lint */
	FATE_OPEN,
};
enum { FATES = FATE_OPEN + 1 };
enum report_fate report_fate_of(const struct report_hypothesis *h);
const char *report_fate_name(enum report_fate f); /* "accepted", "not_tried", ...: for programs */
/* That of its test, else the mean of its screen; NaN: none is known. */
double report_best_effect(const struct report_hypothesis *h);
/* The first hypothesis of a later round about the same change, when both were measured; NULL. */
const struct report_hypothesis *report_measured_again(const struct report *r,
						      const struct report_hypothesis *first);
/* The configuration that a round started from, as text; NULL: it measured nothing. */
const char *report_base_of_round(const struct report *r, int round);
/* The nodes of an allocation: the first of *n rows; NULL: none is known. */
const struct place_row *report_places(const struct report *r, int64_t allocation, size_t *n);
/* Devices of a node: as the campaign asks for them, else as its trials were counted; NaN. */
double report_gpus_per_node(const struct report *r);
/* The first arms of the stage that measured the fix; NULL: there is none. */
const struct report_stage *report_final(const struct report *r);

/* Hypotheses whose last verdict has an estimate, largest effect first: out (room for n_hyps) gets
 * indices into hyps; returns their number. */
size_t report_ranking(const struct report *r, size_t *out);

/* The page will lie in this directory (as fs_absolute() gives it): raw logs become links from it,
 * where both are below one directory that is not "/". */
void report_lies_in(struct report *r, const char *dir);
/* URL of a file or directory below the workspace; heap. NULL: there is none, or it is gone. */
char *report_log_url(const struct report *r, const char *path);

#endif
