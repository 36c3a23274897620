/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store for tests: a campaign with one hypothesis, two configurations and a screen stage of two
 * arms, one block of four slots (each arm twice) and what it takes to add more.
 */
#ifndef FETTLE_TESTS_UNIT_STORE_H
#define FETTLE_TESTS_UNIT_STORE_H

#include "tests/unit/check.h"

#include <math.h>
#include <sqlite3.h>

#include "experiments/db_priv.h"
#include "experiments/history.h"
#include "experiments/query.h"

/* Word constants of structs that own their text in production. */
#define TEXT(s) ((char *)(uintptr_t)(s))

enum { STORE_NOW_US = 1796000000 };

struct store {
	struct db *db;
	int64_t campaign, hypothesis, config[2], stage, arm[2], block;
};

static inline int64_t store_campaign(struct db *db, const char *name)
{
	struct campaign_row c = {
		.name = TEXT(name),
		.recipe_path = TEXT("/r/c.lua"),
		.recipe_hash = TEXT("00ff"),
		.scheduler = TEXT("fake"),
		.mode = MODE_QUICK,
		.seed = UINT64_MAX - 3,
		.alpha = 0.05,
		.confirm_max = 3,
		.env_json = TEXT("{\"PATH\":\"/bin\"}"),
		.created_us = STORE_NOW_US,
	};
	struct err e = {0};
	int64_t id = 0;

	assert_ok(query_campaign_create(db, &c, NULL, 0, &id, &e));
	return id;
}

static inline int64_t store_config(struct db *db, int k)
{
	struct config c = {0};
	struct err e = {0};
	int64_t id = 0;

	snprintf(c.hash, sizeof c.hash, "%032x", (unsigned)k);
	strv_add(&c.argv, "python3");
	strv_addf(&c.argv, "--x=%d", k);
	kvs_set(&c.env, "A", "1");
	kvs_set(&c.env, "B", NULL);
	if (k > 0)
		kvs_set(&c.settings, "x", k == 1 ? "1" : "2");
	assert_ok(query_config_put(db, &c, &id, &e));
	config_done(&c);
	return id;
}

static inline int64_t store_hypothesis(struct db *db, int64_t campaign, int rank, const char *knob)
{
	struct hypothesis_row h = {
		.campaign = campaign,
		.round = 1,
		.rank = rank,
		.knob = TEXT(knob),
		.value = TEXT("1"),
		.proof = PROOF_DELIVERED,
		.bottleneck = BOTTLENECK_STORAGE,
		.evidence = TEXT("data wait 12 %"),
		.gain = 0.1,
		.ceiling = 0.136,
	};
	struct err e = {0};
	int64_t id = 0;

	assert_ok(query_hypothesis_add(db, &h, &id, &e));
	return id;
}

/* A stage of two arms; `hypothesis` 0: none. arm[] comes back. */
static inline int64_t store_stage(struct store *st, enum stage_kind kind, int seq,
				  int64_t hypothesis, int64_t arm[2])
{
	struct arm_row arms[2] = {
		{.index = 0, .config = st->config[0], .label = TEXT("default")},
		{.index = 1,
		 .role = ROLE_TREATMENT,
		 .config = st->config[1],
		 .hypothesis = hypothesis,
		 .label = TEXT("x=1")},
	};
	struct stage_row s = {
		.campaign = st->campaign,
		.seq = seq,
		.round = 1,
		.kind = kind,
		.planned_blocks = 8,
		.alpha_share = 0.0125,
		.open = true,
		.arms = arms,
		.n_arms = 2,
	};
	struct err e = {0};

	assert_ok(query_stage_add(st->db, &s, &e));
	arm[0] = arms[0].id;
	arm[1] = arms[1].id;
	return s.id;
}

/* A block: one warm-up trial of arm 0, then arm 0 and 1 in turns, `pairs` times. */
static inline int64_t store_block(struct store *st, int64_t stage, const int64_t arm[2], int index,
				  int pairs)
{
	_cleanup_free_ struct slot *slots = xcalloc((size_t)pairs * 2 + 1, sizeof *slots);
	struct err e = {0};
	int64_t id = 0;

	slots[0] = (struct slot){.arm = arm[0], .kind = SLOT_WARMUP};
	for (int i = 0; i < pairs * 2; i++)
		slots[i + 1] = (struct slot){
			.arm = arm[i % 2], .repeat = i / 2, .kind = SLOT_TIMED};
	assert_ok(query_block_add(st->db, stage, index, slots, (size_t)pairs * 2 + 1, &id, &e));
	return id;
}

static inline struct store store_fill(struct db *db)
{
	struct store st = {.db = db};

	st.campaign = store_campaign(db, "demo");
	st.config[0] = store_config(db, 0);
	st.config[1] = store_config(db, 1);
	st.hypothesis = store_hypothesis(db, st.campaign, 1, "x");
	st.stage = store_stage(&st, STAGE_SCREEN, 1, st.hypothesis, st.arm);
	st.block = store_block(&st, st.stage, st.arm, 0, 2);
	return st;
}

