/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps 4 and 5, and what came out of them: verdicts, the fix, the refuted. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"

/* -- 4 validation ----------------------------------------------------------------------------- */

static void cell_p(struct doc *doc, double p)
{
	if (isfinite(p))
		doc_cell_printf(doc, "%.3g", p);
	else
		doc_cell(doc, _("unknown"));
}

/* A look that decides nothing has a word of its own. */
static const char *outcome_word(const char *outcome)
{
	return str_eq(outcome, "continue") ? P_("look", "continue")
					   : lang_word("verdict_outcome", outcome);
}

static void looks_table(const struct report_hypothesis *h, struct doc *doc)
{
	static const struct doc_column c[] = {{"look", true},    {"pairs", true},
					      {"effect", true},  {"interval", true},
					      {"p", true},       {"bound of p", true},
					      {"outcome", false}};

	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < h->n_looks; i++) {
		const struct verdict_row *v = &h->looks[i];

		doc_row(doc);
		doc_cell_i64(doc, v->look);
		doc_cell_i64(doc, v->n);
		doc_cell_percent(doc, v->est, 1);
		doc_cell_interval(doc, v->lo, v->hi);
		cell_p(doc, v->p);
		cell_p(doc, v->p_star);
		doc_cell(doc, outcome_word(v->outcome));
	}
}

static void effects_table(const struct report *r, const struct report_hypothesis *h,
			  struct doc *doc)
{
	static const struct doc_column c[] = {{"other metric", false}, {"before", true},
					      {"after", true},         {"change", true},
					      {"unit", false},         {"direction", false}};
	static const char *const words[] = {N_("worse"), "-", N_("better")};

	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < h->n_effects; i++) {
		const struct report_effect *f = &h->effects[i];

		if (str_eq(f->metric, r->recipe->objective))
			continue;
		doc_row(doc);
		doc_cell_code(doc, f->metric);
		doc_cell_number(doc, f->base);
		doc_cell_number(doc, f->treatment);
		doc_cell_percent(doc, f->change, 1);
		doc_cell(doc, report_unit_of(f->metric));
		doc_cell(doc, _(words[report_judge(f->metric, f->change) + 1]));
	}
}

/* Rows of a verdict, or of a stage of the fix; the other is 0. */
static void guards_table(const struct guard_row *v, size_t n, int64_t verdict, int64_t stage,
			 struct doc *doc)
{
	static const struct doc_column c[] = {{"guard", false},    {"rule", false},
					      {"at equal", false}, {"n", true},
					      {"value", true},     {"worse by", true},
					      {"interval", true},  {"bound", true},
					      {"state", false}};
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const struct guard_row *g = &v[i];

		if (g->verdict != verdict || g->stage != stage)
			continue;
		if (!any) {
			doc_table(doc, c, ARRAY_LEN(c));
		}
		any = true;
		doc_row(doc);
		doc_cell_begin(doc);
		doc_printf(doc, "`%s` (%s)", g->metric, g->stat);
		doc_cell_end(doc);
		doc_cell_recorded(doc, g->rule);
		doc_cell_recorded(doc, g->equal);
		doc_cell_i64(doc, g->n);
		doc_cell_number(doc, g->value);
		doc_cell_percent(doc, g->worsening, 2);
		doc_cell_interval(doc, g->lo, g->hi);
		if (str_eq(g->rule, "margin"))
			doc_cell_percent(doc, g->bound, 2);
		else
			doc_cell_number(doc, g->bound);
		doc_cell_recorded(doc, g->state);
	}
}

static void proof(const struct report_hypothesis *h, struct doc *doc)
{
	doc_item(doc);
	doc_printf(doc, "Proof: asked for %s; shown: ",
		   lang_word("proof_level", proof_level_name(h->row.proof)));
	if (h->n_proofs == 0)
		doc_str(doc, "nothing");
	for (size_t i = 0; i < h->n_proofs; i++) {
		const struct shown_row *p = &h->proofs[i];

		if (i)
			doc_str(doc, "; ");
		doc_printf(doc,
			   _n("`%s` = `%s` (%s, %lld time)", "`%s` = `%s` (%s, %lld times)", p->n),
			   p->key, p->value, lang_word("proof_level", proof_level_name(p->level)),
			   (long long)p->n);
	}
	if (h->has_verdict && h->verdict.effect_unproved) {
		doc_str(doc, ". ");
		doc_strong(doc, _("Effect unproved:"));
		doc_str(doc, " the knob is the campaign's own and only its delivery was shown");
	}
	doc_str(doc, ".");
}

