/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MLPerf logging, a JSON object behind its mark:
 *
 *   :::MLLOG {"namespace": "", "time_ms": 1714861521549, "event_type": "POINT_IN_TIME", "key":
 *       "tracked_stats", "value": {"throughput": 12.03}, "metadata": {"step": 1536, ...}}
 *
 * Before 2020 the time in seconds and the key stood before it:
 *
 *   :::MLL 1560826879.751 eval_accuracy: {"value": 24.1, "metadata": {"epoch_num": 8}}      (0.6)
 *   :::MLPv0.5.0 ncf 1541632000.125 (main.py:187) eval_accuracy: {"epoch": 3, "value": 0.6} (0.5)
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

#define TIME_MS_MAX INT64_C(9000000000000)

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

static void take_member(const struct jsonl_member *m, struct event *v)
{
	int64_t n;

	if (span_eq(m->key, "key")) {
		v->key = m->value;
	} else if (span_eq(m->key, "value")) {
		v->value = m->value;
		v->kind = m->kind;
	} else if (span_eq(m->key, "time_ms")) {
		num_whole_i64(m->value, &v->time_ms);
	} else if (span_eq(m->key, "metadata") && m->kind == JSONL_NESTED) {
		read_metadata(m->value, v);
	} else if (span_eq(m->key, "epoch") && num_whole_i64(m->value, &n) && n >= 0) {
		v->step = n; /* 0.5 */
	} else if (span_eq(m->key, "success")) {
		v->status = span_of(span_eq(m->value, "true") ? "success" : "failed");
	}
}

/* -1 when the text is no whole object, 0 when the event lacks something, 1. */
static int read_event(struct span text, struct event *v)
{
	struct jsonl j = {.rest = text};
	struct jsonl_member m;
	int r;

	while ((r = jsonl_next(&j, &m)) > 0)
		take_member(&m, v);
	if (r < 0)
		return r;
	return v->key.s && v->value.s && v->time_ms >= 0 && v->time_ms < TIME_MS_MAX;
}

/* "1560826879.751 key: {...}", of 0.5 with the benchmark before it and its caller behind the time.
 * As read_event(); 0 also when it is another text behind the same mark. */
static int read_old_event(struct span t, bool named, struct event *v)
{
	struct span w, object;
	double s;

	if ((named && !span_word(&t, &w)) || !span_word(&t, &w) || !num_whole(w, &s) || s < 0 ||
	    s * 1000 >= (double)TIME_MS_MAX || (named && !span_word(&t, &w)))
		return 0;
	v->time_ms = (int64_t)(s * 1000 + 0.5);
	if (!span_next(&t, ":", &v->key) || !(v->key = span_trim(v->key)).n)
		return 0;
	object = t.s ? span_trim(t) : (struct span){"", 0};
	if (object.n && object.s[0] == '{') {
		struct jsonl j = {.rest = object};
		struct jsonl_member m;
		int r;

		while ((r = jsonl_next(&j, &m)) > 0)
			take_member(&m, v);
		return r < 0 ? r : 1;
	}
	v->value = object;
	v->kind = object.n && object.s[0] != '"' ? JSONL_WORD : JSONL_STRING;
	return 1;
}

enum { TRACKED_THROUGHPUT = 1, POINT_THROUGHPUT = 4 };

static const struct {
	const char *key, *metric;
	double scale;
} tracked[] =
	{
		{"imgs_sec", "throughput_samples_per_s", 1},
		{"throughput", "throughput_samples_per_s", 1},
		{"train_step_time", "step_time_ms", 1000},
		{"time", "step_time_ms", 1000},
		{"data", "data_wait_ms", 1000},
		{"loss", "loss", 1},
		{"train_loss", "loss", 1},
		{"reduced_train_loss", "loss", 1},
},
  points[] = {
	  {"eval_accuracy", "eval_accuracy", 1},
	  {"eval_loss", "val_loss", 1},
	  {"train_loss", "loss", 1},
	  {"global_batch_size", "samples_per_step", 1},
	  {"throughput", "throughput_samples_per_s", 1},
};

/* Some benchmarks log the throughput as a point too, beside it: it is taken once. state.total: it
 * is tracked, so points are passed over; state.batch: what the point before it said. */
static void emit_tracked(struct train_state *st, struct emit *o, struct span object,
			 const struct emit_tag *tag)
{
	struct jsonl j = {.rest = object};
	struct jsonl_member m;

	while (jsonl_next(&j, &m) > 0)
		for (size_t i = 0; i < ARRAY_LEN(tracked); i++) {
			if (!span_eq(m.key, tracked[i].key))
				continue;
			if (i <= TRACKED_THROUGHPUT) {
				bool said = !st->total && m.is_number && m.number == st->batch;

				st->total = 1;
				if (said)
					continue;
			}
			if (!emit_token(o, tracked[i].metric, m.value, tracked[i].scale, tag))
				emit_bad(o, "a tracked value is no number");
		}
}

static void emit_point(struct train_state *st, struct emit *o, const struct event *v,
		       const struct emit_tag *tag)
{
	double n;

	if (v->kind == JSONL_NESTED || (v->kind == JSONL_STRING && !num_whole(v->value, &n)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		if (!span_eq(v->key, points[i].key))
			continue;
		if (i == POINT_THROUGHPUT && st->total)
			continue;
		if (i == POINT_THROUGHPUT && num_whole(v->value, &n))
			st->batch = n;
		if (!emit_token(o, points[i].metric, v->value, points[i].scale, tag))
			emit_bad(o, "a logged value is no number");
	}
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
		emit_tracked(st, o, v->value, &tag);
	else if (!emit_about(o, v))
		emit_point(st, o, v, &tag);
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

/* Behind the mark; -1, 0, 1 as read_event(). */
static int read_any(struct span *t, struct event *v)
{
	static const char old5[] = "Pv0.5.0 ", old6[] = "L ", json[] = "LOG ";
	const char *mark = span_starts(*t, json)   ? json
			   : span_starts(*t, old6) ? old6
			   : span_starts(*t, old5) ? old5
						   : NULL;

	*v = (struct event){.time_ms = -1, .step = -1, .samples = -1};
	if (!mark)
		return 0;
	*t = span_trim((struct span){t->s + strlen(mark), t->n - strlen(mark)});
	/* The shell's echo quotes it. */
	if (t->n > 1 && t->s[t->n - 2] == '}' && (t->s[t->n - 1] == '\'' || t->s[t->n - 1] == '"'))
		t->n--;
	return mark == json ? read_event(*t, v) : read_old_event(*t, mark == old5, v);
}

static bool mllog_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), ":::ML"), next;
	struct event v;
	int r;

	if (!t.s)
		return false;
	/* Two writers in one line: the last object is whole, if any is. */
	while ((next = span_after(t, ":::ML")).s)
		t = next;
	r = read_any(&t, &v);
	if (!r && !v.key.s)
		return false; /* another text behind such a mark */
	/* A whole object needs no end of its line. */
	if (r < 0 || (t.s[t.n - 1] != '}' && !train_is_whole(l, t))) {
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

static const char *const words[] = {":::ML", NULL};

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
