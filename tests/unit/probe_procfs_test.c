/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_procfs;

static const int64_t T0 = 1795958504000000;

static void test_rates(void **state)
{
	struct findings f = findings_fixture(&probe_procfs, "procfs.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "host.hz", "100");
	check_fact(&f, "host.ncpu", "2");
	check_at(&f, "cpu_user_pct", -1, NULL, 65);
	check_at(&f, "cpu_system_pct", -1, NULL, 15);
	check_at(&f, "cpu_iowait_pct", -1, NULL, 5);
	check_at(&f, "cpu_idle_pct", -1, NULL, 15);
	check_at(&f, "cpu_steal_pct", -1, NULL, 0);
	assert_int_equal(found_at(&f, "cpu_user_pct", -1, NULL)->t_us, T0 + 1000100);
	check_at(&f, "procs_blocked", -1, NULL, 1);
	check_at(&f, "host_mem_available_mib", -1, NULL, 5120);
	check_at(&f, "disk_read_bytes_per_s", -1, "device=vda", 20480 * 512);
	check_at(&f, "disk_write_bytes_per_s", -1, "device=vda", 0);
	check_at(&f, "disk_r_iops", -1, "device=vda", 200);
	check_at(&f, "disk_r_await_ms", -1, "device=vda", 0.5);
	assert_null(found_at(&f, "disk_w_await_ms", -2, NULL));
	check_at(&f, "disk_util_pct", -1, "device=vda", 50);
	check_at(&f, "disk_aqu_sz", -1, "device=vda", 2);
	assert_null(found_at(&f, "disk_r_iops", -2, "device=sdb"));
	check_at(&f, "net_rx_bytes_per_s", -1, "iface=eth0", 2000);
	check_at(&f, "net_tx_bytes_per_s", -1, "iface=eth0", 500);
	check_at(&f, "net_drops", -1, "iface=eth0", 3);
	check_at(&f, "tree_procs", -1, NULL, 3);
	check_at(&f, "tree_rss_mib", -1, NULL, 100);
	check_at(&f, "tree_cpu_cores", -1, NULL, 1.5);
	check_at(&f, "tree_read_bytes_per_s", -1, NULL, 0);
	check_at(&f, "tree_write_bytes_per_s", -1, NULL, 1048576);
	check_at(&f, "psi_some_pct", -1, "resource=io", 25);
	check_at(&f, "psi_full_pct", -1, "resource=io", 10);
	check_at(&f, "ib_rx_bytes_per_s", -1, "device=mlx5_0,port=1", 2000);
	check_at(&f, "ib_tx_bytes_per_s", -1, "device=mlx5_0,port=1", 1000);
	check_at(&f, "ib_xmit_wait_ticks_per_s", -1, "device=mlx5_0,port=1", 5);
	assert_int_equal(found_count(&f, "ib_errors_per_s"), 0);
	check_at(&f, "sampler_cpu_pct", -1, NULL, 0.4);
	assert_int_equal(found_count(&f, "sampler_tool_cpu_pct"), 0);
	/* the clock was set half a second ahead, once */
	assert_int_equal(found_count(&f, "clock_step_ms"), 1);
	check_at(&f, "clock_step_ms", -1, NULL, 500);
	findings_free(&f);
}

/* A counter that goes back, time that stands still, and numbers that cannot be read give no rate.
 */
static void test_drops(void **state)
{
	struct findings f = findings_fixture(&probe_procfs, "procfs.txt");

	(void)state;
	assert_int_equal(found_count(&f, "cpu_user_pct"), 1);
	assert_int_equal(found_count(&f, "net_rx_bytes_per_s"), 2);
	assert_true(found_nth(&f, "net_rx_bytes_per_s", 1)->value == 1000);
	assert_int_equal(found_count(&f, "tree_cpu_cores"), 3);
	assert_true(found_nth(&f, "tree_cpu_cores", 2)->value == 0.1);
	assert_int_equal(found_count(&f, "tree_read_bytes_per_s"), 3);
	assert_string_equal(found_nth(&f, "tree_read_bytes_per_s", 1)->text, "not readable");
	assert_true(found_nth(&f, "tree_read_bytes_per_s", 2)->value == 100);
	findings_free(&f);
}

/* The kernel's counter of pressure is read a little later than the clock. */
static void test_pressure(void **state)
{
	struct findings f = findings_text(&probe_procfs,
					  "1795958504000000 psi cpu 1000000 -1\n"
					  "1795958504200000 psi cpu 1202860 500000\n"
					  "1795958504400000 psi cpu 1302860 400000\n");

	(void)state;
	assert_int_equal(f.n, 2);
	check_at(&f, "psi_some_pct", -1, "resource=cpu", 100);
	assert_true(found_nth(&f, "psi_some_pct", 1)->value == 50);
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_procfs, "");

	(void)state;
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_procfs, "1795958504000000 hz 100\n1795958504000001 mem 1 x\n"
					 "1795958504000001 mem 1\nmem 1 2\n1795958504000001\n"
					 "1795958504000001 mem 1 20");
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(f.detail.data, "5 bad lines, the first is line 2"));
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
