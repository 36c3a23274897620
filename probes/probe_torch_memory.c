/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What PyTorch says of device memory:
 *
 * - the text of an out-of-memory error, of 1.x ("(GPU 0; 7.94 GiB total capacity; ...)") and of 2.1
 *   and later ("GPU 0 has a total capacity of ...", once misspelt "capacty"), of CUDA, HIP or XPU,
 *   on one line or wrapped over a few: fact torch.oom, and what it tells as values with the label
 *   device. Reserved but unallocated memory above what was asked for is fragmentation
 *   ("CUDA error: out of memory" comes from outside the allocator and tells no amount);
 * - torch.cuda.memory_summary(): a table of fixed width a device (label), whose unit changes from
 *   cell to cell;
 * - torch.cuda.memory_stats(), as JSON or as the repr of a dict, on one line or on many.
 *
 * A text that ran out of memory and holds no value of training is failed.
 */
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/bytes.h"
#include "probes/train.h"

enum {
	HELD_LINES = 8, /* a terminal of 80 columns wraps the longest text into as many */
	HELD_BYTES = 2048,
};

#define GIB 0x1p30

/* -- out of memory ---------------------------------------------------------------------------- */

static const char oom_head[] = "out of memory. Tried to allocate ";

/* The amount behind a key, or before it; NAN-free: false when it is not there. */
static bool amount_after(struct span t, const char *key, double *out)
{
	struct span v = span_after(t, key);

	return v.s && bytes_scan(v, out, NULL);
}

/* "7.31 GiB already allocated": the amount that stands before the words. */
static bool amount_before(struct span t, const char *words, double *out)
{
	struct span behind = span_after(t, words);
	const char *end, *p;
	size_t used;

	if (!behind.s)
		return false;
	end = behind.s - strlen(words);
	for (p = end; p > t.s && (p[-1] == ' ' || p[-1] == '\n'); p--)
		;
	while (p > t.s && p[-1] != ' ') /* the unit */
		p--;
	while (p > t.s && p[-1] == ' ')
		p--;
	while (p > t.s && ((p[-1] >= '0' && p[-1] <= '9') || p[-1] == '.'))
		p--;
	return bytes_scan((struct span){p, (size_t)(end - p)}, out, &used);
}

struct oom {
	double tried, total, is_free, allocated, unallocated; /* bytes; -1 not told */
	char device[16];
	char asked[32]; /* as the text says it */
};

static void take_device(struct span t, const char *key, struct oom *m)
{
	struct span v = span_after(t, key);
	size_t n = 0;

	while (v.s && n < v.n && n < sizeof(m->device) - 1 && v.s[n] >= '0' && v.s[n] <= '9')
		n++;
	if (n)
		memcpy(m->device, v.s, n);
	m->device[n] = '\0';
}

/* 1.x: the parts stand before their words; from 1.4 on reserved counts what is allocated too. */
static bool read_old(struct span t, struct oom *m)
{
	double reserved;

	if (!amount_before(t, "total capacity", &m->total) ||
	    !amount_before(t, "already allocated", &m->allocated))
		return false;
	amount_before(t, " free", &m->is_free);
	if (amount_before(t, "reserved in total", &reserved))
		m->unallocated = reserved > m->allocated ? reserved - m->allocated : 0;
	else
		amount_before(t, " cached", &m->unallocated); /* up to 1.3: without what is used */
	return true;
}

static bool read_new(struct span t, struct oom *m)
{
	if (!amount_after(t, "total capacity of ", &m->total) &&
	    !amount_after(t, "total capacty of ", &m->total))
		return false;
	amount_after(t, "of which ", &m->is_free);
	amount_before(t, "is allocated by PyTorch", &m->allocated);
	amount_before(t, "is reserved by PyTorch but unallocated", &m->unallocated);
	return true;
}

static void emit_amount(struct emit *o, const char *metric, double bytes,
			const struct emit_tag *tag)
{
	if (bytes >= 0)
		emit_value(o, metric, bytes / GIB, tag);
}

/* The error in t, which may be several lines joined. */
static void emit_oom(struct train_state *st, struct emit *o, struct span t, int64_t line)
{
	struct oom m = {-1, -1, -1, -1, -1, "", "memory"};
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;

	labels.n = 0;
	struct span asked = span_after(t, oom_head);
	size_t used;

	if (asked.s && bytes_scan(asked, &m.tried, &used))
		snprintf(m.asked, sizeof(m.asked), "%.*s", (int)(used < 30 ? used : 30), asked.s);
	else
		emit_bad(o, "out of memory, without the amount that was asked for");
	if (asked.s && (read_old(asked, &m) || read_new(asked, &m)))
		take_device(asked, "PU ", &m); /* a GPU's or NPU's */
	if (m.device[0]) {
		emit_label(&labels, "device", span_of(m.device));
		tag.labels = labels.v;
		tag.n_labels = labels.n;
	}
	emit_fact(o, "torch.oom", span_trim(t));
	emit_amount(o, "oom_tried_gib", m.tried, &tag);
	emit_amount(o, "oom_free_gib", m.is_free, &tag);
	emit_amount(o, "oom_allocated_gib", m.allocated, &tag);
	emit_amount(o, "oom_unallocated_gib", m.unallocated, &tag);
	train_fail(st, line, "out of device memory: %s more was asked for%s", m.asked,
		   m.unallocated > m.tried && m.tried > 0
			   ? ", more than that is reserved and unused (fragmentation)"
			   : "");
}

