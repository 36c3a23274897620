/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From stored trials to what the statistics get: pairs of a stage, failures by arm, guards. */
#include "tests/unit/store.h"

#include "orchestrator/base/str.h"
#include "orchestrator/method/method.h"
#include "tests/unit/near.h"

enum { ARMS = 3, SLOTS_MAX = 16 };

/* A stage of three arms with a recipe that has only what pairs.c reads. */
struct scene {
	struct store st;
	int64_t arm[ARMS], stage;
	struct arm_row arms[ARMS];
	struct stage_row row;
	struct guard guards[2];
	struct recipe recipe;
	struct workspace ws;
	struct campaign c;
	int blocks;
	struct trial_result t[SLOTS_MAX];
	size_t n;
};

static struct scene *scene_new(enum better better)
{
	struct scene *s = xcalloc(1, sizeof *s);
	struct err e = {0};

	assert_ok(db_open(":memory:", DB_CREATE, NULL, &s->st.db, &e));
	s->st.campaign = store_campaign(s->st.db, "scene");
	for (int i = 0; i < ARMS; i++)
		s->arms[i] = (struct arm_row){.index = i,
					      .role = i ? ROLE_TREATMENT : ROLE_BASELINE,
					      .config = store_config(s->st.db, i),
					      .label = TEXT("arm")};
	s->row = (struct stage_row){.campaign = s->st.campaign,
				    .seq = 1,
				    .kind = STAGE_SCREEN,
				    .open = true,
				    .arms = s->arms,
				    .n_arms = ARMS};
	assert_ok(query_stage_add(s->st.db, &s->row, &e));
	s->stage = s->row.id;
	s->recipe = (struct recipe){.objective = TEXT("step_time_ms"),
				    .objective_stat = TEXT("mean"),
				    .better = better,
				    .guards = s->guards};
	s->ws.db = s->st.db;
	s->c.ws = &s->ws;
	s->c.recipe = &s->recipe;
	return s;
}

static void scene_free(struct scene *s)
{
	db_close(s->st.db);
	free(s);
}

static struct trial_result *add(struct scene *s, int arm)
{
	struct trial_result *t = &s->t[s->n];
	int repeat = 0;

	for (size_t i = 0; i < s->n; i++)
		repeat += s->t[i].arm == s->arms[arm].id;
	*t = (struct trial_result){.slot = (int)s->n++,
				   .arm = s->arms[arm].id,
				   .repeat = repeat,
				   .kind = SLOT_TIMED,
				   .wall_us = 1};
	t->log_path = xasprintf("blocks/%d.1/t%02d/out", s->blocks + 1, t->slot);
	return t;
}

static struct trial_result *value(struct scene *s, int arm, const char *metric, double v)
{
	struct trial_result *t = add(s, arm);

	trial_result_metric(t, metric, "mean", "", v);
	return t;
}

static void ms(struct scene *s, int arm, double v)
{
	value(s, arm, "step_time_ms", v);
}

static void failed(struct scene *s, int arm, const char *reason)
{
	struct trial_result *t = add(s, arm);

	t->state = TRIAL_FAILED;
	t->reason = xstrdup(reason);
}

static int64_t plan_block(struct scene *s, int index, int64_t *attempt)
{
	struct slot slots[SLOTS_MAX];
	struct err e = {0};
	int64_t block;

	for (size_t i = 0; i < s->n; i++)
		slots[i] = (struct slot){
			.arm = s->t[i].arm, .repeat = s->t[i].repeat, .kind = s->t[i].kind};
	assert_ok(query_block_add(s->st.db, s->stage, index, slots, s->n, &block, &e));
	*attempt = store_plan(&s->st, block);
	s->blocks++;
	return block;
}

static void forget(struct scene *s)
{
	for (size_t i = 0; i < s->n; i++)
		trial_result_done(&s->t[i]);
	s->n = 0;
}

static void block_at(struct scene *s, int index)
{
	static const char *const nodes[] = {"n1"};
	struct err e = {0};
	int64_t attempt;
	bool again;

	plan_block(s, index, &attempt);
	assert_ok(query_attempt_ingest(s->st.db, attempt, "0123", s->t, s->n, nodes, 1,
				       STORE_NOW_US, &again, &e));
	forget(s);
}

static void block(struct scene *s)
{
	block_at(s, s->blocks);
}

static struct pairs load(struct scene *s)
{
	struct pairs p;
	struct err e = {0};

	assert_ok(pairs_load(&s->c, &s->row, &p, &e));
	assert_int_equal(p.arms, ARMS);
	return p;
}

static void test_values_are_logs_and_more_is_better(void **state)
{
	static const enum better both[] = {BETTER_DOWN, BETTER_UP};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct scene *s = scene_new(both[i]);
		double sign = both[i] == BETTER_UP ? 1 : -1, *d = NULL;
		struct pairs p;

		ms(s, 0, 100);
		ms(s, 1, 80);
		ms(s, 2, 125);
		block(s);
		p = load(s);
		assert_int_equal(p.blocks, 1);
		assert_near(p.y[0], sign * log(100), 1e-12);
		assert_int_equal(pairs_diff(&p, 1, &d), 1);
		assert_near(d[0], sign * log(0.8), 1e-12);
		free(d);
		pairs_done(&p);
		scene_free(s);
	}
}

