/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/procs.h"

enum { NEVER_SEEN = 12345 }; /* threads: no process of a test has as many */

static pid_t child;

static int setup(void **state)
{
	(void)state;
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	return child < 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) != child;
}

/* What a scan has of the child: its threads, 0 when it is not there. */
static int64_t seen(const struct procs_one *before, const struct procs *kernel)
{
	struct procs_one known = *before;
	struct procs p = {0}, list = {.v = &known, .n = 1};
	int64_t threads = 0;

	procs_scan_again(&p, &list, kernel);
	assert_true(p.n > 1);
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].pid == child)
			threads = p.v[i].threads;
	procs_free(&p);
	return threads;
}

/* Only what was asked and is none of ours stands as it was: all others are read. */
static void who_is_known_as_foreign_is_not_read_again(void **state)
{
	struct procs_one one = {.pid = child, .threads = NEVER_SEEN, .asked = true};
	struct procs kernel = {.v = &one, .n = 1}, none = {0};

	(void)state;
	assert_int_equal(seen(&one, &none), NEVER_SEEN);
	assert_int_equal(seen(&one, &kernel), 0);
	one.ours = true;
	assert_int_equal(seen(&one, &none), 1);
	one.ours = one.asked = false;
	assert_int_equal(seen(&one, &none), 1);
	one.asked = true;
	one.pid = getpid();
	assert_int_equal(seen(&one, &none), 1);
}

static void who_has_ended_is_not_known(void **state)
{
	struct procs_one one = {.pid = child, .threads = NEVER_SEEN, .asked = true};

	(void)state;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(seen(&one, &(struct procs){0}), 0);
	assert_int_equal(setup(NULL), 0); /* for teardown */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_is_known_as_foreign_is_not_read_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_has_ended_is_not_known, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
