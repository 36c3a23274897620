/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The schema itself: kept as a fixture, typed in every column, fit for SQLite 3.26, and with an
 * index for every statement of the query files. */
#include "tests/unit/store.h"

#include <ctype.h>
#include <glob.h>

#include "experiments/derive.h"

#define FIXTURE "tests/fixtures/db/schema-%d.sql"
#define HEAD    "experiments/schema.sql"
#define SCHEMA  "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"

static const char *const *const sql_tables[] = {
	query_sql_campaign, query_sql_lease,       query_sql_config,      query_sql_hypothesis,
	query_sql_stage,    query_sql_attempt,     query_sql_ingest,      query_sql_values,
	query_sql_verdict,  query_sql_report,      query_sql_ablation,    query_sql_jobs,
	query_sql_hosts,    query_sql_rung,        query_sql_environment, query_sql_series,
	query_sql_canary,   query_sql_observation, query_sql_regression,  query_sql_night,
	query_sql_glance,
};

typedef void (*row_f)(sqlite3_stmt *s, void *ctx);

static void each_row(struct db *db, const char *sql, row_f f, void *ctx)
{
	sqlite3_stmt *s = NULL;
	int rc;

	if (sqlite3_prepare_v2(db_handle(db), sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db_handle(db)));
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		f(s, ctx);
	assert_int_equal(rc, SQLITE_DONE);
	sqlite3_finalize(s);
}

static const char *text_of(sqlite3_stmt *s, int i)
{
	return (const char *)sqlite3_column_text(s, i);
}

/* -- fixtures -------------------------------------------------------------------------------- */

static void put_statement(sqlite3_stmt *s, void *ctx)
{
	buf_printf(ctx, "%s;\n", text_of(s, 0));
}

static char *file_text(const char *path)
{
	struct buf b = {0};
	struct err e = {0};

	assert_ok(fs_read(path, 1 << 20, &b, &e));
	return buf_take(&b);
}

static void file_put(const char *path, const char *text)
{
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0644, &e));
}

/* A file as the SQL of a schema left it. */
static void make_old(const char *path, const char *schema, int version)
{
	_cleanup_free_ char *marks = xasprintf("PRAGMA application_id=1718908012;"
					       "PRAGMA user_version=%d",
					       version);
	sqlite3 *h = NULL;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, schema, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, marks, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
}

/* A database that went through all the migrations. */
static struct db *migrated(const char *dir)
{
	_cleanup_free_ char *path = fs_join(dir, "fettle.db");
	struct err e = {0};
	struct db *db = NULL;

	make_old(path, db_migrations[0].sql, 1);
	assert_ok(db_open(path, DB_WRITE, NULL, &db, &e));
	return db;
}

static char *schema_text(struct db *db)
{
	struct buf b = {0};

	buf_printf(&b, "-- SPDX-License-Identifier: GPL-2.0-or-later\n"
		       "-- What the migrations amount to, made of them by schema_test: a new "
		       "database executes it in their place.\n"
		       "PRAGMA application_id=1718908012;\n");
	each_row(db, SCHEMA " ORDER BY rowid", put_statement, &b);
	return buf_take(&b);
}

/* A released schema never changes: the difference belongs into a new migration. FETTLE_UPDATE=1
 * writes the newest schema, and keeps the one before as a fixture. */
static void schema_is_what_the_migrations_make(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *before = xasprintf(FIXTURE, db_migration_count - 1);
	_cleanup_free_ char *kept = file_text(HEAD);
	struct db *db = migrated(dir);
	_cleanup_free_ char *is = schema_text(db);

	(void)state;
	db_close(db);
	if (getenv("FETTLE_UPDATE")) {
		if (!fs_exists(before))
			file_put(before, kept);
		file_put(HEAD, is);
	} else {
		assert_string_equal(is, kept);
	}
}

static void put_row(sqlite3_stmt *s, void *ctx)
{
	for (int i = 0; i < sqlite3_column_count(s); i++)
		buf_printf(ctx, "%s|", text_of(s, i) ? text_of(s, i) : "NULL");
	buf_char(ctx, '\n');
}

struct dump {
	struct db *db;
	struct buf text;
};

