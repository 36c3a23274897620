/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes and jobs as the cluster knows them: its accounts, its switches, what was seen of each node.
 */
#include "experiments/query.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum { UNACCOUNTED, ACCOUNT_PUT, SWITCHES_PUT, HOSTS, HOST_RANKS, HOST_METRICS, CONSUMED };
#define TRIALS \
	"allocation l JOIN attempt a ON a.allocation = l.id JOIN trial t ON t.attempt = a.id "
const char *const query_sql_hosts[] = {
	[UNACCOUNTED] =
		"SELECT l.id, l.job_id FROM allocation l WHERE l.campaign = :campaign AND "
		"l.job_id IS NOT NULL AND l.outcome IS NOT NULL AND l.end_us >= :since AND NOT "
		"EXISTS (SELECT 1 FROM allocation_account a WHERE a.allocation = l.id) "
		"ORDER BY l.id LIMIT :most",
	[ACCOUNT_PUT] = "INSERT OR REPLACE INTO allocation_account(allocation, elapsed_s, "
			"maxrss_kib, energy_j, tres, at_us) VALUES (:id, :elapsed, :maxrss, "
			":energy, :tres, :now)",
	[SWITCHES_PUT] = "UPDATE allocation_node SET switches = :switches WHERE allocation = :id "
			 "AND node = :node",
	[HOSTS] = "SELECT n.node, count(*) AS allocations, max(n.switches) AS switches "
		  "FROM allocation l JOIN allocation_node n ON n.allocation = l.id "
		  "WHERE l.campaign = :campaign GROUP BY n.node ORDER BY n.node",
	[HOST_RANKS] =
		"SELECT v.value AS node, min(v.rank) AS first_rank, max(v.rank) AS last_rank "
		"FROM " TRIALS "JOIN effective v ON v.trial = t.id WHERE l.campaign = "
		":campaign AND v.key = 'node' AND v.rank >= 0 GROUP BY v.value",
	/* A metric without a label is that of the trial's first node. */
	[HOST_METRICS] =
		"SELECT CASE x.labels WHEN '' THEN t.node ELSE substr(x.labels, 6) END AS node, "
		"avg(CASE d.name WHEN 'node_clock_offset_ms' THEN m.value END) AS clock_ms, "
		"avg(CASE d.name WHEN 'sampler_cpu_pct' THEN m.value END) AS sampler_pct FROM " TRIALS
		"JOIN metric m ON m.trial = t.id AND m.stat = 'mean' JOIN metric_def d ON "
		"d.id = m.def JOIN labelset x ON x.id = m.label WHERE l.campaign = :campaign AND "
		"d.name IN ('node_clock_offset_ms', 'sampler_cpu_pct') GROUP BY 1",
	[CONSUMED] =
		"SELECT count(*) AS jobs, sum(a.elapsed_s) AS elapsed_s, max(a.maxrss_kib) AS "
		"maxrss_kib, sum(a.energy_j) AS energy_j, sum(CASE WHEN a.energy_j IS NOT NULL "
		"THEN a.elapsed_s END) AS energy_s, max(a.tres) AS tres, (SELECT count(*) FROM "
		"allocation o WHERE o.campaign = :campaign AND o.job_id IS NOT NULL) AS known "
		"FROM allocation l JOIN allocation_account a ON a.allocation = l.id "
		"WHERE l.campaign = :campaign",
	NULL,
};
#define SQL(which) query_sql_hosts[which]

int query_unaccounted(struct db *db, int64_t campaign, int64_t since_us, size_t most,
		      struct unaccounted_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(UNACCOUNTED), "list jobs without accounts", e);
	struct unaccounted_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":since", since_us);
	bind_i64(&s, ":most", (int64_t)most);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct unaccounted_row){.allocation = col_i64(&s, "id"),
						     .job_id = col_text(&s, "job_id")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		unaccounted_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void unaccounted_rows_free(struct unaccounted_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].job_id);
	free(v);
}

