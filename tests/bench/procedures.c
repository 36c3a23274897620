/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other ways to decide, beside fettle's own, at the same error: which find more, or need fewer
 *runs? Bare procedures on drawn values (no engine), Markdown on stdout; a part of what
 * tests/bench/verdicts.sh writes.
 *
 *	procedures [CAMPAIGNS]       of each world, twice as many where nothing helps (default
 *20,000)
 *
 * The bound of each look comes from draws of the procedure's own statistic with the pooled
 *variance, as experiments/pstar.def does. What selection by the screen and the larger of two
 *variances make of that differs a little between procedures; so the alpha that each spends is then
 *set to what gives it the false wins of the standard procedure at 2 % noise, measured.
 */
/* link: -lRmath -lxxhash -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATHLIB_STANDALONE 1
#include <Rmath.h>

#include "experiments/decide.h"
#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"

enum {
	K = 10,
	ARMS = K + 1,
	BLOCKS = 24,
	STAGES = 3,
	SCREEN = 6,
	TOGETHER = 2,
	LEAST_DRAWS = 50000
};
static const double LEAST = 0.00995033; /* log(1.01): min_effect */
static const double ALPHA = 0.05;

struct procedure {
	const char *name;
	size_t candidates;     /* 1: no screen */
	double weight[STAGES]; /* shares of alpha; 0 ends the list */
	enum run_mode mode;    /* its looks */
	double futility;       /* one-sided level at which a gain of min_effect is out of reach */
	double shape;          /* the bound of a look is proportional to blocks^shape */
	size_t keep[SCREEN];   /* candidates in each block of the screen; none: as fettle does */
	size_t aa_blocks;      /* A/A blocks whose residual is pooled with that of the screen */
	bool all_residuals;    /* that of earlier confirm stages, too */
	double screen_share;   /* of the weight that the screen's evidence has: inverse normal */
	size_t together;       /* candidates in the blocks of one confirm stage, alpha shared */
	double alpha;          /* what it spends */
	double *least;         /* sorted: smallest p / blocks^shape over the looks, nothing helps */
	size_t draws;          /* their number */
};

/* The truth, against the incumbent; logs, + is better. Arm 0 is the incumbent. */
struct world {
	double noise, effect[ARMS], noisier[ARMS];
	double aa_noise; /* of the A/A stage, relative to that of what follows; 0: 1 */
};

struct tally {
	size_t campaigns, false_wins, true_wins, found, runs;
};

/* -- bounds --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static size_t screen_blocks(const struct procedure *p)
{
	size_t n = 0;

	if (p->candidates == 1)
		return 0;
	while (n < SCREEN && p->keep[n] > 0)
		n++;
	return n ? n : design_screen_blocks(p->mode, K);
}

static size_t screen_df(const struct procedure *p)
{
	size_t obs = 0, n = screen_blocks(p);

	if (n == 0)
		return 0;
	if (!p->keep[0])
		return design_screen_df(p->mode, K);
	for (size_t b = 0; b < n; b++)
		obs += 1 + p->keep[b];
	return obs - ARMS - n + 1;
}

static double combined_p(const struct procedure *p, double z_screen, double p_confirm)
{
	double w = p->screen_share, z;

	if (w <= 0)
		return p_confirm;
	z = sqrt(w) * z_screen + sqrt(1 - w) * qnorm(p_confirm, 0, 1, 0, 0);
	return pnorm(z, 0, 1, 0, 0);
}

static double draw_least(const struct procedure *p, struct rng *r, size_t df0)
{
	double d[BLOCKS], ssr = 0, least = 1, z_screen = rng_normal(r);
	const size_t *blocks;
	size_t looks = decide_looks(p->mode, &blocks);

	for (size_t i = 0; i < df0; i++) {
		double z = rng_normal(r);

		ssr += z * z;
	}
	for (size_t j = 0; j < blocks[looks - 1]; j++)
		d[j] = sqrt(2) * rng_normal(r);
	for (size_t l = 0; l < looks; l++) {
		struct decide_stat st = decide_stat(ssr, df0, d, blocks[l]);
		double q = stats_t_p_greater(st.est, st.se_pooled, st.df);

		least = fmin(least, combined_p(p, z_screen, q) / pow((double)blocks[l], p->shape));
	}
	return least;
}

static void draw_bounds(struct procedure *p, size_t draws)
{
	size_t df0 = screen_df(p) + (p->aa_blocks ? p->aa_blocks - 1 : 0);
	struct rng r = rng_at(20261129, 1, 0, 0);

	p->draws = draws > LEAST_DRAWS ? draws : LEAST_DRAWS;
	p->least = xcalloc(p->draws, sizeof *p->least);
	for (size_t i = 0; i < p->draws; i++)
		p->least[i] = draw_least(p, &r, df0);
	qsort(p->least, p->draws, sizeof *p->least, compare);
}

static double bound_at(const struct procedure *p, double alpha, size_t blocks)
{
	return p->least[(size_t)(alpha * (double)p->draws)] * pow((double)blocks, p->shape);
}

/* -- a campaign ------------------------------------------------------------------------------ */

