/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/detach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"

enum {
	MEM_MIB = 512,  /* fettle itself needs 20; sqlite's cache and a report the rest */
	ENV_MAX = 4096, /* variables of the captured environment */
};

static const struct cmd cmd_detached = {.name = "run --detach"};

/* The campaign's own environment, and where this program's parts are. */
static int job_env(const struct campaign_row *row, struct strv *env, struct err *e)
{
	static const char *const parts[] = {"FETTLE_AGENT", "FETTLE_SLURM_HELPER",
					    "FETTLE_RECIPES"};
	_cleanup_(json_freep) struct json *j = NULL;
	int rc = json_parse("captured environment", row->env_json, strlen(row->env_json), &j, e);

	for (size_t i = 0; rc == 0 && i < json_len(j) && i < ENV_MAX; i++)
		strv_addf(env, "%s=%s", json_key(json_at(j, i)), json_text(json_at(j, i), ""));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (getenv(parts[i]))
			strv_addf(env, "%s=%s", parts[i], getenv(parts[i]));
	return rc;
}

static char *own_path(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	return n > 0 ? xstrndup(path, (size_t)n) : NULL;
}

static int submit(struct workspace *w, const struct campaign_row *row, const struct sched *sched,
		  struct sched_run *run, const char *partition, struct err *e)
{
	_cleanup_free_ char *name = xasprintf("detached/%lld", (long long)row->id);
	_cleanup_free_ char *dir = fs_join(w->root, name), *output = fs_join(dir, "fettle.out");
	_cleanup_(strv_free) struct strv env = {0};
	const char *dirs[1] = {dir};
	char token[64], id[64];
	struct sched_status st;
	struct sched_job job = {.token = token,
				.block_dirs = dirs,
				.n_block_dirs = 1,
				.workdir = w->root,
				.output = output,
				.nodes = 1,
				.tasks_per_node = 1,
				.cpus_per_task = 1,
				.mem_mib_per_node = MEM_MIB,
				.partition = partition};
	int rc;

	snprintf(token, sizeof token, "fettle:%.8s:d%lld", w->uuid, (long long)row->id);
	if ((rc = sched->find(run, token, &st, e)) < 0)
		return rc;
	if (rc == 1 && (st.state == JOB_PENDING || st.state == JOB_RUNNING)) {
		printf("campaign %lld is driven by job %s already\n", (long long)row->id, st.id);
		return 0;
	}
	if ((rc = fs_mkdirs(dir, 0700, e)) < 0 || (rc = job_env(row, &env, e)) < 0)
		return rc;
	job.env = strv_end(&env);
	if ((rc = sched->submit(run, &job, id, e)) < 0)
		return rc;
	printf("campaign %lld is driven by job %s from now on; its output: %s\n",
	       (long long)row->id, id, output);
	return 0;
}

int detach_submit(struct workspace *w, int64_t id, const struct drive_options *o,
		  const char *partition, struct err *e)
{
	_cleanup_free_ char *self = own_path(), *helper = paths_slurm_helper();
	struct sched_config config = {.blocks_root = w->blocks_root,
				      .agent = self,
				      .helper = helper,
				      .partition = partition,
				      .clock = w->clock};
	struct campaign_row row;
	const struct sched *sched;
	struct sched_run *run = NULL;
	int rc = query_campaign_get(w->db, id, &row, e);

	if (rc < 0)
		return rc;
	sched = sched_find(o->scheduler ? o->scheduler : row.scheduler);
	if (!sched || !str_starts(sched->name, "slurm"))
		rc = err_set(e, ERR_USAGE,
			     "--detach needs a cluster: scheduler %s runs on this machine",
			     row.scheduler);
	if (rc == 0 && (rc = sched->open(&config, &run, e)) == 0)
		rc = submit(w, &row, sched, run, partition, e);
	if (run)
		sched->close(run);
	campaign_row_done(&row);
	return rc;
}

int detach_main(const char *path)
{
	const char *name = fs_basename(path);
	_cleanup_free_ char *root = xstrndup(path, strlen(path));
	struct drive_options o = {.leave_jobs = true};
	struct workspace *w = NULL;
	struct err e = {0};
	char *cut = strstr(root, "/detached/");
	int64_t id;
	int status;

	if (!cut || !str_to_i64(name, &id)) {
		fprintf(stderr, "fettle: error: there is no command `%s`\n", path);
		return 2;
	}
	for (char *next = cut; (next = strstr(next + 1, "/detached/"));)
		cut = next;
	*cut = '\0';
	if (workspace_open(root, DB_WRITE, &clock_system, &w, &e) < 0)
		status = cmd_fail(&cmd_detached, &e);
	else
		status = drive_campaign(&cmd_detached, w, id, &o);
	workspace_close(w);
	return status;
}
