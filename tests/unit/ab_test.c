/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recipe that `fettle ab` writes, read again. */
#include "tests/unit/recipe.h"

#include <math.h>

#include "orchestrator/cmd/ab.h"

static struct loaded load_ab(const struct ab *ab, const struct kvs *difference)
{
	const struct script_path path = {.dirs = recipe_dirs, .probes = recipe_probes};
	struct loaded l = {0};
	struct buf text = {0};
	struct err e = {0};

	assert_ok(ab_recipe(ab, difference, &text, &e));
	l.rc = script_load_text("(ab)", text.data, &path, &l.recipe, &l.sources, &l.e);
	buf_free(&text);
	return l;
}

static void test_no_text_is_anything_but_text(void **state)
{
	static const char
		odd[] = "a\"]] .. os.exit() \\ $(x) `y` \n\t\x01\x7f ]=] %d {value} \xc3\xa9";
	struct ab ab = {.workdir = (char *)"/"};
	struct kvs difference = {0};

	(void)state;
	strv_add(&ab.a, "/bin/true");
	strv_add(&ab.a, odd);
	strv_add(&ab.b, odd);
	kvs_set(&ab.base, "X", odd);
	kvs_set(&difference, "ODD_VALUE", odd);
	kvs_set(&difference, "Y", NULL);
	{
		_cleanup_loaded_ struct loaded l = load_ab(&ab, &difference);
		const struct bundle *b;

		if (l.rc)
			fail_msg("%s", l.e.text);
		assert_string_equal(l.recipe->workload.command.v[1], odd);
		assert_string_equal(kvs_get(&l.recipe->workload.env, "X"), odd);
		b = knob_bundle(&l.recipe->knobs[0], "B");
		assert_non_null(b);
		assert_string_equal(kvs_get(&b->env, "ODD_VALUE"), odd);
		assert_true(kvs_has(&b->env, "Y") && !kvs_get(&b->env, "Y"));
		assert_string_equal(b->command.v[0], odd);
	}
	strv_free(&ab.a);
	strv_free(&ab.b);
	kvs_free(&ab.base);
	kvs_free(&difference);
}

static void test_the_same_for_a_shell(void **state)
{
	struct ab ab = {.workdir = (char *)"/a b",
			.metrics_file = true,
			.field = {[AB_METRIC] = "loss", [AB_QUESTION] = "it's?"}};
	struct kvs difference = {0};
	struct buf text = {0};

	(void)state;
	strv_add(&ab.a, "./x");
	strv_add(&ab.a, "$HOME");
	strv_add(&ab.b, "./y");
	strv_add(&ab.guards, "loss=1");
	kvs_set(&ab.base, "X", "1 2");
	kvs_set(&difference, "A", "");
	kvs_set(&difference, "Y", NULL);
	ab_command(&ab, &difference, &text);
	assert_string_equal(
		text.data, " --env A= --unset Y --base-env 'X=1 2' --question 'it'\\''s?' --metric "
			   "loss --metrics-file --guard loss=1 --workdir '/a b' -- ./x '$HOME' --- "
			   "./y");
	buf_free(&text);
	strv_free(&ab.a);
	strv_free(&ab.b);
	strv_free(&ab.guards);
	kvs_free(&ab.base);
	kvs_free(&difference);
}

