/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decisions on the differences of a candidate and its baseline: the group-sequential confirm test,
 * guards, the order in which verdicts are tried, and the campaign's account of alpha.
 *
 * Pure functions: a decision depends on its arguments only, so it can be taken again from stored
 * facts at any time. Procedure, constants and their proof: experiments/STATISTICS.md. The unit is
 * the block: d[j] = y_candidate - y_baseline of block j, y = log(metric) with the sign such that
 * more is better. Blocks of one allocation on the same nodes are averaged first (stats_unit_means).
 */
#ifndef FETTLE_EXPERIMENTS_DECIDE_H
#define FETTLE_EXPERIMENTS_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/model.h"

/* Fixed before the first result of the stage. */
struct decide_plan {
	enum run_mode mode;
	double alpha;      /* one-sided, this test's share (alpha_ledger_next); in (0, 0.5) */
	double min_effect; /* smallest useful gain: relative, 0.01 = 1 %; >= 0 */
	double margin;     /* equivalence: relative, both sides; 0 takes min_effect */
	double ssr;        /* of the screen, stats_two_way; 0 when there was none */
	size_t df0;        /* its degrees of freedom; 0 when there was none */
	bool absolute;     /* d are plain differences: min_effect and margin are in their unit */
};

/* est, lo, hi, lo95, hi95 and se are on the scale of d; stats_relative() makes them relative. */
struct decision {
	bool done;                    /* false: more blocks are needed, there is no verdict */
	enum verdict_outcome verdict; /* ACCEPTED to INCONCLUSIVE, never REJECTED_GUARD */
	size_t look;                  /* 1, 2, ...: the last look reached; 0 before the first */
	size_t looks;                 /* looks that the mode has */
	size_t n;                     /* blocks used: of the deciding look, or all so far */
	double est;                   /* mean of d; NAN when n is 0 */
	double se, df;
	double lo, hi;     /* est -+ t_{1-p_star,df} se: a side errs with at most alpha */
	double lo95, hi95; /* two-sided 95 % repeated interval, p* of 0.025: the one to show */
	double p, p_worse; /* one-sided, of a gain and of a loss; both 1 without se */
	double p_star;     /* the bound of p at each look */
};

/* The campaign's alpha in a mode unless the recipe says otherwise: 0.05, strict 0.01. */
double decide_alpha(enum run_mode mode);

/* Blocks at which a mode looks: quick 3 4 5 6 8; standard and 10 12; long and strict and 16 20 24.
 * Returns their number; *blocks points to constants. */
size_t decide_looks(enum run_mode mode, const size_t **blocks);
/* Blocks of the last look: 8, 12, 24, 24. */
size_t decide_max_blocks(enum run_mode mode);
/* Blocks of the first look that is above n; 0 when n is at or beyond the last. */
size_t decide_next_look(enum run_mode mode, size_t n);

/* The bound p* that keeps the one-sided error over all looks of the mode at alpha; from a table
 * made by tests/bench/pstar_gen.c. Between entries the lower alpha's ratio p* : alpha and the lower
 * df0 are taken, below the table alpha / looks (Bonferroni): always on the safe side. */
double decide_p_star(enum run_mode mode, double alpha, size_t df0);

/* The test statistic of n >= 1 differences (statistics.md 6.3): est = mean d, S = sum (d - est)^2,
 * df = df0 + n - 1, v = (2 ssr + S) / df, se_pooled = sqrt(v / n); se the same from
 * max(v, S / (n - 1)), with the same df. p* is made for se_pooled, which is exact when screen and
 * confirm are equally noisy; deciding by se errs on the safe side and protects against a candidate
 * that is noisier than the screen was. With df 0 both are NAN. */
struct decide_stat {
	double est, se, se_pooled, df;
};
struct decide_stat decide_stat(double ssr, size_t df0, const double *d, size_t n);

/* The confirm stage so far. d holds the blocks in the order of their index without void ones; every
 * block before the last given must have ended, or the order of arrival would choose the data.
 *
 * The looks at or below n are walked in order and the first that ends the stage decides, so that
 * the answer does not change when a restart sees more blocks than it needed. At a look:
 *   accepted        p <= p_star and est >= min_effect
 *   equivalent      lo and hi within -+margin
 *   futile          est + t_{.90,df} se < min_effect: worse when hi < 0, else no useful gain;
 *                   but a futile arm that is probably harmful (p_worse <= 0.05) is carried on to
 *                   the next look, since "worse" is worth a block and a gain stays out of reach
 *   inconclusive    at the last look
 * Futility is not binding: going on in spite of it keeps the error at alpha. So a verdict is either
 * worse or no useful gain, never both, and their order does not matter. Returns out->done. */
bool decide_confirm(const struct decide_plan *plan, const double *d, size_t n,
		    struct decision *out);

