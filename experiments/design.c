/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/design.h"

#include <math.h>

#include "experiments/decide.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"

/* -- order within a block ------------------------------------------------------------------ */

/* Element j of Williams' sequence of n: 0, 1, n - 1, 2, n - 2, ... (Williams 1949). Its n shifts
 * form a Latin square; for even n each arm also follows each other arm once. */
static size_t williams(size_t n, size_t j)
{
	return j % 2 ? (j + 1) / 2 : (n - j / 2) % n;
}

/* One pass over all arms: row `pass % arms` of the square `pass / arms`. */
static void order_pass(uint64_t seed, uint64_t stage, size_t pass, size_t arms, size_t *out)
{
	size_t rows[DESIGN_MAX_ARMS], labels[DESIGN_MAX_ARMS];
	struct rng r = rng_at(seed, stage, pass / arms, arms);

	for (size_t i = 0; i < arms; i++)
		rows[i] = labels[i] = i;
	rng_shuffle(&r, rows, arms);
	rng_shuffle(&r, labels, arms);
	for (size_t j = 0; j < arms; j++)
		out[j] = labels[(williams(arms, j) + rows[pass % arms]) % arms];
}

void design_order(uint64_t seed, uint64_t stage, size_t block, size_t arms, size_t repeats,
		  size_t *out)
{
	if (arms < 1 || arms > DESIGN_MAX_ARMS || repeats > DESIGN_MAX_REPEATS)
		return;
	for (size_t i = 0; i < repeats; i++)
		order_pass(seed, stage, block * repeats + i, arms, out + i * arms);
}

/* -- screen -------------------------------------------------------------------------------- */

size_t design_screen_blocks(enum run_mode mode, size_t k)
{
	if (k < 2)
		return 0;
	return mode == MODE_QUICK ? 2 : 4;
}

size_t design_screen_width(enum run_mode mode, size_t k, size_t round)
{
	size_t divisor = round == 0 || mode == MODE_QUICK ? 1 : round == 1 ? 2 : 4;
	size_t width = (k + divisor - 1) / divisor;

	if (width < 2)
		width = 2;
	return width < k ? width : k;
}

size_t design_screen_known(enum run_mode mode, size_t k, size_t done)
{
	size_t blocks = design_screen_blocks(mode, k), n = 1;

	if (mode != MODE_QUICK && done == 0)
		return 1;
	while (done + n < blocks &&
	       design_screen_width(mode, k, done + n) == design_screen_width(mode, k, done))
		n++;
	return n;
}

size_t design_screen_runs(enum run_mode mode, size_t k)
{
	size_t runs = 0;

	for (size_t b = 0; b < design_screen_blocks(mode, k); b++)
		runs += 1 + design_screen_width(mode, k, b);
	return runs;
}

size_t design_screen_df(enum run_mode mode, size_t k)
{
	size_t blocks = design_screen_blocks(mode, k);

	return blocks == 0 ? 0 : design_screen_runs(mode, k) - (k + 1) - blocks + 1;
}

struct standing {
	size_t arm;
	size_t lasted; /* 1 + index of the last block with a value; 0 without any */
	double mean;   /* of arm - baseline; NAN without a pair */
};

static struct standing standing_of(const double *y, size_t k, size_t blocks, size_t arm)
{
	struct standing st = {arm, 0, NAN};
	double sum = 0;
	size_t pairs = 0;

	for (size_t b = 0; b < blocks; b++) {
		double d = y[b * (k + 1) + arm] - y[b * (k + 1)];

		if (!isnan(y[b * (k + 1) + arm]))
			st.lasted = b + 1;
		if (isnan(d))
			continue;
		sum += d;
		pairs++;
	}
	if (pairs > 0)
		st.mean = sum / (double)pairs;
	return st;
}

/* Gains first, then those that lasted longer, then the larger mean, then the lower arm. */
static bool ranks_before(const struct standing *a, const struct standing *b)
{
	bool a_gains = a->mean > 0, b_gains = b->mean > 0;

	if (a_gains != b_gains)
		return a_gains;
	if (isnan(a->mean) != isnan(b->mean))
		return isnan(b->mean);
	if (a->lasted != b->lasted)
		return a->lasted > b->lasted;
	if (a->mean != b->mean && !isnan(a->mean))
		return a->mean > b->mean;
	return a->arm < b->arm;
}

/* Insertion sort: at most DESIGN_MAX_ARMS elements. */
static void sort_standings(struct standing *s, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct standing x = s[i];
		size_t j = i;

		for (; j > 0 && ranks_before(&x, &s[j - 1]); j--)
			s[j] = s[j - 1];
		s[j] = x;
	}
}

size_t design_screen_rank(const double *y, size_t k, size_t blocks, size_t *out, double *means)
{
	_cleanup_free_ struct standing *s = xcalloc(k + 1, sizeof(*s));
	size_t gains = 0;

	if (means)
		means[0] = 0;
	for (size_t i = 0; i < k; i++) {
		s[i] = standing_of(y, k, blocks, i + 1);
		gains += s[i].mean > 0;
		if (means)
			means[i + 1] = s[i].mean;
	}
	sort_standings(s, k);
	for (size_t i = 0; i < k; i++)
		out[i] = s[i].arm;
	return gains;
}

