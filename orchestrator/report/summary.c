/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The story in words: what a person reads at the end of a run and at the head of a report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

/* Each line is put together with texts from recipes and logs, then made fit to print as a whole: a
 * newline or an escape in one of them reaches neither the terminal nor the line below. */
struct lines {
	struct buf *out;
	struct buf line;
};

static void end_line(struct lines *l)
{
	text_line(l->out, l->line.data);
	buf_char(l->out, '\n');
	buf_clear(&l->line);
}

/* A line that is one text. */
static void say(struct lines *l, const char *words)
{
	buf_str(&l->line, words);
	end_line(l);
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

/* A stored sentence, or nothing. */
static void recorded(struct buf *b, const char *before, const char *s, const char *after)
{
	_cleanup_free_ char *text = recorded_text(s);

	if (text)
		buf_printf(b, "%s%s%s", before, text, after);
}

static void effect(struct buf *b, double est, double lo, double hi)
{
	buf_printf(b, "%+.1f %%", 100 * est);
	if (isfinite(lo) && isfinite(hi))
		buf_printf(b, " [%+.1f, %+.1f]", 100 * lo, 100 * hi);
}

/* The note of its stage has the reason. */
static void not_measured(const struct report *r, const struct rung_row *g, struct buf *line)
{
	const char *note = NULL;

	for (size_t i = 0; i < r->n_stages; i++)
		if (r->stages[i].id == g->stage)
			note = r->stages[i].note;
	recorded(line, "", note ? note : "not measured", _("."));
	if (str_eq(r->campaign.scheduler, "fake"))
		buf_str(line, _(" (Scheduler fake makes up as many ranks as its truth says.)"));
}

/* One line a rung: 92.1 % [91.0, 93.3] of the rung below. */
static void rungs(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_rungs; i++) {
		const struct rung_row *g = &r->rungs[i];

		buf_printf(&l->line, _("Rung %d, %d x %d ranks: "), g->round, g->nodes,
			   g->tasks_per_node);
		if (isnan(g->est))
			not_measured(r, g, &l->line);
		else
			buf_printf(&l->line,
				   g->held ? _("a rank keeps %.1f %% [%.1f, %.1f] of the rung "
					       "below, %.1f %% of the first.")
					   : _("a rank keeps %.1f %% [%.1f, %.1f] of the rung "
					       "below, %.1f %% of the first: the climb ends here."),
				   100 * g->est, 100 * g->lo, 100 * g->hi, 100 * g->total);
		end_line(l);
	}
	if (r->n_rungs == 0)
		say(l, _("Ladder: no rung was measured."));
}

static void baseline(const struct report *r, struct lines *l)
{
	struct buf *b = &l->line;

	if (r->recipe->ladder.n) {
		rungs(r, l);
		return;
	}
	if (r->recipe->aa_blocks == BLOCKS_NONE) {
		buf_str(b, _("Baseline: "));
		if (isfinite(r->base_mean))
			buf_printf(b, _("%s %.4g %s; "), r->recipe->objective, r->base_mean,
				   or_empty(r->unit));
		say(l, _("no A/A stage was asked for, so the noise is that of the test."));
		return;
	}
	if (!isfinite(r->base_mean)) {
		say(l, _("Baseline: nothing was measured."));
		return;
	}
	buf_printf(b, _("Baseline: %s %.4g %s"), r->recipe->objective, r->base_mean,
		   or_empty(r->unit));
	if (isfinite(r->noise))
		buf_printf(b,
			   _("; noise of a run within a block %.2f %%; the default against itself "
			     "%+.2f %% [%+.2f, %+.2f]"),
			   100 * r->noise, 100 * r->aa_effect, 100 * r->aa_lo, 100 * r->aa_hi);
	if (r->aa_differs)
		buf_str(b, _(", more than chance does but once in twenty: the machine may not be "
			     "quiet"));
	say(l, _("."));
}

static void finding(const struct report *r, const struct finding_row *f, struct lines *l)
{
	if (r->recipe->ladder.n)
		buf_printf(&l->line, _("Bottleneck on rung %d: "), f->round);
	else if (f->round > 1)
		buf_str(&l->line, _("Bottleneck after the change: "));
	else
		buf_str(&l->line, _("Bottleneck: "));
	buf_str(&l->line, lang_word("bottleneck", f->bottleneck));
	recorded(&l->line, _(": "), or_empty(f->evidence), _("."));
	end_line(l);
}

