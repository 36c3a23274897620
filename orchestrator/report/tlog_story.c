/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first screen: the answer in one sentence, the figures that it rests on, and how it went. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/recorded.h"

enum { NODES_NAMED = 4 };

/* -- the answer ------------------------------------------------------------------------------- */

static void answer_fix(const struct report *r, struct doc *doc)
{
	const struct report_stage *final = report_final(r);
	_cleanup_free_ char *text = config_text(&r->fix_config);
	_cleanup_free_ char *state = recorded_text(r->fix.state);
	char effect[DOC_FIGURES_MAX], from[DOC_FIGURES_MAX], to[DOC_FIGURES_MAX];

	doc_printf(doc, "**%s** %s: `%s` %s -> %s %s with `%s`; %s on %d fresh pairs.",
		   recommend_confirmed(r) ? _("Better, and seen again on fresh runs:")
					  : _("Not to be used as it is:"),
		   doc_effect_text(effect, r->fix.est, r->fix.lo, r->fix.hi), r->recipe->objective,
		   doc_number_text(from, final ? final->arms[0].mean : r->base_mean),
		   doc_number_text(to, r->final_mean), r->unit ? r->unit : "", text, state,
		   r->fix.n);
}

static void answer_none(const struct report *r, struct doc *doc)
{
	bool ended = r->campaign.state == CAMPAIGN_DONE;
	char least[DOC_FIGURES_MAX];

	if (ended && r->recipe->n_knobs == 0) {
		doc_strong(doc, _("Only the default was measured: there are no knobs."));
		return;
	}
	doc_strong(doc, ended ? _("No change was accepted: the default stays.")
			      : _("Nothing was accepted yet."));
	if (isfinite(r->smallest))
		doc_printf(doc,
			   " A test finds a gain of %s with 80 %% power at this noise; smaller "
			   "ones may have been missed.",
			   doc_percent_text(least, r->smallest, 1));
}

static const struct report_hypothesis *accepted_last(const struct report *r)
{
	const struct report_hypothesis *last = NULL;

	for (size_t i = 0; i < r->n_hyps; i++)
		if (report_fate_of(&r->hyps[i]) == FATE_ACCEPTED &&
		    (!last || r->hyps[i].verdict.id > last->verdict.id))
			last = &r->hyps[i];
	return last;
}

static void answer_accepted(const struct report *r, const struct report_hypothesis *h,
			    struct doc *doc)
{
	char effect[DOC_FIGURES_MAX];

	doc_strong(doc, _("Accepted, not measured anew:"));
	doc_str(doc, " ");
	tlog_change(doc, &h->row);
	doc_printf(doc, ", %s over %d pairs. ",
		   doc_effect_text(effect, h->verdict.est, h->verdict.lo, h->verdict.hi),
		   h->verdict.n);
	doc_str(doc, r->recipe->final_blocks == BLOCKS_NONE
			     ? _("No final stage was asked for, and an estimate that ended a test "
				 "early is somewhat too large.")
			     : _("The final stage has not spoken yet."));
}

static void answer_rungs(const struct report *r, struct doc *doc)
{
	const struct rung_row *g = r->n_rungs ? &r->rungs[r->n_rungs - 1] : NULL;

	if (!g || !isfinite(g->total)) {
		doc_strong(doc, _("No rung was measured yet."));
		return;
	}
	doc_strong(doc, g->held ? _("It scales up the ladder:") : _("The climb ends:"));
	doc_printf(doc,
		   " on %d nodes with %d ranks each a rank keeps %.1f %% [%.1f, %.1f] of its "
		   "throughput on the first rung.",
		   g->nodes, g->tasks_per_node, 100 * g->total, 100 * g->total_lo,
		   100 * g->total_hi);
}

static void answer_night(const struct report *r, struct doc *doc)
{
	const struct report_canary *c = r->n_canaries ? &r->canaries[0] : NULL;
	_cleanup_free_ char *note = NULL;

	if (!c) {
		doc_strong(doc, _("No night was measured yet."));
		return;
	}
	note = recorded_text(report_canary_note(c));
	doc_printf(doc, "**%s** %s",
		   c->row.open ? _("The newest night is not over:") : _("The newest night:"), note);
}

/* Why it is not done. */
static void state(const struct report *r, struct doc *doc)
{
	_cleanup_free_ char *reason = recorded_text(r->campaign.reason);

	if (r->campaign.state == CAMPAIGN_DONE)
		return;
	doc_printf(doc, " The campaign is %s",
		   lang_word("campaign_state", campaign_state_name(r->campaign.state)));
	if (reason)
		doc_printf(doc, ": %s", reason);
	doc_str(doc, ".");
}

static void answer(const struct report *r, struct doc *doc)
{
	const struct report_hypothesis *last = accepted_last(r);

	doc_para(doc);
	if (r->recipe->canary.blocks)
		answer_night(r, doc);
	else if (r->recipe->ladder.n)
		answer_rungs(r, doc);
	else if (r->has_fix && r->fix.n > 0)
		answer_fix(r, doc);
	else if (last)
		answer_accepted(r, last, doc);
	else
		answer_none(r, doc);
	state(r, doc);
}

