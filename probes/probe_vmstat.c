/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vmstat: the default table (-a, -n, -t, -w, with or without guest time) and the disks' (-d). The
 * first row of the default table is the mean since boot and is dropped; where a text has no other,
 * it is given with the label since=boot. A header comes again with each screen, of at least
 * SCREEN_ROWS: one that comes sooner begins another run, as scripts append them. Memory is taken to
 * be in KiB: the header of -S m looks the same. bi and bo are blocks of 1024 bytes a second over
 * all disks (label device=all).
 *
 * The counters of -d are since boot; with -t their rates come too. Devices that never did anything
 * are left out. Times have no zone but the header's name of it: only UTC is known.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/counters.h"
#include "probes/lines.h"
#include "probes/when.h"

#define KIB 1024.0

enum { SECTOR_BYTES = 512, SCREEN_ROWS = 10 };

static const struct col columns[] = {
	{"r", "procs_running", 1},
	{"b", "procs_blocked", 1},
	{"swpd", "swap_used_mib", 1 / KIB},
	{"free", "host_mem_free_mib", 1 / KIB},
	{"cache", "host_mem_cache_mib", 1 / KIB},
	{"si", "swap_in_bytes_per_s", KIB},
	{"so", "swap_out_bytes_per_s", KIB},
	{"bi", "disk_read_bytes_per_s", KIB},
	{"bo", "disk_write_bytes_per_s", KIB},
	{"in", "interrupts_per_s", 1},
	{"cs", "ctx_switches_per_s", 1},
	{"us", "cpu_user_pct", 1},
	{"sy", "cpu_system_pct", 1},
	{"id", "cpu_idle_pct", 1},
	{"wa", "cpu_iowait_pct", 1},
	{"st", "cpu_steal_pct", 1},
	{NULL, NULL, 0},
};

/* Columns that are part of a header and mean nothing to us; what else ends it is a time's zone. */
static const char *const others[] = {"buff", "inact", "active", "gu"};

/* Columns of -d behind the name. */
enum { READS, READ_SECTORS = 2, WRITES = 4, WRITTEN_SECTORS = 6, DISK_COLUMNS = 10 };

enum table { TABLE_NONE, TABLE_ALL, TABLE_DISK };

struct vmstat {
	enum table table;
	struct cols cols;
	bool timed;      /* the last column is a date and a time */
	int64_t rows;    /* of this run */
	int64_t on_page; /* of them since the last header */
	struct lines_kept first;
	bool replaying;
	struct counters disks;
};

static bool is_other(struct span t)
{
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (span_eq(t, others[i]))
			return true;
	return false;
}

static bool is_header(const struct words *w)
{
	return w->n >= 10 && w->n <= COLS_MAX && span_eq(w->v[0], "r") && span_eq(w->v[1], "b") &&
	       span_eq(w->v[2], "swpd");
}

static bool is_disk_header(const struct words *w)
{
	return w->n >= 10 && span_eq(w->v[0], "total") && span_eq(w->v[1], "merged") &&
	       span_eq(w->v[9], "sec");
}

static bool take_header(struct vmstat *st, const struct words *w)
{
	if (is_header(w)) {
		struct span last = w->v[w->n - 1];

		cols_header(&st->cols, columns, w);
		st->timed = !col_find(columns, last) && !is_other(last);
		st->table = TABLE_ALL;
		if (st->on_page && st->on_page < SCREEN_ROWS)
			st->rows = 0;
		st->on_page = 0;
	} else if (is_disk_header(w)) {
		st->timed = w->n > DISK_COLUMNS;
		st->table = TABLE_DISK;
	} else {
		return false;
	}
	return true;
}

/* The date and time that the last two words are, -1 if they are none. */
static int64_t time_of(const struct words *w)
{
	struct span date = w->v[w->n - 2], clock = w->v[w->n - 1];

	return when_parse((struct span){date.s, (size_t)(clock.s + clock.n - date.s)});
}

static bool all_numbers(const struct words *w, size_t from, size_t to)
{
	double v;

	for (size_t i = from; i < to; i++)
		if (!num_whole(w->v[i], &v) && !num_missing(w->v[i]))
			return false;
	return true;
}

