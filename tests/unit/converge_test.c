/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The long run of a pending fix against scheduler fake. */
#include "tests/unit/world.h"

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"

#define RECIPE "tests/fixtures/recipes/converge.lua"
#define GAIN   "\"effects\": {\"--d 1\": 0.3}, \"sd_run\": 0.005, \"fixed\": true"

static char *fix_state(struct world *w)
{
	struct fix_row fix;
	bool found = false;
	char *state;

	assert_int_equal(query_fix_get(w->ws->db, w->id, &fix, &found, NULL), 0);
	assert_true(found);
	state = xstrdup(fix.state);
	fix_row_done(&fix);
	return state;
}

static void assert_state(struct world *w, const char *want)
{
	_cleanup_free_ char *state = fix_state(w);

	assert_string_equal(state, want);
}

static int plan(struct world *w, const char *spec, struct err *e)
{
	struct campaign_options o = {.sched = sched_find("fake"), .spec = spec, .take_over = true};

	return campaign_converge(w->ws, w->id, &o, e);
}

static void converge(struct world *w, const char *spec)
{
	struct err e = {0};

	run(w, spec);
	assert_state(w, "accepted, pending convergence");
	assert_ok(plan(w, spec, &e));
	assert_int_equal(state_of(w), CAMPAIGN_RUNNING);
	run(w, spec);
	assert_int_equal(state_of(w), CAMPAIGN_DONE);
}

static void test_a_loss_that_holds_validates_the_fix(void **state)
{
	struct world w;
	struct err e = {0};

	(void)state;
	world_open_recipe(&w, 1, RECIPE);
	converge(&w, "{" GAIN ", \"loss_effects\": {\"--d 1\": 0.01}}"); /* 0.5 % of 2 */
	assert_state(&w, "validated");
	assert_int_equal(plan(&w, "{" GAIN "}", &e), -ERR_STATE); /* once is enough */
	assert_contains(e.text, "validated");
	world_close(&w);
}

static void test_a_loss_that_does_not_hold_rejects_it(void **state)
{
	struct world w;
	struct stage_row *s = NULL;
	size_t n = 0;

	(void)state;
	world_open_recipe(&w, 2, RECIPE);
	converge(&w, "{" GAIN ", \"loss_effects\": {\"--d 1\": 0.1}}"); /* 5 % of 2 */
	assert_state(&w, "rejected: loss not held");
	assert_int_equal(query_stages(w.ws->db, w.id, &s, &n, NULL), 0);
	assert_int_equal(s[n - 1].kind, STAGE_CONVERGE);
	assert_contains(s[n - 1].note, "loss at equal step +4.99 % worse");
	assert_contains(s[n - 1].note, "over 2 seeds of 40 steps");
	stage_rows_free(s, n);
	world_close(&w);
}

/* Both runs of a pair get one seed, each pair another; the window is the whole long run. */
static void test_blocks_carry_seed_and_length(void **state)
{
	struct block_row *b = NULL;
	struct stage_row *s = NULL;
	struct world w;
	size_t n = 0, n_blocks = 0;

	(void)state;
	world_open_recipe(&w, 3, RECIPE);
	converge(&w, "{" GAIN "}");
	assert_int_equal(query_stages(w.ws->db, w.id, &s, &n, NULL), 0);
	assert_int_equal(query_blocks(w.ws->db, s[n - 1].id, &b, &n_blocks, NULL), 0);
	assert_int_equal(n_blocks, 2);
	for (size_t i = 0; i < n_blocks; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s/block.json", w.ws->root, b[i].dir);
		_cleanup_(json_freep) struct json *j = NULL;
		struct err e = {0};
		const char *seed = i ? "2" : "1";

		assert_ok(json_read_file(path, 1 << 20, &j, &e));
		assert_string_equal(json_text(json_get(json_get(j, "env"), "FETTLE_SEED"), ""),
				    seed);
		assert_int_equal(json_i64(json_get(json_get(j, "window"), "steps"), 0), 40);
		assert_int_equal(json_i64(json_get(json_get(j, "window"), "warmup"), -1), 0);
		assert_int_equal(json_len(json_get(j, "slots")), 2);
	}
	block_rows_free(b, n_blocks);
	stage_rows_free(s, n);
	world_close(&w);
}

static void test_a_killed_long_run_goes_on(void **state)
{
	const char *spec = "{" GAIN "}";
	struct world w;
	struct err e = {0};

	(void)state;
	world_open_recipe(&w, 4, RECIPE);
	run(&w, spec);
	assert_ok(plan(&w, spec, &e));
	for (int i = 0; i < 200 && state_of(&w) == CAMPAIGN_RUNNING; i++) {
		assert_ok(plan(&w, spec, &e)); /* the command again: it goes on */
		drive(&w, spec, 1);
	}
	assert_state(&w, "validated");
	world_close(&w);
}

static void test_without_a_pending_fix_there_is_nothing_to_run(void **state)
{
	struct world w;
	struct err e = {0};

	(void)state;
	world_open_recipe(&w, 5, RECIPE);
	run(&w, "{\"sd_run\": 0.005, \"fixed\": true}");
	assert_int_equal(plan(&w, "{}", &e), -ERR_STATE);
	assert_contains(e.text, "has no fix");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

/* Of CAMPAIGNS pending fixes whose long runs lose `worse` of the loss on average, with noise from
 * seed to seed as large as the margin: how many are validated? */
enum { CAMPAIGNS = 40 };

static int validated_with_noise(double worse)
{
	_cleanup_free_ char *spec = xasprintf(
		"{" GAIN
		", \"in_memory\": true, \"loss_sd\": 0.03, \"loss_effects\": {\"--d 1\": %g}}",
		2 * worse);
	int n = 0;

	for (uint64_t seed = 1; seed <= CAMPAIGNS; seed++) {
		_cleanup_free_ char *state = NULL;
		struct world w;
		struct err e = {0};

		world_open_with(
			&w, seed,
			"knobs = { { name = 'D', arg = '--d', class = 'optimisation', values = "
			"{ 1 } } }, guards = {}, rounds = 1, blocks = { aa = 2, final = 4, "
			"soak = 0 }, converge = { steps = 40, seeds = 8, margin = 0.02 }");
		run(&w, spec);
		assert_ok(plan(&w, spec, &e));
		run(&w, spec);
		state = fix_state(&w);
		n += str_eq(state, "validated");
		world_close(&w);
	}
	return n;
}

/* A loss that is worse by the margin is held in at most 5 % of long runs, though every other one
 * looks better than it: of 40 more than 11 come with 1e-6. One that is equal is held mostly: the
 * power is 0.8, of 40 fewer than 16 come with 1e-8. */
static void test_noise_is_held_against_the_change(void **state)
{
	int at_margin = validated_with_noise(0.02), equal = validated_with_noise(0);

	(void)state;
	print_message("validated: %d of %d at the margin, %d of %d without a loss\n", at_margin,
		      CAMPAIGNS, equal, CAMPAIGNS);
	assert_true(at_margin <= 11);
	assert_true(equal >= 16);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_loss_that_holds_validates_the_fix),
		cmocka_unit_test(test_a_loss_that_does_not_hold_rejects_it),
		cmocka_unit_test(test_blocks_carry_seed_and_length),
		cmocka_unit_test(test_a_killed_long_run_goes_on),
		cmocka_unit_test(test_noise_is_held_against_the_change),
		cmocka_unit_test(test_without_a_pending_fix_there_is_nothing_to_run),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
