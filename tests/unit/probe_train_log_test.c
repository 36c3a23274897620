/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_train_log, probe_megatron, probe_deepspeed, probe_torchtitan,
	probe_hf_trainer, probe_nanogpt;

#define GIB (1.0 / 1024)

static void test_megatron_2026(void **state)
{
	struct findings f = findings_fixture(&probe_megatron, "megatron-2026-timers.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "step_time_ms", 10, NULL, 15448.5);
	check_at(&f, "tflops_per_gpu", 10, NULL, 500.6);
	check_at(&f, "loss", 10, NULL, 13.40574);
	check_at(&f, "grad_norm", 10, NULL, 2.864);
	check_at(&f, "gpu_power_w", 10, NULL, 634.4);
	check_at(&f, "gpu_energy_j_per_step", 10, NULL, 9801.2);
	check_at(&f, "throughput_samples_per_s", 10, NULL, 2048 * 1000 / 15448.5);
	assert_null(found_nth(&f, "throughput_tokens_per_s", 0));
	check_at(&f, "phase_time_ms", 10, "phase=all-grads-sync,stat=max", 902.18);
	check_at(&f, "phase_time_ms", 10, "phase=forward-compute,stat=min", 5102.14);
	check_at(&f, "data_wait_ms", 10, NULL, 98.77);
	assert_int_equal(found_count(&f, "data_wait_ms"), 1);
	assert_int_equal(found_count(&f, "phase_time_ms"), 11);
	check_at(&f, "mem_peak_reserved_gib", 10, NULL, 90178 * GIB);
	check_at(&f, "mem_allocated_gib", 10, NULL, 17956.49 * GIB);
	assert_int_equal(found_nth(&f, "mem_allocated_gib", 0)->rank, 0);
	check_fact(&f, "train_log.dialect", "megatron");
	findings_free(&f);
}

static void test_megatron_old(void **state)
{
	struct findings f = findings_fixture(&probe_megatron, "megatron-old.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "step_time_ms", 1, NULL, 160000);
	check_at(&f, "skipped_iters", 1, NULL, 1);
	assert_null(found_at(&f, "loss", 1, NULL));
	check_at(&f, "loss_scale", 1, NULL, 4294967296.0);
	check_at(&f, "throughput_samples_per_s", 1, NULL, 6.4);
	check_at(&f, "throughput_tokens_per_s", 1, NULL, 6.4 * 2048);
	check_at(&f, "data_wait_ms", 1, NULL, 187.52);
	check_at(&f, "phase_time_ms", 1, "phase=forward-recv", 19581.85);
	check_at(&f, "phase_time_ms", -1, "phase=load-checkpoint", 7.56);
	check_at(&f, "loss", 2, NULL, 12.44502);
	check_missing(&f, "loss_scale", 2, NULL, "not used");
	check_at(&f, "nan_iters", 2, NULL, 1);
	check_at(&f, "tflops_per_gpu", 2, NULL, 45.3);
	check_at(&f, "throughput_samples_per_s", 2, NULL, 8);
	check_at(&f, "val_loss", 2, NULL, 9.7);
	check_at(&f, "mem_reserved_gib", 1, NULL, 19);
	assert_int_equal(found_nth(&f, "mem_reserved_gib", 0)->rank, 61);
	check_at(&f, "phase_time_ms", 2, "phase=save-checkpoint,stat=min", 2500);
	assert_null(found_nth(&f, "ckpt_time_s", 0));
	findings_free(&f);
}

/* Each line is of another fork: Primus before and after 26.5, Argonne's, BigScience's, GPT-NeoX,
 * GLM, bigcode's with endless data, Megatron-Bridge. */
static void test_megatron_forks(void **state)
{
	struct findings f = findings_fixture(&probe_megatron, "megatron-forks.txt");
	static const double gb = 1e9 / (1 << 30);

	(void)state;
	check_status(&f, PROBE_PARTIAL); /* the last iteration is cut */
	assert_int_equal(found_count(&f, "step_time_ms"), 7);
	assert_int_equal(found_count(&f, "loss"), 7);
	for (int i = 1; i <= 7; i++) {
		check_at(&f, "step_time_ms", i, NULL, 790 + 10 * i);
		check_at(&f, "loss", i, NULL, i > 1 ? 11.6 - 0.1 * i : 11.5);
	}
	check_at(&f, "tflops_per_gpu", 1, NULL, 410.5);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 1, NULL, 10240);
	check_at(&f, "gpu_mem_used_mib", 1, NULL, 100.5 * 1024);
	check_at(&f, "throughput_samples_per_s", 1, NULL, 80);
	check_at(&f, "tflops_per_gpu", 2, NULL, 411.5);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 2, NULL, 10241);
	check_at(&f, "consumed_tokens", 3, NULL, 393216);
	check_at(&f, "samples_per_step", 3, NULL, 64);
	check_at(&f, "grad_norm", 3, NULL, 6.5);
	check_at(&f, "tflops_per_gpu", 3, NULL, 49.66);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 3, NULL, 9987.5);
	check_at(&f, "throughput_samples_per_s", 4, NULL, 64 / 0.83);
	check_at(&f, "throughput_samples_per_s", 5, NULL, 76.19);
	check_at(&f, "throughput_tokens_per_s", 5, NULL, 76.19 * 2048);
	check_at(&f, "tflops_per_gpu", 5, NULL, 50.3);
	check_at(&f, "data_wait_ms", 5, NULL, 5.25);
	check_at(&f, "val_loss", 5, NULL, 6.9);
	check_at(&f, "loss_scale", 6, NULL, 65536);
	assert_null(found_at(&f, "data_wait_ms", 6, NULL));
	check_at(&f, "val_loss", 6, NULL, 6.8);
	check_at(&f, "mem_peak_reserved_gib", 6, NULL, 4);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 7, NULL, 2114.61);
	check_at(&f, "phase_time_ms", 7, "phase=all-grads-sync,stat=max", 14.25);
	check_at(&f, "phase_time_ms", 7, "phase=optimizer,stat=max", 22.75);
	check_at(&f, "tflops_per_gpu", -1, NULL, 412.5);
	check_at(&f, "mem_allocated_gib", 7, NULL, 63.66 * gb);
	check_at(&f, "mem_peak_active_gib", 7, NULL, 169.96 * gb);
	check_at(&f, "alloc_retries", 7, NULL, 2);
	assert_int_equal(found_at(&f, "alloc_retries", 7, NULL)->rank, 3);
	check_at(&f, "val_loss", 7, NULL, 6.7);
	assert_int_equal(found_count(&f, "val_loss"), 3);
	findings_free(&f);
}

