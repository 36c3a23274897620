/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log for people: summary, target, the five steps in order, what was refuted or left
 * out, and what is needed to do it again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

enum {
	/* Rows of a list that grows with the campaign, not with the question: a person reads the
	 * first hundred, programs read the JSON, which holds all. */
	ROWS_MAX = 100,
};

static const char *or_unset(const char *value)
{
	return value ? value : "(not set)";
}

static void change_text(struct buf *b, const struct hypothesis_row *h)
{
	md_code(b, h->knob);
	buf_char(b, ' ');
	md_text(b, or_unset(h->from_value));
	buf_str(b, " -> ");
	md_text(b, h->value);
}

static void cell_change(struct buf *b, const struct hypothesis_row *h)
{
	_cleanup_free_ char *text = xasprintf("%s -> %s", or_unset(h->from_value), h->value);

	md_cell_code(b, h->knob);
	md_cell(b, text);
}

static void rows_left_out(struct buf *b, size_t n, const char *what)
{
	if (n > ROWS_MAX)
		buf_printf(b, "\n%zu more %s: see the JSON form.\n", n - ROWS_MAX, what);
}

/* -- head ----------------------------------------------------------------------------------------
 */

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
		buf_printf(b, " %s measured %s).\n", r->unit ? r->unit : "",
			   fixed ? "in the final stage" : "in the baseline");
	}
	buf_str(b, "Smallest useful gain: ");
	md_percent(b, p->min_effect, 1);
	buf_str(b, ".\n");
	for (size_t i = 0; i < p->n_guards; i++) {
		buf_str(b, i ? "; " : "Guards: ");
		md_code(b, p->guards[i].metric);
		buf_printf(b, " (%s) at most %.1f %% worse", p->guards[i].stat,
			   100 * p->guards[i].margin);
	}
	buf_str(b, p->n_guards ? ".\n" : "Guards: none declared; failures always count.\n");
}

/* -- stages --------------------------------------------------------------------------------------
 */

static void stage_line(const struct report_stage *s, struct buf *b)
{
	buf_printf(b, "Stage %d, %s: %d of %s%d blocks valid", s->seq, stage_kind_name(s->kind),
		   s->blocks_valid, s->kind == STAGE_CONFIRM ? "at most " : "", s->blocks_planned);
	if (s->blocks_void)
		buf_printf(b, ", %d attempt%s void or lost", s->blocks_void,
			   s->blocks_void == 1 ? "" : "s");
	buf_str(b, s->open ? "; still open.\n" : ".\n");
	if (s->note) {
		buf_str(b, "Conclusion: ");
		md_text(b, s->note);
		buf_str(b, ".\n");
	}
}

static void arms_table(const struct report *r, const struct report_stage *s, struct buf *b)
{
	static const struct md_column c[] = {{"arm", false},   {"configuration", false},
					     {"trials", true}, {"failed", true},
					     {"mean", true},   {"sd", true},
					     {"unit", false}};

	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < s->n_arms; i++) {
		const struct report_arm *a = &s->arms[i];

		md_row(b);
		md_cell(b, a->label);
		md_cell_code(b, a->config_text);
		md_cell_i64(b, (int64_t)a->n);
		md_cell_i64(b, (int64_t)a->failed);
		md_cell_number(b, a->mean);
		md_cell_number(b, a->sd);
		md_cell(b, r->unit);
		md_row_end(b);
	}
}

/* -- 1 baseline ----------------------------------------------------------------------------------
 */

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
		md_cell(b, or_unset(k->default_value));
		md_cell(b, kvs_has(&r->effective, k->name) ? kvs_get(&r->effective, k->name)
							   : "not set");
		md_cell(b, knob_class_name(k->cls));
		md_cell(b, proof_level_name(k->proof.level));
		md_row_end(b);
	}
}

