/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From texts to a plan. Loading reads files and then does what reloading does with stored texts:
 * evaluate site, user and campaign, then what they refer to, lay the values over each other, read,
 * check.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/check.h"
#include "orchestrator/script/origin.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/knob.h"
#include "orchestrator/script/lint_input.h"
#include "orchestrator/script/sandbox.h"
#include "orchestrator/script/schema.h"
#include "orchestrator/script/script.h"
#include "orchestrator/script/site.h"
#include "orchestrator/script/source.h"

#define CAMPAIGN     "campaign"
#define SITE         "site"
#define USER         "user"
#define PRELUDE      "lib/prelude"
#define LINT_PRELUDE "lib/lint"
#define CONFIG       "config" /* the framework's own file, no Lua */
#define MODE         "mode"   /* the word that holds where nobody says one, no Lua */

/* Everything of one loading. */
struct loading {
	struct script_sources all;      /* candidates; those that are used become the stored ones */
	const struct script_path *path; /* NULL: reloading, all that there is is in `all` */
	struct site site, user;
	struct json *campaign, *site_value, *user_value, *workload_value;
	const struct script_source *campaign_src, *workload_src;
	struct origins *origins; /* NULL: nobody asks */
	struct evaluated *knob_files;
	struct json **knob_values;
	size_t n_knob_files;
	struct strv dirs;
	struct script_source config; /* read while loading; stored with the others */
};

static void loading_done(struct loading *l)
{
	site_done(&l->site);
	site_done(&l->user);
	json_free(l->campaign);
	json_free(l->site_value);
	json_free(l->user_value);
	json_free(l->workload_value);
	for (size_t i = 0; i < l->n_knob_files; i++)
		json_free(l->knob_values[i]);
	free(l->knob_values);
	free(l->knob_files);
	strv_free(&l->dirs);
	source_done(&l->config);
	script_sources_free(&l->all);
}

/* --- first: site, user and campaign
 * --------------------------------------------------------------------
 */

/* site.lua and user.lua, where there are such; and the campaign, unless only the catalogue is
 * wanted. */
static int evaluate_first(struct loading *l, struct err *e)
{
	const char *const names[] = {CAMPAIGN, SITE, USER};
	struct json **const to[] = {&l->campaign, &l->site_value, &l->user_value};
	struct sandbox_job jobs[ARRAY_LEN(names)] = {{0}};
	struct json *values[ARRAY_LEN(names)];
	size_t n = 0, taken = 0;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((jobs[n].src = sources_find(&l->all, names[i])) != NULL)
			n++;
	if (n > 0)
		rc = sandbox_run(sources_find(&l->all, PRELUDE), jobs, n, values, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sources_find(&l->all, names[i]))
			*to[i] = values[taken++];
	if (l->site_value)
		rc = site_read(&schema_site, sources_find(&l->all, SITE), l->site_value, &l->site,
			       e);
	if (!rc && l->user_value)
		rc = site_read(&schema_user, sources_find(&l->all, USER), l->user_value, &l->user,
			       e);
	return rc;
}

static int evaluate_campaign(struct loading *l, struct err *e)
{
	int rc;

	l->campaign_src = sources_find(&l->all, CAMPAIGN);
	if (!l->campaign_src)
		return err_set(e, ERR_STATE, "the stored sources hold no campaign");
	rc = evaluate_first(l, e);
	if (rc)
		return rc;
	if (json_type(l->campaign) != JSON_OBJECT)
		return err_set(
			e, ERR_RECIPE,
			"%s:1: expected the file to end with return { name = ..., workload = "
			"..., ... }",
			l->campaign_src->path);
	return 0;
}

/* --- second: what they refer to ------------------------------------------------------------------
 */

/* The name in workload.use; NULL if none. */
static int workload_use(const struct loading *l, const char **out, struct err *e)
{
	const struct reader_layer layer = {l->campaign, l->campaign_src, "", ""};
	const struct reader r = {&layer, 1};
	const struct json *use = fieldpath_get(l->campaign, "workload.use");

	*out = NULL;
	if (!use)
		return 0;
	if (json_type(use) != JSON_STRING || !json_text(use, "")[0] ||
	    strchr("/.", json_text(use, "")[0]) || strstr(json_text(use, ""), ".."))
		return reader_expected(&r, use, "workload.use",
				       "the name of a file in workloads/, without .lua", e);
	*out = json_text(use, "");
	return 0;
}

