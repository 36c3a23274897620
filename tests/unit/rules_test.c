/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second phase: what knobs expect, what they refuse, what the rules find. */
#include "tests/unit/recipe.h"

#include <math.h>

/* The shipped recipes with all knobs that are asked about. */
static const char campaign[] =
	"return { name = 'c', objective = 'trial_wall_s', workload = { command = { 'true' } }, "
	"knobs = {\n"
	"'pin_memory', 'max_split_size_mb', 'jemalloc', 'NCCL_CROSS_NIC',\n"
	"num_workers = { 1, 2, 8 }, prefetch_factor = { 4 }, OMP_NUM_THREADS = { 1, 2, 4 },\n"
	"NCCL_PROTO = { '^LL128', 'LL128' }, NCCL_ALGO = { 'Tree', 'allreduce:tree' },\n"
	"{ name = 'plain', env = 'P', class = 'neutral', values = { 1 } },\n"
	"{ name = 'types', env = 'T', class = 'neutral', values = { 1 }, expect = function(v, s, "
	"c)\n"
	"	return { why = type(v) .. ' ' .. type(c) .. ' ' .. type(s.absent), bottleneck = "
	"'memory' } end,\n"
	"	lint = function(v) return v == 'out' and 'left out' or nil end },\n"
	"{ name = 'wrong', env = 'W', class = 'neutral', values = { 1 }, expect = function() "
	"return { gains = 1 }\n"
	"	end, lint = function() return 5 end },\n"
	"{ name = 'raises', env = 'R', class = 'neutral', values = { 1 }, expect = function(v, s)\n"
	"	return s.absent + 1 end },\n"
	"} }\n";

struct fixture {
	char *dir;
	struct loaded l;
};

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->dir = scratch_new();
	f->l = load_text(f->dir, campaign);
	*state = f;
	if (f->l.rc)
		fail_msg("%s", f->l.e.text);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	loaded_done(&f->l);
	scratch_free(&f->dir);
	free(f);
	return 0;
}

static int expect_of(const struct fixture *f, const char *knob, const char *value,
		     const char *current, const struct script_signals *s, struct expectation *x,
		     struct err *e)
{
	return script_expect(&f->l.sources, recipe_knob(f->l.recipe, knob), value, current, s, x,
			     e);
}

static void test_data_wait_bounds_the_gain(void **state)
{
	static const struct signal v[] = {{"data_wait_ratio", 0.12}};
	static const struct script_signals s = {v, 1};
	struct expectation x;
	struct err e = {0};

	assert_ok(expect_of(*state, "num_workers", "2", "0", &s, &x, &e));
	assert_true(x.worth_trying);
	assert_float_equal(x.ceiling, 0.136, 0.001); /* DESIGN 2: 12 % can give 13.6 % at most */
	assert_float_equal(x.gain, x.ceiling, 1e-9);
	assert_int_equal(x.bottleneck, BOTTLENECK_STORAGE);
	assert_contains(x.why, "12.0 %");
	expectation_done(&x);
	assert_ok(expect_of(*state, "prefetch_factor", "4", "2", &s, &x, &e));
	assert_float_equal(x.ceiling, 0.136, 0.001);
	assert_true(isnan(x.gain));
	expectation_done(&x);
}

/* With one worker that is waited for 60 % of the time, two halve the loader's period. */
static void test_workers_share_the_load(void **state)
{
	static const struct signal v[] = {{"data_wait_ratio", 0.6}};
	static const struct script_signals s = {v, 1};
	struct expectation x;
	struct err e = {0};

	assert_ok(expect_of(*state, "num_workers", "2", "1", &s, &x, &e));
	assert_float_equal(x.gain, 1.0, 1e-9);
	expectation_done(&x);
	assert_ok(expect_of(*state, "num_workers", "8", "1", &s, &x, &e));
	assert_float_equal(x.gain, 1.5, 1e-9); /* now the computing is the bound */
	assert_float_equal(x.ceiling, 1.5, 1e-9);
	expectation_done(&x);
}

static void test_nothing_to_gain(void **state)
{
	static const struct signal v[] = {{"data_wait_ratio", 0.001}, {"nodes", 1}, {"ncpu", 4}};
	static const struct script_signals s = {v, 3};
	struct expectation x;
	struct err e = {0};

	assert_ok(expect_of(*state, "prefetch_factor", "4", "2", &s, &x, &e));
	assert_false(x.worth_trying);
	expectation_done(&x);
	assert_ok(expect_of(*state, "NCCL_CROSS_NIC", "0", NULL, &s, &x, &e));
	assert_false(x.worth_trying);
	assert_contains(x.why, "one node");
	expectation_done(&x);
	/* 4 threads on 4 CPUs is what there is already. */
	assert_ok(expect_of(*state, "OMP_NUM_THREADS", "4", NULL, &s, &x, &e));
	assert_false(x.worth_trying);
	expectation_done(&x);
	assert_ok(expect_of(*state, "OMP_NUM_THREADS", "4", "1", &s, &x, &e));
	assert_true(x.worth_trying);
	expectation_done(&x);
}