static void put_table(sqlite3_stmt *s, void *ctx)
{
	struct dump *d = ctx;
	_cleanup_free_ char *sql = xasprintf("SELECT * FROM \"%s\"", text_of(s, 0));

	buf_printf(&d->text, "%s\n", sql);
	each_row(d->db, sql, put_row, &d->text);
}

/* Every object in its order, the marks, every row; schema_upgrade tells how it came to be. */
static char *dump(struct db *db)
{
	struct dump d = {.db = db};

	each_row(db, "PRAGMA user_version", put_row, &d.text);
	each_row(db, "PRAGMA application_id", put_row, &d.text);
	each_row(db, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid", put_row,
		 &d.text);
	each_row(db,
		 "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_upgrade' "
		 "ORDER BY rowid",
		 put_table, &d);
	return buf_take(&d.text);
}

static void a_new_database_is_as_a_migrated_one(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct db *old = migrated(dir);
	struct db *new = NULL;
	struct err e = {0};
	char *want, *is;

	(void)state;
	assert_ok(db_open(":memory:", DB_CREATE, NULL, &new, &e));
	want = dump(old);
	is = dump(new);
	assert_string_equal(is, want);
	free(want);
	free(is);
	db_close(old);
	db_close(new);
}

static void every_released_schema_opens(void **state)
{
	(void)state;
	for (int v = 1; v <= db_migration_count; v++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *path = fs_join(dir, "fettle.db");
		_cleanup_free_ char *fixture = xasprintf(FIXTURE, v);
		_cleanup_free_ char *schema = file_text(v == db_migration_count ? HEAD : fixture);
		struct err e = {0};
		struct db *db = NULL;
		int now = 0;

		make_old(path, schema, v);
		assert_ok(db_open(path, DB_WRITE, NULL, &db, &e));
		assert_ok(db_version(db, &now, &e));
		assert_int_equal(now, db_migration_count);
		db_close(db);
	}
}

/* -- SQLite 3.26 ----------------------------------------------------------------------------- */

/* What SQLite learnt after 3.26.0 of RHEL 8 (RHEL 9 has 3.34.1), and what it may be built without.
 * A word that stands in a schema makes the whole file unreadable there, with "malformed database
 * schema". */
static const char *const too_new[] = {
	"STRICT",       /* 3.37 */
	"RETURNING",    /* 3.35 */
	"GENERATED",    /* 3.31 */
	"MATERIALIZED", /* 3.35 */
	"UPDATE FROM",  /* 3.33 */
	"DROP COLUMN",  /* 3.35 */
	"VACUUM INTO",  /* 3.27 */
	"NULLS FIRST",  /* 3.30 */
	"NULLS LAST",
	"FILTER (",    /* 3.30 for aggregates */
	"IS DISTINCT", /* 3.39 */
	"IS NOT DISTINCT",
	"RIGHT JOIN", /* 3.39 */
	"FULL JOIN",
	"FULL OUTER",
	"->",          /* 3.38 */
	"JSON",        /* an option of the build before 3.38 */
	"IIF(",        /* 3.32 */
	"UNIXEPOCH(",  /* 3.38 */
	"FORMAT(",     /* 3.38 */
	"CONCAT(",     /* 3.44 */
	"STRING_AGG(", /* 3.44 */
	"SIGN(",       /* 3.35, with all the mathematics */
	"SQRT(",
	"POW(",
	"POWER(",
	"EXP(",
	"LN(",
	"LOG(",
	"LOG10(",
	"LOG2(",
	"CEIL(",
	"FLOOR(",
	"EXCLUDE ", /* 3.28, windows */
	"GROUPS ",
	"TABLE_LIST", /* 3.37, a pragma */
};

/* Upper case, one blank for each run of them, without comments, the words in quotes, and the
 * "_json" of our own column names. */
static char *plain(const char *sql)
{
	struct buf b = {0};
	char last = ' ';

	for (const char *p = sql; *p;) {
		char c = isspace((unsigned char)*p) ? ' ' : (char)toupper((unsigned char)*p);

		if (str_starts(p, "--")) {
			p += strcspn(p, "\n");
		} else if (c == '\'') {
			p += 1 + strcspn(p + 1, "'");
			p += *p != '\0';
		} else if (str_starts(p, "_json")) {
			p += 5;
		} else {
			if (c != ' ' || last != ' ')
				buf_char(&b, c);
			last = c;
			p++;
		}
	}
	return buf_take(&b);
}

