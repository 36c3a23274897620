/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/design.h"

#include <math.h>

#include "experiments/decide.h"
#include "experiments/stats.h"
#include "orchestrator/base/rng.h"
#include "tests/unit/check.h"
#include "tests/unit/near.h"

static const enum run_mode MODES[] = {MODE_QUICK, MODE_STANDARD, MODE_LONG, MODE_STRICT};

/* -- order --------------------------------------------------------------------------------- */

static void each_arm_takes_each_position_once_a_square(void **state)
{
	(void)state;
	for (size_t arms = 1; arms <= 13; arms++) {
		size_t count[13][13] = {{0}}, out[13];

		for (size_t block = 3 * arms; block < 4 * arms; block++) {
			design_order(7, 2, block, arms, 1, out);
			for (size_t j = 0; j < arms; j++) {
				assert_true(out[j] < arms);
				count[out[j]][j]++;
			}
		}
		for (size_t i = 0; i < arms * arms; i++)
			assert_int_equal(count[i / arms][i % arms], 1);
	}
}

static void an_even_number_of_arms_is_balanced_for_neighbours(void **state)
{
	(void)state;
	for (size_t arms = 2; arms <= 12; arms += 2) {
		size_t after[12][12] = {{0}}, out[12];

		for (size_t block = 0; block < arms; block++) {
			design_order(7, 2, block, arms, 1, out);
			for (size_t j = 1; j < arms; j++)
				after[out[j - 1]][out[j]]++;
		}
		for (size_t a = 0; a < arms; a++) {
			for (size_t b = 0; b < arms; b++)
				assert_int_equal(after[a][b], a != b);
		}
	}
}

static void two_arms_alternate_in_random_pairs(void **state)
{
	size_t first[2] = {0}, out[2], next[2];

	(void)state;
	for (size_t pair = 0; pair < 400; pair++) {
		design_order(11, 1, 2 * pair, 2, 1, out);
		design_order(11, 1, 2 * pair + 1, 2, 1, next);
		assert_int_equal(out[0], next[1]);
		assert_int_equal(out[1], next[0]);
		first[out[0]]++;
	}
	assert_true(first[0] > 140 && first[1] > 140); /* 6 sd of a fair coin */
}

static void repeats_are_balanced_within_a_block(void **state)
{
	size_t out[6 * 3], seconds = 0;

	(void)state;
	for (size_t block = 0; block < 20; block++) {
		design_order(5, 9, block, 2, 2, out);
		assert_int_equal(out[0] + out[1], 1);
		assert_int_equal(out[0], out[3]);
		assert_int_equal(out[1], out[2]);
	}
	design_order(5, 9, 4, 3, 6, out);
	for (size_t j = 1; j < 18; j += 3)
		seconds += out[j] == 2;
	assert_int_equal(seconds, 2); /* six passes of three arms: two squares */
}

