/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "orchestrator/base/mem.h"

enum {
	CHUNK_BYTES = 65536,
	/* One descriptor a level; the usual limit is 1024. No workload nests deeper by intent. */
	TREE_DEPTH_MAX = 256,
};

enum err_code fs_code(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return ERR_NOT_FOUND;
	case EIO: /* a disk; the others are those of file servers */
	case EREMOTEIO:
	case ESTALE:
	case ETIMEDOUT:
	case ENOTCONN:
	case ESHUTDOWN:
		return ERR_READ;
	default:
		return ERR_IO;
	}
}

static int read_all(int fd, const char *path, size_t max, struct buf *out, struct err *e)
{
	_cleanup_free_ char *chunk = xmalloc(CHUNK_BYTES);
	size_t start = out->len;
	ssize_t n;

	for (;;) {
		n = read(fd, chunk, CHUNK_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (out->len - start + (size_t)n > max)
			return err_set(e, ERR_LIMIT, "%s is larger than %zu bytes", path, max);
		buf_put(out, chunk, (size_t)n);
	}
	if (n < 0)
		return err_sys(e, fs_code(errno), "cannot read %s", path);
	buf_put(out, "", 0); /* an empty file is "" and not NULL */
	return 0;
}

int fs_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0)
		fcntl(fd, F_SETFL, 0);
	return fd;
}

int fs_read(const char *path, size_t max, struct buf *out, struct err *e)
{
	size_t start = out->len;
	int fd = fs_open(path);
	int rc;

	if (fd < 0)
		return err_sys(e, fs_code(errno), "cannot open %s", path);
	rc = read_all(fd, path, max, out, e);
	close(fd);
	if (rc && out->data) {
		out->len = start;
		out->data[start] = '\0';
	}
	return rc;
}

int fs_write_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, data, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Make the rename itself durable. Some file systems cannot sync a directory: they say EINVAL. */
static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -1;
	rc = fsync(fd);
	if (rc && (errno == EINVAL || errno == ENOTSUP))
		rc = 0;
	close(fd);
	return rc;
}

static char *dir_of(const char *path)
{
	size_t n = (size_t)(fs_basename(path) - path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return n == 0 ? xstrdup(".") : xstrndup(path, n);
}

bool fs_shared(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && (st.st_mode & S_IWGRP) && !(st.st_mode & S_ISVTX);
}

/* Where that fails the file stays its owner's, as on a file system without modes. */
static void share(int fd, const char *path)
{
	_cleanup_free_ char *dir = dir_of(path);
	struct stat above, st;

	if (!fs_shared(dir) || stat(dir, &above) || fstat(fd, &st) || st.st_gid != above.st_gid ||
	    st.st_uid != geteuid())
		return;
	if (((st.st_mode & S_IRWXU) >> 3) & ~(st.st_mode & S_IRWXG))
		(void)!fchmod(fd, (st.st_mode & 07777) | (st.st_mode & S_IRWXU) >> 3);
}

int fs_create(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags | O_CREAT | O_CLOEXEC, mode);

	if (fd >= 0)
		share(fd, path);
	return fd;
}

static int write_tmp(const char *tmp, const void *data, size_t n, mode_t mode)
{
	int fd, rc, saved;

	unlink(tmp); /* left by a crash of a process that had our pid */
	fd = fs_create(tmp, O_WRONLY | O_EXCL, mode);
	if (fd < 0)
		return -1;
	rc = fs_write_all(fd, data, n);
	if (!rc)
		rc = fsync(fd);
	saved = errno;
	if (close(fd) && !rc)
		return -1;
	errno = saved;
	return rc;
}

int fs_write_atomic(const char *path, const void *data, size_t n, mode_t mode, struct err *e)
{
	_cleanup_free_ char *dir = dir_of(path);
	_cleanup_free_ char *tmp = xasprintf("%s/.%s.tmp.%ld", dir, fs_basename(path),
					     (long)getpid());
	int saved;

	if (write_tmp(tmp, data, n, mode) || rename(tmp, path)) {
		saved = errno;
		unlink(tmp);
		errno = saved;
		return err_sys(e, ERR_IO, "cannot write %s", path);
	}
	if (sync_dir(dir))
		return err_sys(e, ERR_IO, "cannot sync directory %s", dir);
	return 0;
}