/* Guards. */
enum decide_guard { DECIDE_GUARD_PASSED, DECIDE_GUARD_UNSETTLED, DECIDE_GUARD_VIOLATED };

struct decide_guard_result {
	enum decide_guard state;
	size_t n;
	double worsening; /* mean, positive is worse (for none: the mean as it is) */
	double lo, hi;    /* its one-sided 95 % bounds */
};

/* Non-inferiority of the candidate in a guard's metric. d: paired differences candidate - baseline
 * in the metric's own direction, logs, relative or absolute, as the margin (>= 0) is; `better`:
 * which way of the metric is good, with BETTER_NONE both ways are bad. Passed: the one-sided 95 %
 * bound of the worsening is within the margin. Violated: the opposite bound is beyond it. Else
 * unsettled, also with n < 2. Equal differences have bounds at their mean. An infinite worsening
 * (the candidate's loss became NaN: the caller passes INFINITY or -INFINITY) is violated at once; a
 * NAN (absent) leaves the guard unsettled: absent is never zero. */
struct decide_guard_result decide_guard(const double *d, size_t n, double margin,
					enum better better);
/* The same with bounds that err with p a side, in (0, 0.5), in place of 0.05. A guard is looked at
 * as often as the gain, so its bounds are the repeated ones: p is decide_p_star(mode, 0.05, 0), and
 * a candidate that is worse by the margin passes in at most 5 % of stages, whenever they stop. */
struct decide_guard_result decide_guard_at(const double *d, size_t n, double margin,
					   enum better better, double p);
/* An absolute limit of the candidate alone: values v against `limit`, in the metric's unit. The
 * same rule with margin 0 for the excess (v - limit for at most, limit - v for at least), as a
 * share of the limit's size unless that is 0. */
struct decide_guard_result decide_limit(const double *v, size_t n, double limit, bool at_most,
					double p);

/* Failures charged to the arms: Fisher's exact test, one-sided, p of so many of the failures being
 * the candidate's. Violated: p <= 0.05, or two failures at least, more than the baseline has, that
 * are more than 20 % of the candidate's trials. Unsettled: more failures than the baseline, short
 * of that. Else passed. p may be NULL. failed <= trials. */
enum decide_guard decide_failures(size_t base_failed, size_t base_trials, size_t cand_failed,
				  size_t cand_trials, double *p);

/* The worse of two: violated before unsettled before passed. */
enum decide_guard decide_guard_worst(enum decide_guard a, enum decide_guard b);

/* What the caller knows beside the objective. */
struct decide_facts {
	bool invalid;            /* undeclared difference, proof level not reached, ... */
	enum decide_guard guard; /* the worst of all guards, PASSED when there is none */
	size_t blocks;           /* complete blocks so far (>= decision.n) */
	bool ended;              /* no further block will come: budget, window, target */
};

/* The verdict, tried in the order invalid, guard, accepted, equivalent, no useful gain, worse,
 * inconclusive. A gain whose guards are unsettled waits while blocks are left (the gain stands, it
 * was decided at its look) and is then inconclusive: what is not shown to be harmless is not
 * accepted. Returns false when there is no verdict yet and more blocks are needed. */
bool decide_verdict(const struct decide_plan *plan, const struct decision *decision,
		    const struct decide_facts *facts, enum verdict_outcome *verdict);

/*
 * Alpha over a campaign: the fallback procedure (Wiens 2003). The plan fixes the most confirm
 * stages m, and so each one's share, before the first result. Stage i is tested at its share plus
 * what the stage before it returned; an accepted stage returns all that it was tested at, any other
 * spends it. The family-wise error over all m tests is at most alpha. Replay the outcomes to
 * rebuild it.
 */

/* Share of alpha of confirm stage i (1..stages): as 1 : 1/4 : 1/9 ..., 1 in all. A screen ranks
 * well, so the first candidate deserves most; see experiments/STATISTICS.md. */
double alpha_share(size_t stages, size_t i);

struct alpha_ledger {
	double total;    /* the campaign's alpha */
	size_t stages;   /* m, the most confirm stages */
	size_t used;     /* stages that were tested */
	double returned; /* waiting for the next stage */
	double spent;
};

/* alpha in (0, 1), stages >= 1. */
struct alpha_ledger alpha_ledger_init(double alpha, size_t stages);
/* Confirm stages that may still be tested. */
size_t alpha_ledger_left(const struct alpha_ledger *ledger);
/* Alpha of the next confirm stage; 0 when none is left. */
double alpha_ledger_next(const struct alpha_ledger *ledger);
/* Book a finished stage. `looks`: how many of its looks were reached; a stage that is invalid
 * before its first look uses neither alpha nor one of the stages. Guard rejections spend. Returns
 * what it spent. */
double alpha_ledger_settle(struct alpha_ledger *ledger, enum verdict_outcome verdict, size_t looks);

#endif
