/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What both ways to Slurm share: the batch script, and what its errors mean. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/sched/slurm_agent.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/sched/slurm_script.h"

static struct json *job(const char *agent, const char *a, const char *b)
{
	struct json *o = json_object(), *v = json_array();

	json_set_text(o, "agent", agent);
	if (a)
		json_add_text(v, a);
	if (b)
		json_add_text(v, b);
	json_set(o, "block_dirs", v);
	return o;
}

/* What a shell prints that reads the text. */
static int shell(const char *text, struct buf *out, struct buf *err_out)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)text, NULL};
	const struct proc_spawn s = {
		.file = "sh", .argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	int status = -1;
	struct err e;

	assert_ok(proc_capture(&s, 10000000, 4096, out, err_out, &status, &e));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_script(void **state)
{
	_cleanup_(json_freep) struct json *j = job("/opt/fettle agent", "/w/blocks/1.1",
						   "/w/it's $HOME `x`/2.1");
	_cleanup_free_ char *text = NULL;
	struct err e;

	(void)state;
	assert_ok(slurm_script_text(j, &text, &e));
	assert_true(str_starts(
		text, "#!/bin/sh\nmachine=$(uname -m)\nfor agent in '/opt/fettle agent'; do\n"));
	assert_true(
		str_ends(text, "exec \"$agent\" '/w/blocks/1.1' '/w/it'\\''s $HOME `x`/2.1'\n"));
}

/* A shell must see exactly the paths that went in. */
static void test_shell_reads_back_the_paths(void **state)
{
	static const char nasty[] = "/a b/'\"$x;|&<>*?[]{}()~#!\\ \303\251/%j";
	_cleanup_(json_freep) struct json *j = job("/bin/echo", nasty, NULL);
	_cleanup_free_ char *text = NULL;
	struct buf out = {0};
	struct err e;

	(void)state;
	assert_ok(slurm_script_text(j, &text, &e));
	assert_int_equal(shell(text, &out, NULL), 0);
	out.data[out.len - 1] = '\0';
	assert_string_equal(out.data, nasty);
	buf_free(&out);
}

static void put(const char *path, const char *text)
{
	struct err e;

	assert_ok(fs_write_atomic(path, text, strlen(text), 0700, &e));
}

/* A node of another machine gets the program that is named after it, from where it is there. */
static void test_machine(void **state)
{
	char top[] = "/tmp/fettle-script-XXXXXX";
	_cleanup_free_ char *agent = NULL, *copy = NULL, *own = NULL, *beside = NULL, *text = NULL;
	_cleanup_(json_freep) struct json *j = NULL;
	struct buf out = {0}, err_out = {0};
	struct utsname u;
	struct err e;

	(void)state;
	assert_int_equal(uname(&u), 0);
	assert_non_null(mkdtemp(top));
	agent = fs_join(top, "agent");
	copy = fs_join(top, "copy");
	own = xasprintf("%s-%s", agent, u.machine);
	beside = xasprintf("%s-%s", copy, u.machine);
	put(agent, "#!/bin/sh\necho not for this machine\n");
	j = job(agent, "/w/1.1", NULL);
	json_set_text(j, "agent_machine", "vax");
	json_set_text(j, "agent_copy", copy);
	assert_ok(slurm_script_text(j, &text, &e));
	assert_int_equal(shell(text, &out, &err_out), 127);
	assert_non_null(strstr(err_out.data, "fettle: the agent for "));
	assert_non_null(strstr(err_out.data, beside));
	put(beside, "#!/bin/sh\necho copy \"$@\"\n");
	assert_int_equal(shell(text, &out, NULL), 0);
	assert_string_equal(out.data, "copy /w/1.1\n");
	buf_clear(&out);
	put(own, "#!/bin/sh\necho own \"$@\"\n");
	assert_int_equal(shell(text, &out, NULL), 0);
	assert_string_equal(out.data, "own /w/1.1\n");
	buf_free(&out);
	buf_free(&err_out);
	assert_ok(fs_remove_tree(top, &e));
}

static void test_copy(void **state)
{
	char top[] = "/tmp/fettle-script-XXXXXX";
	_cleanup_free_ char *agent = NULL, *other = NULL, *blocks = NULL, *copy = NULL,
			    *beside = NULL;
	struct utsname u;
	struct err e;

	(void)state;
	assert_int_equal(uname(&u), 0);
	assert_string_equal(slurm_agent_machine("/proc/self/exe"), u.machine);
	assert_null(slurm_agent_machine("/etc/passwd"));
	assert_null(slurm_agent_machine("/nowhere"));
	assert_non_null(mkdtemp(top));
	agent = fs_join(top, "my-agent");
	other = fs_join(top, "my-agent-aarch64");
	blocks = fs_join(top, "blocks");
	put(agent, "one");
	put(other, "two");
	assert_ok(slurm_agent_copy(agent, blocks, &copy, &e));
	assert_true(str_starts(copy, top));
	assert_true(fs_exists(copy));
	beside = xasprintf("%s-aarch64", copy);
	assert_int_equal(fs_size(beside), 3);
	assert_ok(fs_remove_tree(top, &e));
}

static void test_script_refuses(void **state)
{
	static const char *const bad[] = {"relative", "", "/a\nrm -rf /", "/a\tb", "/a\177"};
	_cleanup_(json_freep) struct json *none = job(NULL, "/a", NULL),
					  *empty = job("/agent", NULL, NULL);
	char *text = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(json_freep) struct json *dir = job("/agent", "/ok", bad[i]),
						  *agent = job(bad[i], "/a", NULL),
						  *local = job("/agent", "/a", NULL);

		json_set_text(local, "sbcast_dir", bad[i]);
		assert_int_equal(slurm_script_text(dir, &text, &e), -ERR_RECIPE);
		assert_int_equal(slurm_script_text(agent, &text, &e), -ERR_RECIPE);
		assert_int_equal(slurm_script_text(local, &text, &e), -ERR_RECIPE);
	}
	assert_int_equal(slurm_script_text(none, &text, &e), -ERR_RECIPE);
	assert_int_equal(slurm_script_text(empty, &text, &e), -ERR_RECIPE);
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
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_script_refuses),
		cmocka_unit_test(test_output_path),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("slurm_script", tests, NULL, NULL);
}
