/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment that a result holds for, as JSON text: kernel, CPU, memory, drivers, scheduler.
 */
#ifndef FETTLE_METHOD_FINGERPRINT_H
#define FETTLE_METHOD_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* Heap. Reads only files under /proc and /sys of this host and uname. */
char *fingerprint_json(const char *scheduler);

/* One node; one that changed on its way is there twice. Borrowed texts. */
struct fingerprint_node {
	const char *node;
	struct kvs keys;
};
/* All of them as one JSON object with sorted keys; heap. What is the same on every node that tells
 * it stands there once, else "a (n1, n3), b (n2)". */
char *fingerprint_join(const struct fingerprint_node *v, size_t n);
/* Those of a stage's valid attempts; NULL: none is known. */
struct db;
int fingerprint_of_stage(struct db *db, int64_t stage, char **json, struct err *e);

/* What changed since `then` was taken, one line a field ("kernel: 5.10 -> 6.1"), appended to out.
 * Empty: the fix still holds for this environment. A field that one of them lacks says nothing: an
 * older program did not record it. The name of the host counts where trials run on it (local): on a
 * cluster it is that of a login node. ERR_PARSE for a text that is no fingerprint. */
int fingerprint_changes(const char *then, const char *now, struct strv *out, struct err *e);

#endif
