/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What follows from a canary stage, by what it is for: points of a night, a verdict about a
 * suspicion, or whether a fix still gains. Each conclusion is one transaction, with the end of the
 * stage in it: whoever is killed has all of it or none.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/canary.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

static int row_of(struct campaign *c, const struct stage_row *s, struct canary_row *out,
		  struct err *e)
{
	bool found = false;
	int rc = history_canary_get(c->ws->db, s->id, out, &found, e);

	if (rc == 0 && !found)
		rc = err_set(e, ERR_STATE, "canary stage %lld says not what it is for",
			     (long long)s->id);
	return rc;
}

static int close_stage(struct campaign *c, const struct stage_row *s, const char *note,
		       struct err *e)
{
	campaign_tell(c, PROGRESS_STAGE, 0, "canary %s", note);
	return query_stage_close(c->ws->db, s->id, note, e);
}

/* -- a night ---------------------------------------------------------------------------------- */

static char *night_text(const struct campaign *c, const struct stage_row *s, const char *night,
			const struct canary_night *n)
{
	const struct metric_def *def = metric_def_find(c->recipe->objective);
	struct buf b = {0};

	if (n->units == 0)
		return xasprintf("%s: no trial has %s: no point", night, c->recipe->objective);
	buf_printf(&b, "%s: %s %.5g%s%s", night, c->recipe->objective, n->mean, def ? " " : "",
		   def ? def->unit : "");
	if (isfinite(n->pair))
		buf_printf(&b, ", %+.2f %% against %s%s", 100 * n->pair,
			   str_eq(s->arms[0].label, "reference") ? "the same" : "",
			   str_eq(s->arms[0].label, "reference") ? "" : s->arms[0].label);
	buf_printf(&b, ", %zu block%s", n->units, n->units == 1 ? "" : "s");
	return buf_take(&b);
}

static int conclude_night(struct campaign *c, const struct stage_row *s, const char *night,
			  struct err *e)
{
	struct canary_night n;
	_cleanup_free_ char *note = NULL;
	int rc = canary_points(c, s, night, &n, e);

	if (rc < 0)
		return rc;
	note = night_text(c, s, night, &n);
	return close_stage(c, s, note, e);
}

/* -- a re-run --------------------------------------------------------------------------------- */

/* What the judgement of this stage said, stored with the changes that it settled or could not;
 * heap, NULL: it was not judged. */
static int judgement(struct campaign *c, const struct stage_row *s, int64_t regression, char **out,
		     struct err *e)
{
	struct change_row *v = NULL;
	size_t n = 0;
	int rc = history_changes(c->ws->db, regression, 0, &v, &n, e);

	*out = NULL;
	for (size_t i = 0; rc == 0 && i < n && !*out; i++)
		if (v[i].rerun == s->id && v[i].why)
			*out = xstrdup(v[i].why);
	change_rows_free(v, n);
	return rc;
}

/* Why a re-run has nothing more to say: it was judged, or the suspicion is none any longer. Heap,
 * NULL: it goes on. */
static int settled(struct campaign *c, const struct stage_row *s, int64_t regression, char **why,
		   struct err *e)
{
	struct regression_row r = {0};
	bool told_apart = true;
	int rc = judgement(c, s, regression, why, e);

	if (rc < 0 || *why)
		return rc;
	rc = history_regression_get(c->ws->db, regression, &r, e);
	if (rc == 0 && r.level == CHANGE_CONFIRMED)
		rc = track_told_apart(c->ws->db, regression, &told_apart, e);
	if (rc == 0 && ((r.level != CHANGE_SUSPECT && told_apart) ||
			(r.state != REGRESSION_OPEN && r.state != REGRESSION_ACKNOWLEDGED)))
		*why = xasprintf("not judged: it is %s, %s by now",
				 r.level == CHANGE_SUSPECT ? "a suspicion" : "confirmed",
				 regression_state_name(r.state));
	regression_row_done(&r);
	return rc;
}

