/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Canaries against scheduler fake: nights by a virtual clock, re-runs, fixes in a new environment.
 */
#include "tests/unit/world.h"

#include <time.h>

#include "experiments/history.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/canary.h"
#include "orchestrator/method/method.h"

#define RECIPE "tests/fixtures/recipes/canary.lua"
#define QUIET  "\"by_job\": true, \"sd_run\": 0.002, \"sd_alloc\": 0.002"
#define DAY_US (24 * 3600 * INT64_C(1000000))

/* -- nights ----------------------------------------------------------------------------------- */

static void night_of(const struct world *w, char out[11])
{
	time_t t = (time_t)(w->time.utc_us / 1000000);
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(out, 11, "%F", &tm);
}

static struct campaign_options options(const char *spec)
{
	return (struct campaign_options){
		.sched = sched_find("fake"), .spec = spec, .take_over = true};
}

static bool plan(struct world *w, const char *spec)
{
	struct campaign_options o = options(spec);
	struct err e = {0};
	bool planned = true;
	char night[11];

	night_of(w, night);
	assert_ok(canary_plan(w->ws, w->id, night, &o, &planned, &e));
	return planned;
}

static void one_night(struct world *w, const char *spec)
{
	assert_true(plan(w, spec));
	run(w, spec);
	assert_int_equal(state_of(w), CAMPAIGN_DONE);
	clock_advance(&w->time, DAY_US);
}

/* The series of the objective in a role; 0: there is none. */
static int64_t series_of(struct world *w, enum series_role role)
{
	struct series_row *v = NULL;
	struct err e = {0};
	int64_t id = 0;
	size_t n = 0;

	assert_ok(history_series_list(w->ws->db, 0, &v, &n, &e));
	for (size_t i = 0; i < n; i++)
		if (v[i].role == role && str_eq(v[i].metric, "throughput_samples_per_s"))
			id = v[i].id;
	series_rows_free(v, n);
	return id;
}

static struct point_row *points(struct world *w, enum series_role role, size_t *n)
{
	struct point_row *v = NULL;
	struct err e = {0};

	assert_ok(history_points(w->ws->db, series_of(w, role), NULL, &v, n, &e));
	return v;
}

static struct point_row last_point(struct world *w, enum series_role role)
{
	size_t n;
	_cleanup_free_ struct point_row *v = points(w, role, &n);

	assert_true(n > 0);
	return v[n - 1];
}

/* The environment of a night by hand: scheduler fake has no nodes to ask. */
static void set_environment(struct world *w, const char *json, size_t first, size_t n_nights)
{
	size_t n;
	_cleanup_free_ struct point_row *v = points(w, SERIES_CURRENT, &n);
	struct err e = {0};
	int64_t id;

	assert_ok(db_begin(w->ws->db, "test", &e));
	assert_ok(history_environment_put(w->ws->db, json, &id, &e));
	for (size_t i = first; i < first + n_nights; i++) {
		struct replicate_row *r = NULL;
		struct replicate rep[8];
		size_t n_rep = 0;

		assert_true(i < n);
		assert_ok(history_replicates(w->ws->db, v[i].id, &r, &n_rep, &e));
		for (size_t k = 0; k < n_rep; k++)
			rep[k] = (struct replicate){r[k].value * (1 + 1e-9), r[k].nodes};
		assert_ok(history_point_put(w->ws->db, v[i].series, v[i].night, v[i].at_us, rep,
					    n_rep, id, v[i].stage, true, NULL, &e));
		replicate_rows_free(r, n_rep);
	}
	assert_ok(db_commit(w->ws->db, &e));
}

static struct stage_row *stages(struct world *w, size_t *n)
{
	struct stage_row *s = NULL;

	assert_int_equal(query_stages(w->ws->db, w->id, &s, n, NULL), 0);
	return s;
}

static void assert_last_note(struct world *w, const char *want)
{
	size_t n;
	struct stage_row *s = stages(w, &n);

	assert_true(n > 0 && s[n - 1].note);
	assert_contains(s[n - 1].note, want);
	stage_rows_free(s, n);
}

