/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/workspace.h"

#include <errno.h>
#include <stdlib.h>
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

/* Somebody else's, as far as the file system says. */
static int check_rights(const char *dir, const char *db, enum db_mode mode, struct err *e)
{
	_cleanup_free_ char *owner = NULL, *me = user_name();
	const char *verb = mode == DB_READ ? "read" : "change";
	struct stat st;

	if (access(db, mode == DB_READ ? R_OK : R_OK | W_OK) == 0 || errno != EACCES)
		return 0;
	if (stat(db, &st) && stat(dir, &st))
		return err_set(e, ERR_DB, "%s: %s may not look there: permission denied", dir, me);
	owner = user_name_of(st.st_uid);
	return err_set(
		e, ERR_DB,
		"%s belongs to %s, and %s may not %s it: ask %s to make it a group's (README, "
		"\"A workspace of a group\"), or name another with --workspace DIR or "
		"$FETTLE_WORKSPACE",
		dir, owner, me, verb, owner);
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
