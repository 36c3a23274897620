/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of the tuning log against golden files: UPDATE_GOLDEN=1 writes them anew, to be read. */
#include "orchestrator/report/report.h"

#include "orchestrator/base/json.h"
#include "tests/unit/check.h"
#include "tests/unit/report_sample.h"

enum { GOLDEN_MAX = 1 << 20 };

static char *written(const char *format, const struct report *r)
{
	const struct report_format *f = report_format_find(format);
	struct buf b = {0};
	struct err e = {0};

	assert_non_null(f);
	assert_ok(f->write(r, &b, &e));
	return buf_take(&b);
}

static void against_golden(const char *path, const char *text)
{
	struct buf want = {0};
	struct err e = {0};

	if (getenv("UPDATE_GOLDEN"))
		assert_ok(fs_write_atomic(path, text, strlen(text), 0644, &e));
	assert_ok(fs_read(path, GOLDEN_MAX, &want, &e));
	assert_string_equal(text, want.data);
	buf_free(&want);
}

static void markdown_as_it_was(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *text = written("markdown", &r);

	(void)state;
	against_golden("tests/golden/report.md", text);
}

static void json_as_it_was(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *text = written("json", &r);

	(void)state;
	against_golden("tests/golden/report.json", text);
}

static void table_as_it_was(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *text = written("csv", &r);

	(void)state;
	against_golden("tests/golden/report.csv", text);
}

static void page_as_it_was(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *text = written("html", &r);

	(void)state;
	against_golden("tests/golden/report.html", text);
}

/* What a hostile log holds can neither act on a terminal nor become markup. */
static void hostile_text_is_tamed(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *md = written("markdown", &r), *json = written("json", &r);
	_cleanup_(json_freep) struct json *j = NULL;
	struct err e = {0};

	(void)state;
	assert_null(strchr(md, '\x1b'));
	assert_null(strchr(json, '\x1b'));
	assert_contains(md, "\\<b>anything\\</b>");
	assert_null(strstr(md, " <b>"));
	assert_contains(md, "help \\| at all");
	assert_contains(md, "\\x1b[31mred");
	assert_null(strchr(md, '\xff'));
	assert_contains(md, "\xef\xbf\xbd"); /* U+FFFD for the byte that was no UTF-8 */
	assert_ok(json_parse("report", json, strlen(json), &j, &e));
	assert_string_equal(json_text(json_path(j, "campaign.name"), ""), r.campaign.name);
}

/* Each record has as many fields as the head, and none that a spreadsheet would compute. */
static void hostile_text_is_tamed_in_the_table(void **state)
{
	static const struct {
		const char *name, *field;
	} cases[] = {
		{"=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""},
		{"+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\""},
		{"@SUM(A1)", "\"'@SUM(A1)\""},
		{"-2+3", "\"'-2+3\""},
		{"-2.5", "\"-2.5\""},
		{"\t=1\n,x", "\" =1 ,x\""},
		{"\x1b[31m\xff", "\"\\x1b[31m\xef\xbf\xbd\""},
		{"", "\"\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct report r = sample_report();
		_cleanup_free_ char *want = xasprintf("\n7,%s,\"aa\",", cases[i].field);
		_cleanup_free_ char *csv = NULL;

		r.campaign.name = (char *)(uintptr_t)cases[i].name;
		csv = written("csv", &r);
		assert_contains(csv, want);
	}
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what))
		n++;
	return n;
}

/* Whatever names and logs hold is text on the page. */
static void hostile_text_is_tamed_in_the_page(void **state)
{
	static char long_name[301];
	struct report r = sample_report();
	_cleanup_free_ char *page = NULL;

	(void)state;
	memset(long_name, 'x', 300);
	memcpy(long_name, "\"'><script>alert(1)</script>\x1b[31m", 34);
	r.campaign.name = long_name;
	page = written("html", &r);
	assert_null(strchr(page, '\x1b'));
	assert_null(strchr(page, '\xff'));
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "<b>"));
	assert_contains(page, "&lt;b&gt;anything&lt;/b&gt; help | at all");
	assert_contains(page, "&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m");
	assert_contains(page, "\xef\xbf\xbd");
	assert_int_equal(count(page, "<section"), count(page, "</section>"));
	assert_int_equal(count(page, "<table"), count(page, "</table>"));
	assert_int_equal(count(page, "<ul"), count(page, "</ul>"));
	assert_int_equal(count(page, "<h2>"), count(page, "<a href=\"#s"));
}

