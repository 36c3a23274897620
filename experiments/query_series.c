/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Series and their points. */
#include "experiments/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/db_priv.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

/* Beyond it a sum of squares is infinite. */
#define VALUE_MAX 1e150

enum {
	FIND,
	PUT,
	REFRESH,
	GET,
	LIST,
	OF_CAMPAIGN,
	FOLLOW,
	POINT_FIND,
	POINT_PUT,
	POINT_REPLACE,
	POINTS,
	EXTENT,
	REPLICATE_PUT,
	REPLICATES_DROP,
	REPLICATES
};
#define SERIES                                                                           \
	"SELECT id, source, workload, config, role, place, metric, stat, unit, better, " \
	"min_effect, campaign, created_us, ended_us FROM series "
#define IN_ORDER "ORDER BY workload, place, metric, role, stat, config, source"
const char *const query_sql_series[] = {
	[FIND] = SERIES "WHERE source = :source AND workload = :workload AND config = :config AND "
			"role = :role AND place = :place AND metric = :metric AND stat = :stat",
	[PUT] = "INSERT INTO series(source, workload, config, role, place, metric, stat, unit, "
		"better, min_effect, campaign, created_us) VALUES (:source, :workload, :config, "
		":role, :place, :metric, :stat, :unit, :better, :min_effect, :campaign, :now)",
	[REFRESH] = "UPDATE series SET unit = :unit, better = :better, min_effect = :min_effect, "
		    "campaign = coalesce(:campaign, campaign) WHERE id = :id",
	[GET] = SERIES "WHERE id = :id",
	[LIST] = SERIES IN_ORDER,
	[OF_CAMPAIGN] = SERIES "WHERE campaign = :campaign " IN_ORDER,
	/* those of the same canary, by the name of its campaigns, that differ in configuration */
	[FOLLOW] =
		"UPDATE series AS s SET ended_us = CASE WHEN s.id = n.id THEN NULL ELSE :now END "
		"FROM series n WHERE n.id = :id AND n.campaign IS NOT NULL AND "
		"(s.ended_us IS NULL) = (s.id <> n.id) AND s.source = n.source AND "
		"s.workload = n.workload AND s.role = n.role AND s.place = n.place AND "
		"s.metric = n.metric AND s.stat = n.stat AND s.campaign IN (SELECT a.id FROM "
		"campaign a JOIN campaign b ON b.name = a.name WHERE b.id = n.campaign)",
	[POINT_FIND] = "SELECT id FROM point WHERE series = :series AND night = :night",
	[POINT_PUT] = "INSERT INTO point(series, night, at_us, n, value, sd, environment, stage) "
		      "VALUES (:series, :night, :at, :n, :value, :sd, :environment, :stage)",
	[POINT_REPLACE] = "UPDATE point SET at_us = :at, n = :n, value = :value, sd = :sd, "
			  "environment = :environment, stage = :stage WHERE series = :series AND "
			  "night = :night",
	[POINTS] = "SELECT id, night, at_us, n, value, sd, environment, stage FROM point WHERE "
		   "series = :series AND night >= :from ORDER BY night",
	[EXTENT] = "SELECT count(*) AS n, min(night) AS first, max(night) AS last FROM point WHERE "
		   "series = :series",
	[REPLICATE_PUT] = "INSERT INTO replicate(point, idx, value, nodes) VALUES (:point, :idx, "
			  ":value, :nodes)",
	[REPLICATES_DROP] = "DELETE FROM replicate WHERE point = :point",
	[REPLICATES] = "SELECT value, nodes FROM replicate WHERE point = :point ORDER BY idx",
	NULL,
};
#define SQL(which) query_sql_series[which]

/* -- series ---------------------------------------------------------------------------------- */

