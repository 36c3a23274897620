/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perftest: ib_write_bw, ib_read_bw, ib_send_bw and their _lat, all sizes or one. MB/sec and
 * MiB/sec are 2^20 bytes a second, Gb/sec (--report_gbits) 1e9 bits. In one text the client and the
 * server of a run print the same row: it is given once. The peak is 0.00 where it was not measured
 * (duration mode): that is no value.
 *
 * Labels: test ("RDMA_Write BW"), size_bytes. Facts: perftest.device, perftest.link,
 * perftest.error. A test that says what went wrong and gives no row has failed.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/lines.h"

/* 2 bytes to 8 MiB are 23 sizes; a text holds some tests. */
enum { TEST_COLS = 16, TEST_BYTES = 48, ROWS_MAX = 1024, FAILURE_BYTES = 120 };

#define MIB (1024.0 * 1024)

enum what { WHAT_NONE, WHAT_SIZE, WHAT_BANDWIDTH, WHAT_PLAIN };

/* What a column's name begins with; its unit follows in brackets. */
static const struct meaning {
	const char *name;
	enum what what;
	const char *metric;
	double scale;
} meanings[] = {
	{"#bytes", WHAT_SIZE, NULL, 0},
	{"#iterations", WHAT_NONE, NULL, 0},
	{"#sl", WHAT_NONE, NULL, 0},
	{"BW peak[", WHAT_BANDWIDTH, "rdma_bw_peak_bytes_per_s", 0},
	{"BW average[", WHAT_BANDWIDTH, "rdma_bw_bytes_per_s", 0},
	{"MsgRate[", WHAT_PLAIN, "rdma_msgs_per_s", 1e6},
	{"t_min[", WHAT_PLAIN, "rdma_latency_min_us", 1},
	{"t_max[", WHAT_PLAIN, "rdma_latency_max_us", 1},
	{"t_typical[", WHAT_PLAIN, "rdma_latency_us", 1},
	{"t_avg[", WHAT_PLAIN, "rdma_latency_avg_us", 1},
	{"t_stdev[", WHAT_NONE, NULL, 0},
	{"99% percentile[", WHAT_PLAIN, "rdma_latency_p99_us", 1},
	{"99.9% percentile[", WHAT_NONE, NULL, 0},
	{"tps average", WHAT_NONE, NULL, 0},
	{"CPU_Util[", WHAT_NONE, NULL, 0},
	{"BW Port1[", WHAT_NONE, NULL, 0},
	{"MsgRate Port1[", WHAT_NONE, NULL, 0},
	{"BW Port2[", WHAT_NONE, NULL, 0},
	{"MsgRate Port2[", WHAT_NONE, NULL, 0},
};

struct column {
	const struct meaning *is;
	double scale;
	const char *at; /* where its name is in the header; for sorting */
};

struct perftest {
	char test[TEST_BYTES];       /* "" before the title */
	char failure[FAILURE_BYTES]; /* what the tool says went wrong first, "" if nothing */
	struct column col[TEST_COLS];
	size_t n; /* 0 before the header */
	struct strv rows;
};

static double bandwidth_unit(struct span t)
{
	if (span_after(t, "MB/sec]").s == t.s + 7 || span_after(t, "MiB/sec]").s == t.s + 8)
		return MIB;
	return span_after(t, "Gb/sec]").s == t.s + 7 ? 1e9 / 8 : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct column *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* "#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]": names hold blanks, so each
 * is looked for, and their places are their order. */
static bool take_header(struct perftest *st, struct span t)
{
	size_t n = 0;

	if (!span_has(t, "#bytes") || !span_has(t, "#iterations"))
		return false;
	st->n = 0;
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		struct span rest = span_after(t, meanings[i].name);
		double scale = meanings[i].scale;

		if (!rest.s)
			continue;
		if (meanings[i].what == WHAT_BANDWIDTH && (scale = bandwidth_unit(rest)) == 0)
			return true; /* a unit that we do not know: no number */
		st->col[n++] = (struct column){&meanings[i], scale,
					       rest.s - strlen(meanings[i].name)};
	}
	qsort(st->col, n, sizeof(st->col[0]), by_place);
	for (size_t i = 0; i < n; i++)
		st->col[i].at = NULL;
	st->n = n;
	return true;
}

/* "RDMA_Write BW Test", "Send Bidirectional Post List BW Test", "Send BW Multicast Test". */
static bool read_title(struct span t, struct span *test)
{
	static const char *const tails[] = {" BW Test", " Latency Test", " BW Multicast Test",
					    " Latency Multicast Test"};
	static const char *const verbs[] = {"RDMA_Write", "RDMA_Read", "Send",
					    "Atomic",     "RawEth",    "Raw Ethernet"};
	bool verb = false, tail = false;

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		verb |= t.n > strlen(verbs[i]) && memcmp(t.s, verbs[i], strlen(verbs[i])) == 0;
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		size_t k = strlen(tails[i]);

		tail |= t.n > k && memcmp(t.s + t.n - k, tails[i], k) == 0;
	}
	if (!verb || !tail || t.n - 5 >= TEST_BYTES)
		return false;
	*test = (struct span){t.s, t.n - 5};
	return true;
}