static void the_order_is_a_function_of_its_arguments(void **state)
{
	size_t a[22], b[22], differs[3] = {0};

	(void)state;
	for (size_t block = 0; block < 50; block++) {
		design_order(1, 2, block, 11, 2, a);
		design_order(1, 2, 49 - block, 11, 2, b); /* another call between changes nothing */
		design_order(1, 2, block, 11, 2, b);
		assert_memory_equal(a, b, sizeof(a));
		design_order(2, 2, block, 11, 2, b);
		differs[0] += memcmp(a, b, sizeof(a)) != 0;
		design_order(1, 3, block, 11, 2, b);
		differs[1] += memcmp(a, b, sizeof(a)) != 0;
		design_order(1, 2, block + 50, 11, 2, b);
		differs[2] += memcmp(a, b, sizeof(a)) != 0;
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(differs[i], 50);
}

static void an_order_beyond_the_bounds_writes_nothing(void **state)
{
	size_t out[2] = {99, 99}, big[DESIGN_MAX_ARMS];
	bool seen[DESIGN_MAX_ARMS] = {false};

	(void)state;
	design_order(1, 1, 0, 0, 1, out);
	design_order(1, 1, 0, DESIGN_MAX_ARMS + 1, 1, out);
	design_order(1, 1, 0, 2, DESIGN_MAX_REPEATS + 1, out);
	assert_int_equal(out[0], 99);
	design_order(1, 1, 300, DESIGN_MAX_ARMS, 1, big);
	for (size_t i = 0; i < DESIGN_MAX_ARMS; i++)
		seen[big[i]] = true;
	for (size_t i = 0; i < DESIGN_MAX_ARMS; i++)
		assert_true(seen[i]);
}

/* -- screen -------------------------------------------------------------------------------- */

static void halving_has_the_runs_of_the_notes(void **state)
{
	const size_t want[] = {10, 5, 3, 3};

	(void)state;
	assert_int_equal(design_screen_blocks(MODE_STANDARD, 10), 4);
	for (size_t r = 0; r < 4; r++)
		assert_int_equal(design_screen_width(MODE_STANDARD, 10, r), want[r]);
	assert_int_equal(design_screen_runs(MODE_STANDARD, 10), 25);
	assert_int_equal(design_screen_df(MODE_STANDARD, 10), 11);
	assert_int_equal(design_screen_runs(MODE_QUICK, 10), 22);
	assert_int_equal(design_screen_df(MODE_QUICK, 10), 10);
}

static void widths_never_grow_and_small_screens_work(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(MODES); m++) {
		assert_int_equal(design_screen_blocks(MODES[m], 0), 0);
		assert_int_equal(design_screen_blocks(MODES[m], 1), 0);
		assert_int_equal(design_screen_df(MODES[m], 1), 0);
		for (size_t k = 2; k <= 200; k++) {
			assert_int_equal(design_screen_width(MODES[m], k, 0), k);
			for (size_t r = 1; r < 4; r++) {
				size_t width = design_screen_width(MODES[m], k, r);

				assert_true(width >= 2);
				assert_true(width <= design_screen_width(MODES[m], k, r - 1));
			}
		}
	}
}

enum { K = 6, ARMS = K + 1 };

static void the_best_go_on_and_rank_first(void **state)
{
	double y[4 * ARMS], means[ARMS];
	size_t out[K];

	(void)state;
	for (size_t i = 0; i < 4 * ARMS; i++)
		y[i] = NAN;
	assert_int_equal(design_screen_round(MODE_STANDARD, K, 0, NULL, out), K);
	for (size_t a = 0; a < ARMS; a++) /* arm 4 best, then 2, 6, 1 */
		y[a] = (const double[]){1, 1.1, 1.3, 0.9, 1.5, 0.8, 1.2}[a];
	assert_int_equal(design_screen_round(MODE_STANDARD, K, 1, y, out), 3);
	assert_memory_equal(out, ((const size_t[]){2, 4, 6}), 3 * sizeof(*out));
	y[ARMS] = 2; /* a slower block: only differences count */
	y[ARMS + 2] = 2.2;
	y[ARMS + 4] = 1.4;
	y[ARMS + 6] = 2.25;
	assert_int_equal(design_screen_round(MODE_STANDARD, K, 2, y, out), 2);
	assert_memory_equal(out, ((const size_t[]){2, 6}), 2 * sizeof(*out));
	y[2 * ARMS] = y[2 * ARMS + 2] = 0;
	y[2 * ARMS + 6] = 1.0;
	assert_int_equal(design_screen_round(MODE_STANDARD, K, 3, y, out), 2);
	/* 6: (.2 + .25 + 1) / 3; 2: (.3 + .2 + 0) / 3; 1: .1, dropped early; 4: (.5 - .6) / 2 */
	assert_int_equal(design_screen_rank(y, K, 3, out, means), 3);
	assert_memory_equal(out, ((const size_t[]){6, 2, 1, 4, 3, 5}), sizeof(out));
	assert_near(means[6], 1.45 / 3, 1e-12);
	assert_near(means[4], -0.05, 1e-12);
	assert_near(means[0], 0, 0);
}

