/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

#include "probes/csv.h"

extern const struct probe probe_ncu_csv;
static const struct probe *const p = &probe_ncu_csv;

/* Means are weighted by duration; of the tensor pipes the busier counts. */
static void test_raw(void **state)
{
	struct findings f = findings_fixture(p, "ncu-raw.csv");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "tensor_active", -1, "kernel=gemm, \"bf16\"", 0.7);
	check_at(&f, "kernel_time_ms", -1, "kernel=gemm", 2);
	check_at(&f, "kernel_count", -1, "kernel=gemm", 2);
	check_at(&f, "dram_active", -1, "kernel=softmax", 0.9);
	assert_string_equal(found_nth(&f, "tensor_active", 2)->labels, "");
	assert_true(fabs(found_nth(&f, "tensor_active", 2)->value - 0.56) < 1e-12);
	findings_free(&f);
}

static void test_details(void **state)
{
	struct findings f = findings_fixture(p, "ncu-details.csv");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "mem_throughput", -1, "kernel=gemm", 0.413); /* the share, not Gbyte/s */
	check_at(&f, "sm_throughput", -1, "kernel=gemm", 0.77);
	check_at(&f, "kernel_time_ms", -1, "kernel=gemm", 0.0125);
	check_at(&f, "sm_occupancy", -1, "kernel=relu", 0.625);
	assert_null(found_at(&f, "tensor_active", -1, NULL)); /* not asked for: not zero */
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(p, "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n"
					     "\"\",\"\",\"ns\"\n\"0\",\"a\",\"7\"\n\"1\",\"b\"\n"
					     "\"2\",\"c\",\"n/a\"\n\"3\",\"d\",\"4");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "2 bad lines, the first is line 4"));
	check_at(&f, "kernel_time_ms", -1, "kernel=a", 7e-6);
	check_at(&f, "kernel_count", -1, "kernel=c", 1);
	assert_null(found_at(&f, "kernel_count", -1, "kernel=d"));
	findings_free(&f);
	f = findings_text(p, "==ERROR== ERR_NVGPUCTRPERM\n\"a\",\"b\"\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_csv(void **state)
{
	static const struct {
		const char *line;
		size_t n;
		const char *last;
	} t[] = {
		{"a,b", 2, "b"},      {"", 1, ""},
		{"a,", 2, ""},        {" x , \"y, \"\"z\"\"\" ", 2, "y, \"z\""},
		{"\"a\"b,c", 2, "c"},
	};
	struct csv c = {.n = 0};
	double v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		assert_true(csv_split(&c, span_of(t[i].line)));
		assert_int_equal(c.n, t[i].n);
		assert_true(span_eq(c.v[c.n - 1], t[i].last));
	}
	assert_false(csv_split(&c, span_of("a,\"b")));
	csv_free(&c);
	assert_true(csv_number(span_of("1,234.5"), &v) && v == 1234.5);
	assert_true(csv_number(span_of(" 7 "), &v) && v == 7);
	assert_false(csv_number(span_of("1,23"), &v));
	assert_false(csv_number(span_of(""), &v));
	assert_true(csv_time_scale(span_of("(us)")) == 1e3);
	assert_true(csv_time_scale(span_of("msecond")) == 1e6);
	assert_true(csv_time_scale(span_of("(MB)")) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_details),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_csv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
