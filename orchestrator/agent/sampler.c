/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/sampler.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/dcgm.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	SAMPLES_MAX = 64 << 20, /* 30 hours at 500 ms with 10 devices */
	SOURCE_MAX = 1 << 20,   /* /proc/stat with 1,000 CPUs is 200 KiB */
	DEVICES_MAX = 256,
	KNOWN_ROUNDS = 64,
	SMI_TERM_US = 1000000, /* that nvidia-smi has to end by itself; then it is killed */
	SMI_KILL_US = 1000000, /* a driver that hangs keeps even a killed one: it is left */
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
	struct proc_id smi; /* pid 0: none */
	int smi_fd;         /* of what it writes */
	struct dcgm *dcgm;  /* NULL: not asked for */
};

static int64_t utc_us(void)
{
	return clock_utc_us(&clock_system);
}

static void write_round(struct sampler *s)
{
	if (s->fd >= 0 && s->written + (int64_t)s->round.len <= SAMPLES_MAX && s->round.len > 0 &&
	    write(s->fd, s->round.data, s->round.len) == (ssize_t)s->round.len)
		s->written += (int64_t)s->round.len;
	buf_clear(&s->round);
}

/* --- GPUs ------------------------------------------------------------------------------- */

/* `nvidia-smi --query-gpu` beside the samples, where there is such a program. A static program
 * cannot load NVML: dlopen needs the libc that it was linked with. */
static void start_smi(struct sampler *s, const struct sampler_setup *u)
{
	_cleanup_free_ char *program = proc_which("nvidia-smi", NULL),
			    *path = sampler_path(u->dir, "gpu", u->node, ".csv");
	_cleanup_free_ char *period = xasprintf("%lld", (long long)u->period_ms);
	char *argv[] = {
		(char *)"nvidia-smi",
		(char *)"--query-gpu=timestamp,index,uuid,name,utilization.gpu,utilization.memory,"
			"memory.used,memory.total,power.draw,temperature.gpu,clocks.sm,clocks.mem,"
			"clocks_throttle_reasons.active",
		(char *)"--format=csv",
		(char *)"-lms",
		period,
		NULL};
	struct proc_spawn spawn = {
		.file = program, .argv = argv, .fd_in = -1, .fd_err = -1, .die_with_parent = true};

	if (!program)
		return;
	/* Its dates have no zone. Trials get an environment of their own. */
	setenv("TZ", "UTC0", 1);
	spawn.fd_out = s->smi_fd = fs_create(path, O_WRONLY | O_APPEND, 0600);
	if (spawn.fd_out < 0)
		return;
	if (proc_spawn(&spawn, &s->smi, NULL))
		s->smi.pid = 0;
}

/* A tool that hangs must not keep the job: no more than two seconds are waited. */
static void stop_smi(struct sampler *s)
{
	int status;

	if (s->smi.pid <= 0)
		return;
	kill(s->smi.pid, SIGTERM);
	if (proc_wait(&s->smi, SMI_TERM_US, &status, NULL) == -ERR_TEMP) {
		kill(s->smi.pid, SIGKILL);
		proc_wait(&s->smi, SMI_KILL_US, &status, NULL);
	}
	s->smi.pid = 0;
}

/* It writes its file itself, which is bounded like the samples. */
static void bound_smi(struct sampler *s)
{
	struct stat st;

	if (s->smi.pid > 0 && fstat(s->smi_fd, &st) == 0 && st.st_size > SAMPLES_MAX)
		stop_smi(s);
}

char *sampler_path(const char *dir, const char *stem, const char *node, const char *ending)
{
	return xasprintf("%s/%s%s%s%s", dir, stem, node ? "." : "", node ? node : "", ending);
}

static void open_file(struct sampler *s, const struct sampler_setup *u)
{
	_cleanup_free_ char *path = sampler_path(u->dir, "samples", u->node, "");

	s->fd = fs_create(path, O_WRONLY | O_APPEND, 0600);
	buf_printf(&s->round, "%lld hz %ld\n", (long long)utc_us(), sysconf(_SC_CLK_TCK));
	buf_printf(&s->round, "%lld ncpu %ld\n", (long long)utc_us(),
		   sysconf(_SC_NPROCESSORS_ONLN));
	write_round(s);
}

