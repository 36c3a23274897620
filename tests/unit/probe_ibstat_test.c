/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_ibstat;

static void test_fixtures(void **state)
{
	struct findings f = findings_fixture(&probe_ibstat, "ibstat.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "ib_link_up", -1, "device=mlx5_2,port=1", 1);
	check_at(&f, "ib_link_gbit_per_s", -1, "device=mlx5_3,port=1", 2.5);
	check_fact(&f, "ib.mlx5_2.firmware", "28.39.2048");
	assert_int_equal(found_count(&f, "ib_link_up"), 3);
	findings_free(&f);
	f = findings_fixture(&probe_ibstat, "ibstatus.txt");
	check_status(&f, PROBE_OK);
	check_fact(&f, "ib.mlx5_0/1.state", "ACTIVE");
	check_at(&f, "ib_link_gbit_per_s", -1, "device=mlx5_1,port=1", 40);
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_ibstat,
					  "CA 'mlx5_2'\n\tPort 1:\n\t\tState: Active\n"
					  "\t\tRate: fast\n\t\tRate: 20");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "ib_link_gbit_per_s"), 0);
	findings_free(&f);
	f = findings_text(&probe_ibstat, "Port 1:\nState: Active\nRate: 20\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
