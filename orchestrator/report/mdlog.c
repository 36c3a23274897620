/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/mdlog.h"

#include <stdlib.h>

#include "experiments/derive.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"

const char *mdlog_or_unset(const char *value)
{
	return value ? value : "(not set)";
}

void mdlog_change(struct buf *b, const struct hypothesis_row *h)
{
	md_code(b, h->knob);
	buf_char(b, ' ');
	md_text(b, mdlog_or_unset(h->from_value));
	buf_str(b, " -> ");
	md_text(b, h->value);
}

void mdlog_cell_change(struct buf *b, const struct hypothesis_row *h)
{
	_cleanup_free_ char *text = xasprintf("%s -> %s", mdlog_or_unset(h->from_value), h->value);

	md_cell_code(b, h->knob);
	md_cell(b, text);
}

/* What became of it, in a few words. */
const char *mdlog_outcome(const struct report_hypothesis *h)
{
	return h->has_verdict ? h->verdict.outcome : report_state_text(h->row.state);
}

/* In the units that sites account in. */
void mdlog_node_cost(const struct report *r, double node_s, struct buf *b)
{
	int gpus = r->recipe->resources.gpus_per_node;
	double price = r->recipe->budget.gpu_hour_price;

	buf_printf(b, ", %.3f node-hours", node_s / 3600);
	if (gpus > 0)
		buf_printf(b, ", %.3f GPU-hours", node_s / 3600 * gpus);
	if (gpus > 0 && price > 0)
		buf_printf(b, " that cost %.2f", derive_cost(node_s / 3600 * gpus, price));
}

void mdlog_stage(const struct report_stage *s, struct buf *b)
{
	buf_printf(b, "Stage %d, %s: %d of %s%d blocks valid", s->seq, stage_kind_name(s->kind),
		   s->blocks_valid, s->kind == STAGE_CONFIRM ? "at most " : "", s->blocks_planned);
	if (s->blocks_void)
		buf_printf(b, ", %d attempt%s void or lost", s->blocks_void,
			   s->blocks_void == 1 ? "" : "s");
	buf_str(b, s->open ? "; still open.\n" : ".\n");
	if (s->note) {
		buf_str(b, "Conclusion: ");
		md_text(b, s->note);
		buf_str(b, ".\n");
	}
}

void mdlog_arms(const struct report *r, const struct report_stage *s, struct buf *b)
{
	static const struct md_column c[] = {{"arm", false},   {"configuration", false},
					     {"trials", true}, {"failed", true},
					     {"mean", true},   {"sd", true},
					     {"unit", false}};

	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < s->n_arms; i++) {
		const struct report_arm *a = &s->arms[i];

		md_row(b);
		md_cell(b, a->label);
		md_cell_code(b, a->config_text);
		md_cell_i64(b, (int64_t)a->n);
		md_cell_i64(b, (int64_t)a->failed);
		md_cell_number(b, a->mean);
		md_cell_number(b, a->sd);
		md_cell(b, r->unit);
		md_row_end(b);
	}
}
