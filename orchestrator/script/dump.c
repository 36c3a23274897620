/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan as text: every member of struct recipe, one a line, in a fixed order. */
#include <math.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/reader.h"
#include "orchestrator/script/script.h"

struct dump {
	struct buf *out;
	const char *prefix; /* "knobs[1].", "" */
};

static void put_text(const struct dump *d, const char *name, const char *v)
{
	if (!v)
		return;
	buf_printf(d->out, "%s%s = \"", d->prefix, name);
	for (; *v; v++) {
		if (*v == '"' || *v == '\\')
			buf_char(d->out, '\\');
		if (*v == '\n')
			buf_str(d->out, "\\n");
		else
			buf_char(d->out, *v);
	}
	buf_str(d->out, "\"\n");
}

static void put_number(const struct dump *d, const char *name, double v)
{
	if (isnan(v))
		return;
	buf_printf(d->out, "%s%s = ", d->prefix, name);
	reader_number_text(v, d->out);
	buf_char(d->out, '\n');
}

static void put_i64(const struct dump *d, const char *name, int64_t v)
{
	buf_printf(d->out, "%s%s = %lld\n", d->prefix, name, (long long)v);
}

static void put_texts(const struct dump *d, const char *name, const struct strv *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct buf key = {0};

		buf_printf(&key, "%s[%zu]", name, i + 1);
		put_text(d, key.data, v->v[i]);
		buf_free(&key);
	}
}

static void put_pairs(const struct dump *d, const char *name, const struct kvs *v)
{
	for (size_t i = 0; i < v->n; i++) {
		_cleanup_free_ char *key = xasprintf("%s[%s]", name, v->v[i].key);

		put_text(d, key, v->v[i].value);
	}
}

static void dump_model(const struct model_shape *m, struct buf *out)
{
	struct dump d = {out, "workload.model."};

	put_number(&d, "params", m->params);
	put_number(&d, "layers", m->layers);
	put_number(&d, "hidden", m->hidden);
	put_number(&d, "seq_length", m->seq_length);
	put_i64(&d, "formula", m->formula);
	put_i64(&d, "recompute", m->recompute);
	put_i64(&d, "dtype", m->dtype);
	put_text(&d, "gpu", m->gpu);
	put_number(&d, "peak_tflops", m->peak_tflops);
}

static void dump_workload(const struct workload *w, struct buf *out)
{
	struct dump d = {out, "workload."}, env = {out, "workload.env."};

	put_text(&d, "name", w->name);
	put_texts(&d, "command", &w->command);
	put_text(&d, "workdir", w->workdir);
	for (size_t i = 0; i < w->env.n; i++)
		put_text(&env, w->env.v[i].key, w->env.v[i].value);
	put_texts(&d, "secrets", &w->secrets);
	put_text(&d, "container.runtime", w->container.runtime);
	put_text(&d, "container.image", w->container.image);
	put_texts(&d, "container.mounts", &w->container.mounts);
	put_texts(&d, "container.args", &w->container.args);
	put_i64(&d, "window.warmup_steps", w->warmup_steps);
	put_i64(&d, "window.steps", w->steps);
	put_text(&d, "window.pattern", w->step_pattern);
	put_text(&d, "metrics.source", metric_source_name(w->source));
	put_text(&d, "metrics.probe", w->probe);
	put_text(&d, "metrics.pattern", w->pattern);
	put_text(&d, "config", w->config);
	put_text(&d, "config_text", w->config_text);
	put_texts(&d, "told", &w->told);
	put_text(&d, "framework", w->framework);
	put_pairs(&d, "versions", &w->versions);
	put_i64(&d, "limits.trial_s", w->trial_limit_s);
	put_i64(&d, "limits.log_bytes", w->log_limit_bytes);
	if (w->model.params > 0)
		dump_model(&w->model, out);
	if (w->scaling.gpus > 0) {
		put_number(&d, "scaling.gpus", w->scaling.gpus);
		put_number(&d, "scaling.tokens_per_s", w->scaling.tokens_per_s);
		put_number(&d, "scaling.samples_per_s", w->scaling.samples_per_s);
	}
}

static void dump_options(const struct job_options *o, const struct dump *d)
{
	for (const struct job_option *k = job_option_table; k->key; k++) {
		_cleanup_free_ char *value = job_option_value(o, k);

		put_text(d, k->key, value);
	}
}

