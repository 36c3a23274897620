/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

/* `struct json` is never defined: it is a cJSON under another name. */
static struct json *wrap(cJSON *c)
{
	return (struct json *)c;
}

static cJSON *node(const struct json *j)
{
	return (cJSON *)(uintptr_t)j;
}

/* Without memory there is no going on (see mem.h): cJSON would leave a member out, or call a good
 * text malformed, and a block would be written without it, or a good result refused. */
static void *node_memory(size_t n)
{
	return xmalloc(n);
}

__attribute__((constructor)) static void use_our_memory(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){node_memory, free});
}

static struct json *fresh(cJSON *c)
{
	return wrap(c);
}

/* --- parsing ---------------------------------------------------------------------------- */

static int error_at(const char *name, const char *text, const char *at, const char *what,
		    struct err *e)
{
	size_t line = 1, column = 1;

	for (const char *p = text; p < at; p++) {
		column++;
		if (*p == '\n') {
			line++;
			column = 1;
		}
	}
	return err_set(e, ERR_PARSE, "%s:%zu:%zu: %s", name, line, column, what);
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

int json_parse(const char *name, const char *text, size_t n, struct json **out, struct err *e)
{
	const char *end = text + n, *at = text;
	cJSON *c;

	if (skip_blanks(text, end) == end)
		return error_at(name, text, end, "expected a JSON value, found nothing", e);
	c = cJSON_ParseWithLengthOpts(text, n, &at, 0);
	if (!c)
		return error_at(name, text, at,
				at + 1 < end ? "not valid JSON from here on"
					     : "the JSON text ends too early, or wrongly",
				e);
	at = skip_blanks(at, end);
	if (at < end) {
		cJSON_Delete(c);
		return error_at(name, text, at, "text after the end of the JSON value", e);
	}
	*out = wrap(c);
	return 0;
}

int json_read_file(const char *path, size_t max, struct json **out, struct err *e)
{
	struct buf b = {0};
	int rc = fs_read(path, max, &b, e);

	if (rc == 0)
		rc = json_parse(path, b.data, b.len, out, e);
	buf_free(&b);
	return rc;
}

void json_free(struct json *j)
{
	cJSON_Delete(node(j));
}

void json_freep(struct json **j)
{
	json_free(*j);
	*j = NULL;
}

/* --- reading ---------------------------------------------------------------------------- */

enum json_type json_type(const struct json *j)
{
	switch (node(j)->type & 0xFF) {
	case cJSON_False:
	case cJSON_True:
		return JSON_BOOL;
	case cJSON_Number: /* 1e999 is no number that anyone could use */
		return isfinite(node(j)->valuedouble) ? JSON_NUMBER : JSON_NULL;
	case cJSON_String:
		return JSON_STRING;
	case cJSON_Array:
		return JSON_ARRAY;
	case cJSON_Object:
		return JSON_OBJECT;
	default:
		return JSON_NULL;
	}
}

static bool is(const struct json *j, enum json_type type)
{
	return j && json_type(j) == type;
}

static bool is_container(const struct json *j)
{
	return is(j, JSON_ARRAY) || is(j, JSON_OBJECT);
}

const struct json *json_get(const struct json *object, const char *key)
{
	if (!is(object, JSON_OBJECT))
		return NULL;
	return wrap(cJSON_GetObjectItemCaseSensitive(node(object), key));
}

const struct json *json_path(const struct json *j, const char *dotted)
{
	_cleanup_free_ char *copy = xstrdup(dotted);
	char *part = copy, *dot;

	while (j && (dot = strchr(part, '.'))) {
		*dot = '\0';
		j = json_get(j, part);
		part = dot + 1;
	}
	return json_get(j, part);
}

size_t json_len(const struct json *array_or_object)
{
	return is_container(array_or_object) ? (size_t)cJSON_GetArraySize(node(array_or_object))
					     : 0;
}

const struct json *json_at(const struct json *array_or_object, size_t i)
{
	const struct json *c = json_first(array_or_object);

	while (c && i-- > 0)
		c = json_next(c);
	return c;
}

const struct json *json_first(const struct json *array_or_object)
{
	return is_container(array_or_object) ? wrap(node(array_or_object)->child) : NULL;
}

const struct json *json_next(const struct json *member)
{
	return member ? wrap(node(member)->next) : NULL;
}

const char *json_key(const struct json *member)
{
	return member ? node(member)->string : NULL;
}

const char *json_text(const struct json *j, const char *dflt)
{
	return is(j, JSON_STRING) ? node(j)->valuestring : dflt;
}

double json_number(const struct json *j, double dflt)
{
	return is(j, JSON_NUMBER) ? node(j)->valuedouble : dflt;
}

int64_t json_i64(const struct json *j, int64_t dflt)
{
	double v = json_number(j, NAN);

	return v >= -0x1p63 && v < 0x1p63 && v == floor(v) ? (int64_t)v : dflt;
}

bool json_bool(const struct json *j, bool dflt)
{
	return is(j, JSON_BOOL) ? (node(j)->type & 0xFF) == cJSON_True : dflt;
}

/* --- building --------------------------------------------------------------------------- */

struct json *json_object(void)
{
	return fresh(cJSON_CreateObject());
}

struct json *json_array(void)
{
	return fresh(cJSON_CreateArray());
}

struct json *json_new_text(const char *s)
{
	return fresh(s ? cJSON_CreateString(s) : cJSON_CreateNull());
}

struct json *json_new_number(double v)
{
	return fresh(isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

struct json *json_new_bool(bool v)
{
	return fresh(cJSON_CreateBool(v));
}

struct json *json_new_null(void)
{
	return fresh(cJSON_CreateNull());
}

struct json *json_copy(const struct json *j)
{
	return fresh(cJSON_Duplicate(node(j), 1));
}

struct json *json_borrow(const struct json *j)
{
	if (!is_container(j))
		return json_copy(j);
	return fresh(is(j, JSON_ARRAY) ? cJSON_CreateArrayReference(node(j)->child)
				       : cJSON_CreateObjectReference(node(j)->child));
}

struct json *json_take(struct json *object, const char *key)
{
	cJSON *c = cJSON_DetachItemFromObjectCaseSensitive(node(object), key);

	return c ? fresh(c) : NULL;
}

void json_set(struct json *object, const char *key, struct json *value)
{
	if (json_get(object, key))
		cJSON_ReplaceItemInObjectCaseSensitive(node(object), key, node(value));
	else
		cJSON_AddItemToObject(node(object), key, node(value));
}

void json_set_text(struct json *object, const char *key, const char *value)
{
	json_set(object, key, json_new_text(value));
}

void json_set_number(struct json *object, const char *key, double value)
{
	json_set(object, key, json_new_number(value));
}

void json_set_i64(struct json *object, const char *key, int64_t value)
{
	json_set(object, key, json_new_number((double)value));
}

void json_set_bool(struct json *object, const char *key, bool value)
{
	json_set(object, key, fresh(cJSON_CreateBool(value)));
}

void json_add(struct json *array, struct json *value)
{
	cJSON_AddItemToArray(node(array), node(value));
}

void json_add_line(struct json *array, struct json *value)
{
	_cleanup_free_ char *line = json_print(value, false);

	json_free(value);
	json_add(array, fresh(cJSON_CreateRaw(line)));
}

void json_add_text(struct json *array, const char *value)
{
	json_add(array, json_new_text(value));
}

void json_add_number(struct json *array, double value)
{
	json_add(array, json_new_number(value));
}

/* --- printing --------------------------------------------------------------------------- */
/* Not cJSON's: it drops the last bits of a double, writes 1764422504000000 as 1.764422504e+15 and
 * passes bytes on that are no UTF-8 (a line of a user's log may hold any). */

/* Bytes of the sequence that starts with this byte, or 0 if none does. */
static size_t utf8_announced(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xC2 || first > 0xF4)
		return 0;
	return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Length of the UTF-8 sequence at s (RFC 3629: no overlong form, no surrogate), or 0. */
static size_t utf8_len(const unsigned char *s)
{
	size_t n = utf8_announced(s[0]);

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
	    (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return n;
}

/* The code point of a control character of C0 or C1, or of one that ends lines or turns the
 * direction of what follows; 0 for others. A terminal would obey, or show something else than it
 * reads. */
static unsigned acting(const unsigned char *s, size_t n)
{
	unsigned c = n == 1   ? s[0]
		     : n == 2 ? (s[0] & 0x1FU) << 6 | (s[1] & 0x3FU)
		     : n == 3 ? (s[0] & 0x0FU) << 12 | (s[1] & 0x3FU) << 6 | (s[2] & 0x3FU)
			      : 0;

	if (c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
	    (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069))
		return c;
	return 0;
}

static void print_text(struct buf *b, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buf_char(b, '"');
	while (*s) {
		size_t n = utf8_len(s);

		if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else if (*s == '\n')
			buf_str(b, "\\n");
		else if (*s == '\t')
			buf_str(b, "\\t");
		else if (n == 0)
			buf_str(b, "\xEF\xBF\xBD"); /* U+FFFD */
		else if (acting(s, n))
			buf_printf(b, "\\u%04x", acting(s, n));
		else
			buf_put(b, s, n);
		s += n ? n : 1;
	}
	buf_char(b, '"');
}

static void print_value(struct buf *b, const struct json *j, bool pretty, int depth);

static void new_line(struct buf *b, int depth)
{
	buf_char(b, '\n');
	while (depth-- > 0)
		buf_char(b, '\t');
}

static void print_members(struct buf *b, const struct json *j, bool pretty, int depth)
{
	bool object = json_type(j) == JSON_OBJECT;

	buf_char(b, object ? '{' : '[');
	for (const struct json *c = json_first(j); c; c = json_next(c)) {
		if (pretty)
			new_line(b, depth + 1);
		if (object) {
			print_text(b, json_key(c));
			buf_str(b, pretty ? ": " : ":");
		}
		print_value(b, c, pretty, depth + 1);
		if (json_next(c))
			buf_char(b, ',');
	}
	if (pretty && json_first(j))
		new_line(b, depth);
	buf_char(b, object ? '}' : ']');
}

static void print_value(struct buf *b, const struct json *j, bool pretty, int depth)
{
	if (cJSON_IsRaw(node(j))) {
		buf_str(b, node(j)->valuestring);
		return;
	}
	switch (json_type(j)) {
	case JSON_NULL:
		buf_str(b, "null");
		return;
	case JSON_BOOL:
		buf_str(b, json_bool(j, false) ? "true" : "false");
		return;
	case JSON_NUMBER:
		buf_number(b, json_number(j, 0));
		return;
	case JSON_STRING:
		print_text(b, json_text(j, ""));
		return;
	case JSON_ARRAY:
	case JSON_OBJECT:
		print_members(b, j, pretty, depth);
		return;
	}
}

char *json_print(const struct json *j, bool pretty)
{
	struct buf b = {0};

	json_put(&b, j, pretty);
	return buf_take(&b);
}

void json_put(struct buf *out, const struct json *j, bool pretty)
{
	print_value(out, j, pretty, 0);
}
