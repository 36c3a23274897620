/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"

/* Long and short ones, with a part in common, one within another, and one that repeats itself. */
static const char *const words[] = {"%|",    "{'",      "x",        "NCCL ",     " via ",
				    "iter ", "elapsed", "elapse",   "aaaaaaaaa", "time (ms) |",
				    "abcab", "abcabc",  "] step=9", "::::::"};

static struct trigger *all_words(void)
{
	struct trigger *t = trigger_new();

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		trigger_add(t, words[i], i);
	return t;
}

static uint32_t one_by_one(struct span line)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		found |= (uint32_t)span_has(line, words[i]) << i;
	return found;
}

static void check(const struct trigger *t, const char *text, size_t n)
{
	_cleanup_free_ char *own = xmalloc(n + !n); /* an overrun is seen */

	memcpy(own, text, n);
	for (uint32_t known = 0; known < 8; known++)
		assert_int_equal(trigger_scan(t, (struct span){own, n}, known),
				 known | one_by_one((struct span){own, n}));
}

/* Each word at each place of lines of each length, whole and without its last byte. */
static void test_places(void **state)
{
	struct trigger *t = all_words();
	char line[40];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		for (size_t at = 0; at + strlen(words[i]) <= sizeof(line); at++) {
			size_t k = strlen(words[i]);

			memset(line, '.', sizeof(line));
			memcpy(line + at, words[i], k);
			for (size_t n = at; n <= sizeof(line); n++)
				check(t, line, n);
		}
	check(t, "", 0);
	trigger_free(t);
}

/* Lines made of pieces of the words. */
static void test_any_line(void **state)
{
	struct trigger *t = all_words();
	struct rng r = rng_at(5, 0, 0, 0);

	(void)state;
	for (int k = 0; k < 20000; k++) {
		char line[96];
		size_t n = 0;

		while (n < sizeof(line) && rng_below(&r, 12)) {
			const char *w = words[rng_below(&r, ARRAY_LEN(words))];
			size_t from = rng_below(&r, strlen(w)),
			       to = from + 1 + rng_below(&r, strlen(w) - from);

			for (; from < to && n < sizeof(line); from++)
				line[n++] = w[from];
		}
		check(t, line, n);
	}
	trigger_free(t);
}

static void test_one_bit_of_many_words(void **state)
{
	struct trigger *t = trigger_new();

	(void)state;
	trigger_add(t, "seq_length", 3);
	trigger_add(t, "iteration", 3);
	trigger_add(t, "time (ms)", 31);
	assert_int_equal(trigger_scan(t, span_of(" iteration 1 of seq_length"), 0), 8);
	assert_int_equal(trigger_scan(t, span_of("time (ms) of an iteration"), 0),
			 8 | UINT32_C(1) << 31);
	assert_int_equal(trigger_scan(t, span_of("iteratio time (ms"), 0), 0);
	trigger_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_any_line),
		cmocka_unit_test(test_one_bit_of_many_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
