/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iostat -o JSON. The first report is the mean since boot and is dropped (a run with -y loses one
 * second by that); where there is no other it is given with the label since=boot. A document that
 * SIGTERM or SIGKILL left open is read up to its last report. kB and MB are 1024-based. A device
 * whose name begins with a blank is the total of a -g group. Time is local unless S_TIME_FORMAT=ISO
 * gives its zone.
 *
 * Labels: device. With -p partitions come too: the reader of the values chooses devices.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/jsonstream.h"
#include "probes/probe.h"
#include "probes/when.h"

#define REPORT "sysstat.hosts[].statistics[]"

enum { TEXT_MAX = 48, DEVICE_MAX = 64, FIRST_MAX = 4096 /* disks of a report */ };

static const struct {
	const char *key, *metric;
	double scale;
} disk_keys[] = {
	{"r/s", "disk_r_iops", 1},
	{"w/s", "disk_w_iops", 1},
	{"d/s", "disk_d_iops", 1},
	{"f/s", "disk_f_iops", 1},
	{"tps", "disk_iops", 1},
	{"rkB/s", "disk_read_bytes_per_s", 1024},
	{"rMB/s", "disk_read_bytes_per_s", 1024 * 1024},
	{"rGB/s", "disk_read_bytes_per_s", 1024 * 1024 * 1024},
	{"rsec/s", "disk_read_bytes_per_s", 512},
	{"kB_read/s", "disk_read_bytes_per_s", 1024},
	{"MB_read/s", "disk_read_bytes_per_s", 1024 * 1024},
	{"GB_read/s", "disk_read_bytes_per_s", 1024 * 1024 * 1024},
	{"Blk_read/s", "disk_read_bytes_per_s", 512},
	{"wkB/s", "disk_write_bytes_per_s", 1024},
	{"wMB/s", "disk_write_bytes_per_s", 1024 * 1024},
	{"wGB/s", "disk_write_bytes_per_s", 1024 * 1024 * 1024},
	{"wsec/s", "disk_write_bytes_per_s", 512},
	{"kB_wrtn/s", "disk_write_bytes_per_s", 1024},
	{"MB_wrtn/s", "disk_write_bytes_per_s", 1024 * 1024},
	{"GB_wrtn/s", "disk_write_bytes_per_s", 1024 * 1024 * 1024},
	{"Blk_wrtn/s", "disk_write_bytes_per_s", 512},
	{"dkB/s", "disk_discard_bytes_per_s", 1024},
	{"dMB/s", "disk_discard_bytes_per_s", 1024 * 1024},
	{"dGB/s", "disk_discard_bytes_per_s", 1024 * 1024 * 1024},
	{"dsec/s", "disk_discard_bytes_per_s", 512},
	{"kB_dscd/s", "disk_discard_bytes_per_s", 1024},
	{"MB_dscd/s", "disk_discard_bytes_per_s", 1024 * 1024},
	{"GB_dscd/s", "disk_discard_bytes_per_s", 1024 * 1024 * 1024},
	{"Blk_dscd/s", "disk_discard_bytes_per_s", 512},
	{"r_await", "disk_r_await_ms", 1},
	{"w_await", "disk_w_await_ms", 1},
	{"d_await", "disk_d_await_ms", 1},
	{"f_await", "disk_f_await_ms", 1},
	{"await", "disk_await_ms", 1},
	{"aqu-sz", "disk_aqu_sz", 1},
	{"avgqu-sz", "disk_aqu_sz", 1},
	{"util", "disk_util_pct", 1},
};

enum { CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IOWAIT, CPU_STEAL, CPU_IDLE, CPU_N };
static const char *const cpu_keys[CPU_N] = {"user", "nice", "system", "iowait", "steal", "idle"};

/* What waits until its object ends, since members have no order. "" is not given. */
struct object {
	bool is_disk;
	char device[DEVICE_MAX];
	char disk[ARRAY_LEN(disk_keys)][TEXT_MAX];
	char cpu[CPU_N][TEXT_MAX];
	int64_t t_us, line;
};

struct probe_run {
	struct jsonstream *json;
	struct emit out;
	int64_t reports; /* begun in this host's list */
	int64_t all_reports;
	int64_t t_us;
	struct object now;
	struct object *first; /* those of the first report, until a second one begins */
	size_t n_first, cap_first;
	bool replaying;
};

