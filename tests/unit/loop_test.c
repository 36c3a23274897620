/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/loop.h"

struct seen {
	struct loop *loop;
	int calls, fd, signo, drop; /* drop: descriptor to forget when called, or -1 */
	short revents;
};

static void on_fd(void *ctx, int fd, short revents)
{
	struct seen *s = ctx;
	char c;

	s->calls++;
	s->fd = fd;
	s->revents = revents;
	if (revents & POLLIN)
		assert_int_equal(read(fd, &c, 1), 1);
	if (s->drop >= 0)
		loop_del_fd(s->loop, s->drop);
}

static void on_signal(void *ctx, int signo)
{
	struct seen *s = ctx;

	s->calls++;
	s->signo = signo;
}

static struct seen begin(void)
{
	struct seen s = {.drop = -1};
	struct err e = {0};

	assert_ok(loop_new(&s.loop, &e));
	return s;
}

static void a_timeout_is_no_event(void **state)
{
	struct seen s = begin();
	struct err e = {0};

	(void)state;
	assert_int_equal(loop_run_once(s.loop, 0, &e), 0);
	assert_int_equal(loop_run_once(s.loop, 1500, &e), 0);
	loop_free(s.loop);
	loop_free(NULL);
}

static void descriptors_are_called_when_ready(void **state)
{
	struct seen s = begin();
	struct err e = {0};
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_ok(loop_add_fd(s.loop, p[0], POLLIN, on_fd, &s, &e));
	assert_int_equal(loop_run_once(s.loop, 0, &e), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(loop_run_once(s.loop, -1, &e), 1);
	assert_int_equal(s.fd, p[0]);
	close(p[1]);
	assert_int_equal(loop_run_once(s.loop, -1, &e), 1);
	assert_true(s.revents & POLLHUP);
	loop_del_fd(s.loop, p[0]);
	assert_int_equal(loop_run_once(s.loop, 0, &e), 0);
	assert_int_equal(s.calls, 2);
	assert_int_equal(loop_add_fd(s.loop, -1, POLLIN, on_fd, &s, &e), -ERR_STATE);
	close(p[0]);
	loop_free(s.loop);
}

/* The first callback forgets the second descriptor: it must not be called any more. */
static void a_callback_may_delete_any(void **state)
{
	struct seen first = begin(), second = {.drop = -1};
	struct err e = {0};
	int a[2], b[2];

	(void)state;
	second.loop = first.loop;
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	assert_ok(loop_add_fd(first.loop, a[0], POLLIN, on_fd, &first, &e));
	assert_ok(loop_add_fd(first.loop, b[0], POLLIN, on_fd, &second, &e));
	first.drop = b[0];
	assert_int_equal(write(a[1], "x", 1), 1);
	assert_int_equal(write(b[1], "x", 1), 1);
	assert_int_equal(loop_run_once(first.loop, -1, &e), 1);
	assert_int_equal(loop_run_once(first.loop, 0, &e), 0);
	assert_int_equal(second.calls, 0);
	loop_free(first.loop);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
}

static void signals_are_events(void **state)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct seen s = begin();
	struct err e = {0};

	(void)state;
	loop_on_signal(s.loop, on_signal, &s);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		assert_int_equal(raise(wanted[i]), 0);
		assert_int_equal(loop_run_once(s.loop, -1, &e), 1);
		assert_int_equal(s.signo, wanted[i]);
	}
	loop_free(s.loop);
}

static void a_child_that_ends_wakes_the_loop(void **state)
{
	struct seen s = begin();
	struct err e = {0};
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	loop_on_signal(s.loop, on_signal, &s);
	assert_int_equal(loop_run_once(s.loop, -1, &e), 1);
	assert_int_equal(s.signo, SIGCHLD);
	waitpid(pid, NULL, 0);
	loop_free(s.loop);
}

static void the_mask_is_restored(void **state)
{
	sigset_t before, during, after;
	struct seen s;

	(void)state;
	sigprocmask(SIG_SETMASK, NULL, &before);
	s = begin();
	sigprocmask(SIG_SETMASK, NULL, &during);
	loop_free(s.loop);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&during, SIGINT));
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&after, i), sigismember(&before, i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timeout_is_no_event),
		cmocka_unit_test(descriptors_are_called_when_ready),
		cmocka_unit_test(a_callback_may_delete_any),
		cmocka_unit_test(signals_are_events),
		cmocka_unit_test(a_child_that_ends_wakes_the_loop),
		cmocka_unit_test(the_mask_is_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
