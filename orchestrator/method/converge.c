/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The long run of a fix that changes the training itself. Default and fix side by side in paired
 * blocks, one a seed, each for the declared steps from the first one on; judged is the loss (or the
 * declared metric) at equal steps, or at equal samples or tokens where a step takes more of them:
 * non-inferiority with the declared margin, one look. Held: the fix is validated. Not held, also
 * when the seeds do not settle it: it is rejected, since the burden of proof is with the change.
 */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum { WINDOWS_OF_LONG_RUN = 10 }; /* of the measured window, when no steps are declared */

struct workload method_workload(const struct recipe *r, enum stage_kind k)
{
	struct workload w = r->workload;
	int64_t window = w.warmup_steps + w.steps;

	if (k == STAGE_PROFILE && w.steps > 0)
		w.steps = PROFILE_STEPS;
	if (k != STAGE_CONVERGE)
		return w;
	if (w.steps > 0) {
		w.steps = r->converge.steps > 0 ? r->converge.steps : window * WINDOWS_OF_LONG_RUN;
		w.warmup_steps = 0;
		w.trial_limit_s *= (w.steps + window - 1) / window;
	}
	if (r->converge.trial_limit_s > 0)
		w.trial_limit_s = r->converge.trial_limit_s;
	return w;
}

/* -- the plan --------------------------------------------------------------------------------- */

static int check_fix(struct campaign *c, struct fix_row *fix, struct err *e)
{
	bool found = false;
	int rc = query_fix_get(c->ws->db, c->row.id, fix, &found, e);

	if (rc < 0)
		return rc;
	if (!found)
		return err_set(e, ERR_STATE,
			       "campaign %lld has no fix; a long run needs one that is accepted, "
			       "pending convergence",
			       (long long)c->row.id);
	if (!str_eq(fix->state, "accepted, pending convergence")) {
		rc = err_set(e, ERR_STATE,
			     "the fix of campaign %lld is %s: only one that is accepted, pending "
			     "convergence, needs a long run",
			     (long long)c->row.id, fix->state);
		fix_row_done(fix);
		return rc;
	}
	return 0;
}

static int plan_stage(struct campaign *c, const struct fix_row *fix, struct err *e)
{
	struct arm_plan arms[2] = {{.label = xstrdup("default")}, {.hypothesis = 0}};
	struct stage_row s = {.kind = STAGE_CONVERGE, .planned_blocks = c->recipe->converge.seeds};
	int rc = campaign_default(c, &arms[0].config, e);

	if (rc == 0)
		rc = query_config_get(c->ws->db, fix->config, &arms[1].config, e);
	if (rc == 0) {
		arms[1].label = config_text(&arms[1].config);
		rc = stage_plan(c, &s, arms, 2, e);
	}
	for (size_t i = 0; i < 2; i++) {
		config_done(&arms[i].config);
		free(arms[i].label);
	}
	return rc;
}

int converge_plan(struct campaign *c, struct err *e)
{
	const struct stage_row *last = c->facts.n_stages ? &c->facts.stages[c->facts.n_stages - 1]
							 : NULL;
	struct fix_row fix = {0};
	int rc;

	/* One that was begun goes on; concluded and not yet finished is nearly done. */
	if (last && last->kind == STAGE_CONVERGE && c->row.state == CAMPAIGN_RUNNING)
		return last->open ? campaign_reopen(c, 0, e) : 0;
	if (c->row.state == CAMPAIGN_RUNNING && last && last->open)
		return err_set(e, ERR_STATE,
			       "campaign %lld is not done: `fettle resume %lld` first",
			       (long long)c->row.id, (long long)c->row.id);
	if ((rc = check_fix(c, &fix, e)) < 0)
		return rc;
	rc = plan_stage(c, &fix, e);
	fix_row_done(&fix);
	/* The long run has the bounds that it declares. */
	return rc < 0 ? rc : campaign_reopen(c, 0, e);
}

int campaign_converge(struct workspace *w, int64_t id, const struct campaign_options *o,
		      struct err *e)
{
	struct campaign *c = NULL;
	int rc = campaign_open(w, id, o, &c, e);

