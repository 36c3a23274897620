/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of method/track.h, each on a few series of a small store. */
#include <math.h>

#include "experiments/regress.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/method/track.h"
#include "tests/unit/near.h"
#include "tests/unit/store.h"

enum { NOW_US = 1796000000, FIRST = 20454 /* 2026-01-01 */ };

/* One canary: tokens per second, its pairs, and a clock; one series of another source. */
struct scene {
	struct db *db;
	int64_t campaign, current, pair, clock, other;
	int64_t environment;
	int nights;
	int stages;
	int later_us; /* points are measured so long after everything else happened */
};

static int64_t put_series(struct scene *s, enum series_source source, enum series_role role,
			  const char *metric, enum better better, const char *unit)
{
	struct series_row row = {.source = source,
				 .workload = TEXT("w"),
				 .config = TEXT("c"),
				 .place = TEXT("gpu"),
				 .role = role,
				 .metric = TEXT(metric),
				 .stat = TEXT("mean"),
				 .unit = TEXT(unit),
				 .better = better,
				 .min_effect = 0.02,
				 .campaign = source == SERIES_CANARY ? s->campaign : 0};
	struct err e = {0};

	assert_ok(history_series_put(s->db, &row, NOW_US, &e));
	return row.id;
}

static void set_environment(struct scene *s, const char *json)
{
	struct err e = {0};

	assert_ok(history_environment_put(s->db, json, &s->environment, &e));
}

static void scene_open(struct scene *s)
{
	struct err e = {0};

	*s = (struct scene){0};
	assert_ok(db_open(":memory:", DB_CREATE, NULL, &s->db, &e));
	s->campaign = store_campaign(s->db, "canary");
	s->current = put_series(s, SERIES_CANARY, SERIES_CURRENT, "tokens", BETTER_UP, "1/s");
	s->pair = put_series(s, SERIES_CANARY, SERIES_PAIR, "tokens", BETTER_UP, "1");
	s->clock = put_series(s, SERIES_CANARY, SERIES_CURRENT, "sm_clock_mhz", BETTER_UP, "MHz");
	set_environment(s, "{\"kernel\":\"1\",\"driver\":\"1\",\"nccl\":\"1\"}");
}

static const char *night_of(int night)
{
	static char text[11];

	regress_night(FIRST + night, text);
	return text;
}

static void put_on(struct scene *s, int64_t series, int night, const char *nodes_a,
		   const char *nodes_b, double a, double b)
{
	const struct replicate v[] = {{a, nodes_a}, {b, nodes_b}};
	struct err e = {0};

	assert_ok(history_point_put(s->db, series, night_of(night), NOW_US + s->later_us, v, 2,
				    s->environment, 0, true, NULL, &e));
}

static void put(struct scene *s, int64_t series, int night, double value)
{
	put_on(s, series, night, "n1", "n2", value * 1.001, value * 0.999);
}

/* Noise of 0.5 %, the same in every run. */
static double noise(int64_t series, int night)
{
	struct rng r = rng_at(42, (uint64_t)series, (uint64_t)night, 0);

	return exp(0.005 * rng_normal(&r));
}

static struct track_result track(struct scene *s, int night)
{
	struct track_result out;
	struct err e = {0};

	assert_ok(track_night(s->db, night_of(night), NOW_US, &out, &e));
	return out;
}

/* Nights from..to of the canary, `level` times its usual speed. */
static struct track_result play(struct scene *s, int from, int to, double level)
{
	struct track_result out = {0};

	for (int night = from; night <= to; night++) {
		put(s, s->current, night, 1000 * level * noise(1, night));
		put(s, s->pair, night, sqrt(noise(2, night)));
		put(s, s->clock, night, 1980 * (level < 1 ? level : 1) * noise(3, night));
		out = track(s, night);
	}
	return out;
}

static size_t wanted(struct scene *s, struct wanted_row *first)
{
	struct wanted_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	assert_ok(track_wanted(s->db, &v, &n, &e));
	if (n > 0 && first) {
		*first = v[0];
		v[0].changed = NULL;
	}
	wanted_rows_free(v, n);
	return n;
}

