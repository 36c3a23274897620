/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_net_dev;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_net_dev, "net-dev.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "net_rx_bytes_per_s", -1, "iface=eth0", 125000000);
	assert_int_equal(found_at(&f, "net_rx_bytes_per_s", -1, "iface=eth0")->t_us,
			 1795832042000000);
	check_missing(&f, "net_rx_bytes_per_s", -1, "iface=ip6tnl0", "reset");
	findings_free(&f);
}

#define HEAD "Inter-|\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_net_dev,
					  HEAD "eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
					       "eth1:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
					       "eth2:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "net_tx_bytes_total", -1, "iface=eth0", 9);
	assert_int_equal(found_count(&f, "net_tx_bytes_total"), 1);
	findings_free(&f);
	f = findings_text(&probe_net_dev, "eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* A host's name before the line, as pdsh writes it, may be an interface's. */
static void test_name_like_a_host(void **state)
{
	struct findings f = findings_text(&probe_net_dev,
					  HEAD "gpu0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");

	(void)state;
	check_at(&f, "net_rx_bytes_total", -1, "iface=gpu0", 1);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_name_like_a_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