static int find_workload(struct loading *l, const char *use, struct err *e)
{
	const struct reader_layer layer = {l->campaign, l->campaign_src, "", ""};
	const struct reader r = {&layer, 1};
	_cleanup_free_ char *name = xasprintf("workloads/%s", use), *hint = NULL;
	struct strv all = {0};
	int rc;

	l->workload_src = sources_find(&l->all, name);
	if (l->workload_src)
		return 0;
	for (size_t i = 0; i < l->all.n; i++)
		if (str_starts(l->all.v[i].name, "workloads/"))
			strv_add(&all, l->all.v[i].name + strlen("workloads/"));
	hint = reader_did_you_mean(use, (const char *const *)strv_end(&all));
	rc = reader_fault(&r, "workload.use", e,
			  "there is no workloads/%.64s.lua on the recipe path%s", use, hint);
	strv_free(&all);
	return rc;
}

/* All files of the path, so that names can be looked up; the stored ones are there already. */
static int read_path(struct loading *l, struct err *e)
{
	static const char *const kinds[] = {"knobs", "rules",      "workloads",
					    "lint",  "lint/facts", NULL};
	int rc = 0;

	if (!l->path)
		return 0;
	for (size_t i = 0; i < l->site.recipe_path.n; i++)
		strv_add(&l->dirs, l->site.recipe_path.v[i]);
	for (size_t i = 0; i < l->user.recipe_path.n; i++)
		strv_add(&l->dirs, l->user.recipe_path.v[i]);
	for (const char *const *d = l->path->dirs; d && *d; d++)
		strv_add(&l->dirs, *d);
	for (size_t i = 0; kinds[i] && !rc; i++)
		rc = sources_of_kind((const char *const *)strv_end(&l->dirs), kinds[i], &l->all, e);
	/* The array may have moved. */
	l->campaign_src = sources_find(&l->all, CAMPAIGN);
	l->site.src = sources_find(&l->all, SITE);
	l->user.src = sources_find(&l->all, USER);
	return rc;
}

static int evaluate_second(struct loading *l, struct err *e)
{
	struct sandbox_job *jobs = xcalloc(l->all.n + 1, sizeof(*jobs));
	struct json **values = xcalloc(l->all.n + 1, sizeof(*values));
	size_t n = 0;
	int rc;

	/* A campaign without knobs needs none of the files that define them. */
	for (size_t i = 0; i < l->all.n; i++)
		if (str_starts(l->all.v[i].name, "knobs/") &&
		    (!l->campaign || json_get(l->campaign, "knobs")))
			jobs[n++].src = &l->all.v[i];
	l->n_knob_files = n;
	if (l->workload_src)
		jobs[n++].src = l->workload_src;
	rc = sandbox_run(sources_find(&l->all, PRELUDE), jobs, n, values, e);
	l->knob_values = values;
	l->knob_files = xcalloc(l->n_knob_files + 1, sizeof(*l->knob_files));
	for (size_t i = 0; i < l->n_knob_files; i++) {
		l->knob_files[i].src = jobs[i].src;
		l->knob_files[i].value = values[i];
	}
	if (!rc && l->workload_src)
		l->workload_value = values[l->n_knob_files];
	free(jobs);
	return rc;
}

/* --- third: one value from the layers, read and checked ----------------------------------- */

/* Take out "." and "..", by the text alone: stored sources must give the same plan everywhere. */
static char *normalised(const char *path)
{
	struct buf out = {0};

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !memcmp(path, "..", 2)) {
			while (out.len && out.data[--out.len] != '/')
				;
		} else if (n && !(n == 1 && *path == '.')) {
			buf_char(&out, '/');
			buf_put(&out, path, n);
		}
		path += n + (path[n] == '/');
	}
	if (!out.len)
		buf_char(&out, '/');
	out.data[out.len] = '\0';
	return buf_take(&out);
}

