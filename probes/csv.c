/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/csv.h"

#include <stdlib.h>

#include "orchestrator/base/mem.h"

void csv_free(struct csv *c)
{
	free(c->text);
	c->text = NULL;
	c->n = c->cap = 0;
}

/* The quoted field at *i, written to `to` without quotes; false when it is not closed. */
static bool quoted(struct span line, size_t *i, char *to, size_t *n)
{
	for (++*i; *i < line.n; ++*i) {
		if (line.s[*i] != '"') {
			to[(*n)++] = line.s[*i];
		} else if (*i + 1 < line.n && line.s[*i + 1] == '"') {
			to[(*n)++] = '"';
			++*i;
		} else {
			++*i;
			return true;
		}
	}
	return false;
}

bool csv_split(struct csv *c, struct span line)
{
	return csv_split_at(c, line, ',');
}

bool csv_split_at(struct csv *c, struct span line, char separator)
{
	size_t i = 0, at = 0;

	if (c->cap < line.n + 1) {
		c->cap = line.n + 1;
		c->text = xrealloc(c->text, c->cap, 1);
	}
	c->n = 0;
	for (;;) {
		size_t from = at;

		while (i < line.n && line.s[i] == ' ')
			i++;
		if (i < line.n && line.s[i] == '"' && !quoted(line, &i, c->text, &at))
			return false;
		while (i < line.n && line.s[i] != separator)
			c->text[at++] = line.s[i++];
		if (c->n == CSV_FIELDS_MAX)
			return false;
		c->v[c->n++] = span_trim((struct span){c->text + from, at - from});
		if (i == line.n)
			return true;
		i++;
	}
}

int csv_find(const struct csv *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (span_eq(c->v[i], name))
			return (int)i;
	return -1;
}

bool csv_number(struct span t, double *out)
{
	size_t used;

	t = span_trim(t);
	if (num_whole(t, out))
		return true;
	return t.n && num_scan_thousands(t, out, &used) == NUM_FINITE && used == t.n;
}

double csv_time_scale(struct span unit)
{
	static const struct {
		const char *word;
		double scale;
	} units[] = {
		{"ns", 1},     {"nsecond", 1},  {"us", 1e3},      {"usecond", 1e3},
		{"usec", 1e3}, {"ms", 1e6},     {"msecond", 1e6}, {"msec", 1e6},
		{"s", 1e9},    {"second", 1e9}, {"sec", 1e9},     {"nsec", 1},
	};

	unit = span_trim(unit);
	if (unit.n > 2 && unit.s[0] == '(' && unit.s[unit.n - 1] == ')')
		unit = (struct span){unit.s + 1, unit.n - 2};
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (span_eq(unit, units[i].word))
			return units[i].scale;
	return 0;
}
