/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/regressions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/text.h"

void regression_view_done(struct regression_view *v)
{
	regression_row_done(&v->row);
	for (size_t i = 0; i < v->n_moved; i++) {
		free(v->moved[i].change.why);
		series_row_done(&v->moved[i].series);
	}
	free(v->moved);
	cause_rows_free(v->causes, v->n_causes);
	strv_free(&v->nodes);
	*v = (struct regression_view){0};
}

void regression_views_free(struct regression_view *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		regression_view_done(&v[i]);
	free(v);
}

/* -- loading ---------------------------------------------------------------------------------- */

/* Has a fixed configuration a reference beside it in this metric? Then this is what it is for. */
static bool is_objective(const struct series_row *s, const struct series_row *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].role != SERIES_CURRENT && all[i].source == s->source &&
		    str_eq(all[i].workload, s->workload) && str_eq(all[i].metric, s->metric) &&
		    str_eq(all[i].stat, s->stat))
			return true;
	return false;
}

/* Larger: speaks rather for the regression. */
static double weight(const struct regression_moved *m)
{
	return 16 * (m->change.level == CHANGE_CONFIRMED) +
	       8 * (m->change.level != CHANGE_DISMISSED) +
	       4 * (m->change.direction != CHANGE_NEITHER) + 2 * m->objective +
	       (m->series.role == SERIES_CURRENT);
}

static int by_weight(const void *a, const void *b)
{
	const struct regression_moved *x = a, *y = b;
	double d = weight(y) - weight(x);

	if (d == 0)
		d = fabs(y->change.est) - fabs(x->change.est);
	if (d == 0)
		d = (double)(x->series.id - y->series.id);
	return d > 0 ? 1 : d < 0 ? -1 : 0;
}

static int load_moved(struct db *db, struct regression_view *v, const struct series_row *all,
		      size_t n_all, struct err *e)
{
	struct change_row *c = NULL;
	size_t n = 0;
	int rc = history_changes(db, v->row.id, 0, &c, &n, e);

	v->moved = xcalloc(n + 1, sizeof *v->moved);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct regression_moved *m = &v->moved[v->n_moved++];

		m->change = c[i];
		c[i].why = NULL;
		rc = history_series_get(db, m->change.series, &m->series, e);
		if (rc == 0)
			m->objective = is_objective(&m->series, all, n_all);
	}
	change_rows_free(c, n);
	if (v->n_moved)
		qsort(v->moved, v->n_moved, sizeof *v->moved, by_weight);
	return rc;
}

/* r is taken over. */
static int load_view(struct db *db, struct regression_row *r, const struct series_row *all,
		     size_t n_all, struct regression_view *out, struct err *e)
{
	int rc;

	*out = (struct regression_view){.row = *r};
	*r = (struct regression_row){0};
	if ((rc = load_moved(db, out, all, n_all, e)) == 0)
		rc = history_causes(db, out->row.id, &out->causes, &out->n_causes, e);
	return rc;
}

int regressions_load(struct db *db, bool all, struct regression_view **out, size_t *n,
		     struct err *e)
{
	struct series_row *series = NULL;
	struct regression_row *rows = NULL;
	struct regression_view *v;
	size_t n_series = 0, n_rows = 0, used = 0;
	int rc = history_series_list(db, 0, &series, &n_series, e);

	if (rc == 0)
		rc = history_regressions(db, all, &rows, &n_rows, e);
	v = xcalloc(n_rows + 1, sizeof *v);
	for (size_t i = 0; rc == 0 && i < n_rows; i++)
		rc = load_view(db, &rows[i], series, n_series, &v[used++], e);
	regression_rows_free(rows, n_rows);
	series_rows_free(series, n_series);
	if (rc < 0) {
		regression_views_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

/* Each name of a comma separated list once. */
static void add_nodes(struct strv *nodes, const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");
		_cleanup_free_ char *name = xstrndup(list, len);
		bool known = len == 0;

		for (size_t i = 0; !known && i < nodes->n; i++)
			known = str_eq(nodes->v[i], name);
		if (!known)
			strv_add(nodes, name);
		list += len + (list[len] == ',');
	}
}

static int load_nodes(struct db *db, struct regression_view *v, struct err *e)
{
	struct point_row *p = NULL;
	struct replicate_row *r = NULL;
	size_t n = 0, n_r = 0;
	int rc;

	if (v->n_moved == 0)
		return 0;
	rc = history_points(db, v->moved[0].series.id, v->moved[0].change.night, &p, &n, e);
	if (rc == 0 && n)
		rc = history_replicates(db, p[0].id, &r, &n_r, e);
	for (size_t i = 0; i < n_r; i++)
		add_nodes(&v->nodes, r[i].nodes);
	replicate_rows_free(r, n_r);
	free(p);
	return rc;
}

int regression_load(struct db *db, int64_t id, struct regression_view *out, struct err *e)
{
	struct series_row *series = NULL;
	struct regression_row row = {0};
	struct regression_view v = {0};
	size_t n_series = 0;
	int rc = history_series_list(db, 0, &series, &n_series, e);

	if (rc == 0 && (rc = history_regression_get(db, id, &row, e)) == 0 &&
	    (rc = load_view(db, &row, series, n_series, &v, e)) == 0)
		rc = load_nodes(db, &v, e);
	series_rows_free(series, n_series);
	if (rc < 0)
		regression_view_done(&v);
	else
		*out = v;
	return rc;
}

/* -- what they say ---------------------------------------------------------------------------- */

bool regression_watched(const struct regression_row *r)
{
	return r->state == REGRESSION_OPEN || r->state == REGRESSION_ACKNOWLEDGED;
}

int regressions_status(const struct regression_view *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].row.kind == REGRESSION_WORSE && v[i].row.level == CHANGE_CONFIRMED &&
		    v[i].row.state == REGRESSION_OPEN)
			return 1;
	return 0;
}

