/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/str.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* Knob, field and command names are shorter; a longer one is compared by its first 64 bytes. */
enum { DISTANCE_MAX = 64 };

/* Up to here every integer is a double of its own. */
#define INTEGER_MAX 9007199254740992.0 /* 2^53 */

static void buf_reserve(struct buf *b, size_t more)
{
	b->data = xgrow(b->data, b->len + more, &b->cap, 1); /* index of the NUL */
}

void buf_put(struct buf *b, const void *data, size_t n)
{
	buf_reserve(b, n);
	if (n > 0)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0) {
		buf_reserve(b, (size_t)n);
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

char *buf_take(struct buf *b)
{
	char *text = b->data ? b->data : xstrdup("");

	*b = (struct buf){0};
	return text;
}

static void strv_own(struct strv *s, char *text)
{
	s->v = xgrow(s->v, s->n + 1, &s->cap, sizeof *s->v);
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
}

void strv_add(struct strv *s, const char *text)
{
	strv_own(s, xstrdup(text));
}

void strv_addf(struct strv *s, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	strv_own(s, buf_take(&b));
}

char **strv_end(struct strv *s)
{
	s->v = xgrow(s->v, s->n, &s->cap, sizeof *s->v);
	s->v[s->n] = NULL;
	return s->v;
}

void strv_copy(struct strv *dst, const struct strv *src)
{
	struct strv copy = {0};

	for (size_t i = 0; i < src->n; i++)
		strv_add(&copy, src->v[i]);
	strv_free(dst);
	*dst = copy;
}

void strv_free(struct strv *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strv){0};
}

static struct kv *kvs_find(const struct kvs *k, const char *key)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->v[i].key, key) == 0)
			return &k->v[i];
	return NULL;
}

void kvs_set(struct kvs *k, const char *key, const char *value)
{
	struct kv *at = kvs_find(k, key);
	char *copy = xstrdup(value);

	if (!at) {
		k->v = xgrow(k->v, k->n, &k->cap, sizeof *k->v);
		at = &k->v[k->n++];
		*at = (struct kv){.key = xstrdup(key)};
	}
	free(at->value);
	at->value = copy;
}

const char *kvs_get(const struct kvs *k, const char *key)
{
	const struct kv *at = kvs_find(k, key);

	return at ? at->value : NULL;
}

bool kvs_has(const struct kvs *k, const char *key)
{
	return kvs_find(k, key) != NULL;
}

void kvs_copy(struct kvs *dst, const struct kvs *src)
{
	struct kvs copy = {0};

	for (size_t i = 0; i < src->n; i++)
		kvs_set(&copy, src->v[i].key, src->v[i].value);
	kvs_free(dst);
	*dst = copy;
}

static int kv_order(const void *a, const void *b)
{
	return strcmp(((const struct kv *)a)->key, ((const struct kv *)b)->key);
}

void kvs_sort(struct kvs *k)
{
	if (k->n > 1)
		qsort(k->v, k->n, sizeof *k->v, kv_order);
}

void kvs_free(struct kvs *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->v[i].key);
		free(k->v[i].value);
	}
	free(k->v);
	*k = (struct kvs){0};
}

bool str_eq(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* True if what follows a number is blanks only, and a number was there at all. */
static bool number_ends(const char *s, const char *end)
{
	if (end == s)
		return false;
	while (is_blank(*end))
		end++;
	return *end == '\0';
}

int str_digits(const char *s, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (!isdigit((unsigned char)s[i]))
			return -1;
		v = v * 10 + s[i] - '0';
	}
	return v;
}

bool str_to_i64(const char *s, int64_t *out)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(s, &end, 10);
	if (errno || !number_ends(s, end))
		return false;
	*out = v;
	return true;
}

bool str_to_double(const char *s, double *out)
{
	/* glibc's own object: no allocation */
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	char *end;
	double v;

	if (strpbrk(s, "xXnNpP")) /* hexadecimal, nan, inf and infinity are no numbers here */
		return false;
	v = strtod_l(s, &end, c);
	freelocale(c);
	if (!isfinite(v) || !number_ends(s, end))
		return false;
	*out = v;
	return true;
}

void buf_number(struct buf *b, double v)
{
	locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
	size_t start = b->len;
	double back;

	if (v == floor(v) && fabs(v) <= INTEGER_MAX)
		buf_printf(b, "%.0f", v == 0 ? 0.0 : v); /* no "-0" */
	else
		for (int digits = 15; digits <= 17; digits++) { /* 17 always do */
			b->len = start;
			buf_printf(b, "%.*g", digits, v);
			if (str_to_double(b->data + start, &back) && back == v)
				break;
		}
	uselocale(before);
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

size_t str_distance(const char *a, const char *b)
{
	size_t n = strnlen(a, DISTANCE_MAX), m = strnlen(b, DISTANCE_MAX);
	size_t d[DISTANCE_MAX + 1][DISTANCE_MAX + 1];

	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			size_t swap = a[i - 1] != b[j - 1];

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + swap);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[n][m];
}

const char *str_nearest(const char *s, const char *const *words)
{
	size_t best_d = strlen(s) / 3 + 1;
	const char *best = NULL;

	for (; *words; words++) {
		size_t d = str_distance(s, *words);

		if (d < best_d) {
			best_d = d;
			best = *words;
		}
	}
	return best;
}

bool str_copy(char *out, size_t n, const char *s)
{
	size_t len = strlen(s);
	bool whole = len < n;

	if (n == 0)
		return false;
	if (!whole)
		len = n - 1;
	memcpy(out, s, len);
	out[len] = '\0';
	return whole;
}
