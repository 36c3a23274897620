/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/bytes.h"

#include "orchestrator/base/mem.h"

static const struct {
	const char *name;
	double factor;
} units[] = {
	{"bytes", 1},     {"B", 1},        {"KiB", 1024},   {"KB", 1024},
	{"MiB", 1048576}, {"MB", 1048576}, {"GiB", 0x1p30}, {"GB", 0x1p30},
	{"TiB", 0x1p40},  {"TB", 0x1p40},  {"PiB", 0x1p50}, {"PB", 0x1p50},
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool bytes_scan(struct span t, double *out, size_t *used)
{
	size_t n, i, k = 0;
	struct span word;
	double v;

	if (num_scan(t, &v, &n) != NUM_FINITE)
		return false;
	for (i = n; i < t.n && t.s[i] == ' '; i++)
		;
	while (i + k < t.n && is_letter(t.s[i + k]))
		k++;
	word = (struct span){t.s + i, k};
	for (size_t u = 0; u < ARRAY_LEN(units); u++) {
		if (!span_eq(word, units[u].name))
			continue;
		*out = v * units[u].factor;
		if (used)
			*used = i + k;
		return true;
	}
	return false;
}

bool factor_scan(struct span t, const char *unit, double *out)
{
	static const struct {
		const char *name;
		double factor;
	} letters[] = {{"K", 1e3},  {"k", 1e3},  {"M", 1e6},  {"G", 1e9}, {"T", 1e12},
		       {"P", 1e15}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}};
	struct span rest;
	size_t n;
	double v;

	t = span_trim(t);
	if (num_scan(t, &v, &n) != NUM_FINITE)
		return false;
	rest = span_trim((struct span){t.s + n, t.n - n});
	*out = v;
	if (!rest.n || span_eq(rest, unit))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
		struct span tail = {rest.s + 1, rest.n - 1};

		if (rest.s[0] != letters[i].name[0] || (tail.n && !span_eq(tail, unit)))
			continue;
		*out = v * letters[i].factor;
		return true;
	}
	return false;
}
