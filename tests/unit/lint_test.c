/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lint: what rules are given, what they give, and rules that are at fault themselves. */
#include "tests/unit/lint.h"

static struct linted lint_env(const char *text, const char *context)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct lint_input *in = lint_input_new();

	lint_file(in, dir, "x.env", text);
	lint_context(in, context);
	return lint_these(in);
}

static void test_a_finding_says_where_what_and_what_to_write(void **state)
{
	_cleanup_linted_ struct linted l = lint_env("A=1\nexport NCCL_BUFFSIZE=16M\n", "");
	const struct lint_finding *f = lint_found(&l, "nccl_integer");

	(void)state;
	assert_non_null(f);
	assert_int_equal(f->severity, LINT_ERROR);
	assert_true(str_ends(f->file, "/x.env"));
	assert_int_equal(f->line, 2);
	assert_string_equal(f->name, "NCCL_BUFFSIZE");
	assert_string_equal(f->value, "16M");
	assert_contains(f->what, "is read as 16");
	assert_string_equal(f->write, "NCCL_BUFFSIZE=16777216");
	assert_null(f->knob);
}

static void test_the_version_decides(void **state)
{
	_cleanup_linted_ struct linted any = lint_env("NCCL_MIN_CTAS=8", ""),
				       old = lint_env("NCCL_MIN_CTAS=8", "nccl=2.16.2"),
				       new = lint_env("NCCL_MIN_CTAS=8", "nccl=2.17.1-1");
	const struct lint_finding *f = lint_found(&old, "nccl_name");

	(void)state;
	assert_null(lint_found(&any, "nccl_name"));
	assert_null(lint_found(&new, "nccl_name"));
	assert_non_null(f);
	assert_string_equal(f->write, "NCCL_MIN_NCHANNELS=8");
}

static void test_a_value_that_only_the_shell_knows_has_only_a_name(void **state)
{
	_cleanup_linted_ struct linted good = lint_env("NCCL_BUFFSIZE=$SIZE", ""),
				       bad = lint_env("NCCL_BUFSIZE=$SIZE", "");

	(void)state;
	assert_int_equal(good.n, 0);
	assert_int_equal(bad.n, 1);
	assert_string_equal(bad.f[0].write, "NCCL_BUFFSIZE");
}

static void test_values_of_knobs_are_arms(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_text(
		dir,
		"return { name = 'c', objective = 'trial_wall_s', workload = { command = { "
		"'true' }, env = { NCCL_MIN_CTAS = 16 } },\n"
		"knobs = { NCCL_MAX_CTAS = { 8, 32 },\n"
		"{ name = 'own', env = 'NCCL_NCHANNELS', class = 'neutral', values = { 4 } } } }");
	struct lint_input *in = lint_input_new();
	struct err e = {0};
	_cleanup_linted_ struct linted found = {0};
	const struct lint_finding *f;

	(void)state;
	assert_ok(l.rc);
	assert_ok(lint_input_recipe(in, l.recipe, NULL, &e));
	found = lint_these(in);
	f = lint_refusal(found.f, found.n, "NCCL_MAX_CTAS", "8");
	assert_non_null(f);
	assert_contains(f->what, "above the most");
	assert_null(lint_refusal(found.f, found.n, "NCCL_MAX_CTAS", "32"));
	f = lint_refusal(found.f, found.n, "own", "4");
	assert_non_null(f);
	assert_int_equal(f->line, 3);
	assert_string_equal(f->write, "NCCL_MIN_CTAS=4");
}

/* Figures of knowledge/method.md C: hidden size, cudnn.benchmark and prefetch factor at once, 410
 * samples/s of a 13B model on 64 A100 with a share of the peak that does not go with it. */
