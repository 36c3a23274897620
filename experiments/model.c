/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/model.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/words.h"
#include "orchestrator/base/mem.h"

/* -- words ----------------------------------------------------------------------------------- */

MODEL_WORDS(better, BETTER_NONE, "up", "down", "none")
MODEL_WORDS(knob_class, CLASS_OPTIMISATION, "neutral", "numerics", "optimisation")
MODEL_WORDS(knob_how, HOW_KEY, "env", "arg", "bundle", "key")
MODEL_WORDS(proof_level, PROOF_EFFECTIVE, "none", "delivered", "acknowledged", "effective")
MODEL_WORDS(run_mode, MODE_STRICT, "quick", "standard", "long", "strict")
MODEL_WORDS(stage_kind, STAGE_LADDER, "aa", "verify", "screen", "confirm", "ablate", "final",
	    "soak", "canary", "converge", "profile", "ladder")
MODEL_WORDS(profile_wish, PROFILE_YES, "unsaid", "no", "yes")
MODEL_WORDS(cadence, CADENCE_NONE, "night", "week", "none")
MODEL_WORDS(fingerprint_how, FINGERPRINT_ENV, "file", "command", "env")
MODEL_WORDS(arm_role, ROLE_TREATMENT, "baseline", "treatment")
MODEL_WORDS(hypothesis_state, HYP_TESTED, "proposed", "linted_out", "not_tried", "screened_out",
	    "tested")
MODEL_WORDS(ablation_outcome, ABLATION_DROPPED, "pays", "open", "useless", "dropped")
MODEL_WORDS(bottleneck, BOTTLENECK_MEMORY, "unknown", "compute", "communication", "storage", "host",
	    "memory")
MODEL_WORDS(trial_state, TRIAL_LOST, "ok", "failed", "void", "lost")
MODEL_WORDS(attempt_state, ATTEMPT_LOST, "planned", "submitted", "valid", "void", "lost")
MODEL_WORDS(slot_kind, SLOT_TIMED, "warmup", "timed")
MODEL_WORDS(campaign_state, CAMPAIGN_FAILED, "running", "stopped", "done", "failed")
MODEL_WORDS(verdict_outcome, VERDICT_INCONCLUSIVE, "invalid", "rejected: guard", "accepted",
	    "equivalent", "rejected: no useful gain", "rejected: worse", "inconclusive")
MODEL_WORDS(quality_rule, QUALITY_NEIGHBOUR, "fail_slow", "steady", "drift", "outliers", "clocks",
	    "throttle", "neighbour")
MODEL_WORDS(placement, PLACEMENT_SPREAD, "any", "same", "spread")
MODEL_WORDS(quality_action, QUALITY_VOID, "off", "note", "void")
MODEL_WORDS(metric_source, SOURCE_METRICS_FILE, "probe", "pattern", "metrics_file")

/* -- metrics --------------------------------------------------------------------------------- */

enum { METRIC_NAME_MAX = 64 };

