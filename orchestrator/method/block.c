/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: from a stage to files and jobs, and back. The order of every change is such that a kill
 * between any two leaves something that the next start understands: intent in the database, then
 * the files, then the submit (found again by its token), then the job's id; results only from a
 * complete done.json, in one transaction.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/design.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	SAMPLER_PERIOD_MS = 200,      /* five samples a second: ten in a window of 2 s */
	GRACE_S = 5,                  /* between TERM and KILL of a trial */
	ALLOCATION_SLACK_S = 120,     /* start, warm-up of the node, cleaning between trials */
	LATE_FILES_US = 60 * 1000000, /* a shared file system may show done.json this much later
					 (NFS attribute cache) */
	WORK_LIMIT_BYTES = 1 << 30,   /* what a trial may leave in its own directory */
};

static char *attempt_dir(const struct campaign *c, const struct block_row *b)
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

static struct json *arm_json(const struct arm_row *arm, const struct config *config)
{
	struct json *o = json_object(), *unset = json_array();

	json_set_i64(o, "arm", arm->id);
	json_set_text(o, "config", config->hash);
	json_set(o, "argv", strv_json(&config->argv));
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

		json_set_i64(o, "slot", (int64_t)i);
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

static struct json *limits_json(const struct workload *w)
{
	struct json *o = json_object();

