/* SPDX-License-Identifier: GPL-2.0-or-later */
/* History from outside: what each format gives, what is refused and how, what a second import does.
 */
#include "tests/unit/store.h"

#include <glob.h>
#include <time.h>

#include "orchestrator/cmd/import.h"

static struct import_rules plain_rules(void)
{
	/* 2026-11-30 */
	return (struct import_rules){.until_us = INT64_C(1795996800) * 1000000};
}

static int samples(const char *file, const char *text, const struct import_rules *r,
		   struct import_table *t, struct import_samples *s, struct err *e)
{
	int rc = import_text(file, text, strlen(text), r, t, e);

	*s = (struct import_samples){0};
	if (rc == 0)
		rc = import_samples(t, r, s, e);
	return rc;
}

/* Through all of it, in a transaction of its own. */
static int put(struct db *db, const char *text, const struct import_rules *r, bool replace,
	       struct import_result *out, struct err *e)
{
	struct import_options o = {.replace = replace, .min_effect = 0.02, .now_us = 1};
	struct import_table t;
	struct import_samples s;
	int rc;

	assert_int_equal(db_begin(db, "test", e), 0);
	*out = (struct import_result){0};
	rc = samples("dir/w.csv", text, r, &t, &s, e);
	if (rc == 0)
		rc = import_store(db, &t, &s, &o, out, e);
	if (rc == 0)
		assert_int_equal(db_commit(db, e), 0);
	else
		db_rollback(db);
	import_samples_done(&s);
	import_table_done(&t);
	return rc;
}

static struct db *open_memory(void)
{
	struct db *db = NULL;
	struct err e = {0};

	assert_ok(db_open(":memory:", DB_CREATE, NULL, &db, &e));
	return db;
}

static void assert_put(struct db *db, const char *text, const struct import_rules *r)
{
	struct import_result out;
	struct err e = {0};

	assert_ok(put(db, text, r, false, &out, &e));
	import_result_done(&out);
}

/* The text is refused with this in its sentence, and nothing of it is stored. */
static void assert_refused(struct db *db, const char *text, const struct import_rules *r,
			   const char *why)
{
	struct import_result out;
	struct err e = {0};

	if (put(db, text, r, false, &out, &e) == 0)
		fail_msg("taken: %s", text);
	assert_contains(e.text, why);
	assert_int_equal(store_count(db, "SELECT (SELECT count(*) FROM series) + (SELECT count(*) "
					 "FROM point) + (SELECT count(*) FROM environment)"),
			 0);
}

/* -- times ----------------------------------------------------------------------------------- */

static void times_and_their_nights(void **state)
{
	static const struct {
		const char *text, *night;
		int64_t s;
		bool timed;
	} t[] = {
		{"2026-11-28", "2026-11-28", 1795867200, false},
		{"2026/11/28", "2026-11-28", 1795867200, false},
		{"20261128", "2026-11-28", 1795867200, false},
		{"2026-11-28 03:00", "2026-11-27", 1795834800, true},
		{"2026.11.28 3:00:00 +0100", "2026-11-27", 1795831200, true},
		{"2026-11-28T11:59:59Z", "2026-11-27", 1795867199, true},
		{"2026-11-28T12:00:00Z", "2026-11-28", 1795867200, true},
		{"2026-11-28T23:30:00-05:00", "2026-11-28", 1795926600, true},
		{"1795834800", "2026-11-27", 1795834800, true},
		{"1795834800.5", "2026-11-27", 1795834800, true},
		{"1795834800000", "2026-11-27", 1795834800, true},
		{"1795834800000000000", "2026-11-27", 1795834800, true},
	};
	static const char *const bad[] = {"",           "11/28/26",         "28.11.2026",
					  "2026-02-30", "yesterday",        "12345",
					  "2026-11",    "2026-11-28 25:00", "2026-11-28x",
					  "20261328"};
	struct import_when w = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		if (!import_when_read(t[i].text, &w))
			fail_msg("no time: %s", t[i].text);
		if (w.us / 1000000 != t[i].s || strcmp(w.night, t[i].night) != 0)
			fail_msg("%s: %lld, night %s", t[i].text, (long long)w.us, w.night);
		assert_int_equal(w.timed, t[i].timed);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (import_when_read(bad[i], &w))
			fail_msg("a time: %s", bad[i]);
}

