/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/stats.h"

#include <math.h>

#include "orchestrator/base/rng.h"
#include "tests/unit/check.h"
#include "tests/unit/near.h"

static void location_and_spread(void **state)
{
	const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
	const double ten[] = {10, 1, 9, 2, 8, 3, 7, 4, 6, 5};

	(void)state;
	assert_near(stats_mean(v, 8), 5, 0);
	assert_near(stats_sd(v, 8), sqrt(32.0 / 7), 1e-15);
	assert_near(stats_median(v, 8), 4.5, 0);
	assert_near(stats_median(v, 7), 4, 0);
	/* R: quantile(1:10, c(.25, .9, 1)) */
	assert_near(stats_quantile(ten, 10, 0.25), 3.25, 1e-15);
	assert_near(stats_quantile(ten, 10, 0.9), 9.1, 1e-12);
	assert_near(stats_quantile(ten, 10, 0), 1, 0);
	assert_near(stats_quantile(ten, 10, 1), 10, 0);
	assert_near(stats_mad(v, 8), 0.5, 0);
	assert_near(stats_trimmed_mean(ten, 10, 0.1), 5.5, 0);
	assert_near(stats_trimmed_mean(v, 8, 0.25), 4.5, 0);
	assert_near(ten[0], 10, 0); /* the caller's array is left alone */
}

static void what_the_data_cannot_give_is_nan(void **state)
{
	const double one[] = {3};

	(void)state;
	assert_true(isnan(stats_mean(one, 0)));
	assert_true(isnan(stats_sd(one, 1)));
	assert_true(isnan(stats_median(one, 0)));
	assert_true(isnan(stats_quantile(one, 1, 1.5)));
	assert_true(isnan(stats_quantile(one, 1, NAN)));
	assert_true(isnan(stats_mad(one, 0)));
	assert_true(isnan(stats_trimmed_mean(one, 1, 0.5)));
	assert_true(isnan(stats_sign_flip_p(one, 0)));
	assert_true(isinf(stats_mde(0.05, 0.8, 0.01, 1, 1)));
}

/* Values of any t table. */
static void student_t(void **state)
{
	(void)state;
	assert_near(stats_t_quantile(0.975, 5), 2.5706, 5e-5);
	assert_near(stats_t_quantile(0.95, 3), 2.3534, 5e-5);
	assert_near(stats_t_sf(2.5706, 5), 0.025, 1e-6);
	assert_near(stats_t_cdf(-2.5706, 5), 0.025, 1e-6);
	assert_near(stats_t_p_greater(0.3, 0.1, 2), 1 - stats_t_cdf(3, 2), 1e-12);
	assert_near(stats_t_p_greater(1e-9, 0, 2), 0, 0);
	assert_near(stats_t_p_greater(-1e-9, 0, 2), 1, 0);
	assert_near(stats_t_p_greater(0, 0, 2), 0.5, 0);
	assert_near(stats_relative(log(1.1)), 0.1, 1e-15);
}

/* Gosset's sleep data (1908): the mean difference is 1.58, t = 4.0621 with 9 df. */
static void paired_comparison(void **state)
{
	const double a[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0, NAN};
	const double b[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4, 1.0};
	struct stats_mean_ci ci = stats_paired(a, b, 11, 0.95);

	(void)state;
	assert_int_equal(ci.n, 10);
	assert_near(ci.mean, 1.58, 1e-12);
	assert_near(ci.mean / ci.se, 4.0621, 5e-5);
	assert_near(2 * ci.p_greater, 0.002833, 5e-7);
	assert_near(ci.lo, 0.7001142, 5e-7);
	assert_near(ci.hi, 2.4598858, 5e-7);
}

