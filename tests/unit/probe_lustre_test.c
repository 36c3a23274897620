/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_lustre;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_lustre, "lustre.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "fs_read_bytes_per_s", -1, "fs=scratch,layer=llite", 1048576000);
	check_at(&f, "fs_read_bytes_total", -1, "layer=osc,target=OST0003", 1258291200);
	assert_int_equal(found_nth(&f, "fs_read_bytes_total", 0)->t_us, 1795832040000000);
	findings_free(&f);
}

/* Found by a fuzzer: a heading without a name. */
static void test_headings(void **state)
{
	struct findings f = findings_text(&probe_lustre,
					  "llite.stats=\nllite..stats=\nosc.a.stats=\n"
					  "read_bytes    12 samples [bytes] 1 2 1024\n");

	(void)state;
	check_at(&f, "fs_read_bytes_total", -1, "fs=a,layer=osc", 1024);
	findings_free(&f);
	f = findings_text(&probe_lustre,
			  "llite.b-ffff9a3e8c1d8000.stats=snapshot_time  1795832040.5 secs.usecs\n"
			  "read_bytes    12 samples [bytes] 1 2 1024\n");
	check_at(&f, "fs_read_bytes_total", -1, "fs=b,layer=llite", 1024);
	assert_int_equal(f.v[0].t_us, 1795832040000005);
	findings_free(&f);
}

/* One file of /proc: no heading tells the file system. */
static void test_file(void **state)
{
	struct findings f = findings_text(&probe_lustre,
					  "snapshot_time             1795832040.5 secs.usecs\n"
					  "read_bytes    12 samples [bytes] 1 2 1024\n"
					  "ioctl         3 samples [regs]\nopen  x samples [regs]\n"
					  "write_bytes   12 samples [bytes] 1 2 10");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "fs_read_bytes_total", -1, NULL, 1024);
	check_at(&f, "fs_ops_total", -1, "op=ioctl", 3);
	assert_int_equal(found_count(&f, "fs_write_bytes_total"), 0);
	findings_free(&f);
	f = findings_text(&probe_lustre, "read_bytes    12 samples [bytes] 1 2 1024\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* Up to 2.9 the microseconds have no leading zeros: from .950000 to .50 of the next second. */
static void test_old_times(void **state)
{
	struct findings f = findings_text(
		&probe_lustre, "llite.w1-ffff88036a305c00.stats=\n"
			       "snapshot_time             1420750934.950050 secs.usecs\n"
			       "read_bytes                2 samples [bytes] 0 50 1000\n"
			       "snapshot_time             1420750935.50 secs.usecs\n"
			       "read_bytes                3 samples [bytes] 0 50 1095\n");

	(void)state;
	assert_int_equal(found_nth(&f, "fs_read_bytes_total", 1)->t_us, 1420750935000050);
	check_at(&f, "fs_read_bytes_per_s", -1, "fs=w1,layer=llite", 1900);
	findings_free(&f);
}

/* Other parameters among them are not the client's, nor of the heading before. */
static void test_foreign(void **state)
{
	struct findings f = findings_text(
		&probe_lustre, "llite.w1-ffff88036a305c00.stats=\n"
			       "snapshot_time             1720750934.950050123 secs.nsecs\n"
			       "read_bytes                2 samples [bytes] 0 50 1000\n"
			       "obdfilter.w1-OST0000.stats=\n"
			       "snapshot_time             1720750934.950050123 secs.nsecs\n"
			       "read_bytes                7 samples [bytes] 0 50 7000\n"
			       "mdc.w1-MDT0000-mdc-ffff88036a305c00.md_stats=\n"
			       "close                     11 samples [reqs]\n"
			       "mdc.w1-MDT0000-mdc-ffff88036a305c00.stats=\n"
			       "snapshot_time             1720750934.950050123 secs.nsecs\n"
			       "mds_close                 2 samples [usec] 3 5 8 34\n");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "fs_read_bytes_total"), 1);
	assert_int_equal(found_count(&f, "fs_ops_total"), 2);
	check_at(&f, "fs_op_time_us", -1, "fs=w1,layer=mdc,target=MDT0000,op=mds_close", 4);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_times), cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_fixture),   cmocka_unit_test(test_headings),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
