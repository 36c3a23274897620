/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an agent's files to trials: what is whole counts, what is not makes the attempt void with a
 * reason that names the file, and a workload is charged only for what it did itself.
 */
#include "tests/unit/attempt.h"

#include <math.h>
#include <unistd.h>

#include "tests/unit/near.h"

#define RECIPE "tests/fixtures/recipes/fake.lua"

static void set_text(char **where, const char *text)
{
	free(*where);
	*where = text ? xstrdup(text) : NULL;
}

/* The attempt is void, and its reason says what is asked for. */
static void assert_void(struct attempt *a, const char *reason)
{
	struct err e = {0};

	assert_ok(attempt_ingest(a, &e));
	assert_false(a->files.complete);
	assert_non_null(a->files.reason);
	assert_contains(a->files.reason, reason);
}

static void assert_complete(struct attempt *a)
{
	struct err e = {0};

	assert_ok(attempt_ingest(a, &e));
	if (!a->files.complete)
		fail_msg("not complete: %s", a->files.reason);
	assert_null(a->files.reason);
	assert_int_equal(a->files.n, ATTEMPT_SLOTS);
}

/* The attempt counts, and the trial of slot 2 is a failure of its arm. */
static void assert_failed(struct attempt *a, const char *reason)
{
	assert_complete(a);
	assert_int_equal(a->files.trials[1].state, TRIAL_OK);
	assert_int_equal(a->files.trials[2].state, TRIAL_FAILED);
	assert_contains(a->files.trials[2].reason, reason);
	assert_string_equal(a->files.trials[2].log_path, "blocks/1.1/t02/out");
}

static void test_complete_attempt(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	const struct trial_result *t;

	(void)state;
	attempt_write(a);
	assert_complete(a);
	assert_int_equal(strlen(a->files.hash), 32);
	assert_int_equal(a->files.nodes.n, 1);
	assert_string_equal(a->files.nodes.v[0], "n1");
	t = &a->files.trials[2];
	assert_int_equal(t->slot, 2);
	assert_int_equal(t->arm, ATTEMPT_ARM_B);
	assert_int_equal(t->state, TRIAL_OK);
	assert_near(trial_result_get(t, "throughput_samples_per_s", "mean"), 110, 1e-9);
	assert_near(trial_result_get(t, "loss", "last"), 1, 1e-9);
	assert_near(trial_result_get(t, "trial_wall_s", "value"), 1, 1e-9);
	assert_near(trial_result_get(t, "trial_maxrss_mib", "value"), 2, 1e-9);
	assert_int_equal(a->files.trials[0].n_metrics, 0); /* a warm-up run is not read */
	attempt_free(a);
}

static void test_without_a_manifest_there_is_nothing(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	struct err e = {0};

	(void)state;
	assert_int_equal(attempt_ingest(a, &e), -ERR_NOT_FOUND);
	attempt_free(a);
}

static void test_the_same_bytes_have_the_same_hash_and_others_another(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	char first[33];

	(void)state;
	attempt_write(a);
	assert_complete(a);
	memcpy(first, a->files.hash, sizeof first);
	assert_complete(a);
	assert_string_equal(a->files.hash, first);
	json_set_i64(a->rec[1], "wall_us", 2000000);
	attempt_write(a);
	assert_complete(a);
	assert_string_not_equal(a->files.hash, first);
	attempt_free(a);
}

static void test_a_partial_attempt_is_void_with_the_agents_reason(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	json_set_text(a->done, "state", "partial");
	json_set_text(a->done, "reason", "the deadline has passed");
	attempt_write(a);
	assert_void(a, "the deadline has passed");
	attempt_free(a);
}

static void test_a_damaged_manifest(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	attempt_write(a);
	attempt_put(a, "done.json", "{\"format\": \"fettle.done/1\", \"sl");
	assert_void(a, "done.json");
	attempt_put(a, "done.json", "");
	assert_void(a, "done.json");
	attempt_put(a, "done.json", "[1, 2, 3]");
	assert_void(a, "format is not fettle.done/1");
	json_set_text(a->done, "format", "fettle.done/7");
	attempt_write_done(a);
	assert_void(a, "format is not fettle.done/1");
	attempt_free(a);
}

