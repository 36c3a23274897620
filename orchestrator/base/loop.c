/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"

struct source {
	int fd; /* -1: deleted while events were being handed out */
	loop_fd_f f;
	void *ctx;
};

/* poll[0] is the signalfd; poll[i + 1] belongs to source[i]. */
struct loop {
	struct pollfd *poll;
	struct source *source;
	size_t n, poll_cap, source_cap;
	loop_signal_f on_signal;
	void *signal_ctx;
	sigset_t before;
};

int loop_new(struct loop **out, struct err *e)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCHLD};
	struct loop *l = xcalloc(1, sizeof *l);
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		sigaddset(&set, wanted[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		free(l);
		return err_sys(e, ERR_IO, "cannot make a signalfd");
	}
	sigprocmask(SIG_BLOCK, &set, &l->before);
	l->poll = xgrow(NULL, 0, &l->poll_cap, sizeof *l->poll);
	l->poll[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	*out = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	close(l->poll[0].fd);
	sigprocmask(SIG_SETMASK, &l->before, NULL);
	free(l->poll);
	free(l->source);
	free(l);
}

int loop_add_fd(struct loop *l, int fd, short events, loop_fd_f f, void *ctx, struct err *e)
{
	if (fd < 0)
		return err_set(e, ERR_STATE, "cannot watch descriptor %d", fd);
	l->source = xgrow(l->source, l->n, &l->source_cap, sizeof *l->source);
	l->poll = xgrow(l->poll, l->n + 1, &l->poll_cap, sizeof *l->poll);
	l->source[l->n] = (struct source){.fd = fd, .f = f, .ctx = ctx};
	l->poll[l->n + 1] = (struct pollfd){.fd = fd, .events = events};
	l->n++;
	return 0;
}

/* Only marked here: a callback may delete any source while events are handed out. */
void loop_del_fd(struct loop *l, int fd)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->source[i].fd == fd)
			l->source[i].fd = l->poll[i + 1].fd = -1;
}

void loop_on_signal(struct loop *l, loop_signal_f f, void *ctx)
{
	l->on_signal = f;
	l->signal_ctx = ctx;
}

static void sweep_deleted(struct loop *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->source[i].fd < 0)
			continue;
		l->source[kept] = l->source[i];
		l->poll[kept + 1] = l->poll[i + 1];
		kept++;
	}
	l->n = kept;
}

static int hand_out_signals(struct loop *l)
{
	struct signalfd_siginfo info;
	int events = 0;

	while (read(l->poll[0].fd, &info, sizeof info) == (ssize_t)sizeof info) {
		events++;
		if (l->on_signal)
			l->on_signal(l->signal_ctx, (int)info.ssi_signo);
	}
	return events;
}

static int timeout_ms(int64_t timeout_us)
{
	int64_t ms = (timeout_us + 999) / 1000; /* up: never wake before the time is over */

	if (timeout_us < 0)
		return -1;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int loop_run_once(struct loop *l, int64_t timeout_us, struct err *e)
{
	size_t n;
	int events = 0;

	sweep_deleted(l);
	n = l->n; /* sources that a callback adds wait for the next round */
	if (poll(l->poll, (nfds_t)n + 1, timeout_ms(timeout_us)) < 0) {
		if (errno == EINTR)
			return 0;
		return err_sys(e, ERR_IO, "cannot wait for events");
	}
	if (l->poll[0].revents)
		events += hand_out_signals(l);
	for (size_t i = 0; i < n; i++) {
		const struct source s = l->source[i];
		short revents = l->poll[i + 1].revents;

		if (s.fd < 0 || !revents)
			continue;
		events++;
		s.f(s.ctx, s.fd, revents);
	}
	return events;
}
