/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_perftest;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_perftest, "perftest.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "rdma_bw_bytes_per_s", -1, "test=RDMA_Read BW", 48e9);
	check_missing(&f, "rdma_bw_peak_bytes_per_s", -1, "size_bytes=8388608", "not measured");
	check_fact(&f, "perftest.link", "IB");
	findings_free(&f);
}

static void test_odd(void **state)
{
	struct findings f = findings_text(
		&probe_perftest, " Send BW Test\n #bytes     #iterations    BW peak[MiB/sec]    "
				 "BW average[MiB/sec]   MsgRate[Mpps]\n 2 1000 4.00 2.00 1.5\n"
				 " 4 1000 1.00\n 8 1000 4.00 2.00 0.2");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "rdma_bw_bytes_per_s", -1, "test=Send BW,size_bytes=2", 2097152);
	assert_int_equal(found_count(&f, "rdma_bw_bytes_per_s"), 1);
	findings_free(&f);
	/* A unit that is not known gives no number. */
	f = findings_text(&probe_perftest, " Send BW Test\n #bytes #iterations BW average[KB/sec]\n"
					   " 2 1000 4.00\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_perftest,
			  " #bytes #iterations BW average[MB/sec]\n 2 1000 4.00\n");
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
