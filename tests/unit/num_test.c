/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/num.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/base/str.h"

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		enum num_kind kind;
		double value;
		size_t used;
	} t[] = {
		{"155483.8", NUM_FINITE, 155483.8, 8},
		{"2e+3,", NUM_FINITE, 2000, 4},
		{"-1.0 x", NUM_FINITE, -1, 4},
		{"1.086954E+01 |", NUM_FINITE, 10.86954, 12},
		{"4.175257731958763e-05", NUM_FINITE, 4.175257731958763e-05, 21},
		{"83.48609168106144", NUM_FINITE, 83.48609168106144, 17},
		{"9223372036854775794", NUM_FINITE, 9223372036854775794.0, 19},
		{"12345678901234567890123", NUM_FINITE, 12345678901234567890123.0, 23},
		{"0.1", NUM_FINITE, 0.1, 3},
		{".5", NUM_FINITE, 0.5, 2},
		{"5.", NUM_FINITE, 5, 2},
		{"2em", NUM_FINITE, 2, 1},
		{"1292,64", NUM_NONE, 0, 0},
		{"7,865", NUM_NONE, 0, 0},
		{"1, 2", NUM_FINITE, 1, 1},
		{"", NUM_NONE, 0, 0},
		{".", NUM_NONE, 0, 0},
		{"-", NUM_NONE, 0, 0},
		{"N/A", NUM_NONE, 0, 0},
		{"nan,", NUM_NAN, 0, 3},
		{"-nan", NUM_NAN, 0, 4},
		{"+nanz", NUM_NONE, 0, 0},
		{"Infinity", NUM_INF, 0, 8},
		{"-inf", NUM_INF, 0, 4},
		{"info", NUM_NONE, 0, 0},
		{"1e999", NUM_INF, 0, 5},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		double v = 0;
		size_t used = 0;

		if (num_scan(span_of(t[i].text), &v, &used) != t[i].kind)
			fail_msg("kind of \"%s\"", t[i].text);
		if (t[i].kind == NUM_FINITE && v != t[i].value)
			fail_msg("\"%s\" is %.17g", t[i].text, v);
		if (t[i].kind != NUM_NONE)
			assert_int_equal(used, t[i].used);
	}
}

static void test_thousands(void **state)
{
	double v;
	size_t used;

	(void)state;
	assert_int_equal(num_scan_thousands(span_of("7,865  mfu"), &v, &used), NUM_FINITE);
	assert_true(v == 7865 && used == 5);
	assert_int_equal(num_scan_thousands(span_of("1,455.20"), &v, &used), NUM_FINITE);
	assert_true(v == 1455.2 && used == 8);
	assert_int_equal(num_scan_thousands(span_of("892"), &v, &used), NUM_FINITE);
	assert_true(v == 892);
	assert_int_equal(num_scan_thousands(span_of("7,86"), &v, &used), NUM_NONE);
	assert_int_equal(num_scan_thousands(span_of("1292,64"), &v, &used), NUM_NONE);
}

/* Under a locale with a decimal comma strtod() would read 1.5 as 1. */
static void test_locale(void **state)
{
	double v;

	(void)state;
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
		setlocale(LC_NUMERIC, "C");
	assert_true(num_whole(span_of("0.1234567890123456789"), &v));
	assert_true(v == 0.1234567890123456789);
	assert_false(num_whole(span_of("1,5"), &v));
	setlocale(LC_NUMERIC, "C");
}

static void test_missing(void **state)
{
	double v;
	int64_t i;

	(void)state;
	assert_string_equal(num_missing(span_of("[N/A]")), "N/A");
	assert_string_equal(num_missing(span_of(" [Not Supported] ")), "not supported");
	assert_string_equal(num_missing(span_of("[Unknown Error]")), "unknown error");
	assert_string_equal(num_missing(span_of("ERR!")), "unknown error");
	assert_string_equal(num_missing(span_of("[Insufficient Permissions]")), "not permitted");
	assert_string_equal(num_missing(span_of("Not Found")), "not found");
	assert_string_equal(num_missing(span_of("[GPU requires reset]")), "requires reset");
	assert_string_equal(num_missing(span_of("NaN")), "nan");
	assert_string_equal(num_missing(span_of("-inf")), "inf");
	assert_string_equal(num_missing(span_of("")), "empty");
	assert_null(num_missing(span_of("0")));
	assert_null(num_missing(span_of("x")));
	assert_false(num_whole(span_of("1 2"), &v));
	assert_false(num_whole(span_of("nan"), &v));
	assert_true(num_whole_i64(span_of("2e+3"), &i) && i == 2000);
	assert_false(num_whole_i64(span_of("2.5"), &i));
	assert_true(num_metric_name(span_of("step_time_ms")));
	assert_false(num_metric_name(span_of("Loss")));
	assert_false(num_metric_name(span_of("")));
}

