/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 4, validation: the best candidate against the incumbent on fresh blocks until the sequential
 * rule decides, at the share of alpha that the campaign's ledger gives. Each look is stored; a
 * verdict follows from stored values alone.
 */
#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* Valid blocks that may pass without giving a pair (a failed trial) before the stage gives up. */
enum { BLOCKS_WITHOUT_PAIR_MAX = 4 };

/* Noise that the screen measured: the residual of arm and block, handed to the sequential rule. Of
 * blocks that shared an allocation one counts: so it is the noise of a unit of one block. Units of
 * more are quieter, so they go by their own noise alone: that finds more at the same error. */
static int screen_noise(struct campaign *c, int round, struct stage_row *s, struct err *e)
{
	const struct stage_row *screen = facts_stage(&c->facts, STAGE_SCREEN, round);
	struct stats_two_way w;
	struct pairs p;
	int rc;

	if (!screen || allocation_unit(c) > 1)
		return 0;
	if ((rc = pairs_load_units(c, screen, &p, e)) < 0)
		return rc;
	w = stats_two_way(p.y, p.arms, p.blocks);
	s->ssr = w.df ? w.ssr : 0;
	s->df0 = (int)w.df;
	pairs_done(&p);
	return 0;
}

int validate_plan(struct campaign *c, int64_t hypothesis, struct err *e)
{
	const struct hypothesis_row *h = facts_hypothesis(&c->facts, hypothesis);
	struct alpha_ledger ledger = facts_ledger(c);
	struct stage_row s = {.kind = STAGE_CONFIRM,
			      .hypothesis = hypothesis,
			      .planned_blocks = allocation_unit(c) *
						(int)decide_max_blocks(c->row.mode),
			      .alpha_share = alpha_ledger_next(&ledger)};
	struct arm_plan *arms;
	int rc;

	if (!h)
		return err_set(e, ERR_STATE, "hypothesis %lld is gone", (long long)hypothesis);
	s.round = h->round;
	if ((rc = screen_noise(c, h->round, &s, e)) < 0 ||
	    (rc = experiment_arms(c, &h, 1, &arms, e)) < 0)
		return rc;
	campaign_tell(c, PROGRESS_STEP, 4,
		      "validation: %s against %s on fresh blocks (alpha %.4g, at most %d blocks)",
		      arms[1].label, arms[0].label, s.alpha_share, s.planned_blocks);
	rc = stage_plan(c, &s, arms, 2, e);
	experiment_arms_free(arms, 2);
	return rc;
}

static struct decide_plan plan_of(const struct campaign *c, const struct stage_row *s)
{
	return (struct decide_plan){.mode = c->row.mode,
				    .alpha = s->alpha_share,
				    .min_effect = c->recipe->min_effect,
				    .ssr = s->ssr,
				    .df0 = (size_t)s->df0};
}

/* What a look found. */
struct evaluation {
	struct decision decision;
	enum verdict_outcome verdict;
	bool decided;
	char *reason, *hash;
	double sign_flip_p;
	struct guard_results guards;
};

static void evaluation_done(struct evaluation *v)
{
	free(v->reason);
	free(v->hash);
	guard_results_done(&v->guards);
}

static int proof(struct campaign *c, const struct stage_row *s, char **invalid, struct err *e)
{
	struct evidence *v = NULL;
	int rc = evidence_load(c, s, &v, e);

	if (rc == 0)
		rc = evidence_check(v, 1, invalid, e);
	evidence_free(v);
	return rc;
}

/* Does the budget keep what the blocks up to the next look would take? */
static bool cut(const struct campaign *c, const struct stage_row *s, size_t n)
{
	size_t next = decide_next_look(c->row.mode, n);

	return next && reserve_cuts(c, s,
				    reserve_blocks(c->recipe, s->n_arms,
						   (next - n) * (size_t)allocation_unit(c)));
}

#define CUT "stopped before a verdict: the room that was left is kept for the final stage"

/* What a verdict is not reached for; heap, NULL: nothing to say. */
static char *reason_of(const struct evaluation *v, bool is_cut)
{
	if (!is_cut || !v->decided || v->verdict != VERDICT_INCONCLUSIVE)
		return xstrdup(v->guards.text);
	return v->guards.text ? xasprintf("%s; %s", v->guards.text, CUT) : xstrdup(CUT);
}

