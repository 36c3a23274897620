/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/changepoint.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/blame.h"
#include "orchestrator/method/event.h"
#include "orchestrator/method/past.h"

/* Tonight's pairs lean. */
static const double LEAN_P = 0.05;
/* By medians, of what began before the newest points; of what is believed without a re-run. */
static const double STEP_P = 0.01;
static const double STRICT_P = 1e-4;
/* Of the points after what was settled, against those before it. */
static const double AFTER_P = 1e-3;
static const double STRICT_SHARE = 1.5; /* of min_effect: a year's drift comes near to it */
/* An estimate below this share of min_effect asks for no re-run: it would not be confirmed. */
static const double WORTH_SHARE = 0.5;
enum {
	NEWEST = 2,          /* points in which one value may be all that there is to see */
	LEAN_BEFORE = 2,     /* pairs that say what is usual, at least: one degree of freedom */
	BACK_POINTS = 2,     /* newest points that close a suspicion */
	GONE_POINTS = 3,     /* that close what was confirmed */
	BLAME_NIGHTS = 4,    /* after a verdict, in which its causes are ranked again */
	USUAL_NIGHTS = 14,   /* what was better for so long is missed when it ends */
	HISTORY_NIGHTS = 14, /* an older change of what was imported later is news to nobody */
};
/* A second step behind one that is known: standard errors, from night to night. */
static const double FURTHER_SE = 5;
static const int64_t DAY_US = 86400000000;

/* A change that a detector sees. */
struct found {
	size_t series; /* index */
	size_t at;     /* first point after it */
	struct regress_span span;
	double est, lo, hi, p;
	bool strict;
};

struct track {
	struct past w;
	const char *night;
	int64_t now_us;
	struct found *found;
	size_t n_found, cap_found;
	size_t cap_changes, cap_regressions;
	struct track_result *out;
};

/* -- detectors ------------------------------------------------------------------------------- */

static void add_found(struct track *t, const struct past_series *s, const struct found *f)
{
	t->found = xgrow(t->found, t->n_found, &t->cap_found, sizeof *t->found);
	t->found[t->n_found] = *f;
	t->found[t->n_found++].series = (size_t)(s - t->w.s);
}

/* Between which nights it lies: after the last point before the range, by the last one of it. */
static void add_point(struct track *t, const struct past_series *s, const struct cp_point *p,
		      bool strict)
{
	const int64_t *day = s->day + s->start;
	struct found f = {.at = s->start + p->index,
			  .span = {day[p->index], day[p->first - 1] + 1, day[p->last]},
			  .est = p->shift,
			  .lo = isfinite(p->lo) ? p->lo : NAN,
			  .hi = isfinite(p->hi) ? p->hi : NAN,
			  .p = p->p,
			  .strict = strict};

	if (p->shift != 0 && !isnan(p->shift))
		add_found(t, s, &f);
}

/* A step that medians see as well, between the change points beside it. One night that is far off,
 * or a drift, makes means differ. */
static bool is_step(const struct past_series *s, size_t from, size_t at, size_t to, double p_max,
		    double least)
{
	struct regress_step step = regress_step(s->y + from, to - from, at - from);

	return step.p <= p_max && fabs(regress_relative(step.diff, step.before, s->logs)) >= least;
}

/* A level by now, and not a few bad nights: what the strict detector says of it is believed. */
static bool lasts(const struct past_series *s, size_t from, size_t at, size_t to)
{
	struct regress_step step = regress_step(s->y + from, to - from, at - from);

	return regress_lasts(step.before, step.diff, s->y + at, to - at);
}

static void strict_points(struct track *t, const struct past_series *s)
{
	size_t n = s->n - s->start;
	_cleanup_free_ struct cp_point *v = xcalloc(n + 1, sizeof *v);
	struct cp_params params = cp_strict;
	size_t used, from = s->start;

	params.min_magnitude = s->min_effect;
	/* how alike its nights are is known from before the new normal as well */
	params.inform = s->start ? cp_information(s->value, s->n) : 0;
	used = cp_detect(s->calm, n, &params, v);
	for (size_t i = 0; i < used; i++) {
		size_t at = s->start + v[i].index;
		size_t to = i + 1 < used ? s->start + v[i + 1].index : s->n;

		if (is_step(s, from, at, to, STRICT_P, STRICT_SHARE * s->min_effect) &&
		    lasts(s, from, at, to))
			add_point(t, s, &v[i], true);
		from = at;
	}
}

