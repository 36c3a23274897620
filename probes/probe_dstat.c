/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dstat, pcp-dstat and dool: the file of --output (CSV) and the screen. A column is its group and
 * its name, since names come again (read, writ of disks and of requests). The first row is the mean
 * since boot and is dropped; where a text has no other, it is given with the label since=boot.
 *
 * On the screen bytes have units of 1024 and counts units of 1000. dool gives disks and networks in
 * bits unless it is asked for bytes: its screen always did, its file does since 1.3. Where a screen
 * does not tell the two apart these are missing values. A row's time has no year: that is taken
 * from the CSV's "Date:", and without one a row has no time. Labels: device of a disk, iface of a
 * network ("all" for the total).
 */
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/lines.h"
#include "probes/when.h"

#define MIB (1024.0 * 1024)

/* A screen has some 500 columns at most, of three bytes each. */
enum { DSTAT_COLS = 96, NAME_BYTES = 32, FRAMED_BYTES = 2048 };

enum what { WHAT_NONE, WHAT_PLAIN, WHAT_DISK, WHAT_NET, WHAT_TIME, WHAT_EPOCH };

static const struct meaning {
	const char *group, *name; /* a group that ends with "/" has a device behind it */
	enum what what;
	const char *metric;
	double scale, base; /* base: of the units on the screen */
} meanings[] = {
	{"total cpu usage", "usr", WHAT_PLAIN, "cpu_user_pct", 1, 1000},
	{"total cpu usage", "sys", WHAT_PLAIN, "cpu_system_pct", 1, 1000},
	{"total cpu usage", "idl", WHAT_PLAIN, "cpu_idle_pct", 1, 1000},
	{"total cpu usage", "wai", WHAT_PLAIN, "cpu_iowait_pct", 1, 1000},
	{"total cpu usage", "stl", WHAT_PLAIN, "cpu_steal_pct", 1, 1000},
	{"dsk/", "read", WHAT_DISK, "disk_read_bytes_per_s", 1, 1024},
	{"dsk/", "writ", WHAT_DISK, "disk_write_bytes_per_s", 1, 1024},
	{"io/", "read", WHAT_DISK, "disk_r_iops", 1, 1000},
	{"io/", "writ", WHAT_DISK, "disk_w_iops", 1, 1000},
	{"net/", "recv", WHAT_NET, "net_rx_bytes_per_s", 1, 1024},
	{"net/", "send", WHAT_NET, "net_tx_bytes_per_s", 1, 1024},
	{"paging", "in", WHAT_PLAIN, "swap_in_bytes_per_s", 1, 1024},
	{"paging", "out", WHAT_PLAIN, "swap_out_bytes_per_s", 1, 1024},
	{"memory usage", "used", WHAT_PLAIN, "host_mem_used_mib", 1 / MIB, 1024},
	{"memory usage", "free", WHAT_PLAIN, "host_mem_free_mib", 1 / MIB, 1024},
	{"memory usage", "cach", WHAT_PLAIN, "host_mem_cache_mib", 1 / MIB, 1024},
	{"swap", "used", WHAT_PLAIN, "swap_used_mib", 1 / MIB, 1024},
	{"system", "int", WHAT_PLAIN, "interrupts_per_s", 1, 1000},
	{"system", "csw", WHAT_PLAIN, "ctx_switches_per_s", 1, 1000},
	{"procs", "run", WHAT_PLAIN, "procs_running", 1, 1000},
	{"procs", "blk", WHAT_PLAIN, "procs_blocked", 1, 1000},
	{"system", "time", WHAT_TIME, NULL, 0, 0},
	{"epoch", "epoch", WHAT_EPOCH, NULL, 0, 0},
};

/* What disks and networks are given in. */
enum traffic { TRAFFIC_BYTES, TRAFFIC_BITS, TRAFFIC_UNKNOWN };

struct column {
	const struct meaning *is; /* NULL: of no use */
	char device[NAME_BYTES];
};

struct dstat {
	struct column col[DSTAT_COLS];
	size_t n;                 /* columns of the table; 0: none yet */
	size_t group[DSTAT_COLS]; /* screen: columns of each group */
	bool opens[DSTAT_COLS];   /* screen: a group is the first of its block */
	char end[DSTAT_COLS];     /* screen: what stands behind a group; NUL: the line ends */
	enum traffic traffic;
	size_t n_groups;
	char names[DSTAT_COLS][NAME_BYTES]; /* the header row before */
	size_t n_names;
	int year; /* 0: unknown */
	int64_t rows;
	struct lines_kept first;
	bool replaying;
};

