/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Budgets: a campaign stops before it starts more than it may, concludes what it has measured, goes
 * on when it is resumed, and ends as if it had never stopped.
 */
#include "tests/unit/world.h"

#include <time.h>

#include "orchestrator/method/method.h"
#include "tests/unit/near.h"
#include "tests/unit/store.h"

#define TRUTH "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true"

static int64_t trials(struct world *w)
{
	return store_count(w->ws->db, "SELECT count(*) FROM trial");
}

static char *reason_of(struct world *w)
{
	return store_text(w->ws->db, "SELECT reason FROM campaign");
}

/* What was decided, for a comparison: no times, no ids. */
static char *decided(struct world *w)
{
	return store_text(
		w->ws->db,
		"SELECT group_concat(t, char(10)) FROM (SELECT s.seq || ' ' || s.kind || ' ' || "
		"coalesce(s.note, '-') || ' ' || coalesce((SELECT group_concat(v.outcome || ' ' || "
		"v.n || ' ' || round(v.est, 9)) FROM verdict v WHERE v.stage = s.id), '') AS t "
		"FROM stage s ORDER BY s.seq)");
}

/* Resume until it is done; how often it had stopped. */
static int resume_to_the_end(struct world *w, const char *spec, int64_t step)
{
	int stops = 0;
	int64_t before = 0;

	for (; state_of(w) != CAMPAIGN_DONE && stops < 100; stops++) {
		_cleanup_free_ char *reason = NULL;

		run(w, spec);
		if (state_of(w) == CAMPAIGN_DONE)
			break;
		assert_int_equal(state_of(w), CAMPAIGN_STOPPED);
		reason = reason_of(w);
		assert_contains(reason, "the budget of");
		assert_contains(reason, "is used up; `fettle resume");
		assert_true(trials(w) > before); /* each resume comes forward */
		assert_true(step == 0 || trials(w) < before + step);
		before = trials(w);
	}
	assert_int_equal(state_of(w), CAMPAIGN_DONE);
	return stops;
}

static void assert_same_as_without(struct world *w, const char *spec)
{
	struct world free_world;
	_cleanup_free_ char *got = decided(w), *want = NULL;

	world_open_with(&free_world, 1, "rounds = 1");
	run(&free_world, spec);
	want = decided(&free_world);
	assert_string_equal(got, want);
	world_close(&free_world);
}

static void test_trials(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "rounds = 1, budget = { trials = 10 }");
	/* at most one block beyond the budget: five arms */
	assert_true(resume_to_the_end(&w, TRUTH "}", 10 + 5) >= 3);
	assert_same_as_without(&w, TRUTH "}");
	world_close(&w);
}

/* With several blocks in flight, which begin and end one after the other, none is added once the
 * budget is used up. */
static void test_trials_with_several_jobs_in_flight(void **state)
{
	struct campaign_options o = {.sched = sched_find("fake"),
				     .spec = TRUTH ", \"nodes\": 4, \"at_once\": 4}"};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};

	(void)state;
	world_open_with(&w, 1, "budget = { trials = 10 }, blocks = { aa = 40 }");
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	while (step != CAMPAIGN_OVER) {
		assert_ok(campaign_step(c, &step, &e));
		if (trials(&w) == 0)
			clock_advance(&w.time, 1000000);
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	assert_true(trials(&w) >= 10);
	assert_true(trials(&w) <= 10 + 2 * 4);
	assert_int_equal(store_count(w.ws->db, "SELECT count(*) FROM attempt WHERE state IN "
					       "('planned', 'submitted')"),
			 0);
	world_close(&w);
}

static void test_node_hours(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "rounds = 1, budget = { node_hours = 0.01 }"); /* 36 s: 12 trials */
	assert_true(resume_to_the_end(&w, TRUTH "}", 12 + 5) >= 3);
	assert_same_as_without(&w, TRUTH "}");
	world_close(&w);
}

static void test_time(void **state)
{
	struct world w;
	_cleanup_free_ char *reason = NULL;
	struct err e = {0};

	(void)state;
	world_open_with(&w, 1, "rounds = 1, budget = { minutes = 1 }");
	run(&w, TRUTH "}");
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	reason = reason_of(&w);
	assert_contains(reason, "the budget of time is used up");
	assert_true(w.time.utc_us - 1800000000000000 < 90 * 1000000);
	assert_ok(query_campaign_deadline(w.ws->db, w.id, 0, &e));
	run(&w, TRUTH "}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_same_as_without(&w, TRUTH "}");
	world_close(&w);
}

/* Four blocks of two trials are the baseline and the whole budget: it is concluded, and the stop
 * comes before the next trial. */
