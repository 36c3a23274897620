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
	"	return { why = type(v) .. ' ' .. type(c) .. ' ' .. type(s.loss), bottleneck = "
	"'memory' } end,\n"
	"	lint = function(v) return v == 'out' and 'left out' or nil end },\n"
	"{ name = 'wrong', env = 'W', class = 'neutral', values = { 1 }, expect = function() "
	"return { gains = 1 }\n"
	"	end, lint = function() return 5 end },\n"
	"{ name = 'raises', env = 'R', class = 'neutral', values = { 1 }, expect = function(v, s)\n"
	"	return s.loss + 1 end },\n"
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

/* Eight workers keep up: fewer are no gain, unless those that compute lack CPUs. */
static void test_fewer_workers_than_keep_up(void **state)
{
	static const struct signal v[] = {{"data_wait_ratio", 0.017}, {"rank_ready_ratio", 0.2}};
	static const struct script_signals idle = {v, 1}, crowded = {v, 2};
	struct expectation x;
	struct err e = {0};

	assert_ok(expect_of(*state, "num_workers", "4", "8", &idle, &x, &e));
	assert_false(x.worth_trying);
	assert_contains(x.why, "8 workers keep up");
	expectation_done(&x);
	assert_ok(expect_of(*state, "num_workers", "16", "8", &idle, &x, &e));
	assert_true(x.worth_trying);
	assert_float_equal(x.gain, 0.0173, 1e-4);
	expectation_done(&x);
	assert_ok(expect_of(*state, "num_workers", "4", "8", &crowded, &x, &e));
	assert_true(x.worth_trying);
	assert_true(isnan(x.gain));
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
			"c.lua:12: attempt to perform arithmetic on a nil value (field 'loss')");
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

static struct diagnosis diagnose(const struct fixture *f, const struct signal *v, size_t n)
{
	struct script_signals s = {v, n};
	struct diagnosis out;
	struct err e = {0};

	assert_ok(script_diagnose(&f->l.sources, &s, NULL, &out, &e));
	return out;
}

static void test_storage_or_host(void **state)
{
	static const struct signal storage[] = {
		{"data_wait_ratio", 0.4}, {"ncpu", 8}, {"tree_cpu_cores", 1.5}};
	static const struct signal host[] = {
		{"data_wait_ratio", 0.4}, {"ncpu", 2}, {"tree_cpu_cores", 1.9}};
	struct diagnosis d = diagnose(*state, storage, 3);

	assert_int_equal(d.n_found, 1);
	assert_int_equal(d.found[0].bottleneck, BOTTLENECK_STORAGE);
	assert_float_equal(d.found[0].share, 0.4, 1e-9);
	assert_string_equal(d.found[0].rule, "data_wait");
	assert_contains(d.found[0].evidence, "40.0 %");
	assert_string_equal(d.found[0].tries.v[0], "num_workers");
	diagnosis_done(&d);
	d = diagnose(*state, host, 3);
	assert_int_equal(d.n_found, 2);
	assert_int_equal(d.found[0].bottleneck, BOTTLENECK_HOST); /* what splits it says so */
	assert_string_equal(d.found[1].under, "data_wait");
	assert_contains(d.found[1].evidence, "1.9 of 2 CPUs are busy");
	diagnosis_done(&d);
}

static void test_strongest_first(void **state)
{
	static const struct signal v[] = {
		{"data_wait_ratio", 0.15}, {"comm_exposed_ratio", 0.45}, {"alloc_retries", 3},
		{"disk_util_pct", 90},     {"disk_r_await_ms", 12.5},
	};
	struct diagnosis d = diagnose(*state, v, ARRAY_LEN(v));

	assert_int_equal(d.n_found, 4);
	assert_int_equal(d.found[0].bottleneck, BOTTLENECK_COMMUNICATION);
	assert_int_equal(d.found[1].bottleneck, BOTTLENECK_STORAGE);
	assert_string_equal(d.found[2].rule, "disk"); /* behind what it splits */
	assert_contains(d.found[2].evidence, "12.5 ms");
	assert_int_equal(d.found[3].bottleneck, BOTTLENECK_MEMORY); /* its share is not known */
	assert_true(isnan(d.found[3].share));
	diagnosis_done(&d);
}

static void test_compute(void **state)
{
	static const struct signal cpu[] = {{"data_wait_ratio", 0.05},
					    {"ncpu", 2},
					    {"tree_cpu_cores", 1.95},
					    {"gpus_per_node", 0}};
	static const struct signal gpu[] = {
		{"gpu_util_pct", 99}, {"gpus_per_node", 8}, {"comm_exposed_ratio", 0.05}};
	struct diagnosis d = diagnose(*state, cpu, ARRAY_LEN(cpu));

	assert_int_equal(d.n_found, 1);
	assert_int_equal(d.found[0].bottleneck, BOTTLENECK_COMPUTE);
	assert_float_equal(d.found[0].share, 0.95, 1e-9);
	diagnosis_done(&d);
	d = diagnose(*state, gpu, ARRAY_LEN(gpu));
	assert_int_equal(d.n_found, 1);
	assert_string_equal(d.found[0].rule, "device_busy");
	diagnosis_done(&d);
}

