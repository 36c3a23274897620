/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/commit.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	PARENTS_MAX = 64,
	LINKS_MAX = 5,         /* as git follows symbolic references */
	LINE_MAX_BYTES = 4096, /* a path */
	PACKED_MAX = 64 << 20, /* a million references */
};

/* The first line of a file; heap, NULL: there is no such file. */
static char *line_of(const char *dir, const char *name)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct buf b = {0};
	char *text = NULL;

	if (fs_read(path, LINE_MAX_BYTES, &b, NULL) == 0 && b.data)
		text = xstrndup(b.data, strcspn(b.data, "\r\n"));
	buf_free(&b);
	return text;
}

/* A path in a file of git's is relative to that file. */
static char *resolved(const char *dir, const char *path)
{
	return *path == '/' ? xstrdup(path) : fs_join(dir, path);
}

/* The directory that holds HEAD: .git, or what a file of that name points to. */
static char *git_dir(const char *dir)
{
	_cleanup_free_ char *at = fs_join(dir, ".git"), *head = fs_join(at, "HEAD"), *text = NULL;

	if (fs_exists(head))
		return TAKE(at);
	text = line_of(dir, ".git");
	return text && str_starts(text, "gitdir: ") ? resolved(dir, text + strlen("gitdir: "))
						    : NULL;
}

static bool is_hash(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return (n == 40 || n == 64) && (!s[n] || s[n] == ' ');
}

/* "HASH NAME" of the packed references. */
static char *packed(const char *dir, const char *name)
{
	_cleanup_free_ char *path = fs_join(dir, "packed-refs"), *end = xasprintf(" %s\n", name);
	struct buf b = {0};
	char *found = NULL, *at;

	if (fs_read(path, PACKED_MAX, &b, NULL) == 0 && b.data && (at = strstr(b.data, end))) {
		char *start = at;

		while (start > b.data && start[-1] != '\n')
			start--;
		if (is_hash(start))
			found = xstrndup(start, strcspn(start, " "));
	}
	buf_free(&b);
	return found;
}

/* A reference of a worktree is its own or the repository's. */
static char *look_up(const char *dir, const char *common, const char *name)
{
	char *text = strstr(name, "..") ? NULL : line_of(dir, name);

	if (!text && !strstr(name, ".."))
		text = line_of(common, name);
	return text ? text : packed(common, name);
}

static char *commit_in(const char *dir)
{
	_cleanup_free_ char *to = line_of(dir, "commondir"),
			    *common = to ? resolved(dir, to) : xstrdup(dir),
			    *text = line_of(dir, "HEAD");

	for (int i = 0; i < LINKS_MAX && text && str_starts(text, "ref: "); i++) {
		char *next = look_up(dir, common, text + strlen("ref: "));

		free(text);
		text = next;
	}
	return text && is_hash(text) ? TAKE(text) : NULL;
}

char *commit_of(const char *dir)
{
	_cleanup_free_ char *at = xstrdup(dir);

	for (int i = 0; i < PARENTS_MAX; i++) {
		_cleanup_free_ char *git = git_dir(at);
		char *slash = strrchr(at, '/');

		if (git)
			return commit_in(git);
		if (!slash || !at[1])
			return NULL;
		slash[slash == at] = '\0';
	}
	return NULL;
}
