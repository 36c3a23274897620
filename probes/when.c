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

/* The hour of a clock with " AM" or " PM" behind it, as locales of twelve hours write it. */
static int64_t read_half(struct cursor *c, int64_t h)
{
	char half;

	if (c->t.n < 3 || c->t.s[0] != ' ' || (c->t.s[2] | 0x20) != 'm')
		return h;
	half = (char)(c->t.s[1] | 0x20);
	if (half != 'a' && half != 'p')
		return h;
	c->ok = c->ok && h >= 1 && h <= 12;
	c->t = (struct span){c->t.s + 3, c->t.n - 3};
	return h % 12 + (half == 'p' ? 12 : 0);
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
	h = read_half(&c, h);
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

int when_month(struct span t)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; t.n == 3 && i < 12; i++)
		if (memcmp(t.s, names + (ptrdiff_t)3 * i, 3) == 0)
			return i + 1;
	return 0;
}

static bool all_digits(struct span t)
{
	size_t i = 0;

	while (i < t.n && is_digit(t.s[i]))
		i++;
	return i == t.n;
}

/* "Sun Nov 29 12:01:06 [UTC ]2026" of date(1) and ctime(3), or as locales order its words: "Sun 29
 * Nov 2026 12:01:06 PM UTC". Of zones only UTC is known. */
static int64_t from_ctime(struct span t)
{
	struct span w, day = {NULL, 0}, year = {NULL, 0}, clock = {NULL, 0}, half = {"", 0};
	int month = 0, others = 0;
	char text[48];

	if (!span_word(&t, &w) || w.n != 3)
		return -1;
	while (span_word(&t, &w)) {
		if (!month && when_month(w))
			month = when_month(w);
		else if (!day.s && w.n <= 2 && all_digits(w))
			day = w;
		else if (!year.s && w.n == 4 && all_digits(w))
			year = w;
		else if (!clock.s && w.n == 8 && w.s[2] == ':')
			clock = w;
		else if (!half.n && (span_eq(w, "AM") || span_eq(w, "PM")))
			half = w;
		else if (others++)
			return -1;
	}
	if (!month || !day.s || !year.s || !clock.s)
		return -1;
	snprintf(text, sizeof(text), "%.4s-%02d-%.*s %.8s%s%.*s", year.s, month, (int)day.n, day.s,
		 clock.s, half.n ? " " : "", (int)half.n, half.s);
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