static void failed_trials_and_no_gain_at_all(void **state)
{
	double y[2 * 4] = {1, NAN, 0.9, 0.8, NAN, 1.5, 0.7, 0.6};
	size_t out[3];
	double means[4];

	(void)state;
	/* Arm 1 has values only where the baseline has none. */
	assert_int_equal(design_screen_rank(y, 3, 2, out, means), 0);
	assert_memory_equal(out, ((const size_t[]){2, 3, 1}), sizeof(out));
	assert_true(isnan(means[1]));
	assert_int_equal(design_screen_round(MODE_STANDARD, 3, 1, y, out), 2);
	assert_memory_equal(out, ((const size_t[]){2, 3}), 2 * sizeof(*out));
}

/* Relabelling the candidates permutes the ranking, and nothing else. */
static void ranking_does_not_depend_on_labels(void **state)
{
	enum { N = 8 };
	struct rng r = rng_at(6, 0, 0, 0);
	double y[4 * (N + 1)], z[4 * (N + 1)];
	size_t to[N], a[N], b[N];

	(void)state;
	for (size_t i = 0; i < N; i++)
		to[i] = i;
	for (size_t trial = 0; trial < 200; trial++) {
		rng_shuffle(&r, to, N);
		for (size_t i = 0; i < ARRAY_LEN(y); i++)
			y[i] = rng_uniform(&r) < 0.2 ? NAN : rng_normal(&r);
		for (size_t block = 0; block < 4; block++) {
			y[block * (N + 1)] = z[block * (N + 1)] = rng_normal(&r);
			y[block * (N + 1) + 1 + block] = 1; /* nobody is without a value */
			y[block * (N + 1) + 5 + block] = 1 + rng_normal(&r);
			for (size_t i = 0; i < N; i++)
				z[block * (N + 1) + 1 + to[i]] = y[block * (N + 1) + 1 + i];
		}
		assert_int_equal(design_screen_rank(y, N, 4, a, NULL),
				 design_screen_rank(z, N, 4, b, NULL));
		for (size_t i = 0; i < N; i++)
			assert_int_equal(to[a[i] - 1] + 1, b[i]);
	}
}

/* -- plan ---------------------------------------------------------------------------------- */

static void repeats_follow_the_variance_components(void **state)
{
	(void)state;
	assert_int_equal(design_repeats(100, 25, 4, 1), 4);
	assert_int_equal(design_repeats(100, 24, 4, 1), 5);
	assert_int_equal(design_repeats(1, 1, 1, 100), 1);
	assert_int_equal(design_repeats(1, 1, 0, 0), 1);
	assert_int_equal(design_repeats(1, 1, 1, 0), DESIGN_MAX_REPEATS);
	assert_int_equal(design_repeats(1e30, 1, 1, 1e-9), DESIGN_MAX_REPEATS);
}

static void a_plan_says_what_it_can_show(void **state)
{
	struct design_question q = {
		.mode = MODE_STANDARD,
		.alpha = 0.05,
		.stages = 1,
		.candidates = 10,
		.repeats = 1,
		.noise = 0.02,
		.gain_sought = 0.05,
	};
	struct design_answer a = design_plan(&q);
	double df = 22;

	(void)state;
	assert_int_equal(a.df0, 11);
	assert_int_equal(a.screen_runs, 25);
	assert_int_equal(a.confirm_runs_max, 24);
	assert_int_equal(a.final_runs, 16);
	assert_near(a.p_star, decide_p_star(MODE_STANDARD, 0.05, 11), 0);
	assert_near(a.mde,
		    expm1((stats_t_quantile(1 - a.p_star, df) + stats_t_quantile(0.8, df)) * 0.02 *
			  sqrt(2 / 12.0)),
		    1e-12);
	assert_near(a.mde, design_mde(MODE_STANDARD, 0.05, 0.02, 1, 11), 1e-12);
	assert_true(a.answerable);
	assert_int_equal(a.repeats_needed, 1);
	q.gain_sought = 0.01;
	a = design_plan(&q);
	assert_false(a.answerable);
	assert_true(a.repeats_needed > 1);
	q.repeats = a.repeats_needed;
	assert_true(design_plan(&q).answerable);
	q.repeats--;
	assert_false(design_plan(&q).answerable);
	q.gain_sought = 1e-6;
	assert_int_equal(design_plan(&q).repeats_needed, 0);
}

