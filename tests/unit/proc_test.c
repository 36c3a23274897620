/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/proc.h"

#define SECOND      INT64_C(1000000)
#define LONG_ENOUGH (60 * SECOND) /* only a hanging machine reaches it */

/* argv of `sh -c script`, static: one at a time. */
static char **sh(const char *script)
{
	static char name[] = "sh", flag[] = "-c", text[1024];
	static char *argv[] = {name, flag, text, NULL};

	assert_true(str_copy(text, sizeof text, script));
	return argv;
}

static struct proc_spawn spawn_sh(const char *script)
{
	return (struct proc_spawn){
		.file = "sh", .argv = sh(script), .fd_in = -1, .fd_out = -1, .fd_err = -1};
}

static void capture_keeps_both_streams_and_the_status(void **state)
{
	struct proc_spawn s = spawn_sh("echo out; echo err >&2; exit 7");
	struct buf out = {0}, err = {0};
	struct err e = {0};
	int status = 0;

	(void)state;
	assert_ok(proc_capture(&s, LONG_ENOUGH, 1000, &out, &err, &status, &e));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_string_equal(out.data, "out\n");
	assert_string_equal(err.data, "err\n");
	buf_free(&out);
	buf_free(&err);
}

static void capture_is_bounded_and_never_blocks_the_child(void **state)
{
	struct proc_spawn s = spawn_sh("head -c 1000000 /dev/zero; echo end >&2");
	struct buf out = {0}, err = {0};
	struct err e = {0};
	int status = -1;

	(void)state;
	assert_ok(proc_capture(&s, LONG_ENOUGH, 1000, &out, &err, &status, &e));
	assert_int_equal(status, 0);
	assert_int_equal(out.len, 1000);
	assert_string_equal(err.data, "end\n");
	buf_free(&out);
	buf_free(&err);
}

static void capture_kills_what_takes_too_long(void **state)
{
	struct proc_spawn s = spawn_sh("echo begun; exec sleep 1000");
	struct buf out = {0};
	struct err e = {0};
	int status = 0;

	(void)state;
	assert_int_equal(proc_capture(&s, SECOND / 2, 1000, &out, NULL, &status, &e), -ERR_TEMP);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_contains(e.text, "did not end within 0.5 s");
	assert_string_equal(out.data, "begun\n");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	buf_free(&out);
}

static void capture_does_not_wait_for_a_grandchild(void **state)
{
	struct proc_spawn s = spawn_sh("sleep 1000 & echo $!");
	struct buf out = {0};
	struct err e = {0};
	int64_t grandchild;
	int status = -1;

	(void)state;
	assert_ok(proc_capture(&s, LONG_ENOUGH, 1000, &out, NULL, &status, &e));
	assert_true(str_to_i64(out.data, &grandchild));
	/* it held the pipe open all the while */
	assert_int_equal(kill((pid_t)grandchild, SIGKILL), 0);
	buf_free(&out);
}

