/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/reader.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/locate.h"
#include "orchestrator/script/luajson.h"

enum {
	FIELDS_MAX = 64, /* of one schema; the largest has half */
	SHOWN_MAX = 60,  /* bytes of a wrong value that an error shows */
};

/* --- where -------------------------------------------------------------------------------- */

/* The rest of path behind the layer's mount; NULL if path is not below it. */
static const char *below(const struct reader_layer *l, const char *path)
{
	size_t n = strlen(l->mount);

	if (strncmp(path, l->mount, n))
		return NULL;
	return !n || !path[n] || path[n] == '.' || path[n] == '[' ? path + n : NULL;
}

const struct reader_layer *reader_layer_of(const struct reader *r, const char *path)
{
	for (size_t i = 0; i < r->n; i++) {
		const char *rest = below(&r->layers[i], path);

		if (rest && fieldpath_get(r->layers[i].value, rest))
			return &r->layers[i];
	}
	for (size_t i = 0; i < r->n; i++)
		if (below(&r->layers[i], path))
			return &r->layers[i];
	return &r->layers[0];
}

/* Path of the field in its own file; heap. */
static char *own_path(const struct reader_layer *l, const char *path)
{
	const char *rest = below(l, path);

	if (!rest)
		return xstrdup(path);
	if (!*l->prefix)
		return xstrdup(*rest == '.' ? rest + 1 : rest);
	return xasprintf("%s%s%s", l->prefix, *rest && !strchr(".[", *rest) ? "." : "", rest);
}

struct place reader_place(const struct reader *r, const char *path)
{
	const struct reader_layer *l = reader_layer_of(r, path);
	_cleanup_free_ char *own = own_path(l, path);
	struct place at = {.file = xstrdup(l->src->path), .line = locate_line(l->src->text, own)};

	return at;
}

int reader_fault(const struct reader *r, const char *path, struct err *e, const char *fmt, ...)
{
	const struct reader_layer *l = reader_layer_of(r, path);
	_cleanup_free_ char *own = own_path(l, path), *text = NULL;
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	text = buf_take(&b);
	return err_set(e, ERR_RECIPE, "%s:%d: %s%s%s", l->src->path, locate_line(l->src->text, own),
		       own, *own ? ": " : "", text);
}

/* --- what was found ----------------------------------------------------------------------- */

void reader_number_text(double v, struct buf *out)
{
	struct buf b = {0};
	double back;

	if (v == floor(v) && fabs(v) < 1e15) {
		buf_printf(out, "%.0f", v == 0 ? 0.0 : v);
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		buf_clear(&b);
		buf_printf(&b, "%.*g", digits, v);
		if (str_to_double(b.data, &back) && back == v)
			break;
	}
	buf_str(out, b.data);
	buf_free(&b);
}

static bool is_function(const struct json *v)
{
	return json_type(v) == JSON_OBJECT && json_get(v, LUAJSON_FUNCTION);
}

static void describe(const struct json *v, struct buf *out)
{
	const char *text;

	switch (json_type(v)) {
	case JSON_NULL:
		buf_str(out, "nothing");
		return;
	case JSON_BOOL:
		buf_str(out, json_bool(v, false) ? "true" : "false");
		return;
	case JSON_NUMBER:
		reader_number_text(json_number(v, 0), out);
		return;
	case JSON_STRING:
		text = json_text(v, "");
		buf_printf(out, "\"%.*s\"%s", SHOWN_MAX, text,
			   strlen(text) > SHOWN_MAX ? "..." : "");
		return;
	case JSON_ARRAY:
		buf_str(out, json_len(v) ? "a list" : "an empty table");
		return;
	case JSON_OBJECT:
		buf_str(out, is_function(v) ? "a function" : "a table with names");
		return;
	}
}

int reader_expected(const struct reader *r, const struct json *v, const char *path,
		    const char *what, struct err *e)
{
	struct buf got = {0};
	int rc;

	describe(v, &got);
	rc = reader_fault(r, path, e, "expected %s, got %s", what, got.data);
	buf_free(&got);
	return rc;
}

/* --- one field ---------------------------------------------------------------------------- */

static bool bounded(const struct field *f)
{
	return f->min != 0 || f->max != 0 || f->above;
}

static double upper(const struct field *f)
{
	return f->max > f->min ? f->max : HUGE_VAL;
}

static void describe_range(const struct field *f, struct buf *out)
{
	if (!bounded(f))
		return;
	if (isinf(upper(f))) {
		buf_str(out, f->above ? " > " : " >= ");
		reader_number_text(f->min, out);
		return;
	}
	buf_str(out, f->above ? " above " : " from ");
	reader_number_text(f->min, out);
	buf_str(out, f->above ? " and up to " : " to ");
	reader_number_text(f->max, out);
}

static bool in_range(const struct field *f, double v)
{
	return !bounded(f) || ((f->above ? v > f->min : v >= f->min) && v <= upper(f));
}

