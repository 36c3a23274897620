/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of a sample, and two objectives at once. */
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/tlog.h"

void tlog_unit_costs(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {
		{"configuration", false}, {"a second", true},      {"node-hours", true},
		{"GPU-hours", true},      {"network bytes", true}, {"storage operations", true}};

	if (r->n_costs == 0)
		return;
	doc_heading(doc, 2);
	doc_printf(doc, "Cost of a %s", _(r->costs[0].unit));
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_costs; i++) {
		const struct report_unit_cost *x = &r->costs[i];

		doc_row(doc);
		doc_cell_code(doc, x->label);
		doc_cell_number(doc, x->per_s);
		doc_cell_number(doc, x->node_hours);
		doc_cell_number(doc, x->gpu_hours);
		doc_cell_number(doc, x->net_bytes);
		doc_cell_number(doc, x->storage_ops);
	}
	doc_say(doc, "At the throughput that was reached; bytes and operations are those of the "
		     "sampled node, times the nodes of a trial, without the loopback device.");
}

static void estimate(const struct report_estimate *x, struct doc *doc)
{
	doc_cell_percent(doc, x->est, 1);
	doc_cell_interval(doc, x->lo, x->hi);
}

void tlog_tradeoffs(const struct report *r, struct doc *doc)
{
	const struct doc_column c[] = {{"configuration", false},
				       {"stage", false},
				       {r->recipe->objective, true},
				       {"interval", true},
				       {r->recipe->second ? r->recipe->second : "", true},
				       {"interval", true},
				       {"beaten in both", false}};

	if (r->n_tradeoffs == 0)
		return;
	doc_title(doc, 2, "Two objectives");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_tradeoffs; i++) {
		const struct report_tradeoff *t = &r->tradeoffs[i];

		doc_row(doc);
		doc_cell_code(doc, t->label);
		doc_cell(doc, lang_word("stage_kind", stage_kind_name(t->stage)));
		estimate(&t->first, doc);
		estimate(&t->second, doc);
		doc_cell(doc, t->beaten ? _("yes") : _("no"));
	}
	doc_say(doc,
		"Effects against the baseline of the same blocks, + is better, with the 95 % "
		"t-interval of the pairs; a screen ranks and claims nothing. Verdicts rest on the "
		"first objective.");
}
