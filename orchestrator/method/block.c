/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: from a stage to files (allocation.c: to jobs), and back. The order of every change is
 * such that a kill between any two leaves something that the next start understands: intent in the
 * database, then the files, then the submit (found again by its token), then the job's id; results
 * only from a complete done.json, in one transaction. An allocation may hold several blocks: each
 * is taken as soon as its own manifest is there, and what an ended job leaves is run again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

enum {
	LATE_FILES_US = 60 * 1000000, /* a shared file system may show done.json this much later
					 (NFS attribute cache) */
	WORDS_MAX = 64 << 10,         /* of an agent's own output: lines of a failed start */
	WORK_LIMIT_BYTES = 1 << 30,   /* what a trial may leave in its own directory */
};

char *block_dir(const struct campaign *c, const struct block_row *b)
{
	return fs_join(c->ws->root, b->dir);
}

/* -- block.json ------------------------------------------------------------------------------ */

static struct json *kvs_json(const struct kvs *k)
{
	struct json *o = json_object();

	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].value)
			json_set_text(o, k->v[i].key, k->v[i].value);
	return o;
}

static struct json *strv_json(const struct strv *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_add_text(a, s->v[i]);
	return a;
}

/* argv of a configuration on these resources, with the file that has its settings in this block's
 * directory. */
static struct json *argv_json(const struct config *config, const struct resources *r,
			      const char *dir)
{
	struct json *a = json_array();

	for (size_t i = 0; i < config->argv.n; i++) {
		_cleanup_free_ char *arg = resources_fill(r, config->argv.v[i]),
				    *file = configfile_token(arg, dir);

		json_add_text(a, file ? file : arg);
	}
	return a;
}

static struct json *arm_json(const struct arm_row *arm, const struct config *config,
			     const struct resources *r, const char *dir)
{
	struct json *o = json_object(), *unset = json_array();

	json_set_i64(o, "arm", arm->id);
	json_set_text(o, "config", config->hash);
	json_set(o, "argv", argv_json(config, r, dir));
	json_set(o, "env", kvs_json(&config->env));
	for (size_t i = 0; i < config->env.n; i++)
		if (!config->env.v[i].value)
			json_add_text(unset, config->env.v[i].key);
	json_set(o, "unset", unset);
	return o;
}

static struct json *slots_json(const struct block_row *b)
{
	struct json *a = json_array();

	for (size_t i = 0; i < b->n_slots; i++) {
		struct json *o = json_object();

		json_set_i64(o, "slot", b->slots[i].index);
		json_set_i64(o, "arm", b->slots[i].arm);
		json_set_i64(o, "repeat", b->slots[i].repeat);
		json_set_text(o, "kind", slot_kind_name(b->slots[i].kind));
		json_add(a, o);
	}
	return a;
}

static struct json *window_json(const struct workload *w)
{
	struct json *o = json_object();

	json_set_text(o, "pattern", w->step_pattern ? w->step_pattern : "");
	json_set_text(o, "source",
		      w->source == SOURCE_METRICS_FILE && !w->step_pattern ? "metrics" : "out");
	json_set_i64(o, "warmup", w->warmup_steps);
	json_set_i64(o, "steps", w->steps);
	return o;
}

static struct json *limits_json(const struct workload *w, enum stage_kind kind)
{
	struct json *o = json_object();

	json_set_i64(o, "trial_s", w->trial_limit_s);
	json_set_i64(o, "log_bytes", w->log_limit_bytes);
	json_set_i64(o, "work_bytes", WORK_LIMIT_BYTES);
	json_set_i64(o, "grace_s", kind == STAGE_PROFILE ? METHOD_PROFILE_GRACE_S : METHOD_GRACE_S);
	return o;
}

static struct json *launch_json(const struct resources *r)
{
	struct strv launch = {0};
	struct json *a;

	resources_launch(r, &launch);
	a = strv_json(&launch);
	strv_free(&launch);
	return a;
}

static struct json *sampler_json(const struct samplers *s)
{
	struct json *o = json_object();

	json_set_i64(o, "period_ms", s->period_ms);
	json_set_i64(o, "every_node", s->every_node);
	if (s->dcgm_exporter)
		json_set_text(o, "dcgm_exporter", s->dcgm_exporter);
	return o;
}

