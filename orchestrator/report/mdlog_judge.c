/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps 4 and 5, and what came out of them: verdicts, the fix, the refuted. */
#include "orchestrator/report/mdlog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/markdown.h"

/* -- 4 validation ----------------------------------------------------------------------------- */

static void cell_p(struct buf *b, double p)
{
	if (isfinite(p))
		buf_printf(b, " %.3g |", p);
	else
		md_cell(b, "unknown");
}

static void looks_table(const struct report_hypothesis *h, struct buf *b)
{
	static const struct md_column c[] = {{"look", true},    {"pairs", true},
					     {"effect", true},  {"interval", true},
					     {"p", true},       {"bound of p", true},
					     {"outcome", false}};

	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < h->n_looks; i++) {
		const struct verdict_row *v = &h->looks[i];

		md_row(b);
		md_cell_i64(b, v->look);
		md_cell_i64(b, v->n);
		md_cell_percent(b, v->est, 1);
		buf_char(b, ' ');
		md_interval(b, v->lo, v->hi);
		buf_str(b, " |");
		cell_p(b, v->p);
		cell_p(b, v->p_star);
		md_cell(b, v->outcome);
		md_row_end(b);
	}
}

static void effects_table(const struct report *r, const struct report_hypothesis *h, struct buf *b)
{
	static const struct md_column c[] = {{"other metric", false}, {"before", true},
					     {"after", true},         {"change", true},
					     {"unit", false},         {"direction", false}};
	static const char *const words[] = {"worse", "-", "better"};

	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < h->n_effects; i++) {
		const struct report_effect *f = &h->effects[i];

		if (str_eq(f->metric, r->recipe->objective))
			continue;
		md_row(b);
		md_cell_code(b, f->metric);
		md_cell_number(b, f->base);
		md_cell_number(b, f->treatment);
		md_cell_percent(b, f->change, 1);
		md_cell(b, report_unit_of(f->metric));
		md_cell(b, words[report_judge(f->metric, f->change) + 1]);
		md_row_end(b);
	}
}

/* Rows of a verdict, or of a stage of the fix; the other is 0. */
static void guards_table(const struct guard_row *v, size_t n, int64_t verdict, int64_t stage,
			 struct buf *b)
{
	static const struct md_column c[] = {{"guard", false},    {"rule", false},
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
			buf_char(b, '\n');
			md_table(b, c, ARRAY_LEN(c));
		}
		any = true;
		md_row(b);
		buf_printf(b, " `%s` (%s) |", g->metric, g->stat);
		md_cell(b, g->rule);
		md_cell(b, g->equal);
		md_cell_i64(b, g->n);
		md_cell_number(b, g->value);
		md_cell_percent(b, g->worsening, 2);
		buf_char(b, ' ');
		md_interval(b, g->lo, g->hi);
		buf_str(b, " |");
		if (str_eq(g->rule, "margin"))
			md_cell_percent(b, g->bound, 2);
		else
			md_cell_number(b, g->bound);
		md_cell(b, g->state);
		md_row_end(b);
	}
}

static void proof(const struct report_hypothesis *h, struct buf *b)
{
	buf_printf(b, "- Proof: asked for %s; shown: ", proof_level_name(h->row.proof));
	if (h->n_proofs == 0)
		buf_str(b, "nothing");
	for (size_t i = 0; i < h->n_proofs; i++) {
		const struct shown_row *p = &h->proofs[i];

		buf_str(b, i ? "; " : "");
		md_code(b, p->key);
		buf_str(b, " = ");
		md_code(b, p->value);
		buf_printf(b, " (%s, %lld time%s)", proof_level_name(p->level), (long long)p->n,
			   p->n == 1 ? "" : "s");
	}
	if (h->has_verdict && h->verdict.effect_unproved)
		buf_str(b, ". **Effect unproved:** the knob is the campaign's own and only its "
			   "delivery "
			   "was shown");
	buf_str(b, ".\n");
}

static void logs(const struct report *r, const struct report_hypothesis *h, struct buf *b)
{
	const struct report_stage *s;

	if (h->stage < 0 || (size_t)h->stage >= r->n_stages)
		return;
	s = &r->stages[h->stage];
	buf_str(b, "- Raw logs, below the workspace: ");
	for (size_t i = 0; i < s->dirs.n; i++) {
		buf_str(b, i ? ", " : "");
		md_code(b, s->dirs.v[i]);
	}
	buf_str(b, s->dirs.n ? ".\n" : "none.\n");
}

static const char *base_of(const struct report *r, const struct report_hypothesis *h)
{
	const struct report_stage *s = h->stage >= 0 && (size_t)h->stage < r->n_stages
					       ? &r->stages[h->stage]
					       : NULL;

	return s && s->n_arms ? s->arms[0].config_text : NULL;
}

