/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * OSU micro-benchmarks, versions 5 to 7: the title line names the test, the header line its
 * columns, which stand at least two blanks apart. MB/s is 1e6 bytes a second. Lines of MPI
 * libraries may stand between the rows. A barrier has no sizes. Values have two decimals: a last
 * one that has them is whole even without a line end.
 *
 * Labels: test ("Allreduce Latency"), size_bytes; kind ("MPI-CUDA", "MPI_Put", "NCCL-CUDA") where
 * it is not plain MPI, buffers ("D-H": from the device to the host) where the test says so. Facts:
 * osu.version, osu.kind. A row that its own validation refutes is a failure.
 */
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/lines.h"

enum { OSU_COLS = 16, TEST_BYTES = 64, DECIMALS = 2 };

enum what { WHAT_NONE, WHAT_SIZE, WHAT_METRIC };

/* Beginnings of the columns' names. */
static const struct meaning {
	const char *name;
	enum what what;
	const char *metric;
	double scale;
} meanings[] = {
	{"Size", WHAT_SIZE, NULL, 0},
	{"Avg Lat", WHAT_METRIC, "mpi_latency_us", 1},
	{"Latency", WHAT_METRIC, "mpi_latency_us", 1},
	{"Pure Comm.(us)", WHAT_METRIC, "mpi_latency_us", 1}, /* Overall has a computation in it */
	{"Min Lat", WHAT_METRIC, "mpi_latency_min_us", 1},
	{"Max Lat", WHAT_METRIC, "mpi_latency_max_us", 1},
	{"P50 Tail Lat", WHAT_METRIC, "mpi_latency_p50_us", 1},
	{"P90 Tail Lat", WHAT_METRIC, "mpi_latency_p90_us", 1},
	{"P99 Tail Lat", WHAT_METRIC, "mpi_latency_p99_us", 1},
	{"Bandwidth (MB/s)", WHAT_METRIC, "mpi_bw_bytes_per_s", 1e6},
	{"MB/s", WHAT_METRIC, "mpi_bw_bytes_per_s", 1e6},
	{"Iterations", WHAT_METRIC, "mpi_iterations", 1},
	{"Messages/s", WHAT_METRIC, "mpi_msgs_per_s", 1},
};

struct osu {
	char test[TEST_BYTES]; /* "" before the title */
	char kind[TEST_BYTES];
	char buffers[8]; /* "" if not said */
	bool failed;
	const struct meaning *of[OSU_COLS];
	size_t n; /* columns; 0 before the header */
};

static const struct meaning *meaning_of(struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		size_t k = strlen(meanings[i].name);

		if (name.n >= k && memcmp(name.s, meanings[i].name, k) == 0)
			return &meanings[i];
	}
	return NULL;
}

/* The next name of a header: up to two blanks or a tab. */
static bool next_column(struct span *t, struct span *name)
{
	size_t i = 0;

	*t = span_trim(*t);
	while (i < t->n && t->s[i] != '\t' &&
	       !(t->s[i] == ' ' && i + 1 < t->n && t->s[i + 1] == ' '))
		i++;
	*name = (struct span){t->s, i};
	*t = (struct span){t->s + i, t->n - i};
	return i > 0;
}

/* "# OSU MPI-CUDA Allreduce Latency Test v7.4" */
static bool read_title(struct span t, struct span *kind, struct span *test, struct span *version)
{
	static const char stem[] = "# OSU ";
	struct span end;

	if (t.n < sizeof(stem) || memcmp(t.s, stem, sizeof(stem) - 1) != 0)
		return false;
	t = (struct span){t.s + sizeof(stem) - 1, t.n - (sizeof(stem) - 1)};
	end = span_after(t, " Test v");
	if (!end.s || !span_word(&t, kind) || end.s < t.s + 7)
		return false;
	*test = span_trim((struct span){t.s, (size_t)(end.s - t.s) - 7});
	return span_word(&end, version) && test->n > 0;
}

