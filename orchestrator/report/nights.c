/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/nights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/changepoint.h"
#include "experiments/regress.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"

enum {
	WEEK = 7,
	MONTH = 30,
	/* A change that tracking stored and one that the detector sees are the same within so many
	 * nights: later nights do not
	 * raise it again either. */
	SAME_NIGHTS = 3,
};

struct environment {
	int64_t id;
	struct kvs keys; /* sorted */
};

struct nights {
	struct db *db;
	struct regression_row *regressions;
	size_t n_regressions;
	struct environment *environments; /* in the order in which they were asked for */
	size_t n_environments, cap_environments;
};

/* -- store ------------------------------------------------------------------------------------ */

int nights_open(struct db *db, struct nights **out, struct err *e)
{
	struct nights *n = xcalloc(1, sizeof *n);
	int rc = history_regressions(db, true, &n->regressions, &n->n_regressions, e);

	n->db = db;
	if (rc < 0)
		nights_close(n);
	else
		*out = n;
	return rc;
}

void nights_close(struct nights *n)
{
	if (!n)
		return;
	regression_rows_free(n->regressions, n->n_regressions);
	for (size_t i = 0; i < n->n_environments; i++)
		kvs_free(&n->environments[i].keys);
	free(n->environments);
	free(n);
}

void nights_series_done(struct nights_series *s)
{
	series_row_done(&s->row);
	free(s->points);
	for (size_t i = 0; i < s->n_marks; i++)
		free(s->marks[i].why);
	free(s->marks);
	for (size_t i = 0; i < s->n_events; i++) {
		free(s->events[i].key);
		free(s->events[i].was);
		free(s->events[i].is);
	}
	free(s->events);
	*s = (struct nights_series){0};
}

void nights_glances_free(struct nights_glance *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		series_row_done(&v[i].row);
	free(v);
}

static void copy_series(struct series_row *dst, const struct series_row *src)
{
	*dst = *src;
	dst->workload = xstrdup(src->workload);
	dst->config = xstrdup(src->config);
	dst->place = xstrdup(src->place);
	dst->metric = xstrdup(src->metric);
	dst->stat = xstrdup(src->stat);
	dst->unit = xstrdup(src->unit);
}

static enum regression_state state_of(const struct nights *n, int64_t regression)
{
	for (size_t i = 0; i < n->n_regressions; i++)
		if (n->regressions[i].id == regression)
			return n->regressions[i].state;
	return REGRESSION_DISMISSED;
}

/* -- environments ------------------------------------------------------------------------------ */

static int read_environment(struct nights *n, int64_t id, struct kvs *keys, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	_cleanup_free_ char *text = NULL;
	int rc = history_environment_get(n->db, id, &text, e);

	if (rc == 0)
		rc = json_parse("environment", text, strlen(text), &j, e);
	if (rc < 0)
		return rc;
	for (const struct json *m = json_first(j); m; m = json_next(m))
		kvs_set(keys, json_key(m), json_text(m, ""));
	kvs_sort(keys);
	return 0;
}

/* *out is borrowed, until the next call. */
static int environment(struct nights *n, int64_t id, const struct kvs **out, struct err *e)
{
	struct environment new = {.id = id};
	int rc;

	for (size_t i = n->n_environments; i-- > 0;)
		if (n->environments[i].id == id) {
			*out = &n->environments[i].keys;
			return 0;
		}
	if ((rc = read_environment(n, id, &new.keys, e)) < 0) {
		kvs_free(&new.keys);
		return rc;
	}
	n->environments = xgrow(n->environments, n->n_environments, &n->cap_environments,
				sizeof *n->environments);
	n->environments[n->n_environments] = new;
	*out = &n->environments[n->n_environments++].keys;
	return 0;
}

static void add_event(struct nights_series *s, const char *night, const char *key, const char *was,
		      const char *is)
{
	struct nights_event ev = {.key = xstrdup(key), .was = xstrdup(was), .is = xstrdup(is)};

	memcpy(ev.night, night, sizeof ev.night);
	s->events = xgrow(s->events, s->n_events, &s->cap_events, sizeof *s->events);
	s->events[s->n_events++] = ev;
}

