/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/campaign.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/stats.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/method/environment.h"
#include "orchestrator/method/method.h"

enum {
	BEAT_US = 10 * 1000000,   /* heartbeat of the lease */
	LAPSE_US = 120 * 1000000, /* a lease without a heartbeat for so long may be taken: twelve
				     missed beats */
	EFFECT_SHARE = 16,        /* looks at an effect that is told: at each of the first blocks,
				     then as its blocks grow by such a share */
};

static const struct stage_ops *const all_stages[] = {
	&baseline_aa, &experiment_screen, &validate_confirm, &ablate_ablate, &fix_final,
	&fix_soak,    &converge_converge, &profile_profile,  &ladder_ladder, &canary_canary};

const struct stage_ops *stage_ops_of(enum stage_kind k)
{
	for (size_t i = 0; i < ARRAY_LEN(all_stages); i++)
		if (all_stages[i]->kind == k)
			return all_stages[i];
	return NULL;
}

/* -- telling ------------------------------------------------------------------------------------
 */

/* The pairs of the open comparison so far, for a live view: it decides nothing, so the interval is
 * the plain one, and in a long stage it is that of some blocks ago: each look reads all pairs. */
static void look_at_effect(struct campaign *c, const struct stage_row *s)
{
	_cleanup_free_ double *d = NULL;
	struct stats_mean_ci ci;
	struct pairs pairs;
	size_t n;

	if (pairs_load(c, s, &pairs, NULL) < 0)
		return;
	n = pairs_diff(&pairs, 1, &d);
	ci = stats_mean_ci(d, n, 0.95);
	pairs_done(&pairs);
	if (n < 2)
		return;
	c->effect.est = stats_relative(ci.mean);
	c->effect.lo = stats_relative(ci.lo);
	c->effect.hi = stats_relative(ci.hi);
}

static void fill_effect(struct campaign *c, const struct stage_row *s, struct progress *p)
{
	struct effect *x = &c->effect;

	if (s->kind != STAGE_CONFIRM && s->kind != STAGE_FINAL)
		return;
	if (x->stage != s->id)
		*x = (struct effect){.stage = s->id, .est = NAN, .lo = NAN, .hi = NAN};
	if (c->facts.valid > x->blocks + x->blocks / EFFECT_SHARE) {
		x->blocks = c->facts.valid;
		look_at_effect(c, s);
	}
	p->est = x->est;
	p->lo = x->lo;
	p->hi = x->hi;
}

void campaign_tell(struct campaign *c, enum progress_kind k, int step, const char *fmt, ...)
{
	const struct stage_row *s = c->facts.n_stages ? &c->facts.stages[c->facts.n_stages - 1]
						      : NULL;
	struct progress p = {.kind = k,
			     .step = step,
			     .at_us = clock_utc_us(c->ws->clock),
			     .est = NAN,
			     .lo = NAN,
			     .hi = NAN};
	char text[1024];
	va_list ap;

	if (!c->tell)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	p.text = text;
	if (s && s->open) {
		const struct stage_ops *ops = stage_ops_of(s->kind);

		p.stage = stage_kind_name(s->kind);
		p.step = step ? step : ops ? ops->step : 0;
		p.blocks_done = (int)c->facts.valid;
		p.blocks_planned = s->planned_blocks;
		fill_effect(c, s, &p);
	}
	p.node_s = c->facts.node_s;
	c->tell(c->tell_ctx, &p);
}

int campaign_event(struct campaign *c, struct err *e, const char *kind, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return query_event_add(c->ws->db, c->row.id, clock_utc_us(c->ws->clock), kind, text, e);
}

/* -- creating and opening ------------------------------------------------------------------------
 */

