/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/decide.h"
#include "experiments/query.h"
#include "experiments/stats.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/view.h"
#include "orchestrator/method/method.h"
#include "orchestrator/report/report.h"

enum {
	CLAIM_MAX = 1 << 16,       /* bytes of an agent's claim.json; one has 200 */
	SILENT_US = 5 * 60000000L, /* a driver that was not heard of for so long */
};

struct load {
	struct workspace *w;
	const struct recipe *r; /* NULL: not read */
	struct campaign_row row;
	struct facts f; /* stages, hypotheses and verdicts only */
	struct view *v;
};

static const struct stage_row *newest_stage(const struct load *l)
{
	return l->f.n_stages ? &l->f.stages[l->f.n_stages - 1] : NULL;
}

static const struct stage_row *open_stage(const struct load *l)
{
	const struct stage_row *s = newest_stage(l);

	return s && s->open ? s : NULL;
}

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

/* -- what it is and how far -------------------------------------------------------------------- */

static void take_row(struct load *l)
{
	const struct campaign_row *r = &l->row;
	struct view *v = l->v;

	v->id = r->id;
	v->name = xstrdup(r->name);
	v->scheduler = xstrdup(r->scheduler);
	v->state = campaign_state_name(r->state);
	v->running = r->state == CAMPAIGN_RUNNING;
	v->reason = copy(r->reason);
	v->created_us = r->created_us;
	v->ended_us = r->ended_us;
	v->deadline_us = r->deadline_us;
}

static int load_driver(struct load *l, int64_t now_us, struct err *e)
{
	struct lease lease;
	bool held = false;
	int rc = query_lease_get(l->w->db, l->row.id, &lease, &held, e);

	if (rc < 0 || !held || campaign_holder_is_dead(&lease))
		return rc;
	l->v->driver = xasprintf("process %lld on %s", (long long)lease.pid, lease.host);
	if (now_us - lease.heartbeat_us > SILENT_US) {
		char *said = l->v->driver;
		char silent[16];

		view_duration((double)(now_us - lease.heartbeat_us) / 1e6, silent, sizeof silent);
		l->v->driver = xasprintf("%s, silent for %s", said, silent);
		free(said);
	}
	return 0;
}

static int step_of(const struct stage_row *s)
{
	const struct stage_ops *ops = stage_ops_of(s->kind);

	return ops ? ops->step : 0;
}

static void take_steps(struct load *l)
{
	const struct stage_row *s = newest_stage(l);
	struct view *v = l->v;

	for (size_t i = 0; i < l->f.n_stages; i++)
		v->steps |= 1u << step_of(&l->f.stages[i]);
	if (l->f.n_hyps)
		v->steps |= 1u << 2;
	if (s)
		v->step = step_of(s);
	if (v->step < 2 && l->f.n_hyps)
		v->step = 2;
	if (l->row.state == CAMPAIGN_DONE)
		v->step = VIEW_ALL_DONE;
}

static void take_candidates(struct load *l)
{
	const struct facts *f = &l->f;
	int round = f->n_hyps ? f->hyps[f->n_hyps - 1].round : 0;

	for (size_t i = 0; i < f->n_hyps; i++) {
		const struct hypothesis_row *h = &f->hyps[i];

		if (h->round != round || h->state == HYP_LINTED_OUT || h->state == HYP_NOT_TRIED)
			continue;
		l->v->candidates++;
		l->v->candidates_left += h->state == HYP_PROPOSED;
	}
}

static void take_alpha(struct load *l)
{
	struct alpha_ledger ledger;

	if (l->row.confirm_max < 1)
		return;
	ledger = facts_alpha(&l->row, &l->f);
	l->v->alpha = ledger.total;
	l->v->alpha_spent = ledger.spent;
	l->v->tests_left = alpha_ledger_left(&ledger);
}

/* -- the open stage ----------------------------------------------------------------------------
 */

static bool may_end_early(enum stage_kind k)
{
	return k == STAGE_CONFIRM;
}