static int number(const struct reader *r, const struct field *f, const struct json *v,
		  const char *path, bool whole, double *out, struct err *e)
{
	double x = json_number(v, NAN);
	struct buf what = {0};
	int rc;

	if (json_type(v) == JSON_NUMBER && in_range(f, x) && (!whole || x == floor(x))) {
		*out = x;
		return 0;
	}
	buf_str(&what, whole ? "a whole number" : "a number");
	describe_range(f, &what);
	if (f->unit)
		buf_printf(&what, " (%s)", f->unit);
	rc = reader_expected(r, v, path, what.data, e);
	buf_free(&what);
	return rc;
}

int reader_text(const struct reader *r, const struct json *v, const char *path, char **out,
		struct err *e)
{
	if (json_type(v) != JSON_STRING || !*json_text(v, ""))
		return reader_expected(r, v, path, "a text that is not empty", e);
	free(*out);
	*out = xstrdup(json_text(v, ""));
	return 0;
}

static int word(const struct reader *r, const struct field *f, const struct json *v,
		const char *path, int *out, struct err *e)
{
	const char *text = json_text(v, NULL), *near;
	struct buf what = {0};
	int rc;

	for (int i = 0; text && f->words[i]; i++) {
		if (str_eq(text, f->words[i])) {
			*out = i;
			return 0;
		}
	}
	buf_str(&what, "one of ");
	for (int i = 0; f->words[i]; i++)
		buf_printf(&what, "%s\"%s\"", i ? ", " : "", f->words[i]);
	near = text ? str_nearest(text, f->words) : NULL;
	if (near)
		buf_printf(&what, " (perhaps \"%s\")", near);
	rc = reader_expected(r, v, path, what.data, e);
	buf_free(&what);
	return rc;
}

int reader_texts(const struct reader *r, const struct json *v, const char *path, struct strv *out,
		 struct err *e)
{
	struct strv list = {0};
	struct buf text = {0};
	size_t i = 0;
	int rc = 0;

	if (json_type(v) != JSON_ARRAY)
		return reader_expected(r, v, path, "a list of texts", e);
	for (const struct json *item = json_first(v); item && !rc; item = json_next(item)) {
		_cleanup_free_ char *at = fieldpath_item(path, ++i);

		buf_clear(&text);
		if (json_type(item) == JSON_NUMBER)
			reader_number_text(json_number(item, 0), &text);
		else if (json_type(item) == JSON_STRING)
			buf_str(&text, json_text(item, ""));
		else
			rc = reader_expected(r, item, at, "a text or a number", e);
		strv_add(&list, text.data ? text.data : "");
	}
	buf_free(&text);
	if (rc) {
		strv_free(&list);
		return rc;
	}
	strv_free(out);
	*out = list;
	return 0;
}

static int function(const struct reader *r, const struct json *v, const char *path, char **out,
		    struct err *e)
{
	if (!is_function(v))
		return reader_expected(r, v, path, "a function", e);
	free(*out);
	*out = xasprintf("%s:%s", reader_layer_of(r, path)->src->name,
			 json_text(json_get(v, LUAJSON_FUNCTION), ""));
	return 0;
}

static int read_field(const struct reader *r, const struct field *f, const struct json *v,
		      const char *path, void *out, struct err *e)
{
	double scale = f->scale != 0 ? f->scale : 1, x = 0;
	int rc, i = 0;

	switch (f->type) {
	case FIELD_TEXT:
		return reader_text(r, v, path, out, e);
	case FIELD_INT:
		rc = number(r, f, v, path, true, &x, e);
		if (!rc && (x < INT_MIN || x > INT_MAX))
			rc = reader_expected(r, v, path, "a smaller number", e);
		if (!rc)
			*(int *)out = (int)x;
		return rc;
	case FIELD_INT64:
		rc = number(r, f, v, path, true, &x, e);
		if (!rc)
			*(int64_t *)out = (int64_t)x;
		return rc;
	case FIELD_SIZE:
		rc = number(r, f, v, path, false, &x, e);
		if (!rc && x * scale > 9e15)
			rc = reader_expected(r, v, path, "a smaller number", e);
		if (!rc)
			*(int64_t *)out = (int64_t)llround(x * scale);
		return rc;
	case FIELD_NUMBER:
		rc = number(r, f, v, path, false, &x, e);
		if (!rc)
			*(double *)out = x * scale;
		return rc;
	case FIELD_BOOL:
		if (json_type(v) != JSON_BOOL)
			return reader_expected(r, v, path, "true or false", e);
		*(bool *)out = json_bool(v, false);
		return 0;
	case FIELD_WORD:
		return word(r, f, v, path, out, e);
	case FIELD_CHOICE:
		rc = word(r, f, v, path, &i, e);
		if (!rc) {
			free(*(char **)out);
			*(char **)out = xstrdup(f->words[i]);
		}
		return rc;
	case FIELD_TEXTS:
		return reader_texts(r, v, path, out, e);
	case FIELD_FUNCTION:
		return function(r, v, path, out, e);
	case FIELD_TABLE:
		return reader_table(r, f->sub, v, path, out, e);
	case FIELD_CUSTOM:
		return f->read(r, v, path, out, e);
	}
	return 0;
}

