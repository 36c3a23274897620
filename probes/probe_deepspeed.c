/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DeepSpeed's own lines:
 *
 *   epoch=0/micro_step=3/global_step=3, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=..,
 *       MemAllocated=17.54GB, MaxMemAllocated=66.97GB        (2022-07 and later; GB is 2^30)
 *   0/50, SamplesPerSec=1292.64                              (before)
 *   |E2E latency=3.73s |...|CurSamplesPerSec=17.17 |AvgSamplesPerSec=10.92   (hybrid engine)
 *   steps: 10 loss: 2.5 iter time (s): 0.812 samples/sec: 39.4        (pipeline engine)
 *   rank=0 time (ms) | fwd: 435.67 | bwd: 744.11 | ...       (wall_clock_breakdown)
 *   [Rank 0] step=40, skipped=2, lr=[..], mom=[..]
 *   comm op: all_reduce | time (ms): 9.46 | msg size: 678.86 MB | algbw (Gbps): 1204.52 | busbw ...
 *   Comm. Op   Message Size   Count   Total Latency(ms)   Avg Latency(ms)   tput_avg (Gbps)   ...
 *   fwd latency:   76.67 ms                              (the block of the flops profiler)
 *
 * Its samples a second carry the label source=deepspeed as soon as the same text gives batch over
 * step time (Megatron-DeepSpeed): pipeline engines time only a part of the step. The running
 * average starts with inf and mixes in the warm-up: it is not taken. The comms logger counts in
 * bits a second and rounds sizes, which have units of 1024; the profiler slows its step, so that
 * what it says of time carries the label source=flops_profiler.
 */
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/bytes.h"
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

/* The hybrid engine's line is of the whole step, generation too; the engines of actor and critic
 * tell of their parts in lines of their own. */
static bool hybrid_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "E2E latency=");
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || !span_has(t, "|CurSamplesPerSec="))
		return false;
	st->shared->step_time = st->shared->samples_per_s = true;
	if (!train_emit(o, l, t, "", "s", "step_time_ms", 1000, &tag) ||
	    !train_emit(o, l, t, "|CurSamplesPerSec=", "|", "throughput_samples_per_s", 1, &tag))
		emit_bad(o, "a line of the hybrid engine that is cut");
	return true;
}

static bool timer_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), at = span_after(t, "SamplesPerSec=");
	struct emit_tag tag = sourced(st), plain = EMIT_NONE;
	const char *key = "CurrSamplesPerSec=";
	double v;

	if (!at.s)
		return false;
	if (hybrid_line(st, o, l))
		return true;
	if (train_number(l, t, "global_step=", ",", &v))
		tag.step = train_step(v);
	if (!span_has(t, key)) {
		const char *head = memmem(t.s, t.n, ", SamplesPerSec=", 16);

		/* The mean of the run, where the step's own figure is cut away, is not the step's.
		 */
		if (!head && !l->complete) {
			emit_bad(o, "SamplesPerSec is cut or holds no number");
			return true;
		}
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
	st->step = tag.step = rate.step = train_step(v);
	train_emit(o, l, t, "loss: ", " ", "loss", 1, &tag);
	train_emit(o, l, t, "iter time (s): ", " ", "step_time_ms", 1000, &tag);
	train_emit(o, l, t, "samples/sec: ", " ", "throughput_samples_per_s", 1, &rate);
	return true;
}

static void emit_phase(struct emit *o, struct span name, struct span value)
{
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;

	labels.n = 0;
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
	st->step = tag.step = train_step(v);
	train_emit(o, l, at, "skipped=", ",", "skipped_iters", 1, &tag);
	return true;
}

/* -- comms logger ------------------------------------------------------------------------------ */

enum { BLOCK_SUMMARY = 1, BLOCK_PROFILE };

#define GBIT_TO_GBYTE (1.0 / 8)

/* Labels of one operation and size. False when the size is no amount. */
static bool comm_labels(struct emit_labels *labels, struct span op, struct span size)
{
	char number[24];
	double bytes;

	if (!op.n || !bytes_scan(span_trim(size), &bytes, NULL) || bytes > 9e15)
		return false;
	snprintf(number, sizeof(number), "%.0f", bytes);
	labels->n = 0;
	emit_label(labels, "op", op);
	emit_label(labels, "size_bytes", span_of(number));
	return true;
}

static bool comm_line(struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "comm op: "), rest = t, op, size;
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || !span_has(t, "| msg size:"))
		return false;
	size = span_after(t, "| msg size:");
	if (!span_next(&rest, "|", &op) || !span_next(&size, "|", &rest) || !size.s ||
	    !comm_labels(&labels, span_trim(op), rest)) {
		emit_bad(o, "a line of the comms logger that is cut");
		return true;
	}
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	if (!train_emit(o, l, t, "time (ms):", "|", "coll_time_us", 1000, &tag) ||
	    !train_emit(o, l, t, "algbw (Gbps):", "|", "coll_algbw_gb_per_s", GBIT_TO_GBYTE,
			&tag) ||
	    !train_emit(o, l, t, "busbw (Gbps):", "|", "coll_busbw_gb_per_s", GBIT_TO_GBYTE, &tag))
		emit_bad(o, "a line of the comms logger that is cut");
	return true;
}

