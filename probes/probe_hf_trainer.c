/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hugging Face Trainer (and TRL): the repr of a Python dict, not JSON, numbers bare or (v5) quoted:
 *
 *   {'loss': 2.9859, 'grad_norm': 0.97, 'learning_rate': 4.1e-05, 'epoch': 0.16}
 *   {'eval_loss': '0.4301', ...}
 *   {'train_runtime': 919.03, 'train_samples_per_second': 1.088, ..., 'train_loss': 2.7}
 *   ***** train metrics *****
 *     train_samples_per_second =      1.088       (read when no dict said it)
 *
 * The step is the count of the last nameless progress bar before it, for one dict: the dict has
 * only an epoch, and one that was kept in a buffer comes long after its bar. Where the head of the
 * training says how many steps an epoch has, the bar must agree with the dict's epoch.
 *
 * The bar's own smoothed rate is step_time_ms, with the label source=tqdm if the text gives a step
 * time of a framework too. A bar counts once, as it stood last in its line, and only if its total
 * is that of the training: not that of data sets that are loaded before it.
 *
 * Without steps a second, the samples a second of a run's end are steps: so said transformers
 * before 4.7.
 */
#include <math.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/bar.h"
#include "probes/train.h"

static const struct {
	const char *key, *metric;
	bool has_step; /* the last line of a run says means over all of it */
} keys[] = {
	{"loss", "loss", true},
	{"grad_norm", "grad_norm", true},
	{"eval_loss", "val_loss", true},
	{"train_loss", "train_loss_mean", false},
	{"train_samples_per_second", "throughput_samples_per_s", false},
	{"train_steps_per_second", "throughput_steps_per_s", false},
	{"train_tokens_per_second", "throughput_tokens_per_s", false},
};

static const struct kv tqdm_label[] = {{(char *)(uintptr_t) "source", (char *)(uintptr_t) "tqdm"}};

struct item {
	struct span key, value;
};

/* 'key': value of a dict's repr; a quoted value loses its quotes. False at the end or if broken. */
static bool next_item(struct span *t, struct item *it)
{
	struct span f;

	if (!span_next(t, "'", &f) || !t->s || !span_next(t, "'", &it->key) || !t->s)
		return false;
	*t = span_trim(*t);
	if (!t->n || t->s[0] != ':')
		return false;
	*t = span_trim((struct span){t->s + 1, t->n - 1});
	if (t->n && t->s[0] == '\'') {
		*t = (struct span){t->s + 1, t->n - 1};
		return span_next(t, "'", &it->value) && t->s;
	}
	if (!span_next(t, ",}", &it->value))
		return false;
	if (t->n && t->s[0] >= '0' && t->s[0] <= '9')
		return false; /* a decimal comma */
	it->value = span_trim(it->value);
	if (!t->s)
		*t = (struct span){"", 0};
	return true;
}

static bool is_ours(struct span dict)
{
	return span_has(dict, "'loss':") || span_has(dict, "'train_runtime':") ||
	       span_has(dict, "'eval_loss':");
}

static double dict_number(struct span dict, const char *name)
{
	struct item it;
	double v;

	while (next_item(&dict, &it))
		if (span_eq(it.key, name))
			return num_whole(it.value, &v) ? v : NAN;
	return NAN;
}

/* The bar's step is not that of a second record, nor of one from another time. */
static void check_step(struct train_state *st, struct span dict)
{
	double epoch = dict_number(dict, "epoch"), loss = dict_number(dict, "loss"),
	       off = fabs(epoch * st->epoch_steps - (double)st->step);

	st->told = true;
	if (st->epoch_steps > 0 && off > 0.006 * st->epoch_steps + 1.5)
		st->step = -1;
	if (!span_has(dict, "'loss':"))
		return;
	if (!isnan(st->before) && (loss != st->before || epoch != st->epoch))
		st->step = -1;
	st->before = loss;
	st->epoch = epoch;
}

static void emit_dict(struct train_state *st, struct emit *o, struct span dict)
{
	bool end = span_has(dict, "'train_runtime':"),
	     old = end && !span_has(dict, "'train_steps_per_second':");
	struct item it;

	st->ended = st->ended || end;
	if (!end)
		check_step(st, dict);
	while (next_item(&dict, &it)) {
		for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
			struct emit_tag tag = EMIT_NONE;
			const char *metric = keys[i].metric;

			if (!span_eq(it.key, keys[i].key))
				continue;
			if (keys[i].has_step)
				tag.step = st->step;
			if (old && str_eq(metric, "throughput_samples_per_s"))
				metric = "throughput_steps_per_s";
			if (!emit_token(o, metric, it.value, 1, &tag))
				emit_bad(o, "a value of the dict is no number");
		}
	}
}

