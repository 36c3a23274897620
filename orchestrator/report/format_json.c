/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log for programs: fettle.report/1. Every key is documented in REPORT.md; a test holds
 * the two together. What is not known is null. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/objectives.h"
#include "orchestrator/report/sizes.h"
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

/* JSON is UTF-8, and what comes from logs may not be. */
static void set_text(struct json *o, const char *key, const char *value)
{
	struct buf b = {0};

	if (value) {
		text_utf8(&b, value);
		json_set_text(o, key, b.data ? b.data : "");
	} else {
		json_set_text(o, key, NULL);
	}
	buf_free(&b);
}

static void add_text(struct json *a, const char *value)
{
	struct buf b = {0};

	text_utf8(&b, value);
	json_add_text(a, b.data ? b.data : "");
	buf_free(&b);
}

static void set_texts(struct json *o, const char *key, const struct strv *v)
{
	struct json *a = json_array();

	for (size_t i = 0; i < v->n; i++)
		add_text(a, v->v[i]);
	json_set(o, key, a);
}

/* 0 is "not known" for times. */
static void set_time(struct json *o, const char *key, int64_t utc_us)
{
	char text[32];

	clock_iso(utc_us, text, sizeof text);
	json_set_text(o, key, utc_us > 0 ? text : NULL);
}

static struct json *campaign(const struct report *r)
{
	const struct campaign_row *c = &r->campaign;
	struct json *o = json_object();

	json_set_i64(o, "id", c->id);
	set_text(o, "name", c->name);
	set_text(o, "question", r->recipe->question);
	json_set_text(o, "state", campaign_state_name(c->state));
	set_text(o, "reason", c->reason);
	json_set_text(o, "mode", run_mode_name(c->mode));
	set_text(o, "scheduler", c->scheduler);
	set_text(o, "workspace", r->workspace);
	set_time(o, "created_utc", c->created_us);
	set_time(o, "ended_utc", c->ended_us);
	return o;
}

static struct json *workload(const struct workload *w)
{
	struct json *o = json_object();

	set_text(o, "name", w->name);
	set_texts(o, "command", &w->command);
	set_text(o, "workdir", w->workdir);
	json_set_i64(o, "warmup_steps", w->warmup_steps);
	json_set_i64(o, "steps", w->steps);
	set_texts(o, "secrets", &w->secrets);
	if (w->container.runtime) {
		set_text(o, "container", w->container.image);
		set_text(o, "container_runtime", w->container.runtime);
	}
	return o;
}

static struct json *guards(const struct recipe *p)
{
	struct json *a = json_array();

	for (size_t i = 0; i < p->n_guards; i++) {
		struct json *o = json_object();

		set_text(o, "metric", p->guards[i].metric);
		set_text(o, "stat", p->guards[i].stat);
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

	set_text(o, "metric", p->objective);
	set_text(o, "stat", p->objective_stat);
	set_text(o, "unit", r->unit);
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

		set_text(o, "metric", s->metric);
		set_text(o, "stat", s->stat);
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

		set_text(o, "name", k->name);
		json_set_text(o, "how", knob_how_name(k->how));
		set_text(o, "passed_as", k->target);
		set_text(o, "subkey", k->subkey);
		json_set_text(o, "class", knob_class_name(k->cls));
		json_set_text(o, "proof", proof_level_name(k->proof.level));
		set_text(o, "default", k->default_value);
		set_text(o, "effective", kvs_get(&r->effective, k->name));
		set_texts(o, "values", &k->values);
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
		set_text(o, "bottleneck", f->bottleneck);
		json_set_number(o, "share", f->share);
		set_text(o, "evidence", f->evidence);
		set_text(o, "rule", f->rule);
		json_add(a, o);
	}
	return a;
}

static struct json *arms(const struct report_stage *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n_arms; i++) {
		struct json *o = json_object();

		set_text(o, "label", s->arms[i].label);
		set_text(o, "configuration", s->arms[i].config_text);
		json_set_i64(o, "trials", (int64_t)s->arms[i].n);
		json_set_i64(o, "failed", (int64_t)s->arms[i].failed);
		json_set_number(o, "mean", s->arms[i].mean);
		json_set_number(o, "sd", s->arms[i].sd);
		json_add(a, o);
	}
	return a;
}

static struct json *nodes(const struct report *r, int64_t stage)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_nodes; i++)
		if (r->nodes[i].stage == stage)
			json_add_text(a, r->nodes[i].node);
	return a;
}

static struct json *ablations(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_ablations; i++) {
		const struct ablation_row *x = &r->ablations[i];
		struct json *o = json_object();

