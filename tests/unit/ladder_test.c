/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scaling ladder against scheduler fake, whose truth knows the ranks by the command. */
#include "tests/unit/world.h"

#include "experiments/derive.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/method/method.h"
#include "tests/unit/near.h"
#include "tests/unit/recipe.h"

#define RECIPE "tests/fixtures/recipes/ladder.lua"
#define QUIET                                                               \
	"\"base\": 100, \"sd_run\": 0.002, \"fixed\": true, \"nodes\": 4, " \
	"\"ranks\": {\"--ranks 4\": 4, \"--ranks 8\": 8, \"--ranks 16\": 16}"

struct climbed {
	struct rung_row *v;
	size_t n;
};

static struct climbed climb(struct world *w, const char *spec)
{
	struct climbed out = {0};

	run(w, spec);
	assert_int_equal(state_of(w), CAMPAIGN_DONE);
	assert_int_equal(query_rungs(w->ws->db, w->id, &out.v, &out.n, NULL), 0);
	return out;
}

/* 4 ranks give 3.8 times as much, 8 give 1.9 times that, 16 twice that. */
static void test_every_rung_is_climbed_while_it_holds(void **state)
{
	static const double want[] = {0.95, 0.95, 1};
	struct world w;
	struct climbed c;
	double total = 1;

	(void)state;
	world_open_recipe(&w, 7, RECIPE);
	c = climb(&w, "{" QUIET ", \"effects\": {\"--ranks 4\": 2.8, \"--ranks 8\": 6.22, "
		      "\"--ranks 16\": 13.44}}");
	assert_int_equal(c.n, 3);
	for (size_t i = 0; i < c.n; i++) {
		total *= want[i];
		assert_int_equal(c.v[i].round, i + 2);
		assert_int_equal(c.v[i].n, 4);
		assert_true(c.v[i].held);
		assert_near(c.v[i].est, want[i], 0.01);
		assert_true(c.v[i].lo < c.v[i].est && c.v[i].est < c.v[i].hi);
		assert_near(c.v[i].total, total, 0.015);
		assert_true(c.v[i].total_hi - c.v[i].total_lo >= c.v[i].hi * 0.99 - c.v[i].lo);
	}
	free(c.v);
	world_close(&w);
}

static void test_the_climb_ends_where_too_much_is_lost(void **state)
{
	struct world w;
	struct climbed c;
	struct stage_row *s = NULL;
	size_t n = 0;

	(void)state;
	world_open_recipe(&w, 8, RECIPE);
	c = climb(&w, "{" QUIET ", \"effects\": {\"--ranks 4\": 2.8, \"--ranks 8\": 4.32}}");
	assert_int_equal(c.n, 2); /* 5.32 / 3.8 / 2: 70 % */
	assert_true(c.v[0].held);
	assert_false(c.v[1].held);
	assert_near(c.v[1].est, 0.7, 0.01);
	assert_int_equal(query_stages(w.ws->db, w.id, &s, &n, NULL), 0);
	assert_int_equal(s[n - 1].kind, STAGE_LADDER);
	assert_contains(s[n - 1].note, "the climb ends here");
	assert_string_equal(s[n - 1].arms[1].label, "2 nodes x 4 ranks");
	stage_rows_free(s, n);
	free(c.v);
	world_close(&w);
}

static void test_a_rung_that_fails_is_not_measured(void **state)
{
	struct world w;
	struct climbed c;
	struct stage_row *s = NULL;
	size_t n = 0;

	(void)state;
	world_open_recipe(&w, 9, RECIPE);
	c = climb(&w,
		  "{" QUIET ", \"effects\": {\"--ranks 4\": 3}, \"fails\": {\"--ranks 8\": 1}}");
	assert_int_equal(c.n, 2);
	assert_true(isnan(c.v[1].est) && !c.v[1].held);
	assert_int_equal(query_stages(w.ws->db, w.id, &s, &n, NULL), 0);
	assert_contains(s[n - 1].note, "rung 3 could not be measured");
	stage_rows_free(s, n);
	free(c.v);
	world_close(&w);
}

static void test_fewer_ranks_than_asked_for_are_no_rung(void **state)
{
	struct world w;
	struct climbed c;
	struct stage_row *s = NULL;
	size_t n = 0;

	(void)state;
	world_open_recipe(&w, 11, RECIPE);
	c = climb(&w, "{\"effects\": {\"--ranks 4\": 3}, \"ranks\": {\"--ranks 4\": 2}}");
	assert_int_equal(c.n, 1);
	assert_true(isnan(c.v[0].est));
	assert_int_equal(query_stages(w.ws->db, w.id, &s, &n, NULL), 0);
	assert_contains(s[n - 1].note,
			"1 node x 4 ranks asks for 4 ranks, and processes of 2 were seen: ");
	stage_rows_free(s, n);
	free(c.v);
	world_close(&w);
}

