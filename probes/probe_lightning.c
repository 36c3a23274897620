/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lightning's progress bar:
 *
 *   Epoch 0: 100%|####| 10/10 [01:49<00:00,  0.09it/s, v_num=2, train_loss=1.25, val_loss=1.5]
 *
 *   Epoch 0/23 ------ 98/98 0:00:22 • 0:00:00 4.44it/s v_num: 0 train/loss: 1.559  (rich)
 *
 * The step is the epoch's number times its length and the count. A step is drawn twice, first with
 * the loss of the step before: the last drawing counts. The time of a step is that of the drawing
 * that stood last in its line, a mean over the epoch. CSVLogger's metrics.csv is better:
 * probe_metrics_csv.c. A bar of NeMo is left to NeMo.
 */
#include <math.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/bar.h"
#include "probes/train.h"

#define RICH_DOT " \xe2\x80\xa2 "

enum { KEYS = 7, VAL_LOSS = KEYS, VAL_LOSS_2, NEMO_STEP, NEMO_LOSS, NEMO_TIME, ALL_KEYS };

static const char *const keys[ALL_KEYS] = {
	"train_loss", "train_loss_step", "train/loss_step",    "train/loss",
	"loss",       "loss_step",       "grad_norm",          "val_loss",
	"val/loss",   "global_step",     "reduced_train_loss", "train_step_timing in s"};
static const char *const metrics[KEYS] = {"loss", "loss", "loss",     "loss",
					  "loss", "loss", "grad_norm"};

/* The number of the epoch, -1 when the bar is another one ("Validation DataLoader 0", "Sanity
 * Checking"). The text before the bar may hold what another writer left. */
static int64_t epoch_of(struct span desc)
{
	struct span t = desc, at = span_after(desc, "Epoch ");
	double v;
	size_t used;

	while ((t = span_after(at, "Epoch ")).s)
		at = t;
	if (!at.s || num_scan(at, &v, &used) != NUM_FINITE || v < 0 || v > 1e9)
		return -1;
	for (size_t i = used; i < at.n; i++)
		if (at.s[i] != ':' && at.s[i] != ' ')
			return -1;
	return (int64_t)v;
}

static void emit_val_loss(struct train_state *st, struct emit *o, struct span v,
			  const struct emit_tag *tag)
{
	double d;

	if (!v.s || !num_whole(v, &d) || d == st->before)
		return;
	st->before = d;
	emit_value(o, "val_loss", d, tag);
}

static void emit_postfix(struct train_state *st, struct emit *o, const struct span *v,
			 const struct emit_tag *tag)
{
	const char *given = NULL;

	for (size_t i = 0; i < KEYS; i++) {
		if (!v[i].s || str_eq(given, metrics[i]))
			continue;
		given = metrics[i];
		if (!emit_token(o, metrics[i], v[i], 1, tag))
			emit_bad(o, "a value of the bar is no number");
	}
	emit_val_loss(st, o, v[VAL_LOSS].s ? v[VAL_LOSS] : v[VAL_LOSS_2], tag);
}

static struct span last_word(struct span *t)
{
	struct span w;

	*t = span_trim(*t);
	w = (struct span){t->s + t->n, 0};
	while (t->n && !span_is_blank(t->s[t->n - 1]))
		w.s--, w.n++, t->n--;
	return w;
}

/* "98/98 0:00:22 • 0:00:00 4.44it/s v_num: 0 ..." behind the epoch; pairs follow the rate. */
static bool rich_bar(struct span t, struct bar *b, struct span *pairs)
{
	struct span right = span_after(t, RICH_DOT), left, counts, f;

	if (!right.s)
		return false;
	left = (struct span){t.s, (size_t)(right.s - t.s) - strlen(RICH_DOT)};
	*b = (struct bar){.elapsed_s = bar_clock_s(last_word(&left))};
	counts = last_word(&left);
	if (!span_next(&counts, "/", &f) || !num_whole_i64(f, &b->n) || b->n < 0)
		return false;
	num_whole_i64(counts, &b->total); /* "--" of an endless data set */
	if (!span_word(&right, &f) || !span_word(&right, &f))
		return false;
	b->step_s = bar_rate_s(f, b);
	*pairs = right;
	return true;
}

