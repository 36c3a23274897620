/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Series over nights as a reader sees them: glances, changes, events, the page. */
#include "tests/unit/check.h"

#include "orchestrator/report/nights_chart.h"
#include "orchestrator/report/regressions.h"
#include "tests/unit/nights_sample.h"

static struct db *store(void)
{
	struct db *db = NULL;
	struct err e = {0};

	assert_ok(db_open(":memory:", DB_CREATE, NULL, &db, &e));
	return db;
}

static void test_ticks_of_time(void **state)
{
	struct nights_tick t[NIGHTS_TICKS_MAX];
	int first = (int)regress_day("2026-10-14");

	(void)state;
	assert_int_equal(nights_ticks(first, first, t), 1);
	assert_string_equal(t[0].label, "Oct 14");
	assert_int_equal(nights_ticks(first, first + 6, t), 7);
	assert_int_equal(nights_ticks(first, first + 110, t), 4);
	assert_string_equal(t[0].label, "Nov");
	assert_string_equal(t[2].label, "2027");
	for (int span = 0; span < 80000; span += 97) {
		size_t n = nights_ticks(first, first + span, t);

		assert_true(n <= NIGHTS_TICKS_MAX);
		for (size_t i = 0; i < n; i++)
			assert_true(t[i].day >= first && t[i].day <= first + span);
	}
}