#define BETTER_OF_up   BETTER_UP
#define BETTER_OF_down BETTER_DOWN
#define BETTER_OF_none BETTER_NONE
#define METRIC(name, unit, better, min, max, summary) \
	{#name, unit, BETTER_OF_##better, min, max, summary},
const struct metric_def metric_defs[] = {
#include "experiments/metrics.def"
	{NULL, NULL, BETTER_NONE, 0, 0, NULL},
};
#undef METRIC

const struct metric_def *metric_def_find(const char *name)
{
	for (const struct metric_def *d = metric_defs; name && d->name; d++) {
		if (strcmp(d->name, name) == 0)
			return d;
	}
	return NULL;
}

bool metric_name_valid(const char *name)
{
	size_t n;

	if (!name || *name < 'a' || *name > 'z')
		return false;
	n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.");
	return name[n] == '\0' && n <= METRIC_NAME_MAX;
}

/* -- recipe ---------------------------------------------------------------------------------- */

bool guard_needs_curve(const struct guard *g, const struct recipe *r)
{
	if (g->equal)
		return !str_eq(g->equal, "step");
	if (!str_eq(g->metric, "loss") && !str_eq(g->metric, "val_loss"))
		return false;
	for (size_t i = 0; i < r->n_knobs; i++)
		if (r->knobs[i].cls == CLASS_OPTIMISATION)
			return true;
	return false;
}

static void proof_done(struct proof *p)
{
	free(p->log_pattern);
	free(p->fact);
	free(p->maps);
	free(p->metric);
	free(p->metric_expect);
	kvs_free(&p->env);
}

static void about_done(struct knob_about *a)
{
	kvs_free(&a->passed);
	free(a->since);
	free(a->gone);
	kvs_free(&a->defaults);
	free(a->documented);
	free(a->applies);
	strv_free(&a->excludes);
	strv_free(&a->idle);
	strv_free(&a->mistakes);
	free(a->safe);
	free(a->when);
	free(a->evidence);
}

const char *knob_refused(const struct knob *k, const char *value)
{
	for (size_t i = 0; i < k->refused.n; i++)
		if (str_eq(k->values.v[i], value) && *k->refused.v[i])
			return k->refused.v[i];
	return NULL;
}

void bundle_done(struct bundle *b)
{
	kvs_free(&b->env);
	strv_free(&b->command);
}

void knob_done(struct knob *k)
{
	if (!k)
		return;
	free(k->name);
	free(k->summary);
	free(k->target);
	free(k->subkey);
	free(k->default_value);
	for (size_t i = 0; k->bundles && i < k->values.n; i++)
		bundle_done(&k->bundles[i]);
	free(k->bundles);
	strv_free(&k->values);
	proof_done(&k->proof);
	strv_free(&k->implies);
	free(k->requires_knob);
	strv_free(&k->requires_values);
	free(k->expect);
	free(k->lint);
	strv_free(&k->refused);
	free(k->risk);
	free(k->notes);
	about_done(&k->about);
	free(k->at.file);
	*k = (struct knob){0};
}

const struct bundle *knob_bundle(const struct knob *k, const char *value)
{
	for (size_t i = 0; k->bundles && i < k->values.n; i++)
		if (str_eq(k->values.v[i], value))
			return &k->bundles[i];
	return NULL;
}

static void guard_done(struct guard *g)
{
	free(g->metric);
	free(g->stat);
	free(g->equal);
	free(g->at.file);
}

static void workload_done(struct workload *w)
{
	free(w->name);
	strv_free(&w->command);
	free(w->workdir);
	kvs_free(&w->env);
	strv_free(&w->secrets);
	container_done(&w->container);
	free(w->step_pattern);
	free(w->probe);
	free(w->pattern);
	free(w->config);
	free(w->config_text);
	strv_free(&w->told);
	free(w->framework);
	kvs_free(&w->versions);
	free(w->model.gpu);
	free(w->at.file);
}

#define OPTION(member, sbatch, kind)                                        \
	{                                                                   \
#member, sbatch, kind, offsetof(struct job_options, member) \
	}
const struct job_option job_option_table[] = {
	OPTION(gres, "gres", JOB_OPTION_TEXT),
	OPTION(gpus, "gpus", JOB_OPTION_TEXT),
	OPTION(gpus_per_task, "gpus-per-task", JOB_OPTION_TEXT),
	OPTION(cpus_per_gpu, "cpus-per-gpu", JOB_OPTION_COUNT),
	OPTION(mem_mib_per_cpu, "mem-per-cpu", JOB_OPTION_MIB),
	OPTION(mem_mib_per_gpu, "mem-per-gpu", JOB_OPTION_MIB),
	OPTION(licenses, "licenses", JOB_OPTION_TEXT),
	OPTION(switches, "switches", JOB_OPTION_TEXT),
	OPTION(begin, "begin", JOB_OPTION_TEXT),
	OPTION(deadline, "deadline", JOB_OPTION_TEXT),
	OPTION(dependency, "dependency", JOB_OPTION_TEXT),
	OPTION(nice, "nice", JOB_OPTION_COUNT),
	OPTION(comment, "comment", JOB_OPTION_TEXT),
	OPTION(mail_type, "mail-type", JOB_OPTION_TEXT),
	OPTION(mail_user, "mail-user", JOB_OPTION_TEXT),
	{0},
};
#undef OPTION

char *job_option_value(const struct job_options *o, const struct job_option *k)
{
	const char *member = (const char *)o + k->offset, *text;
	int64_t mib;
	int count;

	switch (k->kind) {
	case JOB_OPTION_TEXT:
		memcpy(&text, member, sizeof(text));
		return text && *text ? xstrdup(text) : NULL;
	case JOB_OPTION_COUNT:
		memcpy(&count, member, sizeof(count));
		return count ? xasprintf("%d", count) : NULL;
	case JOB_OPTION_MIB:
		memcpy(&mib, member, sizeof(mib));
		return mib ? xasprintf("%lldM", (long long)mib) : NULL;
	}
	return NULL;
}

static void job_options_done(struct job_options *o)
{
	for (const struct job_option *k = job_option_table; k->key; k++)
		if (k->kind == JOB_OPTION_TEXT)
			free(*(char **)((char *)o + k->offset));
}

static void resources_done(struct resources *r)
{
	free(r->partition);
	free(r->account);
	free(r->qos);
	free(r->reservation);
	free(r->constraint);
	free(r->nodelist);
	free(r->exclude);
	free(r->launcher);
	job_options_done(&r->options);
	strv_free(&r->among);
}

static void fingerprint_key_done(struct fingerprint_key *k)
{
	free(k->name);
	free(k->file);
	strv_free(&k->command);
	free(k->env);
	bundle_done(&k->set);
	free(k->at.file);
}

void recipe_free(struct recipe *r)
{
	if (!r)
		return;
	free(r->name);
	free(r->question);
	workload_done(&r->workload);
	resources_done(&r->resources);
	free(r->samplers.dcgm_exporter);
	free(r->agent.dir);
	free(r->budget.deadline);
	strv_free(&r->budget.window);
	strv_free(&r->budget.site_window);
	free(r->objective);
	free(r->objective_stat);
	for (size_t i = 0; i < r->n_guards; i++)
		guard_done(&r->guards[i]);
	free(r->guards);
	free(r->second);
	free(r->second_stat);
	for (size_t i = 0; i < r->n_knobs; i++)
		knob_done(&r->knobs[i]);
	free(r->knobs);
	free(r->ladder.rungs);
	bundle_done(&r->canary.reference);
	for (size_t i = 0; i < r->n_fingerprint; i++)
		fingerprint_key_done(&r->fingerprint[i]);
	free(r->fingerprint);
	free(r->converge.metric);
	free(r->converge.stat);
	free(r->converge.seed_env);
	kvs_free(&r->thresholds);
	free(r->scheduler);
	free(r->hash);
	free(r);
}

void resources_launch(const struct resources *r, struct strv *out)
{
	int nodes = r->nodes > 0 ? r->nodes : 1;
	int tasks = r->tasks_per_node > 0 ? r->tasks_per_node : 1;

	if (!r->launcher || str_eq(r->launcher, "exec"))
		return;
	strv_add(out, str_eq(r->launcher, "script") ? "env" : r->launcher);
	if (str_eq(r->launcher, "srun")) {
		strv_add(out, "--mpi=none");
		strv_add(out, "--kill-on-bad-exit=1");
		strv_addf(out, "--nodes=%d", nodes);
		strv_addf(out, "--ntasks=%d", nodes * tasks);
	} else if (str_eq(r->launcher, "mpirun")) {
		strv_add(out, "-np");
		strv_addf(out, "%d", nodes * tasks);
	} else if (str_eq(r->launcher, "torchrun")) {
		strv_addf(out, "--nproc-per-node=%d", tasks);
		strv_add(out, "--no-python");
	}
}

char *resources_fill(const struct resources *r, const char *arg)
{
	const struct {
		const char *word;
		int n;
	} places[] = {{"{nodes}", r->nodes > 0 ? r->nodes : 1},
		      {"{tasks_per_node}", r->tasks_per_node > 0 ? r->tasks_per_node : 1},
		      {"{tasks}", (r->nodes > 0 ? r->nodes : 1) *
					  (r->tasks_per_node > 0 ? r->tasks_per_node : 1)}};
	struct buf b = {0};

	while (*arg) {
		size_t i = 0;

		while (i < ARRAY_LEN(places) && !str_starts(arg, places[i].word))
			i++;
		if (i < ARRAY_LEN(places)) {
			buf_printf(&b, "%d", places[i].n);
			arg += strlen(places[i].word);
		} else {
			buf_char(&b, *arg++);
		}
	}
	return b.len ? buf_take(&b) : xstrdup("");
}

/* The text with the value in place of each "{value}"; heap. */
static char *filled(const char *text, const char *value)
{
	static const char word[] = "{value}";
	struct buf b = {0};

	for (const char *p; (p = strstr(text, word)); text = p + strlen(word)) {
		buf_put(&b, text, (size_t)(p - text));
		buf_str(&b, value);
	}
	buf_str(&b, text);
	return buf_take(&b);
}

void fingerprint_set(const struct fingerprint_key *k, const char *value, struct bundle *out)
{
	for (size_t i = 0; i < k->set.env.n; i++) {
		const char *text = k->set.env.v[i].value;
		_cleanup_free_ char *full = text ? filled(text, value) : NULL;

		kvs_set(&out->env, k->set.env.v[i].key, full);
	}
	for (size_t i = 0; i < k->set.command.n; i++) {
		_cleanup_free_ char *full = filled(k->set.command.v[i], value);

		strv_add(&out->command, full);
	}
}

int rung_tasks(const struct rung *g)
{
	return g->nodes * g->tasks_per_node;
}

const struct knob *recipe_knob(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->n_knobs; i++) {
		if (str_eq(r->knobs[i].name, name))
			return &r->knobs[i];
	}
	return NULL;
}

