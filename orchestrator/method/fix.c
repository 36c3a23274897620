/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 5, fixing: the incumbent against the original default on a number of blocks fixed
 * beforehand. That estimate is the one reported, whatever it shows. Guards are tested there, too:
 * each winner was held against the incumbent of its time, and small losses add up. Then a short
 * soak looks for drift and for limits that are broken later.
 */
#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

enum { SOAK_TRIALS_MIN = 3 }; /* a line through two points has no error */

/* How much longer slow steps may be in the soak: the p99 of a hundred steps is the slowest of them
 * and moves by several percent from trial to trial. */
static const double SOAK_TAIL_MARGIN = 0.10;

#define FIX_BREAKS_GUARD "rejected: guard"

/* -- the final stage -------------------------------------------------------------------------- */

/* The nodes that confirm blocks ran on, comma separated, each once; heap, NULL: none known. */
static int confirm_nodes(struct campaign *c, char **out, int *n, struct err *e)
{
	struct node_row *v = NULL;
	struct strv seen = {0};
	struct buf b = {0};
	size_t rows = 0;
	int rc = query_nodes(c->ws->db, c->row.id, &v, &rows, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < rows; i++) {
		bool again = v[i].kind != STAGE_CONFIRM;

		for (size_t k = 0; !again && k < seen.n; k++)
			again = str_eq(seen.v[k], v[i].node);
		if (again)
			continue;
		buf_printf(&b, "%s%s", seen.n ? "," : "", v[i].node);
		strv_add(&seen, v[i].node);
	}
	*n = (int)seen.n;
	*out = seen.n ? buf_take(&b) : NULL;
	buf_free(&b);
	strv_free(&seen);
	node_rows_free(v, rows);
	return 0;
}

/* Other nodes than those that chose the winner: a gain that belongs to a node and not to the
 * setting is not seen again there. *avoid: heap, NULL: none. */
static int place(struct campaign *c, char **avoid, struct err *e)
{
	_cleanup_free_ char *nodes = NULL;
	int n = 0, rc = confirm_nodes(c, &nodes, &n, e);

	*avoid = NULL;
	return rc < 0 ? rc
		      : place_away(c, "final stage", "those of the confirm blocks", nodes, n, avoid,
				   e);
}

int fix_plan_final(struct campaign *c, struct err *e)
{
	struct arm_plan arms[2] = {{.label = xstrdup("default")}, {.hypothesis = 0}};
	struct stage_row s = {
		.kind = STAGE_FINAL,
		.planned_blocks = c->recipe->final_blocks > 0
					  ? c->recipe->final_blocks
					  : allocation_unit(c) *
						    (int)design_final_blocks(c->row.mode)};
	int rc = campaign_default(c, &arms[0].config, e);

	if (rc == 0)
		rc = campaign_incumbent(c, &arms[1].config, e);
	if (rc == 0)
		rc = place(c, &s.avoid_nodes, e);
	if (rc == 0) {
		arms[1].label = config_text(&arms[1].config);
		campaign_tell(c, PROGRESS_STEP, 5,
			      "fixing: %s against the original default, %d fresh blocks%s%s",
			      arms[1].label, s.planned_blocks,
			      s.avoid_nodes ? ", on other nodes than " : "",
			      s.avoid_nodes ? s.avoid_nodes : "");
		rc = stage_plan(c, &s, arms, 2, e);
	}
	free(s.avoid_nodes);
	for (size_t i = 0; i < 2; i++) {
		config_done(&arms[i].config);
		free(arms[i].label);
	}
	return rc;
}

int fix_plan_soak(struct campaign *c, struct err *e)
{
	struct arm_plan arm = {0};
	struct stage_row s = {.kind = STAGE_SOAK, .planned_blocks = 1};
	int rc = campaign_incumbent(c, &arm.config, e);

	if (rc == 0) {
		arm.label = config_text(&arm.config);
		campaign_tell(c, PROGRESS_STAGE, 5, "soak: %d trials of %s in a row",
			      c->recipe->soak_trials, arm.label);
		rc = stage_plan(c, &s, &arm, 1, e);
	}
	config_done(&arm.config);
	free(arm.label);
	return rc;
}

