/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Knobs that are declared bundles: how they are read, refused, and what configuration they give. */
#include "tests/unit/recipe.h"

#define KNOB(text) "knobs = { { name = \"b\", class = \"neutral\", " text " } }"

static void faulty(const char *fields, const char *want)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = campaign_with(fields);
	_cleanup_loaded_ struct loaded l = load_text(dir, text);

	assert_int_equal(l.rc, -ERR_RECIPE);
	if (!strstr(l.e.text, want))
		fail_msg("\"%s\" has no \"%s\"", l.e.text, want);
}

static void test_a_set_gives_its_configuration(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = campaign_with(
		KNOB("default = \"plain\", bundle = { x = { env = { A = 1, B = \"two\" }, "
		     "unset = { \"C\" } }, y = { command = { \"false\", \"-v\" } } }"));
	_cleanup_loaded_ struct loaded l = load_text(dir, text);
	struct kvs settings = {0};
	struct config c = {0};
	struct err e = {0};

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_int_equal(l.recipe->knobs[0].how, HOW_BUNDLE);
	assert_int_equal(l.recipe->knobs[0].values.n, 2);
	kvs_set(&settings, "b", "x");
	assert_ok(config_build(l.recipe, &settings, &c, &e));
	assert_string_equal(kvs_get(&c.env, "B"), "two");
	assert_true(kvs_has(&c.env, "C") && !kvs_get(&c.env, "C"));
	assert_string_equal(c.argv.v[0], "true");
	config_done(&c);
	kvs_set(&settings, "b", "y");
	assert_ok(config_build(l.recipe, &settings, &c, &e));
	assert_string_equal(c.argv.v[1], "-v");
	config_done(&c);
	kvs_set(&settings, "b", "plain");
	assert_ok(config_build(l.recipe, &settings, &c, &e));
	assert_int_equal(c.settings.n, 0);
	config_done(&c);
	kvs_set(&settings, "b", "z");
	assert_int_equal(config_build(l.recipe, &settings, &c, &e), -ERR_RECIPE);
	kvs_free(&settings);
}

/* "arguments" sorts before "b": the command of the bundle comes first all the same. */
static void test_arguments_are_laid_on_the_command_of_a_bundle(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = campaign_with(
		"knobs = { { name = \"arguments\", arg = \"--n\", class = \"neutral\", values = { 3 "
		"} }, { name = \"b\", class = \"neutral\", bundle = { y = { command = { \"false\" } } "
		"} } }");
	_cleanup_loaded_ struct loaded l = load_text(dir, text);
	struct kvs settings = {0};
	struct config c = {0};
	struct err e = {0};

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	kvs_set(&settings, "arguments", "3");
	kvs_set(&settings, "b", "y");
	assert_ok(config_build(l.recipe, &settings, &c, &e));
	assert_int_equal(c.argv.n, 3);
	assert_string_equal(c.argv.v[0], "false");
	assert_string_equal(c.argv.v[2], "3");
	assert_string_equal(c.settings.v[0].key, "arguments");
	kvs_free(&settings);
	config_done(&c);
}

static void test_for_people(void **state)
{
	struct bundle b = {0};
	_cleanup_free_ char *text = NULL;

	(void)state;
	kvs_set(&b.env, "A", "1");
	kvs_set(&b.env, "B", NULL);
	strv_add(&b.command, "x");
	strv_add(&b.command, "y");
	text = bundle_text(&b);
	assert_string_equal(text, "A=1, without B, command x y");
	kvs_free(&b.env);
	strv_free(&b.command);
}

static void test_faults_are_named(void **state)
{
	(void)state;
	faulty(KNOB("bundle = {}"), "a table of sets by name");
	faulty(KNOB("bundle = { x = {} }"), "knobs[1].bundle.x: changes nothing");
	faulty(KNOB("bundle = { x = { env = { A = 1 }, unset = { \"A\" } } }"),
	       "A is set by the same bundle");
	faulty(KNOB("bundle = { x = { env = { A = 1 } } }, env = \"A\""), "a bundle has neither");
	faulty(KNOB("bundle = { x = { env = { A = 1 } } }, values = { 1 }"),
	       "the names of its sets");
	faulty(KNOB("bundle = { x = { env = { FETTLE_A = 1 } } }"), "set by fettle itself");
	faulty(KNOB("bundle = { x = { env = { [\"A B\"] = 1 } } }"),
	       "no name of an environment variable");
	faulty("knobs = { { name = \"a\", env = \"A\", class = \"neutral\", values = { 1 } }, { name "
	       "= \"b\", class = \"neutral\", bundle = { x = { env = { A = 2 } } } } }",
	       "both set A");
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_set_gives_its_configuration),
		cmocka_unit_test(test_arguments_are_laid_on_the_command_of_a_bundle),
		cmocka_unit_test(test_for_people),
		cmocka_unit_test(test_faults_are_named),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
