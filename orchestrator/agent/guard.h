/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's second process, one an attempt. It has three duties, none of which may delay the
 * agent's own loop: it writes `samples` (format: head of probes/probe_procfs.c) and starts
 * nvidia-smi for `gpu.csv`; it measures once a second how much the running trial has written; and
 * if the agent is killed it ends what is left of the trial, which a dead subreaper cannot.
 *
 * It is made by clone without an exit signal: a plain wait of the agent does not see it, so that
 * ECHILD there means "no process of the trial is left" and costs no walk over /proc.
 */
#ifndef FETTLE_AGENT_GUARD_H
#define FETTLE_AGENT_GUARD_H

#include <stdint.h>
#include <sys/types.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/base/err.h"

struct guard;

/* dir is the block's directory (absolute). b is borrowed. other: a process of the agent's that is
 * not the trial's (0: none). */
int guard_start(const char *dir, const struct block *b, pid_t other, struct guard **out,
		struct err *e);
/* Tell which trial runs; leader 0: none. */
void guard_watch(struct guard *g, int slot, pid_t leader);
int64_t guard_work_bytes(
	const struct guard *g); /* of the running trial's directory, at most a second or so old */
pid_t guard_pid(const struct guard *g);
/* Stop it and wait for it: `samples` is complete then. NULL is fine. */
void guard_stop(struct guard *g);

#endif
