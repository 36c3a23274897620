/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of nccl-tests (v1 to v2.19) and of its descendants (RCCL, AWS, bare copies):
 *
 *   #       size         count      type   redop    root     time   algbw   busbw  #wrong     time
 * ... 8589934592    2147483648     float     sum      -1  45110.4  190.42  357.04       0  45093.7
 * ... # Out of bounds values : 0 OK # Avg bus bandwidth    : 194.654
 *
 * Columns come and go by version and option, so they are read by the header's names; a row with
 * blank cells is put under the header by where its words end. A text can hold several tables (label
 * run). Up to 2019 they were bytes, N, op, and its times ms. A table of one placement (rccl-tests)
 * names it above the columns. GB/s is 1e9 B/s. Of one rank, bus bandwidth 0 is right by definition
 * (fact nccl_tests.note).
 *
 * Status: failed when the tool or its launcher says so, partial when rows or the footer are missing
 * ("..." in an excerpt, or an average that is not that of the rows) or when a bus bandwidth is not
 * the algorithm bandwidth times a factor of that many ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/coll.h"
#include "probes/lines.h"
#include "probes/probe.h"
#include "probes/when.h"

enum { COLUMNS_MAX = 32, HOSTS_MAX = 4096 };

/* What a column feeds. */
enum column {
	COL_OTHER,
	COL_SIZE,
	COL_TYPE,
	COL_REDOP,
	COL_ROOT,
	COL_STAMP,
	COL_VALUE, /* of the metric beside it */
};

static const struct {
	const char *name;
	enum column kind;
	const char *metric;
} known[] = {
	{"size", COL_SIZE, NULL},
	{"bytes", COL_SIZE, NULL},
	{"type", COL_TYPE, NULL},
	{"redop", COL_REDOP, NULL},
	{"op", COL_REDOP, NULL},
	{"root", COL_ROOT, NULL},
	{"timestamp", COL_STAMP, NULL},
	{"time", COL_VALUE, "coll_time_us"},
	{"algbw", COL_VALUE, "coll_algbw_gb_per_s"},
	{"busbw", COL_VALUE, "coll_busbw_gb_per_s"},
	{"#wrong", COL_VALUE, "coll_wrong"},
	{"i_min", COL_VALUE, "coll_time_min_us"},
	{"i_max", COL_VALUE, "coll_time_max_us"},
	{"i_p99", COL_VALUE, "coll_time_p99_us"},
	{"i_cv%", COL_VALUE, "coll_time_cv_pct"},
};

struct word {
	struct span t;
	size_t end; /* where it ends in its line */
};

struct header {
	enum column kind[COLUMNS_MAX];
	const char *metric[COLUMNS_MAX];
	bool in_place[COLUMNS_MAX];
	size_t end[COLUMNS_MAX];
	size_t n; /* 0: no header seen */
};

struct probe_run {
	struct input *in;
	struct emit out;
	struct header header;
	struct coll coll; /* what the rows have in common */
	struct coll_mean mean;
	struct strv hosts;
	bool only_in_place; /* what stands above the names of the columns */
	int64_t ranks;      /* rank lines of the table to come */
	int64_t nranks;     /* of the last table that listed them, 0 unknown */
	int64_t rows, footers;
	char failure[200]; /* what the tool says went wrong, "" if nothing */
	int64_t failure_line;
	bool failed_softly; /* the launcher complains: no failure if a footer follows */
};

static size_t split(struct span t, struct word *out, size_t max)
{
	const char *start = t.s;
	size_t n = 0;
	struct span w;

	while (n < max && span_word(&t, &w)) {
		out[n].t = w;
		out[n++].end = (size_t)(w.s - start) + w.n;
	}
	return n;
}

