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
#include "experiments/model.h"
#include "experiments/query.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* Mean and spread of the objective for one arm of a stage, in the objective's unit. */
struct report_arm {
	char *label, *config_text;
	size_t n, failed;
	double mean, sd; /* over timed, ok trials; NaN when none */
};

/* A stage as it went. */
struct report_stage {
	enum stage_kind kind;
	int seq, round, blocks_planned, blocks_valid, blocks_void;
	char *note; /* conclusion; NULL while open */
	struct report_arm *arms;
	size_t n_arms;
};

/* A hypothesis with all that became of it. */
struct report_hypothesis {
	struct hypothesis_row row;
	bool has_verdict;
	struct verdict_row verdict; /* last one */
	struct verdict_row *looks;  /* every look, in order */
	size_t n_looks;
	double screen_mean; /* relative; NaN: not screened */
	/* effect on the other metrics in its confirm stage: relative change of the means */
	struct report_effect {
		char *metric;
		double base, treatment, change;
	} * effects;
	size_t n_effects;
	double trial_s; /* time of the trials that its arms took in confirm stages */
};

struct report {
	struct campaign_row campaign;
	const struct recipe *recipe; /* borrowed */
	char *workspace;             /* absolute path */
	char *unit;                  /* of the objective */
	struct report_stage *stages;
	size_t n_stages;
	struct report_hypothesis *hyps;
	size_t n_hyps;
	struct finding_row *findings;
	size_t n_findings;
	struct signal_row *signals; /* of the baseline */
	size_t n_signals;
	struct fault_row *faults;
	size_t n_faults;
	struct event_row *events;
	size_t n_events;
	struct cost_row cost;
	bool has_fix;
	struct fix_row fix;
	struct config fix_config; /* when has_fix */
	/* baseline in numbers */
	double base_mean, noise, aa_effect, aa_lo,
		aa_hi;     /* noise: log sd of a run within a block; NaN unknown */
	double final_mean; /* of the fix in the final stage; NaN */
	enum { TARGET_NONE, TARGET_MET, TARGET_MISSED, TARGET_OPEN } target;
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
	int (*write)(const struct report *r, struct buf *out, struct err *e);
};
extern const struct report_format *const report_format_table[]; /* generated; NULL-terminated */
const struct report_format *report_format_find(const char *name);

/* The validated configuration in the form asked for: "env" (KEY=value lines, and the command as a
 * comment), "sbatch" (a script that runs it), "json". `script`: text of the user's own sbatch
 * script to patch, or NULL. ERR_NOT_FOUND when the campaign has no fix. */
int recommend_write(const struct report *r, const char *form, struct buf *out, struct err *e);

#endif
