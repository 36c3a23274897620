/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

#define CAMPAIGN_COLUMNS                                                                    \
	"id, name, recipe_path, recipe_hash, scheduler, state, reason, mode, seed, alpha, " \
	"confirm_max, env_json, created_us, ended_us, deadline_us, resume_trials, resume_node_s, user"

enum {
	WORKSPACE_GET,
	WORKSPACE_PUT,
	PUT,
	SOURCE_PUT,
	GET,
	LIST,
	LIST_NAME,
	SOURCES,
	STATE,
	DEADLINE,
	RESUME,
	SUBMITTERS
};
const char *const query_sql_campaign[] = {
	[WORKSPACE_GET] = "SELECT uuid FROM workspace WHERE id = 1",
	[WORKSPACE_PUT] = "INSERT INTO workspace(id, uuid, created_us) VALUES (1, :uuid, :created)",
	[PUT] = "INSERT INTO campaign(name, recipe_path, recipe_hash, scheduler, state, reason, "
		"mode, "
		"seed, alpha, confirm_max, env_json, created_us, ended_us, deadline_us, user) VALUES "
		"(:name, "
		":path, :hash, :scheduler, :state, :reason, :mode, :seed, :alpha, :confirm_max, "
		":env, "
		":created, :ended, :deadline, :user)",
	[SOURCE_PUT] = "INSERT INTO recipe_source(campaign, seq, name, path, text, hash) "
		       "VALUES (:campaign, :seq, :name, :path, :text, :hash)",
	[GET] = "SELECT " CAMPAIGN_COLUMNS " FROM campaign WHERE id = :id",
	[LIST] = "SELECT " CAMPAIGN_COLUMNS " FROM campaign ORDER BY id DESC",
	[LIST_NAME] = "SELECT " CAMPAIGN_COLUMNS
		      " FROM campaign WHERE name = :name ORDER BY id DESC",
	[SOURCES] = "SELECT name, path, text, hash FROM recipe_source WHERE campaign = :id ORDER "
		    "BY seq",
	[STATE] = "UPDATE campaign SET state = :state, reason = :reason, ended_us = :ended "
		  "WHERE id = :id",
	[DEADLINE] = "UPDATE campaign SET deadline_us = :deadline WHERE id = :id",
	[RESUME] = "UPDATE campaign SET state = 'running', reason = NULL, ended_us = NULL, "
		   "resume_attempt = (SELECT coalesce(max(id), 0) FROM attempt), "
		   "resume_trials = :trials, resume_node_s = :node_s WHERE id = :id",
	[SUBMITTERS] =
		"SELECT DISTINCT user FROM allocation WHERE campaign = :id AND user IS NOT NULL "
		"AND user IS NOT (SELECT user FROM campaign WHERE id = :id) ORDER BY user",
	NULL,
};
#define SQL(which) query_sql_campaign[which]

/* -- workspace ------------------------------------------------------------------------------- */

/* Version 4 of RFC 9562: random, so that two workspaces never share a job name. */
static int make_uuid(char out[37], struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char r[16];
	size_t n = 0;

	if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
		return err_sys(e, ERR_IO, "cannot get random bytes for the workspace's uuid");
	r[6] = (unsigned char)(0x40 | (r[6] & 0x0f));
	r[8] = (unsigned char)(0x80 | (r[8] & 0x3f));
	for (size_t i = 0; i < sizeof r; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[n++] = '-';
		out[n++] = digits[r[i] >> 4];
		out[n++] = digits[r[i] & 0x0f];
	}
	out[n] = '\0';
	return 0;
}

static int workspace_get(struct db *db, char out[37], bool *found, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(WORKSPACE_GET), "read the workspace", e);

	*found = stmt_row(&s);
	if (*found)
		str_copy(out, 37, col_peek(&s, "uuid"));
	return stmt_close(&s);
}

int query_workspace_ensure(struct db *db, int64_t now_us, char out[37], struct err *e)
{
	struct stmt s;
	bool found;
	int rc = workspace_get(db, out, &found, e);

	if (rc < 0 || found)
		return rc;
	rc = make_uuid(out, e);
	if (rc < 0)
		return rc;
	s = stmt_open(db, SQL(WORKSPACE_PUT), "name the workspace", e);
	bind_text(&s, ":uuid", out);
	bind_i64(&s, ":created", now_us);
	return stmt_run(&s);
}

int query_workspace_uuid(struct db *db, const struct clock *c, char out[37], struct err *e)
{
	bool found, own;
	int rc = workspace_get(db, out, &found, e);

	if (rc < 0 || found)
		return rc;
	rc = db_enter(db, "name the workspace", &own, e);
	if (rc < 0)
		return rc;
	return db_leave(db, own, query_workspace_ensure(db, clock_utc_us(c), out, e), e);
}

/* -- campaigns ------------------------------------------------------------------------------- */

static int put_campaign(struct db *db, const struct campaign_row *c, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store the campaign", e);
	int rc;

	bind_text(&s, ":name", c->name);
	bind_text(&s, ":path", c->recipe_path);
	bind_text(&s, ":hash", c->recipe_hash);
	bind_text(&s, ":scheduler", c->scheduler);
	bind_text(&s, ":state", campaign_state_name(c->state));
	bind_text(&s, ":reason", c->reason);
	bind_text(&s, ":mode", run_mode_name(c->mode));
	bind_i64(&s, ":seed", (int64_t)c->seed); /* the same 64 bits */
	bind_real(&s, ":alpha", c->alpha);
	bind_i64(&s, ":confirm_max", c->confirm_max);
	bind_text(&s, ":env", c->env_json ? c->env_json : "{}");
	bind_i64(&s, ":created", c->created_us);
	bind_opt(&s, ":ended", c->ended_us);
	bind_opt(&s, ":deadline", c->deadline_us);
	bind_text(&s, ":user", db_user(db));
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

static int put_sources(struct db *db, int64_t campaign, const struct source_row *v, size_t n,
		       struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		struct stmt s = stmt_open(db, SQL(SOURCE_PUT), "store the recipe", e);

		bind_i64(&s, ":campaign", campaign);
		bind_i64(&s, ":seq", (int64_t)i);
		bind_text(&s, ":name", v[i].name);
		bind_text(&s, ":path", v[i].path);
		bind_text(&s, ":text", v[i].text);
		bind_text(&s, ":hash", v[i].hash);
		rc = stmt_run(&s);
	}
	return rc;
}

