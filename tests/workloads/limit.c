/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limit [-r RANK] PERCENT PROGRAM [ARGUMENT...]: the program gets that share of its time, as
 * cpulimit does it: it is stopped for the rest of each 20 ms. With -r only where $RANK is that.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_US = 20000 };

static pid_t program;

static void pass_on(int sig)
{
	kill(program, SIGCONT);
	kill(program, sig);
}

static void pause_us(long us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

static int hold(long percent)
{
	int status;

	signal(SIGTERM, pass_on);
	signal(SIGINT, pass_on);
	for (;;) {
		pause_us(PERIOD_US * percent / 100);
		kill(program, SIGSTOP);
		pause_us(PERIOD_US - PERIOD_US * percent / 100);
		kill(program, SIGCONT);
		if (waitpid(program, &status, WNOHANG) == program)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

int main(int argc, char **argv)
{
	const char *rank = NULL, *mine = getenv("RANK");
	int at = 1;
	long percent;

	if (argc > 3 && strcmp(argv[1], "-r") == 0) {
		rank = argv[2];
		at = 3;
	}
	if (argc < at + 2 || (percent = strtol(argv[at], NULL, 10)) < 1 || percent > 100) {
		fprintf(stderr, "usage: limit [-r RANK] PERCENT PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (!rank || (mine && strcmp(rank, mine) == 0)) {
		program = fork();
		if (program > 0)
			return hold(percent);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	execvp(argv[at + 1], argv + at + 1);
	perror(argv[at + 1]);
	return 127;
}