/* Is it our own standard output under another name, /dev/stdout or the file of the shell's ">"? */
static bool is_stdout(const struct stat *st)
{
	struct stat out;

	return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st->st_dev &&
	       out.st_ino == st->st_ino;
}

static int write_in_place(const char *path, const struct stat *st, const void *data, size_t n,
			  struct err *e)
{
	int fd = is_stdout(st) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
			       : open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	int rc, saved;

	if (fd < 0)
		return err_sys(e, ERR_IO, "cannot write %s", path);
	rc = fs_write_all(fd, data, n);
	saved = errno;
	close(fd);
	errno = saved;
	return rc ? err_sys(e, ERR_IO, "cannot write %s", path) : 0;
}

int fs_write_named(const char *path, const void *data, size_t n, mode_t mode, struct err *e)
{
	_cleanup_free_ char *target = realpath(path, NULL);
	struct stat st;

	if (!*path)
		return err_set(e, ERR_USAGE, "a file with an empty name cannot be written");
	if (stat(path, &st) || S_ISDIR(st.st_mode))
		return fs_write_atomic(path, data, n, mode, e);
	if (!S_ISREG(st.st_mode) || is_stdout(&st))
		return write_in_place(path, &st, data, n, e);
	return fs_write_atomic(target ? target : path, data, n, mode, e);
}

static int new_dir(const char *path, mode_t mode)
{
	int fd;

	if (mkdir(path, mode))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		share(fd, path);
		close(fd);
	}
	return 0;
}

static int make_dir(const char *path, mode_t mode, struct err *e)
{
	struct stat st;

	if (new_dir(path, mode) == 0)
		return 0;
	if (errno == EEXIST && stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		errno = ENOTDIR;
	}
	return err_sys(e, ERR_IO, "cannot make directory %s", path);
}

int fs_publish(const char *tmp, const char *path, struct err *e)
{
	_cleanup_free_ char *dir = dir_of(path);
	int fd = open(tmp, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0)
		close(fd);
	if (rc || rename(tmp, path))
		return err_sys(e, ERR_IO, "cannot write %s", path);
	if (sync_dir(dir))
		return err_sys(e, ERR_IO, "cannot sync directory %s", dir);
	return 0;
}

int fs_mkdirs(const char *path, mode_t mode, struct err *e)
{
	_cleanup_free_ char *copy = xstrdup(path);
	int rc;

	if (!*copy)
		return err_set(e, ERR_IO, "cannot make a directory with an empty name");
	if (new_dir(path, mode) == 0) /* mostly only the last one is missing */
		return 0;
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		rc = make_dir(copy, mode, e);
		if (rc)
			return rc;
		*p = '/';
	}
	return make_dir(copy, mode, e);
}

static int remove_at(int dirfd, const char *name, int depth);

/* Takes fd. */
static int remove_entries(int fd, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *de;
	int rc = 0, saved;

	if (!d) {
		close(fd);
		return -1;
	}
	while (!rc && (de = readdir(d)))
		if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, ".."))
			rc = remove_at(fd, de->d_name, depth);
	saved = errno;
	closedir(d);
	errno = saved;
	return rc;
}

static int open_dir_at(int dirfd, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, flags);

	/* A workload may leave a directory that even its owner cannot enter. */
	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, S_IRWXU, 0) == 0)
		fd = openat(dirfd, name, flags);
	return fd;
}

