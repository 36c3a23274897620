/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scheduler `fake`: runs no process. A job "ends" when virtual time has passed its length; the
 * files that an agent would have left are then made up from a declared truth (fake_truth.h). Time
 * is the campaign's own clock if that is a virtual one, which wait() then advances; else a counter
 * of our own. The jobs are kept in <blocks_root>/.fake.json, so that an orchestrator that was
 * killed finds them again.
 */
#include "orchestrator/sched/sched.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/sched/fake_files.h"
#include "orchestrator/sched/fake_memory.h"
#include "orchestrator/sched/fake_truth.h"

enum { STATE_MAX = 256 << 20 }; /* 100,000 jobs with 2 KiB of directories each */

/* Its blocks run one after another: each leaves its results when its trials are over, the last one
 * when the job is. */
struct job {
	char id[64], token[64];
	struct strv dirs;
	size_t *slots;  /* trials of each block */
	size_t settled; /* blocks whose time has come */
	size_t hit;     /* the block that the fate hits */
	int64_t start_us, end_us;
	enum job_end end; /* how it will end */
	enum fake_fate fate;
	bool ended;
	int node;
	int64_t number; /* of its submit, from 1 */
};

/* A block that is kept here and not in a file, until its results are asked for. */
struct kept {
	char *dir;
	struct json *block;
};

struct sched_run {
	struct sched_config c;
	struct fake_truth truth;
	struct clock_virtual *clock; /* NULL: now_us is ours alone */
	int64_t now_us;
	char *path;
	struct job *jobs; /* by number */
	size_t n, cap;
	size_t over;      /* so many of the first have ended */
	struct kvs tries; /* token: submits that were lost */
	int64_t seq;
	struct kept *kept;
	size_t n_kept, cap_kept;
};

/* --- time ------------------------------------------------------------------------------- */

static int64_t now_us(const struct sched_run *s)
{
	return s->clock ? s->clock->utc_us : s->now_us;
}

static void advance_to(struct sched_run *s, int64_t utc_us)
{
	int64_t by = utc_us - now_us(s);

	if (by <= 0)
		return;
	if (s->clock)
		clock_advance(s->clock, by);
	else
		s->now_us += by;
}

/* Is it a clock that stands still until it is advanced? */
static struct clock_virtual *virtual_of(const struct clock *c)
{
	struct clock_virtual v = {0};
	struct clock like = clock_virtual_of(&v);

	return c && c->utc_us == like.utc_us ? c->ctx : NULL;
}

/* --- the stored jobs -------------------------------------------------------------------- */

static struct json *job_json(const struct job *j)
{
	struct json *o = json_object(), *dirs = json_array(), *slots = json_array();

	for (size_t i = 0; i < j->dirs.n; i++) {
		json_add_text(dirs, j->dirs.v[i]);
		json_add_number(slots, (double)j->slots[i]);
	}
	json_set_text(o, "id", j->id);
	json_set_text(o, "token", j->token);
	json_set(o, "dirs", dirs);
	json_set(o, "slots", slots);
	json_set_i64(o, "settled", (int64_t)j->settled);
	json_set_i64(o, "hit", (int64_t)j->hit);
	json_set_i64(o, "start_us", j->start_us);
	json_set_i64(o, "end_us", j->end_us);
	json_set_i64(o, "end", j->end);
	json_set_i64(o, "fate", j->fate);
	json_set_bool(o, "ended", j->ended);
	json_set_i64(o, "node", j->node);
	json_set_i64(o, "number", j->number);
	return o;
}

