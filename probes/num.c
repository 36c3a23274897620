/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/num.h"

#include <endian.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "probes/vec.h"

/* Longer digit strings than this are not numbers of any tool (a double has 17 significant digits).
 */
enum { NUM_TEXT_MAX = 64 };

struct span span_of(const char *s)
{
	return (struct span){s, strlen(s)};
}

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static struct span behind_in(struct span t, size_t places, const char *key, size_t k)
{
	const char *end = t.s + places, *p = t.s;

	for (; (p = memchr(p, key[0], (size_t)(end - p))); p++)
		if (span_same(p, key, k))
			return (struct span){p + k, t.n - (size_t)(p - t.s) - k};
	return (struct span){NULL, 0};
}

/* Many places at a time, the last ones twice if need be: only where the first, the middle and the
 * last byte of the key are right is the rest compared. glibc's memmem() on such short texts took
 * half of the time of a training log. */
struct span span_behind(struct span t, const char *key, size_t k)
{
	size_t places;

	if (k - 1 >= t.n) /* as of no text */
		return k ? (struct span){NULL, 0} : t;
	places = t.n - k + 1;
	if (places < VEC_BYTES)
		return behind_in(t, places, key, k);
	const vec first = vec_of(key[0]), mid = vec_of(key[k / 2]), last = vec_of(key[k - 1]);

	for (size_t i = 0; i < places; i += VEC_BYTES) {
		uint32_t hits;

		if (i + VEC_BYTES > places)
			i = places - VEC_BYTES;
		hits = vec_bits((vec_load(t.s + i) == first) & (vec_load(t.s + i + k / 2) == mid) &
				(vec_load(t.s + i + k - 1) == last));
		for (; hits; hits &= hits - 1) {
			size_t at = i + (unsigned)__builtin_ctz(hits);

			if (k <= 3 || span_same(t.s + at + 1, key + 1, k - 2))
				return (struct span){t.s + at + k, t.n - at - k};
		}
	}
	return (struct span){NULL, 0};
}

/* Where the first blank of t is from i on, or t.n. */
static size_t blank_at(struct span t, size_t i)
{
	for (; i + VEC_BYTES <= t.n; i += VEC_BYTES) {
		vec v = vec_load(t.s + i);
		uint32_t blanks = vec_bits((v == vec_of(' ')) | (v == vec_of('\t')));

		if (blanks)
			return i + (unsigned)__builtin_ctz(blanks);
	}
	while (i < t.n && !span_is_blank(t.s[i]))
		i++;
	return i;
}

bool span_word(struct span *t, struct span *word)
{
	size_t i = 0, start;

	if (!t->n) { /* perhaps of no text at all: nothing may be added to NULL */
		*word = *t;
		return false;
	}
	while (i < t->n && span_is_blank(t->s[i]))
		i++;
	start = i;
	i = blank_at(*t, i);
	*word = (struct span){t->s + start, i - start};
	*t = (struct span){t->s + i, t->n - i};
	return word->n > 0;
}

/* A number as digits x 10^exp10; of its digits as many as fit are kept. */
struct decimal {
	uint64_t digits;
	int dropped, exp10;
};

/* Adds the digits of t at i; returns where they end. */
static size_t add_digits(struct decimal *d, struct span t, size_t i, bool fraction)
{
	enum { BASE = 10 };
	const uint64_t room = UINT64_MAX / BASE - 1;
	uint64_t digits = d->digits;
	size_t start = i, end;

	for (; i < t.n && is_digit(t.s[i]) && digits < room; i++)
		digits = digits * BASE + (uint64_t)(t.s[i] - '0');
	for (end = i; end < t.n && is_digit(t.s[end]);) /* rare */
		end++;
	d->digits = digits;
	d->dropped += (int)(end - i);
	d->exp10 += fraction ? -(int)(i - start) : (int)(end - i);
	return end;
}

/* Digits from p on, added to those before; where they end. Wraps where they are too many. */
static inline const char *more_digits(const char *p, const char *end, uint64_t *digits)
{
	unsigned c;

	for (; p < end && (c = (unsigned char)*p - (unsigned)'0') <= 9; p++)
		*digits = *digits * 10 + c;
	return p;
}

/* Nearly every number with its sign and point: up to 19 digits, which always fit. 0 when there are
 * none or more. */
static inline size_t few_digits(struct decimal *d, struct span t)
{
	enum { FIT = 19 };
	const char *end, *start, *p, *point;

	*d = (struct decimal){0};
	if (!t.n) /* perhaps of no text at all: nothing may be added to NULL */
		return 0;
	end = t.s + t.n;
	start = t.s + (*t.s == '-' || *t.s == '+');
	p = point = more_digits(start, end, &d->digits);
	if (p < end && *p == '.') {
		p = more_digits(++point, end, &d->digits);
		start++;
		d->exp10 = (int)(point - p);
	}
	return p > start && p - start <= FIT ? (size_t)(p - t.s) : 0;
}

