/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every unit test includes: cmocka with the headers that it wants first, and a scratch
 * directory of the test's own that is gone afterwards.
 */
#ifndef FETTLE_TESTS_UNIT_CHECK_H
#define FETTLE_TESTS_UNIT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

/* The call, which sets the local `struct err e`, succeeds; if not, its sentence is shown. */
#define assert_ok(call)                                    \
	do {                                               \
		if ((call) != 0)                           \
			fail_msg("%s: %s", #call, e.text); \
	} while (0)

#define assert_contains(text, part)                                                 \
	do {                                                                        \
		if (!strstr((text), (part)))                                        \
			fail_msg("\"%s\" does not contain \"%s\"", (text), (part)); \
	} while (0)

/* Whether the longer variants are asked for: make exports LONG, empty when it was not given. */
static inline bool long_run(void)
{
	const char *set = getenv("LONG");

	return set && *set;
}

/* A new directory under TMPDIR or /tmp; heap. */
static inline char *scratch_new(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = xasprintf("%s/fettle-test-XXXXXX", tmp ? tmp : "/tmp");

	assert_non_null(mkdtemp(dir));
	return dir;
}

static inline void scratch_free(char **dir)
{
	if (*dir)
		fs_remove_tree(*dir, NULL);
	free(*dir);
	*dir = NULL;
}
#define _cleanup_scratch_ __attribute__((cleanup(scratch_free)))

#endif
