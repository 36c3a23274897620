/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps 1 to 3: what was measured, proposed and ranked. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"

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

/* It stood at 0 in every trial: no row of its own. */
static bool is_zero(const struct signal_row *s)
{
	return s->mean == 0 && s->sd == 0;
}

static void zeros(const struct report *r, struct doc *doc)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_signals; i++) {
		if (!leads(r, &r->signals[i]) || !is_zero(&r->signals[i]))
			continue;
		if (n == 0)
			doc_para(doc);
		doc_str(doc, n++ ? _(", ") : _("0 in every trial: "));
		doc_code(doc, r->signals[i].metric);
	}
	if (n)
		doc_str(doc, ".");
}

static void signal_table(const struct report *r, enum report_dimension d, struct doc *doc)
{
	static const struct doc_column c[] = {
		{"metric", false}, {"mean", true},  {"sd between trials", true},
		{"p95", true},     {"unit", false}, {"trials", true}};
	bool any = false;

	for (size_t i = 0; i < r->n_signals; i++) {
		const struct signal_row *s = &r->signals[i], *p95;

		if (!leads(r, s) || is_zero(s) || report_dimension_of(s->metric) != d)
			continue;
		if (!any) {
			doc_title(doc, 4, report_dimension_name(d));
			doc_table(doc, c, ARRAY_LEN(c));
		}
		any = true;
		p95 = signal_stat(r, s->metric, "p95");
		doc_row(doc);
		doc_cell_code(doc, s->metric);
		doc_cell_number(doc, s->mean);
		doc_cell_number(doc, s->sd);
		doc_cell_number(doc, p95 ? p95->mean : NAN);
		doc_cell(doc, report_unit_of(s->metric));
		doc_cell_i64(doc, s->n);
	}
	if (!any) {
		doc_title(doc, 4, report_dimension_name(d));
		doc_say(doc, "Nothing was measured.");
	}
}

static void knob_table(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {
		{"knob", false},          {"passed as", false},
		{"default value", false}, {"seen in the processes", false},
		{"class", false},         {"proof asked for", false}};

	doc_title(doc, 3, "Knobs and their values in the baseline");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->recipe->n_knobs; i++) {
		const struct knob *k = &r->recipe->knobs[i];
		_cleanup_free_ char *how = xasprintf("%s %s%s%s", knob_how_name(k->how), k->target,
						     k->subkey ? ":" : "",
						     k->subkey ? k->subkey : "");

		doc_row(doc);
		doc_cell_code(doc, k->name);
		doc_cell_code(doc, how);
		doc_cell(doc, tlog_or_unset(k->default_value));
		doc_cell(doc, kvs_has(&r->effective, k->name) ? kvs_get(&r->effective, k->name)
							      : _("not set"));
		doc_cell(doc, lang_word("knob_class", knob_class_name(k->cls)));
		doc_cell(doc, lang_word("proof_level", proof_level_name(k->proof.level)));
	}
}

void tlog_baseline(const struct report *r, struct doc *doc)
{
	char text[DOC_FIGURES_MAX];
	bool any = false;

	if (r->recipe->canary.blocks)
		return;
	if (r->recipe->ladder.n) {
		tlog_ladder(r, doc);
		return;
	}
	doc_title(doc, 2, "1. Baseline");
	doc_say(doc, "The default configuration against itself.");
	doc_item(doc);
	doc_printf(doc, "Mean: %s %s", doc_number_text(text, r->base_mean), r->unit ? r->unit : "");
	doc_item(doc);
	if (isfinite(r->noise))
		doc_printf(doc, "Noise of a run within a block: %.2f %% (log sd)", 100 * r->noise);
	else
		doc_str(doc, "Noise of a run within a block: unknown");
	doc_item(doc);
	doc_printf(doc, "Default against itself: %s",
		   doc_effect_text(text, r->aa_effect, r->aa_lo, r->aa_hi));
	doc_item(doc);
	doc_printf(doc, "Smallest gain that a validation finds with 80 %% power at this noise: %s",
		   r->noise == 0 ? _("any, the values do not vary")
				 : doc_percent_text(text, r->smallest, 1));
	for (size_t i = 0; i < r->n_stages; i++) {
		if (r->stages[i].kind != STAGE_AA)
			continue;
		any = true;
		tlog_stage(&r->stages[i], doc);
		tlog_arms(r, &r->stages[i], doc);
	}
	if (!any)
		doc_say(doc,
			r->recipe->aa_blocks == BLOCKS_NONE
				? _("No A/A stage was asked for, so the noise is that of the tests.")
				: _("Nothing was measured yet."));
	doc_title(doc, 3, "Signals");
	for (int d = 0; d < DIMENSIONS; d++)
		signal_table(r, (enum report_dimension)d, doc);
	zeros(r, doc);
	if (r->recipe->n_knobs)
		knob_table(r, doc);
}

