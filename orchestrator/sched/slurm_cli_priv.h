/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of slurm_cli share: running a command, and turning its refusal into an error. */
#ifndef FETTLE_SCHED_SLURM_CLI_PRIV_H
#define FETTLE_SCHED_SLURM_CLI_PRIV_H

#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"
#include "orchestrator/sched/slurm_cli.h"

struct slurm_cli {
	struct strv env;     /* of the commands: ours, without what changes their output */
	struct kvs expanded; /* node lists that were expanded before */
};

/* Output of a command. */
struct slurm_cli_output {
	struct buf out, err;
};
void slurm_cli_output_done(struct slurm_cli_output *o);

/* Run argv[0] (in PATH) with `env` (NULL: c->env), reading from fd_in (-1: nothing). 0 when it
 * ended with status 0; else what it said, after `what`, is in *e: -ERR_TEMP, -ERR_NOT_FOUND,
 * -ERR_RECIPE.
 */
int slurm_cli_run(struct slurm_cli *c, const char *what, struct strv *argv, char *const *env,
		  int fd_in, struct slurm_cli_output *o, struct err *e);

/* *e from what a command said on stderr. */
int slurm_cli_refused(const char *what, const char *said, struct err *e);

/* Host names of a node list, comma separated; heap. */
char *slurm_cli_expand(struct slurm_cli *c, const char *list);

int slurm_cli_submit(struct slurm_cli *c, const struct json *job, struct json *reply,
		     struct err *e);
int slurm_cli_willrun(struct slurm_cli *c, const struct json *job, struct json *reply,
		      struct err *e);
/* *was_gone (may be NULL): it had ended, or was forgotten. */
int slurm_cli_cancel(struct slurm_cli *c, const char *id, bool *was_gone, struct err *e);
/* Why a job waits, in squeue's word; heap, NULL: it does not wait, or squeue gave no answer. */
char *slurm_cli_pending_reason(struct slurm_cli *c, const char *id);
/* `scontrol -o show partition`: the line of one (NULL: of the default one); heap. */
int slurm_cli_partition(struct slurm_cli *c, const char *name, char **line, struct err *e);

#endif
