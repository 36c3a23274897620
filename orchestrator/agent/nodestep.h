/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The other nodes of a Slurm allocation, from the agent's side: one job step for all blocks (srun
 * --overlap, one task a node, the agent itself as `fettle-agent sample`, see nodeside.h). It
 * samples its node, reads the evidence of the ranks there, ends what they left, and tells its
 * clocks. A step that cannot be made, or ends, costs its samples and evidence and nothing else: why
 * is recorded.
 *
 * The step hears lines on stdin, which srun gives to all tasks:
 *   block ASKED_US BLOCK   an attempt begins: tell the environment of the node (nodeenv.h)
 *   set NAME=VALUE      a variable that the agent adds to the next trial
 *   trial ASKED_US BLOCK SLOT   a trial begins: index of the block's directory among the arguments,
 *                       slot
 *   look ASKED_US       read the evidence now
 *   end ASKED_US        the trial is over: end what is left, report
 * (ASKED_US: when that was asked, by the agent's clock; it comes back with the answer) and each
 * node answers in lines of less than 1,000 bytes, which srun keeps whole:
 *   @NODE hello UTC_US MONO_US BOOT_ID MACHINE SWITCHES
 *   @NODE entered ASKED_US UTC_US, @NODE ready ASKED_US UTC_US, @NODE looked ASKED_US UTC_US
 *   @NODE more TEXT     a piece of the report (the members of evidence_write() as one object)
 *   @NODE ended ASKED_US UTC_US LEFTOVERS SHM_REMOVED CLEANED   all of it was sent
 *   @NODE error TEXT    why this node cannot do it
 * The clocks of nodes differ. From the times of a question and of its answer follows by how much,
 * within half the time between them; the best answer of a trial is kept.
 */
#ifndef FETTLE_AGENT_NODESTEP_H
#define FETTLE_AGENT_NODESTEP_H

#include "orchestrator/agent/evidence.h"
#include "orchestrator/agent/jwrite.h"
#include "orchestrator/agent/place.h"
#include "orchestrator/agent/signals.h"

struct nodestep;

/* NULL when the allocation has no other node. dirs: the blocks' directories (absolute), NULL-ended.
 * Waits until all nodes are there, for a minute at most. */
struct nodestep *nodestep_start(const struct place *p, char *const *dirs, struct signals *signals);
/* Ends the step. All functions take NULL for "no other node". */
void nodestep_stop(struct nodestep *s);

pid_t nodestep_pid(const struct nodestep *s); /* of the process that is srun's parent; 0: none */
int nodestep_fd(const struct nodestep *s);    /* to poll for POLLIN; -1: none */
void nodestep_read(struct nodestep *s);       /* what has come */

/* An attempt begins; nodestep_entered() waits until each node has told its environment, some
 * seconds at most. */
void nodestep_enter(struct nodestep *s, size_t block);
void nodestep_entered(struct nodestep *s, struct signals *signals);
void nodestep_trial(struct nodestep *s, size_t block, int slot, const struct kvs *added);
void nodestep_look(struct nodestep *s);
bool nodestep_looking(const struct nodestep *s); /* an answer to the last look is missing */

struct nodestep_sum {
	size_t leftovers, shm_removed;
	bool cleaned; /* nothing of the trial is left on any of them */
};
/* The trial is over: wait for each report, grace_s and some seconds at most, and add the ranks to
 * ev. leader: see evidence_add(). */
void nodestep_end(struct nodestep *s, int64_t grace_s, pid_t leader, struct evidence *ev,
		  struct nodestep_sum *sum);
/* Member "samplers" of the object that is open: each other node, what is known of its clock, or why
 * there is nothing. */
void nodestep_write(const struct nodestep *s, struct jwrite *w);
/* A member for each other node whose switches are known (place.h). */
void nodestep_switches(const struct nodestep *s, struct jwrite *w);

#endif
