/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plots on a terminal, character by character. */
#include "tests/unit/check.h"

#include "orchestrator/report/plot.h"

static char *drawn(struct plot p)
{
	struct buf b = {0};

	p.left = "first";
	p.right = "last";
	p.row_name[PLOT_CHANGES] = "change";
	p.row_name[PLOT_EVENTS] = "event";
	plot_draw(&p, &b);
	return buf_take(&b);
}

static void test_ascii(void **state)
{
	const double x[] = {0, 1, 2, 7}, y[] = {10, 10, 30, 20};
	const struct plot_mark marks[] = {{2, PLOT_CHANGES, '1', NULL},
					  {7, PLOT_EVENTS, 'a', "\033[1m"}};
	_cleanup_free_ char *text = drawn((struct plot){.x = x,
							.y = y,
							.n = 4,
							.marks = marks,
							.n_marks = 2,
							.width = 27,
							.height = 3,
							.ascii = true});

	(void)state;
	assert_string_equal(text, "       30 +    *\n"
				  "          |    :          *\n"
				  "       10 +* * :\n"
				  "          +----------------\n"
				  "           first       last\n"
				  "    change     1\n"
				  "     event                a\n");
}

static void test_braille_and_colour(void **state)
{
	const double x[] = {0, 1}, y[] = {0, 1};
	const struct plot_mark mark = {0.5, PLOT_CHANGES, '1', "\033[31m"};
	struct plot p = {.x = x,
			 .y = y,
			 .n = 2,
			 .marks = &mark,
			 .n_marks = 1,
			 .width = 1, /* never narrower than it can be */
			 .height = 2};
	_cleanup_free_ char *plain = drawn(p), *coloured = NULL;

	(void)state;
	p.colour = true;
	coloured = drawn(p);
	/* the last dot is the upper one at the right, the first the lower one at the left */
	assert_string_equal(plain, "        1 ┤        ┊      ⠈\n"
				   "        0 ┤⡀       ┊\n"
				   "          └────────────────\n"
				   "           first       last\n"
				   "    change         1\n");
	assert_null(strchr(plain, '\033'));
	assert_contains(coloured, "\033[31m1\033[0m");
	assert_contains(coloured, "\033[31m┊\033[0m");
	assert_contains(coloured, "\033[36m⡀\033[0m");
}

static void test_one_point_and_equal_values(void **state)
{
	const double x[] = {3, 4}, y[] = {5, 5}, zero[] = {0, 0};
	struct plot p = {.x = x, .y = y, .n = 1, .width = 27, .height = 3, .ascii = true};
	_cleanup_free_ char *one = drawn(p), *equal = NULL, *nothing = NULL;

	(void)state;
	p.n = 2;
	equal = drawn(p);
	p.y = zero;
	nothing = drawn(p);
	assert_contains(one, "          |        *\n");
	assert_null(strstr(one, "last")); /* one night has one date */
	assert_contains(equal, "     5.05 +\n          |*              *\n     4.95 +\n");
	assert_contains(nothing, "        1 +\n          |*              *\n       -1 +\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ascii),
		cmocka_unit_test(test_braille_and_colour),
		cmocka_unit_test(test_one_point_and_equal_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
