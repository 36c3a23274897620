/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum {
	PUT,
	LIST,
	GUARD_PUT,
	GUARDS,
	FIX_GUARD_PUT,
	FIX_GUARDS,
	FIX_SET,
	FIX_PUT,
	FIX_GET,
	EVENT_PUT,
	EVENTS,
};
const char *const query_sql_verdict[] = {
	[PUT] = "INSERT INTO verdict(campaign, stage, hypothesis, look, n, final_look, outcome, "
		"reason, "
		"est, lo, hi, df, p, p_star, alpha_spent, sign_flip_p, pending_convergence, "
		"effect_unproved, inputs_hash, at_us) VALUES (:campaign, :stage, :hypothesis, "
		":look, :n, "
		":final, :outcome, :reason, :est, :lo, :hi, :df, :p, :p_star, :alpha, :sign_flip, "
		":pending, :unproved, :inputs, :at)",
	[LIST] = "SELECT id, stage, hypothesis, look, n, final_look, outcome, reason, est, lo, hi, "
		 "df, "
		 "p, p_star, alpha_spent, sign_flip_p, pending_convergence, effect_unproved, "
		 "inputs_hash, at_us FROM verdict WHERE campaign = :campaign ORDER BY id",
	[GUARD_PUT] = "INSERT INTO guard_result(verdict, seq, metric, stat, rule, equal, n, value, "
		      "worsening, lo, hi, bound, state) VALUES (:verdict, (SELECT count(*) FROM "
		      "guard_result WHERE verdict = :verdict), :metric, :stat, :rule, :equal, :n, "
		      ":value, :worsening, :lo, :hi, :bound, :state)",
	[GUARDS] = "SELECT g.verdict, g.metric, g.stat, g.rule, g.equal, g.n, g.value, "
		   "g.worsening, g.lo, g.hi, g.bound, g.state FROM verdict v "
		   "JOIN guard_result g ON g.verdict = v.id WHERE v.campaign = :campaign "
		   "ORDER BY v.id, g.seq",
	[FIX_GUARD_PUT] = "INSERT INTO fix_guard(stage, seq, metric, stat, rule, equal, n, value, "
			  "worsening, lo, hi, bound, state) VALUES (:stage, (SELECT count(*) FROM "
			  "fix_guard WHERE stage = :stage), :metric, :stat, :rule, :equal, :n, "
			  ":value, :worsening, :lo, :hi, :bound, :state)",
	[FIX_GUARDS] = "SELECT g.stage, g.metric, g.stat, g.rule, g.equal, g.n, g.value, "
		       "g.worsening, g.lo, g.hi, g.bound, g.state FROM stage s "
		       "JOIN fix_guard g ON g.stage = s.id WHERE s.campaign = :campaign "
		       "ORDER BY s.seq, g.seq",
	/* Not REPLACE: that deletes the row, and a series that hangs on it would forbid it. */
	[FIX_SET] = "UPDATE fix SET config = :config, stage = :stage, state = :state, "
		    "reason = :reason, est = :est, lo = :lo, hi = :hi, n = :n, "
		    "fingerprint = :fingerprint, soak_drift = :drift, at_us = :at "
		    "WHERE campaign = :campaign",
	[FIX_PUT] = "INSERT INTO fix(campaign, config, stage, state, reason, est, lo, hi, n, "
		    "fingerprint, soak_drift, at_us) VALUES (:campaign, :config, :stage, :state, "
		    ":reason, :est, :lo, :hi, :n, :fingerprint, :drift, :at)",
	[FIX_GET] = "SELECT id, campaign, config, stage, state, reason, est, lo, hi, n, "
		    "fingerprint, soak_drift, at_us FROM fix WHERE campaign = :campaign",
	[EVENT_PUT] = "INSERT INTO event(campaign, at_us, kind, text) "
		      "VALUES (:campaign, :at, :kind, :text)",
	[EVENTS] = "SELECT id, at_us, kind, text FROM event WHERE campaign = :campaign ORDER BY id",
	NULL,
};
#define SQL(which) query_sql_verdict[which]

/* -- verdicts -------------------------------------------------------------------------------- */

