/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_ifstat;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_ifstat, "ifstat.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "net_rx_bytes_per_s", -1, "iface=eth0", 120.5 * 1024);
	assert_string_equal(found_nth(&f, "net_tx_bytes_per_s", 3)->text, "N/A");
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(
		&probe_ifstat, "  eth0        Total\n Kbps in  Kbps out   Kbps in  Kbps out\n"
			       "  8.00  16.00  24.00  32.00\n  1.00 2.00 3.00\n  1.00 2.0");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "net_rx_bytes_per_s", -1, "iface=eth0", 1000);
	check_at(&f, "net_tx_bytes_per_s", -1, "iface=all", 4000);
	assert_int_equal(f.n, 4);
	findings_free(&f);
	/* A header that does not fit its names makes no table. */
	f = findings_text(&probe_ifstat, "eth0\nKB/s in KB/s out KB/s in KB/s out\n1 2 3 4\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_ifstat,
			  "#kernel\nInterface        RX Pkts/Rate    TX Pkts/Rate    RX Data/Rate\n"
			  "lo                     8 0             8 0           848 0\n");
	check_status(&f, PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "/proc/net/dev"));
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
