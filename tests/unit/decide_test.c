/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/decide.h"

#include <math.h>

#include "experiments/stats.h"
#include "orchestrator/base/rng.h"
#include "tests/bench/pstar_sim.h"
#include "tests/unit/check.h"
#include "tests/unit/near.h"

static const enum run_mode MODES[] = {MODE_QUICK, MODE_STANDARD, MODE_LONG, MODE_STRICT};

static struct decide_plan plan_of(enum run_mode mode)
{
	return (struct decide_plan){.mode = mode, .alpha = 0.05, .min_effect = 0.01};
}

static struct decision confirm(const struct decide_plan *plan, const double *d, size_t n)
{
	struct decision out;
	bool done = decide_confirm(plan, d, n, &out);

	assert_int_equal(done, out.done);
	return out;
}

/* -- looks and p* -------------------------------------------------------------------------- */

static void looks_of_the_modes(void **state)
{
	const size_t *blocks;

	(void)state;
	assert_int_equal(decide_looks(MODE_STANDARD, &blocks), 7);
	assert_memory_equal(blocks, ((const size_t[]){3, 4, 5, 6, 8, 10, 12}), 7 * sizeof(*blocks));
	assert_int_equal(decide_max_blocks(MODE_QUICK), 8);
	assert_int_equal(decide_max_blocks(MODE_LONG), 24);
	assert_int_equal(decide_max_blocks(MODE_STRICT), 24);
	assert_int_equal(decide_next_look(MODE_QUICK, 0), 3);
	assert_int_equal(decide_next_look(MODE_QUICK, 6), 8);
	assert_int_equal(decide_next_look(MODE_QUICK, 7), 8);
	assert_int_equal(decide_next_look(MODE_QUICK, 8), 0);
	assert_near(decide_alpha(MODE_STRICT), 0.01, 0);
	assert_near(decide_alpha(MODE_QUICK), 0.05, 0);
}

/* statistics.md 6.3 measured these with 400,000 draws: their own error is about 1.5 %. */
static void p_star_agrees_with_the_notes(void **state)
{
	(void)state;
	assert_near(decide_p_star(MODE_STANDARD, 0.05, 0), 0.0131, 0.0003);
	assert_near(decide_p_star(MODE_STANDARD, 0.05, 5), 0.0148, 0.0003);
	assert_near(decide_p_star(MODE_STANDARD, 0.05, 11), 0.0150, 0.0004);
	assert_near(decide_p_star(MODE_STANDARD, 0.025, 11), 0.0069, 0.0002);
	assert_near(decide_p_star(MODE_STANDARD, 0.0125, 0), 0.0027, 0.0001);
	assert_near(decide_p_star(MODE_STANDARD, 0.01, 20), 0.0025, 0.0002);
	assert_near(decide_p_star(MODE_STANDARD, 0.005, 0), 0.0010, 0.00006);
	assert_near(decide_p_star(MODE_LONG, 0.05, 0), 0.0096, 0.0003);
	assert_near(decide_p_star(MODE_LONG, 0.05, 11), 0.0112, 0.0003);
	assert_near(decide_p_star(MODE_STRICT, 0.01, 11), 0.0018, 0.0001);
	assert_near(decide_p_star(MODE_QUICK, 0.05, 10), 0.019, 0.0006);
}

