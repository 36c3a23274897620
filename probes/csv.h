/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line of comma-separated values with RFC 4180 quotes: "a ""b"", c" is one field. */
#ifndef FETTLE_PROBES_CSV_H
#define FETTLE_PROBES_CSV_H

#include "probes/num.h"

/* Nsight Compute's raw page has a column a counter, some thousand with all sections. */
enum { CSV_FIELDS_MAX = 2048 };

struct csv {
	struct span v[CSV_FIELDS_MAX];
	size_t n;
	char *text; /* what quotes were taken out of */
	size_t cap;
};

/* Fields without their quotes and the blanks around them; they live until the next call. False when
 * a quote is not closed or there are more fields than CSV_FIELDS_MAX. */
bool csv_split(struct csv *c, struct span line);
/* The same with another separator: ';' or a tab. */
bool csv_split_at(struct csv *c, struct span line, char separator);
int csv_find(const struct csv *c, const char *name); /* the first field that is `name`, or -1 */
void csv_free(struct csv *c);

/* "1,234.5" and "1234.5" */
bool csv_number(struct span t, double *out);
/* What to multiply a time by for nanoseconds: "(ns)", "usecond", "ms", "s"; 0 if it is no unit of
 * time. */
double csv_time_scale(struct span unit);

#endif