/* The cells of a row: what they are does not depend on whether file or screen. */
struct cells {
	struct span v[DSTAT_COLS];
	size_t n;
};

static bool add_cell(struct cells *c, struct span t)
{
	if (c->n == DSTAT_COLS)
		return false;
	c->v[c->n++] = t;
	return true;
}

static struct span unquoted(struct span t)
{
	t = span_trim(t);
	if (t.n >= 2 && t.s[0] == '"' && t.s[t.n - 1] == '"')
		t = (struct span){t.s + 1, t.n - 2};
	return t;
}

/* Names that dstat writes hold no comma and no quote. */
static bool split_csv(struct span t, struct cells *c)
{
	struct span f;

	c->n = 0;
	while (span_next(&t, ",", &f))
		if (!add_cell(c, unquoted(f)))
			return false;
	return c->n > 1;
}

static const struct meaning *meaning_of(struct span group, struct span name, struct span *device)
{
	struct span own = span_after(name, ":");

	*device = (struct span){"", 0};
	if (own.s) /* "dsk/sda:read" where a group has several */
		name = own;
	if (span_eq(group, "total usage")) /* pcp-dstat */
		group = span_of("total cpu usage");
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		const struct meaning *m = &meanings[i];
		size_t k = strlen(m->group);

		if (!span_eq(name, m->name))
			continue;
		if (span_eq(group, m->group))
			return m;
		if (m->group[k - 1] != '/' || group.n <= k || memcmp(group.s, m->group, k) != 0)
			continue;
		*device = (struct span){group.s + k, group.n - k};
		if (span_eq(*device, "total"))
			*device = span_of("all");
		return m;
	}
	return NULL;
}

static void name_column(struct dstat *st, size_t i, struct span group, struct span name)
{
	struct column *c = &st->col[i];
	struct span device;
	size_t n;

	c->is = meaning_of(group, name, &device);
	n = device.n < NAME_BYTES - 1 ? device.n : NAME_BYTES - 1;
	memcpy(c->device, device.s, n);
	c->device[n] = '\0';
}

static void keep_names(struct dstat *st, const struct cells *c)
{
	for (size_t i = 0; i < c->n; i++) {
		size_t n = c->v[i].n < NAME_BYTES - 1 ? c->v[i].n : NAME_BYTES - 1;

		memcpy(st->names[i], c->v[i].s, n);
		st->names[i][n] = '\0';
	}
	st->n_names = c->n;
}

/* A new table begins: its first row is one since boot again. */
static void begin_table(struct dstat *st, size_t n)
{
	if (st->n != n) {
		st->rows = 0;
		lines_forget(&st->first);
	}
	st->n = n;
}

/* Two header rows: groups (empty where the one before goes on), then names. */
static void csv_header(struct dstat *st, const struct cells *c)
{
	struct span group = {"", 0};
	size_t known = 0;

	if (span_eq(c->v[0], "Cmdline:") || span_eq(c->v[0], "Host:")) {
		struct span last = c->v[c->n - 1];

		st->rows = 0; /* a run was appended to the file */
		for (size_t i = 1; i < c->n; i++)
			if (span_has(c->v[i], "--bytes") || span_has(c->v[i], "--dstat"))
				st->traffic = TRAFFIC_BYTES;

		for (size_t i = 0; i + 4 <= last.n; i++) {
			double y;

			if (num_whole((struct span){last.s + i, 4}, &y) && y >= 2000 && y < 2100)
				st->year = (int)y;
		}
		return;
	}
	st->n_groups = 0;
	if (st->n_names == c->n)
		for (size_t i = 0; i < c->n; i++) {
			if (st->names[i][0])
				group = span_of(st->names[i]);
			name_column(st, i, group, c->v[i]);
			known += st->col[i].is != NULL;
		}
	if (known)
		begin_table(st, c->n);
	keep_names(st, c);
}