/* What is killed goes on where it was, and nothing is measured twice. */
static void test_a_ladder_goes_on_after_each_step(void **state)
{
	static const char spec[] = "{" QUIET ", \"effects\": {\"--ranks 4\": 2.8}}";
	struct world whole, cut;
	struct climbed a, b;

	(void)state;
	world_open_recipe(&whole, 10, RECIPE);
	world_open_recipe(&cut, 10, RECIPE);
	a = climb(&whole, spec);
	for (int i = 0; i < 1000 && !drive(&cut, spec, 1); i++)
		;
	b = climb(&cut, spec);
	assert_int_equal(a.n, b.n);
	for (size_t i = 0; i < a.n; i++)
		assert_near(a.v[i].est, b.v[i].est, 1e-12);
	free(a.v);
	free(b.v);
	world_close(&whole);
	world_close(&cut);
}

static void test_places_in_the_command(void **state)
{
	const struct resources r = {.nodes = 2, .tasks_per_node = 8}, none = {0};
	_cleanup_free_ char *a = resources_fill(&r, "-n {tasks} {nodes}x{tasks_per_node} {task}"),
			    *b = resources_fill(&none, "{tasks}"), *c = resources_fill(&r, "");

	(void)state;
	assert_string_equal(a, "-n 16 2x8 {task}");
	assert_string_equal(b, "1");
	assert_string_equal(c, "");
}

static void test_the_parts_of_a_loss_add_up(void **state)
{
	const struct step_shares few = {.communication = 0.02, .straggler = 0, .input = 0.1},
				 many = {.communication = 0.12, .straggler = 0.05, .input = 0.1};
	struct step_shares loss = derive_scaling_loss(0.8, &few, &many);

	(void)state;
	assert_near(loss.communication, 0.12 - 0.8 * 0.02, 1e-12);
	assert_near(loss.communication + loss.straggler + loss.input + loss.rest, 0.2, 1e-12);
	loss = derive_scaling_loss(0.8, &(struct step_shares){.communication = NAN}, &many);
	assert_true(isnan(loss.communication));
	assert_near(loss.straggler + loss.input + loss.rest, 0.2, 1e-12);
}

static void test_bad_ladders_are_refused(void **state)
{
	static const struct {
		const char *fields, *says;
	} bad[] = {
		{"ladder = { rungs = { {} } }", "ladder.rungs: expected a list of 2 to 64 rungs"},
		{"ladder = { rungs = { { nodes = 2 }, { nodes = 1 } } }",
		 "ladder.rungs[2]: has 1 ranks and the rung below 2"},
		{"ladder = { rungs = { {}, { tasks_per_node = 0 } } }", "tasks_per_node"},
		{"ladder = { rungs = { {}, { nodes = 2 } }, max_loss = 0 }", "max_loss"},
		{"knobs = { OMP_NUM_THREADS = { 1 } }, ladder = { rungs = { {}, { nodes = 2 } } }",
		 "tune it in a campaign of its own"},
		{"objective = \"step_time_ms\", ladder = { rungs = { {}, { nodes = 2 } } }",
		 "needs the throughput of all ranks"},
		{"workload = { command = { \"true\" } }, ladder = { rungs = { {}, { nodes = 2 } } }",
		 "nothing starts more ranks on a higher rung"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *text = xasprintf(
			"local c = { name = \"l\", objective = \"throughput_samples_per_s\", "
			"workload = { command = { \"true\", \"{tasks}\" } } }\n"
			"for k, v in pairs({ %s }) do c[k] = v end\nreturn c\n",
			bad[i].fields);
		_cleanup_loaded_ struct loaded l = load_text(dir, text);

		assert_true(l.rc < 0);
		assert_contains(l.e.text, bad[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rung_is_climbed_while_it_holds),
		cmocka_unit_test(test_the_climb_ends_where_too_much_is_lost),
		cmocka_unit_test(test_a_rung_that_fails_is_not_measured),
		cmocka_unit_test(test_fewer_ranks_than_asked_for_are_no_rung),
		cmocka_unit_test(test_a_ladder_goes_on_after_each_step),
		cmocka_unit_test(test_places_in_the_command),
		cmocka_unit_test(test_the_parts_of_a_loss_add_up),
		cmocka_unit_test(test_bad_ladders_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
