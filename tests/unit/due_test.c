/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is due, in which order, and what fits: no database, no clock. */
#include "orchestrator/method/due.h"

#include "tests/unit/check.h"

#include <math.h>

#include "tests/unit/near.h"

#define NIGHT "2026-11-29"

static const struct due_budget no_bound = {INFINITY, INFINITY, INFINITY};

static const char *const yesterday[] = {"2026-11-28"};
static const char *const tonight[] = {"2026-11-28", NIGHT};
static const char *const week_ago[] = {"2026-11-15", "2026-11-22"};

static struct due_item canary(const char *name, const char *const *nights, size_t n)
{
	return (struct due_item){.name = name,
				 .canary = true,
				 .period = 1,
				 .nights = nights,
				 .n_nights = n,
				 .gpu_hours = 1,
				 .node_hours = NAN,
				 .minutes = NAN};
}

static struct due_choice choose(const struct due_item *it, const char *night)
{
	struct due_choice c;

	due_choose(it, 1, night, &no_bound, &c);
	return c;
}

static void test_dates(void **state)
{
	int64_t n;

	(void)state;
	assert_true(due_nights_between("2026-02-28", "2026-03-01", &n));
	assert_int_equal(n, 1);
	assert_true(due_nights_between("2028-02-28", "2028-03-01", &n));
	assert_int_equal(n, 2);
	/* clocks change in both of these months: a night is a date, and has no length */
	assert_true(due_nights_between("2026-03-28", "2026-03-30", &n));
	assert_int_equal(n, 2);
	assert_true(due_nights_between("2026-10-24", "2026-10-26", &n));
	assert_int_equal(n, 2);
	assert_true(due_nights_between("2027-01-01", "2026-12-31", &n));
	assert_int_equal(n, -1);
	assert_false(due_nights_between("2026-02-30", "2026-03-01", &n));
	assert_false(due_nights_between("2026-11-29", "29.11.2026", &n));
	assert_false(due_nights_between("", "2026-03-01", &n));
}

static void test_every_night_once(void **state)
{
	struct due_item it = canary("c", NULL, 0);

	(void)state;
	assert_int_equal(choose(&it, NIGHT).state, DUE_RUN);
	assert_int_equal(choose(&it, NIGHT).since, -1);
	it = canary("c", yesterday, 1);
	assert_int_equal(choose(&it, NIGHT).state, DUE_RUN);
	it = canary("c", tonight, 2);
	assert_int_equal(choose(&it, NIGHT).state, DUE_DONE);
	/* begun tonight and killed: it goes on */
	it.left = true;
	assert_int_equal(choose(&it, NIGHT).state, DUE_RUN);
}

static void test_every_week_and_after_a_change(void **state)
{
	struct due_item it = canary("c", week_ago, 2);

	(void)state;
	it.period = 7;
	assert_int_equal(choose(&it, NIGHT).state, DUE_RUN);
	assert_int_equal(choose(&it, "2026-11-28").state, DUE_NOT_YET);
	it.environment_now = 1;
	assert_int_equal(choose(&it, "2026-11-28").state, DUE_NOT_YET);
	it.after_change = true;
	assert_int_equal(choose(&it, "2026-11-28").state, DUE_RUN);
	/* only then */
	it.period = 0;
	assert_int_equal(choose(&it, "2026-11-28").state, DUE_RUN);
	it.environment_now = 0;
	assert_int_equal(choose(&it, "2027-11-28").state, DUE_NOT_YET);
}

/* Nights that jump: a holiday of the cluster, a clock that was wrong once, one that is set back. */
static void test_nights_that_jump(void **state)
{
	static const char *const wrong_once[] = {"2099-01-01", "2026-11-27"};
	struct due_item it = canary("c", yesterday, 1);
	struct due_choice c;

	(void)state;
	c = choose(&it, "2026-12-24"); /* missed nights are not made up for: one look */
	assert_int_equal(c.state, DUE_RUN);
	assert_int_equal(c.since, 26);
	it = canary("c", wrong_once, 2);
	c = choose(&it, NIGHT);
	assert_int_equal(c.state, DUE_RUN);
	assert_int_equal(c.since, 2);
	assert_int_equal(c.ahead, 1);
	assert_contains(c.why, "was the clock set back?");
	it = canary("c", tonight, 2);
	c = choose(&it, "2026-11-28"); /* set back to a night that has its look */
	assert_int_equal(c.state, DUE_DONE);
}

