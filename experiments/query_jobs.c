/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the campaign's jobs ended, which nodes were there, and what was said about jobs that wait. */
#include "experiments/query.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum { ENDS, NODE_ENDS, NODE_USE, PLACES, SEEN, KEEP, EVENT_LAST, DRAINING, OVER, ACCOUNT };
#define NODES_OF_L "max(1, (SELECT count(*) FROM allocation_node n WHERE n.allocation = l.id))"
#define TRIALS_OF_L                                                                        \
	"coalesce((SELECT sum(x.wall_us) FROM attempt y JOIN trial x ON x.attempt = y.id " \
	"WHERE y.allocation = l.id), 0)"
const char *const query_sql_jobs[] = {
	/* One row an allocation, though it may hold several attempts. */
	[ENDS] =
		"SELECT l.id, l.outcome, l.reason, EXISTS (SELECT 1 FROM attempt v "
		"WHERE v.allocation = l.id AND v.state = 'valid') AS valid FROM allocation l JOIN campaign c "
		"ON c.id = l.campaign WHERE l.campaign = :campaign AND l.outcome IS NOT NULL "
		"AND EXISTS (SELECT 1 FROM attempt a WHERE a.allocation = l.id AND a.reason IS NOT "
		"'cancelled' AND a.id > c.resume_attempt) ORDER BY l.id DESC LIMIT :most",
	[NODE_ENDS] = "SELECT n.node, l.outcome, count(*) AS n FROM allocation l JOIN campaign c "
		      "ON c.id = l.campaign JOIN allocation_node n ON n.allocation = l.id "
		      "WHERE l.campaign = :campaign AND l.outcome IS NOT NULL AND EXISTS (SELECT 1 "
		      "FROM attempt a WHERE a.allocation = l.id AND a.id > c.resume_attempt) "
		      "GROUP BY n.node, l.outcome ORDER BY n.node, l.outcome",
	[NODE_USE] = "SELECT n.node, count(*) AS n, max(CASE WHEN EXISTS (SELECT 1 FROM attempt a "
		     "WHERE a.allocation = l.id AND a.state = 'valid') THEN l.id ELSE 0 END) AS "
		     "newest FROM allocation l JOIN allocation_node n ON n.allocation = l.id "
		     "WHERE l.campaign = :campaign AND l.id > :after AND l.id <= :upto "
		     "GROUP BY n.node ORDER BY n.node",
	[PLACES] = "SELECT n.allocation, n.node FROM allocation l JOIN allocation_node n ON "
		   "n.allocation = l.id WHERE l.campaign = :campaign ORDER BY n.allocation, n.node",
	[SEEN] =
		"SELECT t.node, d.name, avg(m.value) AS mean, count(*) AS n FROM stage s "
		"JOIN block b ON b.stage = s.id "
		"JOIN attempt a ON a.block = b.id AND a.state = 'valid' "
		"JOIN trial t ON t.attempt = a.id AND t.kind = 'timed' AND t.state = 'ok' "
		"JOIN metric m ON m.trial = t.id AND m.stat = :stat "
		"JOIN metric_def d ON d.id = m.def AND d.name = :metric "
		"JOIN labelset x ON x.id = m.label AND x.labels = '' "
		"WHERE s.campaign = :campaign AND t.node IS NOT NULL GROUP BY t.node ORDER BY t.node",
	[KEEP] = "INSERT INTO attempt(block, number, allocation, state, dir) "
		 "VALUES (:block, 1, :allocation, 'submitted', 'blocks/' || :block || '.1')",
	[EVENT_LAST] = "SELECT id, at_us, kind, text FROM event WHERE campaign = :campaign AND "
		       "kind = :kind AND substr(text, 1, length(:start)) = :start "
		       "ORDER BY id DESC LIMIT 1",
	[DRAINING] = "SELECT coalesce((SELECT max(id) FROM event WHERE campaign = :campaign AND "
		     "kind = 'drain'), 0) > coalesce((SELECT max(id) FROM event WHERE campaign = "
		     ":campaign AND kind = 'stopped'), 0) AS asked",
	[OVER] = "SELECT EXISTS (SELECT 1 FROM allocation l WHERE l.campaign = :campaign AND "
		 "l.token = :token AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.allocation = "
		 "l.id AND a.state IN ('planned', 'submitted'))) AS over",
	/* node_s of an allocation as in v_cost; what its trials leave of it is the rest. */
	[ACCOUNT] =
		"SELECT kind, count(DISTINCT id) AS allocations, sum(cost) / 1e6 AS node_s FROM ("
		"SELECT l.id, CASE WHEN t.kind = 'warmup' THEN 'warm-up trials' WHEN t.state = 'ok' "
		"THEN 'timed trials' ELSE 'failed trials' END AS kind, t.wall_us * " NODES_OF_L
		" AS cost FROM allocation l JOIN attempt a ON a.allocation = l.id "
		"JOIN trial t ON t.attempt = a.id WHERE l.campaign = :campaign "
		"UNION ALL SELECT l.id, CASE WHEN l.outcome IS NULL AND EXISTS (SELECT 1 FROM attempt "
		"a WHERE a.allocation = l.id AND a.state IN ('planned', 'submitted')) THEN 'in "
		"flight' WHEN coalesce(l.outcome, 'ok') <> 'ok' THEN 'jobs that ended: ' || l.outcome "
		"WHEN EXISTS (SELECT 1 FROM attempt a WHERE a.allocation = l.id AND a.state = "
		"'valid') THEN 'between trials' ELSE 'void attempts' END AS kind, " NODES_OF_L
		" * (coalesce(l.end_us - l.start_us, " TRIALS_OF_L ") - " TRIALS_OF_L ") AS cost "
		"FROM allocation l WHERE l.campaign = :campaign) "
		"GROUP BY kind ORDER BY node_s DESC, kind",
	NULL,
};
#define SQL(which) query_sql_jobs[which]

