/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state machine as a pure function: facts in, next action out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

struct world {
	struct stage_row stages[12];
	struct hypothesis_row hyps[8];
	struct verdict_row verdicts[8];
	struct ablation_row ablations[4];
	struct arm_row arms[4];
	struct facts f;
	struct recipe r;
};

static void init(struct world *w, int rounds)
{
	*w = (struct world){0};
	w->f.stages = w->stages;
	w->f.hyps = w->hyps;
	w->f.verdicts = w->verdicts;
	w->f.ablations = w->ablations;
	w->f.room = INFINITY;
	w->f.unit = 1;
	w->r.rounds = rounds;
	w->r.repeats = 1;
	w->r.soak_trials = 3;
}

static void stage(struct world *w, enum stage_kind k, int round, bool open, int64_t hypothesis)
{
	size_t i = w->f.n_stages++;

	w->stages[i] = (struct stage_row){.id = (int64_t)i + 1,
					  .seq = (int)i + 1,
					  .kind = k,
					  .round = round,
					  .open = open,
					  .hypothesis = hypothesis};
}

static void hypothesis(struct world *w, int round, enum hypothesis_state s)
{
	size_t i = w->f.n_hyps++;

	w->hyps[i] = (struct hypothesis_row){.id = (int64_t)i + 1, .round = round, .state = s};
}

static void verdict(struct world *w, int64_t h, enum verdict_outcome o, int look)
{
	w->verdicts[w->f.n_verdicts++] = (struct verdict_row){
		.hypothesis = h,
		.outcome = (char *)verdict_outcome_name(o),
		.final_look = true,
		.look = look};
}

static struct action next(struct world *w, const int64_t *ranking, size_t n)
{
	return campaign_next(&w->f, &w->r, ranking, n);
}

static void test_begins_with_the_baseline(void **state)
{
	struct world w;

	(void)state;
	init(&w, 1);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_AA);
	w.f.over_budget = true;
	assert_int_equal(next(&w, NULL, 0).kind, ACT_STOP);
}

static void test_open_stage_comes_first(void **state)
{
	struct world w;

	(void)state;
	init(&w, 1);
	stage(&w, STAGE_AA, 0, true, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_STAGE);
	w.f.over_budget = true; /* what runs is paid for, and what is there is concluded */
	assert_int_equal(next(&w, NULL, 0).kind, ACT_STAGE);
}

static void test_over_budget_plans_no_trials_and_still_ends(void **state)
{
	struct world w;

	(void)state;
	init(&w, 1);
	w.f.over_budget = true;
	stage(&w, STAGE_AA, 0, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_HYPOTHESES);
	hypothesis(&w, 1, HYP_PROPOSED);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_STOP);
	stage(&w, STAGE_CONFIRM, 1, false, 1);
	verdict(&w, 1, VERDICT_ACCEPTED, 1);
	w.hyps[0].state = HYP_TESTED;
	assert_int_equal(next(&w, NULL, 0).kind, ACT_STOP); /* before the final stage */
	stage(&w, STAGE_FINAL, 0, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_STOP); /* before the soak */
	w.r.soak_trials = 0;
	assert_int_equal(next(&w, NULL, 0).kind, ACT_FINISH);
}

static void test_one_candidate_needs_no_screen(void **state)
{
	struct world w;

	(void)state;
	init(&w, 1);
	stage(&w, STAGE_AA, 0, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_HYPOTHESES);
	assert_int_equal(next(&w, NULL, 0).round, 1);
	hypothesis(&w, 1, HYP_LINTED_OUT);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_FINISH); /* nothing to try */
	hypothesis(&w, 1, HYP_PROPOSED);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_CONFIRM);
	assert_int_equal(next(&w, NULL, 0).hypothesis, 2);
	hypothesis(&w, 1, HYP_PROPOSED);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_SCREEN);
}

static void test_refuted_takes_the_next_candidate_within_the_plan(void **state)
{
	const int64_t ranking[] = {3, 2};
	struct world w;

	(void)state;
	init(&w, 2);
	stage(&w, STAGE_AA, 0, false, 0);
	stage(&w, STAGE_SCREEN, 1, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_FINISH); /* no candidate beat the baseline */
	assert_int_equal(next(&w, ranking, 2).hypothesis, 3);
	stage(&w, STAGE_CONFIRM, 1, false, 3);
	verdict(&w, 3, VERDICT_REJECTED_NO_GAIN, 1);
	assert_int_equal(next(&w, ranking + 1, 1).hypothesis, 2);
	stage(&w, STAGE_CONFIRM, 1, false, 2);
	verdict(&w, 2, VERDICT_EQUIVALENT, 4);
	hypothesis(&w, 1, HYP_PROPOSED);
	assert_int_equal(next(&w, ranking, 1).kind, ACT_FINISH); /* both confirm stages are used */
}