/* A re-run of n blocks at `level`, against a reference at its own speed when keys are set back. */
static enum rerun_answer rerun(struct scene *s, int64_t regression, int night, double level,
			       const char *set_back, size_t n, char **why)
{
	struct stage_row stage = {
		.campaign = s->campaign, .seq = ++s->stages, .round = 1, .kind = STAGE_CANARY};
	struct canary_row row = {
		.campaign = s->campaign, .purpose = CANARY_RERUN, .regression = regression};
	double current[6], reference[6];
	struct rerun_result r = {.regression = regression,
				 .series = s->current,
				 .current = current,
				 .reference = set_back ? reference : NULL,
				 .n = n,
				 .set_back = set_back};
	enum rerun_answer answer;
	struct err e = {0};

	assert_ok(query_stage_add(s->db, &stage, &e));
	r.stage = row.stage = stage.id;
	str_copy(row.night, sizeof row.night, night_of(night));
	str_copy(r.night, sizeof r.night, night_of(night));
	assert_ok(history_canary_put(s->db, &row, &e));
	for (size_t i = 0; i < n; i++) {
		current[i] = log(1000 * level) + 0.002 * (double)i - 0.002;
		reference[i] = log(1000) - 0.001 * (double)i;
	}
	assert_ok(track_judge(s->db, &r, NOW_US, &answer, why, &e));
	return answer;
}

static enum rerun_answer rerun_quietly(struct scene *s, int64_t regression, int night, double level,
				       const char *set_back, size_t n)
{
	_cleanup_free_ char *why = NULL;

	return rerun(s, regression, night, level, set_back, n, &why);
}

static struct regression_row regression(struct scene *s, int64_t id)
{
	struct regression_row r = {0};
	struct err e = {0};

	assert_ok(history_regression_get(s->db, id, &r, &e));
	return r;
}

#define assert_count(scene, want, sql) assert_int_equal(store_count((scene)->db, sql), want)

/* -- suspect, re-run, confirmed ---------------------------------------------------------------- */

static void test_confirmed_by_history(void **state)
{
	struct scene s;
	struct wanted_row w = {0};
	struct track_result t;
	_cleanup_free_ char *why = NULL;
	_cleanup_free_ char *cause = NULL;

	(void)state;
	scene_open(&s);
	t = play(&s, 0, 29, 1);
	assert_int_equal(t.suspects + t.confirmed + t.open_confirmed, 0);
	assert_int_equal(t.series, 3);
	assert_int_equal(t.points, 3);
	set_environment(&s, "{\"kernel\":\"1\",\"driver\":\"2\",\"nccl\":\"1\"}");
	t = play(&s, 30, 30, 0.94);
	assert_int_equal(t.suspects, 1);
	assert_int_equal(t.open_confirmed, 0);
	assert_int_equal(wanted(&s, &w), 1);
	assert_int_equal(w.campaign, s.campaign);
	assert_string_equal(w.since, "2026-01-31");
	assert_string_equal(w.not_before, "2026-02-01");
	assert_string_equal(w.changed, "{\"driver\":{\"was\":\"1\",\"is\":\"2\"}}");
	assert_near(w.est, -0.06, 0.02);
	/* the night in doubt is no witness for itself */
	assert_int_equal(rerun(&s, w.regression, 30, 0.94, NULL, 3, &why), RERUN_LATER);
	assert_contains(why, "no witness");
	free(why);
	why = NULL;
	assert_int_equal(wanted(&s, NULL), 0);
	t = play(&s, 31, 31, 0.94);
	assert_int_equal(t.suspects, 0);
	assert_int_equal(wanted(&s, NULL), 1);
	/* two bad nights in a row would look like this */
	assert_int_equal(rerun(&s, w.regression, 31, 0.94, NULL, 3, &why), RERUN_LATER);
	free(why);
	why = NULL;
	play(&s, 32, 32, 0.94);
	assert_int_equal(rerun(&s, w.regression, 32, 0.94, NULL, 3, &why), RERUN_CONFIRMED);
	assert_contains(why, "measured again: -6.");
	assert_int_equal(wanted(&s, NULL), 0);
	t = play(&s, 33, 45, 0.94);
	assert_int_equal(t.open_confirmed, 1);
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE state = 'open'");
	assert_count(&s, 1, "SELECT count(*) FROM change WHERE level = 'confirmed' AND rerun > 0");
	cause = store_text(s.db, "SELECT key || ' ' || was || ' ' || \"is\" FROM cause WHERE "
				 "rank = 1 AND proved = 0");
	assert_string_equal(cause, "driver 1 2");
	/* the clock fell with it */
	assert_count(&s, 1,
		     "SELECT count(*) FROM cause WHERE kind = 'metric' AND "
		     "key = 'sm_clock_mhz'");
	free(w.changed);
	db_close(s.db);
}