		set_text(o, "without", x->knobs);
		json_set_i64(o, "pairs", x->n);
		json_set_number(o, "est", x->est);
		json_set_number(o, "lo", x->lo);
		json_set_number(o, "hi", x->hi);
		json_set_text(o, "outcome", ablation_outcome_name(x->outcome));
		set_text(o, "reason", x->reason);
		json_add(a, o);
	}
	return a;
}

static struct json *rungs(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_rungs; i++) {
		const struct rung_row *g = &r->rungs[i];
		const struct {
			const char *name;
			double v;
		} numbers[] = {{"est", g->est},
			       {"lo", g->lo},
			       {"hi", g->hi},
			       {"total", g->total},
			       {"total_lo", g->total_lo},
			       {"total_hi", g->total_hi},
			       {"loss_communication", g->communication},
			       {"loss_straggler", g->straggler},
			       {"loss_input", g->input},
			       {"loss_rest", g->rest}};
		struct json *o = json_object();

		json_set_i64(o, "rung", g->round);
		json_set_i64(o, "nodes", g->nodes);
		json_set_i64(o, "tasks_per_node", g->tasks_per_node);
		json_set_i64(o, "pairs", g->n);
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			json_set_number(o, numbers[k].name, numbers[k].v);
		json_set_bool(o, "held", g->held);
		json_add(a, o);
	}
	return a;
}

static struct json *stages(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_stages; i++) {
		const struct report_stage *s = &r->stages[i];
		struct json *o = json_object();

		json_set_i64(o, "seq", s->seq);
		json_set_text(o, "kind", stage_kind_name(s->kind));
		json_set_i64(o, "round", s->round);
		json_set_number(o, "alpha_share", s->kind == STAGE_CONFIRM ? s->alpha_share : NAN);
		json_set_i64(o, "blocks_planned", s->blocks_planned);
		json_set_i64(o, "blocks_valid", s->blocks_valid);
		json_set_i64(o, "blocks_void", s->blocks_void);
		json_set_bool(o, "open", s->open);
		set_text(o, "note", s->note);
		set_texts(o, "logs", &s->dirs);
		json_set(o, "nodes", nodes(r, s->id));
		json_set(o, "arms", arms(s));
		json_add(a, o);
	}
	return a;
}

static struct json *guard_result(const struct guard_row *g)
{
	struct json *o = json_object();

	set_text(o, "metric", g->metric);
	set_text(o, "stat", g->stat);
	set_text(o, "rule", g->rule);
	set_text(o, "equal", g->equal);
	json_set_i64(o, "n", g->n);
	json_set_number(o, "value", g->value);
	json_set_number(o, "worsening", g->worsening);
	json_set_number(o, "lo", g->lo);
	json_set_number(o, "hi", g->hi);
	json_set_number(o, "bound", g->bound);
	set_text(o, "state", g->state);
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
	set_text(o, "outcome", v->outcome);
	set_text(o, "reason", v->reason);
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
	set_text(o, "inputs_hash", v->inputs_hash);
	set_time(o, "at_utc", v->at_us);
	return o;
}

static struct json *looks(const struct report *r, const struct report_hypothesis *h)
{
	struct json *a = json_array();

	for (size_t i = 0; i < h->n_looks; i++)
		json_add(a, verdict(r, &h->looks[i]));
	return a;
}

static struct json *effects(const struct report_effects *x)
{
	static const char *const words[] = {"worse", NULL, "better"};
	struct json *a = json_array();

	for (size_t i = 0; i < x->n; i++) {
		const struct report_effect *f = &x->v[i];
		const struct report_pairs *p = &f->pairs;
		double change = isfinite(p->effect.est) ? p->effect.est : p->moved;
		struct json *o = json_object();

		set_text(o, "metric", f->metric);
		json_set_text(o, "unit", report_unit_of(f->metric));
		json_set_number(o, "before", p->before);
		json_set_number(o, "after", p->after);
		json_set_number(o, "est", p->effect.est);
		json_set_number(o, "lo", p->effect.lo);
		json_set_number(o, "hi", p->effect.hi);
		json_set_i64(o, "pairs", (int64_t)p->effect.n);
		json_set_text(o, "direction",
			      p->moved ? words[report_judge(f->metric, change) + 1] : NULL);
		json_add(a, o);
	}
	return a;
}

static struct json *proofs(const struct report_hypothesis *h)
{
	struct json *a = json_array();

