/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_diskstats;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_diskstats, "diskstats.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=nvme0n1", 4096000 * 512 / 2);
	check_at(&f, "disk_r_await_ms", -1, "device=nvme0n1", 0.5);
	check_at(&f, "disk_util_pct", -1, "device=nvme0n1", 80);
	check_at(&f, "disk_aqu_sz", -1, "device=nvme0n1", 1);
	check_missing(&f, "disk_read_bytes_per_s", -1, "device=sda", "reset");
	assert_null(found_at(&f, "disk_w_await_ms", -1, NULL)); /* nothing was written */
	assert_null(found_at(&f, "disk_read_bytes_total", -1, "device=loop0"));
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_diskstats, "8 0 sda 10 0 80 5 0 0 0 0 0 5 5\n"
							    "8 1 sdb 10 0 x 5 0 0 0 0 0 5 5\n"
							    "8 2 sdc 10 0 80 5 0 0 0 0 0 5\n"
							    "8 3 sdd 10 0 80 5 0 0 0 0 0 5 5");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "disk_read_bytes_total", -1, "device=sda", 40960);
	assert_int_equal(found_count(&f, "disk_read_bytes_total"), 1);
	assert_int_equal(found_count(&f, "disk_read_bytes_per_s"), 0); /* no time */
	findings_free(&f);
	f = findings_text(&probe_diskstats, "hello\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
