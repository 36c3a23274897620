/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/outline.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "experiments/decide.h"
#include "experiments/stats.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* Noise assumed where nobody has measured any: a middling cluster (statistics: runs within a job 1
 * to 3 %). */
#define NOISE_ASSUMED 0.02
/* A campaign that cannot see so much has no question that it can answer. */
#define GAIN_ANY 0.5

enum { CAMPAIGNS_LOOKED_AT = 20 }; /* newest first: each is evaluated once more */

/* -- what was measured here before --------------------------------------------------------------
 */

static bool same_question(const struct recipe *a, const struct recipe *b)
{
	return str_eq(a->workload.name, b->workload.name) && str_eq(a->objective, b->objective) &&
	       str_eq(a->objective_stat, b->objective_stat) &&
	       a->resources.nodes == b->resources.nodes;
}

static void take_trial_time(struct workspace *w, int64_t id, struct outline *o)
{
	struct cost_row cost;

	if (o->trial_from != OUTLINE_ASSUMED || query_cost(w->db, id, &cost, NULL) < 0 ||
	    cost.trials_all == 0)
		return;
	o->trial_s = cost.trial_s / (double)cost.trials_all;
	o->trial_from = OUTLINE_MEASURED;
}

/* Did the campaign measure the noise of this workload? */
static bool take_campaign(struct workspace *w, int64_t id, const struct recipe *r,
			  struct outline *o)
{
	struct script_sources s = {0};
	struct recipe *past = NULL;
	struct noise n = {0};
	struct err e = {0};
	bool taken = campaign_sources(w, id, &s, &e) == 0 && script_reload(&s, &past, &e) == 0 &&
		     same_question(r, past) && noise_of_campaign(w, id, past, &n, &e) == 0 &&
		     n.sd > 0;

	if (taken) {
		o->measured = n;
		if (o->noise_from == OUTLINE_ASSUMED) {
			o->noise = n.sd;
			o->noise_from = OUTLINE_MEASURED;
		}
		take_trial_time(w, id, o);
	}
	recipe_free(past);
	script_sources_free(&s);
	return taken;
}

static void look_back(const struct recipe *r, const struct outline_given *g, struct outline *o)
{
	const char *dir = workspace_default(g->workspace);
	_cleanup_free_ char *db = fs_join(dir, "fettle.db");
	struct campaign_row *rows = NULL;
	struct workspace *w = NULL;
	struct err e = {0};
	size_t n = 0;

	if (!fs_exists(db) || workspace_open(dir, DB_READ, &clock_system, &w, &e) < 0)
		return;
	if ((g->campaign && take_campaign(w, g->campaign, r, o)) ||
	    query_campaign_list(w->db, NULL, &rows, &n, &e) < 0)
		n = 0;
	for (size_t i = 0; i < n && i < CAMPAIGNS_LOOKED_AT; i++)
		if (take_campaign(w, rows[i].id, r, o))
			break;
	campaign_rows_free(rows, n);
	workspace_close(w);
}

/* -- the outline -------------------------------------------------------------------------------
 */

static size_t count_candidates(const struct recipe *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_knobs; i++)
		for (size_t j = 0; j < r->knobs[i].values.n; j++)
			n += !knob_refused(&r->knobs[i], r->knobs[i].values.v[j]);
	return n;
}

/* Blocks of a stage: as many as said, none, or what the mode has. */
static size_t blocks_of(int said, size_t by_mode)
{
	return said == BLOCKS_NONE ? 0 : said > 0 ? (size_t)said : by_mode;
}

/* Runs that the budget has room for, as far as the time of one is known. */
static double runs_in_budget(const struct recipe *r, const struct outline *o)
{
	const struct budget *b = &r->budget;
	double nodes = r->resources.nodes > 0 ? r->resources.nodes : 1, runs = INFINITY;

	if (b->trials > 0)
		runs = (double)b->trials;
	if (b->wall_s > 0 && o->trial_s > 0)
		runs = fmin(runs, b->wall_s / o->trial_s);
	if (b->node_hours > 0 && o->trial_s > 0)
		runs = fmin(runs, b->node_hours * 3600 / (o->trial_s * nodes));
	if (b->gpu_hours > 0 && o->trial_s > 0)
		runs = fmin(runs, b->gpu_hours * 3600 /
					  (o->trial_s * nodes * r->resources.gpus_per_node));
	return runs;
}

/* From the first block to the end of the soak, when the first candidate is accepted at the first
 * look. */
static void count_shortest(const struct recipe *r, struct outline *o)
{
	double aa = reserve_blocks(r, 2, o->aa_blocks);

	o->kept_runs = (size_t)reserve_final(r, r->blocks_per_allocation);
	o->shortest_runs = (size_t)(aa + reserve_screen(r, o->candidates) +
				    reserve_first_look(r, r->blocks_per_allocation)) +
			   o->kept_runs;
}

/* The last look that the budget reaches. */
static size_t blocks_in_reach(const struct recipe *r, double runs)
{
	const size_t *looks;
	size_t n = decide_looks(r->mode, &looks), reach = 0;
	double unit = r->blocks_per_allocation;
	double blocks = runs / (2.0 * r->repeats * unit + r->warmup_trials);

	if (isinf(runs) && runs > 0)
		return SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		if ((double)looks[i] <= blocks)
			reach = looks[i];
	return reach;
}

/* A campaign with a ladder has these and no others. */
static void count_rungs(const struct recipe *r, struct outline *o)
{
	size_t stages = r->ladder.n - 1;

	o->ladder_runs = 2 * stages *
			 (size_t)(r->ladder.blocks * r->blocks_per_allocation * r->repeats);
	o->warm_runs = stages * (size_t)(r->ladder.blocks * r->warmup_trials);
	o->runs = o->ladder_runs + o->warm_runs;
}

