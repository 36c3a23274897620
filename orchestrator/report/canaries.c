/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/canaries.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/stats.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"

/* -- loading ---------------------------------------------------------------------------------- */

/* Stages come newest night first. */
static int load_stages(struct db *db, struct report *r, struct err *e)
{
	struct canary_row *v = NULL;
	size_t n = 0;
	int rc = history_canaries(db, r->campaign.id, &v, &n, e);

	if (rc < 0)
		return rc;
	r->canaries = xcalloc(n + 1, sizeof *r->canaries);
	r->n_canaries = n;
	for (size_t i = 0; i < n; i++) {
		r->canaries[i].row = v[i];
		for (size_t k = 0; k < r->n_stages; k++)
			if (r->stages[k].id == v[i].stage)
				r->canaries[i].stage = &r->stages[k];
	}
	free(v);
	return 0;
}

/* The last point and what was usual before it. */
static void judge_points(struct report_series *s)
{
	const struct point_row *p = s->whole.points;
	size_t n = s->whole.n;
	_cleanup_free_ double *v = xcalloc(n + 1, sizeof *v);

	s->last = s->usual = NAN;
	if (n == 0)
		return;
	for (size_t i = 0; i + 1 < n; i++)
		v[i] = p[i].value;
	s->nights = n;
	s->last = p[n - 1].value;
	s->usual = stats_median(v, n - 1);
	str_copy(s->first_night, sizeof s->first_night, p[0].night);
	str_copy(s->last_night, sizeof s->last_night, p[n - 1].night);
}

/* The newest regression of the series that nobody closed. */
static int load_regression(struct db *db, struct report_series *s, struct err *e)
{
	struct change_row *v = NULL;
	size_t n = 0;
	int rc = history_changes(db, 0, s->row.id, &v, &n, e);

	for (size_t i = n; rc == 0 && i-- > 0 && !s->regression;) {
		struct regression_row g = {0};

		rc = history_regression_get(db, v[i].regression, &g, e);
		if (rc == 0 && (g.state == REGRESSION_OPEN || g.state == REGRESSION_ACKNOWLEDGED)) {
			s->regression = g.id;
			s->level = g.level;
			str_copy(s->since, sizeof s->since, v[i].night);
		}
		regression_row_done(&g);
	}
	change_rows_free(v, n);
	return rc;
}

static int load_series(struct db *db, struct report *r, struct err *e)
{
	struct series_row *v = NULL;
	struct nights *nights = NULL;
	size_t n = 0;
	int rc = history_series_list(db, r->campaign.id, &v, &n, e);

	if (rc < 0)
		return rc;
	r->series = xcalloc(n + 1, sizeof *r->series);
	r->n_series = n;
	for (size_t i = 0; i < n; i++)
		r->series[i].row = v[i];
	free(v);
	if (n)
		rc = nights_open(db, &nights, e);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct report_series *s = &r->series[i];

		rc = nights_load(nights, &s->row, NULL, &s->whole, e);
		judge_points(s);
		if (rc == 0)
			rc = load_regression(db, s, e);
	}
	nights_close(nights);
	return rc;
}

int report_canaries_load(struct db *db, struct report *r, struct err *e)
{
	int rc = load_stages(db, r, e);

	return rc < 0 ? rc : load_series(db, r, e);
}

void report_canaries_done(struct report *r)
{
	for (size_t i = 0; i < r->n_series; i++) {
		series_row_done(&r->series[i].row);
		nights_series_done(&r->series[i].whole);
	}
	free(r->series);
	free(r->canaries);
}

/* -- words ------------------------------------------------------------------------------------ */

const char *report_canary_note(const struct report_canary *c)
{
	return c->row.open ? _("still open") : c->stage && c->stage->note ? c->stage->note : "";
}

