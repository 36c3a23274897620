/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/json.h"

#define _cleanup_json_ _cleanup_(json_freep)

static struct json *parse(const char *text)
{
	struct json *j = NULL;
	struct err e = {0};

	assert_ok(json_parse("t", text, strlen(text), &j, &e));
	return j;
}

static void reading_a_tree(void **state)
{
	_cleanup_json_ struct json *j = parse(
		" {\"a\":{\"b\":{\"c\":[1,2.5,\"x\",true,null]}},\"A\":-3,\"e\":\"\\u00e9\"} \n");
	const struct json *v = json_path(j, "a.b.c");

	(void)state;
	assert_int_equal(json_type(j), JSON_OBJECT);
	assert_int_equal(json_len(j), 3);
	assert_int_equal(json_len(v), 5);
	assert_true(json_number(json_at(v, 1), 0) == 2.5);
	assert_string_equal(json_text(json_at(v, 2), ""), "x");
	assert_true(json_bool(json_at(v, 3), false));
	assert_int_equal(json_type(json_at(v, 4)), JSON_NULL);
	assert_null(json_at(v, 5));
	assert_int_equal(json_i64(json_get(j, "A"), 0), -3); /* keys are case-sensitive */
	assert_string_equal(json_text(json_get(j, "e"), ""), "\xC3\xA9");
	assert_null(json_path(j, "a.x.c"));
	assert_null(json_path(j, "a.b.c.d"));
}

static void tolerant_access_gives_the_default(void **state)
{
	_cleanup_json_ struct json *j = parse("[\"text\",1.5,1e300,1e999]");

	(void)state;
	assert_string_equal(json_text(NULL, "d"), "d");
	assert_string_equal(json_text(json_at(j, 1), "d"), "d");
	assert_true(json_number(json_at(j, 0), 7) == 7);
	assert_int_equal(json_i64(json_at(j, 1), 7), 7); /* not an integer */
	assert_int_equal(json_i64(json_at(j, 2), 7), 7); /* does not fit */
	assert_true(json_number(json_at(j, 3), 7) == 7); /* infinite is absent */
	assert_true(json_bool(json_at(j, 0), true));
	assert_int_equal(json_len(NULL), 0);
	assert_int_equal(json_len(json_at(j, 0)), 0);
	assert_null(json_get(j, "key"));
	assert_null(json_first(json_at(j, 0)));
	assert_null(json_next(NULL));
	assert_null(json_key(NULL));
	json_free(NULL);
}

static void walking(void **state)
{
	_cleanup_json_ struct json *j = parse("{\"x\":1,\"y\":2,\"z\":4}");
	struct buf keys = {0};
	double sum = 0;

	(void)state;
	for (const struct json *c = json_first(j); c; c = json_next(c)) {
		buf_str(&keys, json_key(c));
		sum += json_number(c, 0);
	}
	assert_string_equal(keys.data, "xyz");
	assert_true(sum == 7);
	buf_free(&keys);
}

static void errors_say_line_and_column(void **state)
{
	static const struct {
		const char *text, *where;
	} bad[] = {
		{"", "conf:1:1: expected a JSON value"},
		{" \n\t\n", "conf:3:1: expected a JSON value"},
		{"{\"a\": 1,\n \"b\": }", "conf:2:7: the JSON text ends too early, or wrongly"},
		{"{\"a\": 1,\n \"b\": 2", "conf:2:7: the JSON text ends too early"},
		{"[1, 2] x", "conf:1:8: text after the end"},
		{"[1, 2]\n\n[3]", "conf:3:1: text after the end"},
		{"nul", "conf:1:1: not valid JSON"},
		{"[1,]", "conf:1:4: the JSON text ends too early, or wrongly"},
		{"[1,] ", "conf:1:4: not valid JSON"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct json *j = NULL;
		struct err e = {0};

		assert_int_equal(json_parse("conf", bad[i].text, strlen(bad[i].text), &j, &e),
				 -ERR_PARSE);
		assert_contains(e.text, bad[i].where);
		assert_null(j);
	}
}

static void only_the_given_bytes_are_read(void **state)
{
	_cleanup_json_ struct json *j = NULL;
	char *exact = xmalloc(3); /* no NUL: a sanitiser sees one byte too far */
	struct err e = {0};

	(void)state;
	memcpy(exact, "123", 3);
	assert_ok(json_parse("t", exact, 3, &j, &e));
	assert_true(json_number(j, 0) == 123);
	free(exact);
}

static void deep_nesting_is_refused(void **state)
{
	enum { DEPTH = 100000 };
	_cleanup_free_ char *text = xmalloc(DEPTH);
	struct json *j = NULL;

	(void)state;
	memset(text, '[', DEPTH);
	assert_int_equal(json_parse("t", text, DEPTH, &j, NULL), -ERR_PARSE);
	assert_null(j);
}

static void files(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "a.json");
	_cleanup_json_ struct json *j = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(json_read_file(path, 100, &j, &e), -ERR_NOT_FOUND);
	assert_ok(fs_write_atomic(path, "{\n\"a\" 1}", 8, 0600, &e));
	assert_int_equal(json_read_file(path, 100, &j, &e), -ERR_PARSE);
	assert_contains(e.text, "a.json:2:5: ");
	assert_int_equal(json_read_file(path, 3, &j, &e), -ERR_LIMIT);
	assert_ok(fs_write_atomic(path, "{\"a\":1}", 7, 0600, &e));
	assert_ok(json_read_file(path, 100, &j, &e));
	assert_int_equal(json_i64(json_get(j, "a"), 0), 1);
}

