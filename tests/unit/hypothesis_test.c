/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 2 and the account of alpha: what becomes a hypothesis, in which order, what is left out and
 * why; and that refutations spend what the plan gave them and no more. Campaigns on scheduler fake.
 */
#include "tests/unit/world.h"

#include "experiments/decide.h"
#include "tests/unit/near.h"
#include "tests/unit/store.h"

static const char knobs[] =
	"knobs = {\n"
	"  { name = 'Z', env = 'Z', class = 'neutral', values = { 1 },\n"
	"    expect = function(v, s) return { gain = 0.01, why = 'hardly' } end },\n"
	"  { name = 'U', env = 'U', class = 'neutral', values = { 1 } },\n"
	"  { name = 'A', env = 'A', class = 'neutral', values = { 1, 2, 3 },\n"
	"    expect = function(v, s) return { gain = v / 10, ceiling = 0.5, why = 'gain of ' .. v } end,\n"
	"    lint = function(v, s) if v == 3 then return 'three is too much' end end },\n"
	"  { name = 'B', env = 'B', class = 'neutral', values = { 1 }, requires = { knob = 'A', values = { 2 } } },\n"
	"  { name = 'C', env = 'C', class = 'neutral', values = { 1 },\n"
	"    expect = function(v, s) return { worth_trying = false, why = 'nothing waits' } end },\n"
	"  { name = 'S', env = 'S', class = 'neutral', values = { 1 },\n"
	"    expect = function(v, s) return { gain = 0.05, why = 'loss was ' .. s.loss } end },\n"
	"}";

static struct hypothesis_row *rows;
static size_t n_rows;

static void load(struct world *w)
{
	struct err e = {0};

	hypothesis_rows_free(rows, n_rows);
	rows = NULL;
	assert_ok(query_hypotheses(w->ws->db, w->id, &rows, &n_rows, &e));
}

static const struct hypothesis_row *find(int round, const char *knob, const char *value)
{
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].round == round && str_eq(rows[i].knob, knob) &&
		    str_eq(rows[i].value, value))
			return &rows[i];
	fail_msg("round %d has no hypothesis %s=%s", round, knob, value);
	return NULL;
}

static void assert_left_out(int round, const char *knob, const char *value,
			    enum hypothesis_state state, const char *reason)
{
	const struct hypothesis_row *h = find(round, knob, value);

	if (h->state != state)
		fail_msg("%s=%s is %s, want %s", knob, value, hypothesis_state_name(h->state),
			 hypothesis_state_name(state));
	assert_non_null(h->reason);
	assert_contains(h->reason, reason);
}

static void test_what_is_proposed_and_in_which_order(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, knobs);
	/* the baseline, then the hypotheses: stop there */
	for (int i = 0; i < 200 && store_count(w.ws->db, "SELECT count(*) FROM hypothesis") == 0;
	     i++)
		drive(&w, "{\"fixed\": true}", 1);
	load(&w);
	assert_int_equal(n_rows, 8);
	assert_int_equal(find(1, "A", "2")->rank, 1); /* by gain: 0.2, 0.1, 0.05, unknown, 0.01 */
	assert_int_equal(find(1, "A", "1")->rank, 2);
	assert_int_equal(find(1, "S", "1")->rank, 3);
	assert_int_equal(find(1, "U", "1")->rank, 4);
	assert_int_equal(find(1, "Z", "1")->rank, 5);
	assert_int_equal(find(1, "A", "2")->state, HYP_PROPOSED);
	assert_near(find(1, "A", "2")->gain, 0.2, 1e-12);
	assert_near(find(1, "A", "2")->ceiling, 0.5, 1e-12);
	assert_string_equal(find(1, "A", "2")->evidence, "gain of 2");
	assert_null(find(1, "A", "2")->from_value);
	assert_true(find(1, "U", "1")->user_defined);
	assert_contains(find(1, "S", "1")->evidence, "loss was 2"); /* a signal of the baseline */
	assert_left_out(1, "A", "3", HYP_LINTED_OUT, "three is too much");
	assert_left_out(1, "B", "1", HYP_LINTED_OUT, "has no meaning while A is not set");
	assert_left_out(1, "C", "1", HYP_NOT_TRIED, "nothing waits");
	assert_true(find(1, "C", "1")->rank > 5);
	world_close(&w);
}

/* What was accepted is the next round's start; what was tested is not tested again. */
static void test_the_next_round(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, knobs);
	run(&w, "{\"effects\": {\"A=2\": 0.3, \"B=1\": 0.2, \"A=1\": 0.1}, \"sd_run\": 0.005, "
		"\"fixed\": true}");
	assert_outcome(&w, "A", "accepted");
	assert_outcome(&w, "B", "accepted");
	load(&w);
	assert_int_equal(find(1, "A", "2")->state, HYP_TESTED);
	assert_int_equal(find(2, "B", "1")->state, HYP_TESTED); /* its requirement is met now */
	assert_string_equal(find(2, "A", "1")->from_value, "2");
	for (size_t i = 0; i < n_rows; i++) /* not the value that is there already */
		assert_false(rows[i].round == 2 && str_eq(rows[i].knob, "A") &&
			     str_eq(rows[i].value, "2"));
	assert_int_equal(find(1, "A", "1")->state, HYP_SCREENED_OUT);
	world_close(&w);
}