static void test_confirmed_by_pairs(void **state)
{
	struct scene s;
	struct wanted_row w = {0};
	_cleanup_free_ char *why = NULL;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	set_environment(&s, "{\"kernel\":\"2\",\"driver\":\"1\",\"nccl\":\"2\"}");
	play(&s, 30, 30, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_int_equal(rerun_quietly(&s, w.regression, 30, 0.94, "nccl", 2), RERUN_MORE);
	/* the same night: both arms share what is odd about it */
	assert_int_equal(rerun(&s, w.regression, 30, 0.94, "nccl", 5, &why), RERUN_CONFIRMED);
	assert_contains(why, "against nccl as before");
	assert_count(&s, 1,
		     "SELECT count(*) FROM cause WHERE rank = 1 AND key = 'nccl' AND "
		     "proved = 1");
	/* what a re-run proved stays so */
	play(&s, 31, 34, 0.94);
	assert_count(&s, 1,
		     "SELECT count(*) FROM cause WHERE rank = 1 AND key = 'nccl' AND "
		     "proved = 1");
	free(w.changed);
	db_close(s.db);
}

/* Set back, and nothing differs: that key is not it, and history decides on another night. */
static void test_ruled_out(void **state)
{
	struct scene s;
	struct wanted_row w = {0};

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	set_environment(&s, "{\"kernel\":\"1\",\"driver\":\"2\",\"nccl\":\"2\"}");
	play(&s, 30, 30, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_int_equal(rerun_quietly(&s, w.regression, 30, 1, "nccl", 6), RERUN_LATER);
	assert_count(&s, 1, "SELECT count(*) FROM cause WHERE key = 'nccl' AND score = 0");
	play(&s, 31, 32, 0.94);
	assert_int_equal(wanted(&s, NULL), 1);
	assert_int_equal(rerun_quietly(&s, w.regression, 32, 0.94, NULL, 3), RERUN_CONFIRMED);
	assert_count(&s, 1, "SELECT count(*) FROM cause WHERE rank = 1 AND key = 'driver'");
	free(w.changed);
	db_close(s.db);
}

static void test_dismissed(void **state)
{
	struct scene s;
	struct wanted_row w = {0};
	struct regression_row r;
	struct track_result t;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	play(&s, 30, 30, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_null(w.changed);
	play(&s, 31, 31, 0.985);
	assert_int_equal(rerun_quietly(&s, w.regression, 31, 1.0, NULL, 3), RERUN_DISMISSED);
	r = regression(&s, w.regression);
	assert_int_equal(r.state, REGRESSION_DISMISSED);
	assert_int_equal(r.level, CHANGE_SUSPECT);
	assert_contains(r.note, "not seen again");
	regression_row_done(&r);
	/* judged already: nothing is asked twice, and a later judge says so */
	assert_int_equal(rerun_quietly(&s, w.regression, 31, 0.94, NULL, 3), RERUN_DISMISSED);
	t = play(&s, 32, 40, 1);
	assert_int_equal(t.suspects, 0);
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	/* what begins later is another one */
	t = play(&s, 41, 42, 0.94);
	assert_count(&s, 2, "SELECT count(*) FROM regression");
	db_close(s.db);
}

/* Two bad nights were dismissed, and the detector dates what follows to them. */
static void test_begins_after_bad_nights(void **state)
{
	struct scene s;
	struct wanted_row w = {0};

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	play(&s, 30, 31, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_int_equal(rerun_quietly(&s, w.regression, 31, 1, NULL, 3), RERUN_DISMISSED);
	play(&s, 32, 33, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_string_equal(w.since, "2026-02-02");
	play(&s, 34, 34, 0.94);
	assert_int_equal(rerun_quietly(&s, w.regression, 34, 0.94, NULL, 3), RERUN_CONFIRMED);
	db_close(s.db);
}

/* Several keys were set back: the next nights tell which it is, one by one. */
static void test_causes_told_apart(void **state)
{
	(void)state;
	for (int is_first = 0; is_first < 2; is_first++) {
		struct scene s;
		struct wanted_row w = {0};
		double level = is_first ? 0.94 : 1;

		scene_open(&s);
		set_environment(&s, "{\"nccl\":\"1\",\"omp\":\"1\"}");
		play(&s, 0, 29, 1);
		set_environment(&s, "{\"nccl\":\"2\",\"omp\":\"2\"}");
		play(&s, 30, 30, 0.94);
		assert_int_equal(wanted(&s, &w), 1);
		free(w.changed);
		assert_int_equal(rerun_quietly(&s, w.regression, 30, 0.94, "nccl,omp", 5),
				 RERUN_CONFIRMED);
		play(&s, 31, 31, 0.94);
		assert_count(&s, 0, "SELECT count(*) FROM cause WHERE proved");
		assert_int_equal(wanted(&s, &w), 1);
		assert_string_equal(w.changed, "{\"nccl\":{\"was\":\"1\",\"is\":\"2\"}}");
		free(w.changed);
		assert_int_equal(rerun_quietly(&s, w.regression, 31, level, "nccl", 6),
				 RERUN_CONFIRMED);
		play(&s, 32, 33, 0.94);
		assert_int_equal(wanted(&s, NULL), 0);
		assert_count(&s, is_first, "SELECT count(*) FROM cause WHERE proved");
		assert_count(&s, 1,
			     is_first ? "SELECT rank FROM cause WHERE key = 'nccl'"
				      : "SELECT rank FROM cause WHERE key = 'omp'");
		db_close(s.db);
	}
}

/* -- tonight again ------------------------------------------------------------------------------
 */

static void test_same_night_again(void **state)
{
	struct scene s;
	struct track_result a, b;
	_cleanup_free_ char *was = NULL, *is = NULL;
	static const char
		all[] = "SELECT group_concat(night || first_night || last_night || est || "
			"level || regression) FROM change";

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	a = play(&s, 30, 30, 0.94);
	was = store_text(s.db, all);
	b = track(&s, 30);
	is = store_text(s.db, all);
	assert_memory_equal(&a, &b, sizeof a);
	assert_string_equal(was, is);
	db_close(s.db);
}

/* A clock that was set back: later points are left out, and nothing is raised or closed. */
static void test_clock_set_back(void **state)
{
	struct scene s;
	struct track_result t;
	struct err e = {0};

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	play(&s, 30, 31, 0.94);
	t = track(&s, 20);
	assert_int_equal(t.points, 3);
	assert_int_equal(t.suspects, 0);
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE state = 'open'");
	assert_int_equal(track_night(s.db, "2026-02-30", NOW_US, &t, &e), -ERR_PARSE);
	assert_contains(e.text, "2026-02-30");
	db_close(s.db);
}

/* -- what goes back, what is fixed, what is accepted ---------------------------------------------
 */

static void test_transient_suspect(void **state)
{
	struct scene s;
	struct track_result t;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	play(&s, 30, 30, 0.9);
	t = play(&s, 31, 31, 1);
	assert_int_equal(t.transient, 0);
	assert_int_equal(wanted(&s, NULL), 0); /* the night after does not lean any more */
	t = play(&s, 32, 32, 1);
	assert_int_equal(t.transient, 1);
	t = play(&s, 33, 40, 1);
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	db_close(s.db);
}

static int64_t confirm(struct scene *s, int night, double level)
{
	struct wanted_row w = {0};

	play(s, night, night + 2, level);
	assert_int_equal(wanted(s, &w), 1);
	assert_int_equal(rerun_quietly(s, w.regression, night + 2, level, NULL, 3),
			 RERUN_CONFIRMED);
	free(w.changed);
	return w.regression;
}

static void test_confirmed_goes_back(void **state)
{
	struct scene s;
	struct track_result t;
	struct regression_row r;
	int64_t id;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	id = confirm(&s, 30, 0.94);
	t = play(&s, 32, 36, 0.94);
	assert_int_equal(t.open_confirmed, 1);
	t = play(&s, 37, 42, 1);
	assert_int_equal(t.open_confirmed, 0);
	r = regression(&s, id);
	assert_int_equal(r.state, REGRESSION_TRANSIENT);
	assert_int_equal(r.level, CHANGE_CONFIRMED);
	assert_contains(r.note, "after 7 nights, on 2026-02-07");
	regression_row_done(&r);
	/* the way back is no change for the better */
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	db_close(s.db);
}

/* A re-run tonight would measure what is confirmed since as well. */
static void test_before_what_is_confirmed(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	(void)confirm(&s, 30, 0.94);
	for (int night = 18; night < 30; night++)
		put(&s, s.current, night, 970 * noise(1, night));
	play(&s, 33, 36, 0.94);
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	db_close(s.db);
}

static void set_state(struct scene *s, int64_t id, enum regression_state state)
{
	struct regression_row r = regression(s, id);
	struct err e = {0};

	r.state = state;
	assert_ok(history_regression_update(s->db, &r, &e));
	regression_row_done(&r);
}

static void test_fixed_comes_back(void **state)
{
	struct scene s;
	int64_t id;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	id = confirm(&s, 30, 0.94);
	play(&s, 32, 36, 0.94);
	set_state(&s, id, REGRESSION_FIXED);
	play(&s, 37, 49, 1);
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	/* Otava's rule takes a night more behind two other changes */
	play(&s, 50, 51, 0.94);
	assert_int_not_equal(confirm(&s, 52, 0.94), id);
	assert_int_equal(track(&s, 54).open_confirmed, 1);
	db_close(s.db);
}

static void test_accepted_is_normal(void **state)
{
	struct scene s;
	struct track_result t;
	int64_t id;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	id = confirm(&s, 30, 0.94);
	set_state(&s, id, REGRESSION_ACCEPTED);
	t = play(&s, 32, 49, 0.94);
	assert_int_equal(t.open_confirmed, 0);
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	/* from there it is a change for the better, which nobody is woken for */
	id = confirm(&s, 50, 1);
	t = play(&s, 52, 53, 1);
	assert_int_equal(t.open_confirmed, 0);
	assert_count(&s, 1,
		     "SELECT count(*) FROM regression WHERE kind = 'better' AND "
		     "level = 'confirmed' AND state = 'open'");
	db_close(s.db);
}

/* What was better for weeks is what people are used to: its end is told, though it only goes back.
 */
static void test_better_ends(void **state)
{
	struct scene s;
	struct wanted_row w = {0};

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	confirm(&s, 30, 1.06);
	play(&s, 32, 36, 1.06);
	play(&s, 37, 38, 1);
	assert_int_equal(wanted(&s, NULL), 0);
	play(&s, 39, 49, 1);
	confirm(&s, 50, 1.06);
	play(&s, 52, 79, 1.06);
	play(&s, 80, 81, 1);
	assert_int_equal(wanted(&s, &w), 1);
	assert_string_equal(w.since, night_of(80));
	assert_true(w.est < -0.04);
	assert_int_equal(rerun_quietly(&s, w.regression, 82, 1, NULL, 3), RERUN_CONFIRMED);
	assert_int_equal(play(&s, 82, 90, 1).open_confirmed, 1);
	free(w.changed);
	db_close(s.db);
}

static void play_pair(struct scene *s, int from, int to, double level, double pair)
{
	for (int night = from; night <= to; night++) {
		put(s, s->current, night, 1000 * level * noise(1, night));
		put(s, s->pair, night, pair * sqrt(noise(2, night)));
		track(s, night);
	}
}

/* The reference follows what was accepted: that the pair is even again is no change for the better.
 */
static void test_accepted_pair(void **state)
{
	struct scene s;
	struct wanted_row w = {0};

	(void)state;
	scene_open(&s);
	play_pair(&s, 0, 29, 1, 1);
	set_environment(&s, "{\"kernel\":\"1\",\"driver\":\"1\",\"nccl\":\"2\"}");
	play_pair(&s, 30, 31, 0.94, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_int_equal(rerun_quietly(&s, w.regression, 31, 0.94, "nccl", 5), RERUN_CONFIRMED);
	play_pair(&s, 32, 33, 0.94, 0.94);
	set_state(&s, w.regression, REGRESSION_ACCEPTED);
	s.later_us = 1;
	play_pair(&s, 34, 40, 0.94, 1);
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	/* and that it leans again is one */
	play_pair(&s, 41, 44, 0.94 * 0.94, 0.94);
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE state = 'open'");
	free(w.changed);
	db_close(s.db);
}

/* What is acknowledged and becomes worse within days is told of as one of its own. */
static void test_worse_again(void **state)
{
	struct scene s;
	struct wanted_row w = {0};

	(void)state;
	scene_open(&s);
	play_pair(&s, 0, 29, 1, 1);
	set_environment(&s, "{\"kernel\":\"1\",\"driver\":\"1\",\"nccl\":\"2\"}");
	play_pair(&s, 30, 30, 0.8, 0.8);
	assert_int_equal(wanted(&s, &w), 1);
	assert_int_equal(rerun_quietly(&s, w.regression, 30, 0.8, "nccl", 5), RERUN_CONFIRMED);
	set_state(&s, w.regression, REGRESSION_ACKNOWLEDGED);
	free(w.changed);
	play_pair(&s, 31, 31, 0.8, 0.8);
	play_pair(&s, 32, 36, 0.6, 0.6);
	assert_int_equal(wanted(&s, &w), 1);
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE state = 'open'");
	free(w.changed);
	db_close(s.db);
}

/* -- other sources -------------------------------------------------------------------------------
 */

static struct track_result play_other(struct scene *s, int from, int to, double level)
{
	struct track_result t = {0};

	for (int night = from; night <= to; night++) {
		put(s, s->other, night, 50 * level * noise(9, night));
		t = track(s, night);
	}
	return t;
}

static void test_imported_and_observed(void **state)
{
	static const enum series_source sources[] = {SERIES_IMPORTED, SERIES_OBSERVED};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct scene s;
		struct track_result t;

		scene_open(&s);
		s.other = put_series(&s, sources[i], SERIES_CURRENT, "wait_ms", BETTER_DOWN, "ms");
		play_other(&s, 0, 29, 1);
		t = play_other(&s, 30, 30, 1.06);
		assert_int_equal(t.suspects, 1);
		assert_int_equal(wanted(&s, NULL), 0);
		t = play_other(&s, 31, 36, 1.06);
		assert_int_equal(t.open_confirmed, i == 0);
		assert_count(&s, 1, "SELECT count(*) FROM change");
		db_close(s.db);
	}
}

/* One night on which everything hung, however badly, is no change. */
static void test_hang(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	s.other = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "wait_ms", BETTER_DOWN, "ms");
	play_other(&s, 0, 29, 1);
	play_other(&s, 30, 30, 1.8);
	assert_int_equal(play_other(&s, 31, 50, 1).open_confirmed, 0);
	assert_count(&s, 0, "SELECT count(*) FROM change WHERE level = 'confirmed'");
	db_close(s.db);
}

/* The night of a change wanders by some nights; what is near what people were told of is that. */
static void test_told_once(void **state)
{
	struct scene s;
	int64_t compute;

	(void)state;
	scene_open(&s);
	s.other = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "wait_ms", BETTER_DOWN, "ms");
	compute = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "compute_ms", BETTER_DOWN, "ms");
	for (int night = 0; night < 45; night++) {
		put(&s, s.other, night, (night < 30 ? 40 : 44) * noise(8, night));
		put(&s, compute, night, (night < 33 ? 60 : 66) * noise(9, night));
		track(&s, night);
	}
	assert_count(&s, 2, "SELECT count(*) FROM change WHERE level = 'confirmed'");
	assert_count(&s, 1,
		     "SELECT count(*) FROM regression WHERE level = 'confirmed' AND "
		     "state != 'dismissed'");
	db_close(s.db);
}

/* A history is brought whole: what it had been through is no news. */
static void test_old_history(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	s.other = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "wait_ms", BETTER_DOWN, "ms");
	assert_int_equal(store_exec(s.db, "UPDATE series SET created_us = 1796000000000000"),
			 SQLITE_OK);
	for (int night = 0; night < 100; night++)
		put(&s, s.other, night, (night < 50 ? 50 : 55) * noise(9, night));
	assert_int_equal(track(&s, 99).open_confirmed, 0);
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE state = 'acknowledged'");
	db_close(s.db);
}

/* Waiting became shorter and computing longer by as much: a shift, whatever each is. */
static void test_shift(void **state)
{
	struct scene s;
	int64_t compute;

	(void)state;
	scene_open(&s);
	s.other = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "wait_ms", BETTER_DOWN, "ms");
	compute = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "compute_ms", BETTER_DOWN, "ms");
	for (int night = 0; night < 40; night++) {
		double moved = night < 30 ? 0 : 5;

		put(&s, s.other, night, (40 + moved) * noise(8, night));
		put(&s, compute, night, (60 - moved) * noise(9, night));
		track(&s, night);
	}
	assert_count(&s, 1, "SELECT count(*) FROM regression");
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE kind = 'shift'");
	assert_int_equal(track(&s, 39).open_confirmed, 0);
	db_close(s.db);
}