static struct json *sample(void)
{
	struct json *j = json_object(), *list = json_array();

	json_set_text(j, "text", "a\"b\\\n\x01");
	json_set_text(j, "none", NULL);
	json_set_number(j, "nan", NAN);
	json_set_number(j, "third", 1.0 / 3);
	json_set_i64(j, "time", INT64_C(1764422504000000));
	json_set_bool(j, "yes", true);
	json_add_text(list, "x");
	json_add_number(list, -0.5);
	json_add(list, json_object());
	json_set(j, "list", list);
	return j;
}

static void printing(void **state)
{
	_cleanup_json_ struct json *j = sample();
	_cleanup_free_ char *flat = json_print(j, false);

	(void)state;
	assert_string_equal(flat,
			    "{\"text\":\"a\\\"b\\\\\\n\\u0001\",\"none\":null,\"nan\":null,"
			    "\"third\":0.3333333333333333,\"time\":1764422504000000,\"yes\":true,"
			    "\"list\":[\"x\",-0.5,{}]}");
}

static void pretty_printing_reads_back(void **state)
{
	_cleanup_json_ struct json *j = parse("{\"a\":[1,{}],\"b\":{\"c\":null},\"d\":[]}");
	_cleanup_free_ char *pretty = json_print(j, true);
	_cleanup_json_ struct json *again = parse(pretty);
	_cleanup_free_ char *flat = json_print(again, false);

	(void)state;
	assert_string_equal(
		pretty, "{\n\t\"a\": [\n\t\t1,\n\t\t{}\n\t],\n\t\"b\": {\n\t\t\"c\": null\n\t},\n"
			"\t\"d\": []\n}");
	assert_string_equal(flat, "{\"a\":[1,{}],\"b\":{\"c\":null},\"d\":[]}");
}

static void setting_again_replaces(void **state)
{
	_cleanup_json_ struct json *j = json_object();
	_cleanup_json_ struct json *copy = NULL;

	(void)state;
	json_set_i64(j, "a", 1);
	json_set_i64(j, "A", 2);
	json_set_text(j, "a", "new");
	copy = json_copy(j);
	json_set_text(j, "a", "newer");
	assert_int_equal(json_len(j), 2);
	assert_string_equal(json_text(json_get(copy, "a"), ""), "new");
	assert_int_equal(json_i64(json_get(copy, "A"), 0), 2);
}

static void what_is_borrowed_stays_and_what_is_taken_is_gone(void **state)
{
	_cleanup_json_ struct json *from = json_object(), *taken = NULL;
	struct json *list = json_array(), *to = json_array();
	_cleanup_free_ char *text = NULL;

	(void)state;
	json_add_text(list, "x");
	json_set(from, "list", list);
	json_set_i64(from, "n", 7);
	json_add(to, json_borrow(from));
	json_add(to, json_borrow(json_get(from, "list")));
	json_add(to, json_borrow(json_get(from, "n")));
	text = json_print(to, false);
	assert_string_equal(text, "[{\"list\":[\"x\"],\"n\":7},[\"x\"],7]");
	json_free(to); /* and nothing of `from` with it */
	taken = json_take(from, "list");
	assert_null(json_take(from, "list"));
	assert_int_equal(json_len(from), 1);
	assert_string_equal(json_text(json_at(taken, 0), ""), "x");
}