static int save(struct sched_run *s, struct err *e)
{
	struct json *o, *jobs = json_array(), *tries = json_object();
	_cleanup_free_ char *text = NULL;

	if (!s->truth.persist) {
		json_free(jobs);
		json_free(tries);
		return 0;
	}
	o = json_object();
	for (size_t i = 0; i < s->n; i++)
		json_add(jobs, job_json(&s->jobs[i]));
	for (size_t i = 0; i < s->tries.n; i++)
		json_set_text(tries, s->tries.v[i].key, s->tries.v[i].value);
	json_set_text(o, "format", "fettle.fake/1");
	json_set_i64(o, "now_us", now_us(s));
	json_set_i64(o, "seq", s->seq);
	json_set(o, "tries", tries);
	json_set(o, "jobs", jobs);
	text = json_print(o, false);
	json_free(o);
	return fs_write_atomic(s->path, text, strlen(text), 0600, e);
}

static void load_job(struct sched_run *s, const struct json *o)
{
	const struct json *dirs = json_get(o, "dirs"), *slots = json_get(o, "slots");
	struct job j = {.slots = xcalloc(json_len(dirs) + 1, sizeof *j.slots),
			.settled = (size_t)json_i64(json_get(o, "settled"), 0),
			.hit = (size_t)json_i64(json_get(o, "hit"), 0),
			.start_us = json_i64(json_get(o, "start_us"), 0),
			.end_us = json_i64(json_get(o, "end_us"), 0),
			.end = (enum job_end)json_i64(json_get(o, "end"), END_OK),
			.fate = (enum fake_fate)json_i64(json_get(o, "fate"), FATE_OK),
			.ended = json_bool(json_get(o, "ended"), false),
			.node = (int)json_i64(json_get(o, "node"), 0),
			.number = json_i64(json_get(o, "number"), 0)};

	str_copy(j.id, sizeof j.id, json_text(json_get(o, "id"), ""));
	str_copy(j.token, sizeof j.token, json_text(json_get(o, "token"), ""));
	for (size_t i = 0; i < json_len(dirs); i++) {
		strv_add(&j.dirs, json_text(json_at(dirs, i), ""));
		j.slots[i] = (size_t)json_i64(json_at(slots, i), 0);
	}
	s->jobs = xgrow(s->jobs, s->n, &s->cap, sizeof *s->jobs);
	s->jobs[s->n++] = j;
}

static int load(struct sched_run *s, struct err *e)
{
	_cleanup_(json_freep) struct json *o = NULL;
	const struct json *jobs, *tries;
	int rc;

	if (!s->truth.persist || !fs_exists(s->path))
		return 0;
	rc = json_read_file(s->path, STATE_MAX, &o, e);
	if (rc)
		return rc;
	jobs = json_get(o, "jobs");
	tries = json_get(o, "tries");
	for (size_t i = 0; i < json_len(jobs); i++)
		load_job(s, json_at(jobs, i));
	for (size_t i = 0; i < json_len(tries); i++)
		kvs_set(&s->tries, json_key(json_at(tries, i)), json_text(json_at(tries, i), "0"));
	s->seq = json_i64(json_get(o, "seq"), 0);
	advance_to(s,
		   json_i64(json_get(o, "now_us"), 0)); /* time does not run back over a restart */
	return 0;
}

/* --- jobs ------------------------------------------------------------------------------- */

/* The newest are the ones asked for. */
static struct job *by_id(struct sched_run *s, const char *id)
{
	for (size_t i = s->n; i-- > 0;)
		if (str_eq(s->jobs[i].id, id))
			return &s->jobs[i];
	return NULL;
}

static struct job *by_token(struct sched_run *s, const char *token)
{
	for (size_t i = s->n; i-- > 0;)
		if (str_eq(s->jobs[i].token, token))
			return &s->jobs[i];
	return NULL;
}

static void node_name(const struct job *j, char out[32])
{
	snprintf(out, 32, "n%d", j->node + 1);
}

static enum job_end end_of_fate(enum fake_fate f)
{
	switch (f) {
	case FATE_OK:
		return END_OK;
	case FATE_LOST:
	case FATE_VOID:
		return END_FAILED;
	case FATE_NODE_FAIL:
		return END_NODE_FAIL;
	case FATE_TIMEOUT:
		return END_TIMEOUT;
	case FATE_PREEMPTED:
		return END_PREEMPTED;
	}
	return END_FAILED;
}

