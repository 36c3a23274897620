/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What DLIO benchmark (and MLPerf Storage) prints, and writes to dlio.log:
 *
 *   [OUTPUT] 2026-11-28T02:14:07.5 Starting epoch 1: 40 steps expected
 *   [INFO] 2026-11-28T02:14:08.5 Rank 0 step 1: loaded 4 samples in 0.25 s
 *   [INFO] 2026-11-28T02:14:08.5 Rank 0 step 1 processed 4 samples in 0.75s)
 *   [OUTPUT] 2026-11-28T02:14:40.5 Ending block 1 - 40 steps completed in 32.5 s
 *   [OUTPUT] 2026-11-28T02:14:40.5 Epoch 1 - Block 1 [Training] Accelerator Utilization [AU] (%):
 * 97 [OUTPUT] 2026-11-28T02:14:40.5 Epoch 1 - Block 1 [Training] Throughput (samples/second): 19.5
 *   [OUTPUT] 2026-11-28T02:14:43.5 Finished saving checkpoint 1 for epoch 1 in 1.5 s; Throughput:
 * ... [OUTPUT] 2026-11-28T02:14:43.5 Ending epoch 1 - 40 steps completed in 35.75 s [METRIC]
 * Training I/O Throughput (MB/second): 2620.5 (12.5)
 *
 * The throughput is that of all ranks. Steps are counted over all epochs, as in the JSON files
 * (probe_dlio.c), and without those of evaluations. Before 2023 some lines told how far an
 * accelerator was not used; they are not read.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/lines.h"
#include "probes/train.h"

struct state {
	char epoch[24];    /* the number of the one that runs, "" none */
	int64_t base, top; /* steps of the epochs before, the largest of this one */
	bool evaluation;
};

static const struct {
	const char *key, *metric;
	double scale;
} means[] =
	{
		{"Training Accelerator Utilization [AU] (%): ", "dlio_au_pct", 1},
		{"Training Accelerator Utilization (%): ", "dlio_au_pct", 1},
		{"Training Throughput (samples/second): ", "throughput_samples_per_s", 1},
		{"Training I/O Throughput (MB/second): ", "loader_bytes_per_s", 1048576},
		{"Checkpoint save duration (seconds): ", "ckpt_time_s", 1},
},
  blocks[] = {
	  {"[Training] Accelerator Utilization [AU] (%): ", "dlio_au_pct", 1},
	  {"[Training] Accelerator Utilization (%): ", "dlio_au_pct", 1},
	  {"[Training] Throughput (samples/second): ", "throughput_samples_per_s", 1},
};

/* The number at the beginning of t, up to a blank or its unit. */
static void take(struct emit *o, const struct input_line *l, const char *metric, struct span t,
		 double scale, const struct emit_tag *tag)
{
	struct span f;

	if (!span_next(&t, " s;)", &f) || !train_is_whole(l, f) ||
	    !emit_token(o, metric, f, scale, tag))
		emit_bad(o, "a value is cut or no number");
}

/* "[METRIC] Training Throughput (samples/second): 19.5 (0.25)": means over all epochs. */
static bool mean_line(struct emit *o, const struct input_line *l, struct span t)
{
	struct span v;

	t = span_after(t, "[METRIC] ");
	if (!t.s)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(means); i++)
		if (span_starts(t, means[i].key)) {
			v = span_after(t, means[i].key);
			take(o, l, means[i].metric, v, means[i].scale, NULL);
			return true;
		}
	if ((v = span_after(t, "Number of Simulated Accelerators: ")).s)
		emit_fact(o, "dlio.accelerators", span_trim(v));
	return true;
}

static void name_block(struct emit_labels *labels, struct span number)
{
	char name[EMIT_LABEL_VALUE_MAX] = "block";
	size_t n = number.n < 20 ? number.n : 20;

	memcpy(name + 5, number.s, n);
	emit_label(labels, "block", (struct span){name, 5 + n});
}

/* "Epoch 1 - Block 1 [Training] ...". */
static bool block_line(struct emit *o, const struct input_line *l, struct span t)
{
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;
	struct span e = span_after(t, "Epoch "), b = span_after(t, " - Block "), epoch, block;

	if (!e.s || !b.s || !span_word(&e, &epoch) || !span_word(&b, &block))
		return false;
	labels.n = 0;
	emit_label(&labels, "epoch", epoch);
	name_block(&labels, block);
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		struct span v = span_after(t, blocks[i].key);

		if (v.s)
			take(o, l, blocks[i].metric, v, blocks[i].scale, &tag);
	}
	return true;
}

