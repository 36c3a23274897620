/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>

#include "orchestrator/base/str.h"
#include "orchestrator/method/method.h"

static bool accepted(const struct verdict_row *v)
{
	return v && str_eq(v->outcome, verdict_outcome_name(VERDICT_ACCEPTED));
}

/* A confirm stage that ended invalid before its first look uses none of the stages. */
static int confirm_stages_used(const struct facts *f)
{
	int used = 0;

	for (size_t i = 0; i < f->n_stages; i++) {
		const struct stage_row *s = &f->stages[i];
		const struct verdict_row *v;

		if (s->kind != STAGE_CONFIRM)
			continue;
		v = facts_verdict(f, s->hypothesis);
		used += !v || v->look > 0 ||
			!str_eq(v->outcome, verdict_outcome_name(VERDICT_INVALID));
	}
	return used;
}

static bool any_accepted(const struct facts *f)
{
	return facts_last_accepted(f) != NULL;
}

/* `changes` are each taken out once, unless there is room for the final stage and not for that. */
static struct action fix_of(const struct facts *f, const struct recipe *r, size_t changes)
{
	double ablation = reserve_ablation(r, f->unit, changes), last = reserve_final(r, f->unit);

	if (changes < 2)
		return (struct action){.kind = ACT_PLAN_FINAL};
	if (f->room >= last && f->room < last + ablation)
		return (struct action){.kind = ACT_PLAN_FINAL, .skips_ablation = true};
	return (struct action){.kind = ACT_PLAN_ABLATE};
}

static struct action wind_up(const struct facts *f, const struct recipe *r)
{
	if (!any_accepted(f) || r->final_blocks == BLOCKS_NONE)
		return (struct action){.kind = ACT_FINISH};
	return fix_of(f, r, facts_changes(f));
}

/* Only one change is dropped at a time: what is left of a fix whose other changes looked useless,
 * too, is ablated again, as long as it has two changes. */
static struct action after_ablate(const struct facts *f, const struct recipe *r,
				  const struct stage_row *s)
{
	bool more = false;

	for (size_t i = 0; i < f->n_ablations; i++)
		more = more || (f->ablations[i].stage == s->id &&
				f->ablations[i].outcome == ABLATION_USELESS);
	return fix_of(f, r, more && facts_ablated(f, s) ? s->n_arms - 2 : 1);
}

static size_t proposed(const struct facts *f, int round, const struct hypothesis_row **first)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_hyps; i++)
		if (f->hyps[i].round == round && f->hyps[i].state == HYP_PROPOSED && n++ == 0)
			*first = &f->hyps[i];
	return n;
}

static bool round_has_hypotheses(const struct facts *f, int round)
{
	for (size_t i = 0; i < f->n_hyps; i++)
		if (f->hyps[i].round == round)
			return true;
	return false;
}

/* A round begins: hypotheses, then a screen if several compete, or straight to confirm. */
static struct action begin_round(const struct facts *f, const struct recipe *r, int round)
{
	const struct hypothesis_row *first = NULL;
	size_t n;

	if (!round_has_hypotheses(f, round))
		return (struct action){.kind = ACT_HYPOTHESES, .round = round};
	n = proposed(f, round, &first);
	if (n == 0)
		return wind_up(f, r);
	if (n == 1)
		return (struct action){
			.kind = ACT_PLAN_CONFIRM, .round = round, .hypothesis = first->id};
	return (struct action){.kind = ACT_PLAN_SCREEN, .round = round};
}

/* A new incumbent is profiled before hypotheses are made about it. */
static struct action new_incumbent(const struct facts *f, const struct recipe *r, int round)
{
	if (f->profiles)
		return (struct action){.kind = ACT_PLAN_PROFILE, .round = round};
	return begin_round(f, r, round);
}

static struct action next_candidate(const struct facts *f, const struct recipe *r, int round,
				    const int64_t *ranking, size_t n)
{
	if (n == 0 || confirm_stages_used(f) >= r->rounds)
		return wind_up(f, r);
	return (struct action){.kind = ACT_PLAN_CONFIRM, .round = round, .hypothesis = ranking[0]};
}

static bool has_stage(const struct facts *f, enum stage_kind k, int round)
{
	return facts_stage(f, k, round) != NULL;
}

/* Up the ladder: each rung is compared with the one below, and looked at under the profiler, until
 * one loses too much or there is no higher one; then the rules name what holds it. */