/* Any knob in the fix that may change the training itself keeps it pending. */
static int pending(struct campaign *c, int64_t config, bool *out, struct err *e)
{
	struct config fix = {0};
	int rc = query_config_get(c->ws->db, config, &fix, e);

	*out = false;
	for (size_t i = 0; rc == 0 && i < fix.settings.n; i++) {
		const struct knob *k = recipe_knob(c->recipe, fix.settings.v[i].key);

		*out = *out || !k || k->cls != CLASS_NEUTRAL;
	}
	config_done(&fix);
	return rc;
}

const char *fix_state(const struct stats_mean_ci *ci, enum decide_guard guard, bool is_pending)
{
	if (guard == DECIDE_GUARD_VIOLATED) /* also when each of its trials failed */
		return FIX_BREAKS_GUARD;
	if (ci->n == 0)
		return "not measured";
	if (!(ci->lo > 0))
		return "gain not seen again";
	return is_pending ? "accepted, pending convergence" : "validated";
}

static int store_guards(struct campaign *c, const struct stage_row *s, struct guard_results *g,
			struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < g->n; i++) {
		g->v[i].stage = s->id;
		rc = query_fix_guard_add(c->ws->db, &g->v[i], e);
	}
	return rc;
}

static int put_final(struct campaign *c, const struct stage_row *s, const struct stats_mean_ci *ci,
		     const struct guard_results *g, struct err *e)
{
	_cleanup_free_ char *fingerprint = NULL, *note = NULL;
	struct fix_row fix = {.campaign = c->row.id,
			      .config = s->arms[1].config,
			      .stage = s->id,
			      .est = stats_relative(ci->mean),
			      .lo = stats_relative(ci->lo),
			      .hi = stats_relative(ci->hi),
			      .n = (int)ci->n,
			      .reason = g->text,
			      .soak_drift = NAN,
			      .at_us = clock_utc_us(c->ws->clock)};
	int64_t id;
	bool waits;
	int rc = pending(c, s->arms[1].config, &waits, e);

	if (rc == 0)
		rc = fingerprint_of_stage(c->ws->db, s->id, &fingerprint, e);
	if (rc < 0)
		return rc;
	fix.fingerprint = fingerprint;
	fix.state = (char *)fix_state(ci, g->worst, waits);
	note = xasprintf("%s: %+.1f %% [%+.1f, %+.1f] against the original default over %zu "
			 "blocks%s%s",
			 fix.state, 100 * fix.est, 100 * fix.lo, 100 * fix.hi, ci->n,
			 g->text ? "; " : "", g->text ? g->text : "");
	campaign_tell(c, PROGRESS_STAGE, 5, "%s", note);
	rc = query_fix_put(c->ws->db, &fix, &id, e);
	return rc < 0 ? rc : query_stage_close(c->ws->db, s->id, note, e);
}

int fix_measured(struct campaign *c, const struct stage_row *s, struct stats_mean_ci *ci,
		 struct guard_results *guards, struct err *e)
{
	_cleanup_free_ double *d = NULL;
	struct pairs p;
	size_t n;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	n = pairs_diff(&p, 1, &d);
	*ci = stats_mean_ci(d, n, 0.95);
	rc = pairs_guard_results(c, s, 1, &p, guards, e);
	pairs_done(&p);
	return rc;
}

/* What a soak or a long run made of the state since is not looked at: only whether the final stage
 * would still say what lets them begin. */
static int again_final(struct campaign *c, const struct stage_row *s, struct campaign_again *out,
		       struct err *e)
{
	struct guard_results guards = {0};
	struct stats_mean_ci ci = {0};
	struct fix_row fix = {0};
	bool found = false, holds;
	int rc = query_fix_get(c->ws->db, c->row.id, &fix, &found, e);

