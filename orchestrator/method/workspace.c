/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/query.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/base/user.h"

const char *workspace_default(const char *given)
{
	const char *env = getenv("FETTLE_WORKSPACE");

	if (given && *given)
		return given;
	return env && *env ? env : "fettle-workspace";
}

void workspace_close(struct workspace *w)
{
	if (!w)
		return;
	db_close(w->db);
	free(w->root);
	free(w->blocks_root);
	free(w);
}

static int make_directories(const char *dir, struct err *e)
{
	_cleanup_free_ char *blocks = fs_join(dir, "blocks");

	if (fs_mkdirs(dir, 0700, e) < 0 || fs_mkdirs(blocks, 0700, e) < 0)
		return err_wrap(e,
				"%s cannot be the workspace (--workspace DIR or "
				"$FETTLE_WORKSPACE names another)",
				dir);
	return 0;
}

#define OTHER_PLACE "name another with --workspace DIR or $FETTLE_WORKSPACE"

static int on_read_only(const char *dir, bool there, struct err *e)
{
	return err_set(
		e, ERR_DB,
		"%s lies on a read-only file system%s: have that mounted writable, or " OTHER_PLACE,
		dir, there ? " (`fettle status` and `fettle report` show what is there)" : "");
}

/* `at`: what may not be touched; `there`: is there a workspace? */
static int no_right(const char *dir, const char *at, const char *verb, bool there, struct err *e)
{
	_cleanup_free_ char *owner = NULL, *me = user_name();
	struct stat st;

	if (stat(at, &st) && stat(dir, &st))
		return err_set(e, ERR_DB, "%s: %s may not look there: permission denied", dir, me);
	owner = user_name_of(st.st_uid);
	if (st.st_uid == getuid())
		return err_set(e, ERR_DB,
			       "%s is %s's own, without the right to %s it: `chmod -R u+rwX %s`, "
			       "or " OTHER_PLACE,
			       at, me, verb, at);
	if (!there)
		return err_set(e, ERR_DB,
			       "%s cannot be the workspace: %s belongs to %s, and %s may not write "
			       "there: " OTHER_PLACE,
			       dir, at, owner, me);
	return err_set(
		e, ERR_DB,
		"%s belongs to %s, and %s may not %s it: ask %s to make it a group's (README, "
		"\"A workspace of a group\"), or " OTHER_PLACE,
		at, owner, me, verb, owner);
}

/* The nearest directory above, itself too, that is there; heap. */
static char *nearest(const char *dir)
{
	_cleanup_free_ char *at = xstrdup(dir);

	for (;;) {
		char *slash = strrchr(at, '/');

		if (fs_exists(at) || errno != ENOENT)
			return TAKE(at);
		if (!slash)
			return xstrdup(".");
		slash[slash == at] = '\0';
	}
}

/* SQLite says that it cannot open a file, whichever of these it is. */
static int check_rights(const char *dir, const char *db, enum db_mode mode, struct err *e)
{
	const bool reads = mode == DB_READ, there = fs_exists(db) || errno == EACCES;
	_cleanup_free_ char *blocks = fs_join(dir, "blocks"), *made = there ? NULL : nearest(dir);
	const struct {
		const char *path;
		int right;
	} wants[] = {{db, reads ? R_OK : R_OK | W_OK},
		     {reads ? NULL : dir, W_OK | X_OK},
		     {reads ? NULL : blocks, W_OK | X_OK},
		     {mode == DB_CREATE ? made : NULL, W_OK | X_OK}};

	for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
		if (!wants[i].path || access(wants[i].path, wants[i].right) == 0)
			continue;
		if (errno == EROFS)
			return on_read_only(dir, there, e);
		if (errno == EACCES)
			return no_right(dir, i ? wants[i].path : dir, reads ? "read" : "change",
					there, e);
	}
	return 0;
}

int workspace_open(const char *dir, enum db_mode mode, const struct clock *clock,
		   struct workspace **out, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	bool memory = str_eq(dir, WORKSPACE_MEMORY);
	struct workspace *w;
	int rc;

	path = fs_join(dir, "fettle.db");
	if (!memory && (rc = check_rights(dir, path, mode, e)) < 0)
		return rc;
	if (!memory && mode == DB_CREATE && (rc = make_directories(dir, e)) < 0)
		return rc;
	if (!memory && mode != DB_CREATE && !fs_exists(path))
		return err_set(
			e, ERR_NOT_FOUND,
			"%s: no workspace here; `fettle run RECIPE` makes one, --workspace DIR or "
			"$FETTLE_WORKSPACE names another",
			dir);
	w = xcalloc(1, sizeof *w);
	w->clock = clock;
	w->root = memory ? xstrdup(dir) : fs_absolute(dir, e);
	if (!w->root) {
		rc = -ERR_IO;
		goto fail;
	}
	w->blocks_root = fs_join(w->root, "blocks");
	free(path);
	path = memory ? xstrdup(dir) : fs_join(w->root, "fettle.db");
	rc = db_open(path, mode, clock, &w->db, e);
	if (rc == 0 && mode != DB_READ)
		rc = query_workspace_uuid(w->db, clock, w->uuid, e);
	if (rc < 0)
		goto fail;
	*out = w;
	return 0;
fail:
	workspace_close(w);
	return rc;
}
