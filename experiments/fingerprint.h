/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the nodes of a stage were, put together: the environments that are stored with its attempts
 * (history.h) as one object. Campaigns compare it, reports show it.
 */
#ifndef FETTLE_EXPERIMENTS_FINGERPRINT_H
#define FETTLE_EXPERIMENTS_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct db;

/* One node; one that changed on its way is there twice. Borrowed texts. */
struct fingerprint_node {
	const char *node;
	struct kvs keys;
};
/* All of them as one JSON object with sorted keys; heap. What is the same on every node that tells
 * it stands there once, else "a (n1, n3), b (n2)". */
char *fingerprint_join(const struct fingerprint_node *v, size_t n);
/* Keys and values of such an object, added to out. ERR_PARSE. */
int fingerprint_keys(const char *json, struct kvs *out, struct err *e);
/* Those of a stage's valid attempts; NULL: none is known. */
int fingerprint_of_stage(struct db *db, int64_t stage, char **json, struct err *e);

#endif
