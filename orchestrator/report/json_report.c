/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/json_report.h"

#include <math.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

/* JSON is UTF-8, and what comes from logs may not be. */
void json_report_text(struct json *o, const char *key, const char *value)
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

void json_report_texts(struct json *o, const char *key, const struct strv *v)
{
	struct json *a = json_array();

	for (size_t i = 0; i < v->n; i++)
		add_text(a, v->v[i]);
	json_set(o, key, a);
}

/* 0 is "not known" for times. */
void json_report_time(struct json *o, const char *key, int64_t utc_us)
{
	char text[32];

	clock_iso(utc_us, text, sizeof text);
	json_set_text(o, key, utc_us > 0 ? text : NULL);
}

/* NULL gives null, and a text that is no JSON itself. */
void json_report_object(struct json *o, const char *key, const char *text)
{
	struct json *j = NULL;

	if (text && json_parse(key, text, strlen(text), &j, NULL) == 0)
		json_set(o, key, j);
	else
		json_report_text(o, key, text);
}

struct json *json_report_effects(const struct report_effects *x)
{
	static const char *const words[] = {"worse", NULL, "better"};
	struct json *a = json_array();

	for (size_t i = 0; i < x->n; i++) {
		const struct report_effect *f = &x->v[i];
		const struct report_pairs *p = &f->pairs;
		double change = isfinite(p->effect.est) ? p->effect.est : p->moved;
		struct json *o = json_object();

		json_report_text(o, "metric", f->metric);
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

static struct json *values(const struct report_arm *arm)
{
	struct json *a = json_array();

	for (size_t i = 0; i < arm->n_values; i++) {
		struct json *o = json_object();

		json_set_i64(o, "block", arm->values[i].block + 1);
		json_set_number(o, "value", arm->values[i].value);
		json_add_line(a, o);
	}
	return a;
}

static struct json *arms(const struct report_stage *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n_arms; i++) {
		struct json *o = json_object();

		json_report_text(o, "label", s->arms[i].label);
		json_report_text(o, "configuration", s->arms[i].config_text);
		json_set_i64(o, "trials", (int64_t)s->arms[i].n);
		json_set_i64(o, "failed", (int64_t)s->arms[i].failed);
		json_set_number(o, "mean", s->arms[i].mean);
		json_set_number(o, "sd", s->arms[i].sd);
		json_set(o, "values", values(&s->arms[i]));
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

		json_report_text(o, "without", x->knobs);
		json_set_i64(o, "pairs", x->n);
		json_set_number(o, "est", x->est);
		json_set_number(o, "lo", x->lo);
		json_set_number(o, "hi", x->hi);
		json_set_text(o, "outcome", ablation_outcome_name(x->outcome));
		json_report_text(o, "reason", x->reason);
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

static struct json *step_times(const struct report_stage *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n_steps; i++) {
		const struct report_steps *t = &s->steps[i];
		struct json *o = json_object();

		json_set_i64(o, "block", t->block + 1);
		json_report_text(o, "arm", s->arms[t->arm].label);
		json_set_number(o, "min_ms", t->min);
		json_set_number(o, "median_ms", t->median);
		json_set_number(o, "p95_ms", t->p95);
		json_set_number(o, "p99_ms", t->p99);
		json_add_line(a, o);
	}
	return a;
}

static struct json *profiles(const struct report *r)
{
	static const char *const keys[] = {"computing", "communication", "copies", "data_wait",
					   "rest"};
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_profiles; i++) {
		const struct report_profile *p = &r->profiles[i];
		struct json *o = json_object();

		json_set_i64(o, "round", p->round);
		json_report_text(o, "configuration", p->config_text);
		json_set_bool(o, "profiler", p->profiler);
		json_set_number(o, "step_ms_profiled", p->profiler ? p->price.traced_ms : NAN);
		json_set_number(o, "step_ms_timed", p->profiler ? p->price.timed_ms : NAN);
		for (size_t k = 0; k < REPORT_PARTS; k++)
			json_set_number(o, keys[k], p->part[k]);
		json_add(a, o);
	}
	return a;
}

static struct json *starting_point(const struct report *r, const struct report_hypothesis *h)
{
	struct json *o = json_object();

	json_set_i64(o, "hypothesis", h->row.id);
	json_set_i64(o, "round", h->row.round);
	json_report_text(o, "from_configuration", report_base_of_round(r, h->row.round));
	json_set_number(o, "est", report_best_effect(h));
	json_set_bool(o, "tested", h->has_verdict && isfinite(h->verdict.est));
	return o;
}

static struct json *starting_points(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];
		const struct report_hypothesis *next = report_measured_again(r, h);
		struct json *o;

