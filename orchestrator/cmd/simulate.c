/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/decide.h"
#include "experiments/query.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/method/method.h"
#include "orchestrator/sched/fake_truth.h"

enum {
	/* Campaigns that share a workspace: its schema is made once for all of them, and its tables
	 * stay small enough to be quick. */
	WORKSPACE_CAMPAIGNS = 16,
	WAIT_US = 600 * 1000000, /* of virtual time, at most, from one look to the next */
	STEPS_MAX = 100000,      /* of one campaign: far above what any needs */
};
#define START_US 1800000000000000 /* any fixed day */

struct run {
	const struct simulation *s;
	struct simulated *out;
	struct fake_truth truth;
	char *spec;
	struct clock_virtual time;
	struct clock clock;
	struct workspace *ws;
	struct recipe recipe; /* a shallow copy: the seed is ours */
};

/* -- what is true --------------------------------------------------------------------------- */

static struct json *arm_json(const struct config *c)
{
	struct json *o = json_object(), *argv = json_array(), *env = json_object();

	for (size_t i = 0; i < c->argv.n; i++)
		json_add_text(argv, c->argv.v[i]);
	for (size_t i = 0; i < c->env.n; i++)
		if (c->env.v[i].value)
			json_set_text(env, c->env.v[i].key, c->env.v[i].value);
	json_set(o, "argv", argv);
	json_set(o, "env", env);
	return o;
}

/* Log ratio of a metric between two configurations, + is better. */
static double true_log_gain(const struct run *r, const struct config *base,
			    const struct config *arm, const char *metric, enum better better)
{
	struct json *a = arm_json(base), *b = arm_json(arm);
	double y = log(fake_worth(&r->truth, b, metric) / fake_worth(&r->truth, a, metric));

	json_free(a);
	json_free(b);
	return better == BETTER_DOWN ? 0 - y : y; /* never -0 */
}

static bool guard_is_broken(const struct run *r, const struct guard *g, const struct config *base,
			    const struct config *arm)
{
	double gain = true_log_gain(r, base, arm, g->metric, g->better);
	struct json *j = arm_json(arm);
	double value = fake_worth(&r->truth, j, g->metric);

	json_free(j);
	if (value > g->at_most || value < g->at_least)
		return true;
	return g->better == BETTER_NONE ? fabs(gain) > log1p(g->margin) : gain < -log1p(g->margin);
}

static bool harms(const struct run *r, const struct config *base, const struct config *arm)
{
	for (size_t i = 0; i < r->recipe.n_guards; i++)
		if (guard_is_broken(r, &r->recipe.guards[i], base, arm))
			return true;
	return false;
}

/* The configurations of a stage's arm 0 and 1. */
static int stage_configs(const struct run *r, const struct stage_row *s, struct config out[2],
			 struct err *e)
{
	int rc = query_config_get(r->ws->db, s->arms[0].config, &out[0], e);

	return rc < 0 ? rc : query_config_get(r->ws->db, s->arms[1].config, &out[1], e);
}

/* -- counting ------------------------------------------------------------------------------- */

static void count_estimate(struct simulated_estimates *x, double est, double lo, double hi,
			   double truth)
{
	if (!isfinite(est) || !isfinite(truth))
		return;
	x->n++;
	x->sum_error += est - truth;
	x->sum_error2 += (est - truth) * (est - truth);
	x->covered += lo <= truth && truth <= hi;
}

static struct simulated_candidate *candidate(struct simulated *out, const struct hypothesis_row *h)
{
	for (size_t i = 0; i < out->n; i++)
		if (str_eq(out->candidates[i].knob, h->knob) &&
		    str_eq(out->candidates[i].value, h->value))
			return &out->candidates[i];
	return NULL;
}

/* The interval that is shown is taken again from the stored pairs: verdicts keep the rule's own. */
static int count_repeated(struct run *r, struct campaign *c, const struct stage_row *s,
			  double truth, struct err *e)
{
	const struct decide_plan plan = {.mode = r->recipe.mode,
					 .alpha = s->alpha_share,
					 .min_effect = r->recipe.min_effect,
					 .ssr = s->ssr,
					 .df0 = (size_t)s->df0};
	_cleanup_free_ double *d = NULL;
	struct decision found;
	struct pairs p;
	size_t n;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	n = pairs_diff(&p, 1, &d);
	(void)decide_confirm(&plan, d, n, &found);
	pairs_done(&p);
	count_estimate(&r->out->repeated, found.est, found.lo95, found.hi95, truth);
	return 0;
}

