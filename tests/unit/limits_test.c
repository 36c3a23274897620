/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When and how much at a time a campaign runs: windows, deadlines, GPU hours, jobs and nodes in
 * flight, idle nodes. Virtual time; the fake cluster's declared truth.
 */
#include "tests/unit/world.h"

#include "orchestrator/base/hours.h"
#include "orchestrator/method/method.h"
#include "tests/unit/near.h"
#include "tests/unit/store.h"

#define HOUR_US ((int64_t)3600 * 1000000)

static int64_t count(struct world *w, const char *sql)
{
	return store_count(w->ws->db, sql);
}

static void set_time(struct world *w, const char *when)
{
	int64_t us;
	struct err e = {0};

	assert_ok(hours_moment(when, &us, &e));
	assert_true(us >= w->time.utc_us);
	clock_advance(&w->time, us - w->time.utc_us);
}

static char *reason_of(struct world *w)
{
	return store_text(w->ws->db, "SELECT coalesce(reason, '') FROM campaign");
}

/* Step until the campaign is over or may not go on; which of the two. */
static enum campaign_step go(struct world *w, const char *spec)
{
	struct campaign_options o = {.sched = sched_find("fake"), .spec = spec, .take_over = true};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct err e = {0};

	assert_ok(campaign_open(w->ws, w->id, &o, &c, &e));
	for (int i = 0; i < 100000 && step != CAMPAIGN_OVER && step != CAMPAIGN_LATER; i++) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	return step;
}

/* A block of two trials may take 22 minutes by their limits: a night of two hours has room for a
 * few. */
#define SLOW "{\"fixed\": true, \"trial_s\": 400}"

static void open_night(struct world *w)
{
	world_open_with(w, 1,
			"budget = { window = '22:00-00:00 Europe/Berlin' }, blocks = { aa = 8 }");
	set_time(w, "2027-01-15 23:59 UTC");
}

static void test_a_window_that_closes_in_mid_campaign(void **state)
{
	_cleanup_free_ char *reason = NULL, *outside = NULL, *with = NULL, *without = NULL;
	int nights = 0;
	struct world w, plain;

	(void)state;
	open_night(&w);
	for (; nights < 400 && go(&w, SLOW) == CAMPAIGN_LATER; nights++) {
		struct hours_state s;

		assert_int_equal(state_of(&w), CAMPAIGN_RUNNING);
		free(reason);
		reason = reason_of(&w);
		assert_true(strstr(reason, "the window closes at") || strstr(reason, "is closed"));
		/* nothing half done */
		assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE state <> 'valid'"),
				 0);
		hours_at(&w.recipe->budget.window, w.time.utc_us + 2 * HOUR_US, &s);
		clock_advance(&w.time, s.open ? 2 * HOUR_US : s.opens_us - w.time.utc_us);
	}
	assert_true(nights > 2);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	/* no trial outside of the window: 21:00 to 23:00 UTC in winter */
	outside = store_text(w.ws->db,
			     "SELECT group_concat(strftime('%H:%M', start_us / 1000000, "
			     "'unixepoch')) FROM trial WHERE strftime('%H', (start_us + "
			     "wall_us) / 1000000, 'unixepoch') NOT IN ('21', '22') OR "
			     "strftime('%H', start_us / 1000000, 'unixepoch') NOT IN ('21', "
			     "'22')");
	assert_null(outside);
	assert_true(count(&w, "SELECT count(*) FROM event WHERE kind = 'window'") >= nights);
	/* and the same verdicts as without a window */
	world_open_with(&plain, 1, "blocks = { aa = 8 }");
	assert_int_equal(go(&plain, SLOW), CAMPAIGN_OVER);
	with = store_text(w.ws->db,
			  "SELECT group_concat(outcome || n || round(coalesce(est, 0), 9)) "
			  "FROM verdict");
	without = store_text(plain.ws->db, "SELECT group_concat(outcome || n || "
					   "round(coalesce(est, 0), 9)) FROM verdict");
	assert_string_equal(with, without);
	world_close(&plain);
	world_close(&w);
}

/* A limit of the allocation that reaches beyond the window is cut, and the agent is told when. */
static void test_block_and_job_know_the_end_of_the_window(void **state)
{
	struct campaign_options o = {.sched = sched_find("fake"), .spec = SLOW, .take_over = true};
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};
	char iso[32];

	(void)state;
	open_night(&w);
	set_time(&w, "2027-01-16 21:30 UTC");
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	clock_iso(limits_close_us(c), iso, sizeof iso);
	assert_string_equal(iso, "2027-01-16T23:00:00Z");
	assert_int_equal(limits_left_s(c), 90 * 60 - 60);
	assert_null(limits_window_text(c, 80 * 60));
	campaign_close(c);
	world_close(&w);
}