/* A long run is told its seed by a variable that no arm has, and NCCL to talk. */
static struct json *container_json(const struct campaign *c, const struct stage_row *s)
{
	static const char *const talk[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"};
	const struct container *k = &c->recipe->workload.container;
	struct json *o = json_object(), *env = json_array();

	if (s->kind == STAGE_CONVERGE)
		json_add_text(env, c->recipe->converge.seed_env);
	for (size_t i = 0; i < ARRAY_LEN(talk); i++)
		if (kvs_has(&c->env, talk[i]))
			json_add_text(env, talk[i]);
	json_set_text(o, "runtime", k->runtime);
	json_set_text(o, "image", k->image);
	json_set(o, "mounts", strv_json(&k->mounts));
	json_set(o, "args", strv_json(&k->args));
	json_set(o, "env", env);
	return o;
}

static struct json *evidence_json(void)
{
	static const char *const prefixes[] = {"NCCL_",   "TORCH",      "PYTORCH_", "OMP_",
					       "KMP_",    "GOMP_",      "MKL_",     "OPENBLAS_",
					       "MALLOC_", "LD_PRELOAD", "CUDA_",    "JEMALLOC",
					       "TCMALLOC"};
	struct json *o = json_object(), *a = json_array();

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		json_add_text(a, prefixes[i]);
	json_set(o, "env_prefixes", a);
	return o;
}

static int arms_json(struct campaign *c, const struct stage_row *s, const char *dir,
		     struct json *arms, struct err *e)
{
	for (size_t i = 0; i < s->n_arms; i++) {
		struct config config = {0};
		int rc = query_config_get(c->ws->db, s->arms[i].config, &config, e);

		if (rc < 0)
			return rc;
		struct resources on = ladder_resources(c->recipe, s, i);
		struct json *arm;

		if (s->kind == STAGE_PROFILE)
			profile_env(c, dir, &config);
		arm = arm_json(&s->arms[i], &config, &on, dir);
		if (s->kind == STAGE_LADDER)
			json_set(arm, "launch", launch_json(&on));
		json_add(arms, arm);
		config_done(&config);
	}
	return 0;
}

/* The captured environment; blocks of a long run are told their seed, both arms the same one. */
static struct json *block_env(const struct campaign *c, const struct stage_row *s,
			      const struct block_row *b)
{
	struct json *o = kvs_json(&c->env);
	char seed[24];

	snprintf(seed, sizeof seed, "%d", b->index + 1);
	if (s->kind == STAGE_CONVERGE)
		json_set_text(o, c->recipe->converge.seed_env, seed);
	return o;
}

static struct json *block_json(struct campaign *c, const struct stage_row *s,
			       const struct block_row *b, struct err *e)
{
	const struct workload w = method_workload(c->recipe, s->kind);
	_cleanup_free_ char *dir = block_dir(c, b);
	struct json *o = json_object(), *arms = json_array();

	json_set_text(o, "format", "fettle.block/1");
	json_set_text(o, "token", b->token);
	json_set_i64(o, "block", b->id);
	json_set_i64(o, "attempt", b->attempt);
	json_set_i64(o, "deadline_us", limits_close_us(c));
	json_set(o, "window", window_json(&w));
	json_set(o, "limits", limits_json(&w, s->kind));
	json_set(o, "launch", launch_json(&c->resources));
	if (c->recipe->workload.container.runtime)
		json_set(o, "container", container_json(c, s));
	json_set_text(o, "workdir", w.workdir);
	json_set(o, "env", block_env(c, s, b));
	json_set(o, "secrets", strv_json(&w.secrets));
	json_set(o, "sampler", sampler_json(&c->recipe->samplers));
	json_set(o, "fingerprint", fingerprint_asked(c->recipe));
	json_set(o, "evidence", evidence_json());
	json_set(o, "arms", arms);
	if (s->kind == STAGE_PROFILE)
		json_set(o, "profiler", profile_command());
	if (arms_json(c, s, dir, arms, e) < 0) {
		json_free(o);
		return NULL;
	}
	json_set(o, "slots", slots_json(b));
	return o;
}

/* The output of the one agent of an allocation lies with its first block: the others point to it.
 */
static void link_output(const char *dir, const char *first)
{
	_cleanup_free_ char *link = fs_join(dir, "agent.out");
	_cleanup_free_ char *to = xasprintf("../%s/agent.out", fs_basename(first));

	if (symlink(to, link) < 0) /* there already, or a file system without: only a convenience */
		return;
}

/* The copies of the framework's file that the arms of a block name. */
static int write_config_files(struct campaign *c, const struct stage_row *s, const char *dir,
			      struct err *e)
{
	int rc = 0;

