/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One trial: its directories, its process, its output, its window, its end, its record. Whatever
 * the workload does (hang, fork daemons, print without end, fill the disk), the trial ends
 * within its limits, nothing of it is left running, and the record says in one sentence what
 * happened.
 */
#ifndef FETTLE_AGENT_TRIAL_H
#define FETTLE_AGENT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/agent/guard.h"
#include "orchestrator/agent/nodestep.h"
#include "orchestrator/agent/place.h"
#include "orchestrator/agent/signals.h"
#include "orchestrator/agent/stepcount.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* What all trials of an attempt share. */
struct trial_context {
	const char *dir; /* the block's directory, absolute */
	const struct block *block;
	const struct kvs *secrets;
	const struct place *place;
	struct nodestep *others; /* the allocation's other nodes; NULL: none */
	size_t index;            /* of the block's directory among those of the allocation */
	struct stepcount *steps;
	struct guard *guard;
	struct signals *signals;
};

enum trial_state { TRIAL_OK, TRIAL_FAILED, TRIAL_VOID };

struct trial_outcome {
	enum trial_state state;
	char xxh[33]; /* of tNN.json; "" when it could not be written */
	char reason[512];
};

/* Run the slot and write tNN.json. An error means that the record could not be written (disk): the
 * attempt cannot go on. A void or failed trial is no error. */
int trial_run(const struct trial_context *c, const struct block_slot *slot,
	      struct trial_outcome *out, struct err *e);

#endif
