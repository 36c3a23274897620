/* SPDX-License-Identifier: GPL-2.0-or-later */
/* link: -lm */
/*
 * A workload whose truth is known: a training loop made of sleeps, or with --cpu of arithmetic,
 * whose noise is this machine's own. What each knob does to the step and to the loss is in struct
 * plan; the noise of planned times is a fixed function of --seed, FETTLE_BLOCK, FETTLE_SLOT and
 * FETTLE_ARM_INDEX, so that a resumed campaign must measure what an undisturbed one measures.
 * Prints the lines of the demo's train.py, writes $FETTLE_METRICS, and can go wrong in every way
 * that fettle has to survive. Ranks other than 0 work in silence; those of one job step begin
 * together, as ranks do that exchange gradients.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MEET_MS = 60000 }; /* for ranks that a busy machine starts late */

/* What happens to steps and loss. Factors of the step: --fast 0.75, --slow 1.30, --loss-bias 0.75
 * with a loss 10 % up, --creep 0.75 with a loss that creeps up by 5 % over some hundred steps,
 * PLANT_SPEED=fast 0.75 or =slow 1.30, --drag d: 1 + d / 100, batch b: 0.4 + 0.6 b / 32 (so that
 * twice the batch gives 25 % more samples a second). */
struct plan {
	double work_ms;  /* a step of the default configuration */
	double sleep_ms; /* what a step really sleeps; NaN: what it is planned to take */
	double factor, loss_factor;
	double noise; /* standard deviation between trials, relative */
	long steps, batch;
	uint64_t seed; /* of the noise */
	bool creeps;   /* the loss goes up in the long run only */
	bool fixed;    /* report planned times, not measured ones */
	bool cpu;      /* a step is a fixed amount of arithmetic, without planned noise */
};

enum fault { FAULT_NONE, FAULT_HANG, FAULT_EXIT, FAULT_CRASH, FAULT_NAN };

struct faults {
	enum fault kind;
	long step; /* the fault comes after this many steps */
	int exit_status;
	bool ignore_term, daemon, no_metric, silent;
	double print_gb;
	long fill_mb;
};

struct saving {
	const char *from; /* start from this checkpoint unless `path` is there */
	char *path;       /* NULL: never save */
	long every;
};

struct loop {
	struct plan plan;
	struct faults faults;
	struct saving saving;
	FILE *metrics; /* NULL: nobody asked */
	int rank;
	uint64_t block_key, trial_key; /* of the noise */
};

static void die(const char *what, const char *arg)
{
	fprintf(stderr, "planted: %s%s%s\n", what, arg ? ": " : "", arg ? arg : "");
	exit(2);
}

static double number(const char *name, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v) || v < 0)
		die("not a number of at least 0", name);
	return v;
}

static long env_long(const char *name)
{
	const char *s = getenv(name);

	return s ? strtol(s, NULL, 10) : 0;
}

/* Finaliser of splitmix64: neighbouring keys give unrelated values. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Mean 0, standard deviation 1, bounded by 3.5: the sum of four uniform draws. */
static double deviate(uint64_t key)
{
	double sum = 0;

	for (int i = 0; i < 4; i++) {
		key = mix(key);
		sum += (double)(key >> 11) * 0x1p-53;
	}
	return (sum - 2) * sqrt(3);
}

/* The draws of the block, and of one trial in it. */
static void set_keys(struct loop *l)
{
	uint64_t slot = (uint64_t)env_long("FETTLE_SLOT"),
		 arm = (uint64_t)env_long("FETTLE_ARM_INDEX");

	l->block_key = mix(mix(l->plan.seed) ^ (uint64_t)env_long("FETTLE_BLOCK"));
	l->trial_key = mix(l->block_key ^ (1 + slot * 1000 + arm));
}

/* All of a block share a part of the noise, which pairing takes out again. */
static double planned_ms(const struct loop *l, long step)
{
	double noise = 2 * deviate(l->block_key) + deviate(l->trial_key) +
		       deviate(l->trial_key ^ mix((uint64_t)step));
	double batch = 0.4 + 0.6 * (double)l->plan.batch / 32;

	if (l->plan.cpu)
		noise = 0;
	return l->plan.work_ms * l->plan.factor * batch * exp(l->plan.noise * noise);
}

