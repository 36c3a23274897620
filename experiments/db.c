/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/user.h"
#include "orchestrator/base/version.h"

enum {
	/* A transaction of ours takes milliseconds, on NFS up to a second for its fsyncs. Ten
	 * seconds mean that somebody holds the file open in a transaction, and waiting longer is no
	 * help. */
	BUSY_TIMEOUT_MS = 10000,
	APPLICATION_ID = 1718908012, /* "fttl": 0001_init.sql sets it */
};

struct db {
	sqlite3 *h;
	char *path, *user;
	bool memory;
	struct db_cache *cache;
	int64_t commits, statements;
	db_guard_f guard;
	void *guard_ctx;
};

/* -- errors ---------------------------------------------------------------------------------- */

static enum err_code code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_TEMP;
	case SQLITE_CONSTRAINT:
		return ERR_STATE;
	default:
		return ERR_DB;
	}
}

static const char *advice_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return "; another process writes to it: try again";
	case SQLITE_NOTADB:
		return "; it is no SQLite file: move it away, or restore a copy (a backup of yours, "
		       "fettle.db.before-*)";
	case SQLITE_CORRUPT:
		return "; the file is damaged: restore a copy (a backup of yours, fettle.db.before-*), "
		       "or "
		       "salvage it with the command .recover of sqlite3";
	case SQLITE_FULL:
		return "; free space there, then run again: nothing of this step was stored";
	case SQLITE_READONLY:
		return "; make file and directory writable for this user";
	case SQLITE_CANTOPEN:
		return "; file and directory must be readable, and writable unless it is only "
		       "viewed";
	case SQLITE_IOERR:
		return "; the file system reports a fault: see the kernel's log";
	default:
		return "";
	}
}

static int last_errno(sqlite3_file *f)
{
	int errnum = 0;

	if (f && f->pMethods)
		f->pMethods->xFileControl(f, SQLITE_FCNTL_LAST_ERRNO, &errnum);
	return errnum;
}

/* SQLite takes a page that the disk does not give for a damaged file (SQLITE_IOERR_CORRUPTFS
 * becomes SQLITE_CORRUPT). Who reads that would restore a copy for no reason. */
static bool disk_failed(sqlite3 *h)
{
	static const int ask[] = {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER};
	sqlite3_file *f;

	for (size_t i = 0; i < ARRAY_LEN(ask); i++) {
		f = NULL;
		if (sqlite3_file_control(h, "main", ask[i], &f) == SQLITE_OK &&
		    fs_code(last_errno(f)) == ERR_READ)
			return true;
	}
	return false;
}

int db_fault(struct db *db, const char *what, int sqlite_rc, struct err *e)
{
	if ((sqlite_rc & 0xff) == SQLITE_CORRUPT && disk_failed(db->h))
		return err_set(e, ERR_DB, "%s: %s: %s%s", db->path, what,
			       sqlite3_errstr(SQLITE_IOERR), advice_of(SQLITE_IOERR));
	return err_set(e, code_of(sqlite_rc), "%s: %s: %s%s", db->path, what, sqlite3_errmsg(db->h),
		       advice_of(sqlite_rc));
}

static int exec(struct db *db, const char *sql, const char *what, struct err *e)
{
	int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);

	db->statements++;
	return rc == SQLITE_OK ? 0 : db_fault(db, what, rc, e);
}

/* First column of the first row as an integer. */
static int scalar(struct db *db, const char *sql, const char *what, int64_t *out, struct err *e)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->h, sql, -1, &s, NULL);
	int fault = 0;

	if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW)
		*out = sqlite3_column_int64(s, 0);
	if (rc != SQLITE_ROW)
		fault = db_fault(db, what, rc, e);
	sqlite3_finalize(s);
	return fault;
}

/* -- the file -------------------------------------------------------------------------------- */