/* All dicts of the line; one without its closing brace is cut. */
static bool dicts(struct train_state *st, struct emit *o, struct span t)
{
	bool any = false;
	struct span dict;

	while ((t = span_after(t, "{'")).s) {
		struct span rest = {t.s - 1, t.n + 1};

		if (!span_next(&rest, "}", &dict))
			break;
		if (!is_ours(dict))
			continue;
		any = true;
		if (!rest.s || span_has((struct span){dict.s + 1, dict.n - 1}, "{'")) {
			emit_bad(o, "a dict that is cut");
			continue;
		}
		dict.n++; /* with its brace, which ends the last value */
		emit_dict(st, o, dict);
		t = rest;
	}
	return any;
}

/* "***** train metrics *****", then "  name   = value" a line. */
static bool table(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), name, value;
	struct emit_tag tag = EMIT_NONE;

	if (span_has(t, "***** ") && span_has(t, " metrics *****")) {
		st->block = 1;
		return false;
	}
	if (!st->block)
		return false;
	value = span_after(t, " = ");
	if (!value.s || t.s[0] != ' ')
		return false;
	name = span_trim((struct span){t.s, (size_t)(value.s - t.s) - strlen(" = ")});
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		bool run_end = !keys[i].has_step;

		if (!span_eq(name, keys[i].key) || (run_end && st->ended))
			continue;
		if (!run_end)
			tag.step = st->step;
		if (!train_is_whole(l, value) ||
		    !emit_token(o, keys[i].metric, span_trim(value), 1, &tag))
			emit_bad(o, "a value of the table is cut or no number");
		return true;
	}
	return false;
}

/* Is it the bar of the training? The first one is, unless it ended before anything was learnt. */
static bool is_training(struct train_state *st, const struct bar *b)
{
	bool at_once = b->n >= b->total && b->elapsed_s >= 0 && b->elapsed_s < 1;

	if (b->desc.n || !b->total || b->other_unit || at_once)
		return false;
	if (!st->total || (st->total != b->total && !st->told && st->step == st->total))
		st->total = b->total;
	return b->total == st->total;
}

static bool progress(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct emit_tag tag = {.t_us = -1, .labels = tqdm_label, .n_labels = st->shared->step_time};
	struct bar b;

	if (!bar_find(input_span(l), &b) || !is_training(st, &b))
		return false;
	if (st->step != b.n)
		st->before = NAN;
	st->step = tag.step = b.n;
	if (!l->redrawn && b.step_s > 0)
		emit_value(o, "step_time_ms", b.step_s * 1000, &tag);
	return true;
}

static bool head_number(struct span t, const char *key, double *v)
{
	struct span at = span_after(t, key);

	return at.s && num_scan_thousands(at, v, NULL) == NUM_FINITE && *v > 0 && *v < 9e15;
}

/* "***** Running training *****" */
static void head_line(struct train_state *st, struct span t)
{
	double v;

	if (!span_has(t, " = "))
		return;
	if (head_number(t, "Total optimization steps = ", &v)) {
		st->total = (int64_t)v;
		st->told = true;
	} else if (!st->epoch_steps && head_number(t, "Num examples = ", &v)) {
		st->examples = v;
	} else if (head_number(t,
			       "Total train batch size (w. parallel, distributed & "
			       "accumulation) = ",
			       &v)) {
		st->epoch_steps = st->examples / v;
	}
}

static bool hf_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l);
	bool bar = progress(st, o, l);

	head_line(st, t);
	return dicts(st, o, t) || table(st, o, l) || bar;
}

static const char *const words[] = {"{'",
				    "%|",
				    "Total optimization steps",
				    "Num examples = ",
				    "Total train batch size",
				    " metrics *****",
				    NULL};

const struct train_dialect train_hf_trainer = {
	.name = "hf_trainer",
	.words = words,
	.blocks = true,
	.line = hf_line,
};

static int hf_open(const struct probe_context *c, const struct probe_sink *sink,
		   struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_hf_trainer, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_hf_trainer = {
	.name = "hf_trainer",
	.summary = "log of the Hugging Face Trainer and TRL: dicts and progress bar",
	.example = "python run_clm.py --logging_steps 1 ...",
	.open = hf_open,
	.feed = train_feed,
	.finish = train_finish,
};
