/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iostat as text, of all versions and shapes: -x or not, -k, -m, short (-s), -h (a device's name on
 * a line of its own, before version 12), --pretty (the device last), with or without CPUs and
 * times. Columns are found by their names.
 *
 * The first report is the mean since boot and is dropped (with -y that loses one interval). Where a
 * text has no other, it is given with the label since=boot. kB and MB are 1024-based. A decimal
 * comma is refused: it needs LC_ALL=C. The total of a -g group (its name begins with a blank) is
 * left out.
 *
 * Labels: device. With -p partitions come too: the reader of the values chooses devices.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/lines.h"
#include "probes/when.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024)
#define GIB (1024.0 * 1024 * 1024)

enum { SECTOR_BYTES = 512, DEVICE_BYTES = 64 };

static const struct col disk_cols[] = {
	{"r/s", "disk_r_iops", 1},
	{"w/s", "disk_w_iops", 1},
	{"d/s", "disk_d_iops", 1},
	{"f/s", "disk_f_iops", 1},
	{"tps", "disk_iops", 1},
	{"rkB/s", "disk_read_bytes_per_s", KIB},
	{"wkB/s", "disk_write_bytes_per_s", KIB},
	{"dkB/s", "disk_discard_bytes_per_s", KIB},
	{"rMB/s", "disk_read_bytes_per_s", MIB},
	{"rGB/s", "disk_read_bytes_per_s", GIB},
	{"wMB/s", "disk_write_bytes_per_s", MIB},
	{"wGB/s", "disk_write_bytes_per_s", GIB},
	{"dMB/s", "disk_discard_bytes_per_s", MIB},
	{"dGB/s", "disk_discard_bytes_per_s", GIB},
	{"rsec/s", "disk_read_bytes_per_s", SECTOR_BYTES},
	{"wsec/s", "disk_write_bytes_per_s", SECTOR_BYTES},
	{"dsec/s", "disk_discard_bytes_per_s", SECTOR_BYTES},
	{"kB_read/s", "disk_read_bytes_per_s", KIB},
	{"kB_wrtn/s", "disk_write_bytes_per_s", KIB},
	{"kB_dscd/s", "disk_discard_bytes_per_s", KIB},
	{"MB_read/s", "disk_read_bytes_per_s", MIB},
	{"GB_read/s", "disk_read_bytes_per_s", GIB},
	{"MB_wrtn/s", "disk_write_bytes_per_s", MIB},
	{"GB_wrtn/s", "disk_write_bytes_per_s", GIB},
	{"MB_dscd/s", "disk_discard_bytes_per_s", MIB},
	{"GB_dscd/s", "disk_discard_bytes_per_s", GIB},
	{"Blk_read/s", "disk_read_bytes_per_s", SECTOR_BYTES},
	{"Blk_wrtn/s", "disk_write_bytes_per_s", SECTOR_BYTES},
	{"Blk_dscd/s", "disk_discard_bytes_per_s", SECTOR_BYTES},
	{"r_await", "disk_r_await_ms", 1},
	{"w_await", "disk_w_await_ms", 1},
	{"d_await", "disk_d_await_ms", 1},
	{"f_await", "disk_f_await_ms", 1},
	{"await", "disk_await_ms", 1},
	{"aqu-sz", "disk_aqu_sz", 1},
	{"avgqu-sz", "disk_aqu_sz", 1},
	{"%util", "disk_util_pct", 1},
	{NULL, NULL, 0},
};

/* User and nice are one metric: their sum. */
static const struct col cpu_cols[] = {
	{"%user", "user", 1},
	{"%nice", "nice", 1},
	{"%system", "cpu_system_pct", 1},
	{"%iowait", "cpu_iowait_pct", 1},
	{"%steal", "cpu_steal_pct", 1},
	{"%idle", "cpu_idle_pct", 1},
	{NULL, NULL, 0},
};

enum table { TABLE_NONE, TABLE_CPU, TABLE_DISK };

struct iostat {
	struct cols cols;
	enum table table;
	int device;                       /* column of the device's name */
	bool has_time, has_cpu, has_disk; /* of the current report */
	uint64_t has_col;                 /* bits of disk_cols that it had */
	int64_t reports;                  /* of the current run */
	int64_t t_us;
	char alone[DEVICE_BYTES]; /* a device whose numbers are on the next line; "" none */
	struct lines_kept first;  /* the report since boot, until a second one is there */
	bool replaying;
};

