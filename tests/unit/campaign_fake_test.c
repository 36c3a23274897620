/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole campaigns against scheduler fake: the code that decides real ones, with a declared truth,
 * injected faults and a virtual clock. LONG=1 runs the thousand campaigns in which nothing helps.
 */
#include "tests/unit/world.h"

static void test_a_true_gain_is_accepted_and_fixed(void **state)
{
	struct world w;
	struct fix_row fix;
	bool found = false;
	double est = NAN;

	(void)state;
	world_open(&w, 1);
	run(&w, "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true}");
	free(outcome(&w, "A", &est));
	assert_outcome(&w, "A", "accepted");
	assert_true(fabs(est - 0.2) < 0.05);
	assert_int_equal(query_fix_get(w.ws->db, w.id, &fix, &found, NULL), 0);
	assert_true(found);
	assert_string_equal(fix.state, "validated");
	assert_true(fix.lo < 0.2 && fix.hi > 0.2);
	fix_row_done(&fix);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

static void test_two_gains_stack_over_two_rounds(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 2);
	run(&w, "{\"effects\": {\"A=1\": 0.2, \"B=1\": 0.3}, \"sd_run\": 0.01, \"fixed\": true}");
	assert_outcome(&w, "A", "accepted");
	assert_outcome(&w, "B", "accepted");
	world_close(&w);
}

static void test_an_optimisation_knob_stays_pending(void **state)
{
	struct world w;
	struct fix_row fix;
	bool found = false;

	(void)state;
	world_open(&w, 3);
	run(&w, "{\"effects\": {\"--d 1\": 0.3}, \"sd_run\": 0.01, \"fixed\": true}");
	assert_outcome(&w, "D", "accepted");
	assert_int_equal(query_fix_get(w.ws->db, w.id, &fix, &found, NULL), 0);
	assert_string_equal(fix.state, "accepted, pending convergence");
	fix_row_done(&fix);
	world_close(&w);
}

static void test_what_never_reached_the_process_is_invalid(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 4);
	run(&w, "{\"effects\": {\"A=1\": 0.5}, \"undelivered\": [\"A\"], \"fixed\": true}");
	assert_outcome(&w, "A", "invalid");
	assert_int_equal(accepted(&w), 0);
	world_close(&w);
}

static void test_a_worse_loss_is_rejected_by_its_guard(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 5);
	run(&w,
	    "{\"effects\": {\"A=1\": 0.5}, \"loss_effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true}");
	assert_outcome(&w, "A", "rejected: guard");
	assert_int_equal(accepted(&w), 0);
	world_close(&w);
}

static void test_an_arm_that_fails_is_never_accepted(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 6);
	run(&w,
	    "{\"effects\": {\"A=1\": 0.5}, \"fails\": {\"A=1\": 0.5}, \"sd_run\": 0.01, \"fixed\": true}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(accepted(&w), 0);
	world_close(&w);
}

static void test_a_nan_loss_is_a_failure_of_its_arm(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 7);
	run(&w,
	    "{\"effects\": {\"B=1\": 0.5}, \"nan\": {\"B=1\": 1}, \"sd_run\": 0.01, \"fixed\": true}");
	assert_int_equal(accepted(&w), 0);
	world_close(&w);
}

