/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What other ways to choose a configuration make of a surface whose truth is known, on the values
 * that scheduler fake draws for fettle's own campaigns (same noise, same seeds). A part of
 * tests/bench/efficiency.sh.
 *
 *	efficiency peers RECIPE TRUTH NULL SEED CAMPAIGNS FIRST WHOLE BUDGET
 *		best of n, Welch t with fixed n, full grid; NULL is the truth without what helps.
 *Welch: the fewest runs of each arm that find the best as often as FIRST and WHOLE say
 *		(efficiency.sh tells what these are); where nothing helps, as many as BUDGET pays
 *	efficiency planned RECIPE TRUTH
 *		Welch's n as it would be planned: before anyone knows the gains
 *	efficiency judge RECIPE TRUTH
 *		records on stdin: "procedure runs seconds est lo hi claimed settings", by tabs; a
 *line of JSON for each procedure efficiency oracle RECIPE TRUTH lines "SEED RUN SETTINGS" on stdin;
 *answered with what that run measures
 *
 * Settings are "knob=value" by blanks. Campaign i has the seed SEED + i. A peer's runs are those of
 * one allocation, whose noise they share and which cancels: the kindest case. Said beside it: each
 * run in a job of its own. A line of JSON for each procedure goes to stdout.
 */
/* link: -lsqlite3 -llua5.4 -lcjson -lyajl -lxxhash -lpcre2-8 -lRmath -lunistring -lz -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/model.h"
#include "experiments/stats.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/simulate.h"
#include "orchestrator/sched/fake_truth.h"

enum {
	KNOBS_MAX = 16,
	GRID_MAX = 2048,  /* configurations of a surface: ten switches are 1,024 */
	SINGLES_MAX = 64, /* settings one at a time, and the default */
	ROUNDS_MAX = 64,  /* of each arm, at most: above it fixed n is not tried */
	GRID_REPEATS = 3,
	LINE_MAX_BYTES = 4096,
	TRUTH_MAX_BYTES = 1 << 20,
	PROCEDURES_MAX = 8,
};
static const double ALPHA = 0.05;

struct surface {
	struct recipe *recipe;
	struct script_sources sources;
	struct fake_truth truth;
	size_t n; /* configurations: numbers in the base of the knobs' values, 0 the default */
	struct json *arm[GRID_MAX];
	double worth[GRID_MAX];
	size_t single[SINGLES_MAX], singles; /* the default first */
	double best_single, best;
};

/* What a procedure found. Sums over campaigns. */
struct tally {
	size_t campaigns, claims, best_single, best, not_real, idle, bad, covered, intervals,
		estimates;
	double runs, runs2, seconds, gain, gain2, error, error2;
};

/* -- surface --------------------------------------------------------------------------------- */

static size_t stride(const struct surface *s, size_t knob)
{
	size_t n = 1;

	for (size_t k = 0; k < knob; k++)
		n *= s->recipe->knobs[k].values.n + 1;
	return n;
}

/* Value of a knob in a configuration, from 1; 0: its default. */
static size_t value_in(const struct surface *s, size_t config, size_t knob)
{
	return config / stride(s, knob) % (s->recipe->knobs[knob].values.n + 1);
}

static struct json *arm_of(const struct config *c)
{
	struct json *o = json_object(), *argv = json_array();

	for (size_t i = 0; i < c->argv.n; i++)
		json_add_text(argv, c->argv.v[i]);
	json_set(o, "argv", argv);
	json_set_text(o, "config", c->hash);
	return o;
}

static int make_arm(struct surface *s, size_t config, struct err *e)
{
	struct kvs set = {0};
	struct config c = {0};
	int rc;

	for (size_t k = 0; k < s->recipe->n_knobs; k++) {
		size_t v = value_in(s, config, k);

		if (v > 0)
			kvs_set(&set, s->recipe->knobs[k].name,
				s->recipe->knobs[k].values.v[v - 1]);
	}
	rc = config_build(s->recipe, &set, &c, e);
	if (rc == 0) {
		s->arm[config] = arm_of(&c);
		s->worth[config] = fake_worth(&s->truth, s->arm[config], s->recipe->objective);
		if (set.n <= 1 && s->singles < SINGLES_MAX)
			s->single[s->singles++] = config;
		if (set.n <= 1)
			s->best_single = fmax(s->best_single, s->worth[config]);
		s->best = fmax(s->best, s->worth[config]);
	}
	kvs_free(&set);
	config_done(&c);
	return rc;
}