static void a_line_is_printed_as_one(void **state)
{
	_cleanup_json_ struct json *j = json_object();
	struct json *a = json_array(), *o = json_object();
	_cleanup_free_ char *text = NULL;

	(void)state;
	json_set_text(o, "name", "a \"b\"");
	json_set_number(o, "value", NAN);
	json_add_line(a, o);
	json_add_number(a, 1);
	json_set(j, "list", a);
	text = json_print(j, true);
	assert_string_equal(
		text,
		"{\n\t\"list\": [\n\t\t{\"name\":\"a \\\"b\\\"\",\"value\":null},\n\t\t1\n\t]\n}");
}

#define BAD "\xEF\xBF\xBD" /* U+FFFD */
/* A line of a user's log may hold any bytes; what we print must be UTF-8 all the same. */
static void bytes_that_are_no_utf8_are_replaced(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"\xFFx", "\"" BAD "x\""},
		{"\xC3\xA9", "\"\xC3\xA9\""},
		{"\xE2\x82\xAC", "\"\xE2\x82\xAC\""},
		{"\xF0\x9F\x98\x80", "\"\xF0\x9F\x98\x80\""},
		{"\xC3", "\"" BAD "\""},                         /* cut at the end */
		{"\xC0\xAF", "\"" BAD BAD "\""},                 /* overlong */
		{"\xE0\x80\xAF", "\"" BAD BAD BAD "\""},         /* overlong */
		{"\xED\xA0\x80", "\"" BAD BAD BAD "\""},         /* surrogate */
		{"\xF4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""}, /* past U+10FFFF */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_json_ struct json *j = json_new_text(cases[i].in);
		_cleanup_free_ char *text = json_print(j, false);

		assert_string_equal(text, cases[i].out);
	}
}

static void putting_appends_what_printing_gives(void **state)
{
	_cleanup_json_ struct json *j = parse("{\"a\":[1,{\"b\":null}],\"c\":\"x\"}");
	_cleanup_free_ char *pretty = json_print(j, true), *both = NULL;
	struct buf b = {0};

	(void)state;
	buf_str(&b, "before ");
	json_put(&b, j, true);
	both = xasprintf("before %s", pretty);
	assert_string_equal(b.data, both);
	buf_free(&b);
}

static char big[24 << 20]; /* more than any arena has left over */

/* Whatever it returns is told: no more memory is to be had, and the text is good. */
static void parse_without_memory(int told)
{
	struct rlimit none = {0};
	struct json *j = NULL;

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_AS, &none);
	signal(SIGABRT, SIG_DFL);
	if (dprintf(told, "%s", json_parse("t", big, sizeof big, &j, NULL) ? "refused" : "parsed"))
		_exit(0);
}

/* A text that is good is not called malformed, nor is a member left out: the process ends. */
static void memory_that_cannot_be_had_is_no_wrong_text(void **state)
{
	char said[16] = "";
	int told[2], status = 0;
	pid_t pid;

	(void)state;
	memset(big, 'x', sizeof big);
	big[0] = big[sizeof big - 1] = '"';
	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		parse_without_memory(told[1]);
	close(told[1]);
	assert_int_equal(read(told[0], said, sizeof said - 1), 0);
	close(told[0]);
	assert_string_equal(said, "");
	waitpid(pid, &status, 0);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_a_tree),
		cmocka_unit_test(tolerant_access_gives_the_default),
		cmocka_unit_test(walking),
		cmocka_unit_test(errors_say_line_and_column),
		cmocka_unit_test(only_the_given_bytes_are_read),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(files),
		cmocka_unit_test(printing),
		cmocka_unit_test(pretty_printing_reads_back),
		cmocka_unit_test(setting_again_replaces),
		cmocka_unit_test(what_is_borrowed_stays_and_what_is_taken_is_gone),
		cmocka_unit_test(a_line_is_printed_as_one),
		cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
		cmocka_unit_test(putting_appends_what_printing_gives),
		cmocka_unit_test(memory_that_cannot_be_had_is_no_wrong_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
