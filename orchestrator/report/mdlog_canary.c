/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nights: the newest stages with what they said, and where the series stand. */
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/markdown.h"
#include "orchestrator/report/mdlog.h"

enum { STAGES_LISTED = 14 }; /* two weeks of nights: the series hold the others */

static void stages(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {
		{"night", false}, {"for", false}, {"stage", true}, {"what it said", false}};
	size_t n = r->n_canaries < STAGES_LISTED ? r->n_canaries : STAGES_LISTED;

	buf_printf(b, "\n%zu stage%s", r->n_canaries, r->n_canaries == 1 ? "" : "s");
	if (n < r->n_canaries)
		buf_printf(b, ", the newest %zu", n);
	buf_str(b, ":\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < n; i++) {
		const struct report_canary *k = &r->canaries[i];

		md_row(b);
		md_cell(b, k->row.night);
		md_cell(b, canary_purpose_name(k->row.purpose));
		md_cell_i64(b, k->stage ? k->stage->seq : 0);
		md_cell(b, report_canary_note(k));
		md_row_end(b);
	}
}

void mdlog_canaries(const struct report *r, struct buf *b)
{
	if (!r->recipe->canary.blocks && r->n_canaries == 0)
		return;
	buf_str(b, "\n## Nights\n\n"
		   "The same configuration night after night, in each block beside a reference. "
		   "What moves both is the machine's; what moves one alone is the "
		   "configuration's.\n");
	if (r->n_canaries == 0) {
		buf_str(b, "\nNo night was measured yet.\n");
		return;
	}
	stages(r, b);
	buf_str(b, "\nWhere the series stand:\n\n");
	for (size_t i = 0; i < r->n_series; i++) {
		struct buf line = {0};

		report_series_text(&r->series[i], &line);
		buf_str(b, "- ");
		md_text(b, line.data);
		buf_char(b, '\n');
		buf_free(&line);
	}
}