/* "29-11 12:13:15": day and month, or dool's "Nov-29 12:13:15". */
static int64_t time_of(const struct dstat *st, struct span t)
{
	char text[32];
	int month;

	t = span_trim(t);
	month = t.n == 15 ? when_month((struct span){t.s, 3}) : 0;
	if (!st->year || (!month && t.n != 14) || t.s[t.n - 12] != '-')
		return -1;
	if (month)
		snprintf(text, sizeof(text), "%04d-%02d-%.2s %.8s", st->year, month, t.s + 4,
			 t.s + 7);
	else
		snprintf(text, sizeof(text), "%04d-%.2s-%.2s %.8s", st->year, t.s + 3, t.s,
			 t.s + 6);
	return when_parse(span_of(text));
}

static int64_t row_time(const struct dstat *st, const struct cells *c)
{
	int64_t t_us = -1;
	double v;

	for (size_t i = 0; i < c->n; i++) {
		const struct meaning *m = st->col[i].is;

		if (m && m->what == WHAT_EPOCH && num_whole(c->v[i], &v) && v > 0 && v < 1e10)
			t_us = (int64_t)(v * 1e6);
		else if (m && m->what == WHAT_TIME && t_us < 0)
			t_us = time_of(st, c->v[i]);
	}
	return t_us;
}

/* A cell of a disk's or a network's traffic. "455b" and dool's "7443k" are bits, and what follows
 * them is so; dool's "909K" and "512B" are bytes in one version and bits in another. */
static bool read_traffic(struct dstat *st, struct span t, double *out)
{
	char unit = t.n ? t.s[t.n - 1] : '\0';

	if (unit == 'b' || (unit == 'k' && st->traffic == TRAFFIC_UNKNOWN))
		st->traffic = TRAFFIC_BITS;
	if (st->traffic == TRAFFIC_BYTES)
		return col_human(t, 1024, out);
	if (unit == 'b')
		t.n--;
	if (!col_human(t, 1000, out))
		return false;
	*out /= 8;
	return true;
}

static bool is_traffic(const struct meaning *m)
{
	return (m->what == WHAT_DISK || m->what == WHAT_NET) && m->base == 1024;
}

static void emit_cell(struct dstat *st, struct emit *o, size_t i, struct span t, int64_t t_us)
{
	const struct meaning *m = st->col[i].is;
	struct emit_tag tag = {.step = -1, .t_us = t_us};
	struct emit_labels ls = {.n = 0};
	const char *why = num_missing(t);
	bool read;
	double v;

	if (!m || !m->metric)
		return;
	read = is_traffic(m) ? read_traffic(st, t, &v) : col_human(t, m->base, &v);
	if (read && is_traffic(m) && v != 0 &&
	    (st->traffic == TRAFFIC_UNKNOWN ||
	     (st->traffic == TRAFFIC_BITS && strchr("KB", t.s[t.n - 1]))))
		why = "bits or bytes";
	if (m->what == WHAT_DISK || m->what == WHAT_NET)
		emit_label(&ls, m->what == WHAT_DISK ? "device" : "iface",
			   span_of(st->col[i].device));
	if (st->replaying)
		emit_label(&ls, "since", span_of("boot"));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	if (why)
		emit_missing(o, m->metric, why, &tag);
	else if (read)
		emit_value(o, m->metric, v * m->scale, &tag);
	else
		emit_bad(o, "a cell holds no number");
}

static void take_row(struct dstat *st, struct emit *o, const struct input_line *l,
		     const struct cells *c)
{
	int64_t t_us;

	if (!st->replaying && !st->rows++) {
		if (l->complete)
			lines_keep(&st->first, l);
		return;
	}
	if (!st->replaying)
		lines_forget(&st->first);
	t_us = row_time(st, c);
	for (size_t i = 0; i < c->n; i++)
		if (l->complete || i + 1 < c->n)
			emit_cell(st, o, i, c->v[i], t_us);
}

/* What the first cell of a row can be: a number, or a day and a time. */
static bool is_row(struct span first)
{
	first = span_trim(first);
	return first.n && ((first.s[0] >= '0' && first.s[0] <= '9') || first.s[0] == '-' ||
			   (first.n == 15 && when_month((struct span){first.s, 3})));
}

/* "Dstat 0.7.3 CSV output", "dool 1.3.4 CSV output", "pcp-dstat 6.2.0 CSV Output" in quotes. */
static bool is_title(struct span t)
{
	t = span_trim(t);
	return t.n > 20 && t.s[0] == '"' && span_has(t, " CSV ") && span_has(t, "utput\"");
}