static void test_spans(void **state)
{
	struct span t = span_of("a | b|"), f;

	(void)state;
	assert_true(span_next(&t, "|", &f) && span_eq(span_trim(f), "a"));
	assert_true(span_next(&t, "|", &f) && span_eq(span_trim(f), "b"));
	assert_true(span_next(&t, "|", &f) && f.n == 0);
	assert_false(span_next(&t, "|", &f));
	t = span_of("  x\ty ");
	assert_true(span_word(&t, &f) && span_eq(f, "x"));
	assert_true(span_word(&t, &f) && span_eq(f, "y"));
	assert_false(span_word(&t, &f));
	assert_null(span_after(span_of("abc"), "d").s);
	assert_true(span_eq(span_after(span_of("abc"), "b"), "c"));
}

/* A field that is not there has no address either: no function may hand it to one of the C library.
 */
static void test_no_text(void **state)
{
	const struct span none = {NULL, 0};
	struct span t = none, f;
	double x;
	int64_t i;
	size_t used;

	(void)state;
	assert_string_equal(num_missing(none), "empty");
	assert_int_equal(span_trim(none).n, 0);
	assert_true(span_eq(none, ""));
	assert_false(span_has(none, "a") || span_starts(none, "a") || span_eq(none, "a"));
	assert_false(span_next(&t, "|", &f) || span_next(&t, "|;", &f) || span_word(&t, &f));
	assert_int_equal(num_scan(none, &x, &used), NUM_NONE);
	assert_int_equal(num_scan_thousands(none, &x, &used), NUM_NONE);
	assert_false(num_whole(none, &x) || num_whole_i64(none, &i) || num_metric_name(none));
}

/* Numbers of all lengths, with and without point and exponent, are what libc makes of them. */
static void test_as_libc(void **state)
{
	struct rng r = rng_at(11, 0, 0, 0);
	char text[80];

	(void)state;
	for (int k = 0; k < 20000; k++) {
		size_t n = 0, digits = 1 + rng_below(&r, 28), point = rng_below(&r, 40), used;
		double v, want;

		if (rng_below(&r, 4) == 0)
			text[n++] = '-';
		for (size_t i = 0; i < digits; i++) {
			if (i == point)
				text[n++] = '.';
			text[n++] = (char)('0' + rng_below(&r, rng_below(&r, 3) ? 10 : 1));
		}
		text[n] = '\0';
		if (rng_below(&r, 3) == 0)
			n += (size_t)snprintf(text + n, 8, "e%d", (int)rng_below(&r, 80) - 40);
		assert_int_equal(num_scan((struct span){text, n}, &v, &used), NUM_FINITE);
		assert_int_equal(used, n);
		assert_true(str_to_double(text, &want));
		if (v != want)
			fail_msg("%s is read as %.17g", text, v);
	}
}

/* Texts and keys of two letters, so that they nearly match everywhere. */
/* The short ones, which are read at once: any text of the bytes of numbers and of their neighbours.
 */
static void test_whole_as_scan(void **state)
{
	static const char bytes[] = "0123456789..00-e/:\xb0\x8e ";
	struct rng r = rng_at(13, 0, 0, 0);

	(void)state;
	for (int k = 0; k < 50000; k++) {
		size_t n = rng_below(&r, 12), kinds = rng_below(&r, 3) ? 12 : sizeof(bytes) - 1,
		       used;
		_cleanup_free_ char *own = xmalloc(n + !n); /* an overrun is seen */
		double v = 0, want = 0;
		struct span t = {own, n};
		bool whole;

		for (size_t i = 0; i < n; i++)
			own[i] = bytes[rng_below(&r, kinds)];
		t = span_trim(t);
		whole = num_scan(t, &want, &used) == NUM_FINITE && used == t.n;
		assert_int_equal(num_whole((struct span){own, n}, &v), whole);
		if (whole && v != want)
			fail_msg("%.*s is read as %.17g", (int)n, own, v);
	}
}

static void test_behind_as_memmem(void **state)
{
	struct rng r = rng_at(12, 0, 0, 0);
	char text[64], key[12];

	(void)state;
	for (int k = 0; k < 20000; k++) {
		size_t n = 1 + rng_below(&r, sizeof(text)), m = 1 + rng_below(&r, sizeof(key));
		_cleanup_free_ char *own = xmalloc(n); /* an overrun is seen */
		const char *at;

		for (size_t i = 0; i < n; i++)
			own[i] = "ab"[rng_below(&r, 2)];
		for (size_t i = 0; i < m; i++)
			key[i] = "ab"[rng_below(&r, 2)];
		at = memmem(own, n, key, m);
		assert_ptr_equal(span_behind((struct span){own, n}, key, m).s, at ? at + m : NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_thousands),
		cmocka_unit_test(test_locale),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_no_text),
		cmocka_unit_test(test_as_libc),
		cmocka_unit_test(test_whole_as_scan),
		cmocka_unit_test(test_behind_as_memmem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
