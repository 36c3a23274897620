/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a view of a running campaign asks for each second: at a cost that does not grow with what
 * was run before the open stage. */
#include "experiments/query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum { PACE, RECENT, SPENT, USEFUL };
const char *const query_sql_glance[] = {
	[PACE] = "SELECT count(*) AS n, min(l.planned_us) AS first_us, max(a.ended_us) AS last_us "
		 "FROM block b JOIN attempt a ON a.block = b.id AND a.state = 'valid' "
		 "JOIN allocation l ON l.id = a.allocation "
		 "WHERE b.stage = :stage AND l.planned_us >= :since",
	[RECENT] = "SELECT newest.state, m.value FROM (SELECT t.id, t.state FROM arm r "
		   "JOIN trial t ON t.arm = r.id AND t.kind = 'timed' AND t.state IN ('ok', "
		   "'failed') "
		   "JOIN attempt a ON a.id = t.attempt AND a.state = 'valid' "
		   "WHERE r.stage = :stage ORDER BY t.id DESC LIMIT :most) newest "
		   "LEFT JOIN metric m ON m.trial = newest.id "
		   "AND m.def = (SELECT id FROM metric_def WHERE name = :metric) "
		   "AND m.label = (SELECT id FROM labelset WHERE labels = '') AND m.stat = :stat "
		   "ORDER BY newest.id DESC",
	/* as in v_cost: a test holds the two against each other */
	[SPENT] = "SELECT (SELECT count(*) FROM allocation l JOIN attempt a ON a.allocation = l.id "
		  "JOIN trial t ON t.attempt = a.id WHERE l.campaign = :campaign) AS trials, "
		  "(SELECT coalesce(sum(coalesce(l.end_us - l.start_us, (SELECT sum(t.wall_us) "
		  "FROM attempt a JOIN trial t ON t.attempt = a.id WHERE a.allocation = l.id), 0) "
		  "* max(1, (SELECT count(*) FROM allocation_node n WHERE n.allocation = l.id))), "
		  "0) / 1e6 FROM allocation l WHERE l.campaign = :campaign) AS node_s",
	[USEFUL] = "SELECT l.planned_us, max(a.ended_us) AS ended_us, sum((SELECT count(*) FROM "
		   "trial t WHERE t.attempt = a.id AND a.state = 'valid')) AS trials "
		   "FROM allocation l JOIN attempt a ON a.allocation = l.id "
		   "WHERE l.campaign = :campaign GROUP BY l.id ORDER BY l.id",
	NULL,
};
#define SQL(which) query_sql_glance[which]

int query_stage_pace(struct db *db, int64_t stage, int64_t since_us, struct pace_row *out,
		     struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PACE), "time the stage's blocks", e);
	struct pace_row p = {0};
	int rc;

	bind_i64(&s, ":stage", stage);
	bind_i64(&s, ":since", since_us);
	if (stmt_row(&s))
		p = (struct pace_row){.n = col_int(&s, "n"),
				      .first_us = col_i64(&s, "first_us"),
				      .last_us = col_i64(&s, "last_us")};
	rc = stmt_close(&s);
	if (rc == 0)
		*out = p;
	return rc;
}

int query_stage_recent(struct db *db, int64_t stage, const char *metric, const char *stat,
		       size_t most, double **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(RECENT), "read the stage's newest values", e);
	_cleanup_free_ double *v = xcalloc(most + 1, sizeof *v);
	size_t used = 0;
	int rc;

	bind_i64(&s, ":stage", stage);
	bind_i64(&s, ":most", (int64_t)most);
	bind_text(&s, ":metric", metric);
	bind_text(&s, ":stat", stat);
	while (stmt_row(&s) && used < most) {
		enum trial_state state = TRIAL_FAILED;

		COL_WORD(&s, "state", trial_state, &state);
		v[used++] = state == TRIAL_OK ? col_real(&s, "value") : NAN;
	}
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	for (size_t i = 0; i < used / 2; i++) {
		double x = v[i];

		v[i] = v[used - 1 - i];
		v[used - 1 - i] = x;
	}
	*out = v;
	v = NULL;
	*n = used;
	return 0;
}

int query_spent(struct db *db, int64_t campaign, int64_t *trials, double *node_s, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SPENT), "sum up what was spent", e);

	bind_i64(&s, ":campaign", campaign);
	if (stmt_row(&s)) {
		*trials = col_i64(&s, "trials");
		*node_s = col_real(&s, "node_s");
	}
	return stmt_close(&s);
}

/* Allocations that overlap are busy together: what is before `until` was counted already. */
int query_useful(struct db *db, int64_t campaign, struct useful_row *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(USEFUL), "sum up what was of use", e);
	struct useful_row u = {0};
	int64_t until = INT64_MIN;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		int64_t from = col_i64(&s, "planned_us"), end = col_i64(&s, "ended_us");

		u.trials += col_i64(&s, "trials");
		from = from > until ? from : until;
		if (end <= from)
			continue;
		u.busy_s += (double)(end - from) / 1e6;
		until = end;
	}
	rc = stmt_close(&s);
	if (rc == 0)
		*out = u;
	return rc;
}
