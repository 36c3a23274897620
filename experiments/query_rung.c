/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rungs of a scaling ladder keep. */
#include "experiments/query.h"

#include "experiments/db_priv.h"
#include "experiments/derive.h"
#include "orchestrator/base/mem.h"

enum { PUT, SPLIT, LIST };
const char *const query_sql_rung[] = {
	[PUT] = "INSERT INTO rung(stage, nodes, tasks_per_node, n, est, lo, hi, total, total_lo, "
		"total_hi, held) VALUES (:stage, :nodes, :tasks_per_node, :n, :est, :lo, :hi, "
		":total, :total_lo, :total_hi, :held)",
	[SPLIT] = "UPDATE rung SET communication = :communication, straggler = :straggler, "
		  "input = :input, rest = :rest WHERE stage = :stage",
	[LIST] = "SELECT s.round, g.stage, g.nodes, g.tasks_per_node, g.n, g.est, g.lo, g.hi, "
		 "g.total, g.total_lo, g.total_hi, g.held, g.communication, g.straggler, g.input, "
		 "g.rest FROM rung g JOIN stage s ON s.id = g.stage WHERE s.campaign = :campaign "
		 "ORDER BY s.seq",
	NULL,
};
#define SQL(which) query_sql_rung[which]

int query_rung_add(struct db *db, const struct rung_row *g, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store what a rung keeps", e);

	bind_i64(&s, ":stage", g->stage);
	bind_i64(&s, ":nodes", g->nodes);
	bind_i64(&s, ":tasks_per_node", g->tasks_per_node);
	bind_i64(&s, ":n", g->n);
	bind_real(&s, ":est", g->est);
	bind_real(&s, ":lo", g->lo);
	bind_real(&s, ":hi", g->hi);
	bind_real(&s, ":total", g->total);
	bind_real(&s, ":total_lo", g->total_lo);
	bind_real(&s, ":total_hi", g->total_hi);
	bind_i64(&s, ":held", g->held);
	return stmt_run(&s);
}

int query_rung_split(struct db *db, int64_t stage, const struct step_shares *loss, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SPLIT), "store where a rung loses", e);

	bind_i64(&s, ":stage", stage);
	bind_real(&s, ":communication", loss->communication);
	bind_real(&s, ":straggler", loss->straggler);
	bind_real(&s, ":input", loss->input);
	bind_real(&s, ":rest", loss->rest);
	return stmt_run(&s);
}

static void read_rung(struct stmt *s, struct rung_row *g)
{
	*g = (struct rung_row){.stage = col_i64(s, "stage"),
			       .round = col_int(s, "round"),
			       .nodes = col_int(s, "nodes"),
			       .tasks_per_node = col_int(s, "tasks_per_node"),
			       .n = col_int(s, "n"),
			       .est = col_real(s, "est"),
			       .lo = col_real(s, "lo"),
			       .hi = col_real(s, "hi"),
			       .total = col_real(s, "total"),
			       .total_lo = col_real(s, "total_lo"),
			       .total_hi = col_real(s, "total_hi"),
			       .held = col_bool(s, "held"),
			       .communication = col_real(s, "communication"),
			       .straggler = col_real(s, "straggler"),
			       .input = col_real(s, "input"),
			       .rest = col_real(s, "rest")};
}

int query_rungs(struct db *db, int64_t campaign, struct rung_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(LIST), "list the rungs of the ladder", e);
	_cleanup_free_ struct rung_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_rung(&s, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	*out = TAKE(v);
	*n = used;
	return 0;
}