static void take_title(struct dstat *st, struct span t)
{
	struct span version = span_after(t, "\"dool ");
	double v;

	st->traffic = version.s && num_scan(version, &v, NULL) == NUM_FINITE && v >= 1.3
			      ? TRAFFIC_BITS
			      : TRAFFIC_BYTES;
}

static void csv_line(struct dstat *st, struct emit *o, const struct input_line *l)
{
	struct cells c;

	if (!split_csv(input_span(l), &c))
		return;
	if (span_trim(input_span(l)).s[0] == '"')
		csv_header(st, &c);
	else if (st->n && !st->n_groups && is_row(c.v[0]) && c.n == st->n)
		take_row(st, o, l, &c);
	else if (st->n && !st->n_groups && is_row(c.v[0]) && !l->complete)
		emit_bad(o, "a row that is cut");
}

/* "----system---- --total-cpu-usage-- --dsk/sda-----dsk/sdb--": the groups of a screen stand
 * between blanks and at least two dashes. dool has '|' between blocks of them, and opens[] tells
 * where one begins; without, each is a block. False when it is no such line. */
static bool screen_groups(struct span t, struct cells *c, bool opens[DSTAT_COLS])
{
	bool blocks = memchr(t.s, '|', t.n), opened = true;
	size_t i = 0, from;

	c->n = 0;
	t = span_trim(t);
	if (!t.n || t.s[0] != '-')
		return false;
	while (i < t.n) {
		for (; i < t.n && strchr("- |", t.s[i]); i++)
			opened |= t.s[i] == '|';
		from = i;
		while (i < t.n && t.s[i] != ' ' && t.s[i] != '|' &&
		       !(t.s[i] == '-' && (i + 1 == t.n || strchr("- |", t.s[i + 1]))))
			i++;
		if (i == from)
			continue;
		if (!add_cell(c, (struct span){t.s + from, i - from}))
			return false;
		opens[c->n - 1] = opened;
		opened = !blocks;
	}
	return c->n > 0;
}

/* The groups of the block that group g opens. */
static size_t block_size(const struct dstat *st, size_t g)
{
	size_t n = 1;

	while (g + n < st->n_names && !st->opens[g + n])
		n++;
	return n;
}

/* "time | usr sys idl| read writ": the names of each block, as many for each of its groups. */
static void screen_names(struct dstat *st, struct span t)
{
	struct span part;
	size_t n = 0, groups = 0, known = 0;

	while (groups < st->n_names && span_next(&t, "|:", &part)) {
		size_t size = block_size(st, groups);
		struct words w;

		words_split(&w, part);
		if (w.n % size || n + w.n > DSTAT_COLS)
			return;
		for (size_t i = 0; i < w.n; i++) {
			char *group = st->names[groups + i / (w.n / size)];

			for (char *dash = group; (dash = strchr(dash, '-')); dash++)
				*dash = ' ';
			name_column(st, n, span_of(group), w.v[i]);
			known += st->col[n++].is != NULL;
		}
		for (size_t i = 0; i < size; i++) {
			st->end[groups] = i + 1 < size ? ':' : t.s ? t.s[-1] : '\0';
			st->group[groups++] = w.n / size;
		}
	}
	if (!known || groups != st->n_names)
		return;
	st->n_groups = groups;
	begin_table(st, n);
	st->n_names = 0;
}

static bool is_known_group(const struct dstat *st, size_t column, size_t group)
{
	for (size_t i = 0; i < st->group[group] && column + i < DSTAT_COLS; i++)
		if (st->col[column + i].is)
			return true;
	return false;
}

/* Groups end with '|', and those of one kind with ':', which is part of a time and of what nobody
 * knows here: "sshd: root@ 146B  180B" of the most expensive process. */
static bool screen_cells(const struct dstat *st, struct span t, struct cells *c)
{
	struct span part, w;

	c->n = 0;
	for (size_t g = 0; g < st->n_groups; g++) {
		const struct meaning *m = c->n < DSTAT_COLS ? st->col[c->n].is : NULL;
		bool time = st->group[g] == 1 && m && m->what == WHAT_TIME;
		bool known = is_known_group(st, c->n, g);
		const char stop[] = {st->end[g], '\0'};
		size_t n = 0;

		if (!span_next(&t, time ? "|" : known ? "|:" : stop, &part))
			return false;
		for (; !known && n < st->group[g]; n++)
			if (!add_cell(c, (struct span){"", 0}))
				return false;
		if (!known)
			continue;
		if (time) {
			add_cell(c, span_trim(part));
			continue;
		}
		for (; span_word(&part, &w); n++)
			if (!add_cell(c, w))
				return false;
		if (n != st->group[g])
			return false;
	}
	return !t.s;
}