	for (size_t i = 0; c->recipe->workload.config && i < s->n_arms && rc == 0; i++) {
		struct config config = {0};

		rc = query_config_get(c->ws->db, s->arms[i].config, &config, e);
		if (rc == 0 && configfile_name(&config)) {
			_cleanup_free_ char *path = fs_join(dir, configfile_name(&config));
			_cleanup_free_ char *text = configfile_text(c->recipe, &config.settings);

			rc = text ? fs_write_atomic(path, text, strlen(text), 0600, e)
				  : err_set(e, ERR_STATE, "%s: its settings are gone", path);
		}
		config_done(&config);
	}
	return rc;
}

int block_write(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		const char *first, struct err *e)
{
	_cleanup_free_ char *dir = block_dir(c, b), *path = fs_join(dir, "block.json"),
			    *text = NULL;
	_cleanup_(json_freep) struct json *j = block_json(c, s, b, e);
	int rc;

	if (!j)
		return -ERR_DB;
	if (c->sched->keep && c->sched->keep(c->run, dir, j)) {
		j = NULL;
		return 0;
	}
	text = json_print(j, true);
	if ((rc = fs_mkdirs(dir, 0700, e)) < 0 ||
	    (s->kind == STAGE_PROFILE && (rc = profile_hook(dir, e)) < 0))
		return rc;
	if (!str_eq(first, b->dir))
		link_output(dir, first);
	if ((rc = write_config_files(c, s, dir, e)) < 0)
		return rc;
	return fs_write_atomic(path, text, strlen(text), 0600, e);
}

/* -- collecting -------------------------------------------------------------------------------- */

static int fail_attempt(struct campaign *c, const struct block_row *b, enum attempt_state state,
			const char *reason, struct err *e)
{
	int rc = query_attempt_fail(c->ws->db, b->attempt_id, state, reason,
				    clock_utc_us(c->ws->clock), e);

	if (rc == 0)
		rc = campaign_event(c, e, attempt_state_name(state), "block %d attempt %d (%s): %s",
				    b->index + 1, b->attempt, b->dir, reason);
	campaign_tell(c, PROGRESS_NOTE, 0, "block %d attempt %d is %s: %s", b->index + 1,
		      b->attempt, attempt_state_name(state), reason);
	return rc;
}

/* Take the allocation's cost out of the sum (sign -1) before something about it is stored, and put
 * it back (+1) after that: right also if it was stored once before. */
static int recost(struct campaign *c, int64_t allocation, int sign, struct err *e)
{
	int64_t trials = 0;
	double node_s = 0;
	int rc = query_allocation_cost(c->ws->db, allocation, &trials, &node_s, e);

	if (rc == 0) {
		c->trials += sign * trials;
		c->node_s += sign * node_s;
	}
	return rc;
}

/* How long the nodes were ours, by the agent's clock. */
static int store_times(struct campaign *c, const struct block_row *b, const struct attempt_files *a,
		       struct err *e)
{
	if (a->start_us <= 0 || a->end_us < a->start_us)
		return 0;
	return query_allocation_end(c->ws->db, b->allocation,
				    job_end_name(a->complete ? END_OK : END_FAILED), NULL, NULL,
				    a->start_us, a->end_us, e);
}

static int store_switches(struct campaign *c, const struct block_row *b,
			  const struct attempt_files *a, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < a->switches.n && rc == 0; i++)
		rc = query_switches_put(c->ws->db, b->allocation, a->switches.v[i].key,
					a->switches.v[i].value, e);
	return rc;
}

static int store_results(struct campaign *c, const struct block_row *b, struct attempt_files *a,
			 struct err *e)
{
	struct db *db = c->ws->db;
	bool again = false;
	int rc = db_begin(db, "store an attempt", e);