/* -- a night's look --------------------------------------------------------------------------- */

/* Two arms of one configuration in two blocks; a point a night in each of three series. */
static void test_each_night_is_a_point(void **state)
{
	enum { NIGHTS = 12 };
	struct world w;
	size_t n;
	struct stage_row *s;

	(void)state;
	world_open_recipe(&w, 1, RECIPE);
	for (int i = 0; i < NIGHTS; i++)
		one_night(&w, i < 8 ? "{" QUIET "}" : "{" QUIET ", \"base\": 90}");
	for (int role = SERIES_CURRENT; role <= SERIES_PAIR; role++) {
		_cleanup_free_ struct point_row *v = points(&w, (enum series_role)role, &n);
		double low = role == SERIES_PAIR ? 1 : 100;

		assert_int_equal(n, NIGHTS);
		for (size_t i = 0; i < n; i++) {
			double want = i >= 8 && role != SERIES_PAIR ? 0.9 * low : low;

			assert_true(fabs(v[i].value / want - 1) < 0.02);
			assert_int_equal(v[i].n, 2);
			assert_true(v[i].stage > 0);
		}
	}
	s = stages(&w, &n);
	assert_int_equal(n, NIGHTS);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s[i].kind, STAGE_CANARY);
		assert_int_equal(s[i].n_arms, 2);
		assert_string_equal(s[i].arms[0].label, "reference");
		assert_int_equal(s[i].arms[0].config, s[i].arms[1].config);
		assert_false(s[i].open);
	}
	stage_rows_free(s, n);
	assert_last_note(&w, ": throughput_samples_per_s ");
	assert_last_note(&w, "against the same, 2 blocks");
	world_close(&w);
}

static void test_a_night_is_planned_once(void **state)
{
	struct world w;
	size_t n;
	struct stage_row *s;

	(void)state;
	world_open_recipe(&w, 2, RECIPE);
	assert_true(plan(&w, "{" QUIET "}"));
	assert_false(plan(&w, "{" QUIET "}")); /* still open */
	run(&w, "{" QUIET "}");
	assert_false(plan(&w, "{" QUIET "}"));
	s = stages(&w, &n);
	assert_int_equal(n, 1);
	stage_rows_free(s, n);
	world_close(&w);
}

