/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How changes act on each other: what stacking the winners showed, and what a change did from
 * another starting point. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"

static const char *ablation_words(const struct ablation_row *a)
{
	switch (a->outcome) {
	case ABLATION_PAYS:
		return _("pays: it stays");
	case ABLATION_OPEN:
		return _("not settled: it stays");
	case ABLATION_USELESS:
		return _("no longer pays; kept until it was measured without the dropped one");
	case ABLATION_DROPPED:
		return _("no longer pays: dropped from the fix");
	}
	return "";
}

static void ablation(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"removed from the fix", false},
					      {"pairs", true},
					      {"effect of the removal", true},
					      {"interval", true},
					      {"what it means", false}};

	if (r->n_ablations == 0)
		return;
	doc_say(doc,
		"Each accepted change was removed once from the fix, all arms in the same blocks. A "
		"change no longer pays when the one-sided 95 % bound of the cost of its removal lies "
		"within the smallest useful effect: at most 5 % of the changes that pay this much "
		"are dropped by mistake. One is dropped at a time.");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_ablations; i++) {
		const struct ablation_row *a = &r->ablations[i];
		_cleanup_free_ char *why = recorded_text(a->reason);
		_cleanup_free_ char *words = xasprintf("%s%s%s", ablation_words(a),
						       a->reason ? _("; ") : "",
						       a->reason ? why : "");

		doc_row(doc);
		doc_cell_code(doc, a->knobs);
		doc_cell_i64(doc, a->n);
		doc_cell_percent(doc, a->est, 1);
		doc_cell_interval(doc, a->lo, a->hi);
		doc_cell(doc, words);
	}
}

static void elsewhere(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"knob", false},      {"change", false},
					      {"from", false},      {"effect", true},
					      {"then from", false}, {"effect", true}};
	size_t same = 0, n = 0;

	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];
		const struct report_hypothesis *next = report_measured_again(r, h);

		if (!next)
			continue;
		if (fabs(report_best_effect(h) - report_best_effect(next)) <
		    r->recipe->min_effect) {
			same++;
			continue;
		}
		if (n++ == 0)
			doc_table(doc, c, ARRAY_LEN(c));
		doc_row(doc);
		tlog_cell_change(doc, &h->row);
		doc_cell_code(doc, report_base_of_round(r, h->row.round));
		doc_cell_percent(doc, report_best_effect(h), 1);
		doc_cell_code(doc, report_base_of_round(r, next->row.round));
		doc_cell_percent(doc, report_best_effect(next), 1);
	}
	if (n)
		doc_say(doc, "The same change from two starting points: where its effect differs, "
			     "it acts on what was accepted between. Effects of a screen rank, "
			     "they claim nothing.");
	if (same) {
		doc_para(doc);
		doc_printf(doc,
			   "Measured from two starting points, with effects less than the smallest "
			   "useful one apart: %zu.",
			   same);
	}
}

void tlog_interactions(const struct report *r, struct doc *doc)
{
	size_t accepted = 0;

	for (size_t i = 0; i < r->n_hyps; i++)
		accepted += report_fate_of(&r->hyps[i]) == FATE_ACCEPTED;
	doc_title(doc, 3, "Interactions");
	if (r->n_ablations == 0)
		doc_say(doc,
			accepted < 2
				? _("Fewer than two changes were accepted: there was nothing "
				    "to stack.")
				: _("The accepted changes were not taken out again one by one."));
	ablation(r, doc);
	elsewhere(r, doc);
}
