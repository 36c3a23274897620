/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

#include "orchestrator/base/rng.h"
#include "probes/timeline.h"
#include "probes/trace.h"

extern const struct probe probe_pytorch_trace;
static const struct probe *const p = &probe_pytorch_trace;

#define STEP(n, ts, dur)                                                        \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" #n \
	"\",\"pid\":1,\"tid\":1,\"ts\":" #ts ",\"dur\":" #dur "}"
#define KERNEL(name, ts, dur)                                                                    \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" #ts \
	",\"dur\":" #dur ",\"args\":{\"device\":0}}"

/* Worked out by hand from the intervals in the file. */
static void test_fixture(void **state)
{
	struct findings f = findings_fixture(p, "pytorch-trace.json");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "trace.gpu", "NVIDIA H200");
	check_fact(&f, "trace.world_size", "2");
	check_at(&f, "trace_step_ms", 7, NULL, 0.1);
	check_at(&f, "compute_ratio", 7, NULL, 0.25);
	check_at(&f, "comm_kernel_ratio", 7, NULL, 0.2);
	check_at(&f, "comm_exposed_ratio", 7, NULL, 0.1);
	check_at(&f, "comm_hidden_ratio", 7, NULL, 0.1);
	check_at(&f, "copy_exposed_ratio", 7, NULL, 0.05);
	check_at(&f, "gpu_idle_ratio", 7, NULL, 0.6);
	check_at(&f, "data_gap_ratio", 7, NULL, 0.2);
	check_at(&f, "launch_gap_ratio", 7, NULL, 0.08);
	check_at(&f, "sync_gap_ratio", 7, NULL, 0.24);
	check_at(&f, "alloc_gap_ratio", 7, NULL, 0.08);
	check_at(&f, "data_wait_ratio", 7, NULL, 0.2); /* not the loader's own thread */
	check_at(&f, "alloc_calls", 7, NULL, 1);
	check_at(&f, "h2d_pageable_ratio", 7, NULL, 0.04);
	check_at(&f, "h2d_pinned_ratio", 8, NULL, 0.15);
	check_at(&f, "data_wait_ratio", -1, "scope=steps", 0.15);
	check_at(&f, "trace_step_ms", -1, "scope=trace", 0.173);
	check_at(&f, "h2d_copy_gb_per_s", -1, "memory=pinned", 20);
	check_at(&f, "kernel_time_ms", -1, "kernel=softmax", 0.07);
	check_at(&f, "kernel_time_ms", -1, "kernel=cutlass_80_tensorop_bf16", 0.005);
	check_at(&f, "kernel_count", -1, "kernel=ncclDevKernel_AllReduce", 2);
	check_at(&f, "mem_peak_allocated_gib", -1, NULL, 3);
	check_at(&f, "mem_peak_reserved_gib", -1, NULL, 4);
	assert_int_equal(found_at(&f, "trace_step_ms", 7, NULL)->rank, 1);
	assert_int_equal(found_at(&f, "trace_step_ms", 7, NULL)->line, 20);
	findings_free(&f);
}

/* The bare list, a BOM, absolute times that a double cannot hold, the schema of 2021. */
static void test_forms(void **state)
{
	struct findings f = findings_text(
		p, "\xef\xbb\xbf[" STEP(1, 1623142623460172.25,
					100.5) ",\n" KERNEL("k", 1623142623460180.125, 10) "]");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "trace_step_ms", 1, NULL, 0.1005);
	check_at(&f, "compute_ratio", 1, NULL, 10 / 100.5);
	check_missing(&f, "launch_gap_ratio", -1, "scope=steps", "no host calls in the trace");
	findings_free(&f);
	f = findings_text(p,
			  "{\"traceEvents\":[{\"name\":\"ProfilerStep#5\",\"ph\":\"X\",\"cat\":"
			  "\"Operator\",\"tid\":\"25738\",\"ts\":0,\"dur\":1e3},"
			  "{\"dur\":250,\"ts\":100,\"ph\":\"X\",\"name\":\"k\",\"cat\":\"Kernel\","
			  "\"tid\":\"stream 7\"}]}");
	check_status(&f, PROBE_OK);
	check_at(&f, "compute_ratio", 5, NULL, 0.25);
	findings_free(&f);
}

/* What writers do to JSON, and one broken event among good ones. */
static void test_mended(void **state)
{
	static const char text[] = "{\"a\":NaN,\"traceEvents\":[" STEP(1, 0, 100) ",\n" KERNEL(
		"C:\\d\\u12 a\tb\n", 10,
		20) "," KERNEL("broken", 10,
			       oops) ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"x\" 5},"
				     "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD "
				     "(Pageable -> Device)\",\"args\":{\"b\":[-inf,N/A],\"bytes\":"
				     "4000},\"ts\":40,\"dur\":10}],\"b\":inf}";
	struct findings f = findings_text(p, text);

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "2 events that are broken"));
	check_at(&f, "compute_ratio", 1, NULL, 0.2);
	check_at(&f, "copy_exposed_ratio", 1, NULL, 0.1);
	check_at(&f, "h2d_copy_bytes", -1, "memory=pageable", 4000);
	check_at(&f, "kernel_time_ms", -1, "kernel=C:/d/u12 a b ", 0.02);
	findings_free(&f);
	check_chunking(p, NULL, text, strlen(text));
}