	for (size_t i = 0; i < h->n_proofs; i++) {
		struct json *o = json_object();

		set_text(o, "key", h->proofs[i].key);
		set_text(o, "value", h->proofs[i].value);
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
	set_text(o, "knob", h->knob);
	set_text(o, "from", h->from_value);
	set_text(o, "to", h->value);
	json_set_text(o, "class", knob_class_name(h->cls));
	json_set_text(o, "proof", proof_level_name(h->proof));
	json_set_bool(o, "user_defined", h->user_defined);
	json_set_text(o, "bottleneck", bottleneck_name(h->bottleneck));
	set_text(o, "evidence", h->evidence);
	json_set_number(o, "predicted_gain", h->gain);
	json_set_number(o, "ceiling", h->ceiling);
	json_set_text(o, "state", hypothesis_state_name(h->state));
	set_text(o, "reason", h->reason);
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
		set_text(env, b->env.v[i].key, b->env.v[i].value);
	json_set(j, "env", env);
	set_texts(j, "command", &b->command);
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
		json_set_number(o, "screen_effect", h->screen_mean);
		json_set_number(o, "stage", judged ? r->stages[h->stage].seq : NAN);
		if (h->has_verdict)
			json_set(o, "verdict", verdict(r, &h->verdict));
		else
			json_set_text(o, "verdict", NULL);
		json_set(o, "looks", looks(r, h));
		json_set(o, "other_metrics", effects(&h->effects));
		json_set(o, "shown", proofs(h));
		json_set_number(o, "trial_s", h->effects.trial_s);
		json_add(a, o);
	}
	return a;
}

static struct json *settings(const struct config *c)
{
	struct json *o = json_object();

	for (size_t i = 0; i < c->settings.n; i++)
		set_text(o, c->settings.v[i].key, c->settings.v[i].value);
	return o;
}

/* NULL gives null, and a text that is no JSON itself. */
static void set_fingerprint(struct json *o, const char *text)
{
	struct json *j = NULL;

	if (text && json_parse("fingerprint", text, strlen(text), &j, NULL) == 0)
		json_set(o, "fingerprint", j);
	else
		set_text(o, "fingerprint", text);
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
	set_text(o, "state", r->fix.state);
	set_text(o, "reason", r->fix.reason);
	json_set_bool(o, "confirmed", recommend_confirmed(r));
	json_set(o, "guards", fix_guards(r));
	json_set_number(o, "est", r->fix.est);
	json_set_number(o, "lo", r->fix.lo);
	json_set_number(o, "hi", r->fix.hi);
	json_set_i64(o, "pairs", r->fix.n);
	json_set_number(o, "mean", r->final_mean);
	json_set_number(o, "soak_drift", r->fix.soak_drift);
	set_time(o, "at_utc", r->fix.at_us);
	set_fingerprint(o, r->fix.fingerprint);
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
		set_text(o, "knob", h->row.knob);
		set_text(o, "to", h->row.value);
		json_set_number(o, "est", h->verdict.est);
		json_add(a, o);
	}
	return a;
}

static struct json *faults(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_faults; i++) {
		const struct fault_row *f = &r->faults[i];
		struct json *o = json_object();

		set_text(o, "stage", f->stage);
		json_set_i64(o, "block", f->block_index + 1);
		json_set_i64(o, "attempt", f->attempt);
		json_set_number(o, "slot", f->slot >= 0 ? f->slot : NAN);
		set_text(o, "arm", f->arm);
		set_text(o, "state", f->state);
		set_text(o, "reason", f->reason);
		set_text(o, "log", f->log_path);
		json_add(a, o);
	}
	return a;
}

static struct json *quality(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_quality; i++) {
		const struct quality_row *q = &r->quality[i];
		struct json *o = json_object();

		set_text(o, "stage", q->stage);
		json_set_i64(o, "block", q->block_index + 1);
		json_set_i64(o, "attempt", q->attempt);
		set_text(o, "attempt_state", q->state);
		json_set_number(o, "slot", q->slot >= 0 ? q->slot : NAN);
		json_set_text(o, "rule", quality_rule_name(q->rule));
		json_set_text(o, "action", quality_action_name(q->action));
		json_set_number(o, "value", q->value);
		json_set_number(o, "bound", q->bound);
		set_text(o, "text", q->text);
		json_add(a, o);
	}
	return a;
}

static struct json *events(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_events; i++) {
		struct json *o = json_object();

		set_time(o, "at_utc", r->events[i].at_us);
		set_text(o, "kind", r->events[i].kind);
		set_text(o, "text", r->events[i].text);
		json_add(a, o);
	}
	return a;
}

static struct json *alpha(const struct alpha_ledger *l)
{
	struct json *o = json_object();

	json_set_number(o, "total", l->total);
	json_set_i64(o, "stages_max", (int64_t)l->stages);
	json_set_i64(o, "stages_used", (int64_t)l->used);
	json_set_number(o, "spent", l->spent);
	json_set_i64(o, "stages_left", (int64_t)alpha_ledger_left(l));
	json_set_number(o, "next_share", alpha_ledger_next(l));
	return o;
}

