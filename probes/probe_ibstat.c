/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ibstat and ibstatus: which ports are up, and at which rate. Indents are tabs or, in pastes,
 * blanks: keys alone are looked at.
 *
 * Labels: device, port. Facts: ib.<device>/<port>.state, .phys_state, .link_layer; ib.<device>.type
 * and .firmware.
 */
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "probes/lines.h"

enum { DEVICE_BYTES = 48, PORT_BYTES = 8 };

struct ibstat {
	char device[DEVICE_BYTES]; /* "" before the first */
	char port[PORT_BYTES];     /* "" outside of a port */
};

static bool copy(char *out, size_t max, struct span t)
{
	if (t.n >= max)
		return false;
	memcpy(out, t.s, t.n);
	out[t.n] = '\0';
	return true;
}

/* The text between the first two quotes. */
static struct span quoted(struct span t)
{
	struct span in = {NULL, 0};

	if (!span_next(&t, "'", &in) || !span_next(&t, "'", &in) || !t.s)
		return (struct span){NULL, 0};
	return in;
}

/* "CA 'mlx5_0'", "Port 1:", or ibstatus's "Infiniband device 'mlx5_0' port 1 status:". */
static bool take_heading(struct ibstat *st, struct span t)
{
	struct span device = quoted(t), port = span_after(t, "' port "), w;
	int64_t n;

	if (device.s && t.n > 4 && memcmp(t.s, "CA '", 4) == 0) {
		st->port[0] = '\0';
		return copy(st->device, sizeof(st->device), device);
	}
	if (device.s && port.s && span_has(t, "Infiniband device '"))
		return copy(st->device, sizeof(st->device), device) && span_word(&port, &w) &&
		       copy(st->port, sizeof(st->port), w);
	if (st->device[0] && t.n > 6 && memcmp(t.s, "Port ", 5) == 0 && t.s[t.n - 1] == ':') {
		w = (struct span){t.s + 5, t.n - 6};
		return num_whole_i64(w, &n) && copy(st->port, sizeof(st->port), w);
	}
	return false;
}

static bool same(struct span key, const char *name)
{
	return key.n == strlen(name) && strncasecmp(key.s, name, key.n) == 0;
}

/* "4: ACTIVE" of sysfs is "ACTIVE". */
static struct span state_word(struct span t)
{
	return t.n > 3 && t.s[1] == ':' ? span_trim((struct span){t.s + 2, t.n - 2}) : t;
}

static void port_fact(const struct ibstat *st, struct emit *o, const char *what, struct span text)
{
	_cleanup_free_ char *key = xasprintf("ib.%s/%s.%s", st->device, st->port, what);

	emit_fact(o, key, text);
}

static void device_fact(const struct ibstat *st, struct emit *o, const char *what, struct span text)
{
	_cleanup_free_ char *key = xasprintf("ib.%s.%s", st->device, what);

	emit_fact(o, key, text);
}

/* "400", "2.5", "400 Gb/sec (4X NDR)". */
static void emit_rate(struct emit *o, struct span value, const struct emit_tag *tag)
{
	struct span w;

	if (!span_word(&value, &w) || !emit_token(o, "ib_link_gbit_per_s", w, 1, tag))
		emit_bad(o, "a rate that is no number");
}

static void take_port_key(struct ibstat *st, struct emit *o, struct span key, struct span value)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;

	emit_label(&ls, "device", span_of(st->device));
	emit_label(&ls, "port", span_of(st->port));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	if (same(key, "State")) {
		value = state_word(value);
		port_fact(st, o, "state", value);
		emit_value(o, "ib_link_up", same(value, "Active"), &tag);
	} else if (same(key, "Physical state") || same(key, "phys state")) {
		port_fact(st, o, "phys_state", state_word(value));
	} else if (same(key, "Rate")) {
		emit_rate(o, value, &tag);
	} else if (same(key, "Link layer") || same(key, "link_layer")) {
		port_fact(st, o, "link_layer", value);
	}
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct ibstat *st = state;
	struct span t = span_trim(input_span(l)), key, value = t;

	if (take_heading(st, t) || !st->device[0] || !span_next(&value, ":", &key) || !value.s)
		return;
	value = span_trim(value);
	if (!l->complete || !value.n) {
		if (st->port[0] && !l->complete)
			emit_bad(o, "cut in the middle of a line");
		return;
	}
	if (st->port[0])
		take_port_key(st, o, key, value);
	else if (same(key, "CA type"))
		device_fact(st, o, "type", value);
	else if (same(key, "Firmware version"))
		device_fact(st, o, "firmware", value);
}

static int score(struct span line)
{
	struct ibstat st = {"", ""};

	return take_heading(&st, span_trim(line)) ? 90 : 0;
}

static int ibstat_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int ibstat_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct ibstat), on_line, NULL, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_ibstat = {
	.name = "ibstat",
	.summary = "ibstat, ibstatus: state and rate of each port of the RDMA devices",
	.example = "ibstat",
	.sniff = ibstat_sniff,
	.open = ibstat_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
