/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A workspace is a directory with fettle.db, blocks/ and a uuid: all state of one team or user. */
#ifndef FETTLE_METHOD_WORKSPACE_H
#define FETTLE_METHOD_WORKSPACE_H

#include "experiments/db.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/err.h"

struct workspace {
	char *root;        /* absolute */
	char *blocks_root; /* <root>/blocks */
	char uuid[37];     /* "" when opened read-only before the first campaign */
	struct db *db;
	const struct clock *clock;
};

/* The directory that applies: `given`, else $FETTLE_WORKSPACE, else ./fettle-workspace. Borrowed.
 */
const char *workspace_default(const char *given);

/* What is opened as this is never a directory: a database in memory, for schedulers that keep their
 * blocks themselves. */
#define WORKSPACE_MEMORY ":memory:"

/* Open it; DB_CREATE makes directory (0700, as is what lies in it: private; in a directory that its
 * group may write everything is for the group, see fs_shared()), blocks/ and database first. An
 * absent workspace in the other modes is ERR_NOT_FOUND with what to type. */
int workspace_open(const char *dir, enum db_mode mode, const struct clock *clock,
		   struct workspace **out, struct err *e);
void workspace_close(struct workspace *w); /* NULL is fine */

#endif
