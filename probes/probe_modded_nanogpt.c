/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modded-nanogpt, in its log of many versions:
 *
 *   step:640/1750 train_loss:3.7500 train_time:93750ms step_avg:148.81ms
 *   step:640/1750 val_loss:3.7250 train_time:93.750s step_avg:148.81ms
 *   peak memory allocated: 29512 MiB reserved: 44036 MiB
 *   peak memory consumption: 29512 MiB
 *
 * train_time is that of training since its clock was set, which early versions do again after the
 * tenth step; the time of a step is the difference to the line before, and a mean where lines are
 * further apart. step_avg, a mean since the start, is not read.
 */
#include <math.h>

#include "orchestrator/base/mem.h"
#include "probes/bytes.h"
#include "probes/train.h"

/* "93750ms", "93.750s" in ms. */
static bool take_time(struct span f, double *ms)
{
	size_t used;

	if (num_scan(f, ms, &used) != NUM_FINITE)
		return false;
	f = (struct span){f.s + used, f.n - used};
	if (span_eq(f, "s"))
		*ms *= 1000;
	else if (!span_eq(f, "ms"))
		return false;
	return true;
}

/* state.before is the clock at the line before, state.step its step. */
static void emit_time(struct train_state *st, struct emit *o, const struct emit_tag *tag, double ms)
{
	double steps = (double)(tag->step - st->step), took = ms - st->before;

	if (steps > 0 && took > 0) /* never true for what is not known yet */
		emit_value(o, "step_time_ms", took / steps, tag);
}

static bool step_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "step:"), f, time;
	struct emit_tag tag = EMIT_NONE;
	double ms;

	if (!t.s || !span_next(&t, "/", &f) || !num_whole_i64(f, &tag.step) || tag.step < 0 ||
	    !span_word(&t, &f) || !num_whole_i64(f, &(int64_t){0}))
		return false;
	if (!train_field(l, span_after(t, "train_time:"), " ", &time) || !take_time(time, &ms)) {
		emit_bad(o, "a step that is cut or tells no time");
		return true;
	}
	if ((span_has(t, "train_loss:") &&
	     !train_emit(o, l, t, "train_loss:", " ", "loss", 1, &tag)) ||
	    (span_has(t, "val_loss:") &&
	     !train_emit(o, l, t, "val_loss:", " ", "val_loss", 1, &tag)))
		emit_bad(o, "a loss that is no number");
	emit_time(st, o, &tag, ms);
	st->step = tag.step;
	st->before = ms;
	return true;
}

static bool memory_line(struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), used = span_after(t, "peak memory allocated: "),
		    held = span_after(t, " reserved: ");
	double bytes;

	if (!used.s) {
		used = span_after(t, "peak memory consumption: ");
		held.s = NULL;
	}
	if (!used.s || !bytes_scan(used, &bytes, NULL))
		return false;
	emit_value(o, "mem_peak_allocated_gib", bytes / 0x1p30, NULL);
	if (held.s && bytes_scan(held, &bytes, NULL))
		emit_value(o, "mem_peak_reserved_gib", bytes / 0x1p30, NULL);
	return true;
}

static bool modded_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return step_line(st, o, l) || memory_line(o, l);
}

static const char *const words[] = {"train_time:", "peak memory ", NULL};

const struct train_dialect train_modded_nanogpt = {
	.name = "modded_nanogpt",
	.words = words,
	.line = modded_line,
};

static int modded_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_modded_nanogpt, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_modded_nanogpt = {
	.name = "modded_nanogpt",
	.summary = "training log of modded-nanogpt",
	.example = "torchrun --standalone --nproc_per_node=8 train_gpt.py",
	.open = modded_open,
	.feed = train_feed,
	.finish = train_finish,
};
