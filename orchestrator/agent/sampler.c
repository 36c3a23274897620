/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/sampler.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	SAMPLES_MAX = 64 << 20, /* 30 hours at 500 ms with 10 devices */
	SOURCE_MAX = 1 << 20,   /* /proc/stat with 1,000 CPUs is 200 KiB */
	DEVICES_MAX = 256,
	KERNEL_ROUNDS = 64,
};

/* A process of the tree as it was last seen: what it had used goes into the sums when it ends. */
struct member {
	pid_t pid;
	uint64_t start_ticks;
	int64_t utime, stime, read_bytes, write_bytes;
	bool seen;
};

struct sampler {
	int fd;
	int64_t written, page_kib;
	struct buf round, text;
	struct procs procs, before, kernel;
	int64_t rounds;
	char *marker; /* that `before` was asked for; NULL: none */
	struct member *v;
	size_t n, cap;
	struct member gone; /* sums over ended processes */
};

static int64_t utc_us(void)
{
	return clock_utc_us(&clock_system);
}

static void write_round(struct sampler *s)
{
	if (s->written + (int64_t)s->round.len <= SAMPLES_MAX && s->round.len > 0 &&
	    write(s->fd, s->round.data, s->round.len) == (ssize_t)s->round.len)
		s->written += (int64_t)s->round.len;
	buf_clear(&s->round);
}

void sampler_open(const char *dir, struct sampler **out)
{
	_cleanup_free_ char *path = fs_join(dir, "samples");
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct sampler *s;

	if (fd < 0)
		return;
	s = xcalloc(1, sizeof *s);
	s->fd = fd;
	s->page_kib = sysconf(_SC_PAGESIZE) / 1024;
	buf_printf(&s->round, "%lld hz %ld\n", (long long)utc_us(), sysconf(_SC_CLK_TCK));
	buf_printf(&s->round, "%lld ncpu %ld\n", (long long)utc_us(),
		   sysconf(_SC_NPROCESSORS_ONLN));
	write_round(s);
	*out = s;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	close(s->fd);
	buf_free(&s->round);
	buf_free(&s->text);
	procs_free(&s->procs);
	procs_free(&s->before);
	procs_free(&s->kernel);
	free(s->marker);
	free(s->v);
	free(s);
}

/* --- sources ---------------------------------------------------------------------------- */

/* The next line of *at, NUL-terminated, or NULL. */
static char *next_line(char **at)
{
	char *line = *at, *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	*at = end ? end + 1 : NULL;
	return line;
}

static char *read_source(struct sampler *s, const char *path)
{
	buf_clear(&s->text);
	return fs_read(path, SOURCE_MAX, &s->text, NULL) == 0 ? s->text.data : NULL;
}

static const char *skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* Fields with single blanks between them. */
static void put_fields(struct buf *out, const char *p)
{
	for (p = skip_blanks(p); *p; p = skip_blanks(p)) {
		size_t n = strcspn(p, " \t");

		buf_char(out, ' ');
		buf_put(out, p, n);
		p += n;
	}
	buf_char(out, '\n');
}

static void sample_stat(struct sampler *s)
{
	int64_t t = utc_us();
	char *at = read_source(s, "/proc/stat"), *line;
	long long running = -1, blocked = -1;

	while ((line = next_line(&at))) {
		if (str_starts(line, "cpu ")) {
			buf_printf(&s->round, "%lld stat", (long long)t);
			put_fields(&s->round, line + strlen("cpu "));
		}
		sscanf(line, "procs_running %lld", &running);
		sscanf(line, "procs_blocked %lld", &blocked);
	}
	if (running >= 0)
		buf_printf(&s->round, "%lld procs %lld %lld\n", (long long)t, running, blocked);
}

static void sample_mem(struct sampler *s)
{
	int64_t t = utc_us();
	char *at = read_source(s, "/proc/meminfo"), *line;
	long long total = -1, available = -1;

	while ((line = next_line(&at)) && available < 0) {
		sscanf(line, "MemTotal: %lld kB", &total);
		sscanf(line, "MemAvailable: %lld kB", &available);
	}
	if (total >= 0)
		buf_printf(&s->round, "%lld mem %lld %lld\n", (long long)t, total, available);
}

/* Partitions have no directory of their own directly under /sys/block. */
static bool is_whole_disk(const char *name)
{
	static const char *const virtual[] = {"loop", "ram", "zram"};
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(virtual); i++)
		if (str_starts(name, virtual[i]))
			return false;
	snprintf(path, sizeof path, "/sys/block/%s", name);
	for (char *p = path + strlen("/sys/block/"); *p; p++)
		if (*p == '/')
			*p = '!'; /* as sysfs writes cciss/c0d0 */
	return fs_exists(path);
}

static void sample_disks(struct sampler *s)
{
	int64_t t = utc_us();
	char *at = read_source(s, "/proc/diskstats"), *line;
	int left = DEVICES_MAX;

	while ((line = next_line(&at)) && left > 0) {
		char name[64];
		int skip = 0;

		if (sscanf(line, " %*u %*u %63s%n", name, &skip) != 1 || !is_whole_disk(name))
			continue;
		buf_printf(&s->round, "%lld disk %s", (long long)t, name);
		put_fields(&s->round, line + skip);
		left--;
	}
}

