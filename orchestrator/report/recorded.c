/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/recorded.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	PIECES_MAX = 12, /* conversions of a format */
	DEPTH_MAX = 3,   /* a reason in a reason in a note */
};

/* What stood in the place of a conversion. */
struct piece {
	const char *at;
	size_t n;
	bool words; /* of a %s: may be such a sentence itself */
};

/* The length of the conversion at p, which is a '%', with its letter; "%%" is none. */
static size_t conversion(const char *p)
{
	return 1 + strspn(p + 1, "0123456789$.*-+# 'hlzjt") + 1;
}

/* The literal text at *p up to the next conversion, with "%%" as one. */
static void literal(const char **p, struct buf *out)
{
	buf_clear(out);
	for (; **p && (**p != '%' || (*p)[1] == '%'); (*p)++) {
		buf_char(out, **p);
		*p += **p == '%';
	}
}

#define NUMBER "0123456789.+-einfax"

static bool is_number(const char *at, size_t n)
{
	return n > 0 && strspn(at, NUMBER) >= n;
}

/* Where a conversion ends right before the next one: numbers are told from what follows, of two
 * texts the second one is all. */
static const char *next_to(const char *s, bool words)
{
	return words ? s : s + strspn(s, NUMBER);
}

/* The literal that ends a piece; where a number is to follow, one before a number. */
static const char *find_literal(const char *s, const struct buf *lit, const char *fmt)
{
	bool number = *fmt && fmt[conversion(fmt) - 1] != 's';
	const char *at = strstr(s, lit->data);

	while (at && number && !is_number(at + lit->len, 1))
		at = strstr(at + 1, lit->data);
	return at;
}

/* Does `fmt` give s? Each conversion takes as little as it can. *weight: how much of it is literal.
 */
static bool match(const char *fmt, const char *s, struct piece *v, size_t *n, size_t *weight)
{
	struct buf lit = {0};
	bool fits = true;

	*n = *weight = 0;
	literal(&fmt, &lit);
	fits = str_starts(s, lit.data ? lit.data : "");
	s += fits ? lit.len : 0;
	*weight = lit.len;
	while (fits && *fmt && *n < PIECES_MAX) {
		size_t length = conversion(fmt);
		bool words = fmt[length - 1] == 's';
		const char *end;

		fmt += length;
		literal(&fmt, &lit);
		end = lit.len ? find_literal(s, &lit, fmt)
		      : *fmt  ? next_to(s, words)
			      : s + strlen(s);
		if (!*fmt && lit.len) /* the last literal is the sentence's end */
			end = str_ends(s, lit.data) ? s + strlen(s) - lit.len : NULL;
		fits = end && end >= s && (words || is_number(s, (size_t)(end - s)));
		if (!fits)
			break;
		v[(*n)++] = (struct piece){s, (size_t)(end - s), words};
		s = end + lit.len;
		*weight += lit.len;
	}
	fits = fits && !*fmt && !*s;
	buf_free(&lit);
	return fits;
}

/* The format whose literal text is the longest. */
static const char *find(const char *s, struct piece *v, size_t *n)
{
	const char *best = NULL;
	size_t most = 0;

	for (size_t i = 0; recorded_formats[i]; i++) {
		struct piece try[PIECES_MAX];
		size_t used, weight;

		if (!match(recorded_formats[i], s, try, &used, &weight) || weight <= most)
			continue;
		best = recorded_formats[i];
		most = weight;
		memcpy(v, try, sizeof try);
		*n = used;
	}
	return best;
}

static char *translate(const char *s, int depth);

static void put_piece(const struct piece *p, int depth, struct buf *out)
{
	_cleanup_free_ char *text = xstrndup(p->at, p->n), *translated = NULL;

	if (p->words)
		translated = translate(text, depth + 1);
	buf_str(out, translated ? translated : text);
}

/* What a translation leaves out may be the ending of a plural, and nothing that says something. */
static bool may_leave_out(const struct piece *v, size_t n, unsigned used)
{
	for (size_t i = 0; i < n; i++)
		if (!(used & 1u << i) && v[i].n > sizeof "es" - 1)
			return false;
	return true;
}

/* The translated format with the pieces in their places; NULL where it would lose one. */
static char *fill(const char *fmt, const struct piece *v, size_t n, int depth)
{
	struct buf out = {0}, lit = {0};
	unsigned used = 0;
	size_t next = 0;

	while (*fmt) {
		size_t length, digits, at = next;

		literal(&fmt, &lit);
		buf_str(&out, lit.data ? lit.data : "");
		if (!*fmt)
			break;
		length = conversion(fmt);
		digits = strspn(fmt + 1, "0123456789");
		if (fmt[1 + digits] == '$')
			at = (size_t)(str_digits(fmt + 1, (int)digits) - 1);
		else
			next++;
		if (at < n) {
			put_piece(&v[at], depth, &out);
			used |= 1u << at;
		}
		fmt += length;
	}
	buf_free(&lit);
	if (!may_leave_out(v, n, used))
		buf_free(&out);
	return out.data ? buf_take(&out) : NULL;
}

static char *translate(const char *s, int depth)
{
	struct piece v[PIECES_MAX];
	const char *whole = lang_text(s), *fmt;
	char *made;
	size_t n = 0;

	if (whole != s)
		return xstrdup(whole);
	fmt = depth < DEPTH_MAX ? find(s, v, &n) : NULL;
	made = fmt && lang_text(fmt) != fmt ? fill(lang_text(fmt), v, n, depth) : NULL;
	return made ? made : xstrdup(s);
}

char *recorded_text(const char *s)
{
	if (!s)
		return NULL;
	return str_eq(lang_tag(), "en") ? xstrdup(s) : translate(s, 0);
}