/* The table derived again by fewer draws: the error over all looks at p* is alpha. */
static void p_star_is_derived_again(void **state)
{
	enum { DRAWS = 40000 }; /* each with its mirror image */
	const size_t df0[] = {0, 6, 11};
	const double alphas[] = {0.05, 0.0125};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(df0); k++) {
		struct rng r = rng_at(424242, df0[k], 0, 0);
		size_t wrong[2][ARRAY_LEN(MODES)] = {{0}};
		double least[2][PSTAR_LOOKS];

		for (size_t i = 0; i < DRAWS; i++) {
			pstar_draw(&r, df0[k], least);
			for (size_t j = 0; j < 2 * 2 * ARRAY_LEN(MODES); j++) {
				size_t side = j % 2, a = j / 2 % 2, m = j / 4;

				wrong[a][m] += least[side][decide_looks(MODES[m], NULL) - 1] <=
					       decide_p_star(MODES[m], alphas[a], df0[k]);
			}
		}
		for (size_t j = 0; j < 2 * ARRAY_LEN(MODES); j++) {
			double alpha = alphas[j % 2],
			       got = (double)wrong[j % 2][j / 2] / (2 * DRAWS);

			/* 4.5 sd, and 1 % of alpha for the table's own error */
			assert_near(got, alpha, 0.01 * alpha + 4.5 * sqrt(alpha / (2 * DRAWS)));
		}
	}
}

/* Every lookup stays between the bound of Bonferroni and alpha, and between its neighbours. */
static void p_star_is_safe_between_the_entries(void **state)
{
	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(MODES); m++) {
		double looks = (double)decide_looks(MODES[m], NULL);

		for (size_t df0 = 0; df0 < 80; df0 += df0 < 16 ? 1 : 7) {
			double before = 0;

			for (double alpha = 1e-5; alpha < 0.2; alpha *= 1.07) {
				double p = decide_p_star(MODES[m], alpha, df0);

				assert_true(p >= alpha / looks * 0.999 && p < alpha);
				assert_true(p > before);
				assert_true(p <= decide_p_star(MODES[m], alpha, df0 + 200) * 1.02);
				before = p;
			}
		}
		assert_near(decide_p_star(MODES[m], 3 * (0.05 / 3), 11),
			    decide_p_star(MODES[m], 0.05, 11), 1e-12);
		assert_near(decide_p_star(MODES[m], 0, 11), 0, 0);
		assert_near(decide_p_star(MODES[m], 1e-6, 11), 1e-6 / looks, 1e-12);
	}
}

/* -- confirm ------------------------------------------------------------------------------- */

static void the_statistic_is_that_of_the_notes(void **state)
{
	const double d[] = {0.01, 0.03, 0.02, 0.06};
	struct decide_stat own = decide_stat(0, 0, d, 4), with = decide_stat(0.0008, 11, d, 4);
	double s = 0.0014; /* sum of squares about 0.03 */

	(void)state;
	assert_near(own.est, 0.03, 1e-15);
	assert_near(own.se, sqrt(s / 3 / 4), 1e-15);
	assert_near(own.df, 3, 0);
	assert_near(with.se_pooled, sqrt((2 * 0.0008 + s) / 14 / 4), 1e-15);
	assert_near(with.se, sqrt(s / 3 / 4),
		    1e-15); /* noisier than the screen: its own variance */
	assert_near(with.df, 14, 0);
	assert_near(decide_stat(0.08, 11, d, 4).se, sqrt((2 * 0.08 + s) / 14 / 4), 1e-15);
	assert_true(isnan(decide_stat(0, 0, d, 1).se));
	assert_near(decide_stat(0.0011, 11, d, 1).se, sqrt(2 * 0.0011 / 11), 1e-15);
}

static void a_clear_gain_is_accepted_at_the_first_look(void **state)
{
	const double d[] = {0.20, 0.21, 0.19, -9, -9};
	struct decide_plan plan = plan_of(MODE_STANDARD);
	struct decision out = confirm(&plan, d, 3);

	(void)state;
	assert_true(out.done);
	assert_int_equal(out.verdict, VERDICT_ACCEPTED);
	assert_int_equal(out.look, 1);
	assert_int_equal(out.looks, 7);
	assert_int_equal(out.n, 3);
	assert_near(out.est, 0.2, 1e-12);
	assert_near(out.p + out.p_worse, 1, 1e-12);
	assert_near(out.p_star, decide_p_star(MODE_STANDARD, 0.05, 0), 0);
	assert_near(stats_t_sf((out.hi - out.est) / out.se, out.df), out.p_star, 1e-9);
	assert_near(out.hi - out.est, out.est - out.lo, 1e-12);
	assert_true(out.lo95 < out.lo && out.hi95 > out.hi);
	/* A restart that finds more blocks than were needed decides the same. */
	assert_int_equal(confirm(&plan, d, 5).n, 3);
	assert_int_equal(confirm(&plan, d, 5).verdict, VERDICT_ACCEPTED);
}

