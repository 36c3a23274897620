/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening: what becomes of each kind of file, and what is said about it. */
#include "tests/unit/store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

/* A directory with the path of a database in it. */
struct home {
	char *dir, *path;
};

static struct home home_new(void)
{
	struct home p = {.dir = scratch_new()};

	p.path = fs_join(p.dir, "fettle.db");
	return p;
}

static void home_free(struct home *p)
{
	scratch_free(&p->dir);
	free(p->path);
}
#define _cleanup_home_ __attribute__((cleanup(home_free)))

static struct db *open_ok(const char *path, enum db_mode mode)
{
	struct err e = {0};
	struct db *db = NULL;

	assert_ok(db_open(path, mode, NULL, &db, &e));
	return db;
}

static void refused(const char *path, enum db_mode mode, enum err_code code, const char *words)
{
	struct err e = {0};
	struct db *db = NULL;

	assert_int_equal(db_open(path, mode, NULL, &db, &e), -(int)code);
	assert_null(db);
	assert_contains(e.text, path);
	assert_contains(e.text, words);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void raw(const char *path, const char *sql)
{
	sqlite3 *h = NULL;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
}

/* -- fresh ----------------------------------------------------------------------------------- */

static void fresh_file_gets_the_newest_schema(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct clock_virtual v = {.utc_us = 1700000000000000};
	struct clock c = clock_virtual_of(&v);
	struct err e = {0};
	struct db *db = NULL;
	char *upgrade, *want;
	int version = -1;

	(void)state;
	assert_ok(db_open(p.path, DB_CREATE, &c, &db, &e));
	assert_ok(db_version(db, &version, &e));
	assert_int_equal(version, db_migration_count);
	upgrade = store_text(db,
			     "SELECT at_us || ' ' || from_version || ' ' || to_version || ' ' || "
			     "(length(program_version) > 0) FROM schema_upgrade");
	want = xasprintf("1700000000000000 0 %d 1", db_migration_count);
	assert_string_equal(upgrade, want);
	free(upgrade);
	free(want);
	assert_int_equal(store_count(db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(store_count(db, "PRAGMA synchronous"), 2);
	if (sqlite3_libversion_number() >= 3031000) /* older ones trust it and have no switch */
		assert_int_equal(store_count(db, "PRAGMA trusted_schema"), 0);
	assert_int_equal(store_count(db, "PRAGMA cell_size_check"), 1);
	upgrade = store_text(db, "PRAGMA journal_mode");
	assert_string_equal(upgrade, "wal");
	free(upgrade);
	db_close(db);
	/* nothing to copy before the first schema */
	upgrade = xasprintf("%s.before-0", p.path);
	assert_false(fs_exists(upgrade));
	free(upgrade);
}

static void opening_again_changes_nothing(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct db *db = open_ok(p.path, DB_CREATE);
	int64_t commits, statements;

	(void)state;
	db_close(db);
	for (int i = 0; i < 3; i++) {
		db = open_ok(p.path, i % 2 ? DB_WRITE : DB_CREATE);
		db_counters(db, &commits, &statements);
		assert_int_equal(commits, 0);
		assert_int_equal(store_count(db, "SELECT count(*) FROM schema_upgrade"), 1);
		db_close(db);
	}
}

static void file_is_private_whatever_the_umask(void **state)
{
	static const mode_t masks[] = {0, 022, 0777};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
		_cleanup_home_ struct home p = home_new();
		_cleanup_free_ char *wal = xasprintf("%s-wal", p.path);
		mode_t old = umask(masks[i]);
		struct store st = store_new(p.path);

		assert_int_equal(mode_of(p.path), 0600);
		assert_int_equal(mode_of(wal), 0600);
		db_close(st.db);
		umask(old);
	}
}

static void a_group_readable_file_stays_so(void **state)
{
	_cleanup_home_ struct home p = home_new();

	(void)state;
	db_close(open_ok(p.path, DB_CREATE));
	assert_int_equal(chmod(p.path, 0640), 0);
	db_close(open_ok(p.path, DB_CREATE));
	assert_int_equal(mode_of(p.path), 0640);
}

static void memory_needs_no_file(void **state)
{
	struct store st = store_new(":memory:");

	(void)state;
	store_run(&st, st.block, st.arm, 2);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM trial"), 5);
	db_close(st.db);
	assert_false(fs_exists(":memory:"));
	db_close(NULL);
}

/* -- what is no database of ours ------------------------------------------------------------- */

static void absent_files_and_directories(void **state)
{
	_cleanup_home_ struct home p = home_new();
	_cleanup_free_ char *deep = xasprintf("%s/no/fettle.db", p.dir);

	(void)state;
	refused(p.path, DB_WRITE, ERR_NOT_FOUND, "does not exist");
	refused(p.path, DB_READ, ERR_NOT_FOUND, "does not exist");
	assert_false(fs_exists(p.path));
	refused(deep, DB_CREATE, ERR_NOT_FOUND, "there is no directory");
	refused(p.dir, DB_CREATE, ERR_DB, "is a directory");
	refused("/dev/null", DB_WRITE, ERR_DB, "no regular file");
}

static void an_empty_file_is_taken_by_writers(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct err e = {0};

	(void)state;
	/* a crash between the creation of the file and the first transaction */
	assert_ok(fs_write_atomic(p.path, "", 0, 0600, &e));
	refused(p.path, DB_READ, ERR_STATE, "has schema 0");
	db_close(open_ok(p.path, DB_WRITE));
	db_close(open_ok(p.path, DB_READ));
}

static void newer_schema_is_refused_with_both_numbers(void **state)
{
	_cleanup_home_ struct home p = home_new();
	_cleanup_free_ char *knows = xasprintf("knows %d", db_migration_count);

	(void)state;
	db_close(open_ok(p.path, DB_CREATE));
	raw(p.path, "PRAGMA user_version=99");
	refused(p.path, DB_CREATE, ERR_DB, "has schema 99");
	refused(p.path, DB_WRITE, ERR_DB, knows);
	refused(p.path, DB_READ, ERR_DB, "use a newer fettle");
}

static void other_programs_databases_are_left_alone(void **state)
{
	_cleanup_home_ struct home p = home_new();

	(void)state;
	raw(p.path, "CREATE TABLE bookmarks(url)");
	refused(p.path, DB_CREATE, ERR_DB, "another program");
	refused(p.path, DB_READ, ERR_DB, "another program");
	raw(p.path, "DROP TABLE bookmarks; PRAGMA user_version=5");
	refused(p.path, DB_CREATE, ERR_DB, "another program");
	raw(p.path, "PRAGMA user_version=0; PRAGMA application_id=77");
	refused(p.path, DB_WRITE, ERR_DB, "another program");
}

static void a_text_file_is_no_database(void **state)
{
	_cleanup_home_ struct home p = home_new();
	static const char
		text[] = "return campaign { name = \"x\" } -- a recipe in the wrong place, "
			 "long enough to be a header of a hundred bytes and more";
	struct err e = {0};
	struct buf b = {0};

	(void)state;
	assert_ok(fs_write_atomic(p.path, text, strlen(text), 0600, &e));
	refused(p.path, DB_CREATE, ERR_DB, "it is no SQLite file: move it away");
	refused(p.path, DB_READ, ERR_DB, "it is no SQLite file");
	assert_ok(fs_read(p.path, 4096, &b, &e));
	assert_string_equal(b.data, text);
	buf_free(&b);
}

/* Bytes in the middle of the file overwritten: told as damage, never a crash. */
static void damaged_pages_are_told(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct store st = store_new(p.path);
	struct campaign_row *v = NULL;
	struct err e = {0};
	struct db *db = NULL;
	size_t n = 0;
	FILE *f;
	int rc;

	(void)state;
	db_close(st.db);
	f = fopen(p.path, "r+");
	assert_non_null(f);
	for (long at = 4096; at < fs_size(p.path); at += 4096) {
		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		for (int i = 0; i < 4096; i++)
			fputc(0xa5, f);
	}
	assert_int_equal(fclose(f), 0);
	rc = db_open(p.path, DB_READ, NULL, &db, &e);
	if (rc == 0)
		rc = query_campaign_list(db, NULL, &v, &n, &e);
	assert_int_equal(rc, -ERR_DB);
	assert_contains(e.text, p.path);
	assert_contains(e.text, "damaged");
	db_close(db);
}

/* -- permissions ----------------------------------------------------------------------------- */

/* Root may do everything, so the tests of permissions run in a child without that right. cmocka
 * cannot tell from there: the child's status is what counts. */
static void as_nobody(void (*f)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
			_exit(90);
		f(path);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void must(bool ok, const char *what, const struct err *e)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, e->text);
	_exit(1);
}

/* Give the place to nobody, with these modes. */
static void give(const struct home *p, mode_t dir, mode_t file)
{
	if (geteuid() == 0) {
		assert_int_equal(chown(p->dir, NOBODY, NOBODY), 0);
		assert_int_equal(chown(p->path, NOBODY, NOBODY), 0);
	}
	assert_int_equal(chmod(p->path, file), 0);
	assert_int_equal(chmod(p->dir, dir), 0);
}

static void reads_read_only_copy(const char *path)
{
	struct err e = {0};
	struct db *db = NULL;
	struct campaign_row *v = NULL;
	size_t n = 0;

	must(db_open(path, DB_READ, NULL, &db, &e) == 0, "open a read-only copy", &e);
	must(query_campaign_list(db, NULL, &v, &n, &e) == 0 && n == 1, "read it", &e);
	campaign_rows_free(v, n);
	db_close(db);
}

static void refuses_to_write_there(const char *path)
{
	struct err e = {0};
	struct db *db = NULL;

	must(db_open(path, DB_WRITE, NULL, &db, &e) == -ERR_DB, "write to a read-only copy", &e);
	must(strstr(e.text, path) && strstr(e.text, "writable"), "say what to do", &e);
}

static void refuses_a_pending_wal(const char *path)
{
	struct err e = {0};
	struct db *db = NULL;

	must(db_open(path, DB_READ, NULL, &db, &e) == -ERR_DB, "open half a copy", &e);
	must(strstr(e.text, "-wal") && strstr(e.text, "copy both files"), "say what to do", &e);
}

static void refuses_unreadable(const char *path)
{
	struct err e = {0};
	struct db *db = NULL;

	must(db_open(path, DB_READ, NULL, &db, &e) == -ERR_DB, "read without permission", &e);
	must(strstr(e.text, path) && strstr(e.text, "must be readable"), "say what to do", &e);
}

static void refuses_to_create(const char *path)
{
	struct err e = {0};
	struct db *db = NULL;

	must(db_open(path, DB_CREATE, NULL, &db, &e) == -ERR_DB, "create in a read-only place", &e);
	must(strstr(e.text, path) && strstr(e.text, "ermission denied"), "say why", &e);
}

static void a_read_only_copy_can_be_viewed(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct store st = store_new(p.path);

	(void)state;
	db_close(st.db); /* the last one to close: the WAL is applied and gone */
	give(&p, 0555, 0444);
	as_nobody(reads_read_only_copy, p.path);
	as_nobody(refuses_to_write_there, p.path);
	assert_int_equal(chmod(p.dir, 0755), 0);
	as_nobody(refuses_to_write_there, p.path); /* the file alone is read-only */
	assert_int_equal(chmod(p.path, 0), 0);
	as_nobody(refuses_unreadable, p.path);
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(chmod(p.dir, 0555), 0);
	as_nobody(refuses_to_create, p.path);
	chmod(p.dir, 0755);
}

/* What `cp -r` of a live workspace to a read-only place gives: without the WAL some of it is
 * missing, and that must not pass for the whole. */
static void half_a_copy_is_refused(void **state)
{
	_cleanup_home_ struct home live = home_new();
	_cleanup_home_ struct home copy = home_new();
	_cleanup_free_ char *wal = xasprintf("%s-wal", live.path);
	_cleanup_free_ char *wal_copy = xasprintf("%s-wal", copy.path);
	struct store st = store_new(live.path);
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	assert_ok(fs_read(live.path, 1 << 24, &b, &e));
	assert_ok(fs_write_atomic(copy.path, b.data, b.len, 0444, &e));
	buf_clear(&b);
	assert_ok(fs_read(wal, 1 << 24, &b, &e));
	assert_true(b.len > 0);
	assert_ok(fs_write_atomic(wal_copy, b.data, b.len, 0444, &e));
	buf_free(&b);
	db_close(st.db);
	give(&copy, 0555, 0444);
	as_nobody(refuses_a_pending_wal, copy.path);
	chmod(copy.dir, 0755);
}

/* -- several processes ----------------------------------------------------------------------- */

static void a_viewer_reads_while_a_writer_lives(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct store st = store_new(p.path);
	struct db *viewer = open_ok(p.path, DB_READ);
	struct err e = {0};

	(void)state;
	assert_int_equal(store_count(viewer, "SELECT count(*) FROM campaign"), 1);
	store_campaign(st.db, "second");
	assert_int_equal(store_count(viewer, "SELECT count(*) FROM campaign"), 2);
	assert_ok(db_begin(st.db, "write", &e));
	assert_ok(query_event_add(st.db, st.campaign, 1, "stopped", "", &e));
	assert_int_equal(store_count(viewer, "SELECT count(*) FROM event"), 0);
	assert_ok(db_commit(st.db, &e));
	assert_int_equal(store_count(viewer, "SELECT count(*) FROM event"), 1);
	/* and it cannot write */
	assert_int_equal(query_event_add(viewer, st.campaign, 1, "stopped", "", &e), -ERR_DB);
	assert_contains(e.text, "readonly");
	db_close(viewer);
	db_close(st.db);
}

static void a_second_writer_waits_then_gets_a_temporary_error(void **state)
{
	_cleanup_home_ struct home p = home_new();
	struct store st = store_new(p.path);
	struct db *other = open_ok(p.path, DB_WRITE);
	struct err e = {0};

	(void)state;
	assert_ok(db_begin(st.db, "write", &e));
	assert_int_equal(sqlite3_busy_timeout(db_handle(other), 0),
			 SQLITE_OK); /* no need to wait here */
	assert_int_equal(db_begin(other, "write too", &e), -ERR_TEMP);
	assert_contains(e.text, "write too");
	assert_contains(e.text, "another process writes to it");
	db_rollback(st.db);
	assert_ok(db_begin(other, "write too", &e));
	assert_ok(db_commit(other, &e));
	db_close(other);
	db_close(st.db);
}

/* -- transactions, counters, copies ---------------------------------------------------------- */

static void transactions_do_not_nest(void **state)
{
	struct store st = store_new(":memory:");
	struct err e = {0};

	(void)state;
	assert_int_equal(db_commit(st.db, &e), -ERR_STATE);
	db_rollback(st.db);
	assert_ok(db_begin(st.db, "outer", &e));
	assert_int_equal(db_begin(st.db, "inner", &e), -ERR_STATE);
	assert_contains(e.text, "inner: a transaction is open already");
	store_config(st.db, 2); /* several writes join the open transaction */
	db_rollback(st.db);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM config"), 2);
	db_rollback(NULL);
	db_close(st.db);
}

static void commits_are_counted(void **state)
{
	struct store st = store_new(":memory:");
	int64_t before, after, statements, more;
	struct err e = {0};

	(void)state;
	db_counters(st.db, &before, &statements);
	assert_ok(db_begin(st.db, "a few", &e));
	for (int i = 0; i < 5; i++)
		assert_ok(query_event_add(st.db, st.campaign, i, "lint", "x", &e));
	assert_ok(db_commit(st.db, &e));
	db_counters(st.db, &after, &more);
	assert_int_equal(after - before, 1);
	assert_int_equal(more - statements, 7);
	assert_ok(query_event_add(st.db, st.campaign, 1, "lint", "y", &e));
	db_counters(st.db, &after, &more);
	assert_int_equal(after - before, 2);
	db_close(st.db);
}

static void a_backup_is_one_private_file(void **state)
{
	_cleanup_home_ struct home p = home_new();
	_cleanup_free_ char *to = fs_join(p.dir, "copy.db");
	_cleanup_free_ char *wal = fs_join(p.dir, "copy.db-wal");
	_cleanup_free_ char *nowhere = fs_join(p.dir, "no/copy.db");
	struct store st = store_new(p.path);
	struct err e = {0};
	struct db *copy;
	char *text;

	(void)state;
	assert_ok(db_backup(st.db, to, &e));
	assert_int_equal(mode_of(to), 0600);
	assert_false(fs_exists(wal));
	assert_int_equal(db_backup(st.db, to, &e), -ERR_STATE);
	assert_contains(e.text, "overwrites nothing");
	assert_int_equal(db_backup(st.db, nowhere, &e), -ERR_NOT_FOUND);
	copy = open_ok(to, DB_READ);
	assert_int_equal(store_count(copy, "SELECT count(*) FROM arm"), 2);
	text = store_text(copy, "PRAGMA integrity_check");
	assert_string_equal(text, "ok");
	free(text);
	db_close(copy);
	db_close(st.db);
}

static void statements_tell_their_own_faults(void **state)
{
	struct store st = store_new(":memory:");
	struct err e = {0};
	struct stmt s = stmt_open(st.db, "SELECT 1 AS one", "test", &e);

	(void)state;
	bind_i64(&s, ":nobody", 1);
	assert_false(stmt_row(&s));
	assert_int_equal(stmt_close(&s), -ERR_DB);
	assert_contains(e.text, "no parameter :nobody");
	s = stmt_open(st.db, "SELECT 5000000000 AS big, NULL AS none", "test", &e);
	assert_true(stmt_row(&s));
	assert_true(col_i64(&s, "big") == 5000000000);
	assert_true(col_null(&s, "none"));
	assert_null(col_peek(&s, "none"));
	assert_true(isnan(col_real(&s, "none")));
	assert_int_equal(col_int(&s, "big"), 0);
	assert_int_equal(stmt_close(&s), -ERR_STATE);
	assert_contains(e.text, "out of range: 5000000000");
	s = stmt_open(st.db, "SELECT 1 AS one, 2 AS two", "test", &e);
	assert_true(stmt_row(&s));
	assert_int_equal(col_i64(&s, "two"), 2);
	assert_int_equal(col_i64(&s, "one"), 1);
	assert_int_equal(col_i64(&s, "three"), 0);
	assert_int_equal(stmt_close(&s), -ERR_DB);
	assert_contains(e.text, "no column three");
	s = stmt_open(st.db, "SELECT nonsense", "test", &e);
	assert_int_equal(stmt_run(&s), -ERR_DB);
	s = stmt_open(st.db, "SELECT 1 AS one", "test", NULL); /* without a place for the text */
	bind_i64(&s, ":nobody", 1);
	assert_int_equal(stmt_run(&s), -ERR_DB);
	db_close(st.db);
}

/* A statement that is used inside its own loop gets a second life, not the same one. */
static void a_busy_statement_can_be_used_again(void **state)
{
	static const char sql[] = "SELECT id FROM arm ORDER BY id";
	struct store st = store_new(":memory:");
	struct err e = {0};
	struct stmt outer = stmt_open(st.db, sql, "outer", &e);
	int pairs = 0;

	(void)state;
	while (stmt_row(&outer)) {
		struct stmt inner = stmt_open(st.db, sql, "inner", &e);

		while (stmt_row(&inner))
			pairs++;
		assert_ok(stmt_close(&inner));
	}
	assert_ok(stmt_close(&outer));
	assert_int_equal(pairs, 4);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fresh_file_gets_the_newest_schema),
		cmocka_unit_test(opening_again_changes_nothing),
		cmocka_unit_test(file_is_private_whatever_the_umask),
		cmocka_unit_test(a_group_readable_file_stays_so),
		cmocka_unit_test(memory_needs_no_file),
		cmocka_unit_test(absent_files_and_directories),
		cmocka_unit_test(an_empty_file_is_taken_by_writers),
		cmocka_unit_test(newer_schema_is_refused_with_both_numbers),
		cmocka_unit_test(other_programs_databases_are_left_alone),
		cmocka_unit_test(a_text_file_is_no_database),
		cmocka_unit_test(damaged_pages_are_told),
		cmocka_unit_test(a_read_only_copy_can_be_viewed),
		cmocka_unit_test(half_a_copy_is_refused),
		cmocka_unit_test(a_viewer_reads_while_a_writer_lives),
		cmocka_unit_test(a_second_writer_waits_then_gets_a_temporary_error),
		cmocka_unit_test(transactions_do_not_nest),
		cmocka_unit_test(commits_are_counted),
		cmocka_unit_test(a_backup_is_one_private_file),
		cmocka_unit_test(statements_tell_their_own_faults),
		cmocka_unit_test(a_busy_statement_can_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