/* Two writers in one line, a decimal comma, bytes that are no text, and a cut end. */
static void test_messy(void **state)
{
	struct findings f = findings_fixture(&probe_train_log, "messy-mixed-stream.txt");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	assert_int_equal(found_count(&f, "step_time_ms"), 2);
	check_at(&f, "step_time_ms", 1, NULL, 155483.8);
	check_at(&f, "step_time_ms", 2, NULL, 129028.8);
	assert_int_equal(found_at(&f, "step_time_ms", 1, NULL)->rank, 0);
	assert_int_equal(found_at(&f, "step_time_ms", 2, NULL)->rank, 0);
	assert_null(found_nth(&f, "throughput_samples_per_s", 0));
	check_at(&f, "loss", -1, NULL, 2.5);
	check_missing(&f, "grad_norm", -1, NULL, "inf");
	assert_int_equal(found_count(&f, "loss"), 4);
	assert_string_equal(found_nth(&f, "loss", 3)->text, "nan");
	assert_non_null(strstr(f.detail.data, "4 bad lines, the first is line 2"));
	findings_free(&f);
}

static void test_glued_bar(void **state)
{
	struct findings f = findings_fixture(&probe_train_log, "tqdm-CR-glued-deepspeed.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "phase_time_ms", -1, "phase=fwd", 435.69);
	check_at(&f, "phase_time_ms", -1, "phase=bwd_allreduce_microstep", 230.14);
	assert_true(found_nth(&f, "phase_time_ms", 5)->value == 435.67);
	assert_true(found_nth(&f, "phase_time_ms", 6)->value == 744.11);
	assert_true(found_nth(&f, "phase_time_ms", 7)->value == 513.92);
	assert_true(found_nth(&f, "phase_time_ms", 8)->value == 230.11);
	assert_true(found_nth(&f, "phase_time_ms", 9)->value == 0.98);
	check_at(&f, "throughput_samples_per_s", 10, "", 83.48609168106144);
	assert_int_equal(found_count(&f, "throughput_samples_per_s"), 1);
	check_at(&f, "mem_allocated_gib", 10, NULL, 0.26);
	check_at(&f, "mem_peak_allocated_gib", 10, NULL, 9.02);
	check_at(&f, "skipped_iters", 10, NULL, 0);
	check_at(&f, "loss", 2, NULL, 1.5);
	check_at(&f, "step_time_ms", 2, "", 1090);
	assert_null(found_at(&f, "step_time_ms", 1, NULL));
	findings_free(&f);
}

static void test_deepspeed(void **state)
{
	struct findings f = findings_fixture(&probe_deepspeed, "deepspeed.txt");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "throughput_samples_per_s", 50, "", 1292.6411179579866);
	assert_null(found_at(&f, "throughput_samples_per_s", 100, NULL));
	check_at(&f, "skipped_iters", 40, NULL, 2);
	check_missing(&f, "throughput_samples_per_s", 40, NULL, "inf");
	check_at(&f, "mem_peak_allocated_gib", 40, NULL, 66.97);
	check_at(&f, "step_time_ms", 41, NULL, 812);
	check_at(&f, "loss", 41, NULL, 2.5012);
	check_at(&f, "phase_time_ms", -1, "phase=fwd", 435.67);
	assert_int_equal(found_count(&f, "phase_time_ms"), 1);
	assert_non_null(strstr(f.detail.data, "2 bad lines, the first is line 2"));
	findings_free(&f);
}

