/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

#define LIST      ".files"
#define LIST_HEAD "fettle.files/1"

enum {
	NAME_MAX_BYTES = 100, /* leaves room in the 255 of a file system */
	LIST_MAX = 16 << 20,  /* of a hundred thousand files */
	FILE_MODE = 0666,     /* read by others as the umask says */
	FOLDER_MODE = 0777,
};

struct publish {
	char *dir, *stage;
	bool has_stage;     /* it is there: something differs */
	struct strv old;    /* that we wrote before */
	struct strv names;  /* of now, in order */
	struct strv staged; /* those of them that differ from what is there */
};

/* -- names ------------------------------------------------------------------------------------ */

static const char
	name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

bool publish_is_name(const char *s, size_t n)
{
	return n > 0 && n <= NAME_MAX_BYTES && *s != '.' && strspn(s, name_bytes) >= n;
}

char *publish_name(const char *s)
{
	struct buf b = {0};

	for (; *s && b.len < NAME_MAX_BYTES - 8; s++) /* room for a number behind it */
		buf_char(&b, strchr(name_bytes, *s) && (b.len || *s != '.') ? *s : '_');
	if (b.len == 0)
		buf_char(&b, '_');
	return buf_take(&b);
}

/* The list lies in a folder that others may write to: it names nothing outside of it. */
static bool is_path(const char *name)
{
	const char *slash = strchr(name, '/');

	if (!slash)
		return publish_is_name(name, strlen(name));
	return publish_is_name(name, (size_t)(slash - name)) &&
	       publish_is_name(slash + 1, strlen(slash + 1));
}

static bool among(const struct strv *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(v->v[i], name))
			return true;
	return false;
}

/* -- the list --------------------------------------------------------------------------------- */

static int read_list(struct publish *p, struct err *e)
{
	_cleanup_free_ char *path = fs_join(p->dir, LIST);
	struct buf b = {0};
	int rc = fs_read(path, LIST_MAX, &b, e);

	if (rc == -ERR_NOT_FOUND)
		return 0;
	if (rc == 0 && !str_starts(b.data, LIST_HEAD "\n"))
		rc = err_set(e, ERR_USAGE, "%s is none of ours: give a folder of its own", path);
	for (char *line = b.data; rc == 0 && line && *line;) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (is_path(line) && !str_eq(line, LIST_HEAD))
			strv_add(&p->old, line);
		line = end ? end + 1 : NULL;
	}
	buf_free(&b);
	return rc;
}

/* All of both; `with` NULL: of one. */
static int write_list(const struct publish *p, const struct strv *names, const struct strv *with,
		      struct err *e)
{
	_cleanup_free_ char *path = fs_join(p->dir, LIST);
	struct buf b = {0}, is = {0};
	int rc = 0;

	buf_str(&b, LIST_HEAD "\n");
	for (size_t i = 0; i < names->n; i++)
		buf_printf(&b, "%s\n", names->v[i]);
	for (size_t i = 0; with && i < with->n; i++)
		if (!among(names, with->v[i]))
			buf_printf(&b, "%s\n", with->v[i]);
	if (fs_read(path, LIST_MAX, &is, NULL) < 0 || !str_eq(is.data, b.data))
		rc = fs_write_atomic(path, b.data, b.len, FILE_MODE, e);
	buf_free(&is);
	buf_free(&b);
	return rc;
}

/* -- one refresh ------------------------------------------------------------------------------ */

int publish_begin(const char *dir, struct publish **out, struct err *e)
{
	struct publish *p = xcalloc(1, sizeof *p);
	int rc = fs_mkdirs(dir, FOLDER_MODE, e);

	p->dir = xstrdup(dir);
	if (rc == 0)
		rc = read_list(p, e);
	p->stage = xasprintf("%s/.new.%ld", dir, (long)getpid());
	if (rc < 0) {
		publish_end(p);
		return rc;
	}
	*out = p;
	return 0;
}

static bool is_same(const char *path, const struct buf *text)
{
	struct buf is = {0};
	bool same = fs_size(path) == (int64_t)text->len &&
		    fs_read(path, text->len, &is, NULL) == 0 &&
		    memcmp(is.data, text->data, text->len) == 0;

	buf_free(&is);
	return same;
}

static int make_stage(struct publish *p, struct err *e)
{
	int rc = fs_remove_tree(p->stage, e); /* what a killed process with our number left */

	if (rc == 0)
		rc = fs_mkdirs(p->stage, 0700, e);
	p->has_stage = rc == 0;
	return rc;
}