static inline struct store store_new(const char *path)
{
	struct db *db = NULL;
	struct err e = {0};

	assert_ok(db_open(path, DB_CREATE, NULL, &db, &e));
	return store_fill(db);
}

static inline int64_t store_plan(struct store *st, int64_t block)
{
	int64_t attempt = 0, allocation = 0;
	struct err e = {0};
	char token[64];
	int number = 0;

	assert_ok(query_attempt_plan(st->db, st->campaign, block, "fake", STORE_NOW_US, &attempt,
				     &number, &allocation, token, &e));
	return attempt;
}

/* Trials that fit a block of store_block(); step_time_ms of slot i is 100 + i. */
static inline struct trial_result *store_trials(const int64_t arm[2], int pairs)
{
	struct trial_result *t = xcalloc((size_t)pairs * 2 + 1, sizeof *t);

	for (int i = 0; i < pairs * 2 + 1; i++) {
		t[i].slot = i;
		t[i].arm = i == 0 ? arm[0] : arm[(i - 1) % 2];
		t[i].repeat = i == 0 ? 0 : (i - 1) / 2;
		t[i].kind = i == 0 ? SLOT_WARMUP : SLOT_TIMED;
		t[i].start_us = STORE_NOW_US + i;
		t[i].wall_us = 1000000;
		t[i].node = xstrdup("n1");
		t[i].log_path = xasprintf("blocks/1.1/t%02d/out", i);
		trial_result_metric(&t[i], "step_time_ms", "mean", "", 100 + i);
		trial_result_effective(&t[i], 0, "env.A", "1", PROOF_DELIVERED);
	}
	return t;
}

static inline void store_trials_free(struct trial_result *t, int pairs)
{
	for (int i = 0; i < pairs * 2 + 1; i++)
		trial_result_done(&t[i]);
	free(t);
}

/* Plan and ingest one attempt of a block of store_block(). */
static inline void store_run(struct store *st, int64_t block, const int64_t arm[2], int pairs)
{
	static const char *const nodes[] = {"n1"};
	struct trial_result *t = store_trials(arm, pairs);
	int64_t attempt = store_plan(st, block);
	struct err e = {0};
	bool again = true;

	assert_ok(query_attempt_ingest(st->db, attempt, "0123", t, (size_t)pairs * 2 + 1, nodes, 1,
				       STORE_NOW_US + 1, &again, &e));
	assert_false(again);
	store_trials_free(t, pairs);
}

/* A row in each table of history.h. */
static inline void store_history(struct store *st)
{
	struct series_row series = {.workload = TEXT("w"),
				    .metric = TEXT("step_time_ms"),
				    .stat = TEXT("mean"),
				    .min_effect = 0.02};
	struct replicate value = {.value = 1.5, .nodes = "n1"};
	struct regression_row r = {.night = "2026-11-29", .found_night = "2026-11-29"};
	struct change_row c = {.night = "2026-11-29", .est = -0.1};
	struct cause_row cause = {.rank = 1, .key = TEXT("kernel"), .why = TEXT("it changed")};
	struct canary_row canary = {.stage = st->stage, .night = "2026-11-29"};
	struct observation_row o = {.path = TEXT("/logs/1.out"), .night = "2026-11-28", .value = 2};
	struct err e = {0};
	int64_t environment, id;

	assert_ok(history_environment_put(st->db, "{\"kernel\":\"6\"}", &environment, &e));
	assert_ok(history_node_environment_put(st->db, 1, "n1", environment, &e));
	assert_ok(history_series_put(st->db, &series, 1, &e));
	assert_ok(history_point_put(st->db, series.id, "2026-11-29", 1, &value, 1, environment, 0,
				    false, NULL, &e));
	o.series = series.id;
	assert_ok(history_observation_put(st->db, &o, 1, &e));
	assert_ok(history_regression_add(st->db, &r, &c.regression, &e));
	c.series = series.id;
	assert_ok(history_change_add(st->db, &c, &id, &e));
	assert_ok(history_causes_put(st->db, c.regression, &cause, 1, &e));
	assert_ok(history_canary_put(st->db, &canary, &e));
}

/* One number by any SQL, past the layer under test. */
static inline int64_t store_count(struct db *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t v;

	if (sqlite3_prepare_v2(db_handle(db), sql, -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db_handle(db)));
	v = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return v;
}

/* One text by any SQL; heap, NULL for NULL. */
static inline char *store_text(struct db *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	char *v;

	if (sqlite3_prepare_v2(db_handle(db), sql, -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db_handle(db)));
	v = xstrdup((const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	return v;
}

static inline int store_exec(struct db *db, const char *sql)
{
	return sqlite3_exec(db_handle(db), sql, NULL, NULL, NULL);
}

#endif
