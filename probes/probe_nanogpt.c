/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nanoGPT's train.py, and that of llama2.c:
 *
 *   iter 10: loss 9.6471, time 1394.69ms, mfu 10.72%
 *   10 | loss 9.6471 | lr 1.000000e-05 | 1394.69ms | mfu 10.72%
 *   step 0: train loss 10.9897, val loss 10.9880
 *
 * mfu -100 means that it is not known yet.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/train.h"

static void take_mfu(struct emit *o, const struct input_line *l, struct span t,
		     const struct emit_tag *tag)
{
	double v;

	if (train_number(l, t, " mfu ", "%", &v) && v < 0)
		emit_missing(o, "mfu_pct", "not known yet", tag);
	else
		train_emit(o, l, t, " mfu ", "%", "mfu_pct", 1, tag);
}

static bool iter_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "iter "), f;
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || !span_has(t, ": loss ") || !span_next(&t, ":", &f) ||
	    !num_whole_i64(f, &tag.step) || tag.step < 0 || !t.s)
		return false;
	st->step = tag.step;
	if (!train_emit(o, l, t, " loss ", ",", "loss", 1, &tag) ||
	    !train_emit(o, l, t, " time ", "m,", "step_time_ms", 1, &tag))
		emit_bad(o, "an iteration that is cut or holds no number");
	take_mfu(o, l, t, &tag);
	return true;
}

/* llama2.c: fields between strokes, the time is the one with the unit ms. */
static bool stroke_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), f, ms;
	struct emit_tag tag = EMIT_NONE;

	if (!span_has(t, "ms | mfu ") || !span_next(&t, "|", &f) || !num_whole_i64(f, &tag.step) ||
	    tag.step < 0 || !t.s || !span_starts(t, " loss "))
		return false;
	st->step = tag.step;
	if (!train_emit(o, l, t, " loss ", "|", "loss", 1, &tag))
		emit_bad(o, "a loss that is no number");
	take_mfu(o, l, t, &tag);
	while (span_next(&t, "|", &f)) {
		ms = span_trim(f);
		if (ms.n < 3 || memcmp(ms.s + ms.n - 2, "ms", 2) != 0)
			continue;
		ms.n -= 2;
		if (!emit_token(o, "step_time_ms", ms, 1, &tag))
			emit_bad(o, "a time that is no number");
	}
	return true;
}

static bool eval_line(struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "step "), f;
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || !span_has(t, ": train loss ") || !span_next(&t, ":", &f) ||
	    !num_whole_i64(f, &tag.step) || tag.step < 0 || !t.s)
		return false;
	return train_emit(o, l, t, " val loss ", " ,", "val_loss", 1, &tag);
}

static bool nanogpt_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return iter_line(st, o, l) || stroke_line(st, o, l) || eval_line(o, l);
}

static const char *const words[] = {": loss ", ": train loss ", "ms | mfu ", NULL};

const struct train_dialect train_nanogpt = {
	.name = "nanogpt",
	.words = words,
	.line = nanogpt_line,
};

static int nanogpt_open(const struct probe_context *c, const struct probe_sink *sink,
			struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_nanogpt, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_nanogpt = {
	.name = "nanogpt",
	.summary = "training log of nanoGPT and llama2.c",
	.example = "python train.py config/train_gpt2.py --log_interval=1",
	.open = nanogpt_open,
	.feed = train_feed,
	.finish = train_finish,
};
