/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Training logs that consist of progress bars and lines between strokes. */
#include "tests/unit/probe_check.h"

#include "probes/bar.h"

extern const struct probe probe_nemo, probe_lightning, probe_torchtune, probe_llmc, probe_train_log,
	probe_deepspeed, probe_hf_trainer, probe_megatron, probe_nanochat, probe_modded_nanogpt;

static void test_nemo(void **state)
{
	struct findings f = findings_fixture(&probe_nemo, "nemo.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 6, NULL, 11.5);
	check_at(&f, "step_time_ms", 6, NULL, 49500);
	assert_null(found_at(&f, "val_loss", 6, NULL));
	check_at(&f, "loss", 2000, NULL, 0.139);
	check_at(&f, "consumed_samples", 2000, NULL, 256000);
	check_at(&f, "val_loss", 2000, NULL, 0.212);
	check_at(&f, "samples_per_step", 29, NULL, 512);
	check_at(&f, "throughput_samples_per_s", 29, NULL, 512 / 46.84);
	findings_free(&f);
	f = findings_fixture(&probe_nemo, "nemo-step.txt");
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "grad_norm", 3, NULL, 1.25);
	assert_int_equal(found_at(&f, "loss", 3, NULL)->rank, 0);
	check_missing(&f, "loss", 4, NULL, "nan");
	check_at(&f, "throughput_samples_per_s", 3, NULL, 80);
	check_at(&f, "val_loss", 4, NULL, 9.5);
	assert_null(found_at(&f, "val_loss", 5, NULL)); /* the same validation */
	check_at(&f, "loss", 6, NULL, 9.12);
	assert_null(found_at(&f, "step_time_ms", 6, NULL));
	assert_non_null(strstr(f.detail.data, "line 5: a step that is cut"));
	findings_free(&f);
	/* Its lines are none of Megatron's or of the Trainer's. */
	f = findings_fixture(&probe_train_log, "nemo.txt");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "train_log.dialect"), 1);
	check_fact(&f, "train_log.dialect", "nemo");
	findings_free(&f);
}

/* NeMo of 2023 times no step, endless data has no total, memory is in bytes. */
static void test_nemo_versions(void **state)
{
	struct findings f = findings_text(
		&probe_train_log,
		"Epoch 0:   1%|# | 40/1000 [06:40<2 days, 1:00:00, 10.00s/it, loss=3.1, v_num=, "
		"reduced_train_loss=3.250, global_step=39.0, consumed_samples=1.6e+3]\n"
		"Epoch 0: :   5%|# | 50/1000 [08:20<55:37:46, v_num=0, reduced_train_loss=nan.0, "
		"global_step=49.0, train_step_timing in s=9.500]\n"
		"Epoch 1: : 1it [00:04,  4.36s/it, v_num=d3c7, reduced_train_loss=0.674, "
		"global_step=60.00, train_step_timing in s=3.500]\n"
		"Training epoch 0, iteration 70/99 | global_batch_size: 8 | global_step: 70 | "
		"max_memory_reserved: 2147483648 | max_memory_allocated: 1073741824 | "
		"reduced_train_loss: 2.5 | tokens_per_sec_per_gpu: 1.073e+04\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 39, NULL, 3.25);
	check_at(&f, "step_time_ms", 39, NULL, 10000);
	check_missing(&f, "loss", 49, NULL, "nan");
	check_at(&f, "step_time_ms", 49, NULL, 9500);
	check_at(&f, "loss", 60, NULL, 0.674);
	check_at(&f, "step_time_ms", 60, NULL, 3500);
	check_at(&f, "mem_peak_reserved_gib", 70, NULL, 2);
	check_at(&f, "mem_peak_allocated_gib", 70, NULL, 1);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 70, NULL, 10730);
	assert_int_equal(found_count(&f, "train_log.dialect"), 1);
	findings_free(&f);
}

