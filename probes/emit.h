/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a probe to its sink: fills in where a value comes from (file, line, rank, raw text), never
 * lets a number through that is not finite, counts what was found and what was bad, and turns the
 * counts into the probe's status.
 */
#ifndef FETTLE_PROBES_EMIT_H
#define FETTLE_PROBES_EMIT_H

#include "probes/input.h"
#include "probes/probe.h"

struct emit {
	struct probe_sink sink;
	char *file;      /* NULL if none was given */
	int64_t values;  /* finite ones */
	int64_t missing; /* values that are missing for a reason */
	int64_t facts;
	int64_t bad;      /* lines that are of this kind but broken */
	int64_t bad_line; /* the first of them */
	char bad_why[160];
	int rank; /* of the current line; a probe that reads it from the text sets it */
	char raw[PROBE_RAW_MAX + 1];
	const struct input_line *raw_of; /* the line that `raw` was made of; reset for each line */
};

void emit_open(struct emit *o, const struct probe_context *c, const struct probe_sink *sink);
void emit_close(struct emit *o);

/* To be called first for each line: what follows comes from it. */
void emit_begin(struct emit *o, const struct input_line *l);

/* What a value belongs to. NULL or EMIT_NONE: nothing. */
struct emit_tag {
	int64_t step, t_us; /* -1: none */
	const struct kv *labels;
	size_t n_labels;
};
#define EMIT_NONE ((struct emit_tag){.step = -1, .t_us = -1})

/* A value of the current line; nan and inf become missing ones. */
void emit_value(struct emit *o, const char *metric, double value, const struct emit_tag *tag);
void emit_missing(struct emit *o, const char *metric, const char *why, const struct emit_tag *tag);
/* A number or a word that stands for none, times `scale`. False (nothing emitted) if t is neither.
 */
bool emit_token(struct emit *o, const char *metric, struct span t, double scale,
		const struct emit_tag *tag);
void emit_fact(struct emit *o, const char *key, struct span text);

/* The current line is broken; `why` says what is wrong with it. */
void emit_bad(struct emit *o, const char *why);

/* absent (nothing was found), partial (something bad was seen) or ok; detail says what. */
enum probe_status emit_status(const struct emit *o, struct buf *detail);

/* A label list of at most EMIT_LABELS_MAX, on the stack: keys are borrowed, values copied. It
 * begins with n set to 0; in lines that come by the million no initialiser, which would clear all
 * of it. */
enum { EMIT_LABELS_MAX = 8, EMIT_LABEL_VALUE_MAX = 64 };
struct emit_labels {
	struct kv v[EMIT_LABELS_MAX];
	char text[EMIT_LABELS_MAX][EMIT_LABEL_VALUE_MAX];
	size_t n;
};
void emit_label(struct emit_labels *ls, const char *key, struct span value);

#endif
