/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_nvidia_smi_csv;

static void test_odd(void **state)
{
	struct findings f = findings_fixture(&probe_nvidia_smi_csv,
					     "nvidia-smi-csv-nounits-odd.csv");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "gpu_util_pct", -1, "gpu=0", 97);
	check_at(&f, "gpu_mem_used_mib", -1, "gpu=0", 70211);
	check_at(&f, "gpu_power_w", -1, "gpu=0", 688.12);
	check_at(&f, "clock_event_reasons", -1, "gpu=0", 4);
	assert_int_equal(found_at(&f, "gpu_util_pct", -1, "gpu=0")->t_us, 1795832047112000);
	check_missing(&f, "gpu_util_pct", -1, "gpu=1", "N/A");
	check_missing(&f, "gpu_power_w", -1, "gpu=1", "not supported");
	check_at(&f, "gpu_mem_used_mib", -1, "gpu=1", 70198);
	check_missing(&f, "gpu_util_pct", -1, "gpu=2", "unknown error");
	check_missing(&f, "gpu_power_w", -1, "gpu=2", "requires reset");
	check_missing(&f, "gpu_temp_c", -1, "gpu=2", "N/A");
	check_missing(&f, "sm_clock_mhz", -1, "gpu=2", "deprecated");
	check_missing(&f, "clock_event_reasons", -1, "gpu=2", "not active");
	assert_int_equal(found_count(&f, "gpu_util_pct"), 3);
	check_fact(&f, "gpu.0.name", "NVIDIA H100 80GB HBM3");
	assert_int_equal(found_count(&f, "nvidia_smi.error"), 1);
	findings_free(&f);
}

static void test_units(void **state)
{
	struct findings f = findings_fixture(&probe_nvidia_smi_csv, "smi-h200.csv");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "gpu_power_w"), 42);
	assert_true(found_nth(&f, "gpu_power_w", 0)->value == 78.95);
	assert_true(found_nth(&f, "sm_clock_mhz", 0)->value == 345);
	assert_true(found_nth(&f, "mem_clock_mhz", 0)->value == 3201);
	assert_true(found_nth(&f, "gpu_util_pct", 41)->value == 96);
	assert_true(found_nth(&f, "gpu_mem_util_pct", 41)->value == 15);
	assert_true(found_nth(&f, "gpu_mem_used_mib", 41)->value == 5927);
	assert_true(found_nth(&f, "gpu_power_w", 41)->value == 406.67);
	assert_true(found_nth(&f, "clock_event_reasons", 0)->value == 1);
	assert_int_equal(found_count(&f, "gpu.0.name"), 1);
	findings_free(&f);
}

static void test_rows(void **state)
{
	struct findings f;

	(void)state;
	f = findings_text(&probe_nvidia_smi_csv,
			  "index, name, utilization.gpu [%]\n0, a, b, 5\n1, x, 7\n2, y, 9");
	check_status(&f, PROBE_PARTIAL); /* the row of device 0 */
	assert_int_equal(found_count(&f, "gpu_util_pct"), 1);
	check_at(&f, "gpu_util_pct", -1, "gpu=1", 7);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv,
			  "timestamp, index, utilization.gpu [%], clocks_throttle_reasons.active\n"
			  "2026/11/28 02:14:07.112, 0, 5 %\n"
			  "2026/11/28 02:14:07.112, 0, 5,5 %, 0x0\n"
			  "2026/11/28 02:14:07.112, 0, 6 %, 0xfF\n"
			  "index, memory.used\n3, 5 MiB\n2026/11/28 02:1");
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "gpu_util_pct"), 1);
	check_at(&f, "clock_event_reasons", -1, "gpu=0", 255);
	check_at(&f, "gpu_mem_used_mib", -1, "gpu=3", 5);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv, "No devices were found\n");
	check_status(&f, PROBE_FAILED);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv, "index, memory.used\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv, "");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_samples(void **state)
{
	struct findings f;

	(void)state;
	if (findings_sample(&probe_nvidia_smi_csv, "nvidia-smi/query-gpu-nounits-8xH100.csv", &f)) {
		assert_int_equal(found_count(&f, "gpu_power_w"), 8);
		check_at(&f, "gpu_power_w", -1, "gpu=0", 70.89);
		check_at(&f, "gpu_temp_c", -1, "gpu=7", 25);
		check_at(&f, "gpu_mem_total_mib", -1, "gpu=4", 81559);
		findings_free(&f);
	}
	if (findings_sample(&probe_nvidia_smi_csv, "nvidia-smi/query-gpu-units-2gpu.csv", &f)) {
		check_at(&f, "gpu_fan_pct", -1, "gpu=0", 38);
		check_at(&f, "gpu_mem_used_mib", -1, "gpu=0", 575);
		check_at(&f, "gpu_mem_used_mib", -1, "gpu=1", 1234);
		findings_free(&f);
	}
	if (findings_sample(&probe_nvidia_smi_csv, "nvidia-smi/h100-590.48-capture.txt", &f)) {
		const struct found *last = found_nth(&f, "gpu_util_pct",
						     found_count(&f, "gpu_util_pct") - 1);

		assert_true(last->value == 100);
		last = found_nth(&f, "gpu_power_w", found_count(&f, "gpu_power_w") - 1);
		assert_true(last->value == 631.95);
		last = found_nth(&f, "gpu_mem_used_mib", found_count(&f, "gpu_mem_used_mib") - 1);
		assert_true(last->value == 19818);
		findings_free(&f);
	}
}

static void test_old_and_bus(void **state)
{
	struct findings f = findings_text(
		&probe_nvidia_smi_csv, "name, pci.bus_id, memory.used [MB], utilization.gpu [%]\n"
				       "Tesla K20m, 0000:02:00.0, 11 MB, 3 %\n"
				       "Tesla K20m, 0000:03:00.0, 12 MB, 4 %\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "gpu_mem_used_mib", -1, "gpu=0000:02:00.0", 11);
	check_at(&f, "gpu_util_pct", -1, "gpu=0000:03:00.0", 4);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv,
			  "utilization.gpu [%]\n97 %\nepoch 1 of 3\n[N/A]\n91 %\n");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "gpu_util_pct"), 3); /* one of them is missing */
	check_at(&f, "gpu_util_pct", -1, NULL, 97);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv, "name\nx\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_csv, "pci.bus_id, uuid, index, utilization.gpu [%]\n"
						 "0000:02:00.0, GPU-1, 0, 3 %\n");
	check_at(&f, "gpu_util_pct", -1, "gpu=0", 3);
	findings_free(&f);
}

/* Without times a row is known by its device. */
static void test_comma_in_a_cell(void **state)
{
	struct findings f = findings_text(&probe_nvidia_smi_csv,
					  "index, utilization.gpu [%], power.draw [W]\n"
					  "0, 87 %, 100.00 W\n1, 1,5 %, 100.00 W\nhello, world\n"
					  "2, 7 %, 100,50 W\n");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "gpu_power_w"), 1);
	assert_non_null(strstr(f.detail.data, "2 bad lines, the first is line 3: a row with"));
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comma_in_a_cell),
		cmocka_unit_test(test_old_and_bus),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