static void take_stage(struct load *l)
{
	const struct stage_row *s = open_stage(l), *last = newest_stage(l);
	struct view *v = l->v;

	if (!s) {
		if (last)
			v->note = last->note ? xasprintf("%s done: %s", stage_kind_name(last->kind),
							 last->note)
					     : xasprintf("%s done", stage_kind_name(last->kind));
		return;
	}
	v->stage = stage_kind_name(s->kind);
	v->round = s->round;
	v->arms = s->n_arms > 1 ? s->n_arms - 1 : 0;
	v->blocks_planned = s->planned_blocks;
	v->at_most = may_end_early(s->kind);
}

/* The host of the agent that works on an attempt; heap, NULL: none has begun. */
static char *agent_host(const struct load *l, const struct block_row *b)
{
	_cleanup_free_ char *dir = fs_join(l->w->root, b->dir), *path = fs_join(dir, "claim.json");
	_cleanup_(json_freep) struct json *claim = NULL;

	if (json_read_file(path, CLAIM_MAX, &claim, NULL) < 0)
		return NULL;
	return copy(json_text(json_get(claim, "host"), NULL));
}

static void add_node(struct load *l, const char *host)
{
	struct view *v = l->v;
	char *before = v->nodes;
	int more = l->r ? l->r->resources.nodes - 1 : 0;
	_cleanup_free_ char *rest = more > 0 ? xasprintf(" and %d more", more) : xstrdup("");

	v->nodes = xasprintf("%s%s%s%s", before ? before : "", before ? ", " : "", host, rest);
	free(before);
}

/* Blocks of one allocation follow each other: the first that is not done tells whether it runs. */
static void take_flight(struct load *l, const struct block_row *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *host = NULL;
		bool first = true;

		if (!b[i].attempt_id ||
		    (b[i].state != ATTEMPT_PLANNED && b[i].state != ATTEMPT_SUBMITTED))
			continue;
		l->v->blocks_running++;
		for (size_t j = 0; j < i; j++)
			first = first && b[j].allocation != b[i].allocation;
		if (!first)
			continue;
		host = agent_host(l, &b[i]);
		if (host)
			add_node(l, host);
		l->v->jobs_running += host != NULL;
		l->v->jobs_waiting += host == NULL;
	}
}

static int load_blocks(struct load *l, struct err *e)
{
	const struct stage_row *s = open_stage(l);
	struct block_row *b = NULL;
	size_t n = 0, total = 0;
	int rc;

	if (!s)
		return 0;
	if ((rc = query_open_blocks(l->w->db, s->id, &b, &n, &total, e)) < 0)
		return rc;
	l->v->blocks_done = (int)(total - n);
	take_flight(l, b, n);
	block_rows_free(b, n);
	return 0;
}

/* Blocks of these stages hold two arms each: the time of one is a first guess for the next. */
static bool pairwise(enum stage_kind k)
{
	return k == STAGE_AA || k == STAGE_CONFIRM || k == STAGE_FINAL;
}

/* From when the first of the stage's jobs was planned to the newest end of a block, shared among
 * those that ended: so it holds for blocks that run beside each other, and one after the other in
 * one job. What was planned before the campaign stopped last does not count. */
static int pace_of(struct load *l, const struct stage_row *s, int64_t since_us,
		   struct pace_row *pace, double *block_s, struct err *e)
{
	int rc = query_stage_pace(l->w->db, s->id, since_us, pace, e);

	*block_s = rc == 0 && pace->n > 0 && pace->last_us > pace->first_us
			   ? (double)(pace->last_us - pace->first_us) / 1e6 / pace->n
			   : 0;
	return rc;
}

