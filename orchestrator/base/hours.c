/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/hours.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	DAY_MIN = 24 * 60,
	EVERY_DAY = 0x7f,
	DAYS_AHEAD = 15, /* a weekly hour that a clock change swallows comes a week later */
	JOINS_MAX = 64,  /* hours that follow one another without a gap */
	US_PER_S = 1000000,
};

#define HOURS_LIKE "expected hours like \"22:00-06:00 Europe/Berlin\" or \"Mon-Fri 18:00-08:00\""

/* -- zones ------------------------------------------------------------------------------------ */

/* libc knows one zone at a time, from the environment; it is put back after each use. */
struct zone_guard {
	char *before;
	bool changed;
};

static struct zone_guard zone_enter(const char *zone)
{
	const char *now = getenv("TZ");
	struct zone_guard g = {.before = now ? xstrdup(now) : NULL, .changed = *zone != '\0'};

	if (g.changed)
		setenv("TZ", zone, 1);
	tzset();
	return g;
}

static void zone_leave(struct zone_guard *g)
{
	if (g->changed && g->before)
		setenv("TZ", g->before, 1);
	else if (g->changed)
		unsetenv("TZ");
	free(g->before);
	tzset();
}

static bool zone_exists(const char *zone)
{
	const char *dir = getenv("TZDIR");
	_cleanup_free_ char *path = xasprintf("%s/%s", dir && *dir ? dir : "/usr/share/zoneinfo",
					      zone);

	if (!*zone || str_eq(zone, "UTC"))
		return true;
	for (const char *p = zone; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_+-/", *p))
			return false;
	return zone[0] != '/' && access(path, R_OK) == 0;
}

static int take_zone(const char *text, const char *zone, char out[64], struct err *e)
{
	if (!zone_exists(zone) || strlen(zone) >= 64)
		return err_set(e, ERR_RECIPE,
			       "\"%s\": this machine knows no time zone %s (package tzdata; names "
			       "are like Europe/Berlin or UTC)",
			       text, zone);
	str_copy(out, 64, zone);
	return 0;
}

/* -- reading ---------------------------------------------------------------------------------- */

/* "22:00" at *p; 24:00 is allowed. -1: none. */
static int take_clock(const char **p)
{
	const char *s = *p;
	int h, m;

	if (!isdigit((unsigned char)s[0]) || !isdigit((unsigned char)s[1]) || s[2] != ':' ||
	    !isdigit((unsigned char)s[3]) || !isdigit((unsigned char)s[4]))
		return -1;
	h = (s[0] - '0') * 10 + s[1] - '0';
	m = (s[3] - '0') * 10 + s[4] - '0';
	*p += 5;
	return h * 60 + m > DAY_MIN || m > 59 ? -1 : h * 60 + m;
}

static int take_day(const char **p)
{
	static const char *const names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

	for (int i = 0; i < 7; i++)
		if (strncmp(*p, names[i], 3) == 0) {
			*p += 3;
			return i;
		}
	return -1;
}

/* "Mon-Fri,Sun " at *p. False: something else is there. */
static bool take_days(const char **p, unsigned *days)
{
	*days = 0;
	do {
		int first = take_day(p), last = first;

		if (first >= 0 && **p == '-') {
			(*p)++;
			last = take_day(p);
		}
		if (first < 0 || last < 0)
			return false;
		for (int d = first;; d = (d + 1) % 7) {
			*days |= 1u << d;
			if (d == last)
				break;
		}
	} while (*(*p)++ == ',');
	return (*p)[-1] == ' ';
}

int hours_parse(const char *text, struct hours *out, struct err *e)
{
	struct hours h = {.days = EVERY_DAY};
	const char *p = text;
	int rc;

	if (isalpha((unsigned char)*p) && !take_days(&p, &h.days))
		return err_set(e, ERR_RECIPE,
			       "\"%s\": days are Mon, Tue, Wed, Thu, Fri, Sat, Sun; %s", text,
			       HOURS_LIKE);
	h.from_min = take_clock(&p);
	if (h.from_min < 0 || *p++ != '-' || (h.to_min = take_clock(&p)) < 0 || (*p && *p != ' ') ||
	    h.from_min == DAY_MIN || h.from_min == h.to_min)
		return err_set(e, ERR_RECIPE, "\"%s\": %s", text, HOURS_LIKE);
	p += *p == ' ';
	if ((rc = take_zone(text, p, h.zone, e)) < 0)
		return rc;
	*out = h;
	return 0;
}

/* -- times ------------------------------------------------------------------------------------ */

/* The wall clock's `min` minutes after midnight, `days` days after the date of `day`. */
static int64_t wall_us(const struct tm *day, int days, int min)
{
	struct tm t = {.tm_year = day->tm_year,
		       .tm_mon = day->tm_mon,
		       .tm_mday = day->tm_mday + days,
		       .tm_hour = min / 60,
		       .tm_min = min % 60,
		       .tm_isdst = -1};

	return (int64_t)mktime(&t) * US_PER_S;
}

static void widen(struct hours_state *s, int64_t now, int64_t from, int64_t to)
{
	if (from <= now && now < to) {
		s->closes_us = s->open && s->closes_us > to ? s->closes_us : to;
		s->open = true;
	} else if (from > now && (s->opens_us == 0 || from < s->opens_us)) {
		s->opens_us = from;
	}
}

static void one_at(const struct hours *h, int64_t now, struct hours_state *s)
{
	struct zone_guard g = zone_enter(h->zone);
	time_t t = (time_t)(now / US_PER_S);
	struct tm day;

	localtime_r(&t, &day);
	for (int d = -1; d < DAYS_AHEAD; d++) {
		unsigned weekday = (unsigned)(day.tm_wday + d + 7) % 7;

		if (h->days & 1u << weekday)
			widen(s, now, wall_us(&day, d, h->from_min),
			      wall_us(&day, d + (h->to_min <= h->from_min), h->to_min));
	}
	zone_leave(&g);
}

static struct hours_state any_at(const struct strv *texts, int64_t now)
{
	struct hours_state s = {0};

	for (size_t i = 0; i < texts->n; i++) {
		struct hours h;

		if (hours_parse(texts->v[i], &h, NULL) == 0)
			one_at(&h, now, &s);
	}
	return s;
}

/* Hours that begin where others end are one stretch. */
void hours_at(const struct strv *texts, int64_t utc_us, struct hours_state *out)
{
	if (texts->n == 0) {
		*out = (struct hours_state){.open = true, .closes_us = INT64_MAX};
		return;
	}
	*out = any_at(texts, utc_us);
	for (int i = 0; out->open && i < JOINS_MAX; i++) {
		struct hours_state next = any_at(texts, out->closes_us);

		if (!next.open)
			break;
		out->closes_us = next.closes_us;
	}
}

void hours_both_at(const struct strv *a, const struct strv *b, int64_t utc_us,
		   struct hours_state *out)
{
	struct hours_state x, y;
	int64_t at = utc_us;

	hours_at(a, at, &x);
	hours_at(b, at, &y);
	*out = (struct hours_state){.open = x.open && y.open,
				    .closes_us = x.closes_us < y.closes_us ? x.closes_us
									   : y.closes_us};
	for (int i = 0; i < JOINS_MAX && !(x.open && y.open); i++) {
		at = !x.open ? x.opens_us : y.opens_us;
		if (at == 0)
			return;
		hours_at(a, at, &x);
		hours_at(b, at, &y);
	}
	if (!out->open && x.open && y.open)
		out->opens_us = at;
}

/* -- nights ----------------------------------------------------------------------------------- */

/* The date `days` after that of `day`. Noon is there on every date, whatever clocks do. */
static void date_text(const struct tm *day, int days, char out[11])
{
	time_t noon = (time_t)(wall_us(day, days, DAY_MIN / 2) / US_PER_S);
	struct tm t;

	localtime_r(&noon, &t);
	strftime(out, 11, "%Y-%m-%d", &t);
}

/* What opened last of what is open; else what opens first. */
static void later_night(const struct tm *day, int d, int64_t from, bool open, bool *is_open,
			struct hours_night *out)
{
	if (*is_open > open || (*is_open == open && out->opens_us &&
				(open ? from <= out->opens_us : from >= out->opens_us)))
		return;
	*is_open = open;
	out->opens_us = from;
	date_text(day, d, out->night);
}

static void one_night(const struct hours *h, int64_t now, bool *is_open, struct hours_night *out)
{
	struct zone_guard g = zone_enter(h->zone);
	time_t t = (time_t)(now / US_PER_S);
	struct tm day;

	localtime_r(&t, &day);
	for (int d = -1; d < DAYS_AHEAD; d++) {
		int64_t from = wall_us(&day, d, h->from_min);
		bool open = from <= now &&
			    now < wall_us(&day, d + (h->to_min <= h->from_min), h->to_min);

		if (h->days & 1u << (unsigned)(day.tm_wday + d + 7) % 7 && (open || from > now))
			later_night(&day, d, from, open, is_open, out);
	}
	zone_leave(&g);
}

bool hours_night_at(const struct strv *texts, int64_t utc_us, struct hours_night *out)
{
	static const struct hours noon = {DAY_MIN / 2, DAY_MIN / 2, EVERY_DAY, ""};
	bool is_open = false;

	*out = (struct hours_night){0};
	for (size_t i = 0; i < texts->n; i++) {
		struct hours h;

		if (hours_parse(texts->v[i], &h, NULL) == 0)
			one_night(&h, utc_us, &is_open, out);
	}
	if (texts->n == 0)
		one_night(&noon, utc_us, &is_open, out);
	return out->opens_us != 0;
}

/* -- moments ---------------------------------------------------------------------------------- */

int hours_moment(const char *text, int64_t *utc_us, struct err *e)
{
	int y = str_digits(text, 4), mon, day, min;
	const char *p;
	char zone[64];
	struct zone_guard g;
	struct tm t = {0};

	if (y < 1970 || text[4] != '-' || (mon = str_digits(text + 5, 2)) < 1 || mon > 12 ||
	    text[7] != '-' || (day = str_digits(text + 8, 2)) < 1 || day > 31 ||
	    (text[10] != ' ' && text[10] != 'T'))
		return err_set(e, ERR_RECIPE,
			       "\"%s\": expected a time like \"2026-12-01 06:00 Europe/Berlin\"",
			       text);
	p = text + 11;
	min = take_clock(&p);
	if (min < 0 || (*p && *p != ' '))
		return err_set(e, ERR_RECIPE,
			       "\"%s\": expected a time like \"2026-12-01 06:00 Europe/Berlin\"",
			       text);
	p += *p == ' ';
	if (take_zone(text, p, zone, e) < 0)
		return -ERR_RECIPE;
	t = (struct tm){.tm_year = y - 1900, .tm_mon = mon - 1, .tm_mday = day};
	g = zone_enter(zone);
	*utc_us = wall_us(&t, 0, min);
	zone_leave(&g);
	return 0;
}

void hours_text(const struct strv *texts, int64_t utc_us, char *out, size_t n)
{
	struct hours h = {0};
	struct zone_guard g;
	time_t t = (time_t)(utc_us / US_PER_S);
	struct tm tm;

	for (size_t i = 0; i < texts->n && !*h.zone; i++)
		(void)hours_parse(texts->v[i], &h, NULL);
	g = zone_enter(h.zone);
	localtime_r(&t, &tm);
	snprintf(out, n, "%04d-%02d-%02d %02d:%02d%s%s", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, *h.zone ? " " : "", h.zone);
	zone_leave(&g);
}
