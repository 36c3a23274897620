/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trial quality in whole campaigns against scheduler fake: what is planted is void or noted, what
 * is in order is left alone. */
#include "tests/unit/world.h"

#define RECIPE "tests/fixtures/recipes/fake-steps.lua"

struct tally {
	size_t attempts, void_for_it, noted;
};

static struct tally campaign(uint64_t seed, const char *spec, enum campaign_state want)
{
	struct world w;
	struct quality_row *q = NULL;
	struct cost_row cost;
	struct tally t = {0};
	size_t n = 0;

	world_open_recipe(&w, seed, RECIPE);
	run(&w, spec);
	assert_int_equal(state_of(&w), want);
	assert_int_equal(query_quality(w.ws->db, w.id, &q, &n, NULL), 0);
	assert_int_equal(query_cost(w.ws->db, w.id, &cost, NULL), 0);
	t.attempts = (size_t)cost.attempts;
	for (size_t i = 0; i < n; i++) {
		t.void_for_it += q[i].action == QUALITY_VOID;
		t.noted += q[i].action == QUALITY_NOTE;
		if (q[i].action == QUALITY_VOID)
			assert_string_equal(q[i].state, "void");
	}
	quality_rows_free(q, n);
	world_close(&w);
	return t;
}

static void test_noise_of_steps_makes_nothing_void(void **state)
{
	struct tally all = {0};

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		struct tally t = campaign(i, "{\"sd_step\": 0.05, \"fixed\": true}", CAMPAIGN_DONE);

		all.attempts += t.attempts;
		all.void_for_it += t.void_for_it;
		all.noted += t.noted;
	}
	print_message("%zu attempts: %zu void for quality, %zu notes\n", all.attempts,
		      all.void_for_it, all.noted);
	assert_true(all.void_for_it <= 2);
}

/* A gain is found all the same, and most planted slow-downs cost an attempt. */
static void test_fail_slow_makes_an_attempt_void_once(void **state)
{
	struct world w;
	struct quality_row *q = NULL;
	size_t n = 0, voids = 0;

	(void)state;
	world_open_recipe(&w, 31, RECIPE);
	run(&w,
	    "{\"effects\": {\"A=1\": 0.3}, \"sd_run\": 0.01, \"sd_step\": 0.05, \"slow_p\": 0.3, \"fixed\": true}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_outcome(&w, "A", "accepted");
	assert_int_equal(query_quality(w.ws->db, w.id, &q, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		voids += q[i].action == QUALITY_VOID;
		assert_false(q[i].action == QUALITY_VOID && q[i].attempt > 1);
		assert_false(q[i].action == QUALITY_VOID && str_eq(q[i].stage, "soak"));
	}
	assert_true(voids > 0);
	quality_rows_free(q, n);
	world_close(&w);
}

/* What always comes is the workload's own: it costs nothing and stops nothing. */
static void test_what_every_trial_shows_is_noted(void **state)
{
	struct tally t;

	(void)state;
	t = campaign(32, "{\"sd_step\": 0.02, \"slow_p\": 1, \"fixed\": true}", CAMPAIGN_DONE);
	assert_int_equal(t.void_for_it, 0);
	assert_true(t.noted > 0);
}

/* A device that slows itself down in every other trial leaves nothing to compare: the stage stops
 * and says why, and goes on where the cluster was seen to. */
static void test_too_many_voids_stop_the_stage(void **state)
{
	static const char bad[] = "{\"throttle_p\": 0.5, \"fixed\": true, \"in_memory\": true}",
			  mended[] = "{\"fixed\": true, \"in_memory\": true}";
	struct campaign_row row;
	struct world w;

	(void)state;
	world_open_recipe(&w, 33, RECIPE);
	run(&w, bad);
	assert_int_equal(query_campaign_get(w.ws->db, w.id, &row, NULL), 0);
	assert_int_equal(row.state, CAMPAIGN_STOPPED);
	assert_contains(row.reason, "3 blocks were lost 3 times each; the last reason: quality "
				    "(throttle): the device protected itself in 1 of 2 trials");
	campaign_row_done(&row);
	run(&w, mended);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_noise_of_steps_makes_nothing_void),
		cmocka_unit_test(test_fail_slow_makes_an_attempt_void_once),
		cmocka_unit_test(test_what_every_trial_shows_is_noted),
		cmocka_unit_test(test_too_many_voids_stop_the_stage),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
