/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_ib_sysfs;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_ib_sysfs, "ib-sysfs.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "ib_tx_bytes_per_s", -1, "device=mlx5_0,port=1", 4e6);
	assert_int_equal(found_at(&f, "ib_tx_bytes_per_s", -1, NULL)->t_us, 1795832042500000);
	check_missing(&f, "ib_xmit_wait_ticks_total", -1, "device=mlx5_0", "N/A");
	check_fact(&f, "ib.mlx5_0/1.state", "ACTIVE");
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(
		&probe_ib_sysfs, "sys/class/infiniband/a/ports/2/counters/port_rcv_data: '7'\n"
				 "/sys/class/infiniband/a/ports/2/counters/port_xmit_data=x\n"
				 "/sys/class/infiniband/a/ports/2/rate:very fast\n"
				 "/sys/class/infiniband/a/ports/2/unknown:5\n"
				 "/sys/class/infiniband/a/ports/2/counters/port_rcv_data:12");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "ib_rx_bytes_total", -1, "device=a,port=2", 28);
	assert_int_equal(f.n, 1);
	findings_free(&f);
	f = findings_text(&probe_ib_sysfs, "/sys/class/net/eth0/speed:5\n");
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
