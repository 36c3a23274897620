/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files: bounded reads, writes that are there whole or not at all, directories. */
#ifndef FETTLE_BASE_FS_H
#define FETTLE_BASE_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* What an errno of open(2) or read(2) means for the file: ERR_NOT_FOUND; ERR_READ, the file may be
 * whole and what holds it gave an error, so that it is read again later; or ERR_IO. */
enum err_code fs_code(int errnum);
/* open(2) for reading: a descriptor, or -1 with errno. Only reads wait: a pipe without a writer,
 * which a workload may leave where a file is expected, is empty instead of waited for. */
int fs_open(const char *path);
/* Append the whole file to out; more than max bytes is ERR_LIMIT. ERR_NOT_FOUND when absent. */
int fs_read(const char *path, size_t max, struct buf *out, struct err *e);

/* All n bytes, however many calls that takes. -1 with errno. */
int fs_write_all(int fd, const char *data, size_t n);

/* tmp in the same directory, fsync, rename, fsync of the directory. The umask applies to mode, as
 * for open(2). A tmp left by a crash is `.<name>.tmp.<pid>` and is harmless. Whatever had the name
 * is replaced, a link or a device too. */
int fs_write_atomic(const char *path, const void *data, size_t n, mode_t mode, struct err *e);
/* The same for a file that a person named on the command line: a device, a pipe and our own
 * standard output are written to as they are, and of a link its target is replaced. An empty name
 * is ERR_USAGE. Not for names within a workspace, where a link may be another user's. */
int fs_write_named(const char *path, const void *data, size_t n, mode_t mode, struct err *e);

/* Is it the directory of a group: writable for its group, and not sticky? What is made in one by
 * fs_create(), fs_write_atomic() or fs_mkdirs(), and has the directory's group (setgid keeps that
 * so), is for the group what it is for its owner, whatever the umask. */
bool fs_shared(const char *dir);
/* open(2) for writing with O_CREAT and O_CLOEXEC: a descriptor, or -1 with errno. */
int fs_create(const char *path, int flags, mode_t mode);

int fs_mkdirs(const char *path, mode_t mode, struct err *e); /* with parents; existing is fine */
/* absent is fine; never follows links */
int fs_remove_tree(const char *path, struct err *e);
bool fs_exists(const char *path);
/* heap; an absolute name stays itself */
char *fs_join(const char *dir, const char *name);
/* heap; realpath of an existing path */
char *fs_absolute(const char *path, struct err *e);
/* The way to an absolute path from an absolute directory, "../ws/blocks"; heap. NULL when they have
 * nothing but "/" in common: what holds on one machine alone. Both as fs_absolute() gives them. */
char *fs_relative(const char *dir, const char *path);
const char *fs_basename(const char *path); /* borrowed part of path */
int64_t fs_size(const char *path);         /* -1 when absent */

/* True on NFS, Lustre, GPFS, CIFS, FUSE, BeeGFS and the like (statfs): SQLite's WAL is not safe
 * there. */
bool fs_is_network(const char *path);

/* What lies at tmp is on the disk before it is called path. On failure tmp stays. */
int fs_publish(const char *tmp, const char *path, struct err *e);

/* XXH3-128 as 32 hex digits. An identity, not a security hash. */
void fs_hash(const void *data, size_t n, char out[33]);
int fs_hash_file(const char *path, char out[33], struct err *e);

#endif
