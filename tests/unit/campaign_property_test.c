/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must not matter to a whole campaign: which configuration is called the baseline (the
 * estimate changes its sign), the unit of the metric, attempts that were lost on the way, the order
 * in which results come in, and whether they come as files or from memory.
 */
#include "tests/unit/world.h"

#define STEPS_RECIPE     "tests/fixtures/recipes/fake-steps.lua"
#define ONE_KNOB         "tests/fixtures/recipes/one-knob.lua"
#define ONE_KNOB_SWAPPED "tests/fixtures/recipes/one-knob-swapped.lua"

/* What a campaign came to: all of its looks, in order. */
struct looks {
	struct verdict_row *v;
	size_t n;
	struct fix_row fix;
	bool fixed;
	struct cost_row cost;
	size_t late; /* blocks that came in after one of a higher number */
};

static size_t late_blocks(struct world *w)
{
	struct stage_row *s = NULL;
	size_t n = 0, late = 0;

	assert_int_equal(query_stages(w->ws->db, w->id, &s, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		struct value_row *v = NULL;
		size_t rows = 0;

		assert_int_equal(
			query_stage_values(w->ws->db, s[i].id, "loss", "last", &v, &rows, NULL), 0);
		for (size_t k = 1; k < rows; k++)
			late += v[k].block != v[k - 1].block && v[k].trial < v[k - 1].trial;
		value_rows_free(v, rows);
	}
	stage_rows_free(s, n);
	return late;
}

static struct looks looks_of(const char *recipe, uint64_t seed, const char *spec)
{
	struct looks l = {0};
	struct world w;

	world_open_recipe(&w, seed, recipe);
	run(&w, spec);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(query_verdicts(w.ws->db, w.id, &l.v, &l.n, NULL), 0);
	assert_int_equal(query_fix_get(w.ws->db, w.id, &l.fix, &l.fixed, NULL), 0);
	assert_int_equal(query_cost(w.ws->db, w.id, &l.cost, NULL), 0);
	l.late = late_blocks(&w);
	world_close(&w);
	return l;
}

static void looks_done(struct looks *l)
{
	verdict_rows_free(l->v, l->n);
	if (l->fixed)
		fix_row_done(&l->fix);
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 && !(isnan(a) && isnan(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

static void assert_same_looks(const struct looks *a, const struct looks *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_string_equal(a->v[i].outcome, b->v[i].outcome);
		assert_int_equal(a->v[i].n, b->v[i].n);
		assert_near(a->v[i].est, b->v[i].est);
		assert_near(a->v[i].lo, b->v[i].lo);
		assert_near(a->v[i].hi, b->v[i].hi);
		assert_near(a->v[i].p, b->v[i].p);
		assert_near(a->v[i].alpha_spent, b->v[i].alpha_spent);
	}
	assert_int_equal(a->fixed, b->fixed);
	if (a->fixed)
		assert_near(a->fix.est, b->fix.est);
}

static uint64_t seeds(void)
{
	return long_run() ? 5 : 2;
}

static void assert_alike(const char *recipe, const char *spec, const char *other)
{
	size_t looks = 0;

	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		struct looks a = looks_of(recipe, seed, spec), b = looks_of(recipe, seed, other);

		assert_same_looks(&a, &b);
		looks += a.n;
		looks_done(&a);
		looks_done(&b);
	}
	assert_true(looks > 0);
}

/* And from the same values, in the same places of the table. */
static void assert_same_inputs(const struct looks *a, const struct looks *b)
{
	assert_same_looks(a, b);
	for (size_t i = 0; i < a->n; i++)
		assert_string_equal(a->v[i].inputs_hash, b->v[i].inputs_hash);
}

/* Noise here belongs to configurations, so that it stays with them when their roles are swapped. */
static void test_swapped_roles_turn_the_sign(void **state)
{
	const char *spec = "{\"sd_run\": 0, \"sd_arm_alloc\": 0.01, \"by_job\": true, "
			   "\"effects\": {\"K=1\": 0.004}}";

	(void)state;
	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		struct looks a = looks_of(ONE_KNOB, seed, spec),
			     b = looks_of(ONE_KNOB_SWAPPED, seed, spec);

		assert_true(a.n > 0 && b.n > 0);
		assert_int_equal(a.v[0].n, b.v[0].n);
		assert_true(fabs(a.v[0].est) > 1e-6);
		assert_near(log1p(a.v[0].est), -log1p(b.v[0].est));
		looks_done(&a);
		looks_done(&b);
	}
}

static void test_the_unit_of_the_metric_changes_nothing(void **state)
{
	(void)state;
	assert_alike(WORLD_RECIPE,
		     "{\"effects\": {\"A=1\": 0.03}, \"by_job\": true, \"base\": 100}",
		     "{\"effects\": {\"A=1\": 0.03}, \"by_job\": true, \"base\": 271828.1828}");
}

/* A block that is lost three times is dropped and another one takes its place; with these seeds
 * none is. */
static void test_lost_attempts_change_nothing(void **state)
{
	const char *quiet = "{\"effects\": {\"A=1\": 0.03}, \"fixed\": true}",
		   *faulty = "{\"effects\": {\"A=1\": 0.03}, \"fixed\": true, \"by_job\": true, "
			     "\"faults\": {\"void\": 0.02, \"node_fail\": 0.02, \"lost\": 0.02}}";
	int64_t voids = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		struct looks a = looks_of(WORLD_RECIPE, seed, quiet),
			     b = looks_of(WORLD_RECIPE, seed, faulty);

		assert_same_inputs(&a, &b);
		voids += b.cost.attempts_void;
		looks_done(&a);
		looks_done(&b);
	}
	assert_true(voids > 0);
}

