/* SPDX-License-Identifier: GPL-2.0-or-later */
/* link: -shared */
/*
 * A slow disk: each read of a regular file below $SLOW_READ_DIR takes $SLOW_READ_US longer. To be
 * preloaded; whatever else a program reads is as fast as ever. Reads that are larger than
 * $SLOW_READ_BYTES (default 1 MiB) take the time once for each part of that size.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { PART_BYTES = 1 << 20 };

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

static int is_slow(int fd)
{
	const char *dir = getenv("SLOW_READ_DIR");
	char link[64], path[4096];
	ssize_t n;

	if (!dir)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	return strncmp(path, dir, strlen(dir)) == 0;
}

static void wait_for(int fd, ssize_t n)
{
	long us = number("SLOW_READ_US", 1000), part = number("SLOW_READ_BYTES", PART_BYTES);
	struct timespec t;

	if (n <= 0 || !is_slow(fd))
		return;
	us *= 1 + (long)n / part;
	t = (struct timespec){us / 1000000, us % 1000000 * 1000};
	nanosleep(&t, NULL);
}

ssize_t read(int fd, void *buf, size_t n)
{
	static ssize_t (*real)(int, void *, size_t);
	ssize_t got;

	if (!real)
		real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	got = real(fd, buf, n);
	wait_for(fd, got);
	return got;
}

ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
	static ssize_t (*real)(int, void *, size_t, off64_t);
	ssize_t got;

	if (!real)
		real = (ssize_t(*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
	got = real(fd, buf, n, at);
	wait_for(fd, got);
	return got;
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	return pread64(fd, buf, n, at);
}
