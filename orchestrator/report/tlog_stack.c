/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of step 5: what stacking the winners showed, and where the stages ran. */
#include "orchestrator/report/tlog.h"

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

void tlog_ablation(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"removed from the fix", false},
					      {"pairs", true},
					      {"effect of the removal", true},
					      {"interval", true},
					      {"what it means", false}};

	if (r->n_ablations == 0)
		return;
	doc_title(doc, 3, "Interactions found when winners were stacked");
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

void tlog_nodes(const struct report *r, struct doc *doc)
{
	int64_t stage = 0;

	if (r->n_nodes == 0)
		return;
	doc_say(doc, "Nodes that were used (with the valid blocks on each):");
	for (size_t i = 0; i < r->n_nodes; i++) {
		const struct node_row *n = &r->nodes[i];

		if (n->stage != stage) {
			doc_item(doc);
			doc_printf(doc, "%s: ", lang_word("stage_kind", stage_kind_name(n->kind)));
		} else {
			doc_str(doc, ", ");
		}
		stage = n->stage;
		doc_printf(doc, "%s (%d)", n->node, n->blocks);
	}
}