static void test_three_variables_at_once_are_refused(void **state)
{
	static const char text[] =
		"return { name = '13b', objective = 'throughput_samples_per_s', target = %s,\n"
		"constraints = { mfu_pct = { at_least = 52 } }, resources = { nodes = 8, "
		"gpus_per_node = 8 },\n"
		"workload = { command = { 'true', '--hidden-size', 5120, '--prefetch-factor', 2 },\n"
		"model = { params = 13e9, seq_length = 2048, gpu = 'A100' } },\n"
		"knobs = { OMP_NUM_THREADS = { 4 }, { name = 'found', class = 'optimisation', bundle = "
		"{ better = { command = {\n"
		"'true', '--hidden-size', 5128, '--prefetch-factor', 4, '--cudnn-benchmark' } } } } } }";
	static const char *const targets[] = {"410", "60"}, *const says[] = {
								    "328 % of their peak",
								    "both cannot be meant"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *recipe = xasprintf(text, targets[i]);
		_cleanup_loaded_ struct loaded l = load_text(dir, recipe);
		struct lint_input *in = lint_input_new();
		struct err e = {0};
		_cleanup_linted_ struct linted found = {0};
		const char *why;

		assert_ok(l.rc);
		why = knob_refused(recipe_knob(l.recipe, "found"), "better");
		assert_non_null(why);
		assert_contains(why, "3 things change at once");
		assert_contains(why, "hidden_size 5120 -> 5128 makes another model of it");
		assert_ok(lint_input_recipe(in, l.recipe, NULL, &e));
		found = lint_these(in);
		assert_non_null(lint_found(&found, "target_over_peak"));
		assert_contains(lint_found(&found, "target_over_peak")->what, says[i]);
	}
}