static void begin_report(struct iostat *st)
{
	st->reports++;
	st->has_time = st->has_cpu = st->has_disk = false;
	st->has_col = 0;
	st->table = TABLE_NONE;
	st->t_us = -1;
	if (st->reports == 2 && !st->replaying)
		lines_forget(&st->first);
}

/* "2.6M" of -h has its own unit, whatever the column's is; "3.9%" and "0.34" are as they are. */
static bool cell_value(const struct col *c, struct span t, double *out)
{
	char last = t.n ? t.s[t.n - 1] : '\0';
	bool own_unit = c->scale > 1 && last != '%' && !(last >= '0' && last <= '9');

	if (own_unit && last == 's') { /* sectors */
		t.n--;
		own_unit = num_whole(t, out);
		*out *= SECTOR_BYTES;
		return own_unit;
	}
	if (!col_human(t, 1024, out))
		return false;
	if (!own_unit)
		*out *= c->scale;
	return true;
}

static void refuse(struct emit *o, struct span t)
{
	emit_bad(o, memchr(t.s, ',', t.n) ? "a decimal comma: run iostat with LC_ALL=C"
					  : "a cell holds no number");
}

static void emit_cells(struct iostat *st, struct emit *o, const struct words *w, bool complete,
		       const struct emit_tag *tag)
{
	double user = -1, nice = 0, v;

	for (size_t i = 0; i < w->n; i++) {
		const struct col *c = st->cols.of[i];

		if (!c || (!complete && i + 1 == w->n))
			continue;
		if (!cell_value(c, w->v[i], &v)) {
			refuse(o, w->v[i]);
			return;
		}
		if (str_eq(c->metric, "user"))
			user = v;
		else if (str_eq(c->metric, "nice"))
			nice = v;
		else
			emit_value(o, c->metric, v, tag);
	}
	if (user >= 0)
		emit_value(o, "cpu_user_pct", user + nice, tag);
}

/* The name of a device alone on its line, and the numbers on the next one (-h of old versions).
 * True when w is the name; the numbers become a row with its name. */
static bool take_name_alone(struct iostat *st, const struct input_line *l, struct words *w)
{
	if (st->table != TABLE_DISK || st->device != 0)
		return false;
	if (w->n == 1 && l->text[0] != ' ' && w->v[0].n < DEVICE_BYTES && l->complete) {
		memcpy(st->alone, w->v[0].s, w->v[0].n);
		st->alone[w->v[0].n] = '\0';
		return true;
	}
	if (st->alone[0] && w->n + 1 == st->cols.n && l->text[0] == ' ') {
		memmove(w->v + 1, w->v, w->n * sizeof(w->v[0]));
		w->v[0] = span_of(st->alone);
		w->n++;
	}
	return false;
}

/* A row of the current table; false when it is another writer's line. */
static bool take_row(struct iostat *st, struct emit *o, const struct input_line *l,
		     const struct words *w)
{
	struct emit_tag tag = {.step = -1, .t_us = st->t_us};
	struct emit_labels ls = {.n = 0};
	double v;

	if (st->table == TABLE_NONE || w->n > COLS_MAX)
		return false;
	if (w->n != st->cols.n) {
		if (!l->complete && w->n > 1 && w->n < st->cols.n)
			emit_bad(o, "a row that is cut");
		return false;
	}
	if (num_scan(w->v[st->device == 0 ? 1 : 0], &v, NULL) != NUM_FINITE &&
	    !memchr(w->v[1].s, ',', w->v[1].n))
		return false;
	if (st->table == TABLE_DISK) {
		if (st->device == 0 && l->text[0] == ' ' && w->v[0].s != st->alone)
			return true;
		emit_label(&ls, "device", w->v[st->device]);
	}
	if (st->replaying)
		emit_label(&ls, "since", span_of("boot"));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	emit_cells(st, o, w, l->complete, &tag);
	return true;
}

/* What is known of a header's columns, as bits of disk_cols. */
static uint64_t columns_of(const struct words *w)
{
	uint64_t bits = 0;

	_Static_assert(ARRAY_LEN(disk_cols) <= 64, "more columns than a word has bits");
	for (size_t i = 0; i < w->n; i++) {
		const struct col *c = col_find(disk_cols, w->v[i]);

		bits |= c ? UINT64_C(1) << (c - disk_cols) : 0;
	}
	return bits;
}

