/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log for programs: fettle.report/1. Every key is documented in REPORT.md; a test holds
 * the two together. What is not known is null. */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/json_report.h"
#include "orchestrator/report/objectives.h"
#include "orchestrator/report/sizes.h"
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/report.h"

static struct json *campaign(const struct report *r)
{
	const struct campaign_row *c = &r->campaign;
	struct json *o = json_object();

	json_set_i64(o, "id", c->id);
	json_report_text(o, "name", c->name);
	json_report_text(o, "question", r->recipe->question);
	json_set_text(o, "state", campaign_state_name(c->state));
	json_report_text(o, "reason", c->reason);
	json_set_text(o, "mode", run_mode_name(c->mode));
	json_report_text(o, "scheduler", c->scheduler);
	json_report_text(o, "workspace", r->workspace);
	json_report_text(o, "user", c->user);
	json_report_texts(o, "also_submitted_by", &r->submitters);
	json_report_time(o, "created_utc", c->created_us);
	json_report_time(o, "ended_utc", c->ended_us);
	return o;
}

static struct json *workload(const struct workload *w)
{
	struct json *o = json_object();

	json_report_text(o, "name", w->name);
	json_report_texts(o, "command", &w->command);
	json_report_text(o, "workdir", w->workdir);
	json_set_i64(o, "warmup_steps", w->warmup_steps);
	json_set_i64(o, "steps", w->steps);
	json_report_texts(o, "secrets", &w->secrets);
	if (w->container.runtime) {
		json_report_text(o, "container", w->container.image);
		json_report_text(o, "container_runtime", w->container.runtime);
	}
	return o;
}

static struct json *guards(const struct recipe *p)
{
	struct json *a = json_array();

	for (size_t i = 0; i < p->n_guards; i++) {
		struct json *o = json_object();

		json_report_text(o, "metric", p->guards[i].metric);
		json_report_text(o, "stat", p->guards[i].stat);
		json_set_number(o, "margin", p->guards[i].margin);
		json_set_number(o, "at_most", p->guards[i].at_most);
		json_set_number(o, "at_least", p->guards[i].at_least);
		json_add(a, o);
	}
	return a;
}

static struct json *goal(const struct report *r)
{
	const struct recipe *p = r->recipe;
	struct json *o = json_object();

	json_report_text(o, "metric", p->objective);
	json_report_text(o, "stat", p->objective_stat);
	json_report_text(o, "unit", r->unit);
	json_set_text(o, "better", better_name(p->better));
	json_set_number(o, "min_effect", p->min_effect);
	json_set_number(o, "target", p->target);
	json_set_text(o, "target_state", report_target_name(r->target));
	json_set_number(o, "measured_lo", r->target_lo);
	json_set_number(o, "measured_hi", r->target_hi);
	json_set_number(o, "measured", isfinite(r->final_mean) ? r->final_mean : r->base_mean);
	json_set(o, "guards", guards(p));
	return o;
}

static struct json *signals(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_signals; i++) {
		const struct signal_row *s = &r->signals[i];
		struct json *o = json_object();

		json_report_text(o, "metric", s->metric);
		json_report_text(o, "stat", s->stat);
		json_set_text(o, "dimension",
			      report_dimension_name(report_dimension_of(s->metric)));
		json_set_text(o, "unit", report_unit_of(s->metric));
		json_set_number(o, "mean", s->mean);
		json_set_number(o, "sd", s->sd);
		json_set_i64(o, "trials", s->n);
		json_add(a, o);
	}
	return a;
}

static struct json *knobs(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->recipe->n_knobs; i++) {
		const struct knob *k = &r->recipe->knobs[i];
		struct json *o = json_object();

		json_report_text(o, "name", k->name);
		json_set_text(o, "how", knob_how_name(k->how));
		json_report_text(o, "passed_as", k->target);
		json_report_text(o, "subkey", k->subkey);
		json_set_text(o, "class", knob_class_name(k->cls));
		json_set_text(o, "proof", proof_level_name(k->proof.level));
		json_report_text(o, "default", k->default_value);
		json_report_text(o, "effective", kvs_get(&r->effective, k->name));
		json_report_texts(o, "values", &k->values);
		json_add(a, o);
	}
	return a;
}

