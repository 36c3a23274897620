/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dates as tools print them. One without a zone is taken as UTC: the agent runs all tools with
 * TZ=UTC, and a text from elsewhere says no better. */
#ifndef FETTLE_PROBES_WHEN_H
#define FETTLE_PROBES_WHEN_H

#include "probes/num.h"

/*
 * UTC microseconds of a date and time that fill t:
 *   2026/11/28 02:14:07.112   2026-11-28 02:14:07,112   2026-11-28T02:14:07+0100 (Z, +01:00)
 *   11/28/26 02:14:07   11/28/2026 02:14:07 PM   28.11.2026 02:14:07
 * -1 when it is none of these or no date of the calendar.
 */
int64_t when_parse(struct span t);

/*
 * The same of a line that says when what follows it was read, as scripts write it between samples:
 * a date as above, what date(1) prints ("Sun Nov 29 12:01:06 UTC 2026", "Sun 29 Nov 2026 12:01:06
 * PM UTC"), or seconds since 1970
 * ("1795958504.25"), with '#', '=', '-' and blanks around it. -1 when the line says no such thing.
 */
int64_t when_stamp(struct span line);

int when_month(struct span t); /* "Nov" is 11; 0 when t is no such name */

/* A date as people and exporters write it, the year first; a time of day and a zone where there are
 * any: 2026-11-28   2026/11/28 2:14   2026.11.28 02:14:07.5 +0100   2026-11-28T02:14Z */
struct when {
	int64_t us; /* since 1970: UTC when zoned, else by whatever clock the text means */
	bool timed; /* it has a time of day */
	bool zoned;
};
bool when_read(struct span t, struct when *out); /* false: none of these, or no such date */

#endif
