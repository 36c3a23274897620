/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/forecast.h"

#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"

enum { SLACK_S = 120 }; /* start of a job, cleaning between trials */

bool forecast_wanted(const char *scheduler)
{
	return str_eq(scheduler, "slurm") || str_eq(scheduler, "slurm_cli");
}

char *forecast_slurm_conf(void)
{
	static const char *const places[] = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
					     "/run/slurm/conf/slurm.conf",
					     "/usr/local/etc/slurm.conf"};
	const char *env = getenv("SLURM_CONF");

	if (env && *env)
		return xstrdup(env);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (fs_exists(places[i]))
			return xstrdup(places[i]);
	return NULL;
}

/* The limit of an A/A block: the first job of every campaign. */
static int64_t first_limit_s(const struct recipe *r)
{
	int64_t runs = 2 * (int64_t)r->repeats + r->warmup_trials;

	return r->resources.time_limit_s > 0 ? r->resources.time_limit_s
					     : runs * r->workload.trial_limit_s + SLACK_S;
}

static int ask(const struct sched *sched, struct sched_run *run, const struct recipe *r,
	       struct sched_forecast *out, struct err *e)
{
	const struct resources *s = &r->resources;
	const char *dirs[] = {"/fettle/plan"}; /* only its form is looked at */
	char *env[] = {NULL};
	const struct sched_job job = {
		.token = "fettle:plan:a0",
		.block_dirs = dirs,
		.n_block_dirs = 1,
		.workdir = r->workload.workdir,
		.env = env,
		.output = "/dev/null",
		.nodes = s->nodes > 0 ? s->nodes : 1,
		.tasks_per_node = s->tasks_per_node,
		.cpus_per_task = s->cpus_per_task,
		.gpus_per_node = s->gpus_per_node,
		.mem_mib_per_node = s->mem_mib_per_node,
		.time_limit_s = first_limit_s(r),
		.exclusive = true,
		.partition = s->partition,
		.account = s->account,
		.qos = s->qos,
		.reservation = s->reservation,
		.constraint = s->constraint,
		.nodelist = s->nodelist,
		.exclude = s->exclude,
		.options = &s->options,
	};

	return sched->will_run(run, &job, out, e);
}

static int open_sched(const struct sched *sched, const struct recipe *r, struct sched_run **run,
		      struct err *e)
{
	_cleanup_free_ char *agent = paths_agent(), *helper = paths_slurm_helper();
	const struct sched_config c = {.blocks_root = "/",
				       .agent = agent,
				       .helper = helper,
				       .partition = r->resources.partition,
				       .clock = &clock_system};

	return sched->open(&c, run, e);
}

int forecast_reach(const char *scheduler, const struct recipe *r, struct err *e)
{
	const struct sched *sched = sched_find(scheduler);
	struct sched_capacity capacity;
	struct sched_run *run = NULL;
	int rc;

	if (!forecast_wanted(scheduler))
		return 0;
	if ((rc = open_sched(sched, r, &run, e)) < 0)
		return rc;
	rc = sched->capacity(run, &capacity, e);
	sched->close(run);
	return rc;
}

int forecast_ask(const char *scheduler, const struct recipe *r, struct sched_forecast *out,
		 bool *refused, struct err *e)
{
	_cleanup_free_ char *conf = forecast_slurm_conf();
	const struct sched *sched = sched_find(scheduler);
	struct sched_run *run = NULL;
	int rc;

	*refused = false;
	if (!conf)
		return err_set(e, ERR_STATE,
			       "no slurm.conf was found: on a login node, set SLURM_CONF");
	if ((rc = open_sched(sched, r, &run, e)) < 0)
		return rc;
	rc = ask(sched, run, r, out, e);
	*refused = rc == -ERR_RECIPE || rc == -ERR_NOT_FOUND;
	sched->close(run);
	return rc;
}