static void before_and_between_looks_it_goes_on(void **state)
{
	const double d[] = {0.2, 0.2, 0.0, 0.1, -0.2, 0.3, 0.3};
	struct decide_plan plan = plan_of(MODE_STANDARD);
	struct decision none = confirm(&plan, d, 0), two = confirm(&plan, d, 2),
			seven = confirm(&plan, d, 7);

	(void)state;
	assert_false(none.done);
	assert_true(isnan(none.est) && isinf(none.lo) && isinf(none.hi95));
	assert_false(two.done);
	assert_int_equal(two.look, 0);
	assert_int_equal(two.n, 2);
	assert_false(seven.done);
	assert_int_equal(seven.look, 4); /* 6 blocks */
	assert_int_equal(seven.n, 7);    /* the live interval has all of them */
	assert_near(seven.est, 0.9 / 7, 1e-12);
}

static void identical_values(void **state)
{
	const double same[] = {0, 0, 0}, up[] = {0.3, 0.3, 0.3}, down[] = {-0.3, -0.3, -0.3};
	const double slight[] = {0.004, 0.004, 0.004};
	struct decide_plan plan = plan_of(MODE_QUICK);

	(void)state;
	assert_int_equal(confirm(&plan, same, 3).verdict, VERDICT_EQUIVALENT);
	assert_near(confirm(&plan, same, 3).hi, 0, 0);
	assert_int_equal(confirm(&plan, up, 3).verdict, VERDICT_ACCEPTED);
	assert_int_equal(confirm(&plan, down, 3).verdict, VERDICT_REJECTED_WORSE);
	assert_int_equal(confirm(&plan, slight, 3).verdict, VERDICT_EQUIVALENT);
	plan.margin = 0.001; /* a real gain, too small to be useful, too large to be nothing */
	assert_int_equal(confirm(&plan, slight, 3).verdict, VERDICT_REJECTED_NO_GAIN);
}

static void harm_is_worse_and_no_effect_is_no_useful_gain(void **state)
{
	const double harm[] = {-0.21, -0.24, -0.19}, none[] = {-0.02, 0.03, -0.025};
	struct decide_plan plan = plan_of(MODE_QUICK);
	struct decision out = confirm(&plan, harm, 3);

	(void)state;
	assert_true(out.done);
	assert_int_equal(out.verdict, VERDICT_REJECTED_WORSE);
	assert_true(out.hi < 0);
	assert_true(out.p_worse <= out.p_star);
	plan.min_effect = 0.05;
	plan.margin = 0.01;
	out = confirm(&plan, none, 3);
	assert_true(out.done);
	assert_int_equal(out.verdict, VERDICT_REJECTED_NO_GAIN);
	assert_true(out.lo < 0 && out.hi > 0);
}

/* Noisy blocks of a harmful arm: futile at 3, but p of harm is 0.026, so it is watched on. */
static void probable_harm_is_settled_before_it_is_named(void **state)
{
	const double d[] = {-0.13, -0.22, -0.31, -0.20};
	struct decide_plan plan = plan_of(MODE_QUICK);
	struct decision out = confirm(&plan, d, 3);

	(void)state;
	assert_true(out.p_worse > out.p_star && out.p_worse <= 0.05);
	assert_true(out.est + stats_t_quantile(0.9, out.df) * out.se < 0);
	assert_false(out.done);
	out = confirm(&plan, d, 4);
	assert_true(out.done);
	assert_int_equal(out.verdict, VERDICT_REJECTED_WORSE);
}

