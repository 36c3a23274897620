/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The short version of tests/bench/verdicts.sh: whole campaigns against declared truths. Every
 * bound holds at any seed: if the engine is right, each fails with a probability below 1e-6.
 */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/cmd/simulate.h"

#define RECIPE "tests/fixtures/recipes/ten.lua"

struct plan {
	struct recipe *recipe;
	struct script_sources sources;
};

static struct simulated simulate(long campaigns, uint64_t seed, const char *truth)
{
	static const char *const dirs[] = {"recipes", NULL};
	struct script_path path = {.dirs = dirs};
	struct plan p = {0};
	struct simulated r;
	struct err e = {0};

	assert_ok(script_load(RECIPE, &path, &p.recipe, &p.sources, &e));
	assert_ok(simulate_run(&(struct simulation){.recipe = p.recipe,
						    .sources = &p.sources,
						    .path = RECIPE,
						    .truth = truth,
						    .seed = seed,
						    .campaigns = campaigns},
			       &r, &e));
	recipe_free(p.recipe);
	script_sources_free(&p.sources);
	print_message(
		"%ld campaigns, seed %llu: %ld with a false win, %ld with a true one, %.1f runs\n",
		r.campaigns, (unsigned long long)seed, r.false_wins, r.true_wins,
		r.runs / (double)r.campaigns);
	assert_int_equal(r.campaigns, campaigns);
	return r;
}

/* With a chance of 0.05 each, more than 36 of 300 come with 5e-7. */
static void test_nothing_helps_so_little_is_claimed(void **state)
{
	struct simulated r = simulate(300, 1, "{\"sd_run\": 0.02}");

	(void)state;
	assert_true(r.false_wins <= 36);
	assert_int_equal(r.true_wins, 0);
	assert_int_equal(r.unfinished, 0);
	/* The interval that is shown covers 95 % and more: of 300 at least 255. */
	assert_true(r.repeated.n >= 250);
	assert_true((double)r.repeated.covered >= 0.85 * (double)r.repeated.n);
	simulated_done(&r);
}

/* A gain of 5 % at 1 % noise has a power above 0.99: of 100 at least 90. */
static void test_a_plain_gain_is_found_and_estimated_well(void **state)
{
	struct simulated r = simulate(100, 2, "{\"sd_run\": 0.01, \"effects\": {\"K4=1\": 0.05}}");

	(void)state;
	assert_true(r.true_wins >= 90);
	assert_true(r.final.n >= 90);
	assert_true(fabs(r.final.sum_error / (double)r.final.n) < 0.003);
	assert_true((double)r.final.covered >= 0.80 * (double)r.final.n);
	assert_string_equal(r.candidates[3].knob, "K4");
	assert_true(fabs(r.candidates[3].gain - 0.05) < 1e-9);
	assert_true(r.candidates[3].won >= 90);
	simulated_done(&r);
}

static void test_harm_and_settings_that_never_arrive_are_not_wins(void **state)
{
	struct simulated r = simulate(
		30, 3,
		"{\"sd_run\": 0.01, \"effects\": {\"K1=1\": 0.2, \"K2=1\": 0.15}, "
		"\"loss_effects\": {\"K1=1\": 0.2}, \"undelivered\": [\"K2\"]}");

	(void)state;
	assert_true(r.candidates[0].harms);
	assert_true(r.candidates[0].tested > 0);
	assert_int_equal(r.candidates[0].won, 0);
	assert_int_equal(r.candidates[1].won, 0);
	simulated_done(&r);
}

static void test_a_seed_gives_the_same_again(void **state)
{
	const char *truth = "{\"sd_run\": 0.02, \"effects\": {\"K4=1\": 0.03}, \"faults\": "
			    "{\"node_fail\": 0.05, \"failed_trial\": 0.02}}";
	struct simulated a = simulate(20, 4, truth), b = simulate(20, 4, truth),
			 c = simulate(20, 5, truth);

	(void)state;
	assert_true(a.runs == b.runs && a.final.sum_error == b.final.sum_error);
	assert_true(a.repeated.sum_error == b.repeated.sum_error);
	assert_true(a.repeated.sum_error != c.repeated.sum_error);
	simulated_done(&a);
	simulated_done(&b);
	simulated_done(&c);
}

static void test_a_truth_that_cannot_be_is_refused(void **state)
{
	static const char *const dirs[] = {"recipes", NULL};
	struct script_path path = {.dirs = dirs};
	struct plan p = {0};
	struct simulation s = {.path = RECIPE, .truth = "{\"sdrun\": 0.02}", .campaigns = 1};
	struct simulated r;
	struct err e = {0};

	(void)state;
	assert_ok(script_load(RECIPE, &path, &p.recipe, &p.sources, &e));
	s.recipe = p.recipe;
	s.sources = &p.sources;
	assert_int_equal(simulate_run(&s, &r, &e), -ERR_PARSE);
	assert_contains(e.text, "\"sdrun\" is no member (did you mean \"sd_run\"?)");
	s.truth = "[]";
	e = (struct err){0};
	assert_int_equal(simulate_run(&s, &r, &e), -ERR_PARSE);
	recipe_free(p.recipe);
	script_sources_free(&p.sources);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_nothing_helps_so_little_is_claimed),
		cmocka_unit_test(test_a_plain_gain_is_found_and_estimated_well),
		cmocka_unit_test(test_harm_and_settings_that_never_arrive_are_not_wins),
		cmocka_unit_test(test_a_seed_gives_the_same_again),
		cmocka_unit_test(test_a_truth_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