static void means_of_few_or_equal_values(void **state)
{
	const double equal[] = {0.5, 0.5, 0.5};
	struct stats_mean_ci none = stats_mean_ci(equal, 0, 0.95);
	struct stats_mean_ci one = stats_mean_ci(equal, 1, 0.95);
	struct stats_mean_ci three = stats_mean_ci(equal, 3, 0.95);

	(void)state;
	assert_true(isnan(none.mean));
	assert_true(isnan(one.se) && isinf(one.lo) && isinf(one.hi));
	assert_near(one.p_greater, 0.5, 0);
	assert_near(three.lo, 0.5, 0);
	assert_near(three.hi, 0.5, 0);
	assert_near(three.p_greater, 0, 0);
}

/* Two equal arms: what they differ by on average is noise as well. */
static void noise_of_a_configuration_and_itself(void **state)
{
	const double steady[] = {0.14, 0.15, 0.16}, calm[] = {0.01, -0.01, 0.02, -0.02},
		     none[] = {0, 0};
	struct stats_mean_ci same = stats_mean_ci(steady, 3, 0.95),
			     d = stats_mean_ci(calm, 4, 0.95), one = stats_mean_ci(steady, 1, 0.95),
			     zero = stats_mean_ci(none, 2, 0.95),
			     nothing = stats_mean_ci(none, 0, 0.95);

	(void)state;
	assert_near(stats_noise_of_same(&same), sqrt((0.0196 + 0.0225 + 0.0256) / 6), 1e-12);
	assert_near(stats_noise_of_same(&d), sqrt(0.001 / 8), 1e-12);
	assert_near(stats_noise_of_same(&zero), 0, 0);
	assert_true(isnan(stats_noise_of_same(&one)) && isnan(stats_noise_of_same(&nothing)));
	assert_true(stats_unlike(&same, 0.01));
	assert_false(stats_unlike(&same, 0.2));
	assert_false(stats_unlike(&d, 0) || stats_unlike(&one, 0) || stats_unlike(&zero, 0.01) ||
		     stats_unlike(&nothing, 0));
}

static void components_of_a_balanced_layout(void **state)
{
	/* Group means 2, 5, 11: MSW = 1, MSB = 3 * 21 = 63, between = (63 - 1) / 3. */
	const double v[] = {1, 2, 3, 4, 5, 6, 10, 11, 12};
	const size_t unit[] = {7, 7, 7, 3, 3, 3, 9, 9, 9};
	struct stats_components c = stats_components(v, unit, 9);

	(void)state;
	assert_int_equal(c.groups, 3);
	assert_near(c.within_var, 1, 1e-12);
	assert_near(c.between_var, 62.0 / 3, 1e-12);
	assert_near(c.df_within, 6, 0);
	assert_near(c.df_between, 2, 0);
}

/* The estimators are unbiased, so many small unbalanced layouts must average to the truth. */
static void components_of_unbalanced_layouts(void **state)
{
	const size_t unit[] = {0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5, 5, 5, 5};
	struct rng r = rng_at(1, 2, 3, 4);
	double within = 0, between = 0, v[16], level[6];

	(void)state;
	for (size_t i = 0; i < 4000; i++) {
		struct stats_components c;

		for (size_t u = 0; u < 6; u++)
			level[u] = 3 * rng_normal(&r);
		for (size_t j = 0; j < 16; j++)
			v[j] = level[unit[j]] + 2 * rng_normal(&r);
		c = stats_components(v, unit, 16);
		within += c.within_var / 4000;
		between += c.between_var / 4000;
	}
	assert_near(within, 4, 0.15);
	assert_near(between, 9, 0.6);
}

static void components_of_one_group_or_single_values(void **state)
{
	const double v[] = {1, 2, 4};
	const size_t same[] = {5, 5, 5}, each[] = {1, 2, 3};
	struct stats_components one = stats_components(v, same, 3),
				single = stats_components(v, each, 3);

	(void)state;
	assert_near(one.within_var, 7.0 / 3, 1e-12);
	assert_true(isnan(one.between_var));
	assert_true(isnan(single.within_var) && isnan(single.between_var));
	assert_int_equal(single.groups, 3);
}