	if (rc < 0)
		return rc;
	if ((rc = query_attempt_ingest(db, b->attempt_id, a->hash, a->trials, a->n,
				       (const char *const *)strv_end(&a->nodes), a->nodes.n,
				       clock_utc_us(c->ws->clock), &again, e)) == 0 &&
	    (again || (rc = fingerprint_store(c, b->attempt_id, a, e)) == 0) &&
	    (rc = store_switches(c, b, a, e)) == 0 && (rc = store_times(c, b, a, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

/* What is the same trial after trial is said once. */
static int store_notes(struct campaign *c, const struct attempt_files *a, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < a->notes.n && rc == 0; i++) {
		struct event_row last;
		bool found = false;

		rc = query_event_last(c->ws->db, c->row.id, "nodes", a->notes.v[i], &last, &found,
				      e);
		event_row_done(&last);
		if (rc == 0 && !found)
			rc = campaign_event(c, e, "nodes", "%s", a->notes.v[i]);
	}
	return rc;
}

static int store_attempt(struct campaign *c, const struct block_row *b, struct attempt_files *a,
			 struct err *e)
{
	size_t failed = 0;
	int rc = store_results(c, b, a, e);

	if (rc == 0)
		rc = store_notes(c, a, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < a->n; i++)
		failed += a->trials[i].kind == SLOT_TIMED && a->trials[i].state == TRIAL_FAILED;
	if (failed)
		campaign_tell(c, PROGRESS_BLOCK, 0, "block %d done, %zu trial%s failed",
			      b->index + 1, failed, failed == 1 ? "" : "s");
	else
		campaign_tell(c, PROGRESS_BLOCK, 0, "block %d done", b->index + 1);
	return 0;
}

static int judge_attempt(struct campaign *c, const struct stage_row *s, const struct block_row *b,
			 struct attempt_files *a, struct err *e)
{
	_cleanup_free_ char *reason = NULL;
	int rc = quality_check(c, s, b, a, &reason, e);

	if (rc == 0 && !reason && waits_was_suspended(c, b))
		reason = xasprintf("job %s was suspended by somebody while it ran", b->job_id);
	if (rc < 0)
		return rc;
	if (!reason)
		return store_attempt(c, b, a, e);
	rc = store_times(c, b, a, e); /* it cost what it cost */
	return rc < 0 ? rc : fail_attempt(c, b, ATTEMPT_VOID, reason, e);
}

/* What is broken or partial took its time all the same. */
static int refuse_attempt(struct campaign *c, const struct block_row *b,
			  const struct attempt_files *a, struct err *e)
{
	int rc = store_times(c, b, a, e);

	c->ends_changed = true;
	return rc < 0 ? rc : fail_attempt(c, b, ATTEMPT_VOID, a->reason, e);
}

static bool is_claimed(const struct campaign *c, const struct block_row *b)
{
	_cleanup_free_ char *dir = block_dir(c, b);
	_cleanup_free_ char *claim = fs_join(dir, "claim.json");

	return fs_exists(claim);
}

/* Did an agent work on the allocation? b: the first of its blocks that is in flight; those before
 * it are over. */
static bool was_begun(const struct campaign *c, const struct block_row *b)
{
	return b->position > 0 || is_claimed(c, b);
}

/* A job cancelled while it ran can look like one whose prolog failed (Slurm keeps exit 0 when the
 * node's last word overtakes the script's). The agent's claim says that it was launched. */
static enum job_end told_end(const struct campaign *c, const struct block_row *b,
			     const struct sched_status *st)
{
	if (st->state == JOB_GONE)
		return END_VANISHED;
	return st->end == END_LAUNCH_FAILED && was_begun(c, b) ? END_CANCELLED : st->end;
}

/* Its last line, as `: "..."`; heap, NULL when there is none: why no agent came up is there. */
static char *last_words(const struct campaign *c, const struct block_row *b)
{
	_cleanup_free_ char *dir = block_dir(c, b);
	_cleanup_free_ char *path = fs_join(dir, "agent.out");
	struct buf text = {0};
	char *words = NULL, *line;

	if (fs_read(path, WORDS_MAX, &text, NULL) == 0 && text.len > 1) {
		text.data[text.len - (text.data[text.len - 1] == '\n')] = '\0';
		line = strrchr(text.data, '\n');
		words = xasprintf(": \"%s\"", line ? line + 1 : text.data);
	}
	buf_free(&text);
	return words;
}

/* `partial`: what the agent left, NULL: no manifest. */
static char *end_text(const struct campaign *c, const struct block_row *b,
		      const struct sched_status *st, enum job_end end,
		      const struct attempt_files *partial)
{
	_cleanup_free_ char *words = NULL;
	_cleanup_free_ char *job = xasprintf("job %s is %s (%s%s%s)",
					     b->job_id ? b->job_id : b->token,
					     job_state_name(st->state), job_end_name(end),
					     *st->reason ? ", " : "", st->reason);

	if (partial)
		return xasprintf("%s: %s", job, partial->reason);
	words = last_words(c, b);
	return xasprintf("%s and left no done.json; its own output: %s/agent.out%s", job, b->dir,
			 words ? words : "");
}

static int store_end(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		     const struct sched_status *st, const struct attempt_files *partial,
		     struct err *e)
{
	enum job_end end = told_end(c, b, st);
	const struct end_rule *rule = end_rule_of(end);
	_cleanup_free_ char *dir = block_dir(c, b), *text = end_text(c, b, st, end, partial);
	size_t passes = 0;
	int rc = query_allocation_end(c->ws->db, b->allocation, job_end_name(end), st->reason,
				      st->nodes, partial ? partial->start_us : st->start_us,
				      partial ? partial->end_us : st->end_us, e);

	if (rc == 0 && end == END_PREEMPTED)
		rc = keep_pairs(c, s, b, dir, &passes, e);
	if (passes) {
		char *more = xasprintf("%s; its %zu complete pass%s over the arms %s kept as block "
				       "%zu",
				       text, passes, passes == 1 ? "" : "es",
				       passes == 1 ? "is" : "are", c->facts.total);

		free(text);
		text = more;
	}
	return rc < 0 ? rc
		      : fail_attempt(c, b,
				     partial || (rule && rule->voids) ? ATTEMPT_VOID : ATTEMPT_LOST,
				     text, e);
}

/* The job is over and its attempt does not count: why, by the scheduler's word. */
static int give_up(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		   const struct sched_status *st, const struct attempt_files *partial,
		   struct err *e)
{
	int rc = db_begin(c->ws->db, "store a job's end", e);

	if (rc < 0)
		return rc;
	if ((rc = store_end(c, s, b, st, partial, e)) == 0)
		rc = db_commit(c->ws->db, e);
	if (rc < 0) {
		db_rollback(c->ws->db);
		return rc;
	}
	c->ends_changed = true;
	return ends_note_nodes(c, e);
}

/* `st`: what the scheduler says of the job, NULL: it was not asked. Why the agent did not come to
 * its end is the scheduler's to say, so a partial attempt waits for that. */
static int take_results(struct campaign *c, const struct stage_row *s, const struct block_row *b,
			const struct sched_status *st, bool *changed, struct err *e)
{
	_cleanup_free_ char *dir = block_dir(c, b);
	struct attempt_files a = {0};
	int rc = c->sched->results ? c->sched->results(c->run, dir, &a, NULL) : 0;

	if (rc == 0)
		rc = ingest_attempt(c->recipe, s, c->facts.hyps, c->facts.n_hyps, b, dir, &a, e);
	else if (rc > 0)
		ingest_steps(c->recipe, s, &a);
	if (rc < 0 || (a.partial && b->job_id && !st)) {
		attempt_files_done(&a);
		return rc == -ERR_NOT_FOUND ? 0 : rc < 0 ? rc : 0;
	}
	*changed = true;
	rc = recost(c, b->allocation, -1, e);
	if (rc == 0)
		rc = a.complete        ? judge_attempt(c, s, b, &a, e)
		     : a.partial && st ? give_up(c, s, b, st, &a, e)
				       : refuse_attempt(c, b, &a, e);
	if (rc == 0)
		rc = recost(c, b->allocation, 1, e);
	attempt_files_done(&a);
	return rc;
}

static bool files_may_be_late(const struct campaign *c, const struct sched_status *st)
{
	int64_t now = clock_utc_us(c->ws->clock);

	return st->end_us > 0 && now - st->end_us < LATE_FILES_US &&
	       fs_is_network(c->ws->blocks_root);
}

/* A submit whose answer was lost may have been accepted twice. Only one of the two jobs has claimed
 * the attempt, and it need not be the one that we know. True and its status. */
static bool find_twin(struct campaign *c, const struct block_row *b, struct sched_status *twin)
{
	return c->sched->find(c->run, b->token, twin, NULL) == 1 && !str_eq(twin->id, b->job_id) &&
	       (twin->state == JOB_PENDING || twin->state == JOB_RUNNING);
}

/* Those that no agent has claimed were not begun: nothing is held against them. */
static int fail_unbegun(struct campaign *c, const struct block_row *const *crew, size_t n,
			const char *reason, struct err *e)
{
	_cleanup_free_ char *why = xasprintf(QUERY_NOT_BEGUN ": %s", reason);
	struct buf b = {0};
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		buf_printf(&b, "%s%d", i ? ", " : "", crew[i]->index + 1);
		rc = query_attempt_fail(c->ws->db, crew[i]->attempt_id, ATTEMPT_VOID, why,
					clock_utc_us(c->ws->clock), e);
	}
	if (n > 0)
		campaign_tell(c, PROGRESS_NOTE, 0,
			      "its job also held block%s %s, not begun: %s come%s into another",
			      n > 1 ? "s" : "", b.data, n > 1 ? "they" : "it", n > 1 ? "" : "s");
	buf_free(&b);
	return rc;
}

/* The job is over and these blocks have no manifest. `died`: which of them it died with is not
 * known yet: the first. */
static int end_crew(struct campaign *c, const struct stage_row *s, const struct block_row **crew,
		    size_t n, bool died, const struct sched_status *st, struct err *e)
{
	_cleanup_free_ char *reason = end_text(c, crew[0], st, told_end(c, crew[0], st), NULL);
	size_t unbegun = 0;
	int rc = recost(c, crew[0]->allocation, -1, e);

	for (size_t i = 0; i < n && rc == 0; i++) {
		if ((died && i == 0) || is_claimed(c, crew[i]))
			rc = give_up(c, s, crew[i], st, NULL, e);
		else
			crew[unbegun++] = crew[i];
	}
	if (rc == 0)
		rc = recost(c, crew[0]->allocation, 1, e);
	return rc < 0 ? rc : fail_unbegun(c, crew, unbegun, reason, e);
}

/* What blocks of an allocation left; those that left nothing stay in crew[0..*n). */
static int take_crew(struct campaign *c, const struct stage_row *s, const struct block_row **crew,
		     size_t *n, const struct sched_status *st, bool *changed, struct err *e)
{
	size_t left = 0;
	int rc = 0;

	for (size_t i = 0; i < *n && rc == 0; i++) {
		bool one = false;

		rc = take_results(c, s, crew[i], st, &one, e);
		if (!one)
			crew[left++] = crew[i];
		*changed = *changed || one;
	}
	*n = left;
	return rc;
}

/* The job ended, and not every block of it has a manifest, or one has a partial one. */
static int judge_ended(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		       const struct sched_status *st, bool *changed, struct err *e)
{
	_cleanup_free_ const struct block_row **crew = xcalloc(c->facts.n_blocks + 1, sizeof *crew);
	size_t n = allocation_crew(&c->facts, b->allocation, crew);
	bool whole = false, partial = false;
	struct sched_status twin;
	int rc = st->suspended ? waits_suspended(c, b, e) : 0;

	if (rc == 0) /* written between the first look and the poll */
		rc = take_crew(c, s, crew, &n, NULL, &whole, e);
	if (rc == 0) /* the last word about the allocation is how it ended */
		rc = take_crew(c, s, crew, &n, st, &partial, e);
	*changed = whole || partial;
	if (rc < 0 || n == 0 || files_may_be_late(c, st) || find_twin(c, b, &twin))
		return rc;
	*changed = true;
	return end_crew(c, s, crew, n, !partial, st, e);
}

/* A planned allocation without a job id: the submit was lost, or we were killed in it. */
static int adopt(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		 bool *changed, struct err *e)
{
	struct sched_status st;
	int rc = c->sched->find(c->run, b->token, &st, e);

	if (rc < 0)
		return rc == -ERR_TEMP ? 0 : rc; /* could not be asked: later */
	*changed = true;
	if (rc == 1) {
		campaign_tell(c, PROGRESS_NOTE, 0, "adopted job %s of block %d", st.id,
			      b->index + 1);
		return query_allocation_submitted(c->ws->db, b->allocation, st.id,
						  clock_utc_us(c->ws->clock), e);
	}
	if (was_begun(c, b)) { /* the agent would leave alone what is claimed */
		_cleanup_free_ const struct block_row **crew = xcalloc(c->facts.n_blocks + 1,
								       sizeof *crew);
		size_t n = allocation_crew(&c->facts, b->allocation, crew);

		st = (struct sched_status){.state = JOB_GONE};
		return end_crew(c, s, crew, n, true, &st, e);
	}
	if (limits_left_s(c) < allocation_length_s(c, s)) {
		*changed = false; /* the next window's first block */
		return 0;
	}
	rc = allocation_submit(c, s, b->allocation, e);
	*changed = rc != -ERR_TEMP; /* else: wait before the next try */
	return rc == -ERR_TEMP ? 0 : rc;
}

/* A job that waits for what does not come is withdrawn. One that cannot be withdrawn now is at the
 * next look. */
static int judge_pending(struct campaign *c, const struct stage_row *s, const struct block_row *b,
			 const struct sched_status *st, bool *changed, struct err *e)
{
	_cleanup_free_ const struct block_row **crew = xcalloc(c->facts.n_blocks + 1, sizeof *crew);
	struct sched_status end = *st;
	bool hopeless = false;
	int rc = waits_pending(c, b, st, &hopeless, e);

	if (rc < 0 || !hopeless || c->sched->cancel(c->run, b->job_id, NULL) < 0)
		return rc;
	*changed = true;
	end.state = JOB_ENDED;
	end.end = END_NEVER_STARTED;
	return end_crew(c, s, crew, allocation_crew(&c->facts, b->allocation, crew), true, &end, e);
}

static int judge_job(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		     const struct sched_status *st, bool *changed, struct err *e)
{
	switch (st->state) {
	case JOB_PENDING:
		return judge_pending(c, s, b, st, changed, e);
	case JOB_RUNNING:
		return st->suspended ? waits_suspended(c, b, e) : 0;
	case JOB_ENDED:
	case JOB_GONE:
		return judge_ended(c, s, b, st, changed, e);
	case JOB_UNKNOWN:
		break;
	}
	return 0;
}

/* A slurmctld that lost its last state gives numbers out again: what bears another token is another
 * job, of ours or of somebody's, and ours is gone. */
static bool is_another(const struct block_row *b, const struct sched_status *st)
{
	return *st->token && !str_eq(st->token, b->token);
}

static void disown(const struct block_row *b, struct sched_status *st)
{
	struct sched_status gone = {.state = JOB_GONE};

	if (!is_another(b, st))
		return;
	str_copy(gone.id, sizeof gone.id, b->job_id);
	str_copy(gone.reason, sizeof gone.reason, "its number is another job's by now");
	*st = gone;
}

static int poll_jobs(struct campaign *c, const struct stage_row *s, bool *changed, struct err *e)
{
	struct facts *f = &c->facts;
	_cleanup_free_ const char **ids = xcalloc(f->n_blocks + 1, sizeof *ids);
	_cleanup_free_ const struct block_row **blocks = xcalloc(f->n_blocks + 1, sizeof *blocks);
	_cleanup_free_ struct sched_status *st = xcalloc(f->n_blocks + 1, sizeof *st);
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < f->n_blocks; i++)
		if (f->blocks[i].state == ATTEMPT_SUBMITTED && f->blocks[i].job_id &&
		    allocation_leads(f, &f->blocks[i])) {
			blocks[n] = &f->blocks[i];
			ids[n++] = f->blocks[i].job_id;
		}
	if (n == 0 || (rc = c->sched->poll(c->run, ids, n, st, e)) == -ERR_TEMP)
		return 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		bool one = false;

		disown(blocks[i], &st[i]);
		rc = judge_job(c, s, blocks[i], &st[i], &one, e);
		*changed = *changed || one;
	}
	return rc;
}

