/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The path of a field in what a recipe returns, written as one would write it in Lua:
 * `workload.window.steps`, `knobs[3].values[1]`, `guards["a.b"].margin`. Positions count from 1.
 * An empty path is the whole value.
 */
#ifndef FETTLE_SCRIPT_FIELDPATH_H
#define FETTLE_SCRIPT_FIELDPATH_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"

/* Longest name of a field that is told apart; longer ones are cut and match nothing. */
enum { FIELDPATH_NAME_MAX = 128 };

struct fieldpath_part {
	char name[FIELDPATH_NAME_MAX]; /* "" when it is a position */
	size_t index;                  /* 1-based; 0 when it is a name */
};

/* Take the first part off *path. false at the end, or where the text is no path. */
bool fieldpath_next(const char **path, struct fieldpath_part *out);

/* Append one part to a path under construction. */
void fieldpath_key(struct buf *path, const char *name);
void fieldpath_index(struct buf *path, size_t index); /* 1-based */

/* Heap: base with one more part. */
char *fieldpath_child(const char *base, const char *name);
char *fieldpath_item(const char *base, size_t index);

/* What stands at `path` in a value; NULL if nothing does. Positions work in arrays and in objects
 * that a table with both positions and names became ("1", "2", "num_workers"). */
const struct json *fieldpath_get(const struct json *value, const char *path);

#endif
