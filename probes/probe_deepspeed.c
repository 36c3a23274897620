/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DeepSpeed's own lines:
 *
 *   epoch=0/micro_step=3/global_step=3, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=..,
 *       MemAllocated=17.54GB, MaxMemAllocated=66.97GB        (2022-07 and later; GB is 2^30)
 *   0/50, SamplesPerSec=1292.64                              (before)
 *   steps: 10 loss: 2.5 iter time (s): 0.812 samples/sec: 39.4        (pipeline engine)
 *   rank=0 time (ms) | fwd: 435.67 | bwd: 744.11 | ...       (wall_clock_breakdown)
 *   [Rank 0] step=40, skipped=2, lr=[..], mom=[..]
 *
 * Its samples a second carry the label source=deepspeed as soon as the same text gives batch over
 * step time (Megatron-DeepSpeed): pipeline engines time only a part of the step. The running
 * average starts with inf and mixes in the warm-up: it is not taken.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/train.h"

static const struct kv source_label[] = {
	{(char *)(uintptr_t) "source", (char *)(uintptr_t) "deepspeed"}};

static struct emit_tag sourced(const struct train_state *st)
{
	return (struct emit_tag){.step = -1,
				 .t_us = -1,
				 .labels = source_label,
				 .n_labels = st->shared->samples_per_s};
}

static int64_t as_step(double v)
{
	return v >= 0 && v < 9e15 ? (int64_t)v : -1;
}

/* "...<digits>/<digits>, SamplesPerSec=": the second number is the step. */
static int64_t old_step(struct span t, const char *end)
{
	const char *p = end;
	int64_t v;

	while (p > t.s && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == t.s || p[-1] != '/' || !num_whole_i64((struct span){p, (size_t)(end - p)}, &v))
		return -1;
	return v;
}

static bool timer_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), at = span_after(t, "SamplesPerSec=");
	struct emit_tag tag = sourced(st), plain = EMIT_NONE;
	const char *key = "CurrSamplesPerSec=";
	double v;

	if (!at.s)
		return false;
	if (train_number(l, t, "global_step=", ",", &v))
		tag.step = as_step(v);
	if (!span_has(t, key)) {
		const char *head = memmem(t.s, t.n, ", SamplesPerSec=", 16);

		key = "SamplesPerSec=";
		tag.step = head ? old_step(t, head) : -1;
	}
	st->step = plain.step = tag.step;
	if (!train_emit(o, l, t, key, ", ", "throughput_samples_per_s", 1, &tag))
		emit_bad(o, "SamplesPerSec is cut or holds no number");
	train_emit(o, l, t, ", MemAllocated=", "G,", "mem_allocated_gib", 1, &plain);
	train_emit(o, l, t, "MaxMemAllocated=", "G,", "mem_peak_allocated_gib", 1, &plain);
	return true;
}

static bool pipeline_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "steps: ");
	struct emit_tag tag = EMIT_NONE, rate = sourced(st);
	double v;

	if (!t.s || !span_has(t, "iter time (s): ") || !train_number(l, t, "", " ", &v))
		return false;
	st->step = tag.step = rate.step = as_step(v);
	train_emit(o, l, t, "loss: ", " ", "loss", 1, &tag);
	train_emit(o, l, t, "iter time (s): ", " ", "step_time_ms", 1000, &tag);
	train_emit(o, l, t, "samples/sec: ", " ", "throughput_samples_per_s", 1, &rate);
	return true;
}

static void emit_phase(struct emit *o, struct span name, struct span value)
{
	struct emit_labels labels = {.n = 0};
	struct emit_tag tag = EMIT_NONE;

	emit_label(&labels, "phase", name);
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	if (!emit_token(o, "phase_time_ms", value, 1, &tag))
		emit_bad(o, "a timer without a number");
}

/* The breakdown is printed before the line that names its step, so its values have none. */
static bool breakdown_line(struct emit *o, const struct input_line *l)
{
	struct span all = input_span(l), t = span_after(all, "time (ms) |"), f, name;

	if (!t.s || !(span_has(all, "[Rank ") || span_has(all, "rank=") || span_has(all, "[INFO]")))
		return false;
	while (span_next(&t, "|", &f)) {
		struct span rest = span_trim(f);

		if (!span_next(&rest, ":", &name) || !rest.s)
			continue;
		if (train_is_whole(l, rest))
			emit_phase(o, name, span_trim(rest));
		else
			emit_bad(o, "a timer that is cut");
	}
	return true;
}

static bool step_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), at = span_after(t, "[Rank ");
	struct emit_tag tag = EMIT_NONE;
	double v;

	at = span_after(at, "] step=");
	if (!at.s || !span_has(at, "skipped=") || !train_number(l, at, "", ",", &v))
		return false;
	st->step = tag.step = as_step(v);
	train_emit(o, l, at, "skipped=", ",", "skipped_iters", 1, &tag);
	return true;
}

static bool deepspeed_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return timer_line(st, o, l) || breakdown_line(o, l) || step_line(st, o, l) ||
	       pipeline_line(st, o, l);
}

const struct train_dialect train_deepspeed = {"deepspeed", deepspeed_line};

static int deepspeed_open(const struct probe_context *c, const struct probe_sink *sink,
			  struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_deepspeed, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_deepspeed = {
	.name = "deepspeed",
	.summary = "DeepSpeed's timer and wall_clock_breakdown lines",
	.example = "deepspeed train.py --deepspeed_config ds.json",
	.open = deepspeed_open,
	.feed = train_feed,
	.finish = train_finish,
};