/* Otava's rule, on whatever is new to it: a small change takes it many nights. */
static void suspect_points(struct track *t, const struct past_series *s)
{
	size_t n = s->n - s->start;
	_cleanup_free_ struct cp_point *v = xcalloc(n + 1, sizeof *v);
	size_t used = cp_suspects(s->calm, n, CP_NEWEST, v);
	double least = WORTH_SHARE * s->min_effect;

	for (size_t i = 0; i < used; i++) {
		size_t at = s->start + v[i].index;
		size_t from = i > 0 ? s->start + v[i - 1].index : s->start;
		size_t to = i + 1 < used ? s->start + v[i + 1].index : s->n;

		if (fabs(v[i].shift) >= least &&
		    (at + NEWEST >= s->n || is_step(s, from, at, to, STEP_P, least)))
			add_point(t, s, &v[i], false);
	}
}

/* Are both arms of tonight's pairs likely to differ more than they used to? Only where the
 * environment changed within the newest points: a reference that has differed for long shows a
 * change like any other series. */
static bool arms_part(struct track *t, const struct past_series *s)
{
	const struct past_series *c = past_beside(&t->w, s, SERIES_CURRENT);

	if (!c || c->n < 2 || c->day[c->n - 1] != t->w.day)
		return false;
	for (size_t i = c->n - 1; i > 0 && i + NEWEST > c->n - 1; i--)
		if (c->points[i].environment != c->points[i - 1].environment)
			return true;
	return false;
}

static void leaning_pair(struct track *t, const struct past_series *s)
{
	size_t last = s->n - 1;
	struct regress_noise before;
	struct found f = {.at = last, .lo = NAN, .hi = NAN};
	double diff;

	if (s->day[last] != t->w.day || last < s->start + LEAN_BEFORE || !arms_part(t, s))
		return;
	before = regress_noise(s->y + s->start, last - s->start);
	diff = s->y[last] - before.mean;
	f.est = regress_relative(diff, before.mean, s->logs);
	f.p = regress_fresh_p(&before, s->y[last], 1, diff < 0 ? -1 : 1);
	f.span = (struct regress_span){s->day[last], s->day[last - 1] + 1, s->day[last]};
	if (f.p < LEAN_P && fabs(f.est) >= s->min_effect)
		add_found(t, s, &f);
}

static void look_at(struct track *t, const struct past_series *s)
{
	/* The reference is there for the sake of the pairs. */
	if (s->n < s->start + 2 || s->row.role == SERIES_REFERENCE)
		return;
	if (past_context(s) || s->row.source == SERIES_IMPORTED)
		strict_points(t, s);
	if (!past_context(s))
		suspect_points(t, s);
	if (s->row.role == SERIES_PAIR)
		leaning_pair(t, s);
}

/* -- is it known? ---------------------------------------------------------------------------- */

static int sign_of(double est)
{
	return est < 0 ? -1 : 1;
}

/* Did the series only go back to what it was before a change that is known? */
static bool is_return(struct track *t, const struct past_series *s, const struct found *f)
{
	const struct change_row *last = NULL;
	struct regress_noise before;
	size_t from;
	double now;

	for (size_t i = 0; i < t->w.n_changes; i++) {
		const struct change_row *c = &t->w.changes[i];
		const struct regression_row *r = past_regression(&t->w, c->regression);

		/* From an accepted one there is no way back: it would be a new change. */
		if (c->series == s->row.id && c->level != CHANGE_DISMISSED && r &&
		    r->state != REGRESSION_ACCEPTED && regress_day(c->night) < f->span.day &&
		    (!last || strcmp(c->night, last->night) >= 0))
			last = c;
	}
	if (!last || past_sign(last) == sign_of(f->est) ||
	    (last->direction == CHANGE_BETTER &&
	     f->span.day >= regress_day(last->night) + USUAL_NIGHTS))
		return false;
	from = past_at(s, regress_day(last->night));
	if (from >= f->at)
		return false;
	before = past_before(&t->w, s, past_span(last).first);
	now = stats_mean(s->y + f->at, s->n - f->at);
	return regress_back(&before, stats_mean(s->y + from, f->at - from), &now, 1);
}

