/* SPDX-License-Identifier: GPL-2.0-or-later */
/* poll, find and cancel: facts about our own jobs, not decoded. */
#include "orchestrator/slurm/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/slurm/compat.h"
#include "orchestrator/sched/slurm_errors.h"

/* Without SHOW_LOCAL libslurm first asks for a federation: a second RPC, and twice the wait when
 * hung. */
enum { OWN_JOBS = SHOW_ALL | SHOW_LOCAL };

static int load_own_jobs(struct helper *h, job_info_msg_t **out, struct err *e)
{
	errno = 0;
	if (slurm_load_job_user(out, getuid(), OWN_JOBS) == 0)
		return 0;
	/* Some releases call "no job at all" an error; it is an answer. */
	if (errno == ESLURM_INVALID_JOB_ID) {
		*out = NULL;
		return 0;
	}
	return helper_slurm_failed(h, e, "cannot ask for our jobs");
}

char *helper_expand_nodes(const char *list)
{
	struct buf b = {0};
	compat_hostlist hosts = list && *list ? slurm_hostlist_create(list) : NULL;
	char *name;

	while (hosts && (name = slurm_hostlist_shift(hosts))) {
		if (b.len)
			buf_char(&b, ',');
		buf_str(&b, name);
		free(name);
	}
	if (hosts)
		slurm_hostlist_destroy(hosts);
	return buf_take(&b);
}

/* The words of this Slurm for a reason number. The function is exported by every release but
 * declared by none, and was renamed; NULL where it is not found. */
static const char *reason_words(uint32_t reason)
{
	typedef const char *(*words_f)(int);
	static const char *const names[] = {"slurm_job_state_reason_string",
					    "slurm_job_reason_string"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		words_f f = (words_f)(uintptr_t)dlsym(RTLD_DEFAULT, names[i]);

		if (f)
			return f((int)reason);
	}
	return NULL;
}

static struct json *describe_job(const slurm_job_info_t *j)
{
	_cleanup_free_ char *nodes = helper_expand_nodes(j->nodes);
	struct json *o = json_object();
	char id[16];

	snprintf(id, sizeof(id), "%u", j->job_id);
	json_set_text(o, "job", id);
	json_set_text(o, "name", j->name);
	json_set_i64(o, "state", j->job_state);
	json_set_i64(o, "reason", j->state_reason);
	json_set_text(o, "reason_text",
		      j->state_desc ? j->state_desc : reason_words(j->state_reason));
	json_set_i64(o, "exit", j->exit_code);
	json_set_i64(o, "derived_exit", j->derived_ec);
	json_set_i64(o, "restarts", j->restart_cnt);
	json_set_i64(o, "submit_s", j->submit_time);
	json_set_i64(o, "start_s", j->start_time);
	json_set_i64(o, "end_s", j->end_time);
	json_set_bool(o, "suspended", j->suspend_time > 0);
	json_set_text(o, "nodes", nodes);
	json_set_text(o, "partition", j->partition);
	return o;
}

static bool asked_for(const struct json *ids, uint32_t id)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	for (size_t i = 0; i < json_len(ids); i++)
		if (str_eq(json_text(json_at(ids, i), NULL), text))
			return true;
	return false;
}

int helper_poll(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const struct json *ids = json_get(req, "jobs");
	job_info_msg_t *msg = NULL;
	struct json *jobs;
	int rc = load_own_jobs(h, &msg, e);

	if (rc)
		return rc;
	jobs = json_array();
	for (uint32_t i = 0; msg && i < msg->record_count; i++)
		if (asked_for(ids, msg->job_array[i].job_id))
			json_add(jobs, describe_job(&msg->job_array[i]));
	json_set(reply, "jobs", jobs);
	if (msg)
		slurm_free_job_info_msg(msg);
	return 0;
}

int helper_find(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const char *token = json_text(json_get(req, "token"), NULL);
	bool prefix = json_bool(json_get(req, "prefix"), false);
	job_info_msg_t *msg = NULL;
	struct json *jobs;
	int rc;

	if (!token)
		return err_set(e, ERR_USAGE, "find: a token is needed");
	rc = load_own_jobs(h, &msg, e);
	if (rc)
		return rc;
	jobs = json_array();
	for (uint32_t i = 0; msg && i < msg->record_count; i++) {
		const char *name = msg->job_array[i].name;

		if (name && prefix ? str_starts(name, token) : str_eq(name, token))
			json_add(jobs, describe_job(&msg->job_array[i]));
	}
	json_set(reply, "jobs", jobs);
	if (msg)
		slurm_free_job_info_msg(msg);
	return 0;
}

/* As scancel: TERM and CONT to all, KILL after KillWait. */
int helper_cancel(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const char *id = json_text(json_get(req, "job"), NULL);
	int64_t number;

	if (!id || !str_to_i64(id, &number) || number <= 0)
		return err_set(e, ERR_USAGE, "cancel: '%s' is no job number", id ? id : "");
	errno = 0;
	if (COMPAT_KILL(id, SIGKILL, 0)) {
		if (!slurm_errors_already_gone(errno))
			return helper_slurm_failed(h, e, "cancel");
		json_set_bool(reply, "was_gone", true);
	}
	return 0;
}