/* Keep the best `width` of the n arms in out[], judged by the first `blocks` blocks. */
static void keep_best(const double *y, size_t k, size_t blocks, size_t *out, size_t n, size_t width)
{
	_cleanup_free_ struct standing *s = xcalloc(n + 1, sizeof(*s));
	_cleanup_free_ bool *kept = xcalloc(k + 2, sizeof(*kept));
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		s[i] = standing_of(y, k, blocks, out[i]);
	sort_standings(s, n);
	for (size_t i = 0; i < width; i++)
		kept[s[i].arm] = true;
	for (size_t arm = 1; arm <= k; arm++) {
		if (kept[arm])
			out[at++] = arm;
	}
}

size_t design_screen_round(enum run_mode mode, size_t k, size_t round, const double *y, size_t *out)
{
	size_t n = k;

	for (size_t i = 0; i < k; i++)
		out[i] = i + 1;
	for (size_t r = 1; r <= round; r++) {
		size_t width = design_screen_width(mode, k, r);

		keep_best(y, k, r, out, n, width);
		n = width;
	}
	return n;
}

/* -- allocations ---------------------------------------------------------------------------- */

static size_t at_least_one(size_t n)
{
	return n > 0 ? n : 1;
}

/* So many that the allocations that may be in flight take all that is known. */
static size_t shared_out(const struct design_allocation *a)
{
	size_t slots = at_least_one(a->slots);

	return (a->known + slots - 1) / slots;
}

static size_t screen_share(const struct design_allocation *a)
{
	size_t units = DESIGN_SCREEN_UNITS > a->before ? DESIGN_SCREEN_UNITS - a->before : 1;
	size_t most = a->known / units, n = shared_out(a);

	n = n < most ? n : most;
	return n > a->asked ? n : a->asked;
}

size_t design_allocation_blocks(const struct design_allocation *a)
{
	size_t n = 1;

	switch (a->kind) {
	case STAGE_AA:
	case STAGE_CONFIRM:
	case STAGE_ABLATE:
	case STAGE_FINAL:
	case STAGE_LADDER:
	case STAGE_CANARY:
		n = a->asked;
		break;
	case STAGE_SCREEN:
		n = screen_share(a);
		break;
	case STAGE_VERIFY:
	case STAGE_SOAK:
		n = shared_out(a);
		break;
	case STAGE_CONVERGE:
	case STAGE_PROFILE:
		break;
	}
	return at_least_one(n < a->known ? n : a->known);
}

/* -- numbers of a plan --------------------------------------------------------------------- */

size_t design_aa_blocks(enum run_mode mode)
{
	switch (mode) {
	case MODE_QUICK:
		return 4;
	case MODE_STANDARD:
		return 6;
	case MODE_LONG:
	case MODE_STRICT:
		return 8;
	}
	return 8;
}

size_t design_final_blocks(enum run_mode mode)
{
	switch (mode) {
	case MODE_QUICK:
		return 4;
	case MODE_STANDARD:
		return 8;
	case MODE_LONG:
	case MODE_STRICT:
		return 12;
	}
	return 12;
}

/* As many as the final stage: the cost of a removal is shown with the error of the gain. */
size_t design_ablate_blocks(enum run_mode mode)
{
	return design_final_blocks(mode);
}

size_t design_repeats(double cost_job, double cost_run, double run_var, double block_arm_var)
{
	double r;

	if (!(run_var > 0))
		return 1;
	if (!(block_arm_var > 0))
		return DESIGN_MAX_REPEATS;
	r = ceil(sqrt(cost_job / cost_run * run_var / block_arm_var));
	if (!(r < DESIGN_MAX_REPEATS))
		return DESIGN_MAX_REPEATS;
	return r < 1 ? 1 : (size_t)r;
}

/* Largest look of the mode within `blocks`; 0 when there is none. */
static size_t last_look(enum run_mode mode, size_t blocks)
{
	const size_t *at;
	size_t looks = decide_looks(mode, &at), n = 0;

	for (size_t i = 0; i < looks && at[i] <= blocks; i++)
		n = at[i];
	return n;
}

static double mde_at(double p_star, double s, size_t n, size_t repeats, size_t df0)
{
	double df = (double)(df0 + n) - 1;

	if (n == 0 || !(df > 0) || !(p_star > 0))
		return INFINITY;
	return expm1((stats_t_quantile(1 - p_star, df) + stats_t_quantile(DESIGN_POWER, df)) * s *
		     sqrt(2 / ((double)n * (double)repeats)));
}

double design_mde(enum run_mode mode, double alpha, double s, size_t repeats, size_t df0)
{
	return mde_at(decide_p_star(mode, alpha, df0), s, decide_max_blocks(mode), repeats, df0);
}

struct design_answer design_plan(const struct design_question *q)
{
	struct design_answer a = {.share = q->alpha * alpha_share(q->stages, 1)};
	size_t most = decide_max_blocks(q->mode), unit = at_least_one(q->unit), n;

	if (q->blocks_left > 0 && q->blocks_left < most)
		most = q->blocks_left;
	n = last_look(q->mode, most);
	a.df0 = unit > 1 ? 0 : design_screen_df(q->mode, q->candidates);
	a.p_star = decide_p_star(q->mode, a.share, a.df0);
	a.screen_runs = design_screen_runs(q->mode, q->candidates) * q->repeats;
	a.confirm_runs_max = 2 * n * q->repeats * unit;
	a.final_runs = 2 * design_final_blocks(q->mode) * q->repeats * unit;
	a.mde = mde_at(a.p_star, q->noise, n, q->repeats * unit, a.df0);
	a.answerable = a.mde <= q->gain_sought;
	for (size_t r = 1; r <= DESIGN_MAX_REPEATS && a.repeats_needed == 0; r++) {
		if (mde_at(a.p_star, q->noise, n, r * unit, a.df0) <= q->gain_sought)
			a.repeats_needed = r;
	}
	return a;
}
