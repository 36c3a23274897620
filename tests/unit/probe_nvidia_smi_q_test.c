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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
