/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recipes that want out, or everything: each of tests/fixtures/recipes/hostile is stopped within
 * the time and the memory that a recipe may have, with an error that names file and line. What
 * takes all of its time is tried with LONG=1 only, but for one in sandbox_test.c. */
#include "tests/unit/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/script/sandbox.h"

#define DIR_OF_THEM "tests/fixtures/recipes/hostile"
#define LOOP        "evaluating it took more than 5 million instructions"
#define TIME        "evaluating it took more than 2 s of CPU time"
#define MEMORY      "evaluating it needs more than 64 MiB of memory"
#define WITHHELD    "is not available in a recipe: a recipe is a plan"

enum { RSS_MAX_KB = 256 << 10 };

static const struct {
	const char *name;
	int line; /* 0: whichever of its lines ran when it was stopped */
	const char *says;
	bool slow;
} cases[] = {
	{"close-chain", 4, "C stack overflow", false},
	{"close-loop", 0, LOOP, false},
	{"concat-bomb", 0, MEMORY, false},
	{"concat-loop", 5, "C stack overflow", false},
	{"coroutine-hook", 3, "'coroutine' is not available in a recipe:", false},
	{"debug-hook", 3, WITHHELD, false},
	{"debug-upvalue", 3, WITHHELD, false},
	{"deep-recursion", 0, MEMORY, false},
	{"distance-long", 4, "looked at a part only", false},
	{"dofile-itself", 3, WITHHELD, false},
	{"error-huge", 0, MEMORY, false},
	{"error-newlines", 3, "/etc/passwd:1: all is well", false},
	{"error-tostring", 3, "an error that is not a text was raised", false},
	{"for-float", 0, LOOP, false},
	{"format-address", 3, "%p is not available", false},
	{"format-precision", 3, "no value", false},
	{"format-quoted", 0, MEMORY, true},
	{"format-star", 3, "invalid conversion '%*'", false},
	{"format-width", 3, "invalid conversion", false},
	{"gc-late", 8, "__gc is not available in a recipe", false},
	{"gc-loop", 3, "__gc is not available in a recipe", false},
	{"globals-index", 3, "attempt to index a nil value", false},
	{"globals-metatable", 3, "cannot change a protected metatable", false},
	{"goto-loop", 0, LOOP, false},
	{"gsub-bomb", 0, MEMORY, false},
	{"gsub-loop", 0, LOOP, false},
	{"index-loop", 6, "'__index' chain too long; possible loop", false},
	{"index-recursion", 4, "C stack overflow", false},
	{"io-open", 3, WITHHELD, false},
	{"io-popen", 3, WITHHELD, false},
	{"iterator-loop", 0, LOOP, false},
	{"load-bytecode", 3, WITHHELD, false},
	{"load-text", 3, WITHHELD, false},
	{"many-literals", 0, LOOP, true},
	{"many-values", 3, "[100000]: has more than 100000 values in it", false},
	{"nearest-long", 7, "", false},
	{"nearest-null", 3, "nearest: expected a list of texts", false},
	{"nested-tables", 3, "is nested too deeply", false},
	{"next-loop", 0, TIME, true},
	{"os-execute", 3, WITHHELD, false},
	{"pack-huge", 3, "number expected, got nil", false},
	{"package-loadlib", 3, "'package' is not available in a recipe:", false},
	{"pairs-long-keys", 0, TIME, true},
	{"path-escape", 3, "[2]: is not a number (0/0)", false},
	{"pattern-balance", 0, TIME, true},
	{"pattern-captures", 3, "too many captures", false},
	{"pattern-caught", 0, TIME, true},
	{"pattern-deep", 3, "pattern too complex", false},
	{"pattern-frontier", 0, TIME, true},
	{"pattern-greedy", 0, TIME, true},
	{"pattern-lazy", 0, TIME, true},
	{"pattern-optional", 0, TIME, true},
	{"pcall-loop", 0, LOOP, false},
	{"pcall-memory", 0, TIME, true},
	{"pcall-recursion", 0, LOOP, false},
	{"rep-bomb", 3, "resulting string too large", false},
	{"rep-empty", 0, TIME, true},
	{"rep-separator", 3, "resulting string too large", false},
	{"require-chain", 3, WITHHELD, false},
	{"select-many", 0, TIME, true},
	{"sort-invalid", 7, "invalid order function for sorting", false},
	{"sort-loop", 0, LOOP, false},
	{"string-dump", 3, "attempt to call a nil value (field 'dump')", false},
	{"string-metatable-lookup", 3, "attempt to index a boolean value", false},
	{"string-metatable", 3, "attempt to index a boolean value", false},
	{"table-bomb", 0, MEMORY, false},
	{"table-concat", 0, LOOP, false},
	{"table-in-itself", 1, "is nested too deeply", false},
	{"table-insert", 0, TIME, true},
	{"table-move", 0, TIME, true},
	{"table-unpack", 3, "too many results to unpack", false},
	{"tail-calls", 0, LOOP, false},
	{"tostring-loop", 0, LOOP, false},
	{"utf8-bomb", 0, TIME, true},
	{"xpcall-handler", 4, "'xpcall' is not defined", false},
};