/* Was it over before anybody saw it? */
static bool is_over(struct track *t, const struct past_series *s, const struct found *f)
{
	struct regress_noise before = past_before(&t->w, s, regress_near(&f->span).first);

	return f->at + BACK_POINTS < s->n &&
	       regress_back(&before, stats_mean(s->y + f->at, s->n - BACK_POINTS - f->at),
			    s->y + s->n - BACK_POINTS, BACK_POINTS);
}

/* Is what came after `at` further from the nights between than chance takes it? The nights of a
 * change wander about its level, and some of them always lie on its far side. */
static bool is_apart(struct track *t, const struct past_series *s, int64_t first, size_t from,
		     size_t at)
{
	struct regress_noise before = past_before(&t->w, s, first);
	double between = stats_mean(s->y + from, at - from);
	double diff = stats_mean(s->y + at, s->n - at) - between;
	double se = before.sd * sqrt(1 / (double)(at - from) + 1 / (double)(s->n - at));

	return before.n >= 2 && fabs(diff) > FURTHER_SE * se &&
	       fabs(regress_relative(diff, between, s->logs)) >= s->min_effect;
}

/* Another step of a series that was confirmed to have changed days before: both are seen, one on
 * the night that is known, and this one well behind it. */
static bool is_further(struct track *t, const struct found *f, const struct change_row *c)
{
	const struct past_series *s = &t->w.s[f->series];
	int64_t day = regress_day(c->night);
	size_t from = past_at(s, day);

	if (c->level != CHANGE_CONFIRMED || f->span.day <= day || from >= f->at ||
	    !is_apart(t, s, past_span(c).first, from, f->at))
		return false;
	for (size_t i = 0; i < t->n_found; i++) {
		const struct found *g = &t->found[i];

		if (g->series == f->series && g->span.day == day &&
		    sign_of(g->est) == sign_of(f->est) && past_sign(c) == sign_of(f->est))
			return true;
	}
	return false;
}

/* Does it lie before a change of the same series and sign that is confirmed? A re-run would measure
 * both. */
static bool is_before(struct track *t, const struct past_series *s, const struct found *f)
{
	for (size_t i = 0; i < t->w.n_changes; i++) {
		const struct change_row *c = &t->w.changes[i];
		const struct regression_row *r = past_regression(&t->w, c->regression);

		if (s->row.source == SERIES_CANARY && c->series == s->row.id &&
		    c->level != CHANGE_DISMISSED && r && r->level == CHANGE_CONFIRMED &&
		    r->state != REGRESSION_TRANSIENT && r->state != REGRESSION_DISMISSED &&
		    past_sign(c) == sign_of(f->est) && regress_day(c->night) > f->span.day)
			return true;
	}
	return false;
}

/* A detector goes on dating a change to bad nights just before it, which were settled. The points
 * after them speak for themselves: if they differ, the change begins with them. */
static bool begins_after(struct track *t, const struct past_series *s, const struct change_row *c,
			 struct found *f)
{
	const struct regression_row *r = past_regression(&t->w, c->regression);
	struct regress_span span = past_whole_span(c);
	struct regress_noise before;
	size_t at = past_at(s, span.last + 1);
	double diff;

	if (c->series != s->row.id || c->level == CHANGE_CONFIRMED || !r ||
	    (c->level != CHANGE_DISMISSED && r->state != REGRESSION_TRANSIENT &&
	     r->state != REGRESSION_DISMISSED) ||
	    !regress_same(&span, true, &f->span) || at + NEWEST > s->n)
		return false;
	before = past_before(&t->w, s, past_span(c).first);
	diff = stats_median(s->y + at, s->n - at) - before.mean;
	if (regress_fresh_p(&before, before.mean + diff, 1, sign_of(f->est)) > AFTER_P ||
	    fabs(regress_relative(diff, before.mean, s->logs)) < s->min_effect)
		return false;
	while (at + 1 < s->n && (s->y[at] - before.mean) / diff < 0.5)
		at++;
	f->at = at;
	f->est = regress_relative(diff, before.mean, s->logs);
	f->lo = f->hi = NAN;
	f->span = (struct regress_span){s->day[at], s->day[at - 1] + 1, s->day[at]};
	return true;
}