int canary_wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	size_t valid = c->facts.valid, most = (size_t)s->planned_blocks;
	_cleanup_free_ char *why = NULL;
	struct canary_row row;
	int rc = row_of(c, s, &row, e);

	*out = most;
	if (rc < 0 || row.purpose != CANARY_RERUN)
		return rc;
	rc = settled(c, s, row.regression, &why, e);
	if (why)
		*out = valid;
	else if (valid < CANARY_RERUN_MIN)
		*out = CANARY_RERUN_MIN;
	else if (valid < most)
		*out = valid + 1;
	return rc;
}

/* Settings of the reference that the current arm does not have, comma separated; heap, NULL: none.
 */
static int keys_set_back(struct campaign *c, const struct stage_row *s, bool *differ, char **out,
			 struct err *e)
{
	struct config a = {0}, b = {0};
	struct strv keys = {0};
	int rc = query_config_get(c->ws->db, s->arms[0].config, &a, e);

	if (rc == 0)
		rc = query_config_get(c->ws->db, s->arms[canary_watched(s)].config, &b, e);
	for (size_t i = 0; rc == 0 && i < a.settings.n; i++)
		if (!kvs_has(&b.settings, a.settings.v[i].key))
			strv_add(&keys, a.settings.v[i].key);
	*differ = rc == 0 && !str_eq(a.hash, b.hash);
	*out = place_join(&keys);
	strv_free(&keys);
	config_done(&a);
	config_done(&b);
	return rc;
}

