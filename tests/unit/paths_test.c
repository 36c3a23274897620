/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/base/paths.h"
#include "orchestrator/base/version.h"

static void the_environment_wins(void **state)
{
	_cleanup_free_ char *recipes = NULL, *agent = NULL, *helper = NULL;

	(void)state;
	setenv("FETTLE_RECIPES", "/r", 1);
	setenv("FETTLE_AGENT", "/a", 1);
	setenv("FETTLE_SLURM_HELPER", "/s", 1);
	recipes = paths_recipes();
	agent = paths_agent();
	helper = paths_slurm_helper();
	assert_string_equal(recipes, "/r");
	assert_string_equal(agent, "/a");
	assert_string_equal(helper, "/s");
	unsetenv("FETTLE_RECIPES");
	unsetenv("FETTLE_AGENT");
	unsetenv("FETTLE_SLURM_HELPER");
}

/* This test lies in no build tree (its own folder has no fettle.srcdir) and is not installed. */
static void the_fixed_place_is_last(void **state)
{
	_cleanup_free_ char *recipes = NULL, *agent = NULL;

	(void)state;
	setenv("FETTLE_AGENT", "", 1); /* empty is unset */
	recipes = paths_recipes();
	agent = paths_agent();
	assert_true(recipes[0] == '/' && str_ends(recipes, "/recipes"));
	assert_true(agent[0] == '/' && str_ends(agent, "/fettle-agent"));
	unsetenv("FETTLE_AGENT");
}

static void there_is_a_version(void **state)
{
	(void)state;
	assert_true(version_text()[0] >= '0' && version_text()[0] <= '9');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_wins),
		cmocka_unit_test(the_fixed_place_is_last),
		cmocka_unit_test(there_is_a_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
