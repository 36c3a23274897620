/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text: a growing buffer, a vector of strings, key=value lists, strict numbers, nearest words. */
#ifndef FETTLE_BASE_STR_H
#define FETTLE_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing text. Zero-initialise; data is NUL-terminated once anything was put (else NULL). */
struct buf {
	char *data;
	size_t len, cap;
};
void buf_put(struct buf *b, const void *data, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void buf_clear(struct buf *b); /* length 0, memory kept */
void buf_free(struct buf *b);  /* also usable as a cleanup */
char *buf_take(struct buf *b); /* the text ("" if empty), caller frees; b is empty again */

/* A NULL-terminated vector of owned strings, fit for execve. Zero-initialise; v is NULL when empty
 * until strv_add or strv_end was called. */
struct strv {
	char **v;
	size_t n, cap;
};
void strv_add(struct strv *s, const char *text);
void strv_addf(struct strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char **strv_end(struct strv *s);                          /* never NULL */
void strv_copy(struct strv *dst, const struct strv *src); /* dst is replaced */
void strv_free(struct strv *s);

/* An ordered list of key/value pairs with unique keys; value NULL means "unset this". */
struct kv {
	char *key, *value;
};
struct kvs {
	struct kv *v;
	size_t n, cap;
};
void kvs_set(struct kvs *k, const char *key, const char *value); /* replaces in place, or appends */
const char *kvs_get(const struct kvs *k, const char *key);       /* NULL if absent or unset */
bool kvs_has(const struct kvs *k, const char *key);
void kvs_copy(struct kvs *dst, const struct kvs *src);
void kvs_sort(struct kvs *k); /* by key, bytewise */
void kvs_free(struct kvs *k);

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* The whole of s (blanks around it allowed) is one number, with a point whatever LC_NUMERIC is. */
bool str_to_i64(const char *s, int64_t *out);
int str_digits(const char *s, int n); /* the n digits at s as a number; -1: they are none */
bool str_to_double(const char *s, double *out); /* finite only */
/* Append the shortest text that reads back as the same double, with a point whatever LC_NUMERIC is;
 * integers up to 2^53 without exponent. v is finite. */
void buf_number(struct buf *b, double v);
/* The word of the NULL-terminated list nearest to s by edit distance, or NULL if none is within a
 * third of its length. */
const char *str_nearest(const char *s, const char *const *words);
/* Damerau-Levenshtein (adjacent swaps), bounded to 64 bytes a side */
size_t str_distance(const char *a, const char *b);
/* Copy s into out of n bytes, always terminated; returns false when it was cut. */
bool str_copy(char *out, size_t n, const char *s);

#endif
