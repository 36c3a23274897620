/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What makes a fix expire. */
#include "tests/unit/check.h"

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/fingerprint.h"

static void assert_changes(const char *then, const char *now, const char *want)
{
	struct strv v = {0};
	struct err e = {0};
	struct buf b = {0};

	assert_ok(fingerprint_changes(then, now, &v, &e));
	for (size_t i = 0; i < v.n; i++)
		buf_printf(&b, "%s%s", i ? "; " : "", v.v[i]);
	assert_string_equal(b.data ? b.data : "", want);
	buf_free(&b);
	strv_free(&v);
}

static void test_the_same_environment_has_no_changes(void **state)
{
	_cleanup_free_ char *now = fingerprint_json("local");

	(void)state;
	assert_changes(now, now, "");
	assert_contains(now, "\"kernel\"");
}

static void test_what_differs_is_named(void **state)
{
	(void)state;
	assert_changes("{\"kernel\":\"5.10\",\"cpus\":8}", "{\"kernel\":\"6.1\",\"cpus\":4}",
		       "kernel: 5.10 -> 6.1; cpus: 8 -> 4");
	/* what an older program did not record says nothing */
	assert_changes("{\"kernel\":\"5.10\"}", "{\"kernel\":\"5.10\",\"cpus\":4}", "");
}

static void test_another_login_node_is_no_other_cluster(void **state)
{
	(void)state;
	assert_changes("{\"host\":\"a\",\"scheduler\":\"slurm\"}",
		       "{\"host\":\"b\",\"scheduler\":\"slurm\"}", "");
	assert_changes("{\"host\":\"a\",\"scheduler\":\"local\"}",
		       "{\"host\":\"b\",\"scheduler\":\"local\"}", "host: a -> b");
}

static void test_a_broken_fingerprint_is_an_error(void **state)
{
	struct strv v = {0};
	struct err e = {0};

	(void)state;
	assert_true(fingerprint_changes("{", "{}", &v, &e) < 0);
	assert_contains(e.text, "stored fingerprint");
}

/* -- nodes together ---------------------------------------------------------------------------- */

static void test_what_nodes_share_stands_once(void **state)
{
	struct fingerprint_node v[7] = {{.node = "n1"}, {.node = "n2"}, {.node = "n3"},
					{.node = "n4"}, {.node = "n5"}, {.node = "n6"},
					{.node = "n6"}};
	_cleanup_free_ char *two = NULL, *all = NULL, *none = fingerprint_join(v, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		kvs_set(&v[i].keys, "os", "Debian");
		kvs_set(&v[i].keys, "kernel", i == 1 || i == 6 ? "6.1" : "5.10");
	}
	kvs_set(&v[0].keys, "bios", "1.2"); /* the others do not tell */
	two = fingerprint_join(v, 2);
	all = fingerprint_join(v, ARRAY_LEN(v));
	assert_string_equal(none, "{}");
	assert_string_equal(two, "{\"bios\":\"1.2\",\"kernel\":\"5.10 (n1), 6.1 (n2)\",\"os\":"
				 "\"Debian\"}");
	/* n6 changed on the way */
	assert_contains(all, "\"kernel\":\"5.10 (n1, n3, n4 and 2 more), 6.1 (n2, n6)\"");
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		kvs_free(&v[i].keys);
}

static void test_many_values_are_counted(void **state)
{
	struct fingerprint_node v[6] = {{.node = "a"}, {.node = "b"}, {.node = "c"},
					{.node = "d"}, {.node = "e"}, {.node = "f"}};
	_cleanup_free_ char *text = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		kvs_set(&v[i].keys, "k", (char[]){(char)('1' + i), 0});
	text = fingerprint_join(v, ARRAY_LEN(v));
	assert_string_equal(text, "{\"k\":\"1 (a), 2 (b), 3 (c), 4 (d), 2 more\"}");
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		kvs_free(&v[i].keys);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_same_environment_has_no_changes),
		cmocka_unit_test(test_what_differs_is_named),
		cmocka_unit_test(test_another_login_node_is_no_other_cluster),
		cmocka_unit_test(test_a_broken_fingerprint_is_an_error),
		cmocka_unit_test(test_what_nodes_share_stands_once),
		cmocka_unit_test(test_many_values_are_counted),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
