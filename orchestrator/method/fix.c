/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 5, fixing: the incumbent against the original default on a number of blocks fixed
 * beforehand. That estimate is the one reported, whatever it shows. Then a short soak looks for
 * drift.
 */
#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

enum { SOAK_TRIALS_MIN = 3 }; /* a line through two points has no error */

int fix_plan_final(struct campaign *c, struct err *e)
{
	struct arm_plan arms[2] = {{.label = xstrdup("default")}, {.hypothesis = 0}};
	struct stage_row s = {.kind = STAGE_FINAL,
			      .planned_blocks = c->recipe->final_blocks > 0
							? c->recipe->final_blocks
							: (int)design_final_blocks(c->row.mode)};
	int rc = campaign_default(c, &arms[0].config, e);

	if (rc == 0)
		rc = campaign_incumbent(c, &arms[1].config, e);
	if (rc == 0) {
		arms[1].label = config_text(&arms[1].config);
		campaign_tell(c, PROGRESS_STEP, 5,
			      "fixing: %s against the original default, %d fresh blocks",
			      arms[1].label, s.planned_blocks);
		rc = stage_plan(c, &s, arms, 2, e);
	}
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

static int fixed_number(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	(void)c, (void)e;
	*out = (size_t)s->planned_blocks;
	return 0;
}

static int all_arms(struct campaign *c, const struct stage_row *s, size_t valid, size_t *out,
		    size_t *n, struct err *e)
{
	(void)c, (void)valid, (void)e;
	for (size_t i = 0; i < s->n_arms; i++)
		out[i] = i;
	*n = s->n_arms;
	return 0;
}

/* Any knob in the fix that may change the training itself keeps it pending. */
static bool pending(const struct campaign *c)
{
	for (size_t i = 0; i < c->facts.n_verdicts; i++)
		if (c->facts.verdicts[i].pending_convergence)
			return true;
	return false;
}

static const char *fix_state(const struct campaign *c, const struct stats_mean_ci *ci)
{
	if (ci->n == 0)
		return "not measured";
	if (!(ci->lo > 0))
		return "gain not seen again";
	return pending(c) ? "accepted, pending convergence" : "validated";
}

static int conclude_final(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ char *note = NULL, *fingerprint = fingerprint_json(c->sched->name);
	_cleanup_free_ double *d = NULL;
	struct pairs p;
	struct stats_mean_ci ci;
	struct fix_row fix;
	int64_t id;
	size_t n;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	n = pairs_diff(&p, 1, &d);
	pairs_done(&p);
	ci = stats_mean_ci(d, n, 0.95);
	fix = (struct fix_row){.campaign = c->row.id,
			       .config = s->arms[1].config,
			       .stage = s->id,
			       .est = stats_relative(ci.mean),
			       .lo = stats_relative(ci.lo),
			       .hi = stats_relative(ci.hi),
			       .n = (int)n,
			       .state = (char *)fix_state(c, &ci),
			       .fingerprint = fingerprint,
			       .soak_drift = NAN,
			       .at_us = clock_utc_us(c->ws->clock)};
	note = xasprintf("%s: %+.1f %% [%+.1f, %+.1f] against the original default over %zu blocks",
			 fix.state, 100 * fix.est, 100 * fix.lo, 100 * fix.hi, n);
	campaign_tell(c, PROGRESS_STAGE, 5, "%s", note);
	rc = query_fix_put(c->ws->db, &fix, &id, e);
	return rc < 0 ? rc : query_stage_close(c->ws->db, s->id, note, e);
}

/* Drift over the soak: slope a trial times the trials, on the log scale, + is faster. */
static int conclude_soak(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ char *note = NULL;
	struct value_row *v = NULL;
	struct stats_trend t;
	struct fix_row fix;
	double *y, drift;
	size_t n = 0, k = 0;
	bool found = false;
	int64_t id;
	int rc = query_stage_values(c->ws->db, s->id, c->recipe->objective,
				    c->recipe->objective_stat, &v, &n, e);

	if (rc < 0)
		return rc;
	y = xcalloc(n + 1, sizeof *y);
	for (size_t i = 0; i < n; i++)
		if (v[i].state == TRIAL_OK && v[i].value > 0)
			y[k++] = c->recipe->better == BETTER_DOWN ? -log(v[i].value)
								  : log(v[i].value);
	t = stats_trend(y, k);
	free(y);
	value_rows_free(v, n);
	drift = k >= SOAK_TRIALS_MIN ? expm1(t.slope * (double)k) : NAN;
	note = isfinite(drift) ? xasprintf("drift over %zu trials %+.2f %% (p %.2g)", k,
					   100 * drift, t.p_two_sided)
			       : xasprintf("%zu trials are too few to speak of drift", k);
	campaign_tell(c, PROGRESS_STAGE, 5, "soak: %s", note);
	if ((rc = query_fix_get(c->ws->db, c->row.id, &fix, &found, e)) == 0 && found) {
		fix.soak_drift = drift;
		rc = query_fix_put(c->ws->db, &fix, &id, e);
		fix_row_done(&fix);
	}
	return rc < 0 ? rc : query_stage_close(c->ws->db, s->id, note, e);
}

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
	if (!facts_last_accepted(&c->facts))
		campaign_tell(c, PROGRESS_STEP, 5,
			      "fixing: nothing was accepted, so there is nothing to fix");
	return 0;
}

const struct stage_ops fix_final = {.kind = STAGE_FINAL,
				    .step = 5,
				    .wanted = fixed_number,
				    .block_arms = all_arms,
				    .conclude = conclude_final};
const struct stage_ops fix_soak = {.kind = STAGE_SOAK,
				   .step = 5,
				   .wanted = fixed_number,
				   .block_arms = all_arms,
				   .conclude = conclude_soak};