/* "key: value key: value": what was cut off to the next line has no value, and what another writer
 * went on from is none. */
static void rich_pairs(struct span t, struct span *v)
{
	struct span w, key = {NULL, 0};
	double d;

	for (size_t i = 0; i < ALL_KEYS; i++)
		v[i] = (struct span){NULL, 0};
	while (span_word(&t, &w)) {
		bool is_key = w.s[w.n - 1] == ':';

		for (size_t i = 0; !is_key && key.s && i < ALL_KEYS; i++)
			if (span_eq(key, keys[i]) && (num_whole(w, &d) || num_missing(w)))
				v[i] = w;
		key = is_key ? (struct span){w.s, w.n - 1} : (struct span){NULL, 0};
	}
}

/* Reads the line's bar, of either kind; its epoch, or -1 when there is none. */
static int64_t take_bar(struct span t, struct bar *b, struct span *v)
{
	struct span at = span_after(t, "Epoch "), pairs;
	double epoch;
	size_t used;

	if (at.s && num_scan(at, &epoch, &used) == NUM_FINITE && used < at.n && at.s[used] == '/' &&
	    epoch >= 0 && epoch < 1e9 && rich_bar(at, b, &pairs)) {
		rich_pairs(pairs, v);
		return (int64_t)epoch;
	}
	if (!bar_find(t, b))
		return -1;
	bar_postfix(b, keys, ALL_KEYS, v);
	return epoch_of(b->desc);
}

/* The drawing that was the last one of its step. */
static void flush(struct train_state *st, struct emit *o)
{
	struct emit_tag tag = {.step = st->step, .t_us = -1};
	struct input_line l = {
		.complete = true, .rank = st->held_rank, .local_rank = -1, .host = ""};
	struct bar b = {.postfix = {st->held.data, st->held.len}};
	struct span v[ALL_KEYS];

	if (!st->held.len)
		return;
	l.text = l.whole = st->held.data;
	l.len = l.whole_len = st->held.len;
	l.line = st->held_line;
	emit_begin(o, &l);
	bar_postfix(&b, keys, ALL_KEYS, v);
	emit_postfix(st, o, v, &tag);
	o->raw_of = NULL;
	buf_clear(&st->held);
}

static void hold(struct train_state *st, const struct emit *o, const struct input_line *l,
		 const struct span *v)
{
	buf_clear(&st->held);
	for (size_t i = 0; i < NEMO_STEP; i++)
		if (v[i].s)
			buf_printf(&st->held, "%s%s=%.*s", st->held.len ? ", " : "", keys[i],
				   (int)v[i].n, v[i].s);
	st->held_line = l->line;
	st->held_rank = o->rank;
}

static bool lightning_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct emit_tag tag = EMIT_NONE;
	struct span v[ALL_KEYS];
	struct bar b;
	int64_t epoch = take_bar(input_span(l), &b, v);
	double s;

	if (epoch < 0 || (v[NEMO_STEP].s && (v[NEMO_LOSS].s || v[NEMO_TIME].s)))
		return false;
	if (!b.n || (!b.total && epoch > 0))
		return true; /* no one knows how many steps the endless epochs before it had */
	tag.step = train_step((double)epoch * (double)b.total + (double)b.n);
	if (tag.step != st->step) {
		flush(st, o);
		emit_begin(o, l);
	}
	st->step = tag.step;
	hold(st, o, l, v);
	s = bar_step_s(&b);
	if (!l->redrawn && s > 0)
		emit_value(o, "step_time_ms", s * 1000, &tag);
	return true;
}

static const char *const words[] = {"Epoch ", NULL};

const struct train_dialect train_lightning = {
	.name = "lightning",
	.words = words,
	.line = lightning_line,
	.end = flush,
};

static int lightning_open(const struct probe_context *c, const struct probe_sink *sink,
			  struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_lightning, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_lightning = {
	.name = "lightning",
	.summary = "progress bar of Lightning",
	.example = "python main.py fit --trainer.max_steps 200",
	.open = lightning_open,
	.feed = train_feed,
	.finish = train_finish,
};
