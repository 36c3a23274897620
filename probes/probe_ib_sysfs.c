/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of /sys/class/infiniband, one a line with its path before it, as `grep -r . DIR` prints
 * them
 * ("path:value"; ": " and quotes around the value are fine). Again and again with a line that says
 * when before each copy, there are rates.
 *
 * port_xmit_data and port_rcv_data are words of 4 bytes. EFA has bytes under hw_counters. A file
 * that reads "N/A (no PMA)" is a missing value. Labels: device, port; counter where several are one
 * metric. Facts: ib.<device>/<port>.state, .phys_state, .link_layer; ib.<device>.type, .firmware.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/counters.h"
#include "probes/lines.h"

enum { WORD_BYTES = 4 };

static const struct counter_metric tx_words = {"ib_tx_bytes_total", "ib_tx_bytes_per_s",
					       WORD_BYTES},
				   rx_words = {"ib_rx_bytes_total", "ib_rx_bytes_per_s",
					       WORD_BYTES},
				   tx = {"ib_tx_bytes_total", "ib_tx_bytes_per_s", 1},
				   rx = {"ib_rx_bytes_total", "ib_rx_bytes_per_s", 1},
				   ticks = {"ib_xmit_wait_ticks_total", "ib_xmit_wait_ticks_per_s",
					    1},
				   errors = {"ib_errors_total", "ib_errors_per_s", 1},
				   retrans = {"rdma_retrans_total", "rdma_retrans_per_s", 1},
				   congestion = {"rdma_congestion_total", "rdma_congestion_per_s",
						 1};

static const struct known {
	const char *file;
	const struct counter_metric *metric;
	bool named; /* has the label counter */
} known[] = {
	{"counters/port_xmit_data", &tx_words, false},
	{"counters/port_rcv_data", &rx_words, false},
	{"counters/port_xmit_wait", &ticks, false},
	{"hw_counters/tx_bytes", &tx, false},
	{"hw_counters/rx_bytes", &rx, false},
	{"counters/symbol_error", &errors, true},
	{"counters/link_error_recovery", &errors, true},
	{"counters/link_downed", &errors, true},
	{"counters/port_rcv_errors", &errors, true},
	{"counters/port_rcv_remote_physical_errors", &errors, true},
	{"counters/port_rcv_switch_relay_errors", &errors, true},
	{"counters/port_xmit_discards", &errors, true},
	{"counters/port_xmit_constraint_errors", &errors, true},
	{"counters/port_rcv_constraint_errors", &errors, true},
	{"counters/local_link_integrity_errors", &errors, true},
	{"counters/excessive_buffer_overrun_errors", &errors, true},
	{"counters/VL15_dropped", &errors, true},
	{"hw_counters/out_of_sequence", &retrans, true},
	{"hw_counters/packet_seq_err", &retrans, true},
	{"hw_counters/implied_nak_seq_err", &retrans, true},
	{"hw_counters/local_ack_timeout_err", &retrans, true},
	{"hw_counters/rnr_nak_retry_err", &retrans, true},
	{"hw_counters/duplicate_request", &retrans, true},
	{"hw_counters/roce_adp_retrans", &retrans, true},
	{"hw_counters/roce_adp_retrans_to", &retrans, true},
	{"hw_counters/retrans_pkts", &retrans, true},
	{"hw_counters/retrans_timeout_events", &retrans, true},
	{"hw_counters/np_cnp_sent", &congestion, true},
	{"hw_counters/rp_cnp_handled", &congestion, true},
	{"hw_counters/rp_cnp_ignored", &congestion, true},
	{"hw_counters/np_ecn_marked_roce_packets", &congestion, true},
};

struct sysfs {
	struct counters counters;
};

/* One file: "" is no port. */
struct file {
	struct span device, port, name, value;
};

