/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ifstat (Debian's package ifstat 1.1): two header lines, interfaces and then "KB/s in  KB/s out"
 * for each, and rows with -t's time or without. KB is 1024 bytes; -b prints Kbps, 1000 bits. The
 * headers come again. "n/a" is a missing value. A time has no date, so rows have no time.
 *
 * iproute2 has another ifstat: its numbers are differences to its own last run, and rates are there
 * only while its daemon runs. It is refused by name; /proc/net/dev says the same and more.
 *
 * Labels: iface (Total of -T is "all").
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/lines.h"

enum { IFACES_MAX = 60, IFACE_BYTES = 32 };

struct ifaces {
	char name[IFACES_MAX][IFACE_BYTES];
	size_t n;
};

struct ifstat {
	struct ifaces table, next; /* next: the last line that could be the first of a header */
	bool timed;                /* a row begins with its time */
	double scale;              /* to bytes a second; 0 before the second header line */
};

/* Words of a second header line behind the time: "KB/s in  KB/s out" a pair, n pairs. */
static double unit_of(const struct words *w, size_t from, size_t *n)
{
	double scale = 0;

	if (w->n <= from || (w->n - from) % 4 || w->n > COLS_MAX)
		return 0;
	for (size_t i = from; i < w->n; i += 2) {
		const char *side = (i - from) % 4 ? "out" : "in";
		double s = span_eq(w->v[i], "KB/s")   ? 1024
			   : span_eq(w->v[i], "Kbps") ? 1000.0 / 8
						      : 0;

		if (s == 0 || (scale != 0 && s != scale) || !span_eq(w->v[i + 1], side))
			return 0;
		scale = s;
	}
	*n = (w->n - from) / 4;
	return scale;
}

static bool take_units(struct ifstat *st, const struct words *w)
{
	size_t from = w->n && span_eq(w->v[0], "HH:MM:SS") ? 1 : 0, n;
	double scale = unit_of(w, from, &n);

	if (scale == 0)
		return false;
	st->table = st->next;
	st->scale = n == st->table.n ? scale : 0;
	st->timed = from == 1;
	return true;
}

static bool is_clock(struct span t)
{
	return t.n == 8 && t.s[2] == ':' && t.s[5] == ':';
}

static bool is_iface(struct span t)
{
	double v;

	for (size_t i = 0; i < t.n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-",
			    t.s[i]))
			return false;
	return t.n < IFACE_BYTES && !num_whole(t, &v);
}

/* A line of names alone: "  Time   eth0   ib0". */
static void keep_names(struct ifaces *next, const struct words *w)
{
	size_t from = w->n && span_eq(w->v[0], "Time") ? 1 : 0;

	if (w->n <= from || w->n - from > IFACES_MAX)
		return;
	for (size_t i = from; i < w->n; i++)
		if (!is_iface(w->v[i]))
			return;
	next->n = 0;
	for (size_t i = from; i < w->n; i++) {
		char *name = next->name[next->n++];

		memcpy(name, w->v[i].s, w->v[i].n);
		name[w->v[i].n] = '\0';
		if (str_eq(name, "Total"))
			str_copy(name, IFACE_BYTES, "all");
	}
}

static bool is_row(const struct ifstat *st, const struct words *w, size_t cells)
{
	double v;

	if (st->timed && !is_clock(w->v[0]))
		return false;
	for (size_t i = st->timed; i < cells; i++)
		if (!num_whole(w->v[i], &v) && !num_missing(w->v[i]))
			return false;
	return true;
}

/* False when it is no row of this table. */
static bool take_row(const struct ifstat *st, struct emit *o, const struct input_line *l,
		     const struct words *w)
{
	size_t want = 2 * st->table.n + st->timed;

	if (st->scale == 0 || !w->n || w->n > want || !is_row(st, w, w->n))
		return false;
	if (w->n < want) {
		if (!l->complete)
			emit_bad(o, "a row that is cut");
		return !l->complete;
	}
	for (size_t i = 0; i < st->table.n; i++) {
		struct emit_labels ls = {.n = 0};
		struct emit_tag tag = EMIT_NONE;
		const struct span *cell = &w->v[2 * i + st->timed];

		emit_label(&ls, "iface", span_of(st->table.name[i]));
		tag.labels = ls.v;
		tag.n_labels = ls.n;
		emit_token(o, "net_rx_bytes_per_s", cell[0], st->scale, &tag);
		if (l->complete || i + 1 < st->table.n)
			emit_token(o, "net_tx_bytes_per_s", cell[1], st->scale, &tag);
	}
	return true;
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct ifstat *st = state;
	struct words w;

	if (span_has(input_span(l), "RX Data/Rate")) {
		emit_bad(o, "iproute2's ifstat gives no rates without its daemon: read "
			    "/proc/net/dev");
		return;
	}
	words_split(&w, input_span(l));
	if (w.n <= COLS_MAX && !take_units(st, &w) && !take_row(st, o, l, &w))
		keep_names(&st->next, &w);
}

static int score(struct span line)
{
	struct words w;
	size_t n;

	if (span_has(line, "RX Data/Rate"))
		return 90;
	words_split(&w, line);
	return unit_of(&w, w.n && span_eq(w.v[0], "HH:MM:SS") ? 1 : 0, &n) != 0 ? 95 : 0;
}

static int ifstat_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int ifstat_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct ifstat), on_line, NULL, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_ifstat = {
	.name = "ifstat",
	.summary = "ifstat: bytes in and out of each interface",
	.example = "ifstat -t -n 1",
	.sniff = ifstat_sniff,
	.open = ifstat_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
