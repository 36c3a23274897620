/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of words whose header names the columns: iostat, vmstat, dmon and the like. A tool's
 * versions add, drop and reorder columns, so they are found by name and never by number.
 */
#ifndef FETTLE_PROBES_COLS_H
#define FETTLE_PROBES_COLS_H

#include "probes/emit.h"

enum { COLS_MAX = 128 }; /* the widest: nvidia-smi dmon with all groups has some 40 */

/* A column that means something. A probe's list of them ends with a NULL name. */
struct col {
	const char *name, *metric;
	double scale; /* from the column's unit to the metric's */
};

/* The words of one line. */
struct words {
	struct span v[COLS_MAX];
	size_t n; /* all there are; those behind COLS_MAX are not in v */
};
void words_split(struct words *w, struct span line);
/* The number of the first of them that is `text`, or -1. */
int words_find(const struct words *w, const char *text);

/* Which column means what. Zeroed: no header was seen. */
struct cols {
	const struct col *of[COLS_MAX]; /* NULL: of no use */
	size_t n;
};
/* Take the words as header; the number of columns that are known. */
size_t cols_header(struct cols *c, const struct col *list, const struct words *header);
const struct col *col_find(const struct col *list, struct span name); /* NULL: none */

/* Emit what the cells of a row mean; a cell that is neither number nor a word for "none" is bad.
 * The last cell of a line that may go on (`complete` is false) is left out. */
void cols_emit(const struct cols *c, struct emit *o, const struct words *row, bool complete,
	       const struct emit_tag *tag);

/* A number with a unit of powers of `base` behind it: "2710k", "21.5G", "0 B", "34.2%". */
bool col_human(struct span t, double base, double *out);

#endif