/* ".../infiniband/mlx5_0/ports/1/counters/port_xmit_data:288" */
static bool read_file(struct span t, struct file *f)
{
	struct span rest = span_after(t, "infiniband/"), port;
	size_t n = 0;

	f->port = (struct span){"", 0};
	if (!rest.s || !span_next(&rest, "/", &f->device) || !rest.s || !f->device.n)
		return false;
	port = span_after(rest, "ports/");
	if (port.s && port.s == rest.s + 6 && span_next(&port, "/", &f->port) && port.s)
		rest = port;
	while (n < rest.n && !strchr(":= \t", rest.s[n]))
		n++;
	if (!n || n == rest.n)
		return false;
	f->name = (struct span){rest.s, n};
	rest = span_trim((struct span){rest.s + n + 1, rest.n - n - 1});
	if (rest.n >= 2 && rest.s[0] == '\'' && rest.s[rest.n - 1] == '\'')
		rest = (struct span){rest.s + 1, rest.n - 2};
	f->value = span_trim(rest);
	return f->value.n > 0;
}

/* "4: ACTIVE" is "ACTIVE". */
static struct span state_word(struct span t)
{
	return t.n > 3 && t.s[1] == ':' ? span_trim((struct span){t.s + 2, t.n - 2}) : t;
}

static void file_fact(struct emit *o, const struct file *f, const char *what, struct span text)
{
	_cleanup_free_ char *key = xasprintf("ib.%.*s%s%.*s.%s", (int)f->device.n, f->device.s,
					     f->port.n ? "/" : "", (int)f->port.n, f->port.s, what);

	emit_fact(o, key, text);
}

/* What is no counter; false when it is none of these. */
static bool take_property(struct emit *o, const struct file *f, const struct emit_tag *tag)
{
	struct span value = f->value, w;

	if (span_eq(f->name, "state")) {
		w = state_word(value);
		file_fact(o, f, "state", w);
		emit_value(o, "ib_link_up", span_eq(w, "ACTIVE"), tag);
	} else if (span_eq(f->name, "phys_state")) {
		file_fact(o, f, "phys_state", state_word(value));
	} else if (span_eq(f->name, "link_layer")) {
		file_fact(o, f, "link_layer", value);
	} else if (span_eq(f->name, "hca_type")) {
		file_fact(o, f, "type", value);
	} else if (span_eq(f->name, "fw_ver")) {
		file_fact(o, f, "firmware", value);
	} else if (span_eq(f->name, "rate")) {
		if (!span_word(&value, &w) || !emit_token(o, "ib_link_gbit_per_s", w, 1, tag))
			emit_bad(o, "a rate that is no number");
	} else {
		return false;
	}
	return true;
}

static void take_counter(struct sysfs *st, struct emit *o, const struct file *f,
			 struct emit_labels *ls)
{
	struct span word, rest = f->value;
	struct emit_tag tag;
	double v;

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!span_eq(f->name, known[i].file))
			continue;
		if (known[i].named)
			emit_label(ls, "counter", span_of(strchr(known[i].file, '/') + 1));
		tag = counters_tag(&st->counters, ls);
		if (num_whole(f->value, &v))
			counters_emit(&st->counters, o, known[i].metric, v, &tag);
		else if (span_word(&rest, &word) && num_missing(word))
			emit_missing(o, known[i].metric->total, num_missing(word), &tag);
		else
			emit_bad(o, "a counter that is no number");
		return;
	}
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct sysfs *st = state;
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag;
	struct file f;

	if (counters_stamp(&st->counters, input_span(l)) || !read_file(input_span(l), &f))
		return;
	if (!l->complete) {
		emit_bad(o, "cut in the middle of a file");
		return;
	}
	emit_label(&ls, "device", f.device);
	if (f.port.n)
		emit_label(&ls, "port", f.port);
	tag = counters_tag(&st->counters, &ls);
	if (!take_property(o, &f, &tag))
		take_counter(st, o, &f, &ls);
}

static void clear(void *state)
{
	counters_free(&((struct sysfs *)state)->counters);
}

static int score(struct span line)
{
	struct file f;

	return span_has(line, "/infiniband/") && span_has(line, "/ports/") && read_file(line, &f)
		       ? 90
		       : 0;
}

static int ib_sysfs_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int ib_sysfs_open(const struct probe_context *c, const struct probe_sink *sink,
			 struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct sysfs), on_line, NULL, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_ib_sysfs = {
	.name = "ib_sysfs",
	.summary = "/sys/class/infiniband: bytes, waits, retries, congestion, state of each port",
	.example = "while :; do date -u; grep -rs . /sys/class/infiniband/*/ports; sleep 1; done",
	.sniff = ib_sysfs_sniff,
	.open = ib_sysfs_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
