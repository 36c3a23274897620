/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/site.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/locate.h"
#include "orchestrator/script/schema.h"

#define AT(member) offsetof(struct site, member)

#define COUNT(field, member, text)                                                            \
	{                                                                                     \
		.name = field, .type = FIELD_INT, .min = 1, .max = 1e6, .offset = AT(member), \
		.dflt = "no cap", .doc = text                                                 \
	}

static const struct field caps_fields[] = {
	{.name = "nodes",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = 1e6,
	 .offset = AT(nodes),
	 .dflt = "no cap",
	 .doc = "most nodes of a trial",
	 .example = "8"},
	{.name = "minutes",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e7,
	 .above = true,
	 .scale = 60,
	 .offset = AT(wall_s),
	 .unit = "min",
	 .dflt = "no cap",
	 .doc = "most running time of a campaign"},
	{.name = "node_hours",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e9,
	 .above = true,
	 .offset = AT(node_hours),
	 .unit = "node hours",
	 .dflt = "no cap",
	 .doc = "most that a campaign's allocations may cost"},
	{.name = "trials",
	 .type = FIELD_INT64,
	 .min = 1,
	 .max = 1e9,
	 .offset = AT(trials),
	 .unit = "trials",
	 .dflt = "no cap",
	 .doc = "most runs of the workload"},
	{.name = "trial_s",
	 .type = FIELD_INT64,
	 .min = 1,
	 .max = 604800,
	 .offset = AT(trial_s),
	 .unit = "s",
	 .dflt = "no cap",
	 .doc = "longest `workload.limits.trial_s`"},
	{.name = "gpu_hours",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e9,
	 .above = true,
	 .offset = AT(gpu_hours),
	 .unit = "GPU hours",
	 .dflt = "no cap",
	 .doc = "the same by GPUs, for campaigns that ask for GPUs"},
	COUNT("jobs", jobs, "most jobs in flight of a campaign"),
	COUNT("nodes_at_once", nodes_at_once, "most nodes that those have together"),
	COUNT("idle_nodes", idle_nodes,
	      "a job is submitted only while at least so many nodes of the partition are idle"),
	{.name = "window",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_window,
	 .kind = "hours, or list of hours",
	 .offset = AT(window),
	 .dflt = "always",
	 .doc = "blocks run in these hours only, whatever a campaign's own window says",
	 .example = "\"20:00-07:00 Europe/Berlin\""},
	{.name = NULL},
};
const struct schema schema_caps = {"caps", caps_fields};

/* What says what a campaign is about cannot come from a site or a user. */
static int read_defaults(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e)
{
	static const char *const own[] = {"name", "question", "objective", "target", "knobs", NULL};
	struct site *s = out;

	if (json_type(v) != JSON_OBJECT)
		return reader_expected(r, v, path, "a table with fields of a campaign", e);
	for (size_t i = 0; own[i]; i++) {
		_cleanup_free_ char *at = fieldpath_child(path, own[i]);

		if (json_get(v, own[i]))
			return reader_fault(
				r, at, e,
				"each campaign says this itself; there is no default for it");
	}
	s->defaults = v;
	return 0;
}

/* A list of names, or a table name -> reason. */
static int read_forbidden(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e)
{
	struct kvs *names = out;
	size_t i = 0;

	if (json_type(v) != JSON_ARRAY && json_type(v) != JSON_OBJECT)
		return reader_expected(r, v, path,
				       "a list of knobs, or a table { NAME = \"reason\" }", e);
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		const char *key = json_type(v) == JSON_OBJECT ? json_key(m) : NULL;
		_cleanup_free_ char *at = key ? fieldpath_child(path, key)
					      : fieldpath_item(path, ++i);
		bool position = !key || !key[strspn(key, "0123456789")];

		if (json_type(m) != JSON_STRING)
			return reader_expected(
				r, m, at,
				position ? "the name of a knob" : "a text with the reason", e);
		if (position)
			kvs_set(names, json_text(m, ""), "");
		else
			kvs_set(names, key, json_text(m, ""));
	}
	return 0;
}

