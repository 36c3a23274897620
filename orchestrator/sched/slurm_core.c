/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_core.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_agent.h"
#include "orchestrator/sched/slurm_state.h"

enum {
	US_PER_S = 1000000,
	US_PER_MS = 1000,
	POLL_MIN_US = 2 * US_PER_S,
	POLL_MAX_US = 30 * US_PER_S,
	QUIET_SHARE = 4, /* when nothing has happened for t, the next question comes after t / 4 */
	NAP_MIN_US = 20 * US_PER_MS,
	WAIT_MAX_US = 600 * US_PER_S, /* poll(2) counts in an int of milliseconds; callers come back
					 anyway */
	SETTLE_MS = 500, /* slurmctld handles calls in threads: one sent earlier may be done later
			  */
	LOOKS_AGAIN = 2,
	REASON_LOOKS = 30, /* of REASON_MS each: slurmctld looks at a new job within 3 s */
	REASON_MS = 200,
	/* Jobs in the queue beyond one a node: slurmctld sees a new job after up to 3 s, one that
	 * waits whenever it looks, which may be twice before we do. More than that many nodes
	 * hardly become free meanwhile. */
	AHEAD_A_NODE = 2,
	AHEAD_MAX = 16,
};

static const char TOKEN_START[] = "fettle:";

struct sched_run {
	const struct slurm_way *way;
	void *ctx;
	const struct clock *clock;
	char *agent, *blocks_root;
	const char *partition;
	struct sched_status *seen; /* the jobs of the last answer, and those submitted since */
	size_t n_seen, cap_seen;
	int64_t asked_us, changed_us; /* monotonic; asked_us 0: ask at the next poll */
	struct kvs cancelled;         /* by us */
	struct kvs shapes;            /* jobs about which a dry run was asked */
	bool no_accounts;             /* slurmdbd is not there: not asked again */
};

/* --- open ------------------------------------------------------------------------------- */

int slurm_core_open(const struct sched_config *c, const struct slurm_way *way, void *ctx,
		    struct sched_run **out, struct err *e)
{
	struct sched_run *s = xcalloc(1, sizeof(*s));

	s->clock = c->clock ? c->clock : &clock_system;
	s->partition = c->partition;
	s->agent = fs_absolute(c->agent, e);
	if (!s->agent) {
		free(s);
		return err_wrap(e, "fettle-agent");
	}
	s->blocks_root = xstrdup(c->blocks_root ? c->blocks_root : "");
	s->way = way;
	s->ctx = ctx;
	s->changed_us = clock_mono_us(s->clock);
	*out = s;
	return 0;
}

void slurm_core_close(struct sched_run *s)
{
	if (!s)
		return;
	s->way->close(s->ctx);
	free(s->agent);
	free(s->blocks_root);
	free(s->seen);
	kvs_free(&s->cancelled);
	kvs_free(&s->shapes);
	free(s);
}

static int call(struct sched_run *s, struct json *req, bool repeatable, struct json **reply,
		struct err *e)
{
	return s->way->call(s->ctx, req, repeatable, reply, e);
}

/* --- what was seen ---------------------------------------------------------------------- */

static struct sched_status *find_seen(struct sched_run *s, const char *id)
{
	for (size_t i = 0; i < s->n_seen; i++)
		if (str_eq(s->seen[i].id, id))
			return &s->seen[i];
	return NULL;
}

static void remember(struct sched_run *s, const struct sched_status *st)
{
	struct sched_status *old = find_seen(s, st->id);

	if (!old || old->state != st->state)
		s->changed_us = clock_mono_us(s->clock);
	if (!old) {
		s->seen = xgrow(s->seen, s->n_seen, &s->cap_seen, sizeof(*s->seen));
		old = &s->seen[s->n_seen++];
	}
	*old = *st;
}

static bool is_over(const struct sched_status *st)
{
	return st->state == JOB_ENDED || st->state == JOB_GONE;
}

static bool in_list(const char *const *ids, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(ids[i], id))
			return true;
	return false;
}

/* Drop the jobs that are over and that nobody asks about any more. */
static void forget_old(struct sched_run *s, const char *const *ids, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_seen; i++)
		if (!is_over(&s->seen[i]) || in_list(ids, n, s->seen[i].id))
			s->seen[kept++] = s->seen[i];
	s->n_seen = kept;
}

