/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reports ask for, through the same views that people with sqlite3 use. */
#include "experiments/query.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum { FAULTS, QUALITY_PUT, QUALITY, COST, ALLOCATION_COST };
const char *const query_sql_report[] = {
	[FAULTS] =
		"SELECT stage_kind, stage_seq, block_index, attempt, slot, arm_label, state, reason, "
		"log_path FROM v_fault WHERE campaign = :campaign "
		"ORDER BY state = 'ok', stage_seq, block_index, attempt, slot",
	[QUALITY_PUT] =
		"INSERT OR REPLACE INTO quality_finding(attempt, seq, rule, action, slot, value, "
		"bound, text) VALUES (:attempt, :seq, :rule, :action, :slot, :value, :bound, "
		":text)",
	[QUALITY] = "SELECT stage_kind, block_index, attempt, attempt_state, rule, action, slot, "
		    "value, bound, text FROM v_quality WHERE campaign = :campaign "
		    "ORDER BY stage_seq, block_index, attempt, rule, slot",
	/* As v_cost has it, but in one walk over the trials in place of three: status and the index
	 * ask for every campaign. A test holds the two against each other. */
	[COST] =
		"SELECT sums.trials_timed, sums.trials_all, v.attempts, v.attempts_void, "
		"v.allocations, sums.trial_s, v.node_s FROM v_cost v, (SELECT count(*) AS trials_all, "
		"coalesce(sum(t.kind = 'timed'), 0) AS trials_timed, "
		"coalesce(sum(t.wall_us), 0) / 1e6 AS trial_s FROM allocation l "
		"JOIN attempt a ON a.allocation = l.id JOIN trial t ON t.attempt = a.id "
		"WHERE l.campaign = :campaign) sums WHERE v.campaign = :campaign",
	/* as in v_cost: a test holds the two against each other */
	[ALLOCATION_COST] =
		"SELECT (SELECT count(*) FROM attempt a JOIN trial t ON t.attempt = a.id "
		"WHERE a.allocation = l.id) AS trials, "
		"coalesce(l.end_us - l.start_us, (SELECT sum(t.wall_us) FROM attempt a "
		"JOIN trial t ON t.attempt = a.id WHERE a.allocation = l.id), 0) "
		"* max(1, (SELECT count(*) FROM allocation_node n WHERE n.allocation = l.id)) / "
		"1e6 "
		"AS node_s FROM allocation l WHERE l.id = :id",
	NULL,
};
#define SQL(which) query_sql_report[which]

static void read_fault(struct stmt *s, struct fault_row *f)
{
	const char *arm = col_peek(s, "arm_label");

	f->arm = xstrdup(arm ? arm : "");
	f->stage = col_text(s, "stage_kind");
	f->stage_seq = col_int(s, "stage_seq");
	f->block_index = col_int(s, "block_index");
	f->attempt = col_int(s, "attempt");
	f->slot = col_null(s, "slot") ? -1 : col_int(s, "slot");
	f->state = col_text(s, "state");
	f->reason = col_text(s, "reason");
	f->log_path = col_text(s, "log_path");
}

int query_faults(struct db *db, int64_t campaign, struct fault_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FAULTS), "list faults", e);
	struct fault_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_fault(&s, &v[used++]);
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		fault_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void fault_rows_free(struct fault_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].stage);
		free(v[i].arm);
		free(v[i].state);
		free(v[i].reason);
		free(v[i].log_path);
	}
	free(v);
}

int query_quality_put(struct db *db, int64_t attempt_id, int seq, const struct quality_row *q,
		      struct err *e)
{
	struct stmt s = stmt_open(db, SQL(QUALITY_PUT), "store a finding of quality", e);

	bind_i64(&s, ":attempt", attempt_id);
	bind_i64(&s, ":seq", seq);
	bind_text(&s, ":rule", quality_rule_name(q->rule));
	bind_text(&s, ":action", quality_action_name(q->action));
	if (q->slot >= 0)
		bind_i64(&s, ":slot", q->slot);
	else
		bind_opt(&s, ":slot", 0);
	bind_real(&s, ":value", q->value);
	bind_real(&s, ":bound", q->bound);
	bind_text(&s, ":text", q->text);
	return stmt_run(&s);
}

static void read_quality(struct stmt *s, struct quality_row *q)
{
	q->stage = col_text(s, "stage_kind");
	q->state = col_text(s, "attempt_state");
	q->block_index = col_int(s, "block_index");
	q->attempt = col_int(s, "attempt");
	q->slot = col_null(s, "slot") ? -1 : col_int(s, "slot");
	COL_WORD(s, "rule", quality_rule, &q->rule);
	COL_WORD(s, "action", quality_action, &q->action);
	q->value = col_real(s, "value");
	q->bound = col_real(s, "bound");
	q->text = col_text(s, "text");
}

int query_quality(struct db *db, int64_t campaign, struct quality_row **out, size_t *n,
		  struct err *e)
{
	struct stmt s = stmt_open(db, SQL(QUALITY), "list findings of quality", e);
	struct quality_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used] = (struct quality_row){0};
		read_quality(&s, &v[used++]);
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		quality_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void quality_rows_free(struct quality_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].stage);
		free(v[i].state);
		free(v[i].text);
	}
	free(v);
}

int query_cost(struct db *db, int64_t campaign, struct cost_row *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(COST), "sum the cost up", e);
	struct cost_row c = {0};
	int rc;

	bind_i64(&s, ":campaign", campaign);
	if (stmt_row(&s)) {
		c.trials_timed = col_i64(&s, "trials_timed");
		c.trials_all = col_i64(&s, "trials_all");
		c.attempts = col_i64(&s, "attempts");
		c.attempts_void = col_i64(&s, "attempts_void");
		c.allocations = col_i64(&s, "allocations");
		c.trial_s = col_real(&s, "trial_s");
		c.node_s = col_real(&s, "node_s");
	} else {
		stmt_fail(&s, ERR_NOT_FOUND, "there is no campaign %lld", (long long)campaign);
	}
	rc = stmt_close(&s);
	if (rc == 0)
		*out = c;
	return rc;
}

int query_allocation_cost(struct db *db, int64_t allocation, int64_t *trials, double *node_s,
			  struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ALLOCATION_COST), "read the allocation's cost", e);

	bind_i64(&s, ":id", allocation);
	if (stmt_row(&s)) {
		*trials = col_i64(&s, "trials");
		*node_s = col_real(&s, "node_s");
	} else {
		stmt_fail(&s, ERR_NOT_FOUND, "there is no allocation %lld", (long long)allocation);
	}
	return stmt_close(&s);
}
