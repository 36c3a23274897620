/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The short version of tests/bench/verdicts.sh: whole campaigns against declared truths. Every
 * bound holds at any seed: if the engine is right, each fails with a probability below 1e-6.
 */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/cmd/simulate.h"

#define RECIPE "tests/fixtures/recipes/ten.lua"
#define STEPS  "tests/fixtures/recipes/fake-steps.lua"

struct plan {
	struct recipe *recipe;
	struct script_sources sources;
};

static struct simulated simulate_recipe(const char *file, long campaigns, uint64_t seed,
					const char *truth)
{
	static const char *const dirs[] = {"recipes", NULL};
	struct script_path path = {.dirs = dirs};
	struct plan p = {0};
	struct simulated r;
	struct err e = {0};

	assert_ok(script_load(file, &path, &p.recipe, &p.sources, &e));
	assert_ok(simulate_run(&(struct simulation){.recipe = p.recipe,
						    .sources = &p.sources,
						    .path = file,
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

static struct simulated simulate(long campaigns, uint64_t seed, const char *truth)
{
	return simulate_recipe(RECIPE, campaigns, seed, truth);
}

/* With a chance of 0.05 each, more than 20 of 120 come with 5e-7, and more than 36 of 300. */
static void test_nothing_helps_so_little_is_claimed(void **state)
{
	const bool lng = long_run();
	struct simulated r = simulate(lng ? 300 : 120, 1, "{\"sd_run\": 0.02}");

	(void)state;
	assert_true(r.false_wins <= (lng ? 36 : 20));
	assert_int_equal(r.true_wins, 0);
	assert_int_equal(r.unfinished, 0);
	/* The interval that is shown covers 95 % and more: of 300 at least 255; of 120, 96. */
	assert_true(r.repeated.n >= (lng ? 250 : 100));
	assert_true((double)r.repeated.covered >= (lng ? 0.85 : 0.8) * (double)r.repeated.n);
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

/* The recipe of long windows with what its rules of trial quality do; a path, heap. */
static char *steps_with(const char *dir, const char *quality)
{
	char *path = fs_join(dir, "steps.lua"), *end;
	struct buf base = {0};
	_cleanup_free_ char *text = NULL;
	struct err e = {0};

	assert_ok(fs_read(STEPS, 1 << 16, &base, &e));
	end = strrchr(base.data, '}');
	assert_non_null(end);
	*end = '\0';
	text = xasprintf("%s\tquality = { %s },\n}\n", base.data, quality);
	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
	buf_free(&base);
	return path;
}

/* What happens within a trial, or beside it, reaches the rules: void where the recipe says so, and
 * found however often. With 10 campaigns of 20 trials and a chance of 0.2 none void has p < 1e-19.
 */
static void test_trial_quality_is_simulated_too(void **state)
{
	static const struct {
		const char *truth, *quality;
		bool voids;
	} rows[] = {
		{"{\"sd_step\": 0.03, \"slow_p\": 0.2}", "", true},
		{"{\"sd_step\": 0.03, \"slow_p\": 0.2}", "fail_slow = 'note'", false},
		{"{\"steps\": true}", "", false},
		{"{\"neighbour_p\": 0.2}", "neighbour = 'void'", true},
		{"{\"neighbour_p\": 0.2}", "", false},
		{"{\"throttle_p\": 0.2}", "", true},
		{"{\"throttle_p\": 0.2}", "throttle = 'note'", false},
		{"{\"sd_step\": 0.01, \"step_drift\": -0.2}", "steady = 'void'", true},
		{"{\"sd_step\": 0.01, \"outlier_p\": 0.03}", "outliers = 'void'", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *path = steps_with(dir, rows[i].quality);
		struct simulated r = simulate_recipe(path, 10, 6, rows[i].truth);

		if ((r.voids > 0) != rows[i].voids)
			fail_msg("%s, quality %s: %ld of %ld attempts void", rows[i].truth,
				 rows[i].quality, r.voids, r.attempts);
		simulated_done(&r);
	}
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_nothing_helps_so_little_is_claimed),
		cmocka_unit_test(test_a_plain_gain_is_found_and_estimated_well),
		cmocka_unit_test(test_harm_and_settings_that_never_arrive_are_not_wins),
		cmocka_unit_test(test_a_seed_gives_the_same_again),
		cmocka_unit_test(test_a_truth_that_cannot_be_is_refused),
		cmocka_unit_test(test_trial_quality_is_simulated_too),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
