/* SPDX-License-Identifier: GPL-2.0-or-later */
/* link: -lcjson -lxxhash -lm */
/*
 * drive HELPER AGENT [PARTITION]: scheduler `slurm` (or $FETTLE_WAY) by hand, for the tests: a
 * command a line on stdin, an answer a line on stdout, flushed. Words are separated by blanks; "-"
 * stands for nothing.
 *
 * - submit TOKEN BLOCKDIR [NAME=VALUE...]: "ok ID"; names: nodes tasks cpus gpus mem time (s),
 *   partition, ...
 * - willrun TOKEN BLOCKDIR [NAME=VALUE...]: "ok SECONDS-FROM-NOW"
 * - poll ID...: a line each: "ID STATE END EXIT NODES REASON"
 * - until STATE S ID...: poll and wait until each is in that state, or S seconds are over; then as
 *   poll
 * - find TOKEN: as poll, or "absent"
 * - alive PREFIX: "ok N ID..."
 * - cancel ID: "ok"
 * - capacity: "ok TOTAL IDLE AT-ONCE SUMMARY"
 * - account ID: "ok ..."
 * - kill SIGNAL: send it to fettle-slurm, the only child; "ok"
 *
 * A failure is "temp TEXT", "notfound TEXT" or "refused TEXT".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/sched/sched.h"

enum { WORDS_MAX = 32, US_PER_S = 1000000 };

static const struct sched *sched; /* slurm, or what FETTLE_WAY names */

struct words {
	char *v[WORDS_MAX];
	size_t n;
};

static struct words split(char *line)
{
	struct words w = {0};

	for (char *p = line; *p && w.n < WORDS_MAX;) {
		p += strspn(p, " \n");
		if (!*p)
			break;
		w.v[w.n++] = p;
		p += strcspn(p, " \n");
		if (*p)
			*p++ = '\0';
	}
	return w;
}

static void say_failure(const struct err *e)
{
	const char *word = e->code == ERR_TEMP        ? "temp"
			   : e->code == ERR_NOT_FOUND ? "notfound"
						      : "refused";

	printf("%s %s\n", word, e->text);
}

static void say_status(const struct sched_status *st)
{
	printf("%s %s %s %d %s %s\n", st->id, job_state_name(st->state), job_end_name(st->end),
	       st->exit_status, *st->nodes ? st->nodes : "-", *st->reason ? st->reason : "-");
}

static void set_number(struct sched_job *j, const char *name, const char *value)
{
	const struct {
		const char *name;
		int *to;
	} ints[] = {{"nodes", &j->nodes},
		    {"tasks", &j->tasks_per_node},
		    {"cpus", &j->cpus_per_task},
		    {"gpus", &j->gpus_per_node}};
	int64_t n = 0;

	str_to_i64(value, &n);
	for (size_t i = 0; i < ARRAY_LEN(ints); i++)
		if (str_eq(ints[i].name, name))
			*ints[i].to = (int)n;
	if (str_eq(name, "mem"))
		j->mem_mib_per_node = n;
	if (str_eq(name, "time"))
		j->time_limit_s = n;
}

/* An option of job_option_table, in the words of sbatch. */
static void set_option(struct job_options *o, const char *name, char *value)
{
	for (const struct job_option *k = job_option_table; k->key; k++) {
		void *member = (char *)o + k->offset;
		int64_t n = 0;

		if (!str_eq(k->key, name))
			continue;
		str_to_i64(value, &n);
		switch (k->kind) {
		case JOB_OPTION_TEXT:
			*(char **)member = value;
			break;
		case JOB_OPTION_COUNT:
			*(int *)member = (int)n;
			break;
		case JOB_OPTION_MIB:
			*(int64_t *)member = n;
			break;
		}
	}
}

static void set_field(struct sched_job *j, struct job_options *o, char *field)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {{"partition", &j->partition},
		     {"account", &j->account},
		     {"qos", &j->qos},
		     {"reservation", &j->reservation},
		     {"constraint", &j->constraint},
		     {"nodelist", &j->nodelist},
		     {"exclude", &j->exclude},
		     {"workdir", &j->workdir},
		     {"output", &j->output},
		     {"sbcast", &j->sbcast_dir}};
	char *value = strchr(field, '=');

	if (!value)
		return;
	*value++ = '\0';
	set_number(j, field, value);
	set_option(o, field, value);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (str_eq(texts[i].name, field))
			*texts[i].to = value;
}

static void do_job(struct sched_run *s, const struct words *w)
{
	char *env[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"FETTLE_TEST=1"},
		       NULL};
	_cleanup_free_ char *output = xasprintf("%s/agent.out", w->v[2]);
	const char *dirs[] = {w->v[2]};
	struct sched_job j = {.token = w->v[1],
			      .block_dirs = dirs,
			      .n_block_dirs = 1,
			      .workdir = w->v[2],
			      .env = env,
			      .output = output,
			      .nodes = 1,
			      .tasks_per_node = 1,
			      .time_limit_s = 60,
			      .exclusive = true};
	struct job_options options = {0};
	struct sched_forecast forecast;
	struct err e;
	char id[64];

	j.options = &options;
	for (size_t i = 3; i < w->n; i++)
		set_field(&j, &options, w->v[i]);
	if (str_eq(w->v[0], "submit")) {
		if (sched->submit(s, &j, id, &e))
			say_failure(&e);
		else
			printf("ok %s\n", id);
	} else if (sched->will_run(s, &j, &forecast, &e)) {
		say_failure(&e);
	} else {
		printf("ok %lld %s %s\n",
		       (long long)((forecast.start_us - clock_utc_us(&clock_system)) / US_PER_S),
		       *forecast.nodes ? forecast.nodes : "-", forecast.partition);
	}
}