static void the_last_look_ends_it(void **state)
{
	const double d[] = {0.05, -0.02, 0.06, -0.03, 0.05, -0.02, 0.06, -0.03, 0.01};
	struct decide_plan plan = plan_of(MODE_QUICK);

	(void)state;
	assert_false(confirm(&plan, d, 6).done);
	assert_true(confirm(&plan, d, 8).done);
	assert_int_equal(confirm(&plan, d, 8).verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(confirm(&plan, d, 9).n, 8);
	plan.mode = MODE_STANDARD;
	assert_false(confirm(&plan, d, 8).done);
}

/* A gain that is certain but below min_effect is not a win. */
static void a_gain_below_the_least_useful_one_is_not_accepted(void **state)
{
	const double d[] = {0.0085, 0.0095, 0.009};
	struct decide_plan plan = plan_of(MODE_QUICK);

	(void)state;
	plan.margin = 0.002;
	assert_int_equal(confirm(&plan, d, 3).verdict, VERDICT_REJECTED_NO_GAIN);
	plan.min_effect = 0.005;
	assert_int_equal(confirm(&plan, d, 3).verdict, VERDICT_ACCEPTED);
}

static void absolute_differences_take_the_effect_as_it_is(void **state)
{
	const double d[] = {49, 51, 50};
	struct decide_plan plan = {
		.mode = MODE_QUICK, .alpha = 0.05, .min_effect = 60, .absolute = true};

	(void)state;
	assert_int_equal(confirm(&plan, d, 3).verdict, VERDICT_EQUIVALENT);
	plan.margin = 5;
	assert_int_equal(confirm(&plan, d, 3).verdict, VERDICT_REJECTED_NO_GAIN);
	plan.min_effect = 40;
	assert_int_equal(confirm(&plan, d, 3).verdict, VERDICT_ACCEPTED);
}

/* Exchanging the arms mirrors every figure; the test is the same on both sides. */
static void relabelling_the_arms_flips_the_sign(void **state)
{
	struct rng r = rng_at(77, 0, 0, 0);
	double d[8], e[8];

	(void)state;
	for (size_t i = 0; i < 500; i++) {
		struct decide_plan plan = plan_of(MODE_QUICK);
		struct decide_stat a, b;
		struct decision x, y;

		plan.ssr = 0.001 * rng_uniform(&r);
		plan.df0 = 5;
		for (size_t j = 0; j < 8; j++) {
			d[j] = 0.02 * rng_normal(&r);
			e[j] = -d[j];
		}
		a = decide_stat(plan.ssr, 5, d, 8);
		b = decide_stat(plan.ssr, 5, e, 8);
		assert_near(a.est, -b.est, 0);
		assert_near(a.se, b.se, 1e-15);
		x = confirm(&plan, d, 2);
		y = confirm(&plan, e, 2);
		assert_near(x.lo, -y.hi, 1e-15);
		assert_near(x.lo95, -y.hi95, 1e-15);
		assert_near(x.p, y.p_worse, 1e-12);
	}
}

/* -- guards -------------------------------------------------------------------------------- */

static void guards_pass_violate_or_wait(void **state)
{
	const double steady[] = {0.001, -0.001, 0.002, 0}, worse[] = {0.10, 0.11, 0.09},
		     wild[] = {-0.2, 0.3};
	const double equal[] = {0.02, 0.02};
	struct decide_guard_result g = decide_guard(steady, 4, 0.01, BETTER_DOWN);

	(void)state;
	assert_int_equal(g.state, DECIDE_GUARD_PASSED);
	assert_near(g.worsening, 0.0005, 1e-12);
	assert_near((g.hi - g.worsening) / (stats_sd(steady, 4) / 2), stats_t_quantile(0.95, 3),
		    1e-9);
	assert_int_equal(decide_guard(worse, 3, 0.01, BETTER_DOWN).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_guard(worse, 3, 0.01, BETTER_UP).state, DECIDE_GUARD_PASSED);
	assert_int_equal(decide_guard(worse, 3, 0.01, BETTER_NONE).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_guard(steady, 4, 0.01, BETTER_NONE).state, DECIDE_GUARD_PASSED);
	assert_int_equal(decide_guard(wild, 2, 0.01, BETTER_DOWN).state, DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_guard(equal, 2, 0.02, BETTER_DOWN).state, DECIDE_GUARD_PASSED);
	assert_int_equal(decide_guard(equal, 2, 0.019, BETTER_DOWN).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_guard(equal, 2, 0.019, BETTER_NONE).state, DECIDE_GUARD_VIOLATED);
}

static void guards_of_missing_or_infinite_values(void **state)
{
	const double inf[] = {0, INFINITY, 0}, up[] = {0, -INFINITY}, absent[] = {0, NAN, 0},
		     one[] = {0};

	(void)state;
	assert_int_equal(decide_guard(inf, 3, 0.01, BETTER_DOWN).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_guard(up, 2, 0.01, BETTER_UP).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_guard(up, 2, 0.01, BETTER_NONE).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_guard(up, 2, 0.01, BETTER_DOWN).state, DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_guard(absent, 3, 0.01, BETTER_DOWN).state, DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_guard(one, 1, 0.01, BETTER_DOWN).state, DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_guard(one, 0, 0.01, BETTER_DOWN).state, DECIDE_GUARD_UNSETTLED);
}

/* A candidate exactly at the margin passes in 5 % of the cases at most. */
static void a_guard_at_its_margin_passes_rarely(void **state)
{
	struct rng r = rng_at(31, 0, 0, 0);
	size_t passed = 0, violated = 0;
	double d[5];

	(void)state;
	for (size_t i = 0; i < 10000; i++) {
		enum decide_guard g;

		for (size_t j = 0; j < 5; j++)
			d[j] = 0.02 + 0.01 * rng_normal(&r);
		g = decide_guard(d, 5, 0.02, BETTER_DOWN).state;
		passed += g == DECIDE_GUARD_PASSED;
		violated += g == DECIDE_GUARD_VIOLATED;
	}
	assert_near((double)passed / 10000, 0.05, 0.01);
	assert_near((double)violated / 10000, 0.05, 0.01);
}

/* The same over all looks of a stage: the repeated bound keeps 5 % where looking at the simple one
 * again and again passes three times as many. */
static void a_repeated_guard_keeps_its_error_over_looks(void **state)
{
	struct rng r = rng_at(32, 0, 0, 0);
	const double p = decide_p_star(MODE_STANDARD, 0.05, 0);
	size_t passed = 0, violated = 0, simple = 0;
	const size_t *blocks;
	size_t looks = decide_looks(MODE_STANDARD, &blocks);
	double d[12];

	(void)state;
	for (size_t i = 0; i < 5000; i++) {
		bool pass = false, out = false, once = false;

		for (size_t j = 0; j < 12; j++)
			d[j] = 0.02 + 0.01 * rng_normal(&r);
		for (size_t k = 0; k < looks; k++) {
			enum decide_guard g = decide_guard_at(d, blocks[k], 0.02, BETTER_DOWN, p)
						      .state;

			pass = pass || g == DECIDE_GUARD_PASSED;
			out = out || g == DECIDE_GUARD_VIOLATED;
			once = once || decide_guard(d, blocks[k], 0.02, BETTER_DOWN).state ==
					       DECIDE_GUARD_PASSED;
		}
		passed += pass;
		violated += out;
		simple += once;
	}
	print_message("at the margin: passed %.3f, violated %.3f of stages; simple bounds %.3f\n",
		      (double)passed / 5000, (double)violated / 5000, (double)simple / 5000);
	assert_near((double)passed / 5000, 0.05, 0.015);
	assert_near((double)violated / 5000, 0.05, 0.015);
	assert_true(simple > 2 * passed);
}

static void limits_are_of_one_arm(void **state)
{
	const double v[] = {69, 70, 71, 70}, none[] = {70, 70};

	(void)state;
	assert_int_equal(decide_limit(v, 4, 75, true, 0.013).state, DECIDE_GUARD_PASSED);
	assert_int_equal(decide_limit(v, 4, 60, true, 0.013).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_limit(v, 4, 70, true, 0.013).state, DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_limit(v, 4, 60, false, 0.013).state, DECIDE_GUARD_PASSED);
	assert_int_equal(decide_limit(v, 4, 75, false, 0.013).state, DECIDE_GUARD_VIOLATED);
	assert_int_equal(decide_limit(none, 2, 70, true, 0.013).state, DECIDE_GUARD_PASSED);
	assert_int_equal(decide_limit(none, 2, 70, false, 0.013).state, DECIDE_GUARD_PASSED);
	assert_near(decide_limit(v, 4, 75, true, 0.013).worsening, -5 / 75.0, 1e-12);
	assert_near(decide_limit(v, 4, 0, true, 0.013).worsening, 70, 1e-12);
}

static void failures_are_compared(void **state)
{
	double p;

	(void)state;
	assert_int_equal(decide_failures(0, 6, 0, 6, &p), DECIDE_GUARD_PASSED);
	assert_near(p, 1, 1e-12);
	/* Fisher's tea: 3 of 4 against 1 of 4 is 17/70. */
	decide_failures(1, 4, 3, 4, &p);
	assert_near(p, 17.0 / 70, 1e-12);
	assert_int_equal(decide_failures(0, 3, 3, 3, &p), DECIDE_GUARD_VIOLATED); /* p = 0.05 */
	assert_near(p, 0.05, 1e-12);
	assert_int_equal(decide_failures(0, 4, 2, 4, NULL),
			 DECIDE_GUARD_VIOLATED); /* half of them */
	assert_int_equal(decide_failures(0, 12, 2, 12, NULL), DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_failures(0, 4, 1, 4, NULL), DECIDE_GUARD_UNSETTLED);
	assert_int_equal(decide_failures(3, 4, 3, 4, NULL),
			 DECIDE_GUARD_PASSED); /* the baseline too */
	assert_int_equal(decide_failures(3, 4, 0, 4, NULL), DECIDE_GUARD_PASSED);
	assert_int_equal(decide_failures(0, 0, 0, 0, NULL), DECIDE_GUARD_PASSED);
}

/* -- verdict ------------------------------------------------------------------------------- */

static void verdicts_are_tried_in_their_order(void **state)
{
	const struct {
		bool invalid, done, ended;
		enum decide_guard guard;
		enum verdict_outcome own;
		size_t blocks;
		int want; /* -1: go on */
	} cases[] = {
		{true, true, false, DECIDE_GUARD_VIOLATED, VERDICT_ACCEPTED, 3, VERDICT_INVALID},
		{true, false, false, DECIDE_GUARD_PASSED, VERDICT_ACCEPTED, 0, VERDICT_INVALID},
		{false, true, false, DECIDE_GUARD_VIOLATED, VERDICT_ACCEPTED, 3,
		 VERDICT_REJECTED_GUARD},
		{false, false, false, DECIDE_GUARD_VIOLATED, VERDICT_ACCEPTED, 1,
		 VERDICT_REJECTED_GUARD},
		{false, true, false, DECIDE_GUARD_VIOLATED, VERDICT_REJECTED_WORSE, 3,
		 VERDICT_REJECTED_GUARD},
		{false, true, false, DECIDE_GUARD_PASSED, VERDICT_ACCEPTED, 3, VERDICT_ACCEPTED},
		{false, true, true, DECIDE_GUARD_PASSED, VERDICT_ACCEPTED, 3, VERDICT_ACCEPTED},
		{false, true, false, DECIDE_GUARD_UNSETTLED, VERDICT_ACCEPTED, 3, -1},
		{false, true, false, DECIDE_GUARD_UNSETTLED, VERDICT_ACCEPTED, 12,
		 VERDICT_INCONCLUSIVE},
		{false, true, true, DECIDE_GUARD_UNSETTLED, VERDICT_ACCEPTED, 3,
		 VERDICT_INCONCLUSIVE},
		{false, true, false, DECIDE_GUARD_UNSETTLED, VERDICT_EQUIVALENT, 3,
		 VERDICT_EQUIVALENT},
		{false, true, false, DECIDE_GUARD_UNSETTLED, VERDICT_REJECTED_NO_GAIN, 3,
		 VERDICT_REJECTED_NO_GAIN},
		{false, true, false, DECIDE_GUARD_PASSED, VERDICT_REJECTED_WORSE, 3,
		 VERDICT_REJECTED_WORSE},
		{false, true, false, DECIDE_GUARD_PASSED, VERDICT_INCONCLUSIVE, 12,
		 VERDICT_INCONCLUSIVE},
		{false, false, false, DECIDE_GUARD_PASSED, VERDICT_ACCEPTED, 4, -1},
		{false, false, true, DECIDE_GUARD_PASSED, VERDICT_ACCEPTED, 4,
		 VERDICT_INCONCLUSIVE},
	};
	struct decide_plan plan = plan_of(MODE_STANDARD);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct decision decision = {.done = cases[i].done, .verdict = cases[i].own};
		struct decide_facts facts = {cases[i].invalid, cases[i].guard, cases[i].blocks,
					     cases[i].ended};
		enum verdict_outcome got;
		bool done = decide_verdict(&plan, &decision, &facts, &got);

		if (done != (cases[i].want >= 0) || (done && (int)got != cases[i].want))
			fail_msg("case %zu: %s, verdict %d, want %d", i, done ? "done" : "goes on",
				 (int)got, cases[i].want);
	}
}

