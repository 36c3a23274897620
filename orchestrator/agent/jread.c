/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/jread.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* Our own files nest 4 deep; yajl_tree_free recurses once a level. */
enum { DEPTH_MAX = 32 };

int jread_fail(struct jread *r, const char *key, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	if (r->rc)
		return r->rc;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	r->rc = err_set(r->e, ERR_PARSE, "%s: %s%s%s%s%s", r->file, r->where,
			r->where[0] && key ? "." : "", key ? key : "",
			r->where[0] || key ? ": " : "", b.data);
	buf_free(&b);
	return r->rc;
}

/* What yajl does not bound: depth, and NUL inside strings (its tree would cut them in silence). */
static bool scan(struct jread *r, const char *text, size_t n)
{
	int depth = 0;
	bool quoted = false;
	size_t line = 1;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		line += c == '\n';
		if (quoted && c == '\\') {
			if (i + 5 < n && memcmp(text + i + 1, "u0000", 5) == 0)
				return jread_fail(r, NULL, "line %zu: a string holds \\u0000",
						  line),
				       false;
			i++;
		} else if (c == '"') {
			quoted = !quoted;
		} else if (c == '\0') {
			return jread_fail(r, NULL, "line %zu: a zero byte", line), false;
		} else if (!quoted && (c == '[' || c == '{') && ++depth > DEPTH_MAX) {
			return jread_fail(r, NULL, "line %zu: nested deeper than %d", line,
					  DEPTH_MAX),
			       false;
		} else if (!quoted && (c == ']' || c == '}')) {
			depth--;
		}
	}
	return true;
}

yajl_val jread_parse(struct jread *r, const char *text, size_t n)
{
	_cleanup_free_ char *copy = NULL;
	char why[256] = "";
	yajl_val v;

	if (!scan(r, text, n))
		return NULL;
	copy = xstrndup(text, n);
	v = yajl_tree_parse(copy, why, sizeof why);
	why[strcspn(why, "\n")] = '\0';
	if (!v)
		jread_fail(r, NULL, "not JSON: %s", why[0] ? why : "it is empty or cut");
	return v;
}

static const char *type_word(yajl_val v)
{
	if (!v)
		return "nothing";
	switch (v->type) {
	case yajl_t_string:
		return "text";
	case yajl_t_number:
		return "a number";
	case yajl_t_object:
		return "an object";
	case yajl_t_array:
		return "an array";
	case yajl_t_true:
	case yajl_t_false:
		return "true or false";
	case yajl_t_null:
		return "null";
	case yajl_t_any:
		break;
	}
	return "something else";
}

yajl_val jread_get(yajl_val object, const char *key)
{
	if (!YAJL_IS_OBJECT(object))
		return NULL;
	for (size_t i = 0; i < object->u.object.len; i++)
		if (strcmp(object->u.object.keys[i], key) == 0)
			return object->u.object.values[i];
	return NULL;
}

void jread_enter(struct jread *r, const char *member)
{
	snprintf(r->where, sizeof r->where, "%s", member);
}

void jread_enter_nth(struct jread *r, const char *array, size_t i)
{
	snprintf(r->where, sizeof r->where, "%s[%zu]", array, i);
}

void jread_leave(struct jread *r)
{
	r->where[0] = '\0';
}

const char *jread_text(struct jread *r, yajl_val object, const char *key, const char *dflt)
{
	yajl_val v = jread_get(object, key);

	if (!v)
		return dflt;
	if (!YAJL_IS_STRING(v)) {
		jread_fail(r, key, "expected text, found %s", type_word(v));
		return dflt;
	}
	return v->u.string;
}

const char *jread_need_text(struct jread *r, yajl_val object, const char *key)
{
	if (!jread_get(object, key))
		jread_fail(r, key, "is missing (text)");
	return jread_text(r, object, key, "");
}

int64_t jread_int(struct jread *r, yajl_val object, const char *key, int64_t dflt, int64_t min,
		  int64_t max)
{
	yajl_val v = jread_get(object, key);

	if (!v)
		return dflt;
	if (!YAJL_IS_INTEGER(v)) {
		jread_fail(r, key, "expected a whole number, found %s",
			   YAJL_IS_NUMBER(v) ? v->u.number.r : type_word(v));
		return dflt;
	}
	if (v->u.number.i < min || v->u.number.i > max) {
		jread_fail(r, key, "%lld is not within %lld..%lld", v->u.number.i, (long long)min,
			   (long long)max);
		return dflt;
	}
	return v->u.number.i;
}

int64_t jread_need_int(struct jread *r, yajl_val object, const char *key, int64_t min, int64_t max)
{
	if (!jread_get(object, key))
		jread_fail(r, key, "is missing (a whole number)");
	return jread_int(r, object, key, min, min, max);
}

yajl_val jread_object(struct jread *r, yajl_val object, const char *key)
{
	yajl_val v = jread_get(object, key);

	if (v && !YAJL_IS_OBJECT(v)) {
		jread_fail(r, key, "expected an object, found %s", type_word(v));
		return NULL;
	}
	return v;
}

yajl_val jread_array(struct jread *r, yajl_val object, const char *key, size_t max)
{
	yajl_val v = jread_get(object, key);

	if (!v)
		return NULL;
	if (!YAJL_IS_ARRAY(v)) {
		jread_fail(r, key, "expected an array, found %s", type_word(v));
		return NULL;
	}
	if (v->u.array.len > max) {
		jread_fail(r, key, "holds %zu elements; at most %zu are read", v->u.array.len, max);
		return NULL;
	}
	return v;
}

void jread_texts(struct jread *r, yajl_val object, const char *key, size_t max, struct strv *out)
{
	yajl_val list = jread_array(r, object, key, max);

	for (size_t i = 0; list && i < list->u.array.len; i++) {
		yajl_val v = list->u.array.values[i];

		if (!YAJL_IS_STRING(v)) {
			jread_fail(r, key, "element %zu: expected text, found %s", i, type_word(v));
			return;
		}
		strv_add(out, v->u.string);
	}
}

void jread_pairs(struct jread *r, yajl_val object, const char *key, size_t max, struct kvs *out)
{
	yajl_val map = jread_object(r, object, key);

	if (map && map->u.object.len > max) {
		jread_fail(r, key, "holds %zu members; at most %zu are read", map->u.object.len,
			   max);
		return;
	}
	for (size_t i = 0; map && i < map->u.object.len; i++) {
		const char *name = map->u.object.keys[i];
		yajl_val v = map->u.object.values[i];

		if (!YAJL_IS_STRING(v)) {
			jread_fail(r, key, "%s: expected text, found %s", name, type_word(v));
			return;
		}
		kvs_set(out, name, v->u.string);
	}
}
