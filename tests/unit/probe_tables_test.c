/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of metrics that are no logs: CSV, trainer_state.json, DLIO's JSON, aliases in JSON lines.
 */
#include "tests/unit/probe_check.h"

extern const struct probe probe_metrics_csv, probe_hf_state, probe_dlio, probe_dlio_log,
	probe_metrics_jsonl;

static void test_csv(void **state)
{
	struct findings f = findings_fixture(&probe_metrics_csv, "metrics.csv");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "loss", 9, NULL, 1.25);
	check_at(&f, "val_loss", 9, NULL, 1.5);
	check_missing(&f, "loss", 19, NULL, "nan");
	check_at(&f, "mfu_pct", 19, NULL, 41.5);
	check_at(&f, "loss", 29, NULL, 0.875); /* not 0.75 of the short row */
	check_at(&f, "val_loss", 29, NULL, 1.25);
	assert_int_equal(found_count(&f, "loss"), 3);
	assert_null(found_nth(&f, "epoch", 0));
	assert_non_null(strstr(f.detail.data, "2 bad lines, the first is line 2"));
	findings_free(&f);
	f = findings_text(&probe_metrics_csv, "\xef\xbb\xbfstep,lr\r\n0,0.5\r\n1,1e-3\r\n2,0.0");
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "lr", 1, NULL, 0.001);
	assert_int_equal(found_count(&f, "lr"), 2);
	findings_free(&f);
	f = findings_text(&probe_metrics_csv, "time,value\n1,2\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	assert_int_equal(score_text(&probe_metrics_csv, "step,loss\n1,2\n"), 85);
	assert_int_equal(score_text(&probe_metrics_csv, "a step, a loss\n1,2\n"), 0);
}

/* DeepSpeed's monitor: what it calls a step counts samples. */
static void test_csv_samples(void **state)
{
	static const char text[] = "step,train_loss\n64,2.5\n";
	struct probe_context c = {.file = "out/Train_Samples_train_loss.csv"};
	struct findings f = findings_of(&probe_metrics_csv, &c, text, strlen(text), 0);

	(void)state;
	check_at(&f, "loss", -1, NULL, 2.5);
	findings_free(&f);
}

static void test_state(void **state)
{
	struct findings f = findings_fixture(&probe_hf_state, "hf-state.json");

	(void)state;
	check_at(&f, "loss", 16, NULL, 2.9375);
	check_at(&f, "grad_norm", 16, NULL, 0.9375);
	findings_free(&f);
	f = findings_text(&probe_hf_state,
			  "{\"log_history\": [{\"loss\": 2.5, \"epoch\": 1.0, \"step\": 32},\n"
			  "{\"eval_loss\": 2.75, \"step\": 32, \"grad_norm\": null},\n"
			  "{\"train_loss\": 2.625, \"train_samples_per_second\": 1.5,\n"
			  "\"train_steps_per_second\": 0.5, \"step\": 32}"
			  "]}");
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 32, NULL, 2.5);
	check_at(&f, "val_loss", 32, NULL, 2.75);
	check_missing(&f, "grad_norm", 32, NULL, "nan");
	check_at(&f, "train_loss_mean", -1, NULL, 2.625);
	check_at(&f, "throughput_samples_per_s", -1, NULL, 1.5);
	assert_int_equal(found_nth(&f, "val_loss", 0)->line, 2);
	findings_free(&f);
	f = findings_text(&probe_hf_state,
			  "{\"log_history\": [{\"loss\": 2.5, \"step\": 1}, {\"lo");
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "loss", 1, NULL, 2.5);
	findings_free(&f);
	f = findings_text(&probe_hf_state, "{\"loss\": 2.5}");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* What Weights & Biases exports: a chart, and a run's history. */
