/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two arms over the blocks that both have. */
#include "orchestrator/report/pairs.h"

#include <math.h>

#include "tests/unit/check.h"

#define NEAR 1e-9

enum { BASE = 1, ARM = 2, OTHER = 3 };

/* Blocks 0 to 2: the arm is 1.1 times the base; block 3 has no base, block 4 no arm. */
static const struct pairs_value sample[] = {
	{BASE, 0, 100}, {ARM, 0, 110}, {OTHER, 0, 5}, {ARM, 1, 220}, {BASE, 1, 200},
	{BASE, 2, 50},  {BASE, 2, 50}, {ARM, 2, 55},  {ARM, 3, 900}, {BASE, 4, 900},
};

static void blocks_with_both_arms_count(void **state)
{
	struct report_pairs p = pairs_logs(sample, ARRAY_LEN(sample), BASE, ARM, BETTER_UP, NULL);

	(void)state;
	assert_int_equal(p.effect.n, 3);
	assert_float_equal(p.effect.est, 0.1, NEAR);
	assert_float_equal(p.effect.lo, 0.1, NEAR);
	assert_float_equal(p.after / p.before, 1.1, NEAR);
	assert_float_equal(p.before, 100, 1e-6);
	assert_int_equal(p.moved, 1);
}

static void less_may_be_better(void **state)
{
	struct stats_mean_ci logs;
	struct report_pairs p = pairs_logs(sample, ARRAY_LEN(sample), BASE, ARM, BETTER_DOWN,
					   &logs);

	(void)state;
	assert_float_equal(p.effect.est, 1 / 1.1 - 1, NEAR);
	assert_int_equal(p.moved, -1);
	assert_float_equal(logs.sd, 0, NEAR);
}

static void noise_is_no_move(void **state)
{
	static const struct pairs_value v[] = {{BASE, 0, 100}, {ARM, 0, 110},  {BASE, 1, 100},
					       {ARM, 1, 92},   {BASE, 2, 100}, {ARM, 2, 101}};
	struct report_pairs p = pairs_any(v, ARRAY_LEN(v), BASE, ARM);

	(void)state;
	assert_int_equal(p.moved, 0);
	assert_true(p.effect.lo < 0 && p.effect.hi > 0);
}

/* A metric that was 0 has no relative change, but a direction. */
static void from_zero(void **state)
{
	static const struct pairs_value v[] = {{BASE, 0, 0}, {ARM, 0, 3},  {BASE, 1, 0},
					       {ARM, 1, 3},  {BASE, 2, 0}, {ARM, 2, 3.1}};
	struct report_pairs p = pairs_any(v, ARRAY_LEN(v), BASE, ARM);
	struct report_pairs same = pairs_any(v, ARRAY_LEN(v), BASE, BASE);

	(void)state;
	assert_int_equal(p.moved, 1);
	assert_true(isnan(p.effect.est));
	assert_int_equal(same.moved, 0);
	assert_float_equal(same.effect.est, 0, NEAR);
}

static void below_zero_by_differences(void **state)
{
	static const struct pairs_value v[] = {
		{BASE, 0, -10}, {ARM, 0, -5}, {BASE, 1, -10}, {ARM, 1, -5}};
	struct report_pairs p = pairs_any(v, ARRAY_LEN(v), BASE, ARM);

	(void)state;
	assert_float_equal(p.effect.est, 0.5, NEAR);
	assert_int_equal(p.moved, 1);
}

static void one_block_has_no_interval(void **state)
{
	struct report_pairs p = pairs_any(sample, 2, BASE, ARM);
	struct report_pairs none = pairs_any(sample, 1, BASE, ARM);

	(void)state;
	assert_int_equal(p.effect.n, 1);
	assert_false(isfinite(p.effect.hi));
	assert_int_equal(p.moved, 0);
	assert_int_equal(none.effect.n, 0);
	assert_true(isnan(none.effect.est));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_with_both_arms_count),
		cmocka_unit_test(less_may_be_better),
		cmocka_unit_test(noise_is_no_move),
		cmocka_unit_test(from_zero),
		cmocka_unit_test(below_zero_by_differences),
		cmocka_unit_test(one_block_has_no_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
