/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/agent/stepcount.h"

static struct stepcount *count_of(struct block_window *w)
{
	struct stepcount *s = NULL;
	struct err e = {0};

	assert_ok(stepcount_new(w, &s, &e));
	stepcount_reset(s, 50);
	return s;
}

static void line(struct stepcount *s, const char *text, int64_t t_us)
{
	stepcount_line(s, text, strlen(text), t_us);
}

static void the_window_begins_and_ends_with_its_steps(void **state)
{
	struct block_window w = {.pattern = (char *)"^step \\d+", .warmup = 2, .steps = 3};
	struct stepcount *s = count_of(&w);

	(void)state;
	line(s, "step 1", 100);
	line(s, "no step 9", 101);
	assert_int_equal(stepcount_start_us(s), 0);
	line(s, "step 2", 200);
	assert_int_equal(stepcount_start_us(s), 200);
	assert_false(stepcount_measuring(s));
	line(s, "step 3", 300);
	assert_true(stepcount_measuring(s));
	line(s, "step 4", 400);
	assert_false(stepcount_full(s));
	line(s, "step 5", 500);
	assert_true(stepcount_full(s));
	line(s, "step 6", 600);
	assert_int_equal(stepcount_end_us(s), 500);
	assert_int_equal(stepcount_steps(s), 6);
	stepcount_reset(s, 1);
	assert_int_equal(stepcount_steps(s), 0);
	assert_false(stepcount_full(s));
	stepcount_free(s);
}

static void without_warm_up_it_begins_with_the_trial(void **state)
{
	struct block_window w = {.pattern = (char *)"s", .warmup = 0, .steps = 1};
	struct stepcount *s = count_of(&w);

	(void)state;
	assert_int_equal(stepcount_start_us(s), 50);
	line(s, "s", 100);
	assert_true(stepcount_full(s));
	stepcount_free(s);
}

static void without_steps_it_never_ends(void **state)
{
	struct block_window w = {.pattern = (char *)"s", .warmup = 1, .steps = 0};
	struct stepcount *s = count_of(&w);

	(void)state;
	for (int i = 0; i < 10; i++)
		line(s, "s", i);
	assert_false(stepcount_full(s));
	assert_int_equal(stepcount_steps(s), 10);
	stepcount_free(s);
}

static void a_bad_pattern_is_explained(void **state)
{
	struct block_window w = {.pattern = (char *)"step (\\d+", .steps = 1};
	struct stepcount *s = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(stepcount_new(&w, &s, &e), -ERR_PARSE);
	assert_null(s);
	assert_contains(e.text, "window.pattern \"step (\\d+\": missing closing parenthesis");
}

/* Exponential without limits: this test would not come back. */
static void a_pattern_cannot_stall_the_agent(void **state)
{
	struct block_window w = {.pattern = (char *)"^(a+)+$", .steps = 1};
	struct stepcount *s = count_of(&w);
	char text[64];

	(void)state;
	memset(text, 'a', sizeof text);
	text[63] = 'b';
	stepcount_line(s, text, sizeof text, 1);
	assert_int_equal(stepcount_steps(s), 0);
	assert_int_equal(stepcount_limited_lines(s), 1);
	stepcount_free(s);
}

static void bytes_that_are_not_text_are_matched_as_bytes(void **state)
{
	struct block_window w = {.pattern = (char *)"step", .steps = 1};
	struct stepcount *s = count_of(&w);

	(void)state;
	stepcount_line(s, "\xff\x00 step\xfe", 8, 1);
	assert_int_equal(stepcount_steps(s), 1);
	stepcount_free(s);
}

/* --- metrics.jsonl ---------------------------------------------------------------------- */

static void append(const char *path, const char *text)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	fclose(f);
}

static void lines_with_a_step_are_counted_as_they_come(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "metrics.jsonl");
	struct block_window w = {
		.pattern = (char *)"", .source = WINDOW_METRICS, .warmup = 1, .steps = 2};
	struct stepcount *s = count_of(&w);

	(void)state;
	stepcount_poll_metrics(s, path, 1); /* not there yet */
	append(path, "{\"step\":1}\n{\"loss\":2}\n{\"st");
	stepcount_poll_metrics(s, path, 2);
	assert_int_equal(stepcount_steps(s), 1);
	append(path, "ep\":2");
	stepcount_poll_metrics(s, path, 3);
	assert_int_equal(stepcount_steps(s), 1); /* the line is not whole */
	append(path, "}\n");
	stepcount_poll_metrics(s, path, 4);
	assert_int_equal(stepcount_steps(s), 2);
	append(path, "{\"a\":0,\"step\" : 3}\n");
	stepcount_poll_metrics(s, path, 5);
	assert_true(stepcount_full(s));
	assert_int_equal(stepcount_start_us(s), 2);
	assert_int_equal(stepcount_end_us(s), 5);
	stepcount_free(s);
}