/* A device that idles is the host's fault with a figure only where a sign of that is measured. */
static void test_idle_device(void **state)
{
	static const struct signal bare[] = {{"launch_gap_ratio", 0.5},
					     {"comm_exposed_ratio", 0.2}};
	static const struct signal busy[] = {{"launch_gap_ratio", 0.5},
					     {"comm_exposed_ratio", 0.2},
					     {"kernel_short_ratio", 0.8}};
	struct diagnosis d = diagnose(*state, bare, ARRAY_LEN(bare));

	assert_string_equal(d.found[0].rule, "exposed_communication");
	assert_string_equal(d.found[1].rule, "launch_gaps");
	assert_true(isnan(d.found[1].share));
	diagnosis_done(&d);
	d = diagnose(*state, busy, ARRAY_LEN(busy));
	assert_string_equal(d.found[0].rule, "launch_gaps");
	assert_float_equal(d.found[0].share, 0.5, 1e-9);
	diagnosis_done(&d);
}

/* A straggler's part of the communication is no matter of bandwidth. */
/* Fragmentation is told as a ratio, or by what is allocated and reserved: rule and knob know both.
 */
static void test_fragmented(void **state)
{
	static const struct signal ratio[] = {{"mem_fragmentation_ratio", 0.44}};
	static const struct signal both[] = {{"mem_allocated_gib", 56}, {"mem_reserved_gib", 100}};
	static const struct script_signals told[] = {{ratio, 1}, {both, 2}};

	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct diagnosis d = diagnose(*state, told[i].v, told[i].n);
		struct expectation x;
		struct err e = {0};

		assert_int_equal(d.n_found, 1);
		assert_int_equal(d.found[0].bottleneck, BOTTLENECK_MEMORY);
		assert_contains(d.found[0].evidence, "44.0 %");
		diagnosis_done(&d);
		assert_ok(expect_of(*state, "max_split_size_mb", "64", NULL, &told[i], &x, &e));
		assert_true(x.worth_trying);
		assert_contains(x.why, "44.0 %");
		expectation_done(&x);
	}
}

static void test_straggler(void **state)
{
	static const struct signal v[] = {{"comm_exposed_ratio", 0.28},
					  {"straggler_ratio", 0.5},
					  {"straggler_rank", 3},
					  {"rank_ready_ratio.min", 0.01},
					  {"rank_ready_ratio.max", 0.6}};
	struct diagnosis d = diagnose(*state, v, ARRAY_LEN(v));

	assert_int_equal(d.n_found, 2);
	assert_string_equal(d.found[0].rule, "straggler");
	assert_contains(d.found[0].evidence, "rank 3");
	assert_contains(d.found[1].evidence, "60.0 %");
	diagnosis_done(&d);
}

static const struct open_branch *open_of(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->n_open; i++)
		if (str_eq(d->open[i].rule, rule))
			return &d->open[i];
	return NULL;
}

static void test_open_branches(void **state)
{
	static const struct signal v[] = {{"data_wait_ratio", 0.4}};
	struct diagnosis d = diagnose(*state, v, 1);
	const struct open_branch *o = open_of(&d, "exposed_communication");

	assert_non_null(o);
	assert_null(o->under);
	assert_string_equal(o->missing, "comm_exposed_ratio");
	assert_non_null(o->run);
	o = open_of(&d, "disk"); /* splits what was found, and its signals are missing */
	assert_non_null(o);
	assert_string_equal(o->under, "data_wait");
	assert_contains(o->missing, "disk_util_pct or ");
	assert_null(open_of(&d, "data_wait"));
	assert_null(open_of(&d, "bandwidth")); /* splits what was not found */
	diagnosis_done(&d);
}

static void test_thresholds(void **state)
{
	static const struct signal v[] = {{"data_wait_ratio", 0.4}};
	static const struct script_signals s = {v, 1};
	const struct fixture *f = *state;
	struct kvs limits = {0};
	struct diagnosis d;
	struct err e = {0};

	kvs_set(&limits, "data_wait", "0.5");
	assert_ok(script_diagnose(&f->l.sources, &s, &limits, &d, &e));
	assert_int_equal(d.n_found, 0);
	diagnosis_done(&d);
	kvs_set(&limits, "data_wait", "0.3");
	assert_ok(script_diagnose(&f->l.sources, &s, &limits, &d, &e));
	assert_float_equal(d.found[0].limit, 0.3, 1e-12);
	assert_string_equal(d.found[0].source, "your threshold");
	diagnosis_done(&d);
	kvs_set(&limits, "data_wiat", "1");
	assert_int_equal(script_diagnose(&f->l.sources, &s, &limits, &d, &e), -ERR_RECIPE);
	assert_contains(e.text, "no rule with a limit is called \"data_wiat\" (did you mean");
	kvs_free(&limits);
}

