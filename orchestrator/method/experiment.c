/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 3, experiment: each treatment arm changes one knob. Several share a screen stage that halves
 * them; it ranks and claims nothing. An arm whose setting did not take effect leaves it as invalid.
 */
#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* The incumbent with one knob changed. */
static int treatment(struct campaign *c, const struct config *incumbent,
		     const struct hypothesis_row *h, struct arm_plan *out, struct err *e)
{
	struct kvs settings = {0};
	int rc;

	kvs_copy(&settings, &incumbent->settings);
	kvs_set(&settings, h->knob, h->value);
	rc = config_build(c->recipe, &settings, &out->config, e);
	kvs_free(&settings);
	out->hypothesis = h->id;
	out->label = xasprintf("%s=%s", h->knob, h->value);
	return rc;
}

int experiment_arms(struct campaign *c, const struct hypothesis_row *const *hyps, size_t n,
		    struct arm_plan **out, struct err *e)
{
	struct arm_plan *arms = xcalloc(n + 1, sizeof *arms);
	int rc = campaign_incumbent(c, &arms[0].config, e);

	if (rc == 0)
		arms[0].label = config_text(&arms[0].config);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = treatment(c, &arms[0].config, hyps[i], &arms[i + 1], e);
	if (rc < 0) {
		experiment_arms_free(arms, n + 1);
		return rc;
	}
	*out = arms;
	return 0;
}

void experiment_arms_free(struct arm_plan *arms, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		config_done(&arms[i].config);
		free(arms[i].label);
	}
	free(arms);
}

int experiment_plan(struct campaign *c, int round, struct err *e)
{
	const struct facts *f = &c->facts;
	_cleanup_free_ const struct hypothesis_row **hyps = xcalloc(f->n_hyps + 1, sizeof *hyps);
	struct stage_row s = {.kind = STAGE_SCREEN, .round = round};
	struct arm_plan *arms;
	size_t k = 0;
	int rc;

	for (size_t i = 0; i < f->n_hyps; i++)
		if (f->hyps[i].round == round && f->hyps[i].state == HYP_PROPOSED)
			hyps[k++] = &f->hyps[i];
	s.planned_blocks = (int)design_screen_blocks(c->row.mode, k);
	campaign_tell(c, PROGRESS_STEP, 3,
		      "experiment: screen of %zu candidates, one knob each, %d blocks", k,
		      s.planned_blocks);
	if ((rc = experiment_arms(c, hyps, k, &arms, e)) < 0)
		return rc;
	rc = stage_plan(c, &s, arms, k + 1, e);
	experiment_arms_free(arms, k + 1);
	return rc;
}

static bool is_invalid(const struct campaign *c, const struct arm_row *a)
{
	const struct verdict_row *v = facts_verdict(&c->facts, a->hypothesis);

	return v && str_eq(v->outcome, verdict_outcome_name(VERDICT_INVALID));
}

/* The screen's values with invalid arms taken out: they rank nowhere. */
static int valid_pairs(struct campaign *c, const struct stage_row *s, struct pairs *p,
		       struct err *e)
{
	int rc = pairs_load(c, s, p, e);

	for (size_t a = 1; rc == 0 && a < p->arms; a++)
		if (is_invalid(c, &s->arms[a]))
			for (size_t b = 0; b < p->blocks; b++)
				p->y[b * p->arms + a] = NAN;
	return rc;
}

/* Halving needs the results of the blocks before; flat screens run all at once, and so do the
 * blocks of a halved one that nothing can change any more. */
static int wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	size_t live = 0, k = s->n_arms - 1, done = c->facts.valid;

	(void)e;
	for (size_t a = 1; a < s->n_arms; a++)
		live += !is_invalid(c, &s->arms[a]);
	*out = done + design_screen_known(c->row.mode, k, done);
	if (*out > (size_t)s->planned_blocks)
		*out = (size_t)s->planned_blocks;
	if (live == 0 ||
	    reserve_cuts(c, s,
			 reserve_blocks(c->recipe, 1 + design_screen_width(c->row.mode, k, done),
					*out - done)))
		*out = done;
	return 0;
}

static int block_arms(struct campaign *c, const struct stage_row *s, size_t valid, size_t *out,
		      size_t *n, struct err *e)
{
	_cleanup_free_ size_t *chosen = xcalloc(s->n_arms, sizeof *chosen);
	struct pairs p;
	size_t k;
	int rc = valid_pairs(c, s, &p, e);

	if (rc < 0)
		return rc;
	/* Several blocks may be in flight, and a block may have no value at all. */
	if (valid > p.blocks)
		valid = p.blocks;
	k = design_screen_round(c->row.mode, s->n_arms - 1, valid, p.y, chosen);
	pairs_done(&p);
	out[0] = 0;
	*n = 1;
	for (size_t i = 0; i < k; i++)
		if (!is_invalid(c, &s->arms[chosen[i]]))
			out[(*n)++] = chosen[i];
	return 0;
}

