/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The database of a workspace: opening, migrating, transactions. SQL lives in db.c and query_*.c
 * alone. One process writes at a time (a lease per campaign keeps it so); viewers open read-only.
 * WAL on a local disk; DELETE journal on a network file system, refused where locks do not work.
 */
#ifndef FETTLE_EXPERIMENTS_DB_H
#define FETTLE_EXPERIMENTS_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/err.h"

struct db;

struct db_migration {
	const char *name, *sql;
};
extern const struct db_migration db_migrations[]; /* generated from experiments/migrations */
extern const int db_migration_count;
/* What they amount to, which a new database executes in their place: experiments/schema.sql. */
extern const char *const db_schema;

enum db_mode { DB_CREATE, DB_WRITE, DB_READ };

/* Open `path` (":memory:" too) and bring it to this program's schema (not in DB_READ). A file of a
 * newer schema is refused with both numbers and what to do. DB_WRITE and DB_READ of an absent file:
 * ERR_NOT_FOUND. The file is created 0600, its directory must exist. Before an upgrade the file is
 * copied to <path>.before-<its schema>. DB_READ of an older schema leaves it as it is and reads
 * an upgraded copy in memory, as of now (above 1 GiB: ERR_STATE). `c` (NULL: the system's) stamps
 * schema_upgrade rows. */
int db_open(const char *path, enum db_mode mode, const struct clock *c, struct db **out,
	    struct err *e);
void db_close(struct db *db);
int db_version(struct db *db, int *out, struct err *e);

/* Transactions, BEGIN IMMEDIATE; not nested. `what` names it in errors. */
int db_begin(struct db *db, const char *what, struct err *e);
int db_commit(struct db *db, struct err *e);
void db_rollback(struct db *db); /* harmless when none is open */

/* From now on whatever this connection writes is preceded by guard(), inside the transaction that
 * writes; when it refuses nothing is written and its error is the caller's. So an owner that was
 * paused and lost its lease cannot write any more, wherever it went on. NULL: no guard. */
typedef int (*db_guard_f)(void *ctx, struct err *e);
void db_guard(struct db *db, db_guard_f guard, void *ctx);

/* A number that changes when another connection has committed something: cheap to ask, and no
 * transaction waits for it. */
int db_data_version(struct db *db, int64_t *out, struct err *e);

/* Count of commits and of statements since the open, for the bench. */
void db_counters(const struct db *db, int64_t *commits, int64_t *statements);

/* Copy it, as it is at this moment, to a file that does not exist yet (ERR_STATE if it does): one
 * private file with a rollback journal, checked before it gets its name. Through the backup API:
 * VACUUM INTO came with SQLite 3.27.
 */
int db_backup(struct db *db, const char *to, struct err *e);

#endif