/* Events of no interest are stepped over without being parsed: whatever their strings hold, at any
 * offset, and however deep they nest. */
static void test_stepped_over(void **state)
{
	static const char *const bits[] = {"{", "}",  "\\\"",    "\\\\", "y",
					   "[", "{}", "\\u007d", "a",    ","};
	struct rng rng = rng_at(5, 1, 0, 0);
	struct findings f;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct buf b = {0};

		buf_printf(
			&b,
			"[" STEP(1, 0,
				 100) ",%*s{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"",
			round % 11, "");
		for (uint64_t n = rng_below(&rng, 40); n; n--)
			buf_str(&b, bits[rng_below(&rng, ARRAY_LEN(bits))]);
		buf_str(&b, "\",\"args\":{\"x\":{\"y\":[{\"z\":\"");
		for (uint64_t n = rng_below(&rng, 20); n; n--)
			buf_str(&b, bits[rng_below(&rng, ARRAY_LEN(bits))]);
		buf_str(&b, "\"}]}},\"ts\":1,\"dur\":2}," STEP(2, 100, 100) "]");
		f = findings_of(p, NULL, b.data, b.len, 1 + rng_below(&rng, b.len));
		check_status(&f, PROBE_OK);
		check_at(&f, "trace_step_ms", 1, NULL, 0.1);
		check_at(&f, "trace_step_ms", 2, NULL, 0.1);
		findings_free(&f);
		buf_free(&b);
	}
}

/* A kill cuts the text: what came before it counts. */
static void test_cut(void **state)
{
	struct findings f = findings_text(p, "{\"traceEvents\":[\n" STEP(1, 0, 100) ",\n" KERNEL(
						     "k", 10, 20) ",\n{\"ph\":\"X\",\"cat\":\"ker");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "cut at line 4"));
	check_at(&f, "compute_ratio", 1, NULL, 0.2);
	findings_free(&f);
	f = findings_text(p, "{\"traceEvents\":[" STEP(1, 0, 100) ",5," STEP(2, 100, 100) "]}");
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "something other than an event"));
	assert_null(found_at(&f, "trace_step_ms", 2, NULL));
	findings_free(&f);
	f = findings_text(p, "{\"traceEvents\":[" STEP(1, 0, -5) "," STEP(2, 1e30, 1) "," STEP(
				     3, 0, 4e15) "," STEP(4, 0, 7) "]}");
	check_status(&f, PROBE_PARTIAL);
	assert_non_null(strstr(f.detail.data, "3 events"));
	check_at(&f, "trace_step_ms", 4, NULL, 0.007);
	check_missing(&f, "gpu_idle_ratio", -1, "scope=steps", "no device in the trace");
	findings_free(&f);
}

static void test_none(void **state)
{
	static const char *const texts[] = {"",
					    "no JSON",
					    "{}",
					    "[]",
					    "{\"traceEvents\":5}",
					    "{\"traceEvents\":[]}",
					    "[[[[",
					    "}",
					    "[1]",
					    "{\"traceEvents\":[{\"ph\":\"M\"}]}"};
	struct findings f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		f = findings_text(p, texts[i]);
		check_status(&f, PROBE_ABSENT);
		assert_int_equal(f.n, 0);
		findings_free(&f);
		check_chunking(p, NULL, texts[i], strlen(texts[i]));
	}
}

static void keep(void *ctx, struct timeline *t, int rank)
{
	struct timeline **out = ctx;

	assert_int_equal(rank, 3);
	*out = t;
}

/* Ranks are compared by whoever reads several; the name of the file tells one without it. */
static void test_handed_over(void **state)
{
	static const char text[] = "[" STEP(1, 0, 100) "," KERNEL("ncclDevKernel_X", 10, 20) "]";
	struct timeline *t = NULL;
	struct probe_sink sink = {.ctx = &t, .timeline = keep};
	struct probe_context c = {.file = "/x/run/rank-3.pt.trace.json"};
	struct probe_run *r;
	struct err e;

	(void)state;
	assert_int_equal(p->open(&c, &sink, &r, &e), 0);
	assert_int_equal(p->feed(r, text, strlen(text), &e), 0);
	assert_int_equal(p->finish(r, NULL), PROBE_OK);
	assert_non_null(t);
	assert_int_equal(timeline_gpu_count(t, TIMELINE_COMM), 1);
	timeline_free(t);
}

#define OP "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"tid\":1,\"ts\":10,\"dur\":60}"

/* Kineto lists no device of an XPU, and old traces list none at all: the first kernel tells that
 * operators were not what computed. Without one they are. */
