/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Columns on a terminal: what is wide, what is narrow, and what is no width at all. */
#include "tests/unit/check.h"

#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/text.h"

static void wide_characters_take_two_columns(void **state)
{
	(void)state;
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("busbw"), 5);
	assert_int_equal(text_width("吞吐量"), 6);
	assert_int_equal(text_width("步时 p99："), 10); /* a full-width colon is wide */
	assert_int_equal(text_width("é"), 1);
	assert_int_equal(text_width("e\xcc\x81"), 1); /* a combining accent */
	assert_int_equal(text_width("→…"), 2);
}

static void a_beginning_is_of_whole_characters(void **state)
{
	(void)state;
	assert_int_equal(text_fit("吞吐量", 6), 9);
	assert_int_equal(text_fit("吞吐量", 5), 6);
	assert_int_equal(text_fit("吞吐量", 1), 0);
	assert_int_equal(text_fit("ab吞", 3), 2);
	assert_int_equal(text_fit("ab", 9), 2);
	assert_int_equal(text_fit("a\xff", 9), 1); /* no UTF-8 from there on */
}

static void cells_are_padded_by_columns(void **state)
{
	struct buf b = {0};

	(void)state;
	text_cell(&b, "指标", 6);
	text_cell(&b, "ab", 3);
	text_cell_right(&b, "值", 4);
	text_cell_right(&b, "too long", 4);
	assert_string_equal(b.data, "指标  ab   值too long");
	buf_clear(&b);
	text_cell(&b, "", 2);
	text_cell(&b, "\x1b", 6); /* what is shown counts: four characters */
	assert_string_equal(b.data, "  \\x1b  ");
	buf_free(&b);
}

static void labels_of_pictures_are_cut_by_columns(void **state)
{
	_cleanup_free_ char *whole = html_figure_label("默认配置自比", 12);
	_cleanup_free_ char *cut = html_figure_label("默认配置自比", 11);
	_cleanup_free_ char *mixed = html_figure_label("a默b认c配d置e", 8);

	(void)state;
	assert_string_equal(whole, "默认配置自比");
	assert_string_equal(cut, "默认…自比");
	assert_true(text_width(mixed) <= 8);
	assert_non_null(strstr(mixed, "…"));
}

static void test_a_string_of_lua_is_one_line(void **state)
{
	struct buf b = {0};

	(void)state;
	text_lua(&b, "a \"b\" \\ c\nd\x01"
		     "2\x7f\xe4\xb8\xad");
	assert_string_equal(b.data, "\"a \\\"b\\\" \\\\ c\\nd\\0012\\127\xe4\xb8\xad\"");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_string_of_lua_is_one_line),
		cmocka_unit_test(wide_characters_take_two_columns),
		cmocka_unit_test(a_beginning_is_of_whole_characters),
		cmocka_unit_test(cells_are_padded_by_columns),
		cmocka_unit_test(labels_of_pictures_are_cut_by_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
