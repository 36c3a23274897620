/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Logs of ordinary jobs, and the points that they make. */
#include "experiments/history.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { GET, BY_HASH, PUT, OF_NIGHT, POINT_GET, POINT_DROP, REPLICATES_DROP };
#define OBSERVATION \
	"SELECT series, path, size, mtime_us, hash, state, night, value FROM observation "
const char *const query_sql_observation[] = {
	[GET] = OBSERVATION "WHERE series = :series AND path = :path",
	[BY_HASH] = OBSERVATION "WHERE series = :series AND hash = :hash AND path <> :path AND "
				"state <> 'copy' LIMIT 1",
	[PUT] = "INSERT OR REPLACE INTO observation(series, path, size, mtime_us, hash, state, "
		"night, value, read_us) VALUES (:series, :path, :size, :mtime, :hash, :state, "
		":night, :value, :now)",
	[OF_NIGHT] = "SELECT value, mtime_us FROM observation WHERE series = :series AND "
		     "night = :night AND state = 'counted' ORDER BY mtime_us, path",
	[POINT_GET] = "SELECT id FROM point WHERE series = :series AND night = :night",
	[POINT_DROP] = "DELETE FROM point WHERE id = :point",
	[REPLICATES_DROP] = "DELETE FROM replicate WHERE point = :point",
	NULL,
};
#define SQL(which) query_sql_observation[which]

static void read_observation(struct stmt *s, struct observation_row *o)
{
	*o = (struct observation_row){.series = col_i64(s, "series"),
				      .path = col_text(s, "path"),
				      .size = col_i64(s, "size"),
				      .mtime_us = col_i64(s, "mtime_us")};
	str_copy(o->hash, sizeof o->hash, col_peek(s, "hash"));
	COL_WORD(s, "state", observation_state, &o->state);
	str_copy(o->night, sizeof o->night, col_peek(s, "night"));
	o->value = col_real(s, "value");
}

static int finish(struct stmt *s, struct observation_row *out, bool *found)
{
	struct observation_row o = {0};
	bool there = stmt_row(s);
	int rc;

	if (there)
		read_observation(s, &o);
	if ((rc = stmt_close(s)) < 0) {
		observation_row_done(&o);
		return rc;
	}
	*found = there;
	if (there)
		*out = o;
	return 0;
}

int history_observation_get(struct db *db, int64_t series, const char *path,
			    struct observation_row *out, bool *found, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "look for a log that was read", e);

	bind_i64(&s, ":series", series);
	bind_text(&s, ":path", path);
	return finish(&s, out, found);
}

int history_observation_same(struct db *db, int64_t series, const char *path, const char *hash,
			     struct observation_row *out, bool *found, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(BY_HASH), "look for a log with the same bytes", e);

	bind_i64(&s, ":series", series);
	bind_text(&s, ":path", path);
	bind_text(&s, ":hash", hash);
	return finish(&s, out, found);
}

static int put_row(struct db *db, const struct observation_row *o, int64_t now_us, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store a log that was read", e);

	bind_i64(&s, ":series", o->series);
	bind_text(&s, ":path", o->path);
	bind_i64(&s, ":size", o->size);
	bind_i64(&s, ":mtime", o->mtime_us);
	bind_text(&s, ":hash", o->hash);
	bind_text(&s, ":state", observation_state_name(o->state));
	bind_text(&s, ":night", o->night);
	bind_real(&s, ":value", o->state == OBSERVATION_COUNTED ? o->value : NAN);
	bind_i64(&s, ":now", now_us);
	return stmt_run(&s);
}

static int run_for_point(struct db *db, const char *sql, int64_t point, struct err *e)
{
	struct stmt s = stmt_open(db, sql, "drop a point without observations", e);

	bind_i64(&s, ":point", point);
	return stmt_run(&s);
}

static int drop_point(struct db *db, int64_t series, const char *night, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(POINT_GET), "look for the night's point", e);
	int64_t id = 0;
	int rc;

	bind_i64(&s, ":series", series);
	bind_text(&s, ":night", night);
	if (stmt_row(&s))
		id = col_i64(&s, "id");
	if ((rc = stmt_close(&s)) < 0 || id == 0)
		return rc;
	rc = run_for_point(db, SQL(REPLICATES_DROP), id, e);
	return rc < 0 ? rc : run_for_point(db, SQL(POINT_DROP), id, e);
}

/* The point of a night as its observations make it; none: no point. */
static int settle_night(struct db *db, int64_t series, const char *night, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(OF_NIGHT), "list the observations of a night", e);
	_cleanup_free_ struct replicate *v = NULL;
	size_t n = 0, cap = 0;
	int64_t at_us = 0;
	int rc;

	bind_i64(&s, ":series", series);
	bind_text(&s, ":night", night);
	while (stmt_row(&s)) {
		v = xgrow(v, n, &cap, sizeof *v);
		v[n++] = (struct replicate){.value = col_real(&s, "value")};
		at_us = col_i64(&s, "mtime_us");
	}
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	return n ? history_point_put(db, series, night, at_us, v, n, 0, 0, true, NULL, e)
		 : drop_point(db, series, night, e);
}

static int put_observation(struct db *db, const struct observation_row *o, int64_t now_us,
			   struct err *e)
{
	_cleanup_(observation_row_done) struct observation_row was = {0};
	bool there = false;
	int rc = history_observation_get(db, o->series, o->path, &was, &there, e);

	if (rc == 0)
		rc = put_row(db, o, now_us, e);
	if (rc == 0 && there && !str_eq(was.night, o->night))
		rc = settle_night(db, o->series, was.night, e);
	return rc == 0 ? settle_night(db, o->series, o->night, e) : rc;
}

int history_observation_put(struct db *db, const struct observation_row *o, int64_t now_us,
			    struct err *e)
{
	bool own;
	int rc = db_enter(db, "store a log that was read", &own, e);

	if (rc < 0)
		return rc;
	return db_leave(db, own, put_observation(db, o, now_us, e), e);
}
