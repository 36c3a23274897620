/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 1, baseline: the default configuration against itself. It gives the noise, the smallest
 * effect that the budget can show, the effective values of the knobs and the signals.
 */
#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

int baseline_plan(struct campaign *c, struct err *e)
{
	struct stage_row s = {
		.kind = STAGE_AA,
		.planned_blocks = c->recipe->aa_blocks > 0
					  ? c->recipe->aa_blocks
					  : allocation_unit(c) *
						    (int)design_aa_blocks(c->row.mode)};

	campaign_tell(c, PROGRESS_STEP, 1,
		      "baseline: %d blocks of the default configuration against itself",
		      s.planned_blocks);
	return stage_plan_default(c, &s, "default A", "default B", e);
}

/* A workload that cannot run at all is noticed after one block, not after all of them. */
static int wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	char *reason = NULL;
	struct pairs p;
	int rc;

	*out = (size_t)s->planned_blocks;
	if (c->facts.valid != 1)
		return 0;
	if ((rc = pairs_load(c, s, &p, e)) < 0)
		return rc;
	rc = inputs_fault(c, s, &p, &reason, e);
	if (reason)
		*out = 1;
	free(reason);
	pairs_done(&p);
	return rc;
}

static int fail_campaign(struct campaign *c, const struct stage_row *s, const char *reason,
			 struct err *e)
{
	int rc = query_stage_close(c->ws->db, s->id, reason, e);

	if (rc == 0)
		rc = query_campaign_state(c->ws->db, c->row.id, CAMPAIGN_FAILED, reason,
					  clock_utc_us(c->ws->clock), e);
	if (rc == 0)
		c->row.state = CAMPAIGN_FAILED;
	campaign_tell(c, PROGRESS_STAGE, 1, "%s", reason);
	return rc;
}

/* Logs of single runs, grouped by arm and block: what differs within a group is the run alone. */
static int run_variance(struct campaign *c, const struct stage_row *s, double *out, struct err *e)
{
	struct value_row *v = NULL;
	_cleanup_free_ double *y = NULL;
	_cleanup_free_ size_t *unit = NULL;
	size_t n = 0, k = 0;
	int rc = query_stage_values(c->ws->db, s->id, c->recipe->objective,
				    c->recipe->objective_stat, &v, &n, e);

	if (rc < 0)
		return rc;
	y = xcalloc(n + 1, sizeof *y);
	unit = xcalloc(n + 1, sizeof *unit);
	for (size_t i = 0; i < n; i++) {
		if (v[i].state != TRIAL_OK || !(v[i].value > 0))
			continue;
		y[k] = log(v[i].value);
		unit[k++] = 2 * (size_t)v[i].block_index + (v[i].arm == s->arms[1].id);
	}
	*out = stats_components(y, unit, k).within_var;
	value_rows_free(v, n);
	return 0;
}

/* Smallest effect that r runs of an arm in each block can show. */
static double effect_of(const struct campaign *c, double share, double run_sd, size_t r)
{
	return design_mde(c->row.mode, share, run_sd, r * (size_t)allocation_unit(c), 0);
}

/* Fewest runs of an arm in a block that show the smallest useful effect; the most when none do. */
static size_t repeats_needed(const struct campaign *c, double share, double run_sd)
{
	size_t r = 1;

	while (r < DESIGN_MAX_REPEATS && !(effect_of(c, share, run_sd, r) <= c->recipe->min_effect))
		r++;
	return r;
}

/* The cheapest number of runs by what an allocation and a run cost here, and by how much runs and
 * blocks differ; none beyond what the smallest useful effect needs. */
static int cheapest_repeats(struct campaign *c, double run_var, double arm_sd, size_t needed,
			    size_t *out, struct err *e)
{
	double r = c->recipe->repeats, nodes = c->resources.nodes, run_s, job_s;
	struct cost_row cost;
	int rc = query_cost(c->ws->db, c->row.id, &cost, e);

	if (rc < 0)
		return rc;
	if (nodes < 1)
		nodes = 1;
	run_s = cost.trials_all ? cost.trial_s / (double)cost.trials_all : 1;
	job_s = fmax(0, cost.node_s / nodes - cost.trial_s) / fmax(1, (double)cost.allocations) +
		run_s * c->recipe->warmup_trials;
	*out = design_repeats(job_s, run_s > 0 ? run_s : 1, run_var,
			      fmax(0, arm_sd * arm_sd - run_var / r));
	if (*out > needed)
		*out = needed;
	return 0;
}

/* Advice on the runs of an arm in a block, from what was measured; heap. `sd`: of an arm's mean in
 * a unit. */