static void a_missing_program_is_named(void **state)
{
	struct proc_spawn s = spawn_sh("");
	char *env[] = {(char[]){"PATH=/nowhere:/empty"}, NULL};
	struct proc_id id = {0};
	struct err e = {0};

	(void)state;
	s.file = "no-such-program";
	assert_int_equal(proc_spawn(&s, &id, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "no-such-program not found in PATH");
	s.file = "/no/such/program";
	assert_int_equal(proc_spawn(&s, &id, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "cannot run /no/such/program: No such file");
	s.file = "sh"; /* PATH of the child's environment counts, not ours */
	s.env = env;
	assert_int_equal(proc_spawn(&s, &id, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "/nowhere:/empty");
	assert_int_equal(id.pid, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void what_exec_refuses_is_named(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "notes.txt");
	struct proc_spawn s = spawn_sh("");
	struct proc_id id = {0};
	struct err e = {0};

	(void)state;
	assert_ok(fs_write_atomic(path, "hello", 5, 0600, &e));
	s.file = path;
	assert_int_equal(proc_spawn(&s, &id, &e), -ERR_IO);
	assert_contains(e.text, "Permission denied");
	assert_int_equal(chmod(path, 0700), 0);
	/* no #! line: never handed to a shell */
	assert_int_equal(proc_spawn(&s, &id, &e), -ERR_IO);
	assert_contains(e.text, "Exec format error");
	s.file = "sh";
	s.workdir = "/no/such/dir";
	assert_int_equal(proc_spawn(&s, &id, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "in directory /no/such/dir");
}

static void the_child_gets_what_it_was_given(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *expected = NULL;
	char *env[] = {(char[]){"PATH=/usr/bin:/bin"}, (char[]){"A=b c"}, NULL};
	struct proc_spawn s = spawn_sh("pwd; echo \"$A|$HOME|$(ls /proc/self/fd | wc -l)\"; cat");
	struct buf out = {0};
	struct err e = {0};
	int status = -1, leak;

	(void)state;
	leak = open("/", O_RDONLY | O_DIRECTORY); /* without O_CLOEXEC on purpose */
	s.env = env;
	s.workdir = dir;
	assert_ok(proc_capture(&s, LONG_ENOUGH, 1000, &out, NULL, &status, &e));
	close(leak);
	expected = xasprintf("%s\nb c||4\n", dir); /* 0, 1, 2 and ls's own; stdin is empty */
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void signals_of_the_child_are_the_defaults(void **state)
{
	struct proc_spawn s = spawn_sh("grep -E '^Sig(Blk|Ign)' /proc/self/status");
	struct buf out = {0};
	struct err e = {0};
	unsigned long long blocked = 1, ignored = 1;
	sigset_t block, before;
	int status = -1;

	(void)state;
	sigfillset(&block);
	sigprocmask(SIG_SETMASK, &block, &before);
	signal(SIGPIPE, SIG_IGN);
	assert_ok(proc_capture(&s, LONG_ENOUGH, 1000, &out, NULL, &status, &e));
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(sscanf(out.data, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
	assert_int_equal(blocked, 0);
	/* 32 and 33 belong to libc, which does not let a program touch them: whoever started us
	 * may. */
	assert_int_equal(ignored & ~(3ULL << 31), 0);
	buf_free(&out);
}

/* Standard streams may be each other, or be closed in the parent. */
static void descriptors_may_cross(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "out");
	struct proc_spawn s = spawn_sh("echo out; echo err >&2");
	struct proc_id id;
	struct buf b = {0};
	struct err e = {0};
	int status = -1, fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), saved = dup(0);

	(void)state;
	close(0); /* the report pipe would land there */
	s.fd_out = s.fd_err = fd;
	assert_ok(proc_spawn(&s, &id, &e));
	assert_ok(proc_wait(&id, LONG_ENOUGH, &status, &e));
	assert_int_equal(dup2(saved, 0), 0);
	assert_ok(fs_read(path, 99, &b, &e));
	assert_string_equal(b.data, "out\nerr\n");
	close(saved);
	close(fd);
	buf_free(&b);
}

static void a_session_of_its_own(void **state)
{
	struct proc_spawn s = spawn_sh("sleep 1000");
	struct proc_id id;
	struct err e = {0};
	int status;

	(void)state;
	s.new_session = true;
	assert_ok(proc_spawn(&s, &id, &e));
	assert_int_equal(getsid(id.pid), id.pid);
	assert_int_equal(kill(-id.pid, SIGKILL), 0);
	assert_ok(proc_wait(&id, LONG_ENOUGH, &status, &e));
}

/* A process in between starts one that is to die with it, tells its pid, and is killed. */
static void dies_with_its_parent(void **state)
{
	struct proc_spawn s = spawn_sh("exec sleep 1000");
	struct proc_id id = {0};
	pid_t middle;
	int fd[2], status;

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	middle = fork();
	if (middle == 0) {
		s.die_with_parent = true;
		if (proc_spawn(&s, &id, NULL) == 0 &&
		    write(fd[1], &id, sizeof id) == (ssize_t)sizeof id)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fd[0], &id, sizeof id), sizeof id);
	assert_true(proc_alive(&id));
	assert_int_equal(kill(middle, SIGKILL), 0);
	waitpid(middle, &status, 0);
	for (int i = 0; i < 1000 && proc_alive(&id); i++)
		usleep(10000);
	assert_false(proc_alive(&id));
	close(fd[0]);
	close(fd[1]);
}

static void identity_is_pid_and_start(void **state)
{
	struct proc_spawn s = spawn_sh("exec sleep 1000");
	struct proc_id id, other;
	struct err e = {0};
	uint64_t ticks;
	int status;

	(void)state;
	assert_ok(proc_spawn(&s, &id, &e));
	assert_ok(proc_start_ticks(id.pid, &ticks, &e));
	assert_true(ticks == id.start_ticks && ticks > 0);
	assert_true(proc_alive(&id));
	other = id;
	other.start_ticks--; /* the pid was used again by a later process */
	assert_false(proc_alive(&other));
	kill(id.pid, SIGKILL);
	while (proc_alive(&id)) /* a zombie is not alive, though its pid is still taken */
		usleep(1000);
	assert_ok(proc_start_ticks(id.pid, &ticks, &e));
	assert_ok(proc_wait(&id, LONG_ENOUGH, &status, &e));
	assert_int_equal(proc_start_ticks(id.pid, &ticks, &e), -ERR_NOT_FOUND);
	assert_false(proc_alive(&(struct proc_id){0}));
}

/* The kernel writes the name of a program unquoted into /proc/PID/stat. */
static void odd_program_names_are_read(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "a) R 1 (b");
	struct proc_spawn s = spawn_sh("exec sleep 1000");
	struct proc_id id, again = {0};
	struct err e = {0};
	int status;

	(void)state;
	assert_int_equal(symlink("/bin/sleep", path), 0);
	s.file = path;
	s.argv = (char *[]){path, (char[]){"1000"}, NULL};
	assert_ok(proc_spawn(&s, &id, &e));
	again.pid = id.pid;
	assert_ok(proc_start_ticks(id.pid, &again.start_ticks, &e));
	assert_true(proc_alive(&again));
	kill(id.pid, SIGKILL);
	assert_ok(proc_wait(&id, LONG_ENOUGH, &status, &e));
}

static void wait_has_a_deadline(void **state)
{
	struct proc_spawn s = spawn_sh("exec sleep 1000");
	struct proc_id id;
	struct err e = {0};
	int status = 77;

	(void)state;
	assert_ok(proc_spawn(&s, &id, &e));
	assert_int_equal(proc_wait(&id, 10000, &status, &e), -ERR_TEMP);
	assert_int_equal(status, 77);
	kill(id.pid, SIGTERM);
	assert_ok(proc_wait(&id, -1, &status, &e));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(proc_wait(&id, -1, &status, &e), -ERR_STATE); /* not ours any more */
}

static void which_looks_in_path(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *plain = fs_join(dir, "plain");
	_cleanup_free_ char *path = xasprintf("/nowhere::%s:/bin", dir);
	_cleanup_free_ char *found = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(fs_write_atomic(plain, "", 0, 0600, &e));
	assert_null(proc_which("plain", path)); /* not executable */
	assert_null(proc_which(dir, path));     /* a directory */
	assert_null(proc_which("", path));
	assert_int_equal(chmod(plain, 0700), 0);
	found = proc_which("plain", path);
	assert_string_equal(found, plain);
	free(found);
	found = proc_which("sh", NULL);
	assert_non_null(found);
}

static void looking_into_a_process(void **state)
{
	char *env[] = {(char[]){"AB=1"}, (char[]){"B=two=2"}, NULL};
	struct proc_spawn s = spawn_sh("exec sleep 1000");
	_cleanup_free_ char *b = NULL;
	struct strv argv = {0};
	struct proc_id id;
	struct err e = {0};
	int status;

	(void)state;
	s.env = env;
	s.file = "/bin/sleep";
	s.argv = (char *[]){(char[]){"sleep"}, (char[]){"1000"}, NULL};
	assert_ok(proc_spawn(&s, &id, &e));
	assert_int_equal(proc_cmdline(id.pid, &argv), 0);
	assert_int_equal(argv.n, 2);
	assert_string_equal(argv.v[1], "1000");
	b = proc_env(id.pid, "B");
	assert_string_equal(b, "two=2");
	assert_null(proc_env(id.pid, "A"));
	kill(id.pid, SIGKILL);
	assert_ok(proc_wait(&id, LONG_ENOUGH, &status, &e));
	assert_int_not_equal(proc_cmdline(id.pid, &argv), 0);
	assert_null(proc_env(id.pid, "B"));
	strv_free(&argv);
}

static void the_boot_has_an_id(void **state)
{
	char a[37], b[37];

	(void)state;
	proc_boot_id(a);
	proc_boot_id(b);
	assert_int_equal(strlen(a), 36);
	assert_string_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture_keeps_both_streams_and_the_status),
		cmocka_unit_test(capture_is_bounded_and_never_blocks_the_child),
		cmocka_unit_test(capture_kills_what_takes_too_long),
		cmocka_unit_test(capture_does_not_wait_for_a_grandchild),
		cmocka_unit_test(a_missing_program_is_named),
		cmocka_unit_test(what_exec_refuses_is_named),
		cmocka_unit_test(the_child_gets_what_it_was_given),
		cmocka_unit_test(signals_of_the_child_are_the_defaults),
		cmocka_unit_test(descriptors_may_cross),
		cmocka_unit_test(a_session_of_its_own),
		cmocka_unit_test(dies_with_its_parent),
		cmocka_unit_test(identity_is_pid_and_start),
		cmocka_unit_test(odd_program_names_are_read),
		cmocka_unit_test(wait_has_a_deadline),
		cmocka_unit_test(which_looks_in_path),
		cmocka_unit_test(looking_into_a_process),
		cmocka_unit_test(the_boot_has_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