static void take_setting(struct emit *o, struct span t)
{
	static const struct {
		const char *key, *fact;
	} kept[] = {{"Device         : ", "perftest.device"},
		    {"Link type       : ", "perftest.link"}};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		struct span value = span_after(t, kept[i].key), w;

		if (value.s && span_word(&value, &w))
			emit_fact(o, kept[i].fact, w);
	}
}

/* What it says before it gives up. */
static void take_failure(struct perftest *st, struct emit *o, struct span t)
{
	static const char *const words[] = {"Completion with error at ",
					    "Couldn't ",
					    "Failed to ",
					    "Failed status ",
					    "Unable to ",
					    "Problems with warm up",
					    "Bad wc status ",
					    "Function ibv_"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!span_starts(t, words[i]))
			continue;
		emit_fact(o, "perftest.error", t);
		if (!st->failure[0])
			memcpy(st->failure, t.s, t.n < FAILURE_BYTES - 1 ? t.n : FAILURE_BYTES - 1);
		return;
	}
}

/* The cells of a row; false when it is none. */
static bool read_row(const struct perftest *st, struct span t, double *cell, size_t *n)
{
	struct span w;

	for (*n = 0; span_word(&t, &w); ++*n)
		if (*n == st->n || !num_whole(w, &cell[*n]))
			return false;
	return *n > 1;
}

/* True the first time that this test gives this row. */
static bool is_new(struct perftest *st, struct span t)
{
	_cleanup_free_ char *row = xasprintf("%s %.*s", st->test, (int)t.n, t.s);
	size_t blanks = 0;

	for (char *c = row; *c; c++)
		if (*c != ' ' && *c != '\t')
			row[blanks++] = *c;
		else if (blanks && row[blanks - 1] != ' ')
			row[blanks++] = ' ';
	row[blanks] = '\0';
	for (size_t i = 0; i < st->rows.n; i++)
		if (str_eq(st->rows.v[i], row))
			return false;
	if (st->rows.n < ROWS_MAX)
		strv_add(&st->rows, row);
	return true;
}

static void emit_row(const struct perftest *st, struct emit *o, const double *cell, size_t n)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	struct buf size = {0};

	emit_label(&ls, "test", span_of(st->test));
	for (size_t i = 0; i < n; i++)
		if (st->col[i].is->what == WHAT_SIZE) {
			buf_number(&size, cell[i]);
			emit_label(&ls, "size_bytes", span_of(size.data));
		}
	buf_free(&size);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	for (size_t i = 0; i < n; i++) {
		const struct meaning *m = st->col[i].is;

		if (!m->metric)
			continue;
		if (cell[i] == 0 && m->what == WHAT_BANDWIDTH)
			emit_missing(o, m->metric, "not measured", &tag);
		else
			emit_value(o, m->metric, cell[i] * st->col[i].scale, &tag);
	}
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct perftest *st = state;
	struct span t = span_trim(input_span(l)), test;
	double cell[TEST_COLS];
	size_t n;

	if (read_title(t, &test)) {
		memcpy(st->test, test.s, test.n);
		st->test[test.n] = '\0';
		st->n = 0;
		return;
	}
	if (!st->test[0] || take_header(st, t))
		return;
	if (!st->n || !read_row(st, t, cell, &n)) {
		take_setting(o, t);
		take_failure(st, o, t);
		return;
	}
	if (n != st->n || !l->complete) {
		if (!l->complete)
			emit_bad(o, "a row that is cut");
		return;
	}
	if (is_new(st, t))
		emit_row(st, o, cell, n);
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	const struct perftest *st = state;

	if (o->values || o->missing)
		return emit_status(o, detail);
	if (detail)
		buf_str(detail, st->failure[0] ? st->failure
				: st->test[0]  ? "a title and no row"
					       : "no title of perftest");
	return st->failure[0] ? PROBE_FAILED : PROBE_ABSENT;
}

static void clear(void *state)
{
	strv_free(&((struct perftest *)state)->rows);
}

static int score(struct span line)
{
	struct span test;

	return read_title(span_trim(line), &test) ? 92 : 0;
}

static int perftest_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int perftest_open(const struct probe_context *c, const struct probe_sink *sink,
			 struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct perftest), on_line, end, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_perftest = {
	.name = "perftest",
	.summary = "perftest (ib_write_bw and the like): bandwidth and latency of RDMA by size",
	.example = "ib_write_bw -a -F --report_gbits SERVER",
	.sniff = perftest_sniff,
	.open = perftest_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
