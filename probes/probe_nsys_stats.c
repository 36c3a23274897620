/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `nsys stats`, as CSV (--format csv) or as its console shows it (columns apart by two blanks or
 * more, thousands with commas; `nsys profile --stats` since 2019): sums over a whole trace, one
 * report after another, with chatter between them. A report is known by its header (Time (%) is
 * first, or Total of mem_size_sum): its columns are found by name, for they were renamed in 2020
 * and 2022, and its times are in the unit that the header names, nanoseconds if it names none.
 * kernel_time_share is a share of all kernels' time and not of the step: sums do not know what ran
 * beside what. `probe_nsys` on the SQLite export does.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/csv.h"
#include "probes/lines.h"
#include "probes/trace.h"

/* What the rows of the present report are. */
enum report { NONE, KERNELS, CALLS, COPIES, RANGES, OTHER };

struct state {
	struct csv row;
	enum report report;
	bool console;           /* the present report is as the console shows it */
	int total, count, name; /* columns */
	size_t columns;
	uint32_t triples; /* columns of three words: GridXYZ, BlockXYZ */
	double scale;     /* of total, to ns */
	struct kernels *kernels;
};

static const char *const counts[] = {"Instances", "Num Calls", "Count", "Operations", "Calls"};

/* "Total Time (ns)" or "Total Time(ns)": the column and its unit. */
static int find_total(const struct csv *c, double *scale)
{
	for (size_t i = 0; i < c->n; i++) {
		struct span unit = span_after(c->v[i], "Total Time");

		if (!unit.s || c->v[i].s + 10 != unit.s)
			continue;
		*scale = unit.n ? csv_time_scale(unit) : 1;
		return *scale ? (int)i : -1;
	}
	return -1;
}

/* Reports of other things (mpi_event_sum, openmp_sum, cuda_api_gpu_sum) have names, too. */
static enum report report_of(const struct csv *c, int *name)
{
	static const char *const others[] = {"Category", "Source", "Event Type"};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (csv_find(c, others[i]) >= 0)
			return OTHER;
	if ((*name = csv_find(c, "Operation")) >= 0)
		return COPIES;
	if ((*name = csv_find(c, "Range")) >= 0)
		return RANGES;
	if ((*name = csv_find(c, "Name")) < 0)
		return OTHER;
	if (csv_find(c, "Num Calls") >= 0 || csv_find(c, "Calls") >= 0)
		return CALLS;
	if (csv_find(c, "Operations") >= 0) /* before 2020.4 */
		return COPIES;
	return csv_find(c, "Instances") >= 0 ? KERNELS : OTHER;
}

/* A header begins a report. */
static bool take_header(struct state *s)
{
	const struct csv *c = &s->row;

	if (c->n < 3 || (!span_eq(c->v[0], "Time (%)") && !span_eq(c->v[0], "Time(%)") &&
			 !span_eq(c->v[0], "Total") && !span_after(c->v[0], "Total (").s))
		return false;
	s->report = report_of(c, &s->name);
	s->columns = c->n;
	s->triples = 0;
	for (size_t i = 0; i < c->n && i < 32; i++)
		if (span_eq(c->v[i], "GridXYZ") || span_eq(c->v[i], "BlockXYZ"))
			s->triples |= UINT32_C(1) << i;
	s->total = find_total(c, &s->scale);
	s->count = -1;
	for (size_t i = 0; i < ARRAY_LEN(counts) && s->count < 0; i++)
		s->count = csv_find(c, counts[i]);
	if (s->total < 0 || s->count < 0)
		s->report = OTHER;
	return true;
}

static void emit_named(struct emit *o, const char *time, const char *count, const char *key,
		       struct span name, double ns, double n)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;

	emit_label(&ls, key, name);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	emit_value(o, time, ns / 1e6, &tag);
	if (count)
		emit_value(o, count, n, &tag);
}

static void take_row(struct state *s, struct emit *o)
{
	const struct csv *c = &s->row;
	struct span name = c->v[s->name];
	double ns, n;

	if (!csv_number(c->v[s->total], &ns) || !csv_number(c->v[s->count], &n) || ns < 0 ||
	    n < 0 || ns * s->scale > 9e18 || n > 9e18) {
		emit_bad(o, "the total or the count of a row is no number");
		return;
	}
	ns *= s->scale;
	switch (s->report) {
	case KERNELS:
		kernels_add_sum(s->kernels, name, (int64_t)n, (int64_t)ns);
		break;
	case CALLS:
		emit_named(o, "host_call_time_ms", "host_calls", "call", name, ns, n);
		break;
	case COPIES:
		emit_named(o, "copy_time_ms", NULL, "operation", name, ns, n);
		break;
	case RANGES:
		emit_named(o, "range_time_ms", NULL, "range", name, ns, n);
		break;
	case NONE:
	case OTHER:
		break;
	}
}

/* Three words, as many blanks as there are between them. */
static size_t triple_len(struct span t)
{
	struct span rest = t, w = {t.s, 0};

	for (int i = 0; i < 3; i++)
		if (!span_word(&rest, &w))
			break;
	return (size_t)(w.s + w.n - t.s);
}

