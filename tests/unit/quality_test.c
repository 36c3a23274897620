/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of trial quality: they find what was planted, leave noise alone at the stated rate, and do
 * not care which arm a trial belongs to. */
#include "tests/unit/check.h"

#include <math.h>

#include "experiments/quality.h"
#include "orchestrator/base/rng.h"
#include "tests/unit/near.h"

enum { STEPS = 200 };

enum noise { NORMAL, LOGNORMAL, T3, SPIKES, ROUNDED, AR, NOISES };
static const char *const noise_names[] = {
	"normal 2 %",         "lognormal 10 %",       "t3 2 %", "checkpoint spikes, normal 2 %",
	"rounded to 1 in 20", "AR(1) 0.5, normal 2 %"};

static struct quality_settings defaults(void)
{
	struct quality_settings s = {
		.slow_by = 0.1, .drift_by = 0.03, .clocks_by = 0.05, .busy_by = 0.25};

	for (int i = 0; i < QUALITY_RULES; i++)
		s.action[i] = QUALITY_NOTE;
	s.action[QUALITY_FAIL_SLOW] = s.action[QUALITY_THROTTLE] = QUALITY_VOID;
	return s;
}

/* Student's t with 3 degrees of freedom. */
static double t3(struct rng *r)
{
	double a = rng_normal(r), b = rng_normal(r), c = rng_normal(r);

	return rng_normal(r) / sqrt((a * a + b * b + c * c) / 3);
}

static void make(enum noise kind, uint64_t seed, double *v)
{
	struct rng r = rng_at(seed, (uint64_t)kind, 7, 0);
	double ar = 0;

	for (int i = 0; i < STEPS; i++) {
		switch (kind) {
		case NORMAL:
		case SPIKES:
			v[i] = 100 * (1 + 0.02 * rng_normal(&r));
			break;
		case LOGNORMAL:
			v[i] = 100 * exp(0.1 * rng_normal(&r));
			break;
		case T3:
			v[i] = 100 * exp(0.02 * t3(&r));
			break;
		case ROUNDED:
			v[i] = 5 * round(20 + rng_normal(&r));
			break;
		case AR:
		case NOISES:
			ar = 0.5 * ar + sqrt(0.75) * rng_normal(&r);
			v[i] = 100 * (1 + 0.02 * ar);
			break;
		}
		if (kind == SPIKES && i % 50 == 20)
			v[i] *= 8;
	}
}

/* A trial of its own; of all that is optional nothing is known. */
static struct quality_trial trial(double *v, int slot)
{
	return (struct quality_trial){.step_ms = v,
				      .n = STEPS,
				      .steal_pct = NAN,
				      .other_cpu_pct = NAN,
				      .sm_clock_mhz = NAN,
				      .slot = slot};
}

static size_t count(const struct quality_trial *t, size_t n, enum quality_rule rule,
		    enum quality_action action)
{
	struct quality_settings s = defaults();
	struct quality_finding *f = NULL;
	size_t all = quality_judge(&s, t, n, &f), k = 0;

	for (size_t i = 0; i < all; i++)
		k += f[i].rule == rule && f[i].action == action;
	quality_findings_free(f, all);
	return k;
}

/* -- noise ---------------------------------------------------------------------------------- */

/* Stated: at most 1 in 1,000 trials is void for its shape when nothing is wrong, whatever the
 * distribution of independent steps; autocorrelated steps are saved by the size of the change. Of
 * 800 attempts of two trials at most 7 are allowed here: more have p = 0.0003. */
static void stationary_noise_is_left_alone(void **state)
{
	(void)state;
	for (int kind = 0; kind < NOISES; kind++) {
		size_t voids = 0, drifts = 0;

		for (uint64_t i = 0; i < 800; i++) {
			double v[STEPS], other[STEPS];
			struct quality_trial t[2] = {trial(v, 0), trial(other, 1)};

			make((enum noise)kind, 10 * i, v);
			make((enum noise)kind, 10 * i + 1, other);
			voids += count(t, 2, QUALITY_FAIL_SLOW, QUALITY_VOID) > 0;
			drifts += count(t, 2, QUALITY_DRIFT, QUALITY_NOTE) > 0;
		}
		print_message("%s: %zu of 800 attempts void, %zu noted as drifting\n",
			      noise_names[kind], voids, drifts);
		assert_true(voids <= 7);
		assert_true(drifts <= 7);
	}
}