int query_campaign_create(struct db *db, const struct campaign_row *c,
			  const struct source_row *sources, size_t n, int64_t *id, struct err *e)
{
	int64_t new_id = 0;
	int rc = db_begin(db, "create a campaign", e);

	if (rc < 0)
		return rc;
	rc = put_campaign(db, c, &new_id, e);
	if (rc == 0)
		rc = put_sources(db, new_id, sources, n, e);
	rc = db_leave(db, true, rc, e);
	if (rc == 0)
		*id = new_id;
	return rc;
}

static void read_campaign(struct stmt *s, struct campaign_row *c)
{
	c->id = col_i64(s, "id");
	c->name = col_text(s, "name");
	c->recipe_path = col_text(s, "recipe_path");
	c->recipe_hash = col_text(s, "recipe_hash");
	c->scheduler = col_text(s, "scheduler");
	COL_WORD(s, "state", campaign_state, &c->state);
	c->reason = col_text(s, "reason");
	COL_WORD(s, "mode", run_mode, &c->mode);
	c->seed = (uint64_t)col_i64(s, "seed");
	c->alpha = col_real(s, "alpha");
	c->confirm_max = col_int(s, "confirm_max");
	c->env_json = col_text(s, "env_json");
	c->created_us = col_i64(s, "created_us");
	c->ended_us = col_i64(s, "ended_us");
	c->deadline_us = col_i64(s, "deadline_us");
	c->resume_trials = col_i64(s, "resume_trials");
	c->resume_node_s = col_real(s, "resume_node_s");
	c->user = col_text(s, "user");
}

int query_campaign_submitters(struct db *db, int64_t id, struct strv *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SUBMITTERS), "read who submitted its jobs", e);

	bind_i64(&s, ":id", id);
	while (stmt_row(&s)) {
		_cleanup_free_ char *user = col_text(&s, "user");

		strv_add(out, user);
	}
	return stmt_close(&s);
}

int query_campaign_get(struct db *db, int64_t id, struct campaign_row *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read the campaign", e);
	struct campaign_row c = {0};
	int rc;

	bind_i64(&s, ":id", id);
	if (stmt_row(&s))
		read_campaign(&s, &c);
	else if (s.rc == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no campaign %lld", (long long)id);
	rc = stmt_close(&s);
	if (rc < 0) {
		campaign_row_done(&c);
		return rc;
	}
	*out = c;
	return 0;
}

int query_campaign_list(struct db *db, const char *name, struct campaign_row **out, size_t *n,
			struct err *e)
{
	struct stmt s = stmt_open(db, SQL(name ? LIST_NAME : LIST), "list campaigns", e);
	struct campaign_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	if (name)
		bind_text(&s, ":name", name);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_campaign(&s, &v[used++]);
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		campaign_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

int query_campaign_sources(struct db *db, int64_t id, struct source_row **out, size_t *n,
			   struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SOURCES), "read the stored recipe", e);
	struct source_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":id", id);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct source_row){
			.name = col_text(&s, "name"),
			.path = col_text(&s, "path"),
			.text = col_text(&s, "text"),
			.hash = col_text(&s, "hash"),
		};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		source_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

int query_campaign_state(struct db *db, int64_t id, enum campaign_state state, const char *reason,
			 int64_t ended_us, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(STATE), "store the campaign's state", e);
	int rc;

	bind_text(&s, ":state", campaign_state_name(state));
	bind_text(&s, ":reason", reason);
	bind_opt(&s, ":ended", ended_us);
	bind_i64(&s, ":id", id);
	while (stmt_row(&s))
		;
	if (s.rc == 0 && db_changed(db) == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no campaign %lld", (long long)id);
	rc = stmt_close(&s);
	return rc;
}

int query_campaign_resume(struct db *db, int64_t id, int64_t trials, double node_s, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(RESUME), "resume the campaign", e);

	bind_i64(&s, ":trials", trials);
	bind_real(&s, ":node_s", node_s);
	bind_i64(&s, ":id", id);
	while (stmt_row(&s))
		;
	if (s.rc == 0 && db_changed(db) == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no campaign %lld", (long long)id);
	return stmt_close(&s);
}

int query_campaign_deadline(struct db *db, int64_t id, int64_t deadline_us, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(DEADLINE), "store the campaign's deadline", e);

	bind_opt(&s, ":deadline", deadline_us);
	bind_i64(&s, ":id", id);
	while (stmt_row(&s))
		;
	return stmt_close(&s);
}

void campaign_row_done(struct campaign_row *c)
{
	if (!c)
		return;
	free(c->name);
	free(c->recipe_path);
	free(c->user);
	free(c->recipe_hash);
	free(c->scheduler);
	free(c->reason);
	free(c->env_json);
	*c = (struct campaign_row){0};
}

void campaign_rows_free(struct campaign_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		campaign_row_done(&v[i]);
	free(v);
}

void source_rows_free(struct source_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].path);
		free(v[i].text);
		free(v[i].hash);
	}
	free(v);
}
