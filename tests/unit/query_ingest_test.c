/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An attempt is stored whole, once, or not at all. */
#include "tests/unit/store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAIRS = 2, TRIALS = PAIRS * 2 + 1 };

static const char *const nodes[] = {"n2", "n1", "n2"};

static int ingest(struct store *st, int64_t attempt, const char *hash, const struct trial_result *t,
		  size_t n, bool *again, struct err *e)
{
	return query_attempt_ingest(st->db, attempt, hash, t, n, nodes, ARRAY_LEN(nodes),
				    STORE_NOW_US + 5, again, e);
}

static int64_t rows_in_all(struct db *db)
{
	return store_count(db,
			   "SELECT (SELECT count(*) FROM trial) + (SELECT count(*) FROM metric) + "
			   "(SELECT count(*) FROM effective) + (SELECT count(*) FROM metric_def) + "
			   "(SELECT count(*) FROM labelset) + (SELECT count(*) FROM event) + "
			   "(SELECT count(*) FROM allocation_node) + "
			   "(SELECT count(*) FROM attempt WHERE state = 'valid')");
}

static void an_attempt_is_stored_whole(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct err e = {0};
	bool again = true;
	char *text;

	(void)state;
	t[4].state = TRIAL_FAILED;
	t[4].reason = xstrdup("exit 3");
	t[4].exit_status = 3;
	t[4].user_us = 5;
	t[4].maxrss_kib = 6;
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	assert_false(again);
	text = store_text(st.db,
			  "SELECT state || ' ' || manifest_hash || ' ' || (ended_us - 1796000000) "
			  "FROM attempt");
	assert_string_equal(text, "valid h1 5");
	free(text);
	text = store_text(st.db,
			  "SELECT slot || ' ' || state || ' ' || reason || ' ' || exit_status || "
			  "' ' || user_us || ' ' || maxrss_kib || ' ' || node || ' ' || log_path "
			  "FROM trial WHERE slot = 4");
	assert_string_equal(text, "4 failed exit 3 3 5 6 n1 blocks/1.1/t04/out");
	free(text);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM trial"), TRIALS);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM metric"), TRIALS);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM effective"), TRIALS);
	text = store_text(st.db, "SELECT group_concat(node, ' ') FROM allocation_node");
	assert_string_equal(text, "n1 n2");
	free(text);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM event"), 0);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void the_same_bytes_again_change_nothing(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block), rows;
	struct err e = {0};
	bool again = false;

	(void)state;
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	rows = rows_in_all(st.db);
	for (int i = 0; i < 3; i++) {
		again = false;
		assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
		assert_true(again);
	}
	assert_int_equal(rows_in_all(st.db), rows);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void other_bytes_make_a_conflict_and_the_first_stay(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct event_row *v = NULL;
	struct err e = {0};
	bool again = false;
	size_t n = 0;

	(void)state;
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	t[1].metrics[0].value = 555;
	for (int i = 0; i < 3; i++) /* whoever resumes finds it each time */
		assert_ok(ingest(&st, attempt, "h2", t, TRIALS, &again, &e));
	assert_true(again);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM metric WHERE value = 555"), 0);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM trial"), TRIALS);
	assert_ok(query_events(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].kind, "conflict");
	assert_contains(v[0].text, "block 1, attempt 1: other results (h2) than those stored (h1)");
	event_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void results_of_an_attempt_given_up_are_late(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct event_row *v = NULL;
	struct err e = {0};
	bool again = false;
	size_t n = 0;

	(void)state;
	assert_ok(query_attempt_fail(st.db, attempt, ATTEMPT_LOST, "no done.json", 1, &e));
	store_run(&st, st.block, st.arm, PAIRS);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	assert_true(again);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM trial"), TRIALS);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM attempt WHERE state = 'lost'"),
			 1);
	assert_ok(query_events(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].kind, "late");
	assert_contains(v[0].text, "given up as lost");
	event_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

/* -- values ---------------------------------------------------------------------------------- */