static void a_budget_below_the_first_look_answers_nothing(void **state)
{
	struct design_question q = {
		.mode = MODE_QUICK,
		.alpha = 0.05,
		.stages = 2,
		.candidates = 4,
		.repeats = 2,
		.noise = 0.01,
		.gain_sought = 0.5,
		.blocks_left = 2,
	};
	struct design_answer a = design_plan(&q);

	(void)state;
	assert_false(a.answerable);
	assert_int_equal(a.confirm_runs_max, 0);
	assert_near(a.share, 0.04, 1e-15);
	q.blocks_left = 7; /* looks at 6 */
	a = design_plan(&q);
	assert_true(a.answerable);
	assert_int_equal(a.confirm_runs_max, 24);
}

/* The power at the smallest detectable effect is what it claims, or a little more. */
static void the_smallest_detectable_effect_is_found(void **state)
{
	struct rng r = rng_at(8, 0, 0, 0);
	double d[12], effect = log1p(design_mde(MODE_STANDARD, 0.05, 0.02, 1, 0));
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		struct decide_plan plan = {.mode = MODE_STANDARD, .alpha = 0.05};
		struct decision out;

		for (size_t j = 0; j < 12; j++)
			d[j] = effect + sqrt(2) * 0.02 * rng_normal(&r);
		decide_confirm(&plan, d, 12, &out);
		found += out.verdict == VERDICT_ACCEPTED;
	}
	assert_true(found > 0.78 * 2000 && found < 0.92 * 2000);
}

static void longer_modes_have_more_blocks(void **state)
{
	(void)state;
	for (size_t m = 1; m < ARRAY_LEN(MODES); m++) {
		assert_true(design_final_blocks(MODES[m]) >= design_final_blocks(MODES[m - 1]));
		assert_true(design_aa_blocks(MODES[m]) >= design_aa_blocks(MODES[m - 1]));
	}
	assert_true(design_aa_blocks(MODE_QUICK) >= 3);
}

/* -- allocations ---------------------------------------------------------------------------- */

static size_t in_one(enum stage_kind kind, size_t asked, size_t before, size_t known, size_t slots)
{
	struct design_allocation a = {kind, asked, before, known, slots};

	return design_allocation_blocks(&a);
}

static void units_are_as_large_as_was_asked(void **state)
{
	static const enum stage_kind kinds[] = {STAGE_AA, STAGE_CONFIRM, STAGE_ABLATE, STAGE_FINAL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		assert_int_equal(in_one(kinds[i], 1, 0, 12, 1), 1);
		assert_int_equal(in_one(kinds[i], 4, 0, 12, 1), 4);
		assert_int_equal(in_one(kinds[i], 4, 9, 3, 4), 3);
		assert_int_equal(in_one(kinds[i], 0, 0, 0, 0), 1); /* never none */
	}
	assert_int_equal(in_one(STAGE_CONVERGE, 4, 0, 3, 1), 1);
}

