/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fix against scheduler fake: where its blocks run, what its soak says, what keeps it pending.
 */
#include "tests/unit/world.h"

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

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_final_stage_runs_on_other_nodes_where_there_are),
		cmocka_unit_test(test_without_others_it_runs_where_it_can_and_says_so),
		cmocka_unit_test(test_the_soak_tells_a_drift_from_none),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