static char *directory_of(const char *path)
{
	size_t n = (size_t)(fs_basename(path) - path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return n == 0 ? xstrdup(".") : xstrndup(path, n);
}

static int sync_directory(const char *path, struct err *e)
{
	_cleanup_free_ char *dir = directory_of(path);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	/* EINVAL: a file system without directories to sync */
	if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
		rc = err_sys(e, ERR_IO, "cannot sync directory %s", dir);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* An empty file of mode 0600 whatever the umask is, for a group's directory see fs_shared(); SQLite
 * gives the same mode to the files that it makes beside it. One that exists keeps its mode: a
 * workspace may have been made group-readable.
 */
static int create_file(const char *path, struct err *e)
{
	_cleanup_free_ char *dir = directory_of(path);
	struct stat st;
	int fd, rc = 0;

	if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_NOT_FOUND, "%s: there is no directory %s: make it first",
			       path, dir);
	fd = fs_create(path, O_RDWR | O_EXCL, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : err_sys(e, ERR_DB, "cannot create %s", path);
	if (fstat(fd, &st) != 0 || fchmod(fd, (st.st_mode & 0770) | 0600) != 0)
		rc = err_sys(e, ERR_DB, "cannot make %s private", path);
	close(fd);
	return rc < 0 ? rc : sync_directory(path, e);
}

static int check_file(const char *path, enum db_mode mode, struct err *e)
{
	struct stat st;

	if (stat(path, &st) != 0) {
		if (errno != ENOENT)
			return err_sys(e, ERR_DB, "cannot open %s", path);
		return mode == DB_CREATE ? create_file(path, e)
					 : err_set(e, ERR_NOT_FOUND, "%s does not exist", path);
	}
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_DB,
			       "%s is a directory, and a database should be there: move it away",
			       path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_DB, "%s is no regular file", path);
	return 0;
}

/* Two descriptions of one file must exclude each other. The second lock is an OFD lock because
 * POSIX locks of one process never conflict; a kernel without them proves half of it. */
static bool locks_exclude(int a, int b)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct flock m = l;

	if (fcntl(a, F_SETLK, &l) != 0)
		return false;
	return fcntl(b, F_OFD_SETLK, &m) != 0;
}

static int probe_locks(const char *path, struct err *e)
{
	_cleanup_free_ char *name = xasprintf("%s.locktest.%ld", path, (long)getpid());
	int a = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int b = a < 0 ? -1 : open(name, O_RDWR | O_CLOEXEC);
	int rc = 0;

	if (b < 0)
		rc = err_sys(e, ERR_DB, "cannot test locks with %s", name);
	else if (!locks_exclude(a, b))
		rc = err_set(
			e, ERR_DB,
			"%s lies on a network file system where file locks do not work, so two "
			"processes could destroy it: mount with locks (NFS: lockd; Lustre: -o "
			"flock), or use a workspace on another file system",
			path);
	if (a >= 0) {
		unlink(name);
		close(a);
	}
	if (b >= 0)
		close(b);
	return rc;
}

/* -- transactions ---------------------------------------------------------------------------- */

bool db_in_transaction(const struct db *db)
{
	return !sqlite3_get_autocommit(db->h);
}

void db_guard(struct db *db, db_guard_f guard, void *ctx)
{
	db->guard = guard;
	db->guard_ctx = ctx;
}

int db_ask_guard(struct db *db, struct err *e)
{
	return db->guard && !db_in_transaction(db) ? db->guard(db->guard_ctx, e) : 0;
}

int db_begin(struct db *db, const char *what, struct err *e)
{
	int rc;

	if (db_in_transaction(db))
		return err_set(e, ERR_STATE, "%s: %s: a transaction is open already", db->path,
			       what);
	rc = exec(db, "BEGIN IMMEDIATE", what, e);
	if (rc == 0 && db->guard && (rc = db->guard(db->guard_ctx, e)) < 0)
		db_rollback(db);
	return rc;
}

int db_commit(struct db *db, struct err *e)
{
	if (!db_in_transaction(db))
		return err_set(e, ERR_STATE, "%s: commit: no transaction is open", db->path);
	return exec(db, "COMMIT", "commit", e);
}

void db_rollback(struct db *db)
{
	if (db && db_in_transaction(db))
		(void)sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL);
}

