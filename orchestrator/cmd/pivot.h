/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of a probe as a table for people: a row a step and rank, the columns that the probe names.
 * A trace gives some twenty metrics a step; as lines nobody would see one step beside another.
 */
#ifndef FETTLE_CMD_PIVOT_H
#define FETTLE_CMD_PIVOT_H

#include "probes/probe.h"

struct pivot;
struct pivot *pivot_new(const struct probe_column *columns);
void pivot_free(struct pivot *p); /* NULL is fine */
/* True when the value is a cell of the table; it is copied. Values of one row come together. */
bool pivot_take(struct pivot *p, const struct probe_value *v);
void pivot_print(struct pivot *p); /* to stdout, with why cells are empty; then it is empty */

#endif