/* "10-02 17:04:49|      |     ": pcp-dstat has no mean since boot and leaves its first row blank.
 */
static bool is_blank_row(struct span t)
{
	struct span cells = span_after(t, "|");

	for (size_t i = 0; i < cells.n; i++)
		if (!strchr(" |:", cells.s[i]))
			return false;
	return cells.n > 0 && is_row(t);
}

/* dool draws its frames with characters of three bytes: as dstat's own. False: t has none. */
static bool without_frames(struct span *t, char out[FRAMED_BYTES])
{
	static const char from[][4] = {"\u2500", "\u2504", "\u252c", "\u2502", "\u250a"};
	static const char to[] = "--||:";
	size_t n = 0;
	bool framed = false;

	if (t->n >= FRAMED_BYTES)
		return false;
	for (size_t i = 0; i < t->n; n++) {
		size_t k = 0;

		while (k < ARRAY_LEN(from) && (t->n - i < 3 || memcmp(t->s + i, from[k], 3) != 0))
			k++;
		framed |= k < ARRAY_LEN(from);
		out[n] = k < ARRAY_LEN(from) ? to[k] : t->s[i];
		i += k < ARRAY_LEN(from) ? 3 : 1;
	}
	*t = (struct span){out, n};
	return framed;
}

static void screen_line(struct dstat *st, struct emit *o, const struct input_line *l)
{
	char text[FRAMED_BYTES];
	struct span t = input_span(l), rest, first;
	bool opens[DSTAT_COLS] = {false}, framed = without_frames(&t, text);
	struct cells c;

	if (t.n > 2 && memcmp(t.s + t.n - 2, "^C", 2) == 0)
		t.n -= 2;
	rest = t;
	if (!span_next(&rest, "|", &first))
		return;
	if (screen_groups(t, &c, opens)) {
		if (st->traffic != TRAFFIC_BITS)
			st->traffic = framed || memchr(t.s, '|', t.n) ? TRAFFIC_UNKNOWN
								      : TRAFFIC_BYTES;
		keep_names(st, &c);
		memcpy(st->opens, opens, sizeof(opens));
		st->n_groups = 0;
	} else if (st->n_names && !st->n_groups && memchr(t.s, '|', t.n)) {
		screen_names(st, t);
	} else if (st->n_groups && !st->rows && is_blank_row(t)) {
		st->rows = 1;
	} else if (st->n_groups && is_row(first) && screen_cells(st, t, &c)) {
		if (st->traffic == TRAFFIC_BYTES && span_trim(first).n == 15)
			st->traffic = TRAFFIC_UNKNOWN; /* dool's time, before it drew frames */
		take_row(st, o, l, &c);
	}
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct dstat *st = state;

	if (is_title(input_span(l)))
		take_title(st, input_span(l));
	else if (memchr(l->text, ',', l->len))
		csv_line(st, o, l);
	else
		screen_line(st, o, l);
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	struct dstat *st = state;

	st->replaying = true;
	lines_replay(&st->first, o, on_line, st);
	return emit_status(o, detail);
}

static void clear(void *state)
{
	lines_forget(&((struct dstat *)state)->first);
}

static int score(struct span line)
{
	char text[FRAMED_BYTES];
	bool opens[DSTAT_COLS] = {false};
	struct cells c;

	if (is_title(line))
		return span_has(line, "stat ") || span_has(line, "ool ") ? 98 : 0;
	without_frames(&line, text);
	if (!screen_groups(line, &c, opens))
		return 0;
	for (size_t i = 0; i < c.n; i++)
		if (span_eq(c.v[i], "total-cpu-usage") || span_eq(c.v[i], "total-usage") ||
		    span_has(c.v[i], "dsk/") || span_eq(c.v[i], "net/total"))
			return 95;
	return 0;
}

static int dstat_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int dstat_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct dstat), on_line, end, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_dstat = {
	.name = "dstat",
	.summary =
		"dstat, dool: CPUs, disks, networks, memory and paging of a host, file or screen",
	.example = "dstat -T -tcdnmgy --output dstat.csv 1",
	.sniff = dstat_sniff,
	.open = dstat_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