/* How long the last answer is good enough. */
static int64_t poll_interval_us(const struct sched_run *s)
{
	int64_t us = (clock_mono_us(s->clock) - s->changed_us) / QUIET_SHARE;

	us = us > POLL_MAX_US ? POLL_MAX_US : us;
	return us < POLL_MIN_US ? POLL_MIN_US : us;
}

static int64_t until_due_us(const struct sched_run *s)
{
	int64_t left_us = s->asked_us + poll_interval_us(s) - clock_mono_us(s->clock);

	return s->asked_us == 0 || left_us < 0 ? 0 : left_us;
}

/* --- records of jobs -------------------------------------------------------------------- */

static struct slurm_raw raw_of(const struct json *job)
{
	return (struct slurm_raw){
		.job = json_text(json_get(job, "job"), ""),
		.name = json_text(json_get(job, "name"), ""),
		.nodes = json_text(json_get(job, "nodes"), ""),
		.reason_text = json_text(json_get(job, "reason_text"), ""),
		.state = (uint32_t)json_i64(json_get(job, "state"), 0),
		.reason = (uint32_t)json_i64(json_get(job, "reason"), 0),
		.exit = (int)json_i64(json_get(job, "exit"), 0),
		.restarts = (uint32_t)json_i64(json_get(job, "restarts"), 0),
		.start_s = json_i64(json_get(job, "start_s"), 0),
		.end_s = json_i64(json_get(job, "end_s"), 0),
		.suspended = json_bool(json_get(job, "suspended"), false),
	};
}

int slurm_core_cancel(struct sched_run *s, const char *id, struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object(), *reply = NULL;
	int rc;

	json_set_text(req, "op", "cancel");
	json_set_text(req, "job", id);
	rc = call(s, req, true, &reply, e);
	s->asked_us = 0;
	if (rc == 0)
		kvs_set(&s->cancelled, id, "");
	return rc ? err_wrap(e, "cannot cancel job %s", id) : 0;
}

/* A job that somebody put back into the queue is taken out of it: its block is run again by us, as
 * a new attempt. If that fails it is reported as waiting, and the next poll tries again. */
static struct sched_status decode(struct sched_run *s, const struct json *job)
{
	struct slurm_raw raw = raw_of(job);
	struct sched_status st;
	struct err e;
	bool still_queued;

	slurm_state_decode(&raw, &st, &still_queued);
	if (still_queued && slurm_core_cancel(s, st.id, &e)) {
		log_warn("job %s was requeued: %s", st.id, e.text);
		st.state = JOB_PENDING;
		st.end = END_NONE;
	}
	/* ended at once and cleanly it looks like a failed prolog: but we know who cancelled it */
	if (st.end == END_LAUNCH_FAILED && kvs_has(&s->cancelled, st.id))
		st.end = END_CANCELLED;
	return st;
}

/* --- submit ----------------------------------------------------------------------------- */

static struct json *texts(const char *const *v, size_t n)
{
	struct json *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_add_text(a, v[i]);
	return a;
}

static void describe_options(const struct job_options *options, struct json *o)
{
	for (const struct job_option *k = job_option_table; options && k->key; k++) {
		const char *member = (const char *)options + k->offset;

		switch (k->kind) {
		case JOB_OPTION_TEXT:
			json_set_text(o, k->key, *(const char *const *)member);
			break;
		case JOB_OPTION_COUNT:
			json_set_i64(o, k->key, *(const int *)member);
			break;
		case JOB_OPTION_MIB:
			json_set_i64(o, k->key, *(const int64_t *)member);
			break;
		}
	}
}