/* Trials of the job before block i. */
static size_t turn_of(const struct job *j, size_t i)
{
	size_t n = 0;

	for (size_t k = 0; k < i; k++)
		n += j->slots[k];
	return n;
}

static int64_t block_start_us(const struct sched_run *s, const struct job *j, size_t i)
{
	return j->start_us + (int64_t)(s->truth.trial_s * 1e6 * (double)turn_of(j, i));
}

static int64_t block_due_us(const struct sched_run *s, const struct job *j, size_t i)
{
	return i + 1 < j->dirs.n ? block_start_us(s, j, i + 1) : j->end_us;
}

/* The agent goes on after a block of which it had to leave a part; nothing goes on after the rest.
 */
static enum fake_fate fate_of_block(const struct job *j, size_t i)
{
	if (i < j->hit || (i > j->hit && j->fate == FATE_VOID))
		return FATE_OK;
	return j->fate;
}

static struct fake_run run_of(const struct sched_run *s, const struct job *j, size_t i,
			      const char *node)
{
	return (struct fake_run){.truth = &s->truth,
				 .seed = s->c.seed,
				 .dir = j->dirs.v[i],
				 .job_id = j->id,
				 .node = node,
				 .job = j->number,
				 .node_index = j->node,
				 .turn = (int)turn_of(j, i),
				 .start_us = block_start_us(s, j, i),
				 .fate = fate_of_block(j, i)};
}

/* Leave the files of the next block, whose time has come. One that cannot be read makes its job
 * fail; those after the one that the job broke off in were never begun. */
static void settle(struct sched_run *s, struct job *j)
{
	size_t i = j->settled++;
	int64_t at;
	char node[32];
	struct fake_run r;

	node_name(j, node);
	r = run_of(s, j, i, node);
	if (s->truth.in_memory || (i > j->hit && r.fate != FATE_OK))
		return;
	if (fake_files_write(&r, &at, NULL))
		j->end = END_FAILED;
}

static bool is_silent(const struct sched_run *s)
{
	return s->truth.silent_after > 0 && s->seq >= s->truth.silent_after;
}

static int no_answer(struct err *e)
{
	return err_set(e, ERR_TEMP, "planted: the scheduler does not answer");
}

static bool settle_due(struct sched_run *s)
{
	bool any = false;

	if (is_silent(s))
		return false;
	while (s->over < s->n && s->jobs[s->over].ended)
		s->over++;
	for (size_t i = s->over; i < s->n; i++) {
		struct job *j = &s->jobs[i];

		if (j->ended)
			continue;
		for (; j->settled < j->dirs.n && block_due_us(s, j, j->settled) <= now_us(s);
		     any = true)
			settle(s, j);
		if (j->end_us > now_us(s))
			continue;
		while (j->settled < j->dirs.n && j->settled <= j->hit)
			settle(s, j);
		j->ended = any = true;
	}
	return any;
}

static void fill_status(const struct sched_run *s, const struct job *j, struct sched_status *out)
{
	char node[32];

	node_name(j, node);
	*out = (struct sched_status){.state = j->ended                   ? JOB_ENDED
					      : j->start_us <= now_us(s) ? JOB_RUNNING
									 : JOB_PENDING};
	str_copy(out->id, sizeof out->id, j->id);
	str_copy(out->token, sizeof out->token, j->token);
	if (out->state == JOB_PENDING) {
		str_copy(out->reason, sizeof out->reason, "Resources");
		return;
	}
	str_copy(out->nodes, sizeof out->nodes, node);
	out->start_us = j->start_us;
	if (!j->ended)
		return;
	out->end = j->end;
	out->end_us = j->end_us;
	out->exit_status = j->end == END_FAILED ? 1 : 0;
}