/* Both are sorted: one walk through them. */
static void compare(struct nights_series *s, const char *night, const struct kvs *a,
		    const struct kvs *b)
{
	for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
		int order = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->v[i].key, b->v[k].key);

		if (order < 0)
			add_event(s, night, a->v[i].key, a->v[i].value, NULL);
		else if (order > 0)
			add_event(s, night, b->v[k].key, NULL, b->v[k].value);
		else if (!str_eq(a->v[i].value, b->v[k].value))
			add_event(s, night, a->v[i].key, a->v[i].value, b->v[k].value);
		i += order <= 0;
		k += order >= 0;
	}
}

/* A point whose environment is not known says nothing about it: it is passed over. */
static int find_events(struct nights *n, struct nights_series *s, struct err *e)
{
	struct kvs before = {0};
	int64_t last = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct point_row *p = &s->points[i];
		const struct kvs *now;

		if (!p->environment || p->environment == last)
			continue;
		if ((rc = environment(n, p->environment, &now, e)) < 0)
			break;
		if (last)
			compare(s, p->night, &before, now);
		kvs_copy(&before, now);
		last = p->environment;
	}
	kvs_free(&before);
	return rc;
}

/* -- changes ---------------------------------------------------------------------------------- */

static void add_mark(struct nights_series *s, const struct nights_mark *m)
{
	s->marks = xgrow(s->marks, s->n_marks, &s->cap_marks, sizeof *s->marks);
	s->marks[s->n_marks++] = *m;
}

static int stored_marks(struct nights *n, struct nights_series *s, struct err *e)
{
	struct change_row *v = NULL;
	size_t n_v = 0;
	int rc = history_changes(n->db, 0, s->row.id, &v, &n_v, e);

	for (size_t i = 0; i < n_v; i++) {
		struct nights_mark m = {
			.direction = v[i].direction,
			.level = v[i].level,
			.est = v[i].est,
			.lo = v[i].lo,
			.hi = v[i].hi,
			.p = v[i].p,
			.regression = v[i].regression,
			.state = state_of(n, v[i].regression),
			.why = TAKE(v[i].why),
		};

		memcpy(m.night, v[i].night, sizeof m.night);
		memcpy(m.first, v[i].first_night, sizeof m.first);
		memcpy(m.last, v[i].last_night, sizeof m.last);
		add_mark(s, &m);
	}
	change_rows_free(v, n_v);
	return rc;
}

static bool is_stored(const struct nights_series *s, const char *first, const char *last, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t day = regress_day(s->marks[i].night);

		if (day >= regress_day(first) - SAME_NIGHTS &&
		    day <= regress_day(last) + SAME_NIGHTS)
			return true;
	}
	return false;
}

static enum change_direction direction_of(enum better better, double shift)
{
	if (better == BETTER_NONE || shift == 0)
		return CHANGE_NEITHER;
	return (better == BETTER_UP) == (shift > 0) ? CHANGE_BETTER : CHANGE_WORSE;
}

static void detected_marks(struct nights_series *s)
{
	_cleanup_free_ double *v = xcalloc(s->n + 1, sizeof *v);
	_cleanup_free_ struct cp_point *c = xcalloc(s->n + 1, sizeof *c);
	struct cp_params params = cp_strict;
	size_t n, stored = s->n_marks;

	params.min_magnitude = fmax(params.min_magnitude, s->row.min_effect);
	for (size_t i = 0; i < s->n; i++)
		v[i] = s->points[i].value;
	n = cp_detect(v, s->n, &params, c);
	for (size_t i = 0; i < n; i++) {
		struct nights_mark m = {
			.direction = direction_of(s->row.better, c[i].shift),
			.level = CHANGE_SUSPECT,
			.est = c[i].shift,
			.lo = c[i].lo,
			.hi = c[i].hi,
			.p = c[i].p,
		};

		memcpy(m.night, s->points[c[i].index].night, sizeof m.night);
		memcpy(m.first, s->points[c[i].first].night, sizeof m.first);
		memcpy(m.last, s->points[c[i].last].night, sizeof m.last);
		if (!is_stored(s, m.first, m.last, stored))
			add_mark(s, &m);
	}
}

static int by_night(const void *a, const void *b)
{
	return strcmp(((const struct nights_mark *)a)->night,
		      ((const struct nights_mark *)b)->night);
}

int nights_load(struct nights *n, const struct series_row *row, const char *since,
		struct nights_series *out, struct err *e)
{
	struct nights_series s = {0};
	int rc;

