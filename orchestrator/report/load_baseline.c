/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/load.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/pairs.h"

static double mean_of(const struct pairs_value *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i].value;
	return n ? sum / (double)n : NAN;
}

/* Without an A/A stage the baseline is arm 0 of the first test. */
static int load_plain_baseline(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	const struct stage_row *s = load_stage_of(l, STAGE_CONFIRM);
	struct value_row *v = NULL;
	size_t n = 0, k = 0;
	double sum = 0;
	int rc;

	if (!s)
		return 0;
	if ((rc = query_stage_values(l->db, s->id, r->recipe->objective, r->recipe->objective_stat,
				     &v, &n, e)) < 0)
		return rc;
	for (size_t i = 0; i < n; i++)
		if (v[i].arm == s->arms[0].id && v[i].state == TRIAL_OK && isfinite(v[i].value)) {
			sum += v[i].value;
			k++;
		}
	r->base_mean = k ? sum / (double)k : NAN;
	value_rows_free(v, n);
	if ((rc = load_effective(l, s->arms[0].id, e)) < 0)
		return rc;
	return query_arm_signals(l->db, s->arms[0].id, &r->signals, &r->n_signals, e);
}

int load_baseline(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	const struct stage_row *s = load_stage_of(l, STAGE_AA);
	_cleanup_free_ struct pairs_value *x = NULL;
	struct report_pairs aa;
	struct value_row *v = NULL;
	struct stats_mean_ci logs;
	size_t n = 0, n_ok;
	int rc;

	r->base_mean = r->noise = r->aa_effect = r->aa_lo = r->aa_hi = r->final_mean = NAN;
	r->smallest = NAN;
	if (!s)
		return r->recipe->aa_blocks == BLOCKS_NONE ? load_plain_baseline(l, e) : 0;
	if ((rc = query_stage_values(l->db, s->id, r->recipe->objective, r->recipe->objective_stat,
				     &v, &n, e)) < 0)
		return rc;
	x = xcalloc(n + 1, sizeof *x);
	n_ok = pairs_of_values(v, n, x);
	r->base_mean = mean_of(x, n_ok);
	aa = pairs_logs(x, n_ok, s->arms[0].id, s->arms[1].id, r->recipe->better, &logs);
	r->noise = stats_noise_of_same(&logs);
	r->aa_differs = stats_unlike(&logs, log1p(r->recipe->min_effect));
	r->aa_effect = aa.effect.est;
	r->aa_lo = aa.effect.lo;
	r->aa_hi = aa.effect.hi;
	if (r->noise > 0 && r->campaign.confirm_max > 0) {
		size_t stages = (size_t)r->campaign.confirm_max;

		r->smallest = design_mde(r->campaign.mode,
					 r->campaign.alpha * alpha_share(stages, 1), r->noise, 1,
					 0);
	}
	value_rows_free(v, n);
	if ((rc = load_effective(l, s->arms[0].id, e)) < 0)
		return rc;
	return query_arm_signals(l->db, s->arms[0].id, &r->signals, &r->n_signals, e);
}

/* Means of an arm (-1: of both of an A/A stage) over the trials of each allocation, in order of
 * their appearance: what is independent. */
static struct stats_mean_ci allocation_means(const struct stage_row *s, const struct value_row *v,
					     size_t n, int arm)
{
	_cleanup_free_ double *x = xcalloc(n + 1, sizeof *x), *means = xcalloc(n + 1, sizeof *x);
	_cleanup_free_ size_t *unit = xcalloc(n + 1, sizeof *unit);
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].state != TRIAL_OK || !isfinite(v[i].value) ||
		    (arm >= 0 && v[i].arm != s->arms[arm].id))
			continue;
		x[k] = v[i].value;
		unit[k++] = (size_t)v[i].allocation;
	}
	return stats_mean_ci(means, stats_unit_means(x, unit, k, means), 0.95);
}

static void judge_target(struct report *r)
{
	double best, sign = r->recipe->better == BETTER_DOWN ? -1 : 1;

	for (size_t i = 0; i < r->n_stages; i++)
		if (r->stages[i].kind == STAGE_FINAL && r->stages[i].n_arms > 1)
			r->final_mean = r->stages[i].arms[1].mean;
	best = isfinite(r->final_mean) ? r->final_mean : r->base_mean;
	if (!isfinite(r->recipe->target))
		r->target = TARGET_NONE;
	else if (isfinite(best) && sign * (r->target_lo - r->recipe->target) >= 0 &&
		 sign * (r->target_hi - r->recipe->target) >= 0)
		r->target = TARGET_MET;
	else if (isfinite(best) && sign * (r->target_lo - r->recipe->target) < 0 &&
		 sign * (r->target_hi - r->recipe->target) < 0)
		r->target = TARGET_MISSED;
	else
		r->target = TARGET_OPEN;
}

int load_target(struct loader *l, struct err *e)
{
	const struct stage_row *final = load_stage_of(l, STAGE_FINAL);
	const struct stage_row *s = final ? final : load_stage_of(l, STAGE_AA);
	struct stats_mean_ci ci;
	struct value_row *v = NULL;
	size_t n = 0;
	int rc;

	l->r->target_lo = l->r->target_hi = NAN;
	if (!s || s->n_arms < 2) {
		judge_target(l->r);
		return 0;
	}
	rc = query_stage_values(l->db, s->id, l->r->recipe->objective, l->r->recipe->objective_stat,
				&v, &n, e);
	if (rc < 0)
		return rc;
	ci = allocation_means(s, v, n, final ? 1 : -1);
	l->r->target_lo = ci.lo;
	l->r->target_hi = ci.hi;
	value_rows_free(v, n);
	judge_target(l->r);
	return 0;
}