static bool word_starts(const char *text, const char *at)
{
	return at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
}

static void check_old_enough(const char *sql)
{
	_cleanup_free_ char *text = plain(sql);

	for (size_t i = 0; i < ARRAY_LEN(too_new); i++) {
		const char *at = text;

		while ((at = strstr(at, too_new[i]))) {
			if (word_starts(text, at))
				fail_msg("SQLite 3.26 does not know \"%s\" in: %s", too_new[i],
					 sql);
			at++;
		}
	}
	/* UPDATE ... FROM, which is two words apart; a subquery's FROM stands in brackets */
	if (strncmp(text, "UPDATE", 6) == 0 && strstr(text, " FROM ") && !strchr(text, '('))
		fail_msg("SQLite 3.26 does not know UPDATE ... FROM: %s", sql);
}

static void check_row_old_enough(sqlite3_stmt *s, void *ctx)
{
	(void)ctx;
	check_old_enough(text_of(s, 0));
}

/* The text of the C string that starts after the quote at p; *end is behind its closing quote. */
static char *c_string(const char *p, const char **end)
{
	struct buf b = {0};

	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		buf_char(&b, *p);
	}
	*end = *p ? p + 1 : p;
	return buf_take(&b);
}

static bool is_sql(const char *s)
{
	static const char *const starts[] = {"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "PRAGMA ",
					     "CREATE ", "ALTER ",  "VACUUM",  "BEGIN",   "WITH "};

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		if (str_starts(s, starts[i]))
			return true;
	}
	return false;
}

/* Statements that stand outside the tables of the query files: those of db.c. */
static size_t check_literals(const char *source)
{
	size_t n = 0;

	for (const char *p = source; *p;) {
		if (p[0] == '/' && p[1] == '*') {
			const char *close = strstr(p, "*/");

			p = close ? close + 2 : p + strlen(p);
		} else if (*p == '\'') {
			p += p[1] == '\\' ? 4 : 3;
		} else if (*p == '"') {
			_cleanup_free_ char *text = c_string(p + 1, &p);

			if (is_sql(text)) {
				check_old_enough(text);
				n++;
			}
		} else {
			p++;
		}
	}
	return n;
}

static void nothing_is_newer_than_3_26(void **state)
{
	struct err e = {0};
	struct db *db = NULL;
	size_t literals = 0;
	glob_t files;

	(void)state;
	assert_ok(db_open(":memory:", DB_CREATE, NULL, &db, &e));
	each_row(db, SCHEMA, check_row_old_enough, NULL);
	db_close(db);
	for (int i = 0; i < db_migration_count; i++)
		check_old_enough(db_migrations[i].sql);
	for (size_t i = 0; i < ARRAY_LEN(sql_tables); i++) {
		for (const char *const *sql = sql_tables[i]; *sql; sql++)
			check_old_enough(*sql);
	}
	assert_int_equal(glob("experiments/db*.c", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct buf b = {0};

		assert_ok(fs_read(files.gl_pathv[i], 1 << 20, &b, &e));
		literals += check_literals(b.data);
		buf_free(&b);
	}
	globfree(&files);
	assert_true(literals > 10);
}

/* -- types ----------------------------------------------------------------------------------- */

struct column {
	char *table, *name, *type;
	bool key;
};

struct columns {
	struct column *v;
	size_t n, cap;
};

static void put_column(sqlite3_stmt *s, void *ctx)
{
	struct columns *c = ctx;

	c->v = xgrow(c->v, c->n, &c->cap, sizeof *c->v);
	c->v[c->n++] = (struct column){
		.table = xstrdup(text_of(s, 0)),
		.name = xstrdup(text_of(s, 1)),
		.type = xstrdup(text_of(s, 2)),
		.key = sqlite3_column_int(s, 3) == 1,
	};
}

static struct columns columns_of(struct db *db)
{
	struct columns c = {0};

	each_row(db,
		 "SELECT m.name, p.name, p.type, p.pk = 1 AND p.type = 'INTEGER' AND m.sql LIKE "
		 "'%INTEGER PRIMARY KEY%' FROM sqlite_master m JOIN pragma_table_info(m.name) p "
		 "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'",
		 put_column, &c);
	assert_true(c.n > 150);
	return c;
}

static void columns_free(struct columns *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].table);
		free(c->v[i].name);
		free(c->v[i].type);
	}
	free(c->v);
}

