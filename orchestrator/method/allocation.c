/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocations: from blocks to jobs. One allocation, a pilot, holds as many blocks as the kind of
 * the stage allows (design_allocation_blocks), no more than its time, the budget and the scheduler
 * have room for. Its blocks are planned in one transaction and submitted as one job, which the
 * agent works off in their order.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/hours.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	SLACK_S = 120, /* of an allocation: start, cleaning between trials */
	/* What a pilot asks for beyond the usual time of its blocks, as a multiple of it: short
	 * jobs start sooner, but a block that runs into the limit is run again. */
	SPARE = 2,
};

/* -- who shares an allocation ------------------------------------------------------------------ */

static bool is_in_flight(const struct block_row *b)
{
	return b->attempt_id && (b->state == ATTEMPT_PLANNED || b->state == ATTEMPT_SUBMITTED);
}

size_t allocation_crew(const struct facts *f, int64_t allocation, const struct block_row **out)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct block_row *b = &f->blocks[i];
		size_t at = n;

		if (b->allocation != allocation || !is_in_flight(b))
			continue;
		for (; at > 0 && out[at - 1]->position > b->position; at--)
			out[at] = out[at - 1];
		out[at] = b;
		n++;
	}
	return n;
}

bool allocation_leads(const struct facts *f, const struct block_row *b)
{
	if (!is_in_flight(b))
		return false;
	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct block_row *o = &f->blocks[i];

		if (o->allocation == b->allocation && is_in_flight(o) && o->position < b->position)
			return false;
	}
	return true;
}

int allocation_unit(const struct campaign *c)
{
	int n = c->recipe->blocks_per_allocation, most = c->capacity.blocks_at_most;

	n = n > 1 ? n : 1;
	return most > 0 && n > most ? most : n;
}

/* -- how many blocks fit ----------------------------------------------------------------------- */

/* Trials before the timed ones; the trial under a profiler is no timed one either. */
static size_t untimed_of_block(const struct campaign *c, const struct stage_row *s)
{
	return s->kind == STAGE_CONVERGE  ? 0
	       : s->kind == STAGE_PROFILE ? 1
					  : (size_t)c->recipe->warmup_trials;
}

static size_t trials_of_block(const struct campaign *c, const struct stage_row *s, size_t n_arms)
{
	return s->kind == STAGE_SOAK       ? (size_t)c->recipe->soak_trials
	       : s->kind == STAGE_CONVERGE ? n_arms
	       : s->kind == STAGE_PROFILE  ? 0
					   : n_arms * (size_t)c->recipe->repeats;
}

/* Time of `slots` trials by their limits, s. */
static double worst_s(const struct campaign *c, const struct stage_row *s, size_t slots)
{
	struct workload w = method_workload(c->recipe, s->kind);
	int grace_s = s->kind == STAGE_PROFILE ? METHOD_PROFILE_GRACE_S : METHOD_GRACE_S;

	return (double)(w.trial_limit_s + 2 * grace_s) * (double)slots;
}

/* The same by what this campaign's trials took so far with what came between them; the long run
 * is another workload. */
static double usual_s(const struct campaign *c, const struct stage_row *s, size_t slots)
{
	double nodes = c->resources.nodes > 0 ? c->resources.nodes : 1;
	double worst = worst_s(c, s, slots);

	if (s->kind == STAGE_CONVERGE || c->trials == 0 || !(c->node_s > 0))
		return worst;
	return fmin(worst, c->node_s / nodes / (double)c->trials * (double)slots);
}

int64_t allocation_length_s(const struct campaign *c, const struct stage_row *s)
{
	return (int64_t)worst_s(c, s, untimed_of_block(c, s) + trials_of_block(c, s, s->n_arms)) +
	       SLACK_S;
}

/* How long an allocation that is submitted now may last by the limits of jobs and the window, s. */
static double limit_of_jobs_s(const struct campaign *c)
{
	int64_t own = c->resources.time_limit_s, left = limits_left_s(c);
	double limit = own > 0                        ? (double)own
		       : c->capacity.time_limit_s > 0 ? (double)c->capacity.time_limit_s
						      : INFINITY;

	return left < INT64_MAX ? fmin(limit, (double)left) : limit;
}