static char *workdir_of(const struct script_source *campaign, const char *given)
{
	const char *slash = strrchr(campaign->path, '/');
	_cleanup_free_ char *base = xstrndup(campaign->path,
					     slash ? (size_t)(slash - campaign->path) : 0);
	_cleanup_free_ char *full = NULL;

	if (given && *given == '/')
		return normalised(given);
	full = xasprintf("%s/%s", base, given ? given : "");
	return normalised(full);
}

/* The framework's file: read while loading, of the stored sources afterwards. */
static int read_config(struct loading *l, const struct reader *r, struct workload *w, struct err *e)
{
	const struct script_source *s = sources_find(&l->all, CONFIG);
	_cleanup_free_ char *path = fs_join(w->workdir, w->config);
	_cleanup_(json_freep) struct json *root = NULL;
	struct err why = {0};

	if (!configfile_named(w))
		return reader_fault(r, "workload.config", e,
				    "the command does not name %s: no argument is this file, or "
				    "ends with =%s",
				    w->config, w->config);
	if (!s && source_read(CONFIG, path, &l->config, &why) < 0)
		return reader_fault(r, "workload.config", e, "%s", why.text);
	w->config_text = xstrdup(s ? s->text : l->config.text);
	if (json_parse(w->config, w->config_text, strlen(w->config_text), &root, &why) < 0)
		return reader_fault(r, "workload.config", e, "is no JSON: %s", why.text);
	if (json_type(root) != JSON_OBJECT)
		return reader_fault(r, "workload.config", e, "%s holds no table of keys",
				    w->config);
	return 0;
}

static int read_workload(struct loading *l, const struct reader *r, const struct json *v,
			 struct recipe *out, struct err *e)
{
	char *workdir;
	int rc = reader_table(r, &schema_workload, v, "workload", &out->workload, e);

	if (rc)
		return rc;
	workdir = workdir_of(l->campaign_src, out->workload.workdir);
	free(out->workload.workdir);
	out->workload.workdir = workdir;
	out->workload.at = reader_place(r, "workload.command");
	return out->workload.config ? read_config(l, r, &out->workload, e) : 0;
}

static int read_merged(struct loading *l, const struct reader *r, const struct json *v,
		       struct recipe *out, struct err *e)
{
	struct knob_index index = {0};
	int rc = reader_table(r, &schema_campaign, v, "", out, e);

	if (!rc)
		rc = read_workload(l, r, json_get(v, "workload"), out, e);
	if (!rc)
		rc = knob_index_build(l->knob_files, l->n_knob_files, &index, e);
	if (!rc && json_get(v, "knobs"))
		rc = knobs_read(r, json_get(v, "knobs"), &index, out, e);
	knob_index_free(&index);
	if (!rc)
		rc = check_plan(r, out, e);
	if (!rc)
		rc = site_apply(&l->site, r, out, e);
	if (!rc && l->path)
		rc = check_machine(r, out, l->path->probes, e);
	return rc;
}

static int build(struct loading *l, struct recipe *out, struct err *e)
{
	const struct site *const under[] = {&l->user, &l->site};
	struct reader_layer layers[4] = {{l->campaign, l->campaign_src, "", ""}};
	struct reader r = {layers, 1};
	struct json *merged = json_copy(l->campaign), *next;
	int rc;

	if (l->workload_value) {
		struct json *wrapped = json_object();

		json_set(wrapped, "workload", json_copy(l->workload_value));
		next = reader_merge(merged, wrapped);
		json_free(merged);
		json_free(wrapped);
		merged = next;
		layers[r.n++] = (struct reader_layer){l->workload_value, l->workload_src,
						      "workload", ""};
	}
	for (size_t i = 0; i < ARRAY_LEN(under); i++) {
		if (!under[i]->defaults)
			continue;
		next = reader_merge(merged, under[i]->defaults);
		json_free(merged);
		merged = next;
		layers[r.n++] = (struct reader_layer){under[i]->defaults, under[i]->src, "",
						      "defaults"};
	}
	rc = read_merged(l, &r, merged, out, e);
	if (!rc && l->origins)
		origins_collect(&r, merged, l->site.src, l->site_value, l->origins);
	json_free(merged);
	return rc;
}