static void test_a_cut_record(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	_cleanup_free_ char *path = attempt_path(a, "t01.json");

	(void)state;
	attempt_write(a);
	assert_int_equal(truncate(path, 100), 0);
	assert_void(a, "t01.json");
	assert_int_equal(unlink(path), 0);
	assert_void(a, "t01.json");
	attempt_free(a);
}

static void test_a_record_that_is_not_the_one_in_the_manifest(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	_cleanup_free_ char *text = NULL;

	(void)state;
	attempt_write(a);
	json_set_i64(a->rec[2], "wall_us", 1);
	text = json_print(a->rec[2], true);
	attempt_put(a, "t02.json", text);
	assert_void(a, "t02.json: its hash is not the one in done.json");
	attempt_free(a);
}

static void test_a_record_of_another_format_attempt_slot_or_state(void **state)
{
	static const struct {
		const char *key, *value, *reason;
	} cases[] = {
		{"format", "fettle.trial/9", "t01.json: format is not fettle.trial/1"},
		{"token", "fettle:0123abcd:a6", "t01.json: its token is that of another attempt"},
		{"state", "splendid", "t01.json: state \"splendid\" is no word of a trial"},
		{"state", "void", "trial of slot 1 is void: no reason given"},
		{"state", "lost", "trial of slot 1 is lost"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct attempt *a = attempt_new(RECIPE);

		json_set_text(a->rec[1], cases[i].key, cases[i].value);
		attempt_write(a);
		assert_void(a, cases[i].reason);
		attempt_free(a);
	}
}

static void test_a_manifest_of_another_attempt(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	json_set_text(a->done, "token", "fettle:0123abcd:a6");
	attempt_write(a);
	assert_void(a, "done.json: its token is that of another attempt");
	attempt_free(a);
}

static void test_a_slot_that_is_missing(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	struct json *slots = json_array();

	(void)state;
	attempt_write(a);
	attempt_list(a, slots, 0);
	attempt_list(a, slots, 1);
	json_set(a->done, "slots", slots);
	attempt_write_done(a);
	assert_void(a, "done.json: it lists 2 slots, 3 were planned");
	attempt_free(a);
}

static void test_a_slot_that_is_there_twice(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	struct json *slots = json_array();

	(void)state;
	attempt_write(a);
	attempt_list(a, slots, 0);
	attempt_list(a, slots, 1);
	attempt_list(a, slots, 1);
	json_set(a->done, "slots", slots);
	attempt_write_done(a);
	assert_void(a, "slot 2 was planned and is missing");
	attempt_free(a);
}

/* One slot more than planned, with a record in good order. */
static void test_a_slot_that_was_never_planned(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	a->plan.n_slots = 2;
	attempt_write(a);
	assert_void(a, "it lists 3 slots, 2 were planned");
	attempt_free(a);
}

static void test_an_arm_repeat_or_kind_that_was_not_planned(void **state)
{
	static const struct {
		const char *key;
		int64_t value;
	} cases[] = {{"arm", 99}, {"arm", ATTEMPT_ARM_A}, {"repeat", 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct attempt *a = attempt_new(RECIPE);

		json_set_i64(a->rec[2], cases[i].key, cases[i].value);
		attempt_write(a);
		assert_void(a, "t02.json: arm");
		assert_contains(a->files.reason, "planned were arm 12, repeat 0, timed");
		attempt_free(a);
	}
	struct attempt *a = attempt_new(RECIPE);

	json_set_text(a->rec[2], "kind", "warmup");
	attempt_write(a);
	assert_void(a, "planned were arm 12, repeat 0, timed");
	attempt_free(a);
}

static void test_a_record_under_the_name_of_another_slot(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	json_set_i64(a->rec[2], "slot", 1);
	attempt_write(a);
	assert_void(a, "t02.json: it is the record of another slot");
	attempt_free(a);
}

/* Output that was lost or cut on the way is nobody's failure. */
static void test_output_that_is_missing_or_not_what_was_recorded(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	_cleanup_free_ char *out = attempt_path(a, "t02/out"),
			    *metrics = attempt_path(a, "t02/metrics.jsonl");

	(void)state;
	attempt_write(a);
	attempt_put(a, "t02/out", "hellO\n");
	assert_void(a, "t02/out: its hash is not the one in the trial's record");
	assert_int_equal(truncate(out, 3), 0);
	assert_void(a, "t02/out has 3 bytes, its record says 6");
	assert_int_equal(unlink(out), 0);
	assert_void(a, "t02/out is not there");
	attempt_put(a, "t02/out", "hello\n");
	assert_complete(a);
	assert_int_equal(unlink(metrics), 0);
	assert_void(a, "t02/metrics.jsonl is not there");
	attempt_free(a);
}

static void test_a_trial_that_failed_is_charged_to_its_arm(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	json_set_text(a->rec[2], "state", "failed");
	json_set_text(a->rec[2], "reason", "exited with 1");
	json_set_i64(a->rec[2], "exit", 1);
	attempt_write(a);
	assert_failed(a, "exited with 1");
	assert_int_equal(a->files.trials[2].exit_status, 1);
	attempt_free(a);
}

/* The report of a failure names what the output says of it. */
static void test_why_a_trial_failed(void **state)
{
	static const struct {
		const char *out, *reason;
	} t[] = {
		{"iter 1: loss 2.5, time 5ms, mfu 1%\n"
		 "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a "
		 "total capacity of 9.00 GiB of which 1.00 GiB is free. Of the allocated memory 7.00 "
		 "GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.\n",
		 "exited with 1; its output, line 2: out of device memory: 8.00 GiB more was asked "
		 "for"},
		{"slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks "
		 "have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory\n",
		 "exited with 1; its output, line 1: out of host memory: Slurm says OUT_OF_MEMORY "
		 "7.0"},
		{"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5) ran for 9 ms\n",
		 "exited with 1; its output, line 1: a collective timed out (PyTorch's watchdog)"},
		{"srun: error: n1: task 0: Exited with exit code 1\n", "exited with 1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct attempt *a = attempt_new(RECIPE);

		set_text(&a->out[2], t[i].out);
		json_set_text(a->rec[2], "state", "failed");
		json_set_text(a->rec[2], "reason", "exited with 1");
		attempt_write(a);
		assert_complete(a);
		assert_string_equal(a->files.trials[2].reason, t[i].reason);
		attempt_free(a);
	}
	/* One that ended well in its own eyes, and measured nothing. */
	struct attempt *a = attempt_new(RECIPE);

	set_text(&a->metrics[2], NULL);
	set_text(&a->out[2], "CUDA out of memory. Tried to allocate 2.00 GiB\n");
	attempt_write(a);
	assert_failed(a, "no value of throughput_samples_per_s");
	assert_contains(a->files.trials[2].reason, "out of device memory: 2.00 GiB");
	attempt_free(a);
}

/* What follows from others is stored as if it had been printed, and what cannot be is told. */
static void test_derived(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	const struct trial_result *t;

	(void)state;
	a->recipe->workload.model = (struct model_shape){
		.params = 1e9, .seq_length = 1000, .dtype = FLOPS_BF16};
	a->recipe->resources.gpus_per_node = 2;
	attempt_put(a, "gpu.csv",
		    "timestamp, index, name, power.draw [W]\n"
		    "2026/11/29 11:30:29.855, 0, NVIDIA A100-SXM4-80GB, 400.00 W\n"
		    "2026/11/29 11:30:29.855, 1, NVIDIA A100-SXM4-80GB, 200.00 W\n");
	for (int i = 0; i < ATTEMPT_SLOTS; i++) {
		json_set_i64(a->rec[i], "window_start_us", 1);
		json_set_i64(a->rec[i], "window_end_us", 1800000000000000);
		set_text(&a->metrics[i],
			 "{\"step\": 1, \"step_time_ms\": 900, \"samples_per_step\": 16}\n"
			 "{\"step\": 2, \"step_time_ms\": 500, \"samples_per_step\": 16, "
			 "\"mem_peak_allocated_gib\": 6, \"mem_peak_reserved_gib\": 8}\n");
	}
	set_text(&a->metrics[2], "{\"step\": 1, \"step_time_ms\": 900, \"samples_per_step\": 16}\n"
				 "{\"step\": 2, \"step_time_ms\": 5, \"samples_per_step\": 16, "
				 "\"throughput_samples_per_s\": 32}\n");
	attempt_write(a);
	assert_complete(a);
	t = &a->files.trials[1];
	assert_true(trial_result_get(t, "throughput_samples_per_s", "mean") == 32);
	assert_true(trial_result_get(t, "throughput_tokens_per_s", "mean") == 32000);
	assert_true(trial_result_get(t, "throughput_tokens_per_s_per_gpu", "mean") == 16000);
	/* 16,000 tokens x 6e9 / 312e12 */
	assert_true(fabs(trial_result_get(t, "mfu_pct", "mean") - 30.769) < 1e-3);
	assert_true(trial_result_get(t, "hfu_pct", "mean") ==
		    trial_result_get(t, "mfu_pct", "mean"));
	/* 300 W x 2 / 32 a second */
	assert_true(trial_result_get(t, "energy_per_sample_j", "mean") == 18.75);
	assert_true(trial_result_get(t, "mem_fragmentation_ratio", "mean") == 0.25);
	assert_null(t->reason);
	t = &a->files.trials[2];
	assert_contains(t->reason, "16 samples in 5 ms are 3200 a second");
	assert_true(isnan(trial_result_get(t, "throughput_samples_per_s", "mean")));
	assert_int_equal(t->state, TRIAL_FAILED); /* it was the objective */
	attempt_free(a);
	/* 100 times the model: more than the device can do */
	a = attempt_new(RECIPE);
	a->recipe->workload.model = (struct model_shape){
		.params = 1e11, .seq_length = 1000, .dtype = FLOPS_BF16, .gpu = xstrdup("A100")};
	a->recipe->resources.gpus_per_node = 2;
	attempt_write(a);
	assert_complete(a);
	assert_contains(a->files.trials[1].reason, "mfu_pct comes to");
	assert_true(isnan(trial_result_get(&a->files.trials[1], "mfu_pct", "mean")));
	attempt_free(a);
}

/* What did no harm is told all the same; a failure's own reason comes first. */
static void test_what_was_noticed(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	json_set_i64(a->rec[1], "leftovers", 1);
	json_set_i64(a->rec[2], "leftovers", 3);
	json_set_text(a->rec[2], "state", "failed");
	json_set_text(a->rec[2], "reason", "exited with 1");
	attempt_write(a);
	assert_complete(a);
	assert_int_equal(a->files.trials[1].state, TRIAL_OK);
	assert_string_equal(a->files.trials[1].reason,
			    "it left 1 process running, which was ended");
	assert_string_equal(a->files.trials[2].reason,
			    "exited with 1; it left 3 processes running, which were ended");
	attempt_free(a);
}

/* Devices are one for guards and rules, and each for those who look closer. */
static void test_samples_of_devices_are_read(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	const struct trial_result *t;

	(void)state;
	attempt_put(a, "gpu.csv",
		    "timestamp, index, power.draw [W], clocks.current.sm [MHz], "
		    "clocks_event_reasons.active\n"
		    "2026/11/29 11:30:29.855, 0, 400.00 W, 1980 MHz, 0x0000000000000004\n"
		    "2026/11/29 11:30:29.855, 1, 500.00 W, 1800 MHz, 0x0000000000000040\n"
		    "2036/11/29 11:30:29.855, 1, 900.00 W, 100 MHz, 0x0000000000000080\n"
		    "Unable to determine the device handle for GPU1: 0000:18:00.0: GPU is lost.\n");
	json_set_i64(a->rec[2], "window_start_us", 1);
	json_set_i64(a->rec[2], "window_end_us", 1800000000000000);
	attempt_write(a);
	assert_complete(a);
	t = &a->files.trials[2];
	assert_true(trial_result_get(t, "gpu_power_w", "mean") == 450);
	assert_true(trial_result_get(t, "sm_clock_mhz", "min") == 1800);
	assert_true(a->files.quality[2].sm_clock_mhz == 1890);
	assert_true(a->files.quality[2].reasons_known);
	assert_int_equal(a->files.quality[2].clock_reasons, 0x44);
	assert_false(a->files.quality[1].reasons_known);
	/* that it stopped in the middle is told */
	assert_true(a->files.notes.n > 0);
	assert_string_equal(a->files.notes.v[0],
			    "nvidia-smi: Unable to determine the device handle for GPU1: "
			    "0000:18:00.0: GPU is lost.");
	attempt_free(a);
}

static void test_metrics_that_are_absent(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	set_text(&a->metrics[2], NULL);
	attempt_write(a);
	assert_failed(a, "no value of throughput_samples_per_s (mean) in the measured window");
	set_text(&a->metrics[2], "{\"step\": 2, \"loss\": 3}\n{\"step\": 3, \"loss\": 3}\n");
	attempt_write(a);
	assert_failed(a, "no value of throughput_samples_per_s");
	set_text(&a->metrics[2], "no JSON at all\n");
	attempt_write(a);
	assert_failed(a, "no value of throughput_samples_per_s");
	/* only in the warm-up steps: outside the window is not measured */
	set_text(&a->metrics[2], "{\"step\": 1, \"throughput_samples_per_s\": 5}\n");
	attempt_write(a);
	assert_failed(a, "no value of throughput_samples_per_s");
	attempt_free(a);
}

static void test_a_loss_that_is_no_number(void **state)
{
	struct attempt *a = attempt_new(RECIPE);

	(void)state;
	set_text(&a->metrics[2], "{\"step\": 1, \"throughput_samples_per_s\": 5, \"loss\": 1}\n"
				 "{\"step\": 2, \"throughput_samples_per_s\": 5, \"loss\": 1}\n"
				 "{\"step\": 3, \"throughput_samples_per_s\": 5, \"loss\": NaN}\n"
				 "{\"step\": 4, \"throughput_samples_per_s\": 5, \"loss\": NaN}\n");
	attempt_write(a);
	assert_failed(a, "loss is nan at step 3");
	attempt_free(a);
}

static void test_an_objective_that_cannot_be_compared(void **state)
{
	static const char *const values[] = {"0", "-3", "1e300"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct attempt *a = attempt_new(RECIPE);
		char text[200];

		snprintf(text, sizeof text,
			 "{\"step\": 1, \"throughput_samples_per_s\": 5}\n"
			 "{\"step\": 2, \"throughput_samples_per_s\": %s}\n",
			 values[i]);
		set_text(&a->metrics[2], text);
		attempt_write(a);
		assert_failed(a, "throughput_samples_per_s (mean) is");
		attempt_free(a);
	}
}

static const struct effective_value *effective(const struct trial_result *t, const char *key)
{
	for (size_t i = 0; i < t->n_effective; i++)
		if (str_eq(t->effective[i].key, key))
			return &t->effective[i];
	return NULL;
}

static void test_ranks_become_effective_values(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	static const char text[] =
		"[{\"rank\": 0, \"argv\": [\"x\", \"--d\"], \"env\": {\"A\": \"1\"},"
		" \"env_other\": {\"HOME\": \"xxh64:1\"}, \"maps\": [\"/usr/lib/libjemalloc.so.2\"]},"
		" {\"rank\": 3, \"argv\": [\"x\"], \"env\": {\"A\": \"2\"}}]";
	const struct effective_value *v;
	struct json *ranks = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(json_parse("ranks", text, strlen(text), &ranks, &e));
	json_set(a->rec[2], "ranks", ranks);
	attempt_write(a);
	assert_complete(a);
	v = effective(&a->files.trials[2], "env.A");
	assert_string_equal(v->value, "1");
	assert_int_equal(v->rank, 0);
	assert_int_equal(v->level, PROOF_DELIVERED);
	assert_string_equal(effective(&a->files.trials[2], "envhash.HOME")->value, "xxh64:1");
	assert_string_equal(effective(&a->files.trials[2], "argv")->value, "[\"x\",\"--d\"]");
	v = effective(&a->files.trials[2], "maps.libjemalloc.so.2");
	assert_string_equal(v->value, "/usr/lib/libjemalloc.so.2");
	assert_int_equal(v->level, PROOF_EFFECTIVE);
	assert_int_equal(a->files.trials[2].effective[a->files.trials[2].n_effective - 1].rank, 3);
	attempt_free(a);
}

/* The component's own line acknowledges a value; the same line about another value does not. */
static void test_an_acknowledgement_is_found_in_the_output(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	struct knob *k = (struct knob *)recipe_knob(a->recipe, "A");

	(void)state;
	k->proof.log_pattern = xstrdup("^lib: A set to {value}$");
	set_text(&a->out[1], "lib: A set to 1\n");
	set_text(&a->out[2], "noise\nlib: A set to 10\nlib: A set to 1\n");
	attempt_write(a);
	assert_complete(a);
	assert_string_equal(effective(&a->files.trials[2], "ack.A")->value, "lib: A set to 1");
	assert_int_equal(effective(&a->files.trials[2], "ack.A")->level, PROOF_ACKNOWLEDGED);
	assert_null(effective(&a->files.trials[1], "ack.A")); /* the baseline has no knob */
	set_text(&a->out[2], "lib: A set to 10\n");
	attempt_write(a);
	assert_complete(a);
	assert_null(effective(&a->files.trials[2], "ack.A"));
	attempt_free(a);
}

/* A value is text, not a pattern. */
static void test_a_value_is_quoted_in_a_pattern(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	struct knob *k = (struct knob *)recipe_knob(a->recipe, "A");

	(void)state;
	k->proof.log_pattern = xstrdup("A={value};");
	a->hyp.value = (char *)(uintptr_t) "[a.c]";
	set_text(&a->out[2], "A=abc;\n");
	attempt_write(a);
	assert_complete(a);
	assert_null(effective(&a->files.trials[2], "ack.A"));
	set_text(&a->out[2], "A=[a.c];\n");
	attempt_write(a);
	assert_complete(a);
	assert_non_null(effective(&a->files.trials[2], "ack.A"));
	attempt_free(a);
}

/* A pattern that would run for ever on a long line gives up. */
static void test_a_bad_pattern_ends(void **state)
{
	struct attempt *a = attempt_new(RECIPE);
	struct knob *k = (struct knob *)recipe_knob(a->recipe, "A");
	struct buf line = {0};

	(void)state;
	k->proof.log_pattern = xstrdup("(a+)+$x");
	for (int i = 0; i < 5000; i++)
		buf_char(&line, 'a');
	buf_char(&line, '\n');
	set_text(&a->out[2], line.data);
	attempt_write(a);
	assert_complete(a);
	assert_null(effective(&a->files.trials[2], "ack.A"));
	buf_free(&line);
	attempt_free(a);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_complete_attempt),
		cmocka_unit_test(test_without_a_manifest_there_is_nothing),
		cmocka_unit_test(test_the_same_bytes_have_the_same_hash_and_others_another),
		cmocka_unit_test(test_a_partial_attempt_is_void_with_the_agents_reason),
		cmocka_unit_test(test_a_damaged_manifest),
		cmocka_unit_test(test_a_cut_record),
		cmocka_unit_test(test_a_record_that_is_not_the_one_in_the_manifest),
		cmocka_unit_test(test_a_record_of_another_format_attempt_slot_or_state),
		cmocka_unit_test(test_a_manifest_of_another_attempt),
		cmocka_unit_test(test_a_slot_that_is_missing),
		cmocka_unit_test(test_a_slot_that_is_there_twice),
		cmocka_unit_test(test_a_slot_that_was_never_planned),
		cmocka_unit_test(test_an_arm_repeat_or_kind_that_was_not_planned),
		cmocka_unit_test(test_a_record_under_the_name_of_another_slot),
		cmocka_unit_test(test_output_that_is_missing_or_not_what_was_recorded),
		cmocka_unit_test(test_a_trial_that_failed_is_charged_to_its_arm),
		cmocka_unit_test(test_why_a_trial_failed),
		cmocka_unit_test(test_derived),
		cmocka_unit_test(test_what_was_noticed),
		cmocka_unit_test(test_samples_of_devices_are_read),
		cmocka_unit_test(test_metrics_that_are_absent),
		cmocka_unit_test(test_a_loss_that_is_no_number),
		cmocka_unit_test(test_an_objective_that_cannot_be_compared),
		cmocka_unit_test(test_ranks_become_effective_values),
		cmocka_unit_test(test_an_acknowledgement_is_found_in_the_output),
		cmocka_unit_test(test_a_value_is_quoted_in_a_pattern),
		cmocka_unit_test(test_a_bad_pattern_ends),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
