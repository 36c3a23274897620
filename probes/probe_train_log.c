/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of any training script whose framework is known: each line goes through every dialect, so
 * that one log of several (Trainer over DeepSpeed, a script that prints JSON) is read whole. The
 * fact train_log.dialect names each dialect at its first line.
 */
#include "orchestrator/base/mem.h"
#include "probes/jsonl.h"
#include "probes/train.h"

/* JSON among other lines: only an object with a step, since configurations are printed as JSON too.
 */
static bool jsonl_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l));

	(void)st;
	if (!t.n || t.s[0] != '{' || !span_has(t, "\"step\""))
		return false;
	return jsonl_emit(o, l, true);
}

static const char *const words[] = {"\"step\"", NULL};

const struct train_dialect train_jsonl = {
	.name = "metrics_jsonl",
	.words = words,
	.line = jsonl_line,
};

/* The first ones tell of steps; what PyTorch says of its memory is not told by training alone. */
#define STEP_DIALECTS                                                                            \
	&train_megatron, &train_deepspeed, &train_torchtitan, &train_hf_trainer, &train_nanogpt, \
		&train_jsonl, &train_nemo, &train_lightning, &train_torchtune, &train_llmc,      \
		&train_mllog, &train_nanochat, &train_modded_nanogpt

static const struct train_dialect *const all[] = {STEP_DIALECTS, &train_torch_memory, NULL};
static const struct train_dialect *const steps[] = {STEP_DIALECTS, NULL};

static int train_log_open(const struct probe_context *c, const struct probe_sink *sink,
			  struct probe_run **out, struct err *e)
{
	return train_open(all, c, sink, out, e);
}

/* Surer than nccl_log: a training log often holds NCCL lines, and theirs never hold a step.
 * MLPerf's logs have hundreds of lines of settings before the first value. */
static int train_log_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	return span_has(t, ":::MLLOG {\"namespace\"") || span_has(t, ":::MLL 1") ||
			       train_count(steps, head, n)
		       ? 88
		       : 0;
}

const struct probe probe_train_log = {
	.name = "train_log",
	.summary = "training log of any known framework, line by line",
	.example = "torchrun train.py",
	.sniff = train_log_sniff,
	.in_logs = true,
	.has_steps = true,
	.open = train_log_open,
	.feed = train_feed,
	.finish = train_finish,
};