static enum campaign_step go_one_night(struct world *w, int64_t until_us, double spend_node_s)
{
	struct campaign_options o = {.sched = sched_find("fake"),
				     .spec = SLOW,
				     .take_over = true,
				     .until_us = until_us,
				     .spend_node_s = spend_node_s};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct err e = {0};

	assert_ok(campaign_open(w->ws, w->id, &o, &c, &e));
	while (step != CAMPAIGN_OVER && step != CAMPAIGN_LATER) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	return step;
}

/* Whoever opens a campaign for a night bounds it, whatever the recipe says; it goes on the next. */
static void test_a_night_that_ends(void **state)
{
	_cleanup_free_ char *reason = NULL;
	struct world w;
	int nights = 1;
	int64_t end;

	(void)state;
	world_open_with(&w, 1, "blocks = { aa = 8 }");
	end = w.time.utc_us + 2 * HOUR_US;
	assert_int_equal(go_one_night(&w, end, 0), CAMPAIGN_LATER);
	assert_int_equal(state_of(&w), CAMPAIGN_RUNNING);
	assert_true(w.time.utc_us <= end);
	reason = reason_of(&w);
	assert_contains(reason, "min and the night ends at ");
	assert_true(count(&w, "SELECT count(*) FROM attempt WHERE state = 'valid'") > 0);
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE state <> 'valid'"), 0);
	for (; nights < 100; nights++) {
		clock_advance(&w.time, 22 * HOUR_US);
		if (go_one_night(&w, w.time.utc_us + 2 * HOUR_US, 0) == CAMPAIGN_OVER)
			break;
	}
	assert_in_range(nights, 2, 50);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

/* A scheduler that falls silent holds nobody for ever; what it tells another night counts. */
static void test_a_night_is_not_waited_out(void **state)
{
	_cleanup_free_ char *reason = NULL;
	struct campaign_options o = {
		.sched = sched_find("fake"), .spec = "{\"silent_after\": 2}", .take_over = true};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};

	(void)state;
	world_open_with(&w, 1, "blocks = { aa = 8 }");
	o.wait_until_us = w.time.utc_us + 23 * HOUR_US;
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	for (int i = 0; i < 100000 && step != CAMPAIGN_LATER; i++) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	assert_int_equal(step, CAMPAIGN_LATER);
	assert_in_range(w.time.utc_us, o.wait_until_us, o.wait_until_us + HOUR_US);
	assert_int_equal(state_of(&w), CAMPAIGN_RUNNING);
	reason = reason_of(&w);
	assert_contains(reason,
			"with 1 block in flight, of whose end the scheduler told nothing: the "
			"next night takes what it measured");
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE state = 'submitted'"), 1);
	assert_int_equal(go(&w, "{}"), CAMPAIGN_OVER);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE number > 1"), 0);
	world_close(&w);
}

static void test_a_night_that_has_spent_what_it_may(void **state)
{
	_cleanup_free_ char *reason = NULL;
	struct cost_row cost;
	struct world w;
	struct err e = {0};
	double before;

	(void)state;
	world_open_with(&w, 1, "blocks = { aa = 8 }");
	assert_int_equal(go_one_night(&w, 0, 3600), CAMPAIGN_LATER);
	reason = reason_of(&w);
	assert_string_equal(reason, "the night has spent what it may");
	assert_ok(query_cost(w.ws->db, w.id, &cost, &e));
	before = cost.node_s;
	assert_true(before >= 3600);
	/* no more than what was in flight then: three nodes of the declared cluster, a block each
	 */
	assert_true(before < 3600 + 3 * 22 * 60);
	/* the next night has its own */
	assert_int_equal(go_one_night(&w, 0, 3600), CAMPAIGN_LATER);
	assert_ok(query_cost(w.ws->db, w.id, &cost, &e));
	assert_true(cost.node_s >= before + 3600);
	world_close(&w);
}