struct wins {
	bool is_false, is_true;
};

static int count_confirm(struct run *r, struct campaign *c, const struct stage_row *s,
			 struct wins *w, struct err *e)
{
	const struct verdict_row *v = facts_verdict(&c->facts, s->hypothesis);
	const struct hypothesis_row *h = facts_hypothesis(&c->facts, s->hypothesis);
	struct simulated_candidate *x = h ? candidate(r->out, h) : NULL;
	struct config configs[2] = {0};
	double gain;
	bool won, harm;
	int rc = stage_configs(r, s, configs, e);

	if (rc == 0 && v) {
		gain = true_log_gain(r, &configs[0], &configs[1], r->recipe.objective,
				     r->recipe.better);
		harm = harms(r, &configs[0], &configs[1]);
		won = str_eq(v->outcome, verdict_outcome_name(VERDICT_ACCEPTED));
		w->is_false = w->is_false || (won && (harm || !(gain > 1e-9)));
		w->is_true = w->is_true || (won && !harm && gain > 1e-9);
		if (x) {
			x->tested++;
			x->won += won;
		}
		if (won)
			count_estimate(&r->out->at_stop, v->est, v->lo, v->hi, expm1(gain));
		if (v->look > 0) {
			r->out->confirms++;
			rc = count_repeated(r, c, s, gain, e);
		}
	}
	config_done(&configs[0]);
	config_done(&configs[1]);
	return rc;
}

static int count_final(struct run *r, const struct stage_row *s, int64_t campaign, struct err *e)
{
	struct config configs[2] = {0};
	struct fix_row fix;
	bool found = false;
	int rc = query_fix_get(r->ws->db, campaign, &fix, &found, e);

	if (rc < 0 || !found)
		return rc;
	rc = stage_configs(r, s, configs, e);
	if (rc == 0)
		count_estimate(&r->out->final, fix.est, fix.lo, fix.hi,
			       expm1(true_log_gain(r, &configs[0], &configs[1], r->recipe.objective,
						   r->recipe.better)));
	config_done(&configs[0]);
	config_done(&configs[1]);
	fix_row_done(&fix);
	return rc;
}

/* Timed trials of the stages whose number of blocks is fixed: A/A, final and soak. */
static double fixed_runs(const struct run *r, const struct facts *f)
{
	double n = 0;

	for (size_t i = 0; i < f->n_stages; i++)
		if (f->stages[i].kind == STAGE_AA || f->stages[i].kind == STAGE_FINAL)
			n += (double)f->stages[i].planned_blocks * (double)f->stages[i].n_arms *
			     r->recipe.repeats;
		else if (f->stages[i].kind == STAGE_SOAK)
			n += r->recipe.soak_trials;
	return n;
}

static int count_campaign(struct run *r, struct campaign *c, struct err *e)
{
	const struct facts *f = &c->facts;
	struct cost_row cost = {0};
	struct wins w = {0};
	int rc = query_cost(r->ws->db, c->row.id, &cost, e);

	for (size_t i = 0; i < f->n_stages && rc == 0; i++) {
		if (f->stages[i].kind == STAGE_CONFIRM)
			rc = count_confirm(r, c, &f->stages[i], &w, e);
		else if (f->stages[i].kind == STAGE_FINAL)
			rc = count_final(r, &f->stages[i], c->row.id, e);
	}
	r->out->campaigns++;
	r->out->unfinished += c->row.state != CAMPAIGN_DONE;
	r->out->false_wins += w.is_false;
	r->out->true_wins += w.is_true;
	r->out->attempts += (long)cost.attempts;
	r->out->voids += (long)cost.attempts_void;
	r->out->runs += (double)cost.trials_timed;
	r->out->runs_search += (double)cost.trials_timed - fixed_runs(r, f);
	r->out->runs_all += (double)cost.trials_all;
	r->out->node_s += cost.node_s;
	return rc;
}

/* -- running -------------------------------------------------------------------------------- */

static int drive(struct campaign *c, struct err *e)
{
	enum campaign_step step = CAMPAIGN_AGAIN;
	int rc = 0;

	for (int i = 0; i < STEPS_MAX && rc == 0 && step != CAMPAIGN_OVER; i++) {
		rc = campaign_step(c, &step, e);
		if (rc == 0 && (step == CAMPAIGN_WAIT || step == CAMPAIGN_LATER))
			rc = campaign_wait(c, WAIT_US, -1, e);
	}
	if (rc == 0 && step != CAMPAIGN_OVER)
		rc = err_set(e, ERR_STATE, "a campaign is not over after %d steps", STEPS_MAX);
	return rc;
}

