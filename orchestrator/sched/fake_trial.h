/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One trial of a block as the declared truth has it, before it is written to files (fake_files.c)
 * or handed over (fake_memory.c): both say the same.
 */
#ifndef FETTLE_SCHED_FAKE_TRIAL_H
#define FETTLE_SCHED_FAKE_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/sched/fake_truth.h"

#define FAKE_VOID_REASON   "planted: the node's disk is full"
#define FAKE_STOP_REASON   "planted: the agent was told to stop"
#define FAKE_FAILED_REASON "exited with 1; its last line: \"RuntimeError: planted failure\""

/* A run of a block. Borrowed. */
struct fake_run {
	const struct fake_truth *truth;
	uint64_t seed;
	const char *dir, *job_id, *node;
	int64_t job;         /* number of its submit, from 1 */
	int node_index;      /* of the node, from 0 */
	int turn;            /* trials of the job before this block */
	int64_t start_us;    /* of the first trial */
	enum fake_fate fate; /* FATE_OK: complete; FATE_VOID: partial, the last trial void; else no
				done.json */
};

struct fake_trial {
	const struct fake_run *run;
	const struct json *block, *arm, *slot;
	struct fake_draw draw;
	int64_t start_us, wall_us, steps, warmup;
	double throughput, samples_a_step; /* the same in every step */
	double loss;                       /* the last one */
	bool failed, voided, nan;
	char dir[24]; /* "t01" */
};

/* Slot i of a block.json. ERR_PARSE: it names an arm that is not there. */
int fake_trial_of(const struct fake_run *r, const struct json *block, size_t i, int64_t start_us,
		  struct fake_trial *t, struct err *e);
double fake_trial_loss(const struct fake_trial *t, int64_t step); /* NaN where it is one */
double fake_trial_step_ms(const struct fake_trial *t);

/* What /proc of its rank shows: each variable with its value (plain) or that value's hash, as the
 * agent tells them; and the arguments (a root). */
typedef void (*fake_env_f)(void *ctx, const char *key, const char *value, bool plain);
void fake_trial_env(const struct fake_trial *t, fake_env_f see, void *ctx);
struct json *fake_trial_argv(const struct fake_trial *t);
int fake_trial_ranks(const struct fake_trial *t); /* how many there are of it, at least 1 */

#endif
