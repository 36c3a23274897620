/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "probes/probe.h"

const struct probe_column trace_columns[] = {
	{"trace_step_ms", "ms"},          {"compute_ratio", "compute"},
	{"comm_hidden_ratio", "hidden"},  {"comm_exposed_ratio", "exposed"},
	{"copy_exposed_ratio", "copy"},   {"gpu_idle_ratio", "idle"},
	{"data_gap_ratio", "data"},       {"launch_gap_ratio", "launch"},
	{"sync_gap_ratio", "sync"},       {"alloc_gap_ratio", "alloc"},
	{"data_wait_ratio", "data wait"}, {"h2d_pageable_ratio", "pageable"},
	{"h2d_pinned_ratio", "pinned"},   {"alloc_calls", "mallocs"},
	{"kernel_count", "kernels"},      {"kernel_short_ratio", "<10us"},
	{"comm_kernel_ratio", NULL},      {"data_wait_ms", NULL},
	{"alloc_call_ms", NULL},          {"optimizer_ratio", "optim"},
	{"host_other_ratio", "other"},    {NULL, NULL}};

/* -- names ------------------------------------------------------------------------------------ */

static bool starts(struct span t, const char *word)
{
	size_t n = strlen(word);

	return t.n >= n && memcmp(t.s, word, n) == 0;
}

static bool starts_nocase(struct span t, const char *word)
{
	size_t n = strlen(word);

	return t.n >= n && strncasecmp(t.s, word, n) == 0;
}

bool trace_profiler_step(struct span name, int64_t *number)
{
	static const char key[] = "ProfilerStep#";
	struct span rest, digits;

	if (!starts(name, key))
		return false;
	rest = (struct span){name.s + sizeof(key) - 1, name.n - (sizeof(key) - 1)};
	if (!span_next(&rest, ",", &digits))
		return false;
	return num_whole_i64(digits, number) && *number >= 0;
}

bool trace_named_step(struct span name, int64_t *number)
{
	static const char *const words[] = {"train_step", "training_step", "iteration", "iter",
					    "step"};
	struct span t = span_trim(name);
	size_t k = 0;

	for (size_t i = 0; i < ARRAY_LEN(words) && !k; i++)
		k = starts_nocase(t, words[i]) ? strlen(words[i]) : 0;
	if (!k)
		return false;
	t = (struct span){t.s + k, t.n - k};
	while (t.n && strchr(" _#:=-", *t.s))
		t = (struct span){t.s + 1, t.n - 1};
	*number = -1;
	return !t.n || (num_whole_i64(t, number) && *number >= 0);
}

