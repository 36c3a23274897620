/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's program file on a cluster: for which machine it is, and a copy of it where all nodes
 * see it. For another machine than this one it lies beside the first, with the machine's name as
 * `uname -m` gives it: fettle-agent, fettle-agent-aarch64.
 */
#ifndef FETTLE_SCHED_SLURM_AGENT_H
#define FETTLE_SCHED_SLURM_AGENT_H

#include <stdbool.h>

#include "orchestrator/base/err.h"

/* "x86_64", "aarch64", ...: static. NULL for what is no such program, as a script is. */
const char *slurm_agent_machine(const char *path);

/* The agent lies on a disk of this machine while the blocks are on a file system of the cluster's.
 */
bool slurm_agent_is_hidden(const char *agent, const char *blocks_root);

/* Copy the agent, and those for other machines beside it, to <workspace>/agent/<hash>/ beside the
 * blocks; *out (heap) is the path of the first. What is there already is left: a job may run it. */
int slurm_agent_copy(const char *agent, const char *blocks_root, char **out, struct err *e);

#endif