static void test_unlisted_device(void **state)
{
	static const char *const heads[] = {"{\"deviceProperties\":[],\"traceEvents\":[",
					    "{\"traceEvents\":["};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		_cleanup_free_ char *with = xasprintf(
			"%s" STEP(
				1, 0,
				100) "," OP ",{\"ph\":\"X\",\"cat\":\"xpu_runtime\","
				     "\"name\":\"urUSMDeviceAlloc\",\"tid\":1,\"ts\":70,\"dur\":5}," KERNEL(
					     "gemm", 20, 30) "]}",
			heads[i]);
		_cleanup_free_ char *without = xasprintf("%s" STEP(1, 0, 100) "," OP "]}",
							 heads[i]);
		struct findings f = findings_text(p, with);

		check_status(&f, PROBE_OK);
		check_at(&f, "compute_ratio", 1, NULL, 0.3);
		check_at(&f, "gpu_idle_ratio", 1, NULL, 0.7);
		check_at(&f, "alloc_gap_ratio", 1, NULL, 0.05);
		findings_free(&f);
		f = findings_text(p, without);
		check_at(&f, "compute_ratio", 1, NULL, 0.6);
		check_missing(&f, "gpu_idle_ratio", -1, "scope=steps", "no device in the trace");
		findings_free(&f);
	}
}

#define OLD(name, who, ts, dur)                                                          \
	"{\"name\":\"" name "\",\"ph\":\"X\",\"ts\":" #ts ",\"dur\":" #dur ",\"tid\":1," \
	"\"pid\":\"" who "\",\"args\":{}}"

/* What torch.autograd.profiler writes where PyTorch has no Kineto: no categories. */
static void test_without_kineto(void **state)
{
	struct findings f = findings_text(p, "[" OLD("aten::mm", "CPU functions", 0, 60) "," OLD(
						     "aten::relu", "CPU functions", 90, 10) "]");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "trace_step_ms", -1, NULL, 0.1);
	check_at(&f, "compute_ratio", -1, NULL, 0.7);
	findings_free(&f);
	f = findings_text(
		p, "[" OLD("aten::mm", "CPU functions", 0, 100) "," OLD(
			   "sgemm", "CUDA functions", 20,
			   30) "," OLD("Memcpy HtoD (Pageable -> Device)", "CUDA functions", 60,
				       10) "," OLD("Memset (Device)", "CUDA functions", 80, 5) "]");
	check_status(&f, PROBE_OK);
	check_at(&f, "trace_step_ms", -1, NULL, 0.065);
	check_at(&f, "kernel_time_ms", -1, "kernel=sgemm", 0.03);
	check_at(&f, "h2d_pageable_ratio", -1, NULL, 10.0 / 65);
	assert_int_equal(found_count(&f, "h2d_copy_bytes"), 0);
	findings_free(&f);
}

static void test_names(void **state)
{
	int64_t n;

	(void)state;
	assert_true(trace_profiler_step(span_of("ProfilerStep#12, op_id = 4"), &n) && n == 12);
	assert_false(trace_profiler_step(span_of("ProfilerStep#"), &n));
	assert_true(trace_named_step(span_of("Iteration 41"), &n) && n == 41);
	assert_true(trace_named_step(span_of("train_step"), &n) && n == -1);
	assert_true(trace_named_step(span_of("step_7"), &n) && n == 7);
	assert_false(trace_named_step(span_of("stepwise"), &n));
	assert_true(trace_is_data(span_of("enumerate(DataLoader)#x")));
	assert_true(trace_is_data(span_of("get_batch")));
	assert_false(trace_is_data(span_of("forward")));
	assert_int_equal(trace_call(span_of("cudaMalloc_v3020")), TIMELINE_ALLOC);
	assert_int_equal(trace_call(span_of("cudaMallocAsync_v11020")), TIMELINE_LAUNCH);
	assert_int_equal(trace_call(span_of("cudaFree")), TIMELINE_ALLOC);
	assert_int_equal(trace_call(span_of("cuMemUnmap")), TIMELINE_ALLOC);
	assert_int_equal(trace_call(span_of("hipStreamSynchronize")), TIMELINE_SYNC);
	assert_int_equal(trace_call(span_of("cudaMemcpy")), TIMELINE_SYNC);
	assert_int_equal(trace_call(span_of("cudaMemcpyAsync")), TIMELINE_LAUNCH);
	assert_int_equal(trace_call(span_of("cudaLaunchKernelExC_v11060")), TIMELINE_LAUNCH);
	assert_int_equal(trace_call(span_of("zeEventHostSynchronize")), TIMELINE_SYNC);
	assert_int_equal(trace_call(span_of("urQueueFinish")), TIMELINE_SYNC);
	assert_int_equal(trace_call(span_of("urUSMFree")), TIMELINE_ALLOC);
	assert_int_equal(trace_call(span_of("urEnqueueKernelLaunch")), TIMELINE_LAUNCH);
	assert_int_equal(trace_copy(span_of("Memcpy HtoD (Pinned -> Device)")), TIMELINE_PINNED);
	assert_int_equal(trace_copy(span_of("Memcpy DtoH (Device -> Pageable)")), TIMELINE_COPY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_mended),
		cmocka_unit_test(test_stepped_over),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_handed_over),
		cmocka_unit_test(test_unlisted_device),
		cmocka_unit_test(test_without_kineto),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