static void dump_resources(const struct resources *r, struct buf *out)
{
	struct dump d = {out, "resources."};

	put_i64(&d, "nodes", r->nodes);
	put_i64(&d, "tasks_per_node", r->tasks_per_node);
	put_i64(&d, "cpus_per_task", r->cpus_per_task);
	put_i64(&d, "gpus_per_node", r->gpus_per_node);
	put_i64(&d, "mem_mib_per_node", r->mem_mib_per_node);
	put_i64(&d, "time_limit_s", r->time_limit_s);
	put_text(&d, "partition", r->partition);
	put_text(&d, "account", r->account);
	put_text(&d, "qos", r->qos);
	put_text(&d, "reservation", r->reservation);
	put_text(&d, "constraint", r->constraint);
	put_text(&d, "nodelist", r->nodelist);
	put_text(&d, "exclude", r->exclude);
	dump_options(&r->options, &d);
	put_text(&d, "launcher", r->launcher);
	put_text(&d, "placement", placement_name(r->placement));
	put_texts(&d, "among", &r->among);
}

static void dump_budget(const struct budget *b, struct buf *out)
{
	struct dump d = {out, "budget."};

	put_number(&d, "wall_s", b->wall_s);
	put_number(&d, "node_hours", b->node_hours);
	put_i64(&d, "trials", b->trials);
	put_number(&d, "gpu_hours", b->gpu_hours);
	if (b->gpu_hour_price > 0)
		put_number(&d, "gpu_hour_price", b->gpu_hour_price);
	put_text(&d, "deadline", b->deadline);
	put_texts(&d, "window", &b->window);
	put_texts(&d, "site_window", &b->site_window);
	put_i64(&d, "jobs", b->jobs);
	put_i64(&d, "nodes", b->nodes);
	put_i64(&d, "idle_nodes", b->idle_nodes);
	put_number(&d, "stuck_s", b->stuck_s);
}

static void dump_ladder(const struct ladder *l, const struct dump *d)
{
	for (size_t i = 0; i < l->n; i++) {
		_cleanup_free_ char *name = xasprintf("ladder.rungs[%zu]", i + 1),
				    *text = xasprintf("%d x %d", l->rungs[i].nodes,
						      l->rungs[i].tasks_per_node);

		put_text(d, name, text);
	}
	if (l->n) {
		put_i64(d, "ladder.blocks", l->blocks);
		put_number(d, "ladder.max_loss", l->max_loss);
	}
}

static void dump_nightly(const struct recipe *r, const struct dump *d)
{
	_cleanup_free_ char *reference = bundle_text(&r->canary.reference);

	put_text(d, "schedule.every", cadence_name(r->schedule.every));
	put_i64(d, "schedule.after_change", r->schedule.after_change);
	if (r->canary.blocks) {
		put_i64(d, "canary.blocks", r->canary.blocks);
		put_i64(d, "canary.alone", r->canary.alone);
		put_text(d, "canary.reference", reference);
	}
	for (size_t i = 0; i < r->n_fingerprint; i++) {
		const struct fingerprint_key *k = &r->fingerprint[i];
		_cleanup_free_ char *prefix = xasprintf("fingerprint.%s.", k->name),
				    *set = bundle_text(&k->set);
		struct dump own = {d->out, prefix};

		put_text(&own, "file", k->file);
		put_texts(&own, "command", &k->command);
		put_text(&own, "env", k->env);
		put_text(&own, "set", set);
	}
}

static void dump_bundles(const struct knob *k, const struct dump *d)
{
	for (size_t i = 0; k->bundles && i < k->values.n; i++) {
		_cleanup_free_ char *name = xasprintf("bundle[%zu]", i + 1);
		_cleanup_free_ char *text = bundle_text(&k->bundles[i]);

		put_text(d, name, text);
	}
}

static void dump_about(const struct knob_about *a, const struct dump *d)
{
	put_pairs(d, "passed", &a->passed);
	put_text(d, "since", a->since);
	put_text(d, "gone", a->gone);
	put_pairs(d, "defaults", &a->defaults);
	put_text(d, "documented", a->documented);
	put_text(d, "applies", a->applies);
	put_texts(d, "excludes", &a->excludes);
	put_texts(d, "idle", &a->idle);
	put_texts(d, "mistakes", &a->mistakes);
	put_text(d, "safe", a->safe);
	put_text(d, "when", a->when);
	put_text(d, "evidence", a->evidence);
}

static void dump_knob(const struct knob *k, struct dump d)
{
	put_text(&d, "name", k->name);
	put_text(&d, "summary", k->summary);
	put_text(&d, "how", knob_how_name(k->how));
	put_text(&d, "target", k->target);
	put_text(&d, "subkey", k->subkey);
	put_i64(&d, "flag", k->flag);
	put_text(&d, "class", knob_class_name(k->cls));
	put_text(&d, "default", k->default_value);
	put_texts(&d, "values", &k->values);
	dump_bundles(k, &d);
	put_text(&d, "proof.level", proof_level_name(k->proof.level));
	put_text(&d, "proof.log", k->proof.log_pattern);
	put_text(&d, "proof.fact", k->proof.fact);
	put_text(&d, "proof.maps", k->proof.maps);
	put_text(&d, "proof.metric", k->proof.metric);
	put_text(&d, "proof.expect", k->proof.metric_expect);
	put_pairs(&d, "proof.env", &k->proof.env);
	put_texts(&d, "implies", &k->implies);
	put_text(&d, "requires.knob", k->requires_knob);
	put_texts(&d, "requires.values", &k->requires_values);
	put_text(&d, "bottleneck", bottleneck_name(k->bottleneck));
	put_text(&d, "expect", k->expect);
	put_text(&d, "lint", k->lint);
	put_text(&d, "risk", k->risk);
	put_text(&d, "notes", k->notes);
	dump_about(&k->about, &d);
	put_i64(&d, "user_defined", k->user_defined);
}