static int remove_at(int dirfd, const char *name, int depth)
{
	int fd;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	if (depth >= TREE_DEPTH_MAX) {
		errno = ELOOP;
		return -1;
	}
	fd = open_dir_at(dirfd, name);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	fchmod(fd, S_IRWXU);
	if (remove_entries(fd, depth + 1))
		return -1;
	return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

int fs_remove_tree(const char *path, struct err *e)
{
	if (remove_at(AT_FDCWD, path, 0))
		return err_sys(e, ERR_IO, "cannot remove %s", path);
	return 0;
}

bool fs_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

char *fs_join(const char *dir, const char *name)
{
	if (name[0] == '/' || !*dir)
		return xstrdup(name);
	return xasprintf("%s%s%s", dir, str_ends(dir, "/") ? "" : "/", name);
}

char *fs_absolute(const char *path, struct err *e)
{
	char *p = realpath(path, NULL);

	if (!p)
		err_sys(e, fs_code(errno), "cannot resolve %s", path);
	return p;
}

/* Length of the head of a and b that is made of whole names. */
static size_t common_names(const char *a, const char *b)
{
	size_t end = 0, i = 0;

	for (; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			end = i;
	if ((!a[i] || a[i] == '/') && (!b[i] || b[i] == '/'))
		end = i;
	return end;
}

char *fs_relative(const char *dir, const char *path)
{
	size_t same = common_names(dir, path);
	struct buf b = {0};

	if (same == 0)
		return NULL;
	for (const char *p = dir + same; *p; p++)
		if (*p == '/' && p[1])
			buf_str(&b, "../");
	buf_str(&b, path + same + (path[same] == '/'));
	if (b.len == 0)
		buf_char(&b, '.');
	else if (b.data[b.len - 1] == '/')
		b.data[--b.len] = '\0';
	return buf_take(&b);
}

const char *fs_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int64_t fs_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static bool magic_is_network(unsigned long magic)
{
	/* linux/magic.h where it names them, else the file systems' own sources */
	static const unsigned long network[] = {
		0x6969,     /* NFS */
		0x0BD00BD0, /* Lustre */
		0x47504653, /* GPFS */
		0xFF534D42, /* CIFS */
		0xFE534D42, /* SMB2 */
		0x517B,     /* SMB */
		0x65735546, /* FUSE: sshfs, glusterfs, many others */
		0x19830326, /* BeeGFS */
		0x00C36400, /* Ceph */
		0x01021997, /* 9p */
		0x5346414F, /* AFS */
		0x6B414653, /* kAFS */
		0x73757245, /* Coda */
		0xAAD7AAEA, /* PanFS */
		0x7461636F, /* OCFS2 */
		0x01161970, /* GFS2 */
		0x20030528, /* OrangeFS */
		0xBACBACBC, /* VMware shared folders */
		0x786F4256, /* VirtualBox shared folders */
	};

	for (size_t i = 0; i < ARRAY_LEN(network); i++)
		if (magic == network[i])
			return true;
	return false;
}

bool fs_is_network(const char *path)
{
	_cleanup_free_ char *p = xstrdup(path);
	struct statfs st;

	while (statfs(p, &st)) { /* not there yet: its nearest parent tells */
		char *up = dir_of(p);
		bool top = str_eq(up, p) || errno != ENOENT;

		free(p);
		p = up;
		if (top)
			return false;
	}
	return magic_is_network((unsigned long)st.f_type & 0xFFFFFFFFUL);
}

static void hash_hex(XXH128_hash_t h, char out[33])
{
	snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
}

void fs_hash(const void *data, size_t n, char out[33])
{
	hash_hex(XXH3_128bits(data, n), out);
}

int fs_hash_file(const char *path, char out[33], struct err *e)
{
	_cleanup_free_ char *chunk = xmalloc(CHUNK_BYTES);
	XXH3_state_t *state;
	ssize_t n;
	int fd = fs_open(path), rc = 0;

	if (fd < 0)
		return err_sys(e, fs_code(errno), "cannot open %s", path);
	state = xchecked(XXH3_createState());
	XXH3_128bits_reset(state);
	while ((n = read(fd, chunk, CHUNK_BYTES)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			XXH3_128bits_update(state, chunk, (size_t)n);
	if (n == 0)
		hash_hex(XXH3_128bits_digest(state), out);
	else
		rc = err_sys(e, fs_code(errno), "cannot read %s", path);
	XXH3_freeState(state);
	close(fd);
	return rc;
}