/* Clocks of Berlin change on 2026-03-29 at 2:00 and on 2026-10-25 at 3:00. */
static void a_zone_has_its_own_nights(void **state)
{
	struct import_when w = {0};

	(void)state;
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	assert_true(import_when_read("2026-07-01 12:00", &w));
	assert_int_equal(w.us / 1000000, 1782900000); /* 10:00 UTC */
	assert_string_equal(w.night, "2026-07-01");
	assert_true(import_when_read("2026-07-01T09:59:59Z", &w));
	assert_string_equal(w.night, "2026-06-30");
	assert_true(import_when_read("2026-03-29T09:59:00Z", &w));
	assert_string_equal(w.night, "2026-03-28");
	assert_true(import_when_read("2026-03-29T10:00:00Z", &w));
	assert_string_equal(w.night, "2026-03-29");
	assert_true(import_when_read("2026-10-25T10:59:00Z", &w));
	assert_string_equal(w.night, "2026-10-24");
	assert_true(import_when_read("2026-10-25T11:00:00Z", &w));
	assert_string_equal(w.night, "2026-10-25");
	setenv("TZ", "UTC", 1);
	tzset();
}

/* -- formats --------------------------------------------------------------------------------- */

static void a_table_of_columns(void **state)
{
	struct import_rules r = plain_rules();
	struct import_table t;
	struct import_samples s;
	struct err e = {0};
	_cleanup_free_ char *env = NULL;

	(void)state;
	assert_ok(samples("runs/gpt.csv",
			  "# made by hand\n\nTime;commit;step_time_ms;\"a; b\";node\n"
			  "2026-11-02;abc;10.5;1;n1\n2026-11-01;\"d\"\"e\";11;;n2\n",
			  &r, &t, &s, &e));
	assert_int_equal(t.n_rows, 2);
	assert_int_equal(s.n, 3);
	assert_string_equal(s.v[0].metric, "step_time_ms");
	assert_string_equal(s.v[0].workload, "gpt");
	assert_string_equal(s.v[0].unit, "ms");
	assert_int_equal(s.v[0].better, BETTER_DOWN);
	assert_string_equal(s.v[0].nodes, "n1");
	assert_int_equal(s.v[0].line, 4);
	assert_string_equal(s.v[1].metric, "a; b");
	assert_false(s.v[1].directed);
	assert_true(s.v[2].value == 11);
	env = import_environment(&t, &s, s.v[2].row);
	assert_string_equal(env, "{\"commit\":\"d\\\"e\"}");
	import_samples_done(&s);
	import_table_done(&t);
}

static void numbers_that_measure_nothing(void **state)
{
	struct import_rules r = plain_rules();
	struct import_table t;
	struct import_samples s;
	struct err e = {0};
	_cleanup_free_ char *env = NULL;

	(void)state;
	assert_ok(samples("w.csv", "time,a,cuda,run_id,seed\n2026-11-02,1,12,77,3\n", &r, &t, &s,
			  &e));
	assert_int_equal(s.n, 1);
	assert_string_equal(s.v[0].metric, "a");
	env = import_environment(&t, &s, 0);
	assert_string_equal(env, "{\"cuda\":\"12\"}");
	import_samples_done(&s);
	import_table_done(&t);
}

static void objects_a_line(void **state)
{
	struct import_rules r = plain_rules();
	struct import_table t;
	struct import_samples s;
	struct err e = {0};
	_cleanup_free_ char *env = NULL;

	(void)state;
	assert_ok(samples("x.jsonl",
			  "{\"time\":1795834800,\"workload\":\"gpt\",\"metrics\":{\"tokens\":5,"
			  "\"loss\":NaN},\"environment\":{\"cuda\":\"12\"},\"a\":{\"b\":\"c\"}}\n"
			  "{\"time\":\"2026-11-29\",\"workload\":\"gpt\",\"tokens\":6,\"loss\":1,"
			  "\"said\":\"NaN, \\\"Infinity\\\"\",\"none\":null,\"list\":[1]}\n",
			  &r, &t, &s, &e));
	assert_int_equal(s.n, 3);
	assert_int_equal(s.missing, 1);
	assert_int_equal(s.missing_line, 1);
	assert_string_equal(s.v[0].metric, "tokens");
	assert_string_equal(s.v[0].night, "2026-11-27");
	env = import_environment(&t, &s, 0);
	assert_string_equal(env, "{\"cuda\":\"12\",\"a.b\":\"c\"}");
	import_samples_done(&s);
	import_table_done(&t);
}