/* `ended`: it was over with the blocks that it has. */
static int evaluate(struct campaign *c, const struct stage_row *s, bool ended, struct evaluation *v,
		    struct err *e)
{
	struct decide_plan plan = plan_of(c, s);
	struct decide_facts facts = {0};
	char *invalid = NULL;
	_cleanup_free_ double *d = NULL;
	struct pairs p;
	bool is_cut;
	size_t n;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	n = pairs_diff(&p, 1, &d);
	is_cut = cut(c, s, n);
	(void)decide_confirm(&plan, d, n, &v->decision);
	rc = pairs_guard_results(c, s, 1, &p, &v->guards, e);
	facts.guard = v->guards.worst;
	/* An A/A stage would have found it out. */
	if (rc == 0 && c->recipe->aa_blocks == BLOCKS_NONE)
		rc = inputs_fault(c, s, &p, &invalid, e);
	if (rc == 0 && !invalid && p.trials[1] > p.failed[1])
		rc = proof(c, s, &invalid, e);
	facts.invalid = invalid != NULL;
	facts.blocks = n;
	facts.ended = ended || is_cut || decide_next_look(c->row.mode, n) == 0 ||
		      p.blocks >= n + BLOCKS_WITHOUT_PAIR_MAX;
	v->decided = decide_verdict(&plan, &v->decision, &facts, &v->verdict);
	v->hash = pairs_hash(&p);
	v->sign_flip_p = n >= 5 ? stats_sign_flip_p(d, n) : NAN;
	v->reason = invalid ? invalid : reason_of(v, is_cut);
	pairs_done(&p);
	return rc;
}

static double settle(const struct campaign *c, const struct evaluation *v)
{
	struct alpha_ledger ledger = facts_ledger(c);

	return v->decided ? alpha_ledger_settle(&ledger, v->verdict, v->decision.look) : 0;
}

static int looks_stored(const struct campaign *c, const struct stage_row *s)
{
	int look = -1;

	for (size_t i = 0; i < c->facts.n_verdicts; i++)
		if (c->facts.verdicts[i].stage == s->id && c->facts.verdicts[i].look > look)
			look = c->facts.verdicts[i].look;
	return look;
}

static int put_look(struct campaign *c, const struct stage_row *s, const struct evaluation *v,
		    struct err *e)
{
	const struct hypothesis_row *h = facts_hypothesis(&c->facts, s->hypothesis);
	const struct decision *d = &v->decision;
	bool claims = v->decided &&
		      (v->verdict == VERDICT_INVALID || v->verdict == VERDICT_REJECTED_GUARD ||
		       v->verdict == VERDICT_INCONCLUSIVE);
	struct verdict_row row = {
		.stage = s->id,
		.hypothesis = s->hypothesis,
		.look = (int)d->look,
		.n = (int)d->n,
		.final_look = v->decided,
		.outcome = (char *)(v->decided ? verdict_outcome_name(v->verdict) : "continue"),
		.reason = claims ? v->reason : NULL,
		.est = stats_relative(d->est),
		.lo = stats_relative(d->lo),
		.hi = stats_relative(d->hi),
		.df = d->df,
		.p = d->p,
		.p_star = d->p_star,
		.alpha_spent = settle(c, v),
		.sign_flip_p = v->sign_flip_p,
		.pending_convergence = v->decided && v->verdict == VERDICT_ACCEPTED &&
				       h->cls != CLASS_NEUTRAL,
		.effect_unproved = h->user_defined && h->proof <= PROOF_DELIVERED,
		.inputs_hash = v->hash,
		.at_us = clock_utc_us(c->ws->clock)};
	int64_t id;
	int rc = query_verdict_add(c->ws->db, c->row.id, &row, &id, e);

	for (size_t i = 0; rc == 0 && i < v->guards.n; i++) {
		v->guards.v[i].verdict = id;
		rc = query_guard_add(c->ws->db, &v->guards.v[i], e);
	}
	return rc;
}

/* The look and what its guards said are one fact. */
static int store_look(struct campaign *c, const struct stage_row *s, const struct evaluation *v,
		      struct err *e)
{
	int rc = db_begin(c->ws->db, "look", e);

