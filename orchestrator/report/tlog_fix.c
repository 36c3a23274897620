/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Step 5: the fix, measured anew. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"

/* The newest look at it in another environment. */
static void revalidated(const struct report *r, struct doc *doc)
{
	for (size_t i = 0; i < r->n_canaries; i++) {
		const struct report_canary *c = &r->canaries[i];
		_cleanup_free_ char *note = NULL;

		if (c->row.purpose != CANARY_REVALIDATE)
			continue;
		note = recorded_text(report_canary_note(c));
		doc_item(doc);
		doc_printf(doc, "In another environment: %s", note);
		return;
	}
}

static void fix_state(const struct fix_row *f, struct doc *doc)
{
	_cleanup_free_ char *state = recorded_text(f->state), *reason = recorded_text(f->reason);

	doc_item(doc);
	doc_printf(doc, "State: **%s**", state);
	if (reason)
		doc_printf(doc, ": %s", reason);
}

static void fix_lines(const struct report *r, struct doc *doc)
{
	_cleanup_free_ char *text = config_text(&r->fix_config);
	char figures[DOC_FIGURES_MAX];

	doc_item(doc);
	doc_printf(doc, "Configuration: `%s`", text);
	fix_state(&r->fix, doc);
	doc_item(doc);
	doc_printf(
		doc,
		"Against the original default: %s over %d fresh pairs, a number fixed beforehand",
		doc_effect_text(figures, r->fix.est, r->fix.lo, r->fix.hi), r->fix.n);
	if (isfinite(r->final_mean))
		doc_printf(doc, " (%s %s)", doc_number_text(figures, r->final_mean),
			   r->unit ? r->unit : "");
	doc_item(doc);
	doc_printf(doc, "Drift in the soak: %s", doc_percent_text(figures, r->fix.soak_drift, 2));
	doc_item(doc);
	doc_printf(doc, "Fixed: %s", doc_time_text(figures, r->fix.at_us));
	revalidated(r, doc);
}

static bool in_step_5(enum stage_kind k)
{
	return k == STAGE_ABLATE || k == STAGE_FINAL || k == STAGE_SOAK || k == STAGE_CONVERGE;
}

void tlog_fixing(const struct report *r, struct doc *doc)
{
	if (!tlog_tests(r))
		return;
	doc_title(doc, 2, "5. Fixing");
	if (r->has_fix)
		fix_lines(r, doc);
	else
		doc_say(doc, r->campaign.state == CAMPAIGN_DONE
				     ? _("Nothing was accepted: the default stays.")
				     : _("Not reached."));
	for (size_t i = 0; i < r->n_stages; i++) {
		if (!in_step_5(r->stages[i].kind))
			continue;
		tlog_stage(&r->stages[i], doc);
		tlog_arms(r, &r->stages[i], doc);
		tlog_guards(r->fix_guards, r->n_fix_guards, 0, r->stages[i].id, doc);
		if (r->stages[i].kind == STAGE_FINAL)
			tlog_effects(r, &r->fix_effects, doc);
	}
}
