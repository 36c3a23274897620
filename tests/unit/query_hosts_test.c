/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accounts of jobs, and nodes as they were seen. */
#include "tests/unit/store.h"

enum { PAIRS = 2, TRIALS = PAIRS * 2 + 1 };

static void accounts_are_asked_for_until_they_are_there(void **state)
{
	struct store st = store_new(":memory:");
	struct consumed_row c = {0};
	struct unaccounted_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	store_run(&st, st.block, st.arm, PAIRS);
	assert_ok(query_unaccounted(st.db, st.campaign, 0, 10, &v, &n, &e));
	assert_int_equal(n, 0); /* no job, no end */
	assert_ok(query_allocation_submitted(st.db, 1, "77", 1, &e));
	assert_ok(query_allocation_end(st.db, 1, "ok", NULL, NULL, 1000000, 9000000, &e));
	assert_ok(query_unaccounted(st.db, st.campaign, 9000001, 10, &v, &n, &e));
	assert_int_equal(n, 0); /* too long ago */
	assert_ok(query_unaccounted(st.db, st.campaign, 0, 10, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].job_id, "77");
	unaccounted_rows_free(v, n);
	assert_ok(query_consumed(st.db, st.campaign, &c, &e));
	assert_int_equal(c.jobs, 0);
	assert_int_equal(c.jobs_all, 1);
	consumed_row_done(&c);
	assert_ok(query_account_put(
		st.db, 1,
		&(struct consumed_row){
			.elapsed_s = 8, .maxrss_kib = -1, .energy_j = 4000, .tres = TEXT("cpu=2")},
		1, &e));
	v = NULL;
	assert_ok(query_unaccounted(st.db, st.campaign, 0, 10, &v, &n, &e));
	assert_int_equal(n, 0);
	assert_ok(query_consumed(st.db, st.campaign, &c, &e));
	assert_int_equal(c.jobs, 1);
	assert_int_equal(c.elapsed_s, 8);
	assert_int_equal(c.maxrss_kib, -1);
	assert_int_equal(c.energy_j, 4000);
	assert_int_equal(c.energy_s, 8);
	assert_string_equal(c.tres, "cpu=2");
	consumed_row_done(&c);
	db_close(st.db);
}

static void nodes_have_switches_ranks_and_clocks(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	const char *const nodes[] = {"n1", "n2"};
	struct host_row *v = NULL;
	struct err e = {0};
	bool again;
	size_t n = 0;
	int64_t attempt = store_plan(&st, st.block);

	(void)state;
	for (int i = 0; i < 4; i++)
		trial_result_effective(&t[1], i, "node", i < 2 ? "n1" : "n2", PROOF_DELIVERED);
	free(t[1].node);
	t[1].node = xstrdup("n1");
	trial_result_metric(&t[1], "sampler_cpu_pct", "mean", "", 0.2);
	trial_result_metric(&t[1], "sampler_cpu_pct", "mean", "node=n2", 0.4);
	trial_result_metric(&t[1], "node_clock_offset_ms", "mean", "node=n2", -3);
	assert_ok(query_attempt_ingest(st.db, attempt, "h", t, TRIALS, nodes, 2, 1, &again, &e));
	assert_ok(query_switches_put(st.db, 1, "n2", "s0.s1", &e));
	assert_ok(query_switches_put(st.db, 1, "n9", "s0.s9", &e)); /* not of it */
	assert_ok(query_hosts(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].node, "n1");
	assert_null(v[0].switches);
	assert_int_equal(v[0].first_rank, 0);
	assert_int_equal(v[0].last_rank, 1);
	assert_true(isnan(v[0].clock_ms));
	assert_true(v[0].sampler_pct == 0.2);
	assert_string_equal(v[1].switches, "s0.s1");
	assert_int_equal(v[1].first_rank, 2);
	assert_int_equal(v[1].last_rank, 3);
	assert_true(v[1].clock_ms == -3);
	assert_true(v[1].sampler_pct == 0.4);
	host_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounts_are_asked_for_until_they_are_there),
		cmocka_unit_test(nodes_have_switches_ranks_and_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
