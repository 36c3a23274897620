/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of this node from /proc, in the format at the head of probes/probe_procfs.c: whole lines,
 * appended to <dir>/samples, bounded. The tree is every descendant of the agent (it is the
 * subreaper of its trials). Counters of processes that ended are kept in the sums, so that the sums
 * never go back.
 */
#ifndef FETTLE_AGENT_SAMPLER_H
#define FETTLE_AGENT_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include "orchestrator/agent/procs.h"
#include "orchestrator/base/proc.h"

struct sampler;

/* *out stays NULL if the file cannot be written: samples are then absent, which readers must bear.
 */
void sampler_open(const char *dir, struct sampler **out);
void sampler_close(struct sampler *s); /* NULL is fine */

/* One round. `skip` and its children (the sampler's own process, nvidia-smi) are not counted. With
 * a marker (trialenv_marker of a launched trial; NULL: none) processes that hold it are of the tree
 * too: under srun the ranks of this node are no descendants. */
void sampler_take(struct sampler *s, pid_t agent, pid_t skip, const char *marker);

/* Mark in p those processes that the last round counted as the trial's. */
void sampler_mark_known(const struct sampler *s, struct procs *p);

/* Start `nvidia-smi --query-gpu` into <dir>/gpu.csv if there is such a program; out->pid 0 if not.
 */
void sampler_start_gpu(const char *dir, int64_t period_ms, struct proc_id *out);

#endif