static void test_the_deadline(void **state)
{
	_cleanup_free_ char *reason = NULL;
	struct world w;

	(void)state;
	world_open_with(&w, 1, "budget = { deadline = '2027-01-15 09:00 UTC' }");
	assert_int_equal(go(&w, SLOW), CAMPAIGN_OVER);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	reason = reason_of(&w);
	assert_contains(reason, "budget.deadline of the recipe, 2027-01-15 09:00 UTC, has passed; "
				"to go on, `fettle run` it with a later one or none");
	assert_true(count(&w, "SELECT count(*) FROM trial") > 0);
	/* a resume does not move it */
	assert_int_equal(go(&w, SLOW), CAMPAIGN_OVER);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	world_close(&w);
}

static void test_gpu_hours(void **state)
{
	_cleanup_free_ char *reason = NULL;
	struct world w;

	(void)state;
	/* 8 GPUs: 0.08 GPU hours are 36 s of a node */
	world_open_with(&w, 1, "budget = { gpu_hours = 0.08 }, resources = { gpus_per_node = 8 }");
	assert_int_equal(go(&w, "{\"fixed\": true}"), CAMPAIGN_OVER);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	reason = reason_of(&w);
	assert_contains(reason, "the budget of GPU hours is used up");
	assert_true(count(&w, "SELECT count(*) FROM trial") <= 12 + 5);
	world_close(&w);
}

static size_t most_in_flight_of(const char *spec, const char *fields)
{
	struct campaign_options o = {.sched = sched_find("fake"), .spec = spec, .take_over = true};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};
	size_t most = 0;

	world_open_with(&w, 1, fields);
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	while (step != CAMPAIGN_OVER) {
		assert_ok(campaign_step(c, &step, &e));
		most = c->facts.in_flight > most ? c->facts.in_flight : most;
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
	return most;
}

static size_t most_in_flight(const char *fields)
{
	return most_in_flight_of("{\"fixed\": true, \"nodes\": 8, \"at_once\": 8}", fields);
}

static void test_some_wait_behind_those_that_run(void **state)
{
	static const char spec[] = "{\"fixed\": true, \"nodes\": 4, \"at_once\": 4, \"ahead\": 2}";

	(void)state;
	assert_int_equal(most_in_flight_of(spec, "blocks = { aa = 12 }"), 6);
	assert_int_equal(most_in_flight_of(spec, "blocks = { aa = 12 }, budget = { jobs = 5 }"), 5);
	/* nobody does where that would decide on nodes, or on what is spent */
	assert_int_equal(
		most_in_flight_of(spec, "blocks = { aa = 12 }, budget = { trials = 1000 }"), 4);
	assert_int_equal(
		most_in_flight_of(spec,
				  "blocks = { aa = 12 }, resources = { placement = 'spread' }"),
		4);
}

static void test_jobs_and_nodes_in_flight(void **state)
{
	(void)state;
	assert_int_equal(most_in_flight("blocks = { aa = 12 }"), 8);
	assert_int_equal(most_in_flight("blocks = { aa = 12 }, budget = { jobs = 3 }"), 3);
	assert_int_equal(most_in_flight(
				 "blocks = { aa = 12 }, budget = { nodes = 5 }, resources = { "
				 "nodes = 2, tasks_per_node = 1 }"),
			 2);
}

/* One node of the four must stay idle beside the one that a job takes: three at once at most. */
static void test_only_while_nodes_are_idle(void **state)
{
	struct campaign_options o = {
		.sched = sched_find("fake"),
		.spec = "{\"fixed\": true, \"nodes\": 4, \"at_once\": 4, \"trial_s\": 600}",
		.take_over = true};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};
	size_t most = 0;

	(void)state;
	world_open_with(&w, 1, "blocks = { aa = 12 }, budget = { idle_nodes = 2 }");
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	for (int i = 0; i < 3000 && step != CAMPAIGN_OVER; i++) {
		assert_ok(campaign_step(c, &step, &e));
		most = c->facts.in_flight > most ? c->facts.in_flight : most;
		clock_advance(&w.time, 31 * 1000000);
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	assert_int_equal(most, 3);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_window_that_closes_in_mid_campaign),
		cmocka_unit_test(test_block_and_job_know_the_end_of_the_window),
		cmocka_unit_test(test_a_night_that_ends),
		cmocka_unit_test(test_a_night_is_not_waited_out),
		cmocka_unit_test(test_a_night_that_has_spent_what_it_may),
		cmocka_unit_test(test_the_deadline),
		cmocka_unit_test(test_gpu_hours),
		cmocka_unit_test(test_some_wait_behind_those_that_run),
		cmocka_unit_test(test_jobs_and_nodes_in_flight),
		cmocka_unit_test(test_only_while_nodes_are_idle),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