static void logs(const struct report *r, const struct report_hypothesis *h, struct doc *doc)
{
	const struct report_stage *s;

	if (h->stage < 0 || (size_t)h->stage >= r->n_stages)
		return;
	s = &r->stages[h->stage];
	doc_item(doc);
	doc_str(doc, "Raw logs, below the workspace: ");
	for (size_t i = 0; i < s->dirs.n; i++) {
		if (i)
			doc_str(doc, ", ");
		doc_code(doc, s->dirs.v[i]);
	}
	doc_str(doc, s->dirs.n ? "." : "none.");
}

static const char *base_of(const struct report *r, const struct report_hypothesis *h)
{
	const struct report_stage *s = h->stage >= 0 && (size_t)h->stage < r->n_stages
					       ? &r->stages[h->stage]
					       : NULL;

	return s && s->n_arms ? s->arms[0].config_text : NULL;
}

static void expected(const struct hypothesis_row *h, struct doc *doc)
{
	char text[DOC_FIGURES_MAX];

	doc_item(doc);
	if (isfinite(h->gain))
		doc_printf(doc, "Expected: %s", doc_percent_text(text, h->gain, 1));
	else
		doc_str(doc, "Expected: a gain of unknown size");
	if (isfinite(h->ceiling))
		doc_printf(doc, ", at most %s", doc_percent_text(text, h->ceiling, 1));
	if (h->evidence && *h->evidence) {
		_cleanup_free_ char *evidence = recorded_text(h->evidence);

		doc_printf(doc, "; %s", evidence);
	}
	doc_str(doc, ".");
}

static void changed(const struct report *r, const struct report_hypothesis *h, struct doc *doc)
{
	const struct knob *k = recipe_knob(r->recipe, h->row.knob);
	const char *base = base_of(r, h);

	doc_item(doc);
	doc_str(doc, "Changed: ");
	tlog_change(doc, &h->row);
	if (k)
		doc_printf(doc, ", passed as %s `%s`", lang_word("knob_how", knob_how_name(k->how)),
			   k->target);
	doc_printf(doc, ", class %s", lang_word("knob_class", knob_class_name(h->row.cls)));
	if (base)
		doc_printf(doc, "; everything else as in `%s`", base);
	doc_str(doc, ".");
	expected(&h->row, doc);
}

static void actual(const struct report_hypothesis *h, struct doc *doc)
{
	const struct verdict_row *v = &h->looks[h->n_looks - 1];
	_cleanup_free_ char *outcome = xasprintf(
		v->pending_convergence ? _("%s, pending convergence") : "%s",
		h->has_verdict ? outcome_word(v->outcome) : P_("verdict", "open"));
	char text[DOC_FIGURES_MAX];

	doc_item(doc);
	if (v->n > 0)
		doc_printf(doc, "Actual: %s over %d pairs",
			   doc_effect_text(text, v->est, v->lo, v->hi), v->n);
	else
		doc_str(doc, "Actual: nothing was compared");
	if (isfinite(v->sign_flip_p))
		doc_printf(doc, " (sign-flip p %.3g)", v->sign_flip_p);
	doc_str(doc, ".");
	doc_item(doc);
	doc_printf(doc, "Verdict: **%s**", outcome);
	if (v->reason) {
		_cleanup_free_ char *reason = recorded_text(v->reason);

		doc_printf(doc, ": %s", reason);
	}
	doc_printf(doc, "; alpha spent %.4g.", v->alpha_spent);
}

static void validation_of(const struct report *r, const struct report_hypothesis *h, size_t number,
			  struct doc *doc)
{
	int nodes = r->recipe->resources.nodes;

	doc_heading(doc, 3);
	doc_printf(doc, "4.%zu ", number);
	tlog_change(doc, &h->row);
	doc_printf(doc, ": %s",
		   h->has_verdict ? outcome_word(h->verdict.outcome) : P_("verdict", "open"));
	changed(r, h, doc);
	actual(h, doc);
	proof(h, doc);
	doc_item(doc);
	doc_printf(doc, "Cost: %.0f s of trials", h->trial_s);
	tlog_node_cost(r, h->trial_s * (nodes > 0 ? nodes : 1), doc);
	doc_str(doc, ".");
	logs(r, h, doc);
	looks_table(h, doc);
	guards_table(r->guards, r->n_guards, h->looks[h->n_looks - 1].id, 0, doc);
	if (h->n_effects)
		effects_table(r, h, doc);
}

