/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of nights: what is put comes back, what contradicts it is refused. */
#include "tests/unit/store.h"

#include "experiments/history.h"

static struct series_row key(const char *metric)
{
	return (struct series_row){.source = SERIES_IMPORTED,
				   .workload = TEXT("gpt"),
				   .role = SERIES_CURRENT,
				   .metric = TEXT(metric),
				   .stat = TEXT("mean"),
				   .unit = TEXT("ms"),
				   .better = BETTER_DOWN,
				   .min_effect = 0.02};
}

static int64_t put_series(struct db *db, const char *metric)
{
	struct series_row s = key(metric);
	struct err e = {0};

	assert_ok(history_series_put(db, &s, 7, &e));
	assert_true(s.id > 0);
	return s.id;
}

static struct db *open_memory(void)
{
	struct db *db = NULL;
	struct err e = {0};

	assert_ok(db_open(":memory:", DB_CREATE, NULL, &db, &e));
	return db;
}

static void nights_are_dates_of_the_calendar(void **state)
{
	static const char *const good[] = {"2026-11-29", "2024-02-29", "2000-02-29", "0001-01-01"};
	static const char *const bad[] = {"",           "2026-11-9",  "2026-02-29",
					  "1900-02-29", "2026-13-01", "2026-00-10",
					  "2026-04-31", "2026/11/29", "2026-11-290",
					  "0000-01-01", "2026-1a-10"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(history_night_valid(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(history_night_valid(bad[i]));
	assert_false(history_night_valid(NULL));
}

static void equal_environments_are_one(void **state)
{
	struct db *db = open_memory();
	_cleanup_free_ char *text = NULL;
	struct err e = {0};
	int64_t a = 0, b = 0, c = 0;

	(void)state;
	assert_ok(history_environment_put(db, "{\"kernel\":\"6.1\",\"cuda\":\"12\"}", &a, &e));
	assert_ok(history_environment_put(db, "{ \"cuda\": \"12\", \"kernel\": \"6.1\" }", &b, &e));
	assert_ok(history_environment_put(db, "{\"cuda\":\"13\",\"kernel\":\"6.1\"}", &c, &e));
	assert_int_equal(a, b);
	assert_int_not_equal(a, c);
	assert_ok(history_environment_get(db, a, &text, &e));
	assert_string_equal(text, "{\"cuda\":\"12\",\"kernel\":\"6.1\"}");
	assert_int_equal(history_environment_put(db, "{\"cpus\":8}", &a, &e), -ERR_PARSE);
	assert_contains(e.text, "\"cpus\" is no text");
	assert_int_equal(history_environment_put(db, "[]", &a, &e), -ERR_PARSE);
	assert_int_equal(history_environment_get(db, 99, &text, &e), -ERR_NOT_FOUND);
	db_close(db);
}

static void environments_of_nodes_by_stage(void **state)
{
	struct store st = store_new(":memory:");
	struct node_environment_row *v = NULL;
	int64_t a, b, stage;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(history_environment_newest(st.db, "demo", "fake", &stage, &e));
	assert_int_equal(stage, 0);
	store_run(&st, st.block, st.arm, 2);
	assert_ok(history_environment_put(st.db, "{\"kernel\":\"6.1\"}", &a, &e));
	assert_ok(history_environment_put(st.db, "{\"kernel\":\"5.10\"}", &b, &e));
	assert_ok(history_node_environment_put(st.db, 1, "n2", a, &e));
	assert_ok(history_node_environment_put(st.db, 1, "n1", a, &e));
	assert_ok(history_node_environment_put(st.db, 1, "n1", b, &e)); /* in its place */
	assert_ok(history_node_environments(st.db, st.stage, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].node, "n1");
	assert_string_equal(v[0].text, "{\"kernel\":\"5.10\"}");
	assert_int_equal(v[0].environment, b);
	assert_int_equal(v[1].environment, a);
	node_environment_rows_free(v, n);
	assert_ok(history_environment_newest(st.db, "demo", "fake", &stage, &e));
	assert_int_equal(stage, st.stage);
	assert_ok(history_environment_newest(st.db, "another", "fake", &stage, &e));
	assert_int_equal(stage, 0);
	assert_true(history_node_environment_put(st.db, 1, "", a, &e) < 0);
	db_close(st.db);
}

static void a_series_is_its_key(void **state)
{
	struct db *db = open_memory();
	struct series_row again = key("step_time_ms"), got, *v;
	struct err e = {0};
	int64_t id = put_series(db, "step_time_ms");
	size_t n;

	(void)state;
	put_series(db, "tokens_per_s");
	again.min_effect = 0.05;
	assert_ok(history_series_put(db, &again, 9, &e));
	assert_int_equal(again.id, id);
	assert_ok(history_series_get(db, id, &got, &e));
	assert_string_equal(got.workload, "gpt");
	assert_string_equal(got.place, "");
	assert_string_equal(got.unit, "ms");
	assert_int_equal(got.better, BETTER_DOWN);
	assert_int_equal(got.source, SERIES_IMPORTED);
	assert_true(got.min_effect == 0.05);
	assert_int_equal(got.created_us, 7);
	series_row_done(&got);
	assert_ok(history_series_list(db, 0, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(v[1].metric, "tokens_per_s");
	series_rows_free(v, n);
	assert_ok(history_series_list(db, 5, &v, &n, &e));
	assert_int_equal(n, 0);
	series_rows_free(v, n);
	assert_int_equal(history_series_get(db, 99, &got, &e), -ERR_NOT_FOUND);
	db_close(db);
}

static int64_t follow(struct db *db, const char *config, int64_t campaign, int64_t now_us)
{
	struct series_row s = key("step_time_ms");
	struct err e = {0};

	s.source = SERIES_CANARY;
	s.config = TEXT(config);
	s.campaign = campaign;
	assert_ok(history_series_put(db, &s, 1, &e));
	assert_ok(history_series_follow(db, s.id, now_us, &e));
	return s.id;
}

static int64_t ended(struct db *db, int64_t id)
{
	struct series_row s = {0};
	struct err e = {0};
	int64_t out;

	assert_ok(history_series_get(db, id, &s, &e));
	out = s.ended_us;
	series_row_done(&s);
	return out;
}

static void a_series_ends_when_its_canary_measures_another(void **state)
{
	struct db *db = open_memory();
	int64_t canary = store_campaign(db, "canary"), later = store_campaign(db, "canary");
	int64_t first = follow(db, "a", canary, 10),
		other = follow(db, "x", store_campaign(db, "o"), 11);
	int64_t second = follow(db, "b", later, 20);

	(void)state;
	assert_int_equal(ended(db, first), 20);
	assert_int_equal(ended(db, second), 0);
	assert_int_equal(ended(db, other), 0);
	follow(db, "b", later, 25);
	assert_int_equal(ended(db, first), 20);
	/* back to what it was */
	assert_int_equal(follow(db, "a", later, 30), first);
	assert_int_equal(ended(db, first), 0);
	assert_int_equal(ended(db, second), 30);
	db_close(db);
}

static void a_series_keeps_its_unit_and_direction(void **state)
{
	struct db *db = open_memory();
	struct series_row s = key("step_time_ms");
	struct err e = {0};

	(void)state;
	put_series(db, "step_time_ms");
	s.unit = TEXT("s");
	assert_int_equal(history_series_put(db, &s, 9, &e), -ERR_STATE);
	assert_contains(e.text, "is in unit \"ms\", not in \"s\"");
	s = key("step_time_ms");
	s.better = BETTER_UP;
	assert_int_equal(history_series_put(db, &s, 9, &e), -ERR_STATE);
	assert_contains(e.text, "better is \"down\", not \"up\"");
	assert_int_equal(s.id, 0);
	db_close(db);
}

static int put(struct db *db, int64_t series, const char *night, double a, double b, bool replace,
	       bool *again, struct err *e)
{
	struct replicate v[] = {{.value = a, .nodes = "n1"}, {.value = b}};

	return history_point_put(db, series, night, 1, v, 2, 0, 0, replace, again, e);
}

static void a_night_has_one_point(void **state)
{
	struct db *db = open_memory();
	int64_t id = put_series(db, "step_time_ms");
	struct replicate_row *r;
	struct point_row *v;
	struct err e = {0};
	bool again = true;
	size_t n;

	(void)state;
	assert_ok(put(db, id, "2026-11-29", 10, 14, false, &again, &e));
	assert_false(again);
	assert_ok(put(db, id, "2026-11-29", 14, 10, false, &again, &e));
	assert_true(again);
	assert_int_equal(put(db, id, "2026-11-29", 10, 15, false, &again, &e), -ERR_STATE);
	assert_contains(e.text, "night 2026-11-29 already: 12 (of 2), now 12.5 (of 2)");
	assert_ok(put(db, id, "2026-11-29", 10, 16, true, &again, &e));
	assert_false(again);
	assert_ok(put(db, id, "2026-11-01", 1, 1, false, NULL, &e));
	assert_ok(history_points(db, id, NULL, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].night, "2026-11-01");
	assert_true(v[0].sd == 0);
	assert_true(v[1].value == 13);
	assert_true(fabs(v[1].sd - sqrt(18)) < 1e-12);
	assert_int_equal(v[1].n, 2);
	assert_ok(history_replicates(db, v[1].id, &r, &n, &e));
	assert_int_equal(n, 2);
	assert_string_equal(r[0].nodes, "n1");
	assert_true(r[1].value == 16);
	replicate_rows_free(r, n);
	free(v);
	assert_ok(history_points(db, id, "2026-11-02", &v, &n, &e));
	assert_int_equal(n, 1);
	free(v);
	db_close(db);
}

static void what_is_no_number_is_no_point(void **state)
{
	static const double bad[] = {NAN, INFINITY, -INFINITY, 1e200};
	struct db *db = open_memory();
	int64_t id = put_series(db, "step_time_ms");
	struct replicate one = {.value = -3};
	struct point_row *v;
	struct err e = {0};
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(put(db, id, "2026-11-29", 1, bad[i], false, NULL, &e), -ERR_PARSE);
	assert_contains(e.text, "night 2026-11-29: 1e+200 is no number");
	assert_int_equal(put(db, id, "2026-11-31", 1, 1, false, NULL, &e), -ERR_PARSE);
	assert_contains(e.text, "\"2026-11-31\" is no night");
	assert_int_equal(history_point_put(db, id, "2026-11-29", 1, NULL, 0, 0, 0, false, NULL, &e),
			 -ERR_PARSE);
	assert_ok(put(db, id, "2026-11-28", 0, 0, false, NULL, &e)); /* zero is a number */
	assert_ok(history_point_put(db, id, "2026-11-29", 1, &one, 1, 0, 0, false, NULL, &e));
	assert_ok(history_points(db, id, NULL, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_true(v[0].value == 0);
	assert_true(isnan(v[1].sd));
	free(v);
	db_close(db);
}

static void observe(struct db *db, int64_t series, const char *path, const char *night,
		    double value)
{
	struct observation_row o = {
		.series = series, .path = TEXT(path), .size = 3, .value = value};
	struct err e = {0};

	str_copy(o.night, sizeof o.night, night);
	str_copy(o.hash, sizeof o.hash, path + 1);
	o.state = isnan(value) ? OBSERVATION_WITHOUT : OBSERVATION_COUNTED;
	assert_ok(history_observation_put(db, &o, 1, &e));
}

static void a_night_is_what_its_logs_say(void **state)
{
	struct db *db = open_memory();
	int64_t id = put_series(db, "step_time_ms");
	struct observation_row o = {0};
	struct point_row *v;
	struct err e = {0};
	bool found = false;
	size_t n;

	(void)state;
	observe(db, id, "/a", "2026-11-28", 10);
	observe(db, id, "/b", "2026-11-28", 12);
	observe(db, id, "/c", "2026-11-29", NAN);
	assert_ok(history_points(db, id, NULL, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_true(v[0].value == 11 && v[0].n == 2);
	free(v);
	observe(db, id, "/b", "2026-11-29", 13); /* it was written again the night after */
	observe(db, id, "/a", "2026-11-28", NAN);
	assert_ok(history_points(db, id, NULL, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].night, "2026-11-29");
	assert_true(v[0].value == 13);
	free(v);
	assert_ok(history_observation_same(db, id, "/d", "b", &o, &found, &e));
	assert_true(found);
	assert_string_equal(o.path, "/b");
	observation_row_done(&o);
	assert_ok(history_observation_same(db, id, "/b", "b", &o, &found, &e));
	assert_false(found);
	assert_ok(history_observation_get(db, id, "/c", &o, &found, &e));
	assert_true(found && isnan(o.value));
	assert_int_equal(o.state, OBSERVATION_WITHOUT);
	observation_row_done(&o);
	db_close(db);
}

static void canary_stages_are_told_apart(void **state)
{
	struct store st = store_new(":memory:");
	struct canary_row c = {.stage = st.stage, .night = "2026-11-29", .purpose = CANARY_RERUN},
			  got = {0}, *v;
	struct regression_row r = {.night = "2026-11-28", .found_night = "2026-11-29"};
	struct err e = {0};
	bool found = true;
	size_t n;

	(void)state;
	assert_ok(history_regression_add(st.db, &r, &c.regression, &e));
	assert_ok(history_canary_get(st.db, st.stage, &got, &found, &e));
	assert_false(found);
	assert_ok(history_canary_put(st.db, &c, &e));
	assert_int_equal(history_canary_put(st.db, &c, &e), -ERR_STATE);
	assert_contains(e.text, "for night 2026-11-29 (rerun)");
	assert_ok(history_canary_get(st.db, st.stage, &got, &found, &e));
	assert_true(found && got.open);
	assert_int_equal(got.campaign, st.campaign);
	assert_int_equal(got.purpose, CANARY_RERUN);
	assert_int_equal(got.regression, c.regression);
	assert_ok(history_canaries(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 1);
	free(v);
	assert_ok(history_canaries(st.db, 0, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].night, "2026-11-29");
	free(v);
	assert_ok(history_canaries(st.db, st.campaign + 1, &v, &n, &e));
	assert_int_equal(n, 0);
	free(v);
	db_close(st.db);
}

static void a_regression_is_followed_to_its_end(void **state)
{
	struct db *db = open_memory();
	struct regression_row r = {.kind = REGRESSION_WORSE,
				   .night = "2026-11-28",
				   .found_night = "2026-11-29",
				   .found_us = 5};
	struct regression_row got, *v;
	struct err e = {0};
	size_t n;

	(void)state;
	assert_ok(history_regression_add(db, &r, &r.id, &e));
	assert_ok(history_regressions(db, false, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].confirmed_night, "");
	regression_rows_free(v, n);
	r.level = CHANGE_CONFIRMED;
	r.state = REGRESSION_ACCEPTED;
	memcpy(r.confirmed_night, "2026-11-30", 11);
	r.who = TEXT("ada");
	r.note = TEXT("new driver");
	assert_ok(history_regression_update(db, &r, &e));
	assert_ok(history_regressions(db, false, &v, &n, &e));
	assert_int_equal(n, 0);
	regression_rows_free(v, n);
	assert_ok(history_regressions(db, true, &v, &n, &e));
	assert_int_equal(n, 1);
	regression_rows_free(v, n);
	assert_ok(history_regression_get(db, r.id, &got, &e));
	assert_int_equal(got.state, REGRESSION_ACCEPTED);
	assert_int_equal(got.level, CHANGE_CONFIRMED);
	assert_string_equal(got.confirmed_night, "2026-11-30");
	assert_string_equal(got.note, "new driver");
	regression_row_done(&got);
	r.id = 99;
	assert_int_equal(history_regression_update(db, &r, &e), -ERR_NOT_FOUND);
	assert_int_equal(history_regression_get(db, 99, &got, &e), -ERR_NOT_FOUND);
	db_close(db);
}

static size_t count_changes(struct db *db, int64_t regression, int64_t series)
{
	struct change_row *v;
	struct err e = {0};
	size_t n;

	assert_ok(history_changes(db, regression, series, &v, &n, &e));
	change_rows_free(v, n);
	return n;
}

static void changes_are_found_by_regression_and_series(void **state)
{
	struct db *db = open_memory();
	int64_t a = put_series(db, "step_time_ms"), b = put_series(db, "tokens_per_s"), id;
	struct regression_row r = {.night = "2026-11-28", .found_night = "2026-11-29"};
	struct change_row c = {.night = "2026-11-28",
			       .first_night = "2026-11-27",
			       .last_night = "2026-11-28",
			       .est = -0.05,
			       .lo = NAN,
			       .hi = NAN,
			       .p = 0.001,
			       .series = a},
			  *v;
	struct err e = {0};
	size_t n;

	(void)state;
	assert_ok(history_regression_add(db, &r, &c.regression, &e));
	assert_ok(history_change_add(db, &c, &c.id, &e));
	c.series = b;
	assert_ok(history_change_add(db, &c, &id, &e));
	assert_int_equal(count_changes(db, 0, 0), 2);
	assert_int_equal(count_changes(db, c.regression, 0), 2);
	assert_int_equal(count_changes(db, 0, a), 1);
	assert_int_equal(count_changes(db, c.regression, b), 1);
	assert_int_equal(count_changes(db, c.regression + 1, b), 0);
	c.series = a;
	c.level = CHANGE_CONFIRMED;
	c.lo = -0.06;
	c.why = TEXT("3 of 3 blocks");
	assert_ok(history_change_update(db, &c, &e));
	assert_ok(history_changes(db, 0, a, &v, &n, &e));
	assert_int_equal(v[0].level, CHANGE_CONFIRMED);
	assert_true(v[0].lo == -0.06 && isnan(v[0].hi));
	assert_string_equal(v[0].first_night, "2026-11-27");
	assert_string_equal(v[0].why, "3 of 3 blocks");
	change_rows_free(v, n);
	c.id = 99;
	assert_int_equal(history_change_update(db, &c, &e), -ERR_NOT_FOUND);
	db_close(db);
}

static void causes_are_replaced_as_a_whole(void **state)
{
	struct db *db = open_memory();
	struct regression_row r = {.night = "2026-11-28", .found_night = "2026-11-29"};
	struct cause_row v[] = {{.rank = 1,
				 .key = TEXT("kernel"),
				 .was = TEXT("5"),
				 .is = TEXT("6"),
				 .score = 2,
				 .why = TEXT("in 8 of 8 series")},
				{.rank = 2, .kind = CAUSE_NODE, .key = TEXT("n7"), .score = 1}};
	struct cause_row *got;
	struct err e = {0};
	size_t n;

	(void)state;
	assert_ok(history_regression_add(db, &r, &r.id, &e));
	assert_ok(history_causes_put(db, r.id, v, 2, &e));
	v[0].proved = true;
	assert_ok(history_causes_put(db, r.id, v, 1, &e));
	assert_ok(history_causes(db, r.id, &got, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(got[0].is, "6");
	assert_true(got[0].proved);
	cause_rows_free(got, n);
	v[1].rank = 1; /* the same rank twice: none of both is kept in place of what was there */
	assert_int_equal(history_causes_put(db, r.id, v, 2, &e), -ERR_STATE);
	assert_ok(history_causes(db, r.id, &got, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(got[0].key, "kernel");
	cause_rows_free(got, n);
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nights_are_dates_of_the_calendar),
		cmocka_unit_test(equal_environments_are_one),
		cmocka_unit_test(environments_of_nodes_by_stage),
		cmocka_unit_test(a_series_is_its_key),
		cmocka_unit_test(a_series_ends_when_its_canary_measures_another),
		cmocka_unit_test(a_series_keeps_its_unit_and_direction),
		cmocka_unit_test(a_night_has_one_point),
		cmocka_unit_test(what_is_no_number_is_no_point),
		cmocka_unit_test(a_night_is_what_its_logs_say),
		cmocka_unit_test(canary_stages_are_told_apart),
		cmocka_unit_test(a_regression_is_followed_to_its_end),
		cmocka_unit_test(changes_are_found_by_regression_and_series),
		cmocka_unit_test(causes_are_replaced_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
