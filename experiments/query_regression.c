/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regressions, the changes that they are made of, and their likely causes. */
#include "experiments/history.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	PUT,
	UPDATE,
	GET,
	LIST,
	LIVE,
	CHANGE_PUT,
	CHANGE_UPDATE,
	CHANGES,
	CHANGES_OF,
	CHANGES_IN,
	CAUSES_DROP,
	CAUSE_PUT,
	CAUSES
};
#define REGRESSION                                                                       \
	"SELECT id, kind, level, state, night, found_night, confirmed_night, found_us, " \
	"state_us, who, note, told_us FROM regression "
#define CHANGE                                                                              \
	"SELECT id, series, regression, night, first_night, last_night, direction, level, " \
	"est, lo, hi, p, rerun, why, found_night, found_us FROM change "
const char *const query_sql_regression[] = {
	[PUT] = "INSERT INTO regression(kind, level, state, night, found_night, confirmed_night, "
		"found_us, state_us, who, note, told_us) VALUES (:kind, :level, :state, :night, "
		":found_night, :confirmed_night, :found, :changed, :who, :note, :told)",
	[UPDATE] = "UPDATE regression SET kind = :kind, level = :level, state = :state, "
		   "night = :night, found_night = :found_night, "
		   "confirmed_night = :confirmed_night, found_us = :found, state_us = :changed, "
		   "who = :who, note = :note, told_us = :told WHERE id = :id",
	[GET] = REGRESSION "WHERE id = :id",
	[LIST] = REGRESSION "ORDER BY night DESC, id DESC",
	[LIVE] = REGRESSION "WHERE state IN ('open', 'acknowledged') ORDER BY night DESC, id DESC",
	[CHANGE_PUT] = "INSERT INTO change(series, regression, night, first_night, last_night, "
		       "direction, level, est, lo, hi, p, rerun, why, found_night, found_us) "
		       "VALUES (:series, :regression, :night, :first, :last, :direction, :level, "
		       ":est, :lo, :hi, :p, :rerun, :why, :found_night, :found)",
	[CHANGE_UPDATE] = "UPDATE change SET series = :series, regression = :regression, "
			  "night = :night, first_night = :first, last_night = :last, "
			  "direction = :direction, level = :level, est = :est, lo = :lo, "
			  "hi = :hi, p = :p, rerun = :rerun, why = :why, "
			  "found_night = :found_night, found_us = :found WHERE id = :id",
	[CHANGES] = CHANGE "ORDER BY night, id",
	[CHANGES_OF] = CHANGE "WHERE series = :series ORDER BY night, id",
	[CHANGES_IN] = CHANGE "WHERE regression = :regression AND (:series = 0 OR "
			      "series = :series) ORDER BY night, id",
	[CAUSES_DROP] = "DELETE FROM cause WHERE regression = :regression",
	[CAUSE_PUT] = "INSERT INTO cause(regression, rank, kind, key, was, \"is\", score, proved, "
		      "why) VALUES (:regression, :rank, :kind, :key, :was, :is, :score, :proved, "
		      ":why)",
	[CAUSES] = "SELECT rank, kind, key, was, \"is\" AS now, score, proved, why FROM cause "
		   "WHERE regression = :regression ORDER BY rank",
	NULL,
};
#define SQL(which) query_sql_regression[which]

/* -- regressions ----------------------------------------------------------------------------- */

static void bind_regression(struct stmt *s, const struct regression_row *r)
{
	bind_text(s, ":kind", regression_kind_name(r->kind));
	bind_text(s, ":level", change_level_name(r->level));
	bind_text(s, ":state", regression_state_name(r->state));
	bind_text(s, ":night", r->night);
	bind_text(s, ":found_night", r->found_night);
	bind_text(s, ":confirmed_night", *r->confirmed_night ? r->confirmed_night : NULL);
	bind_i64(s, ":found", r->found_us);
	bind_i64(s, ":changed", r->state_us);
	bind_text(s, ":who", r->who);
	bind_text(s, ":note", r->note);
	bind_opt(s, ":told", r->told_us);
}