static void test_exports(void **state)
{
	struct findings f = findings_text(
		&probe_metrics_csv,
		"\"Step\",\"a - b-3 - train/loss\",\"a - b-3 - train/loss__MIN\",\"a - b-3 - "
		"train/loss__MAX\",\"c-4 - _step\",\"c-4 - train/loss\"\n"
		"\"9\",\"1.25\",\"1.0\",\"1.5\",\"9\",\"\"\n\"10\",\"\",\"\",\"\",\"10\",\"1.75\"\n");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(f.n, 2);
	check_at(&f, "loss", 9, "run=a - b-3", 1.25);
	check_at(&f, "loss", 10, "run=c-4", 1.75);
	findings_free(&f);
	f = findings_text(&probe_metrics_csv,
			  ",_step,_runtime,_timestamp,train/loss,train/global_step,eval/loss\n"
			  "0,0,12.5,1700000000.5,2.5,10,\n1,1,22.5,1700000010.5,,20,2.25\n");
	check_status(&f, PROBE_OK);
	assert_int_equal(f.n, 2);
	check_at(&f, "loss", 10, NULL, 2.5);
	check_at(&f, "val_loss", 20, NULL, 2.25);
	findings_free(&f);
	f = findings_text(&probe_metrics_csv, "Wall time,Step,Value\n1.5,2,3\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	/* Lines of LLaMA-Factory, torchtune and of a history. */
	f = findings_text(
		&probe_metrics_jsonl,
		"{\"current_steps\": 5, \"total_steps\": 42, \"eval_loss\": 1.5, \"elapsed_time\": "
		"\"0:00:59\"}\n"
		"{\"step\": 6, \"current_steps\": 7, \"tokens_per_second_per_gpu\": 57.5, "
		"\"peak_memory_alloc\": 12.25}\n"
		"{\"train/loss\": 2.5, \"_step\": 8, \"_runtime\": 10.5}\n");
	check_status(&f, PROBE_OK);
	check_at(&f, "val_loss", 5, NULL, 1.5);
	check_at(&f, "eval_loss", 5, NULL, 1.5);
	check_at(&f, "throughput_tokens_per_s_per_gpu", 6, NULL, 57.5);
	check_at(&f, "mem_peak_allocated_gib", 6, NULL, 12.25);
	check_at(&f, "loss", 8, NULL, 2.5);
	assert_null(found_nth(&f, "_runtime", 0));
	assert_null(found_nth(&f, "current_steps", 0));
	findings_free(&f);
}

static void test_dlio_summary(void **state)
{
	struct findings f = findings_fixture(&probe_dlio, "dlio-summary.json");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "dlio.accelerators", "4");
	check_at(&f, "dlio_au_pct", -1, NULL, 89.75);
	check_at(&f, "throughput_samples_per_s", -1, NULL, 21);
	check_at(&f, "loader_bytes_per_s", -1, NULL, 250.5 * 1048576);
	findings_free(&f);
	f = findings_fixture(&probe_dlio, "dlio-epochs.json");
	check_status(&f, PROBE_OK);
	check_at(&f, "epoch_time_s", -1, "epoch=1,block=block1", 32.5);
	assert_true(found_nth(&f, "epoch_time_s", 1)->value == 33.25);
	assert_string_equal(found_nth(&f, "epoch_time_s", 1)->labels, "epoch=1");
	assert_true(found_nth(&f, "epoch_time_s", 3)->value == 31.75);
	assert_int_equal(found_count(&f, "epoch_time_s"), 4);
	findings_free(&f);
}

static void test_dlio_steps(void **state)
{
	struct findings f = findings_fixture(&probe_dlio, "dlio-output.json");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "data_wait_ms", 0, NULL, 2500);
	check_at(&f, "step_time_ms", 0, NULL, 5500);
	check_at(&f, "data_wait_ms", 1, NULL, 12.5);
	check_at(&f, "data_wait_ms", 2, NULL, 250);
	check_at(&f, "step_time_ms", 2, NULL, 1500);
	assert_null(found_nth(&f, "throughput_samples_per_s", 0)); /* that of one rank */
	check_at(&f, "dlio_au_pct", -1, "epoch=1,block=block1", 99.25);
	check_missing(&f, "dlio_au_pct", -1, "epoch=2,block=block1", "nan");
	findings_free(&f);
	f = findings_text(&probe_dlio, "{\"1\": {\"load\": {\"block1\": [2.5, 0.0");
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "data_wait_ms", 0, NULL, 2500);
	findings_free(&f);
	f = findings_text(&probe_dlio, "{\"a\": 1}");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* Evaluations and checkpoints are none of training's steps and blocks. */
