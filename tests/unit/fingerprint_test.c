/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What makes a fix expire. */
#include "tests/unit/check.h"

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

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_same_environment_has_no_changes),
		cmocka_unit_test(test_what_differs_is_named),
		cmocka_unit_test(test_another_login_node_is_no_other_cluster),
		cmocka_unit_test(test_a_broken_fingerprint_is_an_error),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