void sampler_open(const struct sampler_setup *u, struct sampler **out)
{
	struct sampler *s = xcalloc(1, sizeof *s);
	_cleanup_free_ char *prom = sampler_path(u->dir, "dcgm", u->node, ".prom");

	s->smi_fd = -1;
	s->page_kib = sysconf(_SC_PAGESIZE) / 1024;
	open_file(s, u);
	start_smi(s, u);
	if (u->dcgm_url)
		dcgm_open(u->dcgm_url, prom, &s->dcgm);
	*out = s;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	stop_smi(s);
	if (s->smi_fd >= 0)
		close(s->smi_fd);
	dcgm_close(s->dcgm);
	if (s->fd >= 0)
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

pid_t sampler_tool(const struct sampler *s)
{
	return s->smi.pid;
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

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" and the same of "full": the totals, us. */
static void sample_pressure(struct sampler *s)
{
	static const char *const what[] = {"cpu", "io", "memory"};

	for (size_t i = 0; i < ARRAY_LEN(what); i++) {
		_cleanup_free_ char *path = fs_join("/proc/pressure", what[i]);
		int64_t t = utc_us();
		const char *text = read_source(s, path), *some, *full;
		long long some_us = -1, full_us = -1;

		if (!text) /* a kernel without it */
			return;
		some = strstr(text, "total=");
		full = some ? strstr(some + 1, "total=") : NULL;
		if (some)
			sscanf(some, "total=%lld", &some_us);
		if (full)
			sscanf(full, "total=%lld", &full_us);
		buf_printf(&s->round, "%lld psi %s %lld %lld\n", (long long)t, what[i], some_us,
			   full_us);
	}
}

/* A counter of a port; -1: not there. */
static int64_t port_counter(struct sampler *s, const char *port, const char *name)
{
	_cleanup_free_ char *path = fs_join(port, name);
	const char *text = read_source(s, path);
	int64_t v = -1;
	_cleanup_free_ char *word = text ? xstrndup(text, strcspn(text, " \n")) : NULL;

	return word && str_to_i64(word, &v) && v >= 0 ? v : -1;
}

static void sample_port(struct sampler *s, const char *device, const char *number, const char *port)
{
	static const char *const bad[] = {"counters/symbol_error", "counters/link_error_recovery",
					  "counters/link_downed", "counters/port_rcv_errors",
					  "counters/port_xmit_discards"};
	int64_t t = utc_us(), rx = port_counter(s, port, "counters/port_rcv_data"),
		tx = port_counter(s, port, "counters/port_xmit_data"), errors = -1;

	/* Words of 4 bytes; EFA counts bytes elsewhere. */
	rx = rx >= 0 ? 4 * rx : port_counter(s, port, "hw_counters/rx_bytes");
	tx = tx >= 0 ? 4 * tx : port_counter(s, port, "hw_counters/tx_bytes");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int64_t n = port_counter(s, port, bad[i]);

		errors = n < 0 ? errors : errors < 0 ? n : errors + n;
	}
	buf_printf(&s->round, "%lld ib %s/%s %lld %lld %lld %lld\n", (long long)t, device, number,
		   (long long)rx, (long long)tx,
		   (long long)port_counter(s, port, "counters/port_xmit_wait"), (long long)errors);
}

/* Calls `visit` for each entry of a directory; *left bounds how many there may be. */
static void each_entry(struct sampler *s, const char *dir, const char *device, int *left,
		       void (*visit)(struct sampler *s, const char *name, const char *path,
				     const char *device, int *left))
{
	DIR *d = opendir(dir);
	struct dirent *de;

	while (d && (de = readdir(d)) && *left > 0)
		if (de->d_name[0] != '.') {
			_cleanup_free_ char *path = fs_join(dir, de->d_name);

			visit(s, de->d_name, path, device, left);
		}
	if (d)
		closedir(d);
}

static void visit_port(struct sampler *s, const char *name, const char *path, const char *device,
		       int *left)
{
	sample_port(s, device, name, path);
	--*left;
}

static void visit_device(struct sampler *s, const char *name, const char *path, const char *device,
			 int *left)
{
	_cleanup_free_ char *ports = fs_join(path, "ports");

	(void)device;
	each_entry(s, ports, name, left, visit_port);
}

static void sample_infiniband(struct sampler *s)
{
	int left = DEVICES_MAX;

	each_entry(s, "/sys/class/infiniband", NULL, &left, visit_device);
}

static int64_t timeval_us(const struct timeval *t)
{
	return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

/* What watching costs: this process, and the tool beside it (-1: none). */
static void sample_self(struct sampler *s)
{
	int64_t hz = sysconf(_SC_CLK_TCK), tool = -1;
	struct procs_one one;
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	if (s->smi.pid > 0 && procs_read(s->smi.pid, &one) == 0)
		tool = (one.utime + one.stime) * 1000000 / hz;
	buf_printf(&s->round, "%lld self %lld %lld\n", (long long)utc_us(),
		   (long long)(timeval_us(&u.ru_utime) + timeval_us(&u.ru_stime)), (long long)tool);
}

/* Two clocks: where the first one is set while the other runs on, times of samples jump. */
static void sample_clock(struct sampler *s)
{
	int64_t t = utc_us();

	buf_printf(&s->round, "%lld clock %lld\n", (long long)t,
		   (long long)clock_mono_us(&clock_system));
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

static void find_tree(struct sampler *s, const struct sampler_scope *scope)
{
	const struct procs nothing = {0};
	struct procs last = s->procs;
	const char *marker = scope->marker;
	bool anew;

	s->procs = s->before;
	s->before = last;
	if (!str_eq(marker, s->marker)) { /* another trial: nothing is known */
		s->before.n = 0;
		free(s->marker);
		s->marker = xstrdup(marker);
	}
	/* Numbers may be used again, though only after all others were: so not for ever. */
	anew = s->rounds++ % KNOWN_ROUNDS == 0;
	if (anew)
		procs_kernel_threads(&s->kernel);
	procs_scan_again(&s->procs, anew ? &nothing : &s->before, &s->kernel);
	procs_mark_env_again(&s->procs, &s->before, marker);
	procs_mark_tree(&s->procs, scope->root, scope->skip);
}

static void sample_tree(struct sampler *s, const struct sampler_scope *scope)
{
	int64_t t = utc_us(), procs = 0, threads = 0, rss = 0;
	struct member sum = {0};

	find_tree(s, scope);
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

void sampler_take(struct sampler *s, const struct sampler_scope *scope)
{
	sample_clock(s);
	sample_stat(s);
	sample_mem(s);
	sample_pressure(s);
	sample_disks(s);
	sample_nets(s);
	sample_infiniband(s);
	sample_tree(s, scope);
	sample_self(s);
	write_round(s);
	bound_smi(s);
	if (s->dcgm)
		dcgm_take(s->dcgm);
}

void sampler_mark_known(const struct sampler *s, struct procs *p)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < p->n; j++)
			if (p->v[j].pid == s->v[i].pid &&
			    p->v[j].start_ticks == s->v[i].start_ticks)
				p->v[j].ours = true;
}
