/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/past.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/changepoint.h"
#include "orchestrator/base/mem.h"

/* More than a level takes: steps before it do not matter. */
enum { STEPS_WITHIN = REGRESS_BEFORE_MAX + 20 };

/* -- reading --------------------------------------------------------------------------------- */

/* Where "before" begins: an accepted change is the new normal. Until it was accepted the reference
 * was of the old one, so a pair begins with what was measured since. */
static void set_start(struct past *w, struct past_series *s)
{
	const struct past_series *o = s->row.role == SERIES_PAIR ? past_beside(w, s, SERIES_CURRENT)
								 : NULL;

	for (size_t i = 0; i < w->n_changes; i++) {
		const struct change_row *c = &w->changes[i];
		const struct regression_row *r;
		size_t at;

		if ((c->series != s->row.id && (!o || c->series != o->row.id)) ||
		    c->level == CHANGE_DISMISSED)
			continue;
		r = past_regression(w, c->regression);
		if (!r || r->state != REGRESSION_ACCEPTED)
			continue;
		at = past_at(s, regress_day(c->night));
		while (s->row.role == SERIES_PAIR && at < s->n &&
		       s->points[at].at_us <= r->state_us)
			at++;
		if (at > s->start)
			s->start = at;
	}
}

static int load_points(struct past *w, struct past_series *s, struct err *e)
{
	int rc = history_points(w->db, s->row.id, NULL, &s->points, &s->n, e);

	if (rc < 0)
		return rc;
	s->day = xcalloc(s->n + 1, sizeof *s->day);
	s->value = xcalloc(s->n + 1, sizeof *s->value);
	s->y = xcalloc(s->n + 1, sizeof *s->y);
	for (size_t i = 0; i < s->n; i++) {
		s->day[i] = regress_day(s->points[i].night);
		s->value[i] = s->points[i].value;
		if (s->day[i] > w->day)
			s->n = i;
	}
	s->logs = regress_scale(s->value, s->n, s->y);
	s->filled = true;
	set_start(w, s);
	s->calm = xcalloc(s->n - s->start + 1, sizeof *s->calm);
	regress_calm(s->value + s->start, s->n - s->start, s->calm);
	return 0;
}

int past_fill(struct past *w, int64_t campaign, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < w->n && rc == 0; i++)
		if (!w->s[i].filled && (campaign == 0 || w->s[i].row.campaign == campaign))
			rc = load_points(w, &w->s[i], e);
	return rc;
}

static bool same_metric(const struct series_row *a, const struct series_row *b)
{
	return a->campaign == b->campaign && strcmp(a->metric, b->metric) == 0 &&
	       strcmp(a->stat, b->stat) == 0;
}

/* The objective is what is paired; of a canary without a reference the first series that it fed. */
static void mark_objective(struct past *w, struct past_series *s)
{
	bool paired = false, first = true;

	if (s->row.source != SERIES_CANARY || s->row.role != SERIES_CURRENT || !s->row.campaign)
		return;
	for (size_t i = 0; i < w->n; i++) {
		const struct series_row *o = &w->s[i].row;

		if (o->source != SERIES_CANARY || o->campaign != s->row.campaign)
			continue;
		if (o->role == SERIES_PAIR && same_metric(o, &s->row))
			s->objective = true;
		paired = paired || o->role == SERIES_PAIR;
		first = first && o->id >= s->row.id;
	}
	s->objective = s->objective || (!paired && first);
}

static int load(struct past *w, struct err *e)
{
	struct series_row *rows = NULL;
	int rc = history_series_list(w->db, 0, &rows, &w->n, e);

	if (rc < 0)
		return rc;
	w->s = xcalloc(w->n + 1, sizeof *w->s);
	for (size_t i = 0; i < w->n; i++) {
		w->s[i].row = rows[i];
		w->s[i].min_effect = fmax(rows[i].min_effect, REGRESS_MIN_EFFECT);
	}
	free(rows);
	for (size_t i = 0; i < w->n; i++)
		mark_objective(w, &w->s[i]);
	if ((rc = history_regressions(w->db, true, &w->regressions, &w->n_regressions, e)) < 0)
		return rc;
	return history_changes(w->db, 0, 0, &w->changes, &w->n_changes, e);
}