/* -- alpha --------------------------------------------------------------------------------- */

static void shares_are_fixed_and_make_up_alpha(void **state)
{
	(void)state;
	assert_near(alpha_share(1, 1), 1, 1e-15);
	assert_near(alpha_share(2, 1), 0.8, 1e-15);
	assert_near(alpha_share(3, 1), 36. / 49, 1e-15);
	assert_near(alpha_share(3, 2), 9. / 49, 1e-15);
	assert_near(alpha_share(3, 3), 4. / 49, 1e-15);
	for (size_t m = 1; m <= 100; m++) {
		double sum = 0;

		for (size_t i = 1; i <= m; i++) {
			assert_true(alpha_share(m, i) > 0);
			sum += alpha_share(m, i);
		}
		assert_near(sum, 1, 1e-12);
	}
}

static void shares_are_spent_or_returned(void **state)
{
	const double share = 0.05 / (1 + 1. / 4 + 1. / 9 + 1. / 16);
	struct alpha_ledger l = alpha_ledger_init(0.05, 4);

	(void)state;
	assert_near(alpha_ledger_next(&l), share, 1e-15);
	assert_near(alpha_ledger_settle(&l, VERDICT_INVALID, 0), 0, 0);
	assert_int_equal(alpha_ledger_left(&l), 4);
	assert_near(alpha_ledger_settle(&l, VERDICT_ACCEPTED, 1), 0, 0);
	assert_near(alpha_ledger_next(&l), share * (1 + 1. / 4), 1e-15);
	assert_near(alpha_ledger_settle(&l, VERDICT_ACCEPTED, 2), 0, 0);
	assert_near(alpha_ledger_next(&l), share * (1 + 1. / 4 + 1. / 9), 1e-15);
	assert_near(alpha_ledger_settle(&l, VERDICT_REJECTED_NO_GAIN, 1),
		    share * (1 + 1. / 4 + 1. / 9), 1e-15);
	assert_near(alpha_ledger_next(&l), share / 16, 1e-15);
	assert_near(alpha_ledger_settle(&l, VERDICT_INVALID, 1), share / 16, 1e-15);
	assert_int_equal(alpha_ledger_left(&l), 0);
	assert_near(alpha_ledger_next(&l), 0, 0);
	assert_near(alpha_ledger_settle(&l, VERDICT_ACCEPTED, 1), 0, 0);
	assert_near(l.spent, 0.05, 1e-15);
}