static double children_cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void check_place(const char *path, int line, const char *told)
{
	int at = 0;

	if (getenv("RUN_WITH") && strstr(told, TIME))
		return; /* perhaps outside of the recipe, where its value is read */
	if (!str_starts(told, path) || sscanf(told + strlen(path), ":%d: ", &at) != 1 ||
	    (line ? at != line : at < 2))
		fail_msg("%s: expected line %d, got: %s", path, line, told);
}

/* Where everything takes several times as long, time may be what is out first. */
static bool is_told(const char *text, const char *says)
{
	return strstr(text, says) ||
	       (strstr(text, TIME) && (str_starts(says, "evaluating it") || getenv("RUN_WITH")));
}

static void stop(const char *path, const char *text, const char *says, struct err *e)
{
	const struct script_source src = {.name = (char *)"t",
					  .path = (char *)(uintptr_t)path,
					  .text = (char *)(uintptr_t)text};
	const struct sandbox_job job = {.src = &src};
	double cpu_s = children_cpu_s();
	struct json *value;

	if (sandbox_run(NULL, &job, 1, &value, e) != -ERR_RECIPE)
		fail_msg("%s was not refused (%s)", path, e->text);
	if (!is_told(e->text, says))
		fail_msg("%s: expected \"%s\", got: %s", path, says, e->text);
	assert_true(children_cpu_s() - cpu_s < SANDBOX_CPU_S + 1);
}

static void test_stopped(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *path = xasprintf(DIR_OF_THEM "/%s.lua", cases[i].name);
		struct buf text = {0};
		struct err e = {0};

		if (cases[i].slow && !long_run())
			continue;
		assert_ok(fs_read(path, 1 << 20, &text, &e));
		stop(path, text.data, cases[i].says, &e);
		check_place(path, cases[i].line, e.text);
		buf_free(&text);
	}
}

/* Too long for a file: nested deeper than any, where Lua's parser has lost its place, and of one
 * line that hardly ends. */
static void test_large_sources(void **state)
{
	struct buf deep = {0}, wide = {0};
	struct err e = {0};

	(void)state;
	buf_str(&deep, "return\n");
	for (int i = 0; i < 200000; i++)
		buf_char(&deep, i % 2 ? '{' : '(');
	stop("/deep.lua", deep.data, "/deep.lua: C stack overflow", &e);
	buf_str(&wide, "return\n{ ");
	for (int i = 0; i < 60000; i++)
		buf_str(&wide, "{0},");
	buf_str(&wide, "}");
	stop("/wide.lua", wide.data, "more than 100000 values", &e);
	check_place("/wide.lua", 2, e.text);
	buf_free(&deep);
	buf_free(&wide);
}

static void test_all_are_listed(void **state)
{
	DIR *d = opendir(DIR_OF_THEM);
	size_t n = 0;

	(void)state;
	assert_non_null(d);
	for (struct dirent *f; (f = readdir(d)) != NULL;)
		n += f->d_name[0] != '.';
	closedir(d);
	assert_int_equal(n, ARRAY_LEN(cases));
}

#ifndef __has_feature /* clang's word for it */
#define __has_feature(what) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

/* The children's largest; tools that check memory take several times as much. */
static void test_memory(void **state)
{
	struct rusage u;

	(void)state;
	getrusage(RUSAGE_CHILDREN, &u);
	if (!sanitized && !getenv("RUN_WITH"))
		assert_in_range(u.ru_maxrss, 1, RSS_MAX_KB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_listed),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_large_sources),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
