/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lightning's progress bar:
 *
 *   Epoch 0: 100%|####| 10/10 [01:49<00:00,  0.09it/s, v_num=2, train_loss=1.25, val_loss=1.5]
 *
 * The step is the epoch's number times its length and the count. Each drawing gives the loss of its
 * step once; the time of a step is that of the drawing that stood last in its line, a mean over the
 * epoch. CSVLogger's metrics.csv is better: probe_metrics_csv.c. A bar of NeMo is left to NeMo.
 */
#include <math.h>

#include "orchestrator/base/mem.h"
#include "probes/bar.h"
#include "probes/train.h"

enum { KEYS = 5, VAL_LOSS = KEYS, NEMO_TIME, ALL_KEYS };

static const char *const keys[ALL_KEYS] = {
	"train_loss", "train_loss_step",       "loss", "loss_step", "grad_norm",
	"val_loss",   "train_step_timing in s"};
static const char *const metrics[KEYS] = {"loss", "loss", "loss", "loss", "grad_norm"};

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
	emit_val_loss(st, o, v[VAL_LOSS], tag);
}

static bool lightning_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct emit_tag tag = EMIT_NONE;
	struct span v[ALL_KEYS];
	struct bar b;
	int64_t epoch;
	double s;

	if (!bar_find(input_span(l), &b) || (epoch = epoch_of(b.desc)) < 0)
		return false;
	bar_postfix(&b, keys, ALL_KEYS, v);
	if (v[NEMO_TIME].s)
		return false;
	tag.step = train_step((double)epoch * (double)b.total + (double)b.n);
	if (tag.step != st->step && b.n > 0)
		emit_postfix(st, o, v, &tag);
	st->step = tag.step;
	s = bar_step_s(&b);
	if (!l->redrawn && b.n > 0 && s > 0)
		emit_value(o, "step_time_ms", s * 1000, &tag);
	return true;
}

static const char *const words[] = {"Epoch ", NULL};

const struct train_dialect train_lightning = {
	.name = "lightning",
	.words = words,
	.line = lightning_line,
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