	if (rc == 0 && found && fix.stage == s->id &&
	    (rc = fix_measured(c, s, &ci, &guards, e)) == 0) {
		const char *is = fix_state(&ci, guards.worst, false);

		holds = str_eq(is, "validated") &&
			(str_eq(fix.state, "accepted, pending convergence") ||
			 str_eq(fix.state, "rejected: loss not held") ||
			 facts_stage(&c->facts, STAGE_SOAK, 0));
		out->was = xstrdup(fix.state);
		out->is = xstrdup(holds ? fix.state : is);
		out->est = fix.est;
		out->est_is = stats_relative(ci.mean);
	}
	guard_results_done(&guards);
	fix_row_done(&fix);
	return rc;
}

static int conclude_final(struct campaign *c, const struct stage_row *s, struct err *e)
{
	struct guard_results guards = {0};
	struct stats_mean_ci ci = {0};
	int rc = fix_measured(c, s, &ci, &guards, e);

	if (rc == 0 && (rc = store_guards(c, s, &guards, e)) == 0)
		rc = put_final(c, s, &ci, &guards, e);
	guard_results_done(&guards);
	return rc;
}

/* -- the soak --------------------------------------------------------------------------------- */

/* Logs of a metric over the ok trials of an arm (0: all), sign so that + is better; heap. */
static int logs_of(struct campaign *c, int64_t stage, int64_t arm, const char *metric,
		   const char *stat, double sign, double **y, size_t *k, struct err *e)
{
	struct value_row *v = NULL;
	size_t n = 0;
	int rc = query_stage_values(c->ws->db, stage, metric, stat, &v, &n, e);

	*k = 0;
	*y = xcalloc(n + 1, sizeof **y);
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (v[i].state == TRIAL_OK && v[i].value > 0 && (!arm || v[i].arm == arm))
			(*y)[(*k)++] = sign * log(v[i].value);
	value_rows_free(v, n);
	return rc;
}

/* The slow steps of the soak against those of the final stage; heap, NULL: nothing to say. */
static int tail_text(struct campaign *c, const struct stage_row *s, char **out, struct err *e)
{
	const struct stage_row *final = facts_stage(&c->facts, STAGE_FINAL, 0);
	_cleanup_free_ double *soak = NULL, *before = NULL;
	size_t n_soak, n_before;
	double d;
	int rc;

	*out = NULL;
	if (!final || final->n_arms < 2)
		return 0;
	if ((rc = logs_of(c, s->id, 0, "step_time_ms", "p99", 1, &soak, &n_soak, e)) < 0 ||
	    (rc = logs_of(c, final->id, final->arms[1].id, "step_time_ms", "p99", 1, &before,
			  &n_before, e)) < 0)
		return rc;
	d = expm1(stats_mean(soak, n_soak) - stats_mean(before, n_before));
	if (isfinite(d))
		*out = xasprintf("p99 of the step time %+.1f %% against the final stage's: %s",
				 100 * d,
				 d > SOAK_TAIL_MARGIN ? "the tail is longer" : "no longer tail");
	else
		*out = xstrdup("no p99 of the step time to compare");
	if (d > SOAK_TAIL_MARGIN)
		rc = campaign_event(c, e, "soak", "%s", *out);
	return rc;
}

/* Drift over the soak: slope a trial times the trials, on the log scale, + is faster. It is called
 * one when its error allows it and it is as large as the smallest useful effect. */
static int drift_text(struct campaign *c, const struct stage_row *s, double *drift, char **out,
		      struct err *e)
{
	double sign = c->recipe->better == BETTER_DOWN ? -1 : 1;
	_cleanup_free_ double *y = NULL;
	struct stats_trend t;
	size_t k;
	bool drifts;
	int rc = logs_of(c, s->id, 0, c->recipe->objective, c->recipe->objective_stat, sign, &y, &k,
			 e);

