/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edits of a text: bytes that are replaced, in any order of adding. What becomes of the text is
 * asked for as a whole (edits_apply), or as a unified diff that patch(1) takes (edits_diff).
 */
#ifndef FETTLE_CMD_EDITS_H
#define FETTLE_CMD_EDITS_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/str.h"

/* Bytes [start, end) become text. */
struct edit {
	size_t start, end, order;
	char *text;
};
struct edits {
	struct edit *v;
	size_t n, cap;
};

void edits_add(struct edits *e, size_t start, size_t end, const char *text);
/* By place, then in the order of adding. */
void edits_sort(struct edits *e);
void edits_free(struct edits *e);

/* Bytes [from, to) of the text with the edits that begin there. Sorted; of two that overlap the
 * first counts. */
void edits_apply(const struct edits *e, const char *text, size_t from, size_t to, struct buf *out);

/* The difference between two texts that the edits make, with three lines of context; nothing where
 * there is none. `name` is the file in the head; reverse: from the new text to the old one. */
void edits_diff(const struct edits *e, const char *text, size_t n, const char *name, bool reverse,
		struct buf *out);

#endif