/* "Ending epoch 1 - 40 steps completed in 35.75 s", "Ending block 1 - ..." */
static bool ending_line(const struct state *st, struct emit *o, const struct input_line *l,
			struct span t)
{
	struct span e = span_after(t, "Ending epoch "), b = span_after(t, "Ending block "), w,
		    v = span_after(t, " steps completed in ");
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;

	if (!v.s || (!e.s && !b.s))
		return false;
	labels.n = 0;
	if (e.s && span_word(&e, &w))
		emit_label(&labels, "epoch", w);
	if (b.s && st->epoch[0])
		emit_label(&labels, "epoch", span_of(st->epoch));
	if (b.s && span_word(&b, &w))
		name_block(&labels, w);
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	take(o, l, "epoch_time_s", v, 1, &tag);
	return true;
}

/* "Finished saving checkpoint 1 for epoch 1 in 1.5 s; Throughput: 2.5 GB/s" */
static bool checkpoint_line(struct emit *o, const struct input_line *l, struct span t)
{
	struct span e, v, epoch;
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;

	if (!span_has(t, "Finished saving checkpoint "))
		return false;
	e = span_after(t, " for epoch ");
	v = e.s ? span_after(e, " in ") : e;
	if (!v.s || !span_word(&e, &epoch))
		return false; /* the versions that told no time */
	labels.n = 0;
	emit_label(&labels, "epoch", epoch);
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	take(o, l, "ckpt_time_s", v, 1, &tag);
	return true;
}

/* "Rank 0 step 1: loaded 4 samples in 0.25 s", "Rank 0 step 1 processed 4 samples in 0.75 s" */
static bool step_line(struct state *st, struct emit *o, const struct input_line *l, struct span t)
{
	struct span r = span_after(t, "Rank "), s = span_after(t, " step "), w,
		    v = span_after(t, " samples in ");
	const char *metric = span_has(t, ": loaded ")     ? "data_wait_ms"
			     : span_has(t, " processed ") ? "step_time_ms"
							  : NULL;
	struct emit_tag tag = EMIT_NONE;
	int64_t rank, step;

	if (!r.s || !s.s || !v.s || !metric || !span_word(&r, &w) || !num_whole_i64(w, &rank) ||
	    rank < 0 || rank > INT32_MAX || !span_next(&s, " :", &w) || !num_whole_i64(w, &step) ||
	    step < 0 || step > INT32_MAX)
		return false;
	if (st->evaluation)
		return true;
	st->top = step > st->top ? step : st->top;
	tag.step = st->base + step;
	o->rank = (int)rank;
	take(o, l, metric, v, 1000, &tag);
	return true;
}

/* Epochs begin anew at step 1. */
static bool phase_line(struct state *st, struct span t)
{
	struct span e = span_after(t, "Starting epoch "), w;

	if (e.s && span_next(&e, " :", &w)) {
		st->base += st->top;
		st->top = 0;
		w.n = w.n < sizeof(st->epoch) ? w.n : sizeof(st->epoch) - 1;
		memcpy(st->epoch, w.s, w.n);
		st->epoch[w.n] = 0;
		return true;
	}
	if (span_has(t, "Starting eval "))
		st->evaluation = true;
	else if (span_has(t, "Ending eval "))
		st->evaluation = false;
	else
		return false;
	return true;
}

static void dlio_line(void *state, struct emit *o, const struct input_line *l)
{
	struct state *st = state;
	struct span t = input_span(l);

	(void)(step_line(st, o, l, t) || mean_line(o, l, t) || block_line(o, l, t) ||
	       ending_line(st, o, l, t) || checkpoint_line(o, l, t) || phase_line(st, t));
}

static int dlio_log_open(const struct probe_context *c, const struct probe_sink *sink,
			 struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {.size = sizeof(struct state), .line = dlio_line};

	return lines_open(&kind, c, sink, out, e);
}

static int dlio_log_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	return span_has(t, "[Training] Accelerator Utilization") ||
			       span_has(t, "[METRIC] Training Accelerator Utilization") ||
			       span_has(t, "Running DLIO with ")
		       ? 90
		       : 0;
}

const struct probe probe_dlio_log = {
	.name = "dlio_log",
	.summary = "output of DLIO benchmark: accelerator utilisation, data wait, checkpoints",
	.example = "dlio_benchmark workload=unet3d ++workload.workflow.profiling=False",
	.sniff = dlio_log_sniff,
	.open = dlio_log_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
