/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The picture of one series on the page of nights.h, on a time axis that all pictures share. */
#ifndef FETTLE_REPORT_NIGHTS_CHART_H
#define FETTLE_REPORT_NIGHTS_CHART_H

#include "orchestrator/report/nights.h"

/* A label on the time axis. */
struct nights_tick {
	int day;
	char label[12]; /* "Nov 29", "Nov", "2027" */
	bool spare;     /* may be left out where there is little room */
};
enum { NIGHTS_TICKS_MAX = 16 };
size_t nights_ticks(int first_day, int last_day, struct nights_tick out[NIGHTS_TICKS_MAX]);

extern const char nights_chart_css[];
/* The class that colours a change. */
const char *nights_mark_class(const struct nights_mark *m);
/* A value with as many digits as say something: "412.6", "0.00312"; appended. */
void nights_value(double v, struct buf *out);
/* "3 nights from 2026-11-01 to 2026-11-03, values from 1.2 to 1.4 ms, newest 1.3. ..."; what a
 * picture says, in words. s has a point. */
void nights_chart_words(const struct nights_series *s, struct buf *out);
/* s has a point; first_day <= its nights <= last_day. */
void nights_chart(const struct nights_series *s, int first_day, int last_day, struct buf *out);

#endif
