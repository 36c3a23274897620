/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "orchestrator/method/window.h"
#include "tests/unit/near.h"

static void put(struct window *w, const char *metric, int64_t step, double value)
{
	struct probe_sink s = window_sink(w);
	struct probe_value v = {
		.metric = metric, .value = value, .step = step, .t_us = -1, .rank = 0};

	s.value(s.ctx, &v);
}

static void put_missing(struct window *w, const char *metric, int64_t step, const char *why)
{
	struct probe_sink s = window_sink(w);
	struct probe_value v = {
		.metric = metric, .missing = why, .step = step, .t_us = -1, .rank = 0};

	s.value(s.ctx, &v);
}

static void put_at(struct window *w, const char *metric, int64_t t_us, double value)
{
	struct probe_sink s = window_sink(w);
	struct probe_value v = {
		.metric = metric, .value = value, .step = -1, .t_us = t_us, .rank = -1};

	s.value(s.ctx, &v);
}

static void test_warmup_is_left_out_wherever_steps_begin(void **state)
{
	const int64_t first[] = {0, 1, 1000};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct window *w = window_new(2, 3);
		struct trial_result t = {0};

		for (int64_t i = 0; i < 10; i++)
			put(w, "step_time_ms", first[k] + i, i < 2 ? 1000 : (double)i);
		window_emit(w, &t);
		assert_near(trial_result_get(&t, "step_time_ms", "mean"), 3, 1e-12); /* 2, 3, 4 */
		assert_near(trial_result_get(&t, "step_time_ms", "n"), 3, 0);
		assert_near(trial_result_get(&t, "throughput_steps_per_s", "mean"), 1000.0 / 3,
			    1e-9);
		trial_result_done(&t);
		window_free(w);
	}
}

/* Whatever the order, a step is counted when it first appears, and a million of them take no time.
 */
static void test_steps_may_come_in_any_order(void **state)
{
	enum { STEPS = 1000000 };
	struct window *w = window_new(10, 5);
	struct trial_result t = {0};

	(void)state;
	for (int64_t i = 0; i < STEPS; i++)
		put(w, "loss", STEPS - i, i < 10 ? 100 : (double)i);
	for (int64_t i = 0; i < STEPS; i++)
		put(w, "loss", 1 + (i * 7919) % STEPS, 1000); /* all of them again, in any order */
	assert_int_equal(window_steps(w), STEPS);
	window_emit(w, &t);
	assert_near(trial_result_get(&t, "loss", "n"), 5, 0);
	assert_near(trial_result_get(&t, "loss", "mean"), 12, 1e-12); /* 10 .. 14 */
	trial_result_done(&t);
	window_free(w);
}

static void test_ranks_that_repeat_a_step_count_once(void **state)
{
	struct window *w = window_new(0, 0);
	struct trial_result t = {0};

	(void)state;
	for (int64_t i = 0; i < 4; i++)
		for (int rank = 0; rank < 8; rank++)
			put(w, "loss", i, (double)i + rank);
	window_emit(w, &t);
	assert_near(trial_result_get(&t, "loss", "n"), 4, 0);
	assert_near(trial_result_get(&t, "loss", "mean"), 1.5, 1e-12);
	trial_result_done(&t);
	window_free(w);
}

/* A rank that is a few steps behind says nothing new either. */
static void test_ranks_that_lag_behind_count_once(void **state)
{
	struct window *w = window_new(0, 0);
	struct trial_result t = {0};

	(void)state;
	for (int64_t i = 0; i < 10; i++) {
		put(w, "loss", i, (double)i);
		put(w, "step_time_ms", i, 10);
		if (i >= 3)
			put(w, "loss", i - 3, 1000);
	}
	window_emit(w, &t);
	assert_near(trial_result_get(&t, "loss", "n"), 10, 0);
	assert_near(trial_result_get(&t, "loss", "max"), 9, 0);
	assert_near(trial_result_get(&t, "step_time_ms", "n"), 10, 0);
	trial_result_done(&t);
	window_free(w);
}

/* One step at 100/s for 1 s and one at 10/s for 10 s are 200 samples in 11 s, not 55/s. */
static void test_throughput_is_work_over_time(void **state)
{
	struct window *w = window_new(0, 0);
	struct trial_result t = {0};

	(void)state;
	put(w, "throughput_samples_per_s", 1, 100);
	put(w, "step_time_ms", 1, 1000);
	put(w, "throughput_samples_per_s", 2, 10);
	put(w, "step_time_ms", 2, 10000);
	window_emit(w, &t);
	assert_near(trial_result_get(&t, "throughput_samples_per_s", "mean"), 200.0 / 11, 1e-9);
	trial_result_done(&t);
	window_free(w);
}

static void test_data_wait_becomes_a_ratio(void **state)
{
	struct window *w = window_new(0, 0);
	struct trial_result t = {0};

	(void)state;
	for (int64_t i = 0; i < 5; i++) {
		put(w, "step_time_ms", i, 100);
		put(w, "data_wait_ms", i, 12);
	}
	window_emit(w, &t);
	assert_near(trial_result_get(&t, "data_wait_ratio", "mean"), 0.12, 1e-12);
	trial_result_done(&t);
	window_free(w);
}

