/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults and cost, and the views that they and people with sqlite3 read. */
#include "tests/unit/store.h"

enum { PAIRS = 2, TRIALS = PAIRS * 2 + 1 };

static void faults_are_trials_and_attempts_that_went_wrong(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	struct fault_row *v = NULL;
	struct err e = {0};
	int64_t lost = store_plan(&st, st.block), attempt;
	bool again;
	size_t n = 0;

	(void)state;
	assert_ok(query_attempt_fail(st.db, lost, ATTEMPT_LOST, "no done.json", 1, &e));
	attempt = store_plan(&st, st.block);
	t[0].state = TRIAL_VOID; /* a warm-up is shown as well */
	t[0].reason = xstrdup("disk full");
	t[2].state = TRIAL_FAILED;
	t[2].reason = xstrdup("exit 1");
	assert_ok(query_attempt_ingest(st.db, attempt, "h", t, TRIALS, NULL, 0, 1, &again, &e));
	assert_ok(query_faults(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 3);
	assert_string_equal(v[0].state, "lost");
	assert_string_equal(v[0].reason, "no done.json");
	assert_string_equal(v[0].log_path, "blocks/1.1/agent.out");
	assert_string_equal(v[0].arm, "");
	assert_int_equal(v[0].slot, -1);
	assert_int_equal(v[0].attempt, 1);
	assert_string_equal(v[1].state, "void");
	assert_string_equal(v[1].stage, "screen");
	assert_string_equal(v[1].arm, "default");
	assert_int_equal(v[1].slot, 0);
	assert_string_equal(v[2].state, "failed");
	assert_string_equal(v[2].arm, "x=1");
	assert_string_equal(v[2].log_path, "blocks/1.1/t02/out");
	assert_int_equal(v[2].attempt, 2);
	fault_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

/* Two blocks in one allocation: the second begins where the first ended. */
static void attempts_ran_one_behind_another(void **state)
{
	struct store st = store_new(":memory:");
	int64_t blocks[2] = {st.block, store_block(&st, st.stage, st.arm, 1, PAIRS)}, allocation;
	struct trial_result *t = store_trials(st.arm, PAIRS);
	struct run_row *v = NULL;
	struct err e = {0};
	char token[64];
	bool again;
	size_t n = 0;

	(void)state;
	assert_ok(query_allocation_plan(st.db, st.campaign, blocks, 2, "fake", 1, &allocation,
					token, &e));
	assert_ok(query_runs(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].start_us, 0); /* nothing is known yet */
	assert_int_equal(v[0].end_us, 0);
	run_rows_free(v, n);
	assert_ok(query_attempt_ingest(st.db, 1, "h", t, TRIALS, NULL, 0, 5000000, &again, &e));
	assert_ok(query_attempt_fail(st.db, 2, ATTEMPT_VOID, "x", 8000000, &e));
	assert_ok(query_allocation_end(st.db, allocation, "ok", NULL, "n1", 1000000, 9000000, &e));
	assert_ok(query_runs(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].stage, st.stage);
	assert_int_equal(v[0].state, ATTEMPT_VALID);
	assert_int_equal(v[0].start_us, 1000000);
	assert_int_equal(v[0].end_us, 5000000);
	assert_int_equal(v[1].block, 1);
	assert_int_equal(v[1].state, ATTEMPT_VOID);
	assert_string_equal(v[1].reason, "x");
	assert_int_equal(v[1].start_us, 5000000);
	assert_int_equal(v[1].end_us, 9000000);
	run_rows_free(v, n);
	assert_ok(query_runs(st.db, 99, &v, &n, &e));
	assert_int_equal(n, 0);
	run_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void cost_counts_what_was_used(void **state)
{
	struct store st = store_new(":memory:");
	int64_t second = store_block(&st, st.stage, st.arm, 1, PAIRS), lost;
	struct cost_row c = {0};
	struct err e = {0};

	(void)state;
	assert_ok(query_cost(st.db, st.campaign, &c, &e));
	assert_int_equal(c.trials_all + c.attempts + c.allocations, 0);
	assert_true(c.trial_s == 0 && c.node_s == 0);
	store_run(&st, st.block, st.arm, PAIRS); /* 5 trials of 1 s on one node; no times known */
	lost = store_plan(&st, second);
	assert_ok(query_attempt_fail(st.db, lost, ATTEMPT_LOST, "x", 1, &e));
	assert_ok(
		query_allocation_end(st.db, 2, "node_fail", NULL, "n1,n2", 1000000, 11000000, &e));
	store_plan(&st, second); /* planned: costs nothing yet */
	assert_ok(query_cost(st.db, st.campaign, &c, &e));
	assert_int_equal(c.trials_all, 5);
	assert_int_equal(c.trials_timed, 4);
	assert_int_equal(c.attempts, 3);
	assert_int_equal(c.attempts_void, 1);
	assert_int_equal(c.allocations, 3);
	assert_true(fabs(c.trial_s - 5) < 1e-9);
	assert_true(fabs(c.node_s - (5 + 10 * 2)) < 1e-9);
	assert_ok(query_allocation_end(st.db, 1, "ok", NULL, NULL, 1000000, 9000000, &e));
	assert_ok(query_cost(st.db, st.campaign, &c, &e));
	/* what anybody reads from the view is the same */
	assert_int_equal(store_count(st.db, "SELECT trials_all * 100 + trials_timed * 10 + "
					    "(trial_s = 5) FROM v_cost"),
			 541);
	assert_true(fabs(c.node_s - (8 + 10 * 2)) <
		    1e-9); /* the scheduler's word, now that it is there */
	assert_int_equal(query_cost(st.db, 99, &c, &e), -ERR_NOT_FOUND);
	db_close(st.db);
}

static void only_the_campaign_asked_for(void **state)
{
	struct store st = store_new(":memory:");
	int64_t other = store_campaign(st.db, "other");
	struct fault_row *v = NULL;
	struct cost_row c;
	struct err e = {0};
	size_t n = 9;

	(void)state;
	store_run(&st, st.block, st.arm, PAIRS);
	assert_ok(query_cost(st.db, other, &c, &e));
	assert_int_equal(c.trials_all + c.attempts, 0);
	assert_ok(query_faults(st.db, other, &v, &n, &e));
	assert_int_equal(n, 0);
	fault_rows_free(v, n);
	db_close(st.db);
}

static void views_say_what_the_tables_hold(void **state)
{
	struct store st = store_new(":memory:");
	struct verdict_row go_on = {.stage = st.stage,
				    .hypothesis = st.hypothesis,
				    .look = 1,
				    .n = 3,
				    .outcome = TEXT("continue"),
				    .est = 0.2,
				    .at_us = 1};
	struct verdict_row last = go_on;
	struct err e = {0};
	int64_t id;
	char *text;

	(void)state;
	last.look = 2;
	last.final_look = true;
	last.outcome = TEXT("accepted");
	last.est = 0.125;
	store_run(&st, st.block, st.arm, PAIRS);
	assert_ok(query_verdict_add(st.db, st.campaign, &go_on, &id, &e));
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM v_experiment"),
			 0); /* not tested yet */
	assert_ok(query_verdict_add(st.db, st.campaign, &last, &id, &e));
	assert_ok(query_hypothesis_state(st.db, st.hypothesis, HYP_TESTED, NULL, &e));
	text = store_text(st.db,
			  "SELECT knob || '=' || value || ' ' || outcome || ' ' || est || ' ' || "
			  "stage_kind || ' ' || baseline_arm || ' ' || treatment_arm "
			  "FROM v_experiment");
	assert_string_equal(text, "x=1 accepted 0.125 screen 1 2");
	free(text);
	text = store_text(
		st.db, "SELECT state || ' ' || outcome || ' ' || predicted_gain FROM v_hypothesis");
	assert_string_equal(text, "tested accepted 0.1");
	free(text);
	text = store_text(st.db,
			  "SELECT name || ' ' || wins || ' ' || hypotheses || ' ' || created_utc "
			  "FROM v_campaign");
	assert_string_equal(text, "demo 1 1 1970-01-01 00:29:56");
	free(text);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM v_trial WHERE counted"), 4);
	text = store_text(
		st.db, "SELECT stage_kind || ' ' || arm_label || ' ' || wall_s || ' ' || counted "
		       "FROM v_trial WHERE slot = 2");
	assert_string_equal(text, "screen x=1 1.0 1");
	free(text);
	text = store_text(st.db,
			  "SELECT metric || ' ' || stat || ' ' || value || ' ' || unit || ' ' || "
			  "better FROM v_metric WHERE slot = 2");
	assert_string_equal(text, "step_time_ms mean 102.0 ms down");
	free(text);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_trials_and_attempts_that_went_wrong),
		cmocka_unit_test(attempts_ran_one_behind_another),
		cmocka_unit_test(cost_counts_what_was_used),
		cmocka_unit_test(only_the_campaign_asked_for),
		cmocka_unit_test(views_say_what_the_tables_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