/* An UPDATE by number that found no row. */
static int updated(struct stmt *s, const char *noun, int64_t id)
{
	while (stmt_row(s))
		;
	if (s->rc == 0 && db_changed(s->db) == 0)
		stmt_fail(s, ERR_NOT_FOUND, "there is no %s %lld", noun, (long long)id);
	return stmt_close(s);
}

int history_regression_add(struct db *db, const struct regression_row *r, int64_t *id,
			   struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store a regression", e);
	int rc;

	bind_regression(&s, r);
	if ((rc = stmt_run(&s)) == 0)
		*id = db_last_id(db);
	return rc;
}

int history_regression_update(struct db *db, const struct regression_row *r, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(UPDATE), "update a regression", e);

	bind_i64(&s, ":id", r->id);
	bind_regression(&s, r);
	return updated(&s, "regression", r->id);
}

static void read_regression(struct stmt *s, struct regression_row *r)
{
	*r = (struct regression_row){.id = col_i64(s, "id")};
	COL_WORD(s, "kind", regression_kind, &r->kind);
	COL_WORD(s, "level", change_level, &r->level);
	COL_WORD(s, "state", regression_state, &r->state);
	str_copy(r->night, sizeof r->night, col_peek(s, "night"));
	str_copy(r->found_night, sizeof r->found_night, col_peek(s, "found_night"));
	if (!col_null(s, "confirmed_night"))
		str_copy(r->confirmed_night, sizeof r->confirmed_night,
			 col_peek(s, "confirmed_night"));
	r->found_us = col_i64(s, "found_us");
	r->state_us = col_i64(s, "state_us");
	r->who = col_text(s, "who");
	r->note = col_text(s, "note");
	r->told_us = col_null(s, "told_us") ? 0 : col_i64(s, "told_us");
}

int history_regression_get(struct db *db, int64_t id, struct regression_row *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read a regression", e);
	_cleanup_(regression_row_done) struct regression_row r = {0};
	int rc;

	bind_i64(&s, ":id", id);
	if (stmt_row(&s))
		read_regression(&s, &r);
	else if (s.rc == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no regression %lld", (long long)id);
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	*out = r;
	r = (struct regression_row){0};
	return 0;
}

int history_regressions(struct db *db, bool all, struct regression_row **out, size_t *n,
			struct err *e)
{
	struct stmt s = stmt_open(db, all ? SQL(LIST) : SQL(LIVE), "list the regressions", e);
	struct regression_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_regression(&s, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0) {
		regression_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

/* -- changes --------------------------------------------------------------------------------- */

static void bind_change(struct stmt *s, const struct change_row *c)
{
	bind_i64(s, ":series", c->series);
	bind_i64(s, ":regression", c->regression);
	bind_text(s, ":night", c->night);
	bind_text(s, ":first", c->first_night);
	bind_text(s, ":last", c->last_night);
	bind_text(s, ":direction", change_direction_name(c->direction));
	bind_text(s, ":level", change_level_name(c->level));
	bind_real(s, ":est", c->est);
	bind_real(s, ":lo", c->lo);
	bind_real(s, ":hi", c->hi);
	bind_real(s, ":p", c->p);
	bind_opt(s, ":rerun", c->rerun);
	bind_text(s, ":why", c->why);
	bind_text(s, ":found_night", *c->found_night ? c->found_night : NULL);
	bind_i64(s, ":found", c->found_us);
}

int history_change_add(struct db *db, const struct change_row *c, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CHANGE_PUT), "store a change", e);
	int rc;

	bind_change(&s, c);
	if ((rc = stmt_run(&s)) == 0)
		*id = db_last_id(db);
	return rc;
}

int history_change_update(struct db *db, const struct change_row *c, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CHANGE_UPDATE), "update a change", e);

	bind_i64(&s, ":id", c->id);
	bind_change(&s, c);
	return updated(&s, "change", c->id);
}

