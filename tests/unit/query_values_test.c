/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

enum { PAIRS = 2, TRIALS = PAIRS * 2 + 1 };

static void run_trials(struct store *st, int64_t block, struct trial_result *t)
{
	int64_t attempt = store_plan(st, block);
	struct err e = {0};
	bool again;

	assert_ok(query_attempt_ingest(st->db, attempt, "h", t, TRIALS, NULL, 0, 1, &again, &e));
	store_trials_free(t, PAIRS);
}

static void values_are_those_of_timed_trials_in_order(void **state)
{
	struct store st = store_new(":memory:");
	int64_t second = store_block(&st, st.stage, st.arm, 1, PAIRS);
	struct trial_result *t = store_trials(st.arm, PAIRS);
	struct value_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	t[2].state = TRIAL_FAILED;
	t[2].reason = xstrdup("exit 1");
	t[3].metrics[0].value = NAN; /* left out at ingest: the trial stays, without a value */
	store_run(&st, second, st.arm, PAIRS); /* the later block is there first */
	run_trials(&st, st.block, t);
	assert_ok(query_stage_values(st.db, st.stage, "step_time_ms", "mean", &v, &n, &e));
	assert_int_equal(n, 8);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(v[i].block_index, i / 4);
		assert_int_equal(v[i].slot, i % 4 + 1);
		assert_int_equal(v[i].arm, st.arm[i % 2]);
		assert_int_equal(v[i].repeat, i % 4 / 2);
		assert_true(v[i].trial > 0);
	}
	assert_int_equal(v[0].block, st.block);
	assert_true(v[0].value == 101);
	assert_true(v[1].value == 102); /* a failed trial may have values: its state tells */
	assert_int_equal(v[1].state, TRIAL_FAILED);
	assert_string_equal(v[1].reason, "exit 1");
	assert_string_equal(v[1].log_path, "blocks/1.1/t02/out");
	assert_true(isnan(v[2].value));
	assert_int_equal(v[2].state, TRIAL_OK);
	assert_true(v[7].value == 104);
	value_rows_free(v, n);
	db_close(st.db);
}

static void other_metrics_stats_and_labels_are_not_mixed_in(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	struct value_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		trial_result_metric(&t[i], "step_time_ms", "p95", "", 7);
		trial_result_metric(&t[i], "step_time_ms", "mean", "rank=0", 8);
		trial_result_metric(&t[i], "loss", "mean", "", 9);
	}
	run_trials(&st, st.block, t);
	assert_ok(query_stage_values(st.db, st.stage, "step_time_ms", "p95", &v, &n, &e));
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_true(v[i].value == 7);
	value_rows_free(v, n);
	assert_ok(query_stage_values(st.db, st.stage, "never_heard_of", "mean", &v, &n, &e));
	assert_int_equal(n, 4); /* absent is NaN, never zero and never no row */
	for (size_t i = 0; i < n; i++)
		assert_true(isnan(v[i].value));
	value_rows_free(v, n);
	db_close(st.db);
}

static void attempts_given_up_do_not_count(void **state)
{
	struct store st = store_new(":memory:");
	struct value_row *v = NULL;
	struct err e = {0};
	size_t n = 7;

	(void)state;
	store_run(&st, st.block, st.arm, PAIRS);
	assert_int_equal(store_exec(st.db,
				    "UPDATE attempt SET state = 'void', manifest_hash = NULL"),
			 SQLITE_OK);
	assert_ok(query_stage_values(st.db, st.stage, "step_time_ms", "mean", &v, &n, &e));
	assert_int_equal(n, 0);
	value_rows_free(v, n);
	db_close(st.db);
}

static void signals_are_means_of_ok_timed_trials(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t second = store_block(&st, st.stage, st.arm, 1, PAIRS);
	struct signal_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	trial_result_metric(&t[1], "data_wait_ratio", "mean", "", 0.25);
	trial_result_metric(&t[1], "data_wait_ratio", "p95", "", 0.5);
	trial_result_metric(&t[1], "data_wait_ratio", "mean", "rank=1", 0.9);
	t[3].state = TRIAL_FAILED; /* arm 0 again: 103 is not counted */
	run_trials(&st, st.block, t);
	store_run(&st, second, st.arm, PAIRS); /* 101 and 103 */
	assert_ok(query_arm_signals(st.db, st.arm[0], &v, &n, &e));
	assert_int_equal(n, 3);
	assert_string_equal(v[0].metric, "data_wait_ratio");
	assert_string_equal(v[0].stat, "mean");
	assert_true(v[0].mean == 0.25 && v[0].n == 1 && isnan(v[0].sd));
	assert_string_equal(v[1].stat, "p95");
	assert_string_equal(v[2].metric, "step_time_ms");
	assert_int_equal(v[2].n, 3); /* 101, 101, 103; the warm-up's 100 is not counted */
	assert_true(fabs(v[2].mean - 305.0 / 3) < 1e-9);
	assert_true(fabs(v[2].sd - sqrt(4.0 / 3)) < 1e-9);
	signal_rows_free(v, n);
	assert_ok(query_arm_signals(st.db, 99, &v, &n, &e));
	assert_int_equal(n, 0);
	signal_rows_free(v, n);
	db_close(st.db);
}

