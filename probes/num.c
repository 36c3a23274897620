/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/num.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "probes/vec.h"

/* Longer digit strings than this are not numbers of any tool (a double has 17 significant digits).
 */
enum { NUM_TEXT_MAX = 64, METRIC_NAME_MAX = 63 };

struct span span_of(const char *s)
{
	return (struct span){s, strlen(s)};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

struct span span_trim(struct span t)
{
	while (t.n && is_blank(t.s[0]))
		t.s++, t.n--;
	while (t.n && is_blank(t.s[t.n - 1]))
		t.n--;
	return t;
}

static struct span behind_from(struct span t, size_t i, size_t end, const char *key, size_t k)
{
	for (; i < end; i++)
		if (t.s[i] == key[0] && memcmp(t.s + i, key, k) == 0)
			return (struct span){t.s + i + k, t.n - i - k};
	return (struct span){NULL, 0};
}

/* Many places at a time, the last ones twice if need be: only where the first and the last byte of
 * the key are both right is the rest compared. glibc's memmem() on such short texts took half of
 * the time of a training log. */
struct span span_behind(struct span t, const char *key, size_t k)
{
	size_t places;

	if (!t.s || !k || k > t.n)
		return k ? (struct span){NULL, 0} : t;
	places = t.n - k + 1;
	if (places < VEC_BYTES)
		return behind_from(t, 0, places, key, k);
	const vec first = vec_of(key[0]), last = vec_of(key[k - 1]);

	for (size_t i = 0; i < places; i += VEC_BYTES) {
		struct span hit;

		if (i + VEC_BYTES > places)
			i = places - VEC_BYTES;
		if (!vec_any((vec_load(t.s + i) == first) & (vec_load(t.s + i + k - 1) == last)))
			continue;
		hit = behind_from(t, i, i + VEC_BYTES, key, k);
		if (hit.s)
			return hit;
	}
	return (struct span){NULL, 0};
}

bool span_next(struct span *t, const char *stop, struct span *field)
{
	const char *hit = NULL;
	size_t i = 0;

	if (!t->s)
		return false;
	if (!stop[1]) {
		hit = t->n ? memchr(t->s, stop[0], t->n) : NULL;
		i = hit ? (size_t)(hit - t->s) : t->n;
	} else {
		while (i < t->n && t->s[i] != stop[0] && t->s[i] != stop[1] &&
		       (!stop[2] || t->s[i] != stop[2]))
			i++;
	}
	*field = (struct span){t->s, i};
	if (i == t->n)
		*t = (struct span){NULL, 0};
	else
		*t = (struct span){t->s + i + 1, t->n - i - 1};
	return true;
}

bool span_word(struct span *t, struct span *word)
{
	size_t i = 0, start;

	while (i < t->n && is_blank(t->s[i]))
		i++;
	start = i;
	while (i < t->n && !is_blank(t->s[i]))
		i++;
	*word = (struct span){t->s + start, i - start};
	*t = (struct span){t->s + i, t->n - i};
	return word->n > 0;
}

/* Exact for up to 15 digits and powers of ten up to 22 (both fit a double); else libc decides. */
static bool convert(const char *s, size_t n, uint64_t digits, int n_digits, int exp10, double *out)
{
	static const double pow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
				       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	char text[NUM_TEXT_MAX + 1];

	if (n_digits <= 15 && exp10 >= -22 && exp10 <= 22) {
		double v = (double)digits;

		v = exp10 < 0 ? v / pow10[-exp10] : v * pow10[exp10];
		*out = s[0] == '-' ? -v : v;
		return true;
	}
	if (n > NUM_TEXT_MAX)
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	return str_to_double(text, out);
}

struct decimal {
	uint64_t digits;
	int n_digits, exp10;
};

static void add_digit(struct decimal *d, char c, bool fraction)
{
	if (d->n_digits < 19) {
		d->digits = d->digits * 10 + (uint64_t)(c - '0');
		d->n_digits += d->digits != 0;
		d->exp10 -= fraction;
	} else {
		d->n_digits++;
		d->exp10 += !fraction;
	}
}

/* The exponent of t at i, or 0 bytes when there is none: "2e" and "2em" are a 2. */
static size_t scan_exponent(struct span t, size_t i, int *exp10)
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

static enum num_kind scan(struct span t, bool thousands, double *out, size_t *used)
{
	struct decimal d = {0};
	size_t i = t.n && (t.s[0] == '-' || t.s[0] == '+'), start = i, point;