static void test_training_is_no_setting_of_the_system(void **state)
{
	static const struct {
		const char *knob;
		bool refused;
	} knobs[] = {
		{"arg = '--batch-size', class = 'neutral', values = { 64 }", true},
		{"arg = '--batch-size', class = 'optimisation', values = { 64 }", false},
		{"arg = '--learning-rate', class = 'numerics', values = { 0.1 }", true},
		{"arg = '--dtype', class = 'neutral', values = { 'bf16' }", true},
		{"arg = '--dtype', class = 'numerics', values = { 'bf16' }", false},
		{"arg = '--model.num-layers', class = 'optimisation', values = { 2 }", true},
		{"class = 'neutral', bundle = { v = { command = { 'true', '--batch-size', 16, "
		 "'--gradient-accumulation-steps', 4 } } }",
		 false},
		{"class = 'neutral', bundle = { v = { command = { 'true', '--batch-size', 16, "
		 "'--gradient-accumulation-steps', 2 } } }",
		 true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *text = xasprintf(
			"return { name = 'c', objective = 'trial_wall_s', workload = { command = { "
			"'true', '--batch-size', 32, '--gradient-accumulation-steps', 2 } },\n"
			"knobs = { OMP_NUM_THREADS = { 4 }, { name = 'k', %s } } }",
			knobs[i].knob);
		_cleanup_loaded_ struct loaded l = load_text(dir, text);
		const struct knob *k;

		if (l.rc)
			fail_msg("%s", l.e.text);
		k = recipe_knob(l.recipe, "k");
		if (!knob_refused(k, k->values.v[0]) == knobs[i].refused)
			fail_msg("%s", knobs[i].knob);
	}
}

static void test_the_workload_says_what_it_runs_on(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_text(
		dir, "return { name = 'c', objective = 'trial_wall_s', workload = { command = { "
		     "'true' }, env = { NCCL_RAS_ENABLE = 0 }, versions = { nccl = '2.19.3' } } }");
	struct lint_input *in = lint_input_new();
	struct err e = {0};
	_cleanup_linted_ struct linted found = {0};

	(void)state;
	assert_ok(l.rc);
	assert_ok(lint_input_recipe(in, l.recipe, NULL, &e));
	found = lint_these(in);
	assert_non_null(lint_found(&found, "nccl_name"));
	assert_contains(lint_found(&found, "nccl_name")->what, "NCCL 2.19.3 does not read");
}

static void test_one_file_says_several_things(void **state)
{
	_cleanup_linted_ struct linted l = lint_env(
		"if x; then\n\texport NCCL_BUFSIZE=1 NCCL_ALGOS=$A\n"
		"fi\nunset NCCL_FOO\nNCCL_IB_TIMEOUT=22\r\n",
		"");

	(void)state;
	assert_int_equal(l.n, 3);
	assert_string_equal(l.f[0].rule, "dos_line_breaks");
	assert_string_equal(l.f[1].write, "NCCL_ALGO");
	assert_string_equal(l.f[2].write, "NCCL_BUFFSIZE=1");
	assert_int_equal(l.f[2].line, 2);
}

/* As invisible as it is harmful; the line that it spoils is checked all the same. */
static void test_mark_of_utf8(void **state)
{
	static const char text[] = "\xef\xbb\xbfNCCL_ALGOS=Ring\n";
	struct lint_input *in = lint_input_new();
	_cleanup_linted_ struct linted env = lint_env(text, ""), conf = {0};

	(void)state;
	lint_input_conf(in, "nccl.conf", text);
	conf = lint_these(in);
	assert_non_null(lint_found(&env, "utf8_mark"));
	assert_non_null(lint_found(&env, "nccl_name"));
	assert_non_null(lint_found(&conf, "utf8_mark"));
	assert_non_null(lint_found(&conf, "nccl_name"));
}

static void test_all_ranks_agree(void **state)
{
	_cleanup_linted_ struct linted l = lint_env(
		"NCCL_IB_HCA=mlx5_$SLURM_LOCALID\nNCCL_DEBUG=WARN\n"
		"NCCL_DEBUG_FILE=/x/$RANK.log\nNCCL_MIN_CTAS=${CTAS:-4}\n",
		"");

	(void)state;
	assert_int_equal(l.n, 1);
	assert_string_equal(l.f[0].rule, "nccl_per_rank");
	assert_contains(l.f[0].what, "SLURM_LOCALID");
}

/* As scripts of benchmark results have them. */
static void test_a_script_has_variables_of_its_own(void **state)
{
	_cleanup_linted_ struct linted l = lint_env("NCCL_TEST=1\n[ $NCCL_TEST = 1 ] && ./nccl.sh\n"
						    "NCCL_BUFSIZE=1\necho \"${NCCL_BUFSIZE}\"\n"
						    "NCCL_CFG_PATH=conf/x.yaml\n",
						    "");

	(void)state;
	assert_int_equal(l.n, 2);
	assert_string_equal(l.f[0].name, "NCCL_BUFSIZE"); /* a known slip all the same */
	assert_int_equal(l.f[0].severity, LINT_ERROR);
	assert_string_equal(l.f[1].name, "NCCL_CFG_PATH");
	assert_int_equal(l.f[1].severity, LINT_WARNING);
}

static void test_what_the_environment_overwrites(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct lint_input *in = lint_input_new();
	_cleanup_linted_ struct linted l = {0};
	const struct lint_finding *f;

	(void)state;
	lint_file(in, dir, "nccl.conf", "NCCL_IB_TIMEOUT=23\nNCCL_IB_SL=1\n");
	lint_file(in, dir, "x.env", "NCCL_IB_TIMEOUT=22\n");
	l = lint_these(in);
	f = lint_found(&l, "nccl_conf_overwritten");
	assert_non_null(f);
	assert_true(str_ends(f->file, "nccl.conf"));
	assert_contains(f->what, "NCCL_IB_TIMEOUT=22");
	assert_int_equal(l.n, 1);
}

static void test_the_json_beside_a_script(void **state)
{
	static const char script[] = "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\n"
				     "srun deepspeed train.py --deepspeed ds.json "
				     "--per_device_train_batch_size 8\n";
	static const char
		json[] = "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 4, "
			 "\"checkpoint\": {\"use_async\": true}}";
	_cleanup_scratch_ char *dir = scratch_new();
	struct lint_input *in = lint_input_new();
	_cleanup_linted_ struct linted l = {0};
	size_t n = 0;

	(void)state;
	free(write_file(dir, "ds.json", json));
	lint_file(in, dir, "x.sbatch", script);
	l = lint_these(in);
	for (size_t i = 0; i < l.n; i++)
		n += str_eq(l.f[i].rule, "deepspeed_json") && l.f[i].severity == LINT_ERROR &&
		     l.f[i].line == 4;
	assert_int_equal(n, 3); /* the product, the option, the key that is dropped */
}

/* --- rules that are at fault ----------------------------------------------------------------- */

/* The shipped prelude and one file of rules of a site. */
static int lint_with(const char *text, struct err *out)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *sub = fs_join(dir, "lint"), *path = NULL;
	const char *const dirs[] = {dir, NULL};
	struct script_path own = {.dirs = dirs};
	struct script_sources s = {0};
	struct lint_input *in = lint_input_new();
	struct lint_finding *f = NULL;
	struct err e = {0};
	size_t n = 0;
	int rc;

	assert_ok(fs_mkdirs(sub, 0700, &e));
	path = write_file(sub, "own.lua", text);
	sources_add_copy(&s, &lint_rules()->v[0]);
	assert_string_equal(s.v[0].name, "lib/lint");
	assert_ok(sources_of_kind(own.dirs, "lint", &s, &e));
	lint_input_setting(in, &(struct lint_setting){.name = "A", .value = "1", .layer = "t"});
	rc = lint_run_stored(&s, in, &f, &n, out);
	if (rc == 0)
		assert_int_equal(n, 1);
	lint_findings_free(f, n);
	lint_input_free(in);
	script_sources_free(&s);
	return rc;
}

