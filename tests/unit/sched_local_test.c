/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scheduler `local` beyond the common contract: restarts at any point, other boots, nothing left
 * behind. */
#include "tests/unit/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/base/str.h"
#include "orchestrator/sched/sched.h"

enum { PATIENCE_US = 40000000, TURN_US = 200000 };
static const char TOKEN[] = "fettle:10ca1000:a1";

struct world {
	struct sched_run *run;
	char *root, *agent, *dir;
};

static const struct sched *local(void)
{
	return sched_find("local");
}

static void open_run(struct world *w)
{
	const struct sched_config c = {
		.blocks_root = w->root, .agent = w->agent, .clock = &clock_system};
	struct err e = {0};

	assert_ok(local()->open(&c, &w->run, &e));
}

static void reopen(struct world *w)
{
	local()->close(w->run);
	open_run(w);
}

/* One block of one slot that runs `command`. */
static void world_new(struct world *w, const char *command)
{
	const char *build = getenv("FETTLE_BUILD");
	_cleanup_free_ char *path = NULL, *text = NULL;

	*w = (struct world){.root = scratch_new(),
			    .agent = xasprintf("%s/fettle-agent", build ? build : "build/release")};
	if (w->agent[0] != '/') {
		char *full = fs_absolute(w->agent, NULL);

		free(w->agent);
		w->agent = full;
	}
	w->dir = fs_join(w->root, "1.1");
	path = fs_join(w->dir, "block.json");
	text = xasprintf(
		"{\"format\":\"fettle.block/1\",\"token\":\"%s\",\"block\":1,\"attempt\":1,"
		"\"limits\":{\"grace_s\":1},\"workdir\":\"/tmp\",\"env\":{\"PATH\":\"/usr/bin:/bin\"},"
		"\"arms\":[{\"arm\":1,\"argv\":[\"sh\",\"-c\",\"%s\"]}],"
		"\"slots\":[{\"slot\":0,\"arm\":1}]}",
		TOKEN, command);
	assert_int_equal(fs_mkdirs(w->dir, 0700, NULL), 0);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, NULL), 0);
	open_run(w);
}

static void world_free(struct world *w)
{
	local()->close(w->run);
	scratch_free(&w->root);
	free(w->agent);
	free(w->dir);
}

static int submit(struct world *w, char id[64], struct err *e)
{
	const char *dirs[] = {w->dir};
	_cleanup_free_ char *output = fs_join(w->dir, "agent.out");
	char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	const struct sched_job job = {.token = TOKEN,
				      .block_dirs = dirs,
				      .n_block_dirs = 1,
				      .workdir = "/tmp",
				      .env = env,
				      .output = output,
				      .nodes = 1,
				      .exclusive = true};

	return local()->submit(w->run, &job, id, e);
}

static struct sched_status poll_one(struct world *w, const char *id)
{
	struct sched_status st;
	struct err e = {0};

	assert_ok(local()->poll(w->run, &id, 1, &st, &e));
	return st;
}

static struct sched_status await_end(struct world *w, const char *id)
{
	int64_t until = clock_mono_us(&clock_system) + PATIENCE_US;
	struct sched_status st = poll_one(w, id);
	struct err e = {0};

	while (st.state != JOB_ENDED && clock_mono_us(&clock_system) < until) {
		assert_ok(local()->wait(w->run, TURN_US, -1, &e));
		st = poll_one(w, id);
	}
	assert_int_equal(st.state, JOB_ENDED);
	return st;
}

static void await_file(const char *path)
{
	int64_t until = clock_mono_us(&clock_system) + PATIENCE_US;

	while (!fs_exists(path) && clock_mono_us(&clock_system) < until)
		usleep(5000);
	assert_true(fs_exists(path));
}

static pid_t pid_of(const char *digits)
{
	_cleanup_free_ char *number = xstrndup(digits, strspn(digits, "0123456789"));
	int64_t pid = 0;

	return str_to_i64(number, &pid) ? (pid_t)pid : 0;
}

/* Processes whose environment holds this test's token: of the trial, wherever they went. */
static int count_trial_processes(void)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int n = 0;

	while ((de = readdir(d))) {
		pid_t pid = pid_of(de->d_name);
		_cleanup_free_ char *mark = pid > 0 ? proc_env(pid, "FETTLE_TRIAL") : NULL;

		n += mark && strncmp(mark, TOKEN, strlen(TOKEN)) == 0;
	}
	closedir(d);
	return n;
}