static void values_out_of_range_are_left_out_and_told(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct event_row *v = NULL;
	struct err e = {0};
	bool again;
	size_t n = 0;

	(void)state;
	trial_result_metric(&t[2], "mfu_pct", "mean", "rank=3", 100.5);
	trial_result_metric(&t[2], "loss", "last", "", NAN);
	trial_result_metric(&t[2], "loss", "max", "", INFINITY);
	trial_result_metric(&t[2], "Bad Name", "mean", "", 1);
	trial_result_metric(&t[2], "mfu_pct", "max", "", 100); /* the bounds belong to the range */
	trial_result_metric(&t[2], "mfu_pct", "min", "", 0);
	trial_result_metric(&t[2], "mfu_pct", "n", "", 250); /* a count of values is no value */
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM metric"), TRIALS + 3);
	assert_ok(query_events(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(v[i].kind, "out_of_range");
		assert_contains(v[i].text, "block 1, attempt 1, slot 2");
		assert_contains(v[i].text, "log blocks/1.1/t02/out");
	}
	assert_contains(v[0].text,
			"mfu_pct{rank=3} (mean) = 100.5 is left out: it must lie between 0 and "
			"100 %");
	assert_contains(v[1].text, "loss (last) = nan is left out: it is no number");
	assert_contains(v[2].text, "loss (max) = inf");
	assert_contains(v[3].text, "Bad Name");
	event_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

/* Its metric and its labels are looked for once an attempt. */
static void a_value_costs_one_statement(void **state)
{
	static const char *const labels[] = {"rank=1", "rank=0", "b=1,a=2", "a=2,b=1"};
	enum { EACH = 10 };
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block), commits, before, after;
	struct err e = {0};
	bool again;

	(void)state;
	for (int i = 0; i < TRIALS; i++)
		for (int k = 0; k < EACH * (int)ARRAY_LEN(labels); k++) {
			char stat[8];

			snprintf(stat, sizeof stat, "p%d", k / 4);
			trial_result_metric(&t[i], k % 2 ? "loss" : "step_time_ms", stat,
					    labels[k % 4], 100 + k);
		}
	db_counters(st.db, &commits, &before);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	db_counters(st.db, &commits, &after);
	assert_true(after - before < TRIALS * (EACH * (int64_t)ARRAY_LEN(labels) + 4) + 20);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM metric m JOIN metric_def d ON "
					    "d.id = m.def JOIN labelset l ON l.id = m.label "
					    "WHERE (d.name = 'loss') = (l.labels IN ('rank=0', "
					    "'a=2,b=1') AND m.value % 2 = 1) AND l.labels <> ''"),
			 TRIALS * EACH * (int64_t)ARRAY_LEN(labels));
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void a_flood_of_bad_values_is_bounded(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct event_row *v = NULL;
	struct err e = {0};
	bool again;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		trial_result_metric(&t[1], "loss", "mean", "", -1e12 - i * 1e9);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	assert_ok(query_events(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 21);
	assert_contains(v[20].text, "980 further values are left out");
	event_rows_free(v, n);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void labels_are_canonical(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct err e = {0};
	bool again;
	char *text;

	(void)state;
	trial_result_metric(&t[1], "coll_time_us", "mean", "size=8,op=sum", 1);
	trial_result_metric(&t[1], "coll_time_us", "mean", "op=sum,size=8",
			    2); /* the last one counts */
	trial_result_metric(&t[1], "coll_time_us", "mean", ",op=sum,,x", 3);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	text = store_text(
		st.db, "SELECT group_concat(labels || ':' || value, ' ') FROM (SELECT labels, "
		       "value FROM metric m JOIN labelset l ON l.id = m.label WHERE labels <> '' "
		       "ORDER BY labels)");
	assert_string_equal(text, "op=sum,size=8:2.0 op=sum,x=:3.0");
	free(text);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void metrics_of_the_recipe_are_allowed(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct err e = {0};
	bool again;
	char *text;

	(void)state;
	trial_result_metric(&t[1], "my.metric", "mean", "", -1e300);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	text = store_text(st.db, "SELECT name || '|' || unit || '|' || better || '|' || "
				 "coalesce(min, 'none') FROM metric_def WHERE name = 'my.metric'");
	assert_string_equal(text, "my.metric||none|none");
	free(text);
	text = store_text(st.db, "SELECT unit || '|' || better || '|' || max FROM metric_def "
				 "WHERE name = 'step_time_ms'");
	assert_string_equal(text, "ms|down|1000000000.0");
	free(text);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void a_changed_catalogue_reaches_the_table(void **state)
{
	struct store st = store_new(":memory:");
	int64_t second = store_block(&st, st.stage, st.arm, 1, PAIRS);

	(void)state;
	store_run(&st, st.block, st.arm, PAIRS);
	assert_int_equal(store_exec(st.db, "UPDATE metric_def SET max = 7.0, unit = 'h'"),
			 SQLITE_OK);
	store_run(&st, second, st.arm, PAIRS);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM metric_def"), 1);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM metric_def WHERE unit = 'ms' AND "
					    "max = 1e9"),
			 1);
	db_close(st.db);
}

static void facts_told_twice_are_one(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct err e = {0};
	bool again;

	(void)state;
	trial_result_effective(&t[1], 0, "env.A", "1", PROOF_DELIVERED);    /* the same */
	trial_result_effective(&t[1], 0, "env.A", "1", PROOF_ACKNOWLEDGED); /* more */
	trial_result_effective(&t[1], 0, "env.A", "2", PROOF_DELIVERED); /* a contradiction: kept */
	trial_result_effective(&t[1], 1, "env.A", "1", PROOF_DELIVERED);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	assert_int_equal(store_count(st.db,
				     "SELECT count(*) FROM effective e JOIN trial t ON t.id = "
				     "e.trial WHERE t.slot = 1"),
			 4);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

/* -- what does not fit the plan -------------------------------------------------------------- */

static void refused(struct store *st, int64_t attempt, const struct trial_result *t, size_t n,
		    const char *words)
{
	struct err e = {0};
	bool again = true;

	assert_int_equal(ingest(st, attempt, "h1", t, n, &again, &e), -ERR_STATE);
	assert_contains(e.text, words);
	assert_true(again); /* untouched */
	assert_int_equal(store_count(st->db, "SELECT count(*) FROM trial"), 0);
	assert_int_equal(
		store_count(st->db, "SELECT count(*) FROM attempt WHERE state = 'planned'"), 1);
	assert_false(db_in_transaction(st->db));
}

static void swap(struct trial_result *a, struct trial_result *b)
{
	struct trial_result kept = *a;

	*a = *b;
	*b = kept;
}

static void trials_must_be_those_of_the_plan(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS);
	int64_t attempt = store_plan(&st, st.block);
	struct err e = {0};
	bool again;

	(void)state;
	refused(&st, attempt, t, TRIALS - 1, "has no trial of slot 4");
	refused(&st, attempt, t, 0, "has no trial of slot 0");
	t[2].arm = st.arm[0];
	refused(&st, attempt, t, TRIALS, "slot 2: the trial is of another arm");
	t[2].arm = st.arm[1];
	t[3].repeat = 0;
	refused(&st, attempt, t, TRIALS, "slot 3: the trial is of another arm, repeat");
	t[3].repeat = 1;
	t[0].kind = SLOT_TIMED;
	refused(&st, attempt, t, TRIALS, "slot 0: the trial is of another arm, repeat or kind");
	t[0].kind = SLOT_WARMUP;
	t[4].slot = 3;
	refused(&st, attempt, t, TRIALS, "has no trial of slot 4");
	t[4].slot = 4;
	assert_int_equal(ingest(&st, 99, "h1", t, TRIALS, &again, &e), -ERR_NOT_FOUND);
	/* order does not matter */
	swap(&t[1], &t[3]);
	assert_ok(ingest(&st, attempt, "h1", t, TRIALS, &again, &e));
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static void more_trials_than_planned_are_refused(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = store_trials(st.arm, PAIRS + 1);
	int64_t attempt = store_plan(&st, st.block);

	(void)state;
	refused(&st, attempt, t, TRIALS + 2, "has 7 trials, 5 were planned");
	store_trials_free(t, PAIRS + 1);
	db_close(st.db);
}

/* -- faults in the middle -------------------------------------------------------------------- */

/* Trials big enough to need many pages, with something in every table. */
static struct trial_result *big_trials(const int64_t arm[2])
{
	struct trial_result *t = store_trials(arm, PAIRS);

	for (int i = 0; i < TRIALS; i++) {
		for (int k = 0; k < 40; k++) {
			char label[32], value[300];

			snprintf(label, sizeof label, "rank=%d", k);
			snprintf(value, sizeof value, "%0290d", k);
			trial_result_metric(&t[i], "loss", "mean", label, k == 39 ? NAN : k);
			trial_result_effective(&t[i], k, "env.A_VARIABLE", value, PROOF_DELIVERED);
		}
	}
	return t;
}

/* The disk is full after 0, 1, 2, ... more pages, until there is enough: each time nothing, then
 * all. */
static void a_full_disk_leaves_nothing_half_done(void **state)
{
	struct store st = store_new(":memory:");
	struct trial_result *t = big_trials(st.arm);
	int64_t attempt = store_plan(&st, st.block);
	int64_t pages = store_count(st.db, "PRAGMA page_count");
	struct err e = {0};
	int failures = 0, rc = -1;
	bool again;

	(void)state;
	for (int more = 0; more < 200 && rc != 0; more++) {
		_cleanup_free_ char *limit = xasprintf("PRAGMA max_page_count=%lld",
						       (long long)pages + more);

		assert_int_equal(store_exec(st.db, limit), SQLITE_OK);
		rc = ingest(&st, attempt, "h1", t, TRIALS, &again, &e);
		if (rc != 0) {
			failures++;
			assert_int_equal(rc, -ERR_DB);
			assert_contains(e.text, "full");
			assert_contains(e.text, "nothing of this step was stored");
			assert_int_equal(rows_in_all(st.db), 0);
			assert_false(db_in_transaction(st.db));
		}
	}
	assert_int_equal(rc, 0);
	assert_true(failures > 5);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM trial"), TRIALS);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM effective"), TRIALS * 41);
	store_trials_free(t, PAIRS);
	db_close(st.db);
}

static int rows_to_live;

static void die_at_row(void *ctx, int op, const char *db, const char *table, sqlite3_int64 row)
{
	(void)ctx;
	(void)op;
	(void)db;
	(void)table;
	(void)row;
	if (rows_to_live-- == 0)
		raise(SIGKILL);
}

/* 0: it went through; SIGKILL: it died at the row. */
static int ingest_in_child(const char *path, const struct store *of, int64_t attempt, int rows)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct store st = *of;
		struct trial_result *t = big_trials(st.arm);
		struct err e = {0};
		bool again;

		if (db_open(path, DB_WRITE, NULL, &st.db, &e) != 0)
			_exit(1);
		rows_to_live = rows;
		sqlite3_update_hook(db_handle(st.db), die_at_row, NULL);
		_exit(ingest(&st, attempt, "h1", t, TRIALS, &again, &e) == 0 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status);
	assert_int_equal(WEXITSTATUS(status), 0);
	return 0;
}

