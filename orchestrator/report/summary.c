/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The story in words: what a person reads at the end of a run and at the head of a report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
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

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static void effect(struct buf *b, double est, double lo, double hi)
{
	buf_printf(b, "%+.1f %%", 100 * est);
	if (isfinite(lo) && isfinite(hi))
		buf_printf(b, " [%+.1f, %+.1f]", 100 * lo, 100 * hi);
}

/* One line a rung: 92.1 % [91.0, 93.3] of the rung below. */
static void rungs(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_rungs; i++) {
		const struct rung_row *g = &r->rungs[i];

		buf_printf(&l->line, "Rung %d, %d x %d ranks: ", g->round, g->nodes,
			   g->tasks_per_node);
		if (isnan(g->est))
			buf_str(&l->line, "not measured.");
		else
			buf_printf(
				&l->line,
				"a rank keeps %.1f %% [%.1f, %.1f] of the rung below, %.1f %% of "
				"the first%s.",
				100 * g->est, 100 * g->lo, 100 * g->hi, 100 * g->total,
				g->held ? "" : ": the climb ends here");
		end_line(l);
	}
	if (r->n_rungs == 0) {
		buf_str(&l->line, "Ladder: no rung was measured.");
		end_line(l);
	}
}

static void baseline(const struct report *r, struct lines *l)
{
	struct buf *b = &l->line;

	if (r->recipe->ladder.n) {
		rungs(r, l);
		return;
	}
	if (r->recipe->aa_blocks == BLOCKS_NONE) {
		buf_str(b, "Baseline: ");
		if (isfinite(r->base_mean))
			buf_printf(b, "%s %.4g %s; ", r->recipe->objective, r->base_mean,
				   or_empty(r->unit));
		buf_str(b, "no A/A stage was asked for, so the noise is that of the test.");
		end_line(l);
		return;
	}
	if (!isfinite(r->base_mean)) {
		buf_str(b, "Baseline: nothing was measured.");
		end_line(l);
		return;
	}
	buf_printf(b, "Baseline: %s %.4g %s", r->recipe->objective, r->base_mean,
		   or_empty(r->unit));
	if (isfinite(r->noise))
		buf_printf(b,
			   "; noise of a run within a block %.2f %%; the default against itself "
			   "%+.2f %% [%+.2f, %+.2f]",
			   100 * r->noise, 100 * r->aa_effect, 100 * r->aa_lo, 100 * r->aa_hi);
	buf_char(b, '.');
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
		buf_str(&l->line, "Bottleneck");
		if (r->recipe->ladder.n)
			buf_printf(&l->line, " on rung %d", round);
		else if (round > 1)
			buf_str(&l->line, " after the change");
		buf_printf(&l->line, ": %s: %s.", r->findings[i].bottleneck,
			   or_empty(r->findings[i].evidence));
		end_line(l);
	}
	if (round == 0 && r->n_hyps &&
	    (r->recipe->ladder.n || r->recipe->aa_blocks != BLOCKS_NONE)) {
		buf_str(&l->line, "Bottleneck: no rule names one from the signals at hand");
		if (open)
			buf_printf(&l->line, "; %zu question%s could not be answered", open,
				   open == 1 ? "" : "s");
		buf_char(&l->line, '.');
		end_line(l);
	}
}

static void verdict(const struct report_hypothesis *h, struct buf *b)
{
	const struct verdict_row *v = &h->verdict;

	buf_str(b, v->outcome);
	if (v->pending_convergence)
		buf_str(b, ", pending convergence");
	if (v->n > 0 && isfinite(v->est)) {
		buf_str(b, ", ");
		effect(b, v->est, v->lo, v->hi);
		buf_printf(b, " over %d pairs", v->n);
	}
	if (v->reason)
		buf_printf(b, " (%s)", v->reason);
	if (v->effect_unproved)
		buf_str(b, " (effect unproved: the knob is the campaign's own and only its "
			   "delivery was shown)");
}

static void bundle(const struct report *r, const struct report_hypothesis *h, struct buf *b)
{
	_cleanup_free_ char *text = report_bundle(r, &h->row);

	if (text)
		buf_printf(b, " (a bundle, credited as a whole: %s)", text);
}

static void hypotheses(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		buf_printf(&l->line, "  %s %s -> %s", h->row.knob,
			   h->row.from_value ? h->row.from_value : "(not set)", h->row.value);
		bundle(r, h, &l->line);
		buf_str(&l->line, ": ");
		if (h->has_verdict)
			verdict(h, &l->line);
		else
			buf_printf(&l->line, "%s%s%s", report_state_text(h->row.state),
				   h->row.reason ? ": " : "", or_empty(h->row.reason));
		end_line(l);
	}
}

