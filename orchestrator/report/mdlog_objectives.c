/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of a sample, and two objectives at once. */
#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"
#include "orchestrator/report/mdlog.h"

void mdlog_unit_costs(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {
		{"configuration", false}, {"a second", true},      {"node-hours", true},
		{"GPU-hours", true},      {"network bytes", true}, {"storage operations", true}};

	if (r->n_costs == 0)
		return;
	buf_printf(b, "\n## Cost of a %s\n\n", r->costs[0].unit);
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_costs; i++) {
		const struct report_unit_cost *x = &r->costs[i];

		md_row(b);
		md_cell_code(b, x->label);
		md_cell_number(b, x->per_s);
		md_cell_number(b, x->node_hours);
		md_cell_number(b, x->gpu_hours);
		md_cell_number(b, x->net_bytes);
		md_cell_number(b, x->storage_ops);
		md_row_end(b);
	}
	buf_str(b, "\nAt the throughput that was reached; bytes and operations are those of the "
		   "sampled node, times the nodes of a trial, without the loopback device.\n");
}

static void estimate(const struct report_estimate *x, struct buf *b)
{
	md_cell_percent(b, x->est, 1);
	buf_char(b, ' ');
	md_interval(b, x->lo, x->hi);
	buf_str(b, " |");
}

void mdlog_tradeoffs(const struct report *r, struct buf *b)
{
	const struct md_column c[] = {{"configuration", false},
				      {"stage", false},
				      {r->recipe->objective, true},
				      {"interval", true},
				      {r->recipe->second ? r->recipe->second : "", true},
				      {"interval", true},
				      {"beaten in both", false}};

	if (r->n_tradeoffs == 0)
		return;
	buf_str(b, "\n## Two objectives\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_tradeoffs; i++) {
		const struct report_tradeoff *t = &r->tradeoffs[i];

		md_row(b);
		md_cell_code(b, t->label);
		md_cell(b, stage_kind_name(t->stage));
		estimate(&t->first, b);
		estimate(&t->second, b);
		md_cell(b, t->beaten ? "yes" : "no");
		md_row_end(b);
	}
	buf_str(b,
		"\nEffects against the baseline of the same blocks, + is better, with the 95 % "
		"t-interval of the pairs; a screen ranks and claims nothing. Verdicts rest on the "
		"first objective.\n");
}