/* The same by what is left of the budget, too. */
static double room_s(const struct campaign *c)
{
	const struct recipe *r = c->recipe;
	const struct budget *b = &r->budget;
	double nodes = r->resources.nodes > 0 ? r->resources.nodes : 1, room = limit_of_jobs_s(c);
	double spent_s = c->node_s - c->row.resume_node_s, now = (double)clock_utc_us(c->ws->clock);
	int64_t deadline;

	if (c->row.deadline_us > 0)
		room = fmin(room, ((double)c->row.deadline_us - now) / 1e6);
	if (b->deadline && hours_moment(b->deadline, &deadline, NULL) == 0)
		room = fmin(room, ((double)deadline - now) / 1e6);
	if (b->node_hours > 0)
		room = fmin(room, (3600 * b->node_hours - spent_s) / nodes);
	if (b->gpu_hours > 0)
		room = fmin(room,
			    (3600 * b->gpu_hours / r->resources.gpus_per_node - spent_s) / nodes);
	if (c->until_node_s > 0)
		room = fmin(room, (c->until_node_s - c->node_s) / nodes);
	return room;
}

/* Blocks of `slots` trials for which there is time and budget; at least one, which is what was
 * decided to run. */
static size_t affordable(const struct campaign *c, const struct stage_row *s, size_t slots)
{
	double each = SPARE * usual_s(c, s, slots), n = floor((room_s(c) - SLACK_S) / each);

	if (c->recipe->budget.trials > 0)
		n = fmin(n, floor((double)(c->recipe->budget.trials -
					   (c->trials - c->row.resume_trials)) /
				  (double)slots));
	return !(n > 1) ? 1 : n < 1e6 ? (size_t)n : 1000000;
}

/* How many blocks the next allocation gets, of those that are wanted by now. */
static size_t next_blocks(const struct campaign *c, const struct stage_row *s)
{
	const struct facts *f = &c->facts;
	size_t known = c->wanted > f->valid + f->in_flight ? c->wanted - f->valid - f->in_flight
							   : 1;
	struct design_allocation a = {.kind = s->kind,
				      .asked = (size_t)allocation_unit(c),
				      .before = f->valid + f->in_flight,
				      .known = known,
				      .slots = limits_at_once(c)};
	size_t n = design_allocation_blocks(&a);
	size_t trials = trials_of_block(c, s, s->n_arms), most;

	if (c->capacity.blocks_at_most > 0 && n > (size_t)c->capacity.blocks_at_most)
		n = (size_t)c->capacity.blocks_at_most;
	if (n <= 1)
		return 1;
	most = affordable(c, s, trials ? trials : 1);
	return n < most ? n : most;
}

/* One block may take as long as its limits allow, the others with it SPARE times the usual. What
 * reaches beyond the limits of jobs or the window is cut there: one block still fits. */
static int64_t limit_s(const struct campaign *c, const struct stage_row *s,
		       const struct block_row *const *crew, size_t n)
{
	double sum = SLACK_S, extra = 0, most = limit_of_jobs_s(c);

	for (size_t i = 0; i < n; i++) {
		double worst = worst_s(c, s, crew[i]->n_slots);
		double usual = fmin(worst, SPARE * usual_s(c, s, crew[i]->n_slots));

		sum += usual;
		extra = fmax(extra, worst - usual);
	}
	sum = ceil(sum + extra);
	if (c->resources.time_limit_s > 0 || (most > 0 && sum > most))
		sum = most;
	return (int64_t)sum;
}

/* -- submitting ------------------------------------------------------------------------------- */

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
	const struct resources *r = &c->resources;
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

static int submit_job(struct campaign *c, const struct stage_row *s, struct sched_job *job,
		      const struct block_row *const *crew, size_t n, char id[64], struct err *e)
{
	const struct resources *r = &c->resources;
	_cleanup_free_ char *exclude = NULL, *nodelist = NULL;
	_cleanup_(strv_free) struct strv env = {0};
	struct job_options options = r->options;
	char deadline[32];
	int rc = choose_nodes(c, s, &exclude, &nodelist, e);

	if (rc < 0)
		return rc;
	job_env(c, &env);
	job->token = crew[0]->token;
	job->workdir = c->recipe->workload.workdir;
	job->env = strv_end(&env);
	job->nodes = r->nodes > 0 ? r->nodes : 1;
	job->tasks_per_node = r->tasks_per_node;
	job->cpus_per_task = r->cpus_per_task;
	job->gpus_per_node = r->gpus_per_node;
	job->mem_mib_per_node = r->mem_mib_per_node;
	job->time_limit_s = limit_s(c, s, crew, n);
	job->exclusive = true;
	job->sbcast_dir = c->recipe->agent.sbcast ? c->recipe->agent.dir : NULL;
	job->partition = r->partition;
	job->account = r->account;
	job->qos = r->qos;
	job->reservation = r->reservation;
	job->constraint = r->constraint;
	job->nodelist = nodelist;
	job->exclude = exclude;
	if (limits_close_us(c) && !options.deadline)
		options.deadline = deadline_text(c, deadline);
	job->options = &options;
	return c->sched->submit(c->run, job, id, e);
}