static int mark_invalid(struct campaign *c, const struct stage_row *s, size_t arm,
			const char *reason, struct err *e)
{
	struct verdict_row v = {.stage = s->id,
				.hypothesis = s->arms[arm].hypothesis,
				.final_look = true,
				.outcome = (char *)verdict_outcome_name(VERDICT_INVALID),
				.reason = (char *)reason,
				.est = NAN,
				.lo = NAN,
				.hi = NAN,
				.df = NAN,
				.p = NAN,
				.p_star = NAN,
				.sign_flip_p = NAN,
				.at_us = clock_utc_us(c->ws->clock)};
	struct db *db = c->ws->db;
	int64_t id;
	int rc;

	campaign_tell(c, PROGRESS_VERDICT, 3, "%s: invalid: %s", s->arms[arm].label, reason);
	if ((rc = db_begin(db, "invalid arm", e)) == 0 &&
	    (rc = query_verdict_add(db, c->row.id, &v, &id, e)) == 0 &&
	    (rc = query_hypothesis_state(db, s->arms[arm].hypothesis, HYP_TESTED, NULL, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

/* Proof first: an arm whose setting never reached the process is invalid, not slow. Arms whose
 * trials all failed have left no evidence and are judged by their failures. */
static int look(struct campaign *c, const struct stage_row *s, struct err *e)
{
	struct evidence *v = NULL;
	struct pairs p;
	bool marked = false;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	rc = evidence_load(c, s, &v, e);
	for (size_t a = 1; rc == 0 && a < s->n_arms; a++) {
		char *reason = NULL;

		if (is_invalid(c, &s->arms[a]) || p.trials[a] == p.failed[a])
			continue;
		rc = evidence_check(v, a, &reason, e);
		if (rc == 0 && reason) {
			rc = mark_invalid(c, s, a, reason, e);
			marked = true;
		}
		free(reason);
	}
	evidence_free(v);
	pairs_done(&p);
	return rc < 0 || !marked ? rc : facts_load(c, e);
}

static int screen_out(struct campaign *c, const struct arm_row *a, double mean, size_t failed,
		      size_t trials, const char *why, struct err *e)
{
	_cleanup_free_ char *reason = NULL;

	if (failed && !isfinite(mean))
		reason = xasprintf("%zu of %zu trials failed: %s", failed, trials,
				   why ? why : "no reason given");
	else
		reason = xasprintf("screen mean %+.2f %%", 100 * expm1(mean));
	campaign_tell(c, PROGRESS_NOTE, 3, "%s: screened out, %s", a->label, reason);
	return query_hypothesis_state(c->ws->db, a->hypothesis, HYP_SCREENED_OUT, reason, e);
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ size_t *order = xcalloc(s->n_arms, sizeof *order);
	_cleanup_free_ double *means = xcalloc(s->n_arms + 1, sizeof *means);
	_cleanup_free_ char *note = NULL;
	struct pairs p;
	size_t lead, k = s->n_arms - 1;
	int rc = valid_pairs(c, s, &p, e);

	if (rc < 0)
		return rc;
	lead = design_screen_rank(p.y, k, p.blocks, order, means);
	for (size_t i = lead; rc == 0 && i < k; i++)
		if (!is_invalid(c, &s->arms[order[i]]))
			rc = screen_out(c, &s->arms[order[i]], means[order[i]], p.failed[order[i]],
					p.trials[order[i]], p.fail_reason[order[i]], e);
	note = lead ? xasprintf("best of the screen: %s, mean %+.2f %% (a ranking, not a claim)",
				s->arms[order[0]].label, 100 * expm1(means[order[0]]))
		    : xstrdup("no candidate was better than the baseline in the screen");
	campaign_tell(c, PROGRESS_STAGE, 3, "%s", note);
	pairs_done(&p);
	return rc < 0 ? rc : query_stage_close(c->ws->db, s->id, note, e);
}

int experiment_ranking(struct campaign *c, int round, int64_t **ids, size_t *n, struct err *e)
{
	const struct stage_row *s = facts_stage(&c->facts, STAGE_SCREEN, round);
	_cleanup_free_ size_t *order = NULL;
	struct pairs p;
	size_t lead;
	int rc;

	*n = 0;
	*ids = NULL;
	if (!s)
		return 0;
	if ((rc = valid_pairs(c, s, &p, e)) < 0)
		return rc;
	order = xcalloc(s->n_arms, sizeof *order);
	*ids = xcalloc(s->n_arms, sizeof **ids);
	lead = design_screen_rank(p.y, s->n_arms - 1, p.blocks, order, NULL);
	for (size_t i = 0; i < lead; i++) {
		const struct hypothesis_row *h = facts_hypothesis(&c->facts,
								  s->arms[order[i]].hypothesis);

		if (h && h->state == HYP_PROPOSED)
			(*ids)[(*n)++] = h->id;
	}
	pairs_done(&p);
	return 0;
}

const struct stage_ops experiment_screen = {.kind = STAGE_SCREEN,
					    .step = 3,
					    .wanted = wanted,
					    .block_arms = block_arms,
					    .look = look,
					    .conclude = conclude};