	if (rc < 0)
		return rc;
	t = stats_trend(y, k);
	*drift = k >= SOAK_TRIALS_MIN ? expm1(t.slope * (double)k) : NAN;
	drifts = isfinite(*drift) && t.p_two_sided < 0.05 && fabs(*drift) >= c->recipe->min_effect;
	*out = isfinite(*drift) ? xasprintf("drift over %zu trials %+.2f %% (p %.2g): %s", k,
					    100 * *drift, t.p_two_sided,
					    !drifts      ? "none to speak of"
					    : *drift < 0 ? "it gets slower"
							 : "it gets faster")
				: xasprintf("%zu trials are too few to speak of drift", k);
	return drifts ? campaign_event(c, e, "soak", "%s", *out) : 0;
}

/* How much worse the soak's mean of a guard's metric is than that of the default in the final
 * stage, relative; NAN: not known. Other allocations: it decides nothing. */
static int worse_than_default(struct campaign *c, const struct stage_row *s,
			      const struct stage_row *final, const struct guard *g, double *out,
			      struct err *e)
{
	struct value_row *v[2] = {NULL, NULL};
	double sum[2] = {0, 0};
	size_t n[2] = {0, 0}, k[2] = {0, 0};
	int rc = query_stage_values(c->ws->db, final->id, g->metric, g->stat, &v[0], &n[0], e);

	if (rc == 0)
		rc = query_stage_values(c->ws->db, s->id, g->metric, g->stat, &v[1], &n[1], e);
	for (int i = 0; rc == 0 && i < 2; i++) {
		for (size_t r = 0; r < n[i]; r++)
			if (v[i][r].state == TRIAL_OK && isfinite(v[i][r].value) &&
			    (i || v[i][r].arm == final->arms[0].id)) {
				sum[i] += v[i][r].value;
				k[i]++;
			}
	}
	value_rows_free(v[0], n[0]);
	value_rows_free(v[1], n[1]);
	*out = (sum[1] / (double)k[1] - sum[0] / (double)k[0]) / fabs(sum[0] / (double)k[0]);
	if (g->better == BETTER_UP)
		*out = -*out;
	else if (g->better == BETTER_NONE)
		*out = fabs(*out);
	return rc;
}

/* Margins in the soak: a loss that creeps, memory that grows. */
static int margins_text(struct campaign *c, const struct stage_row *s,
			const struct stage_row *final, struct buf *out, struct err *e)
{
	const struct recipe *r = c->recipe;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->n_guards; i++) {
		const struct guard *g = &r->guards[i];
		_cleanup_free_ char *text = NULL;
		double worse;

		/* At equal samples the curves of a pair are compared: there are no pairs here. */
		if (isnan(g->margin) || guard_needs_curve(g, r))
			continue;
		rc = worse_than_default(c, s, final, g, &worse, e);
		if (rc < 0 || !(worse > g->margin))
			continue;
		text = xasprintf("guard %s (%s): %+.2f %% worse than the default in the final "
				 "stage, margin %.2f %%: look into it",
				 g->metric, g->stat, 100 * worse, 100 * g->margin);
		buf_printf(out, "; %s", text);
		rc = campaign_event(c, e, "soak", "%s", text);
	}
	return rc;
}

/* Limits and failures of the soak's own trials are judged: they need no pairs. */
static int soak_guards(struct campaign *c, const struct stage_row *s, struct guard_results *out,
		       struct buf *margins, struct err *e)
{
	const struct stage_row *final = facts_stage(&c->facts, STAGE_FINAL, 0);
	struct pairs alone = {0}, base = {0};
	int rc;

	if (!final || final->n_arms < 2)
		return 0;
	if ((rc = pairs_load(c, s, &alone, e)) == 0 && (rc = pairs_load(c, final, &base, e)) == 0 &&
	    (rc = pairs_alone(c, s, &alone, &base, out, e)) == 0 &&
	    (rc = store_guards(c, s, out, e)) == 0)
		rc = margins_text(c, s, final, margins, e);
	pairs_done(&alone);
	pairs_done(&base);
	return rc;
}