/* -- the figures ------------------------------------------------------------------------------ */

static void fact(struct doc *doc, const char *name)
{
	doc_row(doc);
	doc_cell_begin(doc);
	doc_str(doc, name);
	doc_cell_end(doc);
	doc_cell_begin(doc);
}

static void fact_objective(const struct report *r, struct doc *doc)
{
	const struct recipe *p = r->recipe;
	char goal[DOC_FIGURES_MAX], lo[DOC_FIGURES_MAX], hi[DOC_FIGURES_MAX];

	fact(doc, N_("objective"));
	doc_printf(doc,
		   p->better == BETTER_DOWN ? _("`%s`, less is better") : _("`%s`, more is better"),
		   p->objective);
	doc_cell_end(doc);
	if (r->target == TARGET_NONE)
		return;
	fact(doc, N_("target"));
	doc_printf(doc, "%s %s: **%s**", doc_number_text(goal, p->target), r->unit ? r->unit : "",
		   tlog_target_word(r->target));
	if (isfinite(r->target_lo) && isfinite(r->target_hi))
		doc_printf(doc, ", measured %s to %s (95 %%)", doc_number_text(lo, r->target_lo),
			   doc_number_text(hi, r->target_hi));
	doc_cell_end(doc);
}

static void fact_noise(const struct report *r, struct doc *doc)
{
	char text[DOC_FIGURES_MAX];

	if (!isfinite(r->noise))
		return;
	fact(doc, N_("noise floor"));
	doc_printf(doc, "%.2f %% a run within a block; the default against itself %s",
		   100 * r->noise, doc_effect_text(text, r->aa_effect, r->aa_lo, r->aa_hi));
	if (r->aa_differs)
		doc_str(doc, ", more than chance does but once in twenty: the machine may not be "
			     "quiet");
	doc_cell_end(doc);
	fact(doc, N_("smallest gain that could be seen"));
	if (isfinite(r->smallest))
		doc_percent(doc, r->smallest, 1);
	else
		doc_str(doc, "any, the values do not vary");
	doc_cell_end(doc);
}

static void fact_guards(const struct report *r, struct doc *doc)
{
	const struct report_stage *final = report_final(r);
	bool any = false;

	for (size_t i = 0; final && i < r->n_fix_guards; i++) {
		const struct guard_row *g = &r->fix_guards[i];
		_cleanup_free_ char *state = NULL;

		if (g->stage != final->id)
			continue;
		if (any)
			doc_str(doc, ", ");
		else
			fact(doc, N_("guards of the fix"));
		any = true;
		state = recorded_text(g->state);
		doc_printf(doc, "`%s` %s", g->metric, state);
	}
	if (any)
		doc_cell_end(doc);
}

static void fact_tried(const struct report *r, struct doc *doc)
{
	size_t n[FATES] = {0};

	for (size_t i = 0; i < r->n_hyps; i++)
		n[report_fate_of(&r->hyps[i])]++;
	if (r->n_hyps == 0)
		return;
	fact(doc, N_("hypotheses"));
	doc_printf(doc,
		   "%zu: %zu accepted, %zu refuted, %zu not judged, %zu screened out, %zu not "
		   "tried, %zu open",
		   r->n_hyps, n[FATE_ACCEPTED], n[FATE_REFUTED], n[FATE_UNJUDGED],
		   n[FATE_SCREENED_OUT], n[FATE_NOT_TRIED], n[FATE_OPEN]);
	doc_cell_end(doc);
}

static void fact_cost(const struct report *r, struct doc *doc)
{
	fact(doc, N_("cost"));
	doc_printf(doc, "%lld timed trials", (long long)r->cost.trials_timed);
	tlog_node_cost(r, r->cost.node_s, doc);
	doc_printf(doc, "; %lld of %lld attempts void or lost", (long long)r->cost.attempts_void,
		   (long long)r->cost.attempts);
	doc_cell_end(doc);
}

static void fact_place(const struct report *r, struct doc *doc)
{
	fact(doc, N_("measured on"));
	for (size_t i = 0; i < r->n_hosts && i < NODES_NAMED; i++) {
		if (i)
			doc_str(doc, ", ");
		doc_text(doc, r->hosts[i].node);
	}
	if (r->n_hosts > NODES_NAMED)
		doc_printf(doc, " and %zu more", r->n_hosts - NODES_NAMED);
	if (r->n_hosts == 0)
		doc_str(doc, "no node yet");
	if (str_eq(r->campaign.scheduler, "local"))
		doc_str(doc, "; one machine, and the conclusion holds for it");
	doc_cell_end(doc);
}

static void fact_use(const struct report *r, struct doc *doc)
{
	_cleanup_free_ char *command = xasprintf("fettle recommend %lld --as env",
						 (long long)r->campaign.id);

	if (!recommend_confirmed(r))
		return;
	fact(doc, N_("to use it"));
	doc_printf(doc, "`%s`, or as another form that it names", command);
	doc_cell_end(doc);
}

