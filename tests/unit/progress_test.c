/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live line: how far a stage is and how long it may still take, however its blocks share jobs.
 */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/cmd/progress.h"

#define START_US INT64_C(1800000000000000)

struct screen {
	struct progress_view view;
	char *text;
	size_t len;
};

static void screen_open(struct screen *s)
{
	FILE *out = open_memstream(&s->text, &s->len);

	assert_non_null(out);
	progress_init(&s->view, out, false, false);
	s->view.style = STYLE_LIVE;
	s->view.start_us = START_US;
}

static void screen_close(struct screen *s)
{
	fclose(s->view.out);
	free(s->text);
}

static void tell(struct screen *s, int at_s, const char *stage, int done, const char *text)
{
	const struct progress p = {.kind = PROGRESS_BLOCK,
				   .step = 1,
				   .at_us = START_US + at_s * INT64_C(1000000),
				   .text = text,
				   .stage = stage,
				   .blocks_done = done,
				   .blocks_planned = 12,
				   .est = NAN,
				   .lo = NAN,
				   .hi = NAN};

	progress_tell(&s->view, &p);
}

/* The line as it stands `at_s` seconds after the start. */
static const char *line(struct screen *s, int at_s)
{
	progress_tick(&s->view, START_US + at_s * INT64_C(1000000));
	fflush(s->view.out);
	return strrchr(s->text, '\r');
}

/* Three blocks in one job: the first took 30 s with its warm-up, the others 9 each. */
static void test_every_block_of_a_job_is_timed(void **state)
{
	struct screen s;

	(void)state;
	screen_open(&s);
	tell(&s, 0, "aa", 0,
	     "blocks 1 (attempt 1), 2 (attempt 1), 3 (attempt 1), 4 (attempt 1) started in one allocation");
	assert_contains(line(&s, 5), "aa, block 1 of 12");
	assert_null(strstr(line(&s, 5), "left"));
	tell(&s, 30, "aa", 1, "block 1 done");
	tell(&s, 39, "aa", 2, "block 2 done");
	tell(&s, 48, "aa", 3, "block 3 done, 1 trial failed");
	assert_contains(line(&s, 48), "aa, block 4 of 12");
	assert_contains(line(&s, 48), "at most 2 min left"); /* 9 blocks of 16 s */
	assert_contains(line(&s, 60), "at most 2 min left");
	assert_contains(line(&s, 90), "at most 102 s left"); /* 144 - 42 */
	tell(&s, 96, "aa", 4, "block 4 done");
	assert_contains(line(&s, 96), "aa, block 4 of 12"); /* none runs */
	screen_close(&s);
}

/* Four jobs at a time: what is left is told by how often a block ends, not by how long one takes.
 */
static void test_jobs_beside_each_other(void **state)
{
	struct screen s;

	(void)state;
	screen_open(&s);
	for (int i = 0; i < 4; i++)
		tell(&s, i, "aa", 0, "block 1 (attempt 1) started");
	for (int i = 1; i <= 4; i++)
		tell(&s, 40 + i, "aa", i, "block 1 done");
	assert_contains(line(&s, 44), "at most 88 s left"); /* 8 blocks of 11 s */
	tell(&s, 50, "screen", 0, "block 1 (attempt 1) started");
	assert_null(strstr(line(&s, 50), "left")); /* blocks of another size */
	tell(&s, 60, "confirm", 0, "block 1 (attempt 1) started");
	assert_contains(line(&s, 60), "2 min left"); /* 12 pairs of 11 s, as in the A/A stage */
	screen_close(&s);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_every_block_of_a_job_is_timed),
		cmocka_unit_test(test_jobs_beside_each_other),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