/* `fettle run` creates and drives: the first night comes by itself, and only that. */
static void test_a_canary_that_is_only_created_runs_its_first_night(void **state)
{
	struct world w;
	struct canary_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	world_open_recipe(&w, 3, RECIPE);
	run(&w, "{" QUIET "}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_ok(history_canaries(w.ws->db, w.id, &v, &n, &e));
	assert_int_equal(n, 1);
	assert_int_equal(v[0].purpose, CANARY_NIGHT);
	assert_false(v[0].open);
	free(v);
	world_close(&w);
}

/* Whoever is killed between any two steps goes on, and each night is there once. */
static void test_killed_between_steps(void **state)
{
	struct world w;
	size_t n;

	(void)state;
	world_open_recipe(&w, 4, RECIPE);
	for (int night = 0; night < 3; night++) {
		assert_true(plan(&w, "{" QUIET "}"));
		for (int i = 0; i < 200 && state_of(&w) == CAMPAIGN_RUNNING; i++) {
			assert_false(plan(&w, "{" QUIET "}"));
			drive(&w, "{" QUIET "}", 1);
		}
		assert_int_equal(state_of(&w), CAMPAIGN_DONE);
		clock_advance(&w.time, DAY_US);
	}
	free(points(&w, SERIES_PAIR, &n));
	assert_int_equal(n, 3);
	world_close(&w);
}

/* The second campaign of the same canary on one night: the later look counts, nothing is stuck. */
static void test_measured_twice_a_night(void **state)
{
	struct world w;
	struct err e = {0};
	struct point_row first;
	size_t n;

	(void)state;
	world_open_recipe(&w, 5, RECIPE);
	run(&w, "{" QUIET "}");
	first = last_point(&w, SERIES_CURRENT);
	assert_ok(campaign_create(w.ws, w.recipe, &w.sources, RECIPE, "fake", &w.id, &e));
	run(&w, "{" QUIET "}");
	assert_true(last_point(&w, SERIES_CURRENT).stage > first.stage);
	free(points(&w, SERIES_CURRENT, &n));
	assert_int_equal(n, 1);
	world_close(&w);
}

static void test_without_a_reference_it_is_alone(void **state)
{
	struct world w;
	struct stage_row *s;
	size_t n;

	(void)state;
	world_open_recipe(&w, 6, "tests/fixtures/recipes/canary-alone.lua");
	one_night(&w, "{" QUIET "}");
	s = stages(&w, &n);
	assert_int_equal(s[0].n_arms, 1);
	assert_string_equal(s[0].arms[0].label, "current");
	stage_rows_free(s, n);
	assert_int_equal(series_of(&w, SERIES_PAIR), 0);
	assert_int_equal(series_of(&w, SERIES_REFERENCE), 0);
	assert_int_equal(last_point(&w, SERIES_CURRENT).n, 3);
	world_close(&w);
}

/* A budget that one night uses up is there again on the next. */
static void test_the_budget_is_that_of_a_night(void **state)
{
	struct world w;

	(void)state;
	world_open_recipe(&w, 7, "tests/fixtures/recipes/canary-alone.lua");
	for (int night = 0; night < 4; night++)
		one_night(&w, "{" QUIET "}");
	world_close(&w);
}

/* Once all four nodes were seen, a cluster that always gives its first node gives each in turn. */
static void test_nodes_take_turns(void **state)
{
	const char *turns = "{" QUIET ", \"nodes\": 4}",
		   *first = "{" QUIET ", \"nodes\": 4, \"sticky\": true}";
	struct node_row *v = NULL;
	struct stage_row *s;
	struct buf seen = {0};
	struct world w;
	struct err e = {0};
	size_t n = 0, n_stages;

	(void)state;
	world_open_recipe(&w, 19, RECIPE);
	for (int night = 0; night < 5; night++)
		one_night(&w, night < 2 ? turns : first);
	s = stages(&w, &n_stages);
	assert_ok(query_nodes(w.ws->db, w.id, &v, &n, &e));
	for (size_t i = 0; i < n; i++)
		if (v[i].stage >= s[2].id)
			buf_printf(&seen, "%s ", v[i].node);
	assert_string_equal(seen.data, "n1 n2 n3 ");
	assert_string_equal(s[2].avoid_nodes, "n3,n4");
	buf_free(&seen);
	node_rows_free(v, n);
	stage_rows_free(s, n_stages);
	world_close(&w);
}

static void test_a_bad_night_is_refused(void **state)
{
	struct campaign_options o = options("{}");
	struct world w;
	struct err e = {0};
	bool planned;

	(void)state;
	world_open_recipe(&w, 8, RECIPE);
	assert_int_equal(canary_plan(w.ws, w.id, "2026-02-30", &o, &planned, &e), -ERR_USAGE);
	world_close(&w);
}

/* -- the reference's environment -------------------------------------------------------------- */

/* From the second night on the reference has the library of the first. */
static void test_the_reference_holds_on_to_its_environment(void **state)
{
	const char *slow = "{" QUIET ", \"base\": 90, \"effects\": {\"LIB=lib-1.0\": 0.111}}";
	struct world w;
	struct stage_row *s;
	struct err e = {0};
	struct config c = {0};
	size_t n;

	(void)state;
	world_open_recipe(&w, 9, RECIPE);
	one_night(&w, "{" QUIET "}");
	assert_true(fabs(last_point(&w, SERIES_PAIR).value - 1) < 0.02);
	set_environment(&w, "{\"lib\": \"1.0\", \"kernel\": \"6.1\"}", 0, 1);
	one_night(&w, slow);
	assert_true(fabs(last_point(&w, SERIES_CURRENT).value / 90 - 1) < 0.02);
	assert_true(fabs(last_point(&w, SERIES_REFERENCE).value / 100 - 1) < 0.02);
	assert_true(fabs(last_point(&w, SERIES_PAIR).value / 0.9 - 1) < 0.02);
	s = stages(&w, &n);
	assert_string_equal(s[1].arms[0].label, "lib=1.0");
	assert_ok(query_config_get(w.ws->db, s[1].arms[0].config, &c, &e));
	assert_string_equal(kvs_get(&c.env, "LIB"), "lib-1.0");
	config_done(&c);
	stage_rows_free(s, n);
	/* one series still, whatever the reference took from earlier nights */
	free(points(&w, SERIES_REFERENCE, &n));
	assert_int_equal(n, 2);
	world_close(&w);
}

/* A regression that is accepted moves the reference to the environment from then on. */
static void test_the_new_normal_moves_the_reference(void **state)
{
	struct world w;
	struct err e = {0};
	struct point_row p;
	struct regression_row r = {.level = CHANGE_CONFIRMED, .state = REGRESSION_ACCEPTED};
	struct change_row c = {.level = CHANGE_CONFIRMED,
			       .lo = NAN,
			       .hi = NAN,
			       .p = NAN,
			       .est = -0.1,
			       .why = (char *)"x"};
	struct stage_row *s;
	size_t n;

	(void)state;
	world_open_recipe(&w, 10, RECIPE);
	one_night(&w, "{" QUIET "}");
	one_night(&w, "{" QUIET "}");
	set_environment(&w, "{\"lib\": \"1.0\"}", 0, 1);
	set_environment(&w, "{\"lib\": \"2.0\"}", 1, 1);
	p = last_point(&w, SERIES_CURRENT);
	str_copy(r.night, sizeof r.night, p.night);
	str_copy(r.found_night, sizeof r.found_night, p.night);
	assert_ok(db_begin(w.ws->db, "test", &e));
	assert_ok(history_regression_add(w.ws->db, &r, &c.regression, &e));
	c.series = p.series;
	str_copy(c.night, sizeof c.night, p.night);
	str_copy(c.first_night, sizeof c.first_night, p.night);
	str_copy(c.last_night, sizeof c.last_night, p.night);
	assert_ok(history_change_add(w.ws->db, &c, &c.id, &e));
	assert_ok(db_commit(w.ws->db, &e));
	one_night(&w, "{" QUIET "}");
	s = stages(&w, &n);
	assert_string_equal(s[n - 1].arms[0].label, "lib=2.0");
	stage_rows_free(s, n);
	world_close(&w);
}

/* -- re-runs ---------------------------------------------------------------------------------- */

/* Nights that are alike, then one that is not: with an older library it would be as it was. */
#define SLOW "{" QUIET ", \"nodes\": 4, \"base\": 90, \"effects\": {\"LIB=lib-1.0\": 0.111}}"
#define WELL "{" QUIET ", \"nodes\": 4}"
enum { NIGHTS_BEFORE = 10 };
static const char *const changed_lib = "{\"lib\": {\"was\": \"1.0\", \"is\": \"2.0\"}}";

/* A suspicion by hand, about the newest point. */
static int64_t suspect(struct world *w, struct wanted_row *out)
{
	struct point_row p = last_point(w, SERIES_CURRENT);
	struct regression_row r = {.level = CHANGE_SUSPECT, .state = REGRESSION_OPEN};
	struct change_row c = {.level = CHANGE_SUSPECT,
			       .direction = CHANGE_WORSE,
			       .series = p.series,
			       .est = -0.1,
			       .lo = NAN,
			       .hi = NAN,
			       .p = NAN};
	struct err e = {0};
	char night[11];

	str_copy(r.night, sizeof r.night, p.night);
	str_copy(r.found_night, sizeof r.found_night, p.night);
	str_copy(c.night, sizeof c.night, p.night);
	str_copy(c.first_night, sizeof c.first_night, p.night);
	str_copy(c.last_night, sizeof c.last_night, p.night);
	assert_ok(db_begin(w->ws->db, "test", &e));
	assert_ok(history_regression_add(w->ws->db, &r, &r.id, &e));
	c.regression = r.id;
	assert_ok(history_change_add(w->ws->db, &c, &c.id, &e));
	assert_ok(db_commit(w->ws->db, &e));
	night_of(w, night); /* the one after */
	*out = (struct wanted_row){.regression = r.id, .campaign = w->id, .est = -0.1};
	str_copy(out->since, sizeof out->since, p.night);
	str_copy(out->not_before, sizeof out->not_before, night);
	return r.id;
}

static void slow_night(struct world *w, const char *spec, struct wanted_row *out)
{
	for (int i = 0; i < NIGHTS_BEFORE; i++)
		one_night(w, WELL);
	set_environment(w, "{\"lib\": \"1.0\"}", 0, NIGHTS_BEFORE);
	one_night(w, spec);
	set_environment(w, "{\"lib\": \"2.0\"}", NIGHTS_BEFORE, 1);
	(void)suspect(w, out);
}

static bool rerun(struct world *w, const struct wanted_row *r, const char *night, const char *spec)
{
	struct campaign_options o = options(spec);
	struct err e = {0};
	bool planned = true;

	assert_ok(canary_rerun(w->ws, r, night, &o, &planned, &e));
	return planned;
}

static struct regression_row regression(struct world *w, int64_t id)
{
	struct regression_row r = {0};
	struct err e = {0};

	assert_ok(history_regression_get(w->ws->db, id, &r, &e));
	free(TAKE(r.who));
	free(TAKE(r.note));
	return r;
}

/* What can be put back is: the same night will do, and the key alone stands between the arms. */
static void test_a_rerun_sets_the_key_back(void **state)
{
	struct world w;
	struct wanted_row want;
	struct stage_row *s;
	struct block_row *b = NULL;
	size_t n, n_blocks = 0;

	(void)state;
	world_open_recipe(&w, 11, RECIPE);
	slow_night(&w, SLOW, &want);
	want.changed = (char *)(uintptr_t)changed_lib;
	assert_true(rerun(&w, &want, want.since, SLOW));
	assert_false(rerun(&w, &want, want.since, SLOW));
	run(&w, SLOW);
	assert_int_equal(regression(&w, want.regression).level, CHANGE_CONFIRMED);
	s = stages(&w, &n);
	assert_int_equal(s[n - 1].n_arms, 2);
	assert_string_equal(s[n - 1].arms[0].label, "lib=1.0");
	assert_int_equal(query_blocks(w.ws->db, s[n - 1].id, &b, &n_blocks, NULL), 0);
	assert_true(n_blocks >= CANARY_RERUN_MIN && n_blocks <= CANARY_RERUN_MAX);
	block_rows_free(b, n_blocks);
	stage_rows_free(s, n);
	assert_last_note(&w, "re-run for regression");
	assert_last_note(&w, "lib");
	free(points(&w, SERIES_CURRENT, &n)); /* a re-run is no point */
	assert_int_equal(n, NIGHTS_BEFORE + 1);
	world_close(&w);
}

static void test_a_rerun_that_shows_nothing_dismisses(void **state)
{
	struct world w;
	struct wanted_row want;

	(void)state;
	world_open_recipe(&w, 12, RECIPE);
	slow_night(&w, "{" QUIET ", \"nodes\": 4, \"base\": 90}", &want);
	want.changed = (char *)(uintptr_t)changed_lib;
	assert_true(rerun(&w, &want, want.not_before, WELL));
	run(&w, WELL);
	assert_int_equal(regression(&w, want.regression).level, CHANGE_SUSPECT);
	assert_int_not_equal(regression(&w, want.regression).state, REGRESSION_OPEN);
	world_close(&w);
}

/* Nothing can be put back: alone, on another night and on other nodes. */
static void test_a_rerun_alone_waits_for_another_night(void **state)
{
	struct world w;
	struct wanted_row want;
	struct node_row *nodes = NULL;
	struct stage_row *s;
	size_t n, n_nodes = 0;
	struct err e = {0};
	char night[11];

	(void)state;
	world_open_recipe(&w, 13, RECIPE);
	slow_night(&w, "{" QUIET ", \"nodes\": 4, \"base\": 90}", &want);
	assert_false(rerun(&w, &want, want.since, "{" QUIET ", \"nodes\": 4, \"base\": 90}"));
	assert_true(rerun(&w, &want, want.not_before, "{" QUIET ", \"nodes\": 4, \"base\": 90}"));
	run(&w, "{" QUIET ", \"nodes\": 4, \"base\": 90}");
	/* two bad nights in a row would look like this */
	assert_int_equal(regression(&w, want.regression).level, CHANGE_SUSPECT);
	one_night(&w, "{" QUIET ", \"nodes\": 4, \"base\": 90}");
	night_of(&w, night);
	assert_true(rerun(&w, &want, night, "{" QUIET ", \"nodes\": 4, \"base\": 90}"));
	run(&w, "{" QUIET ", \"nodes\": 4, \"base\": 90}");
	assert_int_equal(regression(&w, want.regression).level, CHANGE_CONFIRMED);
	s = stages(&w, &n);
	assert_int_equal(s[n - 1].n_arms, 1);
	assert_non_null(s[n - 1].avoid_nodes);
	assert_ok(query_nodes(w.ws->db, w.id, &nodes, &n_nodes, &e));
	for (size_t i = 0; i < n_nodes; i++)
		if (nodes[i].stage == s[n - 1].id)
			assert_null(strstr(s[n - 1].avoid_nodes, nodes[i].node));
	node_rows_free(nodes, n_nodes);
	stage_rows_free(s, n);
	world_close(&w);
}

/* Killed between any two steps, the judgement is there once and the stage ends. */
static void test_a_rerun_killed_between_steps(void **state)
{
	struct world w;
	struct wanted_row want;

	(void)state;
	world_open_recipe(&w, 14, RECIPE);
	slow_night(&w, SLOW, &want);
	want.changed = (char *)(uintptr_t)changed_lib;
	assert_true(rerun(&w, &want, want.since, SLOW));
	for (int i = 0; i < 400 && state_of(&w) == CAMPAIGN_RUNNING; i++)
		drive(&w, SLOW, 1);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(regression(&w, want.regression).level, CHANGE_CONFIRMED);
	world_close(&w);
}

/* Somebody says that it is fixed while the re-run is under way: it ends without a judgement. */
static void test_a_suspicion_that_is_closed_meanwhile(void **state)
{
	struct world w;
	struct wanted_row want;
	struct regression_row r;
	struct err e = {0};

	(void)state;
	world_open_recipe(&w, 15, RECIPE);
	slow_night(&w, SLOW, &want);
	want.changed = (char *)(uintptr_t)changed_lib;
	assert_true(rerun(&w, &want, want.since, SLOW));
	drive(&w, SLOW, 2);
	r = regression(&w, want.regression);
	r.state = REGRESSION_FIXED;
	assert_ok(history_regression_update(w.ws->db, &r, &e));
	run(&w, SLOW);
	assert_int_equal(regression(&w, want.regression).level, CHANGE_SUSPECT);
	assert_last_note(&w, "not judged: it is a suspicion, fixed by now");
	world_close(&w);
}

/* -- fixes ------------------------------------------------------------------------------------ */

#define TUNED "guards = {}, rounds = 1, mode = 'quick', blocks = { aa = 2, final = 4, soak = 0 }"
#define GAIN  "{" QUIET ", \"effects\": {\"A=1\": 0.2}}"

static struct fix_row fix_of(struct world *w)
{
	struct fix_row f;
	bool found = false;

	assert_int_equal(query_fix_get(w->ws->db, w->id, &f, &found, NULL), 0);
	assert_true(found);
	return f;
}

static void assert_fix(struct world *w, const char *want)
{
	struct fix_row f = fix_of(w);

	assert_string_equal(f.state, want);
	fix_row_done(&f);
}

static int revalidate(struct world *w, const char *spec, bool *planned, struct err *e)
{
	struct campaign_options o = options(spec);
	char night[11];

	night_of(w, night);
	return canary_revalidate(w->ws, w->id, night, &o, planned, e);
}

static void test_a_fix_is_validated_again(void **state)
{
	struct world w;
	struct err e = {0};
	struct event_row *v = NULL;
	struct stage_row *s;
	size_t n = 0, told = 0;
	bool planned;

	(void)state;
	world_open_with(&w, 16, TUNED);
	run(&w, GAIN);
	assert_fix(&w, "validated");
	assert_ok(revalidate(&w, GAIN, &planned, &e));
	assert_true(planned);
	run(&w, GAIN);
	assert_fix(&w, "validated");
	assert_last_note(&w, "validated again: +2");
	s = stages(&w, &n);
	assert_int_equal(s[n - 1].planned_blocks, 4);
	assert_string_equal(s[n - 1].arms[0].label, "default");
	stage_rows_free(s, n);
	assert_ok(query_events(w.ws->db, w.id, &v, &n, &e));
	for (size_t i = 0; i < n; i++)
		told += str_eq(v[i].kind, "revalidated");
	event_rows_free(v, n);
	assert_int_equal(told, 1);
	clock_advance(&w.time, DAY_US);
	assert_ok(revalidate(&w, "{" QUIET "}", &planned, &e));
	run(&w, "{" QUIET "}");
	assert_fix(&w, "gain not seen again");
	assert_last_note(&w, ": gain not seen again: ");
	clock_advance(&w.time, DAY_US);
	assert_int_equal(revalidate(&w, GAIN, &planned, &e), -ERR_STATE);
	assert_contains(e.text, "gain not seen again");
	world_close(&w);
}

/* A fix is watched beside the default: what it gains is the pair. */
static void test_a_fix_is_watched(void **state)
{
	struct world w;
	struct point_row p;
	size_t n;

	(void)state;
	world_open_with(&w, 17, TUNED);
	run(&w, GAIN);
	one_night(&w, GAIN);
	one_night(&w, GAIN);
	p = last_point(&w, SERIES_PAIR);
	assert_true(fabs(p.value / 1.2 - 1) < 0.02);
	assert_int_equal(p.n, 2);
	free(points(&w, SERIES_REFERENCE, &n));
	assert_int_equal(n, 2);
	assert_fix(&w, "validated");
	world_close(&w);
}

static void test_without_a_fix_nothing_is_watched(void **state)
{
	struct campaign_options o = options("{" QUIET "}");
	struct world w;
	struct err e = {0};
	bool planned;

	(void)state;
	world_open_with(&w, 18, TUNED);
	assert_int_equal(canary_plan(w.ws, w.id, "2027-01-15", &o, &planned, &e), -ERR_STATE);
	assert_contains(e.text, "is not done");
	run(&w, "{" QUIET "}");
	assert_int_equal(canary_plan(w.ws, w.id, "2027-01-15", &o, &planned, &e), -ERR_STATE);
	assert_contains(e.text, "no fix");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_each_night_is_a_point),
		cmocka_unit_test(test_a_night_is_planned_once),
		cmocka_unit_test(test_a_canary_that_is_only_created_runs_its_first_night),
		cmocka_unit_test(test_killed_between_steps),
		cmocka_unit_test(test_measured_twice_a_night),
		cmocka_unit_test(test_without_a_reference_it_is_alone),
		cmocka_unit_test(test_the_budget_is_that_of_a_night),
		cmocka_unit_test(test_nodes_take_turns),
		cmocka_unit_test(test_a_bad_night_is_refused),
		cmocka_unit_test(test_the_reference_holds_on_to_its_environment),
		cmocka_unit_test(test_the_new_normal_moves_the_reference),
		cmocka_unit_test(test_a_rerun_sets_the_key_back),
		cmocka_unit_test(test_a_rerun_that_shows_nothing_dismisses),
		cmocka_unit_test(test_a_rerun_alone_waits_for_another_night),
		cmocka_unit_test(test_a_rerun_killed_between_steps),
		cmocka_unit_test(test_a_suspicion_that_is_closed_meanwhile),
		cmocka_unit_test(test_a_fix_is_validated_again),
		cmocka_unit_test(test_a_fix_is_watched),
		cmocka_unit_test(test_without_a_fix_nothing_is_watched),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