static int count_agents(const struct world *w)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int n = 0;

	while ((de = readdir(d))) {
		pid_t pid = pid_of(de->d_name);
		struct strv argv = {0};

		if (pid > 0 && proc_cmdline(pid, &argv) == 0)
			n += argv.n == 2 && str_eq(argv.v[1], w->dir);
		strv_free(&argv);
	}
	closedir(d);
	return n;
}

/* Nor the guard of an agent, which would end the next test's trial of the same token. */
static void await_nothing(const struct world *w)
{
	int64_t until = clock_mono_us(&clock_system) + PATIENCE_US;

	while (count_trial_processes() + count_agents(w) > 0 &&
	       clock_mono_us(&clock_system) < until)
		usleep(20000);
	assert_int_equal(count_trial_processes(), 0);
	assert_int_equal(count_agents(w), 0);
}

static void a_token_is_accepted_once(void **state)
{
	struct world w;
	char first[64], second[64];
	struct err e = {0};

	(void)state;
	world_new(&w, "echo run");
	assert_ok(submit(&w, first, &e));
	assert_ok(submit(&w, second, &e));
	assert_string_equal(first, second);
	assert_int_equal(await_end(&w, first).end, END_OK);
	reopen(&w);
	assert_ok(submit(&w, second, &e));
	assert_string_equal(first, second);
	world_free(&w);
}