/* Below 0: not recorded. */
static void bind_known(struct stmt *s, const char *name, int64_t v)
{
	if (v >= 0)
		bind_i64(s, name, v);
	else
		bind_opt(s, name, 0);
}

int query_account_put(struct db *db, int64_t allocation, const struct consumed_row *c,
		      int64_t now_us, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ACCOUNT_PUT), "store a job's accounts", e);

	bind_i64(&s, ":id", allocation);
	bind_known(&s, ":elapsed", c->elapsed_s);
	bind_known(&s, ":maxrss", c->maxrss_kib);
	bind_known(&s, ":energy", c->energy_j);
	bind_text(&s, ":tres", c->tres ? c->tres : "");
	bind_i64(&s, ":now", now_us);
	return stmt_run(&s);
}

int query_switches_put(struct db *db, int64_t allocation, const char *node, const char *switches,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SWITCHES_PUT), "store a node's switches", e);

	bind_i64(&s, ":id", allocation);
	bind_text(&s, ":node", node);
	bind_text(&s, ":switches", switches);
	return stmt_run(&s);
}

static int64_t known_or_less(struct stmt *s, const char *name)
{
	return col_null(s, name) ? -1 : col_i64(s, name);
}

static int list_hosts(struct db *db, int64_t campaign, struct host_row **out, size_t *n,
		      struct err *e)
{
	struct stmt s = stmt_open(db, SQL(HOSTS), "list the nodes", e);
	size_t cap = 0;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		*out = xgrow(*out, *n, &cap, sizeof **out);
		(*out)[(*n)++] = (struct host_row){.node = col_text(&s, "node"),
						   .switches = col_text(&s, "switches"),
						   .allocations = col_int(&s, "allocations"),
						   .first_rank = -1,
						   .last_rank = -1,
						   .clock_ms = NAN,
						   .sampler_pct = NAN};
	}
	return stmt_close(&s);
}

static struct host_row *host_of(struct host_row *v, size_t n, const char *node)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].node, node))
			return &v[i];
	return NULL;
}

static int add_seen(struct db *db, int64_t campaign, struct host_row *v, size_t n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(HOST_RANKS), "list the ranks of nodes", e);
	struct host_row *h;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s))
		if ((h = host_of(v, n, col_peek(&s, "node")))) {
			h->first_rank = col_int(&s, "first_rank");
			h->last_rank = col_int(&s, "last_rank");
		}
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	s = stmt_open(db, SQL(HOST_METRICS), "list what was seen of nodes", e);
	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s))
		if ((h = host_of(v, n, col_peek(&s, "node")))) {
			h->clock_ms = col_real(&s, "clock_ms");
			h->sampler_pct = col_real(&s, "sampler_pct");
		}
	return stmt_close(&s);
}

int query_hosts(struct db *db, int64_t campaign, struct host_row **out, size_t *n, struct err *e)
{
	struct host_row *v = NULL;
	size_t used = 0;
	int rc = list_hosts(db, campaign, &v, &used, e);

	if (rc == 0)
		rc = add_seen(db, campaign, v, used, e);
	if (rc < 0) {
		host_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void host_rows_free(struct host_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].node);
		free(v[i].switches);
	}
	free(v);
}

int query_consumed(struct db *db, int64_t campaign, struct consumed_row *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CONSUMED), "sum the accounts up", e);

	*out = (struct consumed_row){0};
	bind_i64(&s, ":campaign", campaign);
	if (stmt_row(&s))
		*out = (struct consumed_row){.jobs = col_i64(&s, "jobs"),
					     .jobs_all = col_i64(&s, "known"),
					     .elapsed_s = known_or_less(&s, "elapsed_s"),
					     .maxrss_kib = known_or_less(&s, "maxrss_kib"),
					     .energy_j = known_or_less(&s, "energy_j"),
					     .energy_s = known_or_less(&s, "energy_s"),
					     .tres = col_text(&s, "tres")};
	return stmt_close(&s);
}

void consumed_row_done(struct consumed_row *c)
{
	free(c->tres);
	*c = (struct consumed_row){0};
}
