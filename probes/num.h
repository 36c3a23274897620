/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers inside other people's text, in the C locale whatever LC_NUMERIC says. A decimal comma is
 * never a number ("1,5" is neither 1 nor 15), a word such as N/A is a reason and never 0, and what
 * is not finite keeps its own name, because a loss of nan is a finding.
 */
#ifndef FETTLE_PROBES_NUM_H
#define FETTLE_PROBES_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A piece of text, not terminated. */
struct span {
	const char *s;
	size_t n;
};

struct span span_of(const char *s); /* a terminated text */
/* What follows the first k bytes `key` in t up to its end; s is NULL when key is not there. */
struct span span_behind(struct span t, const char *key, size_t k);
/* The next word between blanks; false when there is none. */
bool span_word(struct span *t, struct span *word);

static inline bool span_same8(const char *a, const char *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x == y;
}

static inline bool span_same4(const char *a, const char *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x == y;
}

/* memcmp() == 0 for the few bytes of a key, without its call; the last bytes are seen twice. */
static inline bool span_same(const char *a, const char *b, size_t n)
{
	if (n >= 8) {
		for (size_t i = 0; i + 8 < n; i += 8)
			if (!span_same8(a + i, b + i))
				return false;
		return span_same8(a + n - 8, b + n - 8);
	}
	if (n >= 4)
		return span_same4(a, b) && span_same4(a + n - 4, b + n - 4);
	return !n || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

static inline bool span_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Without blanks at both ends. */
static inline struct span span_trim(struct span t)
{
	while (t.n && span_is_blank(t.s[0]))
		t.s++, t.n--;
	while (t.n && span_is_blank(t.s[t.n - 1]))
		t.n--;
	return t;
}

/* Inline, so that the lengths of literal keys are known to the compiler: readers of lines ask for
 * some twenty keys a line. */
static inline struct span span_after(struct span t, const char *key)
{
	return span_behind(t, key, strlen(key));
}

static inline bool span_has(struct span t, const char *word)
{
	return span_behind(t, word, strlen(word)).s != NULL;
}

static inline bool span_starts(struct span t, const char *word)
{
	return t.n >= strlen(word) && span_same(t.s, word, strlen(word));
}

static inline bool span_eq(struct span t, const char *word) /* the same bytes */
{
	return t.n ? *word == *t.s && strlen(word) == t.n && span_same(t.s, word, t.n) : !*word;
}

/* Where the first byte out of `stop` (one to three) is in t, or t.n. */
static inline size_t span_until(struct span t, const char *stop)
{
	size_t i = 0;

	if (!stop[1]) {
		const char *hit = t.n ? memchr(t.s, stop[0], t.n) : NULL;

		return hit ? (size_t)(hit - t.s) : t.n;
	}
	while (i < t.n && t.s[i] != stop[0] && t.s[i] != stop[1] && (!stop[2] || t.s[i] != stop[2]))
		i++;
	return i;
}

/* The bytes of t before its first byte out of `stop`; t moves behind that byte. False at its end.
 */
static inline bool span_next(struct span *t, const char *stop, struct span *field)
{
	size_t i;

	if (!t->s)
		return false;
	i = span_until(*t, stop);
	*field = (struct span){t->s, i};
	*t = i < t->n ? (struct span){t->s + i + 1, t->n - i - 1} : (struct span){NULL, 0};
	return true;
}

enum num_kind {
	NUM_NONE, /* no number starts here */
	NUM_FINITE,
	NUM_NAN,
	NUM_INF, /* inf, or too large for a double */
};

/* The number that t starts with: [+-]digits[.digits][e[+-]digits], nan, inf. `used` (may be NULL)
 * gets its length. A number that a comma and a digit follow is NUM_NONE. */
enum num_kind num_scan(struct span t, double *out, size_t *used);

/* The same where the tool is known to write thousands: "7,865" is 7865, "7,86" is NUM_NONE. */
enum num_kind num_scan_thousands(struct span t, double *out, size_t *used);

/* All of t (blanks around it allowed) is one finite number. */
bool num_whole(struct span t, double *out);
bool num_whole_i64(struct span t, int64_t *out);

/* Why t holds no value, or NULL when it is no such word: "N/A", "not supported", "unknown error",
 * "requires reset", "deprecated", "none", "empty", "unknown", "nan", "inf". */
const char *num_missing(struct span t);

/* A valid name of a metric: [a-z0-9_]+, at most NUM_METRIC_NAME_MAX bytes. */
enum { NUM_METRIC_NAME_MAX = 63 };
bool num_metric_name(struct span t);

#endif
