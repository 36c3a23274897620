/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that the agent leaves for the orchestrator: tNN.json, done.json and claim.json
 * (FORMATS.md). */
#ifndef FETTLE_AGENT_RECORD_H
#define FETTLE_AGENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/agent/capture.h"
#include "orchestrator/agent/evidence.h"
#include "orchestrator/agent/trial.h"
#include "orchestrator/base/err.h"

const char *record_state_name(enum trial_state s); /* "ok", "failed", "void" */

struct trial_record {
	enum trial_state state;
	struct strv argv; /* launcher, container and command; empty: it did not get so far */
	char reason[512];
	const char *ended_by; /* "window", "exit", "time", "disk", "stop", "io", "exec" */
	int exit, signal;
	int64_t steps_seen, start_us, window_start_us, window_end_us, wall_us, user_us, sys_us,
		maxrss_kib;
	struct capture_result out;
	struct evidence evidence;
	size_t leftovers;
	bool cleaned;
	int64_t shm_removed;
};

/* Write <dir>/tNN.json (not synced into the directory: done.json does that); xxh is of its bytes.
 */
int record_trial(const struct trial_context *c, const struct block_slot *slot,
		 const struct trial_record *r, char xxh[33], struct err *e);

struct done_record {
	bool complete;
	const char *reason;
	int64_t start_us, end_us;
	char (*xxh)[33]; /* of the first n_done slots of the block */
	size_t n_done;
};
int record_done(const char *dir, const struct block *b, const struct place *place,
		const struct nodestep *others, const struct done_record *r, struct err *e);

/* 0 claimed; 1 another agent has it already. */
int record_claim(const char *dir, const struct block *b, const char *host, const char *boot_id,
		 struct err *e);

#endif
