/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum {
	LAST,
	ALLOCATION_PUT,
	PUT,
	SUBMITTED,
	SUBMITTED_ATTEMPTS,
	JOB,
	END,
	NODES_OF_AGENT,
	NODE_PUT,
	STATE_GET,
	FAIL,
	DIRS,
};
const char *const query_sql_attempt[] = {
	[LAST] = "SELECT s.campaign, a.number, a.state FROM block b JOIN stage s ON s.id = b.stage "
		 "LEFT JOIN attempt a ON a.block = b.id WHERE b.id = :block "
		 "ORDER BY a.number DESC LIMIT 1",
	/* The id that AUTOINCREMENT is about to give, so that the token can hold it from the start.
	 */
	[ALLOCATION_PUT] =
		"INSERT INTO allocation(id, campaign, scheduler, token, planned_us, user) "
		"SELECT n, :campaign, :scheduler, :prefix || n, :now, :user FROM "
		"(SELECT coalesce(max(seq), 0) + 1 AS n FROM sqlite_sequence "
		"WHERE name = 'allocation')",
	[PUT] = "INSERT INTO attempt(block, number, allocation, state, dir) "
		"VALUES (:block, :number, :allocation, 'planned', 'blocks/' || :block || '.' || "
		":number)",
	[SUBMITTED] = "UPDATE allocation SET job_id = :job, "
		      "submitted_us = coalesce(submitted_us, :now) "
		      "WHERE id = :id AND (job_id IS NULL OR job_id = :job)",
	[SUBMITTED_ATTEMPTS] = "UPDATE attempt SET state = 'submitted' "
			       "WHERE allocation = :id AND state = 'planned'",
	[JOB] = "SELECT job_id FROM allocation WHERE id = :id",
	[END] = "UPDATE allocation SET outcome = :outcome, reason = :reason, "
		"start_us = coalesce(min(start_us, :start), :start, start_us), "
		"end_us = coalesce(max(end_us, :end), :end, end_us) WHERE id = :id",
	[NODES_OF_AGENT] = "SELECT count(*) AS n FROM allocation_node "
			   "WHERE allocation = :id AND by_agent = 1",
	[NODE_PUT] = "INSERT OR IGNORE INTO allocation_node(allocation, node, by_agent) "
		     "VALUES (:id, :node, 0)",
	[STATE_GET] = "SELECT state FROM attempt WHERE id = :id",
	[FAIL] = "UPDATE attempt SET state = :state, reason = :reason, ended_us = :now "
		 "WHERE id = :id AND state IN ('planned', 'submitted')",
	[DIRS] = "SELECT a.dir, a.state FROM attempt a JOIN allocation l ON l.id = a.allocation "
		 "WHERE l.campaign = :campaign ORDER BY a.id",
	NULL,
};
#define SQL(which) query_sql_attempt[which]

/* -- intent ---------------------------------------------------------------------------------- */

/* The number that the block's next attempt gets. ERR_STATE while one is open or when one is valid:
 * so a plan that is made twice is refused, not run twice. */
static int next_number(struct db *db, int64_t campaign, int64_t block, int *number, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(LAST), "plan the attempt", e);
	enum attempt_state last = ATTEMPT_LOST;

	bind_i64(&s, ":block", block);
	if (!stmt_row(&s))
		stmt_fail(&s, ERR_NOT_FOUND, "there is no block %lld", (long long)block);
	else if (col_i64(&s, "campaign") != campaign)
		stmt_fail(&s, ERR_STATE, "block %lld belongs to another campaign",
			  (long long)block);
	else if (!col_null(&s, "state"))
		COL_WORD(&s, "state", attempt_state, &last);
	if (s.rc == 0) {
		*number = col_int(&s, "number") + 1;
		switch (last) {
		case ATTEMPT_PLANNED:
		case ATTEMPT_SUBMITTED:
		case ATTEMPT_VALID:
			stmt_fail(&s, ERR_STATE,
				  "attempt %d of block %lld is %s: no other is begun", *number - 1,
				  (long long)block, attempt_state_name(last));
			break;
		case ATTEMPT_VOID:
		case ATTEMPT_LOST:
			break;
		}
	}
	return stmt_close(&s);
}

static int put_allocation(struct db *db, int64_t campaign, const char *scheduler,
			  const char *prefix, int64_t now_us, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ALLOCATION_PUT), "plan the allocation", e);
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_text(&s, ":scheduler", scheduler);
	bind_text(&s, ":prefix", prefix);
	bind_text(&s, ":user", db_user(db));
	bind_i64(&s, ":now", now_us);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