static void test_torchtitan(void **state)
{
	struct findings f = findings_fixture(&probe_torchtitan, "torchtitan-2026-rank-prefix.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 10, NULL, 8.41236);
	check_at(&f, "grad_norm", 10, NULL, 1.2);
	check_at(&f, "mem_peak_reserved_gib", 10, NULL, 47.65);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 10, NULL, 7865);
	check_at(&f, "tflops_per_gpu", 10, NULL, 1455.2);
	check_at(&f, "mfu_pct", 10, NULL, 46.06);
	check_missing(&f, "mfu_pct", 1, NULL, "N/A");
	assert_int_equal(found_nth(&f, "loss", 2)->rank, 0);
	assert_int_equal(found_nth(&f, "loss", 3)->rank, 1);
	assert_int_equal(found_count(&f, "loss"), 4);
	findings_free(&f);
	f = findings_text(&probe_torchtitan,
			  "step: 10  loss: 8.4  memory: 47.65GiB(60.11%)  tps: 7,8"
			  "step: 11  loss: 8.5  memory: 47.66GiB(60%)  tps: 78  mfu: 4.5%\n"
			  "step: 12  loss: 8.6  memory: 4.25GiB(6%)  tps: 7,8");
	check_status(&f, PROBE_PARTIAL);
	assert_null(found_at(&f, "loss", 10, NULL));
	check_at(&f, "loss", 11, NULL, 8.5);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 11, NULL, 78);
	assert_null(found_at(&f, "throughput_tokens_per_s_per_gpu", 12, NULL));
	findings_free(&f);
}

static void test_hf(void **state)
{
	struct findings f = findings_fixture(&probe_hf_trainer, "hf-trainer.txt");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "loss", 16, NULL, 2.9859);
	assert_int_equal(found_at(&f, "loss", 16, NULL)->rank, 0);
	check_at(&f, "grad_norm", 16, NULL, 0.9704080820083618);
	assert_string_equal(found_nth(&f, "loss", 1)->text, "nan");
	assert_string_equal(found_nth(&f, "grad_norm", 1)->text, "inf");
	check_at(&f, "step_time_ms", 16, "", 6390);
	check_at(&f, "step_time_ms", 32, "", 400);
	assert_int_equal(found_count(&f, "step_time_ms"), 2);
	check_at(&f, "val_loss", 32, NULL, 2.5);
	check_at(&f, "throughput_samples_per_s", -1, NULL, 1.088);
	check_at(&f, "throughput_steps_per_s", -1, NULL, 0.017);
	check_at(&f, "train_loss_mean", -1, NULL, 2.75);
	assert_int_equal(found_count(&f, "loss"), 3);
	assert_true(found_nth(&f, "loss", 2)->value == 3.25);
	findings_free(&f);
	f = findings_fixture(&probe_hf_trainer, "hf-trainer-v5-string-values.txt");
	check_status(&f, PROBE_OK);
	assert_true(found_nth(&f, "loss", 0)->value == 0.4572);
	assert_true(found_nth(&f, "loss", 1)->value == 0.4413);
	assert_string_equal(found_nth(&f, "grad_norm", 1)->text, "nan");
	check_at(&f, "val_loss", -1, NULL, 0.4301);
	check_at(&f, "throughput_samples_per_s", -1, NULL, 61.5);
	findings_free(&f);
}