int db_enter(struct db *db, const char *what, bool *own, struct err *e)
{
	*own = !db_in_transaction(db);
	return *own ? db_begin(db, what, e) : 0;
}

int db_leave(struct db *db, bool own, int rc, struct err *e)
{
	if (!own)
		return rc;
	if (rc == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

/* -- copies ---------------------------------------------------------------------------------- */

/* Page by page through the backup API: VACUUM INTO came with 3.27. The copy gets a rollback
 * journal, so that it is one file and can be read from a read-only place. */
static int copy_pages(sqlite3 *from, sqlite3 *to)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
	int rc;

	if (!b)
		return sqlite3_errcode(to);
	(void)sqlite3_backup_step(b, -1);
	rc = sqlite3_backup_finish(b);
	if (rc != SQLITE_OK)
		return rc;
	return sqlite3_exec(to, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
}

/* All pages, indexes and constraints of the copy. */
static int check_copy(sqlite3 *h, const char *to, struct err *e)
{
	sqlite3_stmt *s = NULL;
	const char *said = NULL;
	int rc = 0;

	if (sqlite3_prepare_v2(h, "PRAGMA integrity_check(1)", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		said = (const char *)sqlite3_column_text(s, 0);
	if (!said || strcmp(said, "ok") != 0)
		rc = err_set(e, ERR_DB,
			     "the copy for %s is damaged, and so may the database be: %s", to,
			     said ? said : sqlite3_errmsg(h));
	sqlite3_finalize(s);
	return rc;
}

static int copy_file(sqlite3 *from, const char *to, struct err *e)
{
	_cleanup_free_ char *tmp = xasprintf("%s.tmp.%ld", to, (long)getpid());
	sqlite3 *h = NULL;
	int rc, sql;

	unlink(tmp); /* left by a crash of a process that had our pid */
	rc = create_file(tmp, e);
	if (rc < 0)
		return rc;
	sql = sqlite3_open_v2(tmp, &h, SQLITE_OPEN_READWRITE, NULL);
	if (sql == SQLITE_OK)
		sql = copy_pages(from, h);
	if (sql != SQLITE_OK)
		rc = err_set(e, code_of(sql), "cannot copy the database to %s: %s%s", to,
			     sqlite3_errstr(sql), advice_of(sql));
	else
		rc = check_copy(h, to, e);
	sqlite3_close(h);
	if (rc == 0 && rename(tmp, to) != 0)
		rc = err_sys(e, ERR_IO, "cannot write %s", to);
	if (rc < 0) {
		unlink(tmp);
		return rc;
	}
	return sync_directory(to, e);
}

int db_backup(struct db *db, const char *to, struct err *e)
{
	if (fs_exists(to))
		return err_set(e, ERR_STATE,
			       "%s exists: a backup overwrites nothing, give another name", to);
	return copy_file(db->h, to, e);
}

/* Through a second connection: ours is inside its transaction, which keeps writers out. */
static int keep_old(struct db *db, int version, struct err *e)
{
	_cleanup_free_ char *to = xasprintf("%s.before-%d", db->path, version);
	sqlite3 *h = NULL;
	int rc = sqlite3_open_v2(db->path, &h, SQLITE_OPEN_READONLY, NULL);

	if (rc != SQLITE_OK)
		rc = err_set(e, ERR_DB, "%s: cannot open it for a copy: %s", db->path,
			     sqlite3_errstr(rc));
	else
		rc = copy_file(h, to, e);
	sqlite3_close(h);
	return rc;
}

/* -- schema ---------------------------------------------------------------------------------- */

int db_version(struct db *db, int *out, struct err *e)
{
	int64_t v = 0;
	int rc = scalar(db, "PRAGMA user_version", "read its schema's number", &v, e);

	if (rc == 0)
		*out = (int)v;
	return rc;
}

int db_data_version(struct db *db, int64_t *out, struct err *e)
{
	return scalar(db, "PRAGMA data_version", "ask whether it changed", out, e);
}

/* Number of the schema; 0 for an empty file. Refuses what is not ours or newer. */
static int identify(struct db *db, int *version, struct err *e)
{
	int64_t app = 0, tables = 0;
	int rc = db_version(db, version, e);

	if (rc == 0)
		rc = scalar(db, "PRAGMA application_id", "read its identity", &app, e);
	if (rc == 0)
		rc = scalar(db, "SELECT count(*) FROM sqlite_master", "read its schema", &tables,
			    e);
	if (rc < 0)
		return rc;
	if (app != APPLICATION_ID && (app != 0 || tables > 0 || *version != 0))
		return err_set(
			e, ERR_DB,
			"%s is an SQLite database, but of another program: use another workspace",
			db->path);
	if (*version > db_migration_count)
		return err_set(
			e, ERR_DB,
			"%s has schema %d, this program (%s) knows %d: use a newer fettle, or a "
			"copy made before the upgrade (%s.before-*)",
			db->path, *version, version_text(), db_migration_count, db->path);
	return 0;
}

static int note_upgrade(struct db *db, int from, const struct clock *c, struct err *e)
{
	_cleanup_free_ char *version = xasprintf("PRAGMA user_version=%d", db_migration_count);
	struct stmt s = stmt_open(db,
				  "INSERT INTO schema_upgrade(at_us, from_version, to_version, "
				  "program_version) VALUES (:at, :from, :to, :program)",
				  "note the upgrade", e);
	int rc;

	bind_i64(&s, ":at", clock_utc_us(c));
	bind_i64(&s, ":from", from);
	bind_i64(&s, ":to", db_migration_count);
	bind_text(&s, ":program", version_text());
	rc = stmt_run(&s);
	return rc < 0 ? rc : exec(db, version, "set its schema's number", e);
}

static int check_foreign_keys(struct db *db, struct err *e)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->h, "PRAGMA foreign_key_check", -1, &s, NULL);
	int fault = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		fault = err_set(e, ERR_STATE,
				"%s: the upgrade would leave table %s with a reference to "
				"a row of %s that is not there: nothing was changed",
				db->path, (const char *)sqlite3_column_text(s, 0),
				(const char *)sqlite3_column_text(s, 2));
	else if (rc != SQLITE_DONE)
		fault = db_fault(db, "check references", rc, e);
	sqlite3_finalize(s);
	return fault;
}

static int migrate(struct db *db, int from, struct err *e)
{
	int rc = db->memory ? 0 : keep_old(db, from, e);

	for (int i = from; i < db_migration_count && rc == 0; i++)
		rc = exec(db, db_migrations[i].sql, db_migrations[i].name, e);
	return rc < 0 ? rc : check_foreign_keys(db, e);
}

/* In an open transaction: all steps that are missing, or none. */
static int upgrade_inside(struct db *db, const struct clock *c, struct err *e)
{
	int from = 0;
	int rc = identify(db, &from, e); /* again: somebody else may have been first */

	if (rc < 0 || from == db_migration_count)
		return rc;
	rc = from > 0 ? migrate(db, from, e) : exec(db, db_schema, "make its tables", e);
	return rc < 0 ? rc : note_upgrade(db, from, c, e);
}

/* A migration that rebuilds a table drops the old one: with foreign keys on that would delete or
 * refuse the rows that point to it, and they cannot be switched inside a transaction. */
static int upgrade(struct db *db, const struct clock *c, struct err *e)
{
	int rc = exec(db, "PRAGMA foreign_keys=OFF", "prepare the upgrade", e);

	if (rc == 0)
		rc = db_begin(db, "upgrade the schema", e);
	if (rc == 0)
		rc = db_leave(db, true, upgrade_inside(db, c, e), e);
	if (rc < 0)
		return rc;
	return exec(db, "PRAGMA foreign_keys=ON", "finish the upgrade", e);
}

/* -- opening --------------------------------------------------------------------------------- */

static int count_commit(void *ctx)
{
	struct db *db = ctx;

	db->commits++;
	return 0; /* let it pass */
}

static int set_journal(struct db *db, const char *want, struct err *e)
{
	_cleanup_free_ char *sql = xasprintf("PRAGMA journal_mode=%s", want);
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->h, sql, -1, &s, NULL);
	int fault = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_ROW)
		fault = db_fault(db, "set its journal", rc, e);
	else if (strcmp((const char *)sqlite3_column_text(s, 0), want) != 0)
		fault = err_set(
			e, ERR_TEMP,
			"%s: its journal stays \"%s\" where this file system needs \"%s\": close "
			"the other programs that use it, then run again",
			db->path, (const char *)sqlite3_column_text(s, 0), want);
	sqlite3_finalize(s);
	return fault;
}