/* In every way of cutting the text into appends. */
static void cuts_do_not_change_the_count(void **state)
{
	static const char text[] = "{\"step\":1}\n{\"ste\":1,\"p\":2}\n{\"x\":0,\"step\":2}"
				   "\n\"step\n\"\n{\"step\":3}\n";
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "m");
	struct block_window w = {.pattern = (char *)"", .source = WINDOW_METRICS, .steps = 9};

	(void)state;
	for (size_t cut = 1; cut < sizeof text - 1; cut++)
		for (size_t second = cut; second < sizeof text - 1; second += 3) {
			struct stepcount *s = count_of(&w);
			_cleanup_free_ char *a = xstrndup(text, cut);
			_cleanup_free_ char *b = xstrndup(text + cut, second - cut);

			append(path, a);
			stepcount_poll_metrics(s, path, 1);
			append(path, b);
			stepcount_poll_metrics(s, path, 1);
			append(path, text + second);
			stepcount_poll_metrics(s, path, 1);
			assert_int_equal(stepcount_steps(s), 3);
			stepcount_free(s);
			remove(path);
		}
}

/* The loss from one place and the rate from another, four ranks of which two lag behind, a number
 * that is none, a step far back in its line. */
static void a_step_that_several_lines_tell_of_is_counted_once(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "m");
	struct block_window w = {.pattern = (char *)"", .source = WINDOW_METRICS, .steps = 9};
	struct stepcount *s = count_of(&w);
	struct buf far = {0};

	(void)state;
	append(path, "{\"step\": 7, \"loss\": 2}\n{\"rate\": 5, \"step\": 7}\n");
	stepcount_poll_metrics(s, path, 1);
	assert_int_equal(stepcount_steps(s), 1);
	append(path, "{\"step\":8,\"rank\":0}\n{\"step\":7,\"rank\":2}\n{\"step\":8,\"rank\":1}\n"
		     "{\"step\":9,\"rank\":0}\n{\"step\":7,\"rank\":3}\n{\"step\":8,\"rank\":2}\n");
	stepcount_poll_metrics(s, path, 1);
	assert_int_equal(stepcount_steps(s), 3);
	append(path, "{\"step\": \"x\"}\n{\"step\": null}\n"); /* as a line each */
	stepcount_poll_metrics(s, path, 1);
	assert_int_equal(stepcount_steps(s), 5);
	for (int i = 0; i < 2; i++) {
		buf_str(&far, "{\"x\": \"");
		for (int k = 0; k < 5000; k++)
			buf_char(&far, 'x');
		buf_str(&far, "\", \"step\": 10}\n");
	}
	append(path, far.data);
	stepcount_poll_metrics(s, path, 1);
	assert_int_equal(stepcount_steps(s), 7);
	buf_free(&far);
	stepcount_free(s);
}

static void a_file_that_is_written_anew_is_read_anew(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "m");
	struct block_window w = {.pattern = (char *)"", .source = WINDOW_METRICS, .steps = 9};
	struct stepcount *s = count_of(&w);

	(void)state;
	append(path, "{\"step\":1}\n{\"step\":2}\n");
	stepcount_poll_metrics(s, path, 1);
	assert_int_equal(fs_write_atomic(path, "{\"step\":3}\n", 11, 0600, NULL), 0);
	stepcount_poll_metrics(s, path, 1);
	assert_int_equal(stepcount_steps(s), 3);
	stepcount_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_window_begins_and_ends_with_its_steps),
		cmocka_unit_test(without_warm_up_it_begins_with_the_trial),
		cmocka_unit_test(without_steps_it_never_ends),
		cmocka_unit_test(a_bad_pattern_is_explained),
		cmocka_unit_test(a_pattern_cannot_stall_the_agent),
		cmocka_unit_test(bytes_that_are_not_text_are_matched_as_bytes),
		cmocka_unit_test(lines_with_a_step_are_counted_as_they_come),
		cmocka_unit_test(cuts_do_not_change_the_count),
		cmocka_unit_test(a_step_that_several_lines_tell_of_is_counted_once),
		cmocka_unit_test(a_file_that_is_written_anew_is_read_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
