/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A preloaded library that ends its process with SIGKILL just before the KILL_NTH-th call that
 * makes state durable or visible: fsync, fdatasync, rename. With KILL_NTH unset it does nothing.
 * Whatever is written between two of them is lost or torn, as by a power switch.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void count(void)
{
	static long seen;
	const char *nth = getenv("KILL_NTH");

	if (nth && ++seen == strtol(nth, NULL, 10))
		kill(getpid(), SIGKILL);
}

int fsync(int fd);
int fdatasync(int fd);
int rename(const char *from, const char *to);

int fsync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	count();
	return real(fd);
}

int fdatasync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");

	count();
	return real(fd);
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *,
		    const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");

	count();
	return real(from, to);
}
