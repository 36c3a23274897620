/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of the agent's sampler of /proc: one line a sample and source, fields between single
 * blanks, written whole (one write(2) a line, or a multiple of lines), "\n" at the end:
 *
 *   <utc_us> <source> <fields>
 *
 *   1795958504000000 hz 100                         once, at the start: sysconf(_SC_CLK_TCK)
 *   1795958504000000 ncpu 2                         once, at the start: CPUs online
 *   1795958504000123 stat 84 0 21 900 3 0 1 0 0 0   first line of /proc/stat behind "cpu", jiffies:
 *                                                   user nice system idle iowait irq softirq steal
 * ... 1795958504000123 procs 3 0                      procs_running and procs_blocked of /proc/stat
 *   1795958504000123 mem 8039140 5204000            MemTotal MemAvailable of /proc/meminfo, KiB
 *   1795958504000123 disk vda 208132 16434 ...      /proc/diskstats behind the name, as it is there
 *                                                   (11, 15 or 17 numbers); whole disks only, no
 *                                                   partition, loop, ram or zram device
 *   1795958504000123 net eth0 169409675 7186 ...    the 16 numbers of /proc/net/dev
 *   1795958504000123 tree 3 40 712 55 812340 4096 0 sums over the processes of the trial:
 * processes, threads, utime and stime in jiffies, RSS in KiB, read_bytes and write_bytes of
 * /proc/PID/io; -1 for a number that cannot be read
 *   1795958504000123 psi io 811234 20123            totals of some and full of /proc/pressure/io,
 * us 1795958504000123 ib mlx5_0/1 512 512 0 0        a port of /sys/class/infiniband: bytes
 * received and sent, xmit_wait, errors; -1 as above 1795958504000123 clock 81234567 CLOCK_MONOTONIC
 * at that moment, us 1795958504000123 self 20123 -1                  CPU time of the sampler, and
 * of nvidia-smi beside it, us; -1 where there is none
 *
 * utc_us is read just before the source is. A name holds no blank. Sources of one round may come in
 * any order, and one may be left out of a round. Unknown sources are passed over (a newer agent).
 *
 * The probe turns counters into rates over the time between two samples of the same source and
 * name; their time is the later one. An interval in which a counter went back (reset, or a process
 * of the tree ended) or time did not move is dropped. Labels: device of a disk, iface of a network.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/lines.h"
#include "probes/probe.h"

/* A big node has some 100 disks and interfaces; lines have 20 numbers at most. */
enum { SERIES_MAX = 1024, NUMBERS_MAX = 20, NAME_MAX_BYTES = 48, SECTOR_BYTES = 512 };

/* One source, or one device of it, as it was last sampled. */
struct series {
	char name[NAME_MAX_BYTES]; /* "disk vda" */
	int64_t t_us;
	double v[NUMBERS_MAX];
	size_t n;
};

struct probe_run {
	struct input *in;
	struct emit out;
	struct series *series;
	size_t n_series, cap;
	double hz; /* 0 until its line was seen */
};

/* What changed from one sample to the next. */
struct interval {
	double s;              /* its length, seconds */
	double d[NUMBERS_MAX]; /* differences */
	bool back;             /* one of them is negative */
};

static struct series *series_of(struct probe_run *r, const char *name)
{
	for (size_t i = 0; i < r->n_series; i++)
		if (str_eq(r->series[i].name, name))
			return &r->series[i];
	if (r->n_series == SERIES_MAX)
		return NULL;
	r->series = xgrow(r->series, r->n_series, &r->cap, sizeof(*r->series));
	str_copy(r->series[r->n_series].name, NAME_MAX_BYTES, name);
	r->series[r->n_series].n = 0;
	return &r->series[r->n_series++];
}

