/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a recipe cannot do. Each of these ends by itself, with a reason that names file and line. */
#include "tests/unit/check.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/script/sandbox.h"

/* Evaluate one text; *value on success. */
static int run(const char *text, struct json **value, struct err *e)
{
	const struct script_source src = {
		.name = (char *)"t", .path = (char *)"/dir/t.lua", .text = (char *)text};
	const struct sandbox_job job = {.src = &src};

	*value = NULL;
	return sandbox_run(NULL, &job, 1, value, e);
}

static void check_value(const char *text, const char *json)
{
	_cleanup_free_ char *got = NULL;
	struct json *value;
	struct err e = {0};

	if (run(text, &value, &e))
		fail_msg("%s: %s", text, e.text);
	got = json_print(value, false);
	json_free(value);
	assert_string_equal(got, json);
}

static void check_refused(const char *text, const char *says)
{
	struct json *value;
	struct err e = {0};

	if (!run(text, &value, &e)) {
		json_free(value);
		fail_msg("%s was allowed", text);
	}
	assert_int_equal(e.code, ERR_RECIPE);
	assert_null(value);
	assert_true(str_starts(e.text, "/dir/t.lua"));
	assert_contains(e.text, says);
}

/* --- values --------------------------------------------------------------------------------- */

static void test_values(void **state)
{
	(void)state;
	check_value("return 1", "1");
	check_value("return 0.5", "0.5");
	check_value("return { 1, 'a', true, {} }", "[1,\"a\",true,[]]");
	check_value("return { b = 1, a = { c = 2 } }", "{\"a\":{\"c\":2},\"b\":1}");
	check_value("return { 'x', y = 1, 'z' }", "{\"1\":\"x\",\"2\":\"z\",\"y\":1}");
	check_value("return { [1] = 1, [2] = 2, [4] = 4 }", "{\"1\":1,\"2\":2,\"4\":4}");
	check_value("return { f = { function() end } }", "{\"f\":[{\"$function\":\"f[1]\"}]}");
	check_value("return { ['a b'] = true }", "{\"a b\":true}");
	check_value("", "null");
}

static void test_values_that_cannot_be_stored(void **state)
{
	(void)state;
	check_refused("return {\n a = 0/0 }", "t.lua:2: a: is not a number");
	check_refused("return { a = {\n b = -1/0 } }", "t.lua:2: a.b: is infinite");
	check_refused("return { 1 << 60 }", "[1]: is a whole number beyond 2^53");
	check_refused("return { a = 'x\\0y' }", "a: is a text with a NUL byte");
	check_refused("return { a = ('x'):rep(100000) }", "a: is a text of more than 64 KiB");
	check_refused("local t = {} t.t = t return t", "is nested too deeply, or holds itself");
	check_refused("local t = {} for i = 1, 200000 do t[i] = i end return t",
		      "more than 100000 values");
	check_refused("local s, t = ('x'):rep(60000), {} for i = 1, 200 do t[i] = s end return t",
		      "more than 4 MiB of text in all");
	check_refused("return { [{}] = 1 }", "a table with a table as key has no order");
	check_refused("return { [1.5] = 1 }", "has a key that is neither a position nor a name");
	check_refused("return { ['1'] = 1, [1] = 2, x = 3 }", "stands there twice");
}

/* --- one order, no clock, no chance ----------------------------------------------------------- */

static void test_order(void **state)
{
	(void)state;
	check_value("local s = '' for k, v in pairs({ z = 1, a = 2, [2] = 3, [10] = 4, 'x', m = 5 "
		    "}) do\n"
		    "s = s .. tostring(k) .. ' ' end return s",
		    "\"1 2 10 a m z \"");
	check_value("local t, s, k = { b = 1, a = 2, 7 }, '', nil\n"
		    "repeat k = next(t, k) s = s .. tostring(k) .. ' ' until k == nil return s",
		    "\"1 a b nil \"");
	check_value("return next({})", "null");
	check_value("local t, n = { a = 1, b = 2, c = 3 }, 0 for k in pairs(t) do t.c = nil n = n "
		    "+ 1 end return n",
		    "2");
	check_value("return tostring({}) .. tostring(true) .. tostring(pairs)",
		    "\"tabletruefunction\"");
	check_value("return string.format('%s %d', {}, 3)", "\"table 3\"");
	check_refused("return string.format('%p', {})", "%p is not available");
	check_refused("return string.format('%5p', {})", "%p is not available");
	check_refused("local t = {} for i = 1, 101 do t[i] = i end table.sort(t)",
		      "at most 100 elements");
	check_refused("table.sort(setmetatable({}, { __len = function() return 1000 end }))",
		      "at most 100 elements");
	check_value("local t = { 3, 1, 2 } table.sort(t, function(a, b) return a > b end) return t",
		    "[3,2,1]");
}

