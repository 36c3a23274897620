/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scaling ladder: one rank, one node, more nodes. Each rung is run in pairs with the one below
 * it, in the same allocation, so that what is compared is the number of ranks and not the nodes.
 * Efficiency of a rung: the throughput that one of its ranks keeps of what it had on the rung
 * below. The climb ends at the first rung that loses more than the recipe allows, or could not be
 * measured; what the rungs' trials under the profiler show says where the time went, and the rules
 * name the bottleneck there.
 *
 * Rungs count from 1. A stage of kind ladder has the round of its upper rung (2 and more) and two
 * arms, the lower rung first; a profile stage of a ladder has the round of its rung.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/derive.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

static const double INTERVAL = 0.95;

static const struct rung *rung(const struct recipe *r, int number)
{
	return &r->ladder.rungs[number - 1];
}

struct resources ladder_resources(const struct recipe *r, const struct stage_row *s, size_t arm)
{
	struct resources out = r->resources;
	const struct rung *g;

	if (!s || !r->ladder.n || (s->kind != STAGE_LADDER && s->kind != STAGE_PROFILE))
		return out;
	g = rung(r, s->kind == STAGE_LADDER && arm == 0 ? s->round - 1 : s->round);
	out.nodes = g->nodes;
	out.tasks_per_node = g->tasks_per_node;
	return out;
}

static char *rung_text(const struct rung *g)
{
	return xasprintf("%d node%s x %d rank%s", g->nodes, g->nodes == 1 ? "" : "s",
			 g->tasks_per_node, g->tasks_per_node == 1 ? "" : "s");
}

int ladder_plan(struct campaign *c, int round, struct err *e)
{
	_cleanup_free_ char *low = rung_text(rung(c->recipe, round - 1)),
			    *high = rung_text(rung(c->recipe, round));
	struct stage_row s = {.kind = STAGE_LADDER,
			      .round = round,
			      .planned_blocks = allocation_unit(c) * c->recipe->ladder.blocks};

	campaign_tell(c, PROGRESS_STEP, 1, "ladder: rung %d of %zu, %s, against %s", round,
		      c->recipe->ladder.n, high, low);
	return stage_plan_default(c, &s, low, high, e);
}

/* -- what a rung keeps --------------------------------------------------------------------------
 */

/* The product of the steps so far; half widths add up as of independent logs. */
static void add_total(const struct facts *f, struct rung_row *g)
{
	double log_total = log(g->est), half = log(g->hi / g->lo) / 2;

	if (f->n_rungs) {
		const struct rung_row *below = &f->rungs[f->n_rungs - 1];

		log_total += log(below->total);
		half = hypot(half, log(below->total_hi / below->total_lo) / 2);
	}
	g->total = exp(log_total);
	g->total_lo = exp(log_total - half);
	g->total_hi = exp(log_total + half);
}

/* fault: not NULL when what was measured is not the rung. */
static void judge(const struct campaign *c, const struct stage_row *s, const struct pairs *p,
		  const char *fault, struct rung_row *g)
{
	const struct rung *low = rung(c->recipe, s->round - 1), *high = rung(c->recipe, s->round);
	double per_rank = (double)rung_tasks(low) / rung_tasks(high);
	_cleanup_free_ double *d = NULL;
	size_t n = pairs_diff(p, 1, &d);
	struct stats_mean_ci ci;

	*g = (struct rung_row){.stage = s->id,
			       .round = s->round,
			       .nodes = high->nodes,
			       .tasks_per_node = high->tasks_per_node,
			       .n = (int)n,
			       .est = NAN,
			       .lo = NAN,
			       .hi = NAN,
			       .total = NAN,
			       .total_lo = NAN,
			       .total_hi = NAN};
	if (fault || n < 2)
		return;
	ci = stats_mean_ci(d, n, INTERVAL);
	g->est = per_rank * exp(ci.mean);
	g->lo = per_rank * exp(ci.lo);
	g->hi = per_rank * exp(ci.hi);
	g->held = g->est >= 1 - c->recipe->ladder.max_loss;
	add_total(&c->facts, g);
}

static const char *first_failure(const struct pairs *p)
{
	return p->fail_reason[1]   ? p->fail_reason[1]
	       : p->fail_reason[0] ? p->fail_reason[0]
				   : "two pairs of runs are needed";
}

