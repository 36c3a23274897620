/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ablate stages found, on which nodes the stages ran, and when. */
#include "experiments/query.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum { NODES, RUNS, PUT, LIST };
const char *const query_sql_ablation[] = {
	[NODES] = "SELECT s.id AS stage, s.kind, n.node, count(DISTINCT b.id) AS blocks "
		  "FROM stage s JOIN block b ON b.stage = s.id "
		  "JOIN attempt a ON a.block = b.id AND a.state = 'valid' "
		  "JOIN allocation_node n ON n.allocation = a.allocation "
		  "WHERE s.campaign = :campaign GROUP BY s.id, n.node ORDER BY s.seq, n.node",
	/* The blocks of an allocation run one behind another: each begins where the one before it
	 * ended. */
	[RUNS] = "SELECT b.stage, a.allocation, b.idx, a.number, a.state, a.reason, "
		 "coalesce(max(l.start_us, lag(a.ended_us) OVER part), l.start_us, 0) AS start_us, "
		 "coalesce(CASE WHEN lead(a.id) OVER part IS NULL THEN l.end_us END, a.ended_us, "
		 "l.end_us, 0) AS end_us "
		 "FROM attempt a JOIN allocation l ON l.id = a.allocation "
		 "JOIN block b ON b.id = a.block WHERE l.campaign = :campaign "
		 "WINDOW part AS (PARTITION BY a.allocation ORDER BY a.id) "
		 "ORDER BY b.stage, b.idx, a.number",
	[PUT] = "INSERT INTO ablation(arm, knobs, n, est, lo, hi, outcome, reason) "
		"VALUES (:arm, :knobs, :n, :est, :lo, :hi, :outcome, :reason)",
	[LIST] = "SELECT r.stage, x.arm, x.knobs, x.n, x.est, x.lo, x.hi, x.outcome, x.reason "
		 "FROM ablation x JOIN arm r ON r.id = x.arm JOIN stage s ON s.id = r.stage "
		 "WHERE s.campaign = :campaign ORDER BY s.seq, r.idx",
	NULL,
};
#define SQL(which) query_sql_ablation[which]

int query_nodes(struct db *db, int64_t campaign, struct node_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODES), "list the nodes that were used", e);
	struct node_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		struct node_row *r;

		v = xgrow(v, used, &cap, sizeof *v);
		r = &v[used++];
		r->stage = col_i64(&s, "stage");
		COL_WORD(&s, "kind", stage_kind, &r->kind);
		r->node = col_text(&s, "node");
		r->blocks = col_int(&s, "blocks");
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		node_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void node_rows_free(struct node_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].node);
	free(v);
}

int query_runs(struct db *db, int64_t campaign, struct run_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(RUNS), "list when attempts ran", e);
	struct run_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		struct run_row *r;

		v = xgrow(v, used, &cap, sizeof *v);
		r = &v[used++];
		r->stage = col_i64(&s, "stage");
		r->allocation = col_i64(&s, "allocation");
		r->block = col_int(&s, "idx");
		r->attempt = col_int(&s, "number");
		COL_WORD(&s, "state", attempt_state, &r->state);
		r->reason = col_text(&s, "reason");
		r->start_us = col_i64(&s, "start_us");
		r->end_us = col_i64(&s, "end_us");
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		run_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void run_rows_free(struct run_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].reason);
	free(v);
}

int query_ablation_add(struct db *db, const struct ablation_row *a, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store what the ablation found", e);

	bind_i64(&s, ":arm", a->arm);
	bind_text(&s, ":knobs", a->knobs);
	bind_i64(&s, ":n", a->n);
	bind_real(&s, ":est", a->est);
	bind_real(&s, ":lo", a->lo);
	bind_real(&s, ":hi", a->hi);
	bind_text(&s, ":outcome", ablation_outcome_name(a->outcome));
	bind_text(&s, ":reason", a->reason);
	return stmt_run(&s);
}

int query_ablations(struct db *db, int64_t campaign, struct ablation_row **out, size_t *n,
		    struct err *e)
{
	struct stmt s = stmt_open(db, SQL(LIST), "list what the ablation found", e);
	struct ablation_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		struct ablation_row *r;

		v = xgrow(v, used, &cap, sizeof *v);
		r = &v[used++];
		r->stage = col_i64(&s, "stage");
		r->arm = col_i64(&s, "arm");
		r->knobs = col_text(&s, "knobs");
		r->n = col_int(&s, "n");
		r->est = col_real(&s, "est");
		r->lo = col_real(&s, "lo");
		r->hi = col_real(&s, "hi");
		COL_WORD(&s, "outcome", ablation_outcome, &r->outcome);
		r->reason = col_text(&s, "reason");
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		ablation_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void ablation_rows_free(struct ablation_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].knobs);
		free(v[i].reason);
	}
	free(v);
}
