/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The design of stages: which arms run in which block, in what order, how many blocks, and what
 * effect that can show. Pure functions of a seed and indices, so that a resumed campaign plans what
 * the first run planned. Arm 0 of a screen is the baseline, 1..k are the candidates.
 * Procedure and defaults: experiments/STATISTICS.md.
 */
#ifndef FETTLE_EXPERIMENTS_DESIGN_H
#define FETTLE_EXPERIMENTS_DESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiments/model.h"

enum {
	DESIGN_MAX_ARMS = 256,  /* 200 candidates, the most we promise, and a baseline */
	DESIGN_MAX_REPEATS = 64 /* of an arm in a block; rather lengthen the window */
};
#define DESIGN_POWER 0.80 /* of a smallest detectable effect */

/* Order of a block: out[0 .. arms * repeats) gets the arm index (0-based) of each slot.
 *
 * Passes over all arms follow one another, pass q = block * repeats + repeat, and are rows of Latin
 * squares (Williams' sequence, shifted): in any `arms` passes of one square each arm is once in
 * each position, and for an even number of arms once directly after each other arm. Rows and
 * labels are shuffled anew per square by rng_at(seed, stage, square). So two arms run AB, BA or
 * BA, AB in randomised pairs. 1 <= arms <= DESIGN_MAX_ARMS, 1 <= repeats <= DESIGN_MAX_REPEATS;
 * beyond that out is not written. Discarded warm-up trials are the caller's. */
void design_order(uint64_t seed, uint64_t stage, size_t block, size_t arms, size_t repeats,
		  size_t *out);

/* Screen by halving. Blocks of a screen of k candidates: 0 for k <= 1 (straight to confirm),
 * quick 2, else 4. */
size_t design_screen_blocks(enum run_mode mode, size_t k);
/* Candidates in block `round` (0-based): quick k; else k, max(2, ceil(k/2)), then twice
 * max(2, ceil(k/4)); never more than k. */
size_t design_screen_width(enum run_mode mode, size_t k, size_t round);
/* How many blocks may run after `done` ones, whatever they show: all in mode quick; the first
 * alone, since it shows which settings take effect; then those of the same width; 1 beyond the
 * last. */
size_t design_screen_known(enum run_mode mode, size_t k, size_t done);
/* Runs of the whole screen with its baselines: 25 for k = 10, 22 in mode quick. */
size_t design_screen_runs(enum run_mode mode, size_t k);
/* Residual degrees of freedom of a screen without a missing trial: 11 for k = 10, 10 in quick. */
size_t design_screen_df(enum run_mode mode, size_t k);

/* Which candidates run in block `round`. y[b * (k + 1) + arm] holds the values of the rounds before
 * (log scale, + is better; NAN = missing, and for round 0 y may be NULL); out[] gets the arms
 * 1..k that take part, in ascending order; returns their number. Taken are the best of those of
 * the round before, in the order of design_screen_rank(). */
size_t design_screen_round(enum run_mode mode, size_t k, size_t round, const double *y,
			   size_t *out);

/* Rank the candidates after `blocks` blocks of a screen. out[] (k elements) gets arms 1..k, best
 * first: those with a mean above 0 before the rest, of these the ones that lasted longest, then by
 * mean of (y_arm - y_baseline) over the blocks that have both; without any pair last. means[]
 * (k + 1 elements, may be NULL) gets that mean by arm, NAN without a pair, 0 for the baseline.
 * Returns how many means are above 0: with 0 the round stops without a confirm stage. */
size_t design_screen_rank(const double *y, size_t k, size_t blocks, size_t *out, double *means);

/* Fixed number of blocks: of the A/A stage (4 6 8 8), of an ablate stage and of the final stage
 * (4 8 12 12) by mode. */
size_t design_aa_blocks(enum run_mode mode);
size_t design_ablate_blocks(enum run_mode mode);
size_t design_final_blocks(enum run_mode mode);

/* Runs an arm needs in a job: ceil(sqrt(c_job / c_run * run_var / block_arm_var)), at least 1, at
 * most DESIGN_MAX_REPEATS (Kalibera and Jones 2013). Costs in any one unit, > 0; block_arm_var 0:
 * the bound. */
size_t design_repeats(double cost_job, double cost_run, double run_var, double block_arm_var);

/* Smallest gain that a confirm stage finds with 80 % power at its last look, relative:
 * expm1((t_{1-p*,df} + t_{.8,df}) s sqrt(2 / (n r))), n the blocks of the last look,
 * df = df0 + n - 1. Somewhat cautious: earlier looks add power. s: noise (log sd) of a run. */
double design_mde(enum run_mode mode, double alpha, double s, size_t repeats, size_t df0);

/* How many blocks of a stage one allocation gets. */
struct design_allocation {
	enum stage_kind kind;
	size_t asked;  /* the recipe's blocks_per_allocation, at least 1 */
	size_t before; /* blocks of the stage that were measured or are in flight */
	size_t known;  /* blocks that may run now: their arms are settled; at least 1 */
	size_t slots;  /* allocations that may be in flight; at least 1 */
};
/* Blocks of one allocation on the same nodes are one unit, so the stages whose units are compared
 * (aa, confirm, ablate, final, ladder, canary) get as many as was asked. A screen ranks and claims
 * nothing: it gets as many as was asked, too, or shares out what does not run at once in
 * allocations of one block each, as long as that leaves DESIGN_SCREEN_UNITS units to estimate the
 * noise from. Verify and soak test no difference: all is shared out. The runs of converge are long
 * and get an allocation each. At most known, at least 1. */
enum { DESIGN_SCREEN_UNITS = 3 };
size_t design_allocation_blocks(const struct design_allocation *a);

/* What a plan prints before anything runs, and why it may be refused. */
struct design_question {
	enum run_mode mode;
	double alpha;       /* of the campaign */
	size_t stages;      /* most confirm stages that share it */
	size_t candidates;  /* of the first screen */
	size_t repeats;     /* runs of an arm in a block */
	size_t unit;        /* blocks of a unit (blocks_per_allocation); 0 is 1 */
	double noise;       /* log sd of a run within a block */
	double gain_sought; /* relative: the smallest predicted or asked-for gain that matters */
	size_t blocks_left; /* units that the budget allows for one confirm stage; 0 = no bound */
};
struct design_answer {
	double share; /* alpha of the first confirm stage */
	double p_star;
	size_t df0; /* of the screen, if every trial ends well; 0 for units of several blocks */
	size_t screen_runs, confirm_runs_max, final_runs;
	double mde;      /* relative, of one confirm stage */
	bool answerable; /* mde <= gain_sought; never when the budget ends before the first look */
	size_t repeats_needed; /* fewest repeats that make it so; 0 = not even DESIGN_MAX_REPEATS */
};
struct design_answer design_plan(const struct design_question *question);

#endif
