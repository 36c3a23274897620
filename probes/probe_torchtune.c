/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * torchtune, its progress bar and its log file:
 *
 *   1|3|Loss: 1.943998098373413:   0%|     | 3/1617 [00:21<3:04:47,  6.87s/it]
 *   Step 1 | loss:2.1 lr:2e-05 tokens_per_second_per_gpu:1520.1 peak_memory_active:16.2 ...
 *
 * The bar begins with epoch, step and loss; its rate is smoothed and counts once, as it stood last
 * in its line (label source=tqdm if the text gives a step time of a framework too). Memory is in
 * GiB.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/bar.h"
#include "probes/train.h"

static const struct {
	const char *key, *metric;
} keys[] = {
	{"loss", "loss"},
	{"grad_norm", "grad_norm"},
	{"val_loss", "val_loss"},
	{"tokens_per_second_per_gpu", "throughput_tokens_per_s_per_gpu"},
	{"peak_memory_active", "mem_peak_active_gib"},
	{"peak_memory_alloc", "mem_peak_allocated_gib"},
	{"peak_memory_reserved", "mem_peak_reserved_gib"},
};

/* What Python says of a number on a device: "tensor(0.5)", or the part before its blank,
 * "tensor(0.5,", before "device='cuda:0')". */
static struct span number_of(struct span v)
{
	struct span in = span_after(v, "tensor("), n;

	if (!span_starts(v, "tensor(") || !span_next(&in, ",)", &n))
		return v;
	return n;
}

/* "Step 12 | key:value key:value" */
static bool log_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "Step "), f, key, loss;
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || !span_next(&t, "|", &f) || !t.s || !num_whole_i64(f, &tag.step) ||
	    tag.step < 0 || !(loss = span_after(t, "loss:")).s ||
	    (loss.n && span_is_blank(loss.s[0])))
		return false;
	st->step = tag.step;
	while (span_word(&t, &f)) {
		struct span v = f;

		if (!span_next(&v, ":", &key) || !v.s) {
			if (!train_is_whole(l, f))
				emit_bad(o, "a step that is cut");
			continue;
		}
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			if (span_eq(key, keys[i].key) &&
			    (!train_is_whole(l, v) ||
			     !emit_token(o, keys[i].metric, number_of(v), 1, &tag)))
				emit_bad(o, "a value of a step is cut or no number");
	}
	return true;
}

/* "1|3|Loss: 1.94" at the end of what stands before the bar. */
static bool take_head(struct span desc, int64_t *step, struct span *loss)
{
	struct span t = desc, epoch, f, w;

	/* Another writer's text may stand before it: the last word of what is before "|". */
	if (!span_next(&t, "|", &epoch) || !t.s || !span_next(&t, "|", &f) || !t.s ||
	    !num_whole_i64(f, step) || *step < 0)
		return false;
	for (w = (struct span){NULL, 0}; span_word(&epoch, &f);)
		w = f;
	if (!w.s || !num_whole_i64(w, &(int64_t){0}))
		return false;
	*loss = span_trim(span_after(t, "Loss:"));
	return loss->n > 0;
}

static bool bar_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	static const struct kv source[] = {
		{(char *)(uintptr_t) "source", (char *)(uintptr_t) "tqdm"}};
	struct emit_tag tag = EMIT_NONE, rate;
	struct span t = input_span(l), loss;
	bool last; /* of the drawings of its step */
	struct bar b;

	if (!span_has(t, "|Loss: "))
		return false;
	if (!bar_find(t, &b)) {
		if (!l->redrawn)
			emit_bad(o, "a bar that is cut");
		return !l->redrawn;
	}
	if (!take_head(b.desc, &tag.step, &loss))
		return false;
	if (tag.step != st->step && !emit_token(o, "loss", loss, 1, &tag))
		emit_bad(o, "the loss of a bar is no number");
	last = !l->redrawn && (tag.step != st->step || st->block);
	st->block = l->redrawn; /* where each drawing has a line, the next step's has this loss */
	st->step = tag.step;
	rate = tag;
	rate.labels = source;
	rate.n_labels = st->shared->step_time;
	if (last && b.step_s > 0)
		emit_value(o, "step_time_ms", b.step_s * 1000, &rate);
	return true;
}

static bool torchtune_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return bar_line(st, o, l) || log_line(st, o, l);
}

static const char *const words[] = {"|Loss: ", "Step ", NULL};

const struct train_dialect train_torchtune = {
	.name = "torchtune",
	.words = words,
	.line = torchtune_line,
};

static int torchtune_open(const struct probe_context *c, const struct probe_sink *sink,
			  struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_torchtune, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_torchtune = {
	.name = "torchtune",
	.summary = "progress bar and log file of torchtune",
	.example = "tune run full_finetune_distributed --config ... log_peak_memory_stats=True",
	.open = torchtune_open,
	.feed = train_feed,
	.finish = train_finish,
};