static int put_attempt(struct db *db, int64_t block, int number, int64_t allocation, int64_t *id,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "plan the attempt", e);
	int rc;

	bind_i64(&s, ":block", block);
	bind_i64(&s, ":number", number);
	bind_i64(&s, ":allocation", allocation);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

struct plan {
	int64_t attempt_id, allocation; /* attempt: of the last block, like its number */
	int attempt;
	char token[64];
};

static int make_plan(struct db *db, int64_t campaign, const int64_t *blocks, size_t n,
		     const char *scheduler, int64_t now_us, struct plan *p, struct err *e)
{
	char uuid[37], prefix[32];
	int rc = query_workspace_ensure(db, now_us, uuid, e);

	if (rc < 0)
		return rc;
	snprintf(prefix, sizeof prefix, "fettle:%.8s:a", uuid);
	rc = put_allocation(db, campaign, scheduler, prefix, now_us, &p->allocation, e);
	if (rc < 0)
		return rc;
	snprintf(p->token, sizeof p->token, "%s%lld", prefix, (long long)p->allocation);
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = next_number(db, campaign, blocks[i], &p->attempt, e);
		if (rc == 0)
			rc = put_attempt(db, blocks[i], p->attempt, p->allocation, &p->attempt_id,
					 e);
	}
	return rc;
}

static int plan(struct db *db, int64_t campaign, const int64_t *blocks, size_t n,
		const char *scheduler, int64_t now_us, struct plan *p, struct err *e)
{
	bool own;
	int rc = db_enter(db, "plan an allocation", &own, e);

	if (rc < 0)
		return rc;
	return db_leave(db, own, make_plan(db, campaign, blocks, n, scheduler, now_us, p, e), e);
}

int query_allocation_plan(struct db *db, int64_t campaign, const int64_t *blocks, size_t n,
			  const char *scheduler, int64_t now_us, int64_t *allocation,
			  char token[64], struct err *e)
{
	struct plan p = {0};
	int rc = plan(db, campaign, blocks, n, scheduler, now_us, &p, e);

	if (rc < 0)
		return rc;
	*allocation = p.allocation;
	memcpy(token, p.token, sizeof p.token);
	return 0;
}

int query_attempt_plan(struct db *db, int64_t campaign, int64_t block, const char *scheduler,
		       int64_t now_us, int64_t *attempt_id, int *attempt, int64_t *allocation,
		       char token[64], struct err *e)
{
	struct plan p = {0};
	int rc = plan(db, campaign, &block, 1, scheduler, now_us, &p, e);

	if (rc < 0)
		return rc;
	*attempt_id = p.attempt_id;
	*attempt = p.attempt;
	*allocation = p.allocation;
	memcpy(token, p.token, sizeof p.token);
	return 0;
}

/* -- what became of it ----------------------------------------------------------------------- */

/* Why an allocation did not take the job id. */
static int other_job(struct db *db, int64_t allocation, const char *job_id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(JOB), "store the job's id", e);

	bind_i64(&s, ":id", allocation);
	if (stmt_row(&s))
		stmt_fail(&s, ERR_STATE,
			  "allocation %lld is job %s, and now job %s is said to be it: one "
			  "token was accepted twice",
			  (long long)allocation, col_peek(&s, "job_id"), job_id);
	else
		stmt_fail(&s, ERR_NOT_FOUND, "there is no allocation %lld", (long long)allocation);
	return stmt_close(&s);
}

static int set_submitted(struct db *db, int64_t allocation, const char *job_id, int64_t now_us,
			 struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SUBMITTED), "store the job's id", e);
	int rc;

	bind_i64(&s, ":id", allocation);
	bind_text(&s, ":job", job_id);
	bind_i64(&s, ":now", now_us);
	rc = stmt_run(&s);
	if (rc == 0 && db_changed(db) == 0)
		return other_job(db, allocation, job_id, e);
	if (rc < 0)
		return rc;
	s = stmt_open(db, SQL(SUBMITTED_ATTEMPTS), "store that it was submitted", e);
	bind_i64(&s, ":id", allocation);
	return stmt_run(&s);
}

int query_allocation_submitted(struct db *db, int64_t allocation, const char *job_id,
			       int64_t now_us, struct err *e)
{
	bool own;
	int rc = db_enter(db, "store a submit", &own, e);

	if (rc < 0)
		return rc;
	return db_leave(db, own, set_submitted(db, allocation, job_id, now_us, e), e);
}