/* The header of a table. The CPUs' has one word more than their row. --pretty breaks a report's
 * disks into several tables: a column that comes again is of the next report. */
static bool take_header(struct iostat *st, const struct words *w)
{
	struct words cells = *w;
	enum table table = TABLE_NONE;
	int device = words_find(w, "Device");

	if (device < 0)
		device = words_find(w, "Device:");
	if (w->n > COLS_MAX)
		return false;
	if (device >= 0 && w->n > 2) {
		table = TABLE_DISK;
	} else if (w->n && span_eq(w->v[0], "Filesystem:")) { /* NFS, of -n before sysstat 10.1 */
		st->table = TABLE_NONE;
		return true;
	} else if (w->n > 2 && span_eq(w->v[0], "avg-cpu:")) {
		table = TABLE_CPU;
		device = -1;
		memmove(cells.v, cells.v + 1, (cells.n - 1) * sizeof(cells.v[0]));
		cells.n--;
	}
	if (table == TABLE_NONE)
		return false;
	if (!st->reports || (table == TABLE_DISK ? (st->has_col & columns_of(w)) != 0
						 : st->has_cpu || st->has_disk))
		begin_report(st);
	st->has_col |= table == TABLE_DISK ? columns_of(w) : 0;
	st->has_disk |= table == TABLE_DISK;
	st->has_cpu |= table == TABLE_CPU;
	st->device = device;
	st->table = table;
	return cols_header(&st->cols, table == TABLE_DISK ? disk_cols : cpu_cols, &cells) > 0;
}

static bool take_time(struct iostat *st, struct span t)
{
	int64_t us = when_parse(t);

	if (us < 0)
		return false;
	begin_report(st);
	st->has_time = true;
	st->t_us = us;
	return true;
}

static void read_line(void *state, struct emit *o, const struct input_line *l)
{
	struct iostat *st = state;
	struct words w;

	if (take_time(st, input_span(l)))
		return;
	words_split(&w, input_span(l));
	if (!take_header(st, &w) && !take_name_alone(st, l, &w)) {
		take_row(st, o, l, &w);
		if (w.n && w.v[0].s == st->alone)
			st->alone[0] = '\0';
	}
}

/* What was kept is the whole run: there is no report but that since boot. */
static void replay(struct iostat *st, struct emit *o)
{
	st->replaying = true;
	st->reports = 0;
	st->has_cpu = st->has_disk = st->has_time = false;
	st->has_col = 0;
	st->table = TABLE_NONE;
	lines_replay(&st->first, o, read_line, st);
	st->replaying = false;
}

/* "Linux 6.1.0 (host)  11/29/26  _x86_64_  (2 CPU)": a run begins. */
static bool is_banner(struct span t)
{
	return t.n > 6 && memcmp(t.s, "Linux ", 6) == 0 && span_has(t, " CPU)");
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct iostat *st = state;
	struct emit unheard = {.rank = -1};

	if (is_banner(input_span(l))) {
		if (st->reports == 1)
			replay(st, o);
		st->reports = 0;
		st->table = TABLE_NONE;
		return;
	}
	if (st->reports >= 2) {
		read_line(st, o, l);
		return;
	}
	/* Which report a line is of is known when it was looked at. */
	read_line(st, &unheard, l);
	if (st->reports >= 2)
		return;
	if (l->complete)
		lines_keep(&st->first, l);
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	struct iostat *st = state;

	if (st->reports == 1)
		replay(st, o);
	return emit_status(o, detail);
}

static void clear(void *state)
{
	lines_forget(&((struct iostat *)state)->first);
}

static int score(struct span line)
{
	struct words w;

	if (is_banner(line))
		return 60;
	words_split(&w, line);
	if (w.n > 4 && span_eq(w.v[0], "avg-cpu:"))
		return 90;
	return w.n > 4 && (words_find(&w, "Device") >= 0 || words_find(&w, "Device:") >= 0) &&
			       (words_find(&w, "tps") >= 0 || words_find(&w, "%util") >= 0)
		       ? 95
		       : 0;
}

static int iostat_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int iostat_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct iostat), on_line, end, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_iostat = {
	.name = "iostat",
	.summary = "iostat as text: throughput, wait and queue of each disk, use of the CPUs",
	.example = "LC_ALL=C S_TIME_FORMAT=ISO iostat -xyt 1",
	.sniff = iostat_sniff,
	.open = iostat_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
