/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/archive.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

#define FORMAT "fettle.archive/1"
/* A file is a line of about 150 bytes: ten trials in ten thousand blocks, with ten files each. */
enum { MANIFEST_BYTES_MAX = 256 << 20 };

void archive_done(struct archive *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->files[i].path);
		free(a->files[i].link);
	}
	free(a->files);
	free(a->tar);
	strv_free(&a->dirs);
	*a = (struct archive){0};
}

void archives_free(struct archives *a)
{
	for (size_t i = 0; i < a->n; i++)
		archive_done(&a->v[i]);
	free(a->v);
	*a = (struct archives){0};
}

void archive_add_file(struct archive *a, const char *path, const char *link, int64_t bytes,
		      const char *hash)
{
	struct archive_file *f;

	a->files = xgrow(a->files, a->n, &a->cap, sizeof *a->files);
	f = &a->files[a->n++];
	*f = (struct archive_file){.path = xstrdup(path), .link = xstrdup(link), .bytes = bytes};
	str_copy(f->hash, sizeof f->hash, hash);
}

char *archive_manifest_path(const char *root, const struct archive *a)
{
	return xasprintf("%s/archive/campaign-%lld.%d.json", root, (long long)a->campaign,
			 a->number);
}

char *archive_tar_path(const char *root, const struct archive *a)
{
	return fs_join(root, a->tar);
}

/* -- writing ---------------------------------------------------------------------------------- */

static struct json *files_json(const struct archive *a)
{
	struct json *v = json_array();

	for (size_t i = 0; i < a->n; i++) {
		struct json *o = json_object();

		json_set_text(o, "path", a->files[i].path);
		if (a->files[i].link) {
			json_set_text(o, "link", a->files[i].link);
		} else {
			json_set_i64(o, "bytes", a->files[i].bytes);
			json_set_text(o, "xxh", a->files[i].hash);
		}
		json_add(v, o);
	}
	return v;
}

int archive_store(const char *root, const struct archive *a, struct err *e)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *path = archive_manifest_path(root, a), *text = NULL;
	struct json *dirs = json_array();
	struct buf line = {0};
	int rc;

	for (size_t i = 0; i < a->dirs.n; i++)
		json_add_text(dirs, a->dirs.v[i]);
	json_set_text(o, "format", FORMAT);
	json_set_i64(o, "campaign", a->campaign);
	json_set_i64(o, "number", a->number);
	json_set_text(o, "tar", a->tar);
	json_set_i64(o, "bytes", a->bytes);
	json_set_text(o, "xxh", a->hash);
	json_set_i64(o, "at_us", a->at_us);
	json_set(o, "dirs", dirs);
	json_set(o, "files", files_json(a));
	text = json_print(o, true);
	buf_printf(&line, "%s\n", text);
	rc = fs_write_atomic(path, line.data, line.len, 0600, e);
	buf_free(&line);
	return rc;
}

/* -- reading ---------------------------------------------------------------------------------- */

static int bad(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_STATE, "%s: %s: it is no manifest of an archive of fettle", path,
		       what);
}

/* Names of files in it are used with the workspace before them: none may lead out of it. */
static bool is_inside(const char *path)
{
	return str_starts(path, "blocks/") && !strstr(path, "/../") && !str_ends(path, "/..") &&
	       !strstr(path, "//");
}

static int read_files(const struct json *files, const char *path, struct archive *a, struct err *e)
{
	for (const struct json *f = json_first(files); f; f = json_next(f)) {
		const char *name = json_text(json_get(f, "path"), "");

		if (!is_inside(name))
			return bad(path, "a file has no name below blocks/", e);
		archive_add_file(a, name, json_text(json_get(f, "link"), NULL),
				 json_i64(json_get(f, "bytes"), 0),
				 json_text(json_get(f, "xxh"), ""));
	}
	return 0;
}