/* It was not accepted: none of its blocks runs. */
static void give_up(struct campaign *c, const struct block_row *const *crew, size_t n,
		    const char *why)
{
	for (size_t i = 0; i < n; i++)
		(void)query_attempt_fail(c->ws->db, crew[i]->attempt_id, ATTEMPT_VOID, why,
					 clock_utc_us(c->ws->clock), NULL);
}

static int send_crew(struct campaign *c, const struct stage_row *s,
		     const struct block_row *const *crew, size_t n, struct err *e)
{
	_cleanup_(strv_free) struct strv dirs = {0};
	_cleanup_free_ char *output = NULL;
	char id[64];
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		_cleanup_free_ char *dir = block_dir(c, crew[i]);

		strv_add(&dirs, dir);
		rc = block_write(c, s, crew[i], crew[0]->dir, e);
	}
	if (rc < 0 || (rc = campaign_owned(c, e)) < 0)
		return rc;
	output = fs_join(dirs.v[0], "agent.out");
	rc = submit_job(c, s,
			&(struct sched_job){.block_dirs = (const char *const *)strv_end(&dirs),
					    .n_block_dirs = n,
					    .output = output},
			crew, n, id, e);
	if (rc == -ERR_TEMP)
		return rc;
	if (rc < 0) {
		give_up(c, crew, n, e ? e->text : "submit failed");
		return rc;
	}
	return query_allocation_submitted(c->ws->db, crew[0]->allocation, id,
					  clock_utc_us(c->ws->clock), e);
}

int allocation_submit(struct campaign *c, const struct stage_row *s, int64_t allocation,
		      struct err *e)
{
	_cleanup_free_ const struct block_row **crew = xcalloc(c->facts.n_blocks + 1, sizeof *crew);
	size_t n = allocation_crew(&c->facts, allocation, crew);

	if (n == 0)
		return err_set(e, ERR_STATE, "allocation %lld has no block to run",
			       (long long)allocation);
	return send_crew(c, s, crew, n, e);
}

/* -- planning --------------------------------------------------------------------------------- */

/* Warm-up runs of the baseline first, then the timed slots in balanced random order. */
static struct slot *plan_slots(const struct campaign *c, const struct stage_row *s, size_t index,
			       const size_t *arms, size_t n_arms, size_t *n)
{
	size_t warm = untimed_of_block(c, s), timed = trials_of_block(c, s, n_arms);
	struct slot *v = xcalloc(warm + timed + 1, sizeof *v);
	_cleanup_free_ size_t *order = xcalloc(timed + 1, sizeof *order);
	_cleanup_free_ int *seen = xcalloc(s->n_arms, sizeof *seen);

	if (timed)
		design_order(c->row.seed, (uint64_t)s->seq, index, n_arms, timed / n_arms, order);
	for (size_t i = 0; i < warm; i++)
		v[i] = (struct slot){.arm = s->arms[0].id, .repeat = (int)i, .kind = SLOT_WARMUP};
	for (size_t i = 0; i < timed; i++) {
		size_t a = arms[order[i]];

		v[warm + i] = (struct slot){
			.arm = s->arms[a].id, .repeat = seen[a]++, .kind = SLOT_TIMED};
	}
	*n = warm + timed;
	return v;
}

