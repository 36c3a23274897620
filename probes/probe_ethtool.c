/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ethtool -S: the counters of a NIC by the driver's own names, once or again and again (a line
 * before each copy may say when it was read: then there are rates). A name may hold blanks, ':' and
 * '[': the last ": " ends it. The same name twice is two values.
 *
 * RDMA of mlx5 NICs (RoCE) is in rx_vport_rdma_unicast_bytes and its like, not in rx_bytes. A name
 * without a metric of its own is net_counter_total.
 *
 * Labels: iface, if a line "ethtool -S eth0" tells it; counter; dir and prio of pause frames.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/counters.h"
#include "probes/lines.h"

enum { IFACE_BYTES = 32 };

static const struct counter_metric drops = {"net_drops_total", "net_drops_per_s", 1},
				   errors = {"net_errors_total", "net_errors_per_s", 1},
				   congestion = {"rdma_congestion_total", "rdma_congestion_per_s",
						 1},
				   retrans = {"rdma_retrans_total", "rdma_retrans_per_s", 1},
				   other = {"net_counter_total", NULL, 1},
				   pause_frames = {"pfc_pause_frames_total",
						   "pfc_pause_frames_per_s", 1},
				   pause_us = {"pfc_pause_us_total", NULL, 1};

static const struct {
	const char *name;
	struct counter_metric metric; /* labelled by iface alone */
} plain[] = {
	{"rx_bytes", {"net_rx_bytes_total", "net_rx_bytes_per_s", 1}},
	{"tx_bytes", {"net_tx_bytes_total", "net_tx_bytes_per_s", 1}},
	{"rx_packets", {"net_rx_packets_total", NULL, 1}},
	{"tx_packets", {"net_tx_packets_total", NULL, 1}},
	{"rx_octets", {"net_rx_bytes_total", "net_rx_bytes_per_s", 1}},
	{"tx_octets", {"net_tx_bytes_total", "net_tx_bytes_per_s", 1}},
	{"rx_vport_rdma_unicast_bytes", {"ib_rx_bytes_total", "ib_rx_bytes_per_s", 1}},
	{"tx_vport_rdma_unicast_bytes", {"ib_tx_bytes_total", "ib_tx_bytes_per_s", 1}},
};

/* Labelled by the counter's name as well. */
static const struct {
	const char *name;
	const struct counter_metric *metric;
} named[] = {
	{"rx_dropped", &drops},
	{"tx_dropped", &drops},
	{"port.rx_dropped", &drops},
	{"port.tx_dropped_link_down", &drops},
	{"rx_missed", &drops},
	{"rx_missed_errors", &drops},
	{"rx_out_of_buffer", &drops},
	{"rx_discards_phy", &drops},
	{"tx_discards_phy", &drops},
	{"rx_buffer_passed_thres_phy", &drops},
	{"rx_errors", &errors},
	{"tx_errors", &errors},
	{"rx_crc_errors", &errors},
	{"rx_crc_errors_phy", &errors},
	{"rx_symbol_err_phy", &errors},
	{"align_errors", &errors},
	{"tx_aborted", &errors},
	{"tx_underrun", &errors},
	{"link_down_events_phy", &errors},
	{"rx_ecn_mark", &congestion},
	{"rx_roce_adp_retrans", &retrans},
	{"roce_adp_retrans", &retrans},
};

struct ethtool {
	bool begun;
	char iface[IFACE_BYTES];
	struct counters counters;
};

/* "rx_prio3_pause" is "_pause" of priority 3; NULL when key is of no priority. */
static struct span tail_of_prio(struct span key, struct span *prio)
{
	static const char stem[] = "x_prio";
	const struct span none = {NULL, 0};
	struct span t = key;
	size_t n = 0;

	if (t.n < 1 + sizeof(stem) || (t.s[0] != 'r' && t.s[0] != 't') ||
	    memcmp(t.s + 1, stem, sizeof(stem) - 1) != 0)
		return none;
	t = (struct span){t.s + sizeof(stem), t.n - sizeof(stem)};
	while (n < t.n && t.s[n] >= '0' && t.s[n] <= '9')
		n++;
	*prio = (struct span){t.s, n};
	return n ? (struct span){t.s + n, t.n - n} : none;
}

/* "rx_prio3_pause", "tx_pause_ctrl_phy", "rx_global_pause_duration": the priority, or whose it is.
 * NULL when it is no counter of pauses. */