static void bottleneck(const struct report *r, struct lines *l)
{
	size_t open = 0;
	int round = 0;

	for (size_t i = 0; i < r->n_findings; i++) {
		open += report_finding_is_open(&r->findings[i]);
		if (report_finding_is_open(&r->findings[i]) || r->findings[i].round == round)
			continue;
		round = r->findings[i].round;
		finding(r, &r->findings[i], l);
	}
	if (round == 0 && (r->n_hyps || r->n_findings) &&
	    (r->recipe->ladder.n || r->recipe->aa_blocks != BLOCKS_NONE)) {
		buf_str(&l->line, _("Bottleneck: no rule names one from the signals at hand"));
		if (open)
			buf_printf(&l->line,
				   _n("; %zu question could not be answered",
				      "; %zu questions could not be answered", open),
				   open);
		say(l, _("."));
	}
}

static void verdict(const struct report_hypothesis *h, struct buf *b)
{
	const struct verdict_row *v = &h->verdict;

	buf_str(b, lang_word("verdict_outcome", v->outcome));
	if (v->pending_convergence)
		buf_str(b, _(", pending convergence"));
	if (v->n > 0 && isfinite(v->est)) {
		buf_str(b, _(", "));
		effect(b, v->est, v->lo, v->hi);
		buf_printf(b, _(" over %d pairs"), v->n);
	}
	recorded(b, _(" ("), v->reason, _(")"));
	if (v->effect_unproved)
		buf_str(b, _(" (effect unproved: the knob is the campaign's own and only its "
			     "delivery was shown)"));
}

static void bundle(const struct report *r, const struct report_hypothesis *h, struct buf *b)
{
	_cleanup_free_ char *text = report_bundle(r, &h->row);

	if (text)
		buf_printf(b, _(" (a bundle, credited as a whole: %s)"), text);
}

static void hypotheses(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		buf_printf(&l->line, "  %s %s -> %s", h->row.knob,
			   h->row.from_value ? h->row.from_value : _("(not set)"), h->row.value);
		bundle(r, h, &l->line);
		buf_str(&l->line, _(": "));
		if (h->has_verdict) {
			verdict(h, &l->line);
		} else {
			buf_str(&l->line, _(report_state_text(h->row.state)));
			recorded(&l->line, _(": "), h->row.reason, "");
		}
		end_line(l);
	}
}

static void fix(const struct report *r, struct lines *l)
{
	struct buf *b = &l->line;
	_cleanup_free_ char *text = NULL;

	if (r->recipe->final_blocks == BLOCKS_NONE) {
		say(l, _("Fix: no final stage was asked for; an estimate that ended a test early "
			 "is somewhat too large."));
		return;
	}
	if (!r->has_fix) {
		if (r->campaign.state != CAMPAIGN_DONE)
			return;
		say(l,
		    r->recipe->n_knobs == 0
			    ? _("Fix: none; the campaign has no knobs, only the default was "
				"measured.")
			    : _("Fix: none; the default stays. What was refuted is kept with its "
				"interval."));
		return;
	}
	text = config_text(&r->fix_config);
	buf_printf(b, _("Fix: %s: "), text);
	recorded(b, "", r->fix.state, "");
	if (isfinite(r->fix.est)) {
		buf_str(b, _(", "));
		effect(b, r->fix.est, r->fix.lo, r->fix.hi);
		buf_printf(b, _(" against the original default over %d fresh pairs"), r->fix.n);
	}
	if (isfinite(r->final_mean))
		buf_printf(b, " (%.4g %s)", r->final_mean, or_empty(r->unit));
	if (isfinite(r->fix.soak_drift))
		buf_printf(b, _("; drift in the soak %+.2f %%"), 100 * r->fix.soak_drift);
	recorded(b, _("; "), r->fix.reason, "");
	say(l, _("."));
}

/* Changes that left the fix when the winners were stacked. */
static void ablation(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_ablations; i++) {
		const struct ablation_row *a = &r->ablations[i];
		struct buf e = {0};

		if (a->outcome != ABLATION_DROPPED)
			continue;
		effect(&e, a->est, a->lo, a->hi);
		buf_printf(&l->line,
			   _("Stacking: %s no longer pays beside the others (without it %s) and "
			     "left the fix."),
			   a->knobs, e.data);
		buf_free(&e);
		end_line(l);
	}
}

