/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of a stage as a dense table [block][arm]: what comparisons, guards and the noise of past
 * campaigns are computed from. A cell is the mean over an arm's runs in a block, NAN where there is
 * none. Blocks of one allocation on the same nodes are repeats of one unit: table_cluster() makes
 * one row of them, table_first() keeps the first.
 */
#ifndef FETTLE_METHOD_TABLE_H
#define FETTLE_METHOD_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "experiments/query.h"

struct table {
	double *y; /* [block * arms + arm] */
	size_t *n; /* runs in each cell, until the rows are made units */
	size_t blocks, arms;
};

/* Index of an arm of the stage, -1: not one of it. */
int table_arm(const struct stage_row *s, int64_t arm);
/* An empty table for v[0..n), which come by block index; *t is zero before. */
void table_init(struct table *t, const struct stage_row *s, const struct value_row *v, size_t n);
/* Means of f(value) over the ok runs; a NAN of f leaves a run out. */
void table_fill(struct table *t, const struct stage_row *s, const struct value_row *v, size_t n,
		double (*f)(double));
/* The unit of each of the table's blocks, numbered by first appearance; heap. */
size_t *table_units(const struct value_row *v, size_t n, size_t blocks, size_t *n_units);
/* One row a unit in place of one a block: arm 0 is its mean, and the difference of each other arm
 * is the mean of the differences of the unit's blocks. So a test sees as many values as there are
 * independent ones; the interaction of allocation and arm is in all of them. */
void table_cluster(struct table *t, const struct value_row *v, size_t n);
/* One row a unit: its first block. */
void table_first(struct table *t, const struct value_row *v, size_t n);
/* log(v); NAN for what is not positive. */
double table_log(double v);

#endif