static size_t poll_all(struct sched_run *s, const struct words *w, size_t first,
		       struct sched_status *out)
{
	struct err e;

	if (sched->poll(s, (const char *const *)&w->v[first], w->n - first, out, &e)) {
		say_failure(&e);
		return 0;
	}
	return w->n - first;
}

static void do_poll(struct sched_run *s, const struct words *w)
{
	struct sched_status st[WORDS_MAX];
	size_t n = poll_all(s, w, 1, st);

	for (size_t i = 0; i < n; i++)
		say_status(&st[i]);
}

static void do_until(struct sched_run *s, const struct words *w)
{
	int64_t seconds = 0, deadline_us;
	struct sched_status st[WORDS_MAX];
	size_t n, there;

	str_to_i64(w->v[2], &seconds);
	deadline_us = clock_mono_us(&clock_system) + seconds * US_PER_S;
	for (;;) {
		int64_t left_us = deadline_us - clock_mono_us(&clock_system);

		n = poll_all(s, w, 3, st);
		there = 0;
		for (size_t i = 0; i < n; i++)
			there += str_eq(job_state_name(st[i].state), w->v[1]);
		if (there == n || left_us <= 0)
			break;
		sched->wait(s, left_us < US_PER_S ? left_us : US_PER_S, -1, NULL);
	}
	for (size_t i = 0; i < n; i++)
		say_status(&st[i]);
}

static void do_find(struct sched_run *s, const struct words *w)
{
	struct sched_status st;
	struct err e;
	int rc = sched->find(s, w->v[1], &st, &e);

	if (rc < 0)
		say_failure(&e);
	else if (rc == 0)
		puts("absent");
	else
		say_status(&st);
}

static void do_alive(struct sched_run *s, const struct words *w)
{
	struct sched_status *v = NULL;
	size_t n = 0;
	struct err e;

	if (sched->alive(s, w->v[1], &v, &n, &e)) {
		say_failure(&e);
		return;
	}
	printf("ok %zu", n);
	for (size_t i = 0; i < n; i++)
		printf(" %s", v[i].id);
	putchar('\n');
	free(v);
}

static void do_account(struct sched_run *s, const struct words *w)
{
	const char *id = w->v[1];
	struct sched_account a;
	struct err e;

	if (sched->account(s, &id, 1, &a, &e))
		say_failure(&e);
	else
		printf("%s %lld s %lld KiB %lld J %s\n", a.known ? "ok" : "unknown",
		       (long long)a.elapsed_s, (long long)a.maxrss_kib, (long long)a.energy_j,
		       *a.tres ? a.tres : "-");
}

static void do_capacity(struct sched_run *s, const struct words *w)
{
	struct sched_capacity c;
	struct err e;

	(void)w;
	if (sched->capacity(s, &c, &e))
		say_failure(&e);
	else
		printf("ok %d %d %d %s\n", c.nodes_total, c.nodes_idle, c.jobs_at_once, c.summary);
}

static void do_cancel(struct sched_run *s, const struct words *w)
{
	struct err e;

	if (sched->cancel(s, w->v[1], &e))
		say_failure(&e);
	else
		puts("ok");
}

static void do_kill(struct sched_run *s, const struct words *w)
{
	_cleanup_free_ char *path = xasprintf("/proc/self/task/%ld/children", (long)getpid());
	FILE *f = fopen(path, "r");
	long pid = 0;
	int64_t signo = 0;

	(void)s;
	str_to_i64(w->v[1], &signo);
	if (!f || fscanf(f, "%ld", &pid) != 1 || pid <= 0 || kill((pid_t)pid, (int)signo))
		puts("refused no child");
	else
		puts("ok");
	if (f)
		fclose(f);
}

static const struct command {
	const char *name;
	size_t words; /* at least */
	void (*run)(struct sched_run *s, const struct words *w);
} commands[] = {
	{"submit", 3, do_job},    {"willrun", 3, do_job}, {"poll", 2, do_poll},
	{"until", 4, do_until},   {"find", 2, do_find},   {"capacity", 1, do_capacity},
	{"cancel", 2, do_cancel}, {"kill", 2, do_kill},   {"account", 2, do_account},
	{"alive", 2, do_alive},
};

static void perform(struct sched_run *s, char *line)
{
	struct words w = split(line);

	if (w.n == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(commands[i].name, w.v[0]) && w.n >= commands[i].words) {
			commands[i].run(s, &w);
			fflush(stdout);
			return;
		}
	puts("refused unknown command or too few words");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sched_config c = {.clock = &clock_system};
	struct sched_run *s;
	char *line = NULL;
	size_t cap = 0;
	struct err e;

	sched = sched_find(getenv("FETTLE_WAY") ? getenv("FETTLE_WAY") : "slurm");
	if (argc < 3 || !sched)
		return 2;
	c.helper = argv[1];
	c.agent = argv[2];
	c.blocks_root = getenv("FETTLE_BLOCKS");
	c.partition = argc > 3 ? argv[3] : NULL;
	if (sched->open(&c, &s, &e)) {
		say_failure(&e);
		return 1;
	}
	while (getline(&line, &cap, stdin) > 0)
		perform(s, line);
	free(line);
	sched->close(s);
	return 0;
}
