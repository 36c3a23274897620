/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Upgrades that have not happened yet, and file systems that are not here: db.c is compiled in with
 * migrations of the test's own and with a network file system that is made of words.
 */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>

#include "experiments/db.h"
#include "experiments/db_priv.h"

static const struct db_migration *migrations;
static int migration_count;

enum locks { LOCKS_WORK, LOCKS_FAIL, LOCKS_EXCLUDE_NOBODY };
static bool on_network;
static enum locks locks;
static void (*before_upgrade)(const char *dir); /* called between the first look and the upgrade */

static bool asked_for_network(const char *dir)
{
	if (before_upgrade)
		before_upgrade(dir);
	return on_network;
}

static int lock_call(int fd, int cmd, struct flock *l)
{
	switch (locks) {
	case LOCKS_WORK:
		break;
	case LOCKS_FAIL:
		errno = ENOLCK;
		return -1;
	case LOCKS_EXCLUDE_NOBODY:
		return 0;
	}
	return fcntl(fd, cmd, l);
}

#define db_schema          (migrations[0].sql)
#define db_migrations      migrations
#define db_migration_count migration_count
#define fs_is_network(dir) asked_for_network(dir)
#define fcntl(fd, cmd, l)  lock_call(fd, cmd, l)
#include "experiments/db.c"

#define FIRST                                                                                   \
	"PRAGMA application_id=1718908012;"                                                     \
	"CREATE TABLE schema_upgrade(id INTEGER PRIMARY KEY, at_us, from_version, to_version, " \
	"program_version);"                                                                     \
	"CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);"                               \
	"CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL "                   \
	"REFERENCES parent(id) ON DELETE CASCADE);"
/* A table is rebuilt as SQLite's manual says. With foreign keys on, dropping the old one would take
 * its children with it. */
#define REBUILD                                                                  \
	"CREATE TABLE parent_new(id INTEGER PRIMARY KEY, name TEXT, note TEXT);" \
	"INSERT INTO parent_new SELECT id, name, 'n' FROM parent;"               \
	"DROP TABLE parent;"                                                     \
	"ALTER TABLE parent_new RENAME TO parent;"

static const struct db_migration good[] = {{"0001_first", FIRST}, {"0002_rebuild", REBUILD}};
static const struct db_migration broken[] = {
	{"0001_first", FIRST},
	{"0002_broken", REBUILD "CREATE TABLE more(x); INSERT INTO nonsense VALUES (1);"},
};
static const struct db_migration orphan[] = {{"0001_first", FIRST},
					     {"0002_orphan", "DELETE FROM parent;"}};

struct home {
	char *dir, *path, *before;
};

static struct home home_new(void)
{
	struct home h = {.dir = scratch_new()};

	h.path = fs_join(h.dir, "fettle.db");
	h.before = fs_join(h.dir, "fettle.db.before-1");
	migrations = good;
	migration_count = 1;
	on_network = false;
	locks = LOCKS_WORK;
	before_upgrade = NULL;
	return h;
}

static void home_free(struct home *h)
{
	scratch_free(&h->dir);
	free(h->path);
	free(h->before);
}
#define _cleanup_home_ __attribute__((cleanup(home_free)))

static struct db *open_ok(const struct home *h)
{
	struct err e = {0};
	struct db *db = NULL;

	assert_ok(db_open(h->path, DB_CREATE, NULL, &db, &e));
	return db;
}

static void run(struct db *db, const char *sql)
{
	struct err e = {0};

	assert_ok(exec(db, sql, "test", &e));
}

static int64_t number(struct db *db, const char *sql)
{
	struct err e = {0};
	int64_t v = -1;

	assert_ok(scalar(db, sql, "test", &v, &e));
	return v;
}

/* A file of schema 1 with a parent and two children. */
static void make_first(const struct home *h)
{
	struct db *db = open_ok(h);

	run(db, "INSERT INTO parent VALUES (1, 'a'); INSERT INTO child VALUES (1, 1), (2, 1)");
	db_close(db);
}

static void refused(const struct home *h, enum err_code code, const char *words)
{
	struct err e = {0};
	struct db *db = NULL;

	assert_int_equal(db_open(h->path, DB_WRITE, NULL, &db, &e), -(int)code);
	assert_contains(e.text, words);
	assert_null(db);
}

/* -- upgrades -------------------------------------------------------------------------------- */