static void emit_row(struct vmstat *st, struct emit *o, const struct words *w, bool complete)
{
	struct emit_tag tag = EMIT_NONE;
	struct emit_labels since = {.n = 0}, disk = {.n = 0};

	emit_label(&disk, "device", span_of("all"));
	if (st->replaying) {
		emit_label(&since, "since", span_of("boot"));
		emit_label(&disk, "since", span_of("boot"));
	}
	if (st->timed)
		tag.t_us = time_of(w);
	for (size_t i = 0; i < st->cols.n; i++) {
		const struct col *c = st->cols.of[i];

		if (!c || (!complete && i + 1 == w->n))
			continue;
		tag.labels = str_starts(c->metric, "disk_") ? disk.v : since.v;
		tag.n_labels = str_starts(c->metric, "disk_") ? disk.n : since.n;
		emit_token(o, c->metric, w->v[i], c->scale, &tag);
	}
}

static void take_row(struct vmstat *st, struct emit *o, const struct input_line *l,
		     const struct words *w)
{
	size_t cells = st->cols.n - st->timed, want = cells + (st->timed ? 2 : 0);

	if (w->n > want || w->n < 2 || w->n > COLS_MAX ||
	    !all_numbers(w, 0, w->n < cells ? w->n : cells))
		return;
	if (w->n < want) {
		if (!l->complete)
			emit_bad(o, "a row that is cut");
		return;
	}
	st->on_page++;
	if (!st->replaying && !st->rows++) {
		if (l->complete)
			lines_keep(&st->first, l);
		return;
	}
	if (!st->replaying)
		lines_forget(&st->first);
	emit_row(st, o, w, l->complete);
}

static void take_disk(struct vmstat *st, struct emit *o, const struct input_line *l,
		      const struct words *w)
{
	static const struct counter_metric read = {"disk_read_bytes_total", "disk_read_bytes_per_s",
						   SECTOR_BYTES},
					   written = {"disk_write_bytes_total",
						      "disk_write_bytes_per_s", SECTOR_BYTES};
	struct emit_tag tag = EMIT_NONE;
	struct emit_labels ls = {.n = 0};
	double r, wr, reads, writes;

	if (w->n != 1 + DISK_COLUMNS + (st->timed ? 2u : 0u) ||
	    !all_numbers(w, 1, 1 + DISK_COLUMNS) || !l->complete)
		return;
	if (!num_whole(w->v[1 + READS], &reads) || !num_whole(w->v[1 + WRITES], &writes) ||
	    !num_whole(w->v[1 + READ_SECTORS], &r) || !num_whole(w->v[1 + WRITTEN_SECTORS], &wr))
		return;
	if (reads + writes <= 0)
		return;
	emit_label(&ls, "device", w->v[0]);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	if (st->timed)
		tag.t_us = time_of(w);
	counters_emit(&st->disks, o, &read, r, &tag);
	counters_emit(&st->disks, o, &written, wr, &tag);
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct vmstat *st = state;
	struct words w;

	words_split(&w, input_span(l));
	if (take_header(st, &w))
		return;
	if (st->table == TABLE_ALL)
		take_row(st, o, l, &w);
	else if (st->table == TABLE_DISK)
		take_disk(st, o, l, &w);
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	struct vmstat *st = state;

	st->replaying = true;
	st->table = TABLE_ALL;
	lines_replay(&st->first, o, on_line, st);
	return emit_status(o, detail);
}

static void clear(void *state)
{
	struct vmstat *st = state;

	lines_forget(&st->first);
	counters_free(&st->disks);
}

static int score(struct span line)
{
	struct words w;

	words_split(&w, line);
	return is_header(&w) || is_disk_header(&w) ? 95 : 0;
}

static int vmstat_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int vmstat_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct vmstat), on_line, end, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_vmstat = {
	.name = "vmstat",
	.summary = "vmstat: processes, memory, swapping, block I/O and CPUs of a host",
	.example = "TZ=UTC vmstat -w -t 1",
	.sniff = vmstat_sniff,
	.open = vmstat_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
