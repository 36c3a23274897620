/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nsight Compute as CSV, both of its pages: `--page raw` has a row a kernel, a column a counter and
 * a row of units under the header; `--page details` has a row a counter, named for people. Of the
 * counters those are taken that say how a kernel uses the device: tensor pipes, SMs, memory. For
 * each kernel (by name, weighted by duration), and without the label kernel over all of them: that
 * mean is one of what was profiled, which is rarely a whole step.
 *
 * ncu replays each kernel and fixes the clocks: its durations are no measure of a run.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/csv.h"
#include "probes/lines.h"
#include "probes/trace.h"

enum { COUNTERS = 5, KERNELS_MAX = 4096, NAME_BYTES = 63 };

static const char *const metrics[COUNTERS] = {"tensor_active", "sm_throughput", "mem_throughput",
					      "dram_active", "sm_occupancy"};

/* Names of a counter on the raw page (a prefix: what follows varies with the chip) and on the
 * details page. Where several fit a kernel the largest counts: a chip has one tensor pipe a type.
 */
static const struct {
	const char *name;
	int counter;
} known[] = {
	{"sm__pipe_tensor_", 0},
	{"sm__inst_executed_pipe_tensor", 0},
	{"sm__throughput.avg.pct", 1},
	{"Compute (SM) Throughput", 1},
	{"SM [%]", 1},
	{"gpu__compute_memory_throughput.avg.pct", 2},
	{"Memory Throughput", 2},
	{"Memory [%]", 2},
	{"gpu__dram_throughput.avg.pct", 3},
	{"dram__throughput.avg.pct", 3},
	{"DRAM Throughput", 3},
	{"SOL DRAM", 3}, /* to 2021.1 */
	{"SOL FB", 3},   /* to 2020.1 */
	{"sm__warps_active.avg.pct_of_peak_sustained_active", 4},
	{"Achieved Occupancy", 4},
};

/* All launches of one name. */
struct kernel {
	char name[NAME_BYTES + 1];
	double ns, n;
	double sum[COUNTERS], weight[COUNTERS]; /* of value times duration, and of duration */
};

struct state {
	struct csv row;
	enum { NO_TABLE, RAW, DETAILS } page;
	int id, name, metric, unit, value; /* columns */
	int duration;                      /* of the raw page */
	int *counter;                      /* of each column of the raw page; -1 none */
	size_t columns;
	double scale;   /* of durations, to ns */
	bool has_units; /* the row of units was read */
	/* The launch that rows of the details page tell of. */
	char launch[32], launch_name[NAME_BYTES + 1];
	double launch_ns, pct[COUNTERS]; /* -1: unknown */
	bool open;
	struct kernel *kernels;
	size_t n, cap;
};

static int counter_of(struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		size_t k = strlen(known[i].name);

		if (name.n >= k && memcmp(name.s, known[i].name, k) == 0 &&
		    (strstr(known[i].name, "__") ? span_has(name, ".pct") : name.n == k))
			return known[i].counter;
	}
	return -1;
}

static void copy_name(char *to, size_t max, struct span t)
{
	size_t n = t.n < max - 1 ? t.n : max - 1;

	memcpy(to, t.s, n);
	to[input_clean(to, n)] = '\0';
}

/* -- launches --------------------------------------------------------------------------------- */

static void begin_launch(struct state *s, struct span id, struct span name)
{
	copy_name(s->launch, sizeof(s->launch), id);
	copy_name(s->launch_name, sizeof(s->launch_name), name);
	s->launch_ns = -1;
	for (size_t i = 0; i < COUNTERS; i++)
		s->pct[i] = -1;
	s->open = true;
}

static struct kernel *kernel_of(struct state *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->kernels[i].name, name))
			return &s->kernels[i];
	if (s->n == KERNELS_MAX)
		return NULL;
	s->kernels = xgrow(s->kernels, s->n, &s->cap, sizeof(*s->kernels));
	str_copy(s->kernels[s->n].name, sizeof(s->kernels[0].name), name);
	return &s->kernels[s->n++];
}

/* A launch without a duration (no such section) counts as one unit of time. */
static void end_launch(struct state *s)
{
	struct kernel *k = s->open ? kernel_of(s, s->launch_name) : NULL;
	double weight = s->launch_ns > 0 ? s->launch_ns : 1;

	s->open = false;
	if (!k)
		return;
	k->n++;
	k->ns += s->launch_ns > 0 ? s->launch_ns : 0;
	for (size_t i = 0; i < COUNTERS; i++) {
		if (s->pct[i] < 0)
			continue;
		k->sum[i] += s->pct[i] / 100 * weight;
		k->weight[i] += weight;
	}
}

static void take_counter(struct state *s, int counter, struct span text)
{
	double v;

	if (counter >= 0 && csv_number(text, &v) && v >= 0 && v <= 1000 && v > s->pct[counter])
		s->pct[counter] = v;
}

/* -- the raw page ----------------------------------------------------------------------------- */

static void raw_header(struct state *s)
{
	const struct csv *c = &s->row;

	free(s->counter);
	s->counter = xcalloc(c->n, sizeof(*s->counter));
	s->columns = c->n;
	for (size_t i = 0; i < c->n; i++)
		s->counter[i] = counter_of(c->v[i]);
	s->duration = csv_find(c, "gpu__time_duration.sum");
	s->scale = 1;
	s->has_units = false;
}

