/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_perftest, probe_perftest_json;

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

#define BW "BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"

/* Titles, columns and ends of other options. */
static void test_options(void **state)
{
	struct findings f = findings_text(
		&probe_perftest,
		" Send Bidirectional Post List BW Test\n"
		" #bytes     #iterations    " BW "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   "
		"BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n"
		" 64 1000 9.00 8.00 1.5 4.00 0.7 4.00 0.8\n"
		" RDMA_Write BW Test\n #bytes    #sl      #iterations    " BW "\n"
		" 64 3 1000 17.00 16.00 2.5\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "rdma_bw_bytes_per_s", -1, "test=Send Bidirectional Post List BW", 1e9);
	check_at(&f, "rdma_bw_bytes_per_s", -1, "test=RDMA_Write BW", 2e9);
	check_at(&f, "rdma_msgs_per_s", -1, "test=RDMA_Write BW", 2.5e6);
	findings_free(&f);
	f = findings_text(&probe_perftest,
			  " Send BW Test\n #bytes #iterations " BW "\n"
			  " Completion with error at client\n Failed status 12: wr_id 0 syndrom "
			  "0x81\nscnt=128, ccnt=0\n");
	check_status(&f, PROBE_FAILED);
	check_fact(&f, "perftest.error", "Completion with error at client");
	findings_free(&f);
}

/* The unit of a bandwidth follows from size and message rate. */
static void test_json(void **state)
{
#define HEAD                                                                          \
	"{\n\"test_info\": {\n\"test\": \"RDMA_Write_Bidirectional_BW_Test\",\n"      \
	"\"Device\": \"mlx5_3\",\n\"Number_of_qps\": 1,\n\"Link_type\": \"IB\"\n},\n" \
	"\"results\": {\n\"MsgSize\": 1048576,\n\"n_iterations\": 5000,\n"
	static const struct {
		const char *text;
		double bytes_per_s;
	} cases[] = {
		{HEAD
		 "\"BW_peak\": 0.00,\n\"BW_average\": 20000.00,\n\"MsgRate\": 0.020000\n}\n}\n",
		 20000 * 1048576.0},
		{HEAD "\"BW_peak\": 0.00,\n\"BW_average\": 167.77,\n\"MsgRate\": 0.020000\n}\n}\n",
		 167.77e9 / 8},
		{HEAD "\"BW_peak\": 9.00,\n\"BW_average\": 9.00,\n\"MsgRate\": 0.020000\n}\n}\n",
		 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct findings f = findings_text(&probe_perftest_json, cases[i].text);

		check_status(&f, PROBE_OK);
		check_at(&f, "rdma_msgs_per_s", -1,
			 "test=RDMA_Write Bidirectional BW,size_bytes=1048576", 20000);
		if (cases[i].bytes_per_s > 0)
			check_at(&f, "rdma_bw_bytes_per_s", -1, "size_bytes=1048576",
				 cases[i].bytes_per_s);
		else
			check_missing(&f, "rdma_bw_bytes_per_s", -1, "size_bytes=1048576",
				      "its unit is not known");
		check_missing(&f, "rdma_bw_peak_bytes_per_s", -1, "size_bytes=1048576",
			      i < 2 ? "not measured" : "its unit is not known");
		check_fact(&f, "perftest.device", "mlx5_3");
		assert_int_equal(score_text(&probe_perftest_json, cases[i].text), 95);
		findings_free(&f);
	}
}

/* Cut behind its results, the file is partial and says so, even where no result has a value. */
static void test_json_cut(void **state)
{
	static const char *const texts[] = {
		HEAD "\"BW_peak\": 0.00,\n\"BW_average\": 20000.00\n}\n",
		HEAD "\"BW_average\": 20000.00,\n\"MsgRate\": 0.020000\n}\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct findings f = findings_text(&probe_perftest_json, texts[i]);

		check_status(&f, PROBE_PARTIAL);
		assert_non_null(strstr(f.detail.data, "the JSON is cut at line "));
		assert_int_equal(found_count(&f, "rdma_bw_bytes_per_s"), 1);
		findings_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture),  cmocka_unit_test(test_odd),
		cmocka_unit_test(test_options),  cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
