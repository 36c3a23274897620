/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How knobs reach a framework, which versions have them, and what excludes what. */
#include "tests/unit/recipe.h"

#include "orchestrator/script/passed.h"
#include "orchestrator/script/release.h"

/* --- one text ----------------------------------------------------------------------------- */

static void test_forms(void **state)
{
	static const struct {
		const char *text;
		enum passed_kind kind;
		const char *target, *yes;
	} good[] = {
		{"--num-workers", PASSED_ARG, "--num-workers", NULL},
		{"-j", PASSED_ARG, "-j", NULL},
		{"--x=", PASSED_ARG, "--x=", NULL},
		{"batch_size=", PASSED_ARG, "batch_size=", NULL},
		{"--pin True/False", PASSED_ARG, "--pin", "True"},
		{"compile= true/false", PASSED_ARG, "compile=", "true"},
		{"flag --tp-comm-overlap", PASSED_FLAG, "--tp-comm-overlap", NULL},
		{"env OMP_NUM_THREADS", PASSED_ENV, "OMP_NUM_THREADS", NULL},
		{"env X 1/0", PASSED_ENV, "X", "1"},
		{"key zero_optimization.stage", PASSED_KEY, "zero_optimization.stage", NULL},
		{"code DDPStrategy(x=)", PASSED_CODE, "DDPStrategy(x=)", NULL},
		{"not there is no loader", PASSED_NOT, "there is no loader", NULL},
	};
	static const char *const bad[] = {
		"",        "num workers",     "-",       "=",         "flag",
		"flag x",  "flag --x on/off", "env x y", "env 1/0",   "key ",
		"key A B", "code ",           "--x yes", "--x a/b/c", "--x a/ b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct passed p;

		if (!passed_parse(good[i].text, &p))
			fail_msg("refused: %s", good[i].text);
		assert_int_equal(p.kind, good[i].kind);
		assert_string_equal(p.target, good[i].target);
		assert_true(str_eq(p.yes, good[i].yes));
		passed_done(&p);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct passed p;

		if (passed_parse(bad[i], &p))
			fail_msg("taken: %s", bad[i]);
		passed_done(&p);
	}
}

static void test_order_of_versions(void **state)
{
	static const char *const order[] = {"2",      "2.3.5",  "2.9",  "2.9.6", "2.10.3",
					    "2.17.1", "2.18.1", "2.30", "12.4"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		for (size_t j = 0; j < ARRAY_LEN(order); j++) {
			int c = release_compare(order[i], order[j]);

			assert_int_equal((c > 0) - (c < 0), (i > j) - (i < j));
		}
	assert_int_equal(release_compare("2.17", "2.17.0"), 0);
	assert_int_equal(release_compare("2.17.1-1", "2.17.1+cuda12.4"), 0);
}

/* --- a campaign with a framework ---------------------------------------------------------- */

static struct loaded load_with(const char *dir, const char *workload, const char *knobs)
{
	_cleanup_free_ char *text = xasprintf(
		"return { name = 'c', objective = 'trial_wall_s',\n"
		"workload = { command = { 'true' }, %s },\nknobs = { %s } }\n",
		workload, knobs);

	return load_text(dir, text);
}

static void check_passed(const char *workload, const char *knob, const char *target,
			 const char *value, bool flag)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_with(dir, workload, knob);
	const struct knob *k;

	if (l.rc)
		fail_msg("%s", l.e.text);
	k = &l.recipe->knobs[0];
	assert_string_equal(k->target, target);
	assert_string_equal(k->values.v[0], value);
	assert_int_equal(k->flag, flag);
	assert_false(k->user_defined);
}

static void test_the_frameworks_way(void **state)
{
	(void)state;
	check_passed("framework = nil", "num_workers = { 2 }", "--num-workers", "2", false);
	check_passed("framework = 'hf_trainer'", "num_workers = { 2 }", "--dataloader_num_workers",
		     "2", false);
	check_passed("framework = 'megatron'", "num_workers = { 4 }", "--num-workers", "4", false);
	check_passed("framework = 'hf_trainer'", "'pin_memory'", "--dataloader_pin_memory", "False",
		     false);
	/* what the campaign says wins, and a variable is the same for all */
	check_passed("framework = 'nanogpt'",
		     "knob('num_workers', { values = { 2 }, arg = '--w' })", "--w", "2", false);
	check_passed("framework = 'nanogpt'", "NCCL_BUFFSIZE = { 8388608 }", "NCCL_BUFFSIZE",
		     "8388608", false);
}