/* One look at all that was stored, for comparing two runs. */
static void digest(struct world *w, struct buf *b)
{
	struct verdict_row *v = NULL;
	struct stage_row *s = NULL;
	size_t n = 0, ns = 0;

	assert_int_equal(query_stages(w->ws->db, w->id, &s, &ns, NULL), 0);
	for (size_t i = 0; i < ns; i++) {
		struct block_row *blocks = NULL;
		size_t nb = 0;

		buf_printf(b, "stage %d %s %s\n", s[i].seq, stage_kind_name(s[i].kind),
			   s[i].note ? s[i].note : "");
		assert_int_equal(query_blocks(w->ws->db, s[i].id, &blocks, &nb, NULL), 0);
		for (size_t j = 0; j < nb; j++)
			buf_printf(b, " block %d attempt %d %s\n", blocks[j].index,
				   blocks[j].attempt, attempt_state_name(blocks[j].state));
		block_rows_free(blocks, nb);
	}
	stage_rows_free(s, ns);
	assert_int_equal(query_verdicts(w->ws->db, w->id, &v, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "verdict %s %d %.9g %.9g\n", v[i].outcome, v[i].n, v[i].est, v[i].p);
	verdict_rows_free(v, n);
}

/* Left and opened again after every single step: nothing in memory matters. */
static void test_reopened_after_each_step_ends_the_same(void **state)
{
	const char *spec = "{\"effects\": {\"A=1\": 0.1}, \"fixed\": true}";
	struct world a, b;
	struct buf da = {0}, db = {0};

	(void)state;
	world_open(&a, 8);
	run(&a, spec);
	digest(&a, &da);
	world_open(&b, 8);
	for (int i = 0; i < 5000 && !drive(&b, spec, 1); i++)
		;
	digest(&b, &db);
	assert_string_equal(da.data, db.data);
	buf_free(&da);
	buf_free(&db);
	world_close(&a);
	world_close(&b);
}

static void test_faults_cost_attempts_and_change_no_verdict(void **state)
{
	struct world w;
	struct cost_row cost;

	(void)state;
	world_open(&w, 9);
	run(&w,
	    "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, \"by_job\": true, \"faults\": {\"lost\": 0.05, \"void\": 0.05,"
	    " \"node_fail\": 0.05, \"timeout\": 0.05, \"submit_lost\": 0.1, \"accepted_but_timed_out\": 0.1}}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_outcome(&w, "A", "accepted");
	assert_int_equal(query_cost(w.ws->db, w.id, &cost, NULL), 0);
	assert_true(cost.attempts_void > 0);
	world_close(&w);
}

static void test_a_cluster_that_loses_everything_stops_the_campaign(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 10);
	run(&w, "{\"faults\": {\"node_fail\": 1}}");
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	world_close(&w);
}

static void test_a_baseline_that_cannot_run_fails_the_campaign_after_one_block(void **state)
{
	struct world w;
	struct cost_row cost;

	(void)state;
	world_open(&w, 11);
	run(&w, "{\"faults\": {\"failed_trial\": 1}}");
	assert_int_equal(state_of(&w), CAMPAIGN_FAILED);
	assert_int_equal(query_cost(w.ws->db, w.id, &cost, NULL), 0);
	assert_int_equal(cost.attempts, 1);
	world_close(&w);
}

/* Nothing helps: at most 5 % of campaigns may end in a win. Bounds: 40 campaigns at 0.05 give more
 * than 7 wins with p = 0.001 (binomial); 1,000 campaigns may give 50. */
static void test_nothing_helps_so_hardly_anything_is_accepted(void **state)
{
	int campaigns = long_run() ? 1000 : 40, bound = long_run() ? 50 : 7, wins = 0;

	(void)state;
	for (int i = 0; i < campaigns; i++) {
		struct world w;

		world_open(&w, 1000 + (uint64_t)i);
		run(&w,
		    "{\"sd_run\": 0.02, \"sd_alloc\": 0.03, \"persist\": false, \"fixed\": true}");
		wins += accepted(&w) > 0;
		world_close(&w);
	}
	print_message("%d of %d campaigns in which nothing helps ended in a win\n", wins,
		      campaigns);
	assert_true(wins <= bound);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_true_gain_is_accepted_and_fixed),
		cmocka_unit_test(test_two_gains_stack_over_two_rounds),
		cmocka_unit_test(test_an_optimisation_knob_stays_pending),
		cmocka_unit_test(test_what_never_reached_the_process_is_invalid),
		cmocka_unit_test(test_a_worse_loss_is_rejected_by_its_guard),
		cmocka_unit_test(test_an_arm_that_fails_is_never_accepted),
		cmocka_unit_test(test_a_nan_loss_is_a_failure_of_its_arm),
		cmocka_unit_test(test_reopened_after_each_step_ends_the_same),
		cmocka_unit_test(test_faults_cost_attempts_and_change_no_verdict),
		cmocka_unit_test(test_a_cluster_that_loses_everything_stops_the_campaign),
		cmocka_unit_test(
			test_a_baseline_that_cannot_run_fails_the_campaign_after_one_block),
		cmocka_unit_test(test_nothing_helps_so_hardly_anything_is_accepted),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
