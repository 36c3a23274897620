/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

#include "probes/coll.h"

extern const struct probe probe_nccl_tests, probe_nccl_tests_json;

static void test_modern(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_tests,
					     "nccl-tests-2.19-timestamps-16rank.txt");
	const struct found *v;

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "coll_nranks", -1, NULL, 16);
	check_at(&f, "coll_time_us", -1, "size_bytes=8589934592,in_place=0", 45110.4);
	check_at(&f, "coll_algbw_gb_per_s", -1, "size_bytes=8589934592,in_place=0", 190.42);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=8589934592,in_place=0", 357.04);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=8589934592,in_place=1", 357.17);
	check_at(&f, "coll_wrong", -1, "size_bytes=1048576,in_place=1", 0);
	check_at(&f, "busbw_avg_gb_per_s", -1, NULL, 194.654);
	check_fact(&f, "nccl.version", "2.28.9");
	check_fact(&f, "nccl_tests.version", "2.19.6");
	check_fact(&f, "nccl_tests.gpu", "NVIDIA H100 80GB HBM3");
	assert_int_equal(found_count(&f, "nccl_tests.host"), 2);
	v = found_at(&f, "coll_time_us", -1, "size_bytes=8589934592");
	assert_int_equal(v->t_us, 1795832041000000); /* 2026-11-28 02:14:01 UTC */
	assert_string_equal(v->labels, "size_bytes=8589934592,in_place=0,test=all_reduce_perf,"
				       "type=float,redop=sum,run=0");
	findings_free(&f);
	f = findings_fixture(&probe_nccl_tests, "nccl-tests-per-iter-I1.txt");
	check_status(&f, PROBE_OK);
	check_at(&f, "coll_time_max_us", -1, "in_place=0", 52310.9);
	check_at(&f, "coll_time_cv_pct", -1, "in_place=0", 3.41);
	check_at(&f, "coll_time_cv_pct", -1, "in_place=1", 0.12);
	check_at(&f, "coll_time_us", -1, "in_place=1", 45093.7);
	findings_free(&f);
}

/* Blank cells: the words stand under their columns, by position and not by number. */
static void test_blank_cells(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_tests, "allreduce-x2.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=1073741824,in_place=1", 328.42);
	check_at(&f, "coll_time_us", -1, "size_bytes=8,in_place=1", 38.49);
	assert_null(found_at(&f, "coll_time_us", -1, "in_place=0"));
	check_missing(&f, "coll_wrong", -1, "in_place=0", "N/A");
	check_at(&f, "busbw_avg_gb_per_s", -1, NULL, 79.2545);
	assert_int_equal(found_count(&f, "coll_busbw_gb_per_s"), 28);
	findings_free(&f);
}

static void test_old(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_tests, "nccl-tests-old.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "coll_busbw_gb_per_s", -1, "in_place=1,type=float,run=0", 0);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=8589934592,in_place=1,type=float,run=0",
		 226.16);
	check_at(&f, "coll_time_us", -1, "size_bytes=8589934592,in_place=0,type=float,root=3,run=1",
		 36896);
	check_at(&f, "coll_nranks", -1, NULL, 8);
	assert_int_equal(found_count(&f, "busbw_avg_gb_per_s"), 2);
	assert_int_equal(found_count(&f, "coll_nranks"), 1);
	assert_null(found_nth(&f, "coll_wrong", 0));
	findings_free(&f);
}

