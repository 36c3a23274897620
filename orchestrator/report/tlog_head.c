/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who ran what, the story in words, and what was asked for. */
#include <math.h>
#include <string.h>

#include "orchestrator/report/doc.h"
#include "orchestrator/report/tlog.h"

void tlog_head(const struct report *r, struct doc *doc)
{
	const struct campaign_row *c = &r->campaign;

	doc_heading(doc, 1);
	doc_str(doc, "Tuning log: ");
	doc_text(doc, c->name);
	doc_para(doc);
	doc_printf(doc, "Campaign %lld, %s, mode %s, scheduler ", (long long)c->id,
		   campaign_state_name(c->state), run_mode_name(c->mode));
	doc_text(doc, c->scheduler);
	doc_str(doc, "; begun ");
	doc_time(doc, c->created_us);
	if (c->ended_us > 0) {
		doc_str(doc, ", ended ");
		doc_time(doc, c->ended_us);
	}
	doc_str(doc, ".\nWorkspace ");
	doc_code(doc, r->workspace);
	doc_str(doc, ".\n");
}

/* The summary's lines as a list; what it indents is a list below. */
void tlog_summary(const struct report *r, struct doc *doc)
{
	struct buf text = {0};

	report_summary(r, &text);
	doc_title(doc, 2, "In short");
	for (char *line = text.data; line && *line;) {
		size_t n = strcspn(line, "\n");
		bool inner = str_starts(line, "  ");
		bool more = line[n] == '\n';

		line[n] = '\0';
		if (inner)
			doc_subitem(doc);
		else
			doc_item(doc);
		doc_text(doc, line + strspn(line, " "));
		line += n + more;
	}
	buf_free(&text);
}

static void guard_text(const struct guard *g, struct doc *doc)
{
	const char *unit = report_unit_of(g->metric), *sep = "";

	doc_printf(doc, " (%s)", g->stat);
	if (isfinite(g->margin)) {
		doc_printf(doc, " at most %.1f %% worse", 100 * g->margin);
		sep = ",";
	}
	if (isfinite(g->at_most)) {
		doc_printf(doc, "%s at most %.6g %s", sep, g->at_most, unit);
		sep = ",";
	}
	if (isfinite(g->at_least))
		doc_printf(doc, "%s at least %.6g %s", sep, g->at_least, unit);
}

void tlog_target(const struct report *r, struct doc *doc)
{
	const struct recipe *p = r->recipe;
	bool fixed = isfinite(r->final_mean);

	doc_title(doc, 2, "Target");
	doc_para(doc);
	doc_str(doc, "Objective: ");
	doc_code(doc, p->objective);
	doc_printf(doc, " (%s over the window%s%s, %s).\n", p->objective_stat,
		   r->unit && *r->unit ? ", " : "", r->unit ? r->unit : "",
		   p->better == BETTER_DOWN ? "less is better" : "more is better");
	if (r->target == TARGET_NONE) {
		doc_str(doc, "The campaign names no target.\n");
	} else {
		doc_str(doc, "Target: ");
		doc_number(doc, p->target);
		doc_printf(doc, " %s: ", r->unit ? r->unit : "");
		doc_strong(doc, report_target_name(r->target));
		doc_str(doc, " (");
		doc_number(doc, fixed ? r->final_mean : r->base_mean);
		doc_printf(doc, " %s measured %s", r->unit ? r->unit : "",
			   fixed ? "in the final stage" : "in the baseline");
		if (isfinite(r->target_lo) && isfinite(r->target_hi)) {
			doc_str(doc, ", 95 % interval of the mean ");
			doc_number(doc, r->target_lo);
			doc_str(doc, " to ");
			doc_number(doc, r->target_hi);
			doc_str(doc, r->target == TARGET_OPEN ? ", which holds the target" : "");
		}
		doc_str(doc, ").\n");
	}
	doc_str(doc, "Smallest useful gain: ");
	doc_percent(doc, p->min_effect, 1);
	doc_str(doc, ".\n");
	for (size_t i = 0; i < p->n_guards; i++) {
		doc_str(doc, i ? "; " : "Guards: ");
		doc_code(doc, p->guards[i].metric);
		guard_text(&p->guards[i], doc);
	}
	doc_str(doc, p->n_guards ? ".\n" : "Guards: none declared; failures always count.\n");
}
