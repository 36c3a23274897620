/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What tests/bench/changepoints.sh measures:
 *
 *	changepoint_bench FILE.csv             change points of its last column, as one call
 *	changepoint_bench year SERIES SEED     seconds of SERIES x 365 nights
 *	changepoint_bench flat SERIES SEED     alarms where nothing changes, Markdown
 *	changepoint_bench step SERIES SEED     nights until a change is seen, Markdown
 *	changepoint_bench newest SERIES SEED   how far back suspicions are taken, Markdown
 */
/* link: -lRmath -lxxhash -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiments/changepoint.h"
#include "experiments/decide.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/base/str.h"

enum { BEFORE = 50, AFTER = 120, FIRST = 20, NIGHTS = 100, ROOM = 200, MOST = 1 << 20 };
static const double SD = 0.02;

/* -- series -------------------------------------------------------------------------------- */

enum noise { NORMAL, LOGNORMAL, T3, AR3, AR5, AR8, NOISES };
static const char *const noise_names[] = {"normal", "lognormal", "t3", "AR .3", "AR .5", "AR .8"};

/* Sd 1, but for lognormal: exp(z) has what makes its analyses err. */
static double draw(enum noise kind, struct rng *r, double *ar)
{
	const double rho[] = {[AR3] = 0.3, [AR5] = 0.5, [AR8] = 0.8};
	double z = rng_normal(r), chi2 = 0;

	switch (kind) {
	case NORMAL:
		return z;
	case LOGNORMAL:
		return exp(z);
	case T3:
		for (size_t i = 0; i < 3; i++)
			chi2 += pow(rng_normal(r), 2);
		return z / sqrt(chi2);
	case AR3:
	case AR5:
	case AR8:
		*ar = isnan(*ar) ? z : rho[kind] * *ar + sqrt(1 - rho[kind] * rho[kind]) * z;
		return *ar;
	case NOISES:
		break;
	}
	return NAN;
}

/* From point `at` on the level is `shift` of itself more. */
static void series(enum noise kind, struct rng *r, double *v, size_t n, size_t at, double shift)
{
	double ar = NAN;

	for (size_t i = 0; i < n; i++)
		v[i] = 100 * (1 + SD * draw(kind, r, &ar)) * (i < at ? 1 : 1 + shift);
}

/* -- who raises an alarm, night by night --------------------------------------------------- */

enum who { OTAVA, SUSPECT, CONFIRMED, STRICT, WHOS };

/* An alarm is a change point at an index that nobody of the same kind named before. */
struct watch {
	size_t index[WHOS][ROOM], alarms[WHOS];
	size_t seen[WHOS]; /* nights after the change at BEFORE; 0: not yet */
	size_t blocks;     /* of re-runs */
};

static bool same(size_t a, size_t b)
{
	return a <= b + CP_SAME && b <= a + CP_SAME;
}

/* True when it is new. */
static bool raise_alarm(struct watch *w, enum who who, size_t index, size_t night)
{
	for (size_t i = 0; i < w->alarms[who]; i++)
		if (same(w->index[who][i], index))
			return false;
	w->index[who][w->alarms[who]++] = index;
	if (w->seen[who] == 0 && night > BEFORE && same(index, BEFORE))
		w->seen[who] = night - BEFORE;
	return true;
}

/* Reference against current in 3 to 6 blocks: one-sided paired t at each look, alpha 0.05. */
static bool rerun(struct rng *r, double effect, size_t *blocks)
{
	double d[6], p_star = decide_p_star(MODE_QUICK, 0.05, 0);

	for (size_t n = 1; n <= ARRAY_LEN(d); n++) {
		struct decide_stat st;

		d[n - 1] = effect + SD * sqrt(2) * rng_normal(r);
		++*blocks;
		st = decide_stat(0, 0, d, n);
		if (n >= 3 && stats_t_p_greater(st.est, st.se, st.df) <= p_star)
			return true;
	}
	return false;
}

/* The analysis of one night; `now` is the true shift of the last point against the first. */
static void one_night(struct watch *w, const double *v, size_t n, double now, struct rng *r)
{
	struct cp_point c[ROOM];
	size_t found = cp_detect(v, n, &cp_otava, c);

	for (size_t i = 0; i < found; i++)
		raise_alarm(w, OTAVA, c[i].index, n);
	found = cp_detect(v, n, &cp_strict, c);
	for (size_t i = 0; i < found; i++)
		raise_alarm(w, STRICT, c[i].index, n);
	found = cp_suspects(v, n, CP_NEWEST, c);
	for (size_t i = 0; i < found; i++)
		if (raise_alarm(w, SUSPECT, c[i].index, n) &&
		    rerun(r, c[i].shift < 0 ? -log1p(now) : log1p(now), &w->blocks))
			raise_alarm(w, CONFIRMED, c[i].index, n);
}