static void the_agent_outlives_the_process_that_started_it(void **state)
{
	struct world w;
	char id[64];
	struct sched_status st;
	struct err e = {0};
	pid_t child;
	int status;

	(void)state;
	world_new(&w, "sleep 0.7");
	child = fork();
	if (child == 0) {
		if (submit(&w, id, &e))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(local()->find(w.run, TOKEN, &st, &e), 1);
	assert_int_equal(await_end(&w, st.id).end, END_OK);
	world_free(&w);
}

/* Killed after the hint, before anything was started. */
static void a_hint_alone_is_proof_of_absence(void **state)
{
	struct world w;
	struct sched_status st;
	struct err e = {0};
	_cleanup_free_ char *hint = NULL, *text = NULL;
	char id[64];

	(void)state;
	world_new(&w, "true");
	hint = xasprintf("%s/.tokens/%s", w.root, TOKEN);
	text = xasprintf("{\"format\":\"fettle.local/1\",\"token\":\"%s\",\"dirs\":[\"%s\"]}",
			 TOKEN, w.dir);
	assert_int_equal(fs_write_atomic(hint, text, strlen(text), 0600, NULL), 0);
	assert_int_equal(local()->find(w.run, TOKEN, &st, &e), 0);
	assert_ok(submit(&w, id, &e));
	assert_int_equal(await_end(&w, id).end, END_OK);
	world_free(&w);
}

/* Killed after the start, before the process was noted: the claim tells, and before that the
 * arguments. */
static void a_process_that_was_not_noted_is_found(void **state)
{
	struct world w;
	char id[64];
	struct sched_status st;
	struct err e = {0};
	_cleanup_free_ char *link = NULL, *by_id = NULL, *claim = NULL;

	(void)state;
	for (int claimed = 0; claimed < 2; claimed++) {
		world_new(&w, "sleep 0.7");
		link = xasprintf("%s/.tokens/%s.id", w.root, TOKEN);
		claim = fs_join(w.dir, "claim.json");
		assert_ok(submit(&w, id, &e));
		by_id = xasprintf("%s/.tokens/id.%s", w.root, id);
		assert_int_equal(unlink(link), 0);
		assert_int_equal(unlink(by_id), 0);
		await_file(claim);
		if (!claimed)
			assert_int_equal(unlink(claim), 0); /* as if it had not come so far */
		reopen(&w);
		assert_int_equal(local()->find(w.run, TOKEN, &st, &e), 1);
		assert_string_equal(st.id, id);
		assert_int_equal(st.state, JOB_RUNNING);
		await_end(&w, id);
		world_free(&w);
		free(TAKE(link));
		free(TAKE(by_id));
		free(TAKE(claim));
	}
}

/* As after a power cut: pid and start time may fit a process that is somebody else's. */
static void a_job_of_another_boot_has_ended(void **state)
{
	struct world w;
	struct sched_status st;
	struct err e = {0};
	_cleanup_free_ char *hint = NULL, *claim = NULL, *text = NULL, *record = NULL;
	uint64_t ticks = 0;

	(void)state;
	world_new(&w, "true");
	proc_start_ticks(getpid(), &ticks, NULL);
	hint = xasprintf("%s/.tokens/%s", w.root, TOKEN);
	claim = fs_join(w.dir, "claim.json");
	text = xasprintf(
		"{\"format\":\"fettle.local/1\",\"token\":\"%s\",\"boot_id\":\"other\",\"dirs\":[\"%s\"]}",
		TOKEN, w.dir);
	record = xasprintf(
		"{\"format\":\"fettle.claim/1\",\"pid\":%ld,\"start_ticks\":%llu,\"boot_id\":\"other\"}",
		(long)getpid(), (unsigned long long)ticks);
	assert_int_equal(fs_write_atomic(hint, text, strlen(text), 0600, NULL), 0);
	assert_int_equal(fs_write_atomic(claim, record, strlen(record), 0600, NULL), 0);
	assert_int_equal(local()->find(w.run, TOKEN, &st, &e), 1);
	assert_int_equal(st.state, JOB_ENDED);
	assert_int_equal(st.end, END_FAILED);
	world_free(&w);
}

static void a_cancel_leaves_nothing_and_is_remembered(void **state)
{
	struct world w;
	char id[64];
	struct err e = {0};
	_cleanup_free_ char *out = NULL;

	(void)state;
	world_new(&w, "(setsid sleep 300 &) ; sleep 300 & echo up; sleep 300");
	assert_ok(submit(&w, id, &e));
	out = fs_join(w.dir, "t00/out.idx");
	await_file(out);
	while (fs_size(out) <= 0) /* "up" was printed */
		usleep(5000);
	assert_true(count_trial_processes() >= 3);
	assert_ok(local()->cancel(w.run, id, &e));
	assert_int_equal(await_end(&w, id).end, END_CANCELLED);
	await_nothing(&w);
	reopen(&w);
	assert_int_equal(poll_one(&w, id).end, END_CANCELLED);
	world_free(&w);
}

static void an_agent_that_was_killed_has_failed_and_leaves_nothing(void **state)
{
	struct world w;
	char id[64];
	struct sched_status st;
	struct err e = {0};
	_cleanup_free_ char *out = NULL;

	(void)state;
	world_new(&w, "(setsid sleep 300 &) ; echo up; sleep 300");
	assert_ok(submit(&w, id, &e));
	out = fs_join(w.dir, "t00/out.idx");
	await_file(out);
	while (fs_size(out) <= 0)
		usleep(5000);
	assert_int_equal(kill(pid_of(id), SIGKILL), 0);
	st = await_end(&w, id);
	assert_int_equal(st.end, END_FAILED);
	assert_int_equal(st.exit_status, 128 + SIGKILL);
	await_nothing(&w);
	world_free(&w);
}

static void a_time_limit_ends_the_job(void **state)
{
	struct world w;
	char id[64];
	struct err e = {0};
	const char *dirs[1];
	_cleanup_free_ char *output = NULL;
	char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	struct sched_job job = {.token = TOKEN,
				.block_dirs = dirs,
				.n_block_dirs = 1,
				.workdir = "/tmp",
				.env = env,
				.nodes = 1,
				.time_limit_s = 1};

	(void)state;
	world_new(&w, "sleep 300");
	dirs[0] = w.dir;
	output = fs_join(w.dir, "agent.out");
	job.output = output;
	assert_ok(local()->submit(w.run, &job, id, &e));
	assert_int_equal(await_end(&w, id).end, END_TIMEOUT);
	world_free(&w);
}

static void one_at_a_time(void **state)
{
	struct world w;
	char id[64], other[64];
	struct err e = {0};
	struct sched_capacity c;
	const char *dirs[1];
	char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	struct sched_job job = {.token = "fettle:10ca1000:a2",
				.block_dirs = dirs,
				.n_block_dirs = 1,
				.workdir = "/tmp",
				.env = env,
				.output = "/dev/null",
				.exclusive = true};

	struct world second;

	(void)state;
	world_new(&w, "sleep 300");
	dirs[0] = w.dir;
	second = w; /* another fettle, which was there before the job and found this machine free */
	open_run(&second);
	assert_ok(submit(&w, id, &e));
	assert_int_equal(local()->submit(second.run, &job, other, &e), -ERR_TEMP);
	assert_contains(e.text, "still runs on this machine");
	local()->close(second.run);
	assert_ok(local()->capacity(w.run, &c, &e));
	assert_int_equal(c.nodes_idle, 0);
	assert_int_equal(local()->submit(w.run, &job, other, &e), -ERR_TEMP);
	assert_contains(e.text, "still runs on this machine");
	reopen(&w); /* another fettle, that started nothing itself */
	assert_int_equal(local()->submit(w.run, &job, other, &e), -ERR_TEMP);
	assert_ok(local()->cancel(w.run, id, &e));
	await_end(&w, id);
	assert_ok(local()->capacity(w.run, &c, &e));
	assert_int_equal(c.nodes_idle, 1);
	world_free(&w);
}

/* done.json is there a moment before its agent is gone: the next block waits for that moment, in
 * whatever process, and is then accepted. */
static void an_agent_that_left_its_manifest_is_waited_for(void **state)
{
	static const char script[] = "#!/bin/sh\n: >\"$1/done.json\"\nread -r _ <\"$1/../gate\"\n";
	struct world w;
	char id[64], other[64];
	struct err e = {0};
	_cleanup_free_ char *gate = NULL, *done = NULL, *dir = NULL;
	const char *dirs[1];
	char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	struct sched_job job = {.token = "fettle:10ca1000:a2",
				.block_dirs = dirs,
				.n_block_dirs = 1,
				.workdir = "/tmp",
				.env = env,
				.output = "/dev/null",
				.exclusive = true};
	int fd;

	(void)state;
	world_new(&w, "true");
	free(w.agent);
	w.agent = fs_join(w.root, "test-agent");
	assert_ok(fs_write_atomic(w.agent, script, strlen(script), 0700, &e));
	reopen(&w);
	gate = fs_join(w.root, "gate");
	done = fs_join(w.dir, "done.json");
	dir = fs_join(w.root, "2.1");
	dirs[0] = dir;
	assert_int_equal(mkfifo(gate, 0600), 0);
	assert_ok(fs_mkdirs(dir, 0700, &e));
	assert_ok(submit(&w, id, &e));
	await_file(done);
	assert_int_equal(local()->submit(w.run, &job, other, &e), -ERR_TEMP);
	reopen(&w);
	assert_int_equal(local()->submit(w.run, &job, other, &e), -ERR_TEMP);
	fd = open(gate, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, "\n", 1) == 1);
	await_end(&w, id);
	assert_ok(local()->submit(w.run, &job, other, &e));
	assert_int_equal(write(fd, "\n", 1), 1);
	await_end(&w, other);
	close(fd);
	world_free(&w);
}

static void what_cannot_be_started_is_not_accepted(void **state)
{
	struct world w;
	char id[64];
	struct sched_status st;
	struct err e = {0};

	(void)state;
	world_new(&w, "true");
	free(w.agent);
	w.agent = xstrdup("/nonexistent/fettle-agent");
	reopen(&w);
	assert_int_equal(submit(&w, id, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "/nonexistent/fettle-agent");
	assert_int_equal(local()->find(w.run, TOKEN, &st, &e), 0);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_accepted_once),
		cmocka_unit_test(the_agent_outlives_the_process_that_started_it),
		cmocka_unit_test(a_hint_alone_is_proof_of_absence),
		cmocka_unit_test(a_process_that_was_not_noted_is_found),
		cmocka_unit_test(a_job_of_another_boot_has_ended),
		cmocka_unit_test(a_cancel_leaves_nothing_and_is_remembered),
		cmocka_unit_test(an_agent_that_was_killed_has_failed_and_leaves_nothing),
		cmocka_unit_test(a_time_limit_ends_the_job),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(an_agent_that_left_its_manifest_is_waited_for),
		cmocka_unit_test(what_cannot_be_started_is_not_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
