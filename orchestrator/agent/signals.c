/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

int signals_open(struct signals *s, struct err *e)
{
	sigset_t set;

	fill(&set);
	signal(SIGPIPE, SIG_IGN);
	/* A parent that ignores SIGCHLD would have the kernel reap our children: no exit status
	 * then. */
	signal(SIGCHLD, SIG_DFL);
	s->stop = 0;
	s->fd = -1;
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
		s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? err_sys(e, ERR_IO, "cannot receive signals") : 0;
}

void signals_close(struct signals *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void signals_read(struct signals *s)
{
	struct signalfd_siginfo info;

	while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo != SIGCHLD && !s->stop)
			s->stop = (int)info.ssi_signo;
}