/* The value that the command already has is found under the framework's name. */
static void test_default_from_the_frameworks_argument(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_text(
		dir, "return { name = 'c', objective = 'trial_wall_s', workload = {\n"
		     "command = { 'run', '--dataloader_num_workers', '4' },\n"
		     "framework = 'hf_trainer' }, knobs = { num_workers = { 8 } } }\n");

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_string_equal(l.recipe->knobs[0].default_value, "4");
}

static void check_refused(const char *workload, const char *knobs, const char *says)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_with(dir, workload, knobs);

	assert_int_equal(l.rc, -ERR_RECIPE);
	assert_contains(l.e.text, "c.lua:3: ");
	assert_contains(l.e.text, says);
}

#define MINE(passed) \
	"{ name = 'mine', class = 'neutral', values = { true }, passed = { " passed " } }"

static void test_what_fettle_does_not_pass(void **state)
{
	(void)state;
	check_refused("framework = 'torchtune'", "num_workers = { 2 }",
		      "knob num_workers cannot be passed to torchtune: stock recipes");
	check_refused("framework = 'deepspeed'", MINE("deepspeed = 'key a.b'"),
		      "takes knob mine in its JSON file, as a.b: say which one");
	check_refused("framework = 'lightning'", MINE("lightning = 'code Trainer(x=)'"),
		      "in code alone: Trainer(x=)");
	check_refused("framework = 'megatron'", MINE("lightning = '--x'"),
		      "how knob mine is passed to megatron is not known; the catalogue has "
		      "lightning: --x");
	check_refused("framework = nil", MINE("srun = '--cpu-bind'"), "name workload.framework");
}

/* --- keys of a file ----------------------------------------------------------------------- */

static struct loaded load_keys(const char *dir, const char *file)
{
	free(write_file(dir, "ds.json", file));
	return load_text(dir,
			 "return { name = 'c', objective = 'trial_wall_s', workload = {\n"
			 "command = { 'run', '--deepspeed=ds.json', 'ds.json', 'xds.json' },\n"
			 "config = 'ds.json', framework = 'deepspeed' },\n"
			 "knobs = { 'zero_overlap_comm', zero_reduce_bucket_size = { 1000000 } } "
			 "}\n");
}

static void test_settings_in_a_file(void **state)
{
	static const char
		file[] = "{\"zero_optimization\": {\"overlap_comm\": false, \"x\": [1]},\n"
			 " \"steps\": 2.5}\n";
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_keys(dir, file);
	struct kvs settings = {0};
	struct config base = {0}, c = {0};
	_cleanup_free_ char *text = NULL, *token = NULL;
	struct recipe *again = NULL;
	struct err e = {0};

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_int_equal(l.recipe->knobs[0].how, HOW_KEY);
	assert_string_equal(l.recipe->knobs[0].target, "zero_optimization.overlap_comm");
	/* what the file says is the default; what it does not say is the catalogue's */
	assert_string_equal(l.recipe->knobs[0].default_value, "false");
	assert_string_equal(l.recipe->knobs[1].default_value, "500000000");
	assert_ok(config_build(l.recipe, &settings, &base, &e));
	assert_string_equal(base.argv.v[2], "ds.json");
	assert_null(configfile_name(&base));
	kvs_set(&settings, "zero_overlap_comm", "true");
	kvs_set(&settings, "zero_reduce_bucket_size", "1000000");
	assert_ok(config_build(l.recipe, &settings, &c, &e));
	assert_true(str_starts(c.argv.v[1], "--deepspeed=" CONFIGFILE_MARK));
	assert_true(str_starts(c.argv.v[2], CONFIGFILE_MARK) && str_ends(c.argv.v[2], ".json"));
	assert_string_equal(c.argv.v[3], "xds.json");
	assert_string_not_equal(c.hash, base.hash);
	text = configfile_text(l.recipe, &c.settings);
	for (char *from = text, *to = text;; from++) {
		if (*from != '\n' && *from != '\t' && *from != ' ')
			*to++ = *from;
		if (!*from)
			break;
	}
	assert_string_equal(text, "{\"zero_optimization\":{\"overlap_comm\":true,\"x\":[1],"
				  "\"reduce_bucket_size\":1000000},\"steps\":2.5}");
	token = configfile_token(c.argv.v[1], "/w/blocks/1.1");
	assert_true(str_starts(token, "--deepspeed=/w/blocks/1.1/"));
	assert_true(str_ends(token, configfile_name(&c)));
	/* the file is stored with the campaign */
	fs_remove_tree(dir, NULL);
	assert_ok(script_reload(&l.sources, &again, &e));
	assert_string_equal(again->workload.config_text, file);
	assert_string_equal(again->hash, l.recipe->hash);
	recipe_free(again);
	config_done(&base);
	config_done(&c);
	kvs_free(&settings);
}