static void begin_after_settled(struct track *t, const struct past_series *s, struct found *f)
{
	for (size_t i = 0; i < t->w.n_changes; i++)
		if (begins_after(t, s, &t->w.changes[i], f))
			i = SIZE_MAX; /* those before it may reach as far as the new night */
}

/* The change of this series that it is, NULL: none; *again is set when it is one whatever the
 * rest, or a mere return. */
static struct change_row *known(struct track *t, const struct past_series *s, const struct found *f,
				bool *again)
{
	*again = false;
	for (size_t i = 0; i < t->w.n_changes; i++) {
		struct change_row *c = &t->w.changes[i];
		const struct regression_row *r = past_regression(&t->w, c->regression);
		struct regress_span span = past_whole_span(c);
		bool settled = c->level == CHANGE_DISMISSED || !r ||
			       (!past_live(r) && r->state != REGRESSION_ACCEPTED);

		if (c->series != s->row.id || !regress_same(&span, settled, &f->span) ||
		    is_further(t, f, c))
			continue;
		*again = true;
		if (!settled && past_sign(c) == sign_of(f->est))
			return c;
		/* The other way and later: perhaps one of its own. */
		if (!settled && f->span.day > span.day)
			*again = false;
	}
	*again = *again || is_return(t, s, f) || is_before(t, s, f);
	return NULL;
}

/* -- writing --------------------------------------------------------------------------------- */

static enum change_direction direction(const struct past_series *s, double est)
{
	switch (s->row.better) {
	case BETTER_UP:
		return est < 0 ? CHANGE_WORSE : CHANGE_BETTER;
	case BETTER_DOWN:
		return est > 0 ? CHANGE_WORSE : CHANGE_BETTER;
	case BETTER_NONE:
		return CHANGE_NEITHER;
	}
	return CHANGE_NEITHER;
}

static enum regression_kind kind_of(enum change_direction d)
{
	switch (d) {
	case CHANGE_WORSE:
		return REGRESSION_WORSE;
	case CHANGE_BETTER:
		return REGRESSION_BETTER;
	case CHANGE_NEITHER:
		return REGRESSION_SHIFT;
	}
	return REGRESSION_SHIFT;
}

/* How far a change moved its metric, in the metric's unit. */
static struct regress_move move_of(struct track *t, const struct past_series *s, int64_t first,
				   int64_t day)
{
	size_t to = past_at(s, first), from = past_at(s, day);
	struct regress_noise b = past_before(&t->w, s, first);
	double level = s->logs ? exp(b.mean) : b.mean, after = stats_mean(s->y + from, s->n - from);

	if (b.n < 2 || to == 0 || from == s->n)
		return (struct regress_move){0, INFINITY};
	return (struct regress_move){(s->logs ? exp(after) : after) - level,
				     (s->logs ? level : 1) * b.sd *
					     sqrt(1 / (double)b.n + 1 / (double)(s->n - from))};
}

static bool one_run(const struct series_row *a, const struct series_row *b)
{
	return a->source == b->source && a->role == b->role && a->id != b->id &&
	       strcmp(a->workload, b->workload) == 0 && strcmp(a->config, b->config) == 0 &&
	       strcmp(a->place, b->place) == 0 && strcmp(a->unit, b->unit) == 0;
}

/* A regression that is one change of another metric of the same run, by as much the other way. */
static struct regression_row *counterpart(struct track *t, const struct past_series *s,
					  const struct found *f)
{
	struct regress_move a = move_of(t, s, regress_near(&f->span).first, f->span.day);

	for (size_t i = 0; i < t->w.n_changes; i++) {
		const struct change_row *c = &t->w.changes[i];
		struct regression_row *r = past_regression(&t->w, c->regression);
		const struct past_series *o = past_series(&t->w, c->series);
		struct regress_span group = past_span(c);
		struct regress_move b;
		size_t members = 0;

		if (!r || !o || !past_live(r) || !one_run(&s->row, &o->row) ||
		    !regress_together(&group, &f->span))
			continue;
		for (size_t k = 0; k < t->w.n_changes; k++)
			members += t->w.changes[k].regression == r->id;
		b = move_of(t, o, past_span(c).first, regress_day(c->night));
		if (members == 1 && regress_shift(&a, &b))
			return r;
	}
	return NULL;
}