/* Another algorithm for the same residual: sweep rows and columns until nothing moves. */
static double ssr_by_sweeping(const double *y, size_t arms, size_t blocks)
{
	double *e = xcalloc(arms * blocks, sizeof(*e)), ssr = 0;

	memcpy(e, y, arms * blocks * sizeof(*e));
	for (size_t round = 0; round < 4000; round++) {
		for (size_t i = 0; i < arms + blocks; i++) {
			size_t start = i < arms ? i : (i - arms) * arms, step = i < arms ? arms : 1;
			size_t n = 0, length = i < arms ? blocks : arms;
			double sum = 0;

			for (size_t j = 0; j < length; j++) {
				if (!isnan(e[start + j * step])) {
					sum += e[start + j * step];
					n++;
				}
			}
			for (size_t j = 0; n > 0 && j < length; j++)
				e[start + j * step] -= sum / (double)n;
		}
	}
	for (size_t i = 0; i < arms * blocks; i++)
		ssr += isnan(e[i]) ? 0 : e[i] * e[i];
	mem_freep(&e);
	return ssr;
}

static void two_way_of_a_halving_screen(void **state)
{
	enum { ARMS = 11, BLOCKS = 4 };
	struct rng r = rng_at(3, 0, 0, 0);
	const size_t width[] = {11, 6, 4, 4};
	double y[ARMS * BLOCKS];
	struct stats_two_way t;

	(void)state;
	for (size_t b = 0; b < BLOCKS; b++) {
		for (size_t a = 0; a < ARMS; a++)
			y[b * ARMS + a] = a < width[b] ? (double)(a * a) - 5.0 * (double)b +
								 rng_normal(&r)
						       : NAN;
	}
	t = stats_two_way(y, ARMS, BLOCKS);
	assert_int_equal(t.obs, 25);
	assert_int_equal(t.df, 11);
	assert_near(t.ssr, ssr_by_sweeping(y, ARMS, BLOCKS), 1e-9);
	y[2] = NAN; /* a lost trial of an arm that has others */
	t = stats_two_way(y, ARMS, BLOCKS);
	assert_int_equal(t.df, 10);
	assert_near(t.ssr, ssr_by_sweeping(y, ARMS, BLOCKS), 1e-9);
}

/* Shifting an arm or a block changes nothing; E[ssr] is sigma^2 df. */
static void two_way_is_the_residual_variance(void **state)
{
	enum { ARMS = 5, BLOCKS = 3 };
	struct rng r = rng_at(4, 0, 0, 0);
	double y[ARMS * BLOCKS], sum = 0;
	struct stats_two_way t, moved;

	(void)state;
	for (size_t i = 0; i < 4000; i++) {
		for (size_t j = 0; j < ARMS * BLOCKS; j++)
			y[j] = j == 7 || j == 11 || j == 14 ? NAN : 0.5 * rng_normal(&r);
		t = stats_two_way(y, ARMS, BLOCKS);
		assert_int_equal(t.df, 12 - ARMS - BLOCKS + 1);
		sum += t.ssr / (double)t.df / 4000;
	}
	assert_near(sum, 0.25, 0.01);
	for (size_t j = 0; j < ARMS * BLOCKS; j++)
		y[j] += 100 * (double)(j % ARMS) - 1000 * (double)(j / ARMS);
	moved = stats_two_way(y, ARMS, BLOCKS);
	assert_near(moved.ssr, t.ssr, 1e-9);
}

static void two_way_without_information(void **state)
{
	const double apart[] = {1, 2, NAN, NAN, NAN, NAN, 3, 5}; /* two parts that share nothing */
	const double tree[] = {1, 2, 3, 7, NAN, NAN};
	const double nothing[] = {NAN, NAN, NAN, NAN};
	struct stats_two_way t = stats_two_way(apart, 4, 2);

	(void)state;
	assert_int_equal(t.df, 0);
	assert_near(t.ssr, 0, 0);
	t = stats_two_way(tree, 3, 2);
	assert_int_equal(t.obs, 4);
	assert_int_equal(t.df, 0);
	t = stats_two_way(nothing, 2, 2);
	assert_int_equal(t.obs, 0);
	assert_int_equal(t.df, 0);
}

