/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <locale.h>
#include <math.h>

#include "orchestrator/base/proc.h"
#include "orchestrator/base/str.h"

static void buf_grows_and_ends_in_nul(void **state)
{
	struct buf b = {0};

	(void)state;
	assert_null(b.data);
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%d,", i);
	assert_int_equal(b.len, 10 * 2 + 90 * 3 + 900 * 4);
	assert_int_equal(strlen(b.data), b.len);
	assert_true(str_ends(b.data, "998,999,"));
	buf_clear(&b);
	assert_string_equal(b.data, "");
	buf_put(&b, "a\0b", 3);
	buf_char(&b, 'c');
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "a\0bc", 5);
	buf_free(&b);
	assert_null(b.data);
}

static void buf_take_gives_the_text_away(void **state)
{
	struct buf b = {0};
	_cleanup_free_ char *empty = buf_take(&b);
	_cleanup_free_ char *text = NULL;

	(void)state;
	assert_string_equal(empty, "");
	buf_str(&b, "x");
	text = buf_take(&b);
	assert_string_equal(text, "x");
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
}

static void strv_is_fit_for_exec(void **state)
{
	struct strv s = {0}, copy = {0};

	(void)state;
	assert_null(strv_end(&s)[0]);
	for (int i = 0; i < 100; i++) {
		strv_addf(&s, "%d", i);
		assert_null(s.v[s.n]);
	}
	strv_add(&copy, "old");
	strv_copy(&copy, &s);
	assert_int_equal(copy.n, 100);
	assert_string_equal(copy.v[99], "99");
	assert_ptr_not_equal(copy.v[99], s.v[99]);
	strv_free(&s);
	strv_free(&copy);
	assert_null(s.v);
}

static void kvs_keeps_order_and_one_of_each_key(void **state)
{
	struct kvs k = {0}, copy = {0};

	(void)state;
	kvs_set(&k, "b", "1");
	kvs_set(&k, "a", "2");
	kvs_set(&k, "b", "3");
	kvs_set(&k, "c", NULL);
	assert_int_equal(k.n, 3);
	assert_string_equal(k.v[0].key, "b");
	assert_string_equal(kvs_get(&k, "b"), "3");
	assert_null(kvs_get(&k, "c"));
	assert_true(kvs_has(&k, "c"));
	assert_false(kvs_has(&k, "d"));
	kvs_set(&k, "b", kvs_get(&k, "b")); /* its own value */
	kvs_set(&copy, "z", "9");
	kvs_copy(&copy, &k);
	kvs_sort(&copy);
	assert_int_equal(copy.n, 3);
	assert_string_equal(copy.v[0].key, "a");
	assert_string_equal(copy.v[1].value, "3");
	kvs_free(&k);
	kvs_free(&copy);
}

static void comparing(void **state)
{
	(void)state;
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq(NULL, ""));
	assert_false(str_eq("a", NULL));
	assert_true(str_eq("a", "a"));
	assert_true(str_starts("abc", "ab"));
	assert_false(str_starts("a", "ab"));
	assert_true(str_ends("abc", "bc"));
	assert_false(str_ends("c", "bc"));
	assert_true(str_ends("abc", ""));
}

static void integers_are_strict(void **state)
{
	static const char *const bad[] = {"",
					  " ",
					  "x",
					  "1x",
					  "1.0",
					  "0x10",
					  "1 2",
					  "--1",
					  "9223372036854775808",
					  "-9223372036854775809",
					  "1e3"};
	int64_t v = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (str_to_i64(bad[i], &v) || v != 77)
			fail_msg("\"%s\" was read as %lld", bad[i], (long long)v);
	assert_true(str_to_i64(" -42\n", &v));
	assert_int_equal(v, -42);
	assert_true(str_to_i64("9223372036854775807", &v));
	assert_true(v == INT64_MAX);
	assert_true(str_to_i64("010", &v)); /* decimal, not octal */
	assert_int_equal(v, 10);
}

static void expect_doubles(void)
{
	static const char *const bad[] = {"",          ".",     "1,5",   "1.5x", "nan",   "inf",
					  "-infinity", "0x1p3", "1e999", "1 2",  "1_000", "1.2.3"};
	double v = 77;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (str_to_double(bad[i], &v) || v != 77)
			fail_msg("\"%s\" was read as %g", bad[i], v);
	assert_true(str_to_double("  1.5e-3 ", &v));
	assert_true(v == 1.5e-3);
	assert_true(str_to_double("-.5", &v));
	assert_true(v == -0.5);
}