static void run_block(const struct world *w, struct rng *r, const size_t *who, size_t n, double *y)
{
	for (size_t i = 0; i < n; i++) {
		double times = w->noisier[who[i]] > 0 ? w->noisier[who[i]] : 1;

		y[who[i]] = w->effect[who[i]] + w->noise * times * rng_normal(r);
	}
}

static size_t next_arms(const struct procedure *p, size_t b, const double *y, size_t *who)
{
	if (!p->keep[0])
		return design_screen_round(p->mode, K, b, y, who);
	(void)design_screen_rank(y, K, b, who, NULL);
	return p->keep[b];
}

static void screen(const struct procedure *p, const struct world *w, struct rng *r, double *y,
		   struct tally *t)
{
	size_t who[ARMS] = {0};

	for (size_t i = 0; i < SCREEN * ARMS; i++)
		y[i] = NAN;
	for (size_t b = 0; b < screen_blocks(p); b++) {
		size_t n = 1 + next_arms(p, b, y, who + 1);

		run_block(w, r, who, n, y + b * ARMS);
		t->runs += n;
	}
}

/* Evidence of the screen for an arm as a normal deviate, adjusted for the choice among all (Sidak).
 */
static double screen_z(const double *y, size_t blocks, size_t arm, const struct stats_two_way *res)
{
	double sum = 0, n = 0, q;

	for (size_t b = 0; b < blocks; b++) {
		if (isnan(y[b * ARMS + arm]))
			continue;
		sum += y[b * ARMS + arm] - y[b * ARMS];
		n++;
	}
	q = stats_t_p_greater(sum / n, sqrt(2 * res->ssr / (double)res->df / n), (double)res->df);
	return qnorm(-expm1(K * log1p(-q)), 0, 1, 0, 0);
}

struct contest {
	size_t n, arm[TOGETHER];
	double z_screen[TOGETHER];
	double alpha, ssr;
	size_t df0;
	bool over[TOGETHER];
	double s; /* residual of the first arm's differences, at its end */
	size_t blocks;
};

enum judgement { GOES_ON, ACCEPTED, ENDED };

/* As decide_confirm() does it, with the procedure's own bounds. */
static enum judgement judge(const struct procedure *p, const struct contest *c, size_t i,
			    const double *d, size_t n, bool last)
{
	struct decide_stat st = decide_stat(c->ssr, c->df0, d, n);
	double bound = bound_at(p, c->alpha / (double)c->n, n), q, harm, half;

	q = combined_p(p, c->z_screen[i], stats_t_p_greater(st.est, st.se, st.df));
	if (q <= bound && st.est >= LEAST)
		return ACCEPTED;
	half = stats_t_quantile(1 - bound, st.df) * st.se;
	if (st.est + half < 0 || (st.est - half >= -LEAST && st.est + half <= LEAST))
		return ENDED;
	harm = stats_t_p_greater(-st.est, st.se, st.df);
	if (st.est + stats_t_quantile(p->futility, st.df) * st.se < LEAST && (last || harm > 0.05))
		return ENDED;
	return last ? ENDED : GOES_ON;
}

/* The arm that is accepted, or 0. */
static size_t confirm(const struct procedure *p, const struct world *w, struct rng *r,
		      struct contest *c, struct tally *t)
{
	double d[TOGETHER][BLOCKS], y[ARMS];
	size_t won = 0, open = c->n, max = decide_max_blocks(p->mode);

