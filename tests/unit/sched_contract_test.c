/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every scheduler must do, tried on each of them: `fake` and `local` always, `slurm` and
 * `slurm_cli` when FETTLE_TEST_SLURM names the directory that both its nodes and this test see (the
 * Slurm tests set it).
 */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/base/str.h"
#include "orchestrator/sched/sched.h"

enum { PATIENCE_US = 40000000, TURN_US = 500000 };

/* One scheduler under test with its own workspace. */
struct subject {
	const struct sched *sched;
	struct sched_run *run;
	struct clock_virtual virtual;
	struct clock clock;
	struct sched_config config;
	char *root, *agent, *helper;
	char *env[8];
	int serial;
};

static char *build_path(const char *name)
{
	const char *dir = getenv("FETTLE_BUILD");

	return xasprintf("%s/%s", dir ? dir : "build/release", name);
}

static void open_run(struct subject *t)
{
	struct err e = {0};

	assert_ok(t->sched->open(&t->config, &t->run, &e));
}

static void reopen(struct subject *t)
{
	t->sched->close(t->run);
	t->run = NULL;
	open_run(t);
}

static struct subject *subject_new(const char *name)
{
	struct subject *t = xcalloc(1, sizeof *t);
	const char *shared = getenv("FETTLE_TEST_SLURM");
	bool slurm = str_starts(name, "slurm");

	t->sched = sched_find(name);
	assert_non_null(t->sched);
	t->virtual = (struct clock_virtual){.utc_us = INT64_C(1795958504000000),
					    .mono_us = 1000000};
	t->clock = str_eq(name, "fake") ? clock_virtual_of(&t->virtual) : clock_system;
	t->root = slurm ? xasprintf("%s/contract.%ld", shared, (long)getpid()) : scratch_new();
	t->agent = build_path("fettle-agent");
	t->helper = build_path("fettle-slurm");
	t->env[0] = xstrdup("PATH=/usr/local/bin:/usr/bin:/bin");
	t->env[1] = getenv("SLURM_CONF") ? xasprintf("SLURM_CONF=%s", getenv("SLURM_CONF")) : NULL;
	t->config = (struct sched_config){.blocks_root = t->root,
					  .agent = t->agent,
					  .helper = t->helper,
					  .clock = &t->clock,
					  .seed = 7};
	assert_int_equal(fs_mkdirs(t->root, 0700, NULL), 0);
	open_run(t);
	return t;
}

static void subject_free(struct subject *t)
{
	t->sched->close(t->run);
	scratch_free(&t->root);
	free(t->agent);
	free(t->helper);
	free(t->env[0]);
	free(t->env[1]);
	free(t);
}

/* A block of one arm that runs `command` in a shell, in two slots; its directory and its token. */
static char *make_block(struct subject *t, const char *command, char token[64])
{
	char *dir = xasprintf("%s/%d.1", t->root, ++t->serial);
	_cleanup_free_ char *path = fs_join(dir, "block.json"), *text = NULL;

	snprintf(token, 64, "fettle:c0ffee%02x:a%d", (unsigned)getpid() & 0xff, t->serial);
	text = xasprintf(
		"{\"format\":\"fettle.block/1\",\"token\":\"%s\",\"block\":%d,\"attempt\":1,"
		"\"limits\":{\"grace_s\":1},\"workdir\":\"/tmp\",\"env\":{\"PATH\":\"/usr/bin:/"
		"bin\"},"
		"\"arms\":[{\"arm\":1,\"argv\":[\"sh\",\"-c\",\"%s\"]}],"
		"\"slots\":[{\"slot\":0,\"arm\":1},{\"slot\":1,\"arm\":1}]}",
		token, t->serial, command);
	assert_int_equal(fs_mkdirs(dir, 0700, NULL), 0);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, NULL), 0);
	return dir;
}

static int submit_dirs(struct subject *t, const char *const *dirs, size_t n, const char *token,
		       char id[64], struct err *e)
{
	_cleanup_free_ char *output = fs_join(dirs[0], "agent.out");
	const struct sched_job job = {.token = token,
				      .block_dirs = dirs,
				      .n_block_dirs = n,
				      .workdir = "/tmp",
				      .env = t->env,
				      .output = output,
				      .nodes = 1,
				      .tasks_per_node = 1,
				      .cpus_per_task = 1,
				      .time_limit_s = 300};

	return t->sched->submit(t->run, &job, id, e);
}

static int submit(struct subject *t, const char *dir, const char *token, char id[64], struct err *e)
{
	return submit_dirs(t, &dir, 1, token, id, e);
}

static struct sched_status poll_one(struct subject *t, const char *id)
{
	struct sched_status st;
	struct err e = {0};

	assert_ok(t->sched->poll(t->run, &id, 1, &st, &e));
	return st;
}