/* A list of 255 bytes may have been cut by struct sched_status: its last name is then a stump. */
enum { NODES_CUT_BYTES = 255 };

static int put_nodes(struct db *db, int64_t allocation, const char *nodes, struct err *e)
{
	const char *end = nodes + strlen(nodes);
	int rc = 0;

	if (strlen(nodes) >= NODES_CUT_BYTES) {
		while (end > nodes && end[-1] != ',')
			end--;
	}
	while (nodes < end && rc == 0) {
		size_t n = strcspn(nodes, ",");
		_cleanup_free_ char *name = xstrndup(nodes, n);
		struct stmt s;

		nodes += n + (nodes[n] == ',');
		if (n == 0)
			continue;
		s = stmt_open(db, SQL(NODE_PUT), "store the nodes", e);
		bind_i64(&s, ":id", allocation);
		bind_text(&s, ":node", name);
		rc = stmt_run(&s);
	}
	return rc;
}

static int agent_told_nodes(struct db *db, int64_t allocation, bool *told, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODES_OF_AGENT), "look for the nodes", e);

	bind_i64(&s, ":id", allocation);
	*told = stmt_row(&s) && col_i64(&s, "n") > 0;
	return stmt_close(&s);
}

static int set_end(struct db *db, int64_t allocation, const char *end, const char *reason,
		   int64_t start_us, int64_t end_us, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(END), "store the allocation's end", e);

	bind_i64(&s, ":id", allocation);
	bind_text(&s, ":outcome", end);
	bind_text(&s, ":reason", reason);
	bind_opt(&s, ":start", start_us);
	bind_opt(&s, ":end", end_us);
	while (stmt_row(&s))
		;
	if (s.rc == 0 && db_changed(db) == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no allocation %lld", (long long)allocation);
	return stmt_close(&s);
}

int query_allocation_end(struct db *db, int64_t allocation, const char *end, const char *reason,
			 const char *nodes, int64_t start_us, int64_t end_us, struct err *e)
{
	bool own, told = true;
	int rc = db_enter(db, "store an allocation's end", &own, e);

	if (rc < 0)
		return rc;
	rc = set_end(db, allocation, end, reason, start_us, end_us, e);
	if (rc == 0 && nodes)
		rc = agent_told_nodes(db, allocation, &told, e);
	if (rc == 0 && !told)
		rc = put_nodes(db, allocation, nodes, e);
	return db_leave(db, own, rc, e);
}

/* Nothing was changed: fine if it is in that state already. */
static int was_failed(struct db *db, int64_t id, enum attempt_state want, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(STATE_GET), "give the attempt up", e);
	enum attempt_state now = want;

	bind_i64(&s, ":id", id);
	if (stmt_row(&s))
		COL_WORD(&s, "state", attempt_state, &now);
	else
		stmt_fail(&s, ERR_NOT_FOUND, "there is no attempt %lld", (long long)id);
	if (now != want)
		stmt_fail(&s, ERR_STATE, "attempt %lld is %s and cannot become %s", (long long)id,
			  attempt_state_name(now), attempt_state_name(want));
	return stmt_close(&s);
}

int query_attempt_fail(struct db *db, int64_t attempt_id, enum attempt_state state,
		       const char *reason, int64_t now_us, struct err *e)
{
	struct stmt s;
	int rc;

	if (state != ATTEMPT_VOID && state != ATTEMPT_LOST)
		return err_set(e, ERR_STATE, "an attempt fails as void or lost, not as %s",
			       attempt_state_name(state));
	s = stmt_open(db, SQL(FAIL), "give the attempt up", e);
	bind_i64(&s, ":id", attempt_id);
	bind_text(&s, ":state", attempt_state_name(state));
	bind_text(&s, ":reason", reason);
	bind_i64(&s, ":now", now_us);
	rc = stmt_run(&s);
	if (rc == 0 && db_changed(db) == 0)
		return was_failed(db, attempt_id, state, e);
	return rc;
}

/* -- directories ----------------------------------------------------------------------------- */

int query_attempt_dirs(struct db *db, int64_t campaign, struct strv *out, bool *open, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(DIRS), "list the attempts' directories", e);

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		enum attempt_state state = ATTEMPT_LOST;

		COL_WORD(&s, "state", attempt_state, &state);
		*open = *open || state == ATTEMPT_PLANNED || state == ATTEMPT_SUBMITTED;
		strv_add(out, col_peek(&s, "dir"));
	}
	return stmt_close(&s);
}