static int read_truth(struct surface *s, const char *path, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	_cleanup_free_ char *text = NULL, *spec = NULL;
	int rc = json_read_file(path, TRUTH_MAX_BYTES, &j, e);

	if (rc < 0)
		return rc;
	text = json_print(j, false);
	spec = simulate_spec(s->recipe, text, e);
	return spec ? fake_truth_read(spec, &s->truth, e) : -ERR_PARSE;
}

static int surface_open(struct surface *s, const char *recipe, const char *truth, struct err *e)
{
	int rc = drive_load(recipe, "fake", &s->recipe, &s->sources, e);

	if (rc == 0)
		rc = read_truth(s, truth, e);
	if (rc < 0)
		return rc;
	s->n = s->recipe->n_knobs <= KNOBS_MAX ? stride(s, s->recipe->n_knobs) : GRID_MAX + 1;
	if (s->n > GRID_MAX)
		return err_set(e, ERR_RECIPE, "%s: more than %d configurations", recipe, GRID_MAX);
	for (size_t i = 0; i < s->n && rc == 0; i++)
		rc = make_arm(s, i, e);
	return rc;
}

static void surface_close(struct surface *s)
{
	for (size_t i = 0; i < s->n && i < GRID_MAX; i++)
		json_free(s->arm[i]);
	fake_truth_free(&s->truth);
	recipe_free(s->recipe);
	script_sources_free(&s->sources);
}

/* Run number `run` of a campaign, in a job of its own or in the one of all. */
static double measure(const struct surface *s, uint64_t seed, size_t run, size_t config, bool apart)
{
	const struct fake_draw d = {.seed = seed,
				    .token = "",
				    .job = apart ? 1 + (int64_t)run : 1,
				    .block = 1,
				    .slot = apart ? 0 : (int)run,
				    .later = !apart && run > 0};

	return fake_throughput(&s->truth, s->arm[config], &d);
}

/* -- judging --------------------------------------------------------------------------------- */

static double gain_of(const struct surface *s, size_t config)
{
	return s->worth[config] / s->worth[0] - 1;
}

static bool does_nothing(const struct surface *s, size_t config, size_t knob)
{
	size_t v = value_in(s, config, knob), without = config - v * stride(s, knob);

	return v > 0 && s->worth[without] >= s->worth[config] * (1 - 1e-9);
}

/* What was found, and what was said of it. */
struct found {
	size_t config;
	bool claimed;       /* recommended: it is not the default, and the procedure stands by it */
	double est, lo, hi; /* gain, relative; NaN: nothing said */
	double runs, seconds;
};

/* As good as the best: by less than min_effect worse, which no procedure here looks for. */
static bool as_good(const struct surface *s, size_t config, double best)
{
	return gain_of(s, config) > 1e-9 && s->worth[config] * (1 + s->recipe->min_effect) > best;
}

static void count(struct tally *t, const struct surface *s, const struct found *f)
{
	double gain = gain_of(s, f->config);
	bool idle = false;

	t->campaigns++;
	t->runs += f->runs;
	t->runs2 += f->runs * f->runs;
	t->seconds += f->seconds;
	if (isfinite(f->est)) {
		t->estimates++;
		t->error += f->est - gain;
		t->error2 += (f->est - gain) * (f->est - gain);
		t->intervals += isfinite(f->lo);
		t->covered += f->lo <= gain + 1e-9 && gain - 1e-9 <= f->hi;
	}
	if (!f->claimed)
		return;
	for (size_t k = 0; k < s->recipe->n_knobs; k++)
		idle = idle || does_nothing(s, f->config, k);
	t->claims++;
	t->gain += gain;
	t->gain2 += gain * gain;
	t->not_real += !(gain > 1e-9);
	t->idle += idle;
	t->bad += idle || !(gain > 1e-9);
	t->best_single += as_good(s, f->config, s->best_single);
	t->best += as_good(s, f->config, s->best);
}

