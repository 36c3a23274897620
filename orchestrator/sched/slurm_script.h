/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The batch script. Slurm wants a script, so there is one in fettle: it is ours, holds nothing but
 * our own absolute paths, single-quoted, chooses the agent for the node's machine, and execs it, so
 * that the agent is the batch step itself (signals of Slurm reach it directly). Pure: text in, text
 * out.
 */
#ifndef FETTLE_SCHED_SLURM_SCRIPT_H
#define FETTLE_SCHED_SLURM_SCRIPT_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"

/* In *out (heap), from members of `job` (PROTOCOL.md): block_dirs, agent, and where they are there
 * agent_machine (what `agent` is for; on another machine it is <agent>-<machine>), agent_copy
 * (where it is too) and sbcast_dir (where each node gets it first). ERR_RECIPE for a path that is
 * not absolute or holds a control character (a newline would end the line). */
int slurm_script_text(const struct json *job, char **out, struct err *e);

/* Slurm does not look: a job with a wrong directory runs in /tmp and counts as completed.
 * ERR_RECIPE, ERR_NOT_FOUND. */
int slurm_script_check_workdir(const char *dir, struct err *e);

/* A token is a job's name, and comes back with at most so many bytes. ERR_RECIPE. */
enum { SLURM_TOKEN_MAX = 63 };
int slurm_script_check_token(const char *token, struct err *e);

/* A file name for Slurm's std_out that means exactly `path`: % is doubled. ERR_RECIPE for a
 * backslash, which would switch the doubling off. */
int slurm_script_output_path(const char *path, char **out, struct err *e);

#endif