/* --- what is stored -----------------------------------------------------------------------------
 */

static bool is_used(const struct loading *l, const struct script_source *s)
{
	if (s == l->workload_src || str_eq(s->name, CAMPAIGN) || str_eq(s->name, SITE) ||
	    str_eq(s->name, USER) || str_eq(s->name, PRELUDE) || str_eq(s->name, LINT_PRELUDE) ||
	    str_eq(s->name, CONFIG) || str_eq(s->name, MODE))
		return true;
	for (size_t i = 0; i < l->n_knob_files; i++)
		if (l->knob_files[i].src == s)
			return l->knob_files[i].used;
	return str_starts(s->name, "rules/") || str_starts(s->name, "lint/");
}

static int make_plan(struct loading *l, struct recipe **out, struct script_sources *used,
		     struct err *e)
{
	struct recipe *recipe = NULL;
	const char *use = NULL;
	int rc = evaluate_campaign(l, e);

	if (!rc)
		rc = read_path(l, e);
	if (!rc)
		rc = workload_use(l, &use, e);
	if (!rc && use)
		rc = find_workload(l, use, e);
	if (!rc)
		rc = evaluate_second(l, e);
	if (!rc) {
		const struct script_source *mode = sources_find(&l->all, MODE);

		recipe = schema_defaults();
		if (mode)
			(void)run_mode_parse(mode->text, &recipe->mode);
		rc = build(l, recipe, e);
	}
	if (!rc)
		rc = lint_settle(recipe, &l->all, e);
	if (rc) {
		recipe_free(recipe);
		return rc;
	}
	for (size_t i = 0; i < l->all.n; i++)
		if (is_used(l, &l->all.v[i]))
			sources_add_copy(used, &l->all.v[i]);
	if (l->config.text)
		sources_add_copy(used, &l->config);
	sources_hash(used);
	recipe->hash = xstrdup(used->hash);
	*out = recipe;
	return 0;
}

/* --- entry points -------------------------------------------------------------------------------
 */

static int add_file(struct loading *l, const char *name, const char *path, struct err *e)
{
	struct script_source s;
	struct err why = {0};
	int rc = source_read(name, path, &s, &why);

	/* A file that is not there is a mistake of whoever named it. */
	if (rc == -ERR_NOT_FOUND || rc == -ERR_IO)
		return err_set(e, ERR_RECIPE, "%s; it was named as the %s file%s", why.text, name,
			       str_eq(name, CAMPAIGN) ? " (recipes/campaigns has examples)" : "");
	if (rc)
		return err_set(e, why.code, "%s", why.text);
	if (!rc)
		sources_add(&l->all, &s);
	return rc;
}

static int add_prelude(struct loading *l, const struct script_path *path, struct err *e)
{
	struct script_source s;
	int rc = source_on_path(path->dirs, "lib", "prelude", &s, e);

	if (rc == -ERR_NOT_FOUND)
		return err_set(e, ERR_RECIPE,
			       "the shipped recipes are not where they should be: there is no "
			       "lib/prelude.lua in %s; "
			       "set FETTLE_RECIPES to their directory",
			       path->dirs && path->dirs[0] ? path->dirs[0]
							   : "an empty recipe path");
	if (!rc)
		sources_add(&l->all, &s);
	if (!rc && source_on_path(path->dirs, "lib", "lint", &s, NULL) == 0)
		sources_add(&l->all, &s);
	return rc;
}

/* Those that lie below every campaign. */
static int add_under(struct loading *l, struct err *e)
{
	int rc = 0;

	if (l->path->site)
		rc = add_file(l, SITE, l->path->site, e);
	if (!rc && l->path->user)
		rc = add_file(l, USER, l->path->user, e);
	return rc;
}

static void add_mode(struct loading *l, const char *mode)
{
	struct script_source s = {
		.name = xstrdup(MODE), .path = xstrdup(""), .text = xstrdup(mode)};

	fs_hash(mode, strlen(mode), s.hash);
	sources_add(&l->all, &s);
}

static int load(struct loading *l, struct recipe **out, struct script_sources *out_sources,
		struct err *e)
{
	struct script_sources used = {0};
	int rc;