static void test_a_site_has_rules_of_its_own(void **state)
{
	struct err e = {0};

	(void)state;
	assert_ok(lint_with("return rules { { name = 'a', setting = function(s)\n"
			    "if s.name == 'A' then return wrong('not here') end end } }",
			    &e));
}

static void test_a_rule_at_fault_is_named(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"return rules { { name = 'a',\nsetting = function(s) return s.no.thing end } }",
		 "own.lua:2: "},
		{"return rules { { name = 'a', all = function() while true do end end } }",
		 "endless loop"},
		{"return rules { { name = 'a', all = function() return { what = 1, severity = "
		 "'error' } end } }",
		 "expected a text"},
		{"return rules { { name = 'a', all = function() return { what = 'x', severity = "
		 "'bad' } end } }",
		 "\"error\""},
		{"return { check = function() return 1 end }", "expected a list of findings"},
		{"return {}", "no function 'check'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = {0};

		assert_int_equal(lint_with(bad[i].text, &e), -ERR_RECIPE);
		assert_contains(e.text, "own.lua");
		if (!strstr(e.text, bad[i].says))
			fail_msg("%s: %s", bad[i].says, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_finding_says_where_what_and_what_to_write),
		cmocka_unit_test(test_the_version_decides),
		cmocka_unit_test(test_a_value_that_only_the_shell_knows_has_only_a_name),
		cmocka_unit_test(test_values_of_knobs_are_arms),
		cmocka_unit_test(test_three_variables_at_once_are_refused),
		cmocka_unit_test(test_training_is_no_setting_of_the_system),
		cmocka_unit_test(test_the_workload_says_what_it_runs_on),
		cmocka_unit_test(test_one_file_says_several_things),
		cmocka_unit_test(test_mark_of_utf8),
		cmocka_unit_test(test_all_ranks_agree),
		cmocka_unit_test(test_a_script_has_variables_of_its_own),
		cmocka_unit_test(test_what_the_environment_overwrites),
		cmocka_unit_test(test_the_json_beside_a_script),
		cmocka_unit_test(test_a_site_has_rules_of_its_own),
		cmocka_unit_test(test_a_rule_at_fault_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
