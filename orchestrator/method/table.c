/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

int table_arm(const struct stage_row *s, int64_t arm)
{
	for (size_t i = 0; i < s->n_arms; i++)
		if (s->arms[i].id == arm)
			return (int)i;
	return -1;
}

void table_init(struct table *t, const struct stage_row *s, const struct value_row *v, size_t n)
{
	int last = -1;

	t->arms = s->n_arms;
	for (size_t i = 0; i < n; i++)
		if (v[i].block_index != last) {
			t->blocks++;
			last = v[i].block_index;
		}
	t->y = xcalloc(t->blocks * t->arms + 1, sizeof *t->y);
	t->n = xcalloc(t->blocks * t->arms + 1, sizeof *t->n);
}

void table_fill(struct table *t, const struct stage_row *s, const struct value_row *v, size_t n,
		double (*f)(double))
{
	size_t block = 0;

	for (size_t i = 0; i < n; i++) {
		int a = table_arm(s, v[i].arm);
		double y;

		block += i && v[i].block_index != v[i - 1].block_index;
		if (a < 0 || v[i].state != TRIAL_OK || !isfinite(v[i].value))
			continue;
		y = f(v[i].value);
		if (!isfinite(y))
			continue;
		t->y[block * t->arms + (size_t)a] += y;
		t->n[block * t->arms + (size_t)a]++;
	}
	for (size_t i = 0; i < t->blocks * t->arms; i++)
		t->y[i] = t->n[i] ? t->y[i] / (double)t->n[i] : NAN;
}

/* Where a block ran: blocks with the same of both are repeats of one unit. */
struct place_of_block {
	int64_t allocation;
	const char *node; /* the first by name of its trials' first nodes; borrowed */
};

static bool same_unit(const struct place_of_block *a, const struct place_of_block *b)
{
	return a->allocation == b->allocation && str_eq(a->node, b->node);
}

size_t *table_units(const struct value_row *v, size_t n, size_t blocks, size_t *n_units)
{
	_cleanup_free_ struct place_of_block *at = xcalloc(blocks + 1, sizeof *at);
	size_t *unit = xcalloc(blocks + 1, sizeof *unit), block = 0;

	for (size_t i = 0; i < n; i++) {
		block += i && v[i].block_index != v[i - 1].block_index;
		at[block].allocation = v[i].allocation;
		if (v[i].node && (!at[block].node || strcmp(v[i].node, at[block].node) < 0))
			at[block].node = v[i].node;
	}
	*n_units = 0;
	for (size_t b = 0; b < blocks; b++) {
		size_t first = 0;

		while (first < b && !same_unit(&at[first], &at[b]))
			first++;
		unit[b] = first < b ? unit[first] : (*n_units)++;
	}
	return unit;
}

/* The mean over the blocks of a unit of arm - arm 0, where a block has both; NAN where none has. */
static double unit_difference(const struct table *t, const size_t *unit, size_t u, size_t arm)
{
	double sum = 0;
	size_t n = 0;

	for (size_t b = 0; b < t->blocks; b++) {
		double d = t->y[b * t->arms + arm] - t->y[b * t->arms];

		if (unit[b] != u || !isfinite(d))
			continue;
		sum += d;
		n++;
	}
	return n ? sum / (double)n : NAN;
}

static double unit_mean(const struct table *t, const size_t *unit, size_t u, size_t arm)
{
	double sum = 0;
	size_t n = 0;

	for (size_t b = 0; b < t->blocks; b++)
		if (unit[b] == u && isfinite(t->y[b * t->arms + arm])) {
			sum += t->y[b * t->arms + arm];
			n++;
		}
	return n ? sum / (double)n : NAN;
}

void table_cluster(struct table *t, const struct value_row *v, size_t n)
{
	size_t n_units, arms = t->arms;
	_cleanup_free_ size_t *unit = table_units(v, n, t->blocks, &n_units);
	double *y;

	if (n_units == t->blocks)
		return;
	y = xcalloc(n_units * arms + 1, sizeof *y);
	for (size_t u = 0; u < n_units; u++)
		for (size_t a = 0; a < arms; a++) {
			double d = a ? unit_difference(t, unit, u, a) : NAN;

			y[u * arms + a] = isfinite(d) ? y[u * arms] + d : unit_mean(t, unit, u, a);
		}
	free(t->y);
	t->y = y;
	t->blocks = n_units;
}

void table_first(struct table *t, const struct value_row *v, size_t n)
{
	size_t n_units, next = 0, arms = t->arms;
	_cleanup_free_ size_t *unit = table_units(v, n, t->blocks, &n_units);

	for (size_t b = 0; b < t->blocks; b++)
		if (unit[b] == next)
			memmove(t->y + next++ * arms, t->y + b * arms, arms * sizeof *t->y);
	t->blocks = n_units;
}

double table_log(double v)
{
	return v > 0 ? log(v) : NAN;
}
