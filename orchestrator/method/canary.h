/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixed configurations, measured night after night: stages of kind canary, added to a campaign that
 * is over (as the long run of converge.c is). Each block has two arms: the configuration that is
 * watched, and beside it the reference.
 *
 *   a campaign of a recipe with `canary`: watched is the workload as it stands tonight; reference
 * is what the recipe declares, else the same with what the recipe can set of the environment
 *       (`fingerprint` with `set`) as it was on the first night or when it was last accepted;
 *   a tuning campaign with a validated fix: watched is the fix, reference the original default.
 *
 * A stage that ends feeds series: current, reference and pair of the objective, and the probe
 * metrics of the current arm that say why (clocks, busbw, data wait, retries, ...).
 */
#ifndef FETTLE_METHOD_CANARY_H
#define FETTLE_METHOD_CANARY_H

#include "experiments/history.h"
#include "orchestrator/method/campaign.h"
#include "orchestrator/method/track.h"

/* Add tonight's canary stage; campaign_step() then runs it. Planned once a night: the second time
 * nothing is done and *planned is false. ERR_STATE when the campaign is not over yet, or has
 * neither `canary` nor a validated fix. */
int canary_plan(struct workspace *w, int64_t campaign, const char *night,
		const struct campaign_options *o, bool *planned, struct err *e);

/* The same for the re-run of a suspicion (3 blocks, up to 6 as track_judge() asks). */
int canary_rerun(struct workspace *w, const struct wanted_row *r, const char *night,
		 const struct campaign_options *o, bool *planned, struct err *e);

/* The fix of a campaign in tonight's environment against its default, on as many fresh blocks as
 * its final stage had: when the gain is seen again the fix takes tonight's fingerprint, else its
 * state becomes "gain not seen again". */
int canary_revalidate(struct workspace *w, int64_t campaign, const char *night,
		      const struct campaign_options *o, bool *planned, struct err *e);

#endif