static void keep(char *out, size_t max, struct span t)
{
	size_t n = t.n < max - 1 ? t.n : max - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

/* "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)" */
static bool take_buffers(struct osu *st, struct span t)
{
	struct span from = span_after(t, "# Send Buffer on "), to, a, b;

	from = from.s ? span_after(from, "(") : from;
	to = from.s ? span_after(from, "(") : from;
	if (!to.s || !span_next(&from, ")", &a) || !span_next(&to, ")", &b) || a.n > 2 || b.n > 2)
		return false;
	snprintf(st->buffers, sizeof(st->buffers), "%.*s-%.*s", (int)a.n, a.s, (int)b.n, b.s);
	return true;
}

static bool take_title(struct osu *st, struct emit *o, struct span t)
{
	struct span kind, test, version;

	if (!read_title(t, &kind, &test, &version))
		return false;
	keep(st->test, TEST_BYTES, test);
	keep(st->kind, TEST_BYTES, kind);
	st->buffers[0] = '\0';
	st->n = 0;
	emit_fact(o, "osu.version", version);
	emit_fact(o, "osu.kind", kind);
	return true;
}

static bool take_header(struct osu *st, struct span t)
{
	struct span name;
	size_t n = 0, known = 0;

	if (!st->test[0] || t.n < 2 || t.s[0] != '#')
		return false;
	t = (struct span){t.s + 1, t.n - 1};
	while (n < OSU_COLS && next_column(&t, &name)) {
		st->of[n] = meaning_of(name);
		known += st->of[n] && st->of[n]->what == WHAT_METRIC;
		n++;
	}
	if (known)
		st->n = n;
	return true;
}

static bool has_decimals(struct span t)
{
	return t.n > DECIMALS && t.s[t.n - 1 - DECIMALS] == '.';
}

/* The cells of a row; false when it is none. */
static bool read_row(const struct osu *st, struct span t, struct span *cell, size_t *n)
{
	struct span w;
	double v;

	for (*n = 0; span_word(&t, &w); ++*n) {
		if (*n == st->n)
			return false;
		if (!num_whole(w, &v) && st->of[*n] && !num_missing(w))
			return false;
		cell[*n] = w;
	}
	return *n > 0;
}

static void take_row(struct osu *st, struct emit *o, const struct input_line *l)
{
	struct span cell[OSU_COLS];
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	int64_t size;
	size_t n;

	if (!read_row(st, input_span(l), cell, &n))
		return;
	if (n != st->n) {
		if (!l->complete)
			emit_bad(o, "a row that is cut");
		return;
	}
	emit_label(&ls, "test", span_of(st->test));
	if (!str_eq(st->kind, "MPI"))
		emit_label(&ls, "kind", span_of(st->kind));
	if (st->buffers[0])
		emit_label(&ls, "buffers", span_of(st->buffers));
	for (size_t i = 0; i < n; i++)
		st->failed |= !st->of[i] && span_eq(cell[i], "Fail");
	for (size_t i = 0; i < n; i++)
		if (st->of[i] && st->of[i]->what == WHAT_SIZE && num_whole_i64(cell[i], &size))
			emit_label(&ls, "size_bytes", cell[i]);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	for (size_t i = 0; i < n; i++)
		if (st->of[i] && st->of[i]->what == WHAT_METRIC &&
		    (l->complete || i + 1 < n || has_decimals(cell[i])))
			emit_token(o, st->of[i]->metric, cell[i], st->of[i]->scale, &tag);
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct osu *st = state;
	struct span t = span_trim(input_span(l));

	if (!take_title(st, o, t) && !take_buffers(st, t) && !take_header(st, t) && st->n)
		take_row(st, o, l);
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	const struct osu *st = state;

	if (st->failed) {
		if (detail)
			buf_str(detail, "the test found wrong data (Validation: Fail)");
		return PROBE_FAILED;
	}
	if (o->values || o->missing)
		return emit_status(o, detail);
	if (detail)
		buf_str(detail, st->test[0] ? "a title and no row" : "no title of an OSU test");
	return PROBE_ABSENT;
}

static int score(struct span line)
{
	struct span kind, test, version;

	return read_title(span_trim(line), &kind, &test, &version) ? 95 : 0;
}

static int osu_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int osu_open(const struct probe_context *c, const struct probe_sink *sink,
		    struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct osu), on_line, end, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_osu = {
	.name = "osu",
	.summary = "OSU micro-benchmarks: latency, bandwidth and rate of MPI by message size",
	.example = "srun -N2 --ntasks-per-node=1 osu_allreduce -f",
	.sniff = osu_sniff,
	.open = osu_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