int query_verdict_add(struct db *db, int64_t campaign, const struct verdict_row *v, int64_t *id,
		      struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store the verdict", e);
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":stage", v->stage);
	bind_opt(&s, ":hypothesis", v->hypothesis);
	bind_i64(&s, ":look", v->look);
	bind_i64(&s, ":n", v->n);
	bind_i64(&s, ":final", v->final_look);
	bind_text(&s, ":outcome", v->outcome);
	bind_text(&s, ":reason", v->reason);
	bind_real(&s, ":est", v->est);
	bind_real(&s, ":lo", v->lo);
	bind_real(&s, ":hi", v->hi);
	bind_real(&s, ":df", v->df);
	bind_real(&s, ":p", v->p);
	bind_real(&s, ":p_star", v->p_star);
	bind_real(&s, ":alpha", v->alpha_spent);
	bind_real(&s, ":sign_flip", v->sign_flip_p);
	bind_i64(&s, ":pending", v->pending_convergence);
	bind_i64(&s, ":unproved", v->effect_unproved);
	bind_text(&s, ":inputs", v->inputs_hash);
	bind_i64(&s, ":at", v->at_us);
	rc = stmt_run(&s);
	if (rc == 0)
		*id = db_last_id(db);
	return rc;
}

static void read_verdict(struct stmt *s, struct verdict_row *v)
{
	v->id = col_i64(s, "id");
	v->stage = col_i64(s, "stage");
	v->hypothesis = col_i64(s, "hypothesis");
	v->look = col_int(s, "look");
	v->n = col_int(s, "n");
	v->final_look = col_bool(s, "final_look");
	v->outcome = col_text(s, "outcome");
	v->reason = col_text(s, "reason");
	v->est = col_real(s, "est");
	v->lo = col_real(s, "lo");
	v->hi = col_real(s, "hi");
	v->df = col_real(s, "df");
	v->p = col_real(s, "p");
	v->p_star = col_real(s, "p_star");
	v->alpha_spent = col_real(s, "alpha_spent");
	v->sign_flip_p = col_real(s, "sign_flip_p");
	v->pending_convergence = col_bool(s, "pending_convergence");
	v->effect_unproved = col_bool(s, "effect_unproved");
	v->inputs_hash = col_text(s, "inputs_hash");
	v->at_us = col_i64(s, "at_us");
}

int query_verdicts(struct db *db, int64_t campaign, struct verdict_row **out, size_t *n,
		   struct err *e)
{
	struct stmt s = stmt_open(db, SQL(LIST), "list verdicts", e);
	struct verdict_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_verdict(&s, &v[used++]);
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		verdict_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void verdict_rows_free(struct verdict_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].outcome);
		free(v[i].reason);
		free(v[i].inputs_hash);
	}
	free(v);
}

/* -- guards ---------------------------------------------------------------------------------- */

static int put_guard(struct stmt *s, const struct guard_row *g)
{
	bind_text(s, ":metric", g->metric);
	bind_text(s, ":stat", g->stat);
	bind_text(s, ":rule", g->rule);
	bind_text(s, ":equal", g->equal);
	bind_i64(s, ":n", g->n);
	bind_real(s, ":value", g->value);
	bind_real(s, ":worsening", g->worsening);
	bind_real(s, ":lo", g->lo);
	bind_real(s, ":hi", g->hi);
	bind_real(s, ":bound", g->bound);
	bind_text(s, ":state", g->state);
	return stmt_run(s);
}

int query_guard_add(struct db *db, const struct guard_row *g, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GUARD_PUT), "store a guard's result", e);

	bind_i64(&s, ":verdict", g->verdict);
	return put_guard(&s, g);
}

int query_fix_guard_add(struct db *db, const struct guard_row *g, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FIX_GUARD_PUT), "store a guard of the fix", e);

	bind_i64(&s, ":stage", g->stage);
	return put_guard(&s, g);
}

static void read_guard(struct stmt *s, struct guard_row *g)
{
	g->metric = col_text(s, "metric");
	g->stat = col_text(s, "stat");
	g->rule = col_text(s, "rule");
	g->equal = col_text(s, "equal");
	g->n = col_int(s, "n");
	g->value = col_real(s, "value");
	g->worsening = col_real(s, "worsening");
	g->lo = col_real(s, "lo");
	g->hi = col_real(s, "hi");
	g->bound = col_real(s, "bound");
	g->state = col_text(s, "state");
}

/* `owner`: the column that says what a row belongs to. */
static int list_guards(struct stmt *s, const char *owner, struct guard_row **out, size_t *n)
{
	struct guard_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	while (stmt_row(s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used] = (struct guard_row){0};
		*(str_eq(owner, "stage") ? &v[used].stage : &v[used].verdict) = col_i64(s, owner);
		read_guard(s, &v[used++]);
	}
	rc = stmt_close(s);
	if (rc < 0) {
		guard_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

int query_guards(struct db *db, int64_t campaign, struct guard_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GUARDS), "list what the guards said", e);

	bind_i64(&s, ":campaign", campaign);
	return list_guards(&s, "verdict", out, n);
}