int block_collect(struct campaign *c, const struct stage_row *s, bool *changed, struct err *e)
{
	struct facts *f = &c->facts;
	int rc = 0;

	*changed = false;
	for (size_t i = 0; rc == 0 && i < f->n_blocks; i++) {
		const struct block_row *b = &f->blocks[i];
		bool one = false;

		if (!b->attempt_id ||
		    (b->state != ATTEMPT_PLANNED && b->state != ATTEMPT_SUBMITTED))
			continue;
		rc = take_results(c, s, b, NULL, &one, e);
		if (rc == 0 && !one && !b->job_id && allocation_leads(f, b))
			rc = adopt(c, s, b, &one, e);
		*changed = *changed || one;
	}
	return rc < 0 || *changed ? rc : poll_jobs(c, s, changed, e);
}

/* The job that has the number; false: it could not be asked. */
static bool look_at(struct campaign *c, const struct block_row *b, struct sched_status *st)
{
	const char *ids[1] = {b->job_id};

	return b->job_id && c->sched->poll(c->run, ids, 1, st, NULL) == 0;
}

/* Every job that bears the attempt's token; negative when the scheduler could not be asked. */
static int cancel_jobs(struct campaign *c, const struct block_row *b, struct err *e)
{
	struct sched_status st;
	int rc = 0;

	if (b->job_id && !(look_at(c, b, &st) && is_another(b, &st)))
		rc = c->sched->cancel(c->run, b->job_id, e);
	if (rc < 0)
		return rc;
	if (b->job_id)
		return find_twin(c, b, &st) ? c->sched->cancel(c->run, st.id, e) : 0;
	rc = c->sched->find(c->run, b->token, &st, e);
	return rc == 1 ? c->sched->cancel(c->run, st.id, e) : rc;
}