static void baseline(const struct report *r, struct buf *b)
{
	bool any = false;

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
		stage_line(&r->stages[i], b);
		arms_table(r, &r->stages[i], b);
	}
	if (!any)
		buf_str(b, "\nNothing was measured yet.\n");
	buf_str(b, "\n### Signals\n");
	for (int d = 0; d < DIMENSIONS; d++)
		signal_table(r, (enum report_dimension)d, b);
	if (r->recipe->n_knobs)
		knob_table(r, b);
}

/* -- 2 hypotheses --------------------------------------------------------------------------------
 */

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
		md_cell(b, f->bottleneck);
		if (isfinite(f->share))
			buf_printf(b, " %.0f %% |", 100 * f->share);
		else
			md_cell(b, "unknown");
		md_cell(b, f->evidence);
		md_cell_code(b, f->rule);
		md_row_end(b);
	}
}

/* What became of it, in a few words. */
static const char *outcome_of(const struct report_hypothesis *h)
{
	return h->has_verdict ? h->verdict.outcome : report_state_text(h->row.state);
}

static const char *reason_of(const struct report_hypothesis *h)
{
	return h->has_verdict && h->verdict.reason ? h->verdict.reason : h->row.reason;
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
		cell_change(b, h);
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

static void hypotheses(const struct report *r, struct buf *b)
{
	buf_str(b, "\n## 2. Hypotheses\n\n");
	findings(r, b);
	if (r->n_hyps)
		hypothesis_table(r, b);
}

/* -- 3 experiment --------------------------------------------------------------------------------
 */

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
		cell_change(b, &h->row);
		md_cell_percent(b, h->screen_mean, 1);
		md_cell(b, outcome_of(h));
		md_row_end(b);
	}
}

static void experiment(const struct report *r, struct buf *b)
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
		stage_line(s, b);
		arms_table(r, s, b);
		screen_effects(r, s->round, b);
	}
	if (!any)
		buf_str(b, "\nNo screen was run.\n");
}

/* -- 4 validation --------------------------------------------------------------------------------
 */

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
	change_text(b, &h->row);
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

/* In the units that sites account in. */
static void node_cost(const struct report *r, double node_s, struct buf *b)
{
	int gpus = r->recipe->resources.gpus_per_node;

	buf_printf(b, ", %.3f node-hours", node_s / 3600);
	if (gpus > 0)
		buf_printf(b, ", %.3f GPU-hours", node_s / 3600 * gpus);
}

static void validation_of(const struct report *r, const struct report_hypothesis *h, size_t number,
			  struct buf *b)
{
	int nodes = r->recipe->resources.nodes;

	buf_printf(b, "\n### 4.%zu ", number);
	change_text(b, &h->row);
	buf_str(b, ": ");
	md_text(b, h->has_verdict ? h->verdict.outcome : "open");
	buf_str(b, "\n\n");
	changed(r, h, b);
	actual(h, b);
	proof(h, b);
	buf_printf(b, "- Cost: %.0f s of trials", h->trial_s);
	node_cost(r, h->trial_s * (nodes > 0 ? nodes : 1), b);
	buf_str(b, ".\n");
	logs(r, h, b);
	looks_table(h, b);
	if (h->n_effects)
		effects_table(r, h, b);
}

static void validation(const struct report *r, struct buf *b)
{
	size_t n = 0;

	buf_str(b,
		"\n## 4. Validation\n\nOn fresh blocks, until the sequential rule decides. "
		"Effects are "
		"relative, + is better; intervals are those that the verdict rests on: a side errs with at most the stage's alpha, over all looks.\n");
	for (size_t i = 0; i < r->n_hyps; i++)
		if (r->hyps[i].n_looks)
			validation_of(r, &r->hyps[i], ++n, b);
	if (n == 0)
		buf_str(b, "\nNothing was tested.\n");
}

/* -- 5 fixing ------------------------------------------------------------------------------------
 */

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

static void fix_lines(const struct report *r, struct buf *b)
{
	_cleanup_free_ char *text = config_text(&r->fix_config);

	buf_str(b, "- Configuration: ");
	md_code(b, text);
	buf_str(b, "\n- State: **");
	md_text(b, r->fix.state);
	buf_str(b, "**\n- Against the original default: ");
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
}

