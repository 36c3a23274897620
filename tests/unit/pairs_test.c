/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From stored trials to what the statistics get: pairs of a stage, failures by arm, guards. */
#include "tests/unit/store.h"

#include "experiments/stats.h"
#include "orchestrator/base/rng.h"
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

/* -- units ----------------------------------------------------------------------------------- */

static void pair_on(struct scene *s, double base, double treatment, const char *node)
{
	ms(s, 0, base);
	ms(s, 1, treatment);
	for (size_t i = 0; i < s->n; i++)
		s->t[i].node = xstrdup(node);
	block(s);
}

/* As if a pilot had run all blocks in the first one's allocation. */
static void one_allocation(struct scene *s)
{
	assert_int_equal(store_exec(s->st.db, "UPDATE attempt SET allocation = "
					      "(SELECT min(allocation) FROM attempt)"),
			 SQLITE_OK);
}

static size_t units(struct scene *s, enum stage_kind k, double **d)
{
	struct pairs p;
	size_t n;

	s->row.kind = k;
	p = load(s);
	n = pairs_diff(&p, 1, d);
	pairs_done(&p);
	return n;
}

static void test_blocks_of_one_allocation_on_the_same_nodes_are_one_unit(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	double *blocks = NULL, *d = NULL, mean[3];
	const size_t unit[3] = {0, 0, 1};

	(void)state;
	pair_on(s, 100, 110, "n1");
	pair_on(s, 90, 120, "n1");
	pair_on(s, 100, 105, "n2");
	assert_int_equal(units(s, STAGE_CONFIRM, &blocks), 3); /* an allocation each */
	assert_int_equal(stats_unit_means(blocks, unit, 3, mean), 2);
	one_allocation(s);
	assert_int_equal(units(s, STAGE_CONFIRM, &d), 2); /* n1 and n2 */
	assert_near(d[0], mean[0], 1e-12);
	assert_near(d[1], mean[1], 1e-12);
	free(d);
	assert_int_equal(units(s, STAGE_SCREEN, &d), 3); /* ranks, claims nothing */
	free(d);
	free(blocks);
	scene_free(s);
}

/* The noise that a screen hands on is that of units of one block: the first of each. */
static void test_units_are_told_by_their_first_block(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	struct err e = {0};
	double *d = NULL;
	struct pairs p;

	(void)state;
	pair_on(s, 100, 110, "n1");
	pair_on(s, 100, 130, "n1");
	pair_on(s, 100, 105, "n2");
	one_allocation(s);
	assert_ok(pairs_load_units(&s->c, &s->row, &p, &e));
	assert_int_equal(p.blocks, 2);
	assert_int_equal(pairs_diff(&p, 1, &d), 2);
	assert_near(d[0], log(1.1), 1e-12);
	assert_near(d[1], log(1.05), 1e-12);
	free(d);
	pairs_done(&p);
	scene_free(s);
}

/* Whatever the sizes of units and the order in which their blocks came in: as many values as units,
 * each the mean of its blocks' differences; names of arms turn the sign, a unit of the metric
 * changes nothing. */
static void test_units_of_any_size(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct rng r = rng_at(seed, 5, 0, 0);
		size_t n_units = 2 + seed % 3, blocks = 0, n;
		double want[4] = {0}, scale = seed % 2 ? 1 : 1000, *d = NULL, *back = NULL;
		struct scene *s = scene_new(BETTER_UP);

		for (size_t u = 0; u < n_units; u++) {
			size_t size = 1 + (size_t)(rng_uniform(&r) * 4);
			char node[8];

			snprintf(node, sizeof node, "n%zu", u);
			for (size_t k = 0; k < size; k++) {
				double base = 90 + 20 * rng_uniform(&r),
				       gain = 0.1 * rng_normal(&r);

				want[u] += gain / (double)size;
				ms(s, 0, scale * base);
				ms(s, 1, scale * base * exp(gain));
				ms(s, 2, scale * base);
				for (size_t i = 0; i < s->n; i++)
					s->t[i].node = xstrdup(node);
				/* the last block comes in first */
				block_at(s, (int)(u * 10 + (9 - k)));
				blocks++;
			}
		}
		one_allocation(s);
		n = units(s, STAGE_CONFIRM, &d);
		assert_int_equal(n, n_units);
		for (size_t u = 0; u < n; u++)
			assert_near(d[u], want[u], 1e-9);
		/* the arms change their names */
		assert_int_equal(
			store_exec(
				s->st.db,
				"UPDATE trial SET arm = (SELECT min(id) + max(id) FROM arm "
				"WHERE idx < 2) - arm WHERE arm IN (SELECT id FROM arm WHERE idx < 2)"),
			SQLITE_OK);
		assert_int_equal(units(s, STAGE_CONFIRM, &back), n);
		for (size_t u = 0; u < n; u++)
			assert_near(back[u], -want[u], 1e-9);
		free(d);
		free(back);
		scene_free(s);
	}
}

/* A block without a pair changes nothing of its unit. */
static void test_a_unit_is_made_of_its_pairs(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	double *d = NULL;

	(void)state;
	pair_on(s, 100, 110, "n1");
	ms(s, 0, 50);
	failed(s, 1, "exited with 1");
	s->t[0].node = xstrdup("n1");
	s->t[1].node = xstrdup("n1");
	block(s);
	one_allocation(s);
	assert_int_equal(units(s, STAGE_FINAL, &d), 1);
	assert_near(d[0], log(1.1), 1e-12);
	free(d);
	scene_free(s);
}

/* -- guards ---------------------------------------------------------------------------------- */

static void guard(struct scene *s, const char *metric, double margin)
{
	s->guards[s->recipe.n_guards++] = (struct guard){.metric = TEXT(metric),
							 .stat = TEXT("mean"),
							 .margin = margin,
							 .at_most = NAN,
							 .at_least = NAN,
							 .better = metric_def_find(metric)->better};
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

static void test_limits_are_of_the_candidate_alone(void **state)
{
	struct scene *s = scene_new(BETTER_UP);
	_cleanup_free_ char *text = NULL;

	(void)state;
	guard(s, "mem_peak_reserved_gib", NAN);
	s->guards[0].at_most = 70;
	guarded(s, "mem_peak_reserved_gib", 80, -0.25, 0);
	assert_int_equal(judged(s, &text), DECIDE_GUARD_PASSED);
	s->guards[0].at_most = 59;
	assert_int_equal(judged(s, &text), DECIDE_GUARD_VIOLATED);
	assert_contains(text, "must be at most 59");
	s->guards[0].at_least = 59;
	s->guards[0].at_most = NAN;
	free(text);
	assert_int_equal(judged(s, &text), DECIDE_GUARD_PASSED);
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
		cmocka_unit_test(test_blocks_of_one_allocation_on_the_same_nodes_are_one_unit),
		cmocka_unit_test(test_units_are_told_by_their_first_block),
		cmocka_unit_test(test_units_of_any_size),
		cmocka_unit_test(test_a_unit_is_made_of_its_pairs),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_guards_of_negative_metrics),
		cmocka_unit_test(test_a_guard_of_zeros_passes),
		cmocka_unit_test(test_a_guard_without_values_is_unsettled),
		cmocka_unit_test(test_limits_are_of_the_candidate_alone),
		cmocka_unit_test(test_the_worst_guard_is_named),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
