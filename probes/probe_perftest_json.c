/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of perftest --out_json: the last size of one test. It does not say the unit of its
 * bandwidths (MiB/s, or Gb/s after --report_gbits), but gives size and message rate, whose product
 * only one of them is; where none is, there is no value. Same metrics and labels as
 * probe_perftest.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/jsonstream.h"
#include "probes/probe.h"

enum { TEST_BYTES = 64, SIZE_BYTES = 24 };

/* Members of "results". */
enum member { BW_PEAK, BW_AVERAGE, MSG_RATE, T_MIN, T_MAX, T_TYPICAL, T_AVG, P99, MEMBERS };

static const struct {
	const char *key, *metric;
	double scale; /* 0: of a bandwidth, to be found */
} members[MEMBERS] = {
	[BW_PEAK] = {"BW_peak", "rdma_bw_peak_bytes_per_s", 0},
	[BW_AVERAGE] = {"BW_average", "rdma_bw_bytes_per_s", 0},
	[MSG_RATE] = {"MsgRate", "rdma_msgs_per_s", 1e6},
	[T_MIN] = {"t_min", "rdma_latency_min_us", 1},
	[T_MAX] = {"t_max", "rdma_latency_max_us", 1},
	[T_TYPICAL] = {"t_typical", "rdma_latency_us", 1},
	[T_AVG] = {"t_avg", "rdma_latency_avg_us", 1},
	[P99] = {"percentile_99", "rdma_latency_p99_us", 1},
};

struct probe_run {
	struct jsonstream *json;
	struct emit out;
	char test[TEST_BYTES], size[SIZE_BYTES];
	double size_bytes, v[MEMBERS];
	bool has[MEMBERS];
};

static void keep(char *out, size_t max, struct span t)
{
	size_t n = t.n < max - 1 ? t.n : max - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

/* "RDMA_Write_Bidirectional_BW_Test" is what the console calls "RDMA_Write Bidirectional BW". */
static void take_test(struct probe_run *r, struct span t)
{
	static const char *const words[] = {"_Bidirectional", "_Post_List", "_List", "_BW",
					    "_Latency",       "_Multicast"};
	char *end;

	keep(r->test, sizeof(r->test), t);
	end = strstr(r->test, "_Test");
	if (end)
		*end = '\0';
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if ((end = strstr(r->test, words[i])))
			*end = ' ';
}

static void on_leaf(void *ctx, const char *path, enum jsonstream_kind kind, struct span text,
		    const struct input_line *line)
{
	struct probe_run *r = ctx;
	const char *key = str_starts(path, "results.") ? path + strlen("results.") : "";

	(void)kind;
	emit_begin(&r->out, line);
	if (str_eq(path, "test_info.test"))
		take_test(r, text);
	else if (str_eq(path, "test_info.Device"))
		emit_fact(&r->out, "perftest.device", text);
	else if (str_eq(path, "test_info.Link_type"))
		emit_fact(&r->out, "perftest.link", text);
	else if (str_eq(key, "MsgSize") && num_whole(text, &r->size_bytes))
		keep(r->size, sizeof(r->size), text);
	for (size_t i = 0; i < MEMBERS; i++)
		if (str_eq(key, members[i].key))
			r->has[i] = num_whole(text, &r->v[i]);
}

/* Bytes a second that a bandwidth of 1 is; 0 when it cannot be told. */
static double bandwidth_unit(const struct probe_run *r)
{
	static const double units[] = {1024.0 * 1024, 1e9 / 8};
	double bytes_per_s = r->v[MSG_RATE] * 1e6 * r->size_bytes;

	for (size_t i = 0; r->has[MSG_RATE] && r->has[BW_AVERAGE] && i < ARRAY_LEN(units); i++)
		if (bytes_per_s > 0 && fabs(r->v[BW_AVERAGE] * units[i] / bytes_per_s - 1) < 0.02 &&
		    r->v[BW_AVERAGE] > 0)
			return units[i];
	return 0;
}

static void on_close(void *ctx, const char *path)
{
	struct probe_run *r = ctx;
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	double unit = bandwidth_unit(r);

	if (!str_eq(path, "results"))
		return;
	emit_label(&ls, "test", span_of(r->test));
	emit_label(&ls, "size_bytes", span_of(r->size));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	for (size_t i = 0; i < MEMBERS; i++) {
		bool is_bandwidth = members[i].scale == 0;

		if (!r->has[i])
			continue;
		if (is_bandwidth && r->v[i] == 0)
			emit_missing(&r->out, members[i].metric, "not measured", &tag);
		else if (is_bandwidth && unit == 0)
			emit_missing(&r->out, members[i].metric, "its unit is not known", &tag);
		else
			emit_value(&r->out, members[i].metric,
				   r->v[i] * (is_bandwidth ? unit : members[i].scale), &tag);
		r->has[i] = false;
	}
}

static int json_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct jsonstream_calls calls = {on_leaf, NULL, on_close};
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->json = jsonstream_new(&calls, r);
	*out = r;
	return 0;
}

static int json_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	jsonstream_feed(r->json, bytes, n);
	return 0;
}

static enum probe_status judge(const struct probe_run *r, struct buf *detail)
{
	if (!r->out.values && !r->out.missing) {
		if (detail)
			buf_str(detail, "no result of perftest");
		return PROBE_ABSENT;
	}
	/* A result of missing values alone is cut like any other, and says so. */
	return jsonstream_finish(r->json, detail) == JSONSTREAM_WHOLE ? PROBE_OK : PROBE_PARTIAL;
}

static enum probe_status json_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s = judge(r, detail);

	jsonstream_free(r->json);
	emit_close(&r->out);
	free(r);
	return s;
}

static int json_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	return span_has(t, "\"test_info\"") && span_has(t, "\"Number_of_qps\"") ? 95 : 0;
}

const struct probe probe_perftest_json = {
	.name = "perftest_json",
	.summary = "perftest --out_json: the same as perftest, of the last size",
	.example = "ib_write_bw -F --out_json --out_json_file=bw.json SERVER",
	.sniff = json_sniff,
	.open = json_open,
	.feed = json_feed,
	.finish = json_finish,
};