/* `copy`: of the agent beside the blocks; NULL: there is none. */
static struct json *describe(const struct sched_run *s, const struct sched_job *job,
			     const char *copy)
{
	struct json *o = json_object();
	size_t n_env = 0;

	while (job->env && job->env[n_env])
		n_env++;
	json_set_text(o, "token", job->token);
	json_set_text(o, "agent", s->agent);
	json_set_text(o, "agent_machine", slurm_agent_machine(s->agent));
	json_set_text(o, "agent_copy", copy);
	json_set_text(o, "sbcast_dir", job->sbcast_dir);
	json_set(o, "block_dirs", texts(job->block_dirs, job->n_block_dirs));
	json_set_text(o, "workdir", job->workdir);
	json_set_text(o, "output", job->output);
	json_set(o, "env", texts((const char *const *)job->env, n_env));
	json_set_i64(o, "nodes", job->nodes);
	json_set_i64(o, "tasks_per_node", job->tasks_per_node);
	json_set_i64(o, "cpus_per_task", job->cpus_per_task);
	json_set_i64(o, "gpus_per_node", job->gpus_per_node);
	json_set_i64(o, "mem_mib_per_node", job->mem_mib_per_node);
	json_set_i64(o, "time_limit_s", job->time_limit_s);
	json_set_bool(o, "exclusive", job->exclusive);
	json_set_text(o, "partition", job->partition ? job->partition : s->partition);
	json_set_text(o, "account", job->account);
	json_set_text(o, "qos", job->qos);
	json_set_text(o, "reservation", job->reservation);
	json_set_text(o, "constraint", job->constraint);
	json_set_text(o, "nodelist", job->nodelist);
	json_set_text(o, "exclude", job->exclude);
	describe_options(job->options, o);
	return o;
}

static int call_with_job(struct sched_run *s, const char *op, const struct sched_job *job,
			 bool repeatable, struct json **reply, struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object();
	_cleanup_free_ char *copy = NULL;
	int rc = 0;

	if (job->sbcast_dir || slurm_agent_is_hidden(s->agent, s->blocks_root))
		rc = slurm_agent_copy(s->agent, s->blocks_root, &copy, e);
	if (rc)
		return rc;
	json_set_text(req, "op", op);
	json_set(req, "job", describe(s, job, copy));
	return call(s, req, repeatable, reply, e);
}

/* Does slurmctld come to say that the job waits for ever? */
static bool never_starts(struct sched_run *s, const char *id)
{
	_cleanup_(json_freep) struct json *req = json_object();

	json_set_text(req, "op", "poll");
	json_set(req, "jobs", texts(&id, 1));
	for (int look = 0; look < REASON_LOOKS; look++) {
		_cleanup_(json_freep) struct json *reply = NULL;
		struct sched_status st;
		struct slurm_raw raw;
		bool still_queued;

		if (call(s, req, true, &reply, NULL) || json_len(json_get(reply, "jobs")) == 0)
			return false;
		raw = raw_of(json_at(json_get(reply, "jobs"), 0));
		slurm_state_decode(&raw, &st, &still_queued);
		if (st.state != JOB_PENDING || st.pending == PENDING_NEVER)
			return st.state == JOB_PENDING;
		poll(NULL, 0, REASON_MS);
	}
	return false;
}

/* Newer releases queue what is beyond a limit of its partition without a word. A dry run finds that
 * out, once for jobs that are alike; whether it starts all the same (a QOS may allow it) is
 * slurmctld's to say. One that does not is withdrawn. */
static int judge_shape(struct sched_run *s, const struct sched_job *job, const char *id,
		       struct err *e)
{
	static const char prefix[] = "dry run: ";
	_cleanup_free_ char *shape = xasprintf("%s %d %lld", job->partition ? job->partition : "",
					       job->nodes, (long long)job->time_limit_s);
	struct sched_forecast forecast;
	struct err why = {0};
	int rc;

	if (kvs_has(&s->shapes, shape))
		return 0;
	rc = slurm_core_will_run(s, job, &forecast, &why);
	if (rc == -ERR_RECIPE && never_starts(s, id) && slurm_core_cancel(s, id, NULL) == 0)
		return err_set(e, ERR_RECIPE, "submit: %s",
			       why.text + (str_starts(why.text, prefix) ? strlen(prefix) : 0));
	if (rc != -ERR_TEMP) /* no answer is no judgement: the next one alike is asked about */
		kvs_set(&s->shapes, shape, "");
	return 0;
}

int slurm_core_submit(struct sched_run *s, const struct sched_job *job, char id[64], struct err *e)
{
	_cleanup_(json_freep) struct json *reply = NULL;
	struct sched_status st = {.state = JOB_PENDING};
	int rc = call_with_job(s, "submit", job, false, &reply, e);

	if (rc)
		return err_wrap(e, "cannot submit %s", job->token);
	str_copy(id, 64, json_text(json_get(reply, "job"), ""));
	if (!*id) /* cannot be told from a lost answer */
		return err_set(e, ERR_TEMP, "fettle-slurm submitted %s and gave no job number",
			       job->token);
	str_copy(st.id, sizeof(st.id), id);
	str_copy(st.token, sizeof(st.token), job->token);
	remember(s, &st);
	rc = judge_shape(s, job, id, e);
	return rc ? err_wrap(e, "cannot submit %s", job->token) : 0;
}

