/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_nvidia_smi_topo;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_nvidia_smi_topo, "smi-topo.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "topo.GPU0-GPU1", "NV18");
	check_fact(&f, "topo.GPU0.nic", "NIC0 PIX");
	check_fact(&f, "topo.gpu_worst", "NV18");
	check_missing(&f, "nvlink_link_gb_per_s", -1, "gpu=0,link=1", "inactive");
	findings_free(&f);
}

/* Blanks in place of tabs, no NVLink, and devices of the old names. */
static void test_paste(void **state)
{
	struct findings f = findings_text(
		&probe_nvidia_smi_topo,
		"        GPU0    GPU1    GPU2    mlx5_bond_0  CPU Affinity\n"
		"GPU0     X      PIX     SYS     NODE    0-11\n"
		"GPU1    PIX      X      PHB     NODE    0-11\n"
		"GPU2    SYS     PHB      X      SYS     12-23\n"
		"mlx5_bond_0  NODE    NODE    SYS      X\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "topo.gpu_worst", "SYS");
	check_fact(&f, "topo.GPU1-mlx5_bond_0", "NODE");
	check_fact(&f, "topo.GPU2.nic", "mlx5_bond_0 SYS");
	check_at(&f, "gpu_nvlinks", -1, "gpu=1,peer=2", 0);
	assert_int_equal(found_count(&f, "gpu_nvlinks"), 3);
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_nvidia_smi_topo,
					  "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-1\n"
					  "GPU1\tNV18\n");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_fact(&f, "topo.GPU0-GPU1", "NV18");
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_topo,
			  "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tLAN\t0-1\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_nvidia_smi_topo, "GPU0\t X \tNV18\t0-1\n Link 0: 5 GB/s\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_other_tables(void **state)
{
	/* Links of drivers up to R375, and NICs with long names. */
	struct findings f = findings_text(&probe_nvidia_smi_topo,
					  "\tGPU0\tGPU1\tGPU2\trocep139s0f0np01\tCPU Affinity\n"
					  "GPU0\t X \tPSB\tSOC\tPHB\t0-7,16-23\n"
					  "GPU1\tPSB\t X \tSOC\tPHB\t0-7,16-23\n"
					  "GPU2\tSOC\tSOC\t X \tSOC\t8-15,24-31\n"
					  "rocep139s0f0np01\tPHB\tPHB\tSOC\t X \t\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "topo.GPU0-GPU1", "PSB");
	check_fact(&f, "topo.GPU2.nic", "rocep139s0f0np01 SOC");
	check_fact(&f, "topo.gpu_worst", "SOC");
	findings_free(&f);
	/* topo -p2p behind it is no matrix of links. */
	f = findings_text(&probe_nvidia_smi_topo, "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
						  "GPU0\t X \tPHB\t0-63\t0\n"
						  "GPU1\tPHB\t X \t0-63\t0\n\nLegend:\n\n"
						  " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n"
						  " GPU1\tGNS\tX\t\n");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "topo.GPU0-GPU1"), 1);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_tables),
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_paste),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