static void text_of_openmetrics(void **state)
{
	struct import_rules r = plain_rules();
	struct import_table t;
	struct import_samples s;
	struct err e = {0};

	(void)state;
	assert_ok(samples("x.prom",
			  "# HELP busbw Bus bandwidth.\n# TYPE busbw gauge\n# UNIT busbw GB/s\n"
			  "busbw{gpu=\"1\",workload=\"ar\",a=\"x\\\"y\"} 1.5 1795834800 # {} 1\n"
			  "{__name__=\"up\", job=\"j\"} 1 1795834800000\n"
			  "{\"my.name\",place=\"p1\",} NaN 1795834800\n"
			  "# TYPE hits counter\nhits_total 5 1795834800\n# EOF\n",
			  &r, &t, &s, &e));
	assert_int_equal(s.n, 2);
	assert_int_equal(s.missing, 1);
	assert_int_equal(t.not_levels, 1);
	assert_string_equal(s.v[0].metric, "busbw{a=\"x\"y\",gpu=\"1\"}");
	assert_string_equal(s.v[0].workload, "ar");
	assert_string_equal(s.v[0].unit, "GB/s");
	assert_string_equal(s.v[1].metric, "up{job=\"j\"}");
	assert_int_equal(s.v[1].at_us, INT64_C(1795834800000000));
	import_samples_done(&s);
	import_table_done(&t);
}

static void a_row_a_value(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	_cleanup_free_ char *got = NULL;

	(void)state;
	assert_put(db,
		   "night,workload,place,metric,unit,better,value\n"
		   "2026-11-01,gpt,p1,speed,tokens/s,up,5\n"
		   "2026-11-01,gpt,p1,wait,s,down,6\n"
		   "2026-11-02,gpt,p1,speed,tokens/s,up,7\n",
		   &r);
	got = store_text(db, "SELECT group_concat(metric || ' ' || unit || ' ' || better || ' ' || "
			     "place || ' ' || night || ' ' || value, '; ') FROM (SELECT * FROM "
			     "v_series ORDER BY metric, night)");
	assert_string_equal(got, "speed tokens/s up p1 2026-11-01 5.0; speed tokens/s up p1 "
				 "2026-11-02 7.0; wait s down p1 2026-11-01 6.0");
	db_close(db);
}

/* -- what is said of fields ------------------------------------------------------------------ */

static void a_metric_is_named_with_its_direction(void **state)
{
	struct import_metric m;
	struct err e = {0};

	(void)state;
	assert_ok(import_metric_parse("job:rate:up:tokens/s", &m, &e));
	assert_string_equal(m.name, "job:rate");
	assert_string_equal(m.unit, "tokens/s");
	assert_int_equal(m.better, BETTER_UP);
	free(m.name);
	free(m.unit);
	assert_ok(import_metric_parse("a:downtime", &m, &e));
	assert_string_equal(m.name, "a:downtime");
	assert_false(m.directed);
	free(m.name);
	assert_int_equal(import_metric_parse(":up", &m, &e), -ERR_USAGE);
}

static void options_choose_fields_and_rows(void **state)
{
	static struct import_metric m = {
		.name = TEXT("b"), .better = BETTER_DOWN, .directed = true};
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	_cleanup_free_ char *got = NULL;

	(void)state;
	r.time = "when";
	r.metrics = &m;
	r.n_metrics = 1;
	r.workload = "w2";
	strv_add(&r.env, "cuda");
	kvs_set(&r.only, "branch", "main");
	kvs_set(&r.as, "b", "old_b");
	assert_put(db,
		   "when,a,b,cuda,commit,branch\n2026-11-01,1,2,12,x,main\n"
		   "2026-11-02,1,3,13,y,dev\n2026-11-03,1,4,13,z,main\n",
		   &r);
	got = store_text(db,
			 "SELECT group_concat(workload || ' ' || metric || ' ' || better || ' ' "
			 "|| night || ' ' || value || ' ' || text, '; ') FROM v_series v JOIN "
			 "environment e ON e.id = v.environment");
	assert_string_equal(got, "w2 old_b down 2026-11-01 2.0 {\"cuda\":\"12\"}; "
				 "w2 old_b down 2026-11-03 4.0 {\"cuda\":\"13\"}");
	strv_free(&r.env);
	kvs_free(&r.only);
	kvs_free(&r.as);
	db_close(db);
}

