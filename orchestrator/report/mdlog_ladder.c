/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Step 1 of a campaign with a ladder: what each rung keeps, and where the rest went. */
#include "orchestrator/report/mdlog.h"

#include <math.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"

static void cell_share(struct buf *b, double est, double lo, double hi)
{
	if (isnan(est)) {
		md_cell(b, "not measured");
		return;
	}
	buf_printf(b, " %.1f %% [%.1f, %.1f] |", 100 * est, 100 * lo, 100 * hi);
}

static void cell_points(struct buf *b, double share)
{
	if (isnan(share))
		md_cell(b, "unknown");
	else
		buf_printf(b, " %.1f %% |", 100 * share);
}

static void rungs(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"rung", true},
					     {"nodes", true},
					     {"ranks a node", true},
					     {"pairs", true},
					     {"keeps of the rung below", true},
					     {"of the first rung", true},
					     {"communication", true},
					     {"stragglers", true},
					     {"input", true},
					     {"rest", true}};

	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_rungs; i++) {
		const struct rung_row *g = &r->rungs[i];

		md_row(b);
		md_cell_i64(b, g->round);
		md_cell_i64(b, g->nodes);
		md_cell_i64(b, g->tasks_per_node);
		md_cell_i64(b, g->n);
		cell_share(b, g->est, g->lo, g->hi);
		cell_share(b, g->total, g->total_lo, g->total_hi);
		cell_points(b, g->communication);
		cell_points(b, g->straggler);
		cell_points(b, g->input);
		cell_points(b, g->rest);
		md_row_end(b);
	}
}

void mdlog_ladder(const struct report *r, struct buf *b)
{
	const struct ladder *l = &r->recipe->ladder;

	buf_printf(
		b,
		"\n## 1. Baseline: the scaling ladder\n\n"
		"How much of its throughput a rank keeps when there are more ranks with as much "
		"work each. A rung is run in pairs with the one below, in the same allocation; "
		"intervals are of 95 %%. The climb ends where a rung loses more than %.3g %%, or "
		"after rung %zu. What a rung lost is split by the trials under the profiler, as "
		"shares of a step on it: communication that nothing hides, waiting for the rank "
		"that comes last, waiting for data; the rest is slower computing and what is "
		"fixed.\n",
		100 * l->max_loss, l->n);
	if (r->n_rungs) {
		buf_char(b, '\n');
		rungs(r, b);
	}
	for (size_t i = 0; i < r->n_stages; i++) {
		if (r->stages[i].kind != STAGE_LADDER)
			continue;
		buf_char(b, '\n');
		mdlog_stage(&r->stages[i], b);
		mdlog_arms(r, &r->stages[i], b);
	}
}
