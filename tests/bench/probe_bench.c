/* SPDX-License-Identifier: GPL-2.0-or-later */
/* link: -lsqlite3 -lcjson -lyajl -lxxhash -lpcre2-8 -lz -lm */
/*
 * What tests/bench/probes.sh needs beside the program that it measures:
 *
 *   probe_bench trace FILE MB   FILE, a PyTorch trace (not packed), to stdout, its events repeated
 *                               until MB megabytes: times, step numbers and correlations shifted,
 *                               so that it is a longer trace and not the same one many times
 *   probe_bench repeat FILE MB  FILE again and again
 *   probe_bench yajl FILE       parse it with yajl and nothing else: what a JSON parser alone takes
 *   probe_bench read PROBE FILE read it as `fettle probe` does, but print only how many values and
 *                               facts there were: what is asked is what reading costs
 *   probe_bench run CMD...      run it; on stderr: wall, user and system seconds, peak memory in
 * KiB
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "probes/probe.h"

enum { CHUNK = 128 * 1024, GAP_US = 10000 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *text;

	if (!f || fstat(fileno(f), &st))
		die(path);
	text = malloc((size_t)st.st_size + 1);
	if (!text || fread(text, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		die(path);
	text[st.st_size] = '\0';
	*n = (size_t)st.st_size;
	fclose(f);
	return text;
}

/* What is shifted by how much a repetition: the member's integer part, wherever it stands. */
struct shift {
	const char *key;
	long long by;
};

/* Where the number after `key` at p is, or NULL. */
static const char *number_at(const char *p, const char *key)
{
	size_t n = strlen(key);

	if (strncmp(p, key, n) != 0)
		return NULL;
	p += n;
	while (*p == ' ')
		p++;
	return isdigit((unsigned char)*p) ? p : NULL;
}

static void put_shifted(const char *p, const char *end, const struct shift *s, size_t n_shift,
			long long k)
{
	const char *from = p;

	while (p < end) {
		const char *at = NULL;
		size_t i;

		for (i = 0; i < n_shift && !at && (*p == '"' || *p == 'P'); i++)
			at = number_at(p, s[i].key);
		if (!at) {
			p++;
			continue;
		}
		fwrite(from, 1, (size_t)(at - from), stdout);
		printf("%lld", strtoll(at, NULL, 10) + k * s[i - 1].by);
		while (isdigit((unsigned char)*at))
			at++;
		from = p = at;
	}
	fwrite(from, 1, (size_t)(end - from), stdout);
}

/* The first and last start of an event, in microseconds. */
static long long length_us(const char *p, const char *end)
{
	long long first = INT64_MAX, last = 0, v;

	for (; (p = strstr(p, "\"ph\": \"X\"")) && p < end; p++) {
		const char *ts = strstr(p, "\"ts\": ");

		v = ts ? strtoll(ts + 6, NULL, 10) : 0;
		first = v && v < first ? v : first;
		last = v > last ? v : last;
	}
	return last - first;
}

static int trace(const char *path, const char *mb)
{
	size_t n, want = strtoul(mb, NULL, 10) * 1000000;
	char *text = slurp(path, &n), *events = strstr(text, "\"traceEvents\": ["), *end;
	long long k = 0;

	if (!events)
		die("no traceEvents");
	events += strlen("\"traceEvents\": [");
	for (end = text + n; end > events && *end != ']';)
		end--;
	struct shift s[] = {{"\"ts\":", length_us(events, end) + GAP_US},
			    {"\"correlation\":", 1000000},
			    {"\"External id\":", 1000000},
			    {"\"id\":", 1000000},
			    {"ProfilerStep#", 100}};

	fwrite(text, 1, (size_t)(events - text), stdout);
	for (size_t out = 0; out < want; out += (size_t)(end - events), k++) {
		if (k)
			putchar(',');
		put_shifted(events, end, s, sizeof(s) / sizeof(s[0]), k);
	}
	fputs(end, stdout);
	free(text);
	return 0;
}

static int repeat(const char *path, const char *mb)
{
	size_t n, want = strtoul(mb, NULL, 10) * 1000000;
	char *text = slurp(path, &n);

	for (size_t out = 0; n && out < want; out += n)
		fwrite(text, 1, n, stdout);
	free(text);
	return 0;
}

static int bare_yajl(const char *path)
{
	yajl_handle h = yajl_alloc(NULL, NULL, NULL);
	unsigned char *chunk = malloc(CHUNK);
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f || !chunk)
		die(path);
	yajl_config(h, yajl_dont_validate_strings, 1);
	while ((n = fread(chunk, 1, CHUNK, f)) > 0)
		if (yajl_parse(h, chunk, n) != yajl_status_ok)
			return 1;
	fclose(f);
	free(chunk);
	yajl_free(h);
	return 0;
}

static void count_value(void *ctx, const struct probe_value *v)
{
	long long *n = ctx;

	(void)v;
	++*n;
}

static void count_fact(void *ctx, const struct probe_fact *f)
{
	long long *n = ctx;

	(void)f;
	++*n;
}

static int read_quietly(const char *name, const char *path)
{
	long long n = 0;
	struct probe_sink sink = {.value = count_value, .fact = count_fact, .ctx = &n};
	const struct probe *p = probe_find(name);
	enum probe_status s;
	struct err e;

	if (!p)
		die(name);
	s = probe_file(p, NULL, path, &sink, NULL, &e);
	printf("%s: %s, %lld values and facts\n", name, probe_status_name(s), n);
	return s == PROBE_OK || s == PROBE_PARTIAL ? 0 : 1;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int run(char **argv)
{
	struct timespec a, b;
	struct rusage u;
	int status;
	pid_t pid;

	clock_gettime(CLOCK_MONOTONIC, &a);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		execvp(argv[0], argv);
		die(argv[0]);
	}
	if (wait4(pid, &status, 0, &u) != pid)
		die("wait4");
	clock_gettime(CLOCK_MONOTONIC, &b);
	fprintf(stderr, "%.3f %.3f %.3f %ld\n",
		(double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9,
		seconds(u.ru_utime), seconds(u.ru_stime), u.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "trace") == 0)
		return trace(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "repeat") == 0)
		return repeat(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "yajl") == 0)
		return bare_yajl(argv[2]);
	if (argc == 4 && strcmp(argv[1], "read") == 0)
		return read_quietly(argv[2], argv[3]);
	if (argc > 2 && strcmp(argv[1], "run") == 0)
		return run(argv + 2);
	fprintf(stderr,
		"usage: probe_bench trace|repeat FILE MB | yajl FILE | read PROBE FILE | run CMD...\n");
	return 2;
}