static void expected(const struct hypothesis_row *h, struct buf *b)
{
	buf_str(b, "- Expected: ");
	if (isfinite(h->gain))
		md_percent(b, h->gain, 1);
	else
		buf_str(b, "a gain of unknown size");
	if (isfinite(h->ceiling)) {
		buf_str(b, ", at most ");
		md_percent(b, h->ceiling, 1);
	}
	if (h->evidence && *h->evidence) {
		buf_str(b, "; ");
		md_text(b, h->evidence);
	}
	buf_str(b, ".\n");
}

static void changed(const struct report *r, const struct report_hypothesis *h, struct buf *b)
{
	const struct knob *k = recipe_knob(r->recipe, h->row.knob);
	const char *base = base_of(r, h);

	buf_str(b, "- Changed: ");
	mdlog_change(b, &h->row);
	if (k) {
		buf_printf(b, ", passed as %s ", knob_how_name(k->how));
		md_code(b, k->target);
	}
	buf_printf(b, ", class %s", knob_class_name(h->row.cls));
	if (base) {
		buf_str(b, "; everything else as in ");
		md_code(b, base);
	}
	buf_str(b, ".\n");
	expected(&h->row, b);
}

static void actual(const struct report_hypothesis *h, struct buf *b)
{
	const struct verdict_row *v = &h->looks[h->n_looks - 1];

	buf_str(b, "- Actual: ");
	if (v->n > 0)
		md_effect(b, v->est, v->lo, v->hi);
	else
		buf_str(b, "nothing was compared");
	if (v->n > 0)
		buf_printf(b, " over %d pairs", v->n);
	if (isfinite(v->sign_flip_p))
		buf_printf(b, " (sign-flip p %.3g)", v->sign_flip_p);
	buf_str(b, ".\n- Verdict: **");
	md_text(b, h->has_verdict ? v->outcome : "open");
	buf_str(b, v->pending_convergence ? ", pending convergence**" : "**");
	if (v->reason) {
		buf_str(b, ": ");
		md_text(b, v->reason);
	}
	buf_printf(b, "; alpha spent %.4g.\n", v->alpha_spent);
}

static void validation_of(const struct report *r, const struct report_hypothesis *h, size_t number,
			  struct buf *b)
{
	int nodes = r->recipe->resources.nodes;

	buf_printf(b, "\n### 4.%zu ", number);
	mdlog_change(b, &h->row);
	buf_str(b, ": ");
	md_text(b, h->has_verdict ? h->verdict.outcome : "open");
	buf_str(b, "\n\n");
	changed(r, h, b);
	actual(h, b);
	proof(h, b);
	buf_printf(b, "- Cost: %.0f s of trials", h->trial_s);
	mdlog_node_cost(r, h->trial_s * (nodes > 0 ? nodes : 1), b);
	buf_str(b, ".\n");
	logs(r, h, b);
	looks_table(h, b);
	guards_table(r->guards, r->n_guards, h->looks[h->n_looks - 1].id, 0, b);
	if (h->n_effects)
		effects_table(r, h, b);
}

void mdlog_validation(const struct report *r, struct buf *b)
{
	size_t n = 0;

	buf_str(b, "\n## 4. Validation\n\nOn fresh blocks, until the sequential rule decides. "
		   "Effects are relative, + is better; intervals are those that the verdict rests "
		   "on: a side errs with at most the stage's alpha, over all looks.\n");
	for (size_t i = 0; i < r->n_hyps; i++)
		if (r->hyps[i].n_looks)
			validation_of(r, &r->hyps[i], ++n, b);
	if (n == 0)
		buf_str(b, "\nNothing was tested.\n");
}

/* -- 5 fixing --------------------------------------------------------------------------------- */

static void fingerprint(const char *text, struct buf *b)
{
	static const struct md_column c[] = {{"environment", false}, {"", false}};
	_cleanup_(json_freep) struct json *j = NULL;

	if (!text || json_parse("fingerprint", text, strlen(text), &j, NULL) < 0)
		return;
	buf_str(b, "\nThe fix holds for this environment and expires when it changes:\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		_cleanup_free_ char *value = json_type(m) == JSON_STRING ? xstrdup(json_text(m, ""))
									 : json_print(m, false);

		md_row(b);
		md_cell(b, json_key(m));
		md_cell(b, value);
		md_row_end(b);
	}
}

/* The newest look at it in another environment. */
static void revalidated(const struct report *r, struct buf *b)
{
	for (size_t i = 0; i < r->n_canaries; i++) {
		const struct report_canary *c = &r->canaries[i];

		if (c->row.purpose != CANARY_REVALIDATE)
			continue;
		buf_str(b, "- In another environment: ");
		md_text(b, report_canary_note(c));
		buf_char(b, '\n');
		return;
	}
}

