/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recipe of `fettle ab`: two settings of one workload, or two commands, as a campaign of one
 * declared bundle without A/A, screen, final and soak. It is written as Lua text and goes the way
 * of every recipe, so that status, report and resume know it as any other.
 */
#ifndef FETTLE_CMD_AB_H
#define FETTLE_CMD_AB_H

#include <stdbool.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct container;
struct job_options;

/* Options that go into the recipe as they are, by AB_ number. */
enum ab_field {
	AB_NAME,
	AB_QUESTION,
	AB_MODE,
	AB_ALPHA,
	AB_MIN_EFFECT, /* percent */
	AB_REPEATS,
	AB_WARMUP_TRIALS,
	AB_SEED,
	AB_MINUTES,
	AB_NODE_HOURS,
	AB_METRIC,
	AB_STAT,
	AB_BETTER,
	AB_PROBE,
	AB_PATTERN,
	AB_STEPS,
	AB_WARMUP_STEPS,
	AB_STEP_PATTERN,
	AB_TRIAL_S,
	AB_CLASS,
	AB_NODES,
	AB_TASKS_PER_NODE,
	AB_CPUS_PER_TASK,
	AB_GPUS_PER_NODE,
	AB_MEM_GIB,
	AB_TIME_LIMIT,
	AB_PARTITION,
	AB_ACCOUNT,
	AB_QOS,
	AB_RESERVATION,
	AB_FEATURES,
	AB_NODELIST,
	AB_EXCLUDE,
	AB_LAUNCHER,
};
enum { AB_FIELDS = AB_LAUNCHER + 1 };

struct ab {
	const char *field[AB_FIELDS]; /* borrowed; NULL: not given */
	bool metrics_file;
	struct kvs base, candidate; /* variables of A and of B; NULL: taken out */
	struct strv a, b;           /* commands; b empty: the same as a */
	struct strv guards;         /* METRIC=PERCENT */
	struct strv limits;         /* METRIC>=VALUE, METRIC<=VALUE */
	struct strv secrets;
	char *workdir; /* absolute */
	/* What no option of `fettle ab` asks for; borrowed, NULL: nothing. */
	const struct container *container;
	const struct job_options *options;
};

/* What B has that A has not, which has `captured` (the environment of the campaign) where `base`
 * says nothing: `candidate` without what both have, and what only A says as `captured` has it.
 * Sorted. */
void ab_difference(const struct kvs *base, const struct kvs *candidate, const struct kvs *captured,
		   struct kvs *out);

/* The name of B in tables: "A=1" when this is all that differs and is short, else "B"; heap. */
char *ab_label(const struct kvs *difference, const struct strv *command);

/* What stands for the recipe's path in the store: so that whoever ends the campaign knows it. */
#define AB_RECIPE_NAME "(fettle ab)"

struct report;
/* Where the campaign is one of `fettle ab` and has its verdict: print it in a sentence (or a line
 * of JSON) and return its exit status, 1 for a rejected candidate. Else `status`. */
int ab_answer(const struct report *rep, bool as_json, int status);

/* " --env A=1 --metric loss ... -- COMMAND": the same for a shell, to stand behind `fettle ab`. */
void ab_command(const struct ab *ab, const struct kvs *difference, struct buf *out);

/* Read such a recipe and see that it is a question: ERR_USAGE when A and B are one configuration.
 */
struct recipe;
struct script_sources;
int ab_load(const char *text, const char *scheduler, struct recipe **r, struct script_sources *s,
	    struct err *e);

/* The recipe, with every text quoted. ERR_USAGE for an option whose number is none. */
int ab_recipe(const struct ab *ab, const struct kvs *difference, struct buf *out, struct err *e);

#endif
