/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/shm.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/agent/procs.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	MAPS_MAX = 16 << 20,
	SLACK_US = 20000, /* ctime comes from the kernel's coarse clock, up to a tick behind */
};

/* Our user's regular file; others, links and directories are none of our business. */
static bool is_own(int dirfd, const char *name, struct stat *st)
{
	return fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode) &&
	       st->st_uid == geteuid();
}

void shm_before(const char *dir, struct shm_list *out)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d)))
		if (is_own(dirfd(d), de->d_name, &st)) {
			out->v = xgrow(out->v, out->n, &out->cap, sizeof *out->v);
			out->v[out->n++] = st.st_ino;
		}
	if (d)
		closedir(d);
}

static bool was_there(const struct shm_list *l, ino_t ino)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i] == ino)
			return true;
	return false;
}

static bool maps_hold(pid_t pid, const char *path)
{
	char file[64];
	struct buf b = {0};
	bool found;

	snprintf(file, sizeof file, "/proc/%ld/maps", (long)pid);
	found = fs_read(file, MAPS_MAX, &b, NULL) == 0 && b.data && strstr(b.data, path);
	buf_free(&b);
	return found;
}

static bool fds_hold(pid_t pid, const struct stat *want)
{
	char dir[64];
	struct dirent *de;
	struct stat st;
	bool found = false;
	DIR *d;

	snprintf(dir, sizeof dir, "/proc/%ld/fd", (long)pid);
	d = opendir(dir);
	while (d && !found && (de = readdir(d)))
		found = fstatat(dirfd(d), de->d_name, &st, 0) == 0 && st.st_ino == want->st_ino &&
			st.st_dev == want->st_dev;
	if (d)
		closedir(d);
	return found;
}

/* Processes of other users cannot have been given our 0600 file, and cannot be looked into anyway.
 */
static bool in_use(const char *path, const struct stat *st)
{
	struct procs p = {0};
	bool used = false;

	procs_scan(&p);
	for (size_t i = 0; i < p.n && !used; i++)
		used = p.v[i].state != 'Z' &&
		       (maps_hold(p.v[i].pid, path) || fds_hold(p.v[i].pid, st));
	procs_free(&p);
	return used;
}

size_t shm_clean(const char *dir, const struct shm_list *before, int64_t start_us)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	struct stat st;
	size_t removed = 0;

	while (d && (de = readdir(d))) {
		_cleanup_free_ char *path = fs_join(dir, de->d_name);
		int64_t changed;

		if (!is_own(dirfd(d), de->d_name, &st) || was_there(before, st.st_ino))
			continue;
		changed = (int64_t)st.st_ctim.tv_sec * 1000000 + st.st_ctim.tv_nsec / 1000;
		if (changed + SLACK_US >= start_us && !in_use(path, &st))
			removed += unlinkat(dirfd(d), de->d_name, 0) == 0;
	}
	if (d)
		closedir(d);
	return removed;
}

void shm_free(struct shm_list *l)
{
	free(l->v);
	*l = (struct shm_list){0};
}