int campaign_create(struct workspace *w, const struct recipe *r, const struct script_sources *s,
		    const char *path, const char *scheduler, int64_t *id, struct err *e)
{
	int64_t now = clock_utc_us(w->clock);
	_cleanup_free_ char *env = environment_capture();
	_cleanup_free_ struct source_row *rows = xcalloc(s->n + 1, sizeof *rows);
	char seed_text[80], hex[33];
	struct campaign_row row = {
		.name = r->name,
		.recipe_path = (char *)path,
		.recipe_hash = (char *)s->hash,
		.scheduler = (char *)scheduler,
		.state = CAMPAIGN_RUNNING,
		.mode = r->mode,
		.alpha = r->alpha,
		.confirm_max = r->rounds,
		.env_json = env,
		.created_us = now,
		.seed = r->seed,
		.deadline_us = r->budget.wall_s > 0 ? now + (int64_t)(r->budget.wall_s * 1e6) : 0};

	for (size_t i = 0; i < s->n; i++)
		rows[i] = (struct source_row){s->v[i].name, s->v[i].path, s->v[i].text,
					      s->v[i].hash};
	if (!row.seed) {
		snprintf(seed_text, sizeof seed_text, "%s %lld", w->uuid, (long long)now);
		fs_hash(seed_text, strlen(seed_text), hex);
		row.seed = strtoull(hex + 20, NULL,
				    16); /* 48 bits: exact in every reader of the database */
	}
	return query_campaign_create(w->db, &row, rows, s->n, id, e);
}

int campaign_sources(struct workspace *w, int64_t id, struct script_sources *out, struct err *e)
{
	struct source_row *rows = NULL;
	struct campaign_row row;
	size_t n = 0;
	int rc = query_campaign_get(w->db, id, &row, e);

	if (rc < 0)
		return rc;
	*out = (struct script_sources){0};
	str_copy(out->hash, sizeof out->hash, row.recipe_hash);
	campaign_row_done(&row);
	if ((rc = query_campaign_sources(w->db, id, &rows, &n, e)) < 0)
		return rc;
	out->v = xcalloc(n + 1, sizeof *out->v);
	out->n = n;
	for (size_t i = 0; i < n; i++) {
		out->v[i] = (struct script_source){.name = TAKE(rows[i].name),
						   .path = TAKE(rows[i].path),
						   .text = TAKE(rows[i].text)};
		str_copy(out->v[i].hash, sizeof out->v[i].hash, rows[i].hash);
	}
	source_rows_free(rows, n);
	return 0;
}

static int load_recipe(struct campaign *c, const struct recipe *known, struct err *e)
{
	int rc = campaign_sources(c->ws, c->row.id, &c->sources, e);

	if (rc == 0 && (!known || !str_eq(known->hash, c->row.recipe_hash)))
		rc = script_reload(&c->sources, &c->own_recipe, e);
	c->recipe = c->own_recipe ? c->own_recipe : known;
	return rc;
}

/* NCCL acknowledges a variable only when it is told to talk: equally for all arms, at start-up
 * only. */
