/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_dcgm_dmon;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_dcgm_dmon, "dcgmi-dmon.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "tensor_active", -1, "gpu_i=3", 0.26);
	check_missing(&f, "nvlink_rx_bytes_per_s", -1, "gpu=1", "not supported");
	check_missing(&f, "gpu_power_w", -1, "gpu=1", "N/A");
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(
		&probe_dcgm_dmon,
		"# Entity  GRACT  FOO  DRAMA\n      Id\n    GPU 0  N/W  7  0.25\n"
		"GPU 1 0.5 7\nSwitch 0 1 2 3\nGPU 0 LINK 3 0.5 7 0.5\nGPU 0 0.5 7 0.5");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_missing(&f, "gr_engine_active", -1, "gpu=0", "not watched");
	assert_int_equal(found_count(&f, "dram_active"), 1); /* the last one may go on */
	check_at(&f, "dram_active", -1, "gpu=0", 0.25);
	findings_free(&f);
	f = findings_text(&probe_dcgm_dmon, "GPU 0 0.5\n");
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
