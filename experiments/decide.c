/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/decide.h"

#include <math.h>

#define MATHLIB_STANDALONE 1
#include <Rmath.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"

/* One-sided level at which a gain of min_effect is held to be out of reach (statistics.md 6.3). */
static const double FUTILITY_LEVEL = 0.90;
/* A futile arm is watched on while its p of a loss is at most this. */
static const double HARM_HINT_P = 0.05;
/* One-sided level of the guards, and p of Fisher's test of failures. */
static const double GUARD_LEVEL = 0.95;
static const double FAILURES_P = 0.05;
/* Share of failed trials that is too many whatever the test says (statistics.md 6.3). */
static const double FAILURES_SHARE = 0.20;
/* Alphas are sums of fractions: 3 * (0.05 / 3) must find the entry 0.05. */
static const double ALPHA_ROUNDING = 1e-9;

/* -- looks and their bound ----------------------------------------------------------------- */

/* Every mode takes a first part of this list. */
static const size_t LOOK_BLOCKS[] = {3, 4, 5, 6, 8, 10, 12, 16, 20, 24};

double decide_alpha(enum run_mode mode)
{
	switch (mode) {
	case MODE_QUICK:
	case MODE_STANDARD:
	case MODE_LONG:
		return 0.05;
	case MODE_STRICT:
		return 0.01;
	}
	return 0.01;
}

size_t decide_looks(enum run_mode mode, const size_t **blocks)
{
	if (blocks)
		*blocks = LOOK_BLOCKS;
	switch (mode) {
	case MODE_QUICK:
		return 5;
	case MODE_STANDARD:
		return 7;
	case MODE_LONG:
	case MODE_STRICT:
		return ARRAY_LEN(LOOK_BLOCKS);
	}
	return ARRAY_LEN(LOOK_BLOCKS);
}

size_t decide_max_blocks(enum run_mode mode)
{
	return LOOK_BLOCKS[decide_looks(mode, NULL) - 1];
}

size_t decide_next_look(enum run_mode mode, size_t n)
{
	size_t looks = decide_looks(mode, NULL);

	for (size_t i = 0; i < looks; i++) {
		if (LOOK_BLOCKS[i] > n)
			return LOOK_BLOCKS[i];
	}
	return 0;
}

#define PSTAR_ALPHAS(...) static const double PSTAR_ALPHA[] = {__VA_ARGS__};
#define PSTAR(looks, df0, ...)
#include "experiments/pstar.def"
#undef PSTAR_ALPHAS
#undef PSTAR

/* Sorted by looks, then df0, as the generator writes them. */
static const struct pstar_row {
	size_t looks, df0;
	double p[ARRAY_LEN(PSTAR_ALPHA)];
} PSTAR_ROWS[] = {
#define PSTAR_ALPHAS(...)
#define PSTAR(looks, df0, ...) {looks, df0, {__VA_ARGS__}},
#include "experiments/pstar.def"
#undef PSTAR_ALPHAS
#undef PSTAR
};

double decide_p_star(enum run_mode mode, double alpha, size_t df0)
{
	size_t looks = decide_looks(mode, NULL);
	const struct pstar_row *row = NULL;
	double ratio = 1 / (double)looks;

	for (size_t i = 0; i < ARRAY_LEN(PSTAR_ROWS); i++) {
		if (PSTAR_ROWS[i].looks == looks && PSTAR_ROWS[i].df0 <= df0)
			row = &PSTAR_ROWS[i];
	}
	for (size_t i = 0; row && i < ARRAY_LEN(PSTAR_ALPHA); i++) {
		if (PSTAR_ALPHA[i] <= alpha * (1 + ALPHA_ROUNDING))
			ratio = row->p[i] / PSTAR_ALPHA[i];
	}
	return ratio * alpha;
}

/* -- the confirm stage --------------------------------------------------------------------- */

struct decide_stat decide_stat(double ssr, size_t df0, const double *d, size_t n)
{
	struct decide_stat st = {stats_mean(d, n), NAN, NAN, (double)(df0 + n) - 1};
	double s = 0, v;

	if (!(st.df > 0))
		return st;
	for (size_t i = 0; i < n; i++)
		s += (d[i] - st.est) * (d[i] - st.est);
	v = (2 * ssr + s) / st.df;
	st.se_pooled = sqrt(v / (double)n);
	if (n > 1)
		v = fmax(v, s / (double)(n - 1));
	st.se = sqrt(v / (double)n);
	return st;
}