static double planned_loss(const struct loop *l, long step)
{
	double creep = l->plan.creeps ? 1 + 0.05 * (1 - exp((double)-step / 300)) : 1;

	if (l->faults.kind == FAULT_NAN && step > l->faults.step)
		return NAN;
	return creep * l->plan.loss_factor *
	       (1 + 1.3 * exp((double)-step * (double)l->plan.batch / (32 * 40)));
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void sleep_ms(double ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1e3)};

	t.tv_nsec = (long)((ms - (double)t.tv_sec * 1e3) * 1e6);
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* One dependent chain, so that the time is that of its length: about `ms` on a CPU of 2023. */
static void compute(double ms)
{
	enum { ROUNDS_A_MS = 300000 };
	static volatile uint64_t sink;
	uint64_t x = sink;

	for (long i = (long)(ms * ROUNDS_A_MS); i > 0; i--)
		x = mix(x);
	sink = x;
}

static void report(const struct loop *l, long step, double ms)
{
	double loss = planned_loss(l, step), wait_ms = 0.3 * ms,
	       rate = (double)l->plan.batch * 1e3 / ms;
	char loss_text[32];

	if (l->rank || l->faults.silent)
		return;
	if (l->faults.no_metric) {
		printf("step %ld done\n", step);
	} else {
		printf("step %ld loss %.6f step_time_ms %.4f data_wait_ms %.4f throughput_samples_per_s %.4f\n",
		       step, loss, ms, wait_ms, rate);
	}
	fflush(stdout);
	if (!l->metrics)
		return;
	/* NaN as Python's json writes it, since that is what real scripts do. */
	snprintf(loss_text, sizeof loss_text, isnan(loss) ? "NaN" : "%.6f", loss);
	if (l->faults.no_metric)
		fprintf(l->metrics, "{\"step\": %ld}\n", step);
	else
		fprintf(l->metrics,
			"{\"step\": %ld, \"loss\": %s, \"step_time_ms\": %.6f, \"data_wait_ms\": %.6f, "
			"\"data_wait_ratio\": 0.3, \"throughput_samples_per_s\": %.6f, \"rank\": 0}\n",
			step, loss_text, ms, wait_ms, rate);
	fflush(l->metrics);
}

/* -- checkpoints ----------------------------------------------------------------------------------
 */

static long load_step(const char *path)
{
	FILE *f = path ? fopen(path, "re") : NULL;
	long step = 0;

	if (!f)
		return 0;
	if (fscanf(f, "planted checkpoint after step %ld", &step) != 1)
		die("not a checkpoint", path);
	fclose(f);
	printf("resumed from %s after step %ld\n", path, step);
	return step;
}

static void save_step(const char *path, long step)
{
	FILE *f = fopen(path, "we");

	if (!f || fprintf(f, "planted checkpoint after step %ld\n", step) < 0 || fclose(f))
		die("cannot save the checkpoint", path);
}

/* -- faults ---------------------------------------------------------------------------------------
 */

/* A child that leaves session and parent, as careless launchers do. It ends by itself in the end,
 * so that a failing test leaves nothing for long. */