/* A signal that nobody measured is no reason against a knob: every shipped one says something. */
static void test_without_signals(void **state)
{
	const struct fixture *f = *state;
	struct err e = {0};

	for (size_t i = 0; i < f->l.recipe->n_knobs; i++) {
		const struct knob *k = &f->l.recipe->knobs[i];
		struct expectation x;

		if (k->user_defined)
			continue;
		assert_ok(script_expect(&f->l.sources, k, k->values.v[0], k->default_value, NULL,
					&x, &e));
		assert_true(x.worth_trying);
		assert_non_null(x.why);
		expectation_done(&x);
	}
}

static void test_arguments(void **state)
{
	struct expectation x;
	struct err e = {0};

	assert_ok(expect_of(*state, "types", "0.5", NULL, NULL, &x, &e));
	assert_string_equal(x.why, "number nil nil");
	assert_int_equal(x.bottleneck, BOTTLENECK_MEMORY);
	expectation_done(&x);
	assert_ok(expect_of(*state, "types", "true", "16M", NULL, &x, &e));
	assert_string_equal(x.why, "boolean string nil");
	expectation_done(&x);
	assert_ok(expect_of(*state, "plain", "1", NULL, NULL, &x, &e));
	assert_true(x.worth_trying && isnan(x.gain) && isnan(x.ceiling) && !x.why);
}

static void test_faults_in_functions(void **state)
{
	const struct fixture *f = *state;
	struct expectation x;
	struct err e = {0};
	char *reason;

	assert_int_equal(expect_of(f, "wrong", "1", NULL, NULL, &x, &e), -ERR_RECIPE);
	assert_contains(e.text, "c.lua:9: ");
	assert_contains(e.text,
			"gains: there is no such field in expectation (did you mean \"gain\"?)");
	assert_int_equal(script_lint(&f->l.sources, recipe_knob(f->l.recipe, "wrong"), "1", NULL,
				     &reason, &e),
			 -ERR_RECIPE);
	assert_contains(e.text, "expected a text that is not empty, got 5");
	assert_int_equal(expect_of(f, "raises", "1", NULL, NULL, &x, &e), -ERR_RECIPE);
	assert_contains(e.text,
			"c.lua:12: attempt to perform arithmetic on a nil value (field 'absent')");
}

static void check_lint(const struct fixture *f, const char *knob, const char *value,
		       const char *says)
{
	static const struct signal v[] = {{"ncpu", 8}, {"ranks_per_node", 2}};
	static const struct script_signals s = {v, 2};
	_cleanup_free_ char *reason = NULL;
	struct err e = {0};

	assert_ok(
		script_lint(&f->l.sources, recipe_knob(f->l.recipe, knob), value, &s, &reason, &e));
	if (!says)
		assert_null(reason);
	else
		assert_contains(reason ? reason : "(nothing)", says);
}

static void test_lint(void **state)
{
	check_lint(*state, "num_workers", "4", NULL);
	check_lint(*state, "num_workers", "8", "8 workers on 4 CPUs per rank");
	check_lint(*state, "OMP_NUM_THREADS", "4", NULL);
	check_lint(*state, "OMP_NUM_THREADS", "5", "5 threads on 4 CPUs");
	check_lint(*state, "NCCL_PROTO", "^LL128", NULL);
	check_lint(*state, "NCCL_PROTO", "LL128", "data can be corrupted");
	check_lint(*state, "NCCL_ALGO", "allreduce:tree", NULL);
	check_lint(*state, "NCCL_ALGO", "Tree", "restricts every collective");
	check_lint(*state, "jemalloc", "/usr/lib/libjemalloc.so", NULL);
	check_lint(*state, "jemalloc", "libjemalloc.so", "absolute path");
	check_lint(*state, "types", "out", "left out");
	check_lint(*state, "plain", "anything", NULL);
}

/* --- rules -------------------------------------------------------------------------------------
 */

struct found {
	struct finding *v;
	size_t n;
};

static struct found diagnose(const struct fixture *f, const struct signal *v, size_t n)
{
	struct script_signals s = {v, n};
	struct found out = {0};
	struct err e = {0};

	assert_ok(script_diagnose(&f->l.sources, &s, &out.v, &out.n, &e));
	return out;
}

