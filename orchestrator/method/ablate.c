/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 5, before the final stage: winners were accepted one on top of the other, and a later one
 * may have made an earlier one useless. Each accepted change is removed once from the fix, all arms
 * in the same blocks, their number fixed beforehand.
 *
 * A change is useless when its removal is shown not to be worse: the one-sided 95 % bound of the
 * cost of the removal lies within the smallest useful effect (decide_guard on the objective), and
 * neither guards nor failures are worse without it. So a change that pays the smallest useful
 * effect or more is called useless with at most 5 % probability; one that is not settled is kept.
 * Of several useless ones the one that costs least is dropped: the fix that is left was measured
 * as it is. campaign_next() plans another ablate stage for the rest.
 */
#include <math.h>
#include <stdlib.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

static bool has(const struct strv *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (str_eq(names->v[i], name))
			return true;
	return false;
}

/* A knob leaves with those that mean nothing without it: `out` grows while one is found. */
static void leaving(const struct recipe *r, const struct kvs *settings, const char *knob,
		    struct strv *out)
{
	size_t before;

	strv_add(out, knob);
	do {
		before = out->n;
		for (size_t i = 0; i < settings->n; i++) {
			const struct knob *k = recipe_knob(r, settings->v[i].key);

			if (k && k->requires_knob && has(out, k->requires_knob) &&
			    !has(out, k->name))
				strv_add(out, k->name);
		}
	} while (out->n > before);
}