static char *words_of(const struct campaign *c, const struct rung_row *g, const char *fault)
{
	if (isnan(g->est))
		return xasprintf("rung %d could not be measured, so the climb ends: %s", g->round,
				 fault);
	return xasprintf(
		"rung %d keeps %.1f %% [%.1f, %.1f] of the throughput a rank over %d pairs; "
		"%.1f %% [%.1f, %.1f] of the first rung's%s",
		g->round, 100 * g->est, 100 * g->lo, 100 * g->hi, g->n, 100 * g->total,
		100 * g->total_lo, 100 * g->total_hi,
		g->held                                   ? ""
		: g->hi >= 1 - c->recipe->ladder.max_loss ? ": the loss is above the limit, "
							    "not surely; the climb ends here"
							  : ": the climb ends here");
}

/* A launcher may start fewer ranks than it was asked for, and the workload may not care: what was
 * measured is another rung then. Heap, NULL: as it should be. */
static int wrong_ranks(struct campaign *c, const struct stage_row *s, char **why, struct err *e)
{
	int rc = 0;

	*why = NULL;
	for (size_t i = 0; rc == 0 && !*why && i < s->n_arms; i++) {
		const struct resources on = ladder_resources(c->recipe, s, i);
		int seen = 0, asked = on.nodes * on.tasks_per_node;

		rc = query_arm_ranks(c->ws->db, s->arms[i].id, &seen, e);
		if (seen > 0 && seen != asked)
			*why = xasprintf("%s asks for %d rank%s, and processes of %d were seen: "
					 "resources.launcher says what starts them",
					 s->arms[i].label, asked, asked == 1 ? "" : "s", seen);
	}
	return rc;
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	_cleanup_free_ char *note = NULL, *wrong = NULL;
	struct rung_row g;
	struct pairs p;
	int rc = wrong_ranks(c, s, &wrong, e);

	if (rc < 0 || (rc = pairs_load(c, s, &p, e)) < 0)
		return rc;
	judge(c, s, &p, wrong, &g);
	note = words_of(c, &g, wrong ? wrong : first_failure(&p));
	rc = query_rung_add(c->ws->db, &g, e);
	if (rc == 0)
		rc = query_stage_close(c->ws->db, s->id, note, e);
	if (rc == 0)
		campaign_tell(c, PROGRESS_STAGE, 1, "%s", note);
	pairs_done(&p);
	return rc;
}

const struct stage_ops ladder_ladder = {.kind = STAGE_LADDER,
					.step = 1,
					.wanted = stage_fixed_blocks,
					.block_arms = stage_all_arms,
					.conclude = conclude};

/* -- where a rung loses it ----------------------------------------------------------------------
 */

static int load_shares(struct campaign *c, int number, struct step_shares *out, struct err *e)
{
	const struct stage_row *s = facts_stage(&c->facts, STAGE_PROFILE, number);
	struct signal_row *v = NULL;
	size_t n = 0;
	int rc = s ? query_arm_signals(c->ws->db, s->arms[0].id, &v, &n, e) : 0;

	*out = (struct step_shares){.straggler = signal_rows_mean(v, n, "straggler_ratio"),
				    .input = signal_rows_mean(v, n, "data_wait_ratio")};
	/* One rank has nobody to wait for. Who waits does so inside a collective. */
	if (rung_tasks(rung(c->recipe, number)) == 1)
		out->straggler = 0;
	out->communication = fmax(0, signal_rows_mean(v, n, "comm_exposed_ratio") - out->straggler);
	if (rung_tasks(rung(c->recipe, number)) == 1 && isnan(out->communication))
		out->communication = 0;
	signal_rows_free(v, n);
	return rc;
}

int ladder_split(struct campaign *c, int round, struct err *e)
{
	const struct facts *f = &c->facts;
	const struct rung_row *g = f->n_rungs ? &f->rungs[f->n_rungs - 1] : NULL;
	struct step_shares low, high, loss;
	int rc;

	if (!c->recipe->ladder.n || !g || g->round != round || !isfinite(g->est))
		return 0;
	if ((rc = load_shares(c, round - 1, &low, e)) < 0 ||
	    (rc = load_shares(c, round, &high, e)) < 0)
		return rc;
	loss = derive_scaling_loss(g->est, &low, &high);
	return query_rung_split(c->ws->db, g->stage, &loss, e);
}
