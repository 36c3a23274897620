/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/when.h"

#include <stdio.h>
#include <string.h>

struct cursor {
	struct span t;
	bool ok;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool at(const struct cursor *c, char ch)
{
	return c->t.n && c->t.s[0] == ch;
}

static void skip(struct cursor *c)
{
	c->t.s++;
	c->t.n--;
}

/* Between 1 and max digits; *n (may be NULL) gets how many. */
static int64_t digits(struct cursor *c, int max, int *n)
{
	int64_t v = 0;
	int k = 0;

	while (c->t.n && k < max && is_digit(c->t.s[0])) {
		v = v * 10 + (c->t.s[0] - '0');
		skip(c);
		k++;
	}
	if (!k)
		c->ok = false;
	if (n)
		*n = k;
	return v;
}

static void expect(struct cursor *c, char ch)
{
	if (at(c, ch))
		skip(c);
	else
		c->ok = false;
}

struct day {
	int64_t y, m, d;
};

/* The separator and the width of the first number tell the order apart. */
static struct day read_day(struct cursor *c)
{
	struct day d = {0, 0, 0};
	int width;
	int64_t first = digits(c, 4, &width), second, third;
	char sep = c->t.n ? c->t.s[0] : '\0';

	if (sep != '-' && sep != '/' && sep != '.')
		c->ok = false;
	if (!c->ok)
		return d;
	skip(c);
	second = digits(c, 2, NULL);
	expect(c, sep);
	third = digits(c, width == 4 ? 2 : 4, NULL);
	if (width == 4)
		return (struct day){first, second, third};
	third += third < 100 ? 2000 : 0;
	return sep == '.' ? (struct day){third, second, first} : (struct day){third, first, second};
}

/* Microseconds of a fraction; digits beyond six are dropped. */
static int64_t read_fraction(struct cursor *c)
{
	int64_t us = 0, unit = 100000;

	if (!at(c, '.') && !at(c, ','))
		return 0;
	skip(c);
	for (; c->t.n && is_digit(c->t.s[0]); skip(c), unit /= 10)
		us += (c->t.s[0] - '0') * unit;
	return us;
}

/* Minutes east of UTC. */
static int64_t read_zone(struct cursor *c)
{
	bool west = at(c, '-');
	int64_t h, m;

	if (at(c, 'Z')) {
		skip(c);
		return 0;
	}
	if (!west && !at(c, '+'))
		return 0;
	skip(c);
	h = digits(c, 2, NULL);
	if (at(c, ':'))
		skip(c);
	m = c->t.n ? digits(c, 2, NULL) : 0;
	return (west ? -1 : 1) * (h * 60 + m);
}

/* Days since 1970-01-01 of a date of the Gregorian calendar (years from March, eras of 400). */
static int64_t days(struct day d)
{
	int64_t y = d.m <= 2 ? d.y - 1 : d.y, era = y / 400, yoe = y - era * 400;
	int64_t doy = (153 * (d.m + (d.m > 2 ? -3 : 9)) + 2) / 5 + d.d - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool is_day(struct day d)
{
	static const int len[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (d.y % 4 == 0 && d.y % 100 != 0) || d.y % 400 == 0;

	return d.y >= 1970 && d.y <= 9999 && d.m >= 1 && d.m <= 12 && d.d >= 1 &&
	       d.d <= len[d.m - 1] + (d.m == 2 && leap);
}

int64_t when_parse(struct span t)
{
	struct cursor c = {span_trim(t), true};
	struct day d = read_day(&c);
	int64_t h, m, s, us, zone;

	if (!c.ok || (!at(&c, ' ') && !at(&c, 'T')))
		return -1;
	skip(&c);
	h = digits(&c, 2, NULL);
	expect(&c, ':');
	m = digits(&c, 2, NULL);
	expect(&c, ':');
	s = digits(&c, 2, NULL);
	us = read_fraction(&c);
	zone = read_zone(&c);
	if (!c.ok || c.t.n || !is_day(d) || h > 23 || m > 59 || s > 60)
		return -1;
	us += (((days(d) * 24 + h) * 60 + m - zone) * 60 + s) * 1000000;
	return us < 0 ? -1 : us;
}

/* "2:14" or "02:14:07.5" as microseconds. */
static int64_t read_clock(struct cursor *c)
{
	int64_t h = digits(c, 2, NULL), m, s = 0, us = 0;

	expect(c, ':');
	m = digits(c, 2, NULL);
	if (at(c, ':')) {
		skip(c);
		s = digits(c, 2, NULL);
		us = read_fraction(c);
	}
	c->ok = c->ok && h <= 23 && m <= 59 && s <= 60;
	return ((h * 60 + m) * 60 + s) * 1000000 + us;
}

bool when_read(struct span t, struct when *out)
{
	struct cursor c = {span_trim(t), true};
	bool year_first = c.t.n > 4 && !is_digit(c.t.s[4]) && is_digit(c.t.s[3]);
	struct day d = read_day(&c);
	struct when w = {0};

	if (!c.ok || !year_first || !is_day(d))
		return false;
	w.us = days(d) * 24 * 3600 * 1000000;
	w.timed = c.t.n > 0;
	if (w.timed && (at(&c, ' ') || at(&c, 'T'))) {
		skip(&c);
		c.t = span_trim(c.t);
		w.us += read_clock(&c);
		c.t = span_trim(c.t);
		w.zoned = c.t.n > 0;
		if (span_eq(c.t, "UTC") || span_eq(c.t, "GMT"))
			c.t.n = 0;
		w.us -= read_zone(&c) * 60 * 1000000;
	}
	*out = w;
	return c.ok && c.t.n == 0;
}

static int64_t from_1970(struct span t)
{
	struct cursor c = {t, true};
	int n;
	int64_t s = digits(&c, 10, &n), us = read_fraction(&c);

	return c.ok && n == 10 && !c.t.n ? s * 1000000 + us : -1;
}

static int month_of(struct span t)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; t.n == 3 && i < 12; i++)
		if (memcmp(t.s, names + (ptrdiff_t)3 * i, 3) == 0)
			return i + 1;
	return 0;
}

/* "Sun Nov 29 12:01:06 [UTC ]2026" of date(1) and ctime(3). Of zones only UTC is known. */
static int64_t from_ctime(struct span t)
{
	char text[32];
	struct span w[6];
	size_t n = 0;
	int month, year_at;

	while (n < 6 && span_word(&t, &w[n]))
		n++;
	if (n < 5 || span_trim(t).n || w[0].n != 3 || !(month = month_of(w[1])))
		return -1;
	year_at = n == 6 ? 5 : 4;
	if (w[year_at].n != 4 || w[2].n > 2 || w[3].n != 8)
		return -1;
	snprintf(text, sizeof(text), "%.4s-%02d-%.*s %.8s", w[year_at].s, month, (int)w[2].n,
		 w[2].s, w[3].s);
	return when_parse(span_of(text));
}

int64_t when_stamp(struct span t)
{
	int64_t us;

	while (t.n && strchr("#=- \t", t.s[0]))
		t.s++, t.n--;
	while (t.n && strchr("#=- \t", t.s[t.n - 1]))
		t.n--;
	us = from_1970(t);
	if (us < 0)
		us = when_parse(t);
	return us < 0 ? from_ctime(t) : us;
}