/* Standard error of a mean, from the sums of n values and of their squares. */
static double error_of(double sum, double sum2, double n)
{
	return n > 1 ? sqrt(fmax(sum2 - sum * sum / n, 0) / (n - 1) / n) : 0;
}

static void print_tally(const struct surface *s, const char *procedure, const struct tally *t,
			const struct tally *null)
{
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *text = NULL;
	double n = (double)t->campaigns;

	json_set_text(j, "procedure", procedure);
	json_set_i64(j, "campaigns", (int64_t)t->campaigns);
	json_set_number(j, "runs", t->runs / n);
	json_set_number(j, "runs_se", error_of(t->runs, t->runs2, n));
	json_set_number(j, "seconds", t->seconds / n);
	json_set_i64(j, "claims", (int64_t)t->claims);
	json_set_i64(j, "best_single", (int64_t)t->best_single);
	json_set_i64(j, "best", (int64_t)t->best);
	json_set_i64(j, "not_real", (int64_t)t->not_real);
	json_set_i64(j, "idle", (int64_t)t->idle);
	json_set_i64(j, "bad", (int64_t)t->bad);
	json_set_number(j, "gain", t->gain / n);
	json_set_number(j, "gain_se", error_of(t->gain, t->gain2, n));
	json_set_number(j, "best_gain", s->best / s->worth[0] - 1);
	json_set_number(j, "best_single_gain", s->best_single / s->worth[0] - 1);
	json_set_i64(j, "arms", (int64_t)s->singles);
	json_set_i64(j, "configurations", (int64_t)s->n);
	json_set_i64(j, "estimates", (int64_t)t->estimates);
	if (t->estimates) {
		double m = (double)t->estimates;

		json_set_number(j, "bias", t->error / m);
		json_set_number(j, "bias_se", error_of(t->error, t->error2, m));
	}
	json_set_i64(j, "intervals", (int64_t)t->intervals);
	json_set_i64(j, "covered", (int64_t)t->covered);
	if (null) {
		json_set_i64(j, "null_campaigns", (int64_t)null->campaigns);
		json_set_i64(j, "null_wins", (int64_t)null->bad);
	}
	text = json_print(j, false);
	printf("%s\n", text);
}

/* -- procedures ------------------------------------------------------------------------------ */

/* The arm with the best mean of n runs each, in rounds of fixed order. */
static struct found best_of(const struct surface *s, uint64_t seed, const size_t *arms, size_t k,
			    size_t n, bool apart)
{
	struct found f = {.est = NAN, .lo = NAN, .hi = NAN, .runs = (double)(k * n)};
	double *sum = xcalloc(k, sizeof *sum);
	size_t best = 0;

	for (size_t i = 0; i < n * k; i++)
		sum[i % k] += measure(s, seed, i, arms[i % k], apart);
	for (size_t a = 1; a < k; a++)
		if (sum[a] > sum[best])
			best = a;
	f.config = arms[best];
	f.claimed = best > 0;
	if (f.claimed)
		f.est = sum[best] / sum[0] - 1;
	free(sum);
	return f;
}

/* Logs of ROUNDS_MAX runs of each single setting, of which a fixed n takes the first n. */
struct runs {
	double y[SINGLES_MAX][ROUNDS_MAX];
};

static void draw_runs(const struct surface *s, uint64_t seed, bool apart, size_t rounds,
		      struct runs *r)
{
	for (size_t i = 0; i < rounds * s->singles; i++)
		r->y[i % s->singles][i / s->singles] = log(
			measure(s, seed, i, s->single[i % s->singles], apart));
}

struct welch {
	double est, se, df;
};

static struct welch welch(const double *a, const double *b, size_t n)
{
	double va = stats_sd(a, n), vb = stats_sd(b, n), m = (double)n;
	struct welch w = {.est = stats_mean(b, n) - stats_mean(a, n)};

	va = va * va / m;
	vb = vb * vb / m;
	w.se = sqrt(va + vb);
	w.df = va + vb > 0 ? (va + vb) * (va + vb) * (m - 1) / (va * va + vb * vb) : 1;
	return w;
}

