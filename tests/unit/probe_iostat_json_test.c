/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_iostat_json;

static void test_whole(void **state)
{
	struct findings f = findings_fixture(&probe_iostat_json, "iostat-dxyt-ISO.json");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "disk_r_iops"), 1);
	check_at(&f, "disk_r_iops", -1, "device=vda", 0);
	check_at(&f, "disk_w_iops", -1, "device=vda", 113);
	check_at(&f, "disk_write_bytes_per_s", -1, "device=vda", 424 * 1024);
	check_at(&f, "disk_w_await_ms", -1, "device=vda", 0.18);
	check_at(&f, "disk_aqu_sz", -1, "device=vda", 0.03);
	check_at(&f, "disk_util_pct", -1, "device=vda", 0.8);
	assert_null(found_nth(&f, "cpu_iowait_pct", 0));
	/* 2026-11-29T12:14:00+0000 */
	assert_int_equal(found_nth(&f, "disk_r_iops", 0)->t_us, 1795954440000000);
	assert_int_equal(found_nth(&f, "disk_r_iops", 0)->line, 21);
	findings_free(&f);
	f = findings_fixture(&probe_iostat_json, "iostat-xt-12.6.1.json");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "cpu_user_pct"), 2);
	assert_true(found_nth(&f, "cpu_user_pct", 0)->value == 85.43);
	assert_true(found_nth(&f, "cpu_system_pct", 0)->value == 14.57);
	/* 11/29/26 12:01:10, no zone */
	assert_int_equal(found_nth(&f, "cpu_user_pct", 0)->t_us, 1795953670000000);
	findings_free(&f);
	f = findings_fixture(&probe_iostat_json, "iostat-xt-JSON-de_DE.json");
	check_status(&f, PROBE_OK);
	assert_true(found_nth(&f, "cpu_user_pct", 0)->value == 76.12);
	findings_free(&f);
}

/* SIGTERM and SIGKILL leave the document open; what is in it counts. */
static void test_cut(void **state)
{
	static const char *const cut[] = {"iostat-killed-truncated.json", "iostat-sigterm.json"};
	struct findings f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
		f = findings_fixture(&probe_iostat_json, cut[i]);
		check_status(&f, PROBE_PARTIAL);
		assert_non_null(strstr(f.detail.data, "cut at line"));
		assert_int_equal(found_count(&f, "disk_util_pct"), 1);
		assert_int_equal(found_count(&f, "cpu_iowait_pct"), 1);
		findings_free(&f);
	}
	f = findings_fixture(&probe_iostat_json, "iostat-sigint.json");
	check_status(&f, PROBE_OK);
	findings_free(&f);
}

static void test_odd(void **state)
{
	static const char text[] =
		"\xef\xbb\xbf{\"sysstat\":{\"hosts\":[{\"statistics\":[{},{\"disk\":["
		"{\"rMB/s\":2,\"disk_device\":\"a\"},{\"disk_device\":\" disks\",\"r/s\":7},"
		"{\"r/s\":5},{\"disk_device\":\"b\",\"r/s\":\"N/A\",\"w/s\":null}]},"
		"{\"disk\":[{\"disk_device\":\"c\",\"r/s\":1,5";
	struct findings f;

	(void)state;
	check_chunking(&probe_iostat_json, NULL, text, strlen(text));
	f = findings_text(&probe_iostat_json, text);
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=a", 2 * 1024 * 1024);
	check_missing(&f, "disk_r_iops", -1, "device=b", "N/A");
	check_missing(&f, "disk_w_iops", -1, "device=b", "none");
	assert_int_equal(f.n, 3);
	findings_free(&f);
	f = findings_text(&probe_iostat_json,
			  "{\"sysstat\":{\"hosts\":[{\"statistics\":[{\"disk\":["
			  "{\"disk_device\":\"a\",\"r/s\":1},\n"
			  "{\"disk_device\":\" disks\",\"r/s\":1}]}]}]}}\n");
	/* A report alone is that since boot, and says so. */
	check_status(&f, PROBE_OK);
	check_at(&f, "disk_r_iops", -1, "device=a,since=boot", 1);
	assert_int_equal(f.v[0].line, 1);
	assert_int_equal(f.n, 1);
	findings_free(&f);
	f = findings_text(&probe_iostat_json,
			  "{\"sysstat\":{\"hosts\":[{\"statistics\":[{}]}]}}\n");
	check_status(&f, PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "since boot"));
	findings_free(&f);
	f = findings_text(&probe_iostat_json, "");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