	for (size_t n = 0; open > 0 && won == 0;) {
		size_t next = decide_next_look(p->mode, n);

		for (; n < next; n++) {
			size_t who[1 + TOGETHER] = {0}, m = 1;

			for (size_t i = 0; i < c->n; i++)
				if (!c->over[i])
					who[m++] = c->arm[i];
			run_block(w, r, who, m, y);
			t->runs += m;
			for (size_t i = 0; i < c->n; i++)
				d[i][n] = y[c->arm[i]] - y[0];
		}
		for (size_t i = 0; i < c->n; i++) {
			enum judgement j = c->over[i] ? GOES_ON : judge(p, c, i, d[i], n, n == max);

			if (j == ACCEPTED && won == 0)
				won = c->arm[i];
			if (j == ENDED) {
				c->over[i] = true;
				open--;
			}
		}
		c->blocks = n;
	}
	c->s = 0;
	for (size_t j = 0; j < c->blocks; j++)
		c->s += pow(d[0][j] - stats_mean(d[0], c->blocks), 2);
	return won;
}

static double aa_residual(const struct procedure *p, const struct world *w, struct rng *r)
{
	double s2 = 0, z, noise = w->noise * (w->aa_noise > 0 ? w->aa_noise : 1);

	for (size_t i = 1; i < p->aa_blocks; i++) {
		z = noise * rng_normal(r);
		s2 += z * z;
	}
	return s2;
}

struct state {
	struct world w;
	bool tried[ARMS];
	double ssr, returned; /* residuals that are pooled; alpha that came back */
	size_t df, stage;
	bool false_win, true_win;
};

static size_t stages_of(const struct procedure *p)
{
	size_t n = 0;

	while (n < STAGES && p->weight[n] > 0)
		n++;
	return n;
}

static bool settle(const struct procedure *p, struct state *s, const struct contest *c, size_t won,
		   struct tally *t)
{
	for (size_t i = 0; i < c->n; i++)
		s->tried[c->arm[i]] = won == 0 || won == c->arm[i] || c->over[i];
	s->stage++;
	s->returned = won ? c->alpha : 0;
	if (p->all_residuals && won == 0 && c->n == 1) {
		s->ssr += c->s / 2;
		s->df += c->blocks - 1;
	}
	if (won == 0)
		return false;
	if (s->w.effect[won] > 0) {
		s->true_win = true;
		t->found++;
	} else {
		s->false_win = true;
	}
	s->w.effect[won] = 0; /* part of the incumbent now; what others do comes on top */
	return true;
}

/* The next candidates of a round, best first; their number. */
static size_t next_contest(const struct procedure *p, const struct state *s, const size_t *rank,
			   size_t gains, size_t *at, struct contest *c)
{
	*c = (struct contest){.n = 0};
	for (; *at < gains && c->n < p->together; ++*at)
		if (!s->tried[rank[*at]])
			c->arm[c->n++] = rank[*at];
	c->alpha = p->weight[s->stage] * p->alpha + s->returned;
	return c->n;
}

/* One round; false when nothing was accepted. */
static bool play_round(const struct procedure *p, struct state *s, struct rng *r, struct tally *t)
{
	double y[SCREEN * ARMS];
	size_t rank[K] = {1}, gains = 1, at = 0;
	struct stats_two_way res = {0};
	struct contest c;

	if (p->candidates > 1) {
		screen(p, &s->w, r, y, t);
		gains = design_screen_rank(y, K, screen_blocks(p), rank, NULL);
		res = stats_two_way(y, ARMS, screen_blocks(p));
	}
	while (s->stage < stages_of(p) && next_contest(p, s, rank, gains, &at, &c) > 0) {
		c.ssr = res.ssr + s->ssr;
		c.df0 = res.df + s->df;
		for (size_t i = 0; i < c.n && p->screen_share > 0; i++)
			c.z_screen[i] = screen_z(y, screen_blocks(p), c.arm[i], &res);
		if (settle(p, s, &c, confirm(p, &s->w, r, &c, t), t))
			return true;
	}
	return false;
}

static void campaign(const struct procedure *p, const struct world *w, struct rng *r,
		     struct tally *t)
{
	struct state s = {.w = *w};

	s.ssr = aa_residual(p, w, r);
	s.df = p->aa_blocks ? p->aa_blocks - 1 : 0;
	while (s.stage < stages_of(p) && play_round(p, &s, r, t))
		;
	t->campaigns++;
	t->false_wins += s.false_win;
	t->true_wins += s.true_win;
}

