/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/diskuse.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ENTRIES_MAX = 200000, /* about a second on a local disk: the walk comes once a second */
	DEPTH_MAX = 64,       /* one descriptor a level */
	BLOCK_BYTES = 512,    /* unit of st_blocks */
};

struct walk {
	int64_t bytes;
	int entries;
};

static void walk_dir(int fd, int depth, struct walk *w);

static void walk_entry(int dirfd, const char *name, int depth, struct walk *w)
{
	struct stat st;
	int fd;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	w->entries++;
	w->bytes += (int64_t)st.st_blocks * BLOCK_BYTES;
	if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
		return;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		walk_dir(fd, depth + 1, w);
}

/* Takes fd. */
static void walk_dir(int fd, int depth, struct walk *w)
{
	DIR *d = fdopendir(fd);
	struct dirent *de;

	if (!d) {
		close(fd);
		return;
	}
	while (w->entries < ENTRIES_MAX && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			walk_entry(dirfd(d), de->d_name, depth, w);
	closedir(d);
}

int64_t diskuse_bytes(const char *dir)
{
	struct walk w = {0};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		walk_dir(fd, 0, &w);
	return w.bytes;
}
