/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * llm.c's train_gpt2, in C and in Python, newest first, and the main.log that it writes:
 *
 *   step    2/21479 | loss 10.829729 (-1.20z)| norm 15.0011 (+0.31z)| lr 5.71e-06 | 2391.52 ms |
 *       39.9% bf16 MFU | 191824 tok/s
 *   step    2/20 | train loss 4.125000 | norm 1.2500 | lr 3.00e-04 | (25.32 ms | 40444 tok/s)
 *   step   10/76: train loss 4.125000 (acc 4.1) norm 1.25 lr 3.00e-04 (25.32 ms, 40444 tok/s)
 *   step 10: train loss 4.125000 (took 25.32 ms)
 *   val loss 11.006021
 *   s:10 trl:4.1250 lr:0.000300 norm:1.25
 *   s:10 tel:4.2500
 *
 * Tokens a second are those of all processes. MFU -100 means that it is not known yet, "(+nanz)"
 * that there is no z score yet; "acc" is the loss over all processes, which "loss" was not yet.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/train.h"

/* "39.9%" of "39.9% bf16 MFU". */
static void take_mfu(struct emit *o, struct span f, const struct emit_tag *tag)
{
	double v;

	f.n--;
	if (!num_whole(f, &v))
		emit_bad(o, "an MFU that is no number");
	else if (v < 0)
		emit_missing(o, "mfu_pct", "not known yet", tag);
	else
		emit_value(o, "mfu_pct", v, tag);
}

/* A word without the bracket before it and the comma, stroke or bracket behind it. */
static struct span bare(struct span w)
{
	if (w.n && w.s[0] == '(')
		w.s++, w.n--;
	while (w.n && (w.s[w.n - 1] == ',' || w.s[w.n - 1] == '|' || w.s[w.n - 1] == ')'))
		w.n--;
	return w;
}

/* Does a number stand first in its field, without a name? "| 2391.52 ms", "(25.32 ms, 40444 tok/s",
 * "(took 25.32 ms". */
static bool stands_first(struct span before, struct span number)
{
	return number.s[0] == '(' || !before.n || strchr("|,", before.s[before.n - 1]) ||
	       span_eq(bare(before), "took");
}

/* A number with its name before it or, first in its field, its unit behind it. */
static void take_word(struct emit *o, struct span before, bool first, struct span w,
		      const struct emit_tag *tag)
{
	static const struct {
		const char *name, *unit, *metric;
	} keys[] = {
		{"loss", NULL, "loss"},
		{"norm", NULL, "grad_norm"},
		{NULL, "ms", "step_time_ms"},
		{NULL, "tok/s", "throughput_tokens_per_s"},
	};

	if (before.n && before.s[before.n - 1] == '%') {
		take_mfu(o, before, tag);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		bool named = keys[i].name && span_eq(before, keys[i].name);

		if ((named || (first && keys[i].unit && span_eq(w, keys[i].unit))) &&
		    !emit_token(o, keys[i].metric, named ? w : before, 1, tag))
			emit_bad(o, "a field of a step holds no number");
	}
}

/* "2/21479 |", "10/76:", "10:" at the beginning of t, which moves behind it. Only the last says no
 * number of steps, and the time in a way of its own. */
static bool take_step(struct span *t, int64_t *step)
{
	struct span rest = *t, f, n;

	if (!span_next(&rest, "|:", &f) || !rest.s || !span_next(&f, "/", &n))
		return false;
	if (f.s ? !num_whole_i64(f, &(int64_t){0}) : !span_has(rest, " (took "))
		return false;
	*t = rest;
	return num_whole_i64(n, step) && *step >= 0;
}

static bool step_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "step "), w, before = {"", 0}, raw = before;
	struct emit_tag tag = EMIT_NONE;
	bool first = false;

	if (!t.s || !take_step(&t, &tag.step) ||
	    !(span_starts(span_trim(t), "loss ") || span_starts(span_trim(t), "train loss ")))
		return false;
	st->step = tag.step;
	while (span_word(&t, &w)) {
		if (!train_is_whole(l, w) && !strchr("s)", w.s[w.n - 1])) {
			emit_bad(o, "a step that is cut");
			break;
		}
		take_word(o, before, first, bare(w), &tag);
		first = stands_first(raw, w);
		raw = w;
		if (bare(w).n)
			before = bare(w);
	}
	return true;
}

/* "s:10 trl:4.1250 lr:0.000300 norm:1.25", "s:10 tel:4.2500" of main.log. */
static bool main_log_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	static const struct {
		const char *key, *metric;
	} keys[] = {{" trl:", "loss"}, {" tel:", "val_loss"}, {" norm:", "grad_norm"}};
	struct span t = span_trim(input_span(l)), rest, f;
	struct emit_tag tag = EMIT_NONE;

	if (!span_starts(t, "s:"))
		return false;
	rest = (struct span){t.s + 2, t.n - 2};
	if (!span_word(&rest, &f) || !num_whole_i64(f, &tag.step) || tag.step < 0)
		return false;
	st->step = tag.step;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (span_has(t, keys[i].key) &&
		    !train_emit(o, l, t, keys[i].key, " ", keys[i].metric, 1, &tag))
			emit_bad(o, "a field of a step is cut or no number");
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
	return step_line(st, o, l) || validation_line(st, o, l) || main_log_line(st, o, l);
}

static const char *const words[] = {"| loss ", " train loss ", "val loss ", " trl:", " tel:", NULL};

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