static void test_an_arm_that_was_not_in_a_block_is_absent(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	double *d = NULL;
	struct pairs p;

	(void)state;
	ms(s, 0, 100);
	ms(s, 1, 110);
	ms(s, 2, 120);
	block(s);
	ms(s, 2, 130); /* halved: arm 1 is out */
	ms(s, 0, 100);
	block(s);
	p = load(s);
	assert_int_equal(p.blocks, 2);
	assert_true(isnan(p.y[1 * ARMS + 1]));
	assert_int_equal(pairs_diff(&p, 1, &d), 1);
	free(d);
	assert_int_equal(pairs_diff(&p, 2, &d), 2);
	assert_near(d[1], log(1.3), 1e-12);
	free(d);
	pairs_done(&p);
	scene_free(s);
}

/* Blocks are in the order in which they were planned, whichever came in first. */
static void test_blocks_are_in_order_of_their_index(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	struct pairs p;

	(void)state;
	ms(s, 0, 200);
	block_at(s, 1);
	ms(s, 0, 100);
	block_at(s, 0);
	p = load(s);
	assert_near(p.y[0 * ARMS], log(100), 1e-12);
	assert_near(p.y[1 * ARMS], log(200), 1e-12);
	pairs_done(&p);
	scene_free(s);
}

static void test_repeats_are_averaged_over_those_that_ended_well(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	struct pairs p;

	(void)state;
	ms(s, 0, 100);
	ms(s, 1, 100);
	ms(s, 0, 121);
	failed(s, 1, "exited with 1");
	add(s, 0); /* ended well, without the metric */
	block(s);
	p = load(s);
	assert_near(p.y[0], log(110), 1e-12); /* the mean of logs */
	assert_near(p.y[1], log(100), 1e-12);
	assert_int_equal(p.trials[0], 3);
	assert_int_equal(p.failed[0], 0);
	assert_int_equal(p.trials[1], 2);
	assert_int_equal(p.failed[1], 1);
	pairs_done(&p);
	scene_free(s);
}

static void test_failures_are_counted_and_told_by_arm(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	double *d = NULL;
	struct pairs p;

	(void)state;
	ms(s, 0, 100);
	failed(s, 1, "killed by signal 11");
	failed(s, 2, "loss is nan at step 3");
	block(s);
	ms(s, 0, 100);
	failed(s, 1, "another reason");
	ms(s, 2, 100);
	block(s);
	p = load(s);
	assert_int_equal(p.failed[0], 0);
	assert_int_equal(p.failed[1], 2);
	assert_int_equal(p.failed[2], 1);
	assert_int_equal(p.trials[2], 2);
	assert_null(p.fail_reason[0]);
	assert_string_equal(p.fail_reason[1], "killed by signal 11 (log: blocks/1.1/t01/out)");
	assert_string_equal(p.fail_reason[2], "loss is nan at step 3 (log: blocks/1.1/t02/out)");
	assert_int_equal(pairs_diff(&p, 1, &d), 0);
	free(d);
	assert_int_equal(pairs_diff(&p, 2, &d), 1);
	free(d);
	pairs_done(&p);
	scene_free(s);
}

static void test_void_attempts_and_warm_up_count_for_nothing(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	struct err e = {0};
	struct pairs p;
	int64_t attempt;

	(void)state;
	ms(s, 0, 100);
	plan_block(s, 0, &attempt);
	forget(s);
	assert_ok(
		query_attempt_fail(s->st.db, attempt, ATTEMPT_VOID, "node down", STORE_NOW_US, &e));
	p = load(s);
	assert_int_equal(p.blocks, 0);
	assert_int_equal(p.trials[0], 0);
	pairs_done(&p);
	value(s, 0, "step_time_ms", 1)->kind = SLOT_WARMUP;
	s->t[1].repeat = 0;
	ms(s, 0, 100);
	s->t[1].repeat = 0;
	block(s);
	p = load(s);
	assert_int_equal(p.trials[0], 1);
	assert_near(p.y[0], log(100), 1e-12);
	pairs_done(&p);
	scene_free(s);
}

static void test_the_hash_is_that_of_the_values(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	_cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;
	struct pairs p;

	(void)state;
	ms(s, 0, 100);
	ms(s, 1, 110);
	block(s);
	p = load(s);
	a = pairs_hash(&p);
	pairs_done(&p);
	p = load(s);
	b = pairs_hash(&p);
	pairs_done(&p);
	assert_string_equal(a, b);
	ms(s, 0, 100);
	ms(s, 1, 110);
	block(s);
	p = load(s);
	c = pairs_hash(&p);
	pairs_done(&p);
	assert_string_not_equal(a, c);
	scene_free(s);
}

/* -- guards ---------------------------------------------------------------------------------- */