/* Its size: the power of ten that it is below. */
static int magnitude(const struct decimal *d)
{
	int n = d->exp10 + (d->digits != 0);

	for (uint64_t v = d->digits; v >= 10; v /= 10)
		n++;
	return n;
}

static bool convert_slowly(const char *s, size_t n, double *out)
{
	char text[NUM_TEXT_MAX + 1];

	if (n > NUM_TEXT_MAX)
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	return str_to_double(text, out);
}

/* Exact for digits up to 2^53 and powers of ten up to 22 (both fit a double); else libc decides. */
static inline bool convert(const char *s, size_t n, const struct decimal *d, double *out)
{
	static const double pow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
				       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	double v;

	if (d->digits > UINT64_C(1) << 53 || d->dropped || d->exp10 < -22 || d->exp10 > 22)
		return convert_slowly(s, n, out);
	/* One of them is 1: cheaper than a branch that is guessed wrong. */
	v = (double)(int64_t)d->digits * pow10[d->exp10 > 0 ? d->exp10 : 0] /
	    pow10[d->exp10 < 0 ? -d->exp10 : 0];
	*out = s[0] == '-' ? -v : v;
	return true;
}

/* The exponent of t at i, or 0 bytes when there is none: "2e" and "2em" are a 2. */
static inline size_t scan_exponent(struct span t, size_t i, int *exp10)
{
	size_t j = i + 1;
	bool negative = false;
	int e = 0;

	if (i >= t.n || (t.s[i] != 'e' && t.s[i] != 'E'))
		return 0;
	if (j < t.n && (t.s[j] == '+' || t.s[j] == '-'))
		negative = t.s[j++] == '-';
	if (j >= t.n || !is_digit(t.s[j]))
		return 0;
	for (; j < t.n && is_digit(t.s[j]); j++)
		e = e < 10000 ? e * 10 + (t.s[j] - '0') : e;
	*exp10 += negative ? -e : e;
	return j - i;
}

static enum num_kind scan_word(struct span t, size_t sign, double *out, size_t *used)
{
	static const struct {
		const char *word;
		size_t n;
		enum num_kind kind;
	} words[] = {{"nan", 3, NUM_NAN}, {"infinity", 8, NUM_INF}, {"inf", 3, NUM_INF}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t end = sign + words[i].n;

		if (t.n < end || strncasecmp(t.s + sign, words[i].word, words[i].n) != 0)
			continue;
		if (t.n > end && is_word(t.s[end]))
			continue;
		*out = words[i].kind == NUM_NAN ? (double)NAN : (double)INFINITY;
		if (used)
			*used = end;
		return words[i].kind;
	}
	return NUM_NONE;
}

/* ",865" at i, behind at most three digits since start. */
static bool is_thousand(struct span t, size_t start, size_t i)
{
	return i > start && i - start <= 3 && t.n - i > 3 && t.s[i] == ',' &&
	       is_digit(t.s[i + 1]) && is_digit(t.s[i + 2]) && is_digit(t.s[i + 3]);
}

/* Any number of digits, with commas between thousands if they may be there. */
static size_t add_all_digits(struct decimal *d, struct span t, size_t start, bool thousands)
{
	size_t i = add_digits(d, t, start, false), point;

	while (thousands && is_thousand(t, start, i)) {
		start = i + 1;
		i = add_digits(d, t, start, false);
	}
	point = i;
	if (i < t.n && t.s[i] == '.')
		i = add_digits(d, t, i + 1, true);
	return i == point + 1 && point == start ? start : i;
}

static enum num_kind scan(struct span t, bool thousands, double *out, size_t *used)
{
	struct decimal d = {0};
	size_t i = thousands ? 0 : few_digits(&d, t);

	if (!i) {
		size_t start = t.n && (t.s[0] == '-' || t.s[0] == '+');

		i = add_all_digits(&d, t, start, thousands);
		if (i == start)
			return scan_word(t, start, out, used);
	}
	i += scan_exponent(t, i, &d.exp10);
	if (i + 1 < t.n && t.s[i] == ',' && is_digit(t.s[i + 1]))
		return NUM_NONE;
	if (used)
		*used = i;
	if (!convert(t.s, i, &d, out)) {
		*out = (double)INFINITY;
		return magnitude(&d) > 0 ? NUM_INF : NUM_NONE;
	}
	return NUM_FINITE;
}

enum num_kind num_scan(struct span t, double *out, size_t *used)
{
	return scan(t, false, out, used);
}

/* The commas are taken out first, so that convert() sees plain digits. */
enum num_kind num_scan_thousands(struct span t, double *out, size_t *used)
{
	size_t n = 0, i = 0;
	char plain[NUM_TEXT_MAX];
	enum num_kind k = scan(t, false, out, &i);

	if (k == NUM_FINITE && i <= sizeof(plain)) { /* none are written */
		if (used)
			*used = i;
		return k;
	}
	k = scan(t, true, out, &i);
	if (k != NUM_FINITE || i > sizeof(plain))
		return NUM_NONE;
	for (size_t j = 0; j < i; j++)
		if (t.s[j] != ',')
			plain[n++] = t.s[j];
	if (used)
		*used = i;
	return scan((struct span){plain, n}, false, out, NULL);
}