static void target(const struct report *r, struct lines *l)
{
	if (r->target == TARGET_NONE)
		return;
	buf_printf(&l->line,
		   r->target == TARGET_MET      ? _("Target: %.4g %s is met")
		   : r->target == TARGET_MISSED ? _("Target: %.4g %s is missed")
						: _("Target: %.4g %s is open"),
		   r->recipe->target, or_empty(r->unit));
	if (isfinite(r->target_lo) && isfinite(r->target_hi))
		buf_printf(&l->line,
			   r->target == TARGET_OPEN
				   ? _(": the interval holds it, %.4g to %.4g %s (95 %%)")
				   : _(": %.4g to %.4g %s (95 %%)"),
			   r->target_lo, r->target_hi, or_empty(r->unit));
	else
		buf_str(&l->line, _(": too little was measured"));
	say(l, _("."));
}

static void cost(const struct report *r, struct lines *l)
{
	size_t failed = 0;

	/* among the faults are whole attempts, and the trials of void ones */
	for (size_t i = 0; i < r->n_faults; i++)
		failed += str_eq(r->faults[i].state, trial_state_name(TRIAL_FAILED));
	buf_printf(&l->line,
		   _n("Cost: %lld timed trials (%lld with warm-up), %.2f node-hours; %lld of %lld "
		      "attempts void or lost, %zu trial failed.",
		      "Cost: %lld timed trials (%lld with warm-up), %.2f node-hours; %lld of %lld "
		      "attempts void or lost, %zu trials failed.",
		      failed),
		   (long long)r->cost.trials_timed, (long long)r->cost.trials_all,
		   r->cost.node_s / 3600, (long long)r->cost.attempts_void,
		   (long long)r->cost.attempts, failed);
	end_line(l);
	if (str_eq(r->campaign.scheduler, "local"))
		say(l, _("Scope: measured on one machine; the conclusion holds for this machine."));
}

/* What was left out so that the fix could be measured. */
static void left_out(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_events; i++)
		if (str_eq(r->events[i].kind, "budget")) {
			recorded(&l->line, _("Budget: "), r->events[i].text, _("."));
			end_line(l);
		}
}

static void tuning(const struct report *r, struct lines *l)
{
	if (r->n_hyps)
		say(l, _("Hypotheses:"));
	hypotheses(r, l);
	left_out(r, l);
	ablation(r, l);
	fix(r, l);
	target(r, l);
}

/* The newest night, and the series that it feeds. */
static void nights(const struct report *r, struct lines *l)
{
	bool canary = r->recipe->canary.blocks > 0;

	if (r->n_canaries == 0) {
		if (canary)
			say(l, _("Nights: none was measured yet."));
		return;
	}
	for (size_t i = 0; i < r->n_canaries; i++) {
		const struct report_canary *c = &r->canaries[i];

		if (!str_eq(c->row.night, r->canaries[0].row.night))
			break;
		buf_str(&l->line, _("Night "));
		if (c->row.open)
			buf_printf(&l->line, "%s: ", c->row.night);
		recorded(&l->line, "", report_canary_note(c), ""); /* which begins with its date */
		end_line(l);
	}
	if (r->n_series)
		say(l, _("Series:"));
	for (size_t i = 0; i < r->n_series; i++) {
		buf_str(&l->line, "  ");
		report_series_text(&r->series[i], &l->line);
		end_line(l);
	}
}

static void five_steps(const struct report *r, struct lines *l)
{
	baseline(r, l);
	bottleneck(r, l);
	if (!r->recipe->ladder.n)
		tuning(r, l);
}

void report_summary(const struct report *r, struct buf *out)
{
	struct lines l = {.out = out};

	buf_printf(&l.line, _("Campaign %lld, %s: %s"), (long long)r->campaign.id, r->campaign.name,
		   lang_word("campaign_state", campaign_state_name(r->campaign.state)));
	recorded(&l.line, _(": "), r->campaign.reason, "");
	end_line(&l);
	if (r->recipe->question) {
		buf_printf(&l.line, _("Question: %s"), r->recipe->question);
		end_line(&l);
	}
	if (!r->recipe->canary.blocks)
		five_steps(r, &l);
	nights(r, &l);
	cost(r, &l);
	buf_free(&l.line);
}