static void wrong_names_are_told_with_the_nearest(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();

	(void)state;
	r.time = "tme";
	assert_refused(db, "time,a\n2026-11-01,1\n", &r,
		       "no field \"tme\" (--time); did you mean \"time\"?; there are: time, a");
	r.time = NULL;
	strv_add(&r.env, "cud");
	assert_refused(db, "time,a,cuda\n2026-11-01,1,x\n", &r, "did you mean \"cuda\"?");
	strv_free(&r.env);
	db_close(db);
}

/* -- bad input ------------------------------------------------------------------------------- */

static void what_is_wrong_is_told_with_line_and_field(void **state)
{
	static const char *const t[][2] = {
		{"", "no row in it"},
		{"time,a\n", "no row in it"},
		{"x,a\n1,2\n", "no field of times: expected one called time"},
		{"time,a,a\n", "line 1: two columns are called \"a\""},
		{"time,,a\n", "line 1: column 2 of the header has no name"},
		{"time,a\n2026-11-01,1\n2026-11-02\n",
		 "line 3: 1 fields, where the header names 2"},
		{"time,a\n2026-11-01,\"1\n", "line 2: a quote is not closed"},
		{"time,a\nyesterday,1\n",
		 "line 2, time: \"yesterday\" is no time: expected a date"},
		{"time,a\n,1\n", "line 2, time: \"\" is no time"},
		{"time,a\n2026-11-01,1\n2026-11-02,2\n2026-11-03,3x\n",
		 "line 4, a: \"3x\" is no number: expected one like 10.43"},
		{"time;a\n2026-11-01;1\n2026-11-02;2\n2026-11-03;3,5\n", "\"3,5\" is no number"},
		{"time,a\n2027-11-01,1\n", "line 2, time: 2027-11-01 lies in the future"},
		{"time,a\n2026-11-01,x\n", "no field holds numbers"},
		{"time,a\n2026-11-01,nan\n2026-11-01,1e999\n", "no field holds numbers"},
		{"time,step_time_ms\n2026-11-01,-1\n",
		 "line 2, step_time_ms: -1 is out of range: expected 0 to 1e+09 ms"},
		{"time,branch,a\n2026-11-01,main,1\n2026-11-02,dev,2\n",
		 "several branches (\"main\", \"dev\")"},
		{"#[Histogram log format version 1.0]\n#Tag,a\n", "no history of nights"},
		{"{\"time\":1\n", "line 1"},
		{"[{\"time\":1}]\n", "expected an object a line"},
		{"{\"time\":1795834800,\"a\":1}\n[]\n", "line 2: expected an object a line"},
		{"{\"time\":1795834800,\"a\":1}\n{\"time\":1795834800,\"\":1}\n",
		 "line 2: a member has an empty name"},
		{"a{b=\"c\"} 1\n", "line 1: no time behind the value"},
		{"# TYPE a gauge\na{b=} 1 1795834800\n", "line 2: no sample"},
		{"# TYPE a gauge\n# EOF\na 1 1795834800\n", "line 3: text behind # EOF"},
		{"time,metric,value\n2026-11-01,,1\n", "line 2: no metric is named"},
		{"time,metric,value,unit\n2026-11-01,a,1,s\n2026-11-02,a,1,ms\n",
		 "lines 2 and 3: a is in \"s\" and in \"ms\""},
		{"time,metric,value,better\n2026-11-01,a,1,more\n", "expected up, down or none"},
	};
	struct import_rules r = plain_rules();
	struct db *db = open_memory();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		assert_refused(db, t[i][0], &r, t[i][1]);
	db_close(db);
}