/* One row at least in every table. */
static struct db *full_store(void)
{
	struct store st = store_new(":memory:");
	struct source_row source = {TEXT("campaign"), TEXT("/c.lua"), TEXT("return {}"), TEXT("0")};
	struct finding_row finding = {.round = 1, .bottleneck = TEXT("storage"), .share = 0.1};
	struct quality_row q = {.slot = -1, .text = TEXT("a finding"), .action = QUALITY_NOTE};
	struct guard_row g = {.metric = TEXT("loss"),
			      .stat = TEXT("last"),
			      .rule = TEXT("margin"),
			      .equal = TEXT("step"),
			      .state = TEXT("passed")};
	struct verdict_row v = {.stage = st.stage,
				.hypothesis = st.hypothesis,
				.final_look = true,
				.outcome = TEXT("accepted"),
				.at_us = 1};
	struct fix_row fix = {.campaign = st.campaign,
			      .config = st.config[1],
			      .stage = st.stage,
			      .state = TEXT("validated")};
	struct campaign_row c = {.name = TEXT("b"),
				 .recipe_path = TEXT("p"),
				 .recipe_hash = TEXT("h"),
				 .scheduler = TEXT("local"),
				 .alpha = 0.05};
	struct lease lease = {.host = "h", .pid = 1, .heartbeat_us = 1};
	struct ablation_row ablation = {.arm = st.arm[1], .knobs = TEXT("k"), .n = 4};
	struct err e = {0};
	int64_t id;

	assert_ok(query_campaign_create(st.db, &c, &source, 1, &id, &e));
	assert_ok(query_finding_add(st.db, st.campaign, &finding, &e));
	assert_ok(query_lease_take(st.db, st.campaign, &lease, 1, false, &e));
	store_run(&st, st.block, st.arm, 2);
	assert_ok(query_verdict_add(st.db, st.campaign, &v, &id, &e));
	g.verdict = id;
	assert_ok(query_guard_add(st.db, &g, &e));
	assert_ok(query_quality_put(st.db, 1, 0, &q, &e));
	assert_ok(query_ablation_add(st.db, &ablation, &e));
	assert_ok(query_fix_put(st.db, &fix, &id, &e));
	g.stage = st.stage;
	assert_ok(query_fix_guard_add(st.db, &g, &e));
	assert_ok(query_event_add(st.db, st.campaign, 1, "resumed", "", &e));
	assert_ok(query_account_put(st.db, 1, &(struct consumed_row){.energy_j = 5}, 1, &e));
	assert_ok(query_rung_add(st.db,
				 &(struct rung_row){.stage = st.stage,
						    .nodes = 2,
						    .tasks_per_node = 8,
						    .n = 3,
						    .est = 0.9,
						    .lo = 0.8,
						    .hi = 1,
						    .total = 0.9,
						    .total_lo = 0.8,
						    .total_hi = 1},
				 &e));
	assert_ok(query_rung_split(
		st.db, st.stage,
		&(struct step_shares){.communication = 0.1, .straggler = 0, .input = 0, .rest = 0},
		&e));
	store_history(&st);
	return st.db;
}

static void refuse_update(struct db *db, const struct column *c, const char *value)
{
	_cleanup_free_ char *sql = xasprintf("UPDATE \"%s\" SET \"%s\" = %s", c->table, c->name,
					     value);
	_cleanup_free_ char *rows = xasprintf("SELECT count(*) FROM \"%s\"", c->table);

	if (store_count(db, rows) == 0)
		fail_msg("the test has no row of %s", c->table);
	if (store_exec(db, sql) != SQLITE_CONSTRAINT_CHECK)
		fail_msg("not refused as it should be: %s: %s", sql, sqlite3_errmsg(db_handle(db)));
}