static void test_invalid_before_the_first_look_uses_no_stage(void **state)
{
	const int64_t ranking[] = {2};
	struct world w;

	(void)state;
	init(&w, 1);
	stage(&w, STAGE_AA, 0, false, 0);
	stage(&w, STAGE_SCREEN, 1, false, 0);
	stage(&w, STAGE_CONFIRM, 1, false, 3);
	verdict(&w, 3, VERDICT_INVALID, 0);
	assert_int_equal(next(&w, ranking, 1).kind, ACT_PLAN_CONFIRM);
	w.verdicts[0].look = 1; /* after a look its share is spent */
	assert_int_equal(next(&w, ranking, 1).kind, ACT_FINISH);
}

static void test_accepted_goes_on_to_a_new_round_or_the_final_stage(void **state)
{
	struct world w;

	(void)state;
	init(&w, 2);
	stage(&w, STAGE_AA, 0, false, 0);
	hypothesis(&w, 1, HYP_TESTED);
	stage(&w, STAGE_CONFIRM, 1, false, 1);
	verdict(&w, 1, VERDICT_ACCEPTED, 1);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_HYPOTHESES);
	assert_int_equal(next(&w, NULL, 0).round, 2);
	w.r.rounds = 1;
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_FINAL);
	stage(&w, STAGE_FINAL, 0, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_SOAK);
	w.r.soak_trials = 0;
	assert_int_equal(next(&w, NULL, 0).kind, ACT_FINISH);
	stage(&w, STAGE_SOAK, 0, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_FINISH);
}

static void test_a_round_without_candidates_still_fixes_what_was_won(void **state)
{
	struct world w;

	(void)state;
	init(&w, 3);
	stage(&w, STAGE_AA, 0, false, 0);
	hypothesis(&w, 1, HYP_TESTED);
	stage(&w, STAGE_CONFIRM, 1, false, 1);
	verdict(&w, 1, VERDICT_ACCEPTED, 1);
	hypothesis(&w, 2, HYP_NOT_TRIED);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_FINAL);
}

/* Two accepted changes are ablated; what looks useless beside a dropped one is looked at again. */
static void test_stacked_changes_are_ablated_before_the_final_stage(void **state)
{
	struct world w;

	(void)state;
	init(&w, 2);
	stage(&w, STAGE_AA, 0, false, 0);
	for (int64_t h = 1; h <= 2; h++) {
		hypothesis(&w, (int)h, HYP_TESTED);
		w.hyps[h - 1].knob = (char *)(h == 1 ? "a" : "b");
		stage(&w, STAGE_CONFIRM, (int)h, false, h);
		verdict(&w, h, VERDICT_ACCEPTED, 1);
	}
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_ABLATE);
	w.hyps[1].knob = (char *)"a"; /* one knob twice is one change */
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_FINAL);
	stage(&w, STAGE_ABLATE, 0, false, 0);
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_FINAL);
	w.f.n_ablations = 2;
	for (int i = 0; i < 4; i++)
		w.arms[i].id = i + 1;
	w.stages[3].arms = w.arms;
	w.stages[3].n_arms = 4;
	w.ablations[0] = (struct ablation_row){.stage = 4, .arm = 2, .outcome = ABLATION_DROPPED};
	w.ablations[1] = (struct ablation_row){.stage = 4, .arm = 3, .outcome = ABLATION_USELESS};
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_ABLATE);
	w.stages[3].n_arms = 3; /* one change is left: the final stage measures it */
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_FINAL);
	w.stages[3].n_arms = 4;
	w.ablations[1].outcome = ABLATION_PAYS;
	assert_int_equal(next(&w, NULL, 0).kind, ACT_PLAN_FINAL);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_begins_with_the_baseline),
		cmocka_unit_test(test_open_stage_comes_first),
		cmocka_unit_test(test_over_budget_plans_no_trials_and_still_ends),
		cmocka_unit_test(test_one_candidate_needs_no_screen),
		cmocka_unit_test(test_refuted_takes_the_next_candidate_within_the_plan),
		cmocka_unit_test(test_invalid_before_the_first_look_uses_no_stage),
		cmocka_unit_test(test_accepted_goes_on_to_a_new_round_or_the_final_stage),
		cmocka_unit_test(test_a_round_without_candidates_still_fixes_what_was_won),
		cmocka_unit_test(test_stacked_changes_are_ablated_before_the_final_stage),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
