/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

#include "probes/input.h"

extern const struct probe probe_ethtool;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_ethtool, "ethtool-mlx5.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "ib_rx_bytes_per_s", -1, "iface=ens1f0np0", 1e9);
	check_missing(&f, "ib_tx_bytes_per_s", -1, NULL, "reset");
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_ethtool,
					  "NIC statistics:\n     rx_bytes: 5\nother: 7\n"
					  "     queue_0_state: up\n     rx_prioX_pause: 3\n"
					  "     tx_bytes: 12");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "net_rx_bytes_total", -1, NULL, 5);
	check_at(&f, "net_counter_total", -1, "counter=rx_prioX_pause", 3);
	assert_int_equal(f.n, 2);
	findings_free(&f);
	f = findings_text(&probe_ethtool, "     rx_bytes: 5\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* A line that is too long keeps its head, and that may end inside a number. */
static void test_long(void **state)
{
	struct buf b = {0};
	struct findings f;

	(void)state;
	buf_str(&b, "NIC statistics:\n     rx_bytes: ");
	for (size_t i = 0; i < INPUT_LINE_MAX - strlen("     rx_bytes: ") - 3; i++)
		buf_char(&b, ' ');
	buf_str(&b, "123456\n     tx_bytes: 7\n");
	f = findings_of(&probe_ethtool, NULL, b.data, b.len, 0);
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "net_rx_bytes_total"), 0);
	check_at(&f, "net_tx_bytes_total", -1, NULL, 7);
	findings_free(&f);
	buf_free(&b);
}

static void test_priorities(void **state)
{
	struct findings f = findings_text(&probe_ethtool, "NIC statistics:\n"
							  "     [0]: rx_bytes: 11\n"
							  "     rx_octets: 12\n"
							  "     rx_global_pause: 3\n"
							  "     tx_global_pause_duration: 4\n"
							  "     tx_prio12_pause: 5\n"
							  "     rx_prio0_discards: 6\n"
							  "     rx_prio1_buf_discard: 7\n"
							  "     rx_prio2_cong_discard: 8\n"
							  "     rx_prio2_bytes: 9\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "net_counter_total", -1, "counter=[0]: rx_bytes", 11);
	check_at(&f, "net_rx_bytes_total", -1, NULL, 12);
	check_at(&f, "pfc_pause_frames_total", -1, "dir=rx,prio=global", 3);
	check_at(&f, "pfc_pause_us_total", -1, "dir=tx,prio=global", 4);
	check_at(&f, "pfc_pause_frames_total", -1, "dir=tx,prio=12", 5);
	check_at(&f, "net_drops_total", -1, "counter=rx_prio0_discards", 6);
	check_at(&f, "net_drops_total", -1, "counter=rx_prio1_buf_discard", 7);
	check_at(&f, "rdma_congestion_total", -1, "counter=rx_prio2_cong_discard", 8);
	check_at(&f, "net_counter_total", -1, "counter=rx_prio2_bytes", 9);
	findings_free(&f);
}

/* A driver's word for a counter that it does not have: no count, and no rate of 0. */
static void test_all_ones(void **state)
{
	struct findings f = findings_text(
		&probe_ethtool, "Mon Nov 30 10:00:00 UTC 2026\n# ethtool -S eth0\nNIC statistics:\n"
				"     rx_bytes: 100\n     tx_bytes: 18446744073709551615\n"
				"Mon Nov 30 10:00:02 UTC 2026\n# ethtool -S eth0\nNIC statistics:\n"
				"     rx_bytes: 300\n     tx_bytes: 18446744073709551615\n");

	(void)state;
	check_at(&f, "net_rx_bytes_per_s", -1, "iface=eth0", 100);
	check_missing(&f, "net_tx_bytes_total", -1, "iface=eth0", "not supported");
	assert_int_equal(found_count(&f, "net_tx_bytes_per_s"), 0);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ones), cmocka_unit_test(test_priorities),
		cmocka_unit_test(test_fixture),  cmocka_unit_test(test_broken),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