static void keep_word(char *out, struct span t)
{
	size_t n = t.n < COLL_WORD_MAX - 1 ? t.n : COLL_WORD_MAX - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

/* The names that a table begins with. */
static bool is_header(const struct word *w, size_t n)
{
	return n >= 4 && ((span_eq(w[0].t, "size") && span_eq(w[1].t, "count")) ||
			  (span_eq(w[0].t, "bytes") && span_eq(w[1].t, "N")));
}

/* "#  size count type ..." */
static bool header_line(struct probe_run *r, struct span t)
{
	struct word w[COLUMNS_MAX + 1];
	size_t n = split(t, w, ARRAY_LEN(w)), first = 0;
	struct header *h = &r->header;
	int times = 0;

	if (n && span_eq(w[0].t, "#"))
		first = 1;
	if (n > COLUMNS_MAX || !is_header(w + first, n - first))
		return false;
	if (h->n && r->rows)
		r->coll.run++;
	r->coll.ms = span_eq(w[first].t, "bytes");
	*h = (struct header){.n = n - first};
	for (size_t i = first; i < n; i++) {
		size_t c = i - first;

		times += span_eq(w[i].t, "time");
		h->end[c] = w[i].end;
		h->in_place[c] = times > 1 || r->only_in_place;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			if (span_eq(w[i].t, known[k].name)) {
				h->kind[c] = known[k].kind;
				h->metric[c] = known[k].metric;
			}
	}
	if (r->ranks) {
		emit_value(&r->out, "coll_nranks", (double)r->ranks, NULL);
		r->nranks = r->ranks;
	}
	if (r->ranks == 1)
		emit_fact(&r->out, "nccl_tests.note",
			  span_of("one rank: its bus bandwidth is 0 by definition"));
	r->ranks = 0;
	return true;
}

/* An excerpt may begin behind the header: rows of 13 words are those of 2.13 and later. */
static void assume_header(struct probe_run *r)
{
	static const char modern[] = "size count type redop root time algbw busbw #wrong "
				     "time algbw busbw #wrong";

	header_line(r, span_of(modern));
}

/* What stands above the names of the columns. */
static bool placement_line(struct probe_run *r, struct span t)
{
	if (!span_has(t, "in-place"))
		return false;
	r->only_in_place = !span_has(t, "out-of-place");
	return true;
}

/* Words under columns, first by number, else each under the nearest end of a name that is still
 * free. */
static bool assign(const struct header *h, struct word *w, size_t n, struct span *cells)
{
	size_t c = 0;

	for (size_t i = 0; i < h->n; i++)
		cells[i] = (struct span){NULL, 0};
	if (n == h->n) {
		for (size_t i = 0; i < n; i++)
			cells[i] = w[i].t;
		return true;
	}
	if (n > h->n)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t best = c, last = h->n - (n - i);

		for (size_t k = c; k <= last; k++) {
			size_t d = w[i].end > h->end[k] ? w[i].end - h->end[k]
							: h->end[k] - w[i].end;
			size_t b = w[i].end > h->end[best] ? w[i].end - h->end[best]
							   : h->end[best] - w[i].end;
			if (d < b)
				best = k;
		}
		cells[best] = w[i].t;
		c = best + 1;
	}
	return true;
}

/* The two words of a time stamp become one. */
static size_t join_stamp(const struct header *h, struct word *w, size_t n)
{
	bool has_stamp = h->n && h->kind[h->n - 1] == COL_STAMP;

	if (!has_stamp || n < 2 || n > h->n + 1 || !memchr(w[n - 1].t.s, ':', w[n - 1].t.n) ||
	    !memchr(w[n - 2].t.s, '-', w[n - 2].t.n))
		return n;
	w[n - 2].t.n = (size_t)(w[n - 1].t.s + w[n - 1].t.n - w[n - 2].t.s);
	w[n - 2].end = w[n - 1].end;
	return n - 1;
}

static bool is_name(struct span t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!(t.s[i] >= 'a' && t.s[i] <= 'z') && !(t.s[i] >= '0' && t.s[i] <= '9') &&
		    t.s[i] != '_')
			return false;
	return true;
}

/* Another writer's words in the middle of a row (NCCL's own lines go to the same stream) make cells
 * that are not of their columns: then no cell is trusted. */
static bool is_whole(const struct header *h, const struct span *cells)
{
	int64_t root;
	double v;

	for (size_t i = 0; i < h->n; i++) {
		if (!cells[i].s)
			continue;
		if ((h->kind[i] == COL_TYPE || h->kind[i] == COL_REDOP) && !is_name(cells[i]))
			return false;
		if (h->kind[i] == COL_ROOT && !num_whole_i64(cells[i], &root))
			return false;
		if (h->kind[i] == COL_VALUE && !num_whole(cells[i], &v) && !num_missing(cells[i]))
			return false;
	}
	return true;
}

static void emit_row(struct probe_run *r, const struct span *cells)
{
	const struct header *h = &r->header;
	struct coll c = r->coll;
	bool broken = false;

	c.t_us = -1;
	for (size_t i = 0; i < h->n; i++) {
		if (!cells[i].s)
			continue;
		if (h->kind[i] == COL_SIZE)
			num_whole_i64(cells[i], &c.size_bytes);
		else if (h->kind[i] == COL_TYPE)
			keep_word(c.type, cells[i]);
		else if (h->kind[i] == COL_REDOP && !span_eq(cells[i], "none"))
			keep_word(c.redop, cells[i]);
		else if (h->kind[i] == COL_ROOT && !span_eq(cells[i], "-1"))
			keep_word(c.root, cells[i]);
		else if (h->kind[i] == COL_STAMP)
			c.t_us = when_parse(cells[i]);
	}
	for (size_t i = 0; i + 1 < h->n; i++)
		if (h->metric[i] && str_eq(h->metric[i], "coll_algbw_gb_per_s") &&
		    h->metric[i + 1] && str_eq(h->metric[i + 1], "coll_busbw_gb_per_s") &&
		    !coll_factor_fits(cells[i], cells[i + 1], r->nranks))
			emit_bad(&r->out, "busbw is not algbw times a factor of so many ranks");
	for (size_t i = 0; i < h->n; i++) {
		if (h->kind[i] != COL_VALUE || !cells[i].s)
			continue;
		if (!coll_emit(&r->out, &c, h->in_place[i], h->metric[i], cells[i]))
			broken = true;
		else if (str_eq(h->metric[i], "coll_busbw_gb_per_s"))
			coll_mean_add(&r->mean, cells[i]);
	}
	if (broken)
		emit_bad(&r->out, "a cell holds no number");
	r->rows++;
}