int query_fix_guards(struct db *db, int64_t campaign, struct guard_row **out, size_t *n,
		     struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FIX_GUARDS), "list the guards of the fix", e);

	bind_i64(&s, ":campaign", campaign);
	return list_guards(&s, "stage", out, n);
}

void guard_rows_free(struct guard_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].metric);
		free(v[i].stat);
		free(v[i].rule);
		free(v[i].equal);
		free(v[i].state);
	}
	free(v);
}

/* -- fixes ----------------------------------------------------------------------------------- */

static int write_fix(struct db *db, const struct fix_row *f, const char *sql, struct err *e)
{
	struct stmt s = stmt_open(db, sql, "store the fix", e);

	bind_i64(&s, ":campaign", f->campaign);
	bind_opt(&s, ":config", f->config);
	bind_opt(&s, ":stage", f->stage);
	bind_text(&s, ":state", f->state);
	bind_text(&s, ":reason", f->reason);
	bind_real(&s, ":est", f->est);
	bind_real(&s, ":lo", f->lo);
	bind_real(&s, ":hi", f->hi);
	bind_i64(&s, ":n", f->n);
	bind_text(&s, ":fingerprint", f->fingerprint ? f->fingerprint : "{}");
	bind_real(&s, ":drift", f->soak_drift);
	bind_i64(&s, ":at", f->at_us);
	return stmt_run(&s);
}

static int read_fix(struct db *db, int64_t campaign, struct fix_row *f, bool *found, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FIX_GET), "read the fix", e);

	bind_i64(&s, ":campaign", campaign);
	*found = stmt_row(&s);
	if (*found)
		*f = (struct fix_row){
			.id = col_i64(&s, "id"),
			.campaign = col_i64(&s, "campaign"),
			.config = col_i64(&s, "config"),
			.stage = col_i64(&s, "stage"),
			.state = col_text(&s, "state"),
			.reason = col_text(&s, "reason"),
			.est = col_real(&s, "est"),
			.lo = col_real(&s, "lo"),
			.hi = col_real(&s, "hi"),
			.n = col_int(&s, "n"),
			.fingerprint = col_text(&s, "fingerprint"),
			.soak_drift = col_real(&s, "soak_drift"),
			.at_us = col_i64(&s, "at_us"),
		};
	return stmt_close(&s);
}

static int put_fix(struct db *db, const struct fix_row *f, int64_t *id, struct err *e)
{
	struct fix_row old = {0};
	bool found;
	int rc = read_fix(db, f->campaign, &old, &found, e);

	if (rc == 0)
		rc = write_fix(db, f, SQL(found ? FIX_SET : FIX_PUT), e);
	*id = found ? old.id : db_last_id(db);
	fix_row_done(&old);
	return rc;
}

int query_fix_put(struct db *db, const struct fix_row *f, int64_t *id, struct err *e)
{
	int64_t new_id = 0;
	bool own;
	int rc = db_enter(db, "store a fix", &own, e);

	if (rc < 0)
		return rc;
	rc = db_leave(db, own, put_fix(db, f, &new_id, e), e);
	if (rc == 0)
		*id = new_id;
	return rc;
}

int query_fix_get(struct db *db, int64_t campaign, struct fix_row *out, bool *found, struct err *e)
{
	struct fix_row f = {0};
	int rc = read_fix(db, campaign, &f, found, e);

	if (rc < 0) {
		fix_row_done(&f);
		return rc;
	}
	*out = f;
	return 0;
}

void fix_row_done(struct fix_row *f)
{
	if (!f)
		return;
	free(f->state);
	free(f->reason);
	free(f->fingerprint);
	*f = (struct fix_row){0};
}

/* -- events ---------------------------------------------------------------------------------- */

int query_event_add(struct db *db, int64_t campaign, int64_t at_us, const char *kind,
		    const char *text, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(EVENT_PUT), "store the event", e);

	bind_opt(&s, ":campaign", campaign);
	bind_i64(&s, ":at", at_us);
	bind_text(&s, ":kind", kind);
	bind_text(&s, ":text", text);
	return stmt_run(&s);
}

int query_events(struct db *db, int64_t campaign, struct event_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(EVENTS), "list events", e);
	struct event_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct event_row){
			.id = col_i64(&s, "id"),
			.at_us = col_i64(&s, "at_us"),
			.kind = col_text(&s, "kind"),
			.text = col_text(&s, "text"),
		};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		event_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void event_rows_free(struct event_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].kind);
		free(v[i].text);
	}
	free(v);
}