	if (rc == 0)
		rc = converge_plan(c, e);
	campaign_close(c);
	return rc;
}

/* -- the stage -------------------------------------------------------------------------------- */

/* What was found, before it is put into words. */
struct held {
	struct guard_results guard;
	struct pairs pairs;
	const char *state; /* of the fix */
};

static int find_out(struct campaign *c, const struct stage_row *s, struct held *f, struct err *e)
{
	const struct converge *cv = &c->recipe->converge;
	const struct metric_def *def = metric_def_find(cv->metric);
	const struct guard g = {.metric = cv->metric,
				.stat = cv->stat,
				.margin = cv->margin,
				.at_most = NAN,
				.at_least = NAN,
				.better = def ? def->better : BETTER_DOWN};
	size_t pairs;
	int rc = pairs_load(c, s, &f->pairs, e);

	if (rc == 0)
		rc = pairs_one_guard(c, s, 1, &g, &f->guard, e);
	if (rc < 0)
		return rc;
	pairs = f->guard.n ? (size_t)f->guard.v[0].n : 0;
	if (f->pairs.failed[1] > f->pairs.failed[0])
		f->state = "rejected: loss not held";
	else if (pairs < 2)
		f->state = "accepted, pending convergence";
	else
		f->state = f->guard.worst == DECIDE_GUARD_PASSED ? "validated"
								 : "rejected: loss not held";
	return 0;
}

static char *words_of(const struct campaign *c, const struct held *f)
{
	const struct guard_row *g = f->guard.n ? &f->guard.v[0] : NULL;
	const struct workload w = method_workload(c->recipe, STAGE_CONVERGE);

	if (f->pairs.failed[1] > f->pairs.failed[0])
		return xasprintf("%s: %zu of %zu long runs of the fix failed (default %zu of %zu): "
				 "%s",
				 f->state, f->pairs.failed[1], f->pairs.trials[1],
				 f->pairs.failed[0], f->pairs.trials[0],
				 f->pairs.fail_reason[1] ? f->pairs.fail_reason[1] : "no reason");
	if (!g || g->n < 2)
		return xasprintf("not judged: %d pairs of long runs have %s; two are needed",
				 g ? g->n : 0, c->recipe->converge.metric);
	return xasprintf("%s: %s at equal %s %+.2f %% worse [%+.2f, %+.2f], margin %.2f %%, over "
			 "%d seeds of %lld steps%s",
			 f->state, g->metric, g->equal, 100 * g->worsening, 100 * g->lo,
			 100 * g->hi, 100 * g->bound, g->n, (long long)w.steps,
			 f->guard.worst == DECIDE_GUARD_UNSETTLED ? " (not settled by so few seeds)"
								  : "");
}

static int put_state(struct campaign *c, const char *state, struct err *e)
{
	struct fix_row fix = {0};
	bool found = false;
	int64_t id;
	int rc = query_fix_get(c->ws->db, c->row.id, &fix, &found, e);

	if (rc < 0 || !found)
		return rc < 0 ? rc : err_set(e, ERR_STATE, "the fix is gone");
	free(fix.state);
	fix.state = xstrdup(state);
	rc = query_fix_put(c->ws->db, &fix, &id, e);
	fix_row_done(&fix);
	return rc;
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	struct held f = {0};
	_cleanup_free_ char *note = NULL;
	int rc = find_out(c, s, &f, e);

	if (rc == 0) {
		note = words_of(c, &f);
		campaign_tell(c, PROGRESS_VERDICT, 5, "convergence: %s", note);
		rc = put_state(c, f.state, e);
	}
	if (rc == 0)
		rc = query_stage_close(c->ws->db, s->id, note, e);
	guard_results_done(&f.guard);
	pairs_done(&f.pairs);
	return rc;
}

const struct stage_ops converge_converge = {.kind = STAGE_CONVERGE,
					    .step = 5,
					    .wanted = stage_fixed_blocks,
					    .block_arms = stage_all_arms,
					    .conclude = conclude};
