/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

void source_done(struct script_source *s)
{
	free(s->name);
	free(s->path);
	free(s->text);
	memset(s, 0, sizeof(*s));
}

void script_sources_free(struct script_sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		source_done(&s->v[i]);
	free(s->v);
	memset(s, 0, sizeof(*s));
}

static int check_text(const char *path, const struct buf *text, struct err *e)
{
	if (text->len > 1 &&
	    (!memcmp(text->data, "\xff\xfe", 2) || !memcmp(text->data, "\xfe\xff", 2)))
		return err_set(e, ERR_RECIPE, "%s: is text in UTF-16; save it as UTF-8", path);
	if (memchr(text->data, '\0', text->len))
		return err_set(e, ERR_RECIPE,
			       "%s: holds a NUL byte; a recipe is Lua text, not compiled Lua",
			       path);
	return 0;
}

int source_read(const char *name, const char *path, struct script_source *out, struct err *e)
{
	struct buf text = {0};
	int rc = fs_read(path, SOURCE_BYTES_MAX, &text, e);

	if (rc == -ERR_LIMIT)
		rc = err_set(e, ERR_RECIPE, "%s is larger than %d MiB; a recipe is Lua text", path,
			     SOURCE_BYTES_MAX >> 20);
	if (rc == 0)
		rc = check_text(path, &text, e);
	if (rc) {
		buf_free(&text);
		return rc;
	}
	memset(out, 0, sizeof(*out));
	fs_hash(text.data, text.len, out->hash);
	out->name = xstrdup(name);
	out->path = fs_absolute(path, NULL);
	if (!out->path)
		out->path = xstrdup(path);
	out->text = buf_take(&text);
	return 0;
}

void sources_add(struct script_sources *all, struct script_source *s)
{
	all->v = xrealloc(all->v, all->n + 1, sizeof(*all->v));
	all->v[all->n++] = *s;
	memset(s, 0, sizeof(*s));
}

void sources_add_copy(struct script_sources *all, const struct script_source *s)
{
	struct script_source copy = *s;

	copy.name = xstrdup(s->name);
	copy.path = xstrdup(s->path);
	copy.text = xstrdup(s->text);
	sources_add(all, &copy);
}

const struct script_source *sources_find(const struct script_sources *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->v[i].name, name))
			return &all->v[i];
	return NULL;
}

void sources_hash(struct script_sources *all)
{
	struct buf b = {0};

	for (size_t i = 0; i < all->n; i++) {
		buf_printf(&b, "%zu:%s %zu:", strlen(all->v[i].name), all->v[i].name,
			   strlen(all->v[i].text));
		buf_str(&b, all->v[i].text);
		buf_char(&b, '\n');
	}
	fs_hash(b.data ? b.data : "", b.len, all->hash);
	buf_free(&b);
}

/* --- the recipe path ---------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names without ".lua", sorted; none when there is no such directory. */
static int list_dir(const char *dir, struct strv *names, struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, ERR_IO, "%s", dir);
	while ((entry = readdir(d))) {
		size_t n = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || !str_ends(entry->d_name, ".lua"))
			continue;
		if (names->n >= SOURCE_FILES_MAX) {
			closedir(d);
			return err_set(e, ERR_LIMIT, "%s: more than %d recipe files", dir,
				       SOURCE_FILES_MAX);
		}
		entry->d_name[n - 4] = '\0';
		strv_add(names, entry->d_name);
	}
	closedir(d);
	if (names->n)
		qsort(names->v, names->n, sizeof(*names->v), by_name);
	return 0;
}

static int read_from(const char *dir, const char *kind, const char *name, struct script_source *out,
		     struct err *e)
{
	_cleanup_free_ char *path = xasprintf("%s/%s/%s.lua", dir, kind, name);
	_cleanup_free_ char *full = xasprintf("%s/%s", kind, name);

	return source_read(full, path, out, e);
}

int sources_of_kind(const char *const *dirs, const char *kind, struct script_sources *out,
		    struct err *e)
{
	int rc = 0;

	for (; dirs && *dirs && !rc; dirs++) {
		_cleanup_free_ char *dir = fs_join(*dirs, kind);
		struct strv names = {0};

		rc = list_dir(dir, &names, e);
		for (size_t i = 0; i < names.n && !rc; i++) {
			_cleanup_free_ char *full = xasprintf("%s/%s", kind, names.v[i]);
			struct script_source s;

			if (sources_find(out, full))
				continue;
			rc = read_from(*dirs, kind, names.v[i], &s, e);
			if (!rc)
				sources_add(out, &s);
		}
		strv_free(&names);
	}
	return rc;
}

int source_on_path(const char *const *dirs, const char *kind, const char *name,
		   struct script_source *out, struct err *e)
{
	for (; dirs && *dirs; dirs++) {
		int rc = read_from(*dirs, kind, name, out, e);

		if (rc != -ERR_NOT_FOUND)
			return rc;
	}
	return err_set(e, ERR_NOT_FOUND, "%s/%s.lua is not on the recipe path", kind, name);
}