/* WAL lets viewers read while we write, but its index is shared memory of one host. */
static int choose_journal(struct db *db, struct err *e)
{
	_cleanup_free_ char *dir = NULL;
	int rc;

	if (db->memory)
		return 0;
	dir = directory_of(db->path);
	if (!fs_is_network(dir))
		return set_journal(db, "wal", e);
	rc = probe_locks(db->path, e);
	return rc < 0 ? rc : set_journal(db, "delete", e);
}

/* "file:" with everything escaped that a URI would read as its own. */
static char *immutable_uri(const char *path)
{
	struct buf b = {0};

	buf_str(&b, "file:");
	for (const char *p = path; *p; p++) {
		if (strchr("%?#", *p))
			buf_printf(&b, "%%%02X", (unsigned)(unsigned char)*p);
		else
			buf_char(&b, *p);
	}
	buf_str(&b, "?immutable=1");
	return buf_take(&b);
}

static int open_handle(struct db *db, const char *name, int flags, struct err *e)
{
	int rc;

	sqlite3_close(db->h);
	db->h = NULL;
	rc = sqlite3_open_v2(name, &db->h, flags, NULL);
	if (rc != SQLITE_OK)
		return db_fault(db, "open", rc, e);
	sqlite3_extended_result_codes(db->h, 1);
	sqlite3_busy_timeout(db->h, BUSY_TIMEOUT_MS);
	(void)sqlite3_commit_hook(db->h, count_commit, db);
	/* synchronous: what we told the user is done must survive a power cut. In WAL mode that is
	 * one fsync a commit, so commits are few: one a step of the method and one an attempt. */
	return exec(db,
		    "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; "
		    "PRAGMA synchronous=FULL",
		    "open", e);
}