/* Which step a dict is of, and which bar is the training's. */
static void test_hf_steps(void **state)
{
	struct findings f;

	(void)state;
	/* One bar names the step of one dict: the others came out of a buffer. */
	f = findings_text(&probe_hf_trainer, "100%|##| 3/3 [00:00<00:00, 512.34it/s]\n"
					     "100%|##| 120/120 [00:20<00:00,  5.93ba/s]\n"
					     "100%|##| 7/7 [00:14<00:00,  2.00s/it]\n"
					     "  0%|  | 10/1000 [00:50<04:30,  5.00s/it]\n"
					     "{'loss': 4.5, 'epoch': 0.01}\n"
					     "{'eval_loss': 4.25, 'epoch': 0.01}\n"
					     "{'loss': 4.0, 'epoch': 0.02}\n"
					     "100%|##| 8/8 [00:16<00:00,  2.00s/it]\n");
	check_at(&f, "step_time_ms", 10, NULL, 5000);
	check_at(&f, "loss", 10, NULL, 4.5);
	check_at(&f, "val_loss", 10, NULL, 4.25);
	check_at(&f, "loss", -1, NULL, 4);
	check_at(&f, "step_time_ms", 7, NULL, 2000);
	assert_int_equal(found_count(&f, "step_time_ms"), 2);
	findings_free(&f);
	/* Step 32 of 100 an epoch; the bar was drawn before. */
	f = findings_text(
		&probe_hf_trainer,
		"  Num examples = 3,200\n"
		"  Total train batch size (w. parallel, distributed & accumulation) = 32\n"
		"  Total optimization steps = 100\n"
		" 18%|# | 18/100 [01:50<08:31,  6.39s/it]\n"
		"{'loss': 4.5, 'epoch': 0.32}\n"
		" 49%|# | 49/100 [04:50<04:31,  6.39s/it]\n"
		"{'loss': 4.0, 'epoch': 0.48}\n");
	check_at(&f, "loss", -1, NULL, 4.5);
	check_at(&f, "loss", 49, NULL, 4);
	findings_free(&f);
	/* transformers before 4.7 */
	f = findings_text(
		&probe_hf_trainer,
		"{'train_runtime': 100.0, 'train_samples_per_second': 8.5, 'epoch': 1.0}\n");
	check_at(&f, "throughput_steps_per_s", -1, NULL, 8.5);
	assert_null(found_nth(&f, "throughput_samples_per_s", 0));
	findings_free(&f);
	f = findings_text(probe_find("hf_state"),
			  "{\"log_history\": [{\"loss\": 1.5, \"step\": 5}, {\"step\": 9, "
			  "\"train_runtime\": 9.0, \"train_samples_per_second\": 8.5}]}\n");
	check_at(&f, "throughput_steps_per_s", -1, NULL, 8.5);
	assert_null(found_nth(&f, "throughput_samples_per_s", 0));
	findings_free(&f);
}