static void test_withheld(void **state)
{
	static const char *const names[] = {"io",         "os",        "debug",  "load",
					    "loadstring", "loadfile",  "dofile", "require",
					    "package",    "coroutine", "print",  "collectgarbage"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *text = xasprintf("local a = 1\nreturn %s.x", names[i]);
		_cleanup_free_ char *says = xasprintf("t.lua:2: '%s' is not available in a recipe",
						      names[i]);

		check_refused(text, says);
	}
	check_refused("return math.random(3)", "attempt to call a nil value (field 'random')");
	check_refused("return string.dump(function() end)",
		      "attempt to call a nil value (field 'dump')");
	check_refused("return _G._G.os", "'os' is not available");
	check_refused("return undefined_thing", "'undefined_thing' is not defined");
	check_value("return rawget(_G, 'os') == nil and rawget(_G, 'load') == nil", "true");
}

static void test_bytecode(void **state)
{
	(void)state;
	check_refused("\x1bLuaS", "attempt to load a binary chunk");
}

/* --- metatables ------------------------------------------------------------------------------- */

static void test_metatables(void **state)
{
	(void)state;
	check_value("return getmetatable('') == false", "true");
	check_value("return getmetatable(_G) == false", "true");
	check_refused("getmetatable('').__index = {}", "attempt to index a boolean value");
	check_refused("setmetatable(_G, {})", "cannot change a protected metatable");
	check_refused("setmetatable('', {})", "table expected, got string");
	check_refused("setmetatable({}, { __gc = function() while true do end end })",
		      "__gc is not available");
	/* What is taken is the table itself, not what its metatable pretends. */
	check_value("return setmetatable({ a = 1 }, { __index = function() return 2 end,\n"
		    "__pairs = function() error('no') end, __len = function() error('no') end })",
		    "{\"a\":1}");
	/* A finaliser that comes later is not one: Lua looks when the metatable is set. */
	check_value("local m = {} setmetatable({}, m) m.__gc = function() while true do end end "
		    "return 1",
		    "1");
	/* Closing runs under the same limits. */
	check_refused("do local x <close> = setmetatable({}, { __close = function() while true do "
		      "end end }) end",
		      "endless loop");
}

/* --- without end ------------------------------------------------------------------------------ */

static void test_loops(void **state)
{
	(void)state;
	check_refused("local x = 1\nwhile true do end",
		      "t.lua:2: evaluating it took more than 5 million instructions");
	check_refused("while true do pcall(function() while true do end end) end", "endless loop");
	check_refused("local function f() while true do pcall(f) end end f()", "endless loop");
	check_refused("while true do pcall(error) end", "endless loop");
	check_refused("return xpcall(error, function() while true do end end)",
		      "'xpcall' is not defined");
	check_refused("for _ in function() return 1 end do end", "endless loop");
	check_refused("goto a ::a:: goto a", "");
	check_refused("local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end "
		      "}) return t[1]",
		      "C stack overflow");
	check_refused("local s = setmetatable({}, { __tostring = function() while true do end end "
		      "}) return tostring(s)",
		      "endless loop");
	check_refused("table.sort({ 1, 2, 3 }, function() while true do end end)", "endless loop");
	check_refused("return ('x'):gsub('.', function() while true do end end)", "endless loop");
}

/* No hook sees the inside of a C function: the timer does. */
static void test_pattern_without_end(void **state)
{
	(void)state;
	check_refused("return ('a'):rep(3000):find(('a-'):rep(4) .. 'b')",
		      "/dir/t.lua:1: evaluating it took more than 2 s of CPU time");
}

static void test_recursion(void **state)
{
	(void)state;
	check_refused("local function f() return 1 + f() end return f()",
		      "/dir/t.lua:1: evaluating it needs more than 64 MiB");
	check_refused("local function f() return f() end return f()", "endless loop");
	check_refused("local function f() pcall(f) end f() while true do f() end", "");
	{
		struct buf deep = {0};

		buf_str(&deep, "return ");
		for (int i = 0; i < 100000; i++)
			buf_char(&deep, '{');
		check_refused(deep.data, "C stack overflow");
		buf_free(&deep);
	}
}