static struct json *baseline(const struct report *r)
{
	struct json *o = json_object();

	json_set_number(o, "mean", r->base_mean);
	json_set_number(o, "noise", r->noise);
	json_set_number(o, "aa_effect", r->aa_effect);
	json_set_number(o, "aa_lo", r->aa_lo);
	json_set_number(o, "aa_hi", r->aa_hi);
	json_set_bool(o, "aa_differs", r->aa_differs);
	json_set_number(o, "smallest_effect", r->smallest);
	json_set(o, "signals", signals(r));
	json_set(o, "knobs", knobs(r));
	return o;
}

static struct json *findings(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding_row *f = &r->findings[i];
		struct json *o = json_object();

		json_set_i64(o, "round", f->round);
		json_report_text(o, "bottleneck", f->bottleneck);
		json_set_number(o, "share", f->share);
		json_report_text(o, "evidence", f->evidence);
		json_report_text(o, "rule", f->rule);
		json_add(a, o);
	}
	return a;
}

static struct json *guard_result(const struct guard_row *g)
{
	struct json *o = json_object();

	json_report_text(o, "metric", g->metric);
	json_report_text(o, "stat", g->stat);
	json_report_text(o, "rule", g->rule);
	json_report_text(o, "equal", g->equal);
	json_set_i64(o, "n", g->n);
	json_set_number(o, "value", g->value);
	json_set_number(o, "worsening", g->worsening);
	json_set_number(o, "lo", g->lo);
	json_set_number(o, "hi", g->hi);
	json_set_number(o, "bound", g->bound);
	json_report_text(o, "state", g->state);
	return o;
}

static struct json *guard_results(const struct report *r, int64_t verdict)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_guards; i++)
		if (r->guards[i].verdict == verdict)
			json_add(a, guard_result(&r->guards[i]));
	return a;
}

/* Of the final stage and the soak, with the `seq` of the stage. */
static struct json *fix_guards(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_fix_guards; i++) {
		struct json *o = guard_result(&r->fix_guards[i]);

		for (size_t k = 0; k < r->n_stages; k++)
			if (r->stages[k].id == r->fix_guards[i].stage)
				json_set_i64(o, "stage", r->stages[k].seq);
		json_add(a, o);
	}
	return a;
}

static struct json *verdict(const struct report *r, const struct verdict_row *v)
{
	struct json *o = json_object();

	json_set_i64(o, "look", v->look);
	json_set_i64(o, "pairs", v->n);
	json_report_text(o, "outcome", v->outcome);
	json_report_text(o, "reason", v->reason);
	json_set_number(o, "est", v->n > 0 ? v->est : NAN);
	json_set_number(o, "lo", v->n > 0 ? v->lo : NAN);
	json_set_number(o, "hi", v->n > 0 ? v->hi : NAN);
	json_set_number(o, "df", v->df);
	json_set_number(o, "p", v->p);
	json_set_number(o, "p_star", v->p_star);
	json_set_number(o, "sign_flip_p", v->sign_flip_p);
	json_set_number(o, "alpha_spent", v->alpha_spent);
	json_set_bool(o, "pending_convergence", v->pending_convergence);
	json_set_bool(o, "effect_unproved", v->effect_unproved);
	json_set(o, "guards", guard_results(r, v->id));
	json_report_text(o, "inputs_hash", v->inputs_hash);
	json_report_time(o, "at_utc", v->at_us);
	return o;
}

static struct json *looks(const struct report *r, const struct report_hypothesis *h)
{
	struct json *a = json_array();

	for (size_t i = 0; i < h->n_looks; i++)
		json_add(a, verdict(r, &h->looks[i]));
	return a;
}

static struct json *proofs(const struct report_hypothesis *h)
{
	struct json *a = json_array();

