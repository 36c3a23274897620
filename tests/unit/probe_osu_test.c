/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_osu;

static void test_fixture(void **state)
{
	struct findings f = findings_fixture(&probe_osu, "osu.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "mpi_latency_us", -1, "size_bytes=67108864", 1520.5);
	check_at(&f, "mpi_latency_us", -1, "test=Barrier Latency", 3.25);
	check_fact(&f, "osu.kind", "MPI-CUDA");
	findings_free(&f);
}

#define TITLE "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n"

/* The last value needs its two decimals, or a line end. */
static void test_end(void **state)
{
	struct findings f = findings_text(&probe_osu, TITLE "1  2.50\n2  5.25");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "mpi_bw_bytes_per_s", -1, "size_bytes=2", 5.25e6);
	findings_free(&f);
	f = findings_text(&probe_osu, TITLE "1  2.50\n2  5.2");
	assert_int_equal(found_count(&f, "mpi_bw_bytes_per_s"), 1);
	findings_free(&f);
	f = findings_text(&probe_osu, TITLE "1  2.50\n2");
	check_status(&f, PROBE_PARTIAL);
	findings_free(&f);
	f = findings_text(&probe_osu, TITLE "srun: error: node07: task 0: Killed\n");
	check_status(&f, PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "a title and no row"));
	findings_free(&f);
	f = findings_text(&probe_osu, "1  2.50\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* One file of many tests: what is not plain MPI is told apart, and what its columns hold. */
static void test_kinds(void **state)
{
	struct findings f = findings_text(
		&probe_osu,
		"# OSU MPI-CUDA Latency Test v5.6.3\n"
		"# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
		"# Size          Latency (us)\n8      2.50\n"
		"# OSU MPI_Put Latency Test v5.8\n# Synchronization: MPI_Win_flush\n"
		"# Size          Latency (us)\n8      0.50\n"
		"# OSU MPI Non-blocking Broadcast Latency Test v7.5\n"
		"# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
		"# Size           Overall(us)       Compute(us)    Pure Comm.(us)     Overlap(%)\n"
		"8          11.00       6.00       5.00      0.00\n"
		"# OSU MPI Bandwidth Test v7.5\n"
		"# Size      Bandwidth (MB/s)        Validation    P99 Tail BW(MB/s)\n"
		"8         9.00          Pass     7.00\n16         9.50          Fail     7.00\n");

	(void)state;
	check_status(&f, PROBE_FAILED);
	check_at(&f, "mpi_latency_us", -1, "test=Latency,kind=MPI-CUDA,buffers=D-H,size_bytes=8",
		 2.5);
	check_at(&f, "mpi_latency_us", -1, "test=Latency,kind=MPI_Put,size_bytes=8", 0.5);
	check_at(&f, "mpi_latency_us", -1, "test=Non-blocking Broadcast Latency,size_bytes=8", 5);
	check_at(&f, "mpi_bw_bytes_per_s", -1, "test=Bandwidth,size_bytes=8", 9e6);
	assert_null(found_nth(&f, "mpi_latency_p99_us", 0));
	assert_non_null(strstr(f.detail.data, "wrong data"));
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
