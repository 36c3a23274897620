/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guards of whole campaigns against scheduler fake: a gain that breaks one is rejected with its
 * reason, and what each guard said at each look is stored. */
#include "tests/unit/world.h"

#include "tests/unit/near.h"

#define RECIPE "tests/fixtures/recipes/fake-guards.lua"
/* A gain of half, and guarded metrics that are in order. */
#define TRUTH(effects)                                                                            \
	"{\"effects\": {\"A=1\": 0.5}, \"sd_run\": 0.01, \"fixed\": true, \"metrics\": {"         \
	"\"mem_peak_reserved_gib\": 60, \"mfu_pct\": 40, \"gpu_power_w\": 500, \"grad_norm\": 1," \
	"\"nan_iters\": 0}" effects "}"
#define SETS(values) ", \"metric_effects\": {\"A=1\": {" values "}}"

/* The last verdict's reason; heap. */
static char *reason(struct world *w)
{
	struct verdict_row *v = NULL;
	size_t n = 0;
	char *out;

	assert_int_equal(query_verdicts(w->ws->db, w->id, &v, &n, NULL), 0);
	assert_true(n > 0);
	out = xstrdup(v[n - 1].reason);
	verdict_rows_free(v, n);
	return out;
}

static void one(const char *spec, const char *want, const char *said)
{
	struct world w;
	_cleanup_free_ char *why = NULL;

	world_open_recipe(&w, 21, RECIPE);
	run(&w, spec);
	assert_outcome(&w, "A", want);
	why = reason(&w);
	if (said && (!why || !strstr(why, said)))
		fail_msg("the reason is \"%s\", expected \"%s\"", why ? why : "none", said);
	world_close(&w);
}

static void test_a_gain_within_its_guards_is_accepted(void **state)
{
	(void)state;
	one(TRUTH(""), "accepted", NULL);
	one(TRUTH(SETS("\"mem_peak_reserved_gib\": 70, \"mfu_pct\": 30, \"gpu_power_w\": 300")),
	    "accepted", NULL);
}

static void test_each_kind_of_guard_rejects(void **state)
{
	(void)state;
	one(TRUTH(SETS("\"mem_peak_reserved_gib\": 71")), "rejected: guard",
	    "guard mem_peak_reserved_gib (max): 71, must be at most 70");
	one(TRUTH(SETS("\"mfu_pct\": 29")), "rejected: guard", "29, must be at least 30");
	one(TRUTH(SETS("\"gpu_power_w\": 600")), "rejected: guard",
	    "guard gpu_power_w (mean): worse by +20.00 %");
	one(TRUTH(SETS("\"grad_norm\": 1.5")), "rejected: guard", "guard grad_norm");
	one(TRUTH(SETS("\"grad_norm\": 0.5")), "rejected: guard", "guard grad_norm");
	one(TRUTH(SETS("\"nan_iters\": 2")), "rejected: guard", "guard nan_iters");
}

/* Twice the batch and the same loss step by step: at equal samples it has learnt less. */
static void test_a_loss_is_compared_at_equal_samples_when_the_batch_changes(void **state)
{
	static const char truth[] =
		"{\"effects\": {\"--d 1\": 0.3}, \"sd_run\": 0.01, \"fixed\": true, "
		"\"metrics\": {\"samples_per_step\": 32}, \"metric_effects\": {\"--d 1\": "
		"{\"samples_per_step\": %d}}}";
	static const struct {
		int batch;
		const char *want;
	} cases[] = {{32, "accepted"}, {64, "rejected: guard"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world w;
		struct guard_row *g = NULL;
		size_t n = 0;
		char spec[300];

		snprintf(spec, sizeof spec, truth, cases[i].batch);
		world_open(&w, 23);
		run(&w, spec);
		assert_outcome(&w, "D", cases[i].want);
		assert_int_equal(query_guards(w.ws->db, w.id, &g, &n, NULL), 0);
		assert_string_equal(g[0].equal, cases[i].batch == 32 ? "step" : "samples");
		guard_rows_free(g, n);
		world_close(&w);
	}
}

static void test_what_guards_said_is_stored(void **state)
{
	struct world w;
	struct guard_row *g = NULL;
	size_t n = 0, violated = 0;

	(void)state;
	world_open_recipe(&w, 22, RECIPE);
	run(&w, TRUTH(SETS("\"mem_peak_reserved_gib\": 77")));
	assert_int_equal(query_guards(w.ws->db, w.id, &g, &n, NULL), 0);
	assert_true(n >= 7 && n % 7 == 0); /* six guards and the failures, at each look */
	assert_string_equal(g[n - 1].rule, "failures");
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(g[i].state, "violated"))
			continue;
		violated++;
		assert_string_equal(g[i].rule, "at_most");
		assert_near(g[i].worsening, 0.1, 1e-12);
		assert_near(g[i].bound, 70, 0);
	}
	assert_int_equal(violated, 1);
	guard_rows_free(g, n);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_gain_within_its_guards_is_accepted),
		cmocka_unit_test(test_each_kind_of_guard_rejects),
		cmocka_unit_test(test_a_loss_is_compared_at_equal_samples_when_the_batch_changes),
		cmocka_unit_test(test_what_guards_said_is_stored),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