const char *regression_word(const struct regression_row *r)
{
	static const char *const words[][2] = {
		[REGRESSION_WORSE] = {N_("worse"), N_("worse?")},
		[REGRESSION_BETTER] = {N_("better"), N_("better?")},
		[REGRESSION_SHIFT] = {N_("shift"), N_("shift?")},
	};

	return _(words[r->kind][r->level == CHANGE_SUSPECT]);
}

void regression_cause(const struct cause_row *c, struct buf *out)
{
	if (c->kind == CAUSE_NODE)
		buf_str(out, _("node "));
	text_line(out, c->key);
	if (!c->was && !c->is)
		return;
	buf_char(out, ' ');
	text_line(out, c->was ? c->was : _("(not known)"));
	buf_str(out, " -> ");
	text_line(out, c->is ? c->is : _("(not known)"));
}

/* -- JSON ------------------------------------------------------------------------------------- */

static struct json *moved_json(const struct regression_moved *m)
{
	struct json *o = json_object(), *series = json_object();

	nights_json_series(series, &m->series);
	json_set(o, "series", series);
	json_set_bool(o, "objective", m->objective);
	json_set_text(o, "night", m->change.night);
	json_set_text(o, "first_night", m->change.first_night);
	json_set_text(o, "last_night", m->change.last_night);
	json_set_text(o, "direction", change_direction_name(m->change.direction));
	json_set_text(o, "level", change_level_name(m->change.level));
	json_set_number(o, "est", m->change.est);
	json_set_number(o, "lo", m->change.lo);
	json_set_number(o, "hi", m->change.hi);
	json_set_number(o, "p", m->change.p);
	json_set_text(o, "why", m->change.why);
	return o;
}

static struct json *cause_json(const struct cause_row *c)
{
	struct json *o = json_object();

	json_set_i64(o, "rank", c->rank);
	json_set_text(o, "kind", cause_kind_name(c->kind));
	json_set_text(o, "key", c->key);
	json_set_text(o, "was", c->was);
	json_set_text(o, "is", c->is);
	json_set_number(o, "score", c->score);
	json_set_bool(o, "proved", c->proved);
	json_set_text(o, "why", c->why);
	return o;
}

static void set_head(struct json *o, const struct regression_row *r)
{
	char at[32];

	json_set_i64(o, "id", r->id);
	json_set_text(o, "kind", regression_kind_name(r->kind));
	json_set_text(o, "level", change_level_name(r->level));
	json_set_text(o, "state", regression_state_name(r->state));
	json_set_text(o, "night", r->night);
	json_set_text(o, "found_night", r->found_night);
	json_set_text(o, "confirmed_night", *r->confirmed_night ? r->confirmed_night : NULL);
	clock_iso(r->state_us, at, sizeof at);
	json_set_text(o, "state_utc", at);
	json_set_text(o, "who", r->who);
	json_set_text(o, "note", r->note);
}

static void set_lists(struct json *o, const struct regression_view *v)
{
	struct json *moved = json_array(), *causes = json_array();

	for (size_t i = 0; i < v->n_moved; i++)
		json_add(moved, moved_json(&v->moved[i]));
	for (size_t i = 0; i < v->n_causes; i++)
		json_add(causes, cause_json(&v->causes[i]));
	json_set(o, "moved", moved);
	json_set(o, "causes", causes);
}

struct json *regressions_json(const struct regression_view *v, size_t n)
{
	struct json *doc = json_object(), *list = json_array();

	json_set_text(doc, "format", "fettle.regressions/1");
	json_set_i64(doc, "status", regressions_status(v, n));
	for (size_t i = 0; i < n; i++) {
		struct json *o = json_object();

		set_head(o, &v[i].row);
		set_lists(o, &v[i]);
		json_add(list, o);
	}
	json_set(doc, "regressions", list);
	return doc;
}

struct json *regression_json(const struct regression_view *v)
{
	struct json *doc = json_object(), *nodes = json_array();

	json_set_text(doc, "format", "fettle.regression/1");
	set_head(doc, &v->row);
	set_lists(doc, v);
	for (size_t i = 0; i < v->nodes.n; i++)
		json_add_text(nodes, v->nodes.v[i]);
	json_set(doc, "nodes", nodes);
	return doc;
}