static int advice(struct campaign *c, const struct stage_row *s, double share, double sd,
		  char **out, struct err *e)
{
	double run_var = NAN, run_sd = sd * sqrt(c->recipe->repeats * allocation_unit(c));
	size_t needed, r = 0;
	int rc = c->recipe->repeats > 1 && allocation_unit(c) == 1 ? run_variance(c, s, &run_var, e)
								   : 0;

	*out = NULL;
	if (rc < 0 || !(sd > 0))
		return rc;
	needed = repeats_needed(c, share, run_sd);
	if (isfinite(run_var)) {
		if ((rc = cheapest_repeats(c, run_var, sd, needed, &r, e)) < 0)
			return rc;
		*out = xasprintf("; runs of an arm differ by %.2f %%, arms of a block beyond that "
				 "by %.2f %%: repeats = %zu cost least",
				 100 * sqrt(run_var),
				 100 * sqrt(fmax(0, sd * sd - run_var / c->recipe->repeats)), r);
	} else if (needed > 1) {
		*out = xasprintf("; repeats = %zu would show %.1f %% if the noise is that of runs",
				 needed, 100 * effect_of(c, share, run_sd, needed));
	} else {
		*out = xasprintf(
			"; repeats = 1 is enough for the smallest useful effect of %.3g %%",
			100 * c->recipe->min_effect);
	}
	return 0;
}

/* What the baseline makes of the question: a target that is reached already, or that a change may
 * reach which is too small to be accepted; a metric that never moves. Heap, NULL: nothing. */
static char *doubts(const struct campaign *c, const struct pairs *p, const struct stats_mean_ci *aa,
		    double sd)
{
	const struct recipe *r = c->recipe;
	double sign = r->better == BETTER_DOWN ? -1 : 1, sum = 0, need;
	size_t n = 0;

	if (sd == 0)
		return xstrdup("; all values of a block are equal: the metric is rounded, or it "
			       "does not come from the run");
	for (size_t i = 0; i < p->blocks * p->arms; i++)
		if (isfinite(p->y[i])) {
			sum += p->y[i];
			n++;
		}
	need = sign * log(r->target) - sum / (double)n;
	if (need <= 0)
		return xasprintf("; the default reaches the target of %g already", r->target);
	if (need < log1p(r->min_effect))
		return xasprintf("; the target of %g asks for %+.2g %%, and a gain below %.3g %% "
				 "is not accepted as useful: lower min_effect or raise the target",
				 r->target, 100 * expm1(need), 100 * r->min_effect);
	if (stats_unlike(aa, log1p(r->min_effect)))
		return xstrdup("; the default differs from itself: by chance one campaign in "
			       "twenty does, else runs of a block do not find the same machine "
			       "(other programs, caches, clocks)");
	return NULL;
}

static int measured(struct campaign *c, const struct stage_row *s, const struct pairs *p,
		    struct err *e)
{
	_cleanup_free_ char *note = NULL, *more = NULL, *doubt = NULL;
	_cleanup_free_ double *d = NULL;
	size_t n = pairs_diff(p, 1, &d);
	struct stats_mean_ci ci = stats_mean_ci(d, n, 0.95);
	double share = c->row.alpha * alpha_share((size_t)c->row.confirm_max, 1);
	double sd = stats_noise_of_same(&ci);
	int rc = advice(c, s, share, sd, &more, e);

	if (rc < 0)
		return rc;
	doubt = doubts(c, p, &ci, sd);
	note = xasprintf("noise of %s within %s %.2f %%; A/A difference %+.2f %% [%+.2f, "
			 "%.2f] over %zu pairs; smallest effect to be seen %.1f %%%s%s",
			 c->recipe->repeats * allocation_unit(c) > 1 ? "the mean of an arm's runs"
								     : "a run",
			 allocation_unit(c) > 1 ? "an allocation" : "a block", 100 * sd,
			 100 * expm1(ci.mean), 100 * expm1(ci.lo), 100 * expm1(ci.hi), n,
			 100 * design_mde(c->row.mode, share, sd, 1, 0), more ? more : "",
			 doubt ? doubt : "");
	campaign_tell(c, PROGRESS_STAGE, 1, "%s", note);
	return query_stage_close(c->ws->db, s->id, note, e);
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	char *fault = NULL;
	struct pairs p;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	rc = inputs_fault(c, s, &p, &fault, e);
	if (rc == 0)
		rc = fault ? fail_campaign(c, s, fault, e) : measured(c, s, &p, e);
	free(fault);
	pairs_done(&p);
	return rc;
}

const struct stage_ops baseline_aa = {.kind = STAGE_AA,
				      .step = 1,
				      .wanted = wanted,
				      .block_arms = stage_all_arms,
				      .conclude = conclude};