static bool row_line(struct probe_run *r, const struct input_line *l)
{
	struct word w[COLUMNS_MAX];
	struct span cells[COLUMNS_MAX];
	size_t n = split(input_span(l), w, COLUMNS_MAX);
	int64_t unused;
	char letter;

	if (n < 6 || !num_whole_i64(w[0].t, &unused) || !num_whole_i64(w[1].t, &unused))
		return false;
	letter = (char)(w[2].t.s[0] | 0x20);
	if (letter < 'a' || letter > 'z')
		return false;
	if (!r->header.n && n == 13)
		assume_header(r);
	n = join_stamp(&r->header, w, n);
	if (!l->complete || l->cut)
		emit_bad(&r->out, "a row that is cut");
	else if (!r->header.n || !assign(&r->header, w, n, cells))
		emit_bad(&r->out, "a row that does not fit the header");
	else if (!is_whole(&r->header, cells))
		emit_bad(&r->out, "a cell holds no number");
	else
		emit_row(r, cells);
	return true;
}

static void fail(struct probe_run *r, const struct input_line *l, bool softly)
{
	if (r->failure[0] && !(r->failed_softly && !softly))
		return;
	str_copy(r->failure, sizeof(r->failure), l->text);
	r->failure_line = l->line;
	r->failed_softly = softly;
	emit_fact(&r->out, "nccl_tests.error", input_span(l));
}

static bool footer_line(struct probe_run *r, const struct input_line *l)
{
	struct span t = input_span(l), v = span_after(t, "Avg bus bandwidth"), w;
	double avg;

	if (span_has(t, "Out of bounds values")) {
		if (span_has(t, "FAILED"))
			fail(r, l, false);
		return true;
	}
	if (!v.s)
		return false;
	v = span_trim(v);
	if (!span_next(&v, ":", &w) || w.n || !v.s || !span_word(&v, &w) || !l->complete) {
		emit_bad(&r->out, "an average that is cut");
		return true;
	}
	r->footers++;
	if (!emit_token(&r->out, "busbw_avg_gb_per_s", w, 1, NULL))
		emit_bad(&r->out, "an average that is no number");
	else if (num_whole(w, &avg) && !coll_mean_check(&r->mean, avg))
		emit_bad(&r->out, "the average is not that of the rows: some are missing");
	if (span_has(v, "FAILED"))
		fail(r, l, false);
	return true;
}

static bool new_host(struct strv *hosts, const char *name)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (str_eq(hosts->v[i], name))
			return false;
	return hosts->n < HOSTS_MAX;
}

/* "#  Rank  0 Group  0 Pid 41000 on gpu-a device  0 [0000:18:00] NVIDIA H100 80GB HBM3" */
static bool rank_line(struct probe_run *r, struct span t)
{
	struct span w, host = span_after(t, " on "), gpu = span_after(t, "] ");
	_cleanup_free_ char *name = NULL;

	if (!span_word(&t, &w) || !span_eq(w, "#") || !span_word(&t, &w) || !span_eq(w, "Rank"))
		return false;
	r->ranks++;
	if (host.s && span_word(&host, &w)) {
		name = xstrndup(w.s, w.n);
		if (new_host(&r->hosts, name)) {
			strv_add(&r->hosts, name);
			emit_fact(&r->out, "nccl_tests.host", w);
		}
	}
	if (gpu.s && r->ranks == 1)
		emit_fact(&r->out, "nccl_tests.gpu", span_trim(gpu));
	return true;
}

static void emit_code(struct emit *o, const char *key, struct span code)
{
	int64_t v;
	char text[24];

	if (num_whole_i64(code, &v) && coll_nccl_version(v, text))
		emit_fact(o, key, span_of(text));
}

/* "# nThread 1 nGpus 1 minBytes 8 ...", "# nThreads: 1 nGpus: 2 nRanks: 1 minBytes: 8 ..." */
static bool is_parameters(struct span t)
{
	return (span_has(t, "nThread ") || span_has(t, "nThreads: ")) && span_has(t, " minBytes");
}

