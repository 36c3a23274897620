/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What both ways to Slurm share: the batch script, and what its errors mean. */
#include "tests/unit/check.h"

#include "orchestrator/base/proc.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/sched/slurm_script.h"

static struct json *dirs(const char *a, const char *b)
{
	struct json *v = json_array();

	json_add_text(v, a);
	if (b)
		json_add_text(v, b);
	return v;
}

static void test_script(void **state)
{
	_cleanup_(json_freep) struct json *v = dirs("/w/blocks/1.1", "/w/it's $HOME `x`/2.1");
	_cleanup_free_ char *text = NULL;
	struct err e;

	(void)state;
	assert_ok(slurm_script_text("/opt/fettle agent", v, &text, &e));
	assert_string_equal(text, "#!/bin/sh\nexec '/opt/fettle agent' '/w/blocks/1.1' "
				  "'/w/it'\\''s $HOME `x`/2.1'\n");
}

/* A shell must see exactly the paths that went in. */
static void test_shell_reads_back_the_paths(void **state)
{
	static const char nasty[] = "/a b/'\"$x;|&<>*?[]{}()~#!\\ \303\251/%j";
	_cleanup_(json_freep) struct json *v = dirs(nasty, NULL);
	_cleanup_free_ char *text = NULL;
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, NULL, NULL};
	const struct proc_spawn s = {
		.file = "sh", .argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	struct buf out = {0};
	int status;
	struct err e;

	(void)state;
	assert_ok(slurm_script_text("/bin/echo", v, &text, &e));
	argv[2] = text;
	assert_ok(proc_capture(&s, 10000000, 4096, &out, NULL, &status, &e));
	out.data[out.len - 1] = '\0';
	assert_string_equal(out.data, nasty);
	buf_free(&out);
}

static void test_script_refuses(void **state)
{
	static const char *const bad[] = {"relative", "", "/a\nrm -rf /", "/a\tb", "/a\177"};
	_cleanup_(json_freep) struct json *good = dirs("/a", NULL), *none = json_array();
	char *text = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(json_freep) struct json *v = dirs("/ok", bad[i]);

		assert_int_equal(slurm_script_text("/agent", v, &text, &e), -ERR_RECIPE);
		assert_int_equal(slurm_script_text(bad[i], good, &text, &e), -ERR_RECIPE);
	}
	assert_int_equal(slurm_script_text(NULL, good, &text, &e), -ERR_RECIPE);
	assert_int_equal(slurm_script_text("/agent", none, &text, &e), -ERR_RECIPE);
	assert_int_equal(slurm_script_text("/agent", NULL, &text, &e), -ERR_RECIPE);
	assert_null(text);
}

static void test_output_path(void **state)
{
	_cleanup_free_ char *path = NULL;
	char *none = NULL;
	struct err e;

	(void)state;
	assert_ok(slurm_script_output_path("/w/100%j/agent.out", &path, &e));
	assert_string_equal(path, "/w/100%%j/agent.out");
	assert_int_equal(slurm_script_output_path("/w/a\\b", &none, &e), -ERR_RECIPE);
	assert_contains(e.text, "backslash");
}

static void test_errors(void **state)
{
	static const struct {
		int number;
		enum err_code class;
		bool gone;
	} rows[] = {
		{11, ERR_TEMP, false},                                   /* MaxJobCount */
		{111, ERR_TEMP, false},                                  /* connection refused */
		{1800, ERR_TEMP, false},                                 /* controller away */
		{1005, ERR_RECIPE, false},                               /* another release */
		{5004, ERR_TEMP, false},                                 /* timed out */
		{5005, ERR_TEMP, false},                                 /* cut short */
		{0, ERR_TEMP, false},                                    /* libslurm did not say */
		{-1, ERR_TEMP, false},     {2000, ERR_NOT_FOUND, false}, /* partition */
		{2006, ERR_RECIPE, false},                               /* nodes */
		{2014, ERR_RECIPE, false}, {2017, ERR_NOT_FOUND, true},
		{2021, ERR_RECIPE, true},  {2050, ERR_TEMP, false}, /* a limit that time lifts */
		{2099, ERR_RECIPE, false},                          /* not in the table */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(slurm_errors_class(rows[i].number), rows[i].class);
		assert_int_equal(slurm_errors_already_gone(rows[i].number), rows[i].gone);
	}
	assert_contains(slurm_errors_advice(2000), "sinfo");
	assert_contains(slurm_errors_advice(5004), "scontrol ping");
	assert_null(slurm_errors_advice(2099));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_shell_reads_back_the_paths),
		cmocka_unit_test(test_script_refuses),
		cmocka_unit_test(test_output_path),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("slurm_script", tests, NULL, NULL);
}