/* -- nothing changes ----------------------------------------------------------------------- */

struct flat {
	double once[WHOS]; /* series with an alarm in one analysis of 100 points */
	double any[WHOS];  /* series with an alarm in one of 81 nights, 20 to 100 points */
	double alarms[WHOS], blocks; /* a series */
};

static struct flat flat_series(enum noise kind, size_t count, uint64_t seed)
{
	struct flat f = {0};
	double v[ROOM];

	for (size_t i = 0; i < count; i++) {
		struct rng r = rng_at(seed, kind, i, 0), again = rng_at(seed, kind, i, 1);
		struct watch once = {0}, w = {0};

		series(kind, &r, v, NIGHTS, NIGHTS, 0);
		one_night(&once, v, NIGHTS, 0, &again);
		for (size_t n = FIRST; n <= NIGHTS; n++)
			one_night(&w, v, n, 0, &again);
		for (size_t k = 0; k < WHOS; k++) {
			f.once[k] += (once.alarms[k] > 0) / (double)count;
			f.any[k] += (w.alarms[k] > 0) / (double)count;
			f.alarms[k] += (double)w.alarms[k] / (double)count;
		}
		f.blocks += (double)w.blocks / (double)count;
	}
	return f;
}

static void flat_table(size_t count, uint64_t seed)
{
	puts("| noise | one analysis: Otava | strict | 81 nights: Otava | suspect | confirmed | strict "
	     "| alarms a series: Otava | suspect | confirmed | confirmed / Otava | strict "
	     "| strict / Otava | blocks of re-runs |");
	puts("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
	for (int kind = 0; kind < NOISES; kind++) {
		struct flat f = flat_series((enum noise)kind, count, seed);

		printf("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f |\n",
		       noise_names[kind], f.once[OTAVA], f.once[STRICT], f.any[OTAVA],
		       f.any[SUSPECT], f.any[CONFIRMED], f.any[STRICT], f.alarms[OTAVA],
		       f.alarms[SUSPECT], f.alarms[CONFIRMED],
		       f.alarms[CONFIRMED] / f.alarms[OTAVA], f.alarms[STRICT],
		       f.alarms[STRICT] / f.alarms[OTAVA], f.blocks);
	}
}

/* -- a step -------------------------------------------------------------------------------- */

static const double shifts[] = {-0.02, -0.05, -0.10};
static const size_t by[] = {1, 2, 3, 4, 5, 10, 20, 40, 120};

struct step {
	size_t after[WHOS][AFTER + 1]; /* series seen so many nights after; [0]: not seen */
	size_t late;                   /* suspected later than Otava's alarm, or never */
};

static void step_series(enum noise kind, double shift, size_t count, uint64_t seed, struct step *s)
{
	double v[BEFORE + AFTER];

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < count; i++) {
		struct rng r = rng_at(seed, kind + NOISES, i, 0), again = rng_at(seed, kind, i, 2);
		struct watch w = {0};

		series(kind, &r, v, BEFORE + AFTER, BEFORE, shift);
		for (size_t n = BEFORE + 1; n <= BEFORE + AFTER; n++)
			one_night(&w, v, n, shift, &again);
		for (size_t k = 0; k < WHOS; k++)
			s->after[k][w.seen[k]]++;
		s->late += w.seen[OTAVA] != 0 &&
			   (w.seen[SUSPECT] == 0 || w.seen[SUSPECT] > w.seen[OTAVA]);
	}
}

static void step_row(const char *noise, double shift, enum who who, const struct step *s,
		     size_t count)
{
	static const char *const names[] = {"Otava", "suspect", "confirmed", "strict"};
	size_t sum = 0, median = 0;

	printf("| %s | %.0f %% | %s |", noise, 100 * shift, names[who]);
	for (size_t k = 1, next = 0; k <= AFTER; k++) {
		sum += s->after[who][k];
		if (!median && 2 * sum >= count)
			median = k;
		if (k == by[next]) {
			printf(" %.3f |", (double)sum / (double)count);
			next++;
		}
	}
	printf(median ? " %zu |" : " - |", median);
	printf(who == SUSPECT ? " %zu |\n" : " |\n", s->late);
}

static void step_table(size_t count, uint64_t seed)
{
	static const enum noise kinds[] = {NORMAL, LOGNORMAL, T3, AR5};
	static struct step s;

	puts("| noise | shift | | k = 1 | 2 | 3 | 4 | 5 | 10 | 20 | 40 | 120 | median | later than Otava |");
	puts("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t j = 0; j < ARRAY_LEN(shifts); j++) {
			step_series(kinds[i], shifts[j], count, seed, &s);
			for (int who = 0; who < WHOS; who++)
				step_row(noise_names[kinds[i]], shifts[j], (enum who)who, &s,
					 count);
		}
}

