/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/locate.h"

static const char text[] = "-- return { name = 1 }\n"                                      /* 1 */
			   "local s = [==[ return { ]] x } ]==] .. 'a\\'}' .. \"\\\"{\"\n" /* 2 */
			   "local function f(a, b)\n"                                      /* 3 */
			   "	if a then return { name = b } end\n"                       /* 4 */
			   "	for i = 1, 2 do repeat until a == b end\n"                 /* 5 */
			   "end\n"                                                         /* 6 */
			   "return { -- the one\n"                                         /* 7 */
			   "	name = 'c',\n"                                             /* 8 */
			   "	['b c'] = 1; [3] = 9,\n"                                   /* 9 */
			   "	knobs = {\n"                                               /* 10 */
			   "		'a', 'b',\n"                                       /* 11 */
			   "		{ name = 'c',\n"                                   /* 12 */
			   "		  values = { 1,\n"                                 /* 13 */
			   "			2, 3 } },\n"                               /* 14 */
			   "		num_workers = { 1,\n"                              /* 15 */
			   "			2 },\n"                                    /* 16 */
			   "		{ f = function(x, y) return x, y end, g = 1,\n"    /* 17 */
			   "		  h = 2 },\n"                                      /* 18 */
			   "		--[[ 'gone', ]] knob('e', {\n"                     /* 19 */
			   "			values = 1 }),\n"                          /* 20 */
			   "		f { deep = {\n"                                    /* 21 */
			   "			er = 1 } },\n"                             /* 22 */
			   "	},\n"                                                      /* 23 */
			   "	last = 1 == 2 and 3,\n"                                    /* 24 */
			   "}\n";

static void test_lines(void **state)
{
	static const struct {
		const char *path;
		int line;
	} cases[] = {
		{"", 7},
		{"name", 8},
		{"[\"b c\"]", 9},
		{"knobs", 10},
		{"knobs[1]", 11},
		{"knobs[2]", 11},
		{"knobs[3]", 12},
		{"knobs[3].name", 12},
		{"knobs[3].values", 13},
		{"knobs[3].values[1]", 13},
		{"knobs[3].values[3]", 14},
		{"knobs.num_workers", 15},
		{"knobs.num_workers[2]", 16},
		{"knobs[4].g", 17},
		{"knobs[4].h", 18},
		{"knobs[5]", 19},
		{"knobs[5].values", 20},
		{"knobs[6].deep", 21},
		{"knobs[6].deep.er", 22},
		{"last", 24},
		/* What is not there gets the line of the table that it is missing in. */
		{"nothing", 7},
		{"knobs.nothing.at.all", 10},
		{"knobs[9]", 10},
		{"knobs[3].nothing", 12},
		{"name.of.a.text", 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int line = locate_line(text, cases[i].path);

		if (line != cases[i].line)
			fail_msg("%s: line %d, expected %d", cases[i].path, line, cases[i].line);
	}
}

static void test_variables(void **state)
{
	(void)state;
	assert_int_equal(locate_line("local c = { a = 1,\n b = 2 }\nreturn c\n", "b"), 2);
	assert_int_equal(
		locate_line("local c = {}\nlocal d = {\n x = {\n y = 1 } }\nc = d\nreturn c\n",
			    "x.y"),
		4);
	assert_int_equal(locate_line("local w = {\n s = 1 }\nreturn {\n a = w }\n", "a.s"), 2);
	assert_int_equal(locate_line("return setmetatable({\n a = 1 }, {})\n", "a"), 2);
	assert_int_equal(locate_line("return f 'x' {\n a = 1 }\n", "a"), 1);
	assert_int_equal(locate_line("return a\n", "x"), 1);
	assert_int_equal(locate_line("local a = b\nlocal b = a\nreturn a\n", "x"), 1);
}

/* Texts that are no Lua: any line will do, but it must come back. */
static void test_broken_texts(void **state)
{
	static const char *const texts[] = {"",
					    "return",
					    "return {",
					    "}}}}",
					    "return }{ a",
					    "[[",
					    "[==[ ]=]",
					    "'abc",
					    "\"\\",
					    "--[[",
					    "--",
					    "return { [",
					    "return { a =",
					    "return { a = [=",
					    "end end until",
					    "return ((((",
					    "return {,,,}",
					    "return { [1",
					    "\\",
					    "return f("};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_true(locate_line(texts[i], "a.b[1]") >= 1);
		assert_true(locate_line(texts[i], "") >= 1);
	}
	assert_int_equal(locate_line("return { a = 1 }", "][.."), 1);
}

static void test_paths(void **state)
{
	struct buf b = {0};
	struct fieldpath_part part;
	const char *at;

	(void)state;
	fieldpath_key(&b, "guards");
	fieldpath_key(&b, "a.\"b\\");
	fieldpath_index(&b, 12);
	fieldpath_key(&b, "x_1");
	fieldpath_key(&b, "3");
	assert_string_equal(b.data, "guards[\"a.\\\"b\\\\\"][12].x_1[3]");
	at = b.data;
	assert_true(fieldpath_next(&at, &part) && str_eq(part.name, "guards") && !part.index);
	assert_true(fieldpath_next(&at, &part) && str_eq(part.name, "a.\"b\\"));
	assert_true(fieldpath_next(&at, &part) && part.index == 12 && !*part.name);
	assert_true(fieldpath_next(&at, &part) && str_eq(part.name, "x_1"));
	assert_true(fieldpath_next(&at, &part) && part.index == 3);
	assert_false(fieldpath_next(&at, &part));
	at = "[99999999999999999999999]";
	assert_false(fieldpath_next(&at, &part));
	at = "[0]";
	assert_false(fieldpath_next(&at, &part));
	buf_free(&b);
}

static void test_get(void **state)
{
	static const char json[] = "{\"a\": [1, {\"b\": 2}], \"mixed\": {\"1\": \"x\", \"y\": 3}}";
	struct json *j = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(json_parse("t", json, strlen(json), &j, &e));
	assert_ptr_equal(fieldpath_get(j, ""), j);
	assert_int_equal(json_i64(fieldpath_get(j, "a[1]"), 0), 1);
	assert_int_equal(json_i64(fieldpath_get(j, "a[2].b"), 0), 2);
	assert_string_equal(json_text(fieldpath_get(j, "mixed[1]"), ""), "x");
	assert_int_equal(json_i64(fieldpath_get(j, "mixed.y"), 0), 3);
	assert_null(fieldpath_get(j, "a[3]"));
	assert_null(fieldpath_get(j, "a.b"));
	assert_null(fieldpath_get(j, "a[1].b"));
	assert_null(fieldpath_get(j, "nothing.more"));
	assert_null(fieldpath_get(j, "a]"));
	json_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),        cmocka_unit_test(test_variables),
		cmocka_unit_test(test_broken_texts), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
