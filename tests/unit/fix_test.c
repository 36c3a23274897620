/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fix against scheduler fake: where its blocks run, what its soak says, what keeps it pending.
 */
#include "tests/unit/world.h"

#include "orchestrator/method/fingerprint.h"

/* Blocks of a kind of stage on nodes that confirm blocks used, or on others. */
static int blocks_on(struct world *w, enum stage_kind kind, bool used)
{
	struct node_row *v = NULL;
	size_t n = 0;
	int blocks = 0;

	assert_int_equal(query_nodes(w->ws->db, w->id, &v, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		bool was = false;

		for (size_t k = 0; k < n; k++)
			was = was || (v[k].kind == STAGE_CONFIRM && str_eq(v[k].node, v[i].node));
		blocks += v[i].kind == kind && was == used ? v[i].blocks : 0;
	}
	node_rows_free(v, n);
	return blocks;
}

static void test_the_final_stage_runs_on_other_nodes_where_there_are(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, 1);
	run(&w, "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, \"nodes\": 64}");
	assert_int_equal(blocks_on(&w, STAGE_FINAL, false), 8);
	assert_int_equal(blocks_on(&w, STAGE_FINAL, true), 0);
	world_close(&w);
}

static void test_without_others_it_runs_where_it_can_and_says_so(void **state)
{
	struct event_row *v = NULL;
	struct world w;
	size_t n = 0, told = 0;

	(void)state;
	world_open(&w, 1);
	run(&w, "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, \"nodes\": 2}");
	assert_int_equal(blocks_on(&w, STAGE_FINAL, true), 8);
	assert_int_equal(query_events(w.ws->db, w.id, &v, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		told += str_eq(v[i].kind, "placement") && strstr(v[i].text, "n1,n2") != NULL;
	assert_int_equal(told, 1);
	event_rows_free(v, n);
	world_close(&w);
}

static char *soak_note(struct world *w)
{
	struct stage_row *s = NULL;
	size_t n = 0;
	char *out = NULL;

	assert_int_equal(query_stages(w->ws->db, w->id, &s, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		if (s[i].kind == STAGE_SOAK)
			out = xstrdup(s[i].note);
	stage_rows_free(s, n);
	return out;
}

static void test_the_soak_tells_a_drift_from_none(void **state)
{
	static const struct {
		const char *spec, *words;
	} rows[] = {
		{"{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.001, \"fixed\": true}",
		 "none to speak of"},
		{"{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.001, \"fixed\": true, \"drift\": -0.02}",
		 "it gets slower"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *note = NULL;
		struct world w;

		world_open(&w, 1);
		run(&w, rows[i].spec);
		note = soak_note(&w);
		assert_contains(note, rows[i].words);
		assert_contains(note, "p99 of the step time");
		world_close(&w);
	}
}

/* -- guards ----------------------------------------------------------------------------------- */

static struct fix_row fix_of(struct world *w)
{
	struct fix_row fix = {0};
	bool found = false;

	assert_int_equal(query_fix_get(w->ws->db, w->id, &fix, &found, NULL), 0);
	assert_true(found);
	return fix;
}

/* State of the first guard on a metric that stands beside the fix; heap, NULL: none. */
static char *guard_state(struct world *w, const char *metric, const char *rule)
{
	struct guard_row *g = NULL;
	size_t n = 0;
	char *out = NULL;

	assert_int_equal(query_fix_guards(w->ws->db, w->id, &g, &n, NULL), 0);
	for (size_t i = 0; i < n && !out; i++)
		if (str_eq(g[i].metric, metric) && str_eq(g[i].rule, rule))
			out = xstrdup(g[i].state);
	guard_rows_free(g, n);
	return out;
}

/* Each change costs 0.6 % of the loss, within the margin of 1 % of its own test; both cost 1.2 %.
 */
static void test_margins_that_add_up_break_the_guard_of_the_final_stage(void **state)
{
	static const char spec[] =
		"{\"effects\": {\"A=1\": 0.2, \"B=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, "
		"\"loss_effects\": {\"A=1\": 0.012, \"B=1\": 0.012}}";
	_cleanup_free_ char *guard = NULL;
	struct world w;
	struct fix_row fix;

	(void)state;
	world_open_with(&w, 1, "rounds = 3");
	run(&w, spec);
	assert_outcome(&w, "A", "accepted");
	assert_outcome(&w, "B", "accepted");
	fix = fix_of(&w);
	assert_string_equal(fix.state, "rejected: guard");
	assert_contains(fix.reason, "guard loss (last): worse by +1.20 %");
	assert_true(fix.lo > 0.3); /* the gain is there all the same */
	guard = guard_state(&w, "loss", "margin");
	assert_string_equal(guard, "violated");
	fix_row_done(&fix);
	world_close(&w);
}

static void test_guards_that_hold_leave_the_fix_validated(void **state)
{
	_cleanup_free_ char *loss = NULL, *failures = NULL;
	struct world w;
	struct fix_row fix;

	(void)state;
	world_open(&w, 1);
	run(&w, "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, "
		"\"loss_effects\": {\"A=1\": 0.012}}");
	fix = fix_of(&w);
	assert_string_equal(fix.state, "validated");
	assert_null(fix.reason);
	loss = guard_state(&w, "loss", "margin");
	failures = guard_state(&w, "trial_failed", "failures");
	assert_string_equal(loss, "passed");
	assert_string_equal(failures, "passed");
	fix_row_done(&fix);
	world_close(&w);
}

/* Noise of the loss that leaves the final stage without an answer is told, and breaks nothing: each
 * test of a winner waited until its guards were settled. */
static void test_a_guard_that_stays_open_is_told(void **state)
{
	_cleanup_free_ char *loss = NULL;
	struct world w;
	struct fix_row fix;

	(void)state;
	world_open_with(&w, 3, "blocks = { final = 3 }");
	run(&w,
	    "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, \"loss_sd\": 0.012}");
	assert_outcome(&w, "A", "accepted");
	fix = fix_of(&w);
	assert_string_equal(fix.state, "validated");
	assert_contains(fix.reason, "(not settled)");
	loss = guard_state(&w, "loss", "margin");
	assert_string_equal(loss, "unsettled");
	fix_row_done(&fix);
	world_close(&w);
}

/* 267 ms a step at first; after fifteen trials in a row it is too slow for its limit. */
static void test_a_limit_that_breaks_in_the_soak_rejects_the_fix(void **state)
{
	_cleanup_free_ char *note = NULL;
	struct world w;
	struct fix_row fix;

	(void)state;
	world_open_with(&w, 1,
			"blocks = { soak = 15 }, constraints = { step_time_ms = { at_most = "
			"285 } }");
	run(&w, "{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.001, \"sd_alloc\": 0.001, "
		"\"fixed\": true, \"drift\": -0.02}");
	note = soak_note(&w);
	assert_contains(note, "must be at most 285");
	fix = fix_of(&w);
	assert_string_equal(fix.state, "rejected: guard");
	assert_contains(fix.reason, "in the soak: guard step_time_ms");
	assert_true(fix.soak_drift < -0.1);
	fix_row_done(&fix);
	world_close(&w);
}

/* A margin has no pairs in the soak: it is told and decides nothing. */
static void test_a_margin_that_the_soak_leaves_is_told(void **state)
{
	_cleanup_free_ char *note = NULL;
	struct world w;
	struct fix_row fix;

	(void)state;
	world_open_with(&w, 1, "blocks = { soak = 15 }, guards = { step_time_ms = 0.02 }");
	run(&w, "{\"effects\": {\"A=1\": 0.05}, \"sd_run\": 0.001, \"sd_alloc\": 0.001, "
		"\"fixed\": true, \"drift\": -0.02}");
	note = soak_note(&w);
	assert_contains(note, "guard step_time_ms (mean)");
	assert_contains(note, "worse than the default in the final stage, margin 2.00 %");
	fix = fix_of(&w);
	assert_string_equal(fix.state, "validated");
	fix_row_done(&fix);
	world_close(&w);
}

/* The environment of the final stage; in memory and in files it is the same. */
static void check_environment(const char *how, const char *fields)
{
	_cleanup_free_ char *spec = xasprintf(
		"{\"effects\": {\"A=1\": 0.2}, \"sd_run\": 0.01, \"fixed\": true, %s, \"environment\": "
		"{\"kernel\": \"6.1\", \"cuda\": \"12.4\"}}",
		how);
	_cleanup_free_ char *now = NULL;
	struct campaign_row row = {0};
	struct strv changes = {0};
	struct fix_row fix;
	struct err e = {0};
	struct world w;
	bool found;

	world_open_with(&w, 1, fields);
	run(&w, spec);
	assert_ok(query_fix_get(w.ws->db, w.id, &fix, &found, &e));
	assert_true(found);
	assert_contains(fix.fingerprint, "\"cuda\":\"12.4\"");
	assert_contains(fix.fingerprint, "\"kernel\":\"6.1\"");
	assert_contains(fix.fingerprint, "\"omp\":\"4\"");
	assert_ok(query_campaign_get(w.ws->db, w.id, &row, &e));
	assert_ok(fingerprint_now(w.ws, &row, w.recipe, &now, &e));
	assert_ok(fingerprint_changes(fix.fingerprint, now, &changes, &e));
	assert_int_equal(changes.n, 0);
	assert_ok(fingerprint_changes("{\"omp\":\"8\",\"cuda\":\"12.4\",\"x\":\"\"}", now, &changes,
				      &e));
	assert_int_equal(changes.n, 1);
	assert_string_equal(changes.v[0], "omp: 8 -> 4");
	strv_free(&changes);
	campaign_row_done(&row);
	fix_row_done(&fix);
	world_close(&w);
}

static void test_a_fix_holds_for_the_environment_of_its_final_stage(void **state)
{
	static const char fields[] =
		"fingerprint = { omp = { env = \"OMP_NUM_THREADS\" } }, mode = \"quick\", rounds = 1";

	(void)state;
	setenv("OMP_NUM_THREADS", "4", 1); /* captured when the campaign is made */
	check_environment("\"nodes\": 8", fields);
	check_environment("\"in_memory\": true", fields);
	unsetenv("OMP_NUM_THREADS");
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_fix_holds_for_the_environment_of_its_final_stage),
		cmocka_unit_test(test_the_final_stage_runs_on_other_nodes_where_there_are),
		cmocka_unit_test(test_without_others_it_runs_where_it_can_and_says_so),
		cmocka_unit_test(test_the_soak_tells_a_drift_from_none),
		cmocka_unit_test(test_margins_that_add_up_break_the_guard_of_the_final_stage),
		cmocka_unit_test(test_guards_that_hold_leave_the_fix_validated),
		cmocka_unit_test(test_a_guard_that_stays_open_is_told),
		cmocka_unit_test(test_a_limit_that_breaks_in_the_soak_rejects_the_fix),
		cmocka_unit_test(test_a_margin_that_the_soak_leaves_is_told),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
