/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What follows from a trial's figures, and the sentences on those that contradict. */
#include "tests/unit/check.h"

#include <math.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/derived.h"
#include "tests/unit/near.h"

#define GPU "NVIDIA A100-SXM4-80GB"

static void give(struct trial_result *t, const char *metric, double v)
{
	trial_result_metric(t, metric, "mean", "", v);
}

static double got(const struct trial_result *t, const char *metric)
{
	return trial_result_get(t, metric, "mean");
}

/* 64 devices, a batch of 512 sequences of 2,048 tokens in 20 s. */
static struct recipe job(void)
{
	struct recipe r = {
		.workload.model = {.params = 13e9, .seq_length = 2048, .dtype = FLOPS_BF16},
		.workload.scaling = {.gpus = 8, .samples_per_s = 3.5}};

	r.resources.nodes = 8;
	r.resources.gpus_per_node = 8;
	r.budget.gpu_hour_price = 2.5;
	return r;
}

static void test_everything_that_follows(void **state)
{
	const struct recipe r = job();
	struct trial_result t = {.wall_us = INT64_C(1800) * 1000000};
	char *notes;

	(void)state;
	give(&t, "step_time_ms", 20000);
	give(&t, "samples_per_step", 512);
	give(&t, "data_wait_ms", 3000);
	give(&t, "gpu_power_w", 600);
	give(&t, "mem_peak_allocated_gib", 60);
	give(&t, "mem_peak_reserved_gib", 75);
	notes = derived_metrics(&r, GPU, 0, &t);
	assert_null(notes);
	assert_near(got(&t, "throughput_samples_per_s"), 25.6, 1e-9);
	assert_near(got(&t, "throughput_tokens_per_s"), 25.6 * 2048, 1e-6);
	assert_near(got(&t, "throughput_tokens_per_s_per_gpu"), 819.2, 1e-9);
	assert_near(got(&t, "mfu_pct"), 100 * 819.2 * 6 * 13e9 / 312e12, 1e-9);
	assert_near(got(&t, "hfu_pct"), got(&t, "mfu_pct"), 1e-9);
	assert_near(got(&t, "energy_per_sample_j"), 1500, 1e-9);
	assert_near(got(&t, "data_wait_ratio"), 0.15, 1e-12);
	assert_near(got(&t, "mem_fragmentation_ratio"), 0.2, 1e-12);
	/* 25.6 / 64 of 3.5 / 8 */
	assert_near(got(&t, "scaling_efficiency_pct"), 100 * 0.4 / 0.4375, 1e-9);
	assert_near(trial_result_get(&t, "trial_gpu_hours", "value"), 32, 1e-9);
	assert_near(trial_result_get(&t, "trial_cost", "value"), 80, 1e-9);
	trial_result_done(&t);
}

/* What the log says stays, and without devices nothing is told a device. */
static void test_told_and_unknown(void **state)
{
	struct recipe r = {0};
	struct trial_result t = {.wall_us = 1000000};
	char *notes;

	(void)state;
	give(&t, "step_time_ms", 100);
	give(&t, "data_wait_ms", 250); /* several workers wait at once */
	give(&t, "throughput_samples_per_s", 31);
	notes = derived_metrics(&r, NULL, 0, &t);
	assert_null(notes);
	assert_near(got(&t, "throughput_samples_per_s"), 31, 0);
	assert_near(got(&t, "data_wait_ratio"), 1, 0);
	assert_true(isnan(got(&t, "trial_gpu_hours")));
	assert_true(isnan(got(&t, "trial_cost")));
	assert_true(isnan(got(&t, "scaling_efficiency_pct")));
	assert_true(isnan(got(&t, "mfu_pct")));
	trial_result_done(&t);
	/* devices that were seen, for a recipe that asks for none; no price */
	t = (struct trial_result){.wall_us = INT64_C(3600) * 1000000};
	notes = derived_metrics(&r, GPU, 2, &t);
	assert_null(notes);
	assert_near(got(&t, "trial_gpu_hours"), 2, 1e-12);
	assert_true(isnan(got(&t, "trial_cost")));
	trial_result_done(&t);
}

/* 320 samples/s of 2,048 tokens on 64 A100 are 256 % MFU, whatever the log says. */
static void test_what_cannot_be_is_a_sentence_and_no_number(void **state)
{
	const struct recipe r = job();
	struct trial_result t = {.wall_us = 1};
	char *notes;

	(void)state;
	give(&t, "throughput_samples_per_s", 320);
	give(&t, "mfu_pct", 38);
	notes = derived_metrics(&r, GPU, 0, &t);
	assert_non_null(notes);
	assert_contains(notes, "the log says an MFU of 38 %");
	assert_contains(notes, "mfu_pct comes to 256");
	assert_near(got(&t, "mfu_pct"), 38, 0);
	assert_true(isnan(got(&t, "hfu_pct")));
	free(notes);
	trial_result_done(&t);
	t = (struct trial_result){.wall_us = 1};
	give(&t, "step_time_ms", 2100);
	give(&t, "samples_per_step", 512);
	give(&t, "throughput_samples_per_s", 320);
	notes = derived_metrics(&r, NULL, 0, &t);
	assert_non_null(notes);
	assert_contains(notes, "throughput_samples_per_s is 320");
	assert_true(isnan(got(&t, "throughput_samples_per_s")));
	assert_true(isnan(got(&t, "throughput_tokens_per_s")));
	assert_near(got(&t, "step_time_ms"), 2100, 0);
	free(notes);
	trial_result_done(&t);
	/* a log's own MFU is no better; what follows from the tokens takes its place */
	t = (struct trial_result){.wall_us = 1};
	give(&t, "mfu_pct", 120);
	trial_result_metric(&t, "mfu_pct", "p95", "", 121);
	give(&t, "throughput_samples_per_s", 25.6);
	notes = derived_metrics(&r, GPU, 0, &t);
	assert_non_null(notes);
	assert_contains(notes, "mfu_pct comes to 120");
	assert_near(got(&t, "mfu_pct"), 100 * 819.2 * 6 * 13e9 / 312e12, 1e-9);
	assert_true(isnan(trial_result_get(&t, "mfu_pct", "p95")));
	free(notes);
	trial_result_done(&t);
}

static struct trial_result told(int slot, double mfu, double rate)
{
	struct trial_result t = {.slot = slot, .kind = SLOT_TIMED, .state = TRIAL_OK};

	give(&t, "mfu_pct", mfu);
	give(&t, "throughput_samples_per_s", rate);
	return t;
}

static void test_trials_of_one_model_contradict_each_other(void **state)
{
	struct trial_result v[] = {
		{.kind = SLOT_WARMUP}, told(1, 38, 320), told(2, 52, 410), told(3, 48.7, 410)};
	char *text = derived_contradiction(v, 2, &v[2]);

	(void)state;
	assert_non_null(text);
	assert_contains(text, "against slot 1: MFU goes from 38 to 52 %");
	free(text);
	assert_null(derived_contradiction(v, 3, &v[3]));
	assert_null(derived_contradiction(v, 1, &v[2]));
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		trial_result_done(&v[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_that_follows),
		cmocka_unit_test(test_told_and_unknown),
		cmocka_unit_test(test_what_cannot_be_is_a_sentence_and_no_number),
		cmocka_unit_test(test_trials_of_one_model_contradict_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