/* "    75.0        1,831,281          2   void f(int, x)": what more there is belongs to the last
 * of `most` columns, the name, which may be empty. */
static void split_columns(struct csv *c, struct span line, size_t most, uint32_t triples)
{
	struct span rest = span_trim(line);

	c->n = 0;
	while (rest.n && c->n < most) {
		struct span more = {NULL, 0};
		size_t n = rest.n;

		if (c->n < 32 && triples >> c->n & 1) {
			n = triple_len(rest);
			more = (struct span){rest.s + n, rest.n - n};
		} else if (c->n + 1 < most && (more = span_after(rest, "  ")).s) {
			n = (size_t)(more.s - rest.s) - 2;
		}
		c->v[c->n++] = (struct span){rest.s, n};
		rest = more.s ? span_trim(more) : (struct span){"", 0};
	}
}

static bool is_console_head(struct span line)
{
	line = span_trim(line);
	return (span_starts(line, "Time (%)  ") || span_starts(line, "Time(%)  ") ||
		span_starts(line, "Total (") ||
		(span_starts(line, "Total  ") && span_has(line, "Operation"))) &&
	       !memchr(line.s, ',', line.n);
}

/* A line as a header or a row; false: a quote in it is not closed. */
static bool split(struct state *s, struct span line)
{
	if (is_console_head(line)) {
		split_columns(&s->row, line, CSV_FIELDS_MAX, 0);
		s->console = true;
		return true;
	}
	if (span_starts(line, "Time (%),") || span_starts(line, "Time(%),") ||
	    span_starts(line, "Total ("))
		s->console = false;
	if (!s->console)
		return csv_split(&s->row, line);
	split_columns(&s->row, line, s->columns, s->triples);
	if (s->row.n + 1 == s->columns && s->name == (int)s->row.n)
		s->row.v[s->row.n++] = (struct span){"", 0};
	return true;
}

/* What stands between two reports; the next may be one that we do not know. */
static bool is_end(struct span line)
{
	static const char *const words[] = {"Processing [", "Running [", "Executing '", " ** ",
					    "Start (ns)"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (span_starts(line, words[i]) || span_starts(span_trim(line), words[i]))
			return true;
	return line.n && line.s[0] == '[' && span_has(line, "] Executing '");
}

/* Other writers' lines may stand between rows: a row begins with its share. */
static bool is_row(const struct csv *c)
{
	double share;

	return c->n > 1 && csv_number(c->v[0], &share);
}

static void stats_line(void *state, struct emit *o, const struct input_line *l)
{
	struct state *s = state;
	bool whole;

	if (!s->kernels)
		s->kernels = kernels_new();
	if (is_end(input_span(l))) {
		s->report = NONE;
		s->console = false;
		return;
	}
	if (!s->console && !is_console_head(input_span(l)) && !memchr(l->text, ',', l->len))
		return;
	whole = split(s, input_span(l));
	if ((whole && take_header(s)) || s->report == NONE || s->report == OTHER)
		return;
	if (!is_row(&s->row)) {
		/* "100,0   33.024": thousands cannot be told from decimals. */
		if (s->console && s->row.n == s->columns && s->row.v[0].s[0] >= '0' &&
		    s->row.v[0].s[0] <= '9')
			emit_bad(o, "numbers as another locale than C writes them");
		return;
	}
	if (!whole || !l->complete || s->row.n != s->columns)
		emit_bad(o, "a row that is cut, or has a quote that is not closed");
	else
		take_row(s, o);
}

static enum probe_status stats_end(void *state, struct emit *o, struct buf *detail)
{
	struct state *s = state;
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	double comm, all;

	o->raw_of = NULL;
	o->raw[0] = '\0';
	if (s->kernels) {
		comm = (double)kernels_ns(s->kernels, TIMELINE_COMM);
		all = (double)kernels_ns(s->kernels, TIMELINE_COMPUTE) + comm;
		kernels_emit(s->kernels, o);
		emit_label(&ls, "class", span_of("comm"));
		tag.labels = ls.v;
		tag.n_labels = ls.n;
		if (all > 0)
			emit_value(o, "kernel_time_share", comm / all, &tag);
	}
	return emit_status(o, detail);
}

static void stats_clear(void *state)
{
	struct state *s = state;

	csv_free(&s->row);
	kernels_free(s->kernels);
}

static const struct lines_kind kind = {sizeof(struct state), stats_line, stats_end, stats_clear};

static int stats_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	return lines_open(&kind, c, sink, out, e);
}

static int score(struct span line)
{
	bool head = span_after(line, "Time (%),").s == line.s + 9 ||
		    span_after(line, "Time(%),").s == line.s + 8;

	return (head || is_console_head(line)) && span_has(line, "Total Time") ? 95 : 0;
}

static int stats_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

const struct probe probe_nsys_stats = {
	.name = "nsys_stats",
	.summary = "nsys stats, CSV or console: time of kernels, calls, copies and NVTX ranges",
	.example =
		"nsys stats -r cuda_gpu_kern_sum,cuda_api_sum --format csv --output - r.nsys-rep",
	.sniff = stats_sniff,
	.open = stats_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