	json_set_i64(o, "trial_s", w->trial_limit_s);
	json_set_i64(o, "log_bytes", w->log_limit_bytes);
	json_set_i64(o, "work_bytes", WORK_LIMIT_BYTES);
	json_set_i64(o, "grace_s", GRACE_S);
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

static int arms_json(struct campaign *c, const struct stage_row *s, struct json *arms,
		     struct err *e)
{
	for (size_t i = 0; i < s->n_arms; i++) {
		struct config config = {0};
		int rc = query_config_get(c->ws->db, s->arms[i].config, &config, e);

		if (rc < 0)
			return rc;
		json_add(arms, arm_json(&s->arms[i], &config));
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
	struct json *o = json_object(), *arms = json_array(), *sampler = json_object();

	json_set_text(o, "format", "fettle.block/1");
	json_set_text(o, "token", b->token);
	json_set_i64(o, "block", b->id);
	json_set_i64(o, "attempt", b->attempt);
	json_set_i64(o, "deadline_us", limits_close_us(c));
	json_set(o, "window", window_json(&w));
	json_set(o, "limits", limits_json(&w));
	json_set(o, "launch", launch_json(&c->recipe->resources));
	json_set_text(o, "workdir", w.workdir);
	json_set(o, "env", block_env(c, s, b));
	json_set(o, "secrets", strv_json(&w.secrets));
	json_set_i64(sampler, "period_ms", SAMPLER_PERIOD_MS);
	json_set(o, "sampler", sampler);
	json_set(o, "evidence", evidence_json());
	json_set(o, "arms", arms);
	if (arms_json(c, s, arms, e) < 0) {
		json_free(o);
		return NULL;
	}
	json_set(o, "slots", slots_json(b));
	return o;
}

int block_write(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		struct err *e)
{
	_cleanup_free_ char *dir = attempt_dir(c, b), *path = fs_join(dir, "block.json"),
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
	if ((rc = fs_mkdirs(dir, 0700, e)) < 0)
		return rc;
	return fs_write_atomic(path, text, strlen(text), 0600, e);
}

/* -- submitting ------------------------------------------------------------------------------- */

static int64_t slots_limit_s(const struct campaign *c, const struct stage_row *s, size_t n_slots)
{
	return (method_workload(c->recipe, s->kind).trial_limit_s + 2 * GRACE_S) *
		       (int64_t)n_slots +
	       ALLOCATION_SLACK_S;
}

/* A limit that reaches beyond the window is cut at its end, where the trials still fit. */
static int64_t allocation_limit_s(const struct campaign *c, const struct stage_row *s,
				  const struct block_row *b)
{
	int64_t limit = c->recipe->resources.time_limit_s, left = limits_left_s(c);

	if (limit <= 0)
		limit = slots_limit_s(c, s, b->n_slots);
	return left > 0 && limit > left ? left : limit;
}

static void job_env(const struct campaign *c, struct strv *env)
{
	for (size_t i = 0; i < c->env.n; i++)
		if (c->env.v[i].value)
			strv_addf(env, "%s=%s", c->env.v[i].key, c->env.v[i].value);
	for (size_t i = 0; i < c->recipe->workload.secrets.n; i++) {
		const char *name = c->recipe->workload.secrets.v[i], *value = getenv(name);

		if (value)
			strv_addf(env, "%s=%s", name, value);
	}
}

/* -ERR_TEMP: in doubt, or not now. The next collect looks for the token before it tries again. */
/* Names of a list as Slurm writes it go in as they are: brackets stay together. */
static void add_list(struct strv *v, const char *list)
{
	if (list && *list)
		strv_add(v, list);
}

/* The nodes to leave out (the recipe's, those that the stage avoids, faulty ones, and what the
 * placement says) and those to use; heap, NULL: none. */
static int choose_nodes(struct campaign *c, const struct stage_row *s, char **exclude,
			char **nodelist, struct err *e)
{
	const struct resources *r = &c->recipe->resources;
	struct strv out = {0};
	int rc = ends_faulty_nodes(c, &out, e);

	if (rc == 0)
		rc = place_block(c, &out, nodelist, e);
	add_list(&out, r->exclude);
	if (r->placement != PLACEMENT_SAME)
		add_list(&out, s->avoid_nodes);
	*exclude = place_join(&out);
	if (!*nodelist && r->nodelist)
		*nodelist = xstrdup(r->nodelist);
	strv_free(&out);
	return rc;
}

/* A job that cannot end within the window is taken out of the queue, though nobody is there. */
static char *deadline_text(const struct campaign *c, char out[32])
{
	int64_t s = (limits_close_us(c) - clock_utc_us(c->ws->clock)) / 1000000;

	snprintf(out, 32, "now+%lld", (long long)s);
	return out;
}

static int submit(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		  struct err *e)
{
	const struct resources *r = &c->recipe->resources;
	_cleanup_free_ char *dir = attempt_dir(c, b), *output = fs_join(dir, "agent.out");
	_cleanup_free_ char *exclude = NULL, *nodelist = NULL;
	_cleanup_(strv_free) struct strv env = {0};
	const char *dirs[1] = {dir};
	char id[64];
	struct job_options options = r->options;
	char deadline[32];
	struct sched_job job = {
		.token = b->token,
		.block_dirs = dirs,
		.n_block_dirs = 1,
		.workdir = c->recipe->workload.workdir,
		.output = output,
		.nodes = r->nodes > 0 ? r->nodes : 1,
		.tasks_per_node = r->tasks_per_node,
		.cpus_per_task = r->cpus_per_task,
		.gpus_per_node = r->gpus_per_node,
		.mem_mib_per_node = r->mem_mib_per_node,
		.time_limit_s = allocation_limit_s(c, s, b),
		.exclusive = true,
		.partition = r->partition,
		.account = r->account,
		.qos = r->qos,
		.reservation = r->reservation,
		.constraint = r->constraint,
		.options = &options,
	};
	int rc;

	if ((rc = campaign_owned(c, e)) < 0 ||
	    (rc = choose_nodes(c, s, &exclude, &nodelist, e)) < 0)
		return rc;
	job.exclude = exclude;
	job.nodelist = nodelist;
	if (limits_close_us(c) && !options.deadline)
		options.deadline = deadline_text(c, deadline);
	job_env(c, &env);
	job.env = strv_end(&env);
	rc = c->sched->submit(c->run, &job, id, e);
	if (rc == -ERR_TEMP)
		return rc;
	if (rc < 0) {
		(void)query_attempt_fail(c->ws->db, b->attempt_id, ATTEMPT_VOID,
					 e ? e->text : "submit failed", clock_utc_us(c->ws->clock),
					 NULL);
		return rc;
	}
	return query_allocation_submitted(c->ws->db, b->allocation, id, clock_utc_us(c->ws->clock),
					  e);
}

static struct block_row *void_block(struct facts *f)
{
	for (size_t i = 0; i < f->n_blocks; i++) {
		struct block_row *b = &f->blocks[i];

		if (!facts_block_dropped(b) &&
		    (b->attempt_id == 0 || b->state == ATTEMPT_VOID || b->state == ATTEMPT_LOST))
			return b;
	}
	return NULL;
}

/* Warm-up runs of the baseline first, then the timed slots in balanced random order. */
static struct slot *plan_slots(const struct campaign *c, const struct stage_row *s, size_t index,
			       const size_t *arms, size_t n_arms, size_t *n)
{
	const struct recipe *r = c->recipe;
	size_t warm = s->kind == STAGE_CONVERGE ? 0 : (size_t)r->warmup_trials;
	size_t repeats = s->kind == STAGE_SOAK       ? (size_t)r->soak_trials
			 : s->kind == STAGE_CONVERGE ? 1
						     : (size_t)r->repeats;
	struct slot *v = xcalloc(warm + n_arms * repeats, sizeof *v);
	_cleanup_free_ size_t *order = xcalloc(n_arms * repeats, sizeof *order);
	_cleanup_free_ int *seen = xcalloc(s->n_arms, sizeof *seen);

	design_order(c->row.seed, (uint64_t)s->seq, index, n_arms, repeats, order);
	for (size_t i = 0; i < warm; i++)
		v[i] = (struct slot){.arm = s->arms[0].id, .repeat = (int)i, .kind = SLOT_WARMUP};
	for (size_t i = 0; i < n_arms * repeats; i++) {
		size_t a = arms[order[i]];

		v[warm + i] = (struct slot){
			.arm = s->arms[a].id, .repeat = seen[a]++, .kind = SLOT_TIMED};
	}
	*n = warm + n_arms * repeats;
	return v;
}

int64_t block_length_s(const struct campaign *c, const struct stage_row *s)
{
	_cleanup_free_ size_t *arms = xcalloc(s->n_arms + 1, sizeof *arms);
	_cleanup_free_ struct slot *slots = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->n_arms; i++)
		arms[i] = i;
	slots = plan_slots(c, s, 0, arms, s->n_arms, &n);
	return slots_limit_s(c, s, n);
}

static int add_block(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		     int64_t *id, struct err *e)
{
	_cleanup_free_ size_t *arms = xcalloc(s->n_arms, sizeof *arms);
	_cleanup_free_ struct slot *slots = NULL;
	size_t n_arms = 0, n = 0;
	int rc = ops->block_arms(c, s, c->facts.valid + c->facts.in_flight, arms, &n_arms, e);

	if (rc < 0)
		return rc;
	slots = plan_slots(c, s, c->facts.total, arms, n_arms, &n);
	return query_block_add(c->ws->db, s->id, (int)c->facts.total, slots, n, id, e);
}

static struct block_row *block_by_id(struct facts *f, int64_t id)
{
	for (size_t i = 0; i < f->n_blocks; i++)
		if (f->blocks[i].id == id)
			return &f->blocks[i];
	return NULL;
}

/* Said once: the tries that follow are silent. */
static int put_off(struct campaign *c, const struct block_row *b, struct err *e)
{
	_cleanup_free_ char *why = xstrdup(e && e->text[0] ? e->text : "no answer");

	campaign_tell(c, PROGRESS_NOTE, 0, "block %d is not submitted yet: %s", b->index + 1, why);
	return campaign_event(c, e, "submit", "%s: %s", b->token, why);
}

int block_start(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		struct err *e)
{
	struct block_row *b = void_block(&c->facts);
	int64_t id = b ? b->id : 0, attempt_id, allocation, stage = s->id;
	char token[64];
	int attempt, rc;

	if (!b && (rc = add_block(c, s, ops, &id, e)) < 0)
		return rc;
	rc = query_attempt_plan(c->ws->db, c->row.id, id, c->sched->name,
				clock_utc_us(c->ws->clock), &attempt_id, &attempt, &allocation,
				token, e);
	if (rc < 0 || (rc = facts_load_blocks(c, e)) < 0)
		return rc;
	s = &c->facts.stages[c->facts.n_stages - 1];
	b = block_by_id(&c->facts, id);
	if (!b || s->id != stage)
		return err_set(e, ERR_STATE, "block %lld is gone", (long long)id);
	if ((rc = block_write(c, s, b, e)) < 0)
		return rc;
	campaign_tell(c, PROGRESS_BLOCK, 0, "block %d (attempt %d) started", b->index + 1, attempt);
	rc = submit(c, s, b, e);
	if (rc == -ERR_TEMP)
		rc = put_off(c, b, e);
	return rc < 0 ? rc : facts_load_blocks(c, e);
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
	    (rc = store_times(c, b, a, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

static int store_attempt(struct campaign *c, const struct block_row *b, struct attempt_files *a,
			 struct err *e)
{
	size_t failed = 0;
	int rc = store_results(c, b, a, e);

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
	return reason ? fail_attempt(c, b, ATTEMPT_VOID, reason, e) : store_attempt(c, b, a, e);
}

/* What is broken or partial took its time all the same. */
static int refuse_attempt(struct campaign *c, const struct block_row *b,
			  const struct attempt_files *a, struct err *e)
{
	int rc = store_times(c, b, a, e);

	c->ends_changed = true;
	return rc < 0 ? rc : fail_attempt(c, b, ATTEMPT_VOID, a->reason, e);
}

/* A job cancelled while it ran can look like one whose prolog failed (Slurm keeps exit 0 when the
 * node's last word overtakes the script's). The agent's claim says that it was launched. */
static enum job_end told_end(const struct campaign *c, const struct block_row *b,
			     const struct sched_status *st)
{
	_cleanup_free_ char *dir = attempt_dir(c, b);
	_cleanup_free_ char *claim = fs_join(dir, "claim.json");

	if (st->state == JOB_GONE)
		return END_VANISHED;
	return st->end == END_LAUNCH_FAILED && fs_exists(claim) ? END_CANCELLED : st->end;
}

/* `partial`: what the agent left, NULL: no manifest. */
static char *end_text(const struct block_row *b, const struct sched_status *st, enum job_end end,
		      const struct attempt_files *partial)
{
	_cleanup_free_ char *job = xasprintf("job %s is %s (%s%s%s)", b->job_id,
					     job_state_name(st->state), job_end_name(end),
					     *st->reason ? ", " : "", st->reason);

	if (partial)
		return xasprintf("%s: %s", job, partial->reason);
	return xasprintf("%s and left no done.json; its own output: %s/agent.out", job, b->dir);
}

static int store_end(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		     const struct sched_status *st, const struct attempt_files *partial,
		     struct err *e)
{
	enum job_end end = told_end(c, b, st);
	const struct end_rule *rule = end_rule_of(end);
	_cleanup_free_ char *dir = attempt_dir(c, b), *text = end_text(b, st, end, partial);
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
	_cleanup_free_ char *dir = attempt_dir(c, b);
	struct attempt_files a = {0};
	int rc = c->sched->results ? c->sched->results(c->run, dir, &a, NULL) : 0;

	if (rc == 0)
		rc = ingest_attempt(c->recipe, s, c->facts.hyps, c->facts.n_hyps, b, dir, &a, NULL);
	else if (rc > 0)
		ingest_steps(c->recipe, s, &a);
	if (rc == -ERR_NOT_FOUND)
		return 0;
	if (a.partial && b->job_id && !st) {
		attempt_files_done(&a);
		return 0;
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

/* A planned attempt without a job id: the submit was lost, or we were killed in it. */
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
	if (limits_left_s(c) < slots_limit_s(c, s, b->n_slots)) {
		*changed = false; /* the next window's first block */
		return 0;
	}
	if ((rc = block_write(c, s, b, e)) < 0)
		return rc;
	rc = submit(c, s, b, e);
	*changed = rc != -ERR_TEMP; /* else: wait before the next try */
	return rc == -ERR_TEMP ? 0 : rc;
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

/* The job ended and left no manifest, or a partial one. */
static int judge_ended(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		       const struct sched_status *st, bool *changed, struct err *e)
{
	struct sched_status twin;
	int rc = st->suspended ? waits_suspended(c, b, e) : 0;

	if (rc == 0) /* written between the first look and the poll */
		rc = take_results(c, s, b, st, changed, e);
	if (rc < 0 || *changed || files_may_be_late(c, st) || find_twin(c, b, &twin))
		return rc;
	*changed = true;
	if ((rc = recost(c, b->allocation, -1, e)) < 0 ||
	    (rc = give_up(c, s, b, st, NULL, e)) < 0 || (rc = recost(c, b->allocation, 1, e)) < 0)
		return rc;
	return 0;
}

/* A job that waits for what does not come is withdrawn. One that cannot be withdrawn now is at the
 * next look. */
static int judge_pending(struct campaign *c, const struct stage_row *s, const struct block_row *b,
			 const struct sched_status *st, bool *changed, struct err *e)
{
	struct sched_status end = *st;
	bool hopeless = false;
	int rc = waits_pending(c, b, st, &hopeless, e);

	if (rc < 0 || !hopeless || c->sched->cancel(c->run, b->job_id, NULL) < 0)
		return rc;
	*changed = true;
	end.state = JOB_ENDED;
	end.end = END_NEVER_STARTED;
	return give_up(c, s, b, &end, NULL, e);
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

static int poll_jobs(struct campaign *c, const struct stage_row *s, bool *changed, struct err *e)
{
	struct facts *f = &c->facts;
	_cleanup_free_ const char **ids = xcalloc(f->n_blocks + 1, sizeof *ids);
	_cleanup_free_ const struct block_row **blocks = xcalloc(f->n_blocks + 1, sizeof *blocks);
	_cleanup_free_ struct sched_status *st = xcalloc(f->n_blocks + 1, sizeof *st);
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < f->n_blocks; i++)
		if (f->blocks[i].state == ATTEMPT_SUBMITTED && f->blocks[i].job_id) {
			blocks[n] = &f->blocks[i];
			ids[n++] = f->blocks[i].job_id;
		}
	if (n == 0 || (rc = c->sched->poll(c->run, ids, n, st, e)) == -ERR_TEMP)
		return 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		bool one = false;

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
		if (rc == 0 && !one && !b->job_id)
			rc = adopt(c, s, b, &one, e);
		*changed = *changed || one;
	}
	return rc < 0 || *changed ? rc : poll_jobs(c, s, changed, e);
}

/* Every job that bears the attempt's token; negative when the scheduler could not be asked. */
static int cancel_jobs(struct campaign *c, const struct block_row *b, struct err *e)
{
	struct sched_status st;
	int rc = b->job_id ? c->sched->cancel(c->run, b->job_id, e) : 0;

	if (rc < 0)
		return rc;
	if (b->job_id)
		return find_twin(c, b, &st) ? c->sched->cancel(c->run, st.id, e) : 0;
	rc = c->sched->find(c->run, b->token, &st, e);
	return rc == 1 ? c->sched->cancel(c->run, st.id, e) : rc;
}

/* What is done already counts. A job of which nothing could be learnt stays in flight: to call its
 * attempt void would leave it running without an owner. */
static int cancel_one(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		      struct err *e)
{
	bool done = false;
	struct err why = {0};
	int rc = take_results(c, s, b, NULL, &done, e);

	if (rc < 0 || done)
		return rc;
	if (cancel_jobs(c, b, &why) == 0)
		return fail_attempt(c, b, ATTEMPT_VOID, "cancelled", e);
	campaign_tell(c, PROGRESS_NOTE, 0,
		      "block %d: its job could not be cancelled and stays in flight: %s",
		      b->index + 1, why.text);
	return campaign_event(c, e, "cancel", "%s stays in flight: %s", b->token, why.text);
}

int block_cancel_all(struct campaign *c, struct err *e)
{
	struct facts *f = &c->facts;
	int rc = 0;

	for (size_t i = 0; i < f->n_blocks && rc == 0; i++) {
		const struct block_row *b = &f->blocks[i];

		if (b->attempt_id && (b->state == ATTEMPT_PLANNED || b->state == ATTEMPT_SUBMITTED))
			rc = cancel_one(c, &f->stages[f->n_stages - 1], b, e);
	}
	return rc;
}