int slurm_core_will_run(struct sched_run *s, const struct sched_job *job,
			struct sched_forecast *out, struct err *e)
{
	_cleanup_(json_freep) struct json *reply = NULL;
	int rc = call_with_job(s, "willrun", job, true, &reply, e);

	if (rc)
		return rc;
	*out = (struct sched_forecast){.start_us = json_i64(json_get(reply, "start_s"), 0) *
						   US_PER_S};
	str_copy(out->nodes, sizeof(out->nodes), json_text(json_get(reply, "nodes"), ""));
	str_copy(out->partition, sizeof(out->partition),
		 json_text(json_get(reply, "partition"), ""));
	return 0;
}

/* --- poll and find ---------------------------------------------------------------------- */

static struct json *poll_request(const struct sched_run *s, const char *const *ids, size_t n)
{
	struct json *req = json_object(), *jobs = texts(ids, n);

	for (size_t i = 0; i < s->n_seen; i++)
		if (!is_over(&s->seen[i]) && !in_list(ids, n, s->seen[i].id))
			json_add_text(jobs, s->seen[i].id);
	json_set_text(req, "op", "poll");
	json_set(req, "jobs", jobs);
	return req;
}

static void remember_as(struct sched_run *s, const char *id, enum job_state state,
			const char *reason)
{
	struct sched_status st = {.state = state}, *old = find_seen(s, id);

	if (old) { /* what is known stays known */
		st = *old;
		st.state = state;
		st.end = END_NONE;
	}
	str_copy(st.id, sizeof(st.id), id);
	str_copy(st.reason, sizeof(st.reason), reason);
	remember(s, &st);
}

/* The record of job `id`. A slurmctld that lost its last state gives numbers out again: a job of
 * another name than the one that we know by this number is not ours. After a restart no name is
 * known: then it must be a token at least, and the caller knows which. */
static const struct json *find_record(struct sched_run *s, const struct json *jobs, const char *id)
{
	const struct sched_status *known = find_seen(s, id);

	for (size_t i = 0; i < json_len(jobs); i++) {
		const struct json *job = json_at(jobs, i);
		const char *name = json_text(json_get(job, "name"), "");

		if (!str_eq(json_text(json_get(job, "job"), ""), id))
			continue;
		if (known && *known->token)
			return str_eq(known->token, name) ? job : NULL;
		return str_starts(name, TOKEN_START) ? job : NULL;
	}
	return NULL;
}

/* --- accounts --------------------------------------------------------------------------- */

static int ask_accounts(struct sched_run *s, const char *const *ids, size_t n, struct json **reply,
			struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object();
	int rc;

	*reply = NULL;
	if (s->no_accounts)
		return err_set(e, ERR_RECIPE, "this cluster keeps no accounts (no slurmdbd)");
	json_set_text(req, "op", "acct");
	json_set(req, "jobs", texts(ids, n));
	rc = call(s, req, true, reply, e);
	s->no_accounts = rc == -ERR_RECIPE;
	return rc;
}

/* What slurmctld has forgotten slurmdbd may know. Its records come late, and while it catches up
 * wrong for a moment: one without an end is none, nor one of another name than the job's. */
static bool end_by_accounts(struct sched_run *s, const char *id)
{
	_cleanup_(json_freep) struct json *reply = NULL;
	const struct json *record;
	struct sched_status st;
	bool still_queued;

	if (ask_accounts(s, &id, 1, &reply, NULL))
		return false;
	record = find_record(s, json_get(reply, "jobs"), id);
	if (!record || json_i64(json_get(record, "end_s"), 0) <= 0)
		return false;
	{
		const struct slurm_raw raw = raw_of(record);

		slurm_state_decode(&raw, &st, &still_queued);
	}
	if (st.state != JOB_ENDED)
		return false;
	if (st.end == END_LAUNCH_FAILED && json_bool(json_get(record, "ran"), false))
		st.end = END_CANCELLED; /* no prolog failed: a step of it ran */
	remember(s, &st);
	return true;
}