/* 16 ranks: all_reduce has 15/8. */
static void test_factor(void **state)
{
	static const struct {
		const char *algbw, *busbw;
		int64_t n;
		bool fits;
	} t[] = {
		{"190.42", "357.04", 16, true}, {"190.42", "178.52", 16, true},
		{"190.42", "190.42", 16, true}, {"190.42", "333.20", 16, false},
		{"190.42", "0.00", 16, true}, /* too small to tell */
		{"1303.8", "0.00", 1, true},    {"190.42", "333.20", 8, true},
		{"190.42", "N/A", 8, true},     {"190.42", "12.00", 0, true},
		{"448.7", "841.3", 16, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		assert_int_equal(coll_factor_fits(span_of(t[i].algbw), span_of(t[i].busbw), t[i].n),
				 t[i].fits);
}

static void test_notes(void **state)
{
	static const char text[] =
		"# Reducing maxBytes to 1073741824 due to memory limitation\n"
		"#   Rank  0 Pid 1 on n1 device  0 [0x00] GPU\n"
		"#   Rank  1 Pid 2 on n1 device  1 [0x01] GPU\n"
		"#   Rank  2 Pid 3 on n1 device  2 [0x02] GPU\n"
		"#   Rank  3 Pid 4 on n1 device  3 [0x03] GPU\n"
		"#       size         count    type   redop    root     time   algbw   busbw #wrong\n"
		"  8589934592    2147483648   float     sum      -1    45110  190.00  250.00      0\n"
		"# Avg bus bandwidth    : 250\n";
	struct findings f = findings_text(&probe_nccl_tests, text);

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "busbw is not algbw times a factor"));
	check_fact(&f, "nccl_tests.note",
		   "Reducing maxBytes to 1073741824 due to memory limitation");
	findings_free(&f);
	f = findings_text(
		&probe_nccl_tests,
		"#   Rank  0 Pid 1 on n1 device  0 [0x00] GPU\n"
		"#       size         count    type   redop    root     time   algbw   busbw\n"
		"  8589934592    2147483648   float     sum      -1    45110  190.00    0.00\n"
		"# Avg bus bandwidth    : 0\n");
	check_status(&f, PROBE_OK);
	check_fact(&f, "nccl_tests.note", "one rank: its bus bandwidth is 0 by definition");
	check_at(&f, "busbw_avg_gb_per_s", -1, NULL, 0);
	findings_free(&f);
}

static void test_cut(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_tests, "nccl-tests-cut.txt");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=67108864,in_place=0", 126.33);
	assert_int_equal(found_at(&f, "coll_time_us", -1, NULL)->rank, 0);
	check_missing(&f, "coll_wrong", -1, "in_place=1", "N/A");
	assert_int_equal(found_count(&f, "coll_time_us"), 2);
	findings_free(&f);
}