static void test_options_arrive_in_their_fields(void **state)
{
	struct ab ab = {.workdir = (char *)"/",
			.field = {[AB_MODE] = "quick",
				  [AB_MIN_EFFECT] = "2.5",
				  [AB_METRIC] = "step_time_ms",
				  [AB_PROBE] = "train_log",
				  [AB_STEPS] = "50",
				  [AB_WARMUP_STEPS] = "5",
				  [AB_STEP_PATTERN] = "^step",
				  [AB_NODES] = "2",
				  [AB_PARTITION] = "debug",
				  [AB_CLASS] = "optimisation",
				  [AB_MINUTES] = "10"}};
	struct kvs difference = {0};

	(void)state;
	strv_add(&ab.a, "/bin/true");
	strv_add(&ab.guards, "loss=1.5");
	strv_add(&ab.limits, "mfu_pct>=40");
	strv_add(&ab.limits, "mem_peak_reserved_gib<=70");
	kvs_set(&difference, "NCCL_MAX_CTAS", "8");
	{
		_cleanup_loaded_ struct loaded l = load_ab(&ab, &difference);
		const struct recipe *r = l.recipe;

		if (l.rc)
			fail_msg("%s", l.e.text);
		assert_string_equal(r->name, "ab-true");
		assert_string_equal(r->objective, "step_time_ms");
		assert_int_equal(r->better, BETTER_DOWN);
		assert_int_equal(r->mode, MODE_QUICK);
		assert_true(fabs(r->min_effect - 0.025) < 1e-12);
		assert_int_equal(r->workload.steps, 50);
		assert_int_equal(r->resources.nodes, 2);
		assert_string_equal(r->resources.partition, "debug");
		assert_int_equal(r->knobs[0].cls, CLASS_OPTIMISATION);
		assert_string_equal(r->knobs[0].values.v[0], "NCCL_MAX_CTAS=8");
		assert_int_equal(r->n_guards, 3);
		assert_int_equal(r->aa_blocks, BLOCKS_NONE);
		assert_int_equal(r->final_blocks, BLOCKS_NONE);
		assert_int_equal(r->soak_trials, 0);
		assert_int_equal(r->rounds, 1);
	}
	strv_free(&ab.a);
	strv_free(&ab.guards);
	strv_free(&ab.limits);
	kvs_free(&difference);
}

static void test_numbers_that_are_none_are_refused(void **state)
{
	static const char *const guards[] = {"loss", "loss=x"}, *const limits[] = {"a", "a>1",
										   "a>=x"};
	struct kvs difference = {0};

	(void)state;
	kvs_set(&difference, "A", "1");
	for (size_t i = 0; i < ARRAY_LEN(guards) + ARRAY_LEN(limits) + 1; i++) {
		struct ab ab = {.workdir = (char *)"/"};
		struct buf text = {0};
		struct err e = {0};

		strv_add(&ab.a, "true");
		if (i < ARRAY_LEN(guards))
			strv_add(&ab.guards, guards[i]);
		else if (i < ARRAY_LEN(guards) + ARRAY_LEN(limits))
			strv_add(&ab.limits, limits[i - ARRAY_LEN(guards)]);
		else
			ab.field[AB_NODES] = "two";
		assert_int_equal(ab_recipe(&ab, &difference, &text, &e), -ERR_USAGE);
		buf_free(&text);
		strv_free(&ab.a);
		strv_free(&ab.guards);
		strv_free(&ab.limits);
	}
	kvs_free(&difference);
}

static void test_what_only_the_baseline_has_goes_back_to_the_environment(void **state)
{
	struct kvs base = {0}, candidate = {0}, captured = {0}, d = {0};

	(void)state;
	kvs_set(&base, "SAME", "1");
	kvs_set(&base, "OTHER", "1");
	kvs_set(&base, "GONE", "1");
	kvs_set(&base, "BACK", "1");
	kvs_set(&captured, "BACK", "0");
	kvs_set(&candidate, "SAME", "1");
	kvs_set(&candidate, "OTHER", "2");
	kvs_set(&candidate, "NEW", "3");
	kvs_set(&candidate, "TAKEN", NULL);
	kvs_set(&captured, "TAKEN", "9");
	kvs_set(&candidate, "NOT_THERE", NULL); /* A lacks it as well */
	kvs_set(&candidate, "THERE", "here");
	kvs_set(&captured, "THERE", "here");
	ab_difference(&base, &candidate, &captured, &d);
	assert_int_equal(d.n, 5);
	assert_false(kvs_has(&d, "SAME"));
	assert_string_equal(kvs_get(&d, "OTHER"), "2");
	assert_string_equal(kvs_get(&d, "NEW"), "3");
	assert_string_equal(kvs_get(&d, "BACK"), "0");
	assert_true(kvs_has(&d, "GONE") && !kvs_get(&d, "GONE"));
	assert_true(kvs_has(&d, "TAKEN") && !kvs_get(&d, "TAKEN"));
	kvs_free(&base);
	kvs_free(&candidate);
	kvs_free(&captured);
	kvs_free(&d);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_no_text_is_anything_but_text),
		cmocka_unit_test(test_the_same_for_a_shell),
		cmocka_unit_test(test_options_arrive_in_their_fields),
		cmocka_unit_test(test_numbers_that_are_none_are_refused),
		cmocka_unit_test(test_what_only_the_baseline_has_goes_back_to_the_environment),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