/* The last words of the facts; a hint may follow them. */
static bool oom_is_whole(struct span t)
{
	return span_has(t, "reserved in total by PyTorch") || span_has(t, "but unallocated") ||
	       span_has(t, " cached)");
}

static void flush(struct train_state *st, struct emit *o)
{
	struct input_line l = {
		.complete = true, .rank = st->held_rank, .local_rank = -1, .host = ""};
	struct buf text = st->held;

	if (!text.len)
		return;
	st->held = (struct buf){0};
	l.text = l.whole = text.data;
	l.len = l.whole_len = text.len;
	l.line = st->held_line;
	emit_begin(o, &l);
	emit_oom(st, o, (struct span){text.data, text.len}, st->held_line);
	o->raw_of = NULL;
	buf_free(&text);
}

/* Lines that belong to the text held so far; true while it takes them. */
static bool hold_more(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l));

	if (!st->held.len)
		return false;
	if (span_has(t, oom_head) || !t.n || st->held_more-- <= 0 ||
	    st->held.len + t.n > HELD_BYTES) {
		flush(st, o);
		emit_begin(o, l);
		return false;
	}
	buf_char(&st->held, ' ');
	buf_put(&st->held, t.s, t.n);
	if (oom_is_whole((struct span){st->held.data, st->held.len})) {
		flush(st, o);
		emit_begin(o, l);
	}
	return true;
}

static bool oom_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l));

	if (hold_more(st, o, l))
		return true;
	if (!span_has(t, "out of memory"))
		return false;
	if (span_has(t, "CUDA error: out of memory") || span_has(t, "HIP error: out of memory")) {
		emit_fact(o, "torch.oom", t);
		train_fail(st, l->line, "out of device memory, outside PyTorch's allocator");
		return true;
	}
	if (!span_has(t, "out of memory. Tried to allocate"))
		return false;
	if (oom_is_whole(t) || t.n > HELD_BYTES) {
		emit_oom(st, o, t, l->line);
		return true;
	}
	buf_put(&st->held, t.s, t.n);
	st->held_line = l->line;
	st->held_rank = o->rank;
	st->held_more = HELD_LINES;
	return true;
}

/* -- memory_summary ---------------------------------------------------------------------------- */

/* The block is the device's number and one. */
static bool head_line(struct train_state *st, struct emit *o, struct span t)
{
	struct span v = span_after(t, "PyTorch CUDA memory summary, device ID "), w;
	int64_t device;

	if (!v.s || !span_word(&v, &w) || !num_whole_i64(w, &device) || device < 0 || device > 4096)
		return false;
	emit_fact(o, "torch.memory_device", w);
	st->block = (int)device + 1;
	return true;
}

static struct emit_tag device_tag(const struct train_state *st, struct emit_labels *labels)
{
	struct emit_tag tag = EMIT_NONE;
	char device[16];

	labels->n = 0;
	if (!st->block)
		return tag;
	snprintf(device, sizeof(device), "%d", st->block - 1);
	emit_label(labels, "device", span_of(device));
	tag.labels = labels->v;
	tag.n_labels = labels->n;
	return tag;
}

/* "| CUDA OOMs: 1 | cudaMalloc retries: 14 |" */
static bool counts_line(const struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l);
	struct emit_labels labels;
	struct emit_tag tag;

	if (!span_has(t, "CUDA OOMs:") || !span_has(t, "cudaMalloc retries:"))
		return false;
	tag = device_tag(st, &labels);
	if (!train_emit(o, l, t, "CUDA OOMs:", "|", "cuda_ooms", 1, &tag) ||
	    !train_emit(o, l, t, "cudaMalloc retries:", "|", "alloc_retries", 1, &tag))
		emit_bad(o, "a counter of the summary is no number");
	return true;
}

static const struct {
	const char *row, *current, *peak;
} rows[] = {
	{"Allocated memory", "mem_allocated_gib", "mem_peak_allocated_gib"},
	{"Active memory", NULL, "mem_peak_active_gib"},
	{"GPU reserved memory", "mem_reserved_gib", "mem_peak_reserved_gib"},
	{"Non-releasable memory", "mem_inactive_split_gib", "mem_peak_inactive_split_gib"},
};

