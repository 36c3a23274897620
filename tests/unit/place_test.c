/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On which nodes blocks run, on a made-up cluster of four. */
#include "tests/unit/world.h"

#include "tests/unit/store.h"

/* "n1:3 n2:3": allocations by node. */
static char *use_of(const char *fields, const char *spec)
{
	struct world w;
	char *text;

	world_open_with(&w, 1, fields);
	run(&w, spec);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	text = store_text(w.ws->db,
			  "SELECT group_concat(node || ':' || n, ' ') FROM (SELECT node, "
			  "count(*) AS n FROM allocation_node GROUP BY node ORDER BY node)");
	world_close(&w);
	return text;
}

static void test_same(void **state)
{
	_cleanup_free_ char *got = use_of(
		"blocks = { aa = 12 }, resources = { placement = 'same' }",
		"{\"fixed\": true, \"nodes\": 4}");

	(void)state;
	assert_non_null(got);
	assert_true(strncmp(got, "n1:", 3) == 0);
	assert_null(strchr(got, ' ')); /* all of them on one node */
}

static int most_apart(const char *text)
{
	int lo = 1 << 30, hi = 0;

	for (const char *p = text; (p = strchr(p, ':')); p++) {
		int n = (int)strtol(p + 1, NULL, 10);

		lo = n < lo ? n : lo;
		hi = n > hi ? n : hi;
	}
	return hi - lo;
}

static void test_spread_is_even(void **state)
{
	_cleanup_free_ char *got = use_of(
		"blocks = { aa = 12 }, resources = { placement = 'spread' }",
		"{\"fixed\": true, \"nodes\": 4, \"sticky\": true}");
	_cleanup_free_ char *any = use_of("blocks = { aa = 12 }", "{\"fixed\": true, \"nodes\": 4, "
								  "\"sticky\": true}");

	(void)state;
	/* a scheduler that always takes the first node that it may */
	assert_null(strchr(any, ' '));
	assert_true(most_apart(got) <= 1);
	assert_non_null(strstr(got, "n4:"));
}

/* What was counted before is kept, and a campaign that is opened anew counts the same. */
static void test_spread_goes_on(void **state)
{
	const char *spec = "{\"fixed\": true, \"nodes\": 4, \"sticky\": true, \"at_once\": 3}";
	_cleanup_free_ char *got = NULL;
	struct world w;

	(void)state;
	world_open_with(&w, 1, "blocks = { aa = 40 }, resources = { placement = 'spread' }");
	while (!drive(&w, spec, 7))
		;
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	got = store_text(w.ws->db, "SELECT group_concat(n) FROM (SELECT count(*) AS n FROM "
				   "allocation_node GROUP BY node ORDER BY n)");
	assert_string_equal(got, "12,12,13,13");
	world_close(&w);
}

static void test_among(void **state)
{
	_cleanup_free_ char *got = use_of(
		"blocks = { aa = 12 }, resources = { among = { 'n2', 'n4' } }",
		"{\"fixed\": true, \"nodes\": 4, \"sticky\": true}");
	_cleanup_free_ char *two = use_of(
		"blocks = { aa = 12 }, resources = { among = { 'n2', 'n4' } }",
		"{\"fixed\": true, \"nodes\": 4, \"at_once\": 2}");

	(void)state;
	assert_true(most_apart(got) <= 1);
	assert_null(strstr(got, "n1:"));
	assert_null(strstr(got, "n3:"));
	assert_true(most_apart(two) <= 3);
	assert_null(strstr(two, "n1:"));
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_spread_is_even),
		cmocka_unit_test(test_spread_goes_on),
		cmocka_unit_test(test_among),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
