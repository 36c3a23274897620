/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trainer_state.json of the Hugging Face Trainer, which is surer than its log: log_history is a
 * list of objects that carry their step.
 *
 *   {"best_metric": null, "global_step": 32, "log_history": [
 *       {"epoch": 0.1, "grad_norm": 0.97, "learning_rate": 4e-05, "loss": 2.98, "step": 16},
 *       {"epoch": 0.2, "eval_loss": 2.5, "step": 32}, {"train_runtime": 919.0, ...}]}
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/jsonstream.h"
#include "probes/probe.h"

enum { CELL_MAX = 40, SAMPLES_PER_S = 5, STEPS_PER_S };

static const struct {
	const char *key, *metric;
	bool has_step;
} keys[] = {
	{"loss", "loss", true},
	{"grad_norm", "grad_norm", true},
	{"eval_loss", "val_loss", true},
	{"num_input_tokens_seen", "consumed_tokens", true},
	{"train_loss", "train_loss_mean", false},
	[SAMPLES_PER_S] = {"train_samples_per_second", "throughput_samples_per_s", false},
	[STEPS_PER_S] = {"train_steps_per_second", "throughput_steps_per_s", false},
	{"train_tokens_per_second", "throughput_tokens_per_s", false},
};

struct probe_run {
	struct jsonstream *json;
	struct emit out;
	/* Values of the object that is being read: its step may come last. */
	char cell[ARRAY_LEN(keys)][CELL_MAX];
	int64_t line[ARRAY_LEN(keys)];
	int64_t step;
	bool any;
};

static void on_leaf(void *ctx, const char *path, enum jsonstream_kind kind, struct span text,
		    const struct input_line *line)
{
	static const char prefix[] = "log_history[].";
	struct probe_run *r = ctx;
	const char *key = path + strlen(prefix);
	double v;

	if (!str_starts(path, prefix))
		return;
	r->any = true;
	if (str_eq(key, "step")) {
		r->step = num_whole(text, &v) && v >= 0 && v < 9e15 ? (int64_t)v : -1;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!str_eq(key, keys[i].key) || text.n >= CELL_MAX)
			continue;
		if (kind == JSONSTREAM_NULL)
			text = span_of("nan");
		memcpy(r->cell[i], text.s, text.n);
		r->cell[i][text.n] = '\0';
		r->line[i] = line->line;
	}
}

static void on_open(void *ctx, const char *path)
{
	struct probe_run *r = ctx;

	if (!str_eq(path, "log_history[]"))
		return;
	memset(r->cell, 0, sizeof(r->cell));
	r->step = -1;
}

static void on_close(void *ctx, const char *path)
{
	struct input_line l = {.complete = true, .rank = -1, .local_rank = -1, .host = ""};
	struct probe_run *r = ctx;

	if (!str_eq(path, "log_history[]"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct emit_tag tag = {.step = keys[i].has_step ? r->step : -1, .t_us = -1};
		const char *metric = keys[i].metric;

		if (!r->cell[i][0])
			continue;
		/* Before transformers 4.7 they were steps. */
		if (i == SAMPLES_PER_S && !r->cell[STEPS_PER_S][0])
			metric = keys[STEPS_PER_S].metric;
		l.text = l.whole = r->cell[i];
		l.len = l.whole_len = strlen(r->cell[i]);
		l.line = r->line[i];
		emit_begin(&r->out, &l);
		if (!emit_token(&r->out, metric, span_of(r->cell[i]), 1, &tag))
			emit_bad(&r->out, "a value of log_history is no number");
	}
	r->out.raw_of = NULL;
}

static int state_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	static const struct jsonstream_calls calls = {on_leaf, on_open, on_close};
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->step = -1;
	r->json = jsonstream_new(&calls, r);
	*out = r;
	return 0;
}

static int state_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	jsonstream_feed(r->json, bytes, n);
	return 0;
}

static enum probe_status state_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	if (!r->any) {
		if (detail)
			buf_str(detail, "no log_history of a Trainer");
		s = PROBE_ABSENT;
	} else {
		s = emit_status(&r->out, detail);
		if (s == PROBE_OK && jsonstream_finish(r->json, detail) != JSONSTREAM_WHOLE)
			s = PROBE_PARTIAL;
	}
	jsonstream_free(r->json);
	emit_close(&r->out);
	free(r);
	return s;
}

static int state_sniff(const char *head, size_t n)
{
	struct span t = span_trim((struct span){head, n});

	return t.n && t.s[0] == '{' && span_has(t, "\"log_history\"") ? 95 : 0;
}

const struct probe probe_hf_state = {
	.name = "hf_state",
	.summary = "trainer_state.json of the Hugging Face Trainer",
	.example = "cat output/checkpoint-500/trainer_state.json",
	.sniff = state_sniff,
	.open = state_open,
	.feed = state_feed,
	.finish = state_finish,
};