void tlog_validation(const struct report *r, struct doc *doc)
{
	size_t n = 0;

	if (!tlog_tests(r))
		return;
	doc_title(doc, 2, "4. Validation");
	doc_say(doc,
		"On fresh blocks, until the sequential rule decides. "
		"Effects are relative, + is better; intervals are those that the verdict rests "
		"on: a side errs with at most the stage's alpha, over all looks.");
	for (size_t i = 0; i < r->n_hyps; i++)
		if (r->hyps[i].n_looks)
			validation_of(r, &r->hyps[i], ++n, doc);
	if (n == 0)
		doc_say(doc, "Nothing was tested.");
}

/* -- 5 fixing --------------------------------------------------------------------------------- */

static void fingerprint(const char *text, struct doc *doc)
{
	static const struct doc_column c[] = {{"environment", false}, {"", false}};
	_cleanup_(json_freep) struct json *j = NULL;

	if (!text || json_parse("fingerprint", text, strlen(text), &j, NULL) < 0)
		return;
	doc_say(doc, "The fix holds for this environment and expires when it changes:");
	doc_table(doc, c, ARRAY_LEN(c));
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		_cleanup_free_ char *value = json_type(m) == JSON_STRING ? xstrdup(json_text(m, ""))
									 : json_print(m, false);

		doc_row(doc);
		doc_cell(doc, json_key(m));
		doc_cell(doc, value);
	}
}

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
				     ? "Nothing was accepted: the default stays."
				     : "Not reached.");
	for (size_t i = 0; i < r->n_stages; i++) {
		if (!in_step_5(r->stages[i].kind))
			continue;
		tlog_stage(&r->stages[i], doc);
		tlog_arms(r, &r->stages[i], doc);
		guards_table(r->fix_guards, r->n_fix_guards, 0, r->stages[i].id, doc);
	}
	tlog_ablation(r, doc);
	tlog_nodes(r, doc);
	tlog_hosts(r, doc);
	if (r->has_fix)
		fingerprint(r->fix.fingerprint, doc);
}

/* -- what was found, what was not ------------------------------------------------------------- */

/* Tested hypotheses that were not accepted: refuted ones, or those that allow no judgement. */
static bool negative(const struct report_hypothesis *h, bool judged)
{
	enum verdict_outcome o;

	if (!h->has_verdict || !verdict_outcome_parse(h->verdict.outcome, &o) ||
	    o == VERDICT_ACCEPTED)
		return false;
	return (o != VERDICT_INVALID && o != VERDICT_INCONCLUSIVE) == judged;
}

void tlog_ranking(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"knob", false},
					      {"change", false},
					      {"effect", true},
					      {"interval", true},
					      {"verdict", false}};
	_cleanup_free_ size_t *order = xcalloc(r->n_hyps + 1, sizeof *order);
	size_t n = report_ranking(r, order);

	if (n == 0 || !tlog_tests(r))
		return;
	doc_title(doc, 2, "Knobs by their effect");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < n; i++) {
		const struct report_hypothesis *h = &r->hyps[order[i]];

		doc_row(doc);
		tlog_cell_change(doc, &h->row);
		doc_cell_percent(doc, h->verdict.est, 1);
		doc_cell_interval(doc, h->verdict.lo, h->verdict.hi);
		doc_cell(doc, outcome_word(h->verdict.outcome));
	}
}

static const char *reason_of(const struct report_hypothesis *h)
{
	return h->has_verdict && h->verdict.reason ? h->verdict.reason : h->row.reason;
}

static void list_item(const struct report_hypothesis *h, struct doc *doc)
{
	_cleanup_free_ char *why = recorded_text(reason_of(h));

	doc_item(doc);
	tlog_change(doc, &h->row);
	doc_printf(doc, ": %s", tlog_outcome(h));
	if (h->has_verdict && h->verdict.n > 0) {
		doc_str(doc, ", ");
		doc_effect(doc, h->verdict.est, h->verdict.lo, h->verdict.hi);
	}
	if (why)
		doc_printf(doc, ": %s", why);
}

static void negative_list(const struct report *r, bool judged, struct doc *doc)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_hyps; i++)
		if (negative(&r->hyps[i], judged) && ++n)
			list_item(&r->hyps[i], doc);
	if (n == 0)
		doc_say(doc, "Nothing.");
}

void tlog_negatives(const struct report *r, struct doc *doc)
{
	size_t n = 0;

	if (r->recipe->canary.blocks)
		return;
	doc_title(doc, 2, "What was refuted");
	negative_list(r, true, doc);
	doc_title(doc, 2, "What could not be judged");
	negative_list(r, false, doc);
	doc_title(doc, 2, "What was screened out or not tried, and why");
	for (size_t i = 0; i < r->n_hyps; i++)
		if (r->hyps[i].row.state != HYP_TESTED && ++n)
			list_item(&r->hyps[i], doc);
	if (n == 0)
		doc_say(doc, "Nothing was left out.");
}
