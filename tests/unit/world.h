/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A whole campaign against scheduler fake in a workspace of its own: virtual clock, declared truth.
 */
#ifndef FETTLE_TESTS_UNIT_WORLD_H
#define FETTLE_TESTS_UNIT_WORLD_H

#include "tests/unit/check.h"

#include <math.h>
#include <unistd.h>

#include "orchestrator/base/str.h"
#include "orchestrator/method/campaign.h"

#define WORLD_RECIPE "tests/fixtures/recipes/fake.lua"

struct world {
	char dir[64];
	struct clock_virtual time;
	struct clock clock;
	struct workspace *ws;
	struct script_sources sources;
	struct recipe *recipe;
	int64_t id;
	int steps;
};

static inline void world_open_recipe(struct world *w, uint64_t seed, const char *recipe)
{
	static const char *const dirs[] = {"recipes", NULL};
	struct script_path path = {.dirs = dirs};
	struct err e = {0};

	memset(w, 0, sizeof *w);
	str_copy(w->dir, sizeof w->dir, "/dev/shm/fettle-fake-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->time = (struct clock_virtual){.utc_us = 1800000000000000, .mono_us = 0};
	w->clock = clock_virtual_of(&w->time);
	assert_ok(script_load(recipe, &path, &w->recipe, &w->sources, &e));
	assert_ok(workspace_open(w->dir, DB_CREATE, &w->clock, &w->ws, &e));
	w->recipe->seed = seed;
	assert_ok(campaign_create(w->ws, w->recipe, &w->sources, recipe, "fake", &w->id, &e));
}

static inline void world_open(struct world *w, uint64_t seed)
{
	world_open_recipe(w, seed, WORLD_RECIPE);
}

/* The recipe with further fields, which win over its own: Lua, "rounds = 1, repeats = 2". */
static inline void world_open_with(struct world *w, uint64_t seed, const char *fields)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "fake.lua"), *text = NULL;
	struct buf base = {0};
	struct err e = {0};
	char *end;

	assert_ok(fs_read(WORLD_RECIPE, 1 << 16, &base, &e));
	end = strrchr(base.data, '}');
	assert_non_null(end);
	*end = '\0';
	text = xasprintf("%s\t%s,\n}\n", base.data, fields);
	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
	buf_free(&base);
	world_open_recipe(w, seed, path);
}

static inline void world_close(struct world *w)
{
	struct err e = {0};

	workspace_close(w->ws);
	recipe_free(w->recipe);
	script_sources_free(&w->sources);
	assert_int_equal(fs_remove_tree(w->dir, &e), 0);
}

/* Drive it for at most `steps` steps; true when it is over. */
static inline bool drive(struct world *w, const char *spec, int steps)
{
	struct campaign_options o = {.sched = sched_find("fake"), .spec = spec, .take_over = true};
	struct campaign *c = NULL;
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct err e = {0};

	assert_ok(campaign_open(w->ws, w->id, &o, &c, &e));
	for (int i = 0; i < steps && step != CAMPAIGN_OVER; i++, w->steps++) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	return step == CAMPAIGN_OVER;
}

static inline void run(struct world *w, const char *spec)
{
	assert_true(drive(w, spec, 100000));
}

static inline enum campaign_state state_of(struct world *w)
{
	struct campaign_row row;
	enum campaign_state s;

	assert_int_equal(query_campaign_get(w->ws->db, w->id, &row, NULL), 0);
	s = row.state;
	campaign_row_done(&row);
	return s;
}

/* The last verdict about a knob; heap, NULL when there is none. */
static inline char *outcome(struct world *w, const char *knob, double *est)
{
	struct hypothesis_row *h = NULL;
	struct verdict_row *v = NULL;
	size_t nh = 0, nv = 0;
	char *out = NULL;

	assert_int_equal(query_hypotheses(w->ws->db, w->id, &h, &nh, NULL), 0);
	assert_int_equal(query_verdicts(w->ws->db, w->id, &v, &nv, NULL), 0);
	for (size_t i = 0; i < nv; i++)
		for (size_t j = 0; j < nh; j++)
			if (v[i].hypothesis == h[j].id && v[i].final_look &&
			    str_eq(h[j].knob, knob)) {
				free(out);
				out = xstrdup(v[i].outcome);
				if (est)
					*est = v[i].est;
			}
	hypothesis_rows_free(h, nh);
	verdict_rows_free(v, nv);
	return out;
}

static inline void assert_outcome(struct world *w, const char *knob, const char *want)
{
	_cleanup_free_ char *got = outcome(w, knob, NULL);

	if (!str_eq(got, want))
		fail_msg("%s is %s, want %s", knob, got ? got : "without verdict",
			 want ? want : "no verdict");
}

static inline int accepted(struct world *w)
{
	struct verdict_row *v = NULL;
	size_t n = 0;
	int k = 0;

	assert_int_equal(query_verdicts(w->ws->db, w->id, &v, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		k += v[i].final_look && str_eq(v[i].outcome, "accepted");
	verdict_rows_free(v, n);
	return k;
}

#endif
