/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * torchtitan's metrics line (its colours are gone by then):
 *
 *   step: 10  loss:  8.41236  grad_norm:  1.2000  memory: 47.65GiB(60.11%)  tps: 7,865
 *       tflops: 1,455.20  mfu: 46.06%
 *
 *   validate step: 10  loss:  8.5000  memory: 47.65GiB(60.11%)  tps: 17,865
 *
 * tps is tokens a second of one GPU, degrees that split a sample divided out. memory is the peak of
 * what is reserved. Numbers are means over log_freq steps; every rank prints the line.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/train.h"

static const struct {
	const char *key, *unit, *metric;
} fields[] = {
	{"loss:", "", "loss"},
	{"grad_norm:", "", "grad_norm"},
	{"memory:", "GiB", "mem_peak_reserved_gib"},
	{"tps:", "", "throughput_tokens_per_s_per_gpu"},
	{"wps:", "", "throughput_tokens_per_s_per_gpu"}, /* its name in 2024 */
	{"tflops:", "", "tflops_per_gpu"},
	{"mfu:", "%", "mfu_pct"},
};

/* The record that starts at the last "step:", so that a cut one before it does not count. */
static struct span last_record(struct span t)
{
	struct span rest = span_after(t, "step:"), last = rest;

	while (rest.s) {
		last = rest;
		rest = span_after(rest, "step:");
	}
	return last;
}

static bool last_is_validation(struct span all, struct span record)
{
	static const char word[] = "validate step:";
	size_t k = sizeof(word) - 1;

	return (size_t)(record.s - all.s) >= k && memcmp(record.s - k, word, k) == 0;
}

static bool take_value(struct emit *o, size_t i, struct span w, const struct emit_tag *tag)
{
	const char *why = num_missing(w);
	double v;
	size_t used;
	enum num_kind k = num_scan_thousands(w, &v, &used);

	if (why) {
		emit_missing(o, fields[i].metric, why, tag);
		return true;
	}
	if (k != NUM_FINITE || strlen(fields[i].unit) > w.n - used ||
	    memcmp(w.s + used, fields[i].unit, strlen(fields[i].unit)) != 0)
		return false;
	emit_value(o, fields[i].metric, v, tag);
	return true;
}

static bool torchtitan_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = last_record(input_span(l)), w;
	struct emit_tag tag = EMIT_NONE;
	bool validates;

	if (!t.s || !span_has(t, " memory:") || !span_has(t, "loss:"))
		return false;
	validates = last_is_validation(input_span(l), t);
	if (!span_word(&t, &w) || !num_whole_i64(w, &tag.step) || tag.step < 0)
		return false;
	/* Its rate and memory are not training's. */
	if (validates) {
		if (!train_emit(o, l, t, "loss:", "m", "val_loss", 1, &tag))
			emit_bad(o, "a validation that is cut or holds no number");
		return true;
	}
	st->step = tag.step;
	while (span_word(&t, &w)) {
		for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
			if (!span_eq(w, fields[i].key))
				continue;
			if (!span_word(&t, &w) || !train_is_whole(l, w) ||
			    !take_value(o, i, w, &tag))
				emit_bad(o, "a field of a step is cut or holds no number");
			break;
		}
	}
	return true;
}

static const char *const words[] = {" memory:", NULL};

const struct train_dialect train_torchtitan = {
	.name = "torchtitan",
	.words = words,
	.line = torchtitan_line,
};

static int torchtitan_open(const struct probe_context *c, const struct probe_sink *sink,
			   struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_torchtitan, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_torchtitan = {
	.name = "torchtitan",
	.summary = "training log of torchtitan",
	.example = "./run_train.sh --metrics.log_freq 1",
	.open = torchtitan_open,
	.feed = train_feed,
	.finish = train_finish,
};