	for (size_t i = 0; i < h->n_proofs; i++) {
		struct json *o = json_object();

		json_report_text(o, "key", h->proofs[i].key);
		json_report_text(o, "value", h->proofs[i].value);
		json_set_text(o, "level", proof_level_name(h->proofs[i].level));
		json_set_i64(o, "times", h->proofs[i].n);
		json_add(a, o);
	}
	return a;
}

static void prediction(const struct hypothesis_row *h, struct json *o)
{
	json_set_i64(o, "id", h->id);
	json_set_i64(o, "round", h->round);
	json_set_i64(o, "rank", h->rank);
	json_report_text(o, "knob", h->knob);
	json_report_text(o, "from", h->from_value);
	json_report_text(o, "to", h->value);
	json_set_text(o, "class", knob_class_name(h->cls));
	json_set_text(o, "proof", proof_level_name(h->proof));
	json_set_bool(o, "user_defined", h->user_defined);
	json_set_text(o, "bottleneck", bottleneck_name(h->bottleneck));
	json_report_text(o, "evidence", h->evidence);
	json_set_number(o, "predicted_gain", h->gain);
	json_set_number(o, "ceiling", h->ceiling);
	json_set_text(o, "state", hypothesis_state_name(h->state));
	json_report_text(o, "reason", h->reason);
}

/* What a declared bundle changes; null for a knob. */
static void set_bundle(struct json *o, const struct report *r, const struct hypothesis_row *h)
{
	const struct knob *k = recipe_knob(r->recipe, h->knob);
	const struct bundle *b = k ? knob_bundle(k, h->value) : NULL;
	struct json *j, *env;

	if (!b) {
		json_set_text(o, "bundle", NULL);
		return;
	}
	j = json_object();
	env = json_object();
	for (size_t i = 0; i < b->env.n; i++)
		json_report_text(env, b->env.v[i].key, b->env.v[i].value);
	json_set(j, "env", env);
	json_report_texts(j, "command", &b->command);
	json_set(o, "bundle", j);
}

static struct json *hypotheses(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];
		struct json *o = json_object();
		bool judged = h->stage >= 0 && (size_t)h->stage < r->n_stages;

		prediction(&h->row, o);
		set_bundle(o, r, &h->row);
		json_set_text(o, "fate", report_fate_name(report_fate_of(h)));
		json_set_number(o, "screen_effect", h->screen_mean);
		json_set_number(o, "stage", judged ? r->stages[h->stage].seq : NAN);
		if (h->has_verdict)
			json_set(o, "verdict", verdict(r, &h->verdict));
		else
			json_set_text(o, "verdict", NULL);
		json_set(o, "looks", looks(r, h));
		json_set(o, "other_metrics", json_report_effects(&h->effects));
		json_set(o, "shown", proofs(h));
		json_set_number(o, "trial_s", h->effects.trial_s);
		json_set_number(o, "gpu_hours",
				h->effects.gpu_hours > 0 ? h->effects.gpu_hours : NAN);
		json_add(a, o);
	}
	return a;
}

static struct json *settings(const struct config *c)
{
	struct json *o = json_object();

	for (size_t i = 0; i < c->settings.n; i++)
		json_report_text(o, c->settings.v[i].key, c->settings.v[i].value);
	return o;
}

static void fix(const struct report *r, struct json *top)
{
	struct json *o;

	if (!r->has_fix) {
		json_set_text(top, "fix", NULL);
		return;
	}
	o = json_object();
	json_set(o, "settings", settings(&r->fix_config));
	json_set_text(o, "config_hash", r->fix_config.hash);
	json_report_text(o, "state", r->fix.state);
	json_report_text(o, "reason", r->fix.reason);
	json_set_bool(o, "confirmed", recommend_confirmed(r));
	json_set(o, "guards", fix_guards(r));
	json_set_number(o, "est", r->fix.est);
	json_set_number(o, "lo", r->fix.lo);
	json_set_number(o, "hi", r->fix.hi);
	json_set_i64(o, "pairs", r->fix.n);
	json_set_number(o, "mean", r->final_mean);
	json_set_number(o, "soak_drift", r->fix.soak_drift);
	json_report_time(o, "at_utc", r->fix.at_us);
	json_report_object(o, "fingerprint", r->fix.fingerprint);
	json_set(o, "other_metrics", json_report_effects(&r->fix_effects));
	json_set(top, "fix", o);
}

