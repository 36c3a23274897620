/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

#include <sqlite3.h>
#include <zlib.h>

#include "probes/timeline.h"

extern const struct probe probe_nsys, probe_pytorch_trace, probe_nsys_stats;
static const struct probe *const p = &probe_nsys;

static void read_path(const char *path, struct findings *f)
{
	struct probe_sink sink = {.value = found_value, .fact = found_fact, .ctx = f};
	struct err e;

	*f = (struct findings){0};
	f->status = probe_file(p, NULL, path, &sink, &f->detail, &e);
	assert_int_equal(e.code, ERR_OK);
}

/* A database of these statements, read where it lies. */
static void read_sql(const char *sql, struct findings *f)
{
	_cleanup_free_ char *path = xasprintf("%s/probe_nsys_test.%d.sqlite",
					      getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
					      (int)getpid());
	sqlite3 *db;
	char *why = NULL;

	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	sqlite3_close(db);
	read_path(path, f);
	unlink(path);
}

static const struct found *twin(const struct findings *f, const struct found *v)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].name, v->name) && f->v[i].step == v->step &&
		    str_eq(f->v[i].labels, v->labels))
			return &f->v[i];
	return NULL;
}

/* The file holds the same intervals as pytorch-trace.json: the same table comes of both. */
static void test_same_table(void **state)
{
	struct findings torch = findings_fixture(&probe_pytorch_trace, "pytorch-trace.json");
	struct findings nsys = findings_fixture(p, "nsys.sqlite"), there;
	size_t n = 0;

	(void)state;
	check_status(&nsys, PROBE_OK);
	for (size_t i = 0; i < torch.n; i++) {
		const struct found *v = &torch.v[i], *w;

		if (v->is_fact || str_starts(v->name, "mem_peak"))
			continue;
		w = twin(&nsys, v);
		if (!w || w->is_fact || w->value != v->value)
			fail_msg("%s at step %lld [%s]: %.12g, not %.12g", v->name,
				 (long long)v->step, v->labels, w ? w->value : NAN, v->value);
		n++;
	}
	assert_int_equal(n, 82);
	check_fact(&nsys, "nsys.version", "2026.2.1.210");
	check_fact(&nsys, "trace.gpu", "NVIDIA H200");
	check_at(&nsys, "tensor_active", -1, "device=0", 0.4);
	check_at(&nsys, "sm_active", -1, "device=0", 0.9);
	read_path("tests/fixtures/probes/nsys.sqlite", &there); /* not through feed() */
	check_status(&there, PROBE_OK);
	assert_int_equal(there.n, nsys.n);
	findings_free(&there);
	findings_free(&torch);
	findings_free(&nsys);
}

#define KERNEL_TABLE                                                                        \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, \"end\" INTEGER, deviceId " \
	"INTEGER, globalPid INTEGER, shortName INTEGER);"                                   \
	"CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"                       \
	"INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce'), (2, 'gemm'), "        \
	"(3, 'cudaMalloc_v3020');"

/* Two processes on two devices: two ranks, each with its own calls; device 1 comes late to the
 * collective. A process that only sets memory on a device is none. */