bool trace_is_data(struct span name)
{
	static const char *const words[] = {"dataloader",     "data_load", "data load",
					    "data_wait",      "get_batch", "next_batch",
					    "batch-generator"};

	if (starts(name, "enumerate(DataLoader)"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (starts_nocase(name, words[i]))
			return true;
	return false;
}

/* "aten::mm", "autograd::engine::evaluate_function: ..."; c10d's only queue what runs elsewhere. */
bool trace_is_operator(struct span name)
{
	return span_has(name, "::") && !starts(name, "c10d::");
}

bool trace_is_host_comm(struct span name)
{
	static const char *const words[] = {"gloo:", "mpi:", "ucc:"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (starts(name, words[i]) && !span_has(name, "::"))
			return true;
	return false;
}

/* cudaMallocAsync and cudaFreeAsync only queue. */
enum timeline_host trace_call(struct span name)
{
	static const char *const allocs[] = {"Malloc",       "Free",       "HostAlloc",
					     "HostRegister", "MemCreate",  "MemMap",
					     "MemUnmap",     "MemRelease", "MemSetAccess",
					     "MemAlloc",     "MemFree",    "ExtMalloc",
					     "HostMalloc",   "HostFree",   "USMDeviceAlloc",
					     "USMFree"};
	struct span t = name;

	if (starts(t, "cuda"))
		t = (struct span){t.s + 4, t.n - 4};
	else if (starts(t, "hip"))
		t = (struct span){t.s + 3, t.n - 3};
	else if (starts(t, "cu") || starts(t, "ur") || starts(t, "ze"))
		t = (struct span){t.s + 2, t.n - 2};
	if (starts(t, "Launch") || span_has(t, "Async"))
		return TIMELINE_LAUNCH;
	if (span_has(t, "Synchronize") || starts(t, "Memcpy") || starts(t, "QueueFinish") ||
	    starts(t, "EventWait"))
		return TIMELINE_SYNC;
	for (size_t i = 0; i < ARRAY_LEN(allocs); i++)
		if (starts(t, allocs[i]))
			return TIMELINE_ALLOC;
	return TIMELINE_LAUNCH;
}

enum timeline_gpu trace_copy(struct span name)
{
	if (!span_has(name, "HtoD"))
		return TIMELINE_COPY;
	if (span_has(name, "Pageable"))
		return TIMELINE_PAGEABLE;
	return span_has(name, "Pinned") ? TIMELINE_PINNED : TIMELINE_COPY;
}

/* -- metrics ---------------------------------------------------------------------------------- */

/* One row on its way to the sink. */
struct row_out {
	struct emit *o;
	const struct timeline *t;
	const struct timeline_row *r;
	struct emit_tag tag;
	struct emit_labels ls;
};

static void ratio(const struct row_out *w, const char *metric, int64_t ns)
{
	emit_value(w->o, metric, w->r->wall_ns ? (double)ns / (double)w->r->wall_ns : 0, &w->tag);
}

static void emit_device(const struct row_out *w)
{
	const struct timeline_row *r = w->r;

	ratio(w, "compute_ratio", r->compute_ns);
	ratio(w, "comm_kernel_ratio", r->comm_ns);
	ratio(w, "comm_exposed_ratio", r->comm_exposed_ns);
	ratio(w, "comm_hidden_ratio", r->comm_ns - r->comm_exposed_ns);
	ratio(w, "copy_exposed_ratio", r->copy_exposed_ns);
	ratio(w, "h2d_pageable_ratio", r->pageable_ns);
	ratio(w, "h2d_pinned_ratio", r->pinned_ns);
	ratio(w, "gpu_idle_ratio", r->idle_ns);
	emit_value(w->o, "kernel_count", (double)r->kernels, &w->tag);
	if (r->kernels)
		emit_value(w->o, "kernel_short_ratio",
			   (double)r->short_kernels / (double)r->kernels, &w->tag);
}

/* A program without a device: the rest of the step is Python, locks, and waiting for anything. */
static void emit_operators(const struct row_out *w)
{
	const struct timeline_row *r = w->r;

	ratio(w, "compute_ratio", r->compute_ns);
	ratio(w, "comm_kernel_ratio", r->comm_ns);
	ratio(w, "comm_exposed_ratio", r->comm_exposed_ns);
	ratio(w, "comm_hidden_ratio", r->comm_ns - r->comm_exposed_ns);
	ratio(w, "optimizer_ratio", r->optim_ns);
	ratio(w, "host_other_ratio", r->idle_ns - r->data_gap_ns);
}

/* What is not known is missing once, for the sum, and not at every step. */
static void emit_causes(const struct row_out *w, bool is_sum)
{
	static const char why[] = "no host calls in the trace";
	const struct timeline_row *r = w->r;

	if (timeline_saw(w->t, TIMELINE_DATA))
		ratio(w, "data_gap_ratio", r->data_gap_ns);
	if (timeline_saw_calls(w->t)) {
		ratio(w, "launch_gap_ratio", r->launch_gap_ns);
		ratio(w, "sync_gap_ratio", r->sync_gap_ns);
		ratio(w, "alloc_gap_ratio", r->alloc_gap_ns);
	} else if (is_sum) {
		emit_missing(w->o, "launch_gap_ratio", why, &w->tag);
		emit_missing(w->o, "sync_gap_ratio", why, &w->tag);
		emit_missing(w->o, "alloc_gap_ratio", why, &w->tag);
	}
}

static void emit_host(const struct row_out *w)
{
	const struct timeline_row *r = w->r;

	if (timeline_saw(w->t, TIMELINE_DATA)) {
		emit_value(w->o, "data_wait_ms", (double)r->data_ns / 1e6, &w->tag);
		ratio(w, "data_wait_ratio", r->data_ns);
	}
	if (timeline_saw_calls(w->t)) {
		emit_value(w->o, "alloc_calls", (double)r->alloc_calls, &w->tag);
		emit_value(w->o, "alloc_call_ms", (double)r->alloc_ns / 1e6, &w->tag);
	}
}

/* Provenance: the line that marked the step, and what was counted in it. */
static void begin(struct row_out *w, struct input_line *l, struct buf *text, const char *scope)
{
	buf_clear(text);
	if (w->r->number >= 0)
		buf_printf(text, "step %lld: ", (long long)w->r->number);
	else if (scope)
		buf_printf(text, "all of %s: ", scope);
	buf_printf(text, "%lld kernels in %lld us", (long long)w->r->kernels,
		   (long long)w->r->wall_ns / 1000);
	*l = (struct input_line){.text = text->data,
				 .len = text->len,
				 .whole = text->data,
				 .whole_len = text->len,
				 .line = w->r->line,
				 .rank = w->o->rank,
				 .local_rank = -1,
				 .host = "",
				 .complete = true};
	emit_begin(w->o, l);
	if (scope)
		emit_label(&w->ls, "scope", span_of(scope));
	w->tag = (struct emit_tag){w->r->number, -1, w->ls.v, w->ls.n};
}

static bool has_device(const struct timeline *t)
{
	return timeline_whole(t)->wall_ns && !timeline_on_host(t);
}

static void emit_row(struct emit *o, const struct timeline *t, const struct timeline_row *r,
		     const char *device, const char *scope)
{
	struct row_out w = {.o = o, .t = t, .r = r};
	bool is_whole = r == timeline_whole(t), is_sum = scope || !timeline_has_steps(t);
	struct input_line l;
	struct buf text = {0};

	if (device)
		emit_label(&w.ls, "device", span_of(device));
	begin(&w, &l, &text, scope);
	emit_value(o, "trace_step_ms", (double)r->wall_ns / 1e6, &w.tag);
	if (has_device(t))
		emit_device(&w);
	else if (is_sum)
		emit_missing(o, "gpu_idle_ratio", "no device in the trace", &w.tag);
	if (timeline_on_host(t) && timeline_whole(t)->wall_ns)
		emit_operators(&w);
	if (has_device(t) && !is_whole)
		emit_causes(&w, is_sum);
	if (!is_whole)
		emit_host(&w);
	buf_free(&text);
	o->raw_of = NULL;
	o->raw[0] = '\0';
}

static void emit_bytes(struct emit *o, const struct timeline *t, enum timeline_gpu kind,
		       const char *memory, const char *device)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	int64_t bytes = timeline_bytes(t, kind), ns = timeline_copy_ns(t, kind);

	if (!timeline_gpu_count(t, kind) || !bytes) /* old traces tell no bytes */
		return;
	if (device)
		emit_label(&ls, "device", span_of(device));
	emit_label(&ls, "memory", span_of(memory));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	emit_value(o, "h2d_copy_bytes", (double)bytes, &tag);
	if (ns)
		emit_value(o, "h2d_copy_gb_per_s", (double)bytes / (double)ns, &tag);
}

void trace_emit(struct emit *o, const struct timeline *t, const char *device)
{
	size_t n;
	const struct timeline_row *rows = timeline_rows(t, &n);

	for (size_t i = 0; i < n; i++)
		emit_row(o, t, &rows[i], device, NULL);
	if (timeline_has_steps(t))
		emit_row(o, t, timeline_sum(t), device, "steps");
	if (has_device(t))
		emit_row(o, t, timeline_whole(t), device, "trace");
	emit_bytes(o, t, TIMELINE_PAGEABLE, "pageable", device);
	emit_bytes(o, t, TIMELINE_PINNED, "pinned", device);
}

/* -- over ranks ------------------------------------------------------------------------------- */

/* The others wait for it more than this share of their steps: below is the jitter of a healthy
 * job's collectives. */
#define STRAGGLER_RATIO 0.02

static double wait_ratio(const struct timeline_wait *w)
{
	return w->wall_ns ? (double)w->wait_ns / (double)w->wall_ns : 0;
}

static double exposed_ratio(const struct timeline *t)
{
	const struct timeline_row *sum = timeline_sum(t);

	return sum->wall_ns ? (double)sum->comm_exposed_ns / (double)sum->wall_ns : 0;
}

/* What the others lose to the rank that waits least: no more than they wait inside collectives with
 * nothing else to do. */
static void emit_straggler(struct emit *o, struct timeline *const *ranks,
			   const struct timeline_wait *w, const int *rank, size_t n)
{
	struct buf text = {0};
	size_t least = 0;
	double others = 0, exposed = 0, lost;

	for (size_t i = 1; i < n; i++)
		least = w[i].wait_ns < w[least].wait_ns ? i : least;
	for (size_t i = 0; i < n; i++) {
		others += i == least ? 0 : wait_ratio(&w[i]) / (double)(n - 1);
		exposed += i == least ? 0 : exposed_ratio(ranks[i]) / (double)(n - 1);
	}
	lost = fmin(others - wait_ratio(&w[least]), exposed - exposed_ratio(ranks[least]));
	emit_value(o, "straggler_ratio", fmax(0, fmin(1, lost)), NULL);
	emit_value(o, "straggler_rank", rank[least], NULL);
	if (others - wait_ratio(&w[least]) < STRAGGLER_RATIO)
		return;
	buf_printf(&text,
		   "rank %d: the others wait %.1f %% of their steps inside collectives, it %.1f %%",
		   rank[least], 100 * others, 100 * wait_ratio(&w[least]));
	emit_fact(o, "trace.straggler", span_of(text.data));
	buf_free(&text);
}

void trace_emit_waits(struct emit *o, struct timeline *const *ranks, const int *rank, size_t n)
{
	struct timeline_wait *w = xcalloc(n + 1, sizeof(*w));
	int own = o->rank;

	timeline_compare(ranks, n, w);
	for (size_t i = 0; i < n && n > 1; i++) {
		if (!w[i].matched)
			continue;
		o->rank = rank[i];
		emit_value(o, "coll_wait_ratio", fmin(1, wait_ratio(&w[i])), NULL);
	}
	o->rank = own;
	if (n > 1 && w[0].matched)
		emit_straggler(o, ranks, w, rank, n);
	free(w);
}