	copy_series(&s.row, row);
	if ((rc = history_points(n->db, row->id, since, &s.points, &s.n, e)) < 0 ||
	    (rc = find_events(n, &s, e)) < 0 || (rc = stored_marks(n, &s, e)) < 0) {
		nights_series_done(&s);
		return rc;
	}
	if (row->source != SERIES_CANARY) /* of those every night has said what there is to say */
		detected_marks(&s);
	if (s.n_marks)
		qsort(s.marks, s.n_marks, sizeof *s.marks, by_night);
	*out = s;
	return 0;
}

/* -- glances ---------------------------------------------------------------------------------- */

/* Change of the newest point since the last one that is `nights` older. */
static double change_since(const struct point_row *p, size_t n, int nights)
{
	int64_t newest = regress_day(p[n - 1].night);

	for (size_t i = n; i-- > 0;) {
		int64_t age = newest - regress_day(p[i].night);

		if (age >= nights)
			return age <= 2 * nights && p[i].value != 0
				       ? (p[n - 1].value - p[i].value) / fabs(p[i].value)
				       : NAN;
	}
	return NAN;
}

static int newest_points(struct nights *n, struct nights_glance *g, struct err *e)
{
	struct point_row *p = NULL;
	size_t n_p = 0;
	char from[11];
	int rc;

	if (!g->nights)
		return 0;
	regress_night(regress_day(g->last) - 2 * MONTH, from);
	if ((rc = history_points(n->db, g->row.id, from, &p, &n_p, e)) == 0 && n_p) {
		g->value = p[n_p - 1].value;
		g->week = change_since(p, n_p, WEEK);
		g->month = change_since(p, n_p, MONTH);
	}
	free(p);
	return rc;
}

static int newest_change(struct nights *n, struct nights_glance *g, struct err *e)
{
	struct change_row *v = NULL;
	size_t n_v = 0;
	int rc = history_changes(n->db, 0, g->row.id, &v, &n_v, e);

	for (size_t i = 0; i < n_v; i++) {
		enum regression_state state = state_of(n, v[i].regression);

		if ((state != REGRESSION_OPEN && state != REGRESSION_ACKNOWLEDGED) ||
		    v[i].level == CHANGE_DISMISSED)
			continue;
		g->regression = v[i].regression;
		g->direction = v[i].direction;
		g->level = v[i].level;
		g->state = state;
	}
	change_rows_free(v, n_v);
	return rc;
}

static bool fits(const struct series_row *s, const char *which, bool exactly)
{
	if (exactly)
		return str_eq(s->workload, which) || str_eq(s->metric, which);
	return strstr(s->workload, which) || strstr(s->metric, which);
}

/* Which of v are meant: those with the very name come before those with it as a part. */
static size_t choose(struct series_row *v, size_t n, const char *which, bool ended, bool *chosen)
{
	int64_t number;
	size_t count = 0;
	bool by_number = which && str_to_i64(which, &number);

	for (int exactly = 1; exactly >= 0 && count == 0; exactly--)
		for (size_t i = 0; i < n; i++) {
			chosen[i] = by_number ? v[i].id == number
					      : (ended || !v[i].ended_us) &&
							(!which || fits(&v[i], which, exactly));
			count += chosen[i];
		}
	return count;
}

