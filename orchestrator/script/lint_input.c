/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/lint_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* The lists are kept beside the object, which gets them at the end. */
struct lint_input {
	struct json *x, *settings, *commands, *arms;
};

struct lint_input *lint_input_new(void)
{
	struct lint_input *in = xcalloc(1, sizeof *in);

	in->x = json_object();
	in->settings = json_array();
	in->commands = json_array();
	in->arms = json_array();
	return in;
}

void lint_input_free(struct lint_input *in)
{
	if (!in)
		return;
	json_free(in->x);
	json_free(in->settings);
	json_free(in->commands);
	json_free(in->arms);
	free(in);
}

struct json *lint_input_json(const struct lint_input *in)
{
	struct json *x = json_copy(in->x);

	json_set(x, "settings", json_copy(in->settings));
	json_set(x, "commands", json_copy(in->commands));
	json_set(x, "arms", json_copy(in->arms));
	return x;
}

/* --- parts ---------------------------------------------------------------------------------------
 */

static void set_place(struct json *o, const char *file, int line)
{
	if (file)
		json_set_text(o, "file", file);
	if (line > 0)
		json_set_number(o, "line", line);
}

static struct json *setting_json(const struct lint_setting *s)
{
	struct json *o = json_object();

	json_set_text(o, "name", s->name);
	if (s->value)
		json_set_text(o, "value", s->value);
	if (s->text)
		json_set_text(o, "text", s->text);
	if (s->dynamic)
		json_set_bool(o, "dynamic", true);
	if (s->used)
		json_set_bool(o, "used", true);
	if (s->conditional)
		json_set_bool(o, "conditional", true);
	json_set_text(o, "layer", s->layer);
	set_place(o, s->file, s->line);
	return o;
}

static struct json *command_json(char *const *words, size_t n, const char *file, int line)
{
	struct json *o = json_object(), *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_add_text(list, words[i]);
	json_set(o, "words", list);
	set_place(o, file, line);
	return o;
}

void lint_input_setting(struct lint_input *in, const struct lint_setting *s)
{
	json_add(in->settings, setting_json(s));
}

void lint_input_command(struct lint_input *in, char *const *words, size_t n, const char *file,
			int line)
{
	json_add(in->commands, command_json(words, n, file, line));
}

void lint_input_json_set(struct lint_input *in, const char *key, struct json *value)
{
	json_set(in->x, key, value);
}

void lint_input_command_at(struct lint_input *in, const struct strv *words, size_t program,
			   const char *file, int line)
{
	struct json *o = command_json(words->v, words->n, file, line);

	json_set_number(o, "program", (double)program + 1);
	json_add(in->commands, o);
}

void lint_input_text(struct lint_input *in, const char *key, const char *value)
{
	if (value)
		json_set_text(in->x, key, value);
}

void lint_input_number(struct lint_input *in, const char *key, double value)
{
	if (isfinite(value))
		json_set_number(in->x, key, value);
}

bool lint_input_has(const struct lint_input *in, const char *key)
{
	return json_get(in->x, key);
}

/* --- a campaign ----------------------------------------------------------------------------------
 */

static void add_resources(struct lint_input *in, const struct resources *r)
{
	lint_input_number(in, "nodes", r->nodes ? r->nodes : 1);
	lint_input_number(in, "ranks_per_node", r->tasks_per_node ? r->tasks_per_node : 1);
	if (r->gpus_per_node)
		lint_input_number(in, "gpus_per_node", r->gpus_per_node);
	if (r->cpus_per_task)
		lint_input_number(in, "cpus_per_task", r->cpus_per_task);
	lint_input_text(in, "launcher", r->launcher);
}

/* What the workload says that it runs on, unless somebody said it already. */
static void add_versions(struct lint_input *in, const struct kvs *versions)
{
	for (size_t i = 0; i < versions->n; i++)
		if (!lint_input_has(in, versions->v[i].key))
			lint_input_text(in, versions->v[i].key, versions->v[i].value);
}

static void set_positive(struct json *o, const char *key, double v)
{
	if (v > 0)
		json_set_number(o, key, v);
}

static struct json *model_json(const struct model_shape *m)
{
	static const char *const dtypes[] = {"fp32", "tf32", "fp16", "bf16", "fp8"};
	struct json *o = json_object();

	set_positive(o, "params", m->params);
	set_positive(o, "layers", m->layers);
	set_positive(o, "hidden", m->hidden);
	set_positive(o, "seq_length", m->seq_length);
	set_positive(o, "peak_tflops", m->peak_tflops);
	json_set_text(o, "dtype", dtypes[m->dtype]);
	if (m->gpu)
		json_set_text(o, "gpu", m->gpu);
	return o;
}

static struct json *guards_json(const struct recipe *r)
{
	struct json *list = json_array();