static void facts(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"key figure", false}, {"value", false}};

	doc_table(doc, c, ARRAY_LEN(c));
	fact_objective(r, doc);
	if (tlog_tests(r)) {
		fact_noise(r, doc);
		fact_guards(r, doc);
		fact_tried(r, doc);
	}
	fact_cost(r, doc);
	fact_place(r, doc);
	fact_use(r, doc);
}

void tlog_summary(const struct report *r, struct doc *doc)
{
	doc_title(doc, 2, "In short");
	if (r->recipe->question) {
		doc_para(doc);
		doc_text(doc, r->recipe->question);
	}
	answer(r, doc);
	facts(r, doc);
}

/* -- how it went ------------------------------------------------------------------------------ */

static void bottleneck(const struct report *r, int round, struct doc *doc)
{
	bool any = false;

	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding_row *f = &r->findings[i];
		_cleanup_free_ char *evidence = NULL;

		if (f->round != round || report_finding_is_open(f))
			continue;
		evidence = recorded_text(f->evidence);
		doc_printf(doc, any ? _("; %s") : _(" Bottleneck: %s"),
			   lang_word("bottleneck", f->bottleneck));
		if (evidence)
			doc_printf(doc, ": %s", evidence);
		any = true;
	}
	doc_str(doc, any ? _(".") : _(" No rule names a bottleneck from the signals at hand."));
}

static void tested(const struct report *r, int round, struct doc *doc)
{
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (h->row.round == round && h->n_looks) {
			doc_subitem(doc);
			tlog_verdict(h, doc);
		}
	}
}

static void screened(const struct report *r, int round, struct doc *doc)
{
	const struct report_hypothesis *best = NULL;
	char mean[DOC_FIGURES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (h->row.round != round || report_fate_of(h) != FATE_SCREENED_OUT)
			continue;
		n++;
		if (!best || h->screen_mean > best->screen_mean)
			best = h;
	}
	if (n == 0)
		return;
	doc_subitem(doc);
	if (isfinite(best->screen_mean))
		doc_printf(doc, "%zu screened out, the best of them `%s` %s -> %s with %s", n,
			   best->row.knob, tlog_or_unset(best->row.from_value), best->row.value,
			   doc_percent_text(mean, best->screen_mean, 1));
	else
		doc_printf(doc, "%zu screened out", n);
}

static void not_tried(const struct report *r, int round, struct doc *doc)
{
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (h->row.round != round || report_fate_of(h) != FATE_NOT_TRIED)
			continue;
		doc_subitem(doc);
		tlog_verdict(h, doc);
	}
}

static int rounds(const struct report *r)
{
	int n = 0;

	for (size_t i = 0; i < r->n_hyps; i++)
		n = r->hyps[i].row.round > n ? r->hyps[i].row.round : n;
	for (size_t i = 0; i < r->n_findings; i++)
		n = r->findings[i].round > n ? r->findings[i].round : n;
	return n;
}

static void dropped(const struct report *r, struct doc *doc)
{
	for (size_t i = 0; i < r->n_ablations; i++) {
		const struct ablation_row *a = &r->ablations[i];
		char effect[DOC_FIGURES_MAX];

		if (a->outcome != ABLATION_DROPPED)
			continue;
		doc_item(doc);
		doc_printf(doc,
			   "Stacking: `%s` no longer pays beside the others and left the fix; "
			   "without it %s.",
			   a->knobs, doc_effect_text(effect, a->est, a->lo, a->hi));
	}
}

static void end(const struct report *r, struct doc *doc)
{
	_cleanup_free_ char *state = recorded_text(r->fix.state);
	_cleanup_free_ char *reason = recorded_text(r->fix.reason);
	char text[DOC_FIGURES_MAX];

	if (r->recipe->final_blocks == BLOCKS_NONE || r->recipe->ladder.n || !r->has_fix)
		return;
	doc_item(doc);
	doc_printf(doc, "Fix, on %d fresh pairs against the original default: **%s**, %s", r->fix.n,
		   state, doc_effect_text(text, r->fix.est, r->fix.lo, r->fix.hi));
	if (isfinite(r->fix.soak_drift))
		doc_printf(doc, "; drift in the soak %s",
			   doc_percent_text(text, r->fix.soak_drift, 2));
	if (reason)
		doc_printf(doc, "; %s", reason);
	doc_str(doc, ".");
}

void tlog_story(const struct report *r, struct doc *doc)
{
	int n = rounds(r);

	if (r->recipe->canary.blocks)
		return;
	doc_title(doc, 2, "How it went");
	if (n == 0)
		doc_say(doc, "No hypothesis was made yet.");
	for (int round = 1; round <= n; round++) {
		doc_item(doc);
		doc_printf(doc, r->recipe->ladder.n ? _("Rung %d.") : _("Round %d."), round);
		bottleneck(r, round, doc);
		tested(r, round, doc);
		screened(r, round, doc);
		not_tried(r, round, doc);
	}
	dropped(r, doc);
	end(r, doc);
}