static void test_nan_loss_is_remembered_with_its_step(void **state)
{
	struct window *w = window_new(1, 0);
	int64_t step = -1;

	(void)state;
	put_missing(w, "loss", 0, "nan"); /* warm-up: outside the window */
	assert_null(window_nonfinite(w, "loss", &step));
	put_missing(w, "loss", 7, "nan");
	assert_string_equal(window_nonfinite(w, "loss", &step), "nan");
	assert_int_equal(step, 7);
	window_free(w);
}

static void test_samples_are_cut_to_the_window(void **state)
{
	struct window *w = window_new(0, 0);
	struct trial_result t = {0};

	(void)state;
	window_bounds(w, 1000, 2000);
	put_at(w, "cpu_user_pct", 999, 1);
	put_at(w, "cpu_user_pct", 1000, 50);
	put_at(w, "cpu_user_pct", 2000, 70);
	put_at(w, "cpu_user_pct", 2001, 99);
	window_emit(w, &t);
	assert_near(trial_result_get(&t, "cpu_user_pct", "mean"), 60, 1e-12);
	trial_result_done(&t);
	window_free(w);
}

static void test_absent_is_not_zero(void **state)
{
	struct window *w = window_new(0, 0);
	struct trial_result t = {0};

	(void)state;
	put_missing(w, "gpu_util_pct", -1, "N/A");
	window_emit(w, &t);
	assert_int_equal(t.n_metrics, 0);
	assert_true(isnan(trial_result_get(&t, "gpu_util_pct", "mean")));
	trial_result_done(&t);
	window_free(w);
}

/* -- curves ---------------------------------------------------------------------------------- */

static struct trial_result curve_of(double batch, int steps, const char *how)
{
	struct window *w = window_new(4, steps);
	struct trial_result t = {0};

	window_keep_curve(w, "loss");
	for (int i = 0; i < 4 + steps + 2; i++) {
		put(w, "loss", 100 + i, 1 + 1.0 / (i + 1)); /* the same step by step */
		put(w, "step_time_ms", 100 + i, 50);
		if (str_eq(how, "rate"))
			put(w, "throughput_samples_per_s", 100 + i, 20 * batch);
		else if (str_eq(how, "consumed"))
			put(w, "consumed_samples", 100 + i, 7e6 + batch * i);
		else
			put(w, how, 100 + i, batch);
	}
	window_emit(w, &t);
	window_emit_curves(w, &t);
	window_free(w);
	return t;
}

static double at(const struct trial_result *t, const char *label)
{
	for (size_t i = 0; i < t->n_metrics; i++)
		if (str_eq(t->metrics[i].metric, "loss") && str_eq(t->metrics[i].stat, "at") &&
		    str_eq(t->metrics[i].labels, label))
			return t->metrics[i].value;
	return NAN;
}

/* 32 steps in all, warm-up too: 32 samples a step end at 1024, 64 at 2048, and both pass 1024. */
static void test_curves_of_different_batch_meet_at_equal_samples(void **state)
{
	static const char *const hows[] = {"rate", "consumed", "samples_per_step"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct trial_result a = curve_of(32, 28, hows[i]), b = curve_of(64, 28, hows[i]);

		assert_near(trial_result_get(&a, "samples_per_step", "mean"), 32, 1e-9);
		assert_near(trial_result_get(&b, "samples_per_step", "mean"), 64, 1e-9);
		/* the mean over the last tenth of 1 + batch / x */
		assert_near(at(&a, "samples=1024"), 1 + 32 * log(1 / 0.9) / 102.4, 1e-4);
		assert_near(at(&b, "samples=1024"), 1 + 64 * log(1 / 0.9) / 102.4, 1e-4);
		assert_true(isnan(at(&a, "samples=2048")));
		assert_false(isnan(at(&b, "samples=2048")));
		trial_result_done(&a);
		trial_result_done(&b);
	}
}

static void test_without_a_batch_there_is_no_curve(void **state)
{
	struct window *w = window_new(0, 3);
	struct trial_result t = {0};

	(void)state;
	window_keep_curve(w, "loss");
	put(w, "loss", 1, 2);
	window_emit_curves(w, &t);
	assert_int_equal(t.n_metrics, 0);
	put(w, "tokens_per_step", 1, 4096);
	window_emit_curves(w, &t);
	assert_near(at(&t, "tokens=4096"), 2, 0);
	trial_result_done(&t);
	window_free(w);
}

/* What goes over a bound is left out, and that is said. */
static void test_bounds_are_said(void **state)
{
	enum { MANY = 8193 };
	struct window *w = window_new(0, 0);
	char name[32];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		assert_false(window_cut(w));
		snprintf(name, sizeof(name), "metric_%d", i);
		put(w, name, -1, i);
	}
	assert_true(window_cut(w));
	window_free(w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_bounds_are_said),
		cmocka_unit_test(test_warmup_is_left_out_wherever_steps_begin),
		cmocka_unit_test(test_steps_may_come_in_any_order),
		cmocka_unit_test(test_ranks_that_repeat_a_step_count_once),
		cmocka_unit_test(test_ranks_that_lag_behind_count_once),
		cmocka_unit_test(test_throughput_is_work_over_time),
		cmocka_unit_test(test_data_wait_becomes_a_ratio),
		cmocka_unit_test(test_nan_loss_is_remembered_with_its_step),
		cmocka_unit_test(test_samples_are_cut_to_the_window),
		cmocka_unit_test(test_absent_is_not_zero),
		cmocka_unit_test(test_curves_of_different_batch_meet_at_equal_samples),
		cmocka_unit_test(test_without_a_batch_there_is_no_curve),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