/* Rows of (unit before, known): a screen of the default recipe always ends with three units. */
static void a_screen_shares_what_does_not_run_at_once(void **state)
{
	(void)state;
	assert_int_equal(in_one(STAGE_SCREEN, 1, 2, 2, 1), 2);
	assert_int_equal(in_one(STAGE_SCREEN, 1, 2, 2, 2), 1); /* both run now, as two units */
	assert_int_equal(in_one(STAGE_SCREEN, 1, 0, 2, 1), 1); /* quick has two blocks in all */
	assert_int_equal(in_one(STAGE_SCREEN, 1, 1, 3, 1), 1);
	assert_int_equal(in_one(STAGE_SCREEN, 2, 0, 2, 4), 2); /* asked for */
	assert_int_equal(in_one(STAGE_VERIFY, 1, 0, 12, 4), 3);
	assert_int_equal(in_one(STAGE_SOAK, 1, 0, 5, 2), 3);
	for (size_t m = 0; m < ARRAY_LEN(MODES); m++)
		for (size_t k = 2; k < 20; k++) {
			size_t blocks = design_screen_blocks(MODES[m], k), done = 0, units = 0;

			for (; done < blocks; units++) {
				size_t known = design_screen_known(MODES[m], k, done);

				assert_true(done + known <= blocks);
				done += in_one(STAGE_SCREEN, 1, done, known, 1);
			}
			assert_true(units >= (blocks < 3 ? blocks : 3));
		}
}

static void blocks_whose_arms_are_settled_are_known(void **state)
{
	(void)state;
	assert_int_equal(design_screen_known(MODE_QUICK, 10, 0), 2);
	assert_int_equal(design_screen_known(MODE_QUICK, 10, 1), 1);
	assert_int_equal(design_screen_known(MODE_STANDARD, 10, 0), 1);
	assert_int_equal(design_screen_known(MODE_STANDARD, 10, 1), 1);
	assert_int_equal(design_screen_known(MODE_STANDARD, 10, 2), 2);
	assert_int_equal(design_screen_known(MODE_STANDARD, 10, 3), 1);
	assert_int_equal(design_screen_known(MODE_STANDARD, 2, 0), 1);
	assert_int_equal(design_screen_known(MODE_STANDARD, 2, 1), 3);
	/* and they are: whatever the blocks between show */
	for (size_t draw = 0; draw < 50; draw++) {
		struct rng r = rng_at(9, draw, 0, 0);
		double y[4 * 11];
		size_t a[10], b[10], n;

		for (size_t i = 0; i < ARRAY_LEN(y); i++)
			y[i] = rng_normal(&r);
		n = design_screen_round(MODE_STANDARD, 10, 2, y, a);
		assert_int_equal(design_screen_round(MODE_STANDARD, 10, 3, y, b), n);
		assert_memory_equal(a, b, n * sizeof *a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_arm_takes_each_position_once_a_square),
		cmocka_unit_test(an_even_number_of_arms_is_balanced_for_neighbours),
		cmocka_unit_test(two_arms_alternate_in_random_pairs),
		cmocka_unit_test(repeats_are_balanced_within_a_block),
		cmocka_unit_test(the_order_is_a_function_of_its_arguments),
		cmocka_unit_test(an_order_beyond_the_bounds_writes_nothing),
		cmocka_unit_test(halving_has_the_runs_of_the_notes),
		cmocka_unit_test(widths_never_grow_and_small_screens_work),
		cmocka_unit_test(the_best_go_on_and_rank_first),
		cmocka_unit_test(failed_trials_and_no_gain_at_all),
		cmocka_unit_test(ranking_does_not_depend_on_labels),
		cmocka_unit_test(repeats_follow_the_variance_components),
		cmocka_unit_test(a_plan_says_what_it_can_show),
		cmocka_unit_test(a_budget_below_the_first_look_answers_nothing),
		cmocka_unit_test(the_smallest_detectable_effect_is_found),
		cmocka_unit_test(longer_modes_have_more_blocks),
		cmocka_unit_test(units_are_as_large_as_was_asked),
		cmocka_unit_test(a_screen_shares_what_does_not_run_at_once),
		cmocka_unit_test(blocks_whose_arms_are_settled_are_known),
	};

	return cmocka_run_group_tests_name("design", tests, NULL, NULL);
}
