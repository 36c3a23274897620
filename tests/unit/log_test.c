/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "orchestrator/base/log.h"

/* What f prints on stderr; heap. */
static char *stderr_of(void (*f)(void))
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "err");
	struct buf b = {0};
	int saved = dup(2), fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct err e = {0};

	fflush(stderr);
	dup2(fd, 2);
	f();
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	close(fd);
	assert_ok(fs_read(path, 1 << 20, &b, &e));
	return buf_take(&b);
}

static void say_all(void)
{
	log_error("one %d", 1);
	log_warn("two");
	log_info("three");
	log_debug("four");
}

static void a_line_names_program_and_level(void **state)
{
	_cleanup_free_ char *some = NULL, *all = NULL;

	(void)state;
	some = stderr_of(say_all);
	assert_string_equal(some, "fettle: error: one 1\nfettle: warning: two\n");
	log_init("fettle-agent", LOG_LVL_DEBUG);
	all = stderr_of(say_all);
	assert_string_equal(all, "fettle-agent: error: one 1\nfettle-agent: warning: two\n"
				 "fettle-agent: info: three\nfettle-agent: debug: four\n");
}

static void say_much(void)
{
	char big[10000];

	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	errno = ENOSPC;
	log_error("%s", big);
	assert_int_equal(errno, ENOSPC);
}

static void long_lines_are_cut_and_errno_is_kept(void **state)
{
	_cleanup_free_ char *text = stderr_of(say_much);

	(void)state;
	assert_true(strlen(text) < 5000);
	assert_true(str_ends(text, "x\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_names_program_and_level),
		cmocka_unit_test(long_lines_are_cut_and_errno_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