static void the_ledger_never_exceeds_alpha(void **state)
{
	struct rng r = rng_at(55, 0, 0, 0);

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		struct alpha_ledger l = alpha_ledger_init(0.05, 1 + rng_below(&r, 9));

		for (size_t step = 0; step < 20; step++) {
			enum verdict_outcome v = (enum verdict_outcome)rng_below(
				&r, VERDICT_INCONCLUSIVE + 1);
			double next = alpha_ledger_next(&l), ahead = 0;

			assert_true(l.spent + next <= l.total * (1 + 1e-12));
			assert_true((next > 0) == (alpha_ledger_left(&l) > 0));
			alpha_ledger_settle(&l, v, rng_below(&r, 3));
			for (size_t s = l.used + 1; s <= l.stages; s++)
				ahead += l.total * alpha_share(l.stages, s);
			assert_true(l.spent + l.returned + ahead <= l.total * (1 + 1e-12));
		}
	}
}

/* The fallback procedure over true and false hypotheses in any order: at most alpha. */
static void the_family_wise_error_is_at_most_alpha(void **state)
{
	enum { CAMPAIGNS = 20000 };
	struct rng r = rng_at(56, 0, 0, 0);

	(void)state;
	for (size_t helpful = 0; helpful <= 5; helpful++) {
		size_t wrong = 0;

		for (size_t i = 0; i < CAMPAIGNS; i++) {
			struct alpha_ledger l = alpha_ledger_init(0.05, 5);
			bool false_win = false;

			for (size_t h = 0; alpha_ledger_left(&l) > 0; h++) {
				bool helps = h < helpful,
				     win = helps || rng_uniform(&r) <= alpha_ledger_next(&l);

				false_win |= win && !helps;
				alpha_ledger_settle(
					&l, win ? VERDICT_ACCEPTED : VERDICT_INCONCLUSIVE, 1);
			}
			wrong += false_win;
		}
		assert_true((double)wrong / CAMPAIGNS <= 0.05 + 4.5 * sqrt(0.05 / CAMPAIGNS));
		assert_true(helpful == 5 || (double)wrong / CAMPAIGNS >= 0.03);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_of_the_modes),
		cmocka_unit_test(p_star_agrees_with_the_notes),
		cmocka_unit_test(p_star_is_derived_again),
		cmocka_unit_test(p_star_is_safe_between_the_entries),
		cmocka_unit_test(the_statistic_is_that_of_the_notes),
		cmocka_unit_test(a_clear_gain_is_accepted_at_the_first_look),
		cmocka_unit_test(before_and_between_looks_it_goes_on),
		cmocka_unit_test(identical_values),
		cmocka_unit_test(harm_is_worse_and_no_effect_is_no_useful_gain),
		cmocka_unit_test(probable_harm_is_settled_before_it_is_named),
		cmocka_unit_test(the_last_look_ends_it),
		cmocka_unit_test(a_gain_below_the_least_useful_one_is_not_accepted),
		cmocka_unit_test(absolute_differences_take_the_effect_as_it_is),
		cmocka_unit_test(relabelling_the_arms_flips_the_sign),
		cmocka_unit_test(guards_pass_violate_or_wait),
		cmocka_unit_test(guards_of_missing_or_infinite_values),
		cmocka_unit_test(a_guard_at_its_margin_passes_rarely),
		cmocka_unit_test(a_repeated_guard_keeps_its_error_over_looks),
		cmocka_unit_test(limits_are_of_one_arm),
		cmocka_unit_test(failures_are_compared),
		cmocka_unit_test(verdicts_are_tried_in_their_order),
		cmocka_unit_test(shares_are_fixed_and_make_up_alpha),
		cmocka_unit_test(shares_are_spent_or_returned),
		cmocka_unit_test(the_ledger_never_exceeds_alpha),
		cmocka_unit_test(the_family_wise_error_is_at_most_alpha),
	};

	return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
