/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The view of a campaign, character by character: UPDATE_GOLDEN=1 writes tests/golden/view anew, to
 * be read. */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/base/str.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/cmd/screen.h"
#include "orchestrator/cmd/view.h"
#include "orchestrator/report/text.h"

#define START_US INT64_C(1800000000000000)
#define S        INT64_C(1000000)

static char *heap(const char *s)
{
	return xstrdup(s);
}

/* In the middle of a confirm stage, everything known. */
static void confirm(struct view *v)
{
	static const struct view_interval effect[] = {{0.021, -0.09, 0.14, 2},
						      {0.034, -0.019, 0.090, 3},
						      {0.037, 0.004, 0.071, 4},
						      {0.039, 0.012, 0.066, 5},
						      {0.039, 0.021, 0.057, 6}};
	static const double trials[] = {412, 411, 398, 409, 396, NAN, 410, 397, 399, 396.5};

	*v = (struct view){.id = 3,
			   .name = heap("loader"),
			   .scheduler = heap("slurm"),
			   .state = "running",
			   .running = true,
			   .created_us = START_US,
			   .deadline_us = START_US + 14400 * S,
			   .driver = heap("process 4711 on login1"),
			   .step = 4,
			   .steps = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
			   .stage = "confirm",
			   .round = 1,
			   .knob = heap("num_workers"),
			   .from = heap("0"),
			   .to = heap("4"),
			   .arms = 1,
			   .blocks_done = 6,
			   .blocks_planned = 12,
			   .blocks_running = 2,
			   .at_most = true,
			   .n_effect = ARRAY_LEN(effect),
			   .band = 0.01,
			   .objective = heap("step_time_ms"),
			   .unit = heap("ms"),
			   .down = true,
			   .n_trials = ARRAY_LEN(trials),
			   .trials_all = 57,
			   .jobs_running = 1,
			   .jobs_waiting = 1,
			   .nodes = heap("n03 and 3 more"),
			   .block_s = 138,
			   .block_start_us = START_US + 2400 * S,
			   .node_s = 11500,
			   .spent_node_s = 11500,
			   .budget_node_s = 40 * 3600,
			   .budget_trials = 400,
			   .spent_trials = 57,
			   .budget_wall_s = 14400,
			   .alpha = 0.05,
			   .alpha_spent = 0.01,
			   .tests_left = 2,
			   .candidates = 7,
			   .candidates_left = 3};
	v->effect = xcalloc(v->n_effect, sizeof *v->effect);
	memcpy(v->effect, effect, sizeof effect);
	v->trials = xcalloc(v->n_trials, sizeof *v->trials);
	memcpy(v->trials, trials, sizeof trials);
}

static char *joined(const struct view *v, int64_t at_s, struct view_style style)
{
	struct strv lines = {0};
	struct buf b = {0};

	view_lines(v, START_US + at_s * S, &style, &lines);
	for (size_t i = 0; i < lines.n; i++)
		buf_printf(&b, "%s\n", lines.v[i]);
	strv_free(&lines);
	return buf_take(&b);
}

/* Columns of the longest line. */
static size_t widest(const char *text)
{
	size_t most = 0;

	for (const char *end; *text; text = end + 1) {
		_cleanup_free_ char *line = NULL;
		size_t columns;

		end = strchr(text, '\n');
		line = xstrndup(text, (size_t)(end - text));
		columns = text_width(line);
		most = columns > most ? columns : most;
	}
	return most;
}

static void against_golden(const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("tests/golden/view/%s.txt", name);
	struct buf b = {0};
	struct err e = {0};

	if (getenv("UPDATE_GOLDEN"))
		assert_ok(fs_write_atomic(path, text, strlen(text), 0644, &e));
	assert_ok(fs_read(path, 1 << 20, &b, &e));
	assert_string_equal(text, b.data);
	buf_free(&b);
}

