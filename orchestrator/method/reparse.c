/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw files are the truth, metrics are derived: after a parser changed they are read again. Only
 * values change. Verdicts are append-only and stay; what they would be now is told, and whoever
 * wants to act on it runs the campaign again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/archive.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* -- what changed ------------------------------------------------------------------------------ */

static struct reparse_change *change_of(struct campaign_reparse *r, const char *metric,
					const char *stat)
{
	struct reparse_change *c;

	for (size_t i = 0; i < r->n_changes; i++)
		if (str_eq(r->changes[i].metric, metric) && str_eq(r->changes[i].stat, stat))
			return &r->changes[i];
	r->changes = xgrow(r->changes, r->n_changes, &r->cap_changes, sizeof *r->changes);
	c = &r->changes[r->n_changes++];
	*c = (struct reparse_change){
		.metric = xstrdup(metric), .stat = xstrdup(stat), .low = NAN, .high = NAN};
	return c;
}

static void count_value(struct campaign_reparse *r, const struct revalue *v)
{
	struct reparse_change *c = change_of(r, v->metric, v->stat);
	double by = (v->is - v->was) / fabs(v->was);

	c->added += isnan(v->was);
	c->gone += isnan(v->is);
	c->changed += isfinite(v->was) && isfinite(v->is);
	if (!isfinite(by))
		return;
	c->low = fmin(c->low, by);
	c->high = fmax(c->high, by);
}

static void count_attempt(struct campaign_reparse *r, const struct block_row *b,
			  const struct reread *x)
{
	r->attempts++;
	for (size_t i = 0; i < x->n; i++)
		count_value(r, &x->v[i]);
	for (size_t i = 0; i < x->n_states; i++) {
		const struct restate *s = &x->states[i];

		strv_addf(&r->states, "%s, slot %d: %s -> %s%s%s", b->dir, s->slot,
			  trial_state_name(s->was), trial_state_name(s->is), s->reason ? ": " : "",
			  s->reason ? s->reason : "");
	}
}

void campaign_reparse_done(struct campaign_reparse *r)
{
	for (size_t i = 0; i < r->n_changes; i++) {
		free(r->changes[i].metric);
		free(r->changes[i].stat);
	}
	for (size_t i = 0; i < r->n_again; i++) {
		free(r->again[i].about);
		free(r->again[i].was);
		free(r->again[i].is);
	}
	free(r->changes);
	free(r->again);
	strv_free(&r->kept);
	strv_free(&r->states);
	*r = (struct campaign_reparse){0};
}

/* -- reading ----------------------------------------------------------------------------------- */

/* A kept part of a preempted attempt has no manifest of its own: its hash is not asked. */
static void read_files(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		       const char *dir, struct attempt_files *a, bool *whole)
{
	int rc = ingest_attempt(c->recipe, s, c->facts.hyps, c->facts.n_hyps, b, dir, a, NULL);

	*whole = rc == 0 && !a->partial;
	if (*whole || a->unread)
		return;
	attempt_files_done(a);
	(void)ingest_prefix(c->recipe, s, c->facts.hyps, c->facts.n_hyps, b, dir, a, NULL);
}

static int reread_block(struct campaign *c, const struct stage_row *s, const struct block_row *b,
			struct campaign_reparse *out, struct err *e)
{
	_cleanup_free_ char *dir = block_dir(c, b);
	struct attempt_files a = {0};
	struct reread x = {0};
	bool whole = false;
	int rc = 0;

	read_files(c, s, b, dir, &a, &whole);
	if (!a.complete) {
		_cleanup_free_ char *packed = archive_advice(dir);

		strv_addf(&out->kept, "%s: %s", b->dir,
			  packed     ? packed
			  : a.reason ? a.reason
				     : "it is not whole");
	} else {
		rc = query_attempt_reread(c->ws->db, b->attempt_id, whole ? a.hash : NULL, a.trials,
					  a.n, clock_utc_us(c->ws->clock), &x, e);
		if (rc == -ERR_STATE) {
			strv_addf(&out->kept, "%s: %s", b->dir, e->text);
			rc = 0;
		} else if (rc == 0) {
			count_attempt(out, b, &x);
		}
	}
	reread_done(&x);
	attempt_files_done(&a);
	return rc;
}

static int reread_stage(struct campaign *c, const struct stage_row *s, struct campaign_reparse *out,
			struct err *e)
{
	struct block_row *v = NULL;
	size_t n = 0;
	int rc = query_blocks(c->ws->db, s->id, &v, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (v[i].state == ATTEMPT_VALID && (rc = campaign_beat(c, e)) == 0)
			rc = reread_block(c, s, &v[i], out, e);
	block_rows_free(v, n);
	return rc;
}

static int conclude_again(struct campaign *c, const struct stage_row *s,
			  struct campaign_reparse *out, struct err *e)
{
	const struct stage_ops *ops = stage_ops_of(s->kind);
	struct campaign_again a = {0};
	int rc = ops && ops->again ? ops->again(c, s, &a, e) : 0;

	if (!a.was)
		return rc;
	a.about = xasprintf("%s %d: %s", stage_kind_name(s->kind), s->seq,
			    s->n_arms > 1 ? s->arms[1].label : "");
	out->again = xgrow(out->again, out->n_again, &out->cap_again, sizeof *out->again);
	out->again[out->n_again++] = a;
	return rc;
}

bool campaign_again_differs(const struct campaign_again *a)
{
	return !str_eq(a->was, a->is);
}

/* The campaign's story says that its values are not those that were judged. */
static int note_reread(struct campaign *c, const struct campaign_reparse *r, struct err *e)
{
	size_t values = 0, differ = 0;

	for (size_t i = 0; i < r->n_changes; i++)
		values += r->changes[i].changed + r->changes[i].added + r->changes[i].gone;
	for (size_t i = 0; i < r->n_again; i++)
		differ += campaign_again_differs(&r->again[i]);
	if (values == 0 && r->states.n == 0)
		return 0;
	return campaign_event(
		c, e, "reparse",
		"%zu attempts read again by parsers of revision %d: %zu values and "
		"%zu trials' states are others; %zu of %zu conclusions would be, too, "
		"and stay as they are",
		r->attempts, PARSER_REV, values, r->states.n, differ, r->n_again);
}

int campaign_reread(struct workspace *w, int64_t id, struct campaign_reparse *out, struct err *e)
{
	const struct campaign_options o = {0};
	struct campaign *c = NULL;
	int rc = campaign_open_stored(w, id, &o, &c, e);

	*out = (struct campaign_reparse){0};
	for (size_t i = 0; rc == 0 && i < c->facts.n_stages; i++)
		rc = reread_stage(c, &c->facts.stages[i], out, e);
	for (size_t i = 0; rc == 0 && i < c->facts.n_stages; i++)
		rc = conclude_again(c, &c->facts.stages[i], out, e);
	if (rc == 0)
		rc = note_reread(c, out, e);
	campaign_close(c);
	return rc;
}
