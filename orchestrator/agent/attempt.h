/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One attempt of one block: read block.json, claim it, run the slots in their order, write
 * done.json. Without done.json the attempt is lost, whatever else is there; so it is written last,
 * and it makes the names of all earlier records durable.
 */
#ifndef FETTLE_AGENT_ATTEMPT_H
#define FETTLE_AGENT_ATTEMPT_H

#include <stdbool.h>

#include "orchestrator/agent/nodestep.h"
#include "orchestrator/agent/place.h"
#include "orchestrator/agent/signals.h"
#include "orchestrator/base/err.h"

enum attempt_end {
	ATTEMPT_COMPLETE,
	ATTEMPT_TAKEN,   /* another agent has claimed it: nothing was done */
	ATTEMPT_PARTIAL, /* deadline, signal or disk: done.json says why */
};

/* What the attempts of one allocation share. */
struct allocation {
	char **dirs; /* of its blocks, NULL-ended */
	struct place place;
	struct nodestep *others; /* started by the first attempt; NULL: none */
	bool asked;              /* whether there are others */
};

/* Run the attempt in l->dirs[index]. The caller is a subreaper already. */
int attempt_run(struct allocation *l, size_t index, struct signals *signals, enum attempt_end *end,
		struct err *e);

#endif
