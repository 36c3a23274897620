/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/diskstats, once or again and again: 11, 15 or 17 numbers behind each name, by the kernel's
 * version. Bytes since boot, and rates, waits and use between two copies where a line before each
 * says when it was read. A sector is 512 bytes whatever the device's is.
 *
 * Devices that never did anything are left out; partitions come too. Labels: device.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/counters.h"
#include "probes/lines.h"

enum { SECTOR_BYTES = 512, DEVICES_MAX = 4096, NAME_BYTES = 48 };

/* Behind major, minor and name (Documentation/admin-guide/iostats.rst). */
enum {
	READS,
	SECTORS_READ = 2,
	READ_MS,
	WRITES,
	SECTORS_WRITTEN = 6,
	WRITE_MS,
	IN_FLIGHT,
	BUSY_MS,
	WEIGHTED_MS,
	NUMBERS_MIN,
	NUMBERS_MAX = 17
};

struct device {
	char name[NAME_BYTES];
	double v[NUMBERS_MIN];
	int64_t t_us; /* -1: unknown */
};

struct diskstats {
	struct device *v;
	size_t n, cap;
	struct counters time; /* for the time of a copy alone */
};

/* "   8       0 sda 53039 857 2905773 15215 ..." */
static bool read_row(const struct words *w, double v[NUMBERS_MIN])
{
	size_t n = w->n >= 3 ? w->n - 3 : 0;
	int64_t id;

	if ((n != 11 && n != 15 && n != NUMBERS_MAX) || !num_whole_i64(w->v[0], &id) ||
	    !num_whole_i64(w->v[1], &id) || w->v[2].n >= NAME_BYTES || num_whole_i64(w->v[2], &id))
		return false;
	for (size_t i = 0; i < n; i++) {
		double x;

		if (!num_whole(w->v[3 + i], &x) || x < 0)
			return false;
		if (i < NUMBERS_MIN)
			v[i] = x;
	}
	return true;
}

static struct device *device_of(struct diskstats *st, struct span name)
{
	struct device *d;

	for (size_t i = 0; i < st->n; i++)
		if (span_eq(name, st->v[i].name))
			return &st->v[i];
	if (st->n == DEVICES_MAX)
		return NULL;
	st->v = xgrow(st->v, st->n, &st->cap, sizeof(*st->v));
	d = &st->v[st->n++];
	*d = (struct device){.t_us = -1};
	memcpy(d->name, name.s, name.n);
	return d;
}

/* What happened between two copies. */
static void emit_interval(struct emit *o, const double *before, const double *now, double s,
			  const struct emit_tag *tag)
{
	double d[NUMBERS_MIN], util;

	for (int i = 0; i < NUMBERS_MIN; i++) {
		d[i] = now[i] - before[i];
		if (i != IN_FLIGHT && d[i] < 0) {
			emit_missing(o, "disk_read_bytes_per_s", "reset", tag);
			emit_missing(o, "disk_write_bytes_per_s", "reset", tag);
			return;
		}
	}
	emit_value(o, "disk_read_bytes_per_s", d[SECTORS_READ] * SECTOR_BYTES / s, tag);
	emit_value(o, "disk_write_bytes_per_s", d[SECTORS_WRITTEN] * SECTOR_BYTES / s, tag);
	emit_value(o, "disk_r_iops", d[READS] / s, tag);
	emit_value(o, "disk_w_iops", d[WRITES] / s, tag);
	if (d[READS] > 0)
		emit_value(o, "disk_r_await_ms", d[READ_MS] / d[READS], tag);
	if (d[WRITES] > 0)
		emit_value(o, "disk_w_await_ms", d[WRITE_MS] / d[WRITES], tag);
	emit_value(o, "disk_aqu_sz", d[WEIGHTED_MS] / (s * 1000), tag);
	/* The kernel's clock and the reader's differ by a tick: 100.4 % busy is 100 %. */
	util = 100 * d[BUSY_MS] / (s * 1000);
	emit_value(o, "disk_util_pct", util > 100 ? 100 : util, tag);
}

static void take_row(struct diskstats *st, struct emit *o, struct span name, const double *v)
{
	struct device *d = device_of(st, name);
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag;

	if (!d) {
		emit_bad(o, "more devices than this probe follows");
		return;
	}
	emit_label(&ls, "device", name);
	tag = counters_tag(&st->time, &ls);
	emit_value(o, "disk_read_bytes_total", v[SECTORS_READ] * SECTOR_BYTES, &tag);
	emit_value(o, "disk_write_bytes_total", v[SECTORS_WRITTEN] * SECTOR_BYTES, &tag);
	if (d->t_us >= 0 && tag.t_us > d->t_us)
		emit_interval(o, d->v, v, (double)(tag.t_us - d->t_us) / 1e6, &tag);
	memcpy(d->v, v, sizeof(d->v));
	d->t_us = tag.t_us;
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct diskstats *st = state;
	double v[NUMBERS_MIN];
	struct words w;

	if (counters_stamp(&st->time, input_span(l)))
		return;
	words_split(&w, input_span(l));
	if (w.n > COLS_MAX || !read_row(&w, v))
		return;
	if (!l->complete)
		emit_bad(o, "cut in the middle of a device");
	else if (v[READS] + v[WRITES] > 0)
		take_row(st, o, w.v[2], v);
}

static void clear(void *state)
{
	free(((struct diskstats *)state)->v);
}

static int score(struct span line)
{
	double v[NUMBERS_MIN];
	struct words w;

	words_split(&w, line);
	return w.n <= COLS_MAX && read_row(&w, v) ? 85 : 0;
}

static int diskstats_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int diskstats_open(const struct probe_context *c, const struct probe_sink *sink,
			  struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct diskstats), on_line, NULL, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_diskstats = {
	.name = "diskstats",
	.summary = "/proc/diskstats: bytes, requests, waits and use of each disk",
	.example = "while :; do date -u; cat /proc/diskstats; sleep 1; done",
	.sniff = diskstats_sniff,
	.open = diskstats_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
