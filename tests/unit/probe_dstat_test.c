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
	/* A run that was appended begins with its own mean since boot. */
	f = findings_text(&probe_dstat, "\"Dstat 0.7.3 CSV output\"\n\"Host:\",\"a\"\n\"procs\",\n"
					"\"run\",\"blk\"\n9,0\n1,0\n\"Dstat 0.7.3 CSV output\"\n"
					"\"Host:\",\"a\"\n\"procs\",\n\"run\",\"blk\"\n9,0\n2,0\n");
	assert_int_equal(found_count(&f, "procs_running"), 2);
	assert_int_equal(found_nth(&f, "procs_running", 1)->value, 2);
	findings_free(&f);
	f = findings_text(&probe_dstat, "1,2,3\n4|5|6\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static double dool_read(const char *version, const char *options)
{
	_cleanup_free_ char *text = xasprintf(
		"\"%s CSV output\"\n"
		"\"Cmdline:\",\"dool -td %s -D total,sda\",,,,\"Date:\",\"28 Nov 2026 02:14:06 UTC\"\n"
		"\"system\",\"dsk/total\",,\"dsk/sda\",,\"memory usage\"\n"
		"\"time\",\"dsk/total:read\",\"dsk/total:writ\",\"dsk/sda:read\",\"dsk/sda:writ\","
		"\"used\"\nNov-28 02:14:06,1,1,1,1,1\nNov-28 02:14:07,8000,0,4000,0,1048576\n",
		version, options);
	struct findings f = findings_text(&probe_dstat, text);
	double v;

	check_status(&f, PROBE_OK);
	check_at(&f, "host_mem_used_mib", -1, NULL, 1);
	v = found_nth(&f, "disk_read_bytes_per_s", 0)->value;
	assert_string_equal(found_nth(&f, "disk_read_bytes_per_s", 1)->labels, "device=sda");
	assert_int_equal(found_nth(&f, "disk_read_bytes_per_s", 1)->value, v / 2);
	assert_int_equal(found_nth(&f, "disk_read_bytes_per_s", 0)->t_us, 1795832047000000);
	findings_free(&f);
	return v;
}

/* Bits since 1.3 unless it was asked for bytes; one of 1.0 calls itself Dstat. */
static void test_dool(void **state)
{
	(void)state;
	assert_int_equal(dool_read("dool 1.3.4", ""), 1000);
	assert_int_equal(dool_read("dool 1.3.4", "--bytes"), 8000);
	assert_int_equal(dool_read("dool 1.2.0", ""), 8000);
	assert_int_equal(dool_read("Dstat 1.0.0", ""), 8000);
	assert_ptr_equal(sniff_text("\"dool 1.3.4 CSV output\"\n"), &probe_dstat);
}

static void test_dool_screen(void **state)
{
	struct findings f = findings_text(
		&probe_dstat, "\u2504\u2504\u2504system\u2504\u2504\u252c\u2504dsk/total\u2504 "
			      "\u2504\u2504dsk/sda\u2504\u2504\u252c\u2504\u2504procs\u2504\u2504\n"
			      "      time     \u2502 read  writ  read  writ\u2502run blk\n"
			      "Nov-28 02:14:06\u2502   0     0 \u250a   0     0 \u25021.0   0\n"
			      "Nov-28 02:14:07\u2502  16M    0 \u250a  800k    0 \u25023.0   0\n"
			      "Nov-28 02:14:08\u2502  16M   2K\u250a  400b    0 \u25025.0   0\n");

	(void)state;
	check_status(&f, PROBE_OK);
	/* Nothing had told yet that these are bits. */
	assert_string_equal(found_nth(&f, "disk_read_bytes_per_s", 0)->text, "bits or bytes");
	assert_int_equal(found_nth(&f, "disk_read_bytes_per_s", 1)->value, 100000);
	assert_string_equal(found_nth(&f, "disk_read_bytes_per_s", 1)->labels, "device=sda");
	assert_int_equal(found_nth(&f, "disk_read_bytes_per_s", 2)->value, 2000000);
	assert_int_equal(found_nth(&f, "disk_read_bytes_per_s", 3)->value, 50);
	assert_string_equal(found_nth(&f, "disk_write_bytes_per_s", 2)->text, "bits or bytes");
	assert_int_equal(found_nth(&f, "disk_write_bytes_per_s", 0)->value, 0);
	check_at(&f, "procs_running", -1, NULL, 3);
	findings_free(&f);
	/* pcp-dstat: its group of CPUs has a name of its own. */
	f = findings_text(&probe_dstat,
			  "----total-usage---- -dsk/total-\nusr sys idl wai stl| read  "
			  "writ\n  1   2  97   0   0|   0  1k\n  3   4  93   0   0|   0  2k\n");
	check_at(&f, "cpu_user_pct", -1, NULL, 3);
	check_at(&f, "disk_write_bytes_per_s", -1, "device=all", 2048);
	findings_free(&f);
	/* What is not known of a row may hold anything; ^C stopped it. */
	f = findings_text(&probe_dstat,
			  "----system---- ----most-expensive---- -dsk/total- -most-expensive-\n"
			  "     time     |     i/o process      | read  writ|  cpu process\n"
			  "07-10 03:39:01|sshd: root@ 146B  180B|   1     2 |\n"
			  "07-10 03:39:02|systemd      10k 1370B|   3     4 |x 98 | y\n"
			  "07-10 03:39:03|                      |   5     6 ^C\n"
			  "07-10 03:39:04|                      |   7     8 |^C\n");
	assert_int_equal(found_count(&f, "disk_read_bytes_per_s"), 2);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=all", 3);
	assert_int_equal(found_nth(&f, "disk_write_bytes_per_s", 1)->value, 8);
	findings_free(&f);
	f = findings_text(&probe_dstat, "---load-avg--- -dsk/total-\n 1m   5m  15m | read  writ\n"
					"0.06 0.06 0.06|   1     2\n0.06 0.06 0.06|   3     4 \n");
	check_at(&f, "disk_read_bytes_per_s", -1, "device=all", 3);
	findings_free(&f);
	/* Its first row is blank: the next one is no mean since boot. */
	f = findings_text(&probe_dstat, "----system---- -dsk/total-\n     time     | read  writ\n"
					"10-02 17:04:49|           \n10-02 17:04:50|   0  235k\n"
					"10-02 17:04:51|   0     0 \n");
	assert_int_equal(found_count(&f, "disk_write_bytes_per_s"), 2);
	check_at(&f, "disk_write_bytes_per_s", -1, "device=all", 235 * 1024);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dool),  cmocka_unit_test(test_dool_screen),
		cmocka_unit_test(test_file),  cmocka_unit_test(test_screen),
		cmocka_unit_test(test_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