static int one_campaign(struct run *r, long i, struct err *e)
{
	const struct campaign_options o = {
		.sched = sched_find("fake"), .recipe = &r->recipe, .spec = r->spec};
	struct rng seed = rng_at(r->s->seed, 1, (uint64_t)i, 0);
	struct campaign *c = NULL;
	int64_t id;
	int rc;

	r->recipe.seed = (rng_u64(&seed) >> 16) | 1; /* 48 bits, as campaigns have; 0 means none */
	rc = campaign_create(r->ws, &r->recipe, r->s->sources, r->s->path, "fake", &id, e);
	if (rc == 0)
		rc = campaign_open(r->ws, id, &o, &c, e);
	if (rc == 0)
		rc = drive(c, e);
	if (rc == 0)
		rc = count_campaign(r, c, e);
	campaign_close(c);
	return rc;
}

static int list_candidates(struct run *r, struct err *e)
{
	const struct recipe *x = &r->recipe;
	struct config base = {0};
	struct kvs none = {0};
	size_t cap = 0;
	int rc = config_build(x, &none, &base, e);

	for (size_t i = 0; i < x->n_knobs && rc == 0; i++)
		for (size_t j = 0; j < x->knobs[i].values.n && rc == 0; j++) {
			struct simulated *o = r->out;
			struct config arm = {0};
			struct kvs set = {0};

			kvs_set(&set, x->knobs[i].name, x->knobs[i].values.v[j]);
			rc = config_build(x, &set, &arm, e);
			kvs_free(&set);
			if (rc < 0)
				break;
			o->candidates = xgrow(o->candidates, o->n, &cap, sizeof *o->candidates);
			o->candidates[o->n++] = (struct simulated_candidate){
				.knob = xstrdup(x->knobs[i].name),
				.value = xstrdup(x->knobs[i].values.v[j]),
				.gain = expm1(
					true_log_gain(r, &base, &arm, x->objective, x->better)),
				.harms = harms(r, &base, &arm)};
			config_done(&arm);
		}
	config_done(&base);
	return rc;
}

static int check_objective(const struct run *r, struct err *e)
{
	struct json *arm = json_object();
	bool known = isfinite(fake_worth(&r->truth, arm, r->recipe.objective));

	json_free(arm);
	if (known)
		return 0;
	return err_set(e, ERR_RECIPE,
		       "the truth says nothing about the objective %s: \"metrics\": {\"%s\": 1} "
		       "gives it a value, \"metric_effects\" what settings make of it",
		       r->recipe.objective, r->recipe.objective);
}

static void leave_workspace(struct run *r)
{
	int64_t commits, statements;

	if (!r->ws)
		return;
	db_counters(r->ws->db, &commits, &statements);
	r->out->commits += commits;
	r->out->statements += statements;
	workspace_close(r->ws);
	r->ws = NULL;
}

static int fresh_workspace(struct run *r, struct err *e)
{
	leave_workspace(r);
	return workspace_open(WORKSPACE_MEMORY, DB_CREATE, &r->clock, &r->ws, e);
}

static int run_all(struct run *r, struct err *e)
{
	int rc = check_objective(r, e);

	if (rc == 0)
		rc = list_candidates(r, e);
	for (long i = 0; i < r->s->campaigns && rc == 0; i++) {
		if (i % WORKSPACE_CAMPAIGNS == 0)
			rc = fresh_workspace(r, e);
		if (rc == 0)
			rc = one_campaign(r, i, e);
	}
	return rc;
}

int simulate_run(const struct simulation *s, struct simulated *out, struct err *e)
{
	struct run r = {.s = s, .out = out, .recipe = *s->recipe, .time = {START_US, 0}};
	int rc = -ERR_PARSE;

	memset(out, 0, sizeof *out);
	r.clock = clock_virtual_of(&r.time);
	r.spec = simulate_spec(s->recipe, s->truth, e);
	if (r.spec && (rc = fake_truth_read(r.spec, &r.truth, e)) == 0)
		rc = run_all(&r, e);
	leave_workspace(&r);
	fake_truth_free(&r.truth);
	free(r.spec);
	if (rc < 0)
		simulated_done(out);
	return rc;
}

void simulated_done(struct simulated *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->candidates[i].knob);
		free(r->candidates[i].value);
	}
	free(r->candidates);
	memset(r, 0, sizeof *r);
}