/* --- a table ------------------------------------------------------------------------------ */

char *reader_did_you_mean(const char *word, const char *const *words)
{
	const char *near = str_nearest(word, words);

	for (size_t i = 0; words[i]; i++)
		if (!strcasecmp(word, words[i]))
			near = words[i];
	return near ? xasprintf(" (did you mean \"%s\"?)", near) : xstrdup("");
}

static int unknown_field(const struct reader *r, const struct schema *s, const char *name,
			 const char *path, struct err *e)
{
	_cleanup_free_ char *at = fieldpath_child(path, name);
	const char *names[FIELDS_MAX + 1] = {NULL};
	_cleanup_free_ char *hint = NULL;
	struct buf list = {0};
	int rc;

	for (size_t i = 0; s->fields[i].name && i < FIELDS_MAX; i++) {
		names[i] = s->fields[i].name;
		buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	}
	hint = reader_did_you_mean(name, names);
	rc = reader_fault(r, at, e, "there is no such field in %s%s; the fields are: %s", s->name,
			  hint, list.data);
	buf_free(&list);
	return rc;
}

static int check_names(const struct reader *r, const struct schema *s, const struct json *v,
		       const char *path, struct err *e)
{
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		const char *name = json_key(m);
		const struct field *f = s->fields;

		while (f->name && strcmp(f->name, name))
			f++;
		if (!f->name)
			return unknown_field(r, s, name, path, e);
	}
	return 0;
}

int reader_table(const struct reader *r, const struct schema *s, const struct json *v,
		 const char *path, void *out, struct err *e)
{
	bool empty = json_type(v) == JSON_ARRAY && !json_len(v);
	_cleanup_free_ char *what = xasprintf("a table with the fields of %s", s->name);
	int rc;

	if ((json_type(v) != JSON_OBJECT && !empty) || is_function(v))
		return reader_expected(r, v, path, what, e);
	rc = empty ? 0 : check_names(r, s, v, path, e);
	for (const struct field *f = s->fields; !rc && f->name; f++) {
		_cleanup_free_ char *at = fieldpath_child(path, f->name);
		const struct json *member = empty ? NULL : json_get(v, f->name);

		if (member && json_type(member) != JSON_NULL)
			rc = read_field(r, f, member, at, (char *)out + f->offset, e);
		else if (f->required)
			rc = reader_fault(r, at, e, "missing: %s%s%s", f->doc,
					  f->example ? ", e.g. " : "",
					  f->example ? f->example : "");
	}
	return rc;
}

/* --- layers ------------------------------------------------------------------------------- */

static bool mergeable(const struct json *v)
{
	return v && json_type(v) == JSON_OBJECT && !is_function(v);
}

struct json *reader_merge(const struct json *over, const struct json *under)
{
	struct json *out;

	if (mergeable(under) && over && json_type(over) == JSON_ARRAY && !json_len(over))
		return json_copy(under);
	if (!mergeable(over) || !mergeable(under))
		return json_copy(over ? over : under);
	out = json_object();
	for (const struct json *m = json_first(under); m; m = json_next(m))
		json_set(out, json_key(m), reader_merge(json_get(over, json_key(m)), m));
	for (const struct json *m = json_first(over); m; m = json_next(m))
		if (!json_get(under, json_key(m)))
			json_set(out, json_key(m), json_copy(m));
	return out;
}

/* --- the reference ------------------------------------------------------------------------ */

static void kind_text(const struct field *f, struct buf *out)
{
	switch (f->type) {
	case FIELD_TEXT:
		buf_str(out, "text");
		break;
	case FIELD_INT:
	case FIELD_INT64:
		buf_str(out, "whole number");
		describe_range(f, out);
		break;
	case FIELD_SIZE:
	case FIELD_NUMBER:
		buf_str(out, "number");
		describe_range(f, out);
		break;
	case FIELD_BOOL:
		buf_str(out, "true or false");
		break;
	case FIELD_WORD:
	case FIELD_CHOICE:
		for (int i = 0; f->words[i]; i++)
			buf_printf(out, "%s`\"%s\"`", i ? ", " : "", f->words[i]);
		break;
	case FIELD_TEXTS:
		buf_str(out, "list of texts");
		break;
	case FIELD_FUNCTION:
		buf_str(out, "function");
		break;
	case FIELD_TABLE:
		buf_printf(out, "table: [%s](#%s)", f->sub->name, f->sub->name);
		break;
	case FIELD_CUSTOM:
		buf_str(out, f->kind);
		break;
	}
}

void reader_reference(const struct schema *s, struct buf *out)
{
	for (const struct field *f = s->fields; f->name; f++) {
		const char *quote = f->example ? "`" : "";

		buf_printf(out, "| `%s` | ", f->name);
		kind_text(f, out);
		buf_printf(out, " | %s | ", f->unit ? f->unit : "");
		buf_str(out, f->required ? "required" : f->dflt ? f->dflt : "none");
		buf_printf(out, " | %s | %s%s%s |\n", f->doc, quote, f->example ? f->example : "",
			   quote);
	}
}