static void fixing(const struct report *r, struct buf *b)
{
	buf_str(b, "\n## 5. Fixing\n\n");
	if (r->has_fix)
		fix_lines(r, b);
	else
		buf_str(b, r->campaign.state == CAMPAIGN_DONE
				   ? "Nothing was accepted: the default stays.\n"
				   : "Not reached.\n");
	for (size_t i = 0; i < r->n_stages; i++) {
		if (r->stages[i].kind != STAGE_FINAL && r->stages[i].kind != STAGE_SOAK)
			continue;
		buf_char(b, '\n');
		stage_line(&r->stages[i], b);
		arms_table(r, &r->stages[i], b);
	}
	if (r->has_fix)
		fingerprint(r->fix.fingerprint, b);
}

/* -- what was found, what was not
 * ------------------------------------------------------------------ */

/* Tested hypotheses that were not accepted: refuted ones, or those that allow no judgement. */
static bool negative(const struct report_hypothesis *h, bool judged)
{
	enum verdict_outcome o;

	if (!h->has_verdict || !verdict_outcome_parse(h->verdict.outcome, &o) ||
	    o == VERDICT_ACCEPTED)
		return false;
	return (o != VERDICT_INVALID && o != VERDICT_INCONCLUSIVE) == judged;
}

static void ranking(const struct report *r, struct buf *b)
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
		cell_change(b, &h->row);
		md_cell_percent(b, h->verdict.est, 1);
		buf_char(b, ' ');
		md_interval(b, h->verdict.lo, h->verdict.hi);
		buf_str(b, " |");
		md_cell(b, h->verdict.outcome);
		md_row_end(b);
	}
}

static void list_item(const struct report_hypothesis *h, struct buf *b)
{
	const char *why = reason_of(h);

	buf_str(b, "- ");
	change_text(b, &h->row);
	buf_str(b, ": ");
	md_text(b, outcome_of(h));
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

static void negative_results(const struct report *r, struct buf *b)
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

static void faults(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"stage", false},  {"block", true}, {"attempt", true},
					     {"slot", true},    {"arm", false},  {"state", false},
					     {"reason", false}, {"log", false}};

	buf_str(b, "\n## Trials that failed, attempts that were void\n\n");
	if (r->n_faults == 0) {
		buf_str(b, "None.\n");
		return;
	}
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_faults && i < ROWS_MAX; i++) {
		const struct fault_row *f = &r->faults[i];

		md_row(b);
		md_cell(b, f->stage);
		md_cell_i64(b, f->block_index);
		md_cell_i64(b, f->attempt);
		if (f->slot >= 0)
			md_cell_i64(b, f->slot);
		else
			md_cell(b, "all");
		md_cell(b, f->arm);
		md_cell(b, f->state);
		md_cell(b, f->reason);
		md_cell_code(b, f->log_path);
		md_row_end(b);
	}
	rows_left_out(b, r->n_faults, "faults");
}

static void events(const struct report *r, struct buf *b)
{
	buf_str(b, "\n## Events\n\n");
	for (size_t i = 0; i < r->n_events && i < ROWS_MAX; i++) {
		buf_str(b, "- ");
		md_time(b, r->events[i].at_us);
		buf_str(b, ", ");
		md_text(b, r->events[i].kind);
		buf_str(b, ": ");
		md_text(b, r->events[i].text);
		buf_char(b, '\n');
	}
	if (r->n_events == 0)
		buf_str(b, "None.\n");
	rows_left_out(b, r->n_events, "events");
}

/* -- accounts, reproduction
 * ------------------------------------------------------------------------- */

static void account_of_alpha(const struct alpha_ledger *a, struct buf *b)
{
	size_t left = alpha_ledger_left(a);

	buf_printf(b,
		   "\n## Account of alpha\n\nThe chance of any false win in the campaign is at "
		   "most %.4g, over at most %zu validation%s fixed before the first result. ",
		   a->total, a->stages, a->stages == 1 ? "" : "s");
	buf_printf(b, "Tested: %zu; spent %.4g; left: %zu validation%s", a->used, a->spent, left,
		   left == 1 ? "" : "s");
	if (left)
		buf_printf(b, ", the next one at %.4g", alpha_ledger_next(a));
	buf_str(b, ".\n");
}

