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
	struct arm_plan arms[2] = {{.label = xstrdup("default A")},
				   {.label = xstrdup("default B")}};
	struct stage_row s = {.kind = STAGE_AA,
			      .planned_blocks = c->recipe->aa_blocks > 0
							? c->recipe->aa_blocks
							: (int)design_aa_blocks(c->row.mode)};
	int rc = campaign_default(c, &arms[0].config, e);

	if (rc == 0) {
		config_copy(&arms[1].config, &arms[0].config);
		campaign_tell(c, PROGRESS_STEP, 1,
			      "baseline: %d blocks of the default configuration against itself",
			      s.planned_blocks);
		rc = stage_plan(c, &s, arms, 2, e);
	}
	for (size_t i = 0; i < 2; i++) {
		config_done(&arms[i].config);
		free(arms[i].label);
	}
	return rc;
}

static bool nothing_measured(const struct pairs *p)
{
	for (size_t i = 0; i < p->blocks * p->arms; i++)
		if (isfinite(p->y[i]))
			return false;
	return true;
}

/* A workload that cannot run at all is noticed after one block, not after all of them. */
static int wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	struct pairs p;
	int rc;

	*out = (size_t)s->planned_blocks;
	if (c->facts.valid != 1)
		return 0;
	if ((rc = pairs_load(c, s, &p, e)) < 0)
		return rc;
	if (nothing_measured(&p))
		*out = 1;
	pairs_done(&p);
	return 0;
}

static int all_arms(struct campaign *c, const struct stage_row *s, size_t valid, size_t *out,
		    size_t *n, struct err *e)
{
	(void)c, (void)valid, (void)e;
	for (size_t i = 0; i < s->n_arms; i++)
		out[i] = i;
	*n = s->n_arms;
	return 0;
}

static int fail_campaign(struct campaign *c, const struct stage_row *s, const struct pairs *p,
			 struct err *e)
{
	_cleanup_free_ char *reason = xasprintf("the baseline measured nothing: %s",
						p->fail_reason[0]   ? p->fail_reason[0]
						: p->fail_reason[1] ? p->fail_reason[1]
								    : "no timed trial ended");
	int rc = query_stage_close(c->ws->db, s->id, reason, e);

	if (rc == 0)
		rc = query_campaign_state(c->ws->db, c->row.id, CAMPAIGN_FAILED, reason,
					  clock_utc_us(c->ws->clock), e);
	if (rc == 0)
		c->row.state = CAMPAIGN_FAILED;
	campaign_tell(c, PROGRESS_STAGE, 1, "%s", reason);
	return rc;
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ char *note = NULL;
	struct pairs p;
	struct stats_mean_ci ci;
	double mde, *d = NULL, sd;
	size_t n;
	int rc = pairs_load(c, s, &p, e);

	if (rc < 0)
		return rc;
	if (nothing_measured(&p)) {
		rc = fail_campaign(c, s, &p, e);
		pairs_done(&p);
		return rc;
	}
	n = pairs_diff(&p, 1, &d);
	ci = stats_mean_ci(d, n, 0.95);
	sd = ci.sd / sqrt(2); /* of one run within a block: d is the difference of two */
	mde = design_mde(c->row.mode, c->row.alpha / c->row.confirm_max, sd,
			 (size_t)c->recipe->repeats, 0);
	note = xasprintf("noise of a run within a block %.2f %%; A/A difference %+.2f %% [%.2f, "
			 "%.2f] over %zu pairs; "
			 "smallest effect to be seen %.1f %%",
			 100 * sd, 100 * expm1(ci.mean), 100 * expm1(ci.lo), 100 * expm1(ci.hi), n,
			 100 * mde);
	free(d);
	pairs_done(&p);
	campaign_tell(c, PROGRESS_STAGE, 1, "%s", note);
	return query_stage_close(c->ws->db, s->id, note, e);
}

const struct stage_ops baseline_aa = {.kind = STAGE_AA,
				      .step = 1,
				      .wanted = wanted,
				      .block_arms = all_arms,
				      .conclude = conclude};