/* What a series had been through before it was ever looked at. */
static bool is_history(struct track *t, const struct past_series *s, const struct found *f)
{
	return s->row.source == SERIES_IMPORTED && f->span.day < t->w.day - HISTORY_NIGHTS &&
	       f->span.day < s->row.created_us / DAY_US;
}

static int new_regression(struct track *t, const struct past_series *s, const struct found *f,
			  struct regression_row **out, struct err *e)
{
	struct past *w = &t->w;
	struct regression_row r = {.kind = kind_of(direction(s, f->est)),
				   .level = CHANGE_SUSPECT,
				   .state = REGRESSION_OPEN,
				   .found_us = t->now_us,
				   .state_us = t->now_us};
	int rc;

	regress_night(f->span.day, r.night);
	regress_night(w->day, r.found_night);
	if (is_history(t, s, f)) {
		r.state = REGRESSION_ACKNOWLEDGED;
		r.who = xstrdup("fettle");
		r.note = xstrdup("in the history from before it was followed");
	}
	if ((rc = history_regression_add(w->db, &r, &r.id, e)) < 0) {
		regression_row_done(&r);
		return rc;
	}
	if (!t->cap_regressions)
		t->cap_regressions = w->n_regressions;
	w->regressions = xgrow(w->regressions, w->n_regressions, &t->cap_regressions,
			       sizeof *w->regressions);
	w->regressions[w->n_regressions] = r;
	*out = &w->regressions[w->n_regressions++];
	return 0;
}

static void put_found(const struct found *f, struct change_row *c)
{
	c->est = f->est;
	c->lo = f->lo;
	c->hi = f->hi;
	c->p = f->p;
	regress_night(f->span.day, c->night);
	regress_night(f->span.first, c->first_night);
	regress_night(f->span.last, c->last_night);
}

static int new_change(struct track *t, const struct past_series *s, const struct found *f,
		      int64_t regression, struct change_row **out, struct err *e)
{
	struct past *w = &t->w;
	struct change_row c = {.series = s->row.id,
			       .regression = regression,
			       .direction = direction(s, f->est),
			       .level = CHANGE_SUSPECT,
			       .found_us = t->now_us};
	int rc;

	put_found(f, &c);
	regress_night(w->day, c.found_night);
	if ((rc = history_change_add(w->db, &c, &c.id, e)) < 0)
		return rc;
	if (!t->cap_changes)
		t->cap_changes = w->n_changes;
	w->changes = xgrow(w->changes, w->n_changes, &t->cap_changes, sizeof *w->changes);
	w->changes[w->n_changes] = c;
	*out = &w->changes[w->n_changes++];
	return 0;
}

/* The strict detector speaks for series that cannot be measured again. */
static int confirm(struct track *t, const struct past_series *s, const struct found *f,
		   struct change_row *c, struct err *e)
{
	struct regression_row *r = past_regression(&t->w, c->regression);
	bool one_node;
	int rc;

	if (!f->strict || s->row.source != SERIES_IMPORTED || c->level != CHANGE_SUSPECT)
		return 0;
	if ((rc = blame_on_one_node(&t->w, s, f->at, &one_node, e)) < 0 || one_node)
		return rc;
	c->level = CHANGE_CONFIRMED;
	put_found(f, c);
	free(c->why);
	c->why = xstrdup("found by the strict detector; the series cannot be measured again");
	if ((rc = history_change_update(t->w.db, c, e)) < 0 || r->level == CHANGE_CONFIRMED)
		return rc;
	r->level = CHANGE_CONFIRMED;
	str_copy(r->night, sizeof r->night, c->night);
	regress_night(t->w.day, r->confirmed_night);
	if ((rc = history_regression_update(t->w.db, r, e)) < 0 ||
	    (rc = event_absorb(&t->w, r, t->now_us, e)) < 0)
		return rc;
	t->out->confirmed += r->state == REGRESSION_OPEN;
	return blame_rank(&t->w, r->id, NULL, e);
}