static void test_memory(void **state)
{
	(void)state;
	check_refused("local a = 1\nreturn ('x'):rep(1e9)", "needs more than 64 MiB of memory");
	check_refused("local s = 'x' while true do s = s .. s end",
		      "needs more than 64 MiB of memory");
	check_refused("local t = {} for i = 1, 1e9 do t[i] = { i } end", "");
	check_refused("return ('x'):rep(1e5, ('y'):rep(1e5))", "resulting string too large");
	check_refused("local s = ('x'):rep(1000):rep(40000) return table.concat({ s, s })",
		      "needs more than 64 MiB of memory");
	/* Who survives it may go on. */
	check_value("return pcall(string.rep, 'x', 1e9)", "false");
	/* A list of the longest texts, more than the pipe may carry. */
	check_refused("local t = {} local s = ('\\1'):rep(1000):rep(65) for i = 1, 500 do t[i] = s "
		      ".. i end return t",
		      "more than 4 MiB");
}

static void test_errors(void **state)
{
	(void)state;
	check_refused("error('plain')", "/dir/t.lua:1: plain");
	check_refused("error('at the caller', 2)", "/dir/t.lua:1: at the caller");
	check_refused("error({})", "an error that is not a text");
	check_refused("error()", "an error that is not a text");
	check_refused("return {\n1,\n2", "t.lua:3: '}' expected");
	check_refused("error(('x'):rep(1e6), 0)", "xxx");
	check_refused("local s = string.format s = nil\n\nlocal t = nil\nreturn t.x",
		      "t.lua:4: attempt to index a nil value");
}

/* --- calling -----------------------------------------------------------------------------------
 */

static int call(const char *text, const char *function, struct json *args, struct json **value,
		struct err *e)
{
	const struct script_source src = {
		.name = (char *)"t", .path = (char *)"/dir/t.lua", .text = (char *)text};
	const struct sandbox_job job = {.src = &src, .call = function, .args = args};
	int rc;

	*value = NULL;
	rc = sandbox_run(NULL, &job, 1, value, e);
	json_free(args);
	return rc;
}

static void test_call(void **state)
{
	static const char text[] = "return { { f = function(a, s)\nreturn { sum = a + s.x, gone = "
				   "s.y == nil } end } }";
	struct json *args = json_array(), *signals = json_object(), *value;
	_cleanup_free_ char *got = NULL;
	struct err e = {0};

	(void)state;
	json_set_number(signals, "x", 0.5);
	json_add_number(args, 2);
	json_add(args, signals);
	assert_ok(call(text, "[1].f", args, &value, &e));
	got = json_print(value, false);
	json_free(value);
	assert_string_equal(got, "{\"gone\":true,\"sum\":2.5}");
	assert_int_equal(call(text, "[1].f", json_array(), &value, &e), -ERR_RECIPE);
	assert_contains(e.text, "/dir/t.lua:2: attempt to index a nil value (local 's')");
	assert_int_equal(call(text, "[2].f", json_array(), &value, &e), -ERR_RECIPE);
	assert_contains(e.text, "there is no function '[2].f'");
	assert_int_equal(call(text, "[1].f[1", json_array(), &value, &e), -ERR_RECIPE);
}

/* Jobs do not see each other, and the first that fails is the one that is named. */
static void test_several_jobs(void **state)
{
	const struct script_source one = {
		.name = (char *)"a", .path = (char *)"/a.lua", .text = (char *)"x = 1 return x"};
	const struct script_source two = {.name = (char *)"b",
					  .path = (char *)"/b.lua",
					  .text = (char *)"return rawget(_G, 'x') == nil"};
	const struct script_source bad = {
		.name = (char *)"c", .path = (char *)"/c.lua", .text = (char *)"\nerror('c')"};
	const struct sandbox_job jobs[] = {{.src = &one}, {.src = &two}, {.src = &bad}};
	struct json *values[3];
	struct err e = {0};

	(void)state;
	assert_ok(sandbox_run(NULL, jobs, 2, values, &e));
	assert_int_equal(json_i64(values[0], 0), 1);
	assert_true(json_bool(values[1], false));
	json_free(values[0]);
	json_free(values[1]);
	assert_int_equal(sandbox_run(NULL, jobs, 3, values, &e), -ERR_RECIPE);
	assert_string_equal(e.text, "/c.lua:2: c");
	for (size_t i = 0; i < 3; i++)
		assert_null(values[i]);
	assert_ok(sandbox_run(NULL, NULL, 0, values, &e));
}

static size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void test_nothing_is_left(void **state)
{
	size_t before = open_files();
	int status;

	(void)state;
	check_value("return 1", "1");
	check_refused("while true do end", "endless loop");
	check_refused("return ('x'):rep(1e9)", "memory");
	assert_int_equal(open_files(), before);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* no child at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_values_that_cannot_be_stored),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_withheld),
		cmocka_unit_test(test_bytecode),
		cmocka_unit_test(test_metatables),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_pattern_without_end),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_several_jobs),
		cmocka_unit_test(test_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
