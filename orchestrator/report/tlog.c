/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/derive.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"

tlog_section *const tlog_sections[] = {tlog_head,       tlog_summary,    tlog_story,
				       tlog_target,     tlog_baseline,   tlog_hypotheses,
				       tlog_experiment, tlog_validation, tlog_fixing,
				       tlog_ranking,    tlog_negatives,  tlog_canaries,
				       tlog_tradeoffs,  tlog_sizes,      tlog_environment,
				       tlog_record,     tlog_alpha,      tlog_cost,
				       tlog_unit_costs, tlog_reproduce,  NULL};

bool tlog_tests(const struct report *r)
{
	return !r->recipe->canary.blocks && r->recipe->ladder.n == 0;
}

const char *tlog_or_unset(const char *value)
{
	return value ? value : _("(not set)");
}

void tlog_change(struct doc *doc, const struct hypothesis_row *h)
{
	doc_printf(doc, "`%s` %s -> %s", h->knob, tlog_or_unset(h->from_value), h->value);
}

void tlog_cell_change(struct doc *doc, const struct hypothesis_row *h)
{
	_cleanup_free_ char *text = xasprintf("%s -> %s", tlog_or_unset(h->from_value), h->value);

	doc_cell_code(doc, h->knob);
	doc_cell(doc, text);
}

/* What became of it, in a few words. */
const char *tlog_outcome(const struct report_hypothesis *h)
{
	return h->has_verdict ? lang_word("verdict_outcome", h->verdict.outcome)
			      : _(report_state_text(h->row.state));
}

static const char *reason_of(const struct report_hypothesis *h)
{
	return h->has_verdict && h->verdict.reason ? h->verdict.reason : h->row.reason;
}

void tlog_verdict(const struct report_hypothesis *h, struct doc *doc)
{
	_cleanup_free_ char *why = recorded_text(reason_of(h));
	bool open = h->n_looks && !h->has_verdict;
	char effect[DOC_FIGURES_MAX];

	tlog_change(doc, &h->row);
	doc_printf(doc, ": **%s**", open ? P_("verdict", "open") : tlog_outcome(h));
	if (h->has_verdict && h->verdict.pending_convergence)
		doc_str(doc, ", pending convergence");
	if (h->has_verdict && h->verdict.n > 0)
		doc_printf(doc, ", %s over %d pairs",
			   doc_effect_text(effect, h->verdict.est, h->verdict.lo, h->verdict.hi),
			   h->verdict.n);
	if (h->has_verdict && isfinite(h->row.gain))
		doc_printf(doc, " (expected %s)", doc_percent_text(effect, h->row.gain, 1));
	if (h->has_verdict && h->verdict.effect_unproved)
		doc_str(doc, " (effect unproved)");
	if (why)
		doc_printf(doc, ": %s", why);
}

/* In the units that sites account in. */
void tlog_node_cost(const struct report *r, double node_s, struct doc *doc)
{
	double gpus = report_gpus_per_node(r), price = r->recipe->budget.gpu_hour_price;

	doc_printf(doc, ", %.3f node-hours", node_s / 3600);
	if (gpus > 0)
		doc_printf(doc, ", %.3f GPU-hours", node_s / 3600 * gpus);
	if (gpus > 0 && price > 0)
		doc_printf(doc, " that cost %.2f", derive_cost(node_s / 3600 * gpus, price));
}

bool tlog_log(const struct report *r, const char *path, struct doc *doc)
{
	_cleanup_free_ char *url = report_log_url(r, path);

	doc_link(doc, url, path);
	return url || !r->logs;
}

void tlog_stage(const struct report_stage *s, struct doc *doc)
{
	doc_para(doc);
	doc_printf(doc,
		   s->kind == STAGE_CONFIRM ? _("Stage %d, %s: %d of at most %d blocks valid")
					    : _("Stage %d, %s: %d of %d blocks valid"),
		   s->seq, lang_word("stage_kind", stage_kind_name(s->kind)), s->blocks_valid,
		   s->blocks_planned);
	if (s->blocks_void)
		doc_printf(doc,
			   _n(", %d attempt void or lost", ", %d attempts void or lost",
			      s->blocks_void),
			   s->blocks_void);
	doc_str(doc, s->open ? _("; still open.") : _("."));
	if (s->note) {
		_cleanup_free_ char *note = recorded_text(s->note);

		doc_printf(doc, "\nConclusion: %s.", note);
	}
}

void tlog_arms(const struct report *r, const struct report_stage *s, struct doc *doc)
{
	static const struct doc_column c[] = {{"arm", false},   {"configuration", false},
					      {"trials", true}, {"failed", true},
					      {"mean", true},   {"sd", true},
					      {"unit", false}};

	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < s->n_arms; i++) {
		const struct report_arm *a = &s->arms[i];

		doc_row(doc);
		doc_cell_recorded(doc, a->label);
		doc_cell_code(doc, a->config_text);
		doc_cell_i64(doc, (int64_t)a->n);
		doc_cell_i64(doc, (int64_t)a->failed);
		doc_cell_number(doc, a->mean);
		doc_cell_number(doc, a->sd);
		doc_cell(doc, r->unit);
	}
}
