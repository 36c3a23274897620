/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environments that points hold for, each once, and those of the nodes of attempts. */
#include "experiments/history.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

enum { FIND, PUT, GET, NODE_PUT, NODES, NEWEST };
const char *const query_sql_environment[] = {
	[FIND] = "SELECT id FROM environment WHERE hash = :hash",
	[PUT] = "INSERT INTO environment(hash, text) VALUES (:hash, :text)",
	[GET] = "SELECT text FROM environment WHERE id = :id",
	[NODE_PUT] = "INSERT OR REPLACE INTO node_environment(attempt, node, environment) VALUES "
		     "(:attempt, :node, :environment)",
	[NODES] = "SELECT n.node, n.environment, e.text, min(a.id) AS first FROM block b JOIN "
		  "attempt a ON a.block = b.id AND a.state = 'valid' JOIN node_environment n ON "
		  "n.attempt = a.id JOIN environment e ON e.id = n.environment WHERE b.stage = "
		  ":stage GROUP BY n.node, n.environment ORDER BY n.node, first",
	[NEWEST] = "SELECT max(s.id) AS stage FROM campaign c JOIN stage s ON s.campaign = c.id "
		   "WHERE c.name = :name AND c.scheduler = :scheduler AND EXISTS (SELECT 1 FROM "
		   "block b JOIN attempt a ON a.block = b.id AND a.state = 'valid' JOIN "
		   "node_environment n ON n.attempt = a.id WHERE b.stage = s.id)",
	NULL,
};
#define SQL(which) query_sql_environment[which]

static char *print_sorted(struct kvs *pairs)
{
	struct json *j = json_object();
	char *text;

	kvs_sort(pairs);
	for (size_t i = 0; i < pairs->n; i++)
		json_set_text(j, pairs->v[i].key, pairs->v[i].value);
	text = json_print(j, false);
	json_free(j);
	return text;
}

/* The same object with its keys sorted and no blanks, so that equal environments are equal texts.
 */
static int canonical(const char *json, char **out, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	_cleanup_(kvs_free) struct kvs pairs = {0};
	int rc = json_parse("environment", json, strlen(json), &j, e);

	if (rc < 0)
		return rc;
	if (json_type(j) != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "environment: expected an object of texts");
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		if (json_type(m) != JSON_STRING)
			return err_set(e, ERR_PARSE, "environment: \"%s\" is no text", json_key(m));
		kvs_set(&pairs, json_key(m), json_text(m, ""));
	}
	*out = print_sorted(&pairs);
	return 0;
}

static int find(struct db *db, const char *hash, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FIND), "look for the environment", e);

	*id = 0;
	bind_text(&s, ":hash", hash);
	if (stmt_row(&s))
		*id = col_i64(&s, "id");
	return stmt_close(&s);
}

int history_environment_put(struct db *db, const char *json, int64_t *id, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	int64_t found;
	struct stmt s;
	char hash[33];
	int rc = canonical(json, &text, e);

	if (rc < 0)
		return rc;
	fs_hash(text, strlen(text), hash);
	if ((rc = find(db, hash, &found, e)) < 0)
		return rc;
	if (found == 0) {
		s = stmt_open(db, SQL(PUT), "store the environment", e);
		bind_text(&s, ":hash", hash);
		bind_text(&s, ":text", text);
		if ((rc = stmt_run(&s)) < 0)
			return rc;
		found = db_last_id(db);
	}
	*id = found;
	return 0;
}

int history_environment_get(struct db *db, int64_t id, char **json, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read the environment", e);
	_cleanup_free_ char *text = NULL;
	int rc;

	bind_i64(&s, ":id", id);
	if (stmt_row(&s))
		text = col_text(&s, "text");
	else if (s.rc == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no environment %lld", (long long)id);
	if ((rc = stmt_close(&s)) == 0)
		*json = TAKE(text);
	return rc;
}

int history_node_environment_put(struct db *db, int64_t attempt, const char *node,
				 int64_t environment, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODE_PUT), "store the environment of a node", e);

	bind_i64(&s, ":attempt", attempt);
	bind_text(&s, ":node", node);
	bind_i64(&s, ":environment", environment);
	return stmt_run(&s);
}

void node_environment_rows_free(struct node_environment_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].node);
		free(v[i].text);
	}
	free(v);
}

int history_node_environments(struct db *db, int64_t stage, struct node_environment_row **out,
			      size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NODES), "read the environments of nodes", e);
	struct node_environment_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":stage", stage);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct node_environment_row){.node = col_text(&s, "node"),
							  .text = col_text(&s, "text"),
							  .environment = col_i64(&s,
										 "environment")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		node_environment_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

int history_environment_newest(struct db *db, const char *campaign, const char *scheduler,
			       int64_t *stage, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(NEWEST), "look for the newest environment", e);

	*stage = 0;
	bind_text(&s, ":name", campaign);
	bind_text(&s, ":scheduler", scheduler);
	if (stmt_row(&s))
		*stage = col_i64(&s, "stage");
	return stmt_close(&s);
}