static void test_glances(void **state)
{
	struct db *db = store();
	struct nights *n = NULL;
	struct nights_glance *g = NULL;
	struct err e = {0};
	size_t n_g = 0;

	(void)state;
	sample_put(db);
	assert_ok(nights_open(db, &n, &e));
	assert_ok(nights_glances(n, NULL, false, &g, &n_g, &e));
	assert_int_equal(n_g, 6);
	assert_int_equal(g[2].row.id, 1);
	assert_int_equal(g[2].nights, 55);
	assert_string_equal(g[2].last, "2026-11-28");
	assert_true(fabs(g[2].month - 0.052) < 0.01 && fabs(g[2].week) < 0.01);
	assert_int_equal(g[2].regression, 1);
	assert_int_equal(g[4].regression, 0); /* accepted: the new normal */
	nights_glances_free(g, n_g);
	assert_ok(nights_glances(n, "loader", false, &g, &n_g, &e));
	assert_int_equal(n_g, 1);
	nights_glances_free(g, n_g);
	assert_ok(nights_glances(n, "busbw", false, &g, &n_g, &e)); /* a part of a name */
	assert_int_equal(n_g, 1);
	nights_glances_free(g, n_g);
	assert_ok(nights_glances(n, "5", false, &g, &n_g, &e));
	assert_string_equal(g[0].row.metric, "loss");
	nights_glances_free(g, n_g);
	assert_int_equal(nights_glances(n, "loadr", false, &g, &n_g, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "did you mean loader?");
	nights_close(n);
	db_close(db);
}

static void load(struct nights *n, struct db *db, int64_t id, struct nights_series *s)
{
	struct series_row row = {0};
	struct err e = {0};

	assert_ok(history_series_get(db, id, &row, &e));
	assert_ok(nights_load(n, &row, NULL, s, &e));
	series_row_done(&row);
}

static void test_changes_and_events(void **state)
{
	struct db *db = store();
	struct nights_series s = {0};
	struct nights *n = NULL;
	struct err e = {0};

	(void)state;
	sample_put(db);
	assert_ok(nights_open(db, &n, &e));
	load(n, db, 1, &s);
	/* what tracking stored stands for what the detector sees there, too */
	assert_int_equal(s.n_marks, 1);
	assert_int_equal(s.marks[0].regression, 1);
	assert_int_equal(s.n_events, 2);
	assert_string_equal(s.events[0].key, "git");
	assert_string_equal(s.events[1].key, "nvidia_driver");
	assert_string_equal(s.events[1].night, "2026-11-10");
	assert_string_equal(s.events[1].was, "550.90");
	nights_series_done(&s);
	load(n, db, 6, &s);
	assert_int_equal(s.n_marks, 1); /* nobody tracks it */
	assert_int_equal(s.marks[0].regression, 0);
	assert_int_equal(s.marks[0].direction, CHANGE_WORSE);
	assert_string_equal(s.marks[0].night, "2026-10-31");
	assert_true(nights_alarming(&s.marks[0]));
	assert_int_equal(s.n_events, 0);
	nights_series_done(&s);
	nights_close(n);
	db_close(db);
}

static void test_what_came_to_nothing_is_left_out(void **state)
{
	struct nights_mark marks[] = {
		{.night = "1", .level = CHANGE_DISMISSED, .regression = 1},
		{.night = "2", .level = CHANGE_SUSPECT, .regression = 2},
		{.night = "3",
		 .level = CHANGE_SUSPECT,
		 .regression = 3,
		 .state = REGRESSION_TRANSIENT},
		{.night = "4",
		 .level = CHANGE_CONFIRMED,
		 .regression = 4,
		 .state = REGRESSION_FIXED},
		{.night = "5",
		 .level = CHANGE_SUSPECT,
		 .regression = 5,
		 .state = REGRESSION_DISMISSED},
		{.night = "6", .level = CHANGE_SUSPECT},
	};
	const struct nights_series s = {.marks = marks, .n_marks = ARRAY_LEN(marks)};
	struct nights_series lasting = nights_lasting(&s);

	(void)state;
	assert_int_equal(lasting.n_marks, 3);
	assert_string_equal(lasting.marks[0].night, "2");
	assert_string_equal(lasting.marks[1].night, "4");
	assert_string_equal(lasting.marks[2].night, "6");
	free(lasting.marks);
}

/* An environment key that comes, goes or is not known for some nights. */
static void test_keys_that_come_and_go(void **state)
{
	static const char *const text[] = {"{\"a\":\"1\",\"b\":\"1\"}", "{\"b\":\"1\"}",
					   "{\"b\":\"2\",\"c\":\"1\"}"};
	struct db *db = store();
	struct nights_series s = {0};
	struct nights *n = NULL;
	struct err e = {0};
	int64_t id = sample_series(db, SERIES_CANARY, "w", SERIES_CURRENT, "m", "", BETTER_NONE);

	(void)state;
	for (int i = 0; i < 6; i++) {
		int64_t env = 0;

		if (i % 2 == 0)
			assert_ok(history_environment_put(db, text[i / 2], &env, &e));
		sample_point(db, id, i, 1, 1, env);
	}
	assert_ok(nights_open(db, &n, &e));
	load(n, db, id, &s);
	assert_int_equal(s.n_events, 3);
	assert_string_equal(s.events[0].key, "a");
	assert_null(s.events[0].is);
	assert_string_equal(s.events[1].key, "b");
	assert_string_equal(s.events[2].key, "c");
	assert_null(s.events[2].was);
	nights_series_done(&s);
	nights_close(n);
	db_close(db);
}

/* The page of whatever is in the store; heap. */
static char *page(struct db *db)
{
	struct nights_series v[8] = {0};
	struct regression_view *r = NULL;
	struct nights *n = NULL;
	struct nights_glance *g = NULL;
	struct buf b = {0};
	struct err e = {0};
	size_t n_g = 0, n_r = 0;

	assert_ok(nights_open(db, &n, &e));
	assert_ok(nights_glances(n, NULL, true, &g, &n_g, &e));
	assert_true(n_g <= 8);
	for (size_t i = 0; i < n_g; i++)
		assert_ok(nights_load(n, &g[i].row, NULL, &v[i], &e));
	assert_ok(regressions_load(db, true, &r, &n_r, &e));
	nights_page(NIGHTS_HOSTILE, v, n_g, r, n_r, &b);
	for (size_t i = 0; i < n_g; i++)
		nights_series_done(&v[i]);
	regression_views_free(r, n_r);
	nights_glances_free(g, n_g);
	nights_close(n);
	return buf_take(&b);
}

/* Tags that open and close, as far as the page has them. */
static void assert_balanced(const char *text, const char *name)
{
	_cleanup_free_ char *open = xasprintf("<%s", name), *close = xasprintf("</%s>", name);
	int depth = 0, seen = 0;

	for (const char *p = text; (p = strchr(p, '<')); p++) {
		char after = str_starts(p, open) ? p[strlen(open)] : 'x';

		depth += after == '>' || after == ' ';
		seen += after == '>' || after == ' ';
		depth -= str_starts(p, close);
		assert_true(depth >= 0);
	}
	if (depth || !seen)
		fail_msg("<%s>: %d seen, %d not closed", name, seen, depth);
}

static void test_names_cannot_script_the_page(void **state)
{
	static const char *const elements[] = {"section", "article", "figure", "svg",
					       "table",   "tr",      "td",     "div",
					       "details", "a",       "text",   "main"};
	struct db *db = store();
	_cleanup_free_ char *text = NULL;

	(void)state;
	sample_put(db);
	text = page(db);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "<b>5d6"));
	assert_null(strchr(text, '\033'));
	assert_contains(text, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\x1b[31m");
	assert_contains(text, "&lt;b&gt;5d6e7f8");
	assert_contains(text, "1 suspected that fettle does not measure itself: more nights will");
	assert_null(strstr(text, "a re-run will tell"));
	for (size_t i = 0; i < ARRAY_LEN(elements); i++)
		assert_balanced(text, elements[i]);
	/* nothing is fetched: no address but those within the page */
	assert_null(strstr(text, "http://"));
	assert_null(strstr(text, "https://"));
	assert_null(strstr(text, "src="));
	db_close(db);
}

static void test_a_page_of_nothing_and_of_little(void **state)
{
	struct db *db = store();
	_cleanup_free_ char *nothing = page(db), *little = NULL;
	int64_t id;

	(void)state;
	assert_contains(nothing, "0 series");
	assert_contains(nothing, "None that is confirmed is open.");
	id = sample_series(db, SERIES_IMPORTED, "w", SERIES_CURRENT, "m", "s", BETTER_DOWN);
	sample_series(db, SERIES_IMPORTED, "w", SERIES_CURRENT, "no night", "s", BETTER_DOWN);
	sample_point(db, id, 0, 0, 0, 0); /* one night, and a zero */
	little = page(db);
	assert_contains(little, "No night yet.");
	assert_contains(little, "1 night from 2026-10-01");
	assert_null(strstr(little, "nan"));
	assert_null(strstr(little, "inf"));
	db_close(db);
}

static void test_regressions(void **state)
{
	struct db *db = store();
	struct regression_view *v = NULL, one = {0};
	struct err e = {0};
	size_t n = 0;

	(void)state;
	sample_put(db);
	assert_ok(regressions_load(db, false, &v, &n, &e));
	assert_int_equal(n, 2); /* one is closed */
	assert_int_equal(regressions_status(v, n), 1);
	assert_int_equal(regressions_status(v, 1), 0); /* a suspect pages nobody */
	regression_views_free(v, n);
	assert_ok(regression_load(db, 1, &one, &e));
	/* the objective speaks, although another metric moved more */
	assert_int_equal(one.n_moved, 3);
	assert_int_equal(one.moved[0].series.id, 1);
	assert_int_equal(one.moved[1].series.role, SERIES_PAIR);
	assert_string_equal(one.moved[2].series.metric, "busbw_gb_per_s");
	assert_int_equal(one.nodes.n, 3);
	assert_string_equal(one.nodes.v[2], "n3");
	regression_view_done(&one);
	assert_int_equal(regression_load(db, 9, &one, &e), -ERR_NOT_FOUND);
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ticks_of_time),
		cmocka_unit_test(test_glances),
		cmocka_unit_test(test_changes_and_events),
		cmocka_unit_test(test_what_came_to_nothing_is_left_out),
		cmocka_unit_test(test_keys_that_come_and_go),
		cmocka_unit_test(test_names_cannot_script_the_page),
		cmocka_unit_test(test_a_page_of_nothing_and_of_little),
		cmocka_unit_test(test_regressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