static void read_change(struct stmt *s, struct change_row *c)
{
	*c = (struct change_row){.id = col_i64(s, "id"),
				 .series = col_i64(s, "series"),
				 .regression = col_i64(s, "regression")};
	str_copy(c->night, sizeof c->night, col_peek(s, "night"));
	str_copy(c->first_night, sizeof c->first_night, col_peek(s, "first_night"));
	str_copy(c->last_night, sizeof c->last_night, col_peek(s, "last_night"));
	COL_WORD(s, "direction", change_direction, &c->direction);
	COL_WORD(s, "level", change_level, &c->level);
	c->est = col_real(s, "est");
	c->lo = col_real(s, "lo");
	c->hi = col_real(s, "hi");
	c->p = col_real(s, "p");
	c->rerun = col_i64(s, "rerun");
	c->why = col_text(s, "why");
	if (!col_null(s, "found_night"))
		str_copy(c->found_night, sizeof c->found_night, col_peek(s, "found_night"));
	c->found_us = col_i64(s, "found_us");
}

static struct stmt open_changes(struct db *db, int64_t regression, int64_t series, struct err *e)
{
	const char *sql = regression ? SQL(CHANGES_IN) : series ? SQL(CHANGES_OF) : SQL(CHANGES);
	struct stmt s = stmt_open(db, sql, "list the changes", e);

	if (regression)
		bind_i64(&s, ":regression", regression);
	if (regression || series)
		bind_i64(&s, ":series", series);
	return s;
}

int history_changes(struct db *db, int64_t regression, int64_t series, struct change_row **out,
		    size_t *n, struct err *e)
{
	struct stmt s = open_changes(db, regression, series, e);
	struct change_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_change(&s, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0) {
		change_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

/* -- causes ---------------------------------------------------------------------------------- */

static int put_causes(struct db *db, int64_t regression, const struct cause_row *v, size_t n,
		      struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CAUSES_DROP), "drop the causes", e);
	int rc;

	bind_i64(&s, ":regression", regression);
	rc = stmt_run(&s);
	for (size_t i = 0; i < n && rc == 0; i++) {
		s = stmt_open(db, SQL(CAUSE_PUT), "store a cause", e);
		bind_i64(&s, ":regression", regression);
		bind_i64(&s, ":rank", v[i].rank);
		bind_text(&s, ":kind", cause_kind_name(v[i].kind));
		bind_text(&s, ":key", v[i].key);
		bind_text(&s, ":was", v[i].was);
		bind_text(&s, ":is", v[i].is);
		bind_real(&s, ":score", v[i].score);
		bind_i64(&s, ":proved", v[i].proved);
		bind_text(&s, ":why", v[i].why ? v[i].why : "");
		rc = stmt_run(&s);
	}
	return rc;
}

int history_causes_put(struct db *db, int64_t regression, const struct cause_row *v, size_t n,
		       struct err *e)
{
	bool own;
	int rc = db_enter(db, "store the causes of a regression", &own, e);

	if (rc < 0)
		return rc;
	return db_leave(db, own, put_causes(db, regression, v, n, e), e);
}

static void read_cause(struct stmt *s, struct cause_row *c)
{
	*c = (struct cause_row){.rank = col_int(s, "rank")};
	COL_WORD(s, "kind", cause_kind, &c->kind);
	c->key = col_text(s, "key");
	c->was = col_text(s, "was");
	c->is = col_text(s, "now");
	c->score = col_real(s, "score");
	c->proved = col_bool(s, "proved");
	c->why = col_text(s, "why");
}

int history_causes(struct db *db, int64_t regression, struct cause_row **out, size_t *n,
		   struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CAUSES), "list the causes of a regression", e);
	struct cause_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":regression", regression);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_cause(&s, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0) {
		cause_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}