static void test_ranks(void **state)
{
	struct findings f;

	(void)state;
	read_sql(
		KERNEL_TABLE
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
		"(0, 100, 0, 10 * 0x1000000, 2), (100, 600, 0, 10 * 0x1000000, 1),"
		"(0, 500, 1, 11 * 0x1000000, 2), (500, 600, 1, 11 * 0x1000000, 1);"
		"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, \"end\" INTEGER, deviceId "
		"INTEGER, globalPid INTEGER);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (0, 9, 0, 11 * 0x1000000);"
		"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, \"end\" INTEGER, "
		"globalTid INTEGER, nameId INTEGER);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5, 7, 10 * 0x1000000 + 3, 3);"
		"CREATE TABLE NVTX_EVENTS(start INTEGER, \"end\" INTEGER, text TEXT, globalTid INTEGER);"
		"INSERT INTO NVTX_EVENTS VALUES (0, 1000, 'step 4', 10 * 0x1000000), "
		"(0, 1000, 'step 4', 11 * 0x1000000);",
		&f);
	check_status(&f, PROBE_OK);
	check_at(&f, "compute_ratio", 4, "device=0", 0.1);
	check_at(&f, "compute_ratio", 4, "device=1", 0.5);
	check_at(&f, "alloc_calls", 4, "device=0", 1);
	check_missing(&f, "launch_gap_ratio", -1, "device=1,scope=steps",
		      "no host calls in the trace");
	check_at(&f, "coll_wait_ratio", -1, NULL, 0.4);
	assert_int_equal(found_nth(&f, "coll_wait_ratio", 1)->rank, 1);
	assert_true(found_nth(&f, "coll_wait_ratio", 1)->value == 0);
	assert_true(str_starts(found_nth(&f, "trace.straggler", 0)->text, "rank 1: "));
	findings_free(&f);
}

/* What is not there, is odd or is hostile. */
static void test_odd(void **state)
{
	struct findings f;

	(void)state;
	read_sql(
		"CREATE TABLE t(a); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE "
		"r(start, \"end\", deviceId) AS (VALUES(0, 1, 0) UNION ALL SELECT start + 1, \"end\" "
		"+ 1, 0 FROM r) SELECT * FROM r;",
		&f);
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	read_sql(KERNEL_TABLE "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 100, 0, NULL, 2), "
			      "(9223372036854775807, -5, 0, NULL, 2), ('a', NULL, 'b', 'c', 'd'), "
			      "(200, 300, 0, NULL, 77), (300, 400, 0, NULL, x'00ff');",
		 &f);
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "2 events with an impossible time"));
	check_at(&f, "compute_ratio", -1, NULL, 0.75);
	check_at(&f, "kernel_count", -1, "kernel=(no name)", 2);
	findings_free(&f);
	/* A name ends at a NUL, wherever it stands. */
	read_sql(KERNEL_TABLE "INSERT INTO StringIds VALUES (9, 'flash' || char(0) || "
			      "'a kernel of a long, long name');"
			      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 100, 0, NULL, 9), "
			      "(200, 300, 0, NULL, 9);",
		 &f);
	check_at(&f, "kernel_count", -1, "kernel=flash", 2);
	findings_free(&f);
	read_sql("CREATE TABLE NVTX_EVENTS(start INTEGER, text TEXT);"
		 "INSERT INTO NVTX_EVENTS VALUES (1, 'step 1');",
		 &f);
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	read_sql("CREATE TABLE NVTX_EVENTS(start INTEGER, \"end\" INTEGER, text TEXT);"
		 "INSERT INTO NVTX_EVENTS VALUES (0, 100, 'train_step'), (100, 300, 'train_step'), "
		 "(0, 25, 'get_batch');",
		 &f);
	check_status(&f, PROBE_OK);
	check_at(&f, "data_wait_ratio", 0, NULL, 0.25);
	check_at(&f, "trace_step_ms", 1, NULL, 0.0002);
	check_missing(&f, "gpu_idle_ratio", -1, "scope=steps", "no device in the trace");
	findings_free(&f);
}

static void test_damaged(void **state)
{
	struct buf text = {0};
	struct findings f;
	struct err e;

	(void)state;
	assert_int_equal(fs_read("tests/fixtures/probes/nsys.sqlite", 1 << 20, &text, &e), 0);
	f = findings_of(p, NULL, text.data, text.len / 2, 0);
	assert_true(f.status == PROBE_PARTIAL || f.status == PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "damaged"));
	findings_free(&f);
	f = findings_of(p, NULL, text.data, 10, 0);
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(p, "no database at all, but longer than its magic");
	check_status(&f, PROBE_ABSENT);
	assert_string_equal(f.detail.data, "no SQLite database");
	findings_free(&f);
	buf_free(&text);
}