/* kill -9 at the k-th row that is written: the next process finds nothing of it, and then all. */
static void a_killed_ingest_leaves_nothing_half_done(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "fettle.db");
	struct store st = store_new(path);
	int64_t attempt = store_plan(&st, st.block);
	struct err e = {0};
	int status = SIGKILL, kills = 0;

	(void)state;
	for (int rows = 0; status == SIGKILL; rows += 9) {
		db_close(st.db);
		st.db = NULL;
		status = ingest_in_child(path, &st, attempt, rows);
		assert_ok(db_open(path, DB_WRITE, NULL, &st.db, &e));
		if (status == 0)
			break;
		kills++;
		assert_int_equal(rows_in_all(st.db), 0);
		assert_int_equal(store_count(st.db, "SELECT count(*) FROM attempt "
						    "WHERE state = 'planned'"),
				 1);
	}
	assert_true(kills > 3);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM trial"), TRIALS);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM attempt WHERE state = 'valid'"),
			 1);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_attempt_is_stored_whole),
		cmocka_unit_test(the_same_bytes_again_change_nothing),
		cmocka_unit_test(other_bytes_make_a_conflict_and_the_first_stay),
		cmocka_unit_test(results_of_an_attempt_given_up_are_late),
		cmocka_unit_test(values_out_of_range_are_left_out_and_told),
		cmocka_unit_test(a_value_costs_one_statement),
		cmocka_unit_test(a_flood_of_bad_values_is_bounded),
		cmocka_unit_test(labels_are_canonical),
		cmocka_unit_test(metrics_of_the_recipe_are_allowed),
		cmocka_unit_test(a_changed_catalogue_reaches_the_table),
		cmocka_unit_test(facts_told_twice_are_one),
		cmocka_unit_test(trials_must_be_those_of_the_plan),
		cmocka_unit_test(more_trials_than_planned_are_refused),
		cmocka_unit_test(a_full_disk_leaves_nothing_half_done),
		cmocka_unit_test(a_killed_ingest_leaves_nothing_half_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
