/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacked winners against scheduler fake: what a later change made useless leaves the fix, what
 * adds up stays.
 */
#include "tests/unit/world.h"

#define RECIPE "tests/fixtures/recipes/stack.lua"

/* The wait for data that makes B wait for A. */
#define WAITS                                                                             \
	"\"metrics\": {\"data_wait_ratio\": 0.3}, "                                       \
	"\"metric_effects\": {\"A=1\": {\"data_wait_ratio\": 0.01}}, \"sd_run\": 0.005, " \
	"\"fixed\": true"

static char *fix_text(struct world *w)
{
	struct fix_row fix;
	struct config config;
	bool found = false;
	char *text;

	assert_int_equal(query_fix_get(w->ws->db, w->id, &fix, &found, NULL), 0);
	assert_true(found);
	assert_int_equal(query_config_get(w->ws->db, fix.config, &config, NULL), 0);
	text = config_text(&config);
	config_done(&config);
	fix_row_done(&fix);
	return text;
}

static void assert_fix(struct world *w, const char *want)
{
	_cleanup_free_ char *text = fix_text(w);

	assert_string_equal(text, want);
}

/* What the newest ablation says of a knob; it is there. */
static struct ablation_row ablation_of(struct world *w, const char *knobs)
{
	struct ablation_row *v = NULL, out = {.n = -1};
	size_t n = 0;

	assert_int_equal(query_ablations(w->ws->db, w->id, &v, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].knobs, knobs))
			out = v[i];
	ablation_rows_free(v, n);
	assert_true(out.n > 0);
	return out;
}

static void test_a_change_that_a_later_one_made_useless_is_dropped(void **state)
{
	struct world w;

	(void)state;
	world_open_recipe(&w, 1, RECIPE);
	run(&w, "{\"effects\": {\"A=1\": 0.1, \"B=1\": 0.2, \"A=1\\nB=1\": -0.0909}, " WAITS "}");
	assert_outcome(&w, "A", "accepted");
	assert_outcome(&w, "B", "accepted");
	assert_int_equal(ablation_of(&w, "A").outcome, ABLATION_DROPPED);
	assert_int_equal(ablation_of(&w, "B").outcome, ABLATION_PAYS);
	assert_fix(&w, "B=1");
	world_close(&w);
}

static void test_changes_that_add_up_both_stay(void **state)
{
	struct world w;
	struct ablation_row a;

	(void)state;
	world_open_recipe(&w, 2, RECIPE);
	run(&w, "{\"effects\": {\"A=1\": 0.1, \"B=1\": 0.2}, " WAITS "}");
	a = ablation_of(&w, "A");
	assert_int_equal(a.outcome, ABLATION_PAYS);
	assert_int_equal(a.n, 8);
	assert_true(a.lo < 1 / 1.1 - 1 && a.hi > 1 / 1.1 - 1);
	assert_int_equal(ablation_of(&w, "B").outcome, ABLATION_PAYS);
	assert_fix(&w, "A=1, B=1");
	world_close(&w);
}

/* Removing it costs nothing in speed, but the loss is worse without it. */
static void test_a_change_that_a_guard_needs_stays(void **state)
{
	struct world w;

	(void)state;
	world_open_recipe(&w, 3, RECIPE);
	run(&w, "{\"effects\": {\"A=1\": 0.1, \"B=1\": 0.2, \"A=1\\nB=1\": -0.0909}, "
		"\"loss_effects\": {\"A=1\": -0.2}, " WAITS "}");
	assert_outcome(&w, "B", "accepted");
	assert_int_equal(ablation_of(&w, "A").outcome, ABLATION_OPEN);
	assert_fix(&w, "A=1, B=1");
	world_close(&w);
}

/* Settings that help only together are one declared change: credited to it, and removed as one. */
static void test_a_joint_change_is_one_change(void **state)
{
	struct world w;

	(void)state;
	world_open_recipe(&w, 5, "tests/fixtures/recipes/joint.lua");
	run(&w,
	    "{\"effects\": {\"A=1\": 0.1, \"B=1\\nC=1\": 0.2}, \"sd_run\": 0.005, \"fixed\": true}");
	assert_outcome(&w, "pair", "accepted");
	assert_outcome(&w, "A", "accepted");
	assert_int_equal(ablation_of(&w, "pair").outcome, ABLATION_PAYS);
	assert_int_equal(ablation_of(&w, "A").outcome, ABLATION_PAYS);
	assert_fix(&w, "A=1, pair=on");
	world_close(&w);
}

static void test_one_change_needs_no_ablation(void **state)
{
	struct world w;
	struct ablation_row *v = NULL;
	size_t n = 0;

	(void)state;
	world_open_recipe(&w, 4, RECIPE);
	run(&w, "{\"effects\": {\"A=1\": 0.1}, " WAITS "}");
	assert_int_equal(query_ablations(w.ws->db, w.id, &v, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_fix(&w, "A=1");
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_change_that_a_later_one_made_useless_is_dropped),
		cmocka_unit_test(test_changes_that_add_up_both_stay),
		cmocka_unit_test(test_a_change_that_a_guard_needs_stays),
		cmocka_unit_test(test_a_joint_change_is_one_change),
		cmocka_unit_test(test_one_change_needs_no_ablation),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