/* What a job that ran cost until now. */
static int store_cancel(struct campaign *c, const struct block_row *b, struct err *e)
{
	struct sched_status st = {0};
	int rc;

	if (!look_at(c, b, &st) || is_another(b, &st) || st.start_us <= 0)
		return 0;
	if ((rc = recost(c, b->allocation, -1, e)) < 0 ||
	    (rc = query_allocation_end(c->ws->db, b->allocation, job_end_name(END_CANCELLED), NULL,
				       st.nodes, st.start_us, clock_utc_us(c->ws->clock), e)) < 0)
		return rc;
	return recost(c, b->allocation, 1, e);
}

/* What is done already counts. A job of which nothing could be learnt stays in flight: to call its
 * attempts void would leave it running without an owner. */
static int cancel_one(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		      struct err *e)
{
	_cleanup_free_ const struct block_row **crew = xcalloc(c->facts.n_blocks + 1, sizeof *crew);
	size_t n = allocation_crew(&c->facts, b->allocation, crew);
	struct err why = {0};
	bool done = false;
	int rc = take_crew(c, s, crew, &n, NULL, &done, e);

	if (rc < 0 || n == 0)
		return rc;
	if ((rc = store_cancel(c, b, e)) < 0)
		return rc;
	if (cancel_jobs(c, b, &why) == 0) {
		for (size_t i = 0; i < n && rc == 0; i++)
			rc = fail_attempt(c, crew[i], ATTEMPT_VOID, "cancelled", e);
		return rc;
	}
	campaign_tell(c, PROGRESS_NOTE, 0,
		      "block %d: its job could not be cancelled and stays in flight: %s",
		      b->index + 1, why.text);
	return campaign_event(c, e, "cancel", "%s stays in flight: %s", b->token, why.text);
}

int block_cancel_all(struct campaign *c, struct err *e)
{
	struct facts *f = &c->facts;
	int rc = 0;

	for (size_t i = 0; i < f->n_blocks && rc == 0; i++)
		if (allocation_leads(f, &f->blocks[i]))
			rc = cancel_one(c, &f->stages[f->n_stages - 1], &f->blocks[i], e);
	return rc;
}