int query_ends(struct db *db, int64_t campaign, size_t most, struct end_row **out, size_t *n,
	       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ENDS), "list how jobs ended", e);
	struct end_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":most", (int64_t)most);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct end_row){.allocation = col_i64(&s, "id"),
					     .outcome = col_text(&s, "outcome"),
					     .reason = col_text(&s, "reason"),
					     .valid = col_bool(&s, "valid")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		end_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void end_rows_free(struct end_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].outcome);
		free(v[i].reason);
	}
	free(v);
}

int query_node_ends(struct db *db, int64_t campaign, struct node_end_row **out, size_t *n,
		    struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODE_ENDS), "list what happened on nodes", e);
	struct node_end_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct node_end_row){.node = col_text(&s, "node"),
						  .outcome = col_text(&s, "outcome"),
						  .n = col_int(&s, "n")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		node_end_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void node_end_rows_free(struct node_end_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].node);
		free(v[i].outcome);
	}
	free(v);
}

int query_node_use(struct db *db, int64_t campaign, int64_t after, int64_t upto,
		   struct node_use_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODE_USE), "count allocations by node", e);
	struct node_use_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":after", after);
	bind_i64(&s, ":upto", upto);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct node_use_row){.node = col_text(&s, "node"),
						  .n = col_int(&s, "n"),
						  .newest = col_i64(&s, "newest")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		node_use_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void node_use_rows_free(struct node_use_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].node);
	free(v);
}

int query_places(struct db *db, int64_t campaign, struct place_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PLACES), "list where allocations were", e);
	struct place_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct place_row){.allocation = col_i64(&s, "allocation"),
					       .node = col_text(&s, "node")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		place_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void place_rows_free(struct place_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].node);
	free(v);
}

int query_node_means(struct db *db, int64_t campaign, const char *metric, const char *stat,
		     struct node_mean_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SEEN), "read a metric by node", e);
	struct node_mean_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_text(&s, ":metric", metric);
	bind_text(&s, ":stat", stat);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct node_mean_row){.node = col_text(&s, "node"),
						   .mean = col_real(&s, "mean"),
						   .n = col_int(&s, "n")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		node_mean_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void node_mean_rows_free(struct node_mean_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].node);
	free(v);
}

int query_attempt_keep(struct db *db, int64_t block, int64_t allocation, int64_t *attempt_id,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(KEEP), "keep complete pairs", e);
	int rc;

	bind_i64(&s, ":block", block);
	bind_i64(&s, ":allocation", allocation);
	rc = stmt_run(&s);
	*attempt_id = db_last_id(db);
	return rc;
}

int query_event_last(struct db *db, int64_t campaign, const char *kind, const char *start,
		     struct event_row *out, bool *found, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(EVENT_LAST), "look for an event", e);

	bind_i64(&s, ":campaign", campaign);
	bind_text(&s, ":kind", kind);
	bind_text(&s, ":start", start);
	*out = (struct event_row){0};
	*found = stmt_row(&s);
	if (*found)
		*out = (struct event_row){.id = col_i64(&s, "id"),
					  .at_us = col_i64(&s, "at_us"),
					  .kind = col_text(&s, "kind"),
					  .text = col_text(&s, "text")};
	return stmt_close(&s);
}

void event_row_done(struct event_row *v)
{
	free(v->kind);
	free(v->text);
	*v = (struct event_row){0};
}

int query_draining(struct db *db, int64_t campaign, bool *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(DRAINING), "look for a drain", e);

	bind_i64(&s, ":campaign", campaign);
	*out = stmt_row(&s) && col_bool(&s, "asked");
	return stmt_close(&s);
}

int query_allocation_over(struct db *db, int64_t campaign, const char *token, bool *over,
			  struct err *e)
{
	struct stmt s = stmt_open(db, SQL(OVER), "look for an allocation that is over", e);

	bind_i64(&s, ":campaign", campaign);
	bind_text(&s, ":token", token);
	*over = stmt_row(&s) && col_bool(&s, "over");
	return stmt_close(&s);
}

int query_account(struct db *db, int64_t campaign, struct account_row **out, size_t *n,
		  struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ACCOUNT), "draw up the account", e);
	struct account_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct account_row){.kind = col_text(&s, "kind"),
						 .allocations = col_i64(&s, "allocations"),
						 .node_s = col_real(&s, "node_s")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		account_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void account_rows_free(struct account_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].kind);
	free(v);
}
