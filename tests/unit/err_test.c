/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <errno.h>

static void set_returns_the_negative_code(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(err_set(&e, ERR_DB, "line %d", 7), -ERR_DB);
	assert_int_equal(e.code, ERR_DB);
	assert_string_equal(e.text, "line 7");
	assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), -ERR_IO);
}

static void sys_names_and_keeps_errno(void **state)
{
	struct err e = {0};

	(void)state;
	errno = ENOSPC;
	assert_int_equal(err_sys(&e, ERR_IO, "cannot write %s", "x"), -ERR_IO);
	assert_string_equal(e.text, "cannot write x: No space left on device");
	assert_int_equal(errno, ENOSPC);
}

static void wrap_puts_context_before(void **state)
{
	struct err e = {0};

	(void)state;
	err_set(&e, ERR_RECIPE, "line 12: unknown field");
	assert_int_equal(err_wrap(&e, "recipe %s", "a.lua"), -ERR_RECIPE);
	assert_string_equal(e.text, "recipe a.lua: line 12: unknown field");
	assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void long_texts_are_cut_and_keep_the_cause(void **state)
{
	char big[4096];
	struct err e = {0};

	(void)state;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	err_set(&e, ERR_IO, "%s", big);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	err_set(&e, ERR_IO, "the cause");
	err_wrap(&e, "%s", big);
	assert_true(strlen(e.text) < sizeof e.text);
	assert_true(str_ends(e.text, ": the cause"));
	errno = EACCES;
	err_sys(&e, ERR_IO, "%s", big); /* no room for the reason: cut, not overrun */
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

static void exit_statuses_are_those_of_the_design(void **state)
{
	static const int expected[] = {
		[ERR_OK] = 0,    [ERR_USAGE] = 2,     [ERR_RECIPE] = 2, [ERR_TEMP] = 3,
		[ERR_IO] = 4,    [ERR_READ] = 4,      [ERR_PARSE] = 4,  [ERR_DB] = 4,
		[ERR_LIMIT] = 4, [ERR_NOT_FOUND] = 4, [ERR_STATE] = 4,  [ERR_CANCELLED] = 3,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_int_equal(err_exit_status((enum err_code)i), expected[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_returns_the_negative_code),
		cmocka_unit_test(sys_names_and_keeps_errno),
		cmocka_unit_test(wrap_puts_context_before),
		cmocka_unit_test(long_texts_are_cut_and_keep_the_cause),
		cmocka_unit_test(exit_statuses_are_those_of_the_design),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
