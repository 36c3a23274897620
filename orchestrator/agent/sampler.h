/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of this node: /proc and /sys in the format at the head of probes/probe_procfs.c (whole
 * lines, appended to <dir>/samples, bounded), nvidia-smi as a child into <dir>/gpu.csv, and what a
 * dcgm-exporter says into <dir>/dcgm.prom. On a node that is not the agent's each name has the
 * node's: samples.n2, gpu.n2.csv, dcgm.n2.prom. The tree is every descendant of the root and every
 * process that holds the marker. Counters of processes that ended are kept in the sums, so that the
 * sums never go back. What sampling itself costs is a line of each round.
 */
#ifndef FETTLE_AGENT_SAMPLER_H
#define FETTLE_AGENT_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include "orchestrator/agent/procs.h"
#include "orchestrator/base/proc.h"

struct sampler;

/* Borrowed for the call. */
struct sampler_setup {
	const char *dir;      /* of the block */
	const char *node;     /* NULL: the agent's own */
	const char *dcgm_url; /* NULL: none */
	int64_t period_ms;    /* of nvidia-smi's samples */
};

/* Never fails: what cannot be written or started is absent, which readers must bear. */
void sampler_open(const struct sampler_setup *u, struct sampler **out);
void sampler_close(struct sampler *s); /* NULL is fine */

/* Whose processes are the trial's. */
struct sampler_scope {
	pid_t root;         /* its descendants are, but those of `skip` (procs_mark_tree) */
	const pid_t *skip;  /* nor are they counted */
	const char *marker; /* trialenv_marker of a launched trial; NULL: none. Under srun the ranks
			       of this node are no descendants. */
};

/* One round. */
void sampler_take(struct sampler *s, const struct sampler_scope *scope);

/* nvidia-smi's pid; 0: it does not run. */
pid_t sampler_tool(const struct sampler *s);

/* Mark in p those processes that the last round counted as the trial's. */
void sampler_mark_known(const struct sampler *s, struct procs *p);

/* <dir>/<stem>[.<node>]<ending>; heap. */
char *sampler_path(const char *dir, const char *stem, const char *node, const char *ending);

#endif
