/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For query_*.c only: statements with parameters and columns by name.
 *
 * A statement remembers its first fault: binding, stepping and reading go on as no-ops, and
 * stmt_close() returns the fault, so that callers check once. SQL texts are the constants of the
 * tables query_sql_*: they are prepared once a connection (the cache is keyed by their address),
 * and a test asks SQLite for the plan of each.
 */
#ifndef FETTLE_EXPERIMENTS_DB_PRIV_H
#define FETTLE_EXPERIMENTS_DB_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiments/db.h"
#include "orchestrator/base/err.h"

/* The C API and the SQL that we use are those of 3.26.0, which RHEL 8 has. */
enum { DB_SQLITE_MIN = 3026000 };

struct sqlite3;
struct sqlite3_stmt;

struct stmt {
	struct db *db;
	struct sqlite3_stmt *h; /* NULL when it could not be prepared */
	const char *what;       /* for messages: "read campaign" */
	struct err *e;
	int rc;    /* 0, or the first fault's negative code, already in *e */
	int entry; /* in the cache; -1: a second use of a busy statement, not cached */
	int col;   /* where the last column was found: the next one is mostly after it */
	bool stepped;
};

/* Prepare, or take from the cache. `sql` and `what` must be constants. */
struct stmt stmt_open(struct db *db, const char *sql, const char *what, struct err *e);
/* Done with it: 0 or the first fault. The statement may not be used any more. */
int stmt_close(struct stmt *s);
/* Step to the end and close: for statements without rows. */
int stmt_run(struct stmt *s);
/* One row more? false at the end and on a fault. */
bool stmt_row(struct stmt *s);
/* Report a fault of the caller's own; returns s->rc. */
int stmt_fail(struct stmt *s, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Bind to ":name". Texts are borrowed until stmt_close(). */
void bind_i64(struct stmt *s, const char *name, int64_t v);
void bind_opt(struct stmt *s, const char *name, int64_t v);      /* 0 is NULL */
void bind_real(struct stmt *s, const char *name, double v);      /* NaN is NULL */
void bind_text(struct stmt *s, const char *name, const char *v); /* NULL is NULL */

/* Read a column of the row by name. A name that the statement does not give is a fault. */
int64_t col_i64(struct stmt *s, const char *name); /* NULL is 0 */
int col_int(struct stmt *s, const char *name);     /* a fault beyond the range of int */
bool col_bool(struct stmt *s, const char *name);
double col_real(struct stmt *s, const char *name); /* NULL is NaN */
char *col_text(struct stmt *s, const char *name);  /* heap; NULL is NULL */
const char *col_peek(struct stmt *s,
		     const char *name); /* borrowed until the next step; NULL is NULL */
bool col_null(struct stmt *s, const char *name);
/* Read an enum by its word: COL_WORD(&s, "state", campaign_state, &row->state) */
#define COL_WORD(s, name, type, out)                                                              \
	do {                                                                                      \
		const char *word_ = col_peek((s), (name));                                        \
		if (!type##_parse(word_, (out)))                                                  \
			stmt_fail((s), ERR_STATE, "%s \"%s\" is no word that this program knows", \
				  (name), word_ ? word_ : "NULL");                                \
	} while (0)

int64_t db_last_id(struct db *db);
int db_changed(struct db *db); /* rows of the last INSERT, UPDATE or DELETE */
/* Whoever writes: rows of campaigns and allocations say so. */
const char *db_user(const struct db *db);
const char *db_path(const struct db *db);
bool db_in_transaction(const struct db *db);

/* Several writes as one: opens a transaction if the caller has none. db_leave() gives rc back, or
 * the fault of the commit; it rolls back on a fault if the transaction is its own. */
int db_enter(struct db *db, const char *what, bool *own, struct err *e);
int db_leave(struct db *db, bool own, int rc, struct err *e);

/* Between db.c and db_stmt.c. */
struct db_cache; /* prepared statements of one connection */
struct db_cache *db_cache_new(void);
void db_cache_free(struct db_cache *c); /* finalizes them */
struct db_cache *db_cache_of(struct db *db);
struct sqlite3 *db_handle(struct db *db);
/* Set *e from SQLite's last fault on the connection: "<path>: <what>: <text>", with what to do. */
int db_fault(struct db *db, const char *what, int sqlite_rc, struct err *e);
void db_count_statement(struct db *db);
/* Ask the guard, if there is one and no transaction is open (that asked it when it began). */
int db_ask_guard(struct db *db, struct err *e);

/* SQL of each query file, NULL-terminated, for the test of the plans. */
extern const char *const query_sql_campaign[],
	*const query_sql_lease[],
		*const query_sql_config[],
			*const query_sql_hypothesis[],
				*const query_sql_stage[],
					*const query_sql_attempt[],
						*const query_sql_ingest[],
							*const query_sql_values[],
								*const query_sql_verdict[],
									*const query_sql_report[],
										*const query_sql_ablation
											[];
extern const char *const query_sql_jobs[];
extern const char *const query_sql_glance[];
extern const char *const query_sql_hosts[];
extern const char *const query_sql_rung[];
extern const char *const query_sql_environment[];
extern const char *const query_sql_series[];
extern const char *const query_sql_observation[];
extern const char *const query_sql_canary[];
extern const char *const query_sql_regression[];
extern const char *const query_sql_night[];

/* -- shared by query files ------------------------------------------------------------------- */

/* The workspace's uuid in the caller's transaction, made if there is none. query_campaign.c */
int query_workspace_ensure(struct db *db, int64_t now_us, char out[37], struct err *e);

#endif
