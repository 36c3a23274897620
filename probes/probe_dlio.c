/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The three JSON files of DLIO benchmark (and MLPerf Storage):
 *
 *   summary.json          metric.train_au_mean_percentage,
 * train_throughput_mean_samples_per_second, train_io_mean_MB_per_second, num_accelerators
 *   per_epoch_stats.json  {"1": {"duration": "32.90", "block1": {"duration": "32.86"},
 *                         "save_ckpt1": {"duration": 1.5}}}
 *   <rank>_output.json    {"1": {"load": {"block1": [s, ...]}, "proc": {"block1": [s, ...]},
 *                         "throughput": {"block1": x}, "au": {"block1": x}}}
 *
 * AU is the share of the time in which an accelerator had a batch; MLPerf Storage asks for 90 % (70
 * % for CosmoFlow), below it the storage is the bottleneck. load is the wait for a batch, proc the
 * whole step. An MB of DLIO has 2^20 bytes. Steps are counted over all epochs.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/jsonstream.h"
#include "probes/probe.h"

struct probe_run {
	struct jsonstream *json;
	struct emit out;
	int64_t loads, procs;
};

static const struct {
	const char *path, *metric;
	double scale;
} summary[] = {
	{"metric.train_au_mean_percentage", "dlio_au_pct", 1},
	{"metric.train_throughput_mean_samples_per_second", "throughput_samples_per_s", 1},
	{"metric.train_io_mean_MB_per_second", "loader_bytes_per_s", 1048576},
	{"metric.save_checkpoint_duration_mean_seconds", "ckpt_time_s", 1},
};

static void emit_or_bad(struct probe_run *r, const char *metric, struct span text, double scale,
			const struct emit_tag *tag)
{
	if (!emit_token(&r->out, metric, text, scale, tag))
		emit_bad(&r->out, "a value is no number");
}

static bool summary_leaf(struct probe_run *r, const char *path, struct span text)
{
	for (size_t i = 0; i < ARRAY_LEN(summary); i++)
		if (str_eq(path, summary[i].path)) {
			emit_or_bad(r, summary[i].metric, text, summary[i].scale, NULL);
			return true;
		}
	if (!str_eq(path, "num_accelerators"))
		return false;
	emit_fact(&r->out, "dlio.accelerators", text);
	return true;
}

/* "3.load.block1[]": the epoch, and what stands behind it. */
static const char *behind_epoch(const char *path, struct emit_labels *labels)
{
	size_t n = 0;

	while (isdigit((unsigned char)path[n]))
		n++;
	if (!n || path[n] != '.')
		return NULL;
	emit_label(labels, "epoch", (struct span){path, n});
	return path + n + 1;
}

/* The block's name, without the brackets of its array. */
static void label_block(struct emit_labels *labels, const char *name)
{
	emit_label(labels, "block", (struct span){name, strcspn(name, ".[")});
}

/* What belongs to an epoch or a block of it. The throughput is that of one rank and so none of
 * ours: the summary has the sum. */
static const char *epoch_metric(const char *key, const char *dot)
{
	if (str_starts(key, "au."))
		return "dlio_au_pct";
	if (str_eq(key, "duration"))
		return "epoch_time_s";
	if (!dot || !str_eq(dot, ".duration"))
		return NULL;
	return str_starts(key, "block")       ? "epoch_time_s"
	       : str_starts(key, "save_ckpt") ? "ckpt_time_s"
					      : NULL;
}

static void epoch_leaf(struct probe_run *r, const char *path, struct span text)
{
	struct emit_labels labels = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	const char *key = behind_epoch(path, &labels), *dot;

	if (!key)
		return;
	dot = strchr(key, '.');
	if (dot && (str_starts(dot, ".eval[") || str_eq(dot, ".eval")))
		return; /* an evaluation's steps are none of training's */
	if (str_starts(key, "load.") && str_ends(key, "[]")) {
		tag.step = r->loads++;
		emit_or_bad(r, "data_wait_ms", text, 1000, &tag);
	} else if (str_starts(key, "proc.") && str_ends(key, "[]")) {
		tag.step = r->procs++;
		emit_or_bad(r, "step_time_ms", text, 1000, &tag);
	} else {
		const char *metric = epoch_metric(key, dot);

		if (!metric)
			return;
		if (dot)
			label_block(&labels, str_eq(dot, ".duration") ? key : dot + 1);
		tag.labels = labels.v;
		tag.n_labels = labels.n;
		emit_or_bad(r, metric, text, 1, &tag);
	}
}

static void on_leaf(void *ctx, const char *path, enum jsonstream_kind kind, struct span text,
		    const struct input_line *line)
{
	struct probe_run *r = ctx;

	(void)kind;
	emit_begin(&r->out, line);
	if (!summary_leaf(r, path, text))
		epoch_leaf(r, path, text);
}

static int dlio_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct jsonstream_calls calls = {on_leaf, NULL, NULL};
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->json = jsonstream_new(&calls, r);
	*out = r;
	return 0;
}

static int dlio_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	jsonstream_feed(r->json, bytes, n);
	return 0;
}

static enum probe_status dlio_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s = emit_status(&r->out, detail);

	if (s == PROBE_OK && jsonstream_finish(r->json, detail) != JSONSTREAM_WHOLE)
		s = PROBE_PARTIAL;
	jsonstream_free(r->json);
	emit_close(&r->out);
	free(r);
	return s;
}

static int dlio_sniff(const char *head, size_t n)
{
	struct span t = span_trim((struct span){head, n});

	if (!t.n || t.s[0] != '{')
		return 0;
	if (span_has(t, "\"train_au_mean_percentage\"") || span_has(t, "\"train_au_percentage\""))
		return 95;
	if (span_has(t, "\"save_checkpoint_duration_mean_seconds\""))
		return 95; /* a run of checkpoints alone */
	return span_has(t, "\"block1\"") && (span_has(t, "\"duration\"") || span_has(t, "\"load\""))
		       ? 90
		       : 0;
}

const struct probe probe_dlio = {
	.name = "dlio",
	.summary = "DLIO benchmark and MLPerf Storage: accelerator utilisation, data wait",
	.example = "cat results/summary.json",
	.sniff = dlio_sniff,
	.open = dlio_open,
	.feed = dlio_feed,
	.finish = dlio_finish,
};
