/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/cmd/envfile.h"

static void test_lines_are_read_as_a_shell_reads_them(void **state)
{
	static const char text[] = "# what a colleague found\n\nA=1\n  export B='two words'\n"
				   "C=\"a \\\"b\\\" \\\\ c\"  # why\nD=\nE=x\\ y'z'\"w\"\nA=3\n"
				   "unset F\nexport G=g=h\n\tH='#'";
	struct kvs k = {0};
	struct err e = {0};

	(void)state;
	assert_ok(envfile_parse("f.env", text, sizeof text - 1, &k, &e));
	assert_string_equal(kvs_get(&k, "A"), "3");
	assert_string_equal(kvs_get(&k, "B"), "two words");
	assert_string_equal(kvs_get(&k, "C"), "a \"b\" \\ c");
	assert_string_equal(kvs_get(&k, "D"), "");
	assert_string_equal(kvs_get(&k, "E"), "x yzw");
	assert_true(kvs_has(&k, "F"));
	assert_null(kvs_get(&k, "F"));
	assert_string_equal(kvs_get(&k, "G"), "g=h");
	assert_string_equal(kvs_get(&k, "H"), "#");
	kvs_free(&k);
}

static void test_what_a_shell_would_run_or_expand_is_refused(void **state)
{
	static const struct {
		const char *text, *line;
	} bad[] = {
		{"A=1\nB=$HOME", "f.env:2: "}, {"A=`id`", "f.env:1: "}, {"A=\"$X\"", "f.env:1: "},
		{"A=1;rm", "f.env:1: "},       {"A=a b", "f.env:1: "},  {"\n\nA 1", "f.env:3: "},
		{"1A=1", "f.env:1: "},         {"A='x", "f.env:1: "},   {"A=\"x", "f.env:1: "},
		{"A=x\\", "f.env:1: "},        {"unset", "f.env:1: "},  {"unset A B", "f.env:1: "},
		{"source x", "f.env:1: "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct kvs k = {0};
		struct err e = {0};

		assert_int_equal(envfile_parse("f.env", bad[i].text, strlen(bad[i].text), &k, &e),
				 -ERR_USAGE);
		assert_true(str_starts(e.text, bad[i].line));
		assert_int_equal(k.n, 0);
	}
}

static void test_an_assignment_is_taken_as_it_stands(void **state)
{
	struct kvs k = {0};
	struct err e = {0};

	(void)state;
	assert_ok(envfile_assignment("A=$x 'y' = z", &k, &e));
	assert_string_equal(kvs_get(&k, "A"), "$x 'y' = z");
	assert_int_equal(envfile_assignment("A", &k, &e), -ERR_USAGE);
	assert_int_equal(envfile_assignment("=1", &k, &e), -ERR_USAGE);
	assert_int_equal(envfile_assignment("A-B=1", &k, &e), -ERR_USAGE);
	kvs_free(&k);
}

static void test_a_file_that_is_none_is_named(void **state)
{
	struct kvs k = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(envfile_read("/no/such.env", &k, &e), -ERR_USAGE);
	assert_non_null(strstr(e.text, "/no/such.env"));
	assert_int_equal(envfile_parse("f.env", "A=1\0", 4, &k, &e), -ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_lines_are_read_as_a_shell_reads_them),
		cmocka_unit_test(test_what_a_shell_would_run_or_expand_is_refused),
		cmocka_unit_test(test_an_assignment_is_taken_as_it_stands),
		cmocka_unit_test(test_a_file_that_is_none_is_named),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