/* A packed export is spooled. */
static void test_gzip(void **state)
{
	_cleanup_free_ char *path = xasprintf("%s/probe_nsys_test.%d.gz",
					      getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
					      (int)getpid());
	struct buf text = {0};
	struct findings f;
	struct err e;
	gzFile gz = gzopen(path, "wbe");

	(void)state;
	assert_int_equal(fs_read("tests/fixtures/probes/nsys.sqlite", 1 << 20, &text, &e), 0);
	assert_int_equal(gzwrite(gz, text.data, (unsigned)text.len), (int)text.len);
	gzclose(gz);
	read_path(path, &f);
	unlink(path);
	check_status(&f, PROBE_OK);
	check_at(&f, "data_wait_ratio", 7, NULL, 0.2);
	findings_free(&f);
	buf_free(&text);
}

static void test_stats(void **state)
{
	struct findings f = findings_fixture(&probe_nsys_stats, "nsys-stats-all.csv");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "kernel_time_ms", -1, "kernel=gemm", 0.3);
	check_at(&f, "kernel_time_share", -1, "class=comm", 0.25);
	check_at(&f, "host_call_time_ms", -1, "call=cudaMalloc", 0.1);
	check_at(&f, "host_calls", -1, "call=cudaStreamSynchronize", 9);
	check_at(&f, "copy_time_ms", -1, "operation=[CUDA memcpy Host-to-Device]", 0.0405);
	check_at(&f, "range_time_ms", -1, "range=:forward", 2);
	assert_int_equal(found_nth(&f, "host_calls", 0)->line, 17);
	findings_free(&f);
	f = findings_text(
		&probe_nsys_stats,
		"Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
		"50.0,oops,1,1,a\nhello, world\n50.0,500,2,250,b\n1,2\n1.0,1,2,3,\"x\n9.0,90,1,90,cut");
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "4 bad lines"));
	check_at(&f, "kernel_time_ms", -1, "kernel=b", 0.0005);
	findings_free(&f);
	f = findings_text(&probe_nsys_stats, "a,b,c\nSKIPPED: nothing\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* The same reports as the console shows them. */
static void test_console(void **state)
{
	struct findings f = findings_fixture(&probe_nsys_stats, "nsys-stats-console.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "kernel_time_ms", -1, "kernel=gemm", 1.831281);
	check_at(&f, "kernel_count", -1, "class=compute", 12);
	check_at(&f, "kernel_time_share", -1, "class=comm", 0.25);
	check_at(&f, "host_call_time_ms", -1, "call=cudaDeviceSynchronize", 0.9);
	check_at(&f, "host_calls", -1, "call=cudaLaunchKernel", 15);
	findings_free(&f);
	f = findings_text(&probe_nsys_stats,
			  " Time(%)  Total Time (us)  Instances  Average  Name\n"
			  " -------  ---------------  ---------  -------  ----\n"
			  "    60.0            3,000          2  1,500.0  f(a,  b)\n"
			  "    30.0            1.5e3\n"
			  "    10.0             oops          1    500.0  g\n");
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "2 bad lines"));
	check_at(&f, "kernel_time_ms", -1, "kernel=f", 3);
	findings_free(&f);
}

/* Without NULL, as schemas of before 2022 are: 0, "" and -1 stand for what is not given. */
static void test_no_null(void **state)
{
	static const char sql[] =
		"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
		"INSERT INTO StringIds VALUES (3, 'gemm'), (4, 'step 1'), "
		"(5, 'ncclAllReduceRingLLKernel_sum_f32(ncclColl)');"
		"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, "
		"deviceId INT NOT NULL, demangledName INT NOT NULL, shortName INT NOT NULL);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 30, 0, 0, 3), "
		"(30, 50, 0, 5, 0);"
		"CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT NOT NULL, eventType INT NOT "
		"NULL, text TEXT NOT NULL, textId INT NOT NULL, globalTid INT NOT NULL);"
		"INSERT INTO NVTX_EVENTS VALUES (0, 100, 59, '', 4, 1), (60, -1, 59, 'open', 0, 1), "
		"(70, 0, 60, 'open', 0, 1);";
	struct findings f;

	(void)state;
	read_sql(sql, &f);
	check_status(&f, PROBE_OK);
	check_at(&f, "compute_ratio", 1, NULL, 0.3);
	check_at(&f, "comm_exposed_ratio", 1, NULL, 0.2);
	check_at(&f, "kernel_count", -1, "kernel=gemm", 1);
	findings_free(&f);
}