/* All that differ from the default, at alpha over their number; of a knob the best value. `one`:
 * only the best of all. */
static struct found welch_choice(const struct surface *s, const struct runs *r, size_t n, bool one)
{
	struct found f = {.est = NAN, .lo = NAN, .hi = NAN, .runs = (double)(n * s->singles)};
	double best[KNOBS_MAX] = {0}, top = 0;
	size_t taken[KNOBS_MAX] = {0}, changes = 0;
	struct welch last = {0};

	for (size_t a = 1; a < s->singles; a++) {
		struct welch w = welch(r->y[0], r->y[a], n);
		size_t knob = 0;

		while (value_in(s, s->single[a], knob) == 0)
			knob++;
		if (w.est <= 0 || w.est <= (one ? top : best[knob]) ||
		    (w.se > 0 &&
		     stats_t_p_greater(w.est, w.se, w.df) > ALPHA / (double)(s->singles - 1)))
			continue;
		if (one)
			memset(taken, 0, sizeof taken);
		taken[knob] = s->single[a];
		best[knob] = top = w.est;
		last = w;
	}
	for (size_t k = 0; k < s->recipe->n_knobs; k++) {
		f.config += taken[k];
		changes += taken[k] > 0;
	}
	f.claimed = changes > 0;
	if (one && f.claimed) {
		double half = stats_t_quantile(0.975, last.df) * last.se;

		f.est = expm1(last.est);
		f.lo = expm1(last.est - half);
		f.hi = expm1(last.est + half);
	}
	return f;
}

struct job {
	const struct surface *s, *null;
	uint64_t seed;
	size_t campaigns;
	double first, whole, budget;
};

static void finish(const struct surface *s, struct found *f)
{
	f->seconds = f->runs * s->truth.trial_s;
}

typedef struct found (*choose_f)(const struct surface *s, uint64_t seed, size_t n, bool apart);

static struct found choose_best(const struct surface *s, uint64_t seed, size_t n, bool apart)
{
	return best_of(s, seed, s->single, s->singles, n, apart);
}

static struct found choose_grid(const struct surface *s, uint64_t seed, size_t n, bool apart)
{
	size_t all[GRID_MAX];

	for (size_t i = 0; i < s->n; i++)
		all[i] = i;
	return best_of(s, seed, all, s->n, n, apart);
}

static struct found choose_welch(const struct surface *s, uint64_t seed, size_t n, bool apart,
				 bool one)
{
	struct runs *r = xcalloc(1, sizeof *r);
	struct found f;

	draw_runs(s, seed, apart, n, r);
	f = welch_choice(s, r, n, one);
	free(r);
	return f;
}

static struct found choose_one(const struct surface *s, uint64_t seed, size_t n, bool apart)
{
	return choose_welch(s, seed, n, apart, true);
}

static struct found choose_all(const struct surface *s, uint64_t seed, size_t n, bool apart)
{
	return choose_welch(s, seed, n, apart, false);
}

static struct tally play(const struct job *j, const struct surface *s, choose_f choose, size_t n,
			 bool apart)
{
	struct tally t = {0};

	for (size_t i = 0; i < j->campaigns; i++) {
		struct found f = choose(s, j->seed + i, n, apart);

		finish(s, &f);
		count(&t, s, &f);
	}
	return t;
}

static void print_played(const struct job *j, const char *name, choose_f choose, size_t n,
			 bool apart)
{
	struct tally t = play(j, j->s, choose, n, apart), null = play(j, j->null, choose, n, apart);
	_cleanup_free_ char *full = xasprintf("%s%s", name, apart ? ", a job each" : "");

	print_tally(j->s, full, &t, &null);
}

/* How many campaigns find the best with each n. */
static void powers(const struct job *j, bool one, bool apart, size_t found[ROUNDS_MAX + 1])
{
	struct runs *r = xcalloc(1, sizeof *r);

	memset(found, 0, (ROUNDS_MAX + 1) * sizeof *found);
	for (size_t i = 0; i < j->campaigns; i++) {
		draw_runs(j->s, j->seed + i, apart, ROUNDS_MAX, r);
		for (size_t n = 2; n <= ROUNDS_MAX; n++) {
			struct found f = welch_choice(j->s, r, n, one);
			struct tally t = {0};

			count(&t, j->s, &f);
			found[n] += one ? t.best_single : t.best;
		}
	}
	free(r);
}

