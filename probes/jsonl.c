/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/jsonl.h"

#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "probes/alias.h"
#include "probes/vec.h"

/* Members that are read once; those of a longer object twice, since its step may stand last. */
enum { KEPT_MAX = 32 };

static inline void skip_blanks(struct span *t)
{
	while (t->n && (t->s[0] == ' ' || t->s[0] == '\t'))
		t->s++, t->n--;
}

static inline bool take(struct span *t, char c)
{
	skip_blanks(t);
	if (!t->n || t->s[0] != c)
		return false;
	t->s++, t->n--;
	return true;
}

/* Where the next quote or backslash of t is from i on, or t.n. */
static size_t mark_at(struct span t, size_t i)
{
	for (; i + VEC_BYTES <= t.n; i += VEC_BYTES) {
		vec v = vec_load(t.s + i);
		uint32_t marks = vec_bits((v == vec_of('"')) | (v == vec_of('\\')));

		if (marks)
			return i + (unsigned)__builtin_ctz(marks);
	}
	while (i < t.n && t.s[i] != '"' && t.s[i] != '\\')
		i++;
	return i;
}

static bool take_string(struct span *t, struct span *out)
{
	size_t i;

	if (!take(t, '"'))
		return false;
	for (i = mark_at(*t, 0); i < t->n && t->s[i] == '\\';)
		i = mark_at(*t, i + 2);
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
	static const bool ends[UINT8_MAX + 1] = {['\0'] = true, ['\t'] = true, [' '] = true,
						 [','] = true,  [']'] = true,  ['}'] = true};
	size_t i = 0;

	while (i < t->n && !ends[(unsigned char)t->s[i]])
		i++;
	*out = (struct span){t->s, i};
	*t = (struct span){t->s + i, t->n - i};
	return i > 0;
}

static bool known_word(struct jsonl_member *m)
{
	struct span w = m->value;
	size_t used;
	enum num_kind k;

	m->is_number = num_whole(w, &m->number);
	if (m->is_number)
		return true;
	k = num_scan(w, &m->number, &used);
	m->is_number = k == NUM_FINITE;
	if (k != NUM_NONE)
		return used == w.n;
	return span_eq(w, "true") || span_eq(w, "false") || span_eq(w, "null");
}

static bool take_value(struct span *t, struct jsonl_member *m)
{
	skip_blanks(t);
	m->is_number = false;
	if (t->n && t->s[0] == '"') {
		m->kind = JSONL_STRING;
		return take_string(t, &m->value);
	}
	if (t->n && (t->s[0] == '{' || t->s[0] == '[')) {
		m->kind = JSONL_NESTED;
		return take_nested(t, &m->value);
	}
	m->kind = JSONL_WORD;
	return take_word(t, &m->value) && known_word(m);
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
	int64_t other; /* the step under another logger's name */
};

static void take_origin(struct origin *w, const struct jsonl_member *m)
{
	int64_t *is = span_eq(m->key, "step")            ? &w->step
		      : span_eq(m->key, "current_steps") ? &w->other /* LLaMA-Factory */
		      : span_eq(m->key, "_step")         ? &w->other /* Weights & Biases */
		      : span_eq(m->key, "t_us")          ? &w->t_us
		      : span_eq(m->key, "rank")          ? &w->rank
							 : NULL;
	int64_t v;

	if (is && m->is_number && num_whole_i64(m->value, &v) && v >= 0 &&
	    (is != &w->rank || v < INT32_MAX))
		*is = v;
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

/* A member whose key is a metric's name. */
static void emit_member(struct emit *o, const struct jsonl_member *m, const struct emit_tag *tag)
{
	char key[NUM_METRIC_NAME_MAX + 1];
	const char *why;

	memcpy(key, m->key.s, m->key.n);
	key[m->key.n] = '\0';
	if (m->is_number) {
		emit_value(o, key, m->number, tag);
		return;
	}
	why = num_missing(m->value);
	if (why && (m->kind == JSONL_WORD || str_eq(why, "nan") || str_eq(why, "inf")))
		emit_missing(o, key, why, tag);
	else if (m->kind == JSONL_WORD && !span_eq(m->value, "true") && !span_eq(m->value, "false"))
		emit_missing(o, key, "inf", tag);
	else
		emit_text(o, key, m->value);
}

static void emit_any(struct emit *o, const struct jsonl_member *m, const struct emit_tag *tag)
{
	bool own = num_metric_name(m->key);
	const struct alias *a = own ? alias_find_own(m->key) : alias_find(m->key);

	if (a && m->kind == JSONL_WORD)
		emit_token(o, a->metric, m->value, a->scale, tag);
	if (own && m->kind != JSONL_NESTED && m->key.s[0] != '_' && !span_eq(m->key, "step") &&
	    !span_eq(m->key, "t_us") && !span_eq(m->key, "rank") &&
	    !span_eq(m->key, "current_steps"))
		emit_member(o, m, tag);
}

bool jsonl_emit(struct emit *o, const struct input_line *l, bool needs_step)
{
	struct jsonl_member kept[KEPT_MAX], m;
	struct jsonl j = {.rest = input_span(l)}, behind = j;
	struct origin w = {-1, -1, -1, -1};
	struct emit_tag tag = EMIT_NONE;
	size_t n = 0;
	int r;

	while ((r = jsonl_next(&j, &m)) > 0) {
		take_origin(&w, &m);
		if (n == KEPT_MAX)
			continue;
		kept[n++] = m;
		behind = j;
	}
	if (r < 0 || (w.step < 0 && needs_step))
		return false;
	tag.step = w.step >= 0 ? w.step : w.other;
	tag.t_us = w.t_us;
	if (w.rank >= 0)
		o->rank = (int)w.rank;
	for (size_t i = 0; i < n; i++)
		emit_any(o, &kept[i], &tag);
	while (jsonl_next(&behind, &m) > 0)
		emit_any(o, &m, &tag);
	return true;
}