/* -- awkward series ------------------------------------------------------------------------------
 */

static void test_awkward_series(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	s.other = put_series(&s, SERIES_IMPORTED, SERIES_CURRENT, "retries", BETTER_NONE, "");
	put_on(&s, s.other, 0, NULL, NULL, 0, 0);
	assert_int_equal(track(&s, 0).suspects, 0);
	put_on(&s, s.other, 1, NULL, NULL, 7, 7);
	assert_int_equal(track(&s, 1).suspects, 0); /* two points are no series */
	for (int night = 1; night < 30; night++) {
		put_on(&s, s.other, night, NULL, NULL, 0, 0);
		assert_int_equal(track(&s, night).suspects, 0); /* all equal, and zero */
	}
	for (int night = 30; night < 36; night++) {
		put_on(&s, s.other, night, NULL, NULL, 4, 4);
		track(&s, night);
	}
	/* neither better nor worse: told of as a shift, and nobody is woken */
	assert_count(&s, 1, "SELECT count(*) FROM regression WHERE kind = 'shift'");
	assert_count(&s, 1, "SELECT count(*) FROM change WHERE direction = 'neither'");
	assert_int_equal(track(&s, 35).open_confirmed, 0);
	db_close(s.db);
}

static void test_few_nights_before(void **state)
{
	struct scene s;
	struct wanted_row w = {0};
	_cleanup_free_ char *why = NULL;

	(void)state;
	scene_open(&s);
	play(&s, 0, 5, 1);
	play(&s, 6, 7, 0.8);
	assert_true(wanted(&s, &w) <= 1);
	assert_true(w.regression > 0);
	play(&s, 8, 8, 0.8);
	assert_int_equal(rerun(&s, w.regression, 8, 0.8, NULL, 3, &why), RERUN_LATER);
	assert_contains(why, "8 are needed");
	assert_int_equal(play(&s, 9, 20, 0.8).open_confirmed, 0);
	free(w.changed);
	db_close(s.db);
}

