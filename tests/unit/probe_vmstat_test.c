/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_vmstat;

#define HEAD \
	"procs ---\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st"

static void test_rows(void **state)
{
	struct findings f = findings_fixture(&probe_vmstat, "vmstat-wt.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "procs_running"), 2);
	assert_int_equal(found_nth(&f, "procs_running", 0)->t_us, 1795832041000000);
	check_at(&f, "swap_used_mib", -1, NULL, 2);
	findings_free(&f);
	f = findings_text(&probe_vmstat, HEAD "\n 1 0 0 1024 0 0 0 0 8 9 1 2 3 4 90 3 0\n");
	check_at(&f, "cpu_iowait_pct", -1, "since=boot", 3);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=all,since=boot", 8192);
	findings_free(&f);
}

static void test_disks(void **state)
{
	struct findings f = findings_fixture(&probe_vmstat, "vmstat-dt.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=vda", 4194304);
	assert_int_equal(found_nth(&f, "disk_read_bytes_per_s", 0)->t_us, 1795832042000000);
	assert_string_equal(found_nth(&f, "disk_read_bytes_per_s", 1)->text, "reset");
	assert_null(found_at(&f, "disk_read_bytes_total", -1, "device=loop0"));
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_vmstat,
					  HEAD "\n 1 0 0 1 0 0 0 0 8 9 1 2 3 4 90 3 0\n"
					       " 1 0 0 1 0 0 0 0 8 9 1 2 3 4");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	findings_free(&f);
	f = findings_text(&probe_vmstat, "1 0 0 1 0 0 0 0 8 9 1 2 3 4 90 3 0\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* Runs one behind the other each begin with a mean since boot; a header of the next screen does
 * not begin one. */
static void test_runs(void **state)
{
	static const char row[] = "\n 2 0 0 1024 0 0 0 0 8 9 1 2 3 4 90 3 0",
			  boot[] = "\n 9 0 0 1024 0 0 0 0 8 9 1 2 3 4 90 3 0";
	struct buf b = {0};
	struct findings f;

	(void)state;
	for (int run = 0; run < 2; run++)
		buf_printf(&b, HEAD "%s%s\n", boot, row);
	f = findings_text(&probe_vmstat, b.data);
	assert_int_equal(found_count(&f, "procs_running"), 2);
	assert_int_equal(found_nth(&f, "procs_running", 1)->value, 2);
	findings_free(&f);
	buf_clear(&b);
	buf_printf(&b, HEAD "%s", boot);
	for (int i = 0; i < 20; i++)
		buf_str(&b, row);
	buf_printf(&b, "\n" HEAD "%s\n", row);
	f = findings_text(&probe_vmstat, b.data);
	assert_int_equal(found_count(&f, "procs_running"), 21);
	findings_free(&f);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_disks),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