static void test_risk(void **state)
{
	static const char *const long_ago[] = {"2026-11-29", "2026-10-30"};
	struct due_item it = canary("c", yesterday, 1);
	double quiet;

	(void)state;
	/* 1 - (30 / 31)^0.5 */
	quiet = choose(&it, NIGHT).risk;
	assert_near(quiet, 0.016261, 1e-5);
	it.suspects = 1;
	assert_near(choose(&it, NIGHT).risk, 1 - (1 - quiet) * 2 / 3, 1e-9);
	it.suspects = 0;
	it.environment_now = 3; /* one in ten, however many keys a driver brings with it */
	assert_near(choose(&it, NIGHT).risk, 1 - (1 - quiet) * 0.9, 1e-9);
	it.environments = 4; /* all four were felt here */
	it.environment_changes = 4;
	assert_near(choose(&it, NIGHT).risk, 1 - (1 - quiet) * (1 - 5.0 / 14), 1e-9);
	it = canary("c", long_ago, 2);
	it.changes = 2; /* a series that often changes: 1 - (60 / 61)^2.5 */
	assert_near(choose(&it, "2026-11-30").risk, 1 - pow(60.0 / 61, 2.5), 1e-9);
	it = canary("c", NULL, 0);
	assert_near(choose(&it, NIGHT).risk, 1, 0);
}

static void test_order_is_worth_for_its_cost(void **state)
{
	struct due_item v[] = {canary("cheap", yesterday, 1), canary("dear", yesterday, 1),
			       canary("changed", yesterday, 1), canary("sweep", NULL, 0),
			       canary("begun", yesterday, 1)};
	struct due_choice c[5];

	(void)state;
	v[1].gpu_hours = 8;
	v[2].environment_now = 1;
	v[3].canary = false;
	v[4].left = true;
	v[4].gpu_hours = 100;
	assert_int_equal(due_choose(v, 5, NIGHT, &no_bound, c), 5);
	assert_int_equal(c[4].place, 0);
	assert_int_equal(c[2].place, 1);
	assert_int_equal(c[0].place, 2);
	assert_int_equal(c[1].place, 3);
	assert_int_equal(c[3].place, 4); /* canaries first, whatever a sweep may find */
}

static void test_budget(void **state)
{
	struct due_item v[] = {canary("a", yesterday, 1), canary("b", yesterday, 1),
			       canary("sweep", NULL, 0), canary("unknown", yesterday, 1)};
	struct due_budget left = {1.5, INFINITY, INFINITY};
	struct due_choice c[4];

	(void)state;
	v[2].canary = false;
	v[2].gpu_hours = 50;
	v[3].gpu_hours = NAN;
	assert_int_equal(due_choose(v, 4, NIGHT, &left, c), 3);
	assert_int_equal(c[0].state, DUE_RUN);
	assert_int_equal(c[1].state, DUE_NO_ROOM);
	assert_int_equal(c[3].state, DUE_RUN);
	/* a sweep takes what is left and goes on another night */
	assert_int_equal(c[2].state, DUE_RUN);
	left.gpu_hours = 1;
	assert_int_equal(due_choose(v, 4, NIGHT, &left, c), 1);
	assert_int_equal(c[2].state, DUE_NO_ROOM);
	left = (struct due_budget){INFINITY, INFINITY, 10};
	v[0].minutes = 11;
	due_choose(v, 1, NIGHT, &left, c);
	assert_int_equal(c[0].state, DUE_NO_ROOM);
}

