/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Series for programs: fettle.history/1 and fettle.series/1 of HISTORY.md. */
#include <math.h>

#include "orchestrator/report/nights.h"

void nights_json_series(struct json *o, const struct series_row *s)
{
	json_set_i64(o, "id", s->id);
	json_set_text(o, "workload", s->workload);
	json_set_text(o, "metric", s->metric);
	json_set_text(o, "stat", s->stat);
	json_set_text(o, "unit", s->unit);
	json_set_text(o, "better", better_name(s->better));
	json_set_text(o, "role", series_role_name(s->role));
	json_set_text(o, "source", series_source_name(s->source));
	json_set_text(o, "place", s->place);
	json_set_text(o, "configuration", s->config);
	json_set_number(o, "min_effect", s->min_effect);
}

static const char *night_or_null(const char *night)
{
	return *night ? night : NULL;
}

static void set_number_of(struct json *o, const char *key, int64_t id)
{
	if (id)
		json_set_i64(o, key, id);
	else
		json_set(o, key, json_new_null());
}

struct json *nights_list_json(const struct nights_glance *v, size_t n)
{
	struct json *doc = json_object(), *list = json_array();

	json_set_text(doc, "format", "fettle.history/1");
	for (size_t i = 0; i < n; i++) {
		const struct nights_glance *g = &v[i];
		struct json *o = json_object();

		nights_json_series(o, &g->row);
		json_set_i64(o, "nights", g->nights);
		json_set_text(o, "first_night", night_or_null(g->first));
		json_set_text(o, "last_night", night_or_null(g->last));
		json_set_number(o, "value", g->value);
		json_set_number(o, "change_7_nights", g->week);
		json_set_number(o, "change_30_nights", g->month);
		json_set_bool(o, "ended", g->row.ended_us != 0);
		set_number_of(o, "regression", g->regression);
		json_set_text(o, "direction",
			      g->regression ? change_direction_name(g->direction) : NULL);
		json_set_text(o, "level", g->regression ? change_level_name(g->level) : NULL);
		json_set_text(o, "state", g->regression ? regression_state_name(g->state) : NULL);
		json_add(list, o);
	}
	json_set(doc, "series", list);
	return doc;
}

static int points_json(struct nights *n, const struct nights_series *s, struct json *list,
		       struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct point_row *p = &s->points[i];
		struct json *o = json_object(), *replicates = json_array();
		int rc = nights_json_replicates(n, p->id, replicates, e);

		json_set_text(o, "night", p->night);
		json_set_number(o, "value", p->value);
		json_set_number(o, "sd", p->sd);
		json_set(o, "replicates", replicates);
		set_number_of(o, "environment", p->environment);
		json_add(list, o);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static struct json *marks_json(const struct nights_series *s)
{
	struct json *list = json_array();

	for (size_t i = 0; i < s->n_marks; i++) {
		const struct nights_mark *m = &s->marks[i];
		struct json *o = json_object();

		json_set_text(o, "night", m->night);
		json_set_text(o, "first_night", m->first);
		json_set_text(o, "last_night", m->last);
		json_set_text(o, "direction", change_direction_name(m->direction));
		json_set_text(o, "level", change_level_name(m->level));
		json_set_number(o, "est", m->est);
		json_set_number(o, "lo", m->lo);
		json_set_number(o, "hi", m->hi);
		json_set_number(o, "p", m->p);
		set_number_of(o, "regression", m->regression);
		json_set_text(o, "state", m->regression ? regression_state_name(m->state) : NULL);
		json_set_text(o, "why", m->why);
		json_add(list, o);
	}
	return list;
}

static struct json *events_json(const struct nights_series *s)
{
	struct json *list = json_array();

	for (size_t i = 0; i < s->n_events; i++) {
		struct json *o = json_object();

		json_set_text(o, "night", s->events[i].night);
		json_set_text(o, "key", s->events[i].key);
		json_set_text(o, "was", s->events[i].was);
		json_set_text(o, "is", s->events[i].is);
		json_add(list, o);
	}
	return list;
}

int nights_series_json(struct nights *n, const struct nights_series *s, struct json **out,
		       struct err *e)
{
	struct json *doc = json_object(), *points = json_array();
	int rc;

	json_set_text(doc, "format", "fettle.series/1");
	nights_json_series(doc, &s->row);
	json_set_bool(doc, "ended", s->row.ended_us != 0);
	rc = points_json(n, s, points, e);
	json_set(doc, "points", points);
	json_set(doc, "changes", marks_json(s));
	json_set(doc, "environment", events_json(s));
	if (rc < 0)
		json_free(doc);
	else
		*out = doc;
	return rc;
}