/* The step of DeepSpeed's hybrid engine: what its two engines say is of parts of it. */
static void test_deepspeed_hybrid(void **state)
{
	struct findings f = findings_text(
		&probe_deepspeed,
		"|E2E latency=4.00s |Gather latency=0.00s (0.00%) |Generate time=2.78s (69.5%) "
		"|Training time=0.74s (18.5%) |Others=0.48 (12.0%)|CurSamplesPerSec=16.00 "
		"|AvgSamplesPerSec=12.50\n"
		"[2023-04-18 01:46:57,680] [INFO] [timer.py:199:stop] epoch=0/micro_step=10/"
		"global_step=10, RunningAvgSamplesPerSec=90.5, CurrSamplesPerSec=91.5, "
		"MemAllocated=10.77GB, MaxMemAllocated=20.55GB\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "step_time_ms", -1, NULL, 4000);
	check_at(&f, "throughput_samples_per_s", -1, "", 16);
	check_at(&f, "throughput_samples_per_s", 10, "source=deepspeed", 91.5);
	findings_free(&f);
}

static void test_nanogpt(void **state)
{
	struct findings f = findings_fixture(&probe_nanogpt, "nanogpt.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "step_time_ms", 10, NULL, 1394.69);
	check_at(&f, "mfu_pct", 10, NULL, 10.72);
	check_at(&f, "loss", 0, NULL, 10.9886);
	check_missing(&f, "mfu_pct", 0, NULL, "not known yet");
	check_missing(&f, "loss", 20, NULL, "nan");
	check_at(&f, "val_loss", 0, NULL, 10.988);
	findings_free(&f);
	f = findings_text(&probe_nanogpt, /* llama2.c */
			  "490 | loss 5.75 | lr 4.900000e-05 | 8060.75ms | mfu 0.25%\n"
			  "step 500: train loss 5.5, val loss 6.25\n"
			  "500 | loss 6.5 | lr 5.000000e-05 | 870067.5ms | mfu -100.00%\n");
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 490, NULL, 5.75);
	check_at(&f, "step_time_ms", 490, NULL, 8060.75);
	check_at(&f, "mfu_pct", 490, NULL, 0.25);
	check_at(&f, "val_loss", 500, NULL, 6.25);
	check_missing(&f, "mfu_pct", 500, NULL, "not known yet");
	findings_free(&f);
	f = findings_text(&probe_nanogpt, "iter 5: loss 2.5, time 12.5ms, mfu 3.2");
	check_at(&f, "step_time_ms", 5, NULL, 12.5);
	assert_null(found_nth(&f, "mfu_pct", 0));
	findings_free(&f);
}

/* A framework's own timing is the plain one; the others say where they come from. */
static void test_sources(void **state)
{
	struct findings f = findings_text(
		&probe_train_log,
		" iteration 1/ 10 | elapsed time per iteration (ms): 500.0 | global batch size: 4 |\n"
		"epoch=0/micro_step=2/global_step=2, RunningAvgSamplesPerSec=3, CurrSamplesPerSec=9\n"
		" 20%|## | 2/10 [00:01<00:04,  2.00it/s]\n");

	(void)state;
	check_at(&f, "throughput_samples_per_s", 1, NULL, 8);
	assert_string_equal(found_at(&f, "throughput_samples_per_s", 1, NULL)->labels, "");
	check_at(&f, "throughput_samples_per_s", 2, "source=deepspeed", 9);
	check_at(&f, "step_time_ms", 2, "source=tqdm", 500);
	findings_free(&f);
}

static void test_front(void **state)
{
	struct findings f = findings_text(
		&probe_train_log, "hello\n{\"step\": 3, \"loss\": 2.5}\n{\"lr\": 1}\n{\"step\": 4\n"
				  "iter 10: loss 2.25, time 1.5ms, mfu 1.5%\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 3, NULL, 2.5);
	check_at(&f, "loss", 10, NULL, 2.25);
	assert_null(found_nth(&f, "lr", 0));
	assert_int_equal(found_count(&f, "train_log.dialect"), 2);
	findings_free(&f);
	f = findings_text(&probe_train_log, "hello\nworld\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_train_log, "torch.OutOfMemoryError: CUDA out of memory. Tried to "
					    "allocate 20.00 MiB. GPU 0 has ...\n");
	check_status(&f, PROBE_FAILED);
	assert_non_null(strstr(found_nth(&f, "torch.oom", 0)->text, "20.00 MiB"));
	findings_free(&f);
}

/* Real logs of others, read where they lie. */
static void test_samples(void **state)
{
	struct findings f;

	(void)state;
	if (findings_sample(&probe_train_log, "train-megatron/meg_gpt2_perf_n16-v100-pp.txt", &f)) {
		check_at(&f, "step_time_ms", 1, NULL, 155483.8);
		check_at(&f, "step_time_ms", 2, NULL, 129028.8);
		check_at(&f, "step_time_ms", 3, NULL, 128891.5);
		check_at(&f, "throughput_samples_per_s", 3, NULL, 1024 * 1000 / 128891.5);
		check_at(&f, "phase_time_ms", 3, "phase=forward-recv", 1498.23);
		check_at(&f, "phase_time_ms", 3, "phase=backward-embedding-all-reduce", 4179.82);
		check_at(&f, "skipped_iters", 3, NULL, 1);
		assert_int_equal(found_count(&f, "step_time_ms"), 3);
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log,
			    "train-megatron/meg_gpt2_n64-interleaved-timelimit.txt", &f)) {
		assert_int_equal(found_count(&f, "step_time_ms"), 6);
		check_at(&f, "step_time_ms", 60, NULL, 6703.7);
		check_at(&f, "loss", 20, NULL, 14.12743);
		check_at(&f, "loss", 60, NULL, 16.9694);
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log, "train-megatron/meg_ds_3d-n16-ds-on.txt", &f)) {
		assert_int_equal(found_count(&f, "step_time_ms"), 49);
		check_at(&f, "step_time_ms", 49, NULL, 136328.8);
		assert_int_equal(found_count(&f, "loss"), 49);
		check_missing(&f, "loss_scale", 49, NULL, "not used");
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log, "train-megatron/srun-l-prefix-3-lines.txt", &f)) {
		check_at(&f, "step_time_ms", 25, NULL, 87);
		check_at(&f, "step_time_ms", 27, NULL, 88.4);
		assert_int_equal(found_at(&f, "step_time_ms", 25, NULL)->rank, 1);
		check_at(&f, "step_time_ms", 1, NULL, 255940.5);
		assert_null(found_at(&f, "loss", 1, NULL));
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log,
			    "train-megatron/megatron-2026-timestamp-throughput.txt", &f)) {
		check_at(&f, "step_time_ms", 5, NULL, 15800);
		check_at(&f, "step_time_ms", 7, NULL, 15448.5);
		check_at(&f, "tflops_per_gpu", 6, NULL, 494.6);
		check_at(&f, "loss", 5, NULL, 13.4424);
		findings_free(&f);
	}
}

