/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfquery, with -x or without, of one port or many, once or again and again (a line before each
 * may say when it was read: then there are rates). Data counters are words of 4 bytes. Without -x
 * they have 32 bits and stick at 4294967295: such a one is missing ("saturated").
 *
 * Labels: lid, port; counter of errors (its name as printed).
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/counters.h"
#include "probes/lines.h"

enum { WORD_BYTES = 4, NUMBER_BYTES = 16 };

#define STUCK 4294967295.0

static const struct counter_metric errors = {"ib_errors_total", "ib_errors_per_s", 1};

static const struct {
	const char *name;
	struct counter_metric metric;
} plain[] = {
	{"PortXmitData", {"ib_tx_bytes_total", "ib_tx_bytes_per_s", WORD_BYTES}},
	{"PortRcvData", {"ib_rx_bytes_total", "ib_rx_bytes_per_s", WORD_BYTES}},
	{"XmtData", {"ib_tx_bytes_total", "ib_tx_bytes_per_s", WORD_BYTES}},
	{"RcvData", {"ib_rx_bytes_total", "ib_rx_bytes_per_s", WORD_BYTES}},
	{"PortXmitWait", {"ib_xmit_wait_ticks_total", "ib_xmit_wait_ticks_per_s", 1}},
	{"XmtWait", {"ib_xmit_wait_ticks_total", "ib_xmit_wait_ticks_per_s", 1}},
};

static const char *const error_names[] = {
	"SymbolErrorCounter",
	"SymbolErrors",
	"LinkErrorRecoveryCounter",
	"LinkRecovers",
	"LinkDownedCounter",
	"LinkDowned",
	"PortRcvErrors",
	"RcvErrors",
	"PortXmitDiscards",
	"XmtDiscards",
	"PortRcvSwitchRelayErrors",
	"PortRcvRemotePhysicalErrors",
	"PortXmitConstraintErrors",
	"PortRcvConstraintErrors",
	"LocalLinkIntegrityErrors",
	"ExcessiveBufferOverrunErrors",
	"VL15Dropped",
};

struct perfquery {
	char lid[NUMBER_BYTES], port[NUMBER_BYTES]; /* "" before the first heading */
	bool wide;                                  /* -x */
	struct counters counters;
};

static void copy(char out[NUMBER_BYTES], struct span t)
{
	size_t n = t.n < NUMBER_BYTES - 1 ? t.n : NUMBER_BYTES - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

/* "# Port extended counters: Lid 1719 port 1 (CapMask: 0x5300)" */
static bool take_heading(struct perfquery *st, struct span t)
{
	struct span lid = span_after(t, "ounters: Lid "), port, number;
	bool wide = span_has(t, "extended");

	port = lid.s ? span_after(lid, " port ") : lid;
	if (!port.s || t.s[0] != '#' || !span_has(t, "Port "))
		return false;
	if (span_word(&lid, &number))
		copy(st->lid, number);
	if (span_word(&port, &number))
		copy(st->port, number);
	st->wide = wide;
	return true;
}

/* "PortXmitData:....................362980": dots are padding. */
static bool read_row(struct span t, struct span *key, struct span *value)
{
	*value = t;
	if (!span_next(value, ":", key) || !value->s)
		return false;
	while (value->n && value->s[0] == '.')
		value->s++, value->n--;
	return key->n > 0 && value->n > 0;
}

static void take_row(struct perfquery *st, struct emit *o, struct span key, struct span value)
{
	const struct counter_metric *m = NULL;
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag;
	double v;

	emit_label(&ls, "lid", span_of(st->lid));
	emit_label(&ls, "port", span_of(st->port));
	for (size_t i = 0; i < ARRAY_LEN(plain) && !m; i++)
		if (span_eq(key, plain[i].name))
			m = &plain[i].metric;
	for (size_t i = 0; i < ARRAY_LEN(error_names) && !m; i++)
		if (span_eq(key, error_names[i])) {
			m = &errors;
			emit_label(&ls, "counter", key);
		}
	if (!m)
		return;
	tag = counters_tag(&st->counters, &ls);
	if (!num_whole(value, &v))
		emit_bad(o, "a counter that is no number");
	else if (!st->wide && v == STUCK)
		emit_missing(o, m->total, "saturated", &tag);
	else
		counters_emit(&st->counters, o, m, v, &tag);
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct perfquery *st = state;
	struct span t = span_trim(input_span(l)), key, value;

	if (counters_stamp(&st->counters, t) || take_heading(st, t))
		return;
	if (t.s[0] == '#' && span_has(t, "ounters: ")) /* of something else than a port */
		st->port[0] = '\0';
	if (!st->port[0] || !read_row(t, &key, &value))
		return;
	if (l->complete)
		take_row(st, o, key, value);
	else
		emit_bad(o, "cut in the middle of a counter");
}

static void clear(void *state)
{
	counters_free(&((struct perfquery *)state)->counters);
}

static int score(struct span line)
{
	struct perfquery st = {.wide = false};

	line = span_trim(line);
	return line.n && take_heading(&st, line) ? 95 : 0;
}

static int perfquery_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int perfquery_open(const struct probe_context *c, const struct probe_sink *sink,
			  struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct perfquery), on_line, NULL, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_perfquery = {
	.name = "perfquery",
	.summary = "perfquery: bytes, waits and errors of an InfiniBand port",
	.example = "while :; do date -u; perfquery -x; sleep 1; done",
	.sniff = perfquery_sniff,
	.open = perfquery_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
