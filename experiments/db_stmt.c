/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

struct cached {
	const char *sql; /* its address is the key */
	sqlite3_stmt *h;
	bool busy;
};

/* A list: there are fewer than a hundred statements, and comparing addresses costs nothing beside
 * a step. */
struct db_cache {
	struct cached *v;
	size_t n, cap;
};

struct db_cache *db_cache_new(void)
{
	return xcalloc(1, sizeof(struct db_cache));
}

void db_cache_free(struct db_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		sqlite3_finalize(c->v[i].h);
	free(c->v);
	free(c);
}

static void prepare(struct stmt *s, const char *sql, unsigned flags)
{
	int rc = sqlite3_prepare_v3(db_handle(s->db), sql, -1, flags, &s->h, NULL);

	if (rc != SQLITE_OK)
		s->rc = db_fault(s->db, s->what, rc, s->e);
}

struct stmt stmt_open(struct db *db, const char *sql, const char *what, struct err *e)
{
	struct stmt s = {.db = db, .what = what, .e = e, .entry = -1};
	struct db_cache *c = db_cache_of(db);
	size_t i = 0;

	while (i < c->n && c->v[i].sql != sql)
		i++;
	if (i < c->n && c->v[i].busy) {
		prepare(&s, sql, 0);
		return s;
	}
	if (i == c->n) {
		prepare(&s, sql, SQLITE_PREPARE_PERSISTENT);
		if (s.rc < 0)
			return s;
		c->v = xgrow(c->v, c->n, &c->cap, sizeof *c->v);
		c->v[c->n++] = (struct cached){.sql = sql, .h = s.h};
	}
	s.h = c->v[i].h;
	s.entry = (int)i;
	c->v[i].busy = true;
	return s;
}

int stmt_close(struct stmt *s)
{
	if (s->entry >= 0) {
		sqlite3_reset(s->h);
		sqlite3_clear_bindings(s->h);
		db_cache_of(s->db)->v[s->entry].busy = false;
	} else {
		sqlite3_finalize(s->h);
	}
	s->h = NULL;
	s->entry = -1;
	return s->rc;
}

bool stmt_row(struct stmt *s)
{
	int rc;

	if (s->rc < 0)
		return false;
	if (!s->stepped) {
		db_count_statement(s->db);
		if (!sqlite3_stmt_readonly(s->h) && (s->rc = db_ask_guard(s->db, s->e)) < 0)
			return false;
	}
	s->stepped = true;
	s->col = -1;
	rc = sqlite3_step(s->h);
	if (rc == SQLITE_ROW)
		return true;
	if (rc != SQLITE_DONE)
		s->rc = db_fault(s->db, s->what, rc, s->e);
	return false;
}

int stmt_run(struct stmt *s)
{
	while (stmt_row(s))
		;
	return stmt_close(s);
}

int stmt_fail(struct stmt *s, enum err_code code, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (s->rc < 0)
		return s->rc;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	s->rc = err_set(s->e, code, "%s: %s: %s", db_path(s->db), s->what, text ? text : "");
	return s->rc;
}

/* -- parameters ------------------------------------------------------------------------------ */

static int parameter(struct stmt *s, const char *name)
{
	int i;

	if (s->rc < 0)
		return 0;
	i = sqlite3_bind_parameter_index(s->h, name);
	if (i == 0)
		stmt_fail(s, ERR_DB, "the statement has no parameter %s", name);
	return i;
}

static void bound(struct stmt *s, int rc)
{
	if (rc != SQLITE_OK)
		s->rc = db_fault(s->db, s->what, rc, s->e);
}

void bind_i64(struct stmt *s, const char *name, int64_t v)
{
	int i = parameter(s, name);

	if (i > 0)
		bound(s, sqlite3_bind_int64(s->h, i, v));
}

void bind_opt(struct stmt *s, const char *name, int64_t v)
{
	int i = parameter(s, name);

	if (i > 0)
		bound(s, v ? sqlite3_bind_int64(s->h, i, v) : sqlite3_bind_null(s->h, i));
}

void bind_real(struct stmt *s, const char *name, double v)
{
	int i = parameter(s, name);

	if (i > 0)
		bound(s, isnan(v) ? sqlite3_bind_null(s->h, i) : sqlite3_bind_double(s->h, i, v));
}

void bind_text(struct stmt *s, const char *name, const char *v)
{
	int i = parameter(s, name);

	if (i > 0)
		bound(s, sqlite3_bind_text(s->h, i, v, -1, SQLITE_STATIC));
}

/* -- columns --------------------------------------------------------------------------------- */

static bool find_column(struct stmt *s, const char *name)
{
	int n;

	if (s->rc < 0)
		return false;
	n = sqlite3_column_count(s->h);
	for (int k = 0; k < n; k++) {
		int i = (s->col + 1 + k) % n;

		if (strcmp(sqlite3_column_name(s->h, i), name) == 0) {
			s->col = i;
			return true;
		}
	}
	stmt_fail(s, ERR_DB, "the statement gives no column %s", name);
	return false;
}

int64_t col_i64(struct stmt *s, const char *name)
{
	return find_column(s, name) ? sqlite3_column_int64(s->h, s->col) : 0;
}

int col_int(struct stmt *s, const char *name)
{
	int64_t v = col_i64(s, name);

	if (v < INT_MIN || v > INT_MAX) {
		stmt_fail(s, ERR_STATE, "%s is out of range: %lld", name, (long long)v);
		return 0;
	}
	return (int)v;
}

bool col_bool(struct stmt *s, const char *name)
{
	return col_i64(s, name) != 0;
}

double col_real(struct stmt *s, const char *name)
{
	if (!find_column(s, name) || sqlite3_column_type(s->h, s->col) == SQLITE_NULL)
		return NAN;
	return sqlite3_column_double(s->h, s->col);
}

const char *col_peek(struct stmt *s, const char *name)
{
	return find_column(s, name) ? (const char *)sqlite3_column_text(s->h, s->col) : NULL;
}

char *col_text(struct stmt *s, const char *name)
{
	return xstrdup(col_peek(s, name));
}

bool col_null(struct stmt *s, const char *name)
{
	return !find_column(s, name) || sqlite3_column_type(s->h, s->col) == SQLITE_NULL;
}
