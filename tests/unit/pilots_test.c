/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several blocks in one allocation: whole campaigns against scheduler fake. They count as one unit,
 * one warm-up serves all of them, and a job that dies in their middle costs only what it did not
 * finish.
 */
#include "tests/unit/world.h"

#include "experiments/decide.h"
#include "experiments/design.h"
#include "orchestrator/method/method.h"
#include "tests/unit/store.h"

#define THREE "rounds = 1, blocks_per_allocation = 3, warmup_trials = 1, blocks = { soak = 2 }"

static int64_t count(struct world *w, const char *sql)
{
	return store_count(w->ws->db, sql);
}

/* What holds however a campaign went: each block counts once, complete. */
static void assert_sound(struct world *w)
{
	assert_int_equal(state_of(w), CAMPAIGN_DONE);
	assert_int_equal(count(w, "SELECT count(*) FROM attempt WHERE state IN ('planned', "
				  "'submitted')"),
			 0);
	assert_int_equal(count(w, "SELECT count(*) FROM (SELECT count(*) AS n FROM attempt "
				  "WHERE state = 'valid' GROUP BY block) WHERE n > 1"),
			 0);
	/* every timed slot of a valid attempt has its trial */
	assert_int_equal(
		count(w, "SELECT count(*) FROM attempt a JOIN slot s ON s.block = a.block AND "
			 "s.kind = 'timed' WHERE a.state = 'valid' AND NOT EXISTS (SELECT 1 FROM "
			 "trial t WHERE t.attempt = a.id AND t.slot = s.idx)"),
		0);
}

static void test_blocks_share_an_allocation(void **state)
{
	const char *spec = "{\"effects\": {\"A=1\": 0.05}, \"blocks_at_most\": 0}";
	struct world w;

	(void)state;
	world_open_with(&w, 1, THREE);
	run(&w, spec);
	assert_sound(&w);
	assert_outcome(&w, "A", "accepted");
	assert_int_equal(count(&w, "SELECT max(n) FROM (SELECT count(*) AS n FROM attempt "
				   "GROUP BY allocation)"),
			 3);
	/* the baseline, validation and final stages hold nothing but whole units of three */
	assert_int_equal(
		count(&w, "SELECT count(*) FROM (SELECT count(*) AS n FROM attempt a JOIN block b "
			  "ON b.id = a.block JOIN stage s ON s.id = b.stage WHERE s.kind IN ('aa', "
			  "'confirm', 'final') GROUP BY a.allocation) WHERE n <> 3"),
		0);
	assert_int_equal(count(&w, "SELECT planned_blocks FROM stage WHERE kind = 'aa'"),
			 3 * (int)design_aa_blocks(MODE_STANDARD));
	/* looks count units */
	assert_int_equal(
		count(&w,
		      "SELECT count(*) FROM verdict v WHERE v.n <> (SELECT count(DISTINCT "
		      "a.allocation) FROM attempt a JOIN block b ON b.id = a.block WHERE "
		      "b.stage = v.stage AND a.state = 'valid') AND v.final_look = 1 AND v.look "
		      "> 0"),
		0);
	/* one warm-up an allocation, by its first block */
	assert_int_equal(count(&w, "SELECT count(*) FROM trial WHERE kind = 'warmup'"),
			 count(&w, "SELECT count(*) FROM allocation"));
	assert_int_equal(count(&w, "SELECT count(*) FROM trial t JOIN attempt a ON a.id = "
				   "t.attempt WHERE t.kind = 'warmup' AND EXISTS (SELECT 1 FROM "
				   "attempt p WHERE p.allocation = a.allocation AND p.id < a.id)"),
			 0);
	world_close(&w);
}

/* On a scheduler like local each block is its own allocation, whatever the recipe says. */
static void test_a_scheduler_may_hold_one_block_a_job(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, THREE);
	run(&w, "{\"effects\": {\"A=1\": 0.05}}");
	assert_sound(&w);
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt"),
			 count(&w, "SELECT count(*) FROM allocation"));
	assert_int_equal(count(&w, "SELECT planned_blocks FROM stage WHERE kind = 'aa'"),
			 (int)design_aa_blocks(MODE_STANDARD));
	world_close(&w);
}

/* Without a word in the recipe the last two blocks of a halved screen share one. */
static void test_a_screen_shares_by_itself(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "rounds = 1");
	run(&w, "{\"effects\": {\"A=1\": 0.05}, \"blocks_at_most\": 0}");
	assert_sound(&w);
	assert_int_equal(count(&w, "SELECT count(*) FROM (SELECT count(*) AS n FROM attempt a "
				   "JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage "
				   "WHERE s.kind = 'screen' GROUP BY a.allocation) WHERE n = 2"),
			 1);
	assert_int_equal(count(&w, "SELECT count(*) FROM (SELECT count(*) AS n FROM attempt a "
				   "JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage "
				   "WHERE s.kind <> 'screen' GROUP BY a.allocation) WHERE n > 1"),
			 0);
	world_close(&w);
}