	if (rc < 0)
		return rc;
	rc = put_look(c, s, v, e);
	if (rc == 0)
		return db_commit(c->ws->db, e);
	db_rollback(c->ws->db);
	return rc;
}

static void tell_look(struct campaign *c, const struct stage_row *s, const struct evaluation *v)
{
	const struct decision *d = &v->decision;
	const char *what = v->decided ? verdict_outcome_name(v->verdict) : "goes on";

	if (d->n == 0 || !isfinite(d->lo))
		campaign_tell(c, PROGRESS_VERDICT, 4, "%s: %s%s%s", s->arms[1].label, what,
			      v->reason ? ": " : "", v->reason ? v->reason : "");
	else
		campaign_tell(c, PROGRESS_VERDICT, 4,
			      "%s: %s, effect %+.1f %% [%+.1f, %+.1f], p %.3g (bound %.3g), %zu "
			      "blocks%s%s",
			      s->arms[1].label, what, 100 * stats_relative(d->est),
			      100 * stats_relative(d->lo), 100 * stats_relative(d->hi), d->p,
			      d->p_star, d->n, v->decided && v->reason ? ": " : "",
			      v->decided && v->reason ? v->reason : "");
}

static bool has_verdict(const struct campaign *c, const struct stage_row *s)
{
	for (size_t i = 0; i < c->facts.n_verdicts; i++)
		if (c->facts.verdicts[i].stage == s->id && c->facts.verdicts[i].final_look)
			return true;
	return false;
}

static int look(struct campaign *c, const struct stage_row *s, struct err *e)
{
	struct evaluation v = {0};
	bool stores;
	int rc;

	if (c->facts.valid == 0 || has_verdict(c, s))
		return 0;
	rc = evaluate(c, s, false, &v, e);
	stores = rc == 0 &&
		 (v.decided || (v.decision.look > 0 && (int)v.decision.look > looks_stored(c, s)));
	if (stores) {
		tell_look(c, s, &v);
		rc = store_look(c, s, &v, e);
	}
	evaluation_done(&v);
	return rc < 0 || !stores ? rc : facts_load(c, e);
}

/* Up to the next look, which counts units; blocks without a pair are replaced. */
static int wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	_cleanup_free_ double *d = NULL;
	struct pairs p;
	size_t n, next;
	int rc;

	*out = c->facts.valid;
	if (has_verdict(c, s))
		return 0;
	if ((rc = pairs_load(c, s, &p, e)) < 0)
		return rc;
	n = pairs_diff(&p, 1, &d);
	next = decide_next_look(c->row.mode, n);
	*out = c->facts.valid + (next ? next - n : 1) * (size_t)allocation_unit(c);
	pairs_done(&p);
	return 0;
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	const struct verdict_row *v = facts_verdict(&c->facts, s->hypothesis);
	int rc = query_hypothesis_state(c->ws->db, s->hypothesis, HYP_TESTED, NULL, e);

	if (!v)
		return err_set(e, ERR_STATE, "stage %lld ends without a verdict", (long long)s->id);
	return rc < 0 ? rc : query_stage_close(c->ws->db, s->id, v->outcome, e);
}

static int again(struct campaign *c, const struct stage_row *s, struct campaign_again *out,
		 struct err *e)
{
	const struct verdict_row *was = NULL;
	struct evaluation v = {0};
	int rc;

	for (size_t i = 0; i < c->facts.n_verdicts; i++)
		if (c->facts.verdicts[i].stage == s->id && c->facts.verdicts[i].final_look)
			was = &c->facts.verdicts[i];
	if (!was)
		return 0;
	rc = evaluate(c, s, str_eq(was->outcome, verdict_outcome_name(VERDICT_INCONCLUSIVE)), &v,
		      e);
	if (rc == 0) {
		out->was = xstrdup(was->outcome);
		out->is = xstrdup(v.decided ? verdict_outcome_name(v.verdict) : "undecided");
		out->est = was->est;
		out->est_is = stats_relative(v.decision.est);
	}
	evaluation_done(&v);
	return rc;
}

const struct stage_ops validate_confirm = {.kind = STAGE_CONFIRM,
					   .step = 4,
					   .wanted = wanted,
					   .block_arms = stage_all_arms,
					   .look = look,
					   .conclude = conclude,
					   .again = again};