static void keep(char *out, size_t max, struct span t)
{
	size_t n = t.n < max - 1 ? t.n : max - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

static void take_disk(struct probe_run *r, const char *key, struct span text)
{
	if (str_eq(key, "disk_device"))
		keep(r->now.device, sizeof(r->now.device), text);
	for (size_t i = 0; i < ARRAY_LEN(disk_keys); i++)
		if (str_eq(key, disk_keys[i].key))
			keep(r->now.disk[i], TEXT_MAX, text);
}

static void take_cpu(struct probe_run *r, const char *key, struct span text)
{
	for (size_t i = 0; i < CPU_N; i++)
		if (str_eq(key, cpu_keys[i]))
			keep(r->now.cpu[i], TEXT_MAX, text);
}

static void on_leaf(void *ctx, const char *path, enum jsonstream_kind kind, struct span text,
		    const struct input_line *line)
{
	static const char disk[] = REPORT ".disk[].", cpu[] = REPORT ".avg-cpu.";
	struct probe_run *r = ctx;

	(void)kind;
	emit_begin(&r->out, line);
	if (str_starts(path, disk))
		take_disk(r, path + sizeof(disk) - 1, text);
	else if (str_starts(path, cpu))
		take_cpu(r, path + sizeof(cpu) - 1, text);
	else if (str_eq(path, REPORT ".timestamp"))
		r->t_us = when_parse(text);
	else if (str_eq(path, "sysstat.hosts[].nodename"))
		emit_fact(&r->out, "iostat.host", text);
}

static void on_open(void *ctx, const char *path)
{
	struct probe_run *r = ctx;

	if (str_eq(path, "sysstat.hosts[]")) {
		r->reports = 0;
	} else if (str_eq(path, REPORT)) {
		if (++r->reports == 2)
			r->n_first = 0;
		r->all_reports++;
		r->t_us = -1;
	} else if (str_eq(path, REPORT ".disk[]")) {
		r->now.device[0] = '\0';
		memset(r->now.disk, 0, sizeof(r->now.disk));
	} else if (str_eq(path, REPORT ".avg-cpu")) {
		memset(r->now.cpu, 0, sizeof(r->now.cpu));
	}
}

static struct emit_tag tag_of(const struct probe_run *r, struct emit_labels *ls)
{
	if (r->now.is_disk)
		emit_label(ls, "device", span_of(r->now.device));
	if (r->replaying)
		emit_label(ls, "since", span_of("boot"));
	return (struct emit_tag){-1, r->t_us, ls->v, ls->n};
}

static void emit_disk(struct probe_run *r)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = tag_of(r, &ls);

	for (size_t i = 0; i < ARRAY_LEN(disk_keys); i++)
		if (r->now.disk[i][0] &&
		    !emit_token(&r->out, disk_keys[i].metric, span_of(r->now.disk[i]),
				disk_keys[i].scale, &tag))
			emit_bad(&r->out, "a member of a disk is no number");
}

static void emit_cpu(struct probe_run *r)
{
	static const char *const metrics[CPU_N] = {
		NULL, NULL, "cpu_system_pct", "cpu_iowait_pct", "cpu_steal_pct", "cpu_idle_pct"};
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = tag_of(r, &ls);
	double user, nice;

	for (size_t i = 0; i < CPU_N; i++)
		if (metrics[i] && r->now.cpu[i][0] &&
		    !emit_token(&r->out, metrics[i], span_of(r->now.cpu[i]), 1, &tag))
			emit_bad(&r->out, "a member of avg-cpu is no number");
	if (num_whole(span_of(r->now.cpu[CPU_USER]), &user) &&
	    num_whole(span_of(r->now.cpu[CPU_NICE]), &nice))
		emit_value(&r->out, "cpu_user_pct", user + nice, &tag);
}

/* An object of the first report waits for what comes after it. */
static void end_object(struct probe_run *r, bool is_disk)
{
	r->now.is_disk = is_disk;
	if (is_disk && (!r->now.device[0] || r->now.device[0] == ' '))
		return;
	if (r->reports > 1 || r->replaying) {
		(is_disk ? emit_disk : emit_cpu)(r);
		return;
	}
	if (r->n_first == FIRST_MAX)
		return;
	r->first = xgrow(r->first, r->n_first, &r->cap_first, sizeof(*r->first));
	r->now.t_us = r->t_us;
	r->now.line = r->out.raw_of ? r->out.raw_of->line : 0;
	r->first[r->n_first++] = r->now;
}

/* There was one report alone. */
static void replay(struct probe_run *r)
{
	struct input_line l = {.text = "",
			       .whole = "",
			       .host = "",
			       .rank = -1,
			       .local_rank = -1,
			       .complete = true};

	r->replaying = true;
	for (size_t i = 0; i < r->n_first; i++) {
		r->now = r->first[i];
		r->t_us = r->now.t_us;
		l.line = r->now.line;
		emit_begin(&r->out, &l);
		end_object(r, r->now.is_disk);
	}
	r->out.raw_of = NULL;
}

static void on_close(void *ctx, const char *path)
{
	struct probe_run *r = ctx;

	if (str_eq(path, REPORT ".disk[]"))
		end_object(r, true);
	else if (str_eq(path, REPORT ".avg-cpu"))
		end_object(r, false);
}

static int iostat_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct jsonstream_calls calls = {on_leaf, on_open, on_close};
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->json = jsonstream_new(&calls, r);
	*out = r;
	return 0;
}

static int iostat_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	jsonstream_feed(r->json, bytes, n);
	return 0;
}

static enum probe_status judge(struct probe_run *r, struct buf *detail)
{
	struct buf why = {0};
	enum jsonstream_end end = jsonstream_finish(r->json, &why);
	enum probe_status s;

	if (r->all_reports == 1)
		replay(r);
	if (!r->out.values && !r->out.missing) {
		if (detail)
			buf_str(detail, r->all_reports ? "only the report since boot"
						       : "no report of iostat");
		s = PROBE_ABSENT;
	} else {
		s = emit_status(&r->out, detail);
		if (s == PROBE_OK && end != JSONSTREAM_WHOLE) {
			s = PROBE_PARTIAL;
			if (detail)
				buf_str(detail, why.data ? why.data : "cut");
		}
	}
	buf_free(&why);
	return s;
}

static enum probe_status iostat_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s = judge(r, detail);

	jsonstream_free(r->json);
	emit_close(&r->out);
	free(r->first);
	free(r);
	return s;
}

static int iostat_sniff(const char *head, size_t n)
{
	struct span t = span_trim((struct span){head, n});

	return t.n && t.s[0] == '{' && span_has(t, "\"sysstat\"") ? 95 : 0;
}

const struct probe probe_iostat_json = {
	.name = "iostat_json",
	.summary = "iostat as JSON: throughput, wait and queue of each disk, use of the CPUs",
	.example = "LC_ALL=C S_TIME_FORMAT=ISO iostat -cdxt -o JSON 1 # stop it with SIGINT",
	.sniff = iostat_sniff,
	.open = iostat_open,
	.feed = iostat_feed,
	.finish = iostat_finish,
};
