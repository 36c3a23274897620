/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hours of the week in a time zone: "22:00-06:00 Europe/Berlin", "Sat,Sun 00:00-24:00", "Mon-Fri
 * 18:00-08:00 UTC". Without days every day; without a zone that of this machine. Hours that pass
 * midnight belong to the day on which they begin. On the two nights on which clocks change they
 * begin and end by the clock on the wall. A zone that this machine does not know is an error: libc
 * would take it for UTC in silence.
 */
#ifndef FETTLE_BASE_HOURS_H
#define FETTLE_BASE_HOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"

struct strv;

struct hours {
	int from_min, to_min; /* minutes from midnight; to <= from: of the next day */
	unsigned days;        /* bit 0 is Sunday */
	char zone[64];        /* "": the machine's */
};
/* ERR_RECIPE with what would be right. */
int hours_parse(const char *text, struct hours *out, struct err *e);

struct hours_state {
	bool open;
	int64_t closes_us; /* when open */
	int64_t opens_us;  /* when closed: the next time; 0: never within two weeks */
};
/* Several hours: open while any of them is. Texts that hours_parse() refuses count as closed; no
 * text at all is always open (closes_us INT64_MAX). */
void hours_at(const struct strv *texts, int64_t utc_us, struct hours_state *out);
/* Open only while both are. */
void hours_both_at(const struct strv *a, const struct strv *b, int64_t utc_us,
		   struct hours_state *out);

/* The night that these hours make: the local date, in their zone, on which they open. */
struct hours_night {
	char night[11];
	int64_t opens_us;
};
/* Of the hours that are open now, the ones that opened last; closed: of those that open next. No
 * text: a night lasts from noon to noon by this machine's clock. False: they never open. */
bool hours_night_at(const struct strv *texts, int64_t utc_us, struct hours_night *out);

/* "2026-12-01 06:00 Europe/Berlin" (zone as above) as UTC microseconds. ERR_RECIPE. */
int hours_moment(const char *text, int64_t *utc_us, struct err *e);
/* The same way round: "2026-12-01 06:00 Europe/Berlin", in the zone of the first text that has one.
 */
void hours_text(const struct strv *texts, int64_t utc_us, char *out, size_t n);

#endif