static void cost(const struct report *r, struct buf *b)
{
	const struct cost_row *c = &r->cost;

	buf_printf(b, "\n## Cost\n\n%lld timed trials, %lld with warm-up; %.0f s of trials",
		   (long long)c->trials_timed, (long long)c->trials_all, c->trial_s);
	node_cost(r, c->node_s, b);
	buf_printf(b, "; %lld allocations; %lld attempts, of which %lld void or lost.\n",
		   (long long)c->allocations, (long long)c->attempts, (long long)c->attempts_void);
	if (str_eq(r->campaign.scheduler, "local"))
		buf_str(b, "Measured on one machine: the conclusion holds for this machine.\n");
}

/* A command to copy: no byte of it may end the block or act on a terminal. */
static void shell_block(struct buf *b, const char *const *argv, size_t n)
{
	buf_str(b, "\n    ");
	for (size_t i = 0; i < n; i++) {
		struct buf word = {0};

		text_sh(&word, argv[i]);
		buf_str(b, i ? " " : "");
		text_line(b, word.data);
		buf_free(&word);
	}
	buf_str(b, "\n");
}

static void sources_table(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {
		{"source", false}, {"file", false}, {"XXH3-128", false}};

	if (r->n_sources == 0)
		return;
	buf_str(b,
		"\nThe texts that it runs on are stored with it, so that a file that changes later "
		"changes nothing:\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_sources; i++) {
		md_row(b);
		md_cell(b, r->sources[i].name);
		md_cell_code(b, r->sources[i].path);
		md_cell_code(b, r->sources[i].hash);
		md_row_end(b);
	}
}

static void reproduce(const struct report *r, struct buf *b)
{
	const struct campaign_row *c = &r->campaign;
	const struct workload *w = &r->recipe->workload;
	const char *again[] = {"fettle", "run", c->recipe_path, "--scheduler", c->scheduler};

	buf_str(b, "\n## How to reproduce\n\n- Recipe: ");
	md_code(b, c->recipe_path);
	buf_str(b, ", hash of all its sources ");
	md_code(b, c->recipe_hash);
	buf_printf(b, "\n- Seed of the orders of blocks: %llu\n- Workload: ",
		   (unsigned long long)c->seed);
	md_code(b, w->name);
	buf_str(b, " in ");
	md_code(b, w->workdir);
	buf_printf(b, "; window: %lld warm-up steps, then %lld steps\n", (long long)w->warmup_steps,
		   (long long)w->steps);
	if (w->secrets.n)
		buf_str(b, "- Secrets, passed by name and never stored: ");
	for (size_t i = 0; i < w->secrets.n; i++) {
		buf_str(b, i ? ", " : "");
		md_code(b, w->secrets.v[i]);
	}
	buf_str(b, w->secrets.n ? "\n\nThe workload's command:\n" : "\nThe workload's command:\n");
	shell_block(b, (const char *const *)w->command.v, w->command.n);
	buf_str(b, "\nThe campaign again:\n");
	shell_block(b, again, ARRAY_LEN(again));
	sources_table(r, b);
}

static int write_markdown(const struct report *r, struct buf *b, struct err *e)
{
	(void)e;
	head(r, b);
	summary(r, b);
	target(r, b);
	baseline(r, b);
	hypotheses(r, b);
	experiment(r, b);
	validation(r, b);
	fixing(r, b);
	ranking(r, b);
	negative_results(r, b);
	faults(r, b);
	events(r, b);
	account_of_alpha(&r->alpha, b);
	cost(r, b);
	reproduce(r, b);
	return 0;
}

const struct report_format format_markdown = {.name = "markdown",
					      .extension = "md",
					      .summary = "the tuning log for people",
					      .write = write_markdown};