static void fix(const struct report *r, struct lines *l)
{
	struct buf *b = &l->line;
	_cleanup_free_ char *text = NULL;

	if (r->recipe->final_blocks == BLOCKS_NONE) {
		buf_str(b, "Fix: no final stage was asked for; an estimate that ended a test early "
			   "is somewhat too large.");
		end_line(l);
		return;
	}
	if (!r->has_fix) {
		if (r->campaign.state != CAMPAIGN_DONE)
			return;
		buf_str(b, "Fix: none; the default stays. What was refuted is kept with its "
			   "interval.");
		end_line(l);
		return;
	}
	text = config_text(&r->fix_config);
	buf_printf(b, "Fix: %s: %s", text, r->fix.state);
	if (isfinite(r->fix.est)) {
		buf_str(b, ", ");
		effect(b, r->fix.est, r->fix.lo, r->fix.hi);
		buf_printf(b, " against the original default over %d fresh pairs", r->fix.n);
	}
	if (isfinite(r->final_mean))
		buf_printf(b, " (%.4g %s)", r->final_mean, or_empty(r->unit));
	if (isfinite(r->fix.soak_drift))
		buf_printf(b, "; drift in the soak %+.2f %%", 100 * r->fix.soak_drift);
	if (r->fix.reason)
		buf_printf(b, "; %s", r->fix.reason);
	buf_char(b, '.');
	end_line(l);
}

/* Changes that left the fix when the winners were stacked. */
static void ablation(const struct report *r, struct lines *l)
{
	for (size_t i = 0; i < r->n_ablations; i++) {
		const struct ablation_row *a = &r->ablations[i];

		if (a->outcome != ABLATION_DROPPED)
			continue;
		buf_printf(&l->line, "Stacking: %s no longer pays beside the others (without it ",
			   a->knobs);
		effect(&l->line, a->est, a->lo, a->hi);
		buf_str(&l->line, ") and left the fix.");
		end_line(l);
	}
}

static void target(const struct report *r, struct lines *l)
{
	if (r->target == TARGET_NONE)
		return;
	buf_printf(&l->line, "Target: %.4g %s is %s", r->recipe->target, or_empty(r->unit),
		   report_target_name(r->target));
	if (isfinite(r->target_lo) && isfinite(r->target_hi))
		buf_printf(&l->line, ": %s%.4g to %.4g %s (95 %%)",
			   r->target == TARGET_OPEN ? "the interval holds it, " : "", r->target_lo,
			   r->target_hi, or_empty(r->unit));
	else
		buf_str(&l->line, ": too little was measured");
	buf_char(&l->line, '.');
	end_line(l);
}

static void cost(const struct report *r, struct lines *l)
{
	size_t failed = 0;

	/* among the faults are whole attempts, and the trials of void ones */
	for (size_t i = 0; i < r->n_faults; i++)
		failed += str_eq(r->faults[i].state, trial_state_name(TRIAL_FAILED));
	buf_printf(&l->line,
		   "Cost: %lld timed trials (%lld with warm-up), %.2f node-hours; %lld of %lld "
		   "attempts void or lost, %zu trial%s failed.",
		   (long long)r->cost.trials_timed, (long long)r->cost.trials_all,
		   r->cost.node_s / 3600, (long long)r->cost.attempts_void,
		   (long long)r->cost.attempts, failed, failed == 1 ? "" : "s");
	end_line(l);
	if (str_eq(r->campaign.scheduler, "local")) {
		buf_str(&l->line,
			"Scope: measured on one machine; the conclusion holds for this machine.");
		end_line(l);
	}
}

static void tuning(const struct report *r, struct lines *l)
{
	if (r->n_hyps) {
		buf_str(&l->line, "Hypotheses:");
		end_line(l);
	}
	hypotheses(r, l);
	ablation(r, l);
	fix(r, l);
	target(r, l);
}

/* The newest night, and the series that it feeds. */
static void nights(const struct report *r, struct lines *l)
{
	bool canary = r->recipe->canary.blocks > 0;

	if (r->n_canaries == 0) {
		if (canary) {
			buf_str(&l->line, "Nights: none was measured yet.");
			end_line(l);
		}
		return;
	}
	for (size_t i = 0; i < r->n_canaries; i++) {
		const struct report_canary *c = &r->canaries[i];

		if (!str_eq(c->row.night, r->canaries[0].row.night))
			break;
		buf_str(&l->line, "Night ");
		if (c->row.open)
			buf_printf(&l->line, "%s: ", c->row.night);
		buf_str(&l->line, report_canary_note(c)); /* which begins with its date */
		end_line(l);
	}
	if (r->n_series) {
		buf_str(&l->line, "Series:");
		end_line(l);
	}
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

	buf_printf(&l.line, "Campaign %lld, %s: %s%s%s", (long long)r->campaign.id,
		   r->campaign.name, campaign_state_name(r->campaign.state),
		   r->campaign.reason ? ": " : "", or_empty(r->campaign.reason));
	end_line(&l);
	if (r->recipe->question) {
		buf_printf(&l.line, "Question: %s", r->recipe->question);
		end_line(&l);
	}
	if (!r->recipe->canary.blocks)
		five_steps(r, &l);
	nights(r, &l);
	cost(r, &l);
	buf_free(&l.line);
}