static void dump_quality(const struct quality_settings *q, struct buf *out)
{
	struct dump d = {out, "quality."};

	for (int i = 0; i < QUALITY_RULES; i++)
		put_text(&d, quality_rule_name((enum quality_rule)i),
			 quality_action_name(q->action[i]));
	put_number(&d, "slow_by", q->slow_by);
	put_number(&d, "drift_by", q->drift_by);
	put_number(&d, "clocks_by", q->clocks_by);
	put_number(&d, "busy_by", q->busy_by);
}

static void dump_lists(const struct recipe *r, struct buf *out)
{
	struct buf prefix = {0};

	for (size_t i = 0; i < r->n_guards; i++) {
		struct dump d = {out, NULL};

		buf_clear(&prefix);
		buf_printf(&prefix, "guards.%s.", r->guards[i].metric);
		d.prefix = prefix.data;
		put_text(&d, "stat", r->guards[i].stat);
		put_number(&d, "margin", r->guards[i].margin);
		put_number(&d, "at_most", r->guards[i].at_most);
		put_number(&d, "at_least", r->guards[i].at_least);
		put_text(&d, "equal", r->guards[i].equal);
		put_text(&d, "better", better_name(r->guards[i].better));
	}
	for (size_t i = 0; i < r->n_knobs; i++) {
		buf_clear(&prefix);
		buf_printf(&prefix, "knobs[%zu].", i + 1);
		dump_knob(&r->knobs[i], (struct dump){out, prefix.data});
	}
	buf_free(&prefix);
}

void script_plan_dump(const struct recipe *r, struct buf *out)
{
	struct dump d = {out, ""};

	put_text(&d, "name", r->name);
	put_text(&d, "question", r->question);
	dump_workload(&r->workload, out);
	dump_resources(&r->resources, out);
	put_text(&d, "objective.metric", r->objective);
	put_text(&d, "objective.stat", r->objective_stat);
	put_text(&d, "objective.better", better_name(r->better));
	put_number(&d, "target", r->target);
	put_text(&d, "second_objective.metric", r->second);
	put_text(&d, "second_objective.stat", r->second_stat);
	if (r->second)
		put_text(&d, "second_objective.better", better_name(r->second_better));
	dump_lists(r, out);
	dump_budget(&r->budget, out);
	put_text(&d, "mode", run_mode_name(r->mode));
	put_i64(&d, "rounds", r->rounds);
	put_number(&d, "alpha", r->alpha);
	put_number(&d, "min_effect", r->min_effect);
	put_i64(&d, "blocks.aa", r->aa_blocks);
	put_i64(&d, "blocks.final", r->final_blocks);
	put_i64(&d, "blocks.soak", r->soak_trials);
	put_i64(&d, "converge.steps", r->converge.steps);
	put_i64(&d, "converge.seeds", r->converge.seeds);
	put_text(&d, "converge.metric", r->converge.metric);
	put_text(&d, "converge.stat", r->converge.stat);
	put_number(&d, "converge.margin", r->converge.margin);
	put_text(&d, "converge.seed_env", r->converge.seed_env);
	put_i64(&d, "converge.trial_s", r->converge.trial_limit_s);
	dump_ladder(&r->ladder, &d);
	dump_nightly(r, &d);
	put_i64(&d, "repeats", r->repeats);
	put_i64(&d, "blocks_per_allocation", r->blocks_per_allocation);
	put_i64(&d, "warmup_trials", r->warmup_trials);
	dump_quality(&r->quality, out);
	put_i64(&d, "samplers.period_ms", r->samplers.period_ms);
	put_i64(&d, "samplers.every_node", r->samplers.every_node);
	put_text(&d, "samplers.dcgm_exporter", r->samplers.dcgm_exporter);
	put_i64(&d, "agent.sbcast", r->agent.sbcast);
	put_text(&d, "agent.dir", r->agent.dir);
	put_text(&d, "profile", profile_wish_name(r->profile));
	for (size_t i = 0; i < r->thresholds.n; i++) {
		_cleanup_free_ char *name = xasprintf("thresholds.%s", r->thresholds.v[i].key);

		put_text(&d, name, r->thresholds.v[i].value);
	}
	put_i64(&d, "seed", (int64_t)r->seed);
	put_text(&d, "scheduler", r->scheduler);
	put_text(&d, "hash", r->hash);
}