static void let_nccl_talk(struct campaign *c)
{
	static const char *const names[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"};
	static const char *const values[] = {"INFO", "INIT,ENV"};
	bool asked = false;

	for (size_t i = 0; i < c->recipe->n_knobs; i++) {
		const char *fact = c->recipe->knobs[i].proof.fact;

		asked = asked || (fact && str_starts(fact, "nccl.env."));
	}
	for (size_t i = 0; asked && i < ARRAY_LEN(names); i++)
		if (!kvs_has(&c->env, names[i]) && !kvs_has(&c->recipe->workload.env, names[i]))
			kvs_set(&c->env, names[i], values[i]);
}

static int load_env(struct campaign *c, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	int rc = json_parse("captured environment", c->row.env_json, strlen(c->row.env_json), &j,
			    e);

	for (size_t i = 0; rc == 0 && i < json_len(j); i++)
		kvs_set(&c->env, json_key(json_at(j, i)), json_text(json_at(j, i), ""));
	if (rc == 0)
		let_nccl_talk(c);
	return rc;
}

enum holder { HOLDER_ELSEWHERE, HOLDER_ALIVE, HOLDER_DEAD };

/* A holder on this host that is dead, or of another boot, holds nothing. */
static enum holder judge_holder(const struct lease *held, const struct lease *mine)
{
	struct proc_id id = {(pid_t)held->pid, held->start_ticks};

	if (!str_eq(held->host, mine->host))
		return HOLDER_ELSEWHERE;
	if (!str_eq(held->boot_id, mine->boot_id) || !proc_alive(&id))
		return HOLDER_DEAD;
	return HOLDER_ALIVE;
}

/* Heartbeats are for holders that cannot be looked at. One that lives here is not taken for lapsed
 * because a clock jumped or because it was stopped: --take-over says so, or nobody. */
static int take_from(struct campaign *c, const struct lease *held, bool force, struct err *e)
{
	switch (force ? HOLDER_ELSEWHERE : judge_holder(held, &c->lease)) {
	case HOLDER_DEAD:
		return query_lease_seize(c->ws->db, c->row.id, &c->lease, held, e);
	case HOLDER_ALIVE:
		return query_lease_take(c->ws->db, c->row.id, &c->lease, INT64_MAX, false, e);
	case HOLDER_ELSEWHERE:
		break;
	}
	return query_lease_take(c->ws->db, c->row.id, &c->lease, LAPSE_US, force, e);
}

static int guard(void *ctx, struct err *e)
{
	return campaign_owned(ctx, e);
}

int campaign_owned(struct campaign *c, struct err *e)
{
	return query_lease_check(c->ws->db, c->row.id, &c->lease, e);
}

bool campaign_holder_is_dead(const struct lease *held)
{
	struct lease here = {0};

	proc_host(here.host, here.boot_id);
	return judge_holder(held, &here) == HOLDER_DEAD;
}

static int take_lease(struct campaign *c, bool force, struct err *e)
{
	struct lease held = {0};
	bool is_held = false;
	int rc;

	proc_host(c->lease.host, c->lease.boot_id);
	c->lease.pid = getpid();
	(void)proc_start_ticks(getpid(), &c->lease.start_ticks, NULL);
	c->lease.heartbeat_us = clock_utc_us(c->ws->clock);
	if ((rc = query_lease_get(c->ws->db, c->row.id, &held, &is_held, e)) < 0)
		return rc;
	rc = is_held ? take_from(c, &held, force, e)
		     : query_lease_take(c->ws->db, c->row.id, &c->lease, LAPSE_US, force, e);
	c->leased = rc == 0;
	c->beat_us = clock_mono_us(c->ws->clock);
	if (rc == 0)
		db_guard(c->ws->db, guard, c);
	return rc;
}

static int open_scheduler(struct campaign *c, const struct campaign_options *o, struct err *e)
{
	int rc;

	c->sched_config = (struct sched_config){.blocks_root = c->ws->blocks_root,
						.agent = o->agent,
						.helper = o->helper,
						.partition = c->resources.partition,
						.clock = c->ws->clock,
						.seed = c->row.seed,
						.spec = o->spec};

	c->sched = o->sched ? o->sched : sched_find(c->row.scheduler);
	if (!c->sched)
		return err_set(e, ERR_USAGE, "no scheduler is called %s", c->row.scheduler);
	if ((rc = c->sched->open(&c->sched_config, &c->run, e)) < 0)
		return rc;
	return c->sched->capacity(c->run, &c->capacity, e);
}

static int load_cost(struct campaign *c, struct err *e)
{
	struct cost_row cost;
	int rc = query_cost(c->ws->db, c->row.id, &cost, e);

	if (rc == 0) {
		c->trials = cost.trials_all;
		c->node_s = cost.node_s;
	}
	return rc;
}

/* Whoever resumes a stopped campaign has seen why it stopped: budgets that are used up begin anew,
 * and blocks that were lost too often are tried again. */
static bool node_hours_over(const struct campaign *c)
{
	const struct budget *b = &c->recipe->budget;
	double h = (c->node_s - c->row.resume_node_s) / 3600;

	return (b->node_hours > 0 && h >= b->node_hours) ||
	       (b->gpu_hours > 0 && h * c->resources.gpus_per_node >= b->gpu_hours);
}

static int resume_state(struct campaign *c, struct err *e)
{
	const struct budget *b = &c->recipe->budget;
	int rc;

	if (c->row.state != CAMPAIGN_STOPPED)
		return 0;
	if (b->trials > 0 && c->trials - c->row.resume_trials >= b->trials)
		c->row.resume_trials = c->trials;
	if (node_hours_over(c))
		c->row.resume_node_s = c->node_s;
	rc = query_campaign_resume(c->ws->db, c->row.id, c->row.resume_trials, c->row.resume_node_s,
				   e);
	if (rc == 0)
		c->row.state = CAMPAIGN_RUNNING;
	return rc;
}

int campaign_reopen(struct campaign *c, int64_t deadline_us, struct err *e)
{
	int rc = query_campaign_resume(c->ws->db, c->row.id, c->trials, c->node_s, e);

	if (rc == 0)
		rc = query_campaign_deadline(c->ws->db, c->row.id, deadline_us, e);
	if (rc < 0)
		return rc;
	c->row.state = CAMPAIGN_RUNNING;
	c->row.resume_trials = c->trials;
	c->row.resume_node_s = c->node_s;
	c->row.deadline_us = deadline_us;
	return 0;
}

static int open_row(struct campaign *c, int64_t id, const struct campaign_options *o, struct err *e)
{
	int rc;

	c->tell = o->tell;
	c->tell_ctx = o->tell_ctx;
	c->ends_changed = true;
	if ((rc = query_campaign_get(c->ws->db, id, &c->row, e)) < 0 ||
	    (rc = load_recipe(c, o->recipe, e)) < 0 || (rc = load_env(c, e)) < 0 ||
	    (rc = take_lease(c, o->take_over, e)) < 0 || (rc = load_cost(c, e)) < 0)
		return rc;
	c->until_us = o->until_us;
	c->wait_until_us = o->wait_until_us;
	c->until_node_s = o->spend_node_s > 0 ? c->node_s + o->spend_node_s : 0;
	return 0;
}

int campaign_open_stored(struct workspace *w, int64_t id, const struct campaign_options *o,
			 struct campaign **out, struct err *e)
{
	struct campaign *c = xcalloc(1, sizeof *c);
	int rc;

	c->ws = w;
	if ((rc = open_row(c, id, o, e)) < 0 || (rc = facts_load(c, e)) < 0) {
		campaign_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

int campaign_open(struct workspace *w, int64_t id, const struct campaign_options *o,
		  struct campaign **out, struct err *e)
{
	struct campaign *c = xcalloc(1, sizeof *c);
	int rc;

	c->ws = w;
	if ((rc = open_row(c, id, o, e)) < 0 || (rc = resume_state(c, e)) < 0 ||
	    (rc = open_scheduler(c, o, e)) < 0 || (rc = facts_load(c, e)) < 0) {
		campaign_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void campaign_close(struct campaign *c)
{
	if (!c)
		return;
	if (c->leased) {
		db_guard(c->ws->db, NULL, NULL);
		(void)query_lease_drop(c->ws->db, c->row.id, &c->lease, NULL);
	}
	if (c->sched && c->run)
		c->sched->close(c->run);
	facts_done(&c->facts);
	ends_forget_nodes(c);
	node_use_rows_free(c->node_use, c->n_node_use);
	recipe_free(c->own_recipe);
	script_sources_free(&c->sources);
	kvs_free(&c->env);
	kvs_free(&c->waits);
	campaign_row_done(&c->row);
	free(c);
}

/* -- moving
 * ---------------------------------------------------------------------------------------- */

int stage_add(struct campaign *c, struct stage_row *s, const struct arm_plan *arms, size_t n,
	      struct err *e)
{
	struct db *db = c->ws->db;
	const struct facts *f = &c->facts;
	_cleanup_free_ struct arm_row *rows = xcalloc(n, sizeof *rows);
	int rc = 0;

	s->campaign = c->row.id;
	s->seq = f->n_stages ? f->stages[f->n_stages - 1].seq + 1 : 1;
	s->open = true;
	s->arms = rows;
	s->n_arms = n;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rows[i] = (struct arm_row){.index = (int)i,
					   .role = i ? ROLE_TREATMENT : ROLE_BASELINE,
					   .hypothesis = arms[i].hypothesis,
					   .label = arms[i].label};
		rc = query_config_put(db, &arms[i].config, &rows[i].config, e);
	}
	if (rc == 0)
		rc = query_stage_add(db, s, e);
	s->arms = NULL;
	return rc;
}

int stage_plan(struct campaign *c, struct stage_row *s, const struct arm_plan *arms, size_t n,
	       struct err *e)
{
	struct db *db = c->ws->db;
	int rc = db_begin(db, "stage", e);

	if (rc == 0 && (rc = stage_add(c, s, arms, n, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

int stage_plan_default(struct campaign *c, struct stage_row *s, const char *a, const char *b,
		       struct err *e)
{
	struct arm_plan arms[2] = {{.label = xstrdup(a)}, {.label = xstrdup(b)}};
	int rc = campaign_default(c, &arms[0].config, e);

	if (rc == 0) {
		config_copy(&arms[1].config, &arms[0].config);
		rc = stage_plan(c, s, arms, 2, e);
	}
	for (size_t i = 0; i < 2; i++) {
		config_done(&arms[i].config);
		free(arms[i].label);
	}
	return rc;
}

int stage_all_arms(struct campaign *c, const struct stage_row *s, size_t valid, size_t *out,
		   size_t *n, struct err *e)
{
	(void)c, (void)valid, (void)e;
	for (size_t i = 0; i < s->n_arms; i++)
		out[i] = i;
	*n = s->n_arms;
	return 0;
}

int stage_fixed_blocks(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	(void)c, (void)e;
	*out = (size_t)s->planned_blocks;
	return 0;
}

static int stop(struct campaign *c, const char *reason, struct err *e)
{
	int rc = query_campaign_state(c->ws->db, c->row.id, CAMPAIGN_STOPPED, reason,
				      clock_utc_us(c->ws->clock), e);

	if (rc < 0)
		return rc;
	c->row.state = CAMPAIGN_STOPPED;
	free(c->row.reason);
	c->row.reason = xstrdup(reason);
	campaign_tell(c, PROGRESS_NOTE, 0, "stopped: %s", reason);
	return campaign_event(c, e, "stopped", "%s", reason);
}

static int too_many_dropped(struct campaign *c, struct err *e)
{
	const char *last = "";
	_cleanup_free_ char *reason = NULL;

	for (size_t i = 0; i < c->facts.n_blocks; i++)
		if (facts_block_dropped(&c->facts.blocks[i]) && c->facts.blocks[i].reason)
			last = c->facts.blocks[i].reason;
	reason = xasprintf("%zu blocks were lost %d times each; the last reason: %s",
			   c->facts.dropped, METHOD_MAX_ATTEMPTS, last);
	return stop(c, reason, e);
}

static int budget_over(struct campaign *c, struct err *e)
{
	_cleanup_free_ char *reason =
		facts_deadline_passed(c)
			? xasprintf("budget.deadline of the recipe, %s, has passed; to go on, "
				    "`fettle run` it with a later one or none",
				    c->recipe->budget.deadline)
			: xasprintf("the budget of %s is used up; `fettle resume %lld` goes on",
				    c->facts.budget_text, (long long)c->row.id);

	return stop(c, reason, e);
}

static int conclude(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		    struct err *e)
{
	struct db *db = c->ws->db;
	int rc = db_begin(db, "conclude", e);

	if (rc == 0 && (rc = ops->conclude(c, s, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0) {
		db_rollback(db);
		return rc;
	}
	return facts_load(c, e);
}

/* Say once why nothing starts now; the campaign stays running, so that `fettle tick` goes on. */
static int put_off(struct campaign *c, const char *why, struct err *e)
{
	int rc;

	if (str_eq(c->row.reason, why))
		return 0;
	rc = query_campaign_state(c->ws->db, c->row.id, CAMPAIGN_RUNNING, why, 0, e);
	if (rc < 0)
		return rc;
	free(c->row.reason);
	c->row.reason = xstrdup(why);
	campaign_tell(c, PROGRESS_NOTE, 0, "%s", why);
	return campaign_event(c, e, "window", "%s", why);
}

static int no_reason(struct campaign *c, struct err *e)
{
	if (!c->row.reason)
		return 0;
	free(TAKE(c->row.reason));
	return query_campaign_state(c->ws->db, c->row.id, CAMPAIGN_RUNNING, NULL, 0, e);
}

/* A block, if nobody drains the campaign, and the window and the idle nodes let it start now. */
static int start_or_wait(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
			 enum campaign_step *out, struct err *e)
{
	_cleanup_free_ char *why = limits_window_text(c, allocation_length_s(c, s));
	bool draining = false;
	int rc = query_draining(c->ws->db, c->row.id, &draining, e);

	if (rc < 0)
		return rc;
	if (draining && c->facts.in_flight == 0)
		return stop(c, "drained: `fettle stop --drain` let the running blocks end", e);
	if (draining) {
		*out = CAMPAIGN_WAIT;
		return 0;
	}
	if (why) {
		*out = c->facts.in_flight ? CAMPAIGN_WAIT : CAMPAIGN_LATER;
		return put_off(c, why, e);
	}
	if (!limits_nodes_idle(c)) {
		*out = CAMPAIGN_WAIT;
		return put_off(c, "waits for idle nodes, as budget.idle_nodes wants", e);
	}
	rc = no_reason(c, e);
	return rc < 0 ? rc : allocation_start(c, s, ops, e);
}

/* Nothing is in flight: look at what there is, then run more blocks or conclude. */
static int idle_stage(struct campaign *c, const struct stage_ops *ops, enum campaign_step *out,
		      struct err *e)
{
	struct stage_row *s = &c->facts.stages[c->facts.n_stages - 1];
	int rc = ops->look ? ops->look(c, s, e) : 0;

	if (rc < 0)
		return rc;
	s = &c->facts.stages[c->facts.n_stages - 1]; /* a look loads the facts again */
	if ((rc = ops->wanted(c, s, &c->wanted, e)) < 0)
		return rc;
	if (c->facts.valid >= c->wanted)
		return conclude(c, s, ops, e);
	return c->facts.over_budget ? budget_over(c, e) : start_or_wait(c, s, ops, out, e);
}

static int busy_stage(struct campaign *c, const struct stage_ops *ops, enum campaign_step *out,
		      struct err *e)
{
	const struct stage_row *s = &c->facts.stages[c->facts.n_stages - 1];
	bool changed = false;
	int rc = block_collect(c, s, &changed, e);

	if (rc < 0 || changed)
		return rc < 0 ? rc : facts_load_blocks(c, e);
	if (!c->facts.over_budget && c->facts.allocations < limits_in_flight(c) &&
	    c->facts.valid + c->facts.in_flight < c->wanted)
		return start_or_wait(c, s, ops, out, e);
	*out = CAMPAIGN_WAIT;
	return 0;
}

/* Jobs that keep ending alike will go on doing so: those in flight are withdrawn, too. */
static int stop_for_ends(struct campaign *c, bool *stopped, struct err *e)
{
	_cleanup_free_ char *reason = NULL;
	int rc = ends_stop_reason(c, &reason, e);

	*stopped = reason != NULL;
	if (rc == 0 && reason)
		rc = block_cancel_all(c, e);
	return rc < 0 || !reason ? rc : stop(c, reason, e);
}

static int run_stage(struct campaign *c, enum campaign_step *out, struct err *e)
{
	const struct stage_row *s = &c->facts.stages[c->facts.n_stages - 1];
	const struct stage_ops *ops = stage_ops_of(s->kind);
	bool stopped = false;
	int rc;

	if (!ops)
		return err_set(e, ERR_STATE, "this program runs no %s stages",
			       stage_kind_name(s->kind));
	if (c->facts.dropped >= METHOD_MAX_DROPPED && c->facts.in_flight == 0)
		return too_many_dropped(c, e);
	if (c->ends_changed && (rc = stop_for_ends(c, &stopped, e)) < 0)
		return rc;
	if (stopped)
		return 0;
	if (c->facts.in_flight > 0)
		return busy_stage(c, ops, out, e);
	return idle_stage(c, ops, out, e);
}

static int act(struct campaign *c, const struct action *a, enum campaign_step *out, struct err *e)
{
	int rc = a->ends_search ? reserve_end_search(c, e) : 0;

	if (rc == 0 && a->skips_ablation)
		rc = reserve_skip_ablation(c, e);
	if (rc < 0)
		return rc;
	switch (a->kind) {
	case ACT_PLAN_AA:
		return baseline_plan(c, e);
	case ACT_PLAN_PROFILE:
		return profile_plan(c, a->round, e);
	case ACT_PLAN_LADDER:
		return ladder_plan(c, a->round, e);
	case ACT_PLAN_CANARY:
		return canary_begin(c, e);
	case ACT_HYPOTHESES:
		return hypothesis_plan(c, a->round, e);
	case ACT_PLAN_SCREEN:
		return experiment_plan(c, a->round, e);
	case ACT_PLAN_CONFIRM:
		return validate_plan(c, a->hypothesis, e);
	case ACT_PLAN_ABLATE:
		return ablate_plan(c, e);
	case ACT_PLAN_FINAL:
		return fix_plan_final(c, e);
	case ACT_PLAN_SOAK:
		return fix_plan_soak(c, e);
	case ACT_STAGE:
		return run_stage(c, out, e);
	case ACT_FINISH:
		rc = accounts_take_last(c, e);
		return rc < 0 ? rc : fix_finish(c, e);
	case ACT_STOP:
		return budget_over(c, e);
	}
	return 0;
}

int campaign_beat(struct campaign *c, struct err *e)
{
	int64_t now = clock_mono_us(c->ws->clock);

	if (now - c->beat_us < BEAT_US)
		return 0;
	c->beat_us = now;
	c->lease.heartbeat_us = clock_utc_us(c->ws->clock);
	return query_lease_beat(c->ws->db, c->row.id, &c->lease, e);
}

static int leave_off(struct campaign *c, enum campaign_step *out, struct err *e)
{
	_cleanup_free_ char *why = limits_wait_text(c);

	if (!why)
		return 0;
	*out = CAMPAIGN_LATER;
	return put_off(c, why, e);
}

int campaign_step(struct campaign *c, enum campaign_step *out, struct err *e)
{
	_cleanup_free_ int64_t *ranking = NULL;
	const struct stage_row *last = c->facts.n_stages ? &c->facts.stages[c->facts.n_stages - 1]
							 : NULL;
	struct action a;
	size_t n = 0;
	int rc = campaign_beat(c, e);

	*out = CAMPAIGN_OVER;
	if (rc < 0 || c->row.state != CAMPAIGN_RUNNING)
		return rc;
	if (last && !last->open &&
	    ((rc = accounts_take(c, e)) < 0 ||
	     (rc = experiment_ranking(c, last->round, &ranking, &n, e)) < 0))
		return rc;
	a = campaign_next(&c->facts, c->recipe, ranking, n);
	*out = CAMPAIGN_AGAIN;
	if ((rc = act(c, &a, out, e)) < 0)
		return rc;
	if (c->row.state != CAMPAIGN_RUNNING)
		return sweep_jobs(c, e);
	if (*out == CAMPAIGN_WAIT)
		return leave_off(c, out, e);
	return a.kind != ACT_STAGE ? facts_load(c, e) : 0;
}

int campaign_wait(struct campaign *c, int64_t timeout_us, int fd, struct err *e)
{
	return c->sched->wait(c->run, timeout_us, fd, e);
}

int campaign_cancel(struct campaign *c, const char *why, struct err *e)
{
	int rc = campaign_owned(c, e);

	if (rc == 0)
		rc = block_cancel_all(c, e);
	return rc < 0 ? rc : stop(c, why, e);
}