static char *joined(const struct strv *names)
{
	struct buf b = {0};

	for (size_t i = 0; i < names->n; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", names->v[i]);
	return buf_take(&b);
}

/* The fix without one of its changes. */
static int without(struct campaign *c, const struct config *fix, const char *knob,
		   struct arm_plan *out, struct err *e)
{
	_cleanup_(strv_free) struct strv names = {0};
	_cleanup_free_ char *text = NULL;
	struct kvs settings = {0};
	int rc;

	leaving(c->recipe, &fix->settings, knob, &names);
	for (size_t i = 0; i < fix->settings.n; i++)
		if (!has(&names, fix->settings.v[i].key))
			kvs_set(&settings, fix->settings.v[i].key, fix->settings.v[i].value);
	text = joined(&names);
	rc = config_build(c->recipe, &settings, &out->config, e);
	out->label = xasprintf("without %s", text);
	kvs_free(&settings);
	return rc;
}

int ablate_plan(struct campaign *c, struct err *e)
{
	struct config fix = {0};
	struct arm_plan *arms;
	struct stage_row s = {.kind = STAGE_ABLATE,
			      .planned_blocks = allocation_unit(c) *
						(int)design_ablate_blocks(c->row.mode)};
	size_t n;
	int rc = campaign_incumbent(c, &fix, e);

	if (rc < 0)
		return rc;
	n = fix.settings.n + 1;
	arms = xcalloc(n, sizeof *arms);
	config_copy(&arms[0].config, &fix);
	arms[0].label = config_text(&fix);
	for (size_t i = 1; rc == 0 && i < n; i++)
		rc = without(c, &fix, fix.settings.v[i - 1].key, &arms[i], e);
	if (rc == 0) {
		campaign_tell(c, PROGRESS_STEP, 5,
			      "ablation: %s, each of its %zu changes removed once, %d blocks",
			      arms[0].label, n - 1, s.planned_blocks);
		rc = stage_plan(c, &s, arms, n, e);
	}
	experiment_arms_free(arms, n);
	config_done(&fix);
	return rc;
}

/* Guards or failures that get worse by the removal: the change earns its place by them. */
static int harm(struct campaign *c, const struct stage_row *s, const struct pairs *p, size_t arm,
		char **text, struct err *e)
{
	enum decide_guard guard;
	int rc = pairs_guards(c, s, arm, &guard, text, e);

	if (rc < 0 || guard != DECIDE_GUARD_PASSED)
		return rc;
	if (decide_failures(p->failed[0], p->trials[0], p->failed[arm], p->trials[arm], NULL) !=
	    DECIDE_GUARD_PASSED)
		*text = xasprintf("%zu of %zu trials failed without it", p->failed[arm],
				  p->trials[arm]);
	return 0;
}

static enum ablation_outcome outcome_of(const struct decide_guard_result *g, const char *harm_text)
{
	switch (g->state) {
	case DECIDE_GUARD_PASSED:
		return harm_text ? ABLATION_OPEN : ABLATION_USELESS;
	case DECIDE_GUARD_UNSETTLED:
		return g->n > 1 && g->lo > 0 ? ABLATION_PAYS : ABLATION_OPEN;
	case DECIDE_GUARD_VIOLATED:
		return ABLATION_PAYS;
	}
	return ABLATION_OPEN;
}

/* d is the removal against the fix, + is better without: worsening is its opposite. */
static int judge(struct campaign *c, const struct stage_row *s, const struct pairs *p, size_t arm,
		 struct ablation_row *out, struct err *e)
{
	struct decide_guard_result g;
	_cleanup_free_ double *d = NULL;
	size_t n = pairs_diff(p, arm, &d);
	int rc;

	g = decide_guard(d, n, log1p(c->recipe->min_effect), BETTER_UP);
	*out = (struct ablation_row){.stage = s->id,
				     .arm = s->arms[arm].id,
				     .knobs = xstrdup(s->arms[arm].label + sizeof "without"),
				     .n = (int)n,
				     .est = stats_relative(-g.worsening),
				     .lo = stats_relative(-g.hi),
				     .hi = stats_relative(-g.lo)};
	rc = harm(c, s, p, arm, &out->reason, e);
	out->outcome = outcome_of(&g, out->reason);
	return rc;
}

/* Of the useless ones the least missed goes. */
static struct ablation_row *drop_one(struct ablation_row *v, size_t n)
{
	struct ablation_row *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (v[i].outcome == ABLATION_USELESS && (!best || v[i].est > best->est))
			best = &v[i];
	if (best)
		best->outcome = ABLATION_DROPPED;
	return best;
}

static int store(struct campaign *c, struct ablation_row *v, size_t n, struct err *e)
{
	static const char *const words[] = {"it pays", "not settled, so it is kept",
					    "it no longer pays (kept for now)",
					    "it no longer pays and is dropped"};

	for (size_t i = 0; i < n; i++) {
		int rc = query_ablation_add(c->ws->db, &v[i], e);

		if (rc < 0)
			return rc;
		campaign_tell(c, PROGRESS_NOTE, 5, "without %s: %+.1f %% [%+.1f, %+.1f]: %s%s%s",
			      v[i].knobs, 100 * v[i].est, 100 * v[i].lo, 100 * v[i].hi,
			      words[v[i].outcome], v[i].reason ? "; " : "",
			      v[i].reason ? v[i].reason : "");
	}
	return 0;
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	size_t n = s->n_arms - 1;
	struct ablation_row *v = xcalloc(n + 1, sizeof *v), *dropped;
	_cleanup_free_ char *note = NULL;
	struct pairs p;
	int rc = pairs_load(c, s, &p, e);

	if (rc == 0) {
		for (size_t i = 0; rc == 0 && i < n; i++)
			rc = judge(c, s, &p, i + 1, &v[i], e);
		pairs_done(&p);
	}
	dropped = rc == 0 ? drop_one(v, n) : NULL;
	if (rc == 0)
		rc = store(c, v, n, e);
	if (rc == 0) {
		note = dropped ? xasprintf("%s no longer pays and leaves the fix", dropped->knobs)
			       : xstrdup("every accepted change stays in the fix");
		campaign_tell(c, PROGRESS_STAGE, 5, "ablation: %s", note);
		rc = query_stage_close(c->ws->db, s->id, note, e);
	}
	ablation_rows_free(v, n);
	return rc;
}

const struct stage_ops ablate_ablate = {.kind = STAGE_ABLATE,
					.step = 5,
					.wanted = stage_fixed_blocks,
					.block_arms = stage_all_arms,
					.conclude = conclude};
