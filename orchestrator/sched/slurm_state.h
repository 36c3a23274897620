/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What Slurm's facts about a job mean for us. Pure. The numbers are the same in 20.11 to 26.05 but
 * for bit 0x200, which changed its meaning and is not looked at.
 */
#ifndef FETTLE_SCHED_SLURM_STATE_H
#define FETTLE_SCHED_SLURM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/sched/sched.h"

/* A job record of fettle-slurm (orchestrator/slurm/PROTOCOL.md). Texts are borrowed; NULL is "". */
struct slurm_raw {
	const char *job, *name, *nodes, *reason_text;
	uint32_t state, reason; /* bits; number */
	int exit;               /* wait status */
	uint32_t restarts;
	int64_t start_s, end_s;
	bool suspended; /* it is, or was since its start */
};

/* Fill *out. A job that was put back into the queue counts as ended (END_REQUEUED): it would find
 * its own claim and do nothing. Then *still_queued tells whether it must be cancelled to make that
 * true. */
void slurm_state_decode(const struct slurm_raw *r, struct sched_status *out, bool *still_queued);

/* The record that slurmctld keeps of a submit that it refused. It never was a job. */
bool slurm_state_is_refusal(const struct slurm_raw *r);

/* What a pending job waits for, by the words of squeue's REASON (numbers differ between releases).
 */
enum pending_for slurm_state_pending_for(const char *reason_text);

#endif
