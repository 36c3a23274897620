/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many campaigns of one recipe against a declared truth: how often the engine claims what is not
 * so, finds what is, and how far its estimates lie from the truth. The campaigns are real ones
 * (orchestrator/method), in a workspace in memory, with scheduler fake (sched/fake_truth.h says
 * what can be declared). Only what is true comes from elsewhere: fake_worth().
 */
#ifndef FETTLE_CMD_SIMULATE_H
#define FETTLE_CMD_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiments/model.h"
#include "orchestrator/base/err.h"
#include "orchestrator/script/script.h"

struct simulation {
	const struct recipe *recipe; /* borrowed, as all */
	const struct script_sources *sources;
	const char *path;  /* of the recipe, for messages */
	const char *truth; /* JSON of sched/fake_truth.h; NULL: nothing helps */
	uint64_t seed;     /* campaign i is a function of (seed, i) */
	long campaigns;
};

/* Estimates against the truth, both relative (0.01 is 1 %). */
struct simulated_estimates {
	long n, covered; /* covered: the interval holds the truth */
	double sum_error, sum_error2;
};

/* One candidate of the recipe. */
struct simulated_candidate {
	char *knob, *value;
	double gain; /* true, against the default; relative, + is better */
	bool harms;  /* a guard's metric is worse by more than its margin */
	long tested, won;
};

struct simulated {
	long campaigns, unfinished; /* unfinished: stopped or failed, counted in campaigns */
	/* Campaigns with at least one win that is false: no true gain over the incumbent, or harm;
	 * and with at least one that is true. */
	long false_wins, true_wins;
	struct simulated_candidate *candidates;
	size_t n;
	long attempts, voids;                /* of blocks; voids: not counted, run again */
	double runs, runs_all, node_s;       /* sums: timed trials, with warm-ups, node-seconds */
	double runs_search;                  /* timed trials of screen and confirm stages alone */
	int64_t commits, statements;         /* of the store */
	long confirms;                       /* stages that reached a look */
	struct simulated_estimates final;    /* fixed number of fresh blocks, 95 % */
	struct simulated_estimates at_stop;  /* estimate of an accepted confirm stage */
	struct simulated_estimates repeated; /* 95 % repeated interval where a confirm stopped */
};

/* ERR_PARSE: the truth; ERR_RECIPE: the recipe wants an objective that the truth does not give;
 * else what a campaign says when it breaks. */
int simulate_run(const struct simulation *s, struct simulated *out, struct err *e);
void simulated_done(struct simulated *r);

/* The truth as scheduler fake gets it: in memory, numbered by job, with what the recipe's knobs
 * need as proof and only those statistics handed over that it looks at. Heap. */
char *simulate_spec(const struct recipe *r, const char *truth, struct err *e);

#endif
