/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * llm.c's train_gpt2:
 *
 *   step    2/21479 | loss 10.829729 (-1.20z)| norm 15.0011 (+0.31z)| lr 5.71e-06 | 2391.52 ms |
 *       39.9% bf16 MFU | 191824 tok/s
 *   step   10/76 | train loss 4.125000 | norm 1.2500 | lr 3.00e-04 (25.32 ms, 40444 tok/s)
 *   val loss 11.006021
 *
 * Tokens a second are those of all processes. MFU -100 means that it is not known yet, "(+nanz)"
 * that there is no z score yet.
 */
#include "orchestrator/base/mem.h"
#include "probes/train.h"

/* "39.9% bf16 MFU": what stands before its "%". */
static void take_mfu(struct emit *o, struct span f, const struct emit_tag *tag)
{
	struct span percent;
	double v;

	if (!span_next(&f, "%", &percent) || !num_whole(percent, &v))
		emit_bad(o, "an MFU that is no number");
	else if (v < 0)
		emit_missing(o, "mfu_pct", "not known yet", tag);
	else
		emit_value(o, "mfu_pct", v, tag);
}

/* "(25.32 ms, 40444 tok/s)" behind the learning rate: before August 2024. */
static bool take_pair(const struct span f, struct emit *o, const struct emit_tag *tag)
{
	struct span t = span_after(f, "("), ms, rate;

	if (!t.s || !span_has(t, " ms, ") || !span_word(&t, &ms) || !span_word(&t, &rate) ||
	    !span_word(&t, &rate))
		return false;
	if (!span_has(t, "tok/s)") || !emit_token(o, "step_time_ms", ms, 1, tag) ||
	    !emit_token(o, "throughput_tokens_per_s", rate, 1, tag))
		emit_bad(o, "a time or rate of a step is no number");
	return true;
}

/* One field between strokes. */
static void take_field(struct emit *o, struct span f, const struct emit_tag *tag)
{
	struct span rest = f, word, unit;
	bool good = true;

	if (span_has(f, "% ") && span_has(f, " MFU")) {
		take_mfu(o, span_trim(f), tag);
		return;
	}
	if (take_pair(f, o, tag) || !span_word(&rest, &word) || !span_word(&rest, &unit))
		return;
	if (span_eq(word, "train") && span_eq(unit, "loss")) {
		word = unit;
		if (!span_word(&rest, &unit))
			return;
	}
	if (span_eq(word, "loss"))
		good = emit_token(o, "loss", unit, 1, tag);
	else if (span_eq(word, "norm"))
		good = emit_token(o, "grad_norm", unit, 1, tag);
	else if (span_eq(unit, "ms"))
		good = emit_token(o, "step_time_ms", word, 1, tag);
	else if (span_eq(unit, "tok/s"))
		good = emit_token(o, "throughput_tokens_per_s", word, 1, tag);
	if (!good)
		emit_bad(o, "a field of a step holds no number");
}

static bool step_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "step "), f;
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || (!span_has(t, "| loss ") && !span_has(t, "| train loss ")) ||
	    !span_next(&t, "/", &f) || !num_whole_i64(f, &tag.step) || tag.step < 0 ||
	    !span_next(&t, "|", &f) || !t.s || !num_whole_i64(f, &(int64_t){0}))
		return false;
	st->step = tag.step;
	while (span_next(&t, "|", &f)) {
		if (!t.s && !train_is_whole(l, f))
			emit_bad(o, "a step that is cut");
		else
			take_field(o, f, &tag);
	}
	return true;
}

/* The loss of the validation that follows a step; before the first step it has none. */
static bool validation_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l)), v = span_after(t, "val loss ");
	struct emit_tag tag = {.step = st->step, .t_us = -1};

	if (!v.s || v.s != t.s + strlen("val loss ") || !num_whole(v, &(double){0}))
		return false;
	if (train_is_whole(l, v))
		emit_token(o, "val_loss", v, 1, &tag);
	else
		emit_bad(o, "a validation loss that is cut");
	return true;
}

static bool llmc_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return step_line(st, o, l) || validation_line(st, o, l);
}

static const char *const words[] = {"| loss ", "| train loss ", "val loss ", NULL};

const struct train_dialect train_llmc = {
	.name = "llmc",
	.words = words,
	.line = llmc_line,
};

static int llmc_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_llmc, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_llmc = {
	.name = "llmc",
	.summary = "training log of llm.c",
	.example = "./train_gpt2cu -i ... -o log",
	.open = llmc_open,
	.feed = train_feed,
	.finish = train_finish,
};
