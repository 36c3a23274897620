/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/net/dev, once or again and again: the counters of each interface, and their rates where a
 * line before each copy says when it was read (a date, or seconds since 1970). A name may touch its
 * first number. Traffic of RDMA (InfiniBand, RoCE) is not in these counters.
 *
 * Interfaces that never did anything are left out. Labels: iface; counter of drops and errors.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/counters.h"
#include "probes/lines.h"

enum { NET_N = 16, NAME_MAX_BYTES = 32 };

static const struct {
	int column;
	const char *counter; /* NULL: the metric needs none */
	struct counter_metric metric;
} kept[] = {
	{0, NULL, {"net_rx_bytes_total", "net_rx_bytes_per_s", 1}},
	{8, NULL, {"net_tx_bytes_total", "net_tx_bytes_per_s", 1}},
	{1, NULL, {"net_rx_packets_total", NULL, 1}},
	{9, NULL, {"net_tx_packets_total", NULL, 1}},
	{3, "rx_drop", {"net_drops_total", "net_drops_per_s", 1}},
	{11, "tx_drop", {"net_drops_total", "net_drops_per_s", 1}},
	{2, "rx_errs", {"net_errors_total", "net_errors_per_s", 1}},
	{10, "tx_errs", {"net_errors_total", "net_errors_per_s", 1}},
};

struct net_dev {
	bool begun; /* the header was seen */
	struct counters counters;
};

static bool is_header(struct span t)
{
	return span_has(t, "face |bytes") && span_has(t, "packets errs drop fifo frame");
}

/* "  eth0:874354587 1036395 ...": 16 numbers. */
static bool read_row(struct span t, struct span *name, double v[NET_N], size_t *n)
{
	struct span w;

	if (!span_next(&t, ":", name) || !t.s)
		return false;
	*name = span_trim(*name);
	if (!name->n || name->n > NAME_MAX_BYTES || memchr(name->s, ' ', name->n))
		return false;
	for (*n = 0; span_word(&t, &w); ++*n)
		if (*n == NET_N || !num_whole(w, &v[*n]) || v[*n] < 0)
			return false;
	return *n > 0;
}

static void emit_row(struct net_dev *st, struct emit *o, struct span name, const double v[NET_N])
{
	bool idle = true;

	for (int i = 0; i < NET_N; i++)
		idle = idle && v[i] == 0;
	for (size_t i = 0; i < ARRAY_LEN(kept) && !idle; i++) {
		struct emit_labels ls = {.n = 0};
		struct emit_tag tag;

		emit_label(&ls, "iface", name);
		if (kept[i].counter)
			emit_label(&ls, "counter", span_of(kept[i].counter));
		tag = counters_tag(&st->counters, &ls);
		counters_emit(&st->counters, o, &kept[i].metric, v[kept[i].column], &tag);
	}
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct net_dev *st = state;
	struct span t = input_span(l), name;
	double v[NET_N];
	size_t n;

	if (counters_stamp(&st->counters, t))
		return;
	if (is_header(t)) {
		st->begun = true;
		return;
	}
	/* An interface can have a name like a host's, which the input layer took for a prefix. */
	if (!st->begun || (!read_row(t, &name, v, &n) &&
			   !read_row((struct span){l->whole, l->whole_len}, &name, v, &n)))
		return;
	if (n == NET_N && l->complete)
		emit_row(st, o, name, v);
	else if (!l->complete)
		emit_bad(o, "cut in the middle of an interface");
}

static void clear(void *state)
{
	counters_free(&((struct net_dev *)state)->counters);
}

static int score(struct span line)
{
	return is_header(line) ? 95 : 0;
}

static int net_dev_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int net_dev_open(const struct probe_context *c, const struct probe_sink *sink,
			struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct net_dev), on_line, NULL, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_net_dev = {
	.name = "net_dev",
	.summary = "/proc/net/dev: bytes, packets, drops and errors of each interface",
	.example = "while :; do date -u; cat /proc/net/dev; sleep 1; done",
	.sniff = net_dev_sniff,
	.open = net_dev_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