static void doubles_are_strict(void **state)
{
	(void)state;
	expect_doubles();
}

static void expect_text(double v, const char *text)
{
	struct buf b = {0};

	buf_str(&b, "=");
	buf_number(&b, v);
	assert_string_equal(b.data + 1, text);
	buf_free(&b);
}

static void numbers_print_short_and_exact(void **state)
{
	(void)state;
	expect_text(0, "0");
	expect_text(-0.0, "0");
	expect_text(0.1, "0.1");
	expect_text(-2.5, "-2.5");
	expect_text(1764422504000000.0, "1764422504000000");
	expect_text(1.0 / 3, "0.3333333333333333");
	expect_text(0.1 + 0.2, "0.30000000000000004");
	expect_text(1e300, "1e+300");
	expect_text(5e-324, "4.94065645841247e-324");
}

/* A German locale of our own making, so that the test means something on any machine. */
static void make_locale(const char *dir)
{
	char *argv[] = {(char[]){"localedef"},
			(char[]){"-i"},
			(char[]){"de_DE"},
			(char[]){"-f"},
			(char[]){"UTF-8"},
			NULL,
			NULL};
	struct proc_spawn s = {
		.file = "localedef", .argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	_cleanup_free_ char *target = fs_join(dir, "de_DE.UTF-8");
	struct buf out = {0};
	struct err e = {0};
	int status = -1;

	argv[5] = target;
	assert_ok(proc_capture(&s, 60000000, 0, &out, NULL, &status, &e));
	assert_int_equal(status, 0);
	assert_int_equal(setenv("LOCPATH", dir, 1), 0);
	buf_free(&out);
}

static void a_comma_locale_changes_nothing(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	char text[16];

	(void)state;
	make_locale(dir);
	assert_non_null(setlocale(LC_NUMERIC, "de_DE.UTF-8"));
	snprintf(text, sizeof text, "%.1f", 1.5);
	assert_string_equal(text, "1,5"); /* the locale is really in force */
	expect_doubles();
	expect_text(-2.5, "-2.5");
	snprintf(text, sizeof text, "%.1f", 1.5);
	assert_string_equal(text, "1,5"); /* and still is */
	setlocale(LC_NUMERIC, "C");
	unsetenv("LOCPATH");
}

static void distances(void **state)
{
	char a[200], b[200];

	(void)state;
	assert_int_equal(str_distance("", ""), 0);
	assert_int_equal(str_distance("", "abc"), 3);
	assert_int_equal(str_distance("kitten", "sitting"), 3);
	assert_int_equal(str_distance("ab", "ba"), 1); /* a swap is one slip */
	assert_int_equal(str_distance("num_workers", "num_wrokers"), 1);
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	a[199] = b[199] = '\0';
	assert_int_equal(str_distance(a, b), 64);
}

static void nearest_is_within_a_third(void **state)
{
	static const char *const words[] = {"status", "stop", "report", NULL};
	static const char *const none[] = {NULL};

	(void)state;
	assert_string_equal(str_nearest("statsu", words), "status");
	assert_string_equal(str_nearest("stpo", words), "stop");
	assert_string_equal(str_nearest("stop", words), "stop");
	assert_null(str_nearest("simulate", words));
	assert_null(str_nearest("xy", words));
	assert_null(str_nearest("stop", none));
}

static void copy_says_when_it_cuts(void **state)
{
	char out[4] = "...";

	(void)state;
	assert_true(str_copy(out, sizeof out, "abc"));
	assert_string_equal(out, "abc");
	assert_false(str_copy(out, sizeof out, "abcd"));
	assert_string_equal(out, "abc");
	assert_false(str_copy(out, 0, ""));
	assert_string_equal(out, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_grows_and_ends_in_nul),
		cmocka_unit_test(buf_take_gives_the_text_away),
		cmocka_unit_test(strv_is_fit_for_exec),
		cmocka_unit_test(kvs_keeps_order_and_one_of_each_key),
		cmocka_unit_test(comparing),
		cmocka_unit_test(integers_are_strict),
		cmocka_unit_test(doubles_are_strict),
		cmocka_unit_test(numbers_print_short_and_exact),
		cmocka_unit_test(a_comma_locale_changes_nothing),
		cmocka_unit_test(distances),
		cmocka_unit_test(nearest_is_within_a_third),
		cmocka_unit_test(copy_says_when_it_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
