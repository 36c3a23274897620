/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The campaign of one bundle against scheduler fake: its stages, its proof, its verdicts, and what
 * happens when there is nothing to compare. */
#include "tests/unit/world.h"

#define RECIPE "tests/fixtures/recipes/fake-ab.lua"
#define MFU    ", \"sd_run\": 0.01, \"fixed\": true, \"metrics\": {\"mfu_pct\": 40}"

/* Runs it; the last verdict's reason, heap. */
static char *ends(struct world *w, const char *spec, const char *want)
{
	struct verdict_row *v = NULL;
	size_t n = 0;
	char *reason;

	world_open_recipe(w, 31, RECIPE);
	run(w, spec);
	assert_outcome(w, "ab", want);
	assert_int_equal(query_verdicts(w->ws->db, w->id, &v, &n, NULL), 0);
	reason = xstrdup(v[n - 1].reason);
	verdict_rows_free(v, n);
	return reason;
}

static void one(const char *spec, const char *want, const char *said)
{
	struct world w;
	_cleanup_free_ char *reason = ends(&w, spec, want);

	if (said && (!reason || !strstr(reason, said)))
		fail_msg("the reason is \"%s\", expected \"%s\"", reason ? reason : "none", said);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	world_close(&w);
}

static void test_a_gain_is_accepted_by_the_test_alone(void **state)
{
	struct world w;
	struct stage_row *s = NULL;
	struct fix_row fix;
	bool found = true;
	size_t n = 0;

	(void)state;
	free(ends(&w, "{\"effects\": {\"A=1\": 0.1, \"B=1\": 0.1}" MFU "}", "accepted"));
	assert_int_equal(query_stages(w.ws->db, w.id, &s, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(s[0].kind, STAGE_CONFIRM);
	assert_true(fabs(s[0].alpha_share - 0.05) < 1e-12);
	stage_rows_free(s, n);
	assert_int_equal(query_fix_get(w.ws->db, w.id, &fix, &found, NULL), 0);
	assert_false(found);
	world_close(&w);
}

static void test_verdicts(void **state)
{
	(void)state;
	one("{\"effects\": {\"A=1\": -0.1}" MFU "}", "rejected: worse", NULL);
	one("{\"effects\": {}, \"sd_run\": 0.0005, \"fixed\": true, \"metrics\": {\"mfu_pct\": 40}}",
	    "equivalent", NULL);
	one("{\"effects\": {\"A=1\": 0.5}, \"loss_effects\": {\"B=1\": 0.2}" MFU "}",
	    "rejected: guard", "guard loss");
	one("{\"effects\": {\"A=1\": 0.5}" MFU
	    ", \"metric_effects\": {\"A=1\": {\"mfu_pct\": 20}}}",
	    "rejected: guard", "mfu_pct");
	one("{\"effects\": {\"A=1\": 0.5}, \"fails\": {\"A=1\": 1}" MFU "}", "rejected: guard",
	    "trials failed");
}

/* Every variable of the bundle, not only the first. */
static void test_each_variable_must_be_delivered(void **state)
{
	(void)state;
	one("{\"effects\": {\"A=1\": 0.5}, \"undelivered\": [\"B\"]" MFU "}", "invalid",
	    "B should be");
}

static void test_values_without_any_spread(void **state)
{
	const char *same = "{\"sd_run\": 0, \"sd_alloc\": 0, \"metrics\": {\"mfu_pct\": 40}}";
	const char *gain = "{\"effects\": {\"A=1\": 0.1}, \"sd_run\": 0, \"sd_alloc\": 0, "
			   "\"metrics\": {\"mfu_pct\": 40}}";

	(void)state;
	one(same, "equivalent", NULL);
	one(gain, "accepted", NULL);
}

static void test_nothing_to_compare_is_invalid_with_its_reason(void **state)
{
	(void)state;
	one("{\"effects\": {\"A=1\": 0.5}, \"sd_run\": 0.01}", "invalid",
	    "constraint mfu_pct (mean): no trial gives this metric");
	one("{\"faults\": {\"failed_trial\": 1}" MFU "}", "invalid",
	    "the baseline measured nothing");
}

static void test_reopened_after_each_step_ends_the_same(void **state)
{
	const char *spec = "{\"effects\": {\"A=1\": 0.1}" MFU "}";
	struct world a, b;
	double ea = NAN, eb = NAN;

	(void)state;
	free(ends(&a, spec, "accepted"));
	world_open_recipe(&b, 31, RECIPE);
	for (int i = 0; i < 1000 && !drive(&b, spec, 1); i++)
		;
	free(outcome(&a, "ab", &ea));
	free(outcome(&b, "ab", &eb));
	assert_true(ea == eb);
	world_close(&a);
	world_close(&b);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_gain_is_accepted_by_the_test_alone),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_each_variable_must_be_delivered),
		cmocka_unit_test(test_values_without_any_spread),
		cmocka_unit_test(test_nothing_to_compare_is_invalid_with_its_reason),
		cmocka_unit_test(test_reopened_after_each_step_ends_the_same),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