static void test_failures(void **state)
{
	static const char row[] =
		"#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
		"8 2 float sum -1 1.0 2.0 3.0 0 1.0 2.0 3.0 0\n";
	static const struct {
		const char *tail;
		enum probe_status status;
	} t[] = {
		{"# Out of bounds values : 0 OK\n# Avg bus bandwidth : 3\n", PROBE_OK},
		{"# Out of bounds values : 7 FAILED\n# Avg bus bandwidth : 3\n", PROBE_FAILED},
		{"# Avg bus bandwidth : 3 FAILED\n", PROBE_FAILED},
		{"# Avg bus bandwidth : 4\n", PROBE_PARTIAL},
		{"# Avg bus bandwidth : 3", PROBE_PARTIAL},
		{"n1: Test NCCL failure common.cu:961 'unhandled system error'\n", PROBE_FAILED},
		{" .. n1 pid 7: Test failure common.cu:1127\n", PROBE_FAILED},
		{"srun: error: n1: task 0: Terminated\n", PROBE_FAILED},
		{"# Avg bus bandwidth : 3\nsrun: error: n1: task 0: Terminated\n", PROBE_OK},
		{"9 x y\n", PROBE_PARTIAL},
	};
	struct findings f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct buf b = {0};

		buf_printf(&b, "%s%s", row, t[i].tail);
		f = findings_text(&probe_nccl_tests, b.data);
		if (f.status != t[i].status)
			fail_msg("%s: %s", t[i].tail, probe_status_name(f.status));
		findings_free(&f);
		buf_free(&b);
	}
	f = findings_text(
		&probe_nccl_tests,
		"srun: error: Unable to create step for job 5: More processors requested\n");
	check_status(&f, PROBE_FAILED);
	assert_null(found_nth(&f, "busbw_avg_gb_per_s", 0));
	findings_free(&f);
	f = findings_text(&probe_nccl_tests, "hello\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_json(void **state)
{
	static const char cut[] =
		"{\"nccl_version\": 2708, \"results\": [{\"in_place\": {\"time\": \"nan\"},\n"
		"\"size\": 8, \"out_of_place\": {\"time\": 1.5, \"nwrong\": 2}}, {\"size\": 16, ";
	struct findings f = findings_fixture(&probe_nccl_tests_json, "nccl-tests-J-version3.json");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=8589934592,in_place=0", 357.03);
	check_at(&f, "coll_busbw_gb_per_s", -1, "size_bytes=8589934592,in_place=1", 357.17);
	check_at(&f, "coll_wrong", -1, "in_place=0", 0);
	check_missing(&f, "coll_wrong", -1, "in_place=1", "none");
	check_at(&f, "busbw_avg_gb_per_s", -1, NULL, 357.1);
	check_at(&f, "coll_nranks", -1, NULL, 1);
	check_fact(&f, "nccl.version", "2.28.9");
	findings_free(&f);
	check_chunking(&probe_nccl_tests_json, NULL, cut, strlen(cut));
	f = findings_text(&probe_nccl_tests_json, cut);
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "coll_time_us", -1, "size_bytes=8,in_place=0", 1.5);
	check_missing(&f, "coll_time_us", -1, "size_bytes=8,in_place=1", "nan");
	assert_null(found_at(&f, "coll_time_us", -1, "size_bytes=16"));
	check_fact(&f, "nccl.version", "2.7.8");
	findings_free(&f);
	f = findings_text(
		&probe_nccl_tests_json,
		"{\"results\":[{\"size\":8,\"in_place\":{\"time\":1}}],\"errors\":[\"x\"]}");
	check_status(&f, PROBE_FAILED);
	findings_free(&f);
	f = findings_text(&probe_nccl_tests_json, "[1,2");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

struct sample {
	const char *name, *size;
	double oop, ip, avg;
	size_t rows;
	enum probe_status status;
};

static const struct sample samples[] = {
	{"a100x8-allreduce-v2.0-error-col.txt", "8589934592", 235.26, 235.03, 68.4048, 34,
	 PROBE_OK},
	{"a100x8-alltoall-empty-redop.txt", "8589934592", 224.31, 226.16, 58.6481, 0, PROBE_OK},
	{"a100x8-reducescatter.txt", "8589934592", 231.52, 231.25, 60.168, 0, PROBE_OK},
	{"a100x8-allgather.txt", "8589934592", 223.39, 230.07, 58.2651, 0, PROBE_OK},
	{"a100x8-broadcast.txt", "8589934592", 232.81, 234.70, 64.8653, 0, PROBE_OK},
	{"h100x8-single-size.txt", "53687090", 327.37, 326.68, 327.025, 1, PROBE_OK},
	{"p5-2node-mpirun-prefix.txt", "2147483648", 437.79, 437.89, 52.9753, 7, PROBE_PARTIAL},
	{"aws-batch-mpirun-prefix-trailing-spaces.txt", "17179869184", 483.05, 483.35, 156.742, 32,
	 PROBE_OK},
	{"dgxc-multi-node.txt", "17179869184", 479.90, 479.99, 159.151, 32, PROBE_OK},
	{"single-gpu-output-pass.txt", "33554432", 0, 0, 0, 1, PROBE_OK},
	{"single-gpu-output-fail-bw.txt", "33554432", 0, 0, 0, 1, PROBE_FAILED},
};

static void test_samples(void **state)
{
	struct findings f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		const struct sample *s = &samples[i];
		char path[128], label[64];

		snprintf(path, sizeof(path), "nccl-tests/%s", s->name);
		if (!findings_sample(&probe_nccl_tests, path, &f))
			return;
		snprintf(label, sizeof(label), "size_bytes=%s,in_place=0", s->size);
		check_at(&f, "coll_busbw_gb_per_s", -1, label, s->oop);
		snprintf(label, sizeof(label), "size_bytes=%s,in_place=1", s->size);
		check_at(&f, "coll_busbw_gb_per_s", -1, label, s->ip);
		check_at(&f, "busbw_avg_gb_per_s", -1, NULL, s->avg);
		if (s->rows)
			assert_int_equal(found_count(&f, "coll_busbw_gb_per_s"), 2 * s->rows);
		if (f.status != s->status)
			fail_msg("%s: %s: %s", s->name, probe_status_name(f.status), f.detail.data);
		findings_free(&f);
	}
	if (findings_sample(&probe_nccl_tests, "nccl-tests/srun-error-no-output.txt", &f)) {
		check_status(&f, PROBE_FAILED);
		assert_int_equal(f.n, 1); /* the error as a fact, and no value */
		assert_true(f.v[0].is_fact);
		findings_free(&f);
	}
}