/* An INTEGER PRIMARY KEY is typed by itself; every other column refuses a BLOB, and numbers a text.
 */
static void every_column_is_typed(void **state)
{
	struct db *db = full_store();
	struct columns c = columns_of(db);

	(void)state;
	assert_int_equal(store_exec(db, "PRAGMA foreign_keys=OFF; DROP TRIGGER verdict_no_update"),
			 SQLITE_OK);
	for (size_t i = 0; i < c.n; i++) {
		if (c.v[i].key)
			continue;
		refuse_update(db, &c.v[i], "x'00ff'");
		if (strcmp(c.v[i].type, "TEXT") != 0)
			refuse_update(db, &c.v[i], "'abc'");
		if (strcmp(c.v[i].type, "INTEGER") == 0)
			refuse_update(db, &c.v[i], "1.5");
	}
	columns_free(&c);
	db_close(db);
}

/* -- words ----------------------------------------------------------------------------------- */

#define WORDS_OF(type)                            \
	static const char *words_of_##type(int i) \
	{                                         \
		return type##_name((enum type)i); \
	}
WORDS_OF(better)
WORDS_OF(knob_class)
WORDS_OF(proof_level)
WORDS_OF(run_mode)
WORDS_OF(stage_kind)
WORDS_OF(arm_role)
WORDS_OF(hypothesis_state)
WORDS_OF(bottleneck)
WORDS_OF(trial_state)
WORDS_OF(attempt_state)
WORDS_OF(slot_kind)
WORDS_OF(campaign_state)
WORDS_OF(verdict_outcome)
WORDS_OF(ablation_outcome)
WORDS_OF(series_source)
WORDS_OF(series_role)
WORDS_OF(change_direction)
WORDS_OF(change_level)
WORDS_OF(regression_kind)
WORDS_OF(regression_state)
WORDS_OF(cause_kind)
WORDS_OF(observation_state)
WORDS_OF(canary_purpose)

static void words_of_the_model_are_the_checks(void **state)
{
	static const struct {
		const char *table, *column;
		const char *(*word)(int);
		const char *more;
	} rows[] = {
		{"campaign", "state", words_of_campaign_state, ""},
		{"campaign", "mode", words_of_run_mode, ""},
		{"hypothesis", "class", words_of_knob_class, ""},
		{"hypothesis", "proof", words_of_proof_level, ""},
		{"hypothesis", "bottleneck", words_of_bottleneck, ""},
		{"hypothesis", "state", words_of_hypothesis_state, ""},
		{"finding", "bottleneck", words_of_bottleneck, ""},
		{"stage", "kind", words_of_stage_kind, ""},
		{"arm", "role", words_of_arm_role, ""},
		{"slot", "kind", words_of_slot_kind, ""},
		{"attempt", "state", words_of_attempt_state, ""},
		{"trial", "kind", words_of_slot_kind, ""},
		{"trial", "state", words_of_trial_state, ""},
		{"effective", "level", words_of_proof_level, ""},
		{"metric_def", "better", words_of_better, ""},
		{"verdict", "outcome", words_of_verdict_outcome, ", 'continue'"},
		{"ablation", "outcome", words_of_ablation_outcome, ""},
		{"series", "source", words_of_series_source, ""},
		{"series", "role", words_of_series_role, ""},
		{"series", "better", words_of_better, ""},
		{"change", "direction", words_of_change_direction, ""},
		{"change", "level", words_of_change_level, ""},
		{"regression", "kind", words_of_regression_kind, ""},
		{"regression", "state", words_of_regression_state, ""},
		{"cause", "kind", words_of_cause_kind, ""},
		{"observation", "state", words_of_observation_state, ""},
		{"canary", "purpose", words_of_canary_purpose, ""},
	};
	struct db *db = full_store();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *query = xasprintf(
			"SELECT replace(replace(replace(sql, char(10), ' '), char(9), ''), 'IN  "
			"(', 'IN (')"
			" FROM sqlite_master WHERE type = 'table' AND name = '%s'",
			rows[i].table);
		_cleanup_free_ char *sql = store_text(db, query);
		struct buf want = {0};

		buf_printf(&want, "CHECK (%s IN (", rows[i].column);
		for (int k = 0; strcmp(rows[i].word(k), "?") != 0; k++)
			buf_printf(&want, "%s'%s'", k > 0 ? ", " : "", rows[i].word(k));
		buf_printf(&want, "%s))", rows[i].more);
		assert_contains(sql, want.data);
		buf_free(&want);
	}
	db_close(db);
}