static int load_pace(struct load *l, struct err *e)
{
	const struct stage_row *s = open_stage(l);
	struct event_row stopped = {0};
	struct pace_row pace;
	struct view *v = l->v;
	bool found = false;
	int64_t since;
	int rc;

	if (!s)
		return 0;
	if ((rc = query_event_last(l->w->db, l->row.id, "stopped", "", &stopped, &found, e)) < 0)
		return rc;
	since = found ? stopped.at_us : 0;
	event_row_done(&stopped);
	if ((rc = pace_of(l, s, since, &pace, &v->block_s, e)) < 0)
		return rc;
	if (v->blocks_running && pace.n)
		v->block_start_us = pace.last_us;
	for (size_t i = l->f.n_stages - 1; i-- > 0 && !(v->block_s > 0) && pairwise(s->kind);) {
		const struct stage_row *before = &l->f.stages[i];

		if (!pairwise(before->kind))
			continue;
		if ((rc = pace_of(l, before, 0, &pace, &v->block_s, e)) < 0)
			return rc;
		if (v->block_s > 0)
			v->basis = xstrdup(stage_kind_name(before->kind));
	}
	return 0;
}

/* -- what it shows ------------------------------------------------------------------------------
 */

static bool compares(enum stage_kind k)
{
	return pairwise(k) || k == STAGE_SCREEN || k == STAGE_CANARY;
}

/* The arm to look at: of a screen the one that is ahead. */
static size_t arm_ahead(const struct pairs *p, size_t arms)
{
	double best = -INFINITY;
	size_t ahead = 1;

	for (size_t a = 1; a < arms; a++) {
		_cleanup_free_ double *d = NULL;
		size_t n = pairs_diff(p, a, &d);
		double mean = stats_mean(d, n);

		if (n > 0 && mean > best) {
			best = mean;
			ahead = a;
		}
	}
	return ahead;
}

static void take_effect(struct view *v, const double *d, size_t n)
{
	v->effect = xcalloc(n + 1, sizeof *v->effect);
	for (size_t k = 2; k <= n; k++) {
		struct stats_mean_ci ci = stats_mean_ci(d, k, 0.95);

		v->effect[v->n_effect++] = (struct view_interval){.est = stats_relative(ci.mean),
								  .lo = stats_relative(ci.lo),
								  .hi = stats_relative(ci.hi),
								  .pairs = k};
	}
}

static void take_change(struct load *l, const struct stage_row *s, size_t arm)
{
	const struct hypothesis_row *h = facts_hypothesis(&l->f, s->arms[arm].hypothesis);
	const struct knob *k = h && l->r ? recipe_knob(l->r, h->knob) : NULL;
	struct view *v = l->v;

	if (h && !(k && k->how == HOW_BUNDLE)) {
		v->knob = xstrdup(h->knob);
		v->from = copy(h->from_value);
		v->to = xstrdup(h->value);
	} else if (s->kind == STAGE_AA) {
		v->about = xstrdup("the default against itself");
	} else if (s->kind == STAGE_FINAL || s->kind == STAGE_CONVERGE) {
		v->about = xasprintf("the fix against the default: %s", s->arms[arm].label);
	} else if (s->n_arms > 1) {
		v->about = xasprintf("%s against %s", s->arms[arm].label, s->arms[0].label);
	} else {
		v->about = xstrdup(s->arms[arm].label);
	}
}

static int load_effect(struct load *l, struct err *e)
{
	const struct stage_row *s = open_stage(l);
	_cleanup_free_ double *d = NULL;
	struct pairs p = {0};
	size_t arm = 1, n;
	int rc;

	if (!s || s->n_arms == 0)
		return 0;
	if (!l->r || !compares(s->kind) || s->n_arms < 2) {
		take_change(l, s, s->n_arms > 1);
		return 0;
	}
	if ((rc = pairs_read(l->w->db, l->r, s, &p, e)) < 0)
		return rc;
	if (s->kind == STAGE_SCREEN)
		arm = arm_ahead(&p, s->n_arms);
	n = pairs_diff(&p, arm, &d);
	take_effect(l->v, d, n);
	take_change(l, s, arm);
	pairs_done(&p);
	l->v->band = l->r->min_effect;
	return 0;
}