static void upgrade_rebuilds_and_keeps_a_copy(void **state)
{
	_cleanup_home_ struct home h = home_new();
	struct stat st;
	struct db *db;

	(void)state;
	make_first(&h);
	migration_count = 2;
	db = open_ok(&h);
	assert_int_equal(number(db, "PRAGMA user_version"), 2);
	assert_int_equal(number(db, "SELECT count(*) FROM child"), 2);
	assert_int_equal(number(db, "SELECT count(*) FROM parent WHERE note = 'n'"), 1);
	assert_int_equal(number(db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM schema_upgrade"), 2);
	assert_int_equal(number(db, "SELECT from_version * 10 + to_version FROM schema_upgrade "
				    "ORDER BY id DESC LIMIT 1"),
			 12);
	db_close(db);
	/* the copy is what was there, private, and opens with the old program */
	assert_int_equal(stat(h.before, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	migration_count = 1;
	free(h.path);
	h.path = xstrdup(h.before);
	db = open_ok(&h);
	assert_int_equal(number(db, "SELECT count(*) FROM child"), 2);
	db_close(db);
}

static void unchanged(const struct home *h)
{
	struct db *db;

	migration_count = 1;
	migrations = good;
	db = open_ok(h);
	assert_int_equal(number(db, "PRAGMA user_version"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM parent"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM child"), 2);
	assert_int_equal(number(db, "SELECT count(*) FROM sqlite_master WHERE name = 'more'"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM schema_upgrade"), 1);
	db_close(db);
}

static void a_failed_upgrade_changes_nothing(void **state)
{
	_cleanup_home_ struct home h = home_new();

	(void)state;
	make_first(&h);
	migrations = broken;
	migration_count = 2;
	refused(&h, ERR_DB, "0002_broken: no such table: nonsense");
	unchanged(&h);
	migrations = orphan;
	migration_count = 2;
	refused(&h, ERR_STATE, "table child with a reference to a row of parent that is not there");
	unchanged(&h);
	/* and the way is free for the right one, over the copy that the failed ones left */
	migration_count = 2;
	db_close(open_ok(&h));
}

static void no_upgrade_without_its_copy(void **state)
{
	_cleanup_home_ struct home h = home_new();
	struct err e = {0};

	(void)state;
	make_first(&h);
	assert_ok(fs_mkdirs(h.before, 0700, &e)); /* a directory where the copy should go */
	migration_count = 2;
	refused(&h, ERR_IO, "before-1");
	unchanged(&h);
}

static void a_reader_does_not_upgrade(void **state)
{
	_cleanup_home_ struct home h = home_new();
	struct err e = {0};
	struct db *db = NULL;
	int version = 0;

	(void)state;
	make_first(&h);
	migration_count = 2;
	assert_ok(db_open(h.path, DB_READ, NULL, &db, &e)); /* it reads an upgraded copy */
	assert_ok(db_version(db, &version, &e));
	assert_int_equal(version, 2);
	assert_int_equal(exec(db, "SELECT note FROM parent", "look", &e), 0);
	assert_int_equal(exec(db, "DELETE FROM child", "write", &e), -ERR_DB);
	db_close(db);
	unchanged(&h);
}

static void upgrade_elsewhere(const char *dir)
{
	_cleanup_free_ char *path = fs_join(dir, "fettle.db");
	sqlite3 *h = NULL;

	before_upgrade = NULL;
	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, "BEGIN;" REBUILD "PRAGMA user_version=2; COMMIT", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(h);
}

/* The number that was read before the lock is no reason to run a migration twice. */
static void two_programs_upgrade_at_once(void **state)
{
	_cleanup_home_ struct home h = home_new();
	struct db *db;

	(void)state;
	make_first(&h);
	migration_count = 2;
	before_upgrade = upgrade_elsewhere;
	db = open_ok(&h);
	assert_null(before_upgrade); /* it was called */
	assert_int_equal(number(db, "PRAGMA user_version"), 2);
	assert_int_equal(number(db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM schema_upgrade"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM child"), 2);
	db_close(db);
}

/* -- network file systems -------------------------------------------------------------------- */

static char *journal_of(struct db *db)
{
	struct err e = {0};
	struct stmt s = stmt_open(db, "PRAGMA journal_mode", "test", &e);
	char *mode;

	assert_true(stmt_row(&s));
	mode = col_text(&s, "journal_mode");
	assert_ok(stmt_close(&s));
	return mode;
}

static void check_journal(const struct home *h, const char *want)
{
	struct db *db = open_ok(h);
	char *mode = journal_of(db);

	assert_string_equal(mode, want);
	free(mode);
	db_close(db);
}

static void no_wal_on_a_network(void **state)
{
	_cleanup_home_ struct home h = home_new();
	_cleanup_free_ char *wal = xasprintf("%s-wal", h.path);
	struct buf b = {0};

	(void)state;
	on_network = true;
	check_journal(&h, "delete");
	assert_false(fs_exists(wal));
	on_network = false; /* the workspace moves to a local disk and back */
	check_journal(&h, "wal");
	on_network = true;
	check_journal(&h, "delete");
	/* the file that locks were tried on is gone */
	buf_printf(&b, "%s.locktest.%ld", h.path, (long)getpid());
	assert_false(fs_exists(b.data));
	buf_free(&b);
}

static void a_network_without_locks_is_refused(void **state)
{
	_cleanup_home_ struct home h = home_new();

	(void)state;
	make_first(&h);
	on_network = true;
	locks = LOCKS_FAIL;
	refused(&h, ERR_DB, "file locks do not work");
	refused(&h, ERR_DB, "use a workspace on another file system");
	locks = LOCKS_EXCLUDE_NOBODY;
	refused(&h, ERR_DB, "file locks do not work");
	locks = LOCKS_WORK;
	unchanged(&h);
}

/* Another host has it open with shared memory that we cannot see. */
static void wal_in_use_is_not_taken_away(void **state)
{
	_cleanup_home_ struct home h = home_new();
	struct db *other;

	(void)state;
	make_first(&h);
	other = open_ok(&h);
	assert_int_equal(number(other, "SELECT count(*) FROM child"), 2);
	run(other, "BEGIN; SELECT * FROM child");
	on_network = true;
	refused(&h, ERR_TEMP, "");
	db_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upgrade_rebuilds_and_keeps_a_copy),
		cmocka_unit_test(a_failed_upgrade_changes_nothing),
		cmocka_unit_test(no_upgrade_without_its_copy),
		cmocka_unit_test(a_reader_does_not_upgrade),
		cmocka_unit_test(two_programs_upgrade_at_once),
		cmocka_unit_test(no_wal_on_a_network),
		cmocka_unit_test(a_network_without_locks_is_refused),
		cmocka_unit_test(wal_in_use_is_not_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
