/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_metrics_jsonl;

static void test_values(void **state)
{
	struct findings f = findings_fixture(&probe_metrics_jsonl, "metrics.jsonl");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 12, NULL, 2.31);
	check_at(&f, "step_time_ms", 12, NULL, 83.1);
	check_at(&f, "data_wait_ms", 12, NULL, 0);
	check_at(&f, "throughput_samples_per_s", 12, NULL, 771.2);
	check_at(&f, "my_own_2", 13, NULL, -1e-5);
	assert_int_equal(found_at(&f, "loss", 12, NULL)->rank, 0);
	assert_int_equal(found_at(&f, "loss", 12, NULL)->t_us, 1795958504000000);
	assert_int_equal(found_at(&f, "my_own_2", 13, NULL)->rank, -1);
	assert_int_equal(found_at(&f, "my_own_2", 13, NULL)->line, 2);
	check_missing(&f, "loss", 13, NULL, "nan");
	check_missing(&f, "grad_norm", 13, NULL, "inf");
	check_missing(&f, "loss", 14, NULL, "nan");
	check_missing(&f, "grad_norm", 14, NULL, "inf");
	check_missing(&f, "mfu_pct", 14, NULL, "none");
	check_missing(&f, "loss", 15, NULL, "nan");
	check_fact(&f, "phase", "train \"a\"\n\xc3\xbc");
	check_fact(&f, "ok", "true");
	check_fact(&f, "empty", "");
	assert_null(found_nth(&f, "step", 0));
	assert_null(found_nth(&f, "rank", 0));
	assert_null(found_nth(&f, "t_us", 0));
	assert_null(found_nth(&f, "Loss", 0));
	assert_null(found_nth(&f, "a/b", 0));
	assert_null(found_nth(&f, "deep", 0));
	assert_null(found_nth(&f, "x", 0));
	assert_null(found_nth(&f, "list", 0));
	findings_free(&f);
}

static void test_malformed(void **state)
{
	static const char *const bad[] = {
		"{\"step\":1,\"loss\":2",
		"{\"step\":1,\"loss\":2}}",
		"{\"step\":1 \"loss\":2}",
		"{\"loss\":}",
		"{\"loss\":2,,}",
		"{loss:2}",
		"{\"loss\":2} x",
		"[1]",
		"{\"loss\":1,5}",
		"{\"a\":[1,2}",
		"{\"a\":\"x}",
		"{\"a\":\"\\",
		"{\"loss\":two}",
		"{",
		"\"a\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b = {0};
		struct findings f;

		buf_printf(&b, "{\"step\":1,\"loss\":1}\n%s\n{\"step\":3,\"loss\":3}\n", bad[i]);
		f = findings_text(&probe_metrics_jsonl, b.data);
		if (found_count(&f, "loss") != 2)
			fail_msg("%s: %zu values", bad[i], found_count(&f, "loss"));
		check_status(&f, PROBE_PARTIAL);
		assert_non_null(strstr(f.detail.data, "line 2"));
		findings_free(&f);
		buf_free(&b);
	}
}

static void test_ends(void **state)
{
	struct findings f = findings_text(&probe_metrics_jsonl, "");

	(void)state;
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_metrics_jsonl, "\n\nhello\n");
	check_status(&f, PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "line 3"));
	findings_free(&f);
	f = findings_text(&probe_metrics_jsonl, "{\"step\":1,\"loss\":2.5}");
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 1, NULL, 2.5);
	findings_free(&f);
	f = findings_text(&probe_metrics_jsonl, "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"lo");
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(f.n, 1);
	findings_free(&f);
	f = findings_text(&probe_metrics_jsonl, "3: {\"step\":1,\"loss\":2}\r\n{}\n{ }\n");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_at(&f, "loss", 1, NULL)->rank, 3);
	findings_free(&f);
}

static void test_lab(void **state)
{
	struct findings f = findings_fixture(&probe_metrics_jsonl, "surface.jsonl");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "arm", "base");
	findings_free(&f);
}

static void test_sniff(void **state)
{
	static const char own[] = "{\"step\":1,\"loss\":2}\n{\"st", other[] = "{\"a\": [\n",
			  late[] = "{\"grad_norm\": 0.5}\n",
			  jobs[] = "{\"id\": 26515966, \"cpu\": 1, \"state\": \"RUNNING\"}\n";

	(void)state;
	assert_true(score_text(&probe_metrics_jsonl, late) >= 50);
	assert_int_equal(score_text(&probe_metrics_jsonl, jobs), 0);
	assert_true(score_text(&probe_metrics_jsonl, own) >= 50);
	assert_int_equal(score_text(&probe_metrics_jsonl, other), 0);
	assert_int_equal(score_text(&probe_metrics_jsonl, ""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_ends),   cmocka_unit_test(test_lab),
		cmocka_unit_test(test_sniff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