static void emit_cell(struct emit *o, const char *metric, struct span cell,
		      const struct emit_tag *tag)
{
	double v;

	if (!metric)
		return;
	if (bytes_scan(span_trim(cell), &v, NULL))
		emit_value(o, metric, v / GIB, tag);
	else
		emit_bad(o, "a cell of the summary is no amount of memory");
}

/* "| Allocated memory | 682537 KiB | 65430 MiB | ... |", totals only. */
static bool row_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), f, current, peak;
	struct emit_labels labels;
	struct emit_tag tag;

	if (!st->block || !span_next(&t, "|", &f) || !t.s || !span_next(&t, "|", &f))
		return false;
	f = span_trim(f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!span_eq(f, rows[i].row))
			continue;
		if (!span_next(&t, "|", &current) || !span_next(&t, "|", &peak) || !t.s) {
			emit_bad(o, "a row of the summary that is cut");
			return true;
		}
		tag = device_tag(st, &labels);
		emit_cell(o, rows[i].current, current, &tag);
		emit_cell(o, rows[i].peak, peak, &tag);
		return true;
	}
	return false;
}

/* -- memory_stats ------------------------------------------------------------------------------ */

static const struct {
	const char *key, *metric;
	double scale;
} stats[] = {
	{"allocated_bytes.all.current", "mem_allocated_gib", 1 / GIB},
	{"allocated_bytes.all.peak", "mem_peak_allocated_gib", 1 / GIB},
	{"active_bytes.all.peak", "mem_peak_active_gib", 1 / GIB},
	{"reserved_bytes.all.current", "mem_reserved_gib", 1 / GIB},
	{"reserved_bytes.all.peak", "mem_peak_reserved_gib", 1 / GIB},
	{"inactive_split_bytes.all.current", "mem_inactive_split_gib", 1 / GIB},
	{"inactive_split_bytes.all.peak", "mem_peak_inactive_split_gib", 1 / GIB},
	{"num_alloc_retries", "alloc_retries", 1},
	{"num_ooms", "cuda_ooms", 1},
};

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
}

/* The number of `"key": 5`, `'key': 5`, `('key', 5)`, `key: 5`, `key=5`. */
static bool stat_value(const struct input_line *l, struct span t, const char *key, double *out)
{
	struct span v = span_after(t, key);
	const char *start;
	size_t i = 0, used;

	if (!v.s || !v.n)
		return false;
	start = v.s - strlen(key);
	if ((start > t.s && is_name_byte(start[-1])) || is_name_byte(v.s[0]))
		return false;
	while (i < v.n && strchr("'\" :,=\t", v.s[i]))
		i++;
	v = (struct span){v.s + i, v.n - i};
	/* Letters behind a number are another writer's. */
	return i && num_scan(v, out, &used) == NUM_FINITE &&
	       (used == v.n || strchr(",)}] \t", v.s[used])) &&
	       train_is_whole(l, (struct span){v.s, used});
}

static bool stats_line(struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l);
	bool any = false;
	double v;

	if (!span_has(t, "_bytes.all.") && !span_has(t, "num_alloc_retries") &&
	    !span_has(t, "num_ooms"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(stats); i++) {
		if (!stat_value(l, t, stats[i].key, &v))
			continue;
		emit_value(o, stats[i].metric, v * stats[i].scale, NULL);
		any = true;
	}
	return any;
}

static bool memory_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return oom_line(st, o, l) || head_line(st, o, input_span(l)) || counts_line(st, o, l) ||
	       row_line(st, o, l) || stats_line(o, l);
}

static const char *const words[] = {"out of memory",
				    "PyTorch CUDA memory summary",
				    "CUDA OOMs:",
				    "_bytes.all.",
				    "num_alloc_retries",
				    "num_ooms",
				    NULL};

const struct train_dialect train_torch_memory = {
	.name = "torch_memory",
	.words = words,
	.blocks = true,
	.line = memory_line,
	.end = flush,
};

static const struct train_dialect *const own[] = {&train_torch_memory, NULL};

static int memory_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	return train_open(own, c, sink, out, e);
}

/* Less sure than a training log, which may hold all of it. */
static int memory_sniff(const char *head, size_t n)
{
	return train_count(own, head, n) ? 80 : 0;
}

const struct probe probe_torch_memory = {
	.name = "torch_memory",
	.summary = "PyTorch's device memory: out-of-memory errors, memory_summary, memory_stats",
	.example = "python -c 'print(torch.cuda.memory_summary())'",
	.sniff = memory_sniff,
	.in_logs = true,
	.open = memory_open,
	.feed = train_feed,
	.finish = train_finish,
};
