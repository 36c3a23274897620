/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Step 1 of a campaign with a ladder: what each rung keeps, and where the rest went. */
#include "orchestrator/report/tlog.h"

#include <math.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"

static void cell_share(struct doc *doc, double est, double lo, double hi)
{
	if (isnan(est)) {
		doc_cell(doc, _("not measured"));
		return;
	}
	doc_cell_printf(doc, "%.1f %% [%.1f, %.1f]", 100 * est, 100 * lo, 100 * hi);
}

static void cell_points(struct doc *doc, double share)
{
	if (isnan(share))
		doc_cell(doc, _("unknown"));
	else
		doc_cell_printf(doc, "%.1f %%", 100 * share);
}

static void rungs(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"rung", true},
					      {"nodes", true},
					      {"ranks a node", true},
					      {"pairs", true},
					      {"keeps of the rung below", true},
					      {"of the first rung", true},
					      {"communication", true},
					      {"stragglers", true},
					      {"input", true},
					      {"rest", true}};

	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_rungs; i++) {
		const struct rung_row *g = &r->rungs[i];

		doc_row(doc);
		doc_cell_i64(doc, g->round);
		doc_cell_i64(doc, g->nodes);
		doc_cell_i64(doc, g->tasks_per_node);
		doc_cell_i64(doc, g->n);
		cell_share(doc, g->est, g->lo, g->hi);
		cell_share(doc, g->total, g->total_lo, g->total_hi);
		cell_points(doc, g->communication);
		cell_points(doc, g->straggler);
		cell_points(doc, g->input);
		cell_points(doc, g->rest);
	}
}

void tlog_ladder(const struct report *r, struct doc *doc)
{
	const struct ladder *l = &r->recipe->ladder;

	doc_title(doc, 2, "1. Baseline: the scaling ladder");
	doc_para(doc);
	doc_printf(
		doc,
		"How much of its throughput a rank keeps when there are more ranks with as much "
		"work each. A rung is run in pairs with the one below, in the same allocation; "
		"intervals are of 95 %%. The climb ends where a rung loses more than %.3g %%, or "
		"after rung %zu. What a rung lost is split by the trials under the profiler, as "
		"shares of a step on it: communication that nothing hides, waiting for the rank "
		"that comes last, waiting for data; the rest is slower computing and what is "
		"fixed.",
		100 * l->max_loss, l->n);
	if (r->n_rungs)
		rungs(r, doc);
	for (size_t i = 0; i < r->n_stages; i++) {
		if (r->stages[i].kind != STAGE_LADDER)
			continue;
		tlog_stage(&r->stages[i], doc);
		tlog_arms(r, &r->stages[i], doc);
	}
}
