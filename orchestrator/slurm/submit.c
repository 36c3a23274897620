/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit and willrun: from the `job` of a request to Slurm's job description. */
#include "orchestrator/slurm/helper.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/slurm/compat.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/slurm/options.h"
#include "orchestrator/sched/slurm_script.h"

enum { SECONDS_A_MINUTE = 60 };

/* The description borrows from here and from the request. */
struct job {
	job_desc_msg_t desc;
	struct strv env;
	char *script, *output;
	struct options options;
};

static void job_free(struct job *j)
{
	strv_free(&j->env);
	free(j->script);
	free(j->output);
	options_free(&j->options);
}

/* Texts that are passed on as they are. */
static const struct text_field {
	const char *key;
	size_t offset;
} text_fields[] = {
	{"partition", offsetof(job_desc_msg_t, partition)},
	{"account", offsetof(job_desc_msg_t, account)},
	{"qos", offsetof(job_desc_msg_t, qos)},
	{"reservation", offsetof(job_desc_msg_t, reservation)},
	{"constraint", offsetof(job_desc_msg_t, features)},
	{"nodelist", offsetof(job_desc_msg_t, req_nodes)},
	{"exclude", offsetof(job_desc_msg_t, exc_nodes)},
};

/* libslurm wants char * and changes nothing. */
static char *text_of(const struct json *job, const char *key)
{
	const char *s = json_text(json_get(job, key), NULL);

	return s && *s ? (char *)(uintptr_t)s : NULL;
}

static void set_texts(job_desc_msg_t *d, const struct json *job)
{
	for (size_t i = 0; i < ARRAY_LEN(text_fields); i++)
		*(char **)((char *)d + text_fields[i].offset) = text_of(job, text_fields[i].key);
}

static int positive(const struct json *job, const char *key)
{
	int64_t v = json_i64(json_get(job, key), 0);

	return v > 0 && v < UINT16_MAX ? (int)v : 0;
}

/* What is not given keeps the markers of slurm_init_job_desc_msg(): the cluster's defaults. */
static void set_resources(struct job *j, const struct json *job)
{
	job_desc_msg_t *d = &j->desc;
	int nodes = positive(job, "nodes"), tasks = positive(job, "tasks_per_node");
	int64_t mem_mib = json_i64(json_get(job, "mem_mib_per_node"), 0);
	int64_t limit_s = json_i64(json_get(job, "time_limit_s"), 0);

	d->min_nodes = d->max_nodes = nodes ? (uint32_t)nodes : 1;
	if (tasks) {
		d->ntasks_per_node = (uint16_t)tasks;
		d->num_tasks = (uint32_t)tasks * d->min_nodes;
	}
	if (positive(job, "cpus_per_task"))
		d->cpus_per_task = (uint16_t)positive(job, "cpus_per_task");
	if (mem_mib > 0)
		d->pn_min_memory = (uint64_t)mem_mib;
	if (limit_s > 0)
		d->time_limit = (uint32_t)((limit_s + SECONDS_A_MINUTE - 1) / SECONDS_A_MINUTE);
}

/* Exclusive: without it two jobs share a node and disturb each other. No requeue: a second run of a
 * block would be elsewhere and unnoticed. Killing on a node's failure is Slurm's default. */
static void set_policy(struct job *j, const struct json *job)
{
	if (json_bool(json_get(job, "exclusive"), true))
		j->desc.shared = JOB_SHARED_NONE;
	j->desc.requeue = 0;
	j->desc.user_id = getuid();
	j->desc.group_id = getgid();
}

static int set_output(struct job *j, const char *path, struct err *e)
{
	if (!path || path[0] != '/')
		return err_set(e, ERR_RECIPE, "output '%s' is not an absolute path",
			       path ? path : "");
	if (slurm_script_output_path(path, &j->output, e))
		return -ERR_RECIPE;
	j->desc.std_out = j->desc.std_err = j->output;
	return 0;
}

/* The agent gets what the request names, and the way back to this cluster. Slurm refuses an empty
 * environment. Left out: what makes slurmd or srun replace the environment by another. */