		if (!next)
			continue;
		o = json_object();
		json_report_text(o, "knob", h->row.knob);
		json_report_text(o, "to", h->row.value);
		json_set(o, "first", starting_point(r, h));
		json_set(o, "then", starting_point(r, next));
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
		json_report_text(o, "note", s->note);
		json_report_texts(o, "logs", &s->dirs);
		json_set(o, "nodes", nodes(r, s->id));
		json_set(o, "arms", arms(s));
		json_set(o, "step_times", step_times(s));
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

		json_report_text(o, "stage", f->stage);
		json_set_i64(o, "block", f->block_index + 1);
		json_set_i64(o, "attempt", f->attempt);
		json_set_number(o, "slot", f->slot >= 0 ? f->slot : NAN);
		json_report_text(o, "arm", f->arm);
		json_report_text(o, "state", f->state);
		json_report_text(o, "reason", f->reason);
		json_report_text(o, "log", f->log_path);
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

		json_report_text(o, "stage", q->stage);
		json_set_i64(o, "block", q->block_index + 1);
		json_set_i64(o, "attempt", q->attempt);
		json_report_text(o, "attempt_state", q->state);
		json_set_number(o, "slot", q->slot >= 0 ? q->slot : NAN);
		json_set_text(o, "rule", quality_rule_name(q->rule));
		json_set_text(o, "action", quality_action_name(q->action));
		json_set_number(o, "value", q->value);
		json_set_number(o, "bound", q->bound);
		json_report_text(o, "text", q->text);
		json_add(a, o);
	}
	return a;
}

static struct json *events(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_events; i++) {
		struct json *o = json_object();

		json_report_time(o, "at_utc", r->events[i].at_us);
		json_report_text(o, "kind", r->events[i].kind);
		json_report_text(o, "text", r->events[i].text);
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
	json_report_text(o, "tres", c->tres);
	return o;
}

static struct json *hosts(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_hosts; i++) {
		const struct host_row *h = &r->hosts[i];
		struct json *o = json_object();

		json_report_text(o, "node", h->node);
		json_set_i64(o, "allocations", h->allocations);
		json_report_text(o, "switches", h->switches);
		set_known(o, "first_rank", h->first_rank);
		set_known(o, "last_rank", h->last_rank);
		json_set_number(o, "clock_ms", h->clock_ms);
		json_set_number(o, "sampler_pct", h->sampler_pct);
		json_add(a, o);
	}
	return a;
}

static struct json *run_nodes(const struct report *r, const struct run_row *v)
{
	struct json *a = json_array();
	size_t n;
	const struct place_row *p = report_places(r, v->allocation, &n);

	for (size_t i = 0; i < n; i++)
		json_add_text(a, p[i].node);
	return a;
}

static struct json *runs(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_row *v = &r->runs[i];
		struct json *o = json_object();

		for (size_t k = 0; k < r->n_stages; k++)
			if (r->stages[k].id == v->stage)
				json_set_i64(o, "stage", r->stages[k].seq);
		json_set_i64(o, "block", v->block + 1);
		json_set_i64(o, "attempt", v->attempt);
		json_set_text(o, "state", attempt_state_name(v->state));
		json_report_text(o, "reason", v->reason);
		json_report_time(o, "began_utc", v->start_us);
		json_report_time(o, "ended_utc", v->end_us);
		json_set(o, "nodes", run_nodes(r, v));
		json_add_line(a, o);
	}
	return a;
}

static struct json *cost(const struct report *r)
{
	const struct cost_row *c = &r->cost;
	struct json *o = json_object();

	json_set_i64(o, "trials_timed", c->trials_timed);
	json_set_i64(o, "trials_all", c->trials_all);
	json_set_i64(o, "attempts", c->attempts);
	json_set_i64(o, "attempts_void", c->attempts_void);
	json_set_i64(o, "allocations", c->allocations);
	json_set_number(o, "trial_s", c->trial_s);
	json_set_number(o, "node_s", c->node_s);
	json_set_number(o, "gpus_per_node", report_gpus_per_node(r));
	return o;
}

void json_report_stages(const struct report *r, struct json *o)
{
	json_set(o, "stages", stages(r));
	json_set(o, "profiles", profiles(r));
	json_set(o, "ablation", ablations(r));
	json_set(o, "starting_points", starting_points(r));
	if (r->recipe->ladder.n)
		json_set(o, "rungs", rungs(r));
}

void json_report_record(const struct report *r, struct json *o)
{
	json_set(o, "faults", faults(r));
	json_set(o, "quality", quality(r));
	json_set(o, "events", events(r));
	json_report_texts(o, "archives", &r->archives);
	json_set(o, "runs", runs(r));
	json_set(o, "alpha", alpha(&r->alpha));
	json_set(o, "cost", cost(r));
	json_set(o, "account", account(r));
	json_set(o, "consumed", consumed(r));
	json_set(o, "nodes", hosts(r));
	json_report_object(o, "environment", r->environment);
}