static void test_a_refuted_hypothesis_is_not_proposed_again(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1,
			"rounds = 4, knobs = {"
			"{ name = 'A', env = 'A', class = 'neutral', values = { 1 } },"
			"{ name = 'G', env = 'G', class = 'neutral', values = { 1 } } }");
	/* A looks good and violates its guard; G is a gain */
	run(&w, "{\"effects\": {\"A=1\": 0.5, \"G=1\": 0.2}, \"loss_effects\": {\"A=1\": 0.5}, "
		"\"sd_run\": 0.005, \"fixed\": true}");
	assert_outcome(&w, "A", "rejected: guard");
	assert_outcome(&w, "G", "accepted");
	load(&w);
	assert_left_out(2, "A", "1", HYP_NOT_TRIED, "tested in an earlier round: rejected: guard");
	world_close(&w);
}

/* -- alpha ------------------------------------------------------------------------------------- */

struct account {
	size_t stages, refuted, accepted;
	double spent;
};

/* Replay the stored verdicts: each stage was tested at its share and what was returned before it,
 * each verdict spent what the ledger says. */
static struct account replay(struct world *w)
{
	struct stage_row *s = NULL;
	struct verdict_row *v = NULL;
	struct account a = {0};
	size_t n = 0, nv = 0;
	double returned = 0;
	struct err e = {0};

	assert_ok(query_stages(w->ws->db, w->id, &s, &n, &e));
	assert_ok(query_verdicts(w->ws->db, w->id, &v, &nv, &e));
	for (size_t i = 0; i < n; i++) {
		const struct verdict_row *last = NULL;

		if (s[i].kind != STAGE_CONFIRM)
			continue;
		for (size_t k = 0; k < nv; k++) {
			a.spent += v[k].stage == s[i].id ? v[k].alpha_spent : 0;
			if (v[k].stage == s[i].id && v[k].final_look)
				last = &v[k];
			else if (v[k].stage == s[i].id)
				assert_near(v[k].alpha_spent, 0, 0);
		}
		assert_non_null(last);
		assert_near(s[i].alpha_share,
			    w->recipe->alpha *
					    alpha_share((size_t)w->recipe->rounds, a.stages + 1) +
				    returned,
			    1e-12);
		a.stages++;
		if (str_eq(last->outcome, "accepted")) {
			a.accepted++;
			assert_near(last->alpha_spent, 0, 0);
			returned = s[i].alpha_share;
		} else {
			a.refuted++;
			assert_near(last->alpha_spent, s[i].alpha_share, 1e-12);
			returned = 0;
		}
	}
	stage_rows_free(s, n);
	verdict_rows_free(v, nv);
	return a;
}

/* Knobs that do nothing, in a noisy world: confirm stages refute one after the other. */
static void test_refutations_spend_their_share_and_no_more(void **state)
{
	size_t refuted = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct account a;
		struct world w;

		world_open_with(&w, seed, "rounds = 3");
		run(&w, "{\"sd_run\": 0.02, \"fixed\": true}");
		a = replay(&w);
		assert_true(a.stages <= 3);
		assert_true(a.spent <= w.recipe->alpha + 1e-12);
		refuted += a.refuted;
		world_close(&w);
	}
	assert_true(refuted >= 12); /* the test sees what it is about */
}

static void test_an_accepted_stage_hands_its_alpha_on(void **state)
{
	struct account a;
	struct world w;

	(void)state;
	world_open_with(&w, 2, "rounds = 4");
	run(&w, "{\"effects\": {\"A=1\": 0.3, \"B=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true}");
	a = replay(&w);
	assert_true(a.accepted >= 2);
	assert_true(a.stages > a.accepted);
	assert_true(a.spent <= w.recipe->alpha + 1e-12);
	world_close(&w);
}

/* Invalid before the first look: costs neither alpha nor one of the stages. */
static void test_an_invalid_knob_costs_no_stage(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 4, "rounds = 1");
	run(&w, "{\"effects\": {\"A=1\": 0.5, \"B=1\": 0.2}, \"undelivered\": [\"A\"], "
		"\"sd_run\": 0.005, \"fixed\": true}");
	assert_outcome(&w, "A", "invalid");
	assert_outcome(&w, "B", "accepted");
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_what_is_proposed_and_in_which_order),
		cmocka_unit_test(test_the_next_round),
		cmocka_unit_test(test_a_refuted_hypothesis_is_not_proposed_again),
		cmocka_unit_test(test_refutations_spend_their_share_and_no_more),
		cmocka_unit_test(test_an_accepted_stage_hands_its_alpha_on),
		cmocka_unit_test(test_an_invalid_knob_costs_no_stage),
	};
	int failed = cmocka_run_group_tests(t, NULL, NULL);

	hypothesis_rows_free(rows, n_rows);
	return failed;
}
