/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/alias.h"

#include "orchestrator/base/mem.h"

static const struct alias table[] = {
	/* torchtitan, components/metrics.py */
	{"loss_metrics/global_avg_loss", "loss", 1},
	{"throughput(tps)", "throughput_tokens_per_s_per_gpu", 1},
	{"tflops", "tflops_per_gpu", 1},
	{"mfu(%)", "mfu_pct", 1},
	{"time_metrics/end_to_end(s)", "step_time_ms", 1000},
	{"time_metrics/data_loading(s)", "data_wait_ms", 1000},
	{"time_metrics/data_loading(%)", "data_wait_ratio", 0.01},
	{"memory/max_active(GiB)", "mem_peak_active_gib", 1},
	{"memory/max_reserved(GiB)", "mem_peak_reserved_gib", 1},
	{"memory/num_alloc_retries", "alloc_retries", 1},
	{"memory/num_ooms", "cuda_ooms", 1},
	/* Lightning, callbacks/throughput_monitor.py; "device" is one of them, else all */
	{"train|batches_per_sec", "throughput_steps_per_s", 1},
	{"train|samples_per_sec", "throughput_samples_per_s", 1},
	{"train|items_per_sec", "throughput_tokens_per_s", 1},
	{"train|device/items_per_sec", "throughput_tokens_per_s_per_gpu", 1},
	{"train|device/flops_per_sec", "tflops_per_gpu", 1e-12},
	{"train|device/mfu", "mfu_pct", 100},
	/* NeMo */
	{"reduced_train_loss", "loss", 1},
	{"train_step_timing in s", "step_time_ms", 1000},
	/* Trainer, DeepSpeed's monitor, hand-written loops */
	{"train_loss", "loss", 1},
	{"train_loss_step", "loss", 1},
	{"train/loss", "loss", 1},
	{"train/loss_step", "loss", 1},
	{"train/grad_norm", "grad_norm", 1},
	{"Train/Samples/train_loss", "loss", 1},
	{"Train/Samples/loss_scale", "loss_scale", 1},
	{"eval/loss", "val_loss", 1},
	{"val/loss", "val_loss", 1},
	{"val_loss_epoch", "val_loss", 1},
};

static const struct alias own[] = {
	/* torchtune's DiskLogger */
	{"tokens_per_second_per_gpu", "throughput_tokens_per_s_per_gpu", 1},
	{"peak_memory_active", "mem_peak_active_gib", 1},
	{"peak_memory_alloc", "mem_peak_allocated_gib", 1},
	{"peak_memory_reserved", "mem_peak_reserved_gib", 1},
	/* LLaMA-Factory's trainer_log.jsonl */
	{"vram_allocated", "mem_peak_allocated_gib", 1},
	{"vram_reserved", "mem_peak_reserved_gib", 1},
	{"eval_loss", "val_loss", 1},
};

static const struct alias *find(const struct alias *t, size_t n, struct span key)
{
	for (size_t i = 0; i < n; i++)
		if (span_eq(key, t[i].key))
			return &t[i];
	return NULL;
}

const struct alias *alias_find_own(struct span key)
{
	return find(own, ARRAY_LEN(own), key);
}

const struct alias *alias_find(struct span key)
{
	const struct alias *a = find(table, ARRAY_LEN(table), key);

	return a ? a : alias_find_own(key);
}