static void read_series(struct stmt *s, struct series_row *r)
{
	*r = (struct series_row){.id = col_i64(s, "id")};
	COL_WORD(s, "source", series_source, &r->source);
	r->workload = col_text(s, "workload");
	r->config = col_text(s, "config");
	COL_WORD(s, "role", series_role, &r->role);
	r->place = col_text(s, "place");
	r->metric = col_text(s, "metric");
	r->stat = col_text(s, "stat");
	r->unit = col_text(s, "unit");
	COL_WORD(s, "better", better, &r->better);
	r->min_effect = col_real(s, "min_effect");
	r->campaign = col_i64(s, "campaign");
	r->created_us = col_i64(s, "created_us");
	r->ended_us = col_i64(s, "ended_us");
}

static void bind_key(struct stmt *s, const struct series_row *r)
{
	bind_text(s, ":source", series_source_name(r->source));
	bind_text(s, ":workload", r->workload);
	bind_text(s, ":config", r->config ? r->config : "");
	bind_text(s, ":role", series_role_name(r->role));
	bind_text(s, ":place", r->place ? r->place : "");
	bind_text(s, ":metric", r->metric);
	bind_text(s, ":stat", r->stat);
}

static int find_series(struct db *db, const struct series_row *key, struct series_row *out,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FIND), "look for the series", e);

	*out = (struct series_row){0};
	bind_key(&s, key);
	if (stmt_row(&s))
		read_series(&s, out);
	return stmt_close(&s);
}

static int insert_series(struct db *db, const struct series_row *r, int64_t now_us, int64_t *id,
			 struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store the series", e);
	int rc;

	bind_key(&s, r);
	bind_text(&s, ":unit", r->unit ? r->unit : "");
	bind_text(&s, ":better", better_name(r->better));
	bind_real(&s, ":min_effect", r->min_effect);
	bind_opt(&s, ":campaign", r->campaign);
	bind_i64(&s, ":now", now_us);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

/* What is known of the series for good may not differ. */
static int same_kind(const struct series_row *there, const struct series_row *now, struct err *e)
{
	const char *unit = now->unit ? now->unit : "";

	if (*there->unit && !str_eq(there->unit, unit))
		return err_set(
			e, ERR_STATE,
			"series %lld (%s of %s) is in unit \"%s\", not in \"%s\": convert the "
			"values, or give the metric another name",
			(long long)there->id, there->metric, there->workload, there->unit, unit);
	if (there->better != BETTER_NONE && there->better != now->better)
		return err_set(
			e, ERR_STATE,
			"series %lld (%s of %s): better is \"%s\", not \"%s\": give the metric "
			"another name, and a new series begins",
			(long long)there->id, there->metric, there->workload,
			better_name(there->better), better_name(now->better));
	return 0;
}

static int refresh_series(struct db *db, const struct series_row *there,
			  const struct series_row *now, struct err *e)
{
	const char *unit = now->unit ? now->unit : "";
	struct stmt s;
	bool same = there->min_effect == now->min_effect && there->better == now->better &&
		    str_eq(there->unit, unit) &&
		    (now->campaign == 0 || there->campaign == now->campaign);
	int rc = same_kind(there, now, e);

	if (rc < 0 || same)
		return rc;
	s = stmt_open(db, SQL(REFRESH), "refresh the series", e);
	bind_i64(&s, ":id", there->id);
	bind_text(&s, ":unit", unit);
	bind_text(&s, ":better", better_name(now->better));
	bind_real(&s, ":min_effect", now->min_effect);
	bind_opt(&s, ":campaign", now->campaign);
	return stmt_run(&s);
}

int history_series_put(struct db *db, struct series_row *s, int64_t now_us, struct err *e)
{
	_cleanup_(series_row_done) struct series_row there = {0};
	int64_t id;
	int rc = find_series(db, s, &there, e);

	if (rc < 0)
		return rc;
	id = there.id;
	rc = id ? refresh_series(db, &there, s, e) : insert_series(db, s, now_us, &id, e);
	if (rc == 0)
		s->id = id;
	return rc;
}

int history_series_follow(struct db *db, int64_t id, int64_t now_us, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FOLLOW), "end what the series follows", e);

	bind_i64(&s, ":id", id);
	bind_i64(&s, ":now", now_us);
	return stmt_run(&s);
}

