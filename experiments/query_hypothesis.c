/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum { PUT, STATE, LIST, FINDING_PUT, FINDINGS };
const char *const query_sql_hypothesis[] = {
	[PUT] = "INSERT INTO hypothesis(campaign, round, rank, knob, value, from_value, class, "
		"proof, "
		"user_defined, bottleneck, evidence, gain, ceiling, state, reason) VALUES "
		"(:campaign, "
		":round, :rank, :knob, :value, :from, :class, :proof, :user, :bottleneck, "
		":evidence, "
		":gain, :ceiling, :state, :reason)",
	[STATE] = "UPDATE hypothesis SET state = :state, reason = :reason WHERE id = :id",
	[LIST] = "SELECT id, campaign, round, rank, knob, value, from_value, class, proof, "
		 "user_defined, bottleneck, evidence, gain, ceiling, state, reason FROM hypothesis "
		 "WHERE campaign = :campaign ORDER BY round, rank, id",
	[FINDING_PUT] = "INSERT INTO finding(campaign, round, bottleneck, share, evidence, rule) "
			"VALUES (:campaign, :round, :bottleneck, :share, :evidence, :rule)",
	[FINDINGS] = "SELECT round, bottleneck, share, evidence, rule FROM finding "
		     "WHERE campaign = :campaign ORDER BY round, id",
	NULL,
};
#define SQL(which) query_sql_hypothesis[which]

int query_hypothesis_add(struct db *db, const struct hypothesis_row *h, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store the hypothesis", e);
	int rc;

	bind_i64(&s, ":campaign", h->campaign);
	bind_i64(&s, ":round", h->round);
	bind_i64(&s, ":rank", h->rank);
	bind_text(&s, ":knob", h->knob);
	bind_text(&s, ":value", h->value);
	bind_text(&s, ":from", h->from_value);
	bind_text(&s, ":class", knob_class_name(h->cls));
	bind_text(&s, ":proof", proof_level_name(h->proof));
	bind_i64(&s, ":user", h->user_defined);
	bind_text(&s, ":bottleneck", bottleneck_name(h->bottleneck));
	bind_text(&s, ":evidence", h->evidence ? h->evidence : "");
	bind_real(&s, ":gain", h->gain);
	bind_real(&s, ":ceiling", h->ceiling);
	bind_text(&s, ":state", hypothesis_state_name(h->state));
	bind_text(&s, ":reason", h->reason);
	rc = stmt_run(&s);
	if (rc == 0)
		*id = db_last_id(db);
	return rc;
}

int query_hypothesis_state(struct db *db, int64_t id, enum hypothesis_state state,
			   const char *reason, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(STATE), "store the hypothesis's state", e);

	bind_text(&s, ":state", hypothesis_state_name(state));
	bind_text(&s, ":reason", reason);
	bind_i64(&s, ":id", id);
	while (stmt_row(&s))
		;
	if (s.rc == 0 && db_changed(db) == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no hypothesis %lld", (long long)id);
	return stmt_close(&s);
}

static void read_hypothesis(struct stmt *s, struct hypothesis_row *h)
{
	h->id = col_i64(s, "id");
	h->campaign = col_i64(s, "campaign");
	h->round = col_int(s, "round");
	h->rank = col_int(s, "rank");
	h->knob = col_text(s, "knob");
	h->value = col_text(s, "value");
	h->from_value = col_text(s, "from_value");
	COL_WORD(s, "class", knob_class, &h->cls);
	COL_WORD(s, "proof", proof_level, &h->proof);
	h->user_defined = col_bool(s, "user_defined");
	COL_WORD(s, "bottleneck", bottleneck, &h->bottleneck);
	h->evidence = col_text(s, "evidence");
	h->gain = col_real(s, "gain");
	h->ceiling = col_real(s, "ceiling");
	COL_WORD(s, "state", hypothesis_state, &h->state);
	h->reason = col_text(s, "reason");
}

int query_hypotheses(struct db *db, int64_t campaign, struct hypothesis_row **out, size_t *n,
		     struct err *e)
{
	struct stmt s = stmt_open(db, SQL(LIST), "list hypotheses", e);
	struct hypothesis_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_hypothesis(&s, &v[used++]);
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		hypothesis_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void hypothesis_rows_free(struct hypothesis_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].knob);
		free(v[i].value);
		free(v[i].from_value);
		free(v[i].evidence);
		free(v[i].reason);
	}
	free(v);
}

/* -- findings -------------------------------------------------------------------------------- */

int query_finding_add(struct db *db, int64_t campaign, const struct finding_row *f, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FINDING_PUT), "store the finding", e);

	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":round", f->round);
	bind_text(&s, ":bottleneck", f->bottleneck);
	bind_real(&s, ":share", f->share);
	bind_text(&s, ":evidence", f->evidence ? f->evidence : "");
	bind_text(&s, ":rule", f->rule ? f->rule : "");
	return stmt_run(&s);
}

int query_findings(struct db *db, int64_t campaign, struct finding_row **out, size_t *n,
		   struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FINDINGS), "list findings", e);
	struct finding_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct finding_row){
			.round = col_int(&s, "round"),
			.bottleneck = col_text(&s, "bottleneck"),
			.share = col_real(&s, "share"),
			.evidence = col_text(&s, "evidence"),
			.rule = col_text(&s, "rule"),
		};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		finding_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void finding_rows_free(struct finding_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].bottleneck);
		free(v[i].evidence);
		free(v[i].rule);
	}
	free(v);
}