static void sample_nets(struct sampler *s)
{
	int64_t t = utc_us();
	char *at = read_source(s, "/proc/net/dev"), *line;
	int left = DEVICES_MAX;

	while ((line = next_line(&at)) && left > 0) {
		const char *name = skip_blanks(line), *colon = strrchr(name, ':');

		if (!colon || !isdigit((unsigned char)*skip_blanks(colon + 1)))
			continue;
		buf_printf(&s->round, "%lld net %.*s", (long long)t, (int)(colon - name), name);
		put_fields(&s->round, colon + 1);
		left--;
	}
}

/* --- the tree --------------------------------------------------------------------------- */

/* Storage bytes of one process; false when not readable (another user's, or gone). */
static bool read_io(pid_t pid, int64_t *read_bytes, int64_t *write_bytes)
{
	char path[64], text[512];
	long long r = -1, w = -1;
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/io", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strstr(text, "read_bytes: ");
	if (!p || sscanf(p, "read_bytes: %lld write_bytes: %lld", &r, &w) != 2)
		return false;
	*read_bytes = r;
	*write_bytes = w;
	return true;
}

static struct member *member_of(struct sampler *s, const struct procs_one *one)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].pid == one->pid && s->v[i].start_ticks == one->start_ticks)
			return &s->v[i];
	s->v = xgrow(s->v, s->n, &s->cap, sizeof *s->v);
	s->v[s->n] = (struct member){.pid = one->pid, .start_ticks = one->start_ticks};
	return &s->v[s->n++];
}

static void add_to(struct member *sum, const struct member *m)
{
	sum->utime += m->utime;
	sum->stime += m->stime;
	sum->read_bytes += m->read_bytes;
	sum->write_bytes += m->write_bytes;
}

/* Ended processes move from the list into `gone`. */
static void settle_gone(struct sampler *s)
{
	size_t keep = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].seen)
			s->v[keep++] = s->v[i];
		else
			add_to(&s->gone, &s->v[i]);
	}
	s->n = keep;
}

static void find_tree(struct sampler *s, pid_t agent, pid_t skip, const char *marker)
{
	struct procs last = s->procs;

	s->procs = s->before;
	s->before = last;
	if (!str_eq(marker, s->marker)) { /* another trial: nothing is known */
		s->before.n = 0;
		free(s->marker);
		s->marker = xstrdup(marker);
	}
	/* Their numbers may be used again, though only after all others were: so not for ever. */
	if (s->rounds++ % KERNEL_ROUNDS == 0)
		procs_kernel_threads(&s->kernel);
	procs_scan_users(&s->procs, &s->kernel);
	if (marker)
		procs_mark_env_again(&s->procs, &s->before, marker);
	procs_mark_tree(&s->procs, agent, skip);
}

static void sample_tree(struct sampler *s, pid_t agent, pid_t skip, const char *marker)
{
	int64_t t = utc_us(), procs = 0, threads = 0, rss = 0;
	struct member sum = {0};

	find_tree(s, agent, skip, marker);
	for (size_t i = 0; i < s->n; i++)
		s->v[i].seen = false;
	for (size_t i = 0; i < s->procs.n; i++) {
		const struct procs_one *one = &s->procs.v[i];
		struct member *m;

		if (!one->ours || one->state == 'Z')
			continue;
		m = member_of(s, one);
		m->seen = true;
		m->utime = one->utime;
		m->stime = one->stime;
		read_io(one->pid, &m->read_bytes, &m->write_bytes);
		procs++;
		threads += one->threads;
		rss += one->rss_pages * s->page_kib;
	}
	settle_gone(s);
	sum = s->gone;
	for (size_t i = 0; i < s->n; i++)
		add_to(&sum, &s->v[i]);
	buf_printf(&s->round, "%lld tree %lld %lld %lld %lld %lld %lld %lld\n", (long long)t,
		   (long long)procs, (long long)threads, (long long)sum.utime, (long long)sum.stime,
		   (long long)rss, (long long)sum.read_bytes, (long long)sum.write_bytes);
}

void sampler_take(struct sampler *s, pid_t agent, pid_t skip, const char *marker)
{
	sample_stat(s);
	sample_mem(s);
	sample_disks(s);
	sample_nets(s);
	sample_tree(s, agent, skip, marker);
	write_round(s);
}

void sampler_mark_known(const struct sampler *s, struct procs *p)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < p->n; j++)
			if (p->v[j].pid == s->v[i].pid &&
			    p->v[j].start_ticks == s->v[i].start_ticks)
				p->v[j].ours = true;
}

/* --- GPUs ------------------------------------------------------------------------------- */

void sampler_start_gpu(const char *dir, int64_t period_ms, struct proc_id *out)
{
	_cleanup_free_ char *program = proc_which("nvidia-smi", NULL),
			    *path = fs_join(dir, "gpu.csv");
	_cleanup_free_ char *period = xasprintf("%lld", (long long)period_ms);
	char *argv[] = {
		(char *)"nvidia-smi",
		(char *)"--query-gpu=timestamp,index,uuid,name,utilization.gpu,utilization.memory,"
			"memory.used,memory.total,power.draw,temperature.gpu,clocks.sm,clocks.mem,"
			"clocks_throttle_reasons.active",
		(char *)"--format=csv",
		(char *)"-lms",
		period,
		NULL};
	struct proc_spawn s = {
		.file = program, .argv = argv, .fd_in = -1, .fd_err = -1, .die_with_parent = true};

	out->pid = 0;
	if (!program)
		return;
	/* Its dates have no zone. Trials get an environment of their own. */
	setenv("TZ", "UTC0", 1);
	s.fd_out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (s.fd_out < 0)
		return;
	if (proc_spawn(&s, out, NULL))
		out->pid = 0;
	close(s.fd_out);
}
