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

/* Before 2.0 the exporter had names of its own; since 4.6 a host is "hostname". */
static void test_versions(void **state)
{
	static const char
		old[] = "# HELP dcgm_gpu_temp GPU temperature (in C).\n"
			"# TYPE dcgm_gpu_temp gauge\n"
			"dcgm_gpu_temp{gpu=\"0\",uuid=\"GPU-8f640a3c\"} 34\n"
			"dcgm_total_energy_consumption{gpu=\"0\",uuid=\"GPU-8f\"} 7.824e+06\n"
			"dcgm_fi_prof_pipe_tensor_active{gpu=\"1\",uuid=\"GPU-9\"} 0.5\n"
			"dcgm_exporter_other{gpu=\"0\"} 1\n";
	struct findings f = findings_text(&probe_dcgm_exporter, old);

	(void)state;
	assert_ptr_equal(sniff_text(old), &probe_dcgm_exporter);
	check_status(&f, PROBE_OK);
	check_at(&f, "gpu_temp_c", -1, "gpu=0", 34);
	check_at(&f, "gpu_energy_j_total", -1, "gpu=0", 7824);
	check_at(&f, "tensor_active", -1, "gpu=1", 0.5);
	findings_free(&f);
	f = findings_text(&probe_dcgm_exporter,
			  "DCGM_FI_DEV_GPU_UTIL{gpu=\"3\",UUID=\"GPU-1\",hostname=\"n7\"} 81\n"
			  "DCGM_FI_DEV_MEMORY_TEMP{gpu=\"3\",UUID=\"GPU-1\"} 0\n"
			  "DCGM_FI_DEV_GPU_TEMP{gpu=\"3\",UUID=\"GPU-1\"} 0\n");
	check_at(&f, "gpu_util_pct", -1, "gpu=3,host=n7", 81);
	check_missing(&f, "gpu_mem_temp_c", -1, "gpu=3", "not supported");
	check_at(&f, "gpu_temp_c", -1, "gpu=3", 0);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