	for (; i < t.n; i++) {
		if (thousands && t.s[i] == ',' && i > start && i - start <= 3 && t.n - i > 3 &&
		    is_digit(t.s[i + 1]) && is_digit(t.s[i + 2]) && is_digit(t.s[i + 3])) {
			start = i + 1;
			continue;
		}
		if (!is_digit(t.s[i]))
			break;
		add_digit(&d, t.s[i], false);
	}
	point = i;
	if (i < t.n && t.s[i] == '.')
		for (i++; i < t.n && is_digit(t.s[i]); i++)
			add_digit(&d, t.s[i], true);
	if (i == start || (i == point + 1 && point == start))
		return scan_word(t, start, out, used);
	i += scan_exponent(t, i, &d.exp10);
	if (i + 1 < t.n && t.s[i] == ',' && is_digit(t.s[i + 1]))
		return NUM_NONE;
	if (used)
		*used = i;
	if (!convert(t.s, i, d.digits, d.n_digits, d.exp10, out)) {
		*out = (double)INFINITY;
		return d.n_digits + d.exp10 > 0 ? NUM_INF : NUM_NONE;
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
	enum num_kind k = scan(t, true, out, &i);

	if (k != NUM_FINITE || i > sizeof(plain))
		return NUM_NONE;
	for (size_t j = 0; j < i; j++)
		if (t.s[j] != ',')
			plain[n++] = t.s[j];
	if (used)
		*used = i;
	return scan((struct span){plain, n}, false, out, NULL);
}

bool num_whole(struct span t, double *out)
{
	size_t used;

	t = span_trim(t);
	return num_scan(t, out, &used) == NUM_FINITE && used == t.n;
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
	static const char *const words[][2] = {
		{"", "empty"},
		{"-", "N/A"},
		{"?", "unknown"},
		{"N/A", "N/A"},
		{"NA", "N/A"},
		{"None", "none"},
		{"null", "none"},
		{"Not Supported", "not supported"},
		{"Not Active", "not active"},
		{"Not Found", "not found"},
		{"Unknown", "unknown"},
		{"Unknown Error", "unknown error"},
		{"ERR!", "unknown error"},
		{"Insufficient Permissions", "not permitted"},
		{"GPU requires reset", "requires reset"},
		{"Requested functionality has been deprecated", "deprecated"},
		{"nan", "nan"},
		{"-nan", "nan"},
		{"+nan", "nan"},
		{"inf", "inf"},
		{"-inf", "inf"},
		{"+inf", "inf"},
		{"infinity", "inf"},
		{"-infinity", "inf"},
	};

	t = span_trim(t);
	if (t.n && is_digit(t.s[0]))
		return NULL;
	if (t.n >= 2 && t.s[0] == '[' && t.s[t.n - 1] == ']')
		t = span_trim((struct span){t.s + 1, t.n - 2});
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i][0]) == t.n &&
		    (t.n == 0 || strncasecmp(words[i][0], t.s, t.n) == 0))
			return words[i][1];
	return NULL;
}

bool num_metric_name(struct span t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!is_digit(t.s[i]) && !(t.s[i] >= 'a' && t.s[i] <= 'z') && t.s[i] != '_')
			return false;
	return t.n > 0 && t.n <= METRIC_NAME_MAX;
}
