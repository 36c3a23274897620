/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/event.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/blame.h"

/* May a change of series a and change c have one reason? */
static int related(struct past *w, const struct past_series *a, const struct regress_span *at,
		   const struct change_row *c, bool *out, struct err *e)
{
	const struct past_series *b = past_series(w, c->series);
	struct regress_span near = regress_near(at), span = past_span(c);

	*out = b && ((a->row.campaign && a->row.campaign == b->row.campaign) ||
		     strcmp(a->row.workload, b->row.workload) == 0 ||
		     strcmp(a->row.place, b->row.place) == 0);
	if (*out || !b)
		return 0;
	return blame_shared(w, a, &near, b, &span, out, e);
}

/* Is it one event with any member of the regression that stands? slack: nights by which the ranges
 * may miss each other. */
static int belongs(struct past *w, const struct past_series *s, const struct regress_span *span,
		   int64_t regression, int64_t slack, bool *out, struct err *e)
{
	struct regress_span range;
	int rc = 0;

	*out = false;
	if (!past_range(w, regression, &range))
		return 0;
	range.first -= slack;
	range.last += slack;
	if (!regress_together(&range, span))
		return 0;
	for (size_t i = 0; i < w->n_changes && rc == 0 && !*out; i++)
		if (w->changes[i].regression == regression &&
		    w->changes[i].level != CHANGE_DISMISSED)
			rc = related(w, s, span, &w->changes[i], out, e);
	return rc;
}

int event_find(struct past *w, const struct past_series *s, const struct regress_span *span,
	       enum regression_kind kind, struct regression_row **out, struct err *e)
{
	int rc = 0;

	*out = NULL;
	/* What is confirmed first: it is known to be one. */
	for (int pass = 0; pass < 2 && !*out; pass++)
		for (size_t i = 0; i < w->n_regressions && rc == 0 && !*out; i++) {
			struct regression_row *r = &w->regressions[i];
			bool is = false;

			if (r->state != REGRESSION_TRANSIENT && r->state != REGRESSION_DISMISSED &&
			    (r->kind == kind || past_context(s)) &&
			    (r->level == CHANGE_CONFIRMED) == (pass == 0))
				rc = belongs(w, s, span, r->id, 0, &is, e);
			if (is)
				*out = r;
		}
	return rc;
}

static int take_over(struct past *w, struct regression_row *r, struct regression_row *part,
		     int64_t now_us, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < w->n_changes && rc == 0; i++) {
		struct change_row *c = &w->changes[i];

		if (c->regression != part->id)
			continue;
		c->regression = r->id;
		rc = history_change_update(w->db, c, e);
	}
	free(part->who);
	free(part->note);
	part->who = xstrdup("fettle");
	part->note = xasprintf("part of regression %lld", (long long)r->id);
	part->state = REGRESSION_DISMISSED;
	part->state_us = now_us;
	return rc < 0 ? rc : history_regression_update(w->db, part, e);
}

/* Then another change of it some nights later is a second step. */
static bool tells_of(const struct past *w, const struct regression_row *r,
		     const struct past_series *s)
{
	for (size_t i = 0; i < w->n_changes; i++)
		if (w->changes[i].regression == r->id && w->changes[i].series == s->row.id &&
		    w->changes[i].level == CHANGE_CONFIRMED)
			return true;
	return false;
}

/* One that people were told of already; *out NULL: none. */
static int told_before(struct past *w, const struct regression_row *r, struct regression_row **out,
		       struct err *e)
{
	int rc = 0;

	*out = NULL;
	for (size_t i = 0; i < w->n_changes && rc == 0 && !*out; i++) {
		const struct change_row *c = &w->changes[i];
		const struct past_series *s = past_series(w, c->series);
		struct regress_span span = past_whole_span(c);

		if (c->regression != r->id || c->level != CHANGE_CONFIRMED || !s)
			continue;
		for (size_t k = 0; k < w->n_regressions && rc == 0 && !*out; k++) {
			struct regression_row *o = &w->regressions[k];
			bool is = false;

			if (o == r || o->level != CHANGE_CONFIRMED || o->kind != r->kind ||
			    o->state == REGRESSION_DISMISSED || o->state == REGRESSION_TRANSIENT)
				continue;
			rc = belongs(w, s, &span, o->id, tells_of(w, o, s) ? 0 : REGRESS_SLACK, &is,
				     e);
			if (is)
				*out = o;
		}
	}
	return rc;
}

/* Both were confirmed; the night of the event is that of most members. */
static int join(struct past *w, struct regression_row *main, struct regression_row *r,
		int64_t now_us, struct err *e)
{
	struct regress_span range;
	int rc = take_over(w, main, r, now_us, e);

	if (rc < 0 || !blame_when(w, main->id, &range))
		return rc;
	regress_night(range.day, main->night);
	return history_regression_update(w->db, main, e);
}

int event_absorb(struct past *w, struct regression_row *r, int64_t now_us, struct err *e)
{
	struct regression_row *main;
	int rc = told_before(w, r, &main, e);

	if (rc < 0)
		return rc;
	if (main)
		return join(w, main, r, now_us, e);
	for (size_t i = 0; i < w->n_regressions && rc == 0; i++) {
		struct regression_row *part = &w->regressions[i];
		bool is = false;

		if (part == r || !past_live(part) || part->level != CHANGE_SUSPECT ||
		    part->kind != r->kind)
			continue;
		for (size_t k = 0; k < w->n_changes && rc == 0 && !is; k++) {
			const struct change_row *c = &w->changes[k];
			struct regress_span span = past_whole_span(c);
			const struct past_series *s = past_series(w, c->series);

			if (c->regression == part->id && c->level != CHANGE_DISMISSED && s)
				rc = belongs(w, s, &span, r->id, 0, &is, e);
		}
		if (rc == 0 && is)
			rc = take_over(w, r, part, now_us, e);
	}
	return rc;
}
