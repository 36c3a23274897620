/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log for people: summary, target, the five steps in order, what was refuted or left
 * out, and what is needed to do it again. */
#include <math.h>
#include <string.h>

#include "orchestrator/report/markdown.h"
#include "orchestrator/report/mdlog.h"

/* -- head ------------------------------------------------------------------------------------- */

static void head(const struct report *r, struct buf *b)
{
	const struct campaign_row *c = &r->campaign;

	buf_str(b, "# Tuning log: ");
	md_text(b, c->name);
	buf_printf(b, "\n\nCampaign %lld, %s, mode %s, scheduler ", (long long)c->id,
		   campaign_state_name(c->state), run_mode_name(c->mode));
	md_text(b, c->scheduler);
	buf_str(b, "; begun ");
	md_time(b, c->created_us);
	if (c->ended_us > 0) {
		buf_str(b, ", ended ");
		md_time(b, c->ended_us);
	}
	buf_str(b, ".\nWorkspace ");
	md_code(b, r->workspace);
	buf_str(b, ".\n");
}

/* The summary's lines as a list; what it indents is a list below. */
static void summary(const struct report *r, struct buf *b)
{
	struct buf text = {0};

	report_summary(r, &text);
	buf_str(b, "\n## In short\n\n");
	for (char *line = text.data; line && *line;) {
		size_t n = strcspn(line, "\n");
		bool inner = str_starts(line, "  ");
		bool more = line[n] == '\n';

		line[n] = '\0';
		buf_str(b, inner ? "  - " : "- ");
		md_text(b, line + strspn(line, " "));
		buf_char(b, '\n');
		line += n + more;
	}
	buf_free(&text);
}

static void guard_text(const struct guard *g, struct buf *b)
{
	const char *unit = report_unit_of(g->metric), *sep = "";

	buf_printf(b, " (%s)", g->stat);
	if (isfinite(g->margin)) {
		buf_printf(b, " at most %.1f %% worse", 100 * g->margin);
		sep = ",";
	}
	if (isfinite(g->at_most)) {
		buf_printf(b, "%s at most %.6g %s", sep, g->at_most, unit);
		sep = ",";
	}
	if (isfinite(g->at_least))
		buf_printf(b, "%s at least %.6g %s", sep, g->at_least, unit);
}

static void target(const struct report *r, struct buf *b)
{
	const struct recipe *p = r->recipe;
	bool fixed = isfinite(r->final_mean);

	buf_str(b, "\n## Target\n\nObjective: ");
	md_code(b, p->objective);
	buf_printf(b, " (%s over the window%s%s, %s).\n", p->objective_stat,
		   r->unit && *r->unit ? ", " : "", r->unit ? r->unit : "",
		   p->better == BETTER_DOWN ? "less is better" : "more is better");
	if (r->target == TARGET_NONE) {
		buf_str(b, "The campaign names no target.\n");
	} else {
		buf_str(b, "Target: ");
		md_number(b, p->target);
		buf_printf(b, " %s: **%s** (", r->unit ? r->unit : "",
			   report_target_name(r->target));
		md_number(b, fixed ? r->final_mean : r->base_mean);
		buf_printf(b, " %s measured %s", r->unit ? r->unit : "",
			   fixed ? "in the final stage" : "in the baseline");
		if (isfinite(r->target_lo) && isfinite(r->target_hi)) {
			buf_str(b, ", 95 % interval of the mean ");
			md_number(b, r->target_lo);
			buf_str(b, " to ");
			md_number(b, r->target_hi);
			buf_str(b, r->target == TARGET_OPEN ? ", which holds the target" : "");
		}
		buf_str(b, ").\n");
	}
	buf_str(b, "Smallest useful gain: ");
	md_percent(b, p->min_effect, 1);
	buf_str(b, ".\n");
	for (size_t i = 0; i < p->n_guards; i++) {
		buf_str(b, i ? "; " : "Guards: ");
		md_code(b, p->guards[i].metric);
		guard_text(&p->guards[i], b);
	}
	buf_str(b, p->n_guards ? ".\n" : "Guards: none declared; failures always count.\n");
}

static void steps(const struct report *r, struct buf *b)
{
	mdlog_baseline(r, b);
	mdlog_hypotheses(r, b);
	if (r->recipe->ladder.n)
		return;
	mdlog_experiment(r, b);
	mdlog_validation(r, b);
	mdlog_fixing(r, b);
	mdlog_ranking(r, b);
}

static int write_markdown(const struct report *r, struct buf *b, struct err *e)
{
	(void)e;
	head(r, b);
	summary(r, b);
	target(r, b);
	if (!r->recipe->canary.blocks)
		steps(r, b);
	mdlog_canaries(r, b);
	mdlog_tradeoffs(r, b);
	mdlog_sizes(r, b);
	if (!r->recipe->canary.blocks)
		mdlog_negatives(r, b);
	mdlog_faults(r, b);
	mdlog_quality(r, b);
	mdlog_events(r, b);
	if (!r->recipe->canary.blocks)
		mdlog_alpha(&r->alpha, b);
	mdlog_cost(r, b);
	mdlog_unit_costs(r, b);
	mdlog_reproduce(r, b);
	return 0;
}

const struct report_format format_markdown = {.name = "markdown",
					      .extension = "md",
					      .summary = "the tuning log for people",
					      .write = write_markdown};
