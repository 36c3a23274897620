/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm, through fettle-slurm and its C API. */
#include "orchestrator/base/fs.h"
#include "orchestrator/sched/slurm_core.h"
#include "orchestrator/sched/slurm_pipe.h"

extern const struct sched sched_slurm;

static int check_helper(const char *helper, struct err *e)
{
	if (helper && fs_exists(helper))
		return 0;
	return err_set(
		e, ERR_NOT_FOUND,
		"%s was not built, because the headers of Slurm were missing: install them "
		"(Debian: apt-get install libslurm-dev; RHEL: dnf install slurm-devel) and run "
		"`make` again; or use scheduler slurm_cli, which needs only Slurm's commands",
		helper ? helper : "fettle-slurm");
}

static int call_pipe(void *ctx, struct json *req, bool repeatable, struct json **reply,
		     struct err *e)
{
	return slurm_pipe_call(ctx, req, repeatable, reply, e);
}

static void close_pipe(void *ctx)
{
	slurm_pipe_close(ctx);
}

static const struct slurm_way through_helper = {.call = call_pipe, .close = close_pipe};

static int slurm_open(const struct sched_config *c, struct sched_run **out, struct err *e)
{
	const struct clock *clock = c->clock ? c->clock : &clock_system;
	struct slurm_pipe *pipe = NULL;
	int rc = check_helper(c->helper, e);

	if (rc == 0)
		rc = slurm_pipe_open(c->helper, clock, &pipe, e);
	if (rc == 0 && (rc = slurm_core_open(c, &through_helper, pipe, out, e)))
		slurm_pipe_close(pipe);
	return rc ? err_wrap(e, "scheduler slurm") : 0;
}

const struct sched sched_slurm = {
	.name = "slurm",
	.summary = "allocations of a Slurm cluster, through its C API",
	.open = slurm_open,
	SLURM_CORE_FUNCTIONS,
};
