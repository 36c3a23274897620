/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The least that a recorded trial can cost: fork, exec with the output in a file of its own, wait,
 * fsync. Nothing else. tests/bench/overhead.sh holds fettle's trials against it.
 *
 *	bare DIR N PROGRAM [ARG...]     prints: mean_us median_us
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TRIALS = 1000000 };

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void one_trial(const char *dir, long i, char **argv)
{
	char path[4096];
	int fd, status;
	pid_t pid;

	snprintf(path, sizeof path, "%s/%ld.out", dir, i);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		dup2(fd, 1);
		dup2(fd, 2);
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		errno = ENOEXEC;
		die(argv[0]);
	}
	if (fsync(fd) || close(fd))
		die(path);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long n = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
	double *us, sum = 0;

	if (n < 1 || n > MAX_TRIALS) {
		fprintf(stderr, "usage: bare DIR N PROGRAM [ARG...]\n");
		return 2;
	}
	us = calloc((size_t)n, sizeof *us);
	if (!us)
		die("memory");
	for (long i = 0; i < n; i++) {
		double begin = now_us();

		one_trial(argv[1], i, argv + 3);
		us[i] = now_us() - begin;
		sum += us[i];
	}
	qsort(us, (size_t)n, sizeof *us, by_value);
	printf("%.1f %.1f\n", sum / (double)n, us[n / 2]);
	free(us);
	return 0;
}
