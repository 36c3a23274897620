/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_perfquery;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_perfquery, "perfquery.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "ib_tx_bytes_per_s", -1, "lid=48,port=1", 4e6);
	check_missing(&f, "ib_rx_bytes_per_s", -1, "lid=48", "reset");
	check_missing(&f, "ib_tx_bytes_total", -1, "lid=7,port=2", "saturated");
	findings_free(&f);
}

static void test_broken(void **state)
{
	struct findings f = findings_text(&probe_perfquery,
					  "# Port extended counters: Lid 1 port 1 (x)\n"
					  "PortXmitData:.....4294967295\nPortRcvData:......x\n"
					  "PortXmitWait:....12");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	/* With -x a counter has 64 bits. */
	check_at(&f, "ib_tx_bytes_total", -1, NULL, 4294967295.0 * 4);
	assert_int_equal(f.n, 1);
	findings_free(&f);
	f = findings_text(&probe_perfquery, "PortXmitData:.....5\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_perfquery, "");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* What is below another heading is of no port that was named. */
static void test_other_headings(void **state)
{
	struct findings f = findings_text(
		&probe_perfquery, "# Port counters: Lid 7 port 1 (CapMask: 0x1400)\n"
				  "PortXmitWait:....................2\n"
				  "# Port counters: DR path slid 65535; dlid 65535; 0,1 port 2\n"
				  "PortXmitWait:....................3\n");

	(void)state;
	check_at(&f, "ib_xmit_wait_ticks_total", -1, "lid=7,port=1", 2);
	assert_int_equal(found_count(&f, "ib_xmit_wait_ticks_total"), 1);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_headings),
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