/* -- 2 hypotheses ----------------------------------------------------------------------------- */

static void findings(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"round", true},
					      {"bottleneck", false},
					      {"share of the step", true},
					      {"evidence", false},
					      {"rule", false}};

	if (r->n_findings == 0) {
		doc_say(doc, r->n_hyps ? _("No rule names a bottleneck from the signals at hand.")
				       : _("None yet."));
		return;
	}
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding_row *f = &r->findings[i];

		doc_row(doc);
		doc_cell_i64(doc, f->round);
		doc_cell(doc, report_finding_is_open(f) ? P_("question", "open")
							: lang_word("bottleneck", f->bottleneck));
		if (isfinite(f->share))
			doc_cell_printf(doc, "%.0f %%", 100 * f->share);
		else
			doc_cell(doc, _("unknown"));
		doc_cell_recorded(doc, f->evidence);
		doc_cell_code(doc, f->rule);
	}
}

static void hypothesis_table(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"round", true},          {"rank", true},
					      {"change", false},        {"class", false},
					      {"addresses", false},     {"evidence", false},
					      {"predicted gain", true}, {"ceiling", true},
					      {"state", false}};

	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct hypothesis_row *h = &r->hyps[i].row;

		doc_row(doc);
		doc_cell_i64(doc, h->round);
		doc_cell_i64(doc, h->rank);
		doc_cell_begin(doc);
		tlog_change(doc, h);
		doc_cell_end(doc);
		doc_cell(doc, lang_word("knob_class", knob_class_name(h->cls)));
		doc_cell(doc, lang_word("bottleneck", bottleneck_name(h->bottleneck)));
		doc_cell_recorded(doc, h->evidence);
		doc_cell_percent(doc, h->gain, 1);
		doc_cell_percent(doc, h->ceiling, 1);
		doc_cell(doc, _(report_state_text(h->state)));
	}
}

static void split_table(const struct report *r, struct doc *doc)
{
	struct doc_column c[REPORT_PARTS + 4] = {{"round", true},
						 {"configuration", false},
						 {"seen by", false},
						 {"steps made longer by", true}};

	if (r->n_profiles == 0)
		return;
	for (size_t k = 0; k < REPORT_PARTS; k++)
		c[k + 4] = (struct doc_column){report_part_name((enum report_part)k), true};
	doc_title(doc, 3, "Where the time of a step goes");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_profiles; i++) {
		const struct report_profile *p = &r->profiles[i];

		doc_row(doc);
		doc_cell_i64(doc, p->round);
		doc_cell_code(doc, p->config_text);
		doc_cell(doc, p->profiler ? _("a profiler") : _("timed trials"));
		if (p->price.timed_ms > 0)
			doc_cell_percent(doc, p->price.traced_ms / p->price.timed_ms - 1, 0);
		else
			doc_cell(doc, NULL);
		for (size_t k = 0; k < REPORT_PARTS; k++)
			if (isfinite(p->part[k]))
				doc_cell_printf(doc, "%.1f %%", 100 * p->part[k]);
			else
				doc_cell(doc, NULL);
	}
	if (r->profiles[0].profiler)
		doc_say(doc,
			"A profiler slows the host down and not the kernels: the idle time that it "
			"adds to a step on a device is taken out.");
}

void tlog_hypotheses(const struct report *r, struct doc *doc)
{
	if (r->recipe->canary.blocks)
		return;
	doc_title(doc, 2, "2. Hypotheses");
	findings(r, doc);
	if (r->n_hyps)
		hypothesis_table(r, doc);
	split_table(r, doc);
}

/* -- 3 experiment ----------------------------------------------------------------------------- */

static void screen_effects(const struct report *r, int round, struct doc *doc)
{
	static const struct doc_column c[] = {{"knob", false},
					      {"change", false},
					      {"against the baseline", true},
					      {"then", false}};

	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (h->row.round != round || !isfinite(h->screen_mean))
			continue;
		doc_row(doc);
		tlog_cell_change(doc, &h->row);
		doc_cell_percent(doc, h->screen_mean, 1);
		doc_cell(doc, tlog_outcome(h));
	}
}

void tlog_experiment(const struct report *r, struct doc *doc)
{
	bool any = false;

	if (!tlog_tests(r))
		return;
	doc_title(doc, 2, "3. Experiment");
	doc_say(doc,
		"Each arm changes one knob of the configuration that its round starts from. A screen ranks; it claims nothing.");
	for (size_t i = 0; i < r->n_stages; i++) {
		const struct report_stage *s = &r->stages[i];

		if (s->kind != STAGE_SCREEN)
			continue;
		any = true;
		doc_heading(doc, 3);
		doc_printf(doc, "Round %d", s->round);
		tlog_stage(s, doc);
		tlog_arms(r, s, doc);
		screen_effects(r, s->round, doc);
	}
	if (!any)
		doc_say(doc, "No screen was run.");
}