/* Jobs break off in their middle, and the orchestrator is gone after every few steps. */
static void test_a_job_that_dies_costs_what_it_did_not_finish(void **state)
{
	const char *spec = "{\"effects\": {\"A=1\": 0.05}, \"blocks_at_most\": 0, \"nodes\": 4, "
			   "\"at_once\": 3, \"spread_s\": 20, \"faults\": {\"lost\": 0.1, "
			   "\"node_fail\": 0.1, \"void\": 0.05, \"submit_lost\": 0.1, "
			   "\"accepted_but_timed_out\": 0.1}}";
	int64_t unbegun = 0, shared = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct world w;

		world_open_with(&w, seed, THREE);
		for (int i = 0; i < 5000 && !drive(&w, spec, 7); i++)
			;
		assert_sound(&w);
		unbegun += count(&w, "SELECT count(*) FROM attempt WHERE state = 'void' AND reason "
				     "GLOB 'not begun:*'");
		/* what was finished before its job died counts */
		shared += count(&w, "SELECT count(*) FROM attempt a JOIN attempt d ON d.allocation "
				    "= a.allocation WHERE a.state = 'valid' AND d.state IN "
				    "('void', 'lost')");
		/* nothing that was not begun has left a trial */
		assert_int_equal(count(&w, "SELECT count(*) FROM trial t JOIN attempt a ON a.id = "
					   "t.attempt WHERE a.state <> 'valid'"),
				 0);
		world_close(&w);
	}
	assert_true(unbegun > 0);
	assert_true(shared > 0);
}

/* Each look of a campaign that holds its results in files and one that keeps them in memory. */
static void test_files_and_memory_say_the_same(void **state)
{
	const char *specs[] = {"{\"blocks_at_most\": 0, \"by_job\": true, \"order\": -0.02}",
			       "{\"blocks_at_most\": 0, \"by_job\": true, \"order\": -0.02, "
			       "\"in_memory\": true}"};
	char *text[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct world w;

		world_open_with(&w, 3, THREE);
		run(&w, specs[i]);
		assert_sound(&w);
		text[i] = store_text(
			w.ws->db,
			"SELECT group_concat(x, ' ') FROM (SELECT printf('%.9f', m.value) AS x "
			"FROM metric m JOIN metric_def d ON d.id = m.def JOIN trial t ON t.id = "
			"m.trial WHERE d.name = 'throughput_samples_per_s' AND m.stat = 'mean' "
			"ORDER BY t.id)");
		world_close(&w);
	}
	assert_string_equal(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}

/* -- how many are in flight -------------------------------------------------------------------- */

/* Two at once of a cluster that would hold four: the next begins in the very moment in which one
 * ends, and never is a third one there. */
static void test_the_next_is_submitted_as_one_ends(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "rounds = 1, blocks = { aa = 20 }, budget = { jobs = 2 }");
	run(&w, "{\"blocks_at_most\": 0, \"nodes\": 4, \"at_once\": 4, \"spread_s\": 50}");
	assert_sound(&w);
	assert_int_equal(count(&w, "SELECT max((SELECT count(*) FROM allocation o WHERE "
				   "o.start_us <= l.start_us AND o.end_us > l.start_us)) FROM "
				   "allocation l"),
			 2);
	assert_int_equal(
		count(&w, "WITH x AS (SELECT l.* FROM allocation l JOIN attempt a ON a.allocation "
			  "= l.id JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage "
			  "WHERE s.kind = 'aa') SELECT count(*) FROM x WHERE id NOT IN (SELECT id "
			  "FROM x ORDER BY id LIMIT 2) AND NOT EXISTS (SELECT 1 FROM allocation o "
			  "JOIN attempt p ON p.allocation = o.id WHERE p.ended_us BETWEEN "
			  "x.planned_us - 1000000 AND x.planned_us)"),
		0);
	world_close(&w);
}

/* -- what there is time for -------------------------------------------------------------------- */

/* Twelve blocks were asked for, and the partition ends jobs after five minutes: an allocation gets
 * what fits by the time that blocks took so far, and none runs into the limit. */
static void test_allocations_fit_into_the_time_limit(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "rounds = 1, blocks_per_allocation = 12, blocks = { aa = 36 }");
	run(&w, "{\"blocks_at_most\": 0, \"time_limit_s\": 300, \"trial_s\": 10}");
	assert_sound(&w);
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE state <> 'valid'"), 0);
	/* (300 - 120) / (2 * 20) */
	assert_int_equal(count(&w, "SELECT max(n) FROM (SELECT count(*) AS n FROM attempt "
				   "GROUP BY allocation)"),
			 4);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_blocks_share_an_allocation),
		cmocka_unit_test(test_a_scheduler_may_hold_one_block_a_job),
		cmocka_unit_test(test_a_screen_shares_by_itself),
		cmocka_unit_test(test_a_job_that_dies_costs_what_it_did_not_finish),
		cmocka_unit_test(test_files_and_memory_say_the_same),
		cmocka_unit_test(test_the_next_is_submitted_as_one_ends),
		cmocka_unit_test(test_allocations_fit_into_the_time_limit),
	};

	return cmocka_run_group_tests_name("pilots", t, NULL, NULL);
}