void report_series_text(const struct report_series *s, struct buf *b)
{
	bool unit = *s->row.unit && !str_eq(s->row.unit, "1");

	buf_printf(b, "%s", s->row.metric);
	if (!str_eq(s->row.stat, "mean") && !str_eq(s->row.stat, "value"))
		buf_printf(b, " %s", s->row.stat);
	if (s->row.role != SERIES_CURRENT)
		buf_printf(b, " (%s)", lang_word("series_role", series_role_name(s->row.role)));
	if (s->nights == 0) {
		buf_str(b, _(": no point yet"));
		return;
	}
	buf_printf(b, _(": %.5g%s%s on %s"), s->last, unit ? " " : "", unit ? s->row.unit : "",
		   s->last_night);
	if (isfinite(s->usual) && s->usual > 0)
		buf_printf(b,
			   _n(", %+.1f %% from the median of %zu night before",
			      ", %+.1f %% from the median of %zu nights before", s->nights - 1),
			   100 * (s->last / s->usual - 1), s->nights - 1);
	if (s->regression)
		buf_printf(b,
			   s->level == CHANGE_CONFIRMED
				   ? _("; regression %lld since %s, confirmed")
				   : _("; regression %lld since %s, a suspicion"),
			   (long long)s->regression, s->since);
}

/* -- JSON ------------------------------------------------------------------------------------- */

static struct json *stages_json(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_canaries; i++) {
		const struct report_canary *c = &r->canaries[i];
		struct json *o = json_object();

		json_set_text(o, "night", c->row.night);
		json_set_text(o, "purpose", canary_purpose_name(c->row.purpose));
		if (c->row.regression)
			json_set_i64(o, "regression", c->row.regression);
		else
			json_set(o, "regression", json_new_null());
		json_set_i64(o, "stage", c->stage ? c->stage->seq : 0);
		json_set_bool(o, "open", c->row.open);
		json_set_text(o, "note", c->row.open || !c->stage ? NULL : c->stage->note);
		json_add(a, o);
	}
	return a;
}

static struct json *points_json(const struct nights_series *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n; i++) {
		struct json *o = json_object();

		json_set_text(o, "night", s->points[i].night);
		json_set_number(o, "value", s->points[i].value);
		json_add(a, o);
	}
	return a;
}

static struct json *changes_json(const struct nights_series *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n_marks; i++) {
		const struct nights_mark *m = &s->marks[i];
		struct json *o = json_object();

		json_set_text(o, "night", m->night);
		json_set_text(o, "direction", nights_direction(m->direction));
		json_set_text(o, "level", change_level_name(m->level));
		json_set_number(o, "est", m->est);
		json_set_number(o, "lo", m->lo);
		json_set_number(o, "hi", m->hi);
		json_add(a, o);
	}
	return a;
}

static struct json *series_json(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_series; i++) {
		const struct report_series *s = &r->series[i];
		struct json *o = json_object();

		json_set_i64(o, "series", s->row.id);
		json_set_text(o, "role", series_role_name(s->row.role));
		json_set_text(o, "metric", s->row.metric);
		json_set_text(o, "stat", s->row.stat);
		json_set_text(o, "unit", s->row.unit);
		json_set_text(o, "better", better_name(s->row.better));
		json_set_text(o, "place", s->row.place);
		json_set_i64(o, "nights", (int64_t)s->nights);
		json_set_text(o, "first_night", s->nights ? s->first_night : NULL);
		json_set_text(o, "last_night", s->nights ? s->last_night : NULL);
		json_set_number(o, "last", s->last);
		json_set_number(o, "usual", s->usual);
		json_set(o, "points", points_json(&s->whole));
		json_set(o, "changes", changes_json(&s->whole));
		if (s->regression)
			json_set_i64(o, "regression", s->regression);
		else
			json_set(o, "regression", json_new_null());
		json_add(a, o);
	}
	return a;
}

void report_canaries_json(const struct report *r, struct json *o)
{
	json_set(o, "canaries", stages_json(r));
	json_set(o, "series", series_json(r));
}
