/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps 1 to 3: what was measured, proposed and ranked. */
#include "orchestrator/report/mdlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"

/* -- 1 baseline ------------------------------------------------------------------------------- */

static const struct signal_row *signal_stat(const struct report *r, const char *metric,
					    const char *stat)
{
	for (size_t i = 0; i < r->n_signals; i++)
		if (str_eq(r->signals[i].metric, metric) && str_eq(r->signals[i].stat, stat))
			return &r->signals[i];
	return NULL;
}

/* A metric has a row by its mean, or by its one value when it has no mean. */
static bool leads(const struct report *r, const struct signal_row *s)
{
	return str_eq(s->stat, "mean") ||
	       (str_eq(s->stat, "value") && !signal_stat(r, s->metric, "mean"));
}

static void signal_table(const struct report *r, enum report_dimension d, struct buf *b)
{
	static const struct md_column c[] = {
		{"metric", false}, {"mean", true},  {"sd between trials", true},
		{"p95", true},     {"unit", false}, {"trials", true}};
	bool any = false;

	for (size_t i = 0; i < r->n_signals; i++) {
		const struct signal_row *s = &r->signals[i], *p95;

		if (!leads(r, s) || report_dimension_of(s->metric) != d)
			continue;
		if (!any) {
			buf_printf(b, "\n#### %s\n\n", report_dimension_name(d));
			md_table(b, c, ARRAY_LEN(c));
		}
		any = true;
		p95 = signal_stat(r, s->metric, "p95");
		md_row(b);
		md_cell_code(b, s->metric);
		md_cell_number(b, s->mean);
		md_cell_number(b, s->sd);
		md_cell_number(b, p95 ? p95->mean : NAN);
		md_cell(b, report_unit_of(s->metric));
		md_cell_i64(b, s->n);
		md_row_end(b);
	}
	if (!any)
		buf_printf(b, "\n#### %s\n\nNothing was measured.\n", report_dimension_name(d));
}

static void knob_table(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"knob", false},    {"passed as", false},
					     {"default", false}, {"seen in the processes", false},
					     {"class", false},   {"proof asked for", false}};

	buf_str(b, "\n### Knobs and their values in the baseline\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->recipe->n_knobs; i++) {
		const struct knob *k = &r->recipe->knobs[i];
		_cleanup_free_ char *how = xasprintf("%s %s%s%s", knob_how_name(k->how), k->target,
						     k->subkey ? ":" : "",
						     k->subkey ? k->subkey : "");

		md_row(b);
		md_cell_code(b, k->name);
		md_cell_code(b, how);
		md_cell(b, mdlog_or_unset(k->default_value));
		md_cell(b, kvs_has(&r->effective, k->name) ? kvs_get(&r->effective, k->name)
							   : "not set");
		md_cell(b, knob_class_name(k->cls));
		md_cell(b, proof_level_name(k->proof.level));
		md_row_end(b);
	}
}

void mdlog_baseline(const struct report *r, struct buf *b)
{
	bool any = false;

	if (r->recipe->ladder.n) {
		mdlog_ladder(r, b);
		return;
	}
	buf_str(b, "\n## 1. Baseline\n\nThe default configuration against itself.\n");
	buf_str(b, "\n- Mean: ");
	md_number(b, r->base_mean);
	buf_printf(b, " %s\n- Noise of a run within a block: ", r->unit ? r->unit : "");
	if (isfinite(r->noise))
		buf_printf(b, "%.2f %% (log sd)", 100 * r->noise);
	else
		buf_str(b, "unknown");
	buf_str(b, "\n- Default against itself: ");
	md_effect(b, r->aa_effect, r->aa_lo, r->aa_hi);
	buf_str(b, "\n- Smallest gain that a validation finds with 80 % power at this noise: ");
	md_percent(b, r->smallest, 1);
	buf_char(b, '\n');
	for (size_t i = 0; i < r->n_stages; i++) {
		if (r->stages[i].kind != STAGE_AA)
			continue;
		any = true;
		buf_char(b, '\n');
		mdlog_stage(&r->stages[i], b);
		mdlog_arms(r, &r->stages[i], b);
	}
	if (!any)
		buf_str(b, "\nNothing was measured yet.\n");
	buf_str(b, "\n### Signals\n");
	for (int d = 0; d < DIMENSIONS; d++)
		signal_table(r, (enum report_dimension)d, b);
	if (r->recipe->n_knobs)
		knob_table(r, b);
}

/* -- 2 hypotheses ----------------------------------------------------------------------------- */

static void findings(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"round", true},
					     {"bottleneck", false},
					     {"share of the step", true},
					     {"evidence", false},
					     {"rule", false}};

	if (r->n_findings == 0) {
		buf_str(b, r->n_hyps ? "No rule names a bottleneck from the signals at hand.\n"
				     : "None yet.\n");
		return;
	}
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding_row *f = &r->findings[i];

		md_row(b);
		md_cell_i64(b, f->round);
		md_cell(b, report_finding_is_open(f) ? "open" : f->bottleneck);
		if (isfinite(f->share))
			buf_printf(b, " %.0f %% |", 100 * f->share);
		else
			md_cell(b, "unknown");
		md_cell(b, f->evidence);
		md_cell_code(b, f->rule);
		md_row_end(b);
	}
}

static void hypothesis_table(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"round", true},          {"rank", true},
					     {"knob", false},          {"change", false},
					     {"class", false},         {"addresses", false},
					     {"predicted gain", true}, {"ceiling", true},
					     {"evidence", false},      {"state", false},
					     {"reason", false}};

	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct hypothesis_row *h = &r->hyps[i].row;

		md_row(b);
		md_cell_i64(b, h->round);
		md_cell_i64(b, h->rank);
		mdlog_cell_change(b, h);
		md_cell(b, knob_class_name(h->cls));
		md_cell(b, bottleneck_name(h->bottleneck));
		md_cell_percent(b, h->gain, 1);
		md_cell_percent(b, h->ceiling, 1);
		md_cell(b, h->evidence);
		md_cell(b, report_state_text(h->state));
		md_cell(b, h->reason);
		md_row_end(b);
	}
}

void mdlog_hypotheses(const struct report *r, struct buf *b)
{
	buf_str(b, "\n## 2. Hypotheses\n\n");
	findings(r, b);
	if (r->n_hyps)
		hypothesis_table(r, b);
}

/* -- 3 experiment ----------------------------------------------------------------------------- */

static void screen_effects(const struct report *r, int round, struct buf *b)
{
	static const struct md_column c[] = {{"knob", false},
					     {"change", false},
					     {"against the baseline", true},
					     {"then", false}};

	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (h->row.round != round || !isfinite(h->screen_mean))
			continue;
		md_row(b);
		mdlog_cell_change(b, &h->row);
		md_cell_percent(b, h->screen_mean, 1);
		md_cell(b, mdlog_outcome(h));
		md_row_end(b);
	}
}

void mdlog_experiment(const struct report *r, struct buf *b)
{
	bool any = false;

	buf_str(b, "\n## 3. Experiment\n\nEach arm changes one knob of the configuration that its "
		   "round "
		   "starts from. A screen ranks; it claims nothing.\n");
	for (size_t i = 0; i < r->n_stages; i++) {
		const struct report_stage *s = &r->stages[i];

		if (s->kind != STAGE_SCREEN)
			continue;
		any = true;
		buf_printf(b, "\n### Round %d\n\n", s->round);
		mdlog_stage(s, b);
		mdlog_arms(r, s, b);
		screen_effects(r, s->round, b);
	}
	if (!any)
		buf_str(b, "\nNo screen was run.\n");
}