/* Endless data sets, names with a slash, and the bar that rich draws. */
static void test_lightning_bars(void **state)
{
	struct findings f = findings_text(
		&probe_lightning,
		"Epoch 0:   1%|# | 1/115 [00:02<05:40,  0.50it/s, v_num=0, train/loss_step=12.90]\n"
		"Epoch 0: : 120it [00:10, 12.0it/s, loss=2.5, v_num=3]\n"
		"Epoch 0: |          | 124/? [00:31<00:00, 4.0it/s, v_num=0, train_loss=nan.0]\n"
		"Epoch 1: |          | 125/? [00:31<00:00, 4.0it/s, v_num=0, train_loss=2.0]\n"
		"Testing: |          | 0/? [00:00<?, ?it/s]\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 1, NULL, 12.9);
	check_at(&f, "loss", 120, NULL, 2.5);
	check_at(&f, "step_time_ms", 120, NULL, 1000 / 12.0);
	check_missing(&f, "loss", 124, NULL, "nan");
	check_at(&f, "step_time_ms", 124, NULL, 250);
	assert_int_equal(found_count(&f, "step_time_ms"), 3);
	findings_free(&f);
	f = findings_text(&probe_lightning,
			  "Epoch 0/23 --- 100/100 0:01:40 \xe2\x80\xa2 0:00:00 1.00it/s v_num: 0 "
			  "train/loss: 1.5 \n                   train/acc: 0.399\n"
			  "Epoch 1/23 --- 100/100 0:00:50 \xe2\x80\xa2 0:00:00 2.00it/s v_num: 0 "
			  "train_loss: 1.25 val/loss: 1.375 train/acc: \n"
			  "Epoch 0/-2 --- 600/-- 0:10:00 \xe2\x80\xa2 -:--:-- 1.00it/s v_num: xn3p "
			  "train_loss: 1.3282026-04-06 13:45:50 | INFO\n");
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 100, NULL, 1.5);
	check_at(&f, "step_time_ms", 100, NULL, 1000);
	check_at(&f, "loss", 200, NULL, 1.25);
	check_at(&f, "val_loss", 200, NULL, 1.375);
	check_at(&f, "step_time_ms", 200, NULL, 500);
	check_at(&f, "step_time_ms", 600, NULL, 1000);
	assert_int_equal(found_count(&f, "loss"), 2);
	findings_free(&f);
	/* A step is drawn before its loss is known, and the last one at the end of the text. */
	f = findings_text(&probe_lightning,
			  "Epoch 0:   6%|# | 1/18 [00:08<02:29,  8.77s/it]\r"
			  "Epoch 0:   6%|# | 1/18 [00:08<02:29,  8.77s/it, loss=10.5, v_num=1]\r"
			  "Epoch 0:  11%|# | 2/18 [00:11<01:33,  5.82s/it, loss=10.5, v_num=1]\n"
			  "Epoch 0:  11%|# | 2/18 [00:11<01:33,  5.82s/it, loss=10.25, v_num=1]\n"
			  "Epoch 1:   0%|# | 0/18 [00:00<?,  ?it/s, loss=10.25, v_num=1]\n");
	check_at(&f, "loss", 1, NULL, 10.5);
	check_at(&f, "loss", 2, NULL, 10.25);
	assert_int_equal(found_at(&f, "loss", 2, NULL)->line, 2);
	assert_int_equal(found_count(&f, "loss"), 2);
	findings_free(&f);
}