/* "NCCL version 2.28.9+cuda12.9" and RCCL's, which the library prints in between. */
static bool library_line(struct probe_run *r, struct span t)
{
	struct span v = span_after(t, "CCL version "), w;

	if (!v.s || v.s > t.s + 13)
		return false;
	if (span_starts(v, ": "))
		v = span_after(v, ": ");
	if (!span_word(&v, &w) || w.s[0] < '0' || w.s[0] > '9')
		return false;
	emit_fact(&r->out, "nccl.version", w);
	return true;
}

/* Lines that say which program and library ran, and with what. */
static bool about_line(struct probe_run *r, struct span t)
{
	static const char *const tests[] = {"# Collective test starting: ",
					    "# Collective test concluded: "};
	struct span v = span_after(t, "# nccl-tests version "), w;

	if (v.s && span_word(&v, &w)) {
		emit_fact(&r->out, "nccl_tests.version", w);
		v = span_after(v, "nccl-library=");
		if (v.s && span_word(&v, &w))
			emit_code(&r->out, "nccl.version", w);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
		v = span_after(t, tests[i]);
		if (v.s && span_word(&v, &w) && i == 0)
			keep_word(r->coll.test, w);
		if (v.s)
			return true;
	}
	if (span_has(t, "# Reducing maxBytes to ")) {
		emit_fact(&r->out, "nccl_tests.note", span_trim(span_after(t, "# ")));
		return true;
	}
	if (!is_parameters(t))
		return false;
	emit_fact(&r->out, "nccl_tests.parameters",
		  span_trim(span_has(t, "# ") ? span_after(t, "# ") : t));
	return true;
}

static bool error_line(struct probe_run *r, const struct input_line *l)
{
	static const char *const hard[] = {
		"Test NCCL failure",       "Test CUDA failure",
		": Test failure ",         "Test timeout (",
		"Invalid number of GPUs:", "[ERROR] The number of requested GPUs"};
	static const char *const soft[] = {"srun: error:", "slurmstepd: error:", "mpirun noticed",
					   "MPI_ABORT was invoked", "error while loading shared"};
	struct span t = input_span(l);

	for (size_t i = 0; i < ARRAY_LEN(hard); i++)
		if (span_has(t, hard[i])) {
			fail(r, l, false);
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(soft); i++)
		if (span_has(t, soft[i])) {
			fail(r, l, true);
			return true;
		}
	return false;
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;
	struct span t = input_span(l);

	if (!l->len)
		return;
	emit_begin(&r->out, l);
	if (span_eq(span_trim(t), "..."))
		emit_bad(&r->out, "an excerpt: rows are left out");
	else if (l->text[0] == '#' || span_trim(t).s[0] == '#')
		(void)(header_line(r, t) || placement_line(r, t) || rank_line(r, t) ||
		       footer_line(r, l) || about_line(r, t));
	else /* what is pasted as Markdown has lost its "#" */
		(void)(row_line(r, l) || library_line(r, t) || error_line(r, l) ||
		       footer_line(r, l) || header_line(r, t));
}

static int nccl_tests_open(const struct probe_context *c, const struct probe_sink *sink,
			   struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int nccl_tests_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status judge(const struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	if (r->failure[0] && !(r->failed_softly && r->footers)) {
		if (detail)
			buf_printf(detail, "line %lld: %s", (long long)r->failure_line, r->failure);
		return PROBE_FAILED;
	}
	if (!r->rows && !r->footers) {
		if (detail)
			buf_str(detail, "no row of nccl-tests");
		return PROBE_ABSENT;
	}
	s = emit_status(&r->out, detail);
	if (r->footers || s != PROBE_OK)
		return s;
	if (detail)
		buf_str(detail, "the footer with the average is missing");
	return PROBE_PARTIAL;
}

static enum probe_status nccl_tests_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = judge(r, detail);
	input_free(r->in);
	emit_close(&r->out);
	strv_free(&r->hosts);
	free(r);
	return s;
}

/* The line of the columns' names, or that of the options. */
static int score(struct span line)
{
	struct span w;

	if (is_parameters(line))
		return 95;
	if (!span_word(&line, &w) || (span_eq(w, "#") && !span_word(&line, &w)))
		return 0;
	return (span_eq(w, "size") || span_eq(w, "bytes")) && span_has(line, "algbw") &&
			       span_has(line, "busbw")
		       ? 95
		       : 0;
}

static int nccl_tests_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

const struct probe probe_nccl_tests = {
	.name = "nccl_tests",
	.summary = "nccl-tests: time, bandwidth and wrong values by size",
	.example = "all_reduce_perf -b 8 -e 8G -f 2 -g 1 -n 20 -w 5 -c 1",
	.sniff = nccl_tests_sniff,
	.open = nccl_tests_open,
	.feed = nccl_tests_feed,
	.finish = nccl_tests_finish,
};