/* A relative effect on the scale of d. */
static double on_scale(const struct decide_plan *plan, double effect)
{
	return plan->absolute ? effect : log1p(effect);
}

static void set_interval(const struct decide_stat *st, double p_star, double *lo, double *hi)
{
	double half = INFINITY;

	if (!isnan(st->se))
		half = st->se > 0 ? stats_t_quantile(1 - p_star, st->df) * st->se : 0;
	*lo = st->est - half;
	*hi = st->est + half;
}

static void estimate(const struct decide_plan *plan, const double *d, size_t n,
		     struct decision *out)
{
	struct decide_stat st = decide_stat(plan->ssr, plan->df0, d, n);

	out->n = n;
	out->est = st.est;
	out->se = st.se;
	out->df = st.df;
	set_interval(&st, out->p_star, &out->lo, &out->hi);
	set_interval(&st, decide_p_star(plan->mode, 0.025, plan->df0), &out->lo95, &out->hi95);
	out->p = isnan(st.se) ? 1 : stats_t_p_greater(st.est, st.se, st.df);
	out->p_worse = isnan(st.se) ? 1 : stats_t_p_greater(-st.est, st.se, st.df);
}

/* What the figures in *out say at a look; false when they say nothing yet. */
static bool judge_look(const struct decide_plan *plan, struct decision *out)
{
	double least = on_scale(plan, plan->min_effect);
	double margin = on_scale(plan, plan->margin > 0 ? plan->margin : plan->min_effect);
	bool last = out->look == out->looks;
	double reach = out->est;

	if (out->se > 0)
		reach += stats_t_quantile(FUTILITY_LEVEL, out->df) * out->se;
	if (out->p <= out->p_star && out->est >= least)
		out->verdict = VERDICT_ACCEPTED;
	else if (out->lo >= -margin && out->hi <= margin)
		out->verdict = VERDICT_EQUIVALENT;
	else if (out->hi < 0)
		out->verdict = VERDICT_REJECTED_WORSE;
	else if (reach < least && (last || out->p_worse > HARM_HINT_P))
		out->verdict = VERDICT_REJECTED_NO_GAIN;
	else if (last)
		out->verdict = VERDICT_INCONCLUSIVE;
	else
		return false;
	return true;
}

bool decide_confirm(const struct decide_plan *plan, const double *d, size_t n, struct decision *out)
{
	const size_t *blocks;

	*out = (struct decision){.est = NAN, .se = NAN, .df = NAN, .p = 1, .p_worse = 1};
	out->lo = out->lo95 = -INFINITY;
	out->hi = out->hi95 = INFINITY;
	out->looks = decide_looks(plan->mode, &blocks);
	out->p_star = decide_p_star(plan->mode, plan->alpha, plan->df0);
	for (size_t i = 0; i < out->looks && blocks[i] <= n; i++) {
		out->look = i + 1;
		estimate(plan, d, blocks[i], out);
		out->done = judge_look(plan, out);
		if (out->done)
			return true;
	}
	if (n > 0)
		estimate(plan, d, n, out);
	return false;
}

/* -- guards -------------------------------------------------------------------------------- */

enum decide_guard decide_guard_worst(enum decide_guard a, enum decide_guard b)
{
	return a > b ? a : b;
}

/* State of a worsening whose one-sided bounds are lo and hi. */
static enum decide_guard guard_state(double lo, double hi, double margin)
{
	if (lo > margin)
		return DECIDE_GUARD_VIOLATED;
	return hi <= margin ? DECIDE_GUARD_PASSED : DECIDE_GUARD_UNSETTLED;
}

struct decide_guard_result decide_guard_at(const double *d, size_t n, double margin,
					   enum better better, double p)
{
	struct decide_guard_result r = {DECIDE_GUARD_UNSETTLED, n, NAN, -INFINITY, INFINITY};
	double sign = better == BETTER_UP ? -1 : 1, half = 0;
	struct stats_mean_ci ci;

