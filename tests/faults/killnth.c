/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A preloaded library that ends its process with SIGKILL just before the KILL_NTH-th call that
 * makes state durable or visible: fsync, fdatasync, rename. With KILL_CALL only such calls count
 * (symlink, mkdir, unlink and unlinkat, too), with KILL_PATH only those on a path that matches this
 * pattern. With KILL_NTH unset it does nothing. Whatever is written between two of them is lost or
 * torn, as by a power switch.
 */
#include <dlfcn.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(const char *call, bool durable, const char *path)
{
	static long seen;
	const char *nth = getenv("KILL_NTH"), *only = getenv("KILL_CALL"),
		   *pattern = getenv("KILL_PATH");

	if (only ? strcmp(only, call) != 0 : !durable)
		return;
	if (pattern && fnmatch(pattern, path, 0) != 0)
		return;
	if (nth && ++seen == strtol(nth, NULL, 10))
		kill(getpid(), SIGKILL);
}

int fsync(int fd);
int fdatasync(int fd);
int rename(const char *from, const char *to);

int fsync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	count("fsync", true, "");
	return real(fd);
}

int fdatasync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");

	count("fdatasync", true, "");
	return real(fd);
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *,
		    const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");

	count("rename", true, to);
	return real(from, to);
}

int symlink(const char *target, const char *path)
{
	int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(
		RTLD_NEXT, "symlink");

	count("symlink", false, path);
	return real(target, path);
}

int unlink(const char *path)
{
	int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");

	count("unlink", false, path);
	return real(path);
}

int unlinkat(int dir, const char *path, int flags)
{
	int (*real)(int, const char *, int) = (int (*)(int, const char *, int))dlsym(RTLD_NEXT,
										     "unlinkat");

	count("unlinkat", false, path);
	return real(dir, path, flags);
}

int mkdir(const char *path, mode_t mode)
{
	int (*real)(const char *, mode_t) = (int (*)(const char *, mode_t))dlsym(RTLD_NEXT,
										 "mkdir");

	count("mkdir", false, path);
	return real(path, mode);
}
