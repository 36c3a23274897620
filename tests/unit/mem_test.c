/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitiser would end the process in its own way where calloc is to return NULL. It asks here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void empty_sizes_give_memory(void **state)
{
	_cleanup_free_ char *a = xmalloc(0);
	_cleanup_free_ char *b = xcalloc(0, 8);
	_cleanup_free_ char *c = xrealloc(NULL, 0, 8);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
}

static void text_copies(void **state)
{
	const char raw[4] = {'a', 'b', 'c', 'd'}; /* no NUL: strndup must not look further */
	_cleanup_free_ char *two = xstrndup(raw, 2);
	_cleanup_free_ char *four = xstrndup(raw, 4);
	_cleanup_free_ char *shorter = xstrndup("a", 9);
	_cleanup_free_ char *printed = xasprintf("%s-%d", "n", 3);

	(void)state;
	assert_string_equal(two, "ab");
	assert_memory_equal(four, "abcd", 5);
	assert_string_equal(shorter, "a");
	assert_string_equal(printed, "n-3");
	assert_null(xstrdup(NULL));
}

static void grow_doubles_and_zeroes(void **state)
{
	size_t cap = 0;
	int *v = NULL;

	(void)state;
	v = xgrow(v, 0, &cap, sizeof *v);
	assert_int_equal(cap, 8);
	for (size_t i = 0; i < cap; i++)
		v[i] = 5;
	assert_ptr_equal(xgrow(v, 7, &cap, sizeof *v), v);
	v = xgrow(v, 40, &cap, sizeof *v);
	assert_int_equal(cap, 64);
	assert_int_equal(v[7], 5);
	for (size_t i = 8; i < cap; i++)
		assert_int_equal(v[i], 0);
	free(v);
}

static void take_and_cleanup_move_ownership(void **state)
{
	_cleanup_free_ char *a = xstrdup("x");
	_cleanup_free_ char *b = TAKE(a);

	(void)state;
	assert_null(a);
	assert_string_equal(b, "x");
}

static void overflow(void)
{
	xrealloc(NULL, SIZE_MAX / 4, 8);
}

static void exhaustion(void)
{
	volatile size_t n = SIZE_MAX / 4; /* volatile: the compiler would warn of what we want */

	xmalloc(n);
}

static int death_of(void (*f)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = {0};

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		f();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void what_cannot_be_had_aborts(void **state)
{
	(void)state;
	assert_int_equal(death_of(overflow), SIGABRT);
	assert_int_equal(death_of(exhaustion), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_sizes_give_memory),
		cmocka_unit_test(text_copies),
		cmocka_unit_test(grow_doubles_and_zeroes),
		cmocka_unit_test(take_and_cleanup_move_ownership),
		cmocka_unit_test(what_cannot_be_had_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