static void test_slow_node(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	for (int night = 30; night < 33; night++) {
		put_on(&s, s.current, night, "n1", "n7", 1000, 820);
		track(&s, night);
	}
	assert_count(&s, 1,
		     "SELECT count(*) FROM cause WHERE rank = 1 AND kind = 'node' AND "
		     "key = 'n7'");
	db_close(s.db);
}

/* Weeks without a night: the change may lie in them, and so may its cause. */
static void test_missing_nights(void **state)
{
	struct scene s;
	struct wanted_row w = {0};

	(void)state;
	scene_open(&s);
	play(&s, 0, 29, 1);
	set_environment(&s, "{\"kernel\":\"2\",\"driver\":\"1\",\"nccl\":\"1\"}");
	play(&s, 50, 50, 0.94);
	assert_int_equal(wanted(&s, &w), 1);
	assert_string_equal(w.changed, "{\"kernel\":{\"was\":\"1\",\"is\":\"2\"}}");
	assert_count(&s, 1,
		     "SELECT count(*) FROM change WHERE series = 1 AND "
		     "first_night = '2026-01-31' AND last_night = '2026-02-20'");
	free(w.changed);
	db_close(s.db);
}

/* -- refusals ------------------------------------------------------------------------------------
 */

static void test_refusals(void **state)
{
	struct scene s;
	double v[] = {1, 2, NAN};
	struct rerun_result r = {.series = 99, .regression = 1, .current = v, .n = 2};
	enum rerun_answer answer;
	struct err e = {0};
	char *why = NULL;
	int64_t id;
	struct regression_row row = {.night = "2026-01-10", .found_night = "2026-01-10"};

	(void)state;
	scene_open(&s);
	assert_int_equal(track_judge(s.db, &r, NOW_US, &answer, &why, &e), -ERR_PARSE);
	str_copy(r.night, sizeof r.night, "2026-01-11");
	assert_int_equal(track_judge(s.db, &r, NOW_US, &answer, &why, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "series 99");
	r.series = s.current;
	assert_int_equal(track_judge(s.db, &r, NOW_US, &answer, &why, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "regression 1");
	assert_ok(history_regression_add(s.db, &row, &id, &e));
	r.regression = id;
	assert_int_equal(track_judge(s.db, &r, NOW_US, &answer, &why, &e), -ERR_STATE);
	r.n = 3;
	assert_int_equal(track_judge(s.db, &r, NOW_US, &answer, &why, &e), -ERR_PARSE);
	assert_contains(e.text, "block 3");
	r.n = 0;
	assert_int_equal(track_judge(s.db, &r, NOW_US, &answer, &why, &e), -ERR_PARSE);
	assert_null(why);
	db_close(s.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_confirmed_by_history),
		cmocka_unit_test(test_confirmed_by_pairs),
		cmocka_unit_test(test_ruled_out),
		cmocka_unit_test(test_dismissed),
		cmocka_unit_test(test_begins_after_bad_nights),
		cmocka_unit_test(test_causes_told_apart),
		cmocka_unit_test(test_before_what_is_confirmed),
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_same_night_again),
		cmocka_unit_test(test_clock_set_back),
		cmocka_unit_test(test_transient_suspect),
		cmocka_unit_test(test_confirmed_goes_back),
		cmocka_unit_test(test_fixed_comes_back),
		cmocka_unit_test(test_accepted_is_normal),
		cmocka_unit_test(test_accepted_pair),
		cmocka_unit_test(test_better_ends),
		cmocka_unit_test(test_worse_again),
		cmocka_unit_test(test_imported_and_observed),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_old_history),
		cmocka_unit_test(test_shift),
		cmocka_unit_test(test_awkward_series),
		cmocka_unit_test(test_few_nights_before),
		cmocka_unit_test(test_slow_node),
		cmocka_unit_test(test_missing_nights),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