/* Replace what is known of a series; true when `d` got the difference to the sample before. */
static bool advance(struct series *s, int64_t t_us, const double *v, size_t n, struct interval *d)
{
	bool known = s->n == n && t_us > s->t_us;

	*d = (struct interval){.s = (double)(t_us - s->t_us) / 1e6};
	for (size_t i = 0; known && i < n; i++) {
		d->d[i] = v[i] - s->v[i];
		d->back = d->back || d->d[i] < 0;
	}
	s->t_us = t_us;
	s->n = n;
	memcpy(s->v, v, n * sizeof(*v));
	return known;
}

enum {
	CPU_USER,
	CPU_NICE,
	CPU_SYSTEM,
	CPU_IDLE,
	CPU_IOWAIT,
	CPU_IRQ,
	CPU_SOFTIRQ,
	CPU_STEAL,
	CPU_N
};

/* Time of guests is part of user and nice (proc(5)), so the first eight are the whole. */
static void emit_cpu(struct emit *o, const struct interval *d, const struct emit_tag *tag)
{
	double all = 0;

	for (int i = 0; i < CPU_N; i++)
		all += d->d[i];
	if (d->back || all <= 0)
		return;
	emit_value(o, "cpu_user_pct", 100 * (d->d[CPU_USER] + d->d[CPU_NICE]) / all, tag);
	emit_value(o, "cpu_system_pct",
		   100 * (d->d[CPU_SYSTEM] + d->d[CPU_IRQ] + d->d[CPU_SOFTIRQ]) / all, tag);
	emit_value(o, "cpu_iowait_pct", 100 * d->d[CPU_IOWAIT] / all, tag);
	emit_value(o, "cpu_idle_pct", 100 * d->d[CPU_IDLE] / all, tag);
	emit_value(o, "cpu_steal_pct", 100 * d->d[CPU_STEAL] / all, tag);
}

/* Order of /proc/diskstats (Documentation/admin-guide/iostats.rst); DISK_OPEN is no counter. */
enum {
	DISK_READS,
	DISK_READS_MERGED,
	DISK_SECTORS_READ,
	DISK_READ_MS,
	DISK_WRITES,
	DISK_WRITES_MERGED,
	DISK_SECTORS_WRITTEN,
	DISK_WRITE_MS,
	DISK_OPEN,
	DISK_BUSY_MS,
	DISK_WEIGHTED_MS,
	DISK_N,
};

static void emit_disk(struct emit *o, const struct interval *d, const struct emit_tag *tag)
{
	double ms = d->s * 1000, util = 100 * d->d[DISK_BUSY_MS] / ms;

	for (int i = 0; i < DISK_N; i++)
		if (i != DISK_OPEN && d->d[i] < 0)
			return;
	emit_value(o, "disk_read_bytes_per_s", d->d[DISK_SECTORS_READ] * SECTOR_BYTES / d->s, tag);
	emit_value(o, "disk_write_bytes_per_s", d->d[DISK_SECTORS_WRITTEN] * SECTOR_BYTES / d->s,
		   tag);
	emit_value(o, "disk_r_iops", d->d[DISK_READS] / d->s, tag);
	emit_value(o, "disk_w_iops", d->d[DISK_WRITES] / d->s, tag);
	if (d->d[DISK_READS] > 0)
		emit_value(o, "disk_r_await_ms", d->d[DISK_READ_MS] / d->d[DISK_READS], tag);
	if (d->d[DISK_WRITES] > 0)
		emit_value(o, "disk_w_await_ms", d->d[DISK_WRITE_MS] / d->d[DISK_WRITES], tag);
	emit_value(o, "disk_aqu_sz", d->d[DISK_WEIGHTED_MS] / ms, tag);
	/* The kernel's clock and ours differ by a tick: 100.4 % busy is 100 %. */
	emit_value(o, "disk_util_pct", util > 100 ? 100 : util, tag);
}

enum { NET_RX_BYTES, NET_RX_DROP = 3, NET_TX_BYTES = 8, NET_TX_DROP = 11, NET_N = 16 };

