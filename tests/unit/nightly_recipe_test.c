/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `schedule`, `canary` and `fingerprint` of a campaign file; bad ones are in fixtures/recipes/bad.
 */
#include "tests/unit/recipe.h"

/* A campaign with these fields more. */
static struct loaded load_with(const char *dir, const char *fields)
{
	_cleanup_free_ char *text = xasprintf(
		"local c = { name = \"n\", objective = \"throughput_samples_per_s\", workload = { command = "
		"{ \"true\" }, window = { steps = 5, pattern = \"^step \" } } }\n"
		"for k, v in pairs({ %s }) do c[k] = v end\nreturn c\n",
		fields);
	struct loaded l = load_text(dir, text);

	if (l.rc)
		fail_msg("%s", l.e.text);
	return l;
}

static void test_schedules(void **state)
{
	static const struct {
		const char *fields;
		enum cadence every;
		bool after_change;
	} all[] = {
		{"", CADENCE_NONE, false},
		{"schedule = \"week\"", CADENCE_WEEK, false},
		{"schedule = { every = \"night\", after_change = true }", CADENCE_NIGHT, true},
		{"schedule = { after_change = true }", CADENCE_NONE, true},
		{"canary = true", CADENCE_NIGHT, false},
		{"canary = true, schedule = \"week\"", CADENCE_WEEK, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_loaded_ struct loaded l = load_with(dir, all[i].fields);

		assert_int_equal(l.recipe->schedule.every, all[i].every);
		assert_int_equal(l.recipe->schedule.after_change, all[i].after_change);
	}
}

static void test_canaries(void **state)
{
	static const struct {
		const char *fields;
		int blocks;
		bool alone;
		const char *reference;
	} all[] = {
		{"", 0, false, ""},
		{"canary = false", 0, false, ""},
		{"canary = true", 2, false, ""},
		{"canary = {}", 2, false, ""},
		{"canary = { reference = false }", 2, true, ""},
		{"canary = { blocks = 3, reference = { env = { A = 1 }, unset = { \"B\" }, command = { "
		 "\"x\" } } }",
		 3, false, "A=1, without B, command x"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_loaded_ struct loaded l = load_with(dir, all[i].fields);
		_cleanup_free_ char *text = bundle_text(&l.recipe->canary.reference);

		assert_int_equal(l.recipe->canary.blocks, all[i].blocks);
		assert_int_equal(l.recipe->canary.alone, all[i].alone);
		assert_string_equal(text, all[i].reference);
	}
}

static const struct fingerprint_key *key(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->n_fingerprint; i++)
		if (str_eq(r->fingerprint[i].name, name))
			return &r->fingerprint[i];
	return NULL;
}

static char *set_back(const struct fingerprint_key *k, const char *value)
{
	struct bundle b = {0};
	char *text;

	fingerprint_set(k, value, &b);
	text = bundle_text(&b);
	bundle_done(&b);
	return text;
}

static void test_keys_and_how_they_are_put_back(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_with(
		dir, "fingerprint = { omp = { env = \"OMP_NUM_THREADS\" }, "
		     "tools = { file = \"VERSION\" }, "
		     "[\"sw.nccl\"] = { command = { \"cat\", 7 }, set = { "
		     "env = { NCCL_HOME = \"/sw/{value}/{value}\", A = \"b\" }, unset = { \"C\" }, "
		     "command = { \"run\", \"--nccl={value}\" } } } }");
	const struct fingerprint_key *omp = key(l.recipe, "omp"), *tools = key(l.recipe, "tools"),
				     *nccl = key(l.recipe, "sw.nccl");
	_cleanup_free_ char *omp_back = set_back(omp, "4"), *nccl_back = set_back(nccl, "2.18"),
			    *tools_back = set_back(tools, "x");

	(void)state;
	assert_int_equal(l.recipe->n_fingerprint, 3);
	assert_int_equal(omp->how, FINGERPRINT_ENV);
	assert_string_equal(omp->env, "OMP_NUM_THREADS");
	assert_string_equal(omp_back, "OMP_NUM_THREADS=4");
	assert_int_equal(tools->how, FINGERPRINT_FILE);
	assert_string_equal(tools->file, "VERSION");
	assert_string_equal(tools_back, "");
	assert_int_equal(nccl->how, FINGERPRINT_COMMAND);
	assert_string_equal(nccl->command.v[1], "7");
	assert_string_equal(nccl_back,
			    "A=b, without C, NCCL_HOME=/sw/2.18/2.18, command run --nccl=2.18");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_canaries),
		cmocka_unit_test(test_keys_and_how_they_are_put_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