static const struct field site_fields[] = {
	{.name = "defaults",
	 .type = FIELD_CUSTOM,
	 .read = read_defaults,
	 .kind = "table: fields of [campaign](#campaign)",
	 .dflt = "none",
	 .doc = "what holds where a campaign says nothing",
	 .example = "{ resources = { partition = \"gpu\" } }"},
	{.name = "caps",
	 .type = FIELD_TABLE,
	 .sub = &schema_caps,
	 .dflt = "no caps",
	 .doc = "what no campaign may exceed"},
	{.name = "forbidden",
	 .type = FIELD_CUSTOM,
	 .read = read_forbidden,
	 .kind = "list, or table of reasons by name",
	 .offset = AT(forbidden),
	 .dflt = "none",
	 .doc = "knobs, or variables, that no campaign may vary",
	 .example = "{ NCCL_PROTO = \"LL128 corrupts data here\" }"},
	{.name = "recipe_path",
	 .type = FIELD_TEXTS,
	 .offset = AT(recipe_path),
	 .dflt = "none",
	 .doc = "directories with `knobs/`, `rules/`, `workloads/` that are looked at before the "
		"shipped ones; "
		"relative to site.lua"},
	{.name = NULL},
};
const struct schema schema_site = {"site", site_fields};

static const struct field user_fields[] = {
	{.name = "defaults",
	 .type = FIELD_CUSTOM,
	 .read = read_defaults,
	 .kind = "table: fields of [campaign](#campaign)",
	 .dflt = "none",
	 .doc = "what holds where your campaigns say nothing, whatever the site's defaults are",
	 .example = "{ resources = { account = \"proj42\" } }"},
	{.name = "recipe_path",
	 .type = FIELD_TEXTS,
	 .offset = AT(recipe_path),
	 .dflt = "none",
	 .doc = "directories with `knobs/`, `rules/`, `workloads/` that are looked at after the "
		"site's and before the shipped ones; relative to user.lua"},
	{.name = NULL},
};
const struct schema schema_user = {"user", user_fields};

/* Directories relative to the file's own. */
static void make_absolute(const struct script_source *src, struct strv *dirs)
{
	const char *slash = strrchr(src->path, '/');
	_cleanup_free_ char *base = slash ? xstrndup(src->path, (size_t)(slash - src->path))
					  : xstrdup(".");

	for (size_t i = 0; i < dirs->n; i++) {
		char *full = fs_join(base, dirs->v[i]);

		free(dirs->v[i]);
		dirs->v[i] = full;
	}
}

int site_read(const struct schema *schema, const struct script_source *src,
	      const struct json *value, struct site *out, struct err *e)
{
	const struct reader_layer layer = {value, src, "", ""};
	const struct reader r = {&layer, 1};
	struct site s = {.src = src};
	int rc = reader_table(&r, schema, value, "", &s, e);

	if (rc) {
		site_done(&s);
		return rc;
	}
	make_absolute(src, &s.recipe_path);
	*out = s;
	return 0;
}

void site_done(struct site *s)
{
	kvs_free(&s->forbidden);
	strv_free(&s->recipe_path);
	strv_free(&s->window);
	memset(s, 0, sizeof(*s));
}

/* --- caps --------------------------------------------------------------------------------- */

static int above_cap(const struct site *s, const struct reader *r, const char *path,
		     const char *cap, double value, double limit, struct err *e)
{
	_cleanup_free_ char *at = xasprintf("caps.%s", cap);
	struct buf a = {0}, b = {0};
	int rc;

	reader_number_text(value, &a);
	reader_number_text(limit, &b);
	rc = reader_fault(r, path, e, "%s is more than this site allows: %s (%s:%d: %s)", a.data,
			  b.data, s->src->path, locate_line(s->src->text, at), at);
	buf_free(&a);
	buf_free(&b);
	return rc;
}