	if (l->path->mode)
		add_mode(l, l->path->mode);
	rc = add_under(l, e);
	if (!rc)
		rc = add_prelude(l, l->path, e);
	if (!rc)
		rc = make_plan(l, out, &used, e);
	if (!rc && (rc = script_check_rules(&used, &(*out)->thresholds, e))) {
		script_sources_free(&used);
		recipe_free(*out);
	}
	if (!rc)
		*out_sources = used;
	return rc;
}

int script_load(const char *file, const struct script_path *path, struct recipe **out,
		struct script_sources *out_sources, struct err *e)
{
	struct loading l = {.path = path};
	int rc = add_file(&l, CAMPAIGN, file, e);

	if (!rc)
		rc = load(&l, out, out_sources, e);
	loading_done(&l);
	return rc;
}

int script_load_text(const char *name, const char *text, const struct script_path *path,
		     struct recipe **out, struct script_sources *out_sources, struct err *e)
{
	struct loading l = {.path = path};
	struct script_source s = {
		.name = xstrdup(CAMPAIGN), .path = xstrdup(name), .text = xstrdup(text)};
	int rc;

	fs_hash(text, strlen(text), s.hash);
	sources_add(&l.all, &s);
	rc = load(&l, out, out_sources, e);
	loading_done(&l);
	return rc;
}

int script_origins(const char *file, const struct script_path *path, struct origins *out,
		   struct err *e)
{
	struct origins x = {0};
	struct loading l = {.path = path, .origins = &x};
	struct script_sources sources = {0};
	struct recipe *recipe = NULL;
	int rc = add_file(&l, CAMPAIGN, file, e);

	if (!rc)
		rc = load(&l, &recipe, &sources, e);
	if (!rc) {
		*out = x;
		recipe_free(recipe);
		script_sources_free(&sources);
	} else {
		origins_done(&x);
	}
	loading_done(&l);
	return rc;
}

int script_reload(const struct script_sources *s, struct recipe **out, struct err *e)
{
	struct loading l = {0};
	struct script_sources used = {0};
	int rc;

	for (size_t i = 0; i < s->n; i++)
		sources_add_copy(&l.all, &s->v[i]);
	rc = make_plan(&l, out, &used, e);
	loading_done(&l);
	script_sources_free(&used);
	return rc;
}

/* What there is without a campaign: the settings of site and user and every file on the path. */
static int load_path(struct loading *l, struct err *e)
{
	int rc = add_prelude(l, l->path, e);

	if (!rc)
		rc = add_under(l, e);
	if (!rc)
		rc = evaluate_first(l, e);
	return rc ? rc : read_path(l, e);
}

int script_rules(const struct script_path *path, struct script_sources *out, struct err *e)
{
	struct loading l = {.path = path};
	int rc = load_path(&l, e);

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < l.all.n && !rc; i++)
		if (str_eq(l.all.v[i].name, PRELUDE) || str_starts(l.all.v[i].name, "rules/"))
			sources_add_copy(out, &l.all.v[i]);
	loading_done(&l);
	return rc;
}

int script_catalogue(const struct script_path *path, struct knob **out, size_t *n, struct err *e)
{
	struct loading l = {.path = path};
	struct knob_index index = {0};
	struct knob *knobs = NULL;
	size_t done = 0;
	int rc = load_path(&l, e);

	if (!rc)
		rc = evaluate_second(&l, e);
	if (!rc)
		rc = knob_index_build(l.knob_files, l.n_knob_files, &index, e);
	if (!rc)
		knobs = xcalloc(index.n + 1, sizeof(*knobs));
	for (size_t i = 0; !rc && i < index.n; i++) {
		struct knob_need need = {0};

		rc = knob_from_index(&index, i, &knobs[i], &need, e);
		knob_need_done(&need);
		done += !rc;
	}
	knob_index_free(&index);
	loading_done(&l);
	for (size_t i = 0; rc && i < done; i++)
		knob_done(&knobs[i]);
	if (rc) {
		free(knobs);
		return rc;
	}
	*out = knobs;
	*n = done;
	return 0;
}
