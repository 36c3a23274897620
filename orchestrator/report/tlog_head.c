/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who ran what, and what was asked for. */
#include <math.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/tlog.h"

/* Names are a system's: no marks to escape in them. */
static void who(const struct report *r, struct doc *doc)
{
	struct buf others = {0};

	for (size_t i = 0; i < r->submitters.n; i++)
		buf_printf(&others, "%s%s", i ? ", " : "", r->submitters.v[i]);
	if (r->campaign.user && others.len)
		doc_printf(doc, "Begun by %s; jobs were also submitted by %s.\n", r->campaign.user,
			   others.data);
	else if (r->campaign.user)
		doc_printf(doc, "Begun by %s.\n", r->campaign.user);
	buf_free(&others);
}

void tlog_head(const struct report *r, struct doc *doc)
{
	const struct campaign_row *c = &r->campaign;
	char begun[DOC_FIGURES_MAX], ended[DOC_FIGURES_MAX];

	doc_heading(doc, 1);
	doc_printf(doc, "Tuning log: %s", c->name);
	doc_para(doc);
	doc_printf(doc, "Campaign %lld, %s, mode %s, scheduler %s; begun %s", (long long)c->id,
		   lang_word("campaign_state", campaign_state_name(c->state)),
		   lang_word("run_mode", run_mode_name(c->mode)), c->scheduler,
		   doc_time_text(begun, c->created_us));
	if (c->ended_us > 0)
		doc_printf(doc, ", ended %s", doc_time_text(ended, c->ended_us));
	doc_printf(doc, ".\nWorkspace `%s`.\n", r->workspace);
	who(r, doc);
}

static void guard_text(const struct guard *g, struct doc *doc)
{
	const char *unit = report_unit_of(g->metric);
	bool any = false;

	doc_printf(doc, "`%s` (%s)", g->metric, g->stat);
	if (isfinite(g->margin)) {
		doc_printf(doc, " at most %.1f %% worse", 100 * g->margin);
		any = true;
	}
	if (isfinite(g->at_most)) {
		doc_str(doc, any ? _(", ") : _(" "));
		doc_printf(doc, "at most %.6g %s", g->at_most, unit);
		any = true;
	}
	if (isfinite(g->at_least)) {
		doc_str(doc, any ? _(", ") : _(" "));
		doc_printf(doc, "at least %.6g %s", g->at_least, unit);
	}
}

static void objective(const struct report *r, struct doc *doc)
{
	const struct recipe *p = r->recipe;
	const char *better = p->better == BETTER_DOWN ? _("less is better") : _("more is better");

	if (r->unit && *r->unit)
		doc_printf(doc, "Objective: `%s` (%s over the window, %s, %s).\n", p->objective,
			   p->objective_stat, r->unit, better);
	else
		doc_printf(doc, "Objective: `%s` (%s over the window, %s).\n", p->objective,
			   p->objective_stat, better);
}

const char *tlog_target_word(enum report_target t)
{
	switch (t) {
	case TARGET_NONE:
		return P_("target", "none");
	case TARGET_MET:
		return P_("target", "met");
	case TARGET_MISSED:
		return P_("target", "missed");
	case TARGET_OPEN:
		return P_("target", "open");
	}
	return "";
}

static void target(const struct report *r, struct doc *doc)
{
	bool fixed = isfinite(r->final_mean);
	const char *unit = r->unit ? r->unit : "";
	char goal[DOC_FIGURES_MAX], mean[DOC_FIGURES_MAX], lo[DOC_FIGURES_MAX], hi[DOC_FIGURES_MAX];

	if (r->target == TARGET_NONE) {
		doc_str(doc, "The campaign names no target.\n");
		return;
	}
	doc_number_text(goal, r->recipe->target);
	doc_number_text(mean, fixed ? r->final_mean : r->base_mean);
	doc_printf(doc, "Target: %s %s: **%s**", goal, unit, tlog_target_word(r->target));
	doc_printf(doc,
		   fixed ? _(" (%s %s measured in the final stage")
			 : _(" (%s %s measured in the baseline"),
		   mean, unit);
	if (isfinite(r->target_lo) && isfinite(r->target_hi)) {
		doc_printf(doc, ", 95 %% interval of the mean %s to %s",
			   doc_number_text(lo, r->target_lo), doc_number_text(hi, r->target_hi));
		if (r->target == TARGET_OPEN)
			doc_str(doc, ", which holds the target");
	}
	doc_str(doc, ").\n");
}

void tlog_target(const struct report *r, struct doc *doc)
{
	const struct recipe *p = r->recipe;
	char least[DOC_FIGURES_MAX];

	doc_title(doc, 2, "Target");
	doc_para(doc);
	objective(r, doc);
	target(r, doc);
	doc_printf(doc, "Smallest useful gain: %s.\n", doc_percent_text(least, p->min_effect, 1));
	if (p->better == BETTER_DOWN)
		doc_str(doc, "Less is better: a gain of +25 % is a value that is 1.25 times "
			     "smaller.\n");
	for (size_t i = 0; i < p->n_guards; i++) {
		doc_str(doc, i ? _("; ") : _("Guards: "));
		guard_text(&p->guards[i], doc);
	}
	doc_str(doc, p->n_guards ? _(".\n") : _("Guards: none declared; failures always count.\n"));
}
