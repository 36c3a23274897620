/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

static struct verdict_row look(const struct store *st, int number, const char *outcome)
{
	return (struct verdict_row){
		.stage = st->stage,
		.hypothesis = st->hypothesis,
		.look = number,
		.n = number + 2,
		.final_look = strcmp(outcome, "continue") != 0,
		.outcome = TEXT(outcome),
		.est = 0.125,
		.lo = -INFINITY,
		.hi = 0.25,
		.df = 7.5,
		.p = 0.01,
		.p_star = 0.02,
		.alpha_spent = 0.0125,
		.sign_flip_p = NAN,
		.effect_unproved = true,
		.inputs_hash = TEXT("ab"),
		.at_us = 1000 + number,
	};
}

static int add(struct store *st, const struct verdict_row *v, struct err *e)
{
	int64_t id = 0;

	return query_verdict_add(st->db, st->campaign, v, &id, e);
}

static void verdicts_come_back_in_order(void **state)
{
	struct store st = store_new(":memory:");
	struct verdict_row a = look(&st, 1, "continue"),
			   b = look(&st, 2, "rejected: no useful gain");
	struct verdict_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	b.reason = TEXT("too small");
	b.pending_convergence = true;
	assert_ok(add(&st, &a, &e));
	assert_ok(add(&st, &b, &e));
	assert_ok(query_verdicts(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].outcome, "continue");
	assert_false(v[0].final_look);
	assert_null(v[0].reason);
	assert_int_equal(v[1].stage, st.stage);
	assert_int_equal(v[1].hypothesis, st.hypothesis);
	assert_int_equal(v[1].look, 2);
	assert_int_equal(v[1].n, 4);
	assert_true(v[1].final_look);
	assert_string_equal(v[1].outcome, "rejected: no useful gain");
	assert_string_equal(v[1].reason, "too small");
	assert_true(v[1].est == 0.125 && isinf(v[1].lo) && v[1].lo < 0 && v[1].hi == 0.25);
	assert_true(v[1].df == 7.5 && v[1].p == 0.01 && v[1].p_star == 0.02);
	assert_true(v[1].alpha_spent == 0.0125 && isnan(v[1].sign_flip_p));
	assert_true(v[1].pending_convergence && v[1].effect_unproved);
	assert_string_equal(v[1].inputs_hash, "ab");
	assert_int_equal(v[1].at_us, 1002);
	verdict_rows_free(v, n);
	db_close(st.db);
}

