/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way to Slurm through its commands (sbatch, squeue, scancel, sinfo, scontrol, sacct), for
 * machines where fettle-slurm could not be built. It answers the requests of
 * orchestrator/slurm/PROTOCOL.md as fettle-slurm does, but in this process; each command is started
 * from an array of arguments and ended when it takes too long. A question costs 20 to 100 ms.
 */
#ifndef FETTLE_SCHED_SLURM_CLI_H
#define FETTLE_SCHED_SLURM_CLI_H

#include <stdbool.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"

struct slurm_cli;

/* -ERR_NOT_FOUND when a command is not in PATH, or SLURM_CONF cannot be read. */
int slurm_cli_open(struct slurm_cli **out, struct err *e);
void slurm_cli_close(struct slurm_cli *c); /* NULL is fine */

/* As slurm_pipe_call(). */
int slurm_cli_call(struct slurm_cli *c, const struct json *req, struct json **reply, struct err *e);

#endif