static void fix_lines(const struct report *r, struct buf *b)
{
	_cleanup_free_ char *text = config_text(&r->fix_config);

	buf_str(b, "- Configuration: ");
	md_code(b, text);
	buf_str(b, "\n- State: **");
	md_text(b, r->fix.state);
	buf_str(b, "**");
	if (r->fix.reason) {
		buf_str(b, ": ");
		md_text(b, r->fix.reason);
	}
	buf_str(b, "\n- Against the original default: ");
	md_effect(b, r->fix.est, r->fix.lo, r->fix.hi);
	buf_printf(b, " over %d fresh pairs, a number fixed beforehand", r->fix.n);
	if (isfinite(r->final_mean)) {
		buf_str(b, " (");
		md_number(b, r->final_mean);
		buf_printf(b, " %s)", r->unit ? r->unit : "");
	}
	buf_str(b, "\n- Drift in the soak: ");
	md_percent(b, r->fix.soak_drift, 2);
	buf_str(b, "\n- Fixed: ");
	md_time(b, r->fix.at_us);
	buf_char(b, '\n');
	revalidated(r, b);
}

static bool in_step_5(enum stage_kind k)
{
	return k == STAGE_ABLATE || k == STAGE_FINAL || k == STAGE_SOAK || k == STAGE_CONVERGE;
}

void mdlog_fixing(const struct report *r, struct buf *b)
{
	buf_str(b, "\n## 5. Fixing\n\n");
	if (r->has_fix)
		fix_lines(r, b);
	else
		buf_str(b, r->campaign.state == CAMPAIGN_DONE
				   ? "Nothing was accepted: the default stays.\n"
				   : "Not reached.\n");
	for (size_t i = 0; i < r->n_stages; i++) {
		if (!in_step_5(r->stages[i].kind))
			continue;
		buf_char(b, '\n');
		mdlog_stage(&r->stages[i], b);
		mdlog_arms(r, &r->stages[i], b);
		guards_table(r->fix_guards, r->n_fix_guards, 0, r->stages[i].id, b);
	}
	mdlog_ablation(r, b);
	mdlog_nodes(r, b);
	mdlog_hosts(r, b);
	if (r->has_fix)
		fingerprint(r->fix.fingerprint, b);
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

void mdlog_ranking(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"knob", false},
					     {"change", false},
					     {"effect", true},
					     {"interval", true},
					     {"verdict", false}};
	_cleanup_free_ size_t *order = xcalloc(r->n_hyps + 1, sizeof *order);
	size_t n = report_ranking(r, order);

	if (n == 0)
		return;
	buf_str(b, "\n## Knobs by their effect\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < n; i++) {
		const struct report_hypothesis *h = &r->hyps[order[i]];

		md_row(b);
		mdlog_cell_change(b, &h->row);
		md_cell_percent(b, h->verdict.est, 1);
		buf_char(b, ' ');
		md_interval(b, h->verdict.lo, h->verdict.hi);
		buf_str(b, " |");
		md_cell(b, h->verdict.outcome);
		md_row_end(b);
	}
}

static const char *reason_of(const struct report_hypothesis *h)
{
	return h->has_verdict && h->verdict.reason ? h->verdict.reason : h->row.reason;
}

static void list_item(const struct report_hypothesis *h, struct buf *b)
{
	const char *why = reason_of(h);

	buf_str(b, "- ");
	mdlog_change(b, &h->row);
	buf_str(b, ": ");
	md_text(b, mdlog_outcome(h));
	if (h->has_verdict && h->verdict.n > 0) {
		buf_str(b, ", ");
		md_effect(b, h->verdict.est, h->verdict.lo, h->verdict.hi);
	}
	if (why) {
		buf_str(b, ": ");
		md_text(b, why);
	}
	buf_char(b, '\n');
}

static void negative_list(const struct report *r, bool judged, struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_hyps; i++)
		if (negative(&r->hyps[i], judged) && ++n)
			list_item(&r->hyps[i], b);
	buf_str(b, n ? "" : "Nothing.\n");
}

void mdlog_negatives(const struct report *r, struct buf *b)
{
	size_t n = 0;

	buf_str(b, "\n## What was refuted\n\n");
	negative_list(r, true, b);
	buf_str(b, "\n## What could not be judged\n\n");
	negative_list(r, false, b);
	buf_str(b, "\n## What was screened out or not tried, and why\n\n");
	for (size_t i = 0; i < r->n_hyps; i++)
		if (r->hyps[i].row.state != HYP_TESTED && ++n)
			list_item(&r->hyps[i], b);
	buf_str(b, n ? "" : "Nothing was left out.\n");
}