/* -- how far back -------------------------------------------------------------------------- */

static const size_t newest[] = {2, 5, 10, 20, 30, 50, 100, MOST};

/* Suspicions a series when the newest k points count, and the first night of one at BEFORE. */
static size_t suspicions(const double *v, size_t from, size_t to, size_t k, size_t *seen)
{
	struct cp_point c[ROOM];
	struct watch w = {0};

	for (size_t n = from; n <= to; n++) {
		size_t found = cp_suspects(v, n, k, c);

		for (size_t i = 0; i < found; i++)
			raise_alarm(&w, SUSPECT, c[i].index, n);
	}
	*seen = w.seen[SUSPECT];
	return w.alarms[SUSPECT];
}

static void newest_row(size_t k, size_t count, uint64_t seed)
{
	size_t flat = 0, missed[ARRAY_LEN(shifts)] = {0}, first, all;
	double v[ROOM];

	for (size_t i = 0; i < count; i++) {
		struct rng r = rng_at(seed, 0, i, 3);

		series(NORMAL, &r, v, NIGHTS, NIGHTS, 0);
		flat += suspicions(v, FIRST, NIGHTS, k, &first);
		for (size_t j = 0; j < ARRAY_LEN(shifts); j++) {
			series(NORMAL, &r, v, BEFORE + AFTER, BEFORE, shifts[j]);
			suspicions(v, BEFORE + 1, BEFORE + AFTER, MOST, &all);
			suspicions(v, BEFORE + 1, BEFORE + AFTER, k, &first);
			missed[j] += all != 0 && first != all;
		}
	}
	printf(k == MOST ? "| all | %.3f |" : "| %2$zu | %1$.3f |", (double)flat / (double)count,
	       k);
	for (size_t j = 0; j < ARRAY_LEN(shifts); j++)
		printf(" %.3f |", (double)missed[j] / (double)count);
	putchar('\n');
}

static void newest_table(size_t count, uint64_t seed)
{
	puts("| newest points | suspicions a flat series | later than Otava at -2 % | -5 % | -10 % |");
	puts("|---|---|---|---|---|");
	for (size_t i = 0; i < ARRAY_LEN(newest); i++)
		newest_row(newest[i], count, seed);
}

/* -- speed --------------------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a night costs: suspicions and the strict detector on each series. */
static void year(size_t count, uint64_t seed)
{
	double v[365], spent = 0;
	struct cp_point c[365];
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		struct rng r = rng_at(seed, 0, i, 4);
		double begin;

		series(NORMAL, &r, v, 365, rng_below(&r, 365), -0.05);
		begin = seconds();
		found += cp_suspects(v, 365, CP_NEWEST, c) + cp_detect(v, 365, &cp_strict, c);
		spent += seconds() - begin;
	}
	printf("%.3f %zu\n", spent, found);
}

static int one_file(const char *path)
{
	static double v[MOST];
	static char line[4096];
	struct cp_point *c;
	FILE *f = fopen(path, "re");
	size_t n = 0, found;

	if (!f) {
		perror(path);
		return 4;
	}
	while (n < MOST && fgets(line, sizeof(line), f)) {
		char *comma = strrchr(line, ',');

		if (str_to_double(comma ? comma + 1 : line, &v[n]))
			n++;
	}
	fclose(f);
	c = xcalloc(n + 1, sizeof(*c));
	found = cp_detect(v, n, &cp_otava, c);
	for (size_t i = 0; i < found; i++)
		printf("%zu %.3g %.6g %.6g %+.2f%% [%zu, %zu]\n", c[i].index, c[i].p,
		       c[i].mean_before, c[i].mean_after, 100 * c[i].shift, c[i].first, c[i].last);
	free(c);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(size_t count, uint64_t seed);
	} modes[] = {{"year", year},
		     {"flat", flat_table},
		     {"step", step_table},
		     {"newest", newest_table}};
	int64_t count, seed;

	if (argc == 2)
		return one_file(argv[1]);
	for (size_t i = 0; argc == 4 && i < ARRAY_LEN(modes); i++)
		if (str_eq(argv[1], modes[i].name) && str_to_i64(argv[2], &count) && count > 0 &&
		    str_to_i64(argv[3], &seed)) {
			modes[i].run((size_t)count, (uint64_t)seed);
			return 0;
		}
	fputs("changepoint_bench FILE.csv | year|flat|step|newest SERIES SEED\n", stderr);
	return 2;
}