static int put_soak(struct campaign *c, double drift, const struct guard_results *g, struct err *e)
{
	struct fix_row fix = {0};
	bool found = false;
	int64_t id;
	int rc = query_fix_get(c->ws->db, c->row.id, &fix, &found, e);

	if (rc < 0 || !found)
		return rc;
	fix.soak_drift = drift;
	if (g->worst == DECIDE_GUARD_VIOLATED && !str_eq(fix.state, FIX_BREAKS_GUARD)) {
		free(fix.state);
		free(fix.reason);
		fix.state = xstrdup(FIX_BREAKS_GUARD);
		fix.reason = xasprintf("in the soak: %s", g->text);
	}
	rc = query_fix_put(c->ws->db, &fix, &id, e);
	fix_row_done(&fix);
	return rc;
}

static int conclude_soak(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ char *drift = NULL, *tail = NULL, *note = NULL;
	struct guard_results guards = {0};
	struct buf margins = {0};
	double value = NAN;
	int rc;

	if ((rc = drift_text(c, s, &value, &drift, e)) == 0 &&
	    (rc = tail_text(c, s, &tail, e)) == 0 &&
	    (rc = soak_guards(c, s, &guards, &margins, e)) == 0) {
		note = xasprintf("%s%s%s%s%s%s", drift, tail ? "; " : "", tail ? tail : "",
				 guards.text ? "; " : "", guards.text ? guards.text : "",
				 margins.data ? margins.data : "");
		campaign_tell(c, PROGRESS_STAGE, 5, "soak: %s", note);
		rc = put_soak(c, value, &guards, e);
	}
	if (rc == 0)
		rc = query_stage_close(c->ws->db, s->id, note, e);
	guard_results_done(&guards);
	buf_free(&margins);
	return rc;
}

/* -- the end ---------------------------------------------------------------------------------- */

/* Hypotheses that no stage came to. */
static int close_hypotheses(struct campaign *c, struct err *e)
{
	for (size_t i = 0; i < c->facts.n_hyps; i++) {
		const struct hypothesis_row *h = &c->facts.hyps[i];
		bool screened = facts_stage(&c->facts, STAGE_SCREEN, h->round) != NULL;
		int rc;

		if (h->state != HYP_PROPOSED)
			continue;
		rc = query_hypothesis_state(c->ws->db, h->id,
					    screened ? HYP_SCREENED_OUT : HYP_NOT_TRIED,
					    screened ? "better than the baseline in the screen, "
						       "but another was confirmed or no "
						       "confirm stage was left"
						     : "no confirm stage was left",
					    e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int fix_finish(struct campaign *c, struct err *e)
{
	struct db *db = c->ws->db;
	int rc = db_begin(db, "finish", e);

	if (rc == 0 && (rc = close_hypotheses(c, e)) == 0 &&
	    (rc = query_campaign_state(db, c->row.id, CAMPAIGN_DONE, NULL,
				       clock_utc_us(c->ws->clock), e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0) {
		db_rollback(db);
		return rc;
	}
	c->row.state = CAMPAIGN_DONE;
	if (!facts_last_accepted(&c->facts) && !c->recipe->canary.blocks)
		campaign_tell(c, PROGRESS_STEP, 5,
			      "fixing: nothing was accepted, so there is nothing to fix");
	return 0;
}

const struct stage_ops fix_final = {.kind = STAGE_FINAL,
				    .step = 5,
				    .wanted = stage_fixed_blocks,
				    .block_arms = stage_all_arms,
				    .conclude = conclude_final,
				    .again = again_final};
const struct stage_ops fix_soak = {.kind = STAGE_SOAK,
				   .step = 5,
				   .wanted = stage_fixed_blocks,
				   .block_arms = stage_all_arms,
				   .conclude = conclude_soak};
