/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MLPerf logging, a JSON object behind its mark:
 *
 *   :::MLLOG {"namespace": "", "time_ms": 1714861521549, "event_type": "POINT_IN_TIME", "key":
 *       "tracked_stats", "value": {"throughput": 12.03}, "metadata": {"step": 1536, ...}}
 *
 * Other marks (:::SYSJSON, :::DLPAL, :::NVLOG) are not read. throughput is in samples a second, the
 * step that of the metadata (some benchmarks count samples or epochs there). Time to train is
 * run_stop minus run_start and counts only with the status success; a run_start without run_stop,
 * or another status, is a failed run. A line may come twice (a shell's "+ echo", several ranks).
 */
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/jsonl.h"
#include "probes/train.h"

enum { BLOCK_STARTED = 1, BLOCK_STOPPED };

struct event {
	struct span key, value, status;
	enum jsonl_kind kind;
	int64_t time_ms, step, samples;
};

static void read_metadata(struct span text, struct event *v)
{
	struct jsonl j = {.rest = text};
	struct jsonl_member m;
	int64_t n;

	while (jsonl_next(&j, &m) > 0) {
		if (span_eq(m.key, "status"))
			v->status = m.value;
		else if (!m.is_number || !num_whole_i64(m.value, &n) || n < 0)
			continue;
		else if (span_eq(m.key, "step") || span_eq(m.key, "step_num"))
			v->step = n;
		else if (span_eq(m.key, "samples_count"))
			v->samples = n;
		else if (span_eq(m.key, "epoch_num") && v->step < 0)
			v->step = n;
	}
}

/* -1 when the text is no whole object, 0 when the event lacks something, 1. */
static int read_event(struct span text, struct event *v)
{
	struct jsonl j = {.rest = text};
	struct jsonl_member m;
	int r;

	*v = (struct event){.time_ms = -1, .step = -1, .samples = -1};
	while ((r = jsonl_next(&j, &m)) > 0) {
		if (span_eq(m.key, "key")) {
			v->key = m.value;
		} else if (span_eq(m.key, "value")) {
			v->value = m.value;
			v->kind = m.kind;
		} else if (span_eq(m.key, "time_ms")) {
			num_whole_i64(m.value, &v->time_ms);
		} else if (span_eq(m.key, "metadata") && m.kind == JSONL_NESTED) {
			read_metadata(m.value, v);
		}
	}
	if (r < 0)
		return r;
	return v->key.s && v->value.s && v->time_ms >= 0 && v->time_ms < 9000000000000;
}

static const struct {
	const char *key, *metric;
	double scale;
} tracked[] =
	{
		{"throughput", "throughput_samples_per_s", 1},
		{"train_step_time", "step_time_ms", 1000},
		{"train_loss", "loss", 1},
		{"reduced_train_loss", "loss", 1},
},
  points[] = {
	  {"eval_accuracy", "eval_accuracy", 1},
	  {"eval_loss", "val_loss", 1},
	  {"train_loss", "loss", 1},
	  {"global_batch_size", "samples_per_step", 1},
};

static void emit_tracked(struct emit *o, struct span object, const struct emit_tag *tag)
{
	struct jsonl j = {.rest = object};
	struct jsonl_member m;

	while (jsonl_next(&j, &m) > 0)
		for (size_t i = 0; i < ARRAY_LEN(tracked); i++)
			if (span_eq(m.key, tracked[i].key) &&
			    !emit_token(o, tracked[i].metric, m.value, tracked[i].scale, tag))
				emit_bad(o, "a tracked value is no number");
}

/* Texts that say what was run. */
static bool emit_about(struct emit *o, const struct event *v)
{
	static const char *const keys[] = {"submission_benchmark", "submission_org",
					   "submission_platform", "submission_status"};
	char key[64];

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (v->kind != JSONL_STRING || !span_eq(v->key, keys[i]))
			continue;
		snprintf(key, sizeof(key), "mllog.%s", keys[i]);
		emit_fact(o, key, v->value);
		return true;
	}
	return false;
}

static void take_run(struct train_state *st, struct emit *o, const struct event *v)
{
	struct emit_tag tag = {.step = -1, .t_us = v->time_ms * 1000};

	if (span_eq(v->key, "run_start") && st->block != BLOCK_STARTED) {
		st->block = BLOCK_STARTED;
		st->before = (double)v->time_ms;
		st->failed_line = o->raw_of->line;
	} else if (span_eq(v->key, "run_stop") && st->block == BLOCK_STARTED) {
		st->block = BLOCK_STOPPED;
		emit_fact(o, "mllog.status", v->status.s ? v->status : span_of("not given"));
		if (v->status.s && span_eq(v->status, "success"))
			emit_value(o, "time_to_train_s", ((double)v->time_ms - st->before) / 1000,
				   &tag);
		else
			train_fail(st, o->raw_of->line, "the run ended with the status %.*s",
				   (int)(v->status.s ? v->status.n : 9),
				   v->status.s ? v->status.s : "not given");
	}
}

static void take_event(struct train_state *st, struct emit *o, const struct event *v)
{
	struct emit_tag tag = {.step = v->step, .t_us = v->time_ms * 1000};

	take_run(st, o, v);
	if (v->step >= 0)
		st->step = v->step;
	if (span_eq(v->key, "tracked_stats") && v->kind == JSONL_NESTED)
		emit_tracked(o, v->value, &tag);
	else if (emit_about(o, v))
		return;
	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		if (v->kind == JSONL_WORD && span_eq(v->key, points[i].key) &&
		    !emit_token(o, points[i].metric, v->value, points[i].scale, &tag))
			emit_bad(o, "a logged value is no number");
	if (v->samples >= 0 && span_eq(v->key, "eval_accuracy"))
		emit_value(o, "consumed_samples", (double)v->samples, &tag);
}

/* The same object as on the line before, of another rank or of the shell. */
static bool repeated(struct train_state *st, struct span object)
{
	if (st->held.len == object.n && memcmp(st->held.data, object.s, object.n) == 0)
		return true;
	buf_clear(&st->held);
	buf_put(&st->held, object.s, object.n);
	return false;
}

static bool mllog_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), ":::MLLOG "), next;
	struct event v;
	int r;

	if (!t.s)
		return false;
	/* Two writers in one line: the last object is whole, if any is. */
	while ((next = span_after(t, ":::MLLOG ")).s)
		t = next;
	t = span_trim(t);
	/* The shell's echo quotes it. */
	if (t.n > 1 && (t.s[t.n - 1] == '\'' || t.s[t.n - 1] == '"'))
		t.n--;
	r = read_event(t, &v);
	if (!train_is_whole(l, t) || r < 0) {
		emit_bad(o, "an event that is cut");
		return true;
	}
	if (repeated(st, t))
		return true;
	if (r > 0)
		take_event(st, o, &v);
	else
		emit_bad(o, "an event without key, value or time");
	return true;
}

static void mllog_end(struct train_state *st, struct emit *o)
{
	(void)o;
	if (st->block == BLOCK_STARTED)
		train_fail(st, st->failed_line,
			   "a run_start without run_stop: the run did not end");
}

static const char *const words[] = {":::MLLOG ", NULL};

const struct train_dialect train_mllog = {
	.name = "mllog",
	.words = words,
	.line = mllog_line,
	.end = mllog_end,
};

static int mllog_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_mllog, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_mllog = {
	.name = "mllog",
	.summary = "MLPerf logging: throughput, accuracy, time to train",
	.example = "./run_and_time.sh | tee result_0.txt",
	.open = mllog_open,
	.feed = train_feed,
	.finish = train_finish,
};