/* The fewest runs of each arm with that power; ROUNDS_MAX + 1: none has it. */
static size_t fixed_n(const struct job *j, bool one, bool apart, double power)
{
	size_t found[ROUNDS_MAX + 1], n = 2;

	if (power <= 0 || !(j->s->best > j->s->worth[0]))
		return (size_t)fmin(fmax(2, floor(j->budget / (double)j->s->singles)), ROUNDS_MAX);
	powers(j, one, apart, found);
	while (n <= ROUNDS_MAX && (double)found[n] < power * (double)j->campaigns)
		n++;
	return n;
}

static void print_welch(const struct job *j, bool one, bool apart)
{
	size_t n = fixed_n(j, one, apart, one ? j->first : j->whole);
	const char *what = one ? "the best" : "all that pass";
	_cleanup_free_ char *name = n > ROUNDS_MAX
					    ? xasprintf("Welch, n > %d, %s", ROUNDS_MAX, what)
					    : xasprintf("Welch, n = %zu, %s", n, what);

	print_played(j, name, one ? choose_one : choose_all, n > ROUNDS_MAX ? ROUNDS_MAX : n,
		     apart);
}

static int peers(char **argv, struct err *e)
{
	struct surface *s = xcalloc(1, sizeof *s), *null = xcalloc(1, sizeof *null);
	struct job j = {.s = s,
			.null = null,
			.seed = strtoull(argv[3], NULL, 10),
			.campaigns = strtoull(argv[4], NULL, 10),
			.first = strtod(argv[5], NULL),
			.whole = strtod(argv[6], NULL),
			.budget = strtod(argv[7], NULL)};
	int rc = surface_open(s, argv[0], argv[1], e);

	if (rc == 0)
		rc = surface_open(null, argv[0], argv[2], e);
	for (int apart = 0; apart < 2 && rc == 0 && j.campaigns > 0; apart++) {
		print_played(&j, "best of 1", choose_best, 1, apart);
		print_played(&j, "best of 3", choose_best, 3, apart);
		print_welch(&j, true, apart);
		print_welch(&j, false, apart);
		if (!apart)
			print_played(&j, "grid, 3 runs each", choose_grid, GRID_REPEATS, apart);
	}
	surface_close(s);
	surface_close(null);
	free(s);
	free(null);
	return rc;
}

/* Runs of each arm that find nine times in ten a gain of twice the noise (what a campaign of mode
 * standard finds as often), or of min_effect where that is more. Student's t in place of the
 * noncentral one, as design_mde() does. */
static size_t planned_n(const struct surface *s, double *gain)
{
	double p = ALPHA / (double)(s->singles - 1), least;
	size_t n = 2;

	*gain = fmax(2 * s->truth.sd_run, log1p(s->recipe->min_effect));
	for (;; n++) {
		double df = 2 * (double)n - 2;

		least = (stats_t_quantile(1 - p, df) + stats_t_quantile(0.9, df)) *
			s->truth.sd_run * sqrt(2 / (double)n);
		if (least <= *gain)
			return n;
	}
}

static int planned(char **argv, struct err *e)
{
	struct surface *s = xcalloc(1, sizeof *s);
	int rc = surface_open(s, argv[0], argv[1], e);

	if (rc == 0) {
		double gain;
		size_t n = planned_n(s, &gain);

		printf("{\"procedure\":\"planned\",\"n\":%zu,\"runs\":%zu,\"gain\":%.17g}\n", n,
		       n * s->singles, expm1(gain));
	}
	surface_close(s);
	free(s);
	return rc;
}

/* -- records and the oracle ------------------------------------------------------------------- */

