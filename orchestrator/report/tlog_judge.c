/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Step 4: each tested hypothesis, whatever became of it. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"

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
	size_t gone = 0;

	if (h->stage < 0 || (size_t)h->stage >= r->n_stages)
		return;
	s = &r->stages[h->stage];
	doc_item(doc);
	doc_str(doc, "Raw logs, below the workspace: ");
	for (size_t i = 0; i < s->dirs.n; i++) {
		if (i)
			doc_str(doc, ", ");
		gone += !tlog_log(r, s->dirs.v[i], doc);
	}
	doc_str(doc, s->dirs.n ? _(".") : _("none."));
	if (r->archives.n)
		tlog_packed(r, doc);
	else if (gone && gone == s->dirs.n)
		doc_str(doc, " They are gone.");
	else if (gone)
		doc_printf(doc, " Without a link: gone (%zu of %zu).", gone, s->dirs.n);
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
	_cleanup_free_ char *bundle = report_bundle(r, &h->row);
	const char *base = base_of(r, h);

	doc_item(doc);
	doc_str(doc, "Changed: ");
	tlog_change(doc, &h->row);
	if (bundle)
		doc_printf(doc, " (a bundle, credited as a whole: %s)", bundle);
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

static void cost(const struct report *r, const struct report_effects *x, struct doc *doc)
{
	int nodes = r->recipe->resources.nodes > 0 ? r->recipe->resources.nodes : 1;

	doc_item(doc);
	if (x->trial_s > 0) {
		doc_printf(doc, "Cost: %.0f s of trials", x->trial_s);
		tlog_node_cost(r, x->trial_s * nodes, doc);
		doc_str(doc, ".");
	} else {
		doc_str(doc, "Cost: none of its own; it ended in the screen.");
	}
}

static void validation_of(const struct report *r, const struct report_hypothesis *h, size_t number,
			  struct doc *doc)
{
	doc_heading(doc, 3);
	doc_printf(doc, "4.%zu ", number);
	tlog_change(doc, &h->row);
	doc_printf(doc, ": %s",
		   h->has_verdict ? outcome_word(h->verdict.outcome) : P_("verdict", "open"));
	changed(r, h, doc);
	actual(h, doc);
	proof(h, doc);
	cost(r, &h->effects, doc);
	logs(r, h, doc);
	looks_table(h, doc);
	tlog_guards(r->guards, r->n_guards, h->looks[h->n_looks - 1].id, 0, doc);
	tlog_effects(r, &h->effects, doc);
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