/* -- plans ----------------------------------------------------------------------------------- */

/* Scans that are meant: lists of all campaigns, series, canary stages, regressions and changes
 * (hundreds); sqlite_sequence has three rows; the others are no tables, what is in them is looked
 * at too. */
static bool scan_is_meant(const char *detail)
{
	static const char *const meant[] = {"campaign",     "series",   "canary",
					    "regression",   "change",   "sqlite_sequence",
					    "CONSTANT ROW", "v_fault",  "v_guard",
					    "(subquery",    "SUBQUERY", "newest",
					    "sums"};

	detail += strlen("SCAN ");
	if (str_starts(detail, "TABLE ")) /* until 3.36 */
		detail += strlen("TABLE ");
	for (size_t i = 0; i < ARRAY_LEN(meant); i++) {
		if (str_starts(detail, meant[i]))
			return true;
	}
	return false;
}

static void check_plan_row(sqlite3_stmt *s, void *ctx)
{
	const char *detail = text_of(s, 3);

	if (strstr(detail, "AUTOMATIC") || (str_starts(detail, "SCAN ") && !scan_is_meant(detail)))
		fail_msg("%s: %s", (const char *)ctx, detail);
}

static void check_plan(struct db *db, const char *sql)
{
	_cleanup_free_ char *explain = xasprintf("EXPLAIN QUERY PLAN %s", sql);

	each_row(db, explain, check_plan_row, TEXT(sql));
}

/* A view is asked for one campaign, series, ...: its first column. */
static void check_view(sqlite3_stmt *s, void *ctx)
{
	_cleanup_free_ char *sql = xasprintf("SELECT * FROM %s WHERE %s = 1", text_of(s, 0),
					     text_of(s, 1));

	check_plan(ctx, sql);
}

static void no_statement_scans_a_table(void **state)
{
	struct db *db = full_store();
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sql_tables); i++) {
		for (const char *const *sql = sql_tables[i]; *sql; sql++, n++)
			check_plan(db, *sql);
	}
	assert_true(n > 60);
	each_row(db,
		 "SELECT v.name, min(c.name) FROM sqlite_master v, pragma_table_info(v.name) c "
		 "WHERE v.type = 'view' AND c.cid = 0 GROUP BY v.name",
		 check_view, db);
	check_plan(db, "SELECT * FROM v_metric WHERE campaign = 1 AND metric = 'loss'");
	db_close(db);
}

/* The table of a query file ends where it seems to: an enum value without text would cut it. */
static void no_table_of_statements_has_a_hole(void **state)
{
	glob_t files;
	size_t in_tables = 0, in_files = 0;
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sql_tables); i++) {
		for (const char *const *sql = sql_tables[i]; *sql; sql++)
			in_tables++;
	}
	assert_int_equal(glob("experiments/query_*.c", 0, NULL, &files), 0);
	assert_int_equal(files.gl_pathc, ARRAY_LEN(sql_tables));
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct buf b = {0};

		assert_ok(fs_read(files.gl_pathv[i], 1 << 20, &b, &e));
		for (const char *p = b.data; (p = strstr(p, "\n\t[")); p++)
			in_files++;
		buf_free(&b);
	}
	globfree(&files);
	assert_int_equal(in_tables, in_files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schema_is_what_the_migrations_make),
		cmocka_unit_test(a_new_database_is_as_a_migrated_one),
		cmocka_unit_test(every_released_schema_opens),
		cmocka_unit_test(nothing_is_newer_than_3_26),
		cmocka_unit_test(every_column_is_typed),
		cmocka_unit_test(words_of_the_model_are_the_checks),
		cmocka_unit_test(no_statement_scans_a_table),
		cmocka_unit_test(no_table_of_statements_has_a_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