static void test_no_finding(void **state)
{
	static const struct signal quiet[] = {{"data_wait_ratio", 0.02},
					      {"ncpu", 8},
					      {"tree_cpu_cores", 1},
					      {"data_wait_ms", NAN}};
	struct diagnosis d = diagnose(*state, quiet, ARRAY_LEN(quiet));

	assert_int_equal(d.n_found, 0);
	diagnosis_done(&d);
	d = diagnose(*state, NULL, 0);
	assert_int_equal(d.n_found, 0);
	assert_true(d.n_open > 5);
	diagnosis_done(&d);
}

/* What rules advise is in the catalogue. */
static void test_advice_exists(void **state)
{
	static const char *const dirs[] = {"recipes", NULL};
	const struct script_path path = {.dirs = dirs};
	struct knob *knobs = NULL;
	size_t n = 0, seen = 0;
	struct err e = {0};
	static const struct signal v[] = {{"data_wait_ratio", 0.4},
					  {"comm_exposed_ratio", 0.4},
					  {"launch_gap_ratio", 0.4},
					  {"kernel_short_ratio", 1},
					  {"alloc_gap_ratio", 0.4},
					  {"copy_exposed_ratio", 0.4},
					  {"rank_ready_ratio", 0.9},
					  {"host_other_ratio", 0.1},
					  {"compute_ratio", 0.9},
					  {"trace_step_ms", 10},
					  {"rank_cpu_cores", 1},
					  {"rank_system_ratio", 0.5},
					  {"nccl_gdr", 0},
					  {"nccl_nnodes", 2},
					  {"minor_faults_per_step", 1e5},
					  {"loader_ready_ratio", 1},
					  {"loader_cpu_ratio", 0.4}};
	struct diagnosis d = diagnose(*state, v, ARRAY_LEN(v));

	assert_ok(script_catalogue(&path, &knobs, &n, &e));
	for (size_t i = 0; i < d.n_found; i++)
		for (size_t k = 0; k < d.found[i].tries.n; k++, seen++) {
			bool there = false;

			for (size_t j = 0; j < n; j++)
				there = there || str_eq(knobs[j].name, d.found[i].tries.v[k]);
			if (!there)
				fail_msg("rule %s: no knob %s", d.found[i].rule,
					 d.found[i].tries.v[k]);
		}
	assert_true(seen > 15);
	for (size_t i = 0; i < n; i++)
		knob_done(&knobs[i]);
	free(knobs);
	diagnosis_done(&d);
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
		{"return { { name = 'a', when = function(s)\nreturn s.loss.y end } }",
		 "r.lua:2: attempt to index a nil value"},
		{"return { { name = 'a', when = function(s)\nreturn s.data_wiat_ratio end } "
		 "}",
		 "r.lua:2: no signal is called \"data_wiat_ratio\" (did you mean "
		 "\"data_wait_ratio\"?)"},
		{"return { { name = 'a', when = function() while true do end end } }",
		 "r.lua:1: evaluating it took more than 5 million instructions"},
		{"return { { name = 'a', needs = { 'data_wait' }, when = function() end } }",
		 "r.lua:1: rule a: needs: no signal is called \"data_wait\""},
		{"return { { name = 'a', under = 'b', when = function() end } }",
		 "r.lua:1: rule a: under: there is no rule \"b\""},
		{"return { { name = 'a', when = function() end },\n{ name = 'a', when = function() "
		 "end } }",
		 "r.lua:2: rule a: name: there are two rules called \"a\""},
	};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct script_source src = {.name = (char *)"rules/r",
					    .path = (char *)"/r.lua",
					    .text = (char *)cases[i].text};
		struct script_sources all = {.v = &src, .n = 1};

		assert_int_equal(script_check_rules(&all, NULL, &e), -ERR_RECIPE);
		assert_contains(e.text, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_wait_bounds_the_gain),
		cmocka_unit_test(test_workers_share_the_load),
		cmocka_unit_test(test_fewer_workers_than_keep_up),
		cmocka_unit_test(test_nothing_to_gain),
		cmocka_unit_test(test_without_signals),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_faults_in_functions),
		cmocka_unit_test(test_lint),
		cmocka_unit_test(test_storage_or_host),
		cmocka_unit_test(test_strongest_first),
		cmocka_unit_test(test_compute),
		cmocka_unit_test(test_idle_device),
		cmocka_unit_test(test_fragmented),
		cmocka_unit_test(test_straggler),
		cmocka_unit_test(test_open_branches),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_advice_exists),
		cmocka_unit_test(test_no_finding),
		cmocka_unit_test(test_bad_rules),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