static int load_fix(struct load *l, struct err *e)
{
	struct fix_row fix = {0};
	struct config config = {0};
	_cleanup_free_ char *text = NULL;
	bool found = false;
	int rc = query_fix_get(l->w->db, l->row.id, &fix, &found, e);

	if (rc < 0 || !found)
		return rc;
	if (fix.config && (rc = query_config_get(l->w->db, fix.config, &config, e)) == 0)
		text = config_text(&config);
	if (rc == 0 && isfinite(fix.est))
		l->v->fix = xasprintf("%s: %s, %+.1f %% [%+.1f, %+.1f]", text ? text : "default",
				      fix.state, 100 * fix.est, 100 * fix.lo, 100 * fix.hi);
	else if (rc == 0)
		l->v->fix = xasprintf("%s: %s", text ? text : "default", fix.state);
	config_done(&config);
	fix_row_done(&fix);
	return rc;
}

/* Values of the newest stages, the oldest first. */
static int load_trials(struct load *l, struct err *e)
{
	struct view *v = l->v;
	size_t room = VIEW_TRIALS;
	int rc = 0;

	if (!l->r)
		return 0;
	v->objective = xstrdup(l->r->objective);
	v->unit = xstrdup(report_unit_of(l->r->objective));
	v->down = l->r->better == BETTER_DOWN;
	v->trials = xcalloc(VIEW_TRIALS, sizeof *v->trials);
	for (size_t i = l->f.n_stages; i-- > 0 && room > 0 && rc == 0;) {
		_cleanup_free_ double *part = NULL;
		size_t n = 0;

		rc = query_stage_recent(l->w->db, l->f.stages[i].id, l->r->objective,
					l->r->objective_stat, room, &part, &n, e);
		if (n)
			memcpy(&v->trials[room - n], part, n * sizeof *part);
		room -= n;
	}
	v->n_trials = VIEW_TRIALS - room;
	memmove(v->trials, &v->trials[room], v->n_trials * sizeof *v->trials);
	return rc;
}

static int load_cost(struct load *l, struct err *e)
{
	struct view *v = l->v;
	int rc = query_spent(l->w->db, l->row.id, &v->trials_all, &v->node_s, e);

	if (rc < 0)
		return rc;
	v->spent_node_s = v->node_s - l->row.resume_node_s;
	v->spent_trials = v->trials_all - l->row.resume_trials;
	if (l->r) {
		const struct budget *b = &l->r->budget;

		v->budget_node_s = b->node_hours * 3600;
		v->budget_gpu_s = b->gpu_hours * 3600;
		v->gpus = l->r->resources.gpus_per_node;
		v->budget_trials = b->trials;
		v->budget_wall_s = b->wall_s;
	}
	return 0;
}

int view_load(struct workspace *w, int64_t id, const struct recipe *r, struct view *out,
	      struct err *e)
{
	struct view v = {0};
	struct load l = {.w = w, .r = r, .v = &v};
	int64_t now_us = clock_utc_us(w->clock);
	int rc = query_campaign_get(w->db, id, &l.row, e);

	if (rc < 0)
		return rc;
	take_row(&l);
	if ((rc = query_stages(w->db, id, &l.f.stages, &l.f.n_stages, e)) == 0 &&
	    (rc = query_hypotheses(w->db, id, &l.f.hyps, &l.f.n_hyps, e)) == 0 &&
	    (rc = query_verdicts(w->db, id, &l.f.verdicts, &l.f.n_verdicts, e)) == 0) {
		take_steps(&l);
		take_candidates(&l);
		take_alpha(&l);
		take_stage(&l);
		if ((rc = load_driver(&l, now_us, e)) == 0 && (rc = load_blocks(&l, e)) == 0 &&
		    (rc = load_pace(&l, e)) == 0 && (rc = load_effect(&l, e)) == 0 &&
		    (rc = load_fix(&l, e)) == 0 && (rc = load_trials(&l, e)) == 0)
			rc = load_cost(&l, e);
	}
	facts_done(&l.f);
	campaign_row_done(&l.row);
	if (rc < 0)
		view_done(&v);
	else
		*out = v;
	return rc;
}

void view_done(struct view *v)
{
	char *const texts[] = {v->name, v->scheduler, v->reason, v->driver, v->note,
			       v->knob, v->from,      v->to,     v->about,  v->objective,
			       v->unit, v->nodes,     v->basis,  v->fix};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	free(v->effect);
	free(v->trials);
	memset(v, 0, sizeof *v);
}