/* Four at once, each a random while longer: they end in another order than they began. */
static void test_the_order_of_results_changes_nothing(void **state)
{
	const char *quiet = "{\"effects\": {\"A=1\": 0.03}, \"fixed\": true}",
		   *mixed = "{\"effects\": {\"A=1\": 0.03}, \"fixed\": true, \"by_job\": true, "
			    "\"nodes\": 4, \"at_once\": 4, \"spread_s\": 500}";
	size_t late = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		struct looks a = looks_of(WORLD_RECIPE, seed, quiet),
			     b = looks_of(WORLD_RECIPE, seed, mixed);

		assert_same_inputs(&a, &b);
		assert_int_equal(a.late, 0);
		late += b.late;
		looks_done(&a);
		looks_done(&b);
	}
	assert_true(late > 0);
}

/* What `fettle simulate` runs on decides as what is read from an agent's files. */
static void test_files_and_memory_say_the_same(void **state)
{
	static const char *const truths[] = {
		"\"effects\": {\"A=1\": 0.03}, \"loss_sd\": 0.01, \"ar1\": 0.5, \"sd_node\": 0.02, "
		"\"nodes\": 3, \"order\": -0.01",
		"\"effects\": {\"A=1\": 0.5, \"B=1\": 0.3}, \"undelivered\": [\"A\"], \"tails\": 3",
		"\"effects\": {\"A=1\": 0.3}, \"loss_effects\": {\"A=1\": 0.2}, \"straggler_p\": 0.1",
		"\"faults\": {\"failed_trial\": 0.1, \"void\": 0.1, \"node_fail\": 0.1}, "
		"\"effects\": {\"A=1\": 0.2}",
		"\"nan\": {\"A=1\": 0.3}, \"effects\": {\"A=1\": 0.2}, \"noisier\": {\"B=1\": 3}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(truths); i++) {
		_cleanup_free_ char *files = xasprintf("{%s, \"by_job\": true}", truths[i]),
				    *memory = xasprintf(
					    "{%s, \"by_job\": true, \"in_memory\": true}",
					    truths[i]);

		assert_alike(WORLD_RECIPE, files, memory);
	}
}

/* Also where the steps of a trial say something: its quality, its tail, its curve of the loss. */
static void test_steps_in_memory_say_what_files_say(void **state)
{
	static const struct {
		const char *recipe, *truth;
	} rows[] = {
		{STEPS_RECIPE, "\"effects\": {\"A=1\": 0.1}, \"sd_step\": 0.05, \"slow_p\": 0.2"},
		{STEPS_RECIPE, "\"sd_step\": 0.02, \"step_drift\": -0.1, \"outlier_p\": 0.03"},
		{STEPS_RECIPE,
		 "\"effects\": {\"A=1\": 0.1}, \"steps\": true, \"nan\": {\"A=1\": 0.2}"},
		{WORLD_RECIPE, "\"effects\": {\"--d 1\": 0.3}, \"metrics\": "
			       "{\"samples_per_step\": 32}, \"metric_effects\": {\"--d 1\": "
			       "{\"samples_per_step\": 64}}, \"loss_effects\": {\"--d 1\": 0.1}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *files = xasprintf("{%s, \"by_job\": true, \"sd_run\": 0.01}",
						       rows[i].truth),
				    *memory = xasprintf("{%s, \"by_job\": true, \"sd_run\": 0.01, "
							"\"in_memory\": true}",
							rows[i].truth);

		assert_alike(rows[i].recipe, files, memory);
	}
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_swapped_roles_turn_the_sign),
		cmocka_unit_test(test_the_unit_of_the_metric_changes_nothing),
		cmocka_unit_test(test_lost_attempts_change_nothing),
		cmocka_unit_test(test_the_order_of_results_changes_nothing),
		cmocka_unit_test(test_files_and_memory_say_the_same),
		cmocka_unit_test(test_steps_in_memory_say_what_files_say),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