static struct json *account(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_account; i++) {
		struct json *o = json_object();

		json_set_text(o, "kind", r->account[i].kind);
		json_set_i64(o, "allocations", r->account[i].allocations);
		json_set_number(o, "node_s", r->account[i].node_s);
		json_add(a, o);
	}
	return a;
}

static void set_known(struct json *o, const char *key, int64_t v)
{
	if (v >= 0)
		json_set_i64(o, key, v);
	else
		json_set_text(o, key, NULL);
}

static struct json *consumed(const struct report *r)
{
	const struct consumed_row *c = &r->consumed;
	struct json *o = json_object();

	json_set_i64(o, "jobs", c->jobs);
	json_set_i64(o, "jobs_all", c->jobs_all);
	set_known(o, "elapsed_s", c->jobs ? c->elapsed_s : -1);
	set_known(o, "maxrss_kib", c->jobs ? c->maxrss_kib : -1);
	set_known(o, "energy_j", c->jobs ? c->energy_j : -1);
	json_set_number(o, "energy_per_sample_j", report_energy_per_sample(r));
	set_text(o, "tres", c->tres);
	return o;
}

static struct json *hosts(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_hosts; i++) {
		const struct host_row *h = &r->hosts[i];
		struct json *o = json_object();

		set_text(o, "node", h->node);
		json_set_i64(o, "allocations", h->allocations);
		set_text(o, "switches", h->switches);
		set_known(o, "first_rank", h->first_rank);
		set_known(o, "last_rank", h->last_rank);
		json_set_number(o, "clock_ms", h->clock_ms);
		json_set_number(o, "sampler_pct", h->sampler_pct);
		json_add(a, o);
	}
	return a;
}

static struct json *cost(const struct cost_row *c)
{
	struct json *o = json_object();

	json_set_i64(o, "trials_timed", c->trials_timed);
	json_set_i64(o, "trials_all", c->trials_all);
	json_set_i64(o, "attempts", c->attempts);
	json_set_i64(o, "attempts_void", c->attempts_void);
	json_set_i64(o, "allocations", c->allocations);
	json_set_number(o, "trial_s", c->trial_s);
	json_set_number(o, "node_s", c->node_s);
	return o;
}

static struct json *reproduce(const struct report *r)
{
	struct json *o = json_object(), *a = json_array();
	_cleanup_free_ char *seed = xasprintf("%llu", (unsigned long long)r->campaign.seed);

	set_text(o, "recipe", r->campaign.recipe_path);
	set_text(o, "recipe_hash", r->campaign.recipe_hash);
	json_set_text(o, "seed", seed); /* 64 bits do not survive a JSON number */
	for (size_t i = 0; i < r->n_sources; i++) {
		struct json *s = json_object();

		set_text(s, "name", r->sources[i].name);
		set_text(s, "path", r->sources[i].path);
		set_text(s, "hash", r->sources[i].hash);
		json_add(a, s);
	}
	json_set(o, "sources", a);
	return o;
}

static int write_json(const struct report *r, struct buf *out, struct err *e)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL;
	struct buf words = {0};

	(void)e;
	report_summary(r, &words);
	json_set_text(o, "format", "fettle.report/1");
	json_set(o, "campaign", campaign(r));
	set_text(o, "summary", words.data ? words.data : "");
	json_set(o, "workload", workload(&r->recipe->workload));
	json_set(o, "objective", goal(r));
	json_set(o, "baseline", baseline(r));
	json_set(o, "findings", findings(r));
	json_set(o, "hypotheses", hypotheses(r));
	json_set(o, "stages", stages(r));
	json_set(o, "ablation", ablations(r));
	if (r->recipe->ladder.n)
		json_set(o, "rungs", rungs(r));
	report_canaries_json(r, o);
	fix(r, o);
	json_set(o, "ranking", ranking(r));
	json_set(o, "faults", faults(r));
	json_set(o, "quality", quality(r));
	json_set(o, "events", events(r));
	json_set(o, "alpha", alpha(&r->alpha));
	json_set(o, "cost", cost(&r->cost));
	json_set(o, "account", account(r));
	json_set(o, "consumed", consumed(r));
	json_set(o, "nodes", hosts(r));
	json_set(o, "unit_costs", report_costs_json(r));
	json_set(o, "tradeoffs", report_tradeoffs_json(r));
	json_set(o, "sizes", report_sizes_json(r));
	json_set(o, "reproduce", reproduce(r));
	text = json_print(o, true);
	buf_printf(out, "%s\n", text);
	buf_free(&words);
	return 0;
}

const struct report_format format_json = {.name = "json",
					  .extension = "json",
					  .summary = "the tuning log for programs: fettle.report/1",
					  .write = write_json};