static void start_daemon(void)
{
	enum { DAEMON_LIFE_S = 120 };
	pid_t pid = fork();
	int null;

	if (pid < 0)
		die("cannot fork", NULL);
	if (pid > 0)
		return;
	setsid();
	if (fork())
		_exit(0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	sleep(DAEMON_LIFE_S);
	_exit(0);
}

static void fill_disk(long mb)
{
	static const char block[1 << 20] = {1};
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	if (snprintf(path, sizeof path, "%s/planted.fill", dir ? dir : ".") >= (int)sizeof path)
		die("TMPDIR is too long", NULL);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die("cannot write", path);
	for (long i = 0; i < mb; i++) {
		if (write(fd, block, sizeof block) < 0) {
			perror("planted: fill");
			break;
		}
	}
	close(fd);
}

static void print_much(double gb)
{
	char line[1024];

	memset(line, '.', sizeof line);
	line[sizeof line - 1] = '\n';
	for (double left = gb * 1e9; left > 0; left -= sizeof line)
		fwrite(line, 1, sizeof line, stdout);
	fflush(stdout);
}

static void maybe_fail(const struct faults *f, long steps_done)
{
	if (steps_done != f->step)
		return;
	switch (f->kind) {
	case FAULT_NONE:
	case FAULT_NAN:
		return;
	case FAULT_HANG:
		for (;;)
			pause();
	case FAULT_EXIT:
		exit(f->exit_status);
	case FAULT_CRASH:
		raise(SIGSEGV);
	}
}

/* -- ranks ----------------------------------------------------------------------------------------
 */

static bool all_there(const char *dir, long ranks)
{
	char path[PATH_MAX];

	for (long i = 0; i < ranks; i++) {
		snprintf(path, sizeof path, "%s/planted.%ld", dir, i);
		if (access(path, F_OK))
			return false;
	}
	return true;
}

/* Wait for the other ranks of the step, in the directory that all of them see. */
static void meet(long rank)
{
	const char *dir = getenv("FETTLE_TRIAL_DIR");
	long ranks = env_long("SLURM_STEP_NUM_TASKS");
	char path[PATH_MAX];
	int fd;

	if (!dir || ranks < 2)
		return;
	snprintf(path, sizeof path, "%s/planted.%ld", dir, rank);
	if ((fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0)
		die("cannot write", path);
	close(fd);
	for (double until = now_ms() + MEET_MS; !all_there(dir, ranks);) {
		if (now_ms() > until)
			die("some rank did not come:", dir);
		sleep_ms(1);
	}
}

/* -- the loop -------------------------------------------------------------------------------------
 */

static int run(struct loop *l)
{
	const char *start = l->saving.path && !access(l->saving.path, R_OK) ? l->saving.path
									    : l->saving.from;
	long first = load_step(start);

	meet(l->rank);
	if (l->faults.ignore_term)
		signal(SIGTERM, SIG_IGN);
	if (l->faults.daemon)
		start_daemon();
	if (l->faults.fill_mb)
		fill_disk(l->faults.fill_mb);
	print_much(l->faults.print_gb);
	for (long i = 1; i <= l->plan.steps; i++) {
		double begin = now_ms(), ms = planned_ms(l, i);

		maybe_fail(&l->faults, i - 1);
		if (l->plan.cpu)
			compute(ms);
		else
			sleep_ms(isnan(l->plan.sleep_ms) ? ms : l->plan.sleep_ms);
		report(l, first + i, l->plan.fixed ? ms : now_ms() - begin);
		if (l->saving.path && i % l->saving.every == 0)
			save_step(l->saving.path, first + i);
	}
	maybe_fail(&l->faults, l->plan.steps);
	return 0;
}

/* The variable that this component reads; its own line says so, as NCCL's does. */
static void read_env(struct plan *p)
{
	const char *v = getenv("PLANT_SPEED");

	if (!v)
		return;
	printf("planted: PLANT_SPEED set by environment to %s\n", v);
	if (!strcmp(v, "fast"))
		p->factor *= 0.75;
	else if (!strcmp(v, "slow"))
		p->factor *= 1.30;
}

static int rank_of(void)
{
	static const char *const names[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					    "PMI_RANK"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			return (int)env_long(names[i]);
	return 0;
}

static const char usage[] =
	"usage: planted [--steps N] [--work-ms X] [--sleep-ms X] [--noise X] [--seed N] [--fixed | --cpu]\n"
	"  knobs:  --fast --slow --drag PERCENT --loss-bias --creep --batch N --null-a V --null-b V, PLANT_SPEED=fast|slow\n"
	"  faults: --hang --exit N --crash --nan (after --fault-step N, 0), --ignore-term, --fork-daemon,\n"
	"          --fill-disk MB, --print-gb X, --no-metric, --silent\n"
	"  checkpoint: --resume-ckpt (in $FETTLE_CKPT_DIR) or --ckpt PATH, --resume-from PATH, --save-every N\n";

static const struct option options[] = {
	{"steps", 1, NULL, 's'},       {"work-ms", 1, NULL, 'w'},
	{"sleep-ms", 1, NULL, 'S'},    {"noise", 1, NULL, 'o'},
	{"fixed", 0, NULL, 'F'},       {"fast", 0, NULL, 'f'},
	{"cpu", 0, NULL, 'u'},         {"drag", 1, NULL, 'D'},
	{"slow", 0, NULL, 'l'},        {"loss-bias", 0, NULL, 'L'},
	{"creep", 0, NULL, 'P'},       {"batch", 1, NULL, 'b'},
	{"null-a", 1, NULL, '0'},      {"null-b", 1, NULL, '0'},
	{"hang", 0, NULL, 'h'},        {"exit", 1, NULL, 'x'},
	{"crash", 0, NULL, 'c'},       {"nan", 0, NULL, 'n'},
	{"fault-step", 1, NULL, 'k'},  {"ignore-term", 0, NULL, 't'},
	{"fork-daemon", 0, NULL, 'd'}, {"fill-disk", 1, NULL, 'i'},
	{"print-gb", 1, NULL, 'p'},    {"no-metric", 0, NULL, 'm'},
	{"silent", 0, NULL, 'q'},      {"resume-ckpt", 0, NULL, 'R'},
	{"ckpt", 1, NULL, 'C'},        {"resume-from", 1, NULL, 'r'},
	{"save-every", 1, NULL, 'e'},  {"seed", 1, NULL, 'E'},
	{"help", 0, NULL, 'H'},        {NULL, 0, NULL, 0},
};

/* False when `c` is none of these. */
static bool take_plan(struct plan *p, int c, const char *arg)
{
	switch (c) {
	case 's':
		p->steps = (long)number("--steps", arg);
		return true;
	case 'w':
		p->work_ms = number("--work-ms", arg);
		return true;
	case 'S':
		p->sleep_ms = number("--sleep-ms", arg);
		return true;
	case 'o':
		p->noise = number("--noise", arg);
		return true;
	case 'b':
		p->batch = (long)number("--batch", arg);
		return true;
	case 'E':
		p->seed = (uint64_t)number("--seed", arg);
		return true;
	case 'F':
		p->fixed = true;
		return true;
	case 'u':
		p->cpu = true;
		return true;
	case 'D':
		p->factor *= 1 + number("--drag", arg) / 100;
		return true;
	case 'f':
		p->factor *= 0.75;
		return true;
	case 'l':
		p->factor *= 1.30;
		return true;
	case 'L':
		p->factor *= 0.75, p->loss_factor *= 1.10;
		return true;
	case 'P':
		p->factor *= 0.75;
		p->creeps = true;
		return true;
	case '0':
		return true;
	default:
		return false;
	}
}

static bool take_fault(struct faults *f, int c, const char *arg)
{
	switch (c) {
	case 'h':
		f->kind = FAULT_HANG;
		return true;
	case 'x':
		f->kind = FAULT_EXIT, f->exit_status = (int)number("--exit", arg);
		return true;
	case 'c':
		f->kind = FAULT_CRASH;
		return true;
	case 'n':
		f->kind = FAULT_NAN;
		return true;
	case 'k':
		f->step = (long)number("--fault-step", arg);
		return true;
	case 't':
		f->ignore_term = true;
		return true;
	case 'd':
		f->daemon = true;
		return true;
	case 'i':
		f->fill_mb = (long)number("--fill-disk", arg);
		return true;
	case 'p':
		f->print_gb = number("--print-gb", arg);
		return true;
	case 'm':
		f->no_metric = true;
		return true;
	case 'q':
		f->silent = true;
		return true;
	default:
		return false;
	}
}

static void take_saving(struct saving *s, int c, const char *arg)
{
	const char *dir = getenv("FETTLE_CKPT_DIR");

	switch (c) {
	case 'C':
		s->path = strdup(arg);
		return;
	case 'R':
		if (!dir)
			die("--resume-ckpt needs FETTLE_CKPT_DIR", NULL);
		if (asprintf(&s->path, "%s/ckpt", dir) < 0)
			abort();
		return;
	case 'r':
		s->from = arg;
		return;
	case 'e':
		s->every = (long)number("--save-every", arg);
		return;
	case 'H':
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const char *metrics = getenv("FETTLE_METRICS");
	struct loop l = {
		.plan = {.work_ms = 5,
			 .sleep_ms = NAN,
			 .factor = 1,
			 .loss_factor = 1,
			 .noise = 0.01,
			 .steps = 1000,
			 .batch = 32},
		.saving = {.every = 5},
		.rank = rank_of(),
	};
	int c, status;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_plan(&l.plan, c, optarg) && !take_fault(&l.faults, c, optarg))
			take_saving(&l.saving, c, optarg);
	if (optind < argc || l.saving.every < 1 || l.plan.batch < 1)
		take_saving(&l.saving, '?', NULL);
	if (l.plan.fixed && isnan(l.plan.sleep_ms))
		l.plan.sleep_ms = 1;
	set_keys(&l);
	read_env(&l.plan);
	if (metrics && *metrics && !l.rank && !(l.metrics = fopen(metrics, "ae")))
		die("cannot write", metrics);
	status = run(&l);
	if (l.metrics)
		fclose(l.metrics);
	free(l.saving.path);
	return status;
}