static int none_fits(const struct series_row *v, size_t n, const char *which, struct err *e)
{
	_cleanup_free_ const char **names = xcalloc(2 * n + 1, sizeof *names);
	const char *near;

	for (size_t i = 0; i < n; i++) {
		names[2 * i] = v[i].workload;
		names[2 * i + 1] = v[i].metric;
	}
	near = str_nearest(which, names);
	return err_set(e, ERR_NOT_FOUND,
		       "no series has the number, workload or metric %.100s%s%.100s%s; `fettle "
		       "history --all` lists them",
		       which, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int take(struct nights *n, struct series_row *row, struct nights_glance *g, struct err *e)
{
	struct series_extent x = {0};
	int rc;

	*g = (struct nights_glance){.row = *row, .value = NAN, .week = NAN, .month = NAN};
	*row = (struct series_row){0};
	if ((rc = history_extent(n->db, g->row.id, &x, e)) < 0)
		return rc;
	g->nights = x.nights;
	memcpy(g->first, x.first, sizeof g->first);
	memcpy(g->last, x.last, sizeof g->last);
	if ((rc = newest_points(n, g, e)) == 0)
		rc = newest_change(n, g, e);
	return rc;
}

int nights_glances(struct nights *n, const char *which, bool ended, struct nights_glance **out,
		   size_t *n_out, struct err *e)
{
	struct series_row *v = NULL;
	struct nights_glance *g;
	size_t n_v = 0, n_g = 0;
	bool *chosen;
	int rc = history_series_list(n->db, 0, &v, &n_v, e);

	if (rc < 0)
		return rc;
	chosen = xcalloc(n_v + 1, sizeof *chosen);
	g = xcalloc(n_v + 1, sizeof *g);
	if (choose(v, n_v, which, ended, chosen) == 0 && which)
		rc = none_fits(v, n_v, which, e);
	for (size_t i = 0; rc == 0 && i < n_v; i++)
		if (chosen[i])
			rc = take(n, &v[i], &g[n_g++], e);
	series_rows_free(v, n_v);
	free(chosen);
	if (rc < 0) {
		nights_glances_free(g, n_g);
		return rc;
	}
	*out = g;
	*n_out = n_g;
	return 0;
}

int nights_json_replicates(struct nights *n, int64_t point, struct json *list, struct err *e)
{
	struct replicate_row *v = NULL;
	size_t n_v = 0;
	int rc = history_replicates(n->db, point, &v, &n_v, e);

	for (size_t i = 0; i < n_v; i++) {
		struct json *o = json_object();

		json_set_number(o, "value", v[i].value);
		json_set_text(o, "nodes", v[i].nodes && *v[i].nodes ? v[i].nodes : NULL);
		json_add(list, o);
	}
	replicate_rows_free(v, n_v);
	return rc;
}

/* -- words ------------------------------------------------------------------------------------ */

bool nights_same_group(const struct series_row *a, const struct series_row *b)
{
	return str_eq(a->workload, b->workload) && str_eq(a->place, b->place) &&
	       str_eq(a->config, b->config) && a->source == b->source;
}

const char *nights_direction(enum change_direction d)
{
	return d == CHANGE_NEITHER ? _("changed")
				   : lang_word("change_direction", change_direction_name(d));
}

char *nights_state(const struct nights_glance *g)
{
	char night[11];

	if (g->regression)
		return xasprintf("%s%s (#%lld%s)", nights_direction(g->direction),
				 g->level == CHANGE_SUSPECT ? _(", suspect") : "",
				 (long long)g->regression,
				 g->state == REGRESSION_ACKNOWLEDGED ? _(", acknowledged") : "");
	if (g->row.ended_us) {
		regress_night(g->row.ended_us / (86400LL * 1000000), night);
		return xasprintf(_("ended %s"), night);
	}
	return xstrdup(g->nights ? _("steady") : _("no night yet"));
}

char *nights_title(const struct series_row *s)
{
	bool plain = s->role == SERIES_CURRENT;

	return xasprintf("%s%s%s%s%s", s->metric, *s->stat ? " " : "", s->stat,
			 plain ? "" : _(", "),
			 plain ? "" : lang_word("series_role", series_role_name(s->role)));
}

void nights_effect(double est, double lo, double hi, struct buf *out)
{
	buf_printf(out, "%+.1f %%", 100 * est);
	if (isfinite(lo) && isfinite(hi))
		buf_printf(out, " [%+.1f, %+.1f]", 100 * lo, 100 * hi);
}

static bool lasts(const struct nights_mark *m)
{
	return m->level != CHANGE_DISMISSED &&
	       (m->regression == 0 ||
		(m->state != REGRESSION_DISMISSED && m->state != REGRESSION_TRANSIENT));
}

struct nights_series nights_lasting(const struct nights_series *s)
{
	struct nights_series out = *s;

	out.marks = xcalloc(s->n_marks + 1, sizeof *out.marks);
	out.n_marks = 0;
	for (size_t i = 0; i < s->n_marks; i++)
		if (lasts(&s->marks[i]))
			out.marks[out.n_marks++] = s->marks[i];
	return out;
}

bool nights_alarming(const struct nights_mark *m)
{
	return m->direction == CHANGE_WORSE && m->level != CHANGE_DISMISSED &&
	       (m->regression == 0 || m->state == REGRESSION_OPEN ||
		m->state == REGRESSION_ACKNOWLEDGED);
}