/* A database in WAL mode wants to make two files beside it even for a reader. Where that cannot be,
 * as in a copy on a read-only file system, nobody writes either, and it is read as it lies. */
static int open_immutable(struct db *db, int fault, struct err *e)
{
	_cleanup_free_ char *wal = xasprintf("%s-wal", db->path);
	_cleanup_free_ char *uri = immutable_uri(db->path);
	_cleanup_free_ char *dir = directory_of(db->path);

	if (access(dir, W_OK) == 0 || access(db->path, R_OK) != 0)
		return fault; /* some other reason, told already */
	if (fs_size(wal) > 0)
		return err_set(
			e, ERR_DB,
			"%s: part of it is still in %s, and that cannot be read in a directory "
			"without write permission: copy both files to another directory",
			db->path, wal);
	return open_handle(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);
}

/* A reader changes nothing that lies there. Of a database with an older schema it looks at a copy
 * in memory that was upgraded, as of now. Above this size that would be a surprise: ours. */
static const int64_t READ_COPY_MAX_BYTES = INT64_C(1) << 30;

static int open_upgraded(struct db *db, int version, struct err *e)
{
	sqlite3 *old;
	int rc, sql;

	if (version == 0 || fs_size(db->path) > READ_COPY_MAX_BYTES)
		return err_set(e, ERR_STATE,
			       "%s has schema %d, this program (%s) reads %d: a command that "
			       "writes (fettle tick) upgrades it",
			       db->path, version, version_text(), db_migration_count);
	old = TAKE(db->h);
	rc = open_handle(db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e);
	if (rc == 0 && (sql = copy_pages(old, db->h)) != SQLITE_OK)
		rc = err_set(e, code_of(sql), "cannot read %s: %s", db->path, sqlite3_errstr(sql));
	sqlite3_close(old);
	db->memory = true;
	if (rc == 0)
		rc = upgrade(db, &clock_system, e);
	return rc < 0 ? rc : exec(db, "PRAGMA query_only=ON", "open", e);
}