static struct tally play(const struct procedure *p, const struct world *w, size_t n, uint64_t seed)
{
	struct tally t = {0};

	for (size_t i = 0; i < n; i++) {
		struct rng r = rng_at(seed, 2, i, 0);

		campaign(p, w, &r, &t);
	}
	return t;
}

/* -- tables ---------------------------------------------------------------------------------- */

static double share(size_t part, size_t whole)
{
	return (double)part / (double)whole;
}

static struct world world_of(double noise, double gain, size_t helpers)
{
	struct world w = {.noise = noise};

	for (size_t i = 0; i < helpers; i++)
		w.effect[1 + 3 * i] = log1p(gain);
	return w;
}

static double false_wins(const struct procedure *p, const struct world *w, size_t n)
{
	struct tally t = play(p, w, n, 77);

	return share(t.false_wins, t.campaigns);
}

struct error_rate {
	double nominal, same; /* false wins at ALPHA, and at p->alpha; at 2 % noise */
};

/* Sets p->alpha to what gives as many false wins as `like`; 0: to ALPHA. */
static struct error_rate set_alpha(struct procedure *p, double like, size_t n)
{
	struct world w = world_of(0.02, 0, 0);
	struct error_rate rate;

	p->alpha = ALPHA;
	draw_bounds(p, 20 * n);
	rate.nominal = rate.same = false_wins(p, &w, 2 * n);
	for (int i = 0; i < 2 && like > 0 && rate.same > 0; i++) {
		p->alpha *= like / rate.same;
		rate.same = false_wins(p, &w, 2 * n);
	}
	return rate;
}

static void print_row(const struct procedure *p, struct error_rate rate, size_t n)
{
	static const struct {
		double gain, noise;
		size_t helpers;
	} of[] = {{0.01, 0.01, 1},
		  {0.02, 0.01, 1},
		  {0.02, 0.02, 1},
		  {0.05, 0.02, 1},
		  {0.02, 0.02, 3}};
	struct world null = world_of(0.02, 0, 0), one = world_of(0.01, 0, 0);
	struct tally t = play(p, &null, n, 78);

	printf("| %s | %.2f %% | %.4f | %.2f %% | %.2f %% | %.1f |", p->name, 100 * rate.nominal,
	       p->alpha, 100 * rate.same, 100 * false_wins(p, &one, n), share(t.runs, t.campaigns));
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct world w = world_of(of[i].noise, of[i].gain, of[i].helpers);

		if (of[i].helpers > 1 && (stages_of(p) == 1 || p->candidates == 1))
			break;
		t = play(p, &w, n, 80 + i);
		if (of[i].helpers > 1)
			printf(" %.2f |", share(t.found, t.campaigns));
		else
			printf(" %.3f (%.1f) |", share(t.true_wins, t.campaigns),
			       share(t.runs, t.campaigns));
	}
	printf("\n");
	fflush(stdout);
}

static void fill_in(struct procedure *p)
{
	if (p->futility <= 0)
		p->futility = 0.90;
	if (p->together == 0)
		p->together = 1;
	if (p->candidates == 0)
		p->candidates = K;
	p->mode = MODE_STANDARD;
}

/* The first is the standard one: the others are brought to its false wins. */
static void print_table(struct procedure *p, size_t procedures, size_t n)
{
	double like = 0;
	bool several = stages_of(p) > 1;

	printf("\n| procedure | false wins at alpha 0.05 | alpha | false wins at 2 %% | at 1 %% | runs | "
	       "+1 %% at 1 %% | +2 %% at 1 %% | +2 %% at 2 %% | +5 %% at 2 %% |%s\n"
	       "|---|---|---|---|---|---|---|---|---|---|%s\n",
	       several ? " of three gains of 2 % at 2 % |" : "", several ? "---|" : "");
	for (size_t i = 0; i < procedures; i++) {
		struct error_rate rate;

		fill_in(&p[i]);
		rate = set_alpha(&p[i], like, n);
		if (i == 0)
			like = rate.same;
		print_row(&p[i], rate, n);
	}
}

