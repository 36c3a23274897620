/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <string.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

enum { FIND, PUT, SETTING_PUT, GET, SETTINGS };
const char *const query_sql_config[] = {
	[FIND] = "SELECT id FROM config WHERE hash = :hash",
	[PUT] = "INSERT INTO config(hash, argv_json, env_json) VALUES (:hash, :argv, :env)",
	[SETTING_PUT] = "INSERT INTO setting(config, knob, value) VALUES (:config, :knob, :value)",
	[GET] = "SELECT hash, argv_json, env_json FROM config WHERE id = :id",
	[SETTINGS] = "SELECT knob, value FROM setting WHERE config = :id ORDER BY knob",
	NULL,
};
#define SQL(which) query_sql_config[which]

static char *argv_json(const struct strv *argv)
{
	struct json *j = json_array();
	char *text;

	for (size_t i = 0; i < argv->n; i++)
		json_add_text(j, argv->v[i]);
	text = json_print(j, false);
	json_free(j);
	return text;
}

static char *env_json(const struct kvs *env)
{
	struct json *j = json_object();
	char *text;

	for (size_t i = 0; i < env->n; i++)
		json_set_text(j, env->v[i].key, env->v[i].value);
	text = json_print(j, false);
	json_free(j);
	return text;
}

static int find(struct db *db, const char *hash, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(FIND), "look for the configuration", e);

	*id = 0;
	bind_text(&s, ":hash", hash);
	if (stmt_row(&s))
		*id = col_i64(&s, "id");
	return stmt_close(&s);
}

static int put_row(struct db *db, const struct config *c, int64_t *id, struct err *e)
{
	_cleanup_free_ char *argv = argv_json(&c->argv);
	_cleanup_free_ char *env = env_json(&c->env);
	struct stmt s = stmt_open(db, SQL(PUT), "store the configuration", e);
	int rc;

	bind_text(&s, ":hash", c->hash);
	bind_text(&s, ":argv", argv);
	bind_text(&s, ":env", env);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

static int put(struct db *db, const struct config *c, int64_t *id, struct err *e)
{
	int rc = find(db, c->hash, id, e);

	if (rc < 0 || *id > 0)
		return rc;
	rc = put_row(db, c, id, e);
	for (size_t i = 0; i < c->settings.n && rc == 0; i++) {
		struct stmt s = stmt_open(db, SQL(SETTING_PUT), "store the settings", e);

		bind_i64(&s, ":config", *id);
		bind_text(&s, ":knob", c->settings.v[i].key);
		bind_text(&s, ":value", c->settings.v[i].value);
		rc = stmt_run(&s);
	}
	return rc;
}

int query_config_put(struct db *db, const struct config *c, int64_t *id, struct err *e)
{
	int64_t found = 0;
	bool own;
	int rc = db_enter(db, "store a configuration", &own, e);

	if (rc < 0)
		return rc;
	rc = db_leave(db, own, put(db, c, &found, e), e);
	if (rc == 0)
		*id = found;
	return rc;
}

static int read_argv(const char *text, struct strv *out, struct err *e)
{
	struct json *j;
	int rc = json_parse("config.argv_json", text, strlen(text), &j, e);

	if (rc < 0)
		return rc;
	for (const struct json *a = json_first(j); a; a = json_next(a))
		strv_add(out, json_text(a, ""));
	json_free(j);
	return 0;
}

static int read_env(const char *text, struct kvs *out, struct err *e)
{
	struct json *j;
	int rc = json_parse("config.env_json", text, strlen(text), &j, e);

	if (rc < 0)
		return rc;
	for (const struct json *m = json_first(j); m; m = json_next(m))
		kvs_set(out, json_key(m), json_text(m, NULL));
	json_free(j);
	return 0;
}

static int get_row(struct db *db, int64_t id, struct config *c, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read the configuration", e);

	bind_i64(&s, ":id", id);
	if (stmt_row(&s)) {
		const char *argv, *env;

		str_copy(c->hash, sizeof c->hash, col_peek(&s, "hash"));
		argv = col_peek(&s, "argv_json");
		env = col_peek(&s, "env_json");
		if (s.rc == 0)
			s.rc = read_argv(argv, &c->argv, e);
		if (s.rc == 0)
			s.rc = read_env(env, &c->env, e);
	} else if (s.rc == 0) {
		stmt_fail(&s, ERR_NOT_FOUND, "there is no configuration %lld", (long long)id);
	}
	return stmt_close(&s);
}

static int get_settings(struct db *db, int64_t id, struct config *c, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SETTINGS), "read the settings", e);

	bind_i64(&s, ":id", id);
	while (stmt_row(&s)) {
		const char *knob = col_peek(&s, "knob");

		kvs_set(&c->settings, knob, col_peek(&s, "value"));
	}
	return stmt_close(&s);
}

int query_config_get(struct db *db, int64_t id, struct config *out, struct err *e)
{
	struct config c = {0};
	int rc = get_row(db, id, &c, e);

	if (rc == 0)
		rc = get_settings(db, id, &c, e);
	if (rc < 0) {
		config_done(&c);
		return rc;
	}
	*out = c;
	return 0;
}