/* Differences of 1 at 1e9: a sum of squares would lose them. */
static void the_spread_survives_a_large_mean(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	struct signal_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	t[1].metrics[0].value = 1e9 - 1;
	t[3].metrics[0].value = 1e9;
	run_trials(&st, st.block, t);
	assert_ok(query_arm_signals(st.db, st.arm[0], &v, &n, &e));
	assert_true(fabs(v[0].sd - sqrt(0.5)) < 1e-6);
	signal_rows_free(v, n);
	db_close(st.db);
}

static void effective_values_come_by_block_slot_rank_and_key(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	struct effective_row *v = NULL;
	struct err e = {0};
	size_t n = 0;
	int ranks[2];

	(void)state;
	trial_result_effective(&t[1], 10, "env.A", "1", PROOF_DELIVERED);
	trial_result_effective(&t[1], 2, "arg.--x", "4", PROOF_EFFECTIVE);
	t[4].state = TRIAL_FAILED;
	run_trials(&st, st.block, t);
	assert_ok(query_stage_effective(st.db, st.stage, &v, &n, &e));
	assert_int_equal(n, 5); /* three ok timed trials with one value, and two more */
	assert_int_equal(v[0].arm, st.arm[0]);
	assert_int_equal(v[0].rank, 0);
	assert_int_equal(v[0].block, st.block);
	assert_int_equal(v[1].rank, 2);
	assert_string_equal(v[1].key, "arg.--x");
	assert_string_equal(v[1].value, "4");
	assert_int_equal(v[1].level, PROOF_EFFECTIVE);
	assert_int_equal(v[2].rank, 10);
	assert_int_equal(v[3].arm, st.arm[1]);
	assert_int_equal(v[4].arm, st.arm[0]);
	assert_true(v[4].trial != v[0].trial);
	effective_rows_free(v, n);
	for (int i = 0; i < 2; i++)
		assert_ok(query_arm_ranks(st.db, st.arm[i], &ranks[i], &e));
	assert_int_equal(ranks[0], 11);
	assert_int_equal(ranks[1], 1);
	assert_ok(query_arm_ranks(st.db, st.arm[1] + 1, &ranks[0], &e));
	assert_int_equal(ranks[0], 0);
	db_close(st.db);
}

static void set_mean(struct signal_row *r, const char *metric, double mean)
{
	*r = (struct signal_row){.metric = xstrdup(metric), .stat = xstrdup("mean"), .mean = mean};
}

/* The figures of precision-and-compile on an H200: 26.0 ms under the profiler, 16.3 without. */
static void what_a_profiler_adds_is_taken_out(void **state)
{
	struct signal_row *v = xcalloc(8, sizeof *v);

	(void)state;
	set_mean(&v[0], "compute_ratio", 0.40);
	set_mean(&v[1], "comm_exposed_ratio", 0.04);
	set_mean(&v[2], "copy_exposed_ratio", 0.01);
	set_mean(&v[3], "launch_gap_ratio", 0.50);
	set_mean(&v[4], "sync_gap_ratio", 0.05);
	set_mean(&v[5], "gpu_idle_ratio", 0.55);
	set_mean(&v[6], "straggler_ratio", 0.02);
	set_mean(&v[7], "data_gap_ratio", 0);
	signal_rows_without_profiler(v, 8, 0.9);
	signal_rows_without_profiler(v, 8, NAN);
	assert_float_equal(v[0].mean, 0.40, 1e-12);
	signal_rows_without_profiler(v, 8, 1.6);
	assert_float_equal(v[0].mean, 0.64, 1e-12);
	assert_float_equal(v[1].mean, 0.04, 1e-12);
	assert_float_equal(v[2].mean, 0.016, 1e-12);
	assert_float_equal(v[5].mean, 0.304, 1e-12); /* what is left */
	assert_float_equal(v[3].mean, 0.304 * 50 / 55, 1e-12);
	assert_float_equal(v[4].mean, 0.304 * 5 / 55, 1e-12);
	assert_float_equal(v[6].mean, 0.02, 1e-12);
	signal_rows_without_profiler(v, 8, 2); /* no more than the step */
	assert_float_equal(v[0].mean, 0.96, 1e-12);
	assert_float_equal(v[5].mean, 0, 1e-12);
	/* Who waits for data waits as long. */
	v[0].mean = 0.58;
	v[5].mean = 0.4;
	v[7].mean = 0.3;
	signal_rows_without_profiler(v, 8, 1.1);
	assert_float_equal(v[7].mean, 0.3, 1e-12);
	assert_float_equal(v[0].mean, 0.638, 1e-12);
	assert_float_equal(v[5].mean, 1 - 0.04 - 0.638 - v[2].mean, 1e-12);
	/* Without a device there is nothing to tell the host from. */
	v[5].metric[0] = 'x';
	v[0].mean = 0.3;
	signal_rows_without_profiler(v, 8, 2);
	assert_float_equal(v[0].mean, 0.3, 1e-12);
	signal_rows_free(v, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_those_of_timed_trials_in_order),
		cmocka_unit_test(other_metrics_stats_and_labels_are_not_mixed_in),
		cmocka_unit_test(attempts_given_up_do_not_count),
		cmocka_unit_test(signals_are_means_of_ok_timed_trials),
		cmocka_unit_test(what_a_profiler_adds_is_taken_out),
		cmocka_unit_test(the_spread_survives_a_large_mean),
		cmocka_unit_test(effective_values_come_by_block_slot_rank_and_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
