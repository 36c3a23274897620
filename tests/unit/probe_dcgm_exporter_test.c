/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_dcgm_exporter;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_dcgm_exporter, "dcgm-exporter.prom");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_nth(&f, "gpu_util_pct", 0)->t_us, 1795832040000000);
	assert_int_equal(found_nth(&f, "gpu_util_pct", 2)->t_us, 1795832050000000);
	assert_int_equal(found_nth(&f, "tensor_active", 0)->t_us, 1795832047112000);
	check_at(&f, "tensor_active", -1, "gpu=0,gpu_i=2", 0.4125);
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(
		&probe_dcgm_exporter, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",pod=\"a} 5\n"
				      "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} x\n"
				      "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\"}\n"
				      "DCGM_FI_DEV_GPU_UTIL 7\nDCGM_FI_DEV_FB_FREE{gpu=\"0\"} 12");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "gpu_util_pct"), 1);
	check_at(&f, "gpu_util_pct", -1, NULL, 7);
	assert_int_equal(found_count(&f, "gpu_mem_free_mib"), 0);
	findings_free(&f);
	f = findings_text(&probe_dcgm_exporter, "node_load1 0.5\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