/* False wins when the noise before the confirm stage was not that of the confirm stage. */
static void print_unequal(struct procedure *p, size_t procedures, size_t n)
{
	const double aa_noise[] = {1, 1 / 1.5, 1 / 2.2};

	printf("\n| procedure | A/A as noisy | 1.5 times quieter | 2.2 times quieter | candidate 3 times noisier |\n"
	       "|---|---|---|---|---|\n");
	for (size_t i = 0; i < procedures; i++) {
		struct world w = world_of(0.02, 0, 0);

		p[i].alpha = ALPHA;
		printf("| %s |", p[i].name);
		for (size_t a = 0; a < ARRAY_LEN(aa_noise); a++) {
			w.aa_noise = aa_noise[a];
			printf(" %.2f %% |", 100 * false_wins(&p[i], &w, 2 * n));
		}
		w.aa_noise = 1;
		w.noisier[1] = 3;
		printf(" %.2f %% |\n", 100 * false_wins(&p[i], &w, 2 * n));
	}
}

static void done(struct procedure *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(p[i].least);
}

static void one_confirm(size_t n)
{
	struct procedure p[] = {
		{.name = "**fettle**", .weight = {1}},
		{.name = "futility at .80", .weight = {1}, .futility = 0.80},
		{.name = "futility at .95", .weight = {1}, .futility = 0.95},
		{.name = "bound grows with the root of the blocks", .weight = {1}, .shape = 0.5},
		{.name = "bound grows with the blocks", .weight = {1}, .shape = 1},
		{.name = "screen 10 5 3 2 2 2", .weight = {1}, .keep = {10, 5, 3, 2, 2, 2}},
		{.name = "screen 10 5 3", .weight = {1}, .keep = {10, 5, 3}},
		{.name = "screen 10 6 4 2", .weight = {1}, .keep = {10, 6, 4, 2}},
		{.name = "screen 10 6 4 2, futility at .85",
		 .weight = {1},
		 .keep = {10, 6, 4, 2},
		 .futility = 0.85},
		{.name = "the screen's evidence counts a tenth",
		 .weight = {1},
		 .screen_share = 0.1},
		{.name = "the screen's evidence counts a quarter",
		 .weight = {1},
		 .screen_share = 0.25},
		{.name = "the best two in the same blocks", .weight = {1}, .together = 2},
		{.name = "residual of 6 A/A blocks pooled", .weight = {1}, .aa_blocks = 6},
	};

	print_table(p, ARRAY_LEN(p), n);
	done(p, ARRAY_LEN(p));
}

static void three_confirms(size_t n)
{
	const double third = 1.0 / 3, a = alpha_share(3, 1), b = alpha_share(3, 2),
		     c = alpha_share(3, 3);
	struct procedure p[] = {
		{.name = "**fettle**: shares as 1 : 1/4 : 1/9", .weight = {a, b, c}},
		{.name = "thirds", .weight = {third, third, third}},
		{.name = "shares as 4 : 2 : 1", .weight = {4. / 7, 2. / 7, 1. / 7}},
		{.name = "shares .90 .05 .05", .weight = {0.9, 0.05, 0.05}},
		{.name = "every residual so far pooled",
		 .weight = {a, b, c},
		 .aa_blocks = 6,
		 .all_residuals = true},
		{.name = "the best two in the same blocks", .weight = {a, b, c}, .together = 2},
		{.name = "the screen's evidence counts a tenth",
		 .weight = {a, b, c},
		 .screen_share = 0.1},
	};

	print_table(p, ARRAY_LEN(p), n);
	done(p, ARRAY_LEN(p));
}

static void one_candidate(size_t n)
{
	struct procedure p[] = {
		{.name = "**fettle**", .candidates = 1, .weight = {1}},
		{.name = "residual of 6 A/A blocks pooled",
		 .candidates = 1,
		 .weight = {1},
		 .aa_blocks = 6},
	};

	print_table(p, ARRAY_LEN(p), n);
	print_unequal(p, ARRAY_LEN(p), n);
	done(p, ARRAY_LEN(p));
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;

	if (n < 100 || n > 10000000) {
		fprintf(stderr, "usage: procedures [CAMPAIGNS]\n");
		return 2;
	}
	printf("One screen of ten candidates and one confirm stage at full alpha:\n");
	one_confirm((size_t)n);
	printf("\nA campaign of up to three confirm stages:\n");
	three_confirms((size_t)n);
	printf("\nA single candidate, no screen:\n");
	one_candidate((size_t)n);
	return 0;
}
