/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_dstat;

static void test_file(void **state)
{
	struct findings f = findings_fixture(&probe_dstat, "dstat.csv");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_nth(&f, "cpu_user_pct", 0)->t_us, 1795832041000000);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=nvme0n1", 1572864000);
	check_at(&f, "host_mem_free_mib", -1, NULL, 3072);
	findings_free(&f);
}

static void test_screen(void **state)
{
	struct findings f = findings_fixture(&probe_dstat, "dstat-screen.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=sda", 12 * 1048576);
	assert_int_equal(found_nth(&f, "cpu_user_pct", 0)->t_us, -1); /* no year */
	findings_free(&f);
	f = findings_text(&probe_dstat, "-dsk/total- ---load-avg---\n read  writ| 1m 5m 15m\n"
					"   1k  512B| 1 2 3\n");
	check_at(&f, "disk_read_bytes_per_s", -1, "device=all,since=boot", 1024);
	findings_free(&f);
}

static void test_epoch(void **state)
{
	struct findings f = findings_text(
		&probe_dstat, "\"pcp-dstat 5.0.0 CSV output\"\n"
			      "\"epoch\",\"procs\",,,\"swap\",\n"
			      "\"epoch\",\"run\",\"blk\",\"new\",\"used\",\"free\"\n"
			      "1795832040.5,1,2,3,1048576,0\n1795832041.5,4,5,6,2097152,0\n"
			      "1795832042.5,7,x,6,2097152,0\n1795832043.5,7,8");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "procs_running", -1, NULL, 4);
	check_at(&f, "procs_blocked", -1, NULL, 5);
	check_at(&f, "swap_used_mib", -1, NULL, 2);
	assert_int_equal(found_nth(&f, "procs_running", 0)->t_us, 1795832041500000);
	assert_int_equal(found_count(&f, "procs_blocked"), 1);
	findings_free(&f);
	f = findings_text(&probe_dstat, "1,2,3\n4|5|6\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_screen),
		cmocka_unit_test(test_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
