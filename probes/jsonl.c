/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/jsonl.h"

#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "probes/alias.h"

static void skip_blanks(struct span *t)
{
	while (t->n && (t->s[0] == ' ' || t->s[0] == '\t'))
		t->s++, t->n--;
}

static bool take(struct span *t, char c)
{
	skip_blanks(t);
	if (!t->n || t->s[0] != c)
		return false;
	t->s++, t->n--;
	return true;
}

static bool take_string(struct span *t, struct span *out)
{
	size_t i = 0;

	if (!take(t, '"'))
		return false;
	for (; i < t->n && t->s[i] != '"'; i++)
		if (t->s[i] == '\\')
			i++;
	if (i >= t->n)
		return false;
	*out = (struct span){t->s, i};
	*t = (struct span){t->s + i + 1, t->n - i - 1};
	return true;
}

/* A whole object or array, by its brackets; strings inside may hold any. */
static bool take_nested(struct span *t, struct span *out)
{
	struct span start = *t, unused;
	size_t depth = 0;

	do {
		char c = t->n ? t->s[0] : '\0';

		if (c == '"') {
			if (!take_string(t, &unused))
				return false;
			continue;
		}
		if (!t->n)
			return false;
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
		t->s++, t->n--;
	} while (depth);
	*out = (struct span){start.s, start.n - t->n};
	return true;
}

static bool take_word(struct span *t, struct span *out)
{
	size_t i = 0;

	while (i < t->n && !strchr(",]} \t", t->s[i]))
		i++;
	*out = (struct span){t->s, i};
	*t = (struct span){t->s + i, t->n - i};
	return i > 0;
}

static bool known_word(struct span w)
{
	double v;
	size_t used;

	if (span_eq(w, "true") || span_eq(w, "false") || span_eq(w, "null"))
		return true;
	return num_scan(w, &v, &used) != NUM_NONE && used == w.n;
}

static bool take_value(struct span *t, struct jsonl_member *m)
{
	skip_blanks(t);
	if (t->n && t->s[0] == '"') {
		m->kind = JSONL_STRING;
		return take_string(t, &m->value);
	}
	if (t->n && (t->s[0] == '{' || t->s[0] == '[')) {
		m->kind = JSONL_NESTED;
		return take_nested(t, &m->value);
	}
	m->kind = JSONL_WORD;
	return take_word(t, &m->value) && known_word(m->value);
}

int jsonl_next(struct jsonl *j, struct jsonl_member *m)
{
	bool first = !j->begun;

	if (j->ended)
		return 0;
	if (first && !take(&j->rest, '{'))
		return -1;
	j->begun = true;
	if (take(&j->rest, '}')) {
		j->ended = true;
		skip_blanks(&j->rest);
		return j->rest.n ? -1 : 0;
	}
	if (!first && !take(&j->rest, ','))
		return -1;
	if (!take_string(&j->rest, &m->key) || !take(&j->rest, ':') || !take_value(&j->rest, m))
		return -1;
	return 1;
}

bool jsonl_valid(struct span text)
{
	struct jsonl j = {.rest = text};
	struct jsonl_member m;
	int r;

	while ((r = jsonl_next(&j, &m)) > 0)
		;
	return r == 0;
}

/* Members that say what the others belong to. */
struct origin {
	int64_t step, t_us, rank;
};

static bool read_origin(struct span text, struct origin *w)
{
	struct jsonl j = {.rest = text};
	struct jsonl_member m;
	int64_t v;

	*w = (struct origin){-1, -1, -1};
	while (jsonl_next(&j, &m) > 0) {
		if (m.kind != JSONL_WORD || !num_whole_i64(m.value, &v) || v < 0)
			continue;
		if (span_eq(m.key, "step"))
			w->step = v;
		else if (span_eq(m.key, "t_us"))
			w->t_us = v;
		else if (span_eq(m.key, "rank") && v < INT32_MAX)
			w->rank = v;
	}
	return w->step >= 0;
}

/* A string with escapes is decoded by the real parser; it was one JSON string already. */
static void emit_text(struct emit *o, const char *key, struct span value)
{
	struct json *j = NULL;

	if (memchr(value.s, '\\', value.n) &&
	    json_parse("text", value.s - 1, value.n + 2, &j, NULL) == 0)
		value = span_of(json_text(j, ""));
	emit_fact(o, key, value);
	json_free(j);
}

static void emit_member(struct emit *o, const struct jsonl_member *m, const struct emit_tag *tag)
{
	_cleanup_free_ char *key = xstrndup(m->key.s, m->key.n);
	const char *why = num_missing(m->value);
	double v;

	if (m->kind == JSONL_WORD && num_whole(m->value, &v))
		emit_value(o, key, v, tag);
	else if (why && (m->kind == JSONL_WORD || str_eq(why, "nan") || str_eq(why, "inf")))
		emit_missing(o, key, why, tag);
	else if (m->kind == JSONL_WORD && !span_eq(m->value, "true") && !span_eq(m->value, "false"))
		emit_missing(o, key, "inf", tag);
	else
		emit_text(o, key, m->value);
}

bool jsonl_emit(struct emit *o, const struct input_line *l, bool needs_step)
{
	struct jsonl j = {.rest = input_span(l)};
	struct jsonl_member m;
	struct origin w;
	struct emit_tag tag = EMIT_NONE;

	if (!jsonl_valid(j.rest) || (!read_origin(j.rest, &w) && needs_step))
		return false;
	tag.step = w.step;
	tag.t_us = w.t_us;
	if (w.rank >= 0)
		o->rank = (int)w.rank;
	while (jsonl_next(&j, &m) > 0) {
		const struct alias *a = num_metric_name(m.key) ? NULL : alias_find(m.key);

		if (a && m.kind == JSONL_WORD)
			emit_token(o, a->metric, m.value, a->scale, &tag);
		if (m.kind == JSONL_NESTED || !num_metric_name(m.key) || span_eq(m.key, "step") ||
		    span_eq(m.key, "t_us") || span_eq(m.key, "rank"))
			continue;
		emit_member(o, &m, &tag);
	}
	return true;
}
