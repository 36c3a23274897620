/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_nvidia_smi_dmon;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_nvidia_smi_dmon, "smi-dmon.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_nth(&f, "gpu_power_w", 0)->t_us, 1795832040000000);
	check_missing(&f, "gpu_mem_temp_c", -1, "gpu=1", "N/A");
	/* Neither the table of processes nor what follows another heading is read. */
	assert_int_equal(found_count(&f, "gpu_util_pct"), 5);
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(
		&probe_nvidia_smi_dmon,
		"#Time        gpu     fb  rxpci\n#HH:MM:SS    Idx  MB  MB/s\n"
		" 02:14:00      0    512      1\n 02:14:00      1    x   2\n"
		" 02:14:01      0    51");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "gpu_mem_used_mib", -1, "gpu=0", 512);
	check_at(&f, "pcie_rx_bytes_per_s", -1, "gpu=1", 2e6);
	assert_int_equal(found_nth(&f, "gpu_mem_used_mib", 0)->t_us, -1); /* no date */
	assert_int_equal(found_count(&f, "gpu_mem_used_mib"), 1);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_dmon,
			  "# gpu, pwr, sm\n# Idx, W, %\n0, 101, 7\n1, -, ,\n");
	check_at(&f, "gpu_power_w", -1, "gpu=0", 101);
	check_at(&f, "gpu_util_pct", -1, "gpu=0", 7);
	check_missing(&f, "gpu_power_w", -1, "gpu=1", "N/A");
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_dmon, "    0    101      7\n");
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
