/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Logs of training frameworks. A dialect is one const struct: a name and a function that looks at
 * one clean line and emits what it says. A dialect looks for its record anywhere in the line (a
 * progress bar may stand before it), takes the last one if two writers were glued together, and
 * reports a record that is not whole as bad instead of taking half of it. Lines without any of its
 * words do not reach it.
 *
 * Each dialect is a probe of its own name; probe_train_log.c tries all of them on each line.
 */
#ifndef FETTLE_PROBES_TRAIN_H
#define FETTLE_PROBES_TRAIN_H

#include "probes/emit.h"
#include "probes/probe.h"

/* What the dialects of one text know of each other. */
struct train_shared {
	bool step_time;     /* a framework's own timer gave step_time_ms */
	bool samples_per_s; /* throughput_samples_per_s is known from batch over step time */
};

/* What a dialect remembers from line to line; zero but for step and shared at the start. */
struct train_state {
	struct train_shared *shared;
	int64_t step;                 /* of the last record, -1 before it */
	int64_t total;                /* steps of the run, 0 unknown */
	double seq_length, batch;     /* tokens a sample, samples a step; 0 unknown */
	double examples, epoch_steps; /* samples and steps of an epoch; 0 unknown */
	bool told;       /* a record of training came, or `total` is what the text calls it */
	int block;       /* the block of lines that it is inside of, in the dialect's own numbers */
	bool ended;      /* the text said what it says once, at the end of a run */
	double before;   /* a number of the record before, NAN none */
	double epoch;    /* of the record before */
	struct buf held; /* text that waits for the lines behind it */
	int64_t held_line; /* where it began */
	int held_more;     /* lines that it may still take */
	int held_rank;
	char failure[160];   /* what the text says went wrong, "" nothing */
	int64_t failed_line; /* where it says so first */
};

struct train_dialect {
	const char *name;
	/* Words of which a line must hold one to be looked at, NULL-terminated; with `blocks` also
	 * each line while state.block or state.held is set. */
	const char *const *words;
	bool blocks;
	/* True when the line is of this dialect (emitted from it or reported it as bad). */
	bool (*line)(struct train_state *st, struct emit *o, const struct input_line *l);
	/* The text ends: emit what was held. May be NULL. */
	void (*end)(struct train_state *st, struct emit *o);
};

extern const struct train_dialect train_megatron, train_deepspeed, train_torchtitan,
	train_hf_trainer, train_nanogpt, train_jsonl, train_nemo, train_lightning, train_torchtune,
	train_llmc, train_mllog, train_torch_memory, train_nanochat, train_modded_nanogpt;

/* open, feed and finish of a probe over a NULL-terminated list of dialects. */
int train_open(const struct train_dialect *const *dialects, const struct probe_context *c,
	       const struct probe_sink *sink, struct probe_run **out, struct err *e);
int train_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e);
enum probe_status train_finish(struct probe_run *r, struct buf *detail);

/* Values that the dialects find in the first bytes of a text. */
int64_t train_count(const struct train_dialect *const *dialects, const char *head, size_t n);

/* Remember the first thing that the text says went wrong: without a value of training beside it,
 * the status is failed. */
void train_fail(struct train_state *st, int64_t line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A step that a text prints as a number: 29, 6.000, 2e+3. -1 when it is none. */
int64_t train_step(double v);

/* A field that ends at the end of a line that may go on is not trusted: is f whole? */
static inline bool train_is_whole(const struct input_line *l, struct span f)
{
	return (l->complete && !l->cut) || f.s + f.n < l->text + l->len;
}

/* The field that `rest` starts with, up to the first byte out of `stop`. False when rest is NULL or
 * the field is not whole. */
bool train_field(const struct input_line *l, struct span rest, const char *stop, struct span *f);

/* The number after `key` in t, as emit_token reads it: up to the first byte out of `stop`. False
 * when the key is not there or the number is not whole. */
static inline bool train_number(const struct input_line *l, struct span t, const char *key,
				const char *stop, double *out)
{
	struct span f;

	return train_field(l, span_after(t, key), stop, &f) && num_whole(f, out);
}

/* The same, emitted as a metric times `scale`; a word for "no value" is emitted as missing. */
static inline bool train_emit(struct emit *o, const struct input_line *l, struct span t,
			      const char *key, const char *stop, const char *metric, double scale,
			      const struct emit_tag *tag)
{
	struct span f;

	return train_field(l, span_after(t, key), stop, &f) && emit_token(o, metric, f, scale, tag);
}

#endif