/* --- interface -------------------------------------------------------------------------- */

static void fake_close(struct sched_run *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		strv_free(&s->jobs[i].dirs);
		free(s->jobs[i].slots);
	}
	free(s->jobs);
	for (size_t i = 0; i < s->n_kept; i++) {
		free(s->kept[i].dir);
		json_free(s->kept[i].block);
	}
	free(s->kept);
	kvs_free(&s->tries);
	fake_truth_free(&s->truth);
	free(s->path);
	free(s);
}

static int fake_open(const struct sched_config *c, struct sched_run **out, struct err *e)
{
	struct sched_run *s = xcalloc(1, sizeof *s);
	int rc;

	s->c = *c;
	s->clock = virtual_of(c->clock);
	s->now_us = c->clock ? clock_utc_us(c->clock) : 0;
	s->path = fs_join(c->blocks_root, ".fake.json");
	rc = fake_truth_read(c->spec, &s->truth, e);
	if (!rc && s->truth.persist)
		rc = fs_mkdirs(c->blocks_root, 0700, e);
	if (!rc)
		rc = load(s, e);
	if (rc) {
		fake_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

static struct kept *kept_find(const struct sched_run *s, const char *dir)
{
	for (size_t i = s->n_kept; i-- > 0;)
		if (str_eq(s->kept[i].dir, dir))
			return &s->kept[i];
	return NULL;
}

/* How many trials each block has; heap, NULL: one cannot be read. */
static size_t *count_slots(const struct sched_run *s, const struct sched_job *job, struct err *e)
{
	size_t *slots = xcalloc(job->n_block_dirs + 1, sizeof *slots);

	for (size_t i = 0; i < job->n_block_dirs; i++) {
		const struct kept *k = kept_find(s, job->block_dirs[i]);

		if (k)
			slots[i] = json_len(json_get(k->block, "slots"));
		else if (fake_files_slots(job->block_dirs[i], &slots[i], e)) {
			free(slots);
			return NULL;
		}
	}
	return slots;
}

/* Is the node one of a comma separated list? */
static bool in_list(const char *list, const char *node)
{
	size_t n = strlen(node);

	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == n && memcmp(p, node, n) == 0)
			return true;
	return false;
}

/* Nodes take turns; those that the job excludes or does not name are passed over, unless that
 * leaves none. */
static int choose_node(const struct sched_run *s, const struct sched_job *job)
{
	struct job j = {0};
	char name[32];

	for (int i = 0; i < s->truth.nodes; i++) {
		j.node = (int)(((s->truth.sticky ? 0 : s->seq - 1) + i) % s->truth.nodes);
		node_name(&j, name);
		if (!in_list(job->exclude, name) &&
		    (!job->nodelist || in_list(job->nodelist, name)))
			return j.node;
	}
	return (int)((s->seq - 1) % s->truth.nodes);
}

/* What a time limit does: the first block that does not end within it is hit. */
static void cut_at_limit(const struct sched_run *s, struct job *j, int64_t limit_us)
{
	if (limit_us <= 0 || j->end_us - j->start_us <= limit_us)
		return;
	j->fate = FATE_TIMEOUT;
	j->end = END_TIMEOUT;
	for (j->hit = 0; j->hit + 1 < j->dirs.n; j->hit++)
		if (block_due_us(s, j, j->hit) - j->start_us > limit_us)
			break;
	j->end_us = j->start_us + limit_us;
}

/* Takes the slots. */
static void accept(struct sched_run *s, const struct sched_job *job, size_t *slots, struct job *j)
{
	double extra_s = fake_extra_s(&s->truth, s->c.seed, job->token, s->seq + 1);

	*j = (struct job){.start_us = now_us(s) + (int64_t)(s->truth.queue_s * 1e6),
			  .slots = slots,
			  .fate = fake_fate_of(&s->truth, s->c.seed, job->token, s->seq + 1)};
	j->number = ++s->seq;
	snprintf(j->id, sizeof j->id, "f%lld", (long long)j->number);
	str_copy(j->token, sizeof j->token, job->token);
	for (size_t i = 0; i < job->n_block_dirs; i++)
		strv_add(&j->dirs, job->block_dirs[i]);
	j->hit = fake_hit(&s->truth, s->c.seed, job->token, j->number, j->dirs.n);
	j->end = end_of_fate(j->fate);
	j->end_us = block_start_us(s, j, j->dirs.n) + 1000000 + (int64_t)(1e6 * extra_s);
	if (j->fate != FATE_OK && j->fate != FATE_VOID && j->hit + 1 < j->dirs.n)
		j->end_us = block_start_us(s, j, j->hit + 1);
	cut_at_limit(s, j, job->time_limit_s * 1000000);
	j->node = choose_node(s, job);
	s->jobs = xgrow(s->jobs, s->n, &s->cap, sizeof *s->jobs);
	s->jobs[s->n++] = *j;
}

/* Which of the submits of this token it is, counted over restarts. */
static int count_try(struct sched_run *s, const char *token)
{
	const char *before = kvs_get(&s->tries, token);
	int64_t n = 0;
	char text[24];

	str_to_i64(before ? before : "0", &n);
	snprintf(text, sizeof text, "%lld", (long long)n + 1);
	kvs_set(&s->tries, token, text);
	return (int)n;
}

static int fake_submit(struct sched_run *s, const struct sched_job *job, char id[64], struct err *e)
{
	struct job *known = by_token(s, job->token), j;
	enum fake_answer answer = ANSWER_OK;
	size_t *slots;
	int rc;

	if (known) {
		str_copy(id, 64, known->id);
		return 0;
	}
	slots = count_slots(s, job, e);
	if (!slots)
		return -ERR_PARSE;
	if (s->truth.faults.submit_lost > 0 || s->truth.faults.accepted_but_timed_out > 0)
		answer = fake_answer_of(&s->truth, s->c.seed, job->token, s->seq + 1,
					count_try(s, job->token));
	if (answer != ANSWER_LOST)
		accept(s, job, slots, &j);
	else
		free(slots);
	rc = save(s, e);
	if (rc)
		return rc;
	if (answer != ANSWER_OK)
		return err_set(e, ERR_TEMP, "planted: no answer to the submit of %s", job->token);
	str_copy(id, 64, j.id);
	return 0;
}

static int fake_poll(struct sched_run *s, const char *const *ids, size_t n,
		     struct sched_status *out, struct err *e)
{
	int rc = settle_due(s) ? save(s, e) : 0;

	if (is_silent(s))
		return no_answer(e);
	for (size_t i = 0; i < n; i++) {
		const struct job *j = by_id(s, ids[i]);

		if (j) {
			fill_status(s, j, &out[i]);
			continue;
		}
		out[i] = (struct sched_status){.state = JOB_GONE};
		str_copy(out[i].id, sizeof out[i].id, ids[i]);
	}
	return rc;
}

static int fake_cancel(struct sched_run *s, const char *id, struct err *e)
{
	struct job *j = by_id(s, id);

	if (is_silent(s))
		return no_answer(e);
	settle_due(s);
	if (j && !j->ended) {
		j->ended = true;
		j->end = END_CANCELLED;
		j->end_us = now_us(s);
	}
	return save(s, e);
}

static int fake_find(struct sched_run *s, const char *token, struct sched_status *out,
		     struct err *e)
{
	const struct job *j = by_token(s, token);
	int rc = settle_due(s) ? save(s, e) : 0;

	if (rc || is_silent(s))
		return rc ? rc : no_answer(e);
	if (j)
		fill_status(s, j, out);
	return j != NULL;
}

static int fake_capacity(struct sched_run *s, struct sched_capacity *out, struct err *e)
{
	int busy = 0;

	(void)e;
	for (size_t i = s->over; i < s->n; i++)
		busy += !s->jobs[i].ended;
	*out = (struct sched_capacity){.nodes_total = s->truth.nodes,
				       .jobs_at_once = s->truth.at_once,
				       .jobs_ahead = s->truth.ahead,
				       .blocks_at_most = s->truth.blocks_at_most,
				       .time_limit_s = s->truth.time_limit_s,
				       .nodes_idle = busy < s->truth.nodes ? s->truth.nodes - busy
									   : 0};
	snprintf(out->summary, sizeof out->summary, "a made-up cluster of %d nodes",
		 s->truth.nodes);
	return 0;
}

static int fake_will_run(struct sched_run *s, const struct sched_job *job,
			 struct sched_forecast *out, struct err *e)
{
	*out = (struct sched_forecast){0};
	if (job->nodes > s->truth.nodes)
		return err_set(e, ERR_LIMIT, "%d nodes are asked for, the made-up cluster has %d",
			       job->nodes, s->truth.nodes);
	out->start_us = now_us(s) + (int64_t)(s->truth.queue_s * 1e6);
	return 0;
}

/* When the next job begins or ends. */
static int64_t next_event(const struct sched_run *s, int64_t latest)
{
	for (size_t i = s->over; i < s->n && !is_silent(s); i++) {
		const struct job *j = &s->jobs[i];
		int64_t at = j->start_us > now_us(s)  ? j->start_us
			     : j->settled < j->dirs.n ? block_due_us(s, j, j->settled)
						      : j->end_us;

		if (!j->ended && at < latest)
			latest = at;
	}
	return latest;
}

static int fake_wait(struct sched_run *s, int64_t timeout_us, int fd, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd >= 0 && poll(&p, 1, 0) > 0)
		return 0;
	advance_to(s, next_event(s, now_us(s) + (timeout_us > 0 ? timeout_us : 0)));
	return settle_due(s) ? save(s, e) : 0;
}

