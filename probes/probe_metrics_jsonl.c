/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON lines, one object a line: what a workload of ours writes to $FETTLE_METRICS.
 *
 *   {"step":12,"loss":2.31,"step_time_ms":83.1,"data_wait_ms":4.0,"rank":0,"t_us":1795958504000000}
 *
 * "step", "rank" and "t_us" (UTC microseconds) say what the line belongs to. Each other member with
 * a valid name of a metric ([a-z0-9_]+) is a value of that metric if it is a number; a missing one
 * with its reason if it is NaN, Infinity, null or a string such as "nan"; a fact if it is text,
 * true or false. Names of other forms are passed over but for those of known loggers (alias.h), and
 * nested objects and arrays are. A line that is
 * not one whole object is counted and named, and the rest is read on.
 */
#include <stdio.h>
#include <stdlib.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "probes/jsonl.h"
#include "probes/lines.h"
#include "probes/probe.h"

struct probe_run {
	struct input *in;
	struct emit out;
};

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;

	if (!span_trim(input_span(l)).n)
		return;
	emit_begin(&r->out, l);
	if (!jsonl_emit(&r->out, l, false))
		emit_bad(&r->out, l->cut        ? "longer than 64 KiB"
				  : l->complete ? "not one JSON object"
						: "cut in the middle of a line");
}

static int jsonl_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int jsonl_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status jsonl_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = emit_status(&r->out, detail);
	input_free(r->in);
	emit_close(&r->out);
	free(r);
	return s;
}

/* A member that is a metric of the catalogue, or somebody's loss. */
static bool names_metric(struct span line)
{
	char key[NUM_METRIC_NAME_MAX + 3];

	for (size_t i = 0; metric_defs[i].name; i++) {
		snprintf(key, sizeof(key), "\"%s\"", metric_defs[i].name);
		if (span_has(line, key))
			return true;
	}
	return span_has(line, "loss");
}

/* Certain when the first line is an object with a step. Other programs write lines of JSON, too:
 * the numbers in squeue's or a trace's are no metrics. */
static int score(struct span line)
{
	if (!jsonl_valid(line))
		return 0;
	return span_has(line, "\"step\"") ? 90 : names_metric(line) ? 60 : 0;
}

/* A log whose last line is JSON is another thing: the first one says what a text is. */
static int jsonl_sniff(const char *head, size_t n)
{
	return lines_sniff_first(head, n, score);
}

const struct probe probe_metrics_jsonl = {
	.name = "metrics_jsonl",
	.summary = "JSON lines with step, loss, step_time_ms, ... as written to $FETTLE_METRICS",
	.example = "python train.py # appends a line a step to $FETTLE_METRICS",
	.sniff = jsonl_sniff,
	.open = jsonl_open,
	.feed = jsonl_feed,
	.finish = jsonl_finish,
};