	for (size_t i = 0; i < n; i++) {
		if (isinf(d[i]) && (better == BETTER_NONE || sign * d[i] > 0)) {
			r.state = DECIDE_GUARD_VIOLATED;
			r.worsening = r.lo = r.hi = INFINITY;
			return r;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(d[i]))
			return r;
	}
	ci = stats_mean_ci(d, n, 1 - 2 * p);
	r.worsening = sign * ci.mean;
	if (n < 2)
		return r;
	half = ci.hi - ci.mean;
	r.lo = r.worsening - half;
	r.hi = r.worsening + half;
	r.state = guard_state(r.lo, r.hi, margin);
	if (better == BETTER_NONE)
		r.state = decide_guard_worst(r.state, guard_state(-r.hi, -r.lo, margin));
	return r;
}

struct decide_guard_result decide_guard(const double *d, size_t n, double margin,
					enum better better)
{
	return decide_guard_at(d, n, margin, better, 1 - GUARD_LEVEL);
}

struct decide_guard_result decide_limit(const double *v, size_t n, double limit, bool at_most,
					double p)
{
	_cleanup_free_ double *d = xcalloc(n + 1, sizeof *d);
	double size = limit != 0 ? fabs(limit) : 1;

	for (size_t i = 0; i < n; i++)
		d[i] = (v[i] - limit) / size;
	return decide_guard_at(d, n, 0, at_most ? BETTER_DOWN : BETTER_UP, p);
}

enum decide_guard decide_failures(size_t base_failed, size_t base_trials, size_t cand_failed,
				  size_t cand_trials, double *p)
{
	double failed = (double)(base_failed + cand_failed);
	double worked = (double)(base_trials + cand_trials) - failed;
	/* P(X >= cand_failed), X hypergeometric: cand_trials drawn from `failed` and `worked`. */
	double fisher = phyper((double)cand_failed - 1, failed, worked, (double)cand_trials, 0, 0);

	if (p)
		*p = fisher;
	if (cand_failed <= base_failed && fisher > FAILURES_P)
		return DECIDE_GUARD_PASSED;
	if (fisher <= FAILURES_P)
		return DECIDE_GUARD_VIOLATED;
	if (cand_failed >= 2 && (double)cand_failed > FAILURES_SHARE * (double)cand_trials)
		return DECIDE_GUARD_VIOLATED;
	return DECIDE_GUARD_UNSETTLED;
}

/* -- verdict ------------------------------------------------------------------------------- */

bool decide_verdict(const struct decide_plan *plan, const struct decision *decision,
		    const struct decide_facts *facts, enum verdict_outcome *verdict)
{
	bool more = !facts->ended && facts->blocks < decide_max_blocks(plan->mode);

	if (facts->invalid) {
		*verdict = VERDICT_INVALID;
		return true;
	}
	if (facts->guard == DECIDE_GUARD_VIOLATED) {
		*verdict = VERDICT_REJECTED_GUARD;
		return true;
	}
	if (decision->done && decision->verdict != VERDICT_ACCEPTED) {
		*verdict = decision->verdict;
		return true;
	}
	if (decision->done && facts->guard == DECIDE_GUARD_PASSED) {
		*verdict = VERDICT_ACCEPTED;
		return true;
	}
	if (more)
		return false;
	*verdict = VERDICT_INCONCLUSIVE;
	return true;
}

/* -- alpha --------------------------------------------------------------------------------- */

double alpha_share(size_t stages, size_t i)
{
	double sum = 0;

	for (size_t j = 1; j <= stages; j++)
		sum += 1 / (double)(j * j);
	return 1 / (double)(i * i) / sum;
}

struct alpha_ledger alpha_ledger_init(double alpha, size_t stages)
{
	return (struct alpha_ledger){.total = alpha, .stages = stages};
}

size_t alpha_ledger_left(const struct alpha_ledger *ledger)
{
	return ledger->stages > ledger->used ? ledger->stages - ledger->used : 0;
}

double alpha_ledger_next(const struct alpha_ledger *ledger)
{
	if (alpha_ledger_left(ledger) == 0)
		return 0;
	return ledger->total * alpha_share(ledger->stages, ledger->used + 1) + ledger->returned;
}

double alpha_ledger_settle(struct alpha_ledger *ledger, enum verdict_outcome verdict, size_t looks)
{
	double share = alpha_ledger_next(ledger);

	if (share <= 0 || (verdict == VERDICT_INVALID && looks == 0))
		return 0;
	ledger->used++;
	if (verdict == VERDICT_ACCEPTED) {
		ledger->returned = share;
		return 0;
	}
	ledger->returned = 0;
	ledger->spent += share;
	return share;
}