static void test_what_was_measured_is_concluded(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "budget = { trials = 8 }, blocks = { aa = 4 }");
	run(&w, TRUTH "}");
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	assert_int_equal(trials(&w), 8);
	assert_int_equal(store_count(w.ws->db, "SELECT open FROM stage WHERE kind = 'aa'"), 0);
	assert_true(store_count(w.ws->db, "SELECT count(*) FROM hypothesis") > 0);
	world_close(&w);
}

/* A budget used up by the last trial of all is no reason to stop. */
static void test_a_campaign_that_has_measured_all_is_done(void **state)
{
	struct world w;
	_cleanup_free_ char *fields = NULL;
	int64_t all;

	(void)state;
	world_open_with(&w, 1, "rounds = 1");
	run(&w, TRUTH "}");
	all = trials(&w);
	world_close(&w);
	fields = xasprintf("rounds = 1, budget = { trials = %d }", (int)all);
	world_open_with(&w, 1, fields);
	run(&w, TRUTH "}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(trials(&w), all);
	world_close(&w);
}

/* -- what is kept for the fix ------------------------------------------------------------------ */

/* Two gains, the larger of which is accepted first; half of the budgets end behind it. */
#define TWO "{\"effects\": {\"A=1\": 0.3, \"B=1\": 0.1}, \"sd_run\": 0.01, \"fixed\": true"

static int64_t count_of(struct world *w, const char *kind)
{
	_cleanup_free_ char *sql = xasprintf(
		"SELECT count(*) FROM stage WHERE kind = '%s' AND NOT open", kind);

	return store_count(w->ws->db, sql);
}

static int64_t events_like(struct world *w, const char *text)
{
	_cleanup_free_ char *sql = xasprintf(
		"SELECT count(*) FROM event WHERE kind = 'budget' AND text LIKE '%s'", text);

	return store_count(w->ws->db, sql);
}

/* It ends by itself, with a fix, and says what it left out. */
static void assert_kept(const char *fields, const char *spec)
{
	struct world w;
	struct fix_row fix;
	bool found = false;

	world_open_with(&w, 1, fields);
	run(&w, spec);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(accepted(&w), 1);
	assert_int_equal(count_of(&w, "final"), 1);
	assert_int_equal(count_of(&w, "soak"), 1);
	assert_int_equal(events_like(&w, "stopped searching to keep room for the final stage: 3 of "
					 "4 candidates without a verdict"),
			 1);
	assert_int_equal(query_fix_get(w.ws->db, w.id, &fix, &found, NULL), 0);
	assert_true(found);
	assert_string_equal(fix.state, "validated");
	fix_row_done(&fix);
	world_close(&w);
}

/* Of each kind of budget: 52 trials of 3 s are room for the first gain and for the fix of it, and
 * not for another screen with a confirm stage and two changes to fix. */
static void test_the_fix_is_reached_within_each_kind_of_budget(void **state)
{
	(void)state;
	assert_kept("budget = { trials = 60 }", TWO "}");
	assert_kept("budget = { node_hours = 0.05 }", TWO "}");
	assert_kept("budget = { gpu_hours = 0.2 }, resources = { gpus_per_node = 4 }", TWO "}");
	assert_kept("budget = { minutes = 3 }", TWO "}");
	assert_kept("budget = { deadline = '2027-01-15 08:03 UTC' }", TWO "}");
	/* The wait in the queue is part of what a trial takes. */
	assert_kept("budget = { minutes = 26 }", TWO ", \"queue_s\": 60}");
}

static void test_without_a_bound_nothing_is_left_out(void **state)
{
	struct world w;

	(void)state;
	world_open_with(&w, 1, "budget = { trials = 200 }");
	run(&w, TWO "}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(accepted(&w), 2);
	assert_int_equal(count_of(&w, "ablate"), 1);
	assert_int_equal(events_like(&w, "%"), 0);
	world_close(&w);
}

/* The second gain is too small to be settled soon: its stage ends without a verdict when further
 * blocks would take what the fix of the first one needs. */
static void test_a_confirm_stage_is_cut_short_for_the_fix(void **state)
{
	struct world w;
	_cleanup_free_ char *reason = NULL;

	(void)state;
	world_open_with(&w, 4, "budget = { trials = 105 }");
	run(&w, "{\"effects\": {\"A=1\": 0.3, \"B=1\": 0.02}, \"sd_run\": 0.02, \"fixed\": true}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(accepted(&w), 1);
	assert_outcome(&w, "B", "inconclusive");
	reason = store_text(w.ws->db, "SELECT reason FROM verdict WHERE outcome = 'inconclusive'");
	assert_contains(reason, "the room that was left is kept for the final stage");
	assert_int_equal(count_of(&w, "final"), 1);
	assert_true(trials(&w) <= 105);
	world_close(&w);
}

/* A resume with little time goes to the fix at once, whatever was going on. */
static void test_a_short_resume_ends_with_the_fix(void **state)
{
	struct world w;
	struct err e = {0};

	(void)state;
	world_open(&w, 1);
	while (accepted(&w) == 0 || store_count(w.ws->db, "SELECT count(*) FROM stage WHERE kind = "
							  "'screen' AND round = 2") == 0)
		assert_false(drive(&w, TWO "}", 1));
	assert_false(drive(&w, TWO "}", 12));
	assert_ok(query_campaign_deadline(w.ws->db, w.id, w.time.utc_us + 120 * 1000000, &e));
	run(&w, TWO "}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(accepted(&w), 1);
	assert_int_equal(count_of(&w, "final"), 1);
	world_close(&w);
}

/* Trials that there is room for until `days` from now, with this window. */
static double room_until(const char *window, int days)
{
	struct campaign_options o = {.sched = sched_find("fake"), .spec = TWO "}"};
	char until[32];
	time_t at = 1800000000 + (time_t)days * 86400;
	_cleanup_free_ char *fields = NULL;
	enum campaign_step step;
	struct campaign *c = NULL;
	struct world w;
	struct tm tm;
	struct err e = {0};
	double room;

	strftime(until, sizeof until, "%Y-%m-%d %H:%M UTC", gmtime_r(&at, &tm));
	fields = xasprintf("budget = { deadline = \"%s\"%s }", until, window);
	world_open_with(&w, 1, fields);
	assert_false(drive(&w, TWO "}", 12));
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	assert_ok(campaign_step(c, &step, &e));
	room = c->facts.room;
	campaign_close(c);
	world_close(&w);
	return room;
}

/* Only hours in which blocks may run are room, and those of years to come are not counted. */
static void test_the_hours_of_a_window_are_the_room(void **state)
{
	double all = room_until("", 4);

	(void)state;
	assert_true(all > 0 && isfinite(all));
	assert_near(room_until(", window = \"Mon-Sun 00:00-12:00 UTC\"", 4) / all, 0.5, 0.05);
	assert_true(isinf(room_until(", window = \"Mon-Sun 00:00-12:00 UTC\"", 4000)));
}

/* Trials until it first accepted something. */
static int64_t spent_at_first_win(struct world *w)
{
	return store_count(
		w->ws->db,
		"SELECT count(*) FROM trial t JOIN arm r ON r.id = t.arm JOIN stage s "
		"ON s.id = r.stage WHERE s.seq <= (SELECT min(f.seq) FROM verdict v JOIN "
		"stage f ON f.id = v.stage WHERE v.outcome = 'accepted')");
}

/* Whatever the budget: who accepted a gain while there was room for the fix of it has the fix. */
static void test_any_budget_keeps_what_it_can(void **state)
{
	const int budgets = long_run() ? 40 : 12;
	uint64_t random = 12345;
	int kept = 0, out_of_reach = 0;

	(void)state;
	for (int i = 0; i < budgets; i++) {
		_cleanup_free_ char *fields = NULL;
		struct world w;
		int64_t at, most;

		random = random * 6364136223846793005u + 1442695040888963407u;
		most = 20 + (int64_t)(random >> 33) % 100;
		fields = xasprintf("budget = { trials = %d }", (int)most);
		world_open_with(&w, (uint64_t)i + 1, fields);
		run(&w, "{\"effects\": {\"A=1\": 0.3, \"B=1\": 0.05}, \"sd_run\": 0.01, "
			"\"in_memory\": true, \"fixed\": true}");
		at = accepted(&w) ? spent_at_first_win(&w) : -1;
		if (at >= 0 && most - at >= 16 + 6) {
			assert_int_equal(state_of(&w), CAMPAIGN_DONE);
			assert_int_equal(count_of(&w, "final"), 1);
			assert_int_equal(count_of(&w, "soak"), 1);
			assert_true(trials(&w) <= most);
			kept++;
		} else {
			assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
			out_of_reach++;
		}
		world_close(&w);
	}
	print_message("%d with a fix, %d in which none was in reach\n", kept, out_of_reach);
	assert_true(kept >= budgets / 4 && out_of_reach >= budgets / 8);
}

/* Every job ends badly, and not one way so often in a row that it stops the campaign; the same in
 * every workspace. */
#define MIXED \
	", \"by_job\": true, \"faults\": {\"node_fail\": 0.4, \"timeout\": 0.2, \"lost\": 0.4}}"

/* A cluster that loses every block stops the campaign; mended, the campaign goes on. */
static void test_blocks_that_were_dropped_are_tried_again_after_a_resume(void **state)
{
	struct world w;
	_cleanup_free_ char *reason = NULL;

	(void)state;
	world_open(&w, 1);
	run(&w, TRUTH MIXED);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	reason = reason_of(&w);
	assert_contains(reason, "3 blocks were lost 3 times each");
	run(&w, TRUTH MIXED);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	assert_int_equal(store_count(w.ws->db, "SELECT count(*) FROM attempt"), 18);
	run(&w, TRUTH "}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(store_count(w.ws->db, "SELECT count(*) FROM block b WHERE NOT EXISTS "
					       "(SELECT 1 FROM attempt a WHERE a.block = b.id "
					       "AND a.state = 'valid')"),
			 0);
	world_close(&w);
}

/* The sum that the campaign keeps is what the store says, at each step, whatever goes wrong. */
static void test_the_cost_that_is_added_up_is_that_of_the_store(void **state)
{
	struct campaign_options o = {
		.sched = sched_find("fake"),
		.spec = TRUTH
		", \"by_job\": true, \"faults\": {\"lost\": 0.05, \"void\": 0.05, \"node_fail\": "
		"0.05, \"timeout\": 0.05, \"submit_lost\": 0.1}}"};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct cost_row cost;
	struct world w;
	struct err e = {0};
	int64_t trials;
	double node_s;

	(void)state;
	world_open(&w, 1);
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	for (int i = 0; step != CAMPAIGN_OVER; i++) {
		assert_ok(campaign_step(c, &step, &e));
		assert_ok(query_cost(w.ws->db, w.id, &cost, &e));
		assert_int_equal(c->trials, cost.trials_all);
		assert_near(c->node_s, cost.node_s, 1e-6);
		assert_ok(query_spent(w.ws->db, w.id, &trials, &node_s, &e));
		assert_int_equal(trials, cost.trials_all);
		assert_near(node_s, cost.node_s, 1e-6);
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
		if (i % 7 == 0) {
			campaign_close(c);
			assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
		}
	}
	campaign_close(c);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_true(cost.attempts_void > 0);
	world_close(&w);
}

/* The hundredth block costs as many statements as the tenth, and three commits: its plan, the
 * number of its job, its results. It takes a minute: there is a heartbeat, too. */
static void test_a_block_costs_the_same_at_the_end(void **state)
{
	enum { BLOCKS = 100 };
	struct campaign_options o = {.sched = sched_find("fake"),
				     .spec = TRUTH ", \"persist\": false}"};
	enum campaign_step step = CAMPAIGN_AGAIN;
	int64_t at[BLOCKS + 1] = {0}, commits[BLOCKS + 1] = {0}, early, late;
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};

	(void)state;
	world_open_with(&w, 1, "blocks = { aa = 100 }, repeats = 10");
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	while (at[BLOCKS] == 0) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
		if (c->facts.valid <= BLOCKS && at[c->facts.valid] == 0)
			db_counters(w.ws->db, &commits[c->facts.valid], &at[c->facts.valid]);
	}
	campaign_close(c);
	early = at[20] - at[10];
	late = at[BLOCKS] - at[BLOCKS - 10];
	print_message("%d trials: ten blocks of 20 cost %d statements, at the end %d\n",
		      (int)trials(&w), (int)early, (int)late);
	assert_true(late <= early);
	assert_int_equal(commits[BLOCKS - 1] - commits[BLOCKS - 11], (3 + 1) * 10);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_trials),
		cmocka_unit_test(test_trials_with_several_jobs_in_flight),
		cmocka_unit_test(test_node_hours),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_what_was_measured_is_concluded),
		cmocka_unit_test(test_a_campaign_that_has_measured_all_is_done),
		cmocka_unit_test(test_the_fix_is_reached_within_each_kind_of_budget),
		cmocka_unit_test(test_without_a_bound_nothing_is_left_out),
		cmocka_unit_test(test_a_confirm_stage_is_cut_short_for_the_fix),
		cmocka_unit_test(test_a_short_resume_ends_with_the_fix),
		cmocka_unit_test(test_the_hours_of_a_window_are_the_room),
		cmocka_unit_test(test_any_budget_keeps_what_it_can),
		cmocka_unit_test(test_blocks_that_were_dropped_are_tried_again_after_a_resume),
		cmocka_unit_test(test_the_cost_that_is_added_up_is_that_of_the_store),
		cmocka_unit_test(test_a_block_costs_the_same_at_the_end),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