/* More nights make a suspicion more precise, and say better when it began. */
static int refresh(struct track *t, const struct found *f, struct change_row *c, struct err *e)
{
	struct regress_span was = past_whole_span(c);
	struct change_row now = *c;
	struct regression_row *r;
	bool moves;
	int rc;

	if (c->level == CHANGE_DISMISSED)
		return 0;
	put_found(f, &now);
	if (c->level == CHANGE_CONFIRMED || c->rerun) {
		now.est = c->est;
		now.lo = c->lo;
		now.hi = c->hi;
		now.p = c->p;
	}
	if (f->span.last - f->span.first >= was.last - was.first) {
		str_copy(now.night, sizeof now.night, c->night);
		str_copy(now.first_night, sizeof now.first_night, c->first_night);
		str_copy(now.last_night, sizeof now.last_night, c->last_night);
	}
	if (now.est == c->est && strcmp(now.night, c->night) == 0 &&
	    strcmp(now.first_night, c->first_night) == 0 &&
	    strcmp(now.last_night, c->last_night) == 0)
		return 0;
	r = past_regression(&t->w, c->regression);
	/* one that is confirmed has the night of all its members (blame_rank) */
	moves = r->level == CHANGE_SUSPECT && strcmp(r->night, c->night) == 0 &&
		strcmp(now.night, c->night) != 0;
	*c = now;
	if ((rc = history_change_update(t->w.db, c, e)) < 0 || !moves)
		return rc;
	str_copy(r->night, sizeof r->night, c->night);
	return history_regression_update(t->w.db, r, e);
}

static int raise_change(struct track *t, struct found *f, struct err *e)
{
	const struct past_series *s = &t->w.s[f->series];
	struct regression_row *r;
	struct change_row *c;
	bool again, fresh = false;
	int rc;

	begin_after_settled(t, s, f);
	if ((c = known(t, s, f, &again))) {
		rc = refresh(t, f, c, e);
		return rc < 0 ? rc : confirm(t, s, f, c, e);
	}
	if (again || is_over(t, s, f))
		return 0;
	if ((r = counterpart(t, s, f))) {
		r->kind = REGRESSION_SHIFT;
		if ((rc = history_regression_update(t->w.db, r, e)) < 0)
			return rc;
	} else if ((rc = event_find(&t->w, s, &f->span, kind_of(direction(s, f->est)), &r, e)) <
		   0) {
		return rc;
	} else if (!r) {
		if ((rc = new_regression(t, s, f, &r, e)) < 0)
			return rc;
		fresh = true;
	}
	if ((rc = new_change(t, s, f, r->id, &c, e)) < 0 || (rc = confirm(t, s, f, c, e)) < 0)
		return rc;
	return fresh ? blame_rank(&t->w, c->regression, NULL, e) : 0;
}

/* What can be measured again before ordinary jobs and what explains, then the clearest: it gives
 * the event its range. */