/* What `nsys profile --stats` printed in 2019 and in 2022, and reports of other things. */
static void test_old_console(void **state)
{
	static const char text[] =
		"CUDA API Statistics (nanoseconds)\n\n"
		"Time(%)  Total Time  Calls      Average   Minimum    Maximum  Name\n"
		"-------  ----------  -----  -----------  --------  ---------  ----------\n"
		"   90.0        4000      2       2000.0      1000       3000  cudaMalloc\n"
		"CUDA Kernel Statistics (nanoseconds)\n\n"
		"Time(%)      Total Time   Instances     Average  Minimum  Maximum  Name\n"
		"-------  --------------  ----------  ----------  -------  -------  ----\n"
		"   60.0            3000           2      1500.0     1000     2000  gemm(int,  int)\n"
		"   40.0            2000           1      2000.0     2000     2000      \n\n"
		"CUDA Memory Operation Statistics (nanoseconds)\n"
		"Time(%)      Total Time  Operations     Average  Minimum  Maximum  Name\n"
		"  100.0            5000           1      5000.0     5000     5000  [CUDA memcpy "
		"HtoD]\n\n"
		"CUDA Memory Operation Statistics (KiB)\n"
		"     Total  Operations     Average  Minimum  Maximum  Name\n"
		"    1024.0           1      1024.0   1024.0   1024.0  [CUDA memcpy HtoD]\n\n"
		"[6/8] Executing 'gpukernsum' stats report\n\n"
		" Time (%)  Total Time (ns)  Instances  StdDev (ns)     GridXYZ         BlockXYZ      "
		"  Name\n"
		"     20.0            7,000          3          0.0  2048    1    1   128    1    1  "
		"add(a, b)\n"
		"[7/8] Executing 'gputrace' stats report\n"
		" Start (ns)  Duration (ns)  CorrId  Name\n"
		"        900             10       7  add(a, b)\n"
		"Processing [x.sqlite] with [mpi_event_sum.py]...\n"
		"Time (%),Total Time (ns),Instances,Avg (ns),Source,Name\n"
		"60.0,100,1,100,MPI,MPI_Allreduce\n"
		"Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
		"60.0,100,1,100,CUDA_API,cudaLaunchKernel\n";
	struct findings f = findings_text(&probe_nsys_stats, text);

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "host_call_time_ms", -1, "call=cudaMalloc", 0.004);
	check_at(&f, "kernel_time_ms", -1, "kernel=gemm", 0.003);
	check_at(&f, "kernel_time_ms", -1, "kernel=(no name)", 0.002);
	check_at(&f, "kernel_time_ms", -1, "kernel=add", 0.007);
	check_at(&f, "copy_time_ms", -1, "operation=[CUDA memcpy HtoD]", 0.005);
	assert_int_equal(found_count(&f, "kernel_count"), 3);
	assert_int_equal(found_count(&f, "copy_time_ms"), 1);
	findings_free(&f);
	f = findings_text(&probe_nsys_stats, " Time (%)  Total Time (ns)  Instances  Name\n"
					     "    100,0           33.024          1  f\n");
	check_status(&f, PROBE_ABSENT);
	assert_non_null(strstr(f.detail.data, "another locale"));
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_table),  cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_odd),         cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_gzip),        cmocka_unit_test(test_stats),
		cmocka_unit_test(test_console),     cmocka_unit_test(test_no_null),
		cmocka_unit_test(test_old_console),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