static struct json *ranking(const struct report *r)
{
	_cleanup_free_ size_t *order = xcalloc(r->n_hyps + 1, sizeof *order);
	size_t n = report_ranking(r, order);
	struct json *a = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct report_hypothesis *h = &r->hyps[order[i]];
		struct json *o = json_object();

		json_set_i64(o, "hypothesis", h->row.id);
		json_report_text(o, "knob", h->row.knob);
		json_report_text(o, "to", h->row.value);
		json_set_number(o, "est", h->verdict.est);
		json_add(a, o);
	}
	return a;
}

static struct json *reproduce(const struct report *r)
{
	struct json *o = json_object(), *a = json_array();
	_cleanup_free_ char *seed = xasprintf("%llu", (unsigned long long)r->campaign.seed);

	json_report_text(o, "recipe", r->campaign.recipe_path);
	json_report_text(o, "recipe_hash", r->campaign.recipe_hash);
	json_set_text(o, "seed", seed); /* 64 bits do not survive a JSON number */
	for (size_t i = 0; i < r->n_sources; i++) {
		struct json *s = json_object();

		json_report_text(s, "name", r->sources[i].name);
		json_report_text(s, "path", r->sources[i].path);
		json_report_text(s, "hash", r->sources[i].hash);
		json_add(a, s);
	}
	json_set(o, "sources", a);
	return o;
}

/* What was screened out, taken out by lint or left for want of budget, and why. */
static struct json *not_tried(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];
		enum report_fate f = report_fate_of(h);
		struct json *o;

		if (f != FATE_NOT_TRIED && f != FATE_SCREENED_OUT)
			continue;
		o = json_object();
		json_set_i64(o, "hypothesis", h->row.id);
		json_report_text(o, "knob", h->row.knob);
		json_report_text(o, "to", h->row.value);
		json_set_text(o, "fate", report_fate_name(f));
		json_report_text(o, "reason", h->row.reason);
		json_add(a, o);
	}
	return a;
}

static struct json *counts(const struct report *r)
{
	struct json *o = json_object();
	int64_t n[FATES] = {0};

	for (size_t i = 0; i < r->n_hyps; i++)
		n[report_fate_of(&r->hyps[i])]++;
	for (int f = 0; f < FATES; f++)
		json_set_i64(o, report_fate_name((enum report_fate)f), n[f]);
	return o;
}

static int write_json(const struct report *r, struct buf *out, struct err *e)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct buf words = {0};

	(void)e;
	report_summary(r, &words);
	json_set_text(o, "format", "fettle.report/1");
	json_set(o, "campaign", campaign(r));
	json_report_text(o, "summary", words.data ? words.data : "");
	json_set(o, "workload", workload(&r->recipe->workload));
	json_set(o, "objective", goal(r));
	json_set(o, "baseline", baseline(r));
	json_set(o, "findings", findings(r));
	json_set(o, "counts", counts(r));
	json_set(o, "hypotheses", hypotheses(r));
	json_report_stages(r, o);
	report_canaries_json(r, o);
	fix(r, o);
	json_set(o, "ranking", ranking(r));
	json_set(o, "not_tried", not_tried(r));
	json_report_record(r, o);
	json_set(o, "unit_costs", report_costs_json(r));
	json_set(o, "tradeoffs", report_tradeoffs_json(r));
	json_set(o, "sizes", report_sizes_json(r));
	json_set(o, "reproduce", reproduce(r));
	json_put(out, o, true); /* a line a trial: the largest text that there is */
	buf_char(out, '\n');
	buf_free(&words);
	return 0;
}

const struct report_format format_json = {.name = "json",
					  .extension = "json",
					  .summary = "the tuning log for programs: fettle.report/1",
					  .write = write_json};