int slurm_core_account(struct sched_run *s, const char *const *ids, size_t n,
		       struct sched_account *out, struct err *e)
{
	_cleanup_(json_freep) struct json *reply = NULL;
	int rc = ask_accounts(s, ids, n, &reply, e);

	for (size_t i = 0; i < n; i++) {
		const struct json *r = rc ? NULL : find_record(s, json_get(reply, "jobs"), ids[i]);

		out[i] = (struct sched_account){.known = r && json_i64(json_get(r, "end_s"), 0) > 0,
						.elapsed_s = json_i64(json_get(r, "elapsed_s"), -1),
						.maxrss_kib = json_i64(json_get(r, "maxrss_kib"),
								       -1),
						.energy_j = json_i64(json_get(r, "energy_j"), -1)};
		str_copy(out[i].tres, sizeof(out[i].tres), json_text(json_get(r, "tres"), ""));
	}
	return rc;
}

/* Only an answer makes a job gone; no answer leaves it unknown. */
static void ask(struct sched_run *s, const char *const *ids, size_t n)
{
	_cleanup_(json_freep) struct json *req = NULL, *reply = NULL;
	const struct json *asked;
	struct err e = {0};
	int rc;

	forget_old(s, ids, n);
	req = poll_request(s, ids, n);
	rc = call(s, req, true, &reply, &e);
	s->asked_us = clock_mono_us(s->clock);
	asked = json_get(req, "jobs");
	for (size_t i = 0; i < json_len(asked); i++) {
		const char *id = json_text(json_at(asked, i), "");
		const struct json *record = rc ? NULL : find_record(s, json_get(reply, "jobs"), id);

		if (record) {
			struct sched_status st = decode(s, record);

			remember(s, &st);
		} else if (rc || !end_by_accounts(s, id)) {
			remember_as(s, id, rc ? JOB_UNKNOWN : JOB_GONE,
				    rc ? e.text : "slurmctld does not know this job");
		}
	}
}

int slurm_core_poll(struct sched_run *s, const char *const *ids, size_t n, struct sched_status *out,
		    struct err *e)
{
	bool fresh = until_due_us(s) > 0;

	(void)e;
	for (size_t i = 0; fresh && i < n; i++)
		fresh = find_seen(s, ids[i]) != NULL;
	if (!fresh && n > 0)
		ask(s, ids, n);
	for (size_t i = 0; i < n; i++)
		out[i] = *find_seen(s, ids[i]);
	return 0;
}

/* Of several records: one that still lives, else the one submitted last (Slurm lists them in that
 * order). */
static const struct json *choose_record(const struct json *jobs)
{
	const struct json *best = NULL;
	struct sched_status st;
	bool still_queued;

	for (size_t i = 0; i < json_len(jobs); i++) {
		struct slurm_raw raw = raw_of(json_at(jobs, i));

		if (slurm_state_is_refusal(&raw))
			continue;
		best = json_at(jobs, i);
		slurm_state_decode(&raw, &st, &still_queued);
		if (!is_over(&st))
			break;
	}
	return best;
}

static int find_once(struct sched_run *s, const char *token, struct sched_status *out,
		     struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object(), *reply = NULL;
	const struct json *record;
	int rc;

	json_set_text(req, "op", "find");
	json_set_text(req, "token", token);
	rc = call(s, req, true, &reply, e);
	if (rc)
		return err_wrap(e, "cannot look for %s", token);
	record = choose_record(json_get(reply, "jobs"));
	if (!record)
		return 0;
	*out = decode(s, record);
	remember(s, out);
	return 1;
}

/* Absent is said only after further looks: the submit that is in doubt may be handled a moment
 * after the first, and on a busy controller a moment is long. */
int slurm_core_find(struct sched_run *s, const char *token, struct sched_status *out, struct err *e)
{
	int rc = find_once(s, token, out, e);

	for (int look = 1; rc == 0 && look <= LOOKS_AGAIN; look++) {
		poll(NULL, 0, look * SETTLE_MS);
		rc = find_once(s, token, out, e);
	}
	return rc;
}

