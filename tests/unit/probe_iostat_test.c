/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_iostat;

static void test_reports(void **state)
{
	struct findings f = findings_fixture(&probe_iostat, "iostat-x.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	/* The first report, since boot, is not there; times are those of the reports. */
	assert_int_equal(found_count(&f, "cpu_iowait_pct"), 2);
	check_at(&f, "cpu_iowait_pct", -1, NULL, 17.25);
	assert_int_equal(found_nth(&f, "cpu_iowait_pct", 0)->t_us, 1795832041000000);
	assert_int_equal(found_nth(&f, "disk_r_iops", 2)->t_us, 1795832042000000);
	assert_int_equal(found_nth(&f, "disk_r_iops", 0)->line, 15);
	findings_free(&f);
	f = findings_fixture(&probe_iostat, "iostat-old-groups.txt");
	check_status(&f, PROBE_OK);
	findings_free(&f);
	f = findings_fixture(&probe_iostat, "iostat-h.txt");
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_iops", -1, "device=mapper-of-a-long-name", 11);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=sda", 122880);
	assert_int_equal(found_count(&f, "disk_iops"), 2);
	findings_free(&f);
	f = findings_fixture(&probe_iostat, "iostat-pretty.txt");
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_r_iops", -1, "device=vda,since=boot", 87.5);
	findings_free(&f);
}

#define CPU  "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
#define DISK "Device  tps  kB_read/s  kB_wrtn/s\n"

/* Two runs in one text: each has a report since boot. */
static void test_runs(void **state)
{
	struct findings f = findings_text(&probe_iostat,
					  "Linux 6.1 (a) \t11/28/26 \t_x86_64_\t(2 CPU)\n" CPU
					  "  1 0 1 1 0 97\n"
					  "Linux 6.1 (a) \t11/28/26 \t_x86_64_\t(2 CPU)\n" CPU
					  "  2 0 1 1 0 96\n" CPU "  3 0 1 1 0 95\n");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "cpu_user_pct"), 2);
	check_at(&f, "cpu_user_pct", -1, "since=boot", 1);
	assert_true(found_nth(&f, "cpu_user_pct", 1)->value == 3);
	findings_free(&f);
	/* Disks alone: each header begins a report. */
	f = findings_text(&probe_iostat, DISK "sda 1 2 3\n" DISK "sda 4 5 6\n" DISK "sda 7 8 9\n");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "disk_iops"), 2);
	check_at(&f, "disk_write_bytes_per_s", -1, "device=sda", 6144);
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_iostat,
					  DISK "sda 1 2 3\n" DISK "sda 4 5 6\nsdb 1 2");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "disk_iops"), 1);
	findings_free(&f);
	/* The last number of a line without an end may be longer. */
	f = findings_text(&probe_iostat, DISK "sda 1 2 3\n" DISK "sda 4 5 6");
	assert_int_equal(found_count(&f, "disk_read_bytes_per_s"), 1);
	assert_int_equal(found_count(&f, "disk_write_bytes_per_s"), 0);
	findings_free(&f);
	f = findings_text(&probe_iostat,
			  CPU "1,5 0,0 1,0 1,0 0,0 96,5\n" CPU "1,5 0,0 1,0 1,0 0,0 96,5\n");
	check_status(&f, PROBE_ABSENT);
	assert_int_equal(f.n, 0);
	assert_non_null(strstr(f.detail.data, "LC_ALL=C"));
	findings_free(&f);
	f = findings_text(&probe_iostat, "sda 1 2 3\nhello\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* --pretty breaks the disks of one report into tables of few columns. */
static void test_pretty(void **state)
{
	static const char report[] =
		"11/28/2026 %s AM\n"
		"avg-cpu:  %%user   %%nice %%system %%iowait  %%steal   %%idle\n"
		"           3.00    0.00    1.00    0.00    0.00   96.00\n\n"
		"     r/s     rGB/s r_await Device\n    %d.00    2.00    0.50 nvme0n1\n\n"
		"     w/s     wMB/s w_await Device\n    %d.00    3.00    0.25 nvme0n1\n\n"
		"     f/s f_await  aqu-sz  %%util Device\n    0.00    0.00    0.10   7.00 nvme0n1\n\n";
	_cleanup_free_ char *first = xasprintf(report, "02:14:07", 900, 800);
	_cleanup_free_ char *next = xasprintf(report, "02:14:08", 9, 8);
	_cleanup_free_ char *both = xasprintf("%s%s", first, next);
	struct findings f = findings_text(&probe_iostat, both);

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_r_iops", -1, "device=nvme0n1", 9);
	check_at(&f, "disk_w_iops", -1, "device=nvme0n1", 8);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=nvme0n1", 2.0 * 1024 * 1024 * 1024);
	assert_int_equal(found_count(&f, "disk_r_iops"), 1);
	assert_int_equal(found_count(&f, "disk_w_iops"), 1);
	assert_int_equal(found_count(&f, "disk_util_pct"), 1);
	assert_int_equal(found_nth(&f, "disk_w_iops", 0)->t_us, 1795832048000000);
	findings_free(&f);
	f = findings_text(&probe_iostat, first);
	check_at(&f, "disk_w_iops", -1, "device=nvme0n1,since=boot", 800);
	assert_int_equal(found_count(&f, "disk_w_iops"), 1);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pretty),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
