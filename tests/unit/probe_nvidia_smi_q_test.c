/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_nvidia_smi_q;

static void test_fixtures(void **state)
{
	struct findings f = findings_fixture(&probe_nvidia_smi_q, "smi-q.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "gpu.00000000:17:00.0.name", "NVIDIA A100-SXM4-80GB");
	check_fact(&f, "gpu.00000000:17:00.0.driver", "470.182.03");
	check_at(&f, "clock_event_reasons", -1, "gpu=00000000:17:00.0", 0x4c);
	assert_int_equal(found_nth(&f, "gpu_util_pct", 0)->t_us, 1795832047000000);
	assert_int_equal(found_count(&f, "gpu_mem_used_mib"), 1); /* not that of BAR1 */
	findings_free(&f);
	f = findings_fixture(&probe_nvidia_smi_q, "smi-q-h200.txt");
	check_status(&f, PROBE_OK);
	check_at(&f, "gpu_power_w", -1, "gpu=00000000:00:06.0",
		 78.97); /* not of memory or module */
	assert_int_equal(found_count(&f, "gpu_power_w"), 1);
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(
		&probe_nvidia_smi_q, "=====NVSMI LOG=====\nGPU 00000000:17:00.0\n"
				     "    Utilization\n        Gpu  : 98 %\n        Memory : x\n"
				     "    FB Memory Usage\n        Used : 12");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "gpu_util_pct", -1, NULL, 98);
	assert_int_equal(found_count(&f, "gpu_mem_used_mib"), 0);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_q,
			  "=====NVSMI LOG=====\nGPU 00000000:17:00.0\n    Clocks Event Reasons\n"
			  "        Idle  : Active\n");
	assert_int_equal(found_count(&f, "clock_event_reasons"), 0);
	assert_non_null(strstr(f.detail.data, "reasons"));
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_q,
			  "=====NVSMI LOG=====\nGPU 00000000:17:00.0\n    Clocks Event Reasons\n"
			  "        Idle  : Active\n        Display Clock Setting : Not Active\n");
	check_at(&f, "clock_event_reasons", -1, NULL, 1);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_q, "    Utilization\n        Gpu : 98 %\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_drivers(void **state)
{
	/* R304 */
	struct findings f = findings_text(
		&probe_nvidia_smi_q,
		"=====NVSMI LOG=====\nDriver Version  : 304.51\nGPU 0000:02:00.0\n"
		"    Memory Usage\n        Total : 4799 MB\n        Used : 11 MB\n"
		"    ECC Errors\n        Volatile\n            Single Bit\n"
		"                Device Memory : 2\n                Total : 3\n"
		"            Double Bit\n                Total : 1\n"
		"        Aggregate\n            Single Bit\n                Total : 9\n"
		"    Temperature\n        Gpu : 30 C\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "gpu_mem_total_mib", -1, NULL, 4799);
	check_at(&f, "gpu_mem_used_mib", -1, NULL, 11);
	check_at(&f, "gpu_temp_c", -1, NULL, 30);
	check_at(&f, "gpu_ecc_corrected_total", -1, NULL, 3);
	check_at(&f, "gpu_ecc_uncorrected_total", -1, NULL, 1);
	findings_free(&f);
	/* R610: the version has a note, the average may be missing, limits are in a section. */
	f = findings_text(
		&probe_nvidia_smi_q,
		"=====NVSMI LOG=====\nDriver Version  : 610.62 [Deprecated; use another]\n"
		"GPU 00000000:17:00.0\n    GPU Power Readings\n        Average Power Draw : N/A\n"
		"        Instantaneous Power Draw : 97.50 W\n        GPU Ceiling Power Limit\n"
		"            Current Power Limit : 250.00 W\n    Module Power Readings\n"
		"        Average Power Draw : N/A\n        Instantaneous Power Draw : 7.00 W\n");
	check_fact(&f, "gpu.00000000:17:00.0.driver", "610.62");
	check_at(&f, "gpu_power_w", -1, NULL, 97.5);
	assert_int_equal(found_count(&f, "gpu_power_w"), 1);
	check_at(&f, "gpu_power_limit_w", -1, NULL, 250);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_q,
			  "=====NVSMI LOG=====\nGPU 00000000:17:00.0\n    GPU Power Readings\n"
			  "        Average Power Draw : 90.00 W\n"
			  "        Instantaneous Power Draw : 97.50 W\n");
	check_at(&f, "gpu_power_w", -1, NULL, 90);
	assert_int_equal(found_count(&f, "gpu_power_w"), 1);
	findings_free(&f);
}

/* What an instance of MIG has is not what the GPU has. */
static void test_mig(void **state)
{
	struct findings f = findings_text(
		&probe_nvidia_smi_q,
		"=====NVSMI LOG=====\nGPU 00000000:17:00.0\n    MIG Device\n        Index : 0\n"
		"        ECC Errors\n            Volatile\n                SRAM Uncorrectable : 5\n"
		"        FB Memory Usage\n            Total : 9984 MiB\n            Used : 9 MiB\n"
		"    FB Memory Usage\n        Total : 81559 MiB\n        Used : 11125 MiB\n"
		"    ECC Errors\n        Volatile\n            SRAM Correctable : 1\n"
		"            SRAM Uncorrectable Parity : 2\n            DRAM Correctable : 4\n"
		"            DRAM Uncorrectable : 8\n        Aggregate\n"
		"            DRAM Correctable : 70\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "gpu_mem_total_mib", -1, NULL, 81559);
	assert_int_equal(found_count(&f, "gpu_mem_total_mib"), 1);
	check_at(&f, "gpu_mem_used_mib", -1, NULL, 11125);
	check_at(&f, "gpu_ecc_corrected_total", -1, NULL, 5);
	check_at(&f, "gpu_ecc_uncorrected_total", -1, NULL, 10);
	assert_int_equal(found_count(&f, "gpu_ecc_uncorrected_total"), 1);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drivers),
		cmocka_unit_test(test_mig),
		cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