static void test_golden(void **state)
{
	static const size_t widths[] = {40, 80, 200, 0};
	struct view v;

	(void)state;
	confirm(&v);
	for (size_t i = 0; i < ARRAY_LEN(widths); i++)
		for (int ascii = 0; ascii < 2; ascii++) {
			_cleanup_free_ char *text = joined(
				&v, 2460, (struct view_style){.width = widths[i], .ascii = ascii});
			_cleanup_free_ char *name = xasprintf("%zu-%s", widths[i],
							      ascii ? "ascii" : "utf8");

			against_golden(name, text);
			assert_null(strchr(text, '\033'));
			if (widths[i])
				assert_in_range(widest(text), 1, widths[i] - 1);
			for (const char *p = text; ascii && *p; p++)
				assert_in_range(*p, '\n', '~');
		}
	view_done(&v);
}

/* Without its colours the coloured picture is the plain one. */
static void test_colours_take_no_columns(void **state)
{
	_cleanup_free_ char *plain = NULL, *coloured = NULL;
	char *to;
	struct view v;

	(void)state;
	confirm(&v);
	plain = joined(&v, 2460, (struct view_style){.width = 80});
	coloured = joined(&v, 2460, (struct view_style){.width = 80, .colour = true});
	assert_contains(coloured, "\033[32m+3.9 % [+2.1, +5.7]\033[0m");
	to = coloured;
	for (const char *p = coloured; *p; p++) {
		if (*p == '\033')
			p = strchr(p, 'm');
		else
			*to++ = *p;
	}
	*to = '\0';
	assert_string_equal(plain, coloured);
	view_done(&v);
}

static void set(char **field, const char *text)
{
	free(*field);
	*field = xstrdup(text);
}

/* At every width no line is longer, whatever the names are, and nothing in them acts. */
static void test_hostile_names_at_every_width(void **state)
{
	static const char *const names[] = {
		"\033[2J\033]0;owned\a",
		"\xe5\x9f\xba\xe7\xba\xbf\xe7\x93\xb6\xe9\xa2\x88",
		"a\nb\tc",
		"\xff\xfe\x80",
		"e\xcc\x81\xe2\x80\xae",
		"",
		"\xf0\x9f\x9a\x80\xf0\x9f\x9a\x80",
		"a very long name that goes on and on and on and on and on and on and on and on"};
	struct view v;

	(void)state;
	confirm(&v);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		set(&v.name, names[i]);
		set(&v.knob, names[i]);
		set(&v.to, names[i]);
		set(&v.nodes, names[i]);
		set(&v.objective, names[i]);
		set(&v.driver, names[i]);
		for (size_t width = 1; width < 130; width += 3)
			for (int ascii = 0; ascii < 2; ascii++) {
				_cleanup_free_ char *text = joined(
					&v, 2460,
					(struct view_style){.width = width, .ascii = ascii});

				assert_null(strchr(text, '\033'));
				assert_null(strchr(text, '\a'));
				assert_in_range(widest(text), 1, width < 21 ? 20 : width - 1);
			}
	}
	view_done(&v);
}

static void test_time_left_and_its_basis(void **state)
{
	_cleanup_free_ char *running = NULL, *idle = NULL, *as_before = NULL, *long_since = NULL;
	struct view v;

	(void)state;
	confirm(&v);
	running = view_left_text(&v, START_US + 2460 * S);
	/* a minute is over */
	assert_string_equal(running, "about 13 min: at most 6 blocks at 2.3 min");
	long_since = view_left_text(&v, START_US + 9999 * S); /* a block is never counted twice */
	assert_string_equal(long_since, "about 12 min: at most 6 blocks at 2.3 min");
	v.block_start_us = 0;
	idle = view_left_text(&v, START_US + 2460 * S);
	assert_string_equal(idle, "about 14 min: at most 6 blocks at 2.3 min");
	v.at_most = false;
	v.blocks_done = 11;
	v.basis = heap("aa");
	as_before = view_left_text(&v, START_US);
	assert_string_equal(as_before, "about 2 min: 1 block at 2.3 min, as in aa");
	v.block_s = 0;
	assert_null(view_left_text(&v, START_US));
	assert_true(isnan(view_left_s(&v, START_US)));
	view_done(&v);
}