int history_series_get(struct db *db, int64_t id, struct series_row *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read the series", e);
	_cleanup_(series_row_done) struct series_row r = {0};
	int rc;

	bind_i64(&s, ":id", id);
	if (stmt_row(&s))
		read_series(&s, &r);
	else if (s.rc == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no series %lld", (long long)id);
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	*out = r;
	r = (struct series_row){0};
	return 0;
}

int history_series_list(struct db *db, int64_t campaign, struct series_row **out, size_t *n,
			struct err *e)
{
	struct stmt s = stmt_open(db, campaign ? SQL(OF_CAMPAIGN) : SQL(LIST), "list the series",
				  e);
	struct series_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	if (campaign)
		bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_series(&s, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0) {
		series_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

/* -- points ---------------------------------------------------------------------------------- */

static int find_point(struct db *db, int64_t series, const char *night, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(POINT_FIND), "look for the night's point", e);

	*id = 0;
	bind_i64(&s, ":series", series);
	bind_text(&s, ":night", night);
	if (stmt_row(&s))
		*id = col_i64(&s, "id");
	return stmt_close(&s);
}

static int write_point(struct db *db, const char *sql, const struct point_row *p, struct err *e)
{
	struct stmt s = stmt_open(db, sql, "store the night's point", e);

	bind_i64(&s, ":series", p->series);
	bind_text(&s, ":night", p->night);
	bind_i64(&s, ":at", p->at_us);
	bind_i64(&s, ":n", p->n);
	bind_real(&s, ":value", p->value);
	bind_real(&s, ":sd", p->sd);
	bind_opt(&s, ":environment", p->environment);
	bind_opt(&s, ":stage", p->stage);
	return stmt_run(&s);
}

static int write_replicates(struct db *db, int64_t point, const struct replicate *v, size_t n,
			    struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		struct stmt s = stmt_open(db, SQL(REPLICATE_PUT), "store a replicate", e);

		bind_i64(&s, ":point", point);
		bind_i64(&s, ":idx", (int64_t)i);
		bind_real(&s, ":value", v[i].value);
		bind_text(&s, ":nodes", v[i].nodes ? v[i].nodes : "");
		rc = stmt_run(&s);
	}
	return rc;
}

static int drop_replicates(struct db *db, int64_t point, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(REPLICATES_DROP), "drop the replicates", e);

	bind_i64(&s, ":point", point);
	return stmt_run(&s);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The same values, in whatever order they came. */
static bool same_values(const struct replicate_row *a, size_t n_a, double *b, size_t n_b)
{
	_cleanup_free_ double *v = xcalloc(n_a + 1, sizeof *v);

	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		v[i] = a[i].value;
	qsort(v, n_a, sizeof *v, by_value);
	qsort(b, n_b, sizeof *b, by_value);
	for (size_t i = 0; i < n_a; i++)
		if (v[i] != b[i])
			return false;
	return true;
}

/* The night has a point already. */
static int put_again(struct db *db, int64_t id, const struct point_row *p,
		     const struct replicate *v, double *values, bool replace, bool *again,
		     struct err *e)
{
	struct replicate_row *there = NULL;
	double was = 0;
	size_t n;
	int rc = history_replicates(db, id, &there, &n, e);

	if (rc < 0)
		return rc;
	*again = same_values(there, n, values, (size_t)p->n);
	for (size_t i = 0; i < n; i++)
		was += there[i].value / (double)n;
	replicate_rows_free(there, n);
	if (*again)
		return 0;
	if (!replace)
		return err_set(e, ERR_STATE,
			       "series %lld has a point for night %s already: %g (of %zu), now %g "
			       "(of %d)",
			       (long long)p->series, p->night, was, n, p->value, p->n);
	if ((rc = drop_replicates(db, id, e)) < 0 ||
	    (rc = write_point(db, SQL(POINT_REPLACE), p, e)) < 0)
		return rc;
	return write_replicates(db, id, v, (size_t)p->n, e);
}

static int put_point(struct db *db, const struct point_row *p, const struct replicate *v,
		     double *values, bool replace, bool *again, struct err *e)
{
	int64_t id;
	int rc = find_point(db, p->series, p->night, &id, e);

	if (rc < 0)
		return rc;
	if (id)
		return put_again(db, id, p, v, values, replace, again, e);
	if ((rc = write_point(db, SQL(POINT_PUT), p, e)) < 0)
		return rc;
	return write_replicates(db, db_last_id(db), v, (size_t)p->n, e);
}

/* The values alone; NULL with *e set when one of them is none. */
static double *take_values(int64_t series, const char *night, const struct replicate *v, size_t n,
			   struct err *e)
{
	double *values;

	if (!history_night_valid(night)) {
		err_set(e, ERR_PARSE, "\"%s\" is no night: expected a date like 2026-11-29",
			night ? night : "");
		return NULL;
	}
	if (n == 0) {
		err_set(e, ERR_PARSE, "series %lld, night %s: no value", (long long)series, night);
		return NULL;
	}
	values = xcalloc(n, sizeof *values);
	for (size_t i = 0; i < n; i++) {
		values[i] = v[i].value;
		if (fabs(v[i].value) <= VALUE_MAX)
			continue;
		err_set(e, ERR_PARSE, "series %lld, night %s: %g is no number that can be averaged",
			(long long)series, night, v[i].value);
		free(values);
		return NULL;
	}
	return values;
}

int history_point_put(struct db *db, int64_t series, const char *night, int64_t at_us,
		      const struct replicate *v, size_t n, int64_t environment, int64_t stage,
		      bool replace, bool *again, struct err *e)
{
	_cleanup_free_ double *values = take_values(series, night, v, n, e);
	struct point_row p = {.series = series,
			      .at_us = at_us,
			      .n = (int)n,
			      .environment = environment,
			      .stage = stage};
	bool own, same = false;
	int rc;

	if (!values)
		return e ? -(int)e->code : -ERR_PARSE;
	str_copy(p.night, sizeof p.night, night);
	p.value = stats_mean(values, n);
	p.sd = stats_sd(values, n);
	if ((rc = db_enter(db, "store a night's point", &own, e)) < 0)
		return rc;
	rc = db_leave(db, own, put_point(db, &p, v, values, replace, &same, e), e);
	if (rc == 0 && again)
		*again = same;
	return rc;
}

static void read_point(struct stmt *s, int64_t series, struct point_row *p)
{
	*p = (struct point_row){.id = col_i64(s, "id"), .series = series};
	str_copy(p->night, sizeof p->night, col_peek(s, "night"));
	p->at_us = col_i64(s, "at_us");
	p->n = col_int(s, "n");
	p->value = col_real(s, "value");
	p->sd = col_real(s, "sd");
	p->environment = col_i64(s, "environment");
	p->stage = col_i64(s, "stage");
}

int history_points(struct db *db, int64_t series, const char *from_night, struct point_row **out,
		   size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(POINTS), "list the points of a series", e);
	_cleanup_free_ struct point_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":series", series);
	bind_text(&s, ":from", from_night ? from_night : "");
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_point(&s, series, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	*out = TAKE(v);
	*n = used;
	return 0;
}

int history_extent(struct db *db, int64_t series, struct series_extent *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(EXTENT), "look how long a series is", e);
	struct series_extent x = {0};
	int rc;

	bind_i64(&s, ":series", series);
	if (stmt_row(&s)) {
		x.nights = col_i64(&s, "n");
		str_copy(x.first, sizeof x.first, x.nights ? col_peek(&s, "first") : "");
		str_copy(x.last, sizeof x.last, x.nights ? col_peek(&s, "last") : "");
	}
	if ((rc = stmt_close(&s)) == 0)
		*out = x;
	return rc;
}

int history_replicates(struct db *db, int64_t point, struct replicate_row **out, size_t *n,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(REPLICATES), "list the replicates of a point", e);
	struct replicate_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":point", point);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct replicate_row){.value = col_real(&s, "value"),
						   .nodes = col_text(&s, "nodes")};
	}
	if ((rc = stmt_close(&s)) < 0) {
		replicate_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}