static int open_reader(struct db *db, struct err *e)
{
	int version = 0, sql;
	int rc = open_handle(db, db->path, SQLITE_OPEN_READONLY, e);

	if (rc == 0)
		rc = db_version(db, &version, e);
	if (rc < 0) {
		sql = sqlite3_errcode(db->h) & 0xff;
		if (sql == SQLITE_CANTOPEN || sql == SQLITE_READONLY)
			rc = open_immutable(db, rc, e);
	}
	if (rc == 0)
		rc = identify(db, &version, e);
	if (rc == 0 && version < db_migration_count)
		rc = open_upgraded(db, version, e);
	return rc;
}

/* SQLite falls back to reading whatever keeps it from writing, and does not say what it was. */
static int only_readable(const struct db *db, struct err *e)
{
	if (access(db->path, W_OK) < 0)
		return err_set(e, ERR_DB,
			       "%s is not writable for this user (%s): make it so, or only view it",
			       db->path, strerror(errno));
	return err_set(e, ERR_DB,
		       "%s can be read only, though this user may write it: look for space on its "
		       "file system, then try again",
		       db->path);
}

static int open_writer(struct db *db, const struct clock *c, struct err *e)
{
	int flags = SQLITE_OPEN_READWRITE | (db->memory ? SQLITE_OPEN_CREATE : 0);
	int version = 0;
	int rc = open_handle(db, db->path, flags, e);

	if (rc == 0 && sqlite3_db_readonly(db->h, "main") == 1)
		rc = only_readable(db, e);
	if (rc == 0)
		rc = identify(db, &version, e);
	if (rc == 0)
		rc = choose_journal(db, e);
	/* A schema's number only grows, so one that is ours needs no transaction to be sure. */
	if (rc == 0 && version < db_migration_count)
		rc = upgrade(db, c, e);
	return rc;
}

int db_open(const char *path, enum db_mode mode, const struct clock *c, struct db **out,
	    struct err *e)
{
	struct db *db;
	bool memory = strcmp(path, ":memory:") == 0;
	int rc = 0;

	if (sqlite3_libversion_number() < DB_SQLITE_MIN)
		return err_set(e, ERR_DB, "SQLite %s is too old: 3.26.0 or newer is needed",
			       sqlite3_libversion());
	if (!memory)
		rc = check_file(path, mode, e);
	if (rc < 0)
		return rc;
	db = xcalloc(1, sizeof *db);
	db->path = xstrdup(path);
	db->user = user_name();
	db->memory = memory;
	db->cache = db_cache_new();
	if (mode == DB_READ)
		rc = open_reader(db, e);
	else
		rc = open_writer(db, c ? c : &clock_system, e);
	if (rc < 0) {
		db_close(db);
		return rc;
	}
	*out = db;
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	db_rollback(db);
	db_cache_free(db->cache);
	sqlite3_close(db->h);
	free(db->path);
	free(db->user);
	free(db);
}

/* -- for db_stmt.c and the bench ------------------------------------------------------------- */

void db_counters(const struct db *db, int64_t *commits, int64_t *statements)
{
	*commits = db->commits;
	*statements = db->statements;
}

void db_count_statement(struct db *db)
{
	db->statements++;
}

struct db_cache *db_cache_of(struct db *db)
{
	return db->cache;
}

struct sqlite3 *db_handle(struct db *db)
{
	return db->h;
}

const char *db_user(const struct db *db)
{
	return db->user;
}

const char *db_path(const struct db *db)
{
	return db->path;
}

int64_t db_last_id(struct db *db)
{
	return sqlite3_last_insert_rowid(db->h);
}

int db_changed(struct db *db)
{
	return sqlite3_changes(db->h);
}