int slurm_core_alive(struct sched_run *s, const char *prefix, struct sched_status **out, size_t *n,
		     struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object(), *reply = NULL;
	const struct json *jobs;
	int rc;

	json_set_text(req, "op", "find");
	json_set_text(req, "token", prefix);
	json_set_bool(req, "prefix", true);
	rc = call(s, req, true, &reply, e);
	if (rc)
		return rc;
	jobs = json_get(reply, "jobs");
	*out = xcalloc(json_len(jobs) + 1, sizeof **out);
	*n = 0;
	for (size_t i = 0; i < json_len(jobs); i++) {
		(*out)[*n] = decode(s, json_at(jobs, i));
		*n += !is_over(&(*out)[*n]);
	}
	return 0;
}

/* --- capacity and waiting --------------------------------------------------------------- */

/* What `doctor` shows. The controller's own words are optional: the nodes were told already. */
static void summarise(struct sched_run *s, const struct json *r, struct sched_capacity *out)
{
	_cleanup_(json_freep) struct json *req = json_object(), *ping = NULL;
	const struct json *limit = json_get(r, "max_time_min");
	char hours[32] = "no time limit";

	json_set_text(req, "op", "ping");
	if (call(s, req, true, &ping, NULL))
		json_freep(&ping);
	if (json_type(limit) == JSON_NUMBER)
		snprintf(hours, sizeof(hours), "at most %lld min", (long long)json_i64(limit, 0));
	snprintf(out->summary, sizeof(out->summary),
		 "Slurm %s, cluster %s, partition %s%s: %d of %d nodes idle, %lld down or drained, "
		 "%s",
		 json_text(json_path(ping, "controller.version"), "?"),
		 json_text(json_path(ping, "controller.cluster"), "?"),
		 json_text(json_get(r, "partition"), "?"),
		 json_bool(json_get(r, "up"), true) ? "" : " (not up)", out->nodes_idle,
		 out->nodes_total, (long long)json_i64(json_get(r, "nodes_out"), 0), hours);
}

int slurm_core_capacity(struct sched_run *s, struct sched_capacity *out, struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object(), *reply = NULL;
	int rc, usable;

	json_set_text(req, "op", "capacity");
	json_set_text(req, "partition", s->partition);
	rc = call(s, req, true, &reply, e);
	if (rc)
		return rc;
	*out = (struct sched_capacity){
		.nodes_total = (int)json_i64(json_get(reply, "nodes_total"), 0),
		.nodes_idle = (int)json_i64(json_get(reply, "nodes_idle"), 0),
		.nodes_out = (int)json_i64(json_get(reply, "nodes_out"), 0),
		.time_limit_s = 60 * json_i64(json_get(reply, "max_time_min"), 0),
	};
	usable = out->nodes_total - out->nodes_out;
	out->jobs_at_once = usable > 1 ? usable : 1;
	out->jobs_ahead = out->jobs_at_once < AHEAD_MAX / AHEAD_A_NODE
				  ? out->jobs_at_once * AHEAD_A_NODE
				  : AHEAD_MAX;
	summarise(s, reply, out);
	return 0;
}

/* The longest that makes sense before the next poll, or before a look at files: what was submitted
 * or changed lately may soon change again. Never nothing at all: a caller that polls other things
 * than jobs must not spin. */
static int64_t nap_us(const struct sched_run *s)
{
	int64_t due_us = until_due_us(s);
	int64_t quiet_us = (clock_mono_us(s->clock) - s->changed_us) / QUIET_SHARE;

	due_us = due_us < quiet_us ? due_us : quiet_us;

	for (size_t i = 0; i < s->n_seen; i++)
		if (!is_over(&s->seen[i]))
			return due_us < NAP_MIN_US ? NAP_MIN_US : due_us;
	return INT64_MAX;
}

int slurm_core_wait(struct sched_run *s, int64_t timeout_us, int fd, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t nap = nap_us(s);

	timeout_us = timeout_us < nap ? timeout_us : nap;
	timeout_us = timeout_us < 0 ? 0 : timeout_us > WAIT_MAX_US ? WAIT_MAX_US : timeout_us;
	if (poll(&p, fd >= 0, (int)((timeout_us + US_PER_MS - 1) / US_PER_MS)) < 0 &&
	    errno != EINTR)
		return err_sys(e, ERR_IO, "cannot wait");
	return 0;
}