static void emit_net(struct emit *o, const struct interval *d, const struct emit_tag *tag)
{
	if (d->back)
		return;
	emit_value(o, "net_rx_bytes_per_s", d->d[NET_RX_BYTES] / d->s, tag);
	emit_value(o, "net_tx_bytes_per_s", d->d[NET_TX_BYTES] / d->s, tag);
	emit_value(o, "net_drops", d->d[NET_RX_DROP] + d->d[NET_TX_DROP], tag);
}

enum {
	TREE_PROCS,
	TREE_THREADS,
	TREE_UTIME,
	TREE_STIME,
	TREE_RSS_KIB,
	TREE_READ,
	TREE_WRITE,
	TREE_N
};

/* A level that the tree has now; -1 says that it could not be read. */
static void emit_level(struct emit *o, const char *metric, double v, double scale,
		       const struct emit_tag *tag)
{
	if (v < 0)
		emit_missing(o, metric, "not readable", tag);
	else
		emit_value(o, metric, v * scale, tag);
}

static void emit_tree_levels(struct emit *o, const double *v, const struct emit_tag *tag)
{
	emit_level(o, "tree_procs", v[TREE_PROCS], 1, tag);
	emit_level(o, "tree_threads", v[TREE_THREADS], 1, tag);
	emit_level(o, "tree_rss_mib", v[TREE_RSS_KIB], 1.0 / 1024, tag);
}

/* now[] tells a counter that cannot be read from one that went back. */
static void emit_tree_rates(struct probe_run *r, const struct interval *d, const double *now,
			    const struct emit_tag *tag)
{
	static const struct {
		const char *metric;
		int field;
	} io[] = {{"tree_read_bytes_per_s", TREE_READ}, {"tree_write_bytes_per_s", TREE_WRITE}};
	double cpu = d->d[TREE_UTIME] + d->d[TREE_STIME];

	if (now[TREE_UTIME] < 0 || now[TREE_STIME] < 0)
		emit_missing(&r->out, "tree_cpu_cores", "not readable", tag);
	else if (d->d[TREE_UTIME] >= 0 && d->d[TREE_STIME] >= 0 && r->hz > 0)
		emit_value(&r->out, "tree_cpu_cores", cpu / r->hz / d->s, tag);
	for (size_t i = 0; i < ARRAY_LEN(io); i++) {
		double before = now[io[i].field] - d->d[io[i].field];

		if (now[io[i].field] < 0)
			emit_missing(&r->out, io[i].metric, "not readable", tag);
		else if (before >= 0 && d->d[io[i].field] >= 0)
			emit_value(&r->out, io[i].metric, d->d[io[i].field] / d->s, tag);
	}
}

/* What the counter gained in a second, times `scale` and at most `most`; nothing where it cannot be
 * read or went back. */
static void emit_rate(struct emit *o, const char *metric, const struct interval *d,
		      const double *now, int field, double scale, double most,
		      const struct emit_tag *tag)
{
	double before = now[field] - d->d[field];

	if (now[field] >= 0 && before >= 0 && d->d[field] >= 0)
		emit_value(o, metric, fmin(scale * d->d[field] / d->s, most), tag);
}

enum { CLOCK_STEP_MS = 10 };

/* A rate of microseconds a second is a share of the time, in percent of it here. */
enum { PSI_SOME, PSI_FULL, SELF_CPU = 0, SELF_TOOL };
static const double PCT_OF_US = 100.0 / 1e6;

/* The kernel adds up what it has when it is asked, a little later than our time of the sample:
 * 101.4 % of the time is all of it. */
static void emit_pressure(struct emit *o, const struct interval *d, const double *now,
			  const struct emit_tag *tag)
{
	emit_rate(o, "psi_some_pct", d, now, PSI_SOME, PCT_OF_US, 100, tag);
	emit_rate(o, "psi_full_pct", d, now, PSI_FULL, PCT_OF_US, 100, tag);
}

enum { IB_RX_BYTES, IB_TX_BYTES, IB_WAIT, IB_ERRORS, IB_N };