static const struct counter_metric *pause_of(struct span key, struct span *prio)
{
	static const char global[] = "x_global";
	struct span t = tail_of_prio(key, prio), rest = {key.s + 1, key.n ? key.n - 1 : 0};

	if (!t.s && span_eq(rest, "x_pause_ctrl_phy")) {
		*prio = span_of("all");
		return &pause_frames;
	}
	if (!t.s && span_starts(rest, global)) {
		*prio = span_of("global");
		t = (struct span){rest.s + strlen(global), rest.n - strlen(global)};
	}
	return span_eq(t, "_pause")            ? &pause_frames
	       : span_eq(t, "_pause_duration") ? &pause_us
					       : NULL;
}

/* "rx_prio3_cong_discard" and its like: what is known by the tail behind the priority. */
static const struct counter_metric *discard_of(struct span key)
{
	struct span prio, t = tail_of_prio(key, &prio);

	return span_eq(t, "_cong_discard")                             ? &congestion
	       : span_eq(t, "_discards") || span_eq(t, "_buf_discard") ? &drops
								       : NULL;
}

static void emit_counter(struct ethtool *st, struct emit *o, struct span key, double v)
{
	struct emit_labels ls = {.n = 0};
	const struct counter_metric *m = NULL;
	struct emit_tag tag;
	struct span prio;

	if (st->iface[0])
		emit_label(&ls, "iface", span_of(st->iface));
	for (size_t i = 0; i < ARRAY_LEN(plain) && !m; i++)
		if (span_eq(key, plain[i].name))
			m = &plain[i].metric;
	if (!m && (m = pause_of(key, &prio))) {
		emit_label(&ls, "dir", (struct span){key.s, 2});
		emit_label(&ls, "prio", prio);
	}
	if (!m) {
		m = discard_of(key);
		for (size_t i = 0; i < ARRAY_LEN(named) && !m; i++)
			if (span_eq(key, named[i].name))
				m = named[i].metric;
		emit_label(&ls, "counter", key);
	}
	tag = counters_tag(&st->counters, &ls);
	counters_emit(&st->counters, o, m ? m : &other, v, &tag);
}

/* "# ethtool -S eth0", as a shell's line before the output. */
static bool take_command(struct ethtool *st, struct span t)
{
	struct span rest = span_after(t, "ethtool -S "), w;

	if (!rest.s || !span_word(&rest, &w) || w.n >= IFACE_BYTES)
		return false;
	memcpy(st->iface, w.s, w.n);
	st->iface[w.n] = '\0';
	st->begun = false;
	return true;
}

/* Where the last ": " of t is; t.n when there is none. */
static size_t last_colon(struct span t)
{
	for (size_t i = t.n; i > 1; i--)
		if (t.s[i - 2] == ':' && t.s[i - 1] == ' ')
			return i - 2;
	return t.n;
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct ethtool *st = state;
	struct span t = span_trim(input_span(l)), value;
	size_t colon;
	double v;

	if (counters_stamp(&st->counters, t) || take_command(st, t))
		return;
	if (span_eq(t, "NIC statistics:")) {
		st->begun = true;
		return;
	}
	/* All rows are indented: what is not is another's line. */
	colon = last_colon(t);
	if (!st->begun || colon == t.n || l->text[0] != ' ')
		return;
	value = (struct span){t.s + colon + 2, t.n - colon - 2};
	if (!l->complete)
		emit_bad(o, "cut in the middle of a counter");
	else if (num_whole(value, &v))
		emit_counter(st, o, span_trim((struct span){t.s, colon}), v);
}

static void clear(void *state)
{
	counters_free(&((struct ethtool *)state)->counters);
}

static int score(struct span line)
{
	return span_eq(span_trim(line), "NIC statistics:") ? 95 : 0;
}

static int ethtool_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int ethtool_open(const struct probe_context *c, const struct probe_sink *sink,
			struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct ethtool), on_line, NULL, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_ethtool = {
	.name = "ethtool",
	.summary = "ethtool -S: bytes, drops, errors, pauses and RoCE traffic of a NIC",
	.example = "while :; do date -u; echo '# ethtool -S eth0'; ethtool -S eth0; sleep 1; done",
	.sniff = ethtool_sniff,
	.open = ethtool_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