static void set_environment(struct job *j, const struct json *env, const char *token)
{
	const char *conf = getenv("SLURM_CONF");
	bool has_conf = false;

	for (size_t i = 0; i < json_len(env); i++) {
		const char *kv = json_text(json_at(env, i), "");

		if (!strchr(kv, '=') || str_starts(kv, "SLURM_EXPORT_ENV=") ||
		    str_starts(kv, "SLURM_GET_USER_ENV="))
			continue;
		has_conf = has_conf || str_starts(kv, "SLURM_CONF=");
		strv_add(&j->env, kv);
	}
	if (conf && !has_conf)
		strv_addf(&j->env, "SLURM_CONF=%s", conf);
	if (j->env.n == 0)
		strv_addf(&j->env, "FETTLE_TOKEN=%s", token);
	j->desc.environment = strv_end(&j->env);
	j->desc.env_size = (uint32_t)j->env.n;
}

static int describe(const struct json *req, struct job *j, struct err *e)
{
	const struct json *job = json_get(req, "job");
	int rc;

	*j = (struct job){0};
	slurm_init_job_desc_msg(&j->desc);
	j->desc.name = text_of(job, "token");
	j->desc.work_dir = text_of(job, "workdir");
	if ((rc = slurm_script_check_token(j->desc.name, e)) ||
	    (rc = slurm_script_check_workdir(j->desc.work_dir, e)) ||
	    (rc = set_output(j, text_of(job, "output"), e)) ||
	    (rc = slurm_script_text(job, &j->script, e)))
		return rc;
	j->desc.script = j->script;
	set_texts(&j->desc, job);
	set_resources(j, job);
	set_policy(j, job);
	if ((rc = options_set(&j->options, job, &j->desc, e)))
		return rc;
	set_environment(j, json_get(job, "env"), j->desc.name);
	return 0;
}

/* Accepted jobs that can never start are refused: Slurm keeps them pending for ever. */
static int judge_acceptance(struct helper *h, const submit_response_msg_t *r,
			    const struct json *job, struct err *e)
{
	int verdict = (int)r->error_code;
	char id[16];

	if (verdict != ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE)
		return 0;
	snprintf(id, sizeof(id), "%u", COMPAT_RESPONSE_ID(r));
	if (COMPAT_KILL(id, SIGKILL, 0) && !slurm_errors_already_gone(errno))
		return helper_slurm_verdict(h, errno, e,
					    "cannot withdraw a job that can never start");
	if (helper_check_limits(h, job, e) == -ERR_RECIPE)
		return err_wrap(e, "submit");
	return helper_slurm_verdict(h, verdict, e, "submit");
}

/* Some releases refuse what is beyond a limit in words that fit anything. */
static int refused(struct helper *h, int number, const struct json *job, struct err *e)
{
	struct err beyond = {0};
	int rc = helper_slurm_verdict(h, number, e, "submit");

	if (rc == -ERR_RECIPE && helper_check_limits(h, job, &beyond) == -ERR_RECIPE)
		rc = err_set(e, ERR_RECIPE, "submit: %s", beyond.text);
	return rc;
}

static int submit_described(struct helper *h, struct job *j, const struct json *job,
			    struct json *reply, struct err *e)
{
	submit_response_msg_t *r = NULL;
	char id[16];
	int rc;

	errno = 0;
	if (slurm_submit_batch_job(&j->desc, &r))
		return refused(h, errno, job, e);
	if (!r) /* libslurm may succeed without an answer: only find() can tell */
		return err_set(e, ERR_TEMP, "submit: slurmctld sent an empty answer");
	rc = judge_acceptance(h, r, job, e);
	if (rc == 0) {
		snprintf(id, sizeof(id), "%u", COMPAT_RESPONSE_ID(r));
		json_set_text(reply, "job", id);
		json_set_i64(reply, "verdict", r->error_code);
	}
	slurm_free_submit_response_response_msg(r);
	return rc;
}

int helper_submit(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	struct job j;
	int rc = describe(req, &j, e);

	if (rc == 0)
		rc = submit_described(h, &j, json_get(req, "job"), reply, e);
	job_free(&j);
	return rc;
}

int helper_willrun(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	will_run_response_msg_t *r = NULL;
	struct job j;
	int rc = describe(req, &j, e);

	if (rc == 0 && (rc = helper_check_limits(h, json_get(req, "job"), e)))
		rc = err_wrap(e, "dry run");
	errno = 0;
	if (rc == 0 && slurm_job_will_run2(&j.desc, &r))
		rc = helper_slurm_failed(h, e, "dry run");
	if (rc == 0 && r) {
		_cleanup_free_ char *nodes = helper_expand_nodes(r->node_list);

		json_set_i64(reply, "start_s", r->start_time);
		json_set_text(reply, "nodes", nodes);
		json_set_text(reply, "partition", r->part_name);
		slurm_free_will_run_response_msg(r);
	}
	job_free(&j);
	return rc;
}