static void raw_row(struct state *s, struct emit *o)
{
	const struct csv *c = &s->row;
	double v;

	if (c->n != s->columns) {
		emit_bad(o, "a row with another number of fields than its header");
		return;
	}
	if (!s->has_units && !c->v[s->id].n) {
		s->has_units = true;
		s->scale = s->duration >= 0 ? csv_time_scale(c->v[s->duration]) : 1;
		s->scale = s->scale > 0 ? s->scale : 1;
		return;
	}
	begin_launch(s, c->v[s->id], c->v[s->name]);
	if (s->duration >= 0 && csv_number(c->v[s->duration], &v) && v >= 0 && v < 1e15)
		s->launch_ns = v * s->scale;
	for (size_t i = 0; i < c->n; i++)
		take_counter(s, s->counter[i], c->v[i]);
	end_launch(s);
}

/* -- the details page ------------------------------------------------------------------------- */

static void details_row(struct state *s, struct emit *o)
{
	const struct csv *c = &s->row;
	double v, scale;

	if ((int)c->n <= s->value || (int)c->n <= s->unit) {
		emit_bad(o, "a row that is cut");
		return;
	}
	if (!s->open || !span_eq(c->v[s->id], s->launch)) {
		end_launch(s);
		begin_launch(s, c->v[s->id], c->v[s->name]);
	}
	if (span_eq(c->v[s->metric], "Duration") ||
	    span_eq(c->v[s->metric], "gpu__time_duration.sum")) {
		scale = csv_time_scale(c->v[s->unit]);
		if (scale > 0 && csv_number(c->v[s->value], &v) && v >= 0 && v < 1e15)
			s->launch_ns = v * scale;
	} else if (span_eq(c->v[s->unit], "%")) {
		take_counter(s, counter_of(c->v[s->metric]), c->v[s->value]);
	}
}

/* -- lines ------------------------------------------------------------------------------------ */

static bool take_header(struct state *s)
{
	const struct csv *c = &s->row;

	if (!c->n || !span_eq(c->v[0], "ID") || csv_find(c, "Kernel Name") < 0)
		return false;
	end_launch(s);
	s->id = 0;
	s->name = csv_find(c, "Kernel Name");
	s->metric = csv_find(c, "Metric Name");
	s->unit = csv_find(c, "Metric Unit");
	s->value = csv_find(c, "Metric Value");
	s->page = s->metric >= 0 && s->unit >= 0 && s->value >= 0 ? DETAILS : RAW;
	if (s->page == RAW)
		raw_header(s);
	return true;
}

static void ncu_line(void *state, struct emit *o, const struct input_line *l)
{
	struct state *s = state;

	/* ==PROF== and what the program itself prints stand between. */
	if (l->text[0] != '"')
		return;
	if (!csv_split(&s->row, input_span(l))) {
		if (s->page != NO_TABLE)
			emit_bad(o, "a quote that is not closed");
		return;
	}
	if (take_header(s) || s->page == NO_TABLE)
		return;
	if (!l->complete)
		emit_bad(o, "a row that is cut");
	else if (s->page == RAW)
		raw_row(s, o);
	else
		details_row(s, o);
}

static void emit_kernel(struct emit *o, const struct kernel *k, bool is_all)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;

	if (!is_all)
		emit_label(&ls, "kernel", span_of(k->name[0] ? k->name : "(no name)"));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	for (size_t i = 0; i < COUNTERS; i++)
		if (k->weight[i] > 0)
			emit_value(o, metrics[i], k->sum[i] / k->weight[i], &tag);
	if (is_all)
		return;
	if (k->ns > 0)
		emit_value(o, "kernel_time_ms", k->ns / 1e6, &tag);
	emit_value(o, "kernel_count", k->n, &tag);
}

static int by_time(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static enum probe_status ncu_end(void *state, struct emit *o, struct buf *detail)
{
	struct state *s = state;
	struct kernel all = {.n = 0};

	end_launch(s);
	o->raw_of = NULL;
	o->raw[0] = '\0';
	if (s->n)
		qsort(s->kernels, s->n, sizeof(*s->kernels), by_time);
	for (size_t i = 0; i < s->n; i++) {
		for (size_t k = 0; k < COUNTERS; k++) {
			all.sum[k] += s->kernels[i].sum[k];
			all.weight[k] += s->kernels[i].weight[k];
		}
		if (i < TRACE_TOP)
			emit_kernel(o, &s->kernels[i], false);
	}
	emit_kernel(o, &all, true);
	return emit_status(o, detail);
}

static void ncu_clear(void *state)
{
	struct state *s = state;

	csv_free(&s->row);
	free(s->counter);
	free(s->kernels);
}

static const struct lines_kind kind = {sizeof(struct state), ncu_line, ncu_end, ncu_clear};

static int ncu_open(const struct probe_context *c, const struct probe_sink *sink,
		    struct probe_run **out, struct err *e)
{
	return lines_open(&kind, c, sink, out, e);
}

static int score(struct span line)
{
	return line.n > 5 && memcmp(line.s, "\"ID\",", 5) == 0 && span_has(line, "\"Kernel Name\"")
		       ? 95
		       : 0;
}

static int ncu_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

const struct probe probe_ncu_csv = {
	.name = "ncu_csv",
	.summary = "Nsight Compute as CSV: use of tensor pipes, SMs and memory by each kernel",
	.example = "ncu --csv --page raw --import report.ncu-rep",
	.sniff = ncu_sniff,
	.open = ncu_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