static int series_of(struct campaign *c, const struct stage_row *s, int64_t *out, struct err *e)
{
	struct db *db = c->ws->db;
	int rc = db_begin(db, "series", e);

	if (rc == 0 && (rc = canary_series(c, s, out, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

static int judge(struct campaign *c, const struct stage_row *s, const struct canary_row *row,
		 struct err *e)
{
	_cleanup_free_ double *current = NULL, *reference = NULL;
	_cleanup_free_ char *keys = NULL, *why = NULL;
	struct rerun_result r = {.stage = s->id, .regression = row->regression};
	enum rerun_answer answer = RERUN_MORE;
	bool differ = false;
	int rc = keys_set_back(c, s, &differ, &keys, e);

	if (rc == 0)
		rc = canary_logs(c, s, differ, &current, &reference, &r.n, e);
	if (rc < 0 || r.n < CANARY_RERUN_MIN)
		return rc;
	if ((rc = series_of(c, s, &r.series, e)) < 0)
		return rc;
	str_copy(r.night, sizeof r.night, row->night);
	r.current = current;
	r.reference = differ ? reference : NULL;
	r.set_back = keys;
	rc = track_judge(c->ws->db, &r, clock_utc_us(c->ws->clock), &answer, &why, e);
	if (rc == 0)
		campaign_tell(c, PROGRESS_VERDICT, 0, "re-run for regression %lld: %s",
			      (long long)row->regression, why ? why : "a further block");
	/* The series is no longer what the regression is about: the nights go on. */
	if (rc == -ERR_STATE || rc == -ERR_NOT_FOUND)
		return campaign_event(c, e, "rerun", "regression %lld is not judged: %s",
				      (long long)row->regression, e ? e->text : "");
	return rc;
}

/* The judgement is stored by itself, before the stage is closed: the next look sees that it is
 * there. */
int canary_look(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ char *why = NULL;
	struct canary_row row;
	int rc = row_of(c, s, &row, e);

	if (rc < 0 || row.purpose != CANARY_RERUN || c->facts.valid < CANARY_RERUN_MIN)
		return rc;
	rc = settled(c, s, row.regression, &why, e);
	return rc < 0 || why ? rc : judge(c, s, &row, e);
}

static int conclude_rerun(struct campaign *c, const struct stage_row *s,
			  const struct canary_row *row, struct err *e)
{
	_cleanup_free_ char *why = NULL, *note = NULL;
	int rc = settled(c, s, row->regression, &why, e);

	if (rc < 0)
		return rc;
	note = xasprintf("%s: re-run for regression %lld: %s", row->night,
			 (long long)row->regression, why ? why : "too few blocks to judge by");
	return close_stage(c, s, note, e);
}

/* -- a fix in another environment ------------------------------------------------------------- */

/* What a fresh look at the fix found. */
struct again {
	struct stats_mean_ci ci;
	struct guard_results guards;
	char *env;           /* JSON of the environment, NULL: not known */
	struct strv changes; /* of it since the fix was validated last */
};

static void again_done(struct again *a)
{
	guard_results_done(&a->guards);
	free(a->env);
	strv_free(&a->changes);
}

static int find_again(struct campaign *c, const struct stage_row *s, const struct fix_row *fix,
		      struct again *a, struct err *e)
{
	int rc = fix_measured(c, s, &a->ci, &a->guards, e);

	if (rc == 0)
		rc = fingerprint_of_stage(c->ws->db, s->id, &a->env, e);
	if (rc == 0 && a->env && fix->fingerprint)
		rc = fingerprint_changes(fix->fingerprint, a->env, &a->changes, e);
	return rc;
}

static char *again_text(const struct again *a, const char *night, const char *state)
{
	_cleanup_free_ char *changes = place_join(&a->changes);

	return xasprintf("%s: %s: %+.1f %% [%+.1f, %+.1f] over %zu blocks%s%s%s%s", night, state,
			 100 * stats_relative(a->ci.mean), 100 * stats_relative(a->ci.lo),
			 100 * stats_relative(a->ci.hi), a->ci.n,
			 changes ? ", in an environment with " : "", changes ? changes : "",
			 a->guards.text ? "; " : "", a->guards.text ? a->guards.text : "");
}

/* What is known of the fix is from now on what was measured in the environment of tonight. */
static int put_again(struct campaign *c, const struct stage_row *s, struct fix_row *fix,
		     const struct again *a, const char *state, struct err *e)
{
	int64_t id;

	free(fix->state);
	free(fix->reason);
	fix->state = xstrdup(state);
	fix->reason = xstrdup(a->guards.text);
	fix->stage = s->id;
	fix->est = stats_relative(a->ci.mean);
	fix->lo = stats_relative(a->ci.lo);
	fix->hi = stats_relative(a->ci.hi);
	fix->n = (int)a->ci.n;
	fix->at_us = clock_utc_us(c->ws->clock);
	if (a->env) {
		free(fix->fingerprint);
		fix->fingerprint = xstrdup(a->env);
	}
	return query_fix_put(c->ws->db, fix, &id, e);
}

static int conclude_again(struct campaign *c, const struct stage_row *s, const char *night,
			  struct err *e)
{
	_cleanup_free_ char *note = NULL;
	struct fix_row fix = {0};
	struct again a = {0};
	const char *state;
	bool found = false;
	int rc = query_fix_get(c->ws->db, c->row.id, &fix, &found, e);

	if (rc == 0 && !found)
		rc = err_set(e, ERR_STATE, "the fix is gone");
	if (rc == 0)
		rc = find_again(c, s, &fix, &a, e);
	if (rc == 0 && a.ci.n < 2) {
		note = xasprintf("%s: not judged: %zu pairs were measured", night, a.ci.n);
	} else if (rc == 0) {
		state = fix_state(&a.ci, a.guards.worst, str_starts(fix.state, "accepted"));
		note = again_text(&a, night, str_eq(state, fix.state) ? "validated again" : state);
		rc = put_again(c, s, &fix, &a, state, e);
		if (rc == 0)
			rc = campaign_event(c, e, "revalidated", "%s", note);
	}
	if (rc == 0)
		rc = close_stage(c, s, note, e);
	again_done(&a);
	fix_row_done(&fix);
	return rc;
}

int canary_conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	struct canary_row row;
	int rc = row_of(c, s, &row, e);

	if (rc < 0)
		return rc;
	switch (row.purpose) {
	case CANARY_NIGHT:
		return conclude_night(c, s, row.night, e);
	case CANARY_RERUN:
		return conclude_rerun(c, s, &row, e);
	case CANARY_REVALIDATE:
		return conclude_again(c, s, row.night, e);
	}
	return 0;
}
