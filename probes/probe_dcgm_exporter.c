/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dcgm-exporter: Prometheus text (0.0.4 and OpenMetrics), one or more scrapes in one text, with the
 * names of DCGM before and since 4.6, and those of the exporter before 2.0. DCGM's blanks
 * (9223372036854775794 and the like) are missing values, not numbers. A sample's own time is in
 * milliseconds; a line that is a date, as scripts write it before a scrape, is the time of what
 * follows it.
 *
 * Labels: gpu, gpu_i (the instance of MIG), host.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/dcgm.h"
#include "probes/lines.h"
#include "probes/when.h"

struct scrape {
	int64_t t_us; /* of the last date line, 0 before it */
};

/* A label's name and value, from behind '{' or ','. False at the end or when there is none. */
static bool next_label(struct span *t, struct span *name, struct span *value)
{
	size_t i = 0;

	while (t->n && (t->s[0] == ' ' || t->s[0] == ','))
		t->s++, t->n--;
	if (!t->n || t->s[0] == '}' || !span_next(t, "=", name) || !t->n || t->s[0] != '"')
		return false;
	t->s++;
	t->n--;
	while (i < t->n && t->s[i] != '"')
		i += t->s[i] == '\\' ? 2 : 1;
	if (i >= t->n)
		return false;
	*value = (struct span){t->s, i};
	*t = (struct span){t->s + i + 1, t->n - i - 1};
	*name = span_trim(*name);
	return true;
}

/* Takes what we keep of `{...}`; t moves behind it. False when it is not closed. */
static bool take_labels(struct span *t, struct emit_labels *ls)
{
	static const char *const keep[][2] = {
		{"gpu", "gpu"}, {"GPU_I_ID", "gpu_i"}, {"Hostname", "host"}, {"hostname", "host"}};
	struct span name, value;

	if (!t->n || t->s[0] != '{')
		return true;
	t->s++;
	t->n--;
	while (next_label(t, &name, &value))
		for (size_t i = 0; i < ARRAY_LEN(keep); i++)
			if (span_eq(name, keep[i][0]) && value.n)
				emit_label(ls, keep[i][1], value);
	if (!t->n || t->s[0] != '}')
		return false;
	t->s++;
	t->n--;
	return true;
}

static void emit_sample(struct emit *o, const struct dcgm_field *f, struct span number,
			const struct emit_tag *tag)
{
	double v;

	if (num_whole(number, &v) && dcgm_blank(f, v))
		emit_missing(o, f->metric, dcgm_blank(f, v), tag);
	else if (!emit_token(o, f->metric, number, f->scale, tag))
		emit_bad(o, "a sample that is no number");
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct scrape *st = state;
	struct span t = span_trim(input_span(l)), name, number, ms;
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	const struct dcgm_field *f;
	size_t n = 0;
	int64_t stamp = when_stamp(t), v;

	if (stamp >= 0) {
		st->t_us = stamp;
		return;
	}
	while (n < t.n && t.s[n] != '{' && t.s[n] != ' ')
		n++;
	name = (struct span){t.s, n};
	f = dcgm_by_name(name);
	if (!f)
		return;
	t = (struct span){t.s + n, t.n - n};
	if (!l->complete || !take_labels(&t, &ls) || !span_word(&t, &number)) {
		emit_bad(o, "a sample that is cut");
		return;
	}
	tag = (struct emit_tag){-1, st->t_us > 0 ? st->t_us : -1, ls.v, ls.n};
	if (span_word(&t, &ms) && num_whole_i64(ms, &v) && v > 0 && v < INT64_MAX / 1000)
		tag.t_us = v * 1000;
	emit_sample(o, f, number, &tag);
}

static int exporter_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	return span_has(t, "# TYPE DCGM_FI_") || span_has(t, "# HELP DCGM_FI_") ? 97
	       : span_has(t, "# TYPE dcgm_")                                    ? 90
	       : span_has(t, "DCGM_FI_DEV_") && span_has(t, "{gpu=\"")          ? 80
										: 0;
}

static int exporter_open(const struct probe_context *c, const struct probe_sink *sink,
			 struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct scrape), on_line, NULL, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_dcgm_exporter = {
	.name = "dcgm_exporter",
	.summary = "dcgm-exporter (Prometheus text): activity, power, clocks, traffic of each GPU",
	.example = "while :; do date; curl -s localhost:9400/metrics; sleep 1; done",
	.sniff = exporter_sniff,
	.open = exporter_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
