/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON, in front of cJSON (json.c is the only file that includes it). A `struct json` is a tree
 * with one owner: the root; everything got from it is borrowed and lives as long as the root.
 * Values never travel further than the module that parsed them: they are copied into plain structs.
 */
#ifndef FETTLE_BASE_JSON_H
#define FETTLE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct json;
enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Parse exactly one value; anything but blanks after it is an error. The error names `name`, line
 * and column. */
int json_parse(const char *name, const char *text, size_t n, struct json **out, struct err *e);
int json_read_file(const char *path, size_t max, struct json **out, struct err *e);
void json_free(struct json *j); /* NULL is fine; only for roots */
void json_freep(struct json **j);

enum json_type json_type(const struct json *j);
/* NULL if absent; case-sensitive */
const struct json *json_get(const struct json *object, const char *key);
/* "a.b.c" through objects */
const struct json *json_path(const struct json *j, const char *dotted);
size_t json_len(const struct json *array_or_object);
const struct json *json_at(const struct json *array_or_object, size_t i);
/* Walking a long array or object, where json_at(i) would cost i steps:
 * `for (c = json_first(a); c; c = json_next(c))` */
const struct json *json_first(const struct json *array_or_object);
const struct json *json_next(const struct json *member); /* NULL at the end; only for members */
const char *json_key(const struct json *member); /* name of a member of an object; NULL otherwise */

/* Tolerant access: the value, or the default when j is NULL or of another type. */
const char *json_text(const struct json *j, const char *dflt);
double json_number(const struct json *j, double dflt);
int64_t json_i64(const struct json *j, int64_t dflt); /* integers beyond 2^53 do not survive JSON */
bool json_bool(const struct json *j, bool dflt);

/* Building. json_set_* and json_add_* copy text; json_set/json_add take over `value` (a root). */
struct json *json_object(void);
struct json *json_array(void);
void json_set(struct json *object, const char *key, struct json *value);
void json_set_text(struct json *object, const char *key, const char *value); /* NULL gives null */
/* NaN and inf give null */
void json_set_number(struct json *object, const char *key, double value);
void json_set_i64(struct json *object, const char *key, int64_t value);
void json_set_bool(struct json *object, const char *key, bool value);
void json_add(struct json *array, struct json *value);
/* The same, but kept as the line that it is printed as: for long lists of small things, which take
 * a tenth of the memory so. It can be printed, not read. */
void json_add_line(struct json *array, struct json *value);
void json_add_text(struct json *array, const char *value);
void json_add_number(struct json *array, double value);
struct json *json_new_text(const char *s);
struct json *json_new_number(double v);
struct json *json_new_bool(bool v);
struct json *json_new_null(void);
struct json *json_copy(const struct json *j);
/* To be set or added in place of a copy: it shares the members of j, which must outlive it and not
 * change meanwhile. */
struct json *json_borrow(const struct json *j);
/* Out of the object: now a root, the caller's. NULL if absent. */
struct json *json_take(struct json *object, const char *key);

/* heap; pretty is indented by a tab, with no last newline */
char *json_print(const struct json *j, bool pretty);
/* The same, appended: of a large tree there is then one text and not two. */
void json_put(struct buf *out, const struct json *j, bool pretty);

#endif