static int config_of(const struct surface *s, const char *settings, size_t *config, struct err *e)
{
	*config = 0;
	for (const char *p = settings; *p;) {
		size_t len = strcspn(p, " \n"), k, v, knobs = s->recipe->n_knobs;
		_cleanup_free_ char *word = xstrndup(p, len);

		for (k = 0; k < knobs; k++) {
			const struct knob *knob = &s->recipe->knobs[k];
			size_t name = strlen(knob->name);

			if (strncmp(word, knob->name, name) != 0 || word[name] != '=')
				continue;
			for (v = 0; v < knob->values.n; v++)
				if (str_eq(word + name + 1, knob->values.v[v]))
					break;
			if (v == knob->values.n)
				k = knobs;
			else
				*config += (v + 1) * stride(s, k);
			break;
		}
		if (len > 0 && k == knobs)
			return err_set(e, ERR_PARSE, "no such setting: %s", word);
		p += len;
		p += strspn(p, " \n");
	}
	return 0;
}

static int read_record(const struct surface *s, char *line, char **procedure, struct found *f,
		       struct err *e)
{
	char *field[8], *p = line;
	size_t n = 0;

	while (n < ARRAY_LEN(field) && p) {
		field[n++] = p;
		p = strchr(p, '\t');
		if (p && n < ARRAY_LEN(field))
			*p++ = '\0';
	}
	if (n < ARRAY_LEN(field))
		return err_set(e, ERR_PARSE, "a record has eight fields, got %zu: %s", n, line);
	*procedure = field[0];
	f->runs = strtod(field[1], NULL);
	f->seconds = strtod(field[2], NULL);
	f->est = *field[3] ? strtod(field[3], NULL) : NAN;
	f->lo = *field[4] ? strtod(field[4], NULL) : NAN;
	f->hi = *field[5] ? strtod(field[5], NULL) : NAN;
	f->claimed = str_eq(field[6], "1");
	return config_of(s, field[7], &f->config, e);
}

static int judge(char **argv, struct err *e)
{
	struct surface *s = xcalloc(1, sizeof *s);
	struct tally t[PROCEDURES_MAX] = {0};
	char *names[PROCEDURES_MAX] = {0}, line[LINE_MAX_BYTES], *name = NULL;
	struct found f;
	size_t n = 0, i;
	int rc = surface_open(s, argv[0], argv[1], e);

	while (rc == 0 && fgets(line, sizeof line, stdin)) {
		rc = read_record(s, line, &name, &f, e);
		for (i = 0; rc == 0 && i < n && !str_eq(names[i], name); i++)
			;
		if (rc == 0 && i == n && n < PROCEDURES_MAX)
			names[n++] = xstrdup(name);
		if (rc == 0 && i < n)
			count(&t[i], s, &f);
	}
	for (i = 0; i < n; i++) {
		if (rc == 0)
			print_tally(s, names[i], &t[i], NULL);
		free(names[i]);
	}
	surface_close(s);
	free(s);
	return rc;
}

static int oracle(char **argv, struct err *e)
{
	struct surface *s = xcalloc(1, sizeof *s);
	char line[LINE_MAX_BYTES], *rest;
	int rc = surface_open(s, argv[0], argv[1], e);

	while (rc == 0 && fgets(line, sizeof line, stdin)) {
		uint64_t seed = strtoull(line, &rest, 10);
		size_t run = strtoull(rest, &rest, 10), config;

		rc = config_of(s, rest + strspn(rest, " "), &config, e);
		if (rc == 0)
			printf("%.17g\n", measure(s, seed, run, config, false));
		fflush(stdout);
	}
	surface_close(s);
	free(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	int rc;

	if (argc == 10 && str_eq(argv[1], "peers"))
		rc = peers(argv + 2, &e);
	else if (argc == 4 && str_eq(argv[1], "planned"))
		rc = planned(argv + 2, &e);
	else if (argc == 4 && str_eq(argv[1], "judge"))
		rc = judge(argv + 2, &e);
	else if (argc == 4 && str_eq(argv[1], "oracle"))
		rc = oracle(argv + 2, &e);
	else {
		fprintf(stderr, "usage: efficiency peers|planned|judge|oracle RECIPE TRUTH ...\n");
		return 2;
	}
	if (rc < 0)
		fprintf(stderr, "efficiency: %s\n", e.text);
	return rc < 0 ? 4 : 0;
}
