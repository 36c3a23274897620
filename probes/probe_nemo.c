/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NeMo, its progress bar (1.x) and its line a step (2.x):
 *
 *   Epoch 0: :  47%|##  | 7/15 [06:19<07:13, v_num=, reduced_train_loss=11.50, global_step=6.000,
 *       consumed_samples=14336.0, train_step_timing in s=49.50, val_loss=0.212]
 *   Training epoch 1, iteration 0/999 | lr: 2.999e-06 | global_batch_size: 512 | global_step: 19 |
 *       reduced_train_loss: 11.03 | train_step_timing in s: 46.86 | consumed_samples: 10240
 *
 * Numbers are rounded to four digits ("2e+3"). A bar is drawn several times a step: the first one
 * of a step counts. The first versions timed no step: the bar does. Its val_loss is that of the
 * last validation and counts when it changes. Samples a second are the global batch over the time
 * of the step.
 */
#include "orchestrator/base/mem.h"
#include "probes/bar.h"
#include "probes/train.h"

#include <math.h>

enum { KEYS = 11, LOSS = 0, TIME, BATCH = 3, STEP = KEYS, VAL_LOSS, ALL_KEYS };

#define GIB (1.0 / (1 << 30))

static const char *const names[ALL_KEYS] = {"reduced_train_loss",
					    "train_step_timing in s",
					    "consumed_samples",
					    "global_batch_size",
					    "grad_norm",
					    "tflops_per_sec_per_gpu",
					    "TFLOPS_per_GPU",
					    "tokens_per_sec_per_gpu",
					    "memory_allocated",
					    "max_memory_allocated",
					    "max_memory_reserved",
					    "global_step",
					    "val_loss"};
static const char *const metrics[KEYS] = {"loss",
					  "step_time_ms",
					  "consumed_samples",
					  "samples_per_step",
					  "grad_norm",
					  "tflops_per_gpu",
					  "tflops_per_gpu",
					  "throughput_tokens_per_s_per_gpu",
					  "mem_allocated_gib",
					  "mem_peak_allocated_gib",
					  "mem_peak_reserved_gib"};
static const double scales[KEYS] = {1, 1000, 1, 1, 1, 1, 1, 1, GIB, GIB, GIB};

static void emit_step(struct train_state *st, struct emit *o, const struct span *v)
{
	struct emit_tag tag = {.step = st->step, .t_us = -1};
	double batch, seconds;

	for (int i = 0; i < KEYS; i++)
		if (v[i].s && !emit_token(o, metrics[i], v[i], scales[i], &tag))
			emit_bad(o, "a value of a step is no number");
	st->shared->step_time = st->shared->step_time || v[TIME].s;
	if (!v[TIME].s || !v[BATCH].s || !num_whole(v[TIME], &seconds) ||
	    !num_whole(v[BATCH], &batch) || seconds <= 0 || batch <= 0)
		return;
	st->shared->samples_per_s = true;
	emit_value(o, "throughput_samples_per_s", batch / seconds, &tag);
}

static void emit_val_loss(struct train_state *st, struct emit *o, struct span v)
{
	struct emit_tag tag = {.step = st->step, .t_us = -1};
	double d;

	if (!v.s || !num_whole(v, &d) || d == st->before)
		return;
	st->before = d;
	emit_value(o, "val_loss", d, &tag);
}

static bool bar_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), v[ALL_KEYS];
	struct bar b;
	double d;

	if (!span_has(t, "global_step=") || !bar_find(t, &b))
		return false;
	bar_postfix(&b, names, ALL_KEYS, v);
	if (!(v[LOSS].s || v[TIME].s) || !v[STEP].s || !num_whole(v[STEP], &d) || train_step(d) < 0)
		return false;
	if (train_step(d) != st->step) {
		st->step = train_step(d);
		emit_step(st, o, v);
		emit_val_loss(st, o, v[VAL_LOSS]);
	}
	d = bar_step_s(&b);
	if (!v[TIME].s && !l->redrawn && b.n > 0 && d > 0)
		emit_value(o, "step_time_ms", d * 1000,
			   &(struct emit_tag){.step = st->step, .t_us = -1});
	return true;
}

/* "key: value" of a line whose fields stand between strokes. */
static void take_field(struct span f, struct span *v)
{
	struct span rest = f, key;

	if (!span_next(&rest, ":", &key) || !rest.s)
		return;
	key = span_trim(key);
	rest = span_trim(rest);
	for (int i = 0; i < ALL_KEYS; i++)
		if (span_eq(key, names[i]))
			v[i] = rest;
}

static bool step_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "Training epoch "), f, v[ALL_KEYS] = {{NULL, 0}};
	double d;

	if (!t.s || !span_has(t, ", iteration ") || !span_next(&t, "|", &f))
		return false;
	while (span_next(&t, "|", &f)) {
		if (!t.s && !train_is_whole(l, f))
			emit_bad(o, "a step that is cut");
		else
			take_field(f, v);
	}
	if (!v[STEP].s || !num_whole(v[STEP], &d) || train_step(d) < 0) {
		emit_bad(o, "a step without a global_step");
		return true;
	}
	st->step = train_step(d);
	emit_step(st, o, v);
	emit_val_loss(st, o, v[VAL_LOSS]);
	return true;
}

static bool nemo_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return bar_line(st, o, l) || step_line(st, o, l);
}

static const char *const words[] = {"train_step_timing", "reduced_train_loss", "Training epoch ",
				    NULL};

const struct train_dialect train_nemo = {
	.name = "nemo",
	.words = words,
	.line = nemo_line,
};

static int nemo_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_nemo, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_nemo = {
	.name = "nemo",
	.summary = "training log of NeMo: progress bar (1.x) and step lines (2.x)",
	.example = "nemo llm pretrain --factory llama3_8b",
	.open = nemo_open,
	.feed = train_feed,
	.finish = train_finish,
};
