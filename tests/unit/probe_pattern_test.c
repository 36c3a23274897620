/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_pattern;

static struct findings match(const char *pattern, const char *metric, const char *text)
{
	struct probe_context c = {.file = "t", .pattern = pattern, .metric = metric};

	check_chunking(&probe_pattern, &c, text, strlen(text));
	return findings_of(&probe_pattern, &c, text, strlen(text), 0);
}

/* A script's own lines, as in lab-h200/train.log. */
static void test_lab_lines(void **state)
{
	struct probe_context c = {
		.pattern =
			"step +(?<step>\\d+) \\| loss (?<loss>\\S+) \\| step_time "
			"(?<step_time_ms>[\\d.]+) ms \\| data_wait (?<data_wait_ms>[\\d.]+) ms \\| "
			"samples/s (?<throughput_samples_per_s>[\\d.]+)"};
	struct findings f = findings_file(&probe_pattern, &c,
					  "tests/fixtures/probes/lab-train.log");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "loss"), 30);
	check_at(&f, "loss", 0, NULL, 9.1715);
	check_at(&f, "step_time_ms", 0, NULL, 2155.87);
	check_at(&f, "data_wait_ms", 29, NULL, 1.66);
	check_at(&f, "throughput_samples_per_s", 29, NULL, 411.5);
	assert_int_equal(found_at(&f, "loss", 0, NULL)->line, 1);
	findings_free(&f);
}

static void test_groups(void **state)
{
	struct findings f;

	(void)state;
	f = match("loss (?<value>\\S+)", "val_loss", "a\nloss 2.5, ok\nloss nan\nloss\n");
	check_status(&f, PROBE_OK);
	check_at(&f, "val_loss", -1, NULL, 2.5);
	assert_string_equal(found_nth(&f, "val_loss", 1)->text, "nan");
	assert_int_equal(f.n, 2);
	findings_free(&f);
	f = match("it (?<step>\\d+) r(?<rank>\\d+) l (?<loss>\\S+)(?: g (?<grad_norm>\\S+))?", NULL,
		  "it 1 r3 l 2\nit 2 r1 l [N/A] g 4e-1\n");
	check_at(&f, "loss", 1, NULL, 2);
	assert_int_equal(found_at(&f, "loss", 1, NULL)->rank, 3);
	check_missing(&f, "loss", 2, NULL, "N/A");
	check_at(&f, "grad_norm", 2, NULL, 0.4);
	assert_int_equal(f.n, 3);
	findings_free(&f);
}

/* "12: " may be srun's label or the script's own step. */
static void test_prefix(void **state)
{
	struct findings f;

	(void)state;
	f = match("^loss (?<loss>\\S+)", NULL, "3: loss 1\n");
	assert_int_equal(found_at(&f, "loss", -1, NULL)->rank, 3);
	findings_free(&f);
	f = match("^(?<step>\\d+): loss (?<loss>\\S+)", NULL, "12: loss 1\n");
	assert_int_equal(found_at(&f, "loss", 12, NULL)->rank, -1);
	findings_free(&f);
}

static void test_bad_text(void **state)
{
	struct findings f;

	(void)state;
	f = match("loss (?<loss>\\S+)", NULL, "loss 1,5\nloss x\nloss 2\n");
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(f.detail.data, "2 bad lines, the first is line 1"));
	findings_free(&f);
	f = match("loss (?<loss>\\d+)", NULL, "loss 1\nloss 2");
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(f.n, 1);
	findings_free(&f);
	f = match("loss (?<loss>\\d+) ms", NULL, "loss 1 ms");
	check_status(&f, PROBE_OK);
	findings_free(&f);
	f = match("loss (?<loss>\\d+)", NULL, "nothing\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void check_refused(const char *pattern, const char *metric, const char *want)
{
	struct probe_context c = {.pattern = pattern, .metric = metric};
	struct probe_sink none = {0};
	struct probe_run *r = NULL;
	struct err e = {0};

	assert_true(probe_pattern.open(&c, &none, &r, &e) < 0);
	assert_int_equal(e.code, ERR_RECIPE);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" lacks \"%s\"", e.text, want);
}

static void test_refused(void **state)
{
	(void)state;
	check_refused(NULL, "loss", "needs a pattern");
	check_refused("loss (?<loss>\\S+", NULL, "at byte 16");
	check_refused("loss (\\S+)", NULL, "no named group");
	check_refused("(?<step>\\d+)", NULL, "no named group");
	check_refused("(?<value>\\d+)", NULL, "<value>");
	check_refused("(?<Loss>\\d+)", NULL, "\"Loss\"");
	check_refused("(?<value>\\d+)", "a b", "\"a b\"");
}

/* A pattern that backtracks without end is stopped, and the text is still read to its end. */
static void test_runaway(void **state)
{
	struct buf b = {0};
	struct probe_context c = {.pattern = "(?<loss>(a+)+)$"};
	struct findings f;

	(void)state;
	for (int i = 0; i < 100; i++)
		buf_str(&b,
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n");
	f = findings_of(&probe_pattern, &c, b.data, b.len, 0);
	check_status(&f, PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "backtracks"));
	findings_free(&f);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lab_lines), cmocka_unit_test(test_groups),
		cmocka_unit_test(test_prefix),    cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_runaway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