/* A new block, the `nth` of this plan. */
static int add_block(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		     size_t ahead, size_t nth, int64_t *id, struct err *e)
{
	_cleanup_free_ size_t *arms = xcalloc(s->n_arms, sizeof *arms);
	_cleanup_free_ struct slot *slots = NULL;
	size_t n_arms = 0, n = 0, index = c->facts.total + nth;
	int rc = ops->block_arms(c, s, ahead, arms, &n_arms, e);

	if (rc < 0)
		return rc;
	slots = plan_slots(c, s, index, arms, n_arms, &n);
	return query_block_add(c->ws->db, s->id, (int)index, slots, n, id, e);
}

/* Those whose last attempt gave nothing come first, then new ones. */
static int gather(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		  size_t most, int64_t *ids, size_t *n, struct err *e)
{
	const struct facts *f = &c->facts;
	size_t added = 0;
	int rc = 0;

	*n = 0;
	for (size_t i = 0; i < f->n_blocks && *n < most; i++) {
		const struct block_row *b = &f->blocks[i];

		if (!facts_block_dropped(b) &&
		    (b->attempt_id == 0 || b->state == ATTEMPT_VOID || b->state == ATTEMPT_LOST))
			ids[(*n)++] = b->id;
	}
	while (rc == 0 && *n < most) {
		rc = add_block(c, s, ops, f->valid + f->in_flight + *n, added++, &ids[*n], e);
		*n += rc == 0;
	}
	return rc;
}

/* Said once: the tries that follow are silent. */
static int put_off(struct campaign *c, const struct block_row *b, struct err *e)
{
	_cleanup_free_ char *why = xstrdup(e && e->text[0] ? e->text : "no answer");

	campaign_tell(c, PROGRESS_NOTE, 0, "block %d is not submitted yet: %s", b->index + 1, why);
	return campaign_event(c, e, "submit", "%s: %s", b->token, why);
}

static void tell_started(struct campaign *c, const struct block_row *const *crew, size_t n)
{
	struct buf b = {0};

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%d (attempt %d)", i ? ", " : "", crew[i]->index + 1,
			   crew[i]->attempt);
	if (n == 1)
		campaign_tell(c, PROGRESS_BLOCK, 0, "block %s started", b.data);
	else
		campaign_tell(c, PROGRESS_BLOCK, 0, "blocks %s started in one allocation", b.data);
	buf_free(&b);
}

/* In an open transaction: the blocks and their allocation. */
static int plan_inside(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		       int64_t *allocation, struct err *e)
{
	size_t most = next_blocks(c, s), n = 0;
	_cleanup_free_ int64_t *ids = xcalloc(most, sizeof *ids);
	char token[64];
	int rc = gather(c, s, ops, most, ids, &n, e);

	return rc < 0 ? rc
		      : query_allocation_plan(c->ws->db, c->row.id, ids, n, c->sched->name,
					      clock_utc_us(c->ws->clock), allocation, token, e);
}

/* Plan an allocation, in one commit; the facts are loaded again. */
static int plan(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		int64_t *allocation, struct err *e)
{
	int64_t stage = s->id;
	int rc = db_begin(c->ws->db, "plan blocks", e);

	if (rc == 0 && (rc = plan_inside(c, s, ops, allocation, e)) == 0)
		rc = db_commit(c->ws->db, e);
	if (rc < 0)
		db_rollback(c->ws->db);
	if (rc < 0 || (rc = facts_load_blocks(c, e)) < 0)
		return rc;
	if (c->facts.n_stages == 0 || c->facts.stages[c->facts.n_stages - 1].id != stage)
		return err_set(e, ERR_STATE, "stage %lld is gone", (long long)stage);
	return 0;
}

int allocation_start(struct campaign *c, const struct stage_row *s, const struct stage_ops *ops,
		     struct err *e)
{
	_cleanup_free_ const struct block_row **crew = NULL;
	int64_t allocation = 0;
	size_t n;
	int rc = plan(c, s, ops, &allocation, e);

	if (rc < 0)
		return rc;
	s = &c->facts.stages[c->facts.n_stages - 1];
	crew = xcalloc(c->facts.n_blocks + 1, sizeof *crew);
	n = allocation_crew(&c->facts, allocation, crew);
	if (n == 0)
		return err_set(e, ERR_STATE, "allocation %lld is gone", (long long)allocation);
	tell_started(c, crew, n);
	rc = send_crew(c, s, crew, n, e);
	if (rc == -ERR_TEMP)
		rc = put_off(c, crew[0], e);
	return rc < 0 ? rc : facts_load_blocks(c, e);
}