static int by_weight(const struct past *w, const struct found *a, const struct found *b)
{
	const struct past_series *x = &w->s[a->series], *y = &w->s[b->series];
	int kx = past_context(x) * 2 + (x->row.source == SERIES_OBSERVED);
	int ky = past_context(y) * 2 + (y->row.source == SERIES_OBSERVED);

	if (kx != ky)
		return kx - ky;
	if (a->p != b->p)
		return a->p < b->p ? -1 : 1;
	if (a->series != b->series)
		return a->series < b->series ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static void sort_found(struct track *t)
{
	/* by insertion: a night has few, and qsort() takes no context */
	for (size_t i = 1; i < t->n_found; i++)
		for (size_t k = i; k > 0 && by_weight(&t->w, &t->found[k], &t->found[k - 1]) < 0;
		     k--) {
			struct found x = t->found[k];

			t->found[k] = t->found[k - 1];
			t->found[k - 1] = x;
		}
}

/* -- what went back by itself ---------------------------------------------------------------- */

static bool change_over(struct track *t, const struct regression_row *r, const struct change_row *c,
			int64_t *since)
{
	const struct past_series *s = past_series(&t->w, c->series);
	bool shown = c->level == CHANGE_CONFIRMED;
	size_t k = shown ? GONE_POINTS : BACK_POINTS, from, seen;
	struct regress_noise before;
	double after;

	if (!s)
		return false;
	from = past_at(s, regress_day(c->night));
	seen = past_at(s, regress_day(r->found_night) + 1);
	if (from + k >= s->n || seen + k > s->n)
		return false;
	before = past_before(&t->w, s, past_span(c).first);
	after = stats_mean(s->y + from, s->n - k - from);
	if (shown ? !regress_gone(&before, after, s->n - k - from, s->y + s->n - k, k)
		  : !regress_back(&before, after, s->y + s->n - k, k))
		return false;
	for (k = s->n - k; k > from + 1 && regress_back(&before, after, &s->y[k - 1], 1); k--)
		;
	if (s->day[k] > *since)
		*since = s->day[k];
	return true;
}

static int close_back(struct track *t, struct regression_row *r, int64_t since, struct err *e)
{
	int64_t from = regress_day(r->night);
	char night[11];
	int rc = 0;

	regress_night(since, night);
	r->state = REGRESSION_TRANSIENT;
	r->state_us = t->now_us;
	free(r->who);
	free(r->note);
	r->who = xstrdup("fettle");
	r->note = xasprintf("went back by itself after %lld night%s, on %s",
			    (long long)(since - from), since - from == 1 ? "" : "s", night);
	t->out->transient++;
	/* A suspicion was settled up to tonight; what begins later is another one. */
	for (size_t i = 0; i < t->w.n_changes && rc == 0; i++) {
		struct change_row *c = &t->w.changes[i];

		if (c->regression != r->id || c->level != CHANGE_SUSPECT ||
		    regress_day(c->last_night) >= t->w.day)
			continue;
		regress_night(t->w.day, c->last_night);
		rc = history_change_update(t->w.db, c, e);
	}
	return rc < 0 ? rc : history_regression_update(t->w.db, r, e);
}

static int look_back(struct track *t, struct regression_row *r, struct err *e)
{
	int64_t since = 0;
	bool any = false;

	if (!past_live(r))
		return 0;
	for (size_t i = 0; i < t->w.n_changes; i++) {
		const struct change_row *c = &t->w.changes[i];

		if (c->regression != r->id || c->level != r->level)
			continue;
		if (!change_over(t, r, c, &since))
			return 0;
		any = true;
	}
	return any ? close_back(t, r, since, e) : 0;
}

/* The nights after a verdict still tell which series moved and which did not. */
static int blame_again(struct track *t, const struct regression_row *r, struct err *e)
{
	int64_t confirmed = regress_day(r->confirmed_night);

	if (!past_live(r) || r->level != CHANGE_CONFIRMED || confirmed >= t->w.day ||
	    confirmed + BLAME_NIGHTS < t->w.day)
		return 0;
	return blame_rank(&t->w, r->id, NULL, e);
}

/* -- a night --------------------------------------------------------------------------------- */

static void count(struct track *t)
{
	struct track_result *o = t->out;

	o->series = (int)t->w.n;
	for (size_t i = 0; i < t->w.n; i++)
		o->points += t->w.s[i].n > 0 && t->w.s[i].day[t->w.s[i].n - 1] == t->w.day;
	for (size_t i = 0; i < t->w.n_regressions; i++) {
		const struct regression_row *r = &t->w.regressions[i];
		bool open = r->state == REGRESSION_OPEN;

		o->suspects += open && r->level == CHANGE_SUSPECT &&
			       regress_day(r->found_night) == t->w.day;
		o->open_confirmed += open && r->level == CHANGE_CONFIRMED &&
				     r->kind == REGRESSION_WORSE;
	}
}

static int track(struct track *t, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < t->w.n; i++)
		look_at(t, &t->w.s[i]);
	sort_found(t);
	for (size_t i = 0; i < t->n_found && rc == 0; i++)
		rc = raise_change(t, &t->found[i], e);
	for (size_t i = 0; i < t->w.n_regressions && rc == 0; i++)
		if ((rc = look_back(t, &t->w.regressions[i], e)) == 0)
			rc = blame_again(t, &t->w.regressions[i], e);
	if (rc == 0)
		count(t);
	return rc;
}

int track_night(struct db *db, const char *night, int64_t now_us, struct track_result *out,
		struct err *e)
{
	struct track_result result = {0};
	struct track t = {.night = night, .now_us = now_us, .out = &result};
	int rc = db_begin(db, "track the night", e);

	if (rc < 0)
		return rc;
	if ((rc = past_open(db, night, &t.w, e)) == 0 && (rc = past_fill(&t.w, 0, e)) == 0)
		rc = track(&t, e);
	past_done(&t.w);
	free(t.found);
	if (rc == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	else
		*out = result;
	return rc;
}
