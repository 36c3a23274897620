/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nights cost, and which nodes they looked at. */
#include "experiments/history.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { STAGE_COST, SPENT, NODE_LOOKS };
/* Of an allocation, as in v_cost. */
#define NODE_S                                                                                \
	"coalesce(l.end_us - l.start_us, (SELECT sum(t.wall_us) FROM attempt y JOIN trial t " \
	"ON t.attempt = y.id WHERE y.allocation = l.id), 0) * max(1, (SELECT count(*) FROM "  \
	"allocation_node n WHERE n.allocation = l.id)) / 1e6"
const char *const query_sql_night[] = {
	[STAGE_COST] =
		"SELECT (SELECT total(" NODE_S ") FROM allocation l WHERE l.id IN (SELECT "
		"a.allocation FROM attempt a JOIN block b ON b.id = a.block WHERE b.stage = "
		":stage)) AS node_s, (SELECT coalesce(max(t.start_us + t.wall_us) - "
		"min(t.start_us), 0) / 1e6 FROM block b JOIN attempt a ON a.block = b.id JOIN trial "
		"t ON t.attempt = a.id WHERE b.stage = :stage) AS wall_s",
	[SPENT] = "SELECT total(" NODE_S
		  ") AS node_s FROM allocation l WHERE l.campaign = :campaign "
		  "AND coalesce(l.start_us, (SELECT min(t.start_us) FROM attempt a JOIN trial t ON "
		  "t.attempt = a.id WHERE a.allocation = l.id)) >= :since",
	[NODE_LOOKS] =
		"SELECT n.node, max(k.night) AS night, count(DISTINCT k.stage) AS looks FROM "
		"canary k JOIN stage s ON s.id = k.stage JOIN block b ON b.stage = s.id JOIN "
		"attempt a ON a.block = b.id AND a.state = 'valid' JOIN allocation_node n ON "
		"n.allocation = a.allocation WHERE s.campaign = :campaign "
		"GROUP BY n.node ORDER BY n.node",
	NULL,
};
#define SQL(which) query_sql_night[which]

int history_stage_cost(struct db *db, int64_t stage, double *node_s, double *wall_s, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(STAGE_COST), "read what a stage cost", e);

	*node_s = *wall_s = 0;
	bind_i64(&s, ":stage", stage);
	if (stmt_row(&s)) {
		*node_s = col_real(&s, "node_s");
		*wall_s = col_real(&s, "wall_s");
	}
	return stmt_close(&s);
}

int history_spent(struct db *db, int64_t campaign, int64_t since_us, double *node_s, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SPENT), "read what a night has cost so far", e);

	*node_s = 0;
	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":since", since_us);
	if (stmt_row(&s))
		*node_s = col_real(&s, "node_s");
	return stmt_close(&s);
}

void node_looks_free(struct node_look *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].node);
	free(v);
}

int history_node_looks(struct db *db, int64_t campaign, struct node_look **out, size_t *n,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODE_LOOKS), "list when nodes were looked at", e);
	struct node_look *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used].node = col_text(&s, "node");
		v[used].looks = col_int(&s, "looks");
		str_copy(v[used++].night, sizeof v->night, col_peek(&s, "night"));
	}
	if ((rc = stmt_close(&s)) < 0) {
		node_looks_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}