/* Wait until it has ended (or runs, if running is wanted). */
static struct sched_status await(struct subject *t, const char *id, enum job_state want)
{
	int64_t until = clock_mono_us(&clock_system) + PATIENCE_US;
	struct sched_status st = poll_one(t, id);
	struct err e = {0};

	while (st.state != want && st.state != JOB_ENDED && clock_mono_us(&clock_system) < until) {
		assert_ok(t->sched->wait(t->run, TURN_US, -1, &e));
		st = poll_one(t, id);
	}
	assert_int_equal(st.state, want);
	return st;
}

static bool has_file(const char *dir, const char *name)
{
	_cleanup_free_ char *path = fs_join(dir, name);

	return fs_exists(path);
}

/* --- the contract ----------------------------------------------------------------------- */

static void an_unknown_token_is_proved_absent(struct subject *t)
{
	struct sched_status st;
	struct err e = {0};

	assert_int_equal(t->sched->find(t->run, "fettle:00000000:a1", &st, &e), 0);
}

static void a_job_runs_and_leaves_its_records(struct subject *t)
{
	char token[64], id[64] = "";
	_cleanup_free_ char *dir = make_block(t, "echo hello", token);
	struct sched_status st;
	struct err e = {0};

	assert_ok(submit(t, dir, token, id, &e));
	assert_true(id[0] != '\0');
	st = await(t, id, JOB_ENDED);
	assert_int_equal(st.end, END_OK);
	assert_string_equal(st.id, id);
	assert_true(st.nodes[0] != '\0');
	assert_true(st.start_us > 0);
	assert_true(has_file(dir, "done.json"));
	assert_true(has_file(dir, "t01.json"));
	assert_true(has_file(dir, "t00/out"));
	assert_true(has_file(dir, "claim.json"));
	assert_int_equal(poll_one(t, id).end, END_OK); /* told again and again */
}

static void a_job_is_found_by_its_token_after_a_restart(struct subject *t)
{
	char token[64], id[64] = "";
	_cleanup_free_ char *dir = make_block(t, "sleep 1", token);
	struct sched_status st = {0};
	struct err e = {0};

	assert_ok(submit(t, dir, token, id, &e));
	reopen(t);
	assert_int_equal(t->sched->find(t->run, token, &st, &e), 1);
	assert_string_equal(st.id, id);
	assert_int_not_equal(st.state, JOB_GONE);
	assert_int_equal(await(t, id, JOB_ENDED).end, END_OK);
	reopen(t);
	assert_int_equal(poll_one(t, id).state, JOB_ENDED);
	assert_int_equal(t->sched->find(t->run, token, &st, &e), 1);
	assert_int_equal(st.state, JOB_ENDED);
	assert_int_equal(st.end, END_OK);
}

static void a_cancelled_job_ends_as_cancelled(struct subject *t)
{
	char token[64], id[64] = "";
	_cleanup_free_ char *dir = make_block(t, "sleep 300", token);
	struct err e = {0};

	assert_ok(submit(t, dir, token, id, &e));
	await(t, id, JOB_RUNNING);
	assert_ok(t->sched->cancel(t->run, id, &e));
	assert_int_equal(await(t, id, JOB_ENDED).end, END_CANCELLED);
	assert_ok(t->sched->cancel(t->run, id, &e)); /* gone already: fine */
}

static void an_unknown_id_is_gone(struct subject *t)
{
	const char *ids[] = {"999999999"};
	struct sched_status st;
	struct err e = {0};

	assert_ok(t->sched->poll(t->run, ids, 1, &st, &e));
	assert_int_equal(st.state, JOB_GONE);
	assert_ok(t->sched->cancel(t->run, ids[0], &e));
}

static void capacity_is_at_least_one(struct subject *t)
{
	struct sched_capacity c;
	struct err e = {0};

	assert_ok(t->sched->capacity(t->run, &c, &e));
	assert_true(c.nodes_total >= 1);
	assert_true(c.jobs_at_once >= 1);
	assert_true(c.nodes_idle >= 0 && c.nodes_idle <= c.nodes_total);
	assert_true(c.summary[0] != '\0');
}

static void a_possible_job_will_run_and_an_impossible_one_not(struct subject *t)
{
	char token[64];
	_cleanup_free_ char *dir = make_block(t, "true", token);
	const char *dirs[] = {dir};
	_cleanup_free_ char *output = fs_join(dir, "agent.out");
	struct sched_job job = {.token = token,
				.block_dirs = dirs,
				.n_block_dirs = 1,
				.workdir = "/tmp",
				.env = t->env,
				.output = output,
				.nodes = 1,
				.tasks_per_node = 1,
				.cpus_per_task = 1,
				.time_limit_s = 60};
	struct sched_forecast forecast = {.start_us = -1};
	struct err e = {0};

	assert_ok(t->sched->will_run(t->run, &job, &forecast, &e));
	assert_true(forecast.start_us >= 0);
	job.nodes = 20000;
	assert_true(t->sched->will_run(t->run, &job, &forecast, &e) < 0);
	assert_true(e.text[0] != '\0');
}