/* SQL past our code is refused too: what was said stays said. */
static void verdicts_are_append_only(void **state)
{
	struct store st = store_new(":memory:");
	struct verdict_row v = look(&st, 1, "accepted");
	struct err e = {0};

	(void)state;
	assert_ok(add(&st, &v, &e));
	assert_int_equal(store_exec(st.db, "UPDATE verdict SET est = 9"),
			 SQLITE_CONSTRAINT_TRIGGER);
	assert_contains(sqlite3_errmsg(db_handle(st.db)), "append-only");
	assert_int_equal(store_exec(st.db, "DELETE FROM verdict"), SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(store_exec(st.db, "INSERT OR REPLACE INTO verdict SELECT * FROM verdict"),
			 SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(
		store_exec(st.db, "INSERT OR REPLACE INTO verdict SELECT 77, campaign, stage, "
				  "hypothesis, look, n + 1, final_look, outcome, reason, 9.0, lo, "
				  "hi, df, p, p_star, alpha_spent, sign_flip_p, "
				  "pending_convergence, effect_unproved, inputs_hash, at_us "
				  "FROM verdict"),
		SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM verdict WHERE est = 0.125"), 1);
	db_close(st.db);
}

static void a_test_has_one_last_word(void **state)
{
	struct store st = store_new(":memory:");
	struct verdict_row go_on = look(&st, 1, "continue"), last = look(&st, 2, "accepted");
	struct verdict_row other = look(&st, 3, "inconclusive");
	struct err e = {0};

	(void)state;
	assert_ok(add(&st, &go_on, &e));
	assert_int_equal(add(&st, &go_on, &e), -ERR_STATE); /* the same look with the same pairs */
	go_on.n++;
	assert_ok(add(&st, &go_on, &e));
	assert_ok(add(&st, &last, &e));
	assert_int_equal(add(&st, &other, &e), -ERR_STATE);
	assert_contains(e.text, "this test has its verdict");
	/* the final stage has no hypothesis and one last word as well */
	last.hypothesis = other.hypothesis = 0;
	assert_ok(add(&st, &last, &e));
	assert_int_equal(add(&st, &other, &e), -ERR_STATE);
	db_close(st.db);
}

static void outcomes_are_words(void **state)
{
	struct store st = store_new(":memory:");
	struct verdict_row v = look(&st, 1, "great");
	struct err e = {0};

	(void)state;
	assert_int_equal(add(&st, &v, &e), -ERR_STATE);
	v = look(&st, 1, "accepted");
	v.final_look = false;
	assert_int_equal(add(&st, &v, &e), -ERR_STATE); /* a verdict is the last word */
	v = look(&st, 1, "continue");
	v.final_look = true;
	assert_int_equal(add(&st, &v, &e), -ERR_STATE);
	db_close(st.db);
}

static void a_campaign_has_one_fix(void **state)
{
	struct store st = store_new(":memory:");
	struct fix_row in = {.campaign = st.campaign,
			     .state = TEXT("not measured"),
			     .est = NAN,
			     .lo = NAN,
			     .hi = NAN,
			     .soak_drift = NAN,
			     .at_us = 5};
	struct fix_row out = {.id = 5};
	struct err e = {0};
	int64_t first = 0, second = 0;
	bool found = true;

	(void)state;
	assert_ok(query_fix_get(st.db, st.campaign, &out, &found, &e));
	assert_false(found);
	assert_ok(query_fix_put(st.db, &in, &first, &e));
	assert_ok(query_fix_get(st.db, st.campaign, &out, &found, &e));
	assert_true(found);
	assert_int_equal(out.config, 0);
	assert_true(isnan(out.est) && isnan(out.soak_drift));
	assert_string_equal(out.fingerprint, "{}");
	fix_row_done(&out);
	in = (struct fix_row){.campaign = st.campaign,
			      .config = st.config[1],
			      .stage = st.stage,
			      .state = TEXT("accepted, pending convergence"),
			      .reason = TEXT("a guard is open"),
			      .est = 0.1,
			      .lo = 0.05,
			      .hi = 0.15,
			      .n = 8,
			      .fingerprint = TEXT("{\"k\":1}"),
			      .soak_drift = -0.001,
			      .at_us = 6};
	assert_ok(query_fix_put(st.db, &in, &second, &e));
	assert_int_equal(second, first);
	assert_ok(query_fix_get(st.db, st.campaign, &out, &found, &e));
	assert_int_equal(out.id, first);
	assert_int_equal(out.config, st.config[1]);
	assert_int_equal(out.stage, st.stage);
	assert_string_equal(out.state, in.state);
	assert_string_equal(out.reason, in.reason);
	assert_true(out.est == 0.1 && out.lo == 0.05 && out.hi == 0.15 && out.soak_drift == -0.001);
	assert_int_equal(out.n, 8);
	assert_string_equal(out.fingerprint, "{\"k\":1}");
	assert_int_equal(out.at_us, 6);
	fix_row_done(&out);
	fix_row_done(NULL);
	in.state = TEXT("wonderful");
	assert_int_equal(query_fix_put(st.db, &in, &second, &e), -ERR_STATE);
	db_close(st.db);
}

static void events_come_back_in_order(void **state)
{
	struct store st = store_new(":memory:");
	struct event_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_event_add(st.db, st.campaign, 9, "resumed", "pid 4", &e));
	assert_ok(query_event_add(st.db, 0, 8, "backup", "of the workspace", &e));
	assert_ok(query_event_add(st.db, st.campaign, 7, "stopped", "", &e));
	assert_ok(query_events(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].kind, "resumed");
	assert_string_equal(v[0].text, "pid 4");
	assert_int_equal(v[0].at_us, 9);
	assert_string_equal(v[1].kind, "stopped");
	event_rows_free(v, n);
	assert_int_equal(query_event_add(st.db, 99, 1, "x", "y", &e), -ERR_STATE);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_come_back_in_order),
		cmocka_unit_test(verdicts_are_append_only),
		cmocka_unit_test(a_test_has_one_last_word),
		cmocka_unit_test(outcomes_are_words),
		cmocka_unit_test(a_campaign_has_one_fix),
		cmocka_unit_test(events_come_back_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