enum { EIGHT = 8 };

/* The n bytes at s, one to eight: the first in the lowest byte. */
static inline uint64_t load_few(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t head, tail;

	if (n < sizeof(head))
		return u[0] | (uint64_t)u[n / 2] << n / 2 * 8 | (uint64_t)u[n - 1] << (n - 1) * 8;
	memcpy(&head, s, sizeof(head));
	memcpy(&tail, s + n - sizeof(tail), sizeof(tail));
	return le32toh(head) | (uint64_t)le32toh(tail) << (n - sizeof(tail)) * 8;
}

/* Eight digits, a byte each, the first one in the lowest: pairs, fours, all. */
static inline uint32_t join_digits(uint64_t v)
{
	v = (v * 10 + (v >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
	v = (v * 100 + (v >> 16)) & UINT64_C(0x0000ffff0000ffff);
	return (uint32_t)(v * 10000 + (v >> 32));
}

/* A number of at most eight bytes without sign and exponent, as most are, without a loop. */
static inline bool short_number(struct span t, double *out)
{
	static const double unit[EIGHT] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t v, odd;
	unsigned at;

	if (t.n - 1 >= EIGHT)
		return false;
	/* Filled up with zeros in front; what is above 9 is no digit. */
	v = (load_few(t.s, t.n) ^ ones * '0') << (EIGHT - t.n) * 8;
	odd = (v | (v + ones * (0x80 - 10))) & ones * 0x80;
	if (!odd) {
		*out = join_digits(v);
		return true;
	}
	at = (unsigned)__builtin_ctzll(odd) - 7;
	if ((odd & (odd - 1)) || (v >> at & UINT8_MAX) != ('.' ^ '0') || t.n == 1)
		return false;
	/* The digits before the point move onto it. */
	*out = join_digits(v >> at >> 8 << at << 8 | (v & ((UINT64_C(1) << at) - 1)) << 8) /
	       unit[EIGHT - 1 - at / 8];
	return true;
}

bool num_whole(struct span t, double *out)
{
	struct decimal d;
	size_t used;

	t = span_trim(t);
	if (short_number(t, out))
		return true;
	used = few_digits(&d, t);
	if (!used)
		return num_scan(t, out, &used) == NUM_FINITE && used == t.n;
	used += scan_exponent(t, used, &d.exp10);
	return used == t.n && convert(t.s, used, &d, out);
}

bool num_whole_i64(struct span t, int64_t *out)
{
	double v;

	if (!num_whole(t, &v) || v != floor(v) || fabs(v) > 9007199254740992.0)
		return false;
	*out = (int64_t)v;
	return true;
}

const char *num_missing(struct span t)
{
#define WORD(word, why)                       \
	{                                     \
		{word, sizeof(word) - 1}, why \
	}
	static const struct {
		struct span word;
		const char *why;
	} words[] = {
		WORD("", "empty"),
		WORD("-", "N/A"),
		WORD("?", "unknown"),
		WORD("N/A", "N/A"),
		WORD("NA", "N/A"),
		WORD("None", "none"),
		WORD("null", "none"),
		WORD("Not Supported", "not supported"),
		WORD("Not Active", "not active"),
		WORD("Not Found", "not found"),
		WORD("Unknown", "unknown"),
		WORD("Unknown Error", "unknown error"),
		WORD("ERR!", "unknown error"),
		WORD("Insufficient Permissions", "not permitted"),
		WORD("GPU requires reset", "requires reset"),
		WORD("Requested functionality has been deprecated", "deprecated"),
		WORD("nan", "nan"),
		WORD("-nan", "nan"),
		WORD("+nan", "nan"),
		WORD("inf", "inf"),
		WORD("-inf", "inf"),
		WORD("+inf", "inf"),
		WORD("infinity", "inf"),
		WORD("-infinity", "inf"),
	};
#undef WORD

	t = span_trim(t);
	/* Most are numbers, and no word has a digit so near. */
	if ((t.n && is_digit(t.s[0])) || (t.n > 1 && is_digit(t.s[1])))
		return NULL;
	if (t.n >= 2 && t.s[0] == '[' && t.s[t.n - 1] == ']')
		t = span_trim((struct span){t.s + 1, t.n - 2});
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].word.n == t.n &&
		    (t.n == 0 || ((words[i].word.s[0] ^ t.s[0]) & ~0x20) == 0) &&
		    strncasecmp(words[i].word.s, t.n ? t.s : "", t.n) == 0)
			return words[i].why;
	return NULL;
}

bool num_metric_name(struct span t)
{
	static const bool are[UINT8_MAX + 1] = {
		['0' ... '9'] = true, ['a' ... 'z'] = true, ['_'] = true};
	size_t i = 0;

	if (!t.n || t.n > NUM_METRIC_NAME_MAX)
		return false;
	while (i < t.n && are[(unsigned char)t.s[i]])
		i++;
	return i == t.n;
}