static void test_titan_validation(void **state)
{
	struct findings f = findings_text(
		&probe_train_log,
		"[titan] INFO - step: 10  loss:  8.25  memory: 5.12GiB(6.40%)  tps: 1,002  mfu: 5.27%\n"
		"[titan] INFO - validate step: 10  loss:  8.5  memory: 6.25GiB(7.40%)  tps: 3,002\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "val_loss", 10, NULL, 8.5);
	assert_int_equal(found_count(&f, "loss"), 1);
	assert_int_equal(found_count(&f, "throughput_tokens_per_s_per_gpu"), 1);
	assert_int_equal(found_count(&f, "mem_peak_reserved_gib"), 1);
	findings_free(&f);
}

/* Names that newer and older versions use. */
static void test_other_names(void **state)
{
	struct findings f = findings_text(
		&probe_train_log,
		"Training epoch 0, iteration 3/99 | global_batch_size: 8 | global_step: 3 | "
		"reduced_train_loss: 9.5 | train_step_timing in s: 2.0 | tflops_per_sec_per_gpu: "
		"412.5\n"
		"step:  4  loss:  8.25  memory: 5.12GiB(6.40%)  wps: 1,002  mfu: 5.27%\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "tflops_per_gpu", 3, NULL, 412.5);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 4, NULL, 1002);
	findings_free(&f);
	/* DeepSpeed's rate stands before the first iteration of Megatron, and is not its. */
	f = findings_text(
		&probe_train_log,
		"  global_batch_size ............................... 32\n"
		"[INFO] [timer.py:1:stop] epoch=0/micro_step=1/global_step=1, "
		"RunningAvgSamplesPerSec=291, CurrSamplesPerSec=291.6, MemAllocated=1.0GB\n"
		" iteration 1/ 10 | elapsed time per iteration (ms): 1176.5 | global batch size: 32 |\n");
	check_at(&f, "throughput_samples_per_s", 1, "source=deepspeed", 291.6);
	assert_string_equal(found_nth(&f, "throughput_samples_per_s", 1)->labels, "");
	findings_free(&f);
}

/* The same step drawn twice counts once. */
static void test_redrawn(void **state)
{
	static const char text[] =
		"Epoch 0: : 10%|# | 1/10 [00:01<00:09, reduced_train_loss=3.5, global_step=0.000, "
		"train_step_timing in s=1.5]\r"
		"Epoch 0: : 10%|# | 1/10 [00:02<00:09, reduced_train_loss=3.5, global_step=0.000, "
		"train_step_timing in s=1.5]\r"
		"Epoch 0: : 20%|# | 2/10 [00:03<00:09, reduced_train_loss=3.25, "
		"global_step=1.000, train_step_timing in s=1.25]\r";
	struct findings f = findings_text(&probe_nemo, text);

	(void)state;
	assert_int_equal(found_count(&f, "loss"), 2);
	check_at(&f, "loss", 0, NULL, 3.5);
	check_at(&f, "step_time_ms", 1, NULL, 1250);
	findings_free(&f);
}

static void test_lightning(void **state)
{
	struct findings f = findings_fixture(&probe_lightning, "lightning.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 2, NULL, 2.5);
	check_at(&f, "loss", 3, NULL, 2.25);
	check_at(&f, "loss", 4, NULL, 2.125);
	check_at(&f, "val_loss", 4, NULL, 2.75);
	/* 0.09it/s is rounded more than 44 s. */
	check_at(&f, "step_time_ms", 4, NULL, 11000);
	assert_null(found_at(&f, "step_time_ms", 3, NULL));
	check_at(&f, "loss", 6, NULL, 2);
	check_at(&f, "step_time_ms", 6, NULL, 25);
	check_missing(&f, "loss", 8, NULL, "nan");
	check_at(&f, "val_loss", 8, NULL, 2.5);
	assert_null(found_at(&f, "val_loss", 6, NULL));
	check_at(&f, "step_time_ms", 8, NULL, 1000 / 42.5);
	assert_int_equal(found_count(&f, "step_time_ms"), 3);
	findings_free(&f);
	f = findings_fixture(&probe_lightning, "nemo.txt");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_torchtune(void **state)
{
	struct findings f = findings_fixture(&probe_torchtune, "torchtune.txt");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "loss", 1, NULL, 2.125);
	check_at(&f, "step_time_ms", 1, "", 5000);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 1, NULL, 1520.5);
	check_at(&f, "mem_peak_active_gib", 1, NULL, 16.25);
	check_at(&f, "mem_peak_allocated_gib", 1, NULL, 16.25);
	check_at(&f, "mem_peak_reserved_gib", 2, NULL, 17.75);
	check_at(&f, "grad_norm", 2, NULL, 0.75);
	check_at(&f, "step_time_ms", 3, "", 3000);
	check_missing(&f, "loss", 3, NULL, "nan");
	assert_null(found_at(&f, "throughput_tokens_per_s_per_gpu", 3, NULL));
	assert_null(found_nth(&f, "lr", 0));
	findings_free(&f);
	/* Behind torchrun's template, a drawing a line; and what Python says of tensors. */
	f = findings_text(
		&probe_train_log,
		"[trainer3|1]:1|1|Loss: 2.75:   1%|# | 1/101 [00:20<34:51, 20.5s/it][trainer3|1]:\n"
		"[trainer3|1]:1|1|Loss: 2.75:   2%|# | 2/101 [00:38<31:17, 18.5s/it]\n"
		"[trainer3|1]:1|2|Loss: 2.5:   2%|# | 2/101 [00:38<31:17, 18.5s/it]\n"
		"Step 7 | scores:tensor(0.1) loss:tensor(0.5, device='cuda:0') lr:2e-05 "
		"grad_norm:tensor(1.25, device='cuda:0', dtype=torch.bfloat16) \n"
		"Step 00020 | Validation loss: 1.125000\n");
	check_status(&f, PROBE_OK);
	assert_int_equal(found_at(&f, "loss", 1, NULL)->rank, 3);
	check_at(&f, "step_time_ms", 1, NULL, 20500);
	check_at(&f, "step_time_ms", 2, NULL, 18500);
	assert_int_equal(found_count(&f, "step_time_ms"), 2);
	check_at(&f, "loss", 7, NULL, 0.5);
	check_at(&f, "grad_norm", 7, NULL, 1.25);
	assert_null(found_at(&f, "loss", 20, NULL)); /* of another framework */
	findings_free(&f);
	f = findings_text(&probe_torchtune, "1|9|Loss: 2.5:   1%|  | 9/25880 [02:08<6:14:19,\n");
	check_status(&f, PROBE_ABSENT);
	assert_null(found_nth(&f, "loss", 0));
	assert_non_null(strstr(f.detail.data, "a bar that is cut"));
	findings_free(&f);
}

static void test_llmc(void **state)
{
	struct findings f = findings_fixture(&probe_llmc, "llmc.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "val_loss", -1, NULL, 11.006021);
	check_missing(&f, "mfu_pct", 1, NULL, "not known yet");
	check_at(&f, "step_time_ms", 2, NULL, 2391.52);
	check_at(&f, "mfu_pct", 2, NULL, 39.9);
	check_at(&f, "throughput_tokens_per_s", 2, NULL, 191824);
	check_at(&f, "loss", 2, NULL, 10.829729);
	check_at(&f, "grad_norm", 2, NULL, 15.0011);
	findings_free(&f);
	f = findings_text(&probe_llmc,
			  "step    3/9 | loss nan (+nanz)| norm 1.5 (+0.31z)| lr 1e-06 | 2,5 ms | "
			  "39.9% bf16 MFU | 19182");
	check_status(&f, PROBE_PARTIAL);
	check_missing(&f, "loss", 3, NULL, "nan");
	assert_null(found_nth(&f, "step_time_ms", 0));
	assert_null(found_nth(&f, "throughput_tokens_per_s", 0));
	findings_free(&f);
	f = findings_text(
		&probe_llmc,
		"step   10/76 | train loss 4.125000 | norm 1.2500 | lr 3.00e-04 (25.32 ms, "
		"40444 tok/s)\n"
		"step   11/76 | train loss 4.0 | norm 1.5 | lr 3.00e-04 | 350.31 ms | 56.2% "
		"A100 fp16 MFU | 1496706 tok/s\n");
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 10, NULL, 4.125);
	check_at(&f, "step_time_ms", 10, NULL, 25.32);
	check_at(&f, "throughput_tokens_per_s", 10, NULL, 40444);
	check_at(&f, "loss", 11, NULL, 4);
	check_at(&f, "mfu_pct", 11, NULL, 56.2);
	check_at(&f, "throughput_tokens_per_s", 11, NULL, 1496706);
	findings_free(&f);
	f = findings_text(&probe_llmc, "step 3 of 9 | loss\nval loss is low\nfinal val loss 2.5\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* The wordings of older versions, of the Python script, and of main.log. */
static void test_llmc_old(void **state)
{
	struct findings f = findings_text(
		&probe_llmc,
		"step    1/20 | train loss 5.250000 | norm 15.2500 | lr 3.00e-04 | (3379.50 ms | "
		"1212 tok/s)\n"
		"step    2/74: train loss 4.5 (acc 4.25) norm 1.25 lr 3.00e-04 (25.25 ms, 40444 "
		"tok/s)\n"
		"step 3: train loss 4.125000 (took 1452.5 ms)\n"
		"s:4 trl:3.5000 lr:0.000001 norm:0.25\ns:4 tel:3.25\ns:4 eval:0.5\ns:5 trl:3.4");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "step_time_ms", 1, NULL, 3379.5);
	check_at(&f, "throughput_tokens_per_s", 1, NULL, 1212);
	check_at(&f, "grad_norm", 1, NULL, 15.25);
	check_at(&f, "loss", 2, NULL, 4.5);
	check_at(&f, "grad_norm", 2, NULL, 1.25);
	check_at(&f, "step_time_ms", 2, NULL, 25.25);
	check_at(&f, "throughput_tokens_per_s", 2, NULL, 40444);
	check_at(&f, "loss", 3, NULL, 4.125);
	check_at(&f, "step_time_ms", 3, NULL, 1452.5);
	check_at(&f, "loss", 4, NULL, 3.5);
	check_at(&f, "grad_norm", 4, NULL, 0.25);
	check_at(&f, "val_loss", 4, NULL, 3.25);
	assert_null(found_at(&f, "loss", 5, NULL));
	findings_free(&f);
	/* nanoGPT's evaluation is none of its steps, nor is another script's. */
	f = findings_text(&probe_llmc,
			  "step 0: train loss 10.75, val loss 10.5\n"
			  "step 1 | loss 9.5 | step_time 736.5 ms | data_wait 78.5 ms\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(&probe_llmc, "step 1/9 | loss 9.5 | data_wait 78.5 ms | 736.5 ms |\n");
	check_at(&f, "step_time_ms", 1, NULL, 736.5);
	assert_int_equal(found_count(&f, "step_time_ms"), 1);
	findings_free(&f);
}

static void test_nanochat(void **state)
{
	struct findings f = findings_fixture(&probe_train_log, "nanochat.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 0, NULL, 11.25);
	check_at(&f, "grad_norm", 0, NULL, 0.5);
	check_at(&f, "step_time_ms", 1, NULL, 412.25);
	check_at(&f, "throughput_tokens_per_s", 1, NULL, 1271530);
	check_at(&f, "mfu_pct", 1, NULL, 48.75);
	check_missing(&f, "loss", 2, NULL, "nan");
	check_at(&f, "loss", 10, NULL, 1.25);
	check_at(&f, "val_loss", 20, NULL, 1.125);
	check_at(&f, "mem_peak_allocated_gib", -1, NULL, 75422.5 / 1024);
	assert_int_equal(found_count(&f, "val_loss"), 1); /* not bits per byte */
	assert_int_equal(found_count(&f, "train_log.dialect"), 1);
	findings_free(&f);
	f = findings_text(
		&probe_nanochat,
		"step   120 | loss: 6.125000 | lr 6.0000e-04 | norm: 0.5000 | dt: 412.50ms | "
		"tok/sec: 127100.25\n"
		"validation loss: 6.2500\n"
		"step 121, loss: 6.25, dt: 412.75ms, tok/sec: 127100.5\n"
		"iteration 122, loss: 6.5, time: 412.625ms, tok/s: 127101.25, norm: 0.750\n"
		"step 123 | loss: 6.0 | dt: 412.50ms | tok/sec: 1271");
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "throughput_tokens_per_s", 120, NULL, 127100.25);
	check_at(&f, "val_loss", 120, NULL, 6.25);
	check_at(&f, "step_time_ms", 121, NULL, 412.75);
	check_at(&f, "throughput_tokens_per_s", 121, NULL, 127100.5);
	check_at(&f, "step_time_ms", 122, NULL, 412.625);
	check_at(&f, "grad_norm", 122, NULL, 0.75);
	check_at(&f, "step_time_ms", 123, NULL, 412.5);
	assert_null(found_at(&f, "throughput_tokens_per_s", 123, NULL));
	findings_free(&f);
}

static void test_modded_nanogpt(void **state)
{
	struct findings f = findings_fixture(&probe_modded_nanogpt, "modded-nanogpt.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "val_loss", 0, NULL, 10.825);
	check_at(&f, "step_time_ms", 1, NULL, 24375);
	check_at(&f, "step_time_ms", 10, NULL, 150); /* a mean of nine */
	check_at(&f, "loss", 11, NULL, 6.25);
	assert_null(found_at(&f, "step_time_ms", 11, NULL)); /* the clock was set again */
	check_at(&f, "step_time_ms", 12, NULL, 150);
	check_at(&f, "val_loss", 12, NULL, 6.125);
	check_at(&f, "step_time_ms", 22, NULL, 125);
	assert_int_equal(found_count(&f, "step_time_ms"), 4);
	check_at(&f, "mem_peak_allocated_gib", -1, NULL, 29);
	check_at(&f, "mem_peak_reserved_gib", -1, NULL, 44);
	findings_free(&f);
	f = findings_text(&probe_modded_nanogpt,
			  "step:5/9 train_loss:2.5 train_time:12.5\n"
			  "peak memory consumption: 29696 MiB\nstep:6/9 train_time:13");
	check_status(&f, PROBE_PARTIAL);
	assert_null(found_nth(&f, "loss", 0));
	check_at(&f, "mem_peak_allocated_gib", -1, NULL, 29);
	findings_free(&f);
}

static void test_bar_step(void **state)
{
	static const struct {
		const char *text;
		double step_s;
	} t[] = {
		{" 50%|# | 5/10 [00:50<00:50,  0.10it/s]", 10}, /* 10 % off against 1 % */
		{" 50%|# | 5/10 [00:02<00:02,  2.50it/s]", 0.4},
		{" 50%|# | 5/10 [00:30<00:30,  6.39s/it]", 6.39},
		{" 50%|# | 5/10 [00:30<00:30,  ?it/s]", 6},
		{" 50%|# | 0/10 [00:00<?,  ?it/s]", -1},
		{" 50%|# | 9/10 [1 day, 6:00:00<1:00:00,  ?it/s]", 12000},
		{" 50%|# | 9/10 [2 days, 12:00:00<1:00:00,  ?it/s]", 24000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct bar b;

		assert_true(bar_find(span_of(t[i].text), &b));
		assert_true(fabs(bar_step_s(&b) - t[i].step_s) < 1e-9);
	}
}

static void test_deepspeed_comms(void **state)
{
	struct findings f = findings_fixture(&probe_deepspeed, "deepspeed-comms.txt");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "coll_time_us", -1, "op=reduce_scatter_tensor,size_bytes=67108864", 9460);
	check_at(&f, "coll_algbw_gb_per_s", -1, "op=reduce_scatter_tensor,size_bytes=67108864",
		 1204.5 / 8);
	check_at(&f, "coll_busbw_gb_per_s", -1, "op=reduce_scatter_tensor,size_bytes=67108864",
		 1129.25 / 8);
	check_at(&f, "coll_calls", -1, "op=broadcast,size_bytes=2048,source=summary", 146);
	check_at(&f, "coll_time_us", -1, "op=broadcast,size_bytes=103022592,source=summary",
		 8317120);
	check_at(&f, "coll_busbw_gb_per_s", -1,
		 "op=reduce_scatter_tensor,size_bytes=67108864,source=summary", 172);
	assert_int_equal(found_count(&f, "coll_calls"), 3);
	assert_int_equal(found_count(&f, "coll_busbw_gb_per_s"), 4);
	findings_free(&f);
}

static void test_deepspeed_profile(void **state)
{
	struct findings f = findings_fixture(&probe_deepspeed, "deepspeed-profile.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "model_params", 10, "", 251e6);
	check_at(&f, "model_fwd_flops_per_gpu", 10, "", 2000.5e9);
	check_at(&f, "phase_time_ms", 10, "phase=fwd,source=flops_profiler", 76.5);
	check_at(&f, "phase_time_ms", 10, "phase=bwd,source=flops_profiler", 125);
	check_at(&f, "phase_time_ms", 10, "phase=step,source=flops_profiler", 0.3405);
	check_at(&f, "phase_time_ms", 10, "phase=iter,source=flops_profiler", 201.84);
	check_at(&f, "tflops_per_gpu", 10, "source=flops_profiler", 29.75);
	check_at(&f, "throughput_samples_per_s", 10, "source=flops_profiler", 158.5);
	/* The tables by module are none of it. */
	assert_int_equal(found_count(&f, "phase_time_ms"), 4);
	findings_free(&f);
}

static void test_megatron_ranks(void **state)
{
	static const char text[] =
		" iteration 3/ 10 | consumed samples: 96 | elapsed time per iteration (ms): 500.0 | "
		"global batch size: 32 |\n"
		"times across ranks (ms):\n"
		"  forward-backward:\n"
		"     rank  0: 410.25\n"
		"other: 5\n"
		"     rank  1: 430.5\n"
		"  batch-generator:\n"
		"     rank  0: 7.5\n"
		"     rank  1: 9.";
	struct findings f = findings_text(&probe_megatron, text);

	(void)state;
	check_at(&f, "phase_time_ms", 3, "phase=forward-backward", 410.25);
	assert_int_equal(found_nth(&f, "phase_time_ms", 1)->rank, 1);
	assert_true(found_nth(&f, "phase_time_ms", 1)->value == 430.5);
	check_at(&f, "data_wait_ms", 3, NULL, 7.5);
	assert_int_equal(found_count(&f, "phase_time_ms"), 3);
	check_at(&f, "consumed_samples", 3, NULL, 96);
	check_at(&f, "samples_per_step", 3, NULL, 32);
	findings_free(&f);
}

static void test_hf_tables(void **state)
{
	struct findings f = findings_fixture(&probe_hf_trainer, "hf-tables.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "train_loss_mean", -1, NULL, 2.7551);
	check_at(&f, "throughput_samples_per_s", -1, NULL, 1.088);
	check_at(&f, "val_loss", -1, NULL, 2.5625);
	findings_free(&f);
	/* What the dict said is not said again. */
	f = findings_text(&probe_hf_trainer, "{'train_runtime': 9.5, 'train_loss': 2.75}\n"
					     "***** train metrics *****\n  train_loss = 2.7\n");
	assert_int_equal(found_count(&f, "train_loss_mean"), 1);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nemo),
		cmocka_unit_test(test_redrawn),
		cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_lightning),
		cmocka_unit_test(test_lightning_bars),
		cmocka_unit_test(test_nemo_versions),
		cmocka_unit_test(test_titan_validation),
		cmocka_unit_test(test_torchtune),
		cmocka_unit_test(test_llmc),
		cmocka_unit_test(test_llmc_old),
		cmocka_unit_test(test_nanochat),
		cmocka_unit_test(test_modded_nanogpt),
		cmocka_unit_test(test_bar_step),
		cmocka_unit_test(test_deepspeed_comms),
		cmocka_unit_test(test_deepspeed_profile),
		cmocka_unit_test(test_hf_tables),
		cmocka_unit_test(test_megatron_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