/* Tables of before 2.0 (bytes, N, ms), pasted without "#", and of one placement alone. */
static void test_old_tables(void **state)
{
	static const char text[] =
		"nThread 1 nGpus 2 minBytes 1 maxBytes 64 step: 2(factor) warmup iters: 5 "
		"iters: 20 validation: 0\n"
		"#   Rank  0 on       box1 device  0 [0x05] GeForce RTX 2070\n"
		"#   Rank  1 on       box1 device  1 [0x06] GeForce RTX 2070\n"
		"#                                 out-of-place                    in-place\n"
		"#      bytes             N    type      op     time  algbw  busbw      res     "
		"time  algbw  busbw      res\n"
		"    20000000      20000000    char    prod    4.000   5.00   5.00    0e+00    "
		"2.000  10.00  10.00    N/A\n"
		" Out of bounds values : 0 OK\n"
		" Avg bus bandwidth    : 7.5\n"
		"RCCL version : 2.22.3-develop:5d6e7f8\n"
		"#                                 in-place\n"
		"  size         count      type   redop    root     time   algbw   busbw #wrong\n"
		"     1048576        262144     float     sum      -1    80.00   13.00   13.00    "
		"  2\n"
		" Out of bounds values : 2 FAILED\n"
		" Avg bus bandwidth    : 13\n";
	struct findings f = findings_text(&probe_nccl_tests, text);

	(void)state;
	check_status(&f, PROBE_FAILED);
	check_at(&f, "coll_nranks", -1, NULL, 2);
	check_at(&f, "coll_time_us", -1,
		 "size_bytes=20000000,in_place=0,type=char,redop=prod,run=0", 4000);
	check_at(&f, "coll_time_us", -1,
		 "size_bytes=20000000,in_place=1,type=char,redop=prod,run=0", 2000);
	check_at(&f, "coll_algbw_gb_per_s", -1,
		 "size_bytes=20000000,in_place=1,type=char,redop=prod,run=0", 10);
	check_at(&f, "coll_time_us", -1, "size_bytes=1048576,in_place=1,type=float,redop=sum,run=1",
		 80);
	check_at(&f, "coll_wrong", -1, "size_bytes=1048576,in_place=1,type=float,redop=sum,run=1",
		 2);
	check_fact(&f, "nccl.version", "2.22.3-develop:5d6e7f8");
	assert_int_equal(probe_nccl_tests.sniff(text, sizeof(text) - 1), 95);
	findings_free(&f);
}

static void test_rccl_json(void **state)
{
	static const char *const texts[] = {
		"[\n{\"name\":\"AllReduce\", \"ranks\":2, \"size\":64, \"type\":\"float\", "
		"\"redop\":\"sum\", \"inPlace\":1, \"time\":8.5, \"algBw\":3.0, \"busBw\":3.0, "
		"\"wrong\":\"4\"},\n{\"name\":\"AllReduce\", \"ranks\":2, \"size\":64, "
		"\"inPlace\":0, \"time\":9, \"algBw\":3.0, \"busBw\":9.0, \"wrong\":\"N/A\"}\n]\n",
		"{\"#wrong\":\"4\",\"algBw\":3.0,\"busBw\":3.0,\"gpus\":2,\"inPlace\":1,\"name\":"
		"\"AllReduce\",\"redop\":\"sum\",\"size\":64,\"time\":8.5,\"type\":\"float\"}\n"
		"{\"algBw\":3.0,\"busBw\":9.0,\"gpus\":2,\"inPlace\":0,\"size\":64,\"time\":9}\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct findings f = findings_text(&probe_nccl_tests_json, texts[i]);

		check_status(&f, PROBE_PARTIAL); /* the second busbw is none of two ranks */
		check_at(&f, "coll_time_us", -1,
			 "size_bytes=64,in_place=1,test=AllReduce,type=float,redop=sum,run=0", 8.5);
		check_at(&f, "coll_wrong", -1,
			 "size_bytes=64,in_place=1,test=AllReduce,type=float,redop=sum,run=0", 4);
		assert_non_null(strstr(f.detail.data, "so many ranks"));
		assert_int_equal(probe_nccl_tests_json.sniff(texts[i], strlen(texts[i])), 95);
		findings_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modern),     cmocka_unit_test(test_blank_cells),
		cmocka_unit_test(test_old),        cmocka_unit_test(test_cut),
		cmocka_unit_test(test_factor),     cmocka_unit_test(test_notes),
		cmocka_unit_test(test_failures),   cmocka_unit_test(test_json),
		cmocka_unit_test(test_old_tables), cmocka_unit_test(test_rccl_json),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