static void emit_port(struct emit *o, const struct interval *d, const double *now,
		      const struct emit_tag *tag)
{
	emit_rate(o, "ib_rx_bytes_per_s", d, now, IB_RX_BYTES, 1, INFINITY, tag);
	emit_rate(o, "ib_tx_bytes_per_s", d, now, IB_TX_BYTES, 1, INFINITY, tag);
	emit_rate(o, "ib_xmit_wait_ticks_per_s", d, now, IB_WAIT, 1, INFINITY, tag);
	emit_rate(o, "ib_errors_per_s", d, now, IB_ERRORS, 1, INFINITY, tag);
}

static void emit_self(struct emit *o, const struct interval *d, const double *now,
		      const struct emit_tag *tag)
{
	emit_rate(o, "sampler_cpu_pct", d, now, SELF_CPU, PCT_OF_US, INFINITY, tag);
	emit_rate(o, "sampler_tool_cpu_pct", d, now, SELF_TOOL, PCT_OF_US, INFINITY, tag);
}

/* The clock of dates was set while the other one ran on: adjusting it slowly moves it by 0.05 % at
 * most. */
static void emit_clock(struct emit *o, const struct interval *d, const struct emit_tag *tag)
{
	double ms = fabs(d->s * 1e3 - d->d[0] / 1e3);

	if (ms > CLOCK_STEP_MS)
		emit_value(o, "clock_step_ms", ms, tag);
}

/* A device that never did anything is not worth a value. */
static bool all_zero(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] != 0)
			return false;
	return true;
}

struct sample {
	int64_t t_us;
	struct span source, name;
	double v[NUMBERS_MAX];
	size_t n;
};

static bool has_name(struct span source)
{
	return span_eq(source, "disk") || span_eq(source, "net") || span_eq(source, "psi") ||
	       span_eq(source, "ib");
}

static bool read_sample(struct span t, struct sample *s)
{
	struct span w;

	*s = (struct sample){0};
	if (!span_word(&t, &w) || !num_whole_i64(w, &s->t_us) || s->t_us <= 0)
		return false;
	if (!span_word(&t, &s->source))
		return false;
	if (has_name(s->source) && !span_word(&t, &s->name))
		return false;
	while (s->n < NUMBERS_MAX && span_word(&t, &w))
		if (!num_whole(w, &s->v[s->n++]))
			return false;
	return s->n > 0;
}

static const struct source {
	const char *name;
	size_t min_numbers;
} sources[] = {{"hz", 1},  {"ncpu", 1},      {"stat", CPU_N}, {"procs", 2},
	       {"mem", 2}, {"disk", DISK_N}, {"net", NET_N},  {"tree", TREE_N},
	       {"psi", 2}, {"ib", IB_N},     {"clock", 1},    {"self", 2}};

static const struct source *source_of(struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (span_eq(name, sources[i].name))
			return &sources[i];
	return NULL;
}

/* Sources that are levels or constants: no difference is needed. True when s is one of them. */
static bool take_level(struct probe_run *r, const struct sample *s, const struct emit_tag *tag)
{
	char text[32];
	struct buf b = {0};

	if (span_eq(s->source, "procs")) {
		emit_level(&r->out, "procs_blocked", s->v[1], 1, tag);
	} else if (span_eq(s->source, "mem")) {
		emit_level(&r->out, "host_mem_available_mib", s->v[1], 1.0 / 1024, tag);
	} else if (span_eq(s->source, "hz") || span_eq(s->source, "ncpu")) {
		buf_printf(&b, "%.0f", s->v[0]);
		str_copy(text, sizeof(text), b.data);
		buf_free(&b);
		if (span_eq(s->source, "hz"))
			r->hz = s->v[0];
		emit_fact(&r->out, span_eq(s->source, "hz") ? "host.hz" : "host.ncpu",
			  span_of(text));
	} else {
		return false;
	}
	return true;
}