static void test_dlio_phases(void **state)
{
	struct findings f = findings_text(
		&probe_dlio,
		"{\"1\": {\"load\": {\"block1\": [0.5], \"eval\": [9.0]}, \"proc\": {\"eval\": "
		"[9.5], \"block1\": [1.5]}, \"au\": {\"eval\": 50.0, \"block1\": 97.5}}}");

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(f.n, 3);
	check_at(&f, "data_wait_ms", 0, NULL, 500);
	check_at(&f, "step_time_ms", 0, NULL, 1500);
	check_at(&f, "dlio_au_pct", -1, "epoch=1,block=block1", 97.5);
	findings_free(&f);
	f = findings_text(&probe_dlio,
			  "{\"1\": {\"block1\": {\"duration\": \"4.5\"}, \"eval\": {\"duration\": "
			  "\"2.0\"}, \"save_ckpt1\": {\"duration\": 1.5, \"throughput\": 2.0}, "
			  "\"load_ckpt1\": {\"duration\": 2.5}}}");
	check_status(&f, PROBE_OK);
	assert_int_equal(f.n, 2);
	check_at(&f, "epoch_time_s", -1, "epoch=1,block=block1", 4.5);
	check_at(&f, "ckpt_time_s", -1, "epoch=1,block=save_ckpt1", 1.5);
	findings_free(&f);
}

static void test_dlio_log(void **state)
{
	struct findings f = findings_fixture(&probe_dlio_log, "dlio-log.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "data_wait_ms", 1, NULL, 250);
	check_at(&f, "step_time_ms", 1, NULL, 750);
	assert_int_equal(found_nth(&f, "data_wait_ms", 1)->rank, 1);
	check_at(&f, "step_time_ms", 2, NULL, 625);
	check_at(&f, "data_wait_ms", 3, NULL, 1500); /* the first of the second epoch */
	assert_int_equal(found_count(&f, "step_time_ms"), 2);
	check_at(&f, "epoch_time_s", -1, "epoch=1,block=block1", 32.5);
	assert_true(found_nth(&f, "epoch_time_s", 1)->value == 35.75);
	assert_string_equal(found_nth(&f, "epoch_time_s", 1)->labels, "epoch=1");
	check_at(&f, "epoch_time_s", -1, "epoch=2", 31);
	check_at(&f, "dlio_au_pct", -1, "epoch=1,block=block1", 97.25);
	check_at(&f, "throughput_samples_per_s", -1, "epoch=1,block=block1", 19.5);
	check_at(&f, "ckpt_time_s", -1, "epoch=1", 1.5);
	assert_true(found_nth(&f, "dlio_au_pct", 1)->value == 96.5);
	assert_true(found_nth(&f, "throughput_samples_per_s", 1)->value == 19.25);
	check_at(&f, "loader_bytes_per_s", -1, "", 250.5 * 1048576);
	assert_true(found_nth(&f, "ckpt_time_s", 1)->value == 1.75);
	check_fact(&f, "dlio.accelerators", "2");
	assert_int_equal(found_count(&f, "dlio_au_pct"), 2);
	findings_free(&f);
	f = findings_text(&probe_dlio_log, "[METRIC] Training Throughput (samples/second): 19.");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

static void test_aliases(void **state)
{
	struct findings f = findings_text(
		&probe_metrics_jsonl,
		"{\"step\":4,\"time_metrics/data_loading(%)\":2.5,\"mfu(%)\":40.5,"
		"\"time_metrics/end_to_end(s)\":0.25,\"memory/num_alloc_retries\":3,\"a/b\":1}\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "data_wait_ratio", 4, NULL, 0.025);
	check_at(&f, "mfu_pct", 4, NULL, 40.5);
	check_at(&f, "step_time_ms", 4, NULL, 250);
	check_at(&f, "alloc_retries", 4, NULL, 3);
	assert_int_equal(f.n, 4);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv),        cmocka_unit_test(test_csv_samples),
		cmocka_unit_test(test_state),      cmocka_unit_test(test_dlio_summary),
		cmocka_unit_test(test_dlio_steps), cmocka_unit_test(test_dlio_phases),
		cmocka_unit_test(test_dlio_log),   cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_exports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
