/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/emit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* Facts are names, versions and messages; a longer text is cut. */
enum { FACT_TEXT_MAX = 1024 };

void emit_open(struct emit *o, const struct probe_context *c, const struct probe_sink *sink)
{
	*o = (struct emit){.sink = *sink, .rank = -1, .file = xstrdup(c ? c->file : NULL)};
}

void emit_close(struct emit *o)
{
	free(o->file);
	o->file = NULL;
}

void emit_begin(struct emit *o, const struct input_line *l)
{
	o->raw_of = l;
	o->rank = l->rank;
	o->raw[0] = '\0';
}

/* At most n bytes of s that do not end inside a UTF-8 sequence. */
static size_t whole_chars(const char *s, size_t len, size_t n)
{
	if (len <= n)
		return len;
	while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static inline const char *raw_text(struct emit *o)
{
	size_t n;

	if (!o->raw_of || o->raw[0])
		return o->raw;
	if (o->raw_of->len <= PROBE_RAW_MAX && !o->raw_of->text[o->raw_of->len])
		return o->raw_of->text;
	n = whole_chars(o->raw_of->text, o->raw_of->len, PROBE_RAW_MAX);
	memcpy(o->raw, o->raw_of->text, n);
	o->raw[n] = '\0';
	return o->raw;
}

static const char *host_of(const struct emit *o)
{
	return o->raw_of && o->raw_of->host ? o->raw_of->host : "";
}

static inline void send(struct emit *o, const char *metric, double value, const char *missing,
			const struct emit_tag *tag)
{
	static const struct emit_tag none = EMIT_NONE;
	const struct input_line *l = o->raw_of;

	if (!o->sink.value)
		return;
	tag = tag ? tag : &none;
	o->sink.value(o->sink.ctx, &(struct probe_value){
					   .metric = metric,
					   .value = value,
					   .missing = missing,
					   .step = tag->step,
					   .t_us = tag->t_us,
					   .rank = o->rank,
					   .local_rank = l ? l->local_rank : -1,
					   .host = host_of(o),
					   .labels = tag->labels,
					   .n_labels = tag->n_labels,
					   .file = o->file,
					   .line = l ? l->line : 0,
					   .raw = raw_text(o),
				   });
}

void emit_value(struct emit *o, const char *metric, double value, const struct emit_tag *tag)
{
	if (!isfinite(value)) {
		emit_missing(o, metric, isnan(value) ? "nan" : "inf", tag);
		return;
	}
	o->values++;
	send(o, metric, value, NULL, tag);
}

void emit_missing(struct emit *o, const char *metric, const char *why, const struct emit_tag *tag)
{
	o->missing++;
	send(o, metric, 0, why, tag);
}

/* No word that stands for a missing value is a whole number too. */
bool emit_token(struct emit *o, const char *metric, struct span t, double scale,
		const struct emit_tag *tag)
{
	const char *why;
	double v;

	if (num_whole(t, &v)) {
		emit_value(o, metric, v * scale, tag);
		return true;
	}
	why = num_missing(t);
	if (why)
		emit_missing(o, metric, why, tag);
	return why;
}

void emit_fact(struct emit *o, const char *key, struct span text)
{
	size_t n = whole_chars(text.s, text.n, FACT_TEXT_MAX);
	char copy[FACT_TEXT_MAX + 1];
	struct probe_fact f = {
		.key = key,
		.text = copy,
		.rank = o->rank,
		.local_rank = o->raw_of ? o->raw_of->local_rank : -1,
		.host = host_of(o),
		.file = o->file,
		.line = o->raw_of ? o->raw_of->line : 0,
	};

	o->facts++;
	if (n)
		memcpy(copy, text.s, n);
	copy[n] = '\0';
	if (o->sink.fact)
		o->sink.fact(o->sink.ctx, &f);
}

void emit_bad(struct emit *o, const char *why)
{
	if (!o->bad++) {
		o->bad_line = o->raw_of ? o->raw_of->line : 0;
		str_copy(o->bad_why, sizeof(o->bad_why), why);
	}
	if (o->sink.ignored) {
		struct probe_ignored i = {why, o->raw_of ? o->raw_of->line : 0,
					  o->raw_of ? raw_text(o) : ""};

		o->sink.ignored(o->sink.ctx, &i);
	}
}

enum probe_status emit_status(const struct emit *o, struct buf *detail)
{
	bool found = o->values || o->missing || o->facts;

	if (o->bad && detail)
		buf_printf(detail, "%lld bad line%s, the first is line %lld: %s", (long long)o->bad,
			   o->bad == 1 ? "" : "s", (long long)o->bad_line, o->bad_why);
	if (!found && !o->bad && detail)
		buf_str(detail, "nothing of this kind in the text");
	if (!found)
		return PROBE_ABSENT;
	return o->bad ? PROBE_PARTIAL : PROBE_OK;
}

void emit_label(struct emit_labels *ls, const char *key, struct span value)
{
	size_t n = whole_chars(value.s, value.n, EMIT_LABEL_VALUE_MAX - 1);

	if (ls->n == EMIT_LABELS_MAX)
		return;
	if (n)
		memcpy(ls->text[ls->n], value.s, n);
	ls->text[ls->n][n] = '\0';
	ls->v[ls->n].key = (char *)(uintptr_t)key;
	ls->v[ls->n].value = ls->text[ls->n];
	ls->n++;
}
