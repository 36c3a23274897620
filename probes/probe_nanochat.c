/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nanochat, and build-nanogpt before it: "key: value" between strokes, commas in the oldest:
 *
 *   step 00120/21400 (0.56%) | loss: 6.123456 | grad norm: 0.5 | lrm: 1.00 | dt: 412.50ms |
 *       tok/sec: 1,271,001 | bf16_mfu: 48.25 | epoch: 1 | total time: 0.75m | eta: 145.2m
 *   step   120 | loss: 6.123456 | lr 6.0000e-04 | norm: 0.5000 | dt: 412.50ms | tok/sec: 127100.25
 *   step 120, loss: 6.123456, dt: 412.50ms, tok/sec: 127100.25
 *   iteration 120, loss: 6.1234, time: 412.500ms, tok/s: 127100.25, norm: 0.500
 *   Step 00120/00700 | Training loss: 1.234567| lrm: 0.828571| num_tokens: 10,240
 *   Step 00120 | Validation loss: 1.250000
 *   validation loss: 6.2500
 *   Peak memory usage: 75422.25MiB
 *
 * Tokens a second are those of all processes; nanochat's loss is smoothed. Bits per byte are no
 * loss and are not read.
 */
#include "orchestrator/base/mem.h"
#include "probes/bytes.h"
#include "probes/train.h"

static const struct {
	const char *key, *metric;
	bool thousands;
} keys[] = {
	{"loss", "loss", false},
	{"Training loss", "loss", false},
	{"Validation loss", "val_loss", false},
	{"norm", "grad_norm", false},
	{"grad norm", "grad_norm", false},
	{"dt", "step_time_ms", false},
	{"time", "step_time_ms", false},
	{"tok/sec", "throughput_tokens_per_s", true},
	{"tok/s", "throughput_tokens_per_s", true},
	{"mfu", "mfu_pct", false},
	{"bf16_mfu", "mfu_pct", false},
};

/* The next "key: value" of t, which moves behind it. Only a comma with a blank behind it separates.
 * False at the end. */
static bool next_field(struct span *t, struct span *key, struct span *value)
{
	struct span f = *t;
	size_t i = 0;

	if (!t->s || !t->n)
		return false;
	while (i < t->n && t->s[i] != '|' &&
	       (t->s[i] != ',' || i + 1 == t->n || t->s[i + 1] != ' '))
		i++;
	f.n = i;
	*t = (struct span){t->s + i + (i < t->n), t->n - i - (i < t->n)};
	*value = f;
	if (!span_next(value, ":", key))
		*key = (struct span){"", 0};
	*key = span_trim(*key);
	*value = value->s ? span_trim(*value) : (struct span){"", 0};
	return true;
}

static void take_field(struct emit *o, const struct input_line *l, struct span key, struct span v,
		       const struct emit_tag *tag)
{
	double n;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!span_eq(key, keys[i].key))
			continue;
		if (v.n > 2 && v.s[v.n - 2] == 'm' && v.s[v.n - 1] == 's')
			v.n -= 2;
		else if (!train_is_whole(l, v))
			v.n = 0;
		if (keys[i].thousands && num_scan_thousands(v, &n, NULL) == NUM_FINITE)
			emit_value(o, keys[i].metric, n, tag);
		else if (!v.n || !emit_token(o, keys[i].metric, v, 1, tag))
			emit_bad(o, "a field of a step is cut or no number");
		return;
	}
}

/* "step 00120/21400 (0.56%) |", "Step 120,", "iteration 120,": t moves behind it. */
static bool take_step(struct span *t, int64_t *step)
{
	static const char *const names[] = {"Step ", "step ", "iteration "};
	struct span rest = *t, f, n;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct span behind = span_after(*t, names[i]);

		if (!behind.s || !span_next(&behind, "|,", &f) || !behind.s || !span_word(&f, &n) ||
		    !span_next(&n, "/", &rest) || !num_whole_i64(rest, step) || *step < 0)
			continue;
		if ((n.s && !num_whole_i64(n, &(int64_t){0})) ||
		    (span_trim(f).n && !span_starts(span_trim(f), "(")))
			continue;
		*t = behind;
		return true;
	}
	return false;
}

static bool step_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), key, value;
	struct emit_tag tag = EMIT_NONE;

	if (!take_step(&t, &tag.step))
		return false;
	st->step = tag.step;
	while (next_field(&t, &key, &value))
		take_field(o, l, key, value, &tag);
	return true;
}

/* What stands alone in a line: a validation after the step, and the memory at the end. */
static bool other_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l)), loss = span_after(t, "validation loss: "),
		    peak = span_after(t, "Peak memory usage: ");
	struct emit_tag tag = {.step = st->step, .t_us = -1};
	double bytes;

	if (peak.s && bytes_scan(peak, &bytes, NULL)) {
		emit_value(o, "mem_peak_allocated_gib", bytes / 0x1p30, NULL);
		return true;
	}
	if (!loss.s || !span_starts(t, "validation loss: "))
		return false;
	if (!train_is_whole(l, loss) || !emit_token(o, "val_loss", loss, 1, &tag))
		emit_bad(o, "a validation loss that is cut or no number");
	return true;
}

static bool nanochat_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return step_line(st, o, l) || other_line(st, o, l);
}

static const char *const words[] = {"| loss: ",
				    ", loss: ",
				    "| Training loss: ",
				    "| Validation loss: ",
				    "validation loss: ",
				    "Peak memory usage: ",
				    NULL};

const struct train_dialect train_nanochat = {
	.name = "nanochat",
	.words = words,
	.line = nanochat_line,
};

static int nanochat_open(const struct probe_context *c, const struct probe_sink *sink,
			 struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_nanochat, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_nanochat = {
	.name = "nanochat",
	.summary = "training log of nanochat and build-nanogpt",
	.example = "torchrun -m scripts.base_train -- --depth=20",
	.open = nanochat_open,
	.feed = train_feed,
	.finish = train_finish,
};