static void outliers_are_set_apart(void **state)
{
	double v[STEPS];
	struct quality_shape s;
	struct quality_trial t;

	(void)state;
	make(SPIKES, 3, v);
	s = quality_shape(v, STEPS);
	assert_int_equal(s.outliers, 4);
	assert_near(s.outlier_share, 4 * 8.0 / (STEPS - 4 + 4 * 8), 0.01);
	assert_near(s.shift, 0, 0.02);
	t = trial(v, 0);
	assert_int_equal(count(&t, 1, QUALITY_OUTLIERS, QUALITY_NOTE), 1);
	/* four slow steps in a row are a phase, and no outliers */
	make(NORMAL, 3, v);
	for (int i = 0; i < 4; i++)
		v[60 + i] *= 8;
	assert_int_equal(quality_shape(v, STEPS).outliers, 0);
}

/* -- what is planted is found --------------------------------------------------------------- */

static void slow_downs_within_a_trial_are_found(void **state)
{
	static const enum noise kinds[] = {NORMAL, T3, SPIKES};
	static const int from[] = {30, 100, 170};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t f = 0; f < ARRAY_LEN(from); f++) {
			size_t found = 0, near = 0;

			for (uint64_t i = 0; i < 200; i++) {
				double v[STEPS], other[STEPS];
				struct quality_trial t[2] = {trial(v, 0), trial(other, 1)};
				struct quality_shape s;

				make(kinds[k], 1000 + i, v);
				make(kinds[k], 5000 + i, other);
				for (int j = from[f]; j < STEPS; j++)
					v[j] *= 1.2;
				found += count(t, 2, QUALITY_FAIL_SLOW, QUALITY_VOID) == 1;
				s = quality_shape(v, STEPS);
				near += labs((long)s.shift_at - from[f]) <= 5;
			}
			assert_true(found >= 196);
			assert_true(near >= 180);
		}
}

static void what_most_trials_show_is_the_workloads_own(void **state)
{
	double v[4][STEPS];
	struct quality_trial t[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		make(NORMAL, 50 + (uint64_t)i, v[i]);
		for (int j = 100; i < 3 && j < STEPS; j++)
			v[i][j] *= 1.3;
		t[i] = trial(v[i], i);
	}
	assert_int_equal(count(t, 4, QUALITY_FAIL_SLOW, QUALITY_VOID), 0);
	assert_int_equal(count(t, 4, QUALITY_FAIL_SLOW, QUALITY_NOTE), 3);
	assert_int_equal(count(t, 4, QUALITY_STEADY, QUALITY_NOTE), 1);
	assert_int_equal(count(t + 2, 2, QUALITY_FAIL_SLOW, QUALITY_VOID), 1);
}

static void a_window_that_begins_too_early_is_noted(void **state)
{
	double v[2][STEPS];
	struct quality_trial t[2];
	struct quality_settings set = defaults();
	struct quality_finding *f = NULL;
	size_t n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		make(NORMAL, 60 + (uint64_t)i, v[i]);
		for (int j = 0; j < STEPS; j++)
			v[i][j] *= 1 + 0.3 * exp(-j / 40.0);
		t[i] = trial(v[i], i);
	}
	n = quality_judge(&set, t, 2, &f);
	assert_int_equal(n, 1);
	assert_int_equal(f[0].rule, QUALITY_STEADY);
	assert_non_null(strstr(f[0].text, "raise window.warmup_steps"));
	quality_findings_free(f, n);
}

static void the_node_is_judged_too(void **state)
{
	double v[STEPS];
	struct quality_trial t[2] = {trial(v, 0), trial(v, 1)};

	(void)state;
	make(NORMAL, 1, v);
	t[0].other_cpu_pct = 5;
	t[1].other_cpu_pct = 29;
	assert_int_equal(count(t, 2, QUALITY_NEIGHBOUR, QUALITY_NOTE), 0);
	t[1].other_cpu_pct = 40;
	assert_int_equal(count(t, 2, QUALITY_NEIGHBOUR, QUALITY_NOTE), 1);
	t[0].other_cpu_pct = t[1].other_cpu_pct = 80;
	assert_int_equal(count(t, 2, QUALITY_NEIGHBOUR, QUALITY_NOTE), 1);
	t[0].other_cpu_pct = t[1].other_cpu_pct = NAN;
	t[0].sm_clock_mhz = 1980;
	t[1].sm_clock_mhz = 1800;
	assert_int_equal(count(t, 2, QUALITY_CLOCKS, QUALITY_NOTE), 1);
	t[0].reasons_known = t[1].reasons_known = true;
	t[0].clock_reasons = 0x4; /* software power cap: no fault */
	assert_int_equal(count(t, 2, QUALITY_THROTTLE, QUALITY_VOID), 0);
	t[1].clock_reasons = 0x40;
	assert_int_equal(count(t, 2, QUALITY_THROTTLE, QUALITY_VOID), 1);
	t[0].clock_reasons = 0x40; /* both: it pairs out, and a rerun would not help */
	assert_int_equal(count(t, 2, QUALITY_THROTTLE, QUALITY_VOID), 0);
}