static void nothing_measured_yet(void **state)
{
	struct recipe recipe = {.name = "empty",
				.workload = {.name = "w", .workdir = "/"},
				.objective = "step_time_ms",
				.objective_stat = "mean",
				.better = BETTER_DOWN,
				.target = NAN,
				.min_effect = 0.01};
	struct report r = {.campaign = {.id = 1,
					.name = "empty",
					.recipe_path = "/e.lua",
					.recipe_hash = "",
					.scheduler = "local",
					.alpha = 0.05,
					.confirm_max = 1},
			   .recipe = &recipe,
			   .workspace = "/w",
			   .unit = "ms",
			   .base_mean = NAN,
			   .noise = NAN,
			   .smallest = NAN,
			   .aa_effect = NAN,
			   .aa_lo = NAN,
			   .aa_hi = NAN,
			   .final_mean = NAN,
			   .alpha = {.total = 0.05, .stages = 1}};
	_cleanup_free_ char *md = written("markdown", &r), *json = written("json", &r);
	_cleanup_free_ char *page = written("html", &r), *csv = written("csv", &r);
	_cleanup_(json_freep) struct json *j = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(count(csv, "\n"), 1); /* the head */
	assert_null(strstr(page, "<svg"));
	assert_null(strstr(page, "nan"));
	assert_contains(md, "- Mean: unknown ms");
	assert_contains(md, "less is better");
	assert_contains(md, "Not reached.");
	assert_null(strstr(md, "nan"));
	assert_ok(json_parse("report", json, strlen(json), &j, &e));
	assert_int_equal(json_type(json_path(j, "baseline.mean")), JSON_NULL);
	assert_int_equal(json_type(json_path(j, "campaign.ended_utc")), JSON_NULL);
	assert_int_equal(json_type(json_get(j, "fix")), JSON_NULL);
}

static void long_lists_end_and_say_so(void **state)
{
	struct report r = sample_report();
	struct event_row *many = xcalloc(250, sizeof *many);
	_cleanup_free_ char *md = NULL;

	(void)state;
	for (size_t i = 0; i < 250; i++)
		many[i] = sample_events[0];
	r.events = many;
	r.n_events = 250;
	md = written("markdown", &r);
	assert_contains(md, "150 more: see the JSON form.");
	free(many);
}

static void ranking_by_effect(void **state)
{
	struct report r = sample_report();
	size_t order[5];

	(void)state;
	assert_int_equal(report_ranking(&r, order), 2);
	assert_int_equal(order[0], 0);
	assert_int_equal(order[1], 3);
}

static void metrics_have_a_dimension(void **state)
{
	(void)state;
	assert_int_equal(report_dimension_of("throughput_tokens_per_s"), DIMENSION_THROUGHPUT);
	assert_int_equal(report_dimension_of("coll_busbw_gb_per_s"), DIMENSION_THROUGHPUT);
	assert_int_equal(report_dimension_of("step_time_ms"), DIMENSION_LATENCY);
	assert_int_equal(report_dimension_of("ckpt_time_s"), DIMENSION_LATENCY);
	assert_int_equal(report_dimension_of("mfu_pct"), DIMENSION_UTILISATION);
	assert_int_equal(report_dimension_of("tree_read_bytes_per_s"), DIMENSION_UTILISATION);
	assert_int_equal(report_dimension_of("val_loss"), DIMENSION_CORRECTNESS);
	assert_int_equal(report_dimension_of("my_own"), DIMENSION_UTILISATION);
	assert_int_equal(report_judge("loss", 0.1), -1);
	assert_int_equal(report_judge("throughput_steps_per_s", 0.1), 1);
	assert_int_equal(report_judge("tree_procs", 0.1), 0);
	assert_int_equal(report_judge("loss", NAN), 0);
	assert_string_equal(report_unit_of("loss"), "");
	assert_string_equal(report_unit_of("step_time_ms"), "ms");
}

static void unknown_format(void **state)
{
	(void)state;
	assert_null(report_format_find("rtf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markdown_as_it_was),
		cmocka_unit_test(json_as_it_was),
		cmocka_unit_test(table_as_it_was),
		cmocka_unit_test(page_as_it_was),
		cmocka_unit_test(hostile_text_is_tamed),
		cmocka_unit_test(hostile_text_is_tamed_in_the_table),
		cmocka_unit_test(hostile_text_is_tamed_in_the_page),
		cmocka_unit_test(nothing_measured_yet),
		cmocka_unit_test(long_lists_end_and_say_so),
		cmocka_unit_test(ranking_by_effect),
		cmocka_unit_test(metrics_have_a_dimension),
		cmocka_unit_test(unknown_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
