/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nights: the newest stages with what they said, and where the series stand. */
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/tlog.h"

enum { STAGES_LISTED = 14 }; /* two weeks of nights: the series hold the others */

static void stages(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {
		{"night", false}, {"for", false}, {"stage", true}, {"what it said", false}};
	size_t n = r->n_canaries < STAGES_LISTED ? r->n_canaries : STAGES_LISTED;

	doc_para(doc);
	if (n < r->n_canaries)
		doc_printf(doc, "%zu stages, the newest %zu:", r->n_canaries, n);
	else
		doc_printf(doc, _n("%zu stage:", "%zu stages:", n), n);
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < n; i++) {
		const struct report_canary *k = &r->canaries[i];

		doc_row(doc);
		doc_cell(doc, k->row.night);
		doc_cell(doc, lang_word("canary_purpose", canary_purpose_name(k->row.purpose)));
		doc_cell_i64(doc, k->stage ? k->stage->seq : 0);
		doc_cell_recorded(doc, report_canary_note(k));
	}
}

void tlog_canaries(const struct report *r, struct doc *doc)
{
	if (!r->recipe->canary.blocks && r->n_canaries == 0)
		return;
	doc_title(doc, 2, "Nights");
	doc_say(doc, "The same configuration night after night, in each block beside a reference. "
		     "What moves both is the machine's; what moves one alone is the "
		     "configuration's.");
	if (r->n_canaries == 0) {
		doc_say(doc, "No night was measured yet.");
		return;
	}
	stages(r, doc);
	doc_say(doc, "Where the series stand:");
	for (size_t i = 0; i < r->n_series; i++) {
		struct buf line = {0};

		report_series_text(&r->series[i], &line);
		doc_item(doc);
		doc_text(doc, line.data);
		buf_free(&line);
	}
}
