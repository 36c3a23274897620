/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/procs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	STAT_MAX = 1024, /* /proc/PID/stat is about 300 bytes */
	ENVIRON_MAX = 4 << 20,
	YOUNG_S = 2,
	KTHREADD = 2, /* the parent of all kernel threads */
};

int procs_read(pid_t pid, struct procs_one *out)
{
	char path[64], text[STAT_MAX];
	long long utime, stime, threads, rss;
	unsigned long long start;
	int ppid, session, fd;
	const char *p;
	char state;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	p = strrchr(text, ')'); /* the name in parentheses may hold anything */
	if (!p ||
	    sscanf(p + 1,
		   " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %lld %lld %*d %*d %*d %*d %lld %*d"
		   " %llu %*u %lld",
		   &state, &ppid, &session, &utime, &stime, &threads, &start, &rss) != 8)
		return -1;
	*out = (struct procs_one){.pid = pid,
				  .ppid = ppid,
				  .session = session,
				  .state = state,
				  .start_ticks = start,
				  .utime = utime,
				  .stime = stime,
				  .threads = threads,
				  .rss_pages = rss};
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct procs_one *)a)->pid, y = ((const struct procs_one *)b)->pid;

	return (x > y) - (x < y);
}

static struct procs_one *find(const struct procs *p, pid_t pid)
{
	const struct procs_one key = {.pid = pid};

	return p->n ? bsearch(&key, p->v, p->n, sizeof *p->v, by_pid) : NULL;
}

/* One that was asked for its environment and is none of ours stays so. */
static const struct procs_one *settled(const struct procs *before, pid_t pid)
{
	const struct procs_one *known = find(before, pid);

	return known && known->asked && !known->ours ? known : NULL;
}

void procs_scan_again(struct procs *p, const struct procs *before, const struct procs *kernel)
{
	DIR *d = opendir("/proc");
	struct dirent *de;

	p->n = 0;
	while (d && (de = readdir(d))) {
		const struct procs_one *known;
		struct procs_one one;
		int64_t pid;

		if (de->d_name[0] < '1' || de->d_name[0] > '9' || !str_to_i64(de->d_name, &pid) ||
		    find(kernel, (pid_t)pid))
			continue;
		known = settled(before, (pid_t)pid);
		if (known)
			one = *known;
		else if (procs_read((pid_t)pid, &one))
			continue;
		p->v = xgrow(p->v, p->n, &p->cap, sizeof *p->v);
		p->v[p->n++] = one;
	}
	if (d)
		closedir(d);
	if (p->n > 1)
		qsort(p->v, p->n, sizeof *p->v, by_pid);
}

void procs_scan(struct procs *p)
{
	procs_scan_again(p, &(struct procs){0}, &(struct procs){0});
}

void procs_kernel_threads(struct procs *out)
{
	size_t keep = 0;

	procs_scan(out);
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].ppid == KTHREADD || out->v[i].pid == KTHREADD)
			out->v[keep++] = out->v[i];
	/* In a container number 2 is any process, which has memory. */
	if (keep > 0 && out->v[0].rss_pages > 0)
		keep = 0;
	out->n = keep;
}

void procs_free(struct procs *p)
{
	free(p->v);
	*p = (struct procs){0};
}

static bool is_one_of(pid_t pid, const pid_t *list)
{
	for (; list && *list; list++)
		if (*list == pid)
			return true;
	return false;
}

void procs_mark_tree(struct procs *p, pid_t root, const pid_t *skip)
{
	bool more = true;

	/* Parents usually have lower pids than children, so that one or two passes do. */
	while (more) {
		more = false;
		for (size_t i = 0; i < p->n; i++) {
			struct procs_one *one = &p->v[i];
			const struct procs_one *up;

			if (one->ours || one->pid == root || is_one_of(one->pid, skip))
				continue;
			up = find(p, one->ppid);
			if (one->ppid == root || (up && up->ours && !is_one_of(up->pid, skip))) {
				one->ours = true;
				more = true;
			}
		}
	}
}

void procs_mark_session(struct procs *p, pid_t session)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].session == session)
			p->v[i].ours = true;
}

/* Several nodes of a cluster may share one host (a cluster for tests does): there, what is another
 * node's is not ours, though we see it. */
static bool is_other_node(const char *var)
{
	static const char name[] = "SLURMD_NODENAME=";
	const char *own = getenv("SLURMD_NODENAME");

	return own && *own && str_starts(var, name) && !str_eq(var + strlen(name), own);
}

static bool environ_holds(pid_t pid, const char *marker)
{
	char path[64];
	struct buf b = {0};
	bool found = false, other = false;
	struct stat st;

	snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
	if (stat(path, &st) || st.st_uid != geteuid())
		return false;
	if (fs_read(path, ENVIRON_MAX, &b, NULL) == 0)
		for (size_t i = 0; i < b.len; i += strlen(b.data + i) + 1) {
			found = found || strcmp(b.data + i, marker) == 0;
			other = other || is_other_node(b.data + i);
		}
	buf_free(&b);
	return found && !other;
}

void procs_mark_env(struct procs *p, const char *marker)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->v[i].ours && p->v[i].state != 'Z' && environ_holds(p->v[i].pid, marker))
			p->v[i].ours = true;
}

/* A process that was just forked has its parent's environment until exec. */
static bool is_young(const struct procs_one *one)
{
	struct timespec ts;
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return one->start_ticks + YOUNG_S * hz > (uint64_t)ts.tv_sec * hz;
}

void procs_mark_env_again(struct procs *p, const struct procs *before, const char *marker)
{
	for (size_t i = 0; i < p->n; i++) {
		struct procs_one *one = &p->v[i];
		const struct procs_one *known = find(before, one->pid);

		if (known && known->asked && known->start_ticks == one->start_ticks) {
			one->ours = one->ours || (marker && known->ours);
			one->asked = true;
		} else if (one->state != 'Z') {
			one->asked = !is_young(one);
			one->ours = one->ours || (marker && environ_holds(one->pid, marker));
		}
	}
}

size_t procs_count(const struct procs *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].ours && p->v[i].state != 'Z';
	return n;
}

void procs_kill(const struct procs *p, int signo)
{
	struct procs_one now;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].ours && p->v[i].pid > 1 && p->v[i].pid != getpid() &&
		    procs_read(p->v[i].pid, &now) == 0 && now.start_ticks == p->v[i].start_ticks)
			kill(p->v[i].pid, signo);
}

pid_t procs_fork_silent(void)
{
	return (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
}