/* What nothing is known of is left out, not shown as zero. */
static void test_before_and_after(void **state)
{
	_cleanup_free_ char *begun = NULL, *failed = NULL;
	struct view v = {.id = 1,
			 .name = heap("x"),
			 .scheduler = heap("local"),
			 .state = "running",
			 .running = true,
			 .created_us = START_US};

	(void)state;
	begun = joined(&v, 1, (struct view_style){.width = 80, .ascii = true});
	assert_string_equal(
		begun,
		"-- x -- campaign 1 on local, running ------------------------------- 0:00:01 --\n"
		". baseline  . hypothesis  . experiment  . validation  . fixing\n"
		"last     nothing was begun yet\n"
		"budget   0 node-s\n"
		"driver   nobody drives it\n");
	v.running = false;
	v.state = "failed";
	v.step = 1;
	v.ended_us = START_US + 60 * S;
	v.reason = heap("no trial gave a value");
	v.note = heap("aa done: nothing was measured");
	failed = joined(&v, 9999, (struct view_style){.ascii = true});
	assert_contains(failed, " 0:01:00 ");
	assert_contains(failed, "\nx baseline");
	assert_contains(failed, "\nlast     aa done: nothing was measured\n");
	assert_contains(failed, "\nwhy      no trial gave a value\n");
	assert_null(strstr(failed, "left"));
	assert_null(strstr(failed, "driver"));
	view_done(&v);
}

/* Two pairs give an interval that is far too wide to be drawn whole. */
static void test_an_interval_beyond_the_scale(void **state)
{
	static const struct view_interval huge = {0.02, -3, 40, 2};
	_cleanup_free_ char *text = NULL;
	struct view v;

	(void)state;
	confirm(&v);
	v.effect[0] = huge;
	v.n_effect = 1;
	text = joined(&v, 0, (struct view_style){.width = 60, .ascii = true});
	assert_contains(text, "-100 % <==o==");
	assert_contains(text, "> +1000 %");
	view_done(&v);
}

/* -- on a terminal ----------------------------------------------------------------------------- */

static void test_screen(void **state)
{
	char *text = NULL;
	size_t len = 0;
	struct screen s = {.out = open_memstream(&text, &len)};
	_cleanup_(strv_free) struct strv lines = {0};

	(void)state;
	strv_add(&lines, "one");
	strv_add(&lines, "two");
	screen_clear(&s); /* nothing is there: nothing is written */
	assert_int_equal(len, 0);
	screen_draw(&s, &lines, 24);
	assert_string_equal(text, "\r\033[K\none\033[K\ntwo\033[K\033[J\r\033[2A");
	screen_say(&s, "said\n");
	assert_string_equal(text + len - 9, "\r\033[Jsaid\n");
	screen_draw(&s, &lines, 1); /* a low terminal */
	assert_string_equal(text + len - 15, "\none\033[K\033[J\r\033[1A");
	screen_clear(&s);
	assert_int_equal(s.shown, 0);
	fclose(s.out);
	free(text);
}

static void test_screen_of_a_terminal_that_is_gone(void **state)
{
	struct screen s = {.out = fopen("/dev/full", "w")};
	_cleanup_(strv_free) struct strv lines = {0};

	(void)state;
	assert_non_null(s.out);
	strv_add(&lines, "one");
	screen_draw(&s, &lines, 24);
	assert_false(s.gone); /* a full disk is no terminal: it is told at the end */
	assert_true(ferror(s.out));
	fclose(s.out);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_colours_take_no_columns),
		cmocka_unit_test(test_hostile_names_at_every_width),
		cmocka_unit_test(test_time_left_and_its_basis),
		cmocka_unit_test(test_before_and_after),
		cmocka_unit_test(test_an_interval_beyond_the_scale),
		cmocka_unit_test(test_screen),
		cmocka_unit_test(test_screen_of_a_terminal_that_is_gone),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
