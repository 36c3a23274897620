/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of a workspace can go without anything being lost that a campaign, a report or a person may
 * still need: leftovers of processes that were killed, scratch of trials, copies of the database
 * from before an upgrade, copies of the agent that no job can start any more. Raw files and results
 * are never among it: they are packed (pack.h), not removed.
 */
#ifndef FETTLE_METHOD_GC_H
#define FETTLE_METHOD_GC_H

#include "orchestrator/method/workspace.h"

struct gc_item {
	char *path;      /* relative to the workspace */
	const char *why; /* static */
	int64_t bytes;
	bool stays; /* only told: nobody but a person can say whether it may go */
};
struct gc_items {
	struct gc_item *v;
	size_t n, cap;
	int64_t bytes; /* of those that can go */
};

/* Find them. What a process may still be at is left alone while it is younger than a day; copies
 * from before an upgrade are kept for `days`. */
int gc_find(struct workspace *w, int days, struct gc_items *out, struct err *e);
/* Remove those that can go. */
int gc_remove(struct workspace *w, const struct gc_items *items, struct err *e);
void gc_items_free(struct gc_items *items);

#endif