static void few_steps_or_odd_ones_are_not_judged(void **state)
{
	double same[STEPS], odd[STEPS];

	(void)state;
	for (int i = 0; i < STEPS; i++) {
		same[i] = 5;
		odd[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? 0 : -1;
	}
	assert_false(quality_shape(same, QUALITY_MIN_STEPS - 1).judged);
	assert_false(quality_shape(odd, STEPS).judged);
	assert_false(quality_shape(NULL, 0).judged);
	assert_true(quality_shape(same, STEPS).judged);
	assert_near(quality_shape(same, STEPS).shift, 0, 0);
	assert_near(quality_shape(same, STEPS).drift_p, 1, 1e-9);
}

/* -- blind ---------------------------------------------------------------------------------- */

/* An arm is no input, only the order of trials is: any relabelling, and so any order, gives the
 * same set of findings. */
static void relabelling_changes_no_answer(void **state)
{
	struct quality_settings set = defaults();

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		double v[4][STEPS];
		struct quality_trial t[4], back[4];
		struct quality_finding *a = NULL, *b = NULL;
		struct rng r = rng_at(i, 1, 2, 0);
		size_t na, nb;

		for (int k = 0; k < 4; k++) {
			bool slow = rng_uniform(&r) < 0.3;

			make((enum noise)(i % NOISES), 100 * i + (uint64_t)k, v[k]);
			for (int j = 120; slow && j < STEPS; j++)
				v[k][j] *= 1.3;
			t[k] = trial(v[k], k);
			t[k].other_cpu_pct = 60 * rng_uniform(&r);
			t[k].reasons_known = true;
			t[k].clock_reasons = rng_uniform(&r) < 0.3 ? 8 : 0;
			back[3 - k] = t[k];
		}
		na = quality_judge(&set, t, 4, &a);
		nb = quality_judge(&set, back, 4, &b);
		assert_int_equal(na, nb);
		for (size_t x = 0; x < na; x++) {
			bool same = false;

			for (size_t y = 0; y < nb; y++)
				same = same || (a[x].rule == b[y].rule && a[x].slot == b[y].slot &&
						a[x].action == b[y].action &&
						fabs(a[x].value - b[y].value) < 1e-9);
			assert_true(same);
		}
		quality_findings_free(a, na);
		quality_findings_free(b, nb);
	}
}

static void a_rule_can_be_switched_off(void **state)
{
	double v[STEPS], other[STEPS];
	struct quality_trial t[2] = {trial(v, 0), trial(other, 1)};
	struct quality_settings s = defaults();
	struct quality_finding *f = NULL;

	(void)state;
	make(NORMAL, 1, v);
	make(NORMAL, 2, other);
	for (int j = 100; j < STEPS; j++)
		v[j] *= 1.5;
	s.action[QUALITY_FAIL_SLOW] = QUALITY_OFF;
	assert_int_equal(quality_judge(&s, t, 2, &f), 0);
	quality_findings_free(f, 0);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(stationary_noise_is_left_alone),
		cmocka_unit_test(outliers_are_set_apart),
		cmocka_unit_test(slow_downs_within_a_trial_are_found),
		cmocka_unit_test(what_most_trials_show_is_the_workloads_own),
		cmocka_unit_test(a_window_that_begins_too_early_is_noted),
		cmocka_unit_test(the_node_is_judged_too),
		cmocka_unit_test(few_steps_or_odd_ones_are_not_judged),
		cmocka_unit_test(relabelling_changes_no_answer),
		cmocka_unit_test(a_rule_can_be_switched_off),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