static void count_runs(const struct recipe *r, const struct design_question *q, struct outline *o)
{
	size_t unit = (size_t)r->blocks_per_allocation, screen, confirm, blocks;
	size_t finals = blocks_of(r->final_blocks, unit * design_final_blocks(r->mode));
	size_t soak = (size_t)r->soak_trials;

	if (!q->candidates) /* nothing that a fix could consist of */
		finals = soak = 0;
	o->candidates = q->candidates;
	o->aa_blocks = blocks_of(r->aa_blocks, unit * design_aa_blocks(r->mode));
	o->aa_runs = 2 * o->aa_blocks * q->repeats;
	o->screen_runs = design_screen_runs(r->mode, q->candidates) * q->repeats;
	screen = design_screen_blocks(r->mode, q->candidates);
	confirm = q->candidates ? unit * decide_max_blocks(r->mode) * q->stages : 0;
	o->confirm_runs = 2 * confirm * q->repeats;
	o->final_runs = 2 * finals * q->repeats;
	o->soak_runs = soak;
	blocks = o->aa_blocks + confirm + finals;
	o->warm_runs = ((blocks + unit - 1) / unit + screen + (soak > 0)) *
		       (size_t)r->warmup_trials;
	/* The baseline, and every winner that another round starts from. */
	if (q->candidates)
		count_shortest(r, o);
	o->profile_runs = profile_wanted(r) ? 1 + (q->stages > 0 ? q->stages - 1 : 0) : 0;
	o->runs = o->aa_runs + o->screen_runs + o->confirm_runs + o->final_runs + o->soak_runs +
		  o->warm_runs + o->profile_runs;
}

/* A canary has its nights and nothing else. */
static void count_night(const struct recipe *r, struct outline *o)
{
	size_t blocks = (size_t)r->canary.blocks, arms = r->canary.alone ? 1 : 2;

	o->night_runs = blocks * arms * (size_t)r->repeats;
	o->warm_runs = blocks * (size_t)r->warmup_trials;
	o->runs = o->night_runs + o->warm_runs;
}

static void count_hours(const struct recipe *r, struct outline *o)
{
	double nodes = r->resources.nodes > 0 ? r->resources.nodes : 1;

	o->node_hours = o->trial_s > 0 ? (double)o->runs * o->trial_s * nodes / 3600 : NAN;
	o->gpu_hours = r->resources.gpus_per_node > 0 ? o->node_hours * r->resources.gpus_per_node
						      : NAN;
}

void outline_make(const struct recipe *r, const struct outline_given *g, struct outline *o)
{
	struct design_question q = {.mode = r->mode,
				    .alpha = r->alpha,
				    .stages = (size_t)r->rounds,
				    .candidates = count_candidates(r),
				    .repeats = (size_t)r->repeats,
				    .unit = (size_t)r->blocks_per_allocation};

	*o = (struct outline){
		.noise = g->noise > 0 ? g->noise : NOISE_ASSUMED,
		.noise_from = g->noise > 0 ? OUTLINE_GIVEN : OUTLINE_ASSUMED,
		.trial_s = g->trial_s,
		.trial_from = g->trial_s > 0 ? OUTLINE_GIVEN : OUTLINE_ASSUMED,
		.gain = g->gain > 0 ? g->gain : r->min_effect,
		.gain_stated = g->gain > 0 || r->gain_stated,
	};
	look_back(r, g, o);
	if (r->ladder.n)
		count_rungs(r, o);
	else if (r->canary.blocks)
		count_night(r, o);
	else
		count_runs(r, &q, o);
	count_hours(r, o);
	o->budget_runs = runs_in_budget(r, o);
	o->blocks_left = blocks_in_reach(r, o->budget_runs - (double)(o->aa_runs + o->screen_runs));
	q.noise = o->noise;
	q.gain_sought = o->gain;
	o->answer = design_plan(&q);
	o->mde = o->answer.mde;
	if (o->blocks_left == 0)
		o->mde = INFINITY;
	else if (o->blocks_left < decide_max_blocks(r->mode))
		o->mde = stats_mde(o->answer.p_star, DESIGN_POWER, o->noise, o->blocks_left,
				   (size_t)(r->repeats * r->blocks_per_allocation));
}

/* -- refusing ---------------------------------------------------------------------------------
 */

static char *advice(const struct outline *o)
{
	if (o->blocks_left < SIZE_MAX)
		return xstrdup("give it a larger budget");
	if (o->answer.repeats_needed)
		return xasprintf("repeats = %zu would do", o->answer.repeats_needed);
	return xstrdup("no number of repeats would do: lengthen the window or lower the noise");
}

char *outline_refusal(const struct recipe *r, const struct outline *o)
{
	bool known = o->noise_from != OUTLINE_ASSUMED || o->blocks_left < SIZE_MAX;
	_cleanup_free_ char *todo = advice(o);
	double gain = o->gain;

	if (o->candidates == 0)
		return NULL;
	if (!(o->gain_stated && known && o->mde > gain)) {
		gain = GAIN_ANY;
		if (!(o->mde > gain) || (!o->gain_stated && o->blocks_left == 0))
			return NULL;
	}
	if (o->blocks_left == 0)
		return xasprintf(
			"the budget ends before the first look of a validation, so no gain "
			"can be shown: %s",
			todo);
	return xasprintf("campaign %s cannot answer its question: a gain of %.3g %% is sought, and "
			 "the smallest that it can show is %.3g %% at a noise of %.2g %%: %s",
			 r->name, 100 * gain, 100 * o->mde, 100 * o->noise, todo);
}
