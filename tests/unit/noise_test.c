/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The noise that a plan takes from past campaigns: an allocation is one unit, however many blocks
 * it holds, and what comes out is the noise of one run. */
#include "tests/unit/world.h"

#include "orchestrator/cmd/noise.h"
#include "tests/unit/store.h"

/* Runs differ by 2 %; what an allocation does it does to both arms. */
#define TRUTH                                                                   \
	"{\"effects\": {\"A=1\": 0.05}, \"sd_run\": 0.02, \"sd_alloc\": 0.05, " \
	"\"by_job\": true, \"blocks_at_most\": 0}"

static void assert_noise(const char *fields, size_t df_aa)
{
	struct noise n;
	struct world w;
	struct err e = {0};

	world_open_with(&w, 1, fields);
	run(&w, TRUTH);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_ok(noise_of_campaign(w.ws, w.id, w.recipe, &n, &e));
	assert_int_equal(n.df_aa, df_aa);
	assert_int_equal(n.df_confirm,
			 store_count(w.ws->db, "SELECT total(n) FROM (SELECT count(DISTINCT "
					       "a.allocation) - 1 AS n FROM attempt a JOIN block b "
					       "ON b.id = a.block JOIN stage s ON s.id = b.stage "
					       "WHERE s.kind = 'confirm' AND a.state = 'valid' "
					       "GROUP BY s.id)"));
	assert_true(n.df_confirm > 0);
	assert_in_range((int)(1e4 * n.sd), 160, 240);
	world_close(&w);
}

static void test_the_noise_is_that_of_a_run(void **state)
{
	(void)state;
	assert_noise("rounds = 1, blocks = { aa = 40 }", 39);
	assert_noise("rounds = 1, repeats = 4, blocks = { aa = 40 }", 39);
}

/* Two arms in 40 allocations of three blocks each. */
static void test_blocks_of_an_allocation_are_one_unit(void **state)
{
	(void)state;
	assert_noise("rounds = 1, blocks_per_allocation = 3, blocks = { aa = 120 }", 39);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_noise_is_that_of_a_run),
		cmocka_unit_test(test_blocks_of_an_allocation_are_one_unit),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