static int check_forbidden(const struct site *s, const struct knob *k, struct err *e)
{
	const char *name = kvs_has(&s->forbidden, k->name) ? k->name : k->target;
	const char *why = kvs_get(&s->forbidden, name);
	_cleanup_free_ char *at = fieldpath_child("forbidden", name);

	if (!kvs_has(&s->forbidden, name))
		return 0;
	return err_set(e, ERR_RECIPE,
		       "%s:%d: knob %s is forbidden at this site%s%s (%s:%d: forbidden)",
		       k->at.file, k->at.line, k->name, why && *why ? ": " : "", why ? why : "",
		       s->src->path, locate_line(s->src->text, at));
}

static int check_turns(const struct site *s, const struct reader *r, const struct budget *b,
		       struct err *e)
{
	if (s->gpu_hours > 0 && b->gpu_hours > s->gpu_hours)
		return above_cap(s, r, "budget.gpu_hours", "gpu_hours", b->gpu_hours, s->gpu_hours,
				 e);
	if (s->jobs && b->jobs > s->jobs)
		return above_cap(s, r, "budget.jobs", "jobs", b->jobs, s->jobs, e);
	if (s->nodes_at_once && b->nodes > s->nodes_at_once)
		return above_cap(s, r, "budget.nodes", "nodes_at_once", b->nodes, s->nodes_at_once,
				 e);
	return 0;
}

int site_apply(const struct site *s, const struct reader *r, struct recipe *recipe, struct err *e)
{
	struct budget *b = &recipe->budget;
	int rc = 0;

	if (!s->src)
		return 0;
	if (s->nodes && recipe->resources.nodes > s->nodes)
		return above_cap(s, r, "resources.nodes", "nodes", recipe->resources.nodes,
				 s->nodes, e);
	if (s->trial_s && recipe->workload.trial_limit_s > s->trial_s) {
		if (fieldpath_get(r->layers[0].value, "workload.limits.trial_s"))
			return above_cap(s, r, "workload.limits.trial_s", "trial_s",
					 (double)recipe->workload.trial_limit_s, (double)s->trial_s,
					 e);
		recipe->workload.trial_limit_s = s->trial_s;
	}
	if (s->trials && b->trials > s->trials)
		return above_cap(s, r, "budget.trials", "trials", (double)b->trials,
				 (double)s->trials, e);
	if (s->wall_s > 0 && b->wall_s > s->wall_s)
		return above_cap(s, r, "budget.minutes", "minutes", b->wall_s / 60, s->wall_s / 60,
				 e);
	if (s->node_hours > 0 && b->node_hours > s->node_hours)
		return above_cap(s, r, "budget.node_hours", "node_hours", b->node_hours,
				 s->node_hours, e);
	rc = check_turns(s, r, b, e);
	for (size_t i = 0; i < recipe->n_knobs && !rc; i++)
		rc = check_forbidden(s, &recipe->knobs[i], e);
	if (rc)
		return rc;
	b->trials = b->trials ? b->trials : s->trials;
	b->wall_s = b->wall_s > 0 ? b->wall_s : s->wall_s;
	b->node_hours = b->node_hours > 0 ? b->node_hours : s->node_hours;
	if (recipe->resources.gpus_per_node > 0)
		b->gpu_hours = b->gpu_hours > 0 ? b->gpu_hours : s->gpu_hours;
	b->jobs = b->jobs ? b->jobs : s->jobs;
	b->nodes = b->nodes ? b->nodes : s->nodes_at_once;
	b->idle_nodes = b->idle_nodes > s->idle_nodes ? b->idle_nodes : s->idle_nodes;
	for (size_t i = 0; i < s->window.n; i++)
		strv_add(&b->site_window, s->window.v[i]);
	return 0;
}
