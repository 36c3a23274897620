/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of step 5: what stacking the winners showed, and where the stages ran. */
#include "orchestrator/report/mdlog.h"

#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"

const char *mdlog_ablation_words(const struct ablation_row *a)
{
	switch (a->outcome) {
	case ABLATION_PAYS:
		return "pays: it stays";
	case ABLATION_OPEN:
		return "not settled: it stays";
	case ABLATION_USELESS:
		return "no longer pays; kept until it was measured without the dropped one";
	case ABLATION_DROPPED:
		return "no longer pays: dropped from the fix";
	}
	return "";
}

void mdlog_ablation(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"removed from the fix", false},
					     {"pairs", true},
					     {"effect of the removal", true},
					     {"interval", true},
					     {"what it means", false}};

	if (r->n_ablations == 0)
		return;
	buf_str(b,
		"\n### Interactions found when winners were stacked\n\n"
		"Each accepted change was removed once from the fix, all arms in the same blocks. A "
		"change no longer pays when the one-sided 95 % bound of the cost of its removal lies "
		"within the smallest useful effect: at most 5 % of the changes that pay this much "
		"are dropped by mistake. One is dropped at a time.\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_ablations; i++) {
		const struct ablation_row *a = &r->ablations[i];
		_cleanup_free_ char *words = xasprintf("%s%s%s", mdlog_ablation_words(a),
						       a->reason ? "; " : "",
						       a->reason ? a->reason : "");

		md_row(b);
		md_cell_code(b, a->knobs);
		md_cell_i64(b, a->n);
		md_cell_percent(b, a->est, 1);
		buf_char(b, ' ');
		md_interval(b, a->lo, a->hi);
		buf_str(b, " |");
		md_cell(b, words);
		md_row_end(b);
	}
}

void mdlog_nodes(const struct report *r, struct buf *b)
{
	int64_t stage = 0;

	if (r->n_nodes == 0)
		return;
	buf_str(b, "\nNodes that were used (with the valid blocks on each):\n\n");
	for (size_t i = 0; i < r->n_nodes; i++) {
		const struct node_row *n = &r->nodes[i];

		if (n->stage != stage)
			buf_printf(b, "%s- %s: ", i ? "\n" : "", stage_kind_name(n->kind));
		else
			buf_str(b, ", ");
		stage = n->stage;
		md_text(b, n->node);
		buf_printf(b, " (%d)", n->blocks);
	}
	buf_char(b, '\n');
}