static void put_labels(struct emit_labels *labels, const struct sample *s)
{
	struct span device, port = s->name;

	if (span_eq(s->source, "disk")) {
		emit_label(labels, "device", s->name);
	} else if (span_eq(s->source, "net")) {
		emit_label(labels, "iface", s->name);
	} else if (span_eq(s->source, "psi")) {
		emit_label(labels, "resource", s->name);
	} else if (span_next(&port, "/", &device)) {
		emit_label(labels, "device", device);
		emit_label(labels, "port", port);
	}
}

static void emit_interval(struct probe_run *r, const struct sample *s, const struct interval *d,
			  const struct emit_tag *tag)
{
	if (span_eq(s->source, "stat"))
		emit_cpu(&r->out, d, tag);
	else if (span_eq(s->source, "disk"))
		emit_disk(&r->out, d, tag);
	else if (span_eq(s->source, "net"))
		emit_net(&r->out, d, tag);
	else if (span_eq(s->source, "psi"))
		emit_pressure(&r->out, d, s->v, tag);
	else if (span_eq(s->source, "ib"))
		emit_port(&r->out, d, s->v, tag);
	else if (span_eq(s->source, "clock"))
		emit_clock(&r->out, d, tag);
	else if (span_eq(s->source, "self"))
		emit_self(&r->out, d, s->v, tag);
	else
		emit_tree_rates(r, d, s->v, tag);
}

static void take_counters(struct probe_run *r, const struct sample *s, struct emit_tag *tag)
{
	char name[NAME_MAX_BYTES];
	struct emit_labels labels;
	struct series *known;
	struct interval d;
	struct buf b = {0};

	labels.n = 0;
	buf_printf(&b, "%.*s %.*s", (int)s->source.n, s->source.s, (int)s->name.n,
		   s->name.n ? s->name.s : "");
	str_copy(name, sizeof(name), b.data);
	buf_free(&b);
	known = series_of(r, name);
	if (!known) {
		emit_bad(&r->out, "more devices than this probe follows");
		return;
	}
	if (s->name.n) {
		put_labels(&labels, s);
		tag->labels = labels.v;
		tag->n_labels = labels.n;
	}
	if (span_eq(s->source, "tree"))
		emit_tree_levels(&r->out, s->v, tag);
	if (advance(known, s->t_us, s->v, s->n, &d) && !(s->name.n && all_zero(s->v, s->n)))
		emit_interval(r, s, &d, tag);
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;
	struct emit_tag tag = EMIT_NONE;
	const struct source *src;
	struct sample s;

	if (!span_trim(input_span(l)).n)
		return;
	emit_begin(&r->out, l);
	if (!l->complete || !read_sample(input_span(l), &s)) {
		emit_bad(&r->out, l->complete ? "not <utc_us> <source> <numbers>"
					      : "cut in the middle of a line");
		return;
	}
	src = source_of(s.source);
	if (!src)
		return;
	if (s.n < src->min_numbers) {
		emit_bad(&r->out, "fewer numbers than this source has");
		return;
	}
	tag.t_us = s.t_us;
	if (!take_level(r, &s, &tag))
		take_counters(r, &s, &tag);
}

static int procfs_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int procfs_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status procfs_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = emit_status(&r->out, detail);
	input_free(r->in);
	emit_close(&r->out);
	free(r->series);
	free(r);
	return s;
}

static int score(struct span line)
{
	struct sample s;

	return read_sample(line, &s) && source_of(s.source) && s.t_us > 1000000000000000 ? 95 : 0;
}

static int procfs_sniff(const char *head, size_t n)
{
	return lines_sniff_first(head, n, score);
}

const struct probe probe_procfs = {
	.name = "procfs",
	.summary = "the agent's sampler: CPU, disks, networks, the workload's own processes",
	.sniff = procfs_sniff,
	.open = procfs_open,
	.feed = procfs_feed,
	.finish = procfs_finish,
};