/* The name of an operation stands alone, its rows are indented. */
static bool op_name(struct train_state *st, struct span t)
{
	struct span rest = t, op, more;

	if (!t.n || t.s[0] == ' ' || !span_word(&rest, &op) || span_word(&rest, &more))
		return false;
	for (size_t i = 0; i < op.n; i++)
		if (!(op.s[i] >= 'a' && op.s[i] <= 'z') && op.s[i] != '_')
			return false;
	buf_clear(&st->held);
	buf_put(&st->held, op.s, op.n);
	return true;
}

/* "   98.25 MB   1   8317.12   8317.12   0.20   0.19": the size has two words. */
static bool summary_row(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), w[8], size;
	struct emit_labels labels;
	struct emit_tag tag = EMIT_NONE;
	size_t n = 0;

	while (n < ARRAY_LEN(w) && span_word(&t, &w[n]))
		n++;
	if (n != 7)
		return false;
	size = (struct span){w[0].s, (size_t)(w[1].s + w[1].n - w[0].s)};
	if (!comm_labels(&labels, (struct span){st->held.data, st->held.len}, size))
		return false;
	if (!train_is_whole(l, w[6])) {
		emit_bad(o, "a row of the comms summary that is cut");
		return true;
	}
	emit_label(&labels, "source", span_of("summary"));
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	if (!emit_token(o, "coll_calls", w[2], 1, &tag) ||
	    !emit_token(o, "coll_time_us", w[4], 1000, &tag) ||
	    !emit_token(o, "coll_algbw_gb_per_s", w[5], GBIT_TO_GBYTE, &tag) ||
	    !emit_token(o, "coll_busbw_gb_per_s", w[6], GBIT_TO_GBYTE, &tag))
		emit_bad(o, "a row of the comms summary holds no number");
	return true;
}

/* log_summary(): its rows are known by their form, since other writers' lines may stand between. */
static bool summary_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l);

	if (span_has(t, "Comm. Op") && span_has(t, "Message Size")) {
		st->block = span_has(t, "busbw_avg") ? BLOCK_SUMMARY : 0;
		return true;
	}
	if (st->block != BLOCK_SUMMARY)
		return false;
	return op_name(st, t) || (st->held.len && summary_row(st, o, l));
}

/* -- flops profiler ---------------------------------------------------------------------------- */

static const struct {
	const char *key, *unit, *metric, *phase;
	double scale;
	bool timed; /* it says of time, which the profiler itself changes */
} profile[] = {
	{"params of model", "", "model_params", NULL, 1, false},
	{"fwd flops per GPU", "", "model_fwd_flops_per_gpu", NULL, 1, false},
	{"fwd latency", "s", "phase_time_ms", "fwd", 1000, true},
	{"bwd latency", "s", "phase_time_ms", "bwd", 1000, true},
	{"step latency", "s", "phase_time_ms", "step", 1000, true},
	{"iter latency", "s", "phase_time_ms", "iter", 1000, true},
	{"fwd+bwd FLOPS per GPU", "FLOPS", "tflops_per_gpu", NULL, 1e-12, true},
	{"samples/second", "", "throughput_samples_per_s", NULL, 1, true},
	{"samples/iter", "", "samples_per_step", NULL, 1, false},
};

/* "fwd FLOPS per GPU = fwd flops per GPU / fwd latency:   81.9 TFLOPS": the key ends at " = ". */
static bool profile_value(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), key = t, value;
	const char *colon = memrchr(t.s, ':', t.n), *equal = memmem(t.s, t.n, " = ", 3);
	struct emit_labels labels;
	struct emit_tag tag = {.step = st->step, .t_us = -1};
	double v;

	labels.n = 0;
	if (!colon)
		return false;
	key.n = (size_t)((equal ? equal : colon) - t.s);
	key = span_trim(key);
	value = (struct span){colon + 1, (size_t)(t.s + t.n - colon - 1)};
	for (size_t i = 0; i < ARRAY_LEN(profile); i++) {
		if (!span_eq(key, profile[i].key))
			continue;
		if (!train_is_whole(l, value) || !factor_scan(value, profile[i].unit, &v)) {
			emit_bad(o, "a value of the profile is cut or no number");
			return true;
		}
		if (profile[i].phase)
			emit_label(&labels, "phase", span_of(profile[i].phase));
		if (profile[i].timed)
			emit_label(&labels, "source", span_of("flops_profiler"));
		tag.labels = labels.v;
		tag.n_labels = labels.n;
		emit_value(o, profile[i].metric, v * profile[i].scale, &tag);
		return true;
	}
	return false;
}

/* The block from its headline to that of the tables by module. */
static bool profile_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), at = span_after(t, "Profile Summary at step ");
	double v;

	if (span_has(t, "DeepSpeed Flops Profiler ---")) {
		st->block = BLOCK_PROFILE;
		return true;
	}
	if (st->block != BLOCK_PROFILE)
		return false;
	if (at.s && train_number(l, at, "", ":", &v))
		st->step = train_step(v);
	if (span_has(t, " Profile per GPU ---"))
		st->block = 0;
	return profile_value(st, o, l);
}

static bool deepspeed_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	return timer_line(st, o, l) || breakdown_line(o, l) || step_line(st, o, l) ||
	       pipeline_line(st, o, l) || comm_line(o, l) || summary_line(st, o, l) ||
	       profile_line(st, o, l);
}

static const char *const words[] = {"SamplesPerSec=",           "time (ms) |", "] step=",
				    "iter time (s): ",          "comm op: ",   "Comm. Op",
				    "DeepSpeed Flops Profiler", NULL};

const struct train_dialect train_deepspeed = {
	.name = "deepspeed",
	.words = words,
	.blocks = true,
	.line = deepspeed_line,
};

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