static void out_of_order_is_in_order(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	_cleanup_free_ char *got = NULL;

	(void)state;
	assert_put(db, "time,a\n2026-11-03,3\n2026-11-01,0\n2026-11-02,-2\n", &r);
	got = store_text(
		db, "SELECT group_concat(value) FROM (SELECT value FROM point ORDER BY night)");
	assert_string_equal(got, "0.0,-2.0,3.0");
	db_close(db);
}

static void a_night_has_replicates(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	struct import_result out;
	struct err e = {0};
	_cleanup_free_ char *got = NULL;

	(void)state;
	/* two runs of one value, the second of them told twice, and one more after noon */
	assert_ok(put(db,
		      "time,node,a\n2026-11-01T20:00Z,n1,4\n2026-11-02T02:00Z,n2,4\n"
		      "2026-11-02T02:00Z,n2,4\n2026-11-02T12:00Z,n3,6\n",
		      &r, false, &out, &e));
	assert_int_equal(out.duplicates, 1);
	assert_int_equal(out.v[0].nights, 2);
	import_result_done(&out);
	got = store_text(db,
			 "SELECT group_concat(p.night || ' ' || r.value || ' ' || r.nodes, '; ') "
			 "FROM point p JOIN replicate r ON r.point = p.id");
	assert_string_equal(got, "2026-11-01 4.0 n1; 2026-11-01 4.0 n2; 2026-11-02 6.0 n3");
	db_close(db);
}

static void dates_alone_do_not_name_a_run(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	struct import_result out;
	struct err e = {0};

	(void)state;
	assert_ok(
		put(db, "date,a\n2026-11-01,4\n2026-11-01,5\n2026-11-01,4\n", &r, false, &out, &e));
	assert_int_equal(out.duplicates, 1);
	import_result_done(&out);
	assert_int_equal(store_count(db, "SELECT count(*) FROM replicate"), 2);
	db_close(db);
}

static void a_contradiction_within_a_file(void **state)
{
	static const char text[] = "time,a\n2026-11-01T20:00Z,4\n2026-11-01T20:00Z,5\n";
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	struct import_result out;
	struct err e = {0};

	(void)state;
	assert_refused(db, text, &r,
		       "dir/w.csv, lines 2 and 3, a: one time of night 2026-11-01 with two "
		       "values, 4 and 5");
	assert_ok(put(db, text, &r, true, &out, &e));
	import_result_done(&out);
	assert_int_equal(store_count(db, "SELECT value FROM point"), 5);
	db_close(db);
}

static void a_file_that_grew_is_imported_again(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	struct import_result out;
	struct err e = {0};

	(void)state;
	assert_put(db, "time,a\n2026-11-01T20:00Z,4\n2026-11-02T20:00Z,6\n", &r);
	assert_ok(put(db,
		      "time,a\n2026-11-01T20:00Z,4\n2026-11-02T20:00Z,6\n2026-11-02T21:00Z,8\n"
		      "2026-11-03T20:00Z,9\n",
		      &r, false, &out, &e));
	assert_int_equal(out.n, 1);
	assert_false(out.v[0].is_new);
	assert_int_equal(out.v[0].same, 1);
	assert_int_equal(out.v[0].more, 1);
	assert_int_equal(out.v[0].added, 1);
	import_result_done(&out);
	assert_int_equal(store_count(db, "SELECT sum(value) FROM point"), 4 + 7 + 9);
	/* a part of what is there says nothing new */
	assert_ok(put(db, "time,a\n2026-11-02T21:00Z,8\n", &r, false, &out, &e));
	assert_int_equal(out.v[0].same, 1);
	import_result_done(&out);
	assert_int_equal(put(db, "time,a\n2026-11-04,1\n2026-11-03,10\n", &r, false, &out, &e),
			 -ERR_PARSE);
	assert_contains(e.text,
			"line 3, a: night 2026-11-03 is stored with 9 (of 1), here it is 10");
	assert_int_equal(store_count(db, "SELECT count(*) FROM point"),
			 3); /* nothing of the file */
	assert_ok(put(db, "time,a\n2026-11-03,10\n", &r, true, &out, &e));
	assert_int_equal(out.v[0].replaced, 1);
	import_result_done(&out);
	assert_int_equal(store_count(db, "SELECT max(value) FROM point"), 10);
	db_close(db);
}