static void test_more_samples(void **state)
{
	struct findings f;

	(void)state;
	if (findings_sample(&probe_train_log,
			    "train-deepspeed/cifar-2020-SamplesPerSec-worker-prefix.txt", &f)) {
		check_at(&f, "throughput_samples_per_s", 50, NULL, 1292.6411179579866);
		check_at(&f, "throughput_samples_per_s", 150, NULL, 1304.4251022567403);
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log, "train-torchtitan/llama3-8b-32xH100-ansi-srun-l.txt",
			    &f)) {
		check_at(&f, "throughput_tokens_per_s_per_gpu", 1990, NULL, 6785);
		check_at(&f, "mfu_pct", 1990, NULL, 39.73);
		check_at(&f, "mem_peak_reserved_gib", 1990, NULL, 68.57);
		assert_true(found_nth(&f, "loss", found_count(&f, "loss") - 1)->value == 3.4255);
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log, "train-hf/esm2-trainer-dict-srun-l-tqdm.txt", &f)) {
		assert_int_equal(found_count(&f, "loss"), 5);
		assert_true(found_nth(&f, "loss", 0)->value == 2.9859);
		assert_true(found_nth(&f, "loss", 4)->value == 2.6591);
		assert_int_equal(found_count(&f, "step_time_ms"), 4);
		check_at(&f, "step_time_ms", 18, NULL, 6390);
		findings_free(&f);
	}
	if (findings_sample(&probe_train_log, "train-hf/trl-grpo-dict-many-keys.txt", &f)) {
		assert_true(found_nth(&f, "loss", 0)->value == 0.0785);
		findings_free(&f);
	}
}

static void test_sniff(void **state)
{
	static const char
		log[] = "start\n iteration 1/ 10 | elapsed time per iteration (ms): 5.5 |\n";

	(void)state;
	assert_true(score_text(&probe_train_log, log) >= 50);
	assert_int_equal(score_text(&probe_train_log, "hello\n"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_megatron_2026),  cmocka_unit_test(test_megatron_old),
		cmocka_unit_test(test_megatron_forks), cmocka_unit_test(test_messy),
		cmocka_unit_test(test_glued_bar),      cmocka_unit_test(test_deepspeed),
		cmocka_unit_test(test_torchtitan),     cmocka_unit_test(test_hf),
		cmocka_unit_test(test_hf_steps),       cmocka_unit_test(test_deepspeed_hybrid),
		cmocka_unit_test(test_nanogpt),        cmocka_unit_test(test_front),
		cmocka_unit_test(test_sources),        cmocka_unit_test(test_samples),
		cmocka_unit_test(test_more_samples),   cmocka_unit_test(test_sniff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