static void test_values_of_a_file(void **state)
{
	static const char text[] = "{\"a\": {\"b\": 0.1, \"c\": \"auto\", \"d\": 5e8, \"e\": "
				   "null, \"f\": true}}";
	static const char *const cases[][2] = {{"a.b", "0.1"},       {"a.c", "auto"},
					       {"a.d", "500000000"}, {"a.e", NULL},
					       {"a.f", "true"},      {"a", NULL},
					       {"a.b.c", NULL},      {"x", NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *v = configfile_get(text, cases[i][0]);

		assert_true(str_eq(v, cases[i][1]));
	}
	assert_null(configfile_get("no json", "a"));
}

/* --- versions ----------------------------------------------------------------------------- */

static void test_default_of_the_running_version(void **state)
{
	static const struct {
		const char *version, *value;
	} cases[] = {{"2.13.4", "14"}, {"2.14.3", "18"}, {"2.22.3", "18"},
		     {"2.23.4", "20"}, {"2.31", "20"},   {NULL, NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *workload = cases[i].version
							? xasprintf("versions = { nccl = '%s' }",
								    cases[i].version)
							: xstrdup("");
		_cleanup_loaded_ struct loaded l = load_with(
			dir, workload,
			"{ name = 'T', env = 'T', class = 'neutral', values = { 22 }, defaults = {\n"
			"['nccl 2.23.4'] = 20, ['nccl 2.3.5'] = 14, ['nccl 2.14.3'] = 18 } }");

		if (l.rc)
			fail_msg("%s", l.e.text);
		assert_true(str_eq(l.recipe->knobs[0].default_value, cases[i].value));
	}
}

static void test_windows(void **state)
{
	(void)state;
	check_refused("versions = { nccl = '2.16.5' }", "NCCL_MIN_CTAS = { 8 }",
		      "nccl 2.16.5 does not have it: it came with 2.17.1 (workload.versions)");
	check_refused("versions = { nccl = '2.31' }", "'NCCL_SHM_USE_CUDA_MEMCPY'",
		      "nccl 2.31 does not have it any more: it went with 2.30.7");
	check_passed("versions = { nccl = '2.17.1', torch = '1.0' }", "NCCL_MIN_CTAS = { 8 }",
		     "NCCL_MIN_CTAS", "8", false);
}

/* --- among each other --------------------------------------------------------------------- */

static void test_idle_knobs_are_not_tried(void **state)
{
	static const char knob[] = "{ name = 'a', env = 'A', class = 'neutral', values = { 1 }, "
				   "idle = { 'B=1' } }";
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *both = xasprintf("%s, { name = 'B', env = 'B', class = 'neutral', "
					      "default = 0, values = { 1, 2 } }",
					      knob);
	_cleanup_loaded_ struct loaded set = load_with(dir, "env = { B = 1 }", knob);
	_cleanup_loaded_ struct loaded other = load_with(dir, "env = { B = 2 }", knob);
	_cleanup_loaded_ struct loaded varied = load_with(dir, "", both);
	const struct knob *k;

	(void)state;
	k = &set.recipe->knobs[0];
	assert_string_equal(k->requires_knob, "B");
	assert_int_equal(k->requires_values.n, 0);
	assert_null(other.recipe->knobs[0].requires_knob);
	k = &varied.recipe->knobs[0];
	assert_string_equal(k->requires_knob, "B");
	assert_int_equal(k->requires_values.n, 2);
	assert_string_equal(k->requires_values.v[0], "0");
	assert_string_equal(k->requires_values.v[1], "2");
}

/* What a component needs to be told so that it talks is set in every arm; the recipe's own wins. */
static void test_proof_sets_what_it_needs(void **state)
{
	static const char knob[] =
		"{ name = 'a', env = 'A', class = 'neutral', values = { 1 }, proof = { level = "
		"'acknowledged', fact = 'a', env = { LOUD = 'yes', LEVEL = 'INFO' } } }";
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_with(dir, "env = { LEVEL = 'TRACE' }", knob);

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_string_equal(kvs_get(&l.recipe->workload.env, "LOUD"), "yes");
	assert_string_equal(kvs_get(&l.recipe->workload.env, "LEVEL"), "TRACE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_order_of_versions),
		cmocka_unit_test(test_the_frameworks_way),
		cmocka_unit_test(test_default_from_the_frameworks_argument),
		cmocka_unit_test(test_what_fettle_does_not_pass),
		cmocka_unit_test(test_settings_in_a_file),
		cmocka_unit_test(test_values_of_a_file),
		cmocka_unit_test(test_default_of_the_running_version),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_idle_knobs_are_not_tried),
		cmocka_unit_test(test_proof_sets_what_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