static void a_series_keeps_what_was_said(void **state)
{
	static struct import_metric ms = {
		.name = TEXT("a"), .unit = TEXT("ms"), .better = BETTER_DOWN, .directed = true};
	struct import_rules said = plain_rules(), unsaid = plain_rules();
	struct db *db = open_memory();
	struct import_result out;
	struct err e = {0};

	(void)state;
	assert_put(db, "time,a\n2026-10-31,4\n", &unsaid);
	said.metrics = &ms;
	said.n_metrics = 1;
	assert_put(db, "time,a\n2026-11-01,4\n", &said); /* now it is known */
	assert_put(db, "time,a\n2026-11-02,4\n", &unsaid);
	assert_int_equal(store_count(db,
				     "SELECT count(*) FROM series WHERE unit = 'ms' AND better = "
				     "'down'"),
			 1);
	ms.unit = TEXT("s");
	assert_int_equal(put(db, "time,a\n2026-11-03,4\n", &said, true, &out, &e), -ERR_STATE);
	assert_contains(e.text,
			"dir/w.csv, line 2: series 1 (a of w) is in unit \"ms\", not in \"s\"");
	db_close(db);
}

static void a_renamed_metric_is_asked_about(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	struct import_result out;
	struct err e = {0};
	bool asked = false;

	(void)state;
	assert_put(db, "time,old\n2026-11-01,4\n", &r);
	assert_ok(put(db, "time,new\n2026-11-02,5\n", &r, false, &out, &e));
	for (size_t i = 0; i < out.notes.n; i++)
		asked = asked || strstr(out.notes.v[i], "--as 'new=old' goes on with it");
	assert_true(asked);
	import_result_done(&out);
	db_close(db);
}

/* Files of Otava's own tests: all but a log of one session are taken. */
static void files_of_others(void **state)
{
	struct import_rules r = plain_rules();
	struct db *db = open_memory();
	struct import_options o = {.min_effect = 0.02, .now_us = 1};
	size_t taken = 0, refused = 0;
	glob_t files;

	(void)state;
	kvs_set(&r.only, "branch", "main");
	if (glob("../shared/changepoints/raw/otava/*.csv", 0, NULL, &files) != 0) {
		files.gl_pathc = 0; /* the folder is not part of the repository */
		files.gl_pathv = NULL;
	}
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct import_table t = {0};
		struct import_samples s = {0};
		struct import_result out = {0};
		struct import_rules all = r;
		struct err e = {0};

		if (!strstr(files.gl_pathv[i], "branch"))
			all.only = (struct kvs){0};
		if (import_read(files.gl_pathv[i], &all, &t, &e) == 0 &&
		    import_samples(&t, &all, &s, &e) == 0 &&
		    import_store(db, &t, &s, &o, &out, &e) == 0)
			taken += out.n == 2;
		else
			refused += strstr(files.gl_pathv[i], "histostat") != NULL;
		import_result_done(&out);
		import_samples_done(&s);
		import_table_done(&t);
	}
	assert_int_equal(taken + refused, files.gl_pathc);
	if (files.gl_pathc)
		globfree(&files);
	kvs_free(&r.only);
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_and_their_nights),
		cmocka_unit_test(a_zone_has_its_own_nights),
		cmocka_unit_test(a_table_of_columns),
		cmocka_unit_test(numbers_that_measure_nothing),
		cmocka_unit_test(objects_a_line),
		cmocka_unit_test(text_of_openmetrics),
		cmocka_unit_test(a_row_a_value),
		cmocka_unit_test(a_metric_is_named_with_its_direction),
		cmocka_unit_test(options_choose_fields_and_rows),
		cmocka_unit_test(wrong_names_are_told_with_the_nearest),
		cmocka_unit_test(what_is_wrong_is_told_with_line_and_field),
		cmocka_unit_test(out_of_order_is_in_order),
		cmocka_unit_test(a_night_has_replicates),
		cmocka_unit_test(dates_alone_do_not_name_a_run),
		cmocka_unit_test(a_contradiction_within_a_file),
		cmocka_unit_test(a_file_that_grew_is_imported_again),
		cmocka_unit_test(a_series_keeps_what_was_said),
		cmocka_unit_test(a_renamed_metric_is_asked_about),
		cmocka_unit_test(files_of_others),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