/* Cheap canaries fill the budget each night: the dear one comes first once it has waited a week. */
static void test_nothing_waits_for_ever(void **state)
{
	const char *nights[2][40];
	size_t n[2] = {0};
	char night[40][11];
	int dear = 0;

	(void)state;
	for (int d = 0; d < 30; d++) {
		struct due_item v[2] = {canary("cheap", nights[0], n[0]),
					canary("dear", nights[1], n[1])};
		struct due_budget left = {2, INFINITY, INFINITY};
		struct due_choice c[2];

		snprintf(night[d], sizeof night[d], "2026-11-%02u", (d + 1) % 100U);
		v[0].gpu_hours = 0.05;
		v[1].gpu_hours = 2;
		due_choose(v, 2, night[d], &left, c);
		for (int i = 0; i < 2; i++)
			if (c[i].state == DUE_RUN)
				nights[i][n[i]++] = night[d];
		dear += c[1].state == DUE_RUN;
	}
	assert_int_equal(dear, 5); /* nights 2, 9, 16, 23 and 30 */
	assert_int_equal(n[0] + n[1], 30);
}

static void test_nodes_that_were_looked_at_longest_ago(void **state)
{
	static const struct due_node v[] = {{"n1", "2026-11-28", 3},
					    {"n2", "2026-11-26", 3},
					    {"n3", "", 0},
					    {"n4", "2026-11-27", 3}};
	bool avoid[4] = {false};

	(void)state;
	/* four nodes, two blocks of one: n3 and n2 are left */
	assert_int_equal(due_avoid(v, 4, 4, 1, 2, avoid), 2);
	assert_true(avoid[0] && avoid[3] && !avoid[1] && !avoid[2]);
	/* a cluster of six, of which two were never seen: those two and n3, where a block can run
	 * in any case */
	memset(avoid, 0, sizeof avoid);
	assert_int_equal(due_avoid(v, 4, 6, 1, 2, avoid), 3);
	assert_false(avoid[2]);
	/* no more nodes than blocks: nothing is left out; unknown nodes: neither */
	memset(avoid, 0, sizeof avoid);
	assert_int_equal(due_avoid(v, 4, 2, 1, 2, avoid), 0);
	assert_int_equal(due_avoid(NULL, 0, 8, 1, 2, avoid), 0);
}

/* A cluster that always gives the same nodes first: those that nobody knows are found all the same.
 */
static void test_nodes_that_were_never_seen(void **state)
{
	struct due_node known[6];
	bool seen[6] = {false};
	size_t n = 0;

	(void)state;
	for (int d = 1; d <= 12; d++) {
		bool avoid[6] = {false};
		int left = 0;

		due_avoid(known, n, 6, 1, 2, avoid);
		for (int node = 0; node < 6 && left < 2; node++) {
			static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
			size_t at = 0;

			while (at < n && known[at].name != names[node])
				at++;
			if (at < n && avoid[at])
				continue;
			if (at == n)
				known[n++] = (struct due_node){names[node], "", 0};
			snprintf(known[at].night, sizeof known[at].night, "2026-11-%02u", d % 100U);
			known[at].looks++;
			seen[node] = true;
			left++;
		}
		assert_int_equal(left, 2);
	}
	for (int node = 0; node < 6; node++)
		assert_true(seen[node]);
}

/* Each node of a cluster gets its look, however nights and blocks fall. */
static void test_every_node_has_its_turn(void **state)
{
	struct due_node v[5] = {
		{"a", "", 0}, {"b", "", 0}, {"c", "", 0}, {"d", "", 0}, {"e", "", 0}};
	int looks[5] = {0};

	(void)state;
	for (int d = 1; d <= 25; d++) {
		bool avoid[5] = {false};
		int left = 0;

		due_avoid(v, 5, 5, 1, 2, avoid);
		for (int i = 0; i < 5; i++)
			if (!avoid[i] && left < 2) {
				left++;
				looks[i]++;
				v[i].looks++;
				snprintf(v[i].night, sizeof v[i].night, "2026-11-%02u", d % 100U);
			}
		assert_int_equal(left, 2);
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(looks[i], 9, 11);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_every_night_once),
		cmocka_unit_test(test_every_week_and_after_a_change),
		cmocka_unit_test(test_nights_that_jump),
		cmocka_unit_test(test_risk),
		cmocka_unit_test(test_order_is_worth_for_its_cost),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_nothing_waits_for_ever),
		cmocka_unit_test(test_nodes_that_were_looked_at_longest_ago),
		cmocka_unit_test(test_nodes_that_were_never_seen),
		cmocka_unit_test(test_every_node_has_its_turn),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