static struct action climb(const struct facts *f, const struct recipe *r)
{
	const struct rung_row *top = f->n_rungs ? &f->rungs[f->n_rungs - 1] : NULL;
	int at = top ? top->round : 1;

	if (f->profiles && !has_stage(f, STAGE_PROFILE, at))
		return (struct action){.kind = ACT_PLAN_PROFILE, .round = at};
	if ((!top || top->held) && (size_t)at < r->ladder.n)
		return (struct action){.kind = ACT_PLAN_LADDER, .round = at + 1};
	if (!round_has_hypotheses(f, at))
		return (struct action){.kind = ACT_HYPOTHESES, .round = at};
	return (struct action){.kind = ACT_FINISH};
}

static struct action after(const struct facts *f, const struct stage_row *last,
			   const struct recipe *r, const int64_t *ranking, size_t n)
{
	switch (last->kind) {
	case STAGE_AA:
		return new_incumbent(f, r, 1);
	case STAGE_PROFILE:
		return begin_round(f, r, last->round);
	case STAGE_SCREEN:
		return next_candidate(f, r, last->round, ranking, n);
	case STAGE_CONFIRM:
		if (!accepted(facts_verdict(f, last->hypothesis)))
			return next_candidate(f, r, last->round, ranking, n);
		if (confirm_stages_used(f) >= r->rounds)
			return wind_up(f, r);
		return new_incumbent(f, r, last->round + 1);
	case STAGE_ABLATE:
		return after_ablate(f, r, last);
	case STAGE_FINAL:
		return (struct action){.kind = r->soak_trials > 0 ? ACT_PLAN_SOAK : ACT_FINISH};
	case STAGE_LADDER:
	case STAGE_VERIFY:
	case STAGE_SOAK:
	case STAGE_CANARY:
	case STAGE_CONVERGE:
		break;
	}
	return (struct action){.kind = ACT_FINISH};
}

/* Does it lead to trials? The others cost nothing: what was measured is concluded in any case. */
static bool costs(enum action_kind k)
{
	switch (k) {
	case ACT_PLAN_AA:
	case ACT_PLAN_PROFILE:
	case ACT_PLAN_LADDER:
	case ACT_PLAN_CANARY:
	case ACT_PLAN_SCREEN:
	case ACT_PLAN_CONFIRM:
	case ACT_PLAN_ABLATE:
	case ACT_PLAN_FINAL:
	case ACT_PLAN_SOAK:
		return true;
	case ACT_HYPOTHESES:
	case ACT_STAGE: /* starts no block when the budget is used up */
	case ACT_FINISH:
	case ACT_STOP:
		return false;
	}
	return false;
}

/* What the search takes at least until it can accept once more. */
static double price(const struct facts *f, const struct recipe *r, const struct action *a)
{
	double confirm = reserve_first_look(r, f->unit);
	const struct hypothesis_row *first;

	if (a->kind == ACT_PLAN_SCREEN)
		return reserve_screen(r, proposed(f, a->round, &first)) + confirm;
	return a->kind == ACT_PLAN_PROFILE || a->kind == ACT_PLAN_CONFIRM ? confirm : 0;
}

/* Once something is accepted the search goes on only as long as the fix of it, and of one change
 * more, still has room behind it. */
static struct action thrifty(const struct facts *f, const struct recipe *r, struct action a)
{
	double takes = price(f, r, &a);

	if (takes == 0 || !any_accepted(f) || r->final_blocks == BLOCKS_NONE ||
	    f->room >= takes + reserve_fix(f, r, 1))
		return a;
	a = wind_up(f, r);
	a.ends_search = true;
	return a;
}

struct action campaign_next(const struct facts *f, const struct recipe *r, const int64_t *ranking,
			    size_t n)
{
	const struct stage_row *last = f->n_stages ? &f->stages[f->n_stages - 1] : NULL;
	struct action a = {.kind = ACT_PLAN_AA};

	if (r->ladder.n && !(last && last->open))
		a = climb(f, r);
	else if (!last && r->canary.blocks)
		a.kind = ACT_PLAN_CANARY;
	else if (!last && r->aa_blocks == BLOCKS_NONE)
		a = begin_round(f, r, 1);
	else if (last)
		a = last->open ? (struct action){.kind = ACT_STAGE} : after(f, last, r, ranking, n);
	a = thrifty(f, r, a);
	return f->over_budget && costs(a.kind) ? (struct action){.kind = ACT_STOP} : a;
}