/* -- results of a trial ---------------------------------------------------------------------- */

void trial_result_done(struct trial_result *t)
{
	if (!t)
		return;
	free(t->reason);
	free(t->node);
	free(t->log_path);
	for (size_t i = 0; i < t->n_metrics; i++) {
		free(t->metrics[i].metric);
		free(t->metrics[i].stat);
		free(t->metrics[i].labels);
	}
	free(t->metrics);
	for (size_t i = 0; i < t->n_effective; i++) {
		free(t->effective[i].key);
		free(t->effective[i].value);
	}
	free(t->effective);
	*t = (struct trial_result){0};
}

void trial_result_metric(struct trial_result *t, const char *metric, const char *stat,
			 const char *labels, double value)
{
	struct metric_value *m;

	t->metrics = xgrow(t->metrics, t->n_metrics, &t->cap_metrics, sizeof *t->metrics);
	m = &t->metrics[t->n_metrics++];
	m->metric = xstrdup(metric);
	m->stat = xstrdup(stat);
	m->labels = xstrdup(labels ? labels : "");
	m->value = value;
}

void trial_result_effective(struct trial_result *t, int rank, const char *key, const char *value,
			    enum proof_level level)
{
	struct effective_value *v;

	t->effective = xgrow(t->effective, t->n_effective, &t->cap_effective, sizeof *t->effective);
	v = &t->effective[t->n_effective++];
	v->rank = rank;
	v->key = xstrdup(key);
	v->value = xstrdup(value ? value : "");
	v->level = level;
}

/* From the end: of values put twice the last one counts, here as in the store. */
double trial_result_get(const struct trial_result *t, const char *metric, const char *stat)
{
	for (size_t i = t->n_metrics; i-- > 0;) {
		const struct metric_value *m = &t->metrics[i];

		if (m->labels[0] == '\0' && str_eq(m->metric, metric) && str_eq(m->stat, stat))
			return m->value;
	}
	return NAN;
}