static void test_storage_or_host(void **state)
{
	static const struct signal storage[] = {
		{"data_wait_ratio", 0.4}, {"ncpu", 8}, {"tree_cpu_cores", 1.5}};
	static const struct signal host[] = {
		{"data_wait_ratio", 0.4}, {"ncpu", 2}, {"tree_cpu_cores", 1.9}};
	struct found f = diagnose(*state, storage, 3);

	assert_int_equal(f.n, 1);
	assert_int_equal(f.v[0].bottleneck, BOTTLENECK_STORAGE);
	assert_float_equal(f.v[0].share, 0.4, 1e-9);
	assert_string_equal(f.v[0].rule, "data_wait");
	assert_contains(f.v[0].evidence, "40.0 %");
	findings_free(f.v, f.n);
	f = diagnose(*state, host, 3);
	assert_int_equal(f.v[0].bottleneck, BOTTLENECK_HOST);
	assert_contains(f.v[0].evidence, "1.9 of 2 CPUs are busy");
	findings_free(f.v, f.n);
}

static void test_strongest_first(void **state)
{
	static const struct signal v[] = {
		{"data_wait_ratio", 0.15}, {"comm_exposed_ratio", 0.45}, {"alloc_retries", 3},
		{"cpu_iowait_pct", 30},    {"disk_r_await_ms", 12.5},
	};
	struct found f = diagnose(*state, v, ARRAY_LEN(v));

	assert_int_equal(f.n, 4);
	assert_int_equal(f.v[0].bottleneck, BOTTLENECK_COMMUNICATION);
	assert_int_equal(f.v[1].bottleneck, BOTTLENECK_STORAGE);
	assert_string_equal(f.v[1].rule, "iowait");
	assert_contains(f.v[1].evidence, "12.5 ms");
	assert_int_equal(f.v[2].bottleneck, BOTTLENECK_STORAGE);
	assert_int_equal(f.v[3].bottleneck, BOTTLENECK_MEMORY); /* its share is not known */
	assert_true(isnan(f.v[3].share));
	findings_free(f.v, f.n);
}

static void test_compute(void **state)
{
	static const struct signal cpu[] = {{"data_wait_ratio", 0.05},
					    {"ncpu", 2},
					    {"tree_cpu_cores", 1.95},
					    {"gpus_per_node", 0}};
	static const struct signal gpu[] = {
		{"gpu_util_pct", 99}, {"gpus_per_node", 8}, {"comm_exposed_ratio", 0.05}};
	struct found f = diagnose(*state, cpu, ARRAY_LEN(cpu));

	assert_int_equal(f.n, 1);
	assert_int_equal(f.v[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_float_equal(f.v[0].share, 0.95, 1e-9);
	findings_free(f.v, f.n);
	f = diagnose(*state, gpu, ARRAY_LEN(gpu));
	assert_int_equal(f.n, 1);
	assert_string_equal(f.v[0].rule, "device_busy");
	findings_free(f.v, f.n);
}

static void test_no_finding(void **state)
{
	static const struct signal quiet[] = {{"data_wait_ratio", 0.02},
					      {"ncpu", 8},
					      {"tree_cpu_cores", 1},
					      {"data_wait_ms", NAN}};
	struct found f = diagnose(*state, quiet, ARRAY_LEN(quiet));

	assert_int_equal(f.n, 0);
	findings_free(f.v, f.n);
	f = diagnose(*state, NULL, 0);
	assert_int_equal(f.n, 0);
	findings_free(f.v, f.n);
}

/* Rules of a site are read with the same care. */
static void test_bad_rules(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"return { { name = 'a', when = 5 } }",
		 "r.lua:1: [1].when: expected a function, got 5"},
		{"return { name = 'a' }", "expected a list of rules"},
		{"return { {\nwhen = function() end } }", "[1].name: missing"},
		{"return { { name = 'a', when = function() return { bottleneck = 'gpu', evidence = "
		 "'x' } end } }",
		 "bottleneck: expected one of \"unknown\", \"compute\""},
		{"return { { name = 'a', when = function() return { bottleneck = 'host', evidence "
		 "= 'x',\nshare = 2 } end } }",
		 "share: expected a number from 0 to 1 (share), got 2"},
		{"return { { name = 'a', when = function(s)\nreturn s.x.y end } }",
		 "r.lua:2: attempt to index a nil value"},
	};
	struct finding *found;
	struct err e = {0};
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct script_source src = {.name = (char *)"rules/r",
					    .path = (char *)"/r.lua",
					    .text = (char *)cases[i].text};
		struct script_sources all = {.v = &src, .n = 1};

		assert_int_equal(script_diagnose(&all, NULL, &found, &n, &e), -ERR_RECIPE);
		assert_contains(e.text, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_wait_bounds_the_gain),
		cmocka_unit_test(test_workers_share_the_load),
		cmocka_unit_test(test_nothing_to_gain),
		cmocka_unit_test(test_without_signals),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_faults_in_functions),
		cmocka_unit_test(test_lint),
		cmocka_unit_test(test_storage_or_host),
		cmocka_unit_test(test_strongest_first),
		cmocka_unit_test(test_compute),
		cmocka_unit_test(test_no_finding),
		cmocka_unit_test(test_bad_rules),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
