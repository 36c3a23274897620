/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The story in words: what a person reads at the end of a run and at the head of a report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/report/report.h"

static void baseline(const struct report *r, struct buf *b)
{
	if (!isfinite(r->base_mean)) {
		buf_printf(b, "Baseline: nothing was measured.\n");
		return;
	}
	buf_printf(b, "Baseline: %s %.4g %s", r->recipe->objective, r->base_mean, r->unit);
	if (isfinite(r->noise))
		buf_printf(b,
			   "; noise of a run within a block %.2f %%; the default against itself "
			   "%+.2f %% [%+.2f, %+.2f]",
			   100 * r->noise, 100 * r->aa_effect, 100 * r->aa_lo, 100 * r->aa_hi);
	buf_str(b, ".\n");
}

static void bottleneck(const struct report *r, struct buf *b)
{
	int round = 0;

	for (size_t i = 0; i < r->n_findings; i++) {
		if (r->findings[i].round == round)
			continue;
		round = r->findings[i].round;
		buf_printf(b, "Bottleneck%s: %s: %s.\n", round > 1 ? " after the change" : "",
			   r->findings[i].bottleneck, r->findings[i].evidence);
	}
	if (r->n_findings == 0 && r->n_hyps)
		buf_str(b, "Bottleneck: no rule names one from the signals at hand.\n");
}

static void verdict(const struct report_hypothesis *h, struct buf *b)
{
	const struct verdict_row *v = &h->verdict;

	buf_str(b, v->outcome);
	if (v->pending_convergence)
		buf_str(b, ", pending convergence");
	if (v->n > 0 && isfinite(v->lo) && isfinite(v->hi))
		buf_printf(b, ", %+.1f %% [%+.1f, %+.1f] over %d pairs", 100 * v->est, 100 * v->lo,
			   100 * v->hi, v->n);
	if (v->reason)
		buf_printf(b, " (%s)", v->reason);
	if (v->effect_unproved)
		buf_str(b, " (effect unproved: the knob is the campaign's own and only its "
			   "delivery was shown)");
}

static void hypotheses(const struct report *r, struct buf *b)
{
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		buf_printf(b, "  %s %s -> %s: ", h->row.knob,
			   h->row.from_value ? h->row.from_value : "(not set)", h->row.value);
		if (h->has_verdict)
			verdict(h, b);
		else
			buf_printf(b, "%s%s%s", hypothesis_state_name(h->row.state),
				   h->row.reason ? ": " : "", h->row.reason ? h->row.reason : "");
		buf_char(b, '\n');
	}
}

static void fix(const struct report *r, struct buf *b)
{
	if (!r->has_fix) {
		if (r->campaign.state == CAMPAIGN_DONE)
			buf_str(b, "Fix: none; the default stays. What was refuted is kept with "
				   "its interval.\n");
		return;
	}
	{
		char *text = config_text(&r->fix_config);

		buf_printf(b,
			   "Fix: %s: %s, %+.1f %% [%+.1f, %+.1f] against the original default over "
			   "%d fresh pairs",
			   text, r->fix.state, 100 * r->fix.est, 100 * r->fix.lo, 100 * r->fix.hi,
			   r->fix.n);
		free(text);
	}
	if (isfinite(r->final_mean))
		buf_printf(b, " (%.4g %s)", r->final_mean, r->unit);
	if (isfinite(r->fix.soak_drift))
		buf_printf(b, "; drift in the soak %+.2f %%", 100 * r->fix.soak_drift);
	buf_str(b, ".\n");
}

static void target(const struct report *r, struct buf *b)
{
	if (r->target == TARGET_NONE)
		return;
	buf_printf(b, "Target: %.4g %s is %s.\n", r->recipe->target, r->unit,
		   r->target == TARGET_MET      ? "met"
		   : r->target == TARGET_MISSED ? "missed"
						: "open: nothing was measured");
}

static void cost(const struct report *r, struct buf *b)
{
	buf_printf(b,
		   "Cost: %lld timed trials (%lld with warm-up), %.2f node-hours; %lld of %lld "
		   "attempts void or lost, %zu trials failed.\n",
		   (long long)r->cost.trials_timed, (long long)r->cost.trials_all,
		   r->cost.node_s / 3600, (long long)r->cost.attempts_void,
		   (long long)r->cost.attempts, r->n_faults);
	if (str_eq(r->campaign.scheduler, "local"))
		buf_str(b,
			"Scope: measured on one machine; the conclusion holds for this machine.\n");
}

void report_summary(const struct report *r, struct buf *b)
{
	buf_printf(b, "Campaign %lld, %s: %s%s%s\n", (long long)r->campaign.id, r->campaign.name,
		   campaign_state_name(r->campaign.state), r->campaign.reason ? ": " : "",
		   r->campaign.reason ? r->campaign.reason : "");
	if (r->recipe->question)
		buf_printf(b, "Question: %s\n", r->recipe->question);
	baseline(r, b);
	bottleneck(r, b);
	if (r->n_hyps)
		buf_str(b, "Hypotheses:\n");
	hypotheses(r, b);
	fix(r, b);
	target(r, b);
	cost(r, b);
}
