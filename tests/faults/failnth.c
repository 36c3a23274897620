/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A preloaded library that disturbs its process at the FAIL_NTH-th call that counts: with SIGKILL
 * just before it, as by a power switch, or with FAIL_WITH=ENOSPC (EIO, EROFS, ENOMEM) the call
 * fails. With FAIL_LAST, too, so does each one up to that number. What counts: the calls that
 * FAIL_CALLS names, by default those that make state durable or visible, on a path that matches
 * the pattern FAIL_PATH, if there is one. FAIL_TOLD names a file that is told which call it was,
 * on what, and at the end how many there were; with FAIL_NTH unset nothing is disturbed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
	long nth, last, seen;
	int with; /* errno, or 0: SIGKILL */
	bool mallocs;
	const char *calls, *path, *told;
} fail;

static int errno_of(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EROFS", EROFS}, {"ENOMEM", ENOMEM}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].value;
	return 0;
}

__attribute__((constructor)) static void set_up(void)
{
	const char *nth = getenv("FAIL_NTH"), *last = getenv("FAIL_LAST"),
		   *with = getenv("FAIL_WITH"), *calls = getenv("FAIL_CALLS");

	fail.calls = calls ? calls : "fsync fdatasync rename";
	fail.path = getenv("FAIL_PATH");
	fail.told = getenv("FAIL_TOLD");
	fail.with = with ? errno_of(with) : 0;
	fail.mallocs = strstr(fail.calls, "malloc") != NULL;
	fail.last = last ? strtol(last, NULL, 10) : 0;
	fail.nth = nth ? strtol(nth, NULL, 10) : 0;
	if (fail.nth) /* a process that may write no file cannot tell: it is not to die of that */
		signal(SIGXFSZ, SIG_IGN);
}

static bool is_named(const char *call)
{
	size_t n = strlen(call);

	for (const char *p = fail.calls; (p = strstr(p, call)) != NULL; p += n)
		if ((p == fail.calls || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return true;
	return false;
}

static void tell(const char *call, const char *path)
{
	char line[4500];
	int fd, n = snprintf(line, sizeof line, "%s %s\n", call, path ? path : "");
	ssize_t (*real)(int, const void *,
			size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT,
											  "open");

	if (fail.told && (fd = real_open(fail.told, O_WRONLY | O_CREAT | O_APPEND, 0600)) >= 0) {
		if (real(fd, line, (size_t)n) < 0 && errno != EFBIG)
			abort();
		close(fd);
	}
}

/* Is it the one? Then errno is set, unless it is the end. No path: memory. */
static bool hit(const char *call, const char *path)
{
	if (!fail.nth || (path && fail.path && fnmatch(fail.path, path, 0) != 0))
		return false;
	fail.seen++;
	if (fail.seen != fail.nth && (fail.seen < fail.nth || fail.seen > fail.last))
		return false;
	if (fail.seen == fail.nth)
		tell(call, path);
	if (!fail.with)
		kill(getpid(), SIGKILL);
	errno = fail.with;
	return true;
}

__attribute__((destructor)) static void tell_all(void)
{
	char text[32];

	snprintf(text, sizeof text, "%ld", fail.seen);
	if (fail.nth)
		tell("seen", text);
}

static bool fails(const char *call, const char *path)
{
	return is_named(call) && hit(call, path);
}

static bool fails_at(const char *call, int fd)
{
	char link[64], path[4096];
	ssize_t n;

	if (!is_named(call))
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return hit(call, path);
}

#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

int fsync(int fd)
{
	return fails_at("fsync", fd) ? -1 : REAL(fsync, fd);
}

int fdatasync(int fd)
{
	return fails_at("fdatasync", fd) ? -1 : REAL(fdatasync, fd);
}

int rename(const char *from, const char *to)
{
	return fails("rename", to) ? -1 : REAL(rename, from, to);
}

int symlink(const char *target, const char *path)
{
	return fails("symlink", path) ? -1 : REAL(symlink, target, path);
}

int unlink(const char *path)
{
	return fails("unlink", path) ? -1 : REAL(unlink, path);
}

int unlinkat(int dir, const char *path, int flags)
{
	return fails("unlinkat", path) ? -1 : REAL(unlinkat, dir, path, flags);
}

pid_t fork(void)
{
	return fails("fork", "") ? -1 : REAL(fork);
}

int mkdir(const char *path, mode_t mode)
{
	return fails("mkdir", path) ? -1 : REAL(mkdir, path, mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
	return fails_at("write", fd) ? -1 : REAL(write, fd, data, n);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	return fails_at("write", fd) ? -1 : REAL(pwrite, fd, data, n, at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
	return fails_at("write", fd) ? -1 : REAL(pwrite64, fd, data, n, at);
}

/* SQLite reads at places, zlib and we read on. glibc's checked forms are what the same calls become
 * where the size of the buffer is known. */
ssize_t read(int fd, void *data, size_t n)
{
	return fails_at("read", fd) ? -1 : REAL(read, fd, data, n);
}

ssize_t pread(int fd, void *data, size_t n, off_t at)
{
	return fails_at("read", fd) ? -1 : REAL(pread, fd, data, n, at);
}

ssize_t pread64(int fd, void *data, size_t n, off64_t at)
{
	return fails_at("read", fd) ? -1 : REAL(pread64, fd, data, n, at);
}

ssize_t __read_chk(int fd, void *data, size_t n, size_t room);
ssize_t __read_chk(int fd, void *data, size_t n, size_t room)
{
	return fails_at("read", fd) ? -1 : REAL(__read_chk, fd, data, n, room);
}

int ftruncate(int fd, off_t n)
{
	return fails_at("ftruncate", fd) ? -1 : REAL(ftruncate, fd, n);
}

int ftruncate64(int fd, off64_t n)
{
	return fails_at("ftruncate", fd) ? -1 : REAL(ftruncate64, fd, n);
}

/* Only what is opened to be written. */
static bool open_fails(const char *path, int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY && fails("open", path);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return open_fails(path, flags) ? -1 : REAL(open, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return open_fails(path, flags) ? -1 : REAL(open64, path, flags, mode);
}

/* --- memory: dlsym() needs some itself -------------------------------------------------------- */

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

/* lint: allow malloc because it stands for that of libc here */
void *malloc(size_t n)
{
	return fail.mallocs && hit("malloc", NULL) ? NULL : __libc_malloc(n);
}

/* lint: allow calloc because it stands for that of libc here */
void *calloc(size_t n, size_t size)
{
	return fail.mallocs && hit("malloc", NULL) ? NULL : __libc_calloc(n, size);
}

/* lint: allow realloc because it stands for that of libc here */
void *realloc(void *p, size_t n)
{
	return fail.mallocs && hit("malloc", NULL) ? NULL : __libc_realloc(p, n);
}