static int read_manifest(const char *path, struct archive *a, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	int rc = json_read_file(path, MANIFEST_BYTES_MAX, &j, e);

	if (rc < 0)
		return rc;
	if (!str_eq(json_text(json_get(j, "format"), ""), FORMAT))
		return bad(path, "its format is not " FORMAT, e);
	a->campaign = json_i64(json_get(j, "campaign"), 0);
	a->number = (int)json_i64(json_get(j, "number"), 0);
	a->tar = xstrdup(json_text(json_get(j, "tar"), ""));
	a->bytes = json_i64(json_get(j, "bytes"), 0);
	a->at_us = json_i64(json_get(j, "at_us"), 0);
	str_copy(a->hash, sizeof a->hash, json_text(json_get(j, "xxh"), ""));
	for (const struct json *d = json_first(json_get(j, "dirs")); d; d = json_next(d)) {
		if (!is_inside(json_text(d, "")))
			return bad(path, "a directory does not lie below blocks/", e);
		strv_add(&a->dirs, json_text(d, ""));
	}
	return read_files(json_get(j, "files"), path, a, e);
}

static int by_number(const void *a, const void *b)
{
	const struct archive *x = a, *y = b;

	if (x->campaign != y->campaign)
		return x->campaign < y->campaign ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* "campaign-3.1.json" */
static bool is_manifest(const char *name, int64_t campaign)
{
	long long id;
	int number, end = 0;

	return sscanf(name, "campaign-%lld.%d.json%n", &id, &number, &end) == 2 && end > 0 &&
	       name[end] == '\0' && (campaign == 0 || id == campaign);
}

int archives_load(const char *root, int64_t campaign, struct archives *out, struct err *e)
{
	_cleanup_free_ char *dir = fs_join(root, "archive");
	struct archives v = {0};
	DIR *d = opendir(dir);
	int rc = 0;

	*out = v;
	if (!d && errno == ENOENT)
		return 0;
	if (!d)
		return err_sys(e, ERR_IO, "cannot read %s", dir);
	for (struct dirent *f = readdir(d); f && rc == 0; f = readdir(d)) {
		_cleanup_free_ char *path = fs_join(dir, f->d_name);

		if (!is_manifest(f->d_name, campaign))
			continue;
		v.v = xgrow(v.v, v.n, &v.cap, sizeof *v.v);
		v.v[v.n] = (struct archive){0};
		rc = read_manifest(path, &v.v[v.n++], e);
	}
	closedir(d);
	if (rc < 0) {
		archives_free(&v);
		return rc;
	}
	if (v.n)
		qsort(v.v, v.n, sizeof *v.v, by_number);
	*out = v;
	return 0;
}

/* -- finding ---------------------------------------------------------------------------------- */

const struct archive *archives_find(const struct archives *a, const char *path)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < a->v[i].dirs.n; k++) {
			size_t n = strlen(a->v[i].dirs.v[k]);

			if (strncmp(path, a->v[i].dirs.v[k], n) == 0 &&
			    (path[n] == '/' || path[n] == '\0'))
				return &a->v[i];
		}
	return NULL;
}

char *archive_advice(const char *path)
{
	_cleanup_free_ char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
	_cleanup_free_ char *whole = fs_join(cwd ? cwd : "/", path), *root = NULL;
	const struct archive *found;
	struct archives a = {0};
	char *at = NULL, *text = NULL;

	for (char *p = strstr(whole, "/blocks/"); p; p = strstr(p + 1, "/blocks/"))
		at = p;
	if (!at || fs_exists(path))
		return NULL;
	root = xstrndup(whole, (size_t)(at - whole));
	if (archives_load(root, 0, &a, NULL) < 0)
		return NULL;
	found = archives_find(&a, at + 1);
	if (found)
		text = xasprintf("it is packed in %s: `fettle archive --restore %lld` brings it "
				 "back",
				 found->tar, (long long)found->campaign);
	archives_free(&a);
	return text;
}