/* Make the folder of dir/name, if it has one. */
static int make_folder(const char *dir, const char *name, mode_t mode, struct err *e)
{
	const char *slash = strchr(name, '/');
	_cleanup_free_ char *folder = slash ? xasprintf("%s/%.*s", dir, (int)(slash - name), name)
					    : NULL;

	return folder ? fs_mkdirs(folder, mode, e) : 0;
}

/* Not synced one by one, which takes a second for each hundred: publish_commit() syncs them all. */
static int write_file(const char *path, const struct buf *text, struct err *e)
{
	FILE *f = fopen(path, "wxe");
	bool fine = f && fwrite(text->data, 1, text->len, f) == text->len;

	if (f && fclose(f) != 0)
		fine = false;
	return fine ? 0 : err_sys(e, ERR_IO, "cannot write %s", path);
}

static int sync_stage(const struct publish *p, struct err *e)
{
	int fd, rc;

	if (!p->has_stage)
		return 0;
	if ((fd = open(p->stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_sys(e, ERR_IO, "cannot open %s", p->stage);
	if ((rc = syncfs(fd)) < 0)
		err_sys(e, ERR_IO, "cannot write %s", p->stage);
	close(fd);
	return rc < 0 ? -ERR_IO : 0;
}

int publish_put(struct publish *p, const char *name, const struct buf *text, struct err *e)
{
	_cleanup_free_ char *path = fs_join(p->dir, name), *staged = fs_join(p->stage, name);
	const struct buf full = {text->data ? text->data : (char[]){""}, text->len, 0};
	int rc;

	strv_add(&p->names, name);
	if (is_same(path, &full))
		return 0;
	if (fs_exists(path) && !among(&p->old, name))
		return err_set(e, ERR_USAGE,
			       "%s is there, and fettle did not write it: give a folder of its own",
			       path);
	if (!p->has_stage && (rc = make_stage(p, e)) < 0)
		return rc;
	if ((rc = make_folder(p->stage, name, FOLDER_MODE, e)) == 0)
		rc = write_file(staged, &full, e);
	if (rc == 0)
		strv_add(&p->staged, name);
	return rc;
}

void publish_keep(struct publish *p, const char *name)
{
	if (among(&p->old, name))
		strv_add(&p->names, name);
}

/* Where its folder is a link, it is none that we made. */
static bool remove_old(const struct publish *p, const char *name)
{
	_cleanup_free_ char *path = fs_join(p->dir, name), *folder = NULL;
	const char *slash = strchr(name, '/');
	struct stat st;
	bool gone;

	if (!slash)
		return unlink(path) == 0;
	folder = xasprintf("%s/%.*s", p->dir, (int)(slash - name), name);
	if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	gone = unlink(path) == 0;
	(void)rmdir(folder); /* as soon as it is empty */
	return gone;
}

static int move_in(const struct publish *p, const char *name, struct err *e)
{
	_cleanup_free_ char *path = fs_join(p->dir, name), *staged = fs_join(p->stage, name);
	int rc = make_folder(p->dir, name, FOLDER_MODE, e);

	if (rc == 0 && rename(staged, path) < 0)
		rc = err_sys(e, ERR_IO, "cannot write %s", path);
	return rc;
}

int publish_commit(struct publish *p, size_t *written, size_t *removed, struct err *e)
{
	size_t gone = 0;
	int rc = sync_stage(p, e);

	if (rc == 0)
		rc = write_list(p, &p->names, &p->old, e); /* what we are about to write is ours */

	for (size_t i = 0; rc == 0 && i < p->staged.n; i++)
		rc = move_in(p, p->staged.v[i], e);
	for (size_t i = 0; rc == 0 && i < p->old.n; i++)
		if (!among(&p->names, p->old.v[i]))
			gone += remove_old(p, p->old.v[i]);
	if (rc == 0)
		rc = write_list(p, &p->names, NULL, e);
	if (written)
		*written = p->staged.n;
	if (removed)
		*removed = gone;
	return rc;
}

void publish_end(struct publish *p)
{
	if (!p)
		return;
	if (p->has_stage)
		(void)fs_remove_tree(p->stage, NULL);
	strv_free(&p->old);
	strv_free(&p->names);
	strv_free(&p->staged);
	free(p->stage);
	free(p->dir);
	free(p);
}