static int fake_keep(struct sched_run *s, const char *dir, struct json *block)
{
	struct kept *k = kept_find(s, dir);

	if (!s->truth.in_memory)
		return 0;
	if (k) {
		json_free(k->block);
	} else {
		s->kept = xgrow(s->kept, s->n_kept, &s->cap_kept, sizeof *s->kept);
		k = &s->kept[s->n_kept++];
		k->dir = xstrdup(dir);
	}
	k->block = block;
	return 1;
}

static const struct job *job_of_dir(const struct sched_run *s, const char *dir, size_t *block)
{
	for (size_t i = s->n; i-- > 0;)
		for (*block = 0; *block < s->jobs[i].dirs.n; ++*block)
			if (str_eq(s->jobs[i].dirs.v[*block], dir))
				return &s->jobs[i];
	return NULL;
}

static int fake_results(struct sched_run *s, const char *dir, struct attempt_files *out,
			struct err *e)
{
	size_t block = 0;
	struct kept *k = kept_find(s, dir);
	const struct job *j = job_of_dir(s, dir, &block);
	struct fake_run r;
	char node[32];
	int rc;

	if (!s->truth.in_memory)
		return 0;
	if (!k || !j || block >= j->settled)
		return err_set(e, ERR_NOT_FOUND, "%s: it has not ended", dir);
	node_name(j, node);
	r = run_of(s, j, block, node);
	rc = fake_memory_results(&r, k->block, out, e);
	return rc < 0 ? rc : 1;
}

const struct sched sched_fake = {
	.name = "fake",
	.summary = "no processes: results made up from a declared truth, in virtual time",
	.open = fake_open,
	.close = fake_close,
	.submit = fake_submit,
	.poll = fake_poll,
	.cancel = fake_cancel,
	.find = fake_find,
	.capacity = fake_capacity,
	.will_run = fake_will_run,
	.wait = fake_wait,
	.keep = fake_keep,
	.results = fake_results,
};