	for (size_t i = 0; i < r->n_guards; i++) {
		const struct guard *g = &r->guards[i];
		struct json *o = json_object();

		json_set_text(o, "name", g->metric);
		if (isfinite(g->at_least))
			json_set_number(o, "at_least", g->at_least);
		if (isfinite(g->at_most))
			json_set_number(o, "at_most", g->at_most);
		set_place(o, g->at.file, g->at.line);
		json_add(list, o);
	}
	return list;
}

static struct json *knob_json(const struct knob *k)
{
	struct json *o = json_object(), *values = json_array();

	json_set_text(o, "name", k->name);
	json_set_text(o, "how", knob_how_name(k->how));
	json_set_text(o, "class", knob_class_name(k->cls));
	if (k->target)
		json_set_text(o, "target", k->target);
	if (k->default_value)
		json_set_text(o, "default", k->default_value);
	json_set_bool(o, "own", k->user_defined);
	for (size_t i = 0; i < k->values.n; i++)
		json_add_text(values, k->values.v[i]);
	json_set(o, "values", values);
	set_place(o, k->at.file, k->at.line);
	return o;
}

static void add_campaign(struct lint_input *in, const struct recipe *r)
{
	struct json *c = json_object(), *knobs = json_array();

	json_set_text(c, "objective", r->objective);
	if (isfinite(r->target))
		json_set_number(c, "target", r->target);
	for (size_t i = 0; i < r->n_knobs; i++)
		json_add(knobs, knob_json(&r->knobs[i]));
	json_set(c, "knobs", knobs);
	json_set(c, "guards", guards_json(r));
	json_set(c, "model", model_json(&r->workload.model));
	set_place(c, r->workload.at.file, 0);
	json_set(in->x, "campaign", c);
}

/* Every variable of b that a does not have so. */
static void add_changes(struct json *list, const struct kvs *a, const struct kvs *b,
			const struct place *at)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct kv *v = &b->v[i];
		const struct lint_setting s = {.name = v->key,
					       .value = v->value,
					       .file = at->file,
					       .line = at->line,
					       .layer = "knob"};

		if (!kvs_has(a, v->key) || !str_eq(kvs_get(a, v->key), v->value))
			json_add(list, setting_json(&s));
	}
}

static bool same_words(const struct strv *a, const struct strv *b)
{
	for (size_t i = 0; i < a->n && a->n == b->n; i++)
		if (!str_eq(a->v[i], b->v[i]))
			return false;
	return a->n == b->n;
}

/* What this value of the knob changes of the environment and command of `base`. */
static int add_arm(struct lint_input *in, const struct recipe *r, const struct config *base,
		   const struct knob *k, const char *value, struct err *e)
{
	struct json *o = json_object(), *settings = json_array(), *commands = json_array();
	struct kvs one = {0};
	struct config c = {0};
	int rc;

	kvs_copy(&one, &base->settings);
	kvs_set(&one, k->name, value);
	rc = config_build(r, &one, &c, e);
	kvs_free(&one);
	json_set_text(o, "knob", k->name);
	json_set_text(o, "value", value);
	json_set_text(o, "class", knob_class_name(k->cls));
	json_set_text(o, "how", knob_how_name(k->how));
	json_set_bool(o, "requires", k->requires_knob);
	add_changes(settings, &base->env, &c.env, &k->at);
	if (!same_words(&base->argv, &c.argv))
		json_add(commands, command_json(c.argv.v, c.argv.n, k->at.file, k->at.line));
	json_set(o, "settings", settings);
	json_set(o, "commands", commands);
	set_place(o, k->at.file, k->at.line);
	json_add(in->arms, o);
	config_done(&c);
	return rc;
}

int lint_input_recipe(struct lint_input *in, const struct recipe *r, const struct kvs *settings,
		      struct err *e)
{
	const struct workload *w = &r->workload;
	const struct kvs none = {0};
	struct config base = {0};
	int rc = config_build(r, settings ? settings : &none, &base, e);

	if (rc)
		return rc;
	add_resources(in, &r->resources);
	add_versions(in, &w->versions);
	add_campaign(in, r);
	for (size_t i = 0; i < base.env.n; i++)
		lint_input_setting(in, &(struct lint_setting){.name = base.env.v[i].key,
							      .value = base.env.v[i].value,
							      .file = w->at.file,
							      .line = w->at.line,
							      .layer = "campaign"});
	lint_input_command(in, base.argv.v, base.argv.n, w->at.file, w->at.line);
	for (size_t i = 0; i < r->n_knobs && rc == 0; i++)
		for (size_t j = 0; j < r->knobs[i].values.n && rc == 0; j++)
			rc = add_arm(in, r, &base, &r->knobs[i], r->knobs[i].values.v[j], e);
	config_done(&base);
	return rc;
}