static void guard(struct scene *s, const char *metric, double margin)
{
	s->guards[s->recipe.n_guards++] = (struct guard){
		.metric = TEXT(metric), .stat = TEXT("mean"), .margin = margin};
}

/* Blocks in which the baseline has `base`, and arm 1 base * (1 + rel) + add, with a little noise.
 */
static void guarded(struct scene *s, const char *metric, double base, double rel, double add_up)
{
	for (int i = 0; i < 6; i++) {
		double noise = (i % 2 ? 1 : -1) * 1e-4 * fabs(base);

		value(s, 0, metric, base + noise);
		value(s, 1, metric, base * (1 + rel) + add_up - noise);
		block(s);
	}
}

static enum decide_guard judged(struct scene *s, char **text)
{
	enum decide_guard worst;
	struct err e = {0};

	assert_ok(pairs_guards(&s->c, &s->row, 1, &worst, text, &e));
	return worst;
}

static void assert_guard(const char *metric, double margin, double base, double rel, double add_up,
			 enum decide_guard want, const char *words)
{
	struct scene *s = scene_new(BETTER_UP);
	_cleanup_free_ char *text = NULL;

	guard(s, metric, margin);
	guarded(s, metric, base, rel, add_up);
	assert_int_equal(judged(s, &text), want);
	if (words)
		assert_contains(text ? text : "(none)", words);
	else
		assert_null(text);
	scene_free(s);
}

static void test_guards(void **state)
{
	(void)state;
	assert_guard("loss", 0.01, 2, 0.005, 0, DECIDE_GUARD_PASSED, NULL);
	assert_guard("loss", 0.01, 2, -0.3, 0, DECIDE_GUARD_PASSED, NULL);
	assert_guard("loss", 0.01, 2, 0.02, 0, DECIDE_GUARD_VIOLATED,
		     "guard loss (mean): worse by +2.00 %");
	/* more is better: a drop is worse */
	assert_guard("throughput_samples_per_s", 0.01, 100, -0.02, 0, DECIDE_GUARD_VIOLATED,
		     "worse by +2.0");
	assert_guard("throughput_samples_per_s", 0.01, 100, 0.5, 0, DECIDE_GUARD_PASSED, NULL);
}

/* A loss below 0 (a log likelihood) or around it has no ratio: the difference counts, relative to
 * the size of the baseline. */
static void test_guards_of_negative_metrics(void **state)
{
	(void)state;
	assert_guard("loss", 0.05, -10, 0, 0.4, DECIDE_GUARD_PASSED, NULL);
	assert_guard("loss", 0.05, -10, 0, 1, DECIDE_GUARD_VIOLATED,
		     "guard loss (mean): worse by +10.00 %");
	assert_guard("loss", 0.05, -10, 0, -3, DECIDE_GUARD_PASSED, NULL);
	assert_guard("loss", 0.05, -1, 0, 2, DECIDE_GUARD_VIOLATED, "worse by +200.00 %");
}

static void test_a_guard_of_zeros_passes(void **state)
{
	(void)state;
	assert_guard("loss", 0.05, 0, 0, 0, DECIDE_GUARD_PASSED, NULL);
}

static void test_a_guard_without_values_is_unsettled(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	_cleanup_free_ char *text = NULL, *one = NULL;

	(void)state;
	guard(s, "loss", 0.01);
	for (int i = 0; i < 4; i++) {
		value(s, 0, "loss", 2); /* the treatment has none */
		add(s, 1);
		block(s);
	}
	assert_int_equal(judged(s, &text), DECIDE_GUARD_UNSETTLED);
	assert_string_equal(text, "guard loss: no pair of trials has this metric");
	value(s, 0, "loss", 2);
	value(s, 1, "loss", 2);
	block(s);
	assert_int_equal(judged(s, &one), DECIDE_GUARD_UNSETTLED);
	assert_contains(one, "(not settled)");
	scene_free(s);
}

static void test_the_worst_guard_is_named(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	_cleanup_free_ char *text = NULL;

	(void)state;
	guard(s, "val_loss", 0.01); /* never measured: unsettled */
	guard(s, "loss", 0.01);     /* violated */
	guarded(s, "loss", 2, 0.1, 0);
	assert_int_equal(judged(s, &text), DECIDE_GUARD_VIOLATED);
	assert_contains(text, "guard loss");
	scene_free(s);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_values_are_logs_and_more_is_better),
		cmocka_unit_test(test_an_arm_that_was_not_in_a_block_is_absent),
		cmocka_unit_test(test_blocks_are_in_order_of_their_index),
		cmocka_unit_test(test_repeats_are_averaged_over_those_that_ended_well),
		cmocka_unit_test(test_failures_are_counted_and_told_by_arm),
		cmocka_unit_test(test_void_attempts_and_warm_up_count_for_nothing),
		cmocka_unit_test(test_the_hash_is_that_of_the_values),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_guards_of_negative_metrics),
		cmocka_unit_test(test_a_guard_of_zeros_passes),
		cmocka_unit_test(test_a_guard_without_values_is_unsettled),
		cmocka_unit_test(test_the_worst_guard_is_named),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