int past_open(struct db *db, const char *night, struct past *out, struct err *e)
{
	int rc;

	*out = (struct past){.db = db, .day = night ? regress_day(night) : INT64_MAX};
	if (night && out->day == INT64_MIN)
		return err_set(e, ERR_PARSE, "\"%s\" is no night: expected a date like 2026-11-29",
			       night);
	rc = load(out, e);
	if (rc < 0)
		past_done(out);
	return rc;
}

void past_done(struct past *w)
{
	for (size_t i = 0; w->s && i < w->n; i++) {
		series_row_done(&w->s[i].row);
		free(w->s[i].points);
		free(w->s[i].day);
		free(w->s[i].value);
		free(w->s[i].y);
		free(w->s[i].calm);
	}
	free(w->s);
	regression_rows_free(w->regressions, w->n_regressions);
	change_rows_free(w->changes, w->n_changes);
	*w = (struct past){0};
}

/* -- looking up ------------------------------------------------------------------------------ */

struct past_series *past_series(struct past *w, int64_t id)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->s[i].row.id == id)
			return &w->s[i];
	return NULL;
}

struct regression_row *past_regression(struct past *w, int64_t id)
{
	for (size_t i = 0; i < w->n_regressions; i++)
		if (w->regressions[i].id == id)
			return &w->regressions[i];
	return NULL;
}

struct regress_span past_span(const struct change_row *c)
{
	struct regress_span s = past_whole_span(c);

	return regress_near(&s);
}

struct regress_span past_whole_span(const struct change_row *c)
{
	return (struct regress_span){regress_day(c->night), regress_day(c->first_night),
				     regress_day(c->last_night)};
}

size_t past_at(const struct past_series *s, int64_t day)
{
	size_t i = 0;

	while (i < s->n && s->day[i] < day)
		i++;
	return i;
}

bool past_live(const struct regression_row *r)
{
	return r->state == REGRESSION_OPEN || r->state == REGRESSION_ACKNOWLEDGED;
}

/* What went back by itself, or was mended, left no change behind: the strict detector sees it. A
 * level needs enough nights to be one. */
static size_t since_steps(const struct past_series *s, size_t from, size_t to)
{
	struct cp_point v[STEPS_WITHIN];
	struct cp_params params = cp_strict;
	size_t n;

	if (to - from > STEPS_WITHIN)
		from = to - STEPS_WITHIN;
	params.min_magnitude = s->min_effect;
	n = cp_detect(s->calm + from - s->start, to - from, &params, v);
	while (n > 0 && to - from - v[n - 1].index < REGRESS_BEFORE_MIN)
		n--;
	return n > 0 ? from + v[n - 1].index : from;
}

struct regress_noise past_before(struct past *w, const struct past_series *s, int64_t first)
{
	size_t from = s->start, to = past_at(s, first);

	for (size_t i = 0; i < w->n_changes; i++) {
		const struct change_row *c = &w->changes[i];
		const struct regression_row *r;
		int64_t last;
		size_t at;

		if (c->series != s->row.id || c->level == CHANGE_DISMISSED ||
		    (last = past_span(c).last) >= first)
			continue;
		r = past_regression(w, c->regression);
		if (!r || r->level != CHANGE_CONFIRMED)
			continue;
		at = past_at(s, last);
		if (at > from)
			from = at;
	}
	if (from > to)
		from = to;
	from = since_steps(s, from, to);
	return regress_noise(s->y + from, to - from);
}

struct past_series *past_beside(struct past *w, const struct past_series *s, enum series_role role)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->s[i].row.source == SERIES_CANARY && w->s[i].row.role == role &&
		    s->row.campaign && same_metric(&w->s[i].row, &s->row))
			return &w->s[i];
	return NULL;
}

bool past_context(const struct past_series *s)
{
	return s->row.source == SERIES_CANARY && s->row.role == SERIES_CURRENT && !s->objective;
}

bool past_range(const struct past *w, int64_t regression, struct regress_span *out)
{
	const struct change_row *best = NULL;

	for (size_t i = 0; i < w->n_changes; i++) {
		const struct change_row *c = &w->changes[i];

		if (c->regression != regression || c->level == CHANGE_DISMISSED)
			continue;
		if (!best || (c->level == CHANGE_CONFIRMED) > (best->level == CHANGE_CONFIRMED) ||
		    (c->level == best->level && c->p < best->p))
			best = c;
	}
	if (best)
		*out = past_whole_span(best);
	return best != NULL;
}

int past_sign(const struct change_row *c)
{
	return c->est < 0 ? -1 : 1;
}