static void units_are_averaged(void **state)
{
	const double v[] = {1, 10, 3, 20, 5};
	const size_t unit[] = {4, 2, 4, 2, 8};
	double out[5];

	(void)state;
	assert_int_equal(stats_unit_means(v, unit, 5, out), 3);
	assert_near(out[0], 2, 0);
	assert_near(out[1], 15, 0);
	assert_near(out[2], 5, 0);
}

/* The table of statistics.md 6.3, log scale, in its rounding of 0.1 points. */
static void smallest_detectable_effect(void **state)
{
	(void)state;
	assert_near(log1p(stats_mde(0.05, 0.8, 0.01, 4, 1)), 0.024, 0.001);
	assert_near(log1p(stats_mde(0.05, 0.8, 0.01, 12, 1)), 0.011, 0.001);
	assert_near(log1p(stats_mde(0.05, 0.8, 0.02, 8, 1)), 0.028, 0.001);
	assert_near(log1p(stats_mde(0.05, 0.8, 0.05, 24, 1)), 0.037, 0.001);
	assert_near(log1p(stats_mde(0.05, 0.8, 0.02, 8, 4)), 0.014, 0.0005);
}

static void sign_flip_is_exact(void **state)
{
	const double up[] = {1, 2, 3, 4, 5}, mixed[] = {3, -1, 2}, zero[] = {0, 0, 0, 0};
	double many[STATS_SIGN_FLIP_MAX + 1];

	(void)state;
	assert_near(stats_sign_flip_p(up, 5), 1.0 / 32, 0);
	/* sums of +-3 +-1 +-2 at or above 4: 6 and 4 */
	assert_near(stats_sign_flip_p(mixed, 3), 2.0 / 8, 0);
	assert_near(stats_sign_flip_p(zero, 4), 1, 0);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = 0.1;
	assert_near(stats_sign_flip_p(many, 16), 1.0 / 65536, 0);
	assert_true(isnan(stats_sign_flip_p(many, ARRAY_LEN(many))));
}

static void trend_of_a_soak(void **state)
{
	/* R: summary(lm(c(1, 3, 2, 5, 4) ~ I(0:4))): slope 0.8, se 0.3464, p 0.104 */
	const double v[] = {1, 3, 2, 5, 4}, flat[] = {2, 2, 2, 2};
	struct stats_trend t = stats_trend(v, 5);

	(void)state;
	assert_near(t.slope, 0.8, 1e-12);
	assert_near(t.se, 0.34641, 1e-5);
	assert_near(t.p_two_sided, 0.1041, 5e-5);
	t = stats_trend(flat, 4);
	assert_near(t.slope, 0, 0);
	assert_near(t.p_two_sided, 1, 0);
	assert_true(isnan(stats_trend(v, 2).se));
	assert_true(isnan(stats_trend(v, 1).slope));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(location_and_spread),
		cmocka_unit_test(what_the_data_cannot_give_is_nan),
		cmocka_unit_test(student_t),
		cmocka_unit_test(paired_comparison),
		cmocka_unit_test(means_of_few_or_equal_values),
		cmocka_unit_test(noise_of_a_configuration_and_itself),
		cmocka_unit_test(components_of_a_balanced_layout),
		cmocka_unit_test(components_of_unbalanced_layouts),
		cmocka_unit_test(components_of_one_group_or_single_values),
		cmocka_unit_test(two_way_of_a_halving_screen),
		cmocka_unit_test(two_way_is_the_residual_variance),
		cmocka_unit_test(two_way_without_information),
		cmocka_unit_test(units_are_averaged),
		cmocka_unit_test(smallest_detectable_effect),
		cmocka_unit_test(sign_flip_is_exact),
		cmocka_unit_test(trend_of_a_soak),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
