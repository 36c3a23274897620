/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of a Lustre client: `lctl get_param llite.*.stats` (what the applications asked for),
 * `osc.*.stats` and `mdc.*.stats` (what went to each server), or the files under /proc and /sys
 * behind their names. Again and again they give rates: snapshot_time is the time of each.
 *
 *   llite.lfs-ffff9a3e8c1d8000.stats=
 *   snapshot_time             1795832040.123456789 secs.nsecs
 *   read_bytes                1200 samples [bytes] 4096 4194304 5033164800
 *   open                      87 samples [usec] 11 5230 40120 31877712
 *
 * Other parameters among them (md_stats, a pool's, a server's) are passed over. Time with
 * "secs.usecs" is of Lustre up to 2.9, which prints its microseconds without leading zeros.
 *
 * Labels: fs, layer (llite, osc, mdc), target of osc and mdc; op of operations. Two mounts of
 * one file system have the same labels.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/counters.h"
#include "probes/lines.h"

enum { NAME_BYTES = 48 };

struct lustre {
	char layer[NAME_BYTES], fs[NAME_BYTES], target[NAME_BYTES]; /* "": not told */
	bool begun, foreign; /* foreign: below the heading of another parameter */
	struct counters counters;
};

static void copy(char out[NAME_BYTES], struct span t)
{
	size_t n = t.n < NAME_BYTES - 1 ? t.n : NAME_BYTES - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

/* t up to the last '-' when what follows it is the address of a mount. */
static struct span without_address(struct span t)
{
	for (size_t i = t.n; i > 0; i--) {
		if (t.s[i - 1] == '-')
			return t.n - i >= 8 ? (struct span){t.s, i - 1} : t;
		if (!strchr("0123456789abcdef", t.s[i - 1]))
			return t;
	}
	return t;
}

/* "ldlm.namespaces.lfs-OST0000-osc-ffff9a3e8c1d8000.pool.stats=" */
static bool is_parameter(struct span t)
{
	struct span name;

	return span_word(&t, &name) && !t.n && name.s[name.n - 1] == '=' &&
	       memchr(name.s, '.', name.n);
}

/* "llite.lfs-ffff9a3e8c1d8000.stats=", "osc.lfs-OST0003-osc-ffff9a3e8c1d8000.stats="; what follows
 * it on the line is the first of its lines. */
static bool take_heading(struct lustre *st, struct span *line)
{
	static const char *const layers[] = {"llite", "osc", "mdc"};
	static const char tail[] = ".stats=";
	struct span layer, behind = span_after(*line, tail), rest, fs;

	if (!behind.s)
		return false;
	rest = (struct span){line->s, (size_t)(behind.s - line->s) - (sizeof(tail) - 1)};
	if (!span_next(&rest, ".", &layer) || !rest.s)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
		if (!span_eq(layer, layers[i]))
			continue;
		rest = without_address(rest);
		copy(st->layer, layer);
		st->target[0] = '\0';
		if (i && span_next(&rest, "-", &fs) && span_next(&rest, "-", &layer))
			copy(st->target, layer);
		copy(st->fs, i ? fs : rest);
		st->begun = true;
		st->foreign = false;
		*line = span_trim(behind);
		return true;
	}
	return false;
}

/* "read_bytes 1200 samples [bytes] 4096 4194304 5033164800" */
struct row {
	struct span name, unit;
	double count, sum;
	bool has_sum;
};

static bool read_row(struct span t, struct row *r)
{
	struct span count, samples, w;
	double min, max;

	if (!span_word(&t, &r->name) || !span_word(&t, &count) || !span_word(&t, &samples) ||
	    !span_eq(samples, "samples") || !span_word(&t, &r->unit) || r->unit.s[0] != '[')
		return false;
	r->has_sum = span_word(&t, &w) && num_whole(w, &min) && span_word(&t, &w) &&
		     num_whole(w, &max) && span_word(&t, &w) && num_whole(w, &r->sum);
	return num_whole(count, &r->count);
}

static void add_labels(const struct lustre *st, struct emit_labels *ls)
{
	if (st->fs[0])
		emit_label(ls, "fs", span_of(st->fs));
	if (st->layer[0])
		emit_label(ls, "layer", span_of(st->layer));
	if (st->target[0])
		emit_label(ls, "target", span_of(st->target));
}

static void take_row(struct lustre *st, struct emit *o, const struct row *r)
{
	static const struct counter_metric read = {"fs_read_bytes_total", "fs_read_bytes_per_s", 1},
					   written = {"fs_write_bytes_total",
						      "fs_write_bytes_per_s", 1},
					   ops = {"fs_ops_total", "fs_ops_per_s", 1};
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag;

	add_labels(st, &ls);
	tag = counters_tag(&st->counters, &ls);
	if (span_eq(r->unit, "[bytes]") && r->has_sum) {
		if (span_eq(r->name, "read_bytes"))
			counters_emit(&st->counters, o, &read, r->sum, &tag);
		else if (span_eq(r->name, "write_bytes"))
			counters_emit(&st->counters, o, &written, r->sum, &tag);
	}
	emit_label(&ls, "op", r->name);
	tag = counters_tag(&st->counters, &ls);
	counters_emit(&st->counters, o, &ops, r->count, &tag);
	if (span_has(r->unit, "usec") && r->has_sum && r->count > 0)
		emit_value(o, "fs_op_time_us", r->sum / r->count, &tag);
}

/* "1795832040.57342" is 57,342 us behind the second. */
static int64_t with_usecs(int64_t us, struct span t)
{
	struct span fraction = span_after(t, ".");
	int64_t n;

	return fraction.s && num_whole_i64(fraction, &n) && n >= 0 && n < 1000000
		       ? us - us % 1000000 + n
		       : us;
}

/* "snapshot_time 1795832040.123456789 secs.nsecs"; start_time and elapsed_time are of newer ones.
 */
static bool take_time(struct lustre *st, struct span t)
{
	struct span rest = span_after(t, "snapshot_time"), w;

	if (!rest.s || rest.s != t.s + strlen("snapshot_time") || !span_word(&rest, &w))
		return false;
	if (!counters_stamp(&st->counters, w))
		st->counters.now_us = 0;
	else if (span_has(rest, "secs.usecs"))
		st->counters.now_us = with_usecs(st->counters.now_us, w);
	st->begun = !st->foreign;
	return true;
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct lustre *st = state;
	struct span t = span_trim(input_span(l));
	struct row r;

	if (!take_heading(st, &t) && is_parameter(t)) {
		st->foreign = true;
		st->begun = false;
	}
	if (take_time(st, t) || !st->begun || !read_row(t, &r))
		return;
	if (l->complete)
		take_row(st, o, &r);
	else
		emit_bad(o, "cut in the middle of a line");
}

static void clear(void *state)
{
	counters_free(&((struct lustre *)state)->counters);
}

static int score(struct span line)
{
	struct lustre st = {.begun = false};

	line = span_trim(line);
	if (take_heading(&st, &line))
		return 95;
	return take_time(&st, line) && span_has(line, " secs.") ? 80 : 0;
}

static int lustre_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int lustre_open(const struct probe_context *c, const struct probe_sink *sink,
		       struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct lustre), on_line, NULL, clear};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_lustre = {
	.name = "lustre",
	.summary = "statistics of a Lustre client: bytes and operations, by file system and server",
	.example = "while :; do lctl get_param llite.*.stats; sleep 1; done",
	.sniff = lustre_sniff,
	.open = lustre_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
