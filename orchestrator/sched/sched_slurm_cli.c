/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm, through its commands: for machines where fettle-slurm could not be built. */
#include "orchestrator/sched/slurm_cli.h"
#include "orchestrator/sched/slurm_core.h"

extern const struct sched sched_slurm_cli;

static int call_commands(void *ctx, struct json *req, bool repeatable, struct json **reply,
			 struct err *e)
{
	(void)repeatable; /* nothing lives on between two calls that could have died */
	return slurm_cli_call(ctx, req, reply, e);
}

static void close_commands(void *ctx)
{
	slurm_cli_close(ctx);
}

static const struct slurm_way through_commands = {.call = call_commands, .close = close_commands};

static int slurm_cli_sched_open(const struct sched_config *c, struct sched_run **out, struct err *e)
{
	struct slurm_cli *cli = NULL;
	int rc = slurm_cli_open(&cli, e);

	if (rc == 0 && (rc = slurm_core_open(c, &through_commands, cli, out, e)))
		slurm_cli_close(cli);
	return rc ? err_wrap(e, "scheduler slurm_cli") : 0;
}

const struct sched sched_slurm_cli = {
	.name = "slurm_cli",
	.summary = "allocations of a Slurm cluster, through sbatch, squeue and scancel",
	.open = slurm_cli_sched_open,
	SLURM_CORE_FUNCTIONS,
};