static void a_descriptor_ends_the_wait(struct subject *t)
{
	char token[64], id[64] = "";
	_cleanup_free_ char *dir = make_block(t, "sleep 300", token);
	int fd[2];
	struct err e = {0};

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_ok(submit(t, dir, token, id, &e));
	assert_int_equal(write(fd[1], "x", 1), 1);
	assert_ok(t->sched->wait(t->run, INT64_C(3600000000), fd[0],
				 &e)); /* an hour, were it not for fd */
	assert_int_not_equal(poll_one(t, id).state, JOB_ENDED);
	assert_ok(t->sched->cancel(t->run, id, &e));
	await(t, id, JOB_ENDED);
	close(fd[0]);
	close(fd[1]);
}

static void several_jobs_are_polled_in_the_order_asked(struct subject *t)
{
	char token[2][64], id[2][64];
	const char *ids[3];
	struct sched_status st[3];
	struct err e = {0};

	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *dir = make_block(t, "true", token[i]);

		assert_ok(submit(t, dir, token[i], id[i], &e));
		await(t, id[i], JOB_ENDED);
	}
	ids[0] = id[1];
	ids[1] = "999999999";
	ids[2] = id[0];
	assert_ok(t->sched->poll(t->run, ids, 3, st, &e));
	assert_string_equal(st[0].id, id[1]);
	assert_int_equal(st[1].state, JOB_GONE);
	assert_string_equal(st[2].id, id[0]);
	assert_int_equal(st[2].end, END_OK);
}

/* A job works off its blocks one after the other, and each has its own manifest. */
static void a_job_may_hold_several_blocks(struct subject *t)
{
	char token[64], id[64];
	_cleanup_free_ char *second = make_block(t, "true", token),
			    *first = make_block(t, "true", token);
	const char *const dirs[] = {first, second};
	struct err e = {0};

	assert_ok(submit_dirs(t, dirs, 2, token, id, &e));
	assert_int_equal(await(t, id, JOB_ENDED).end, END_OK);
	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *done = fs_join(dirs[i], "done.json");

		assert_true(fs_exists(done));
	}
}

/* --- every scheduler -------------------------------------------------------------------- */

typedef void (*rule_f)(struct subject *t);

static void on_each(rule_f rule)
{
	const char *shared = getenv("FETTLE_TEST_SLURM");
	_cleanup_free_ char *helper = build_path("fettle-slurm");
	bool built = access(helper, X_OK) == 0; /* not where libslurm is missing */
	const char *const names[] = {"fake", "local", shared && built ? "slurm" : NULL,
				     shared ? "slurm_cli" : NULL};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct subject *t;

		if (!names[i])
			continue;
		print_message("    on %s\n", names[i]);
		t = subject_new(names[i]);
		rule(t);
		subject_free(t);
	}
}

#define RULE(name)                            \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		on_each(name);                \
	}
RULE(an_unknown_token_is_proved_absent)
RULE(a_job_runs_and_leaves_its_records)
RULE(a_job_is_found_by_its_token_after_a_restart)
RULE(a_cancelled_job_ends_as_cancelled)
RULE(an_unknown_id_is_gone)
RULE(capacity_is_at_least_one)
RULE(a_possible_job_will_run_and_an_impossible_one_not)
RULE(a_descriptor_ends_the_wait)
RULE(several_jobs_are_polled_in_the_order_asked)
RULE(a_job_may_hold_several_blocks)

/* --- words ------------------------------------------------------------------------------ */

static void the_words_of_the_contract(void **state)
{
	(void)state;
	assert_string_equal(job_state_name(JOB_ENDED), "ended");
	assert_string_equal(job_end_name(END_NODE_FAIL), "node_fail");
	assert_true(job_end_is_infrastructure(END_PREEMPTED));
	assert_false(job_end_is_infrastructure(END_TIMEOUT));
	assert_null(sched_find("cron"));
	assert_string_equal(sched_find("local")->name, "local");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_words_of_the_contract),
		cmocka_unit_test(test_an_unknown_token_is_proved_absent),
		cmocka_unit_test(test_a_job_runs_and_leaves_its_records),
		cmocka_unit_test(test_a_job_is_found_by_its_token_after_a_restart),
		cmocka_unit_test(test_a_cancelled_job_ends_as_cancelled),
		cmocka_unit_test(test_an_unknown_id_is_gone),
		cmocka_unit_test(test_capacity_is_at_least_one),
		cmocka_unit_test(test_a_possible_job_will_run_and_an_impossible_one_not),
		cmocka_unit_test(test_a_descriptor_ends_the_wait),
		cmocka_unit_test(test_several_jobs_are_polled_in_the_order_asked),
		cmocka_unit_test(test_a_job_may_hold_several_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
