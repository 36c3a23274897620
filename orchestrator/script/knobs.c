/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The knobs of a campaign: names of the catalogue, changed entries, definitions in place. */
#include "orchestrator/script/knob.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/passed.h"
#include "orchestrator/script/release.h"

struct reading {
	const struct reader *r;
	const struct knob_index *x;
	struct recipe *out;
	struct knob_need *needs; /* parallel to out->knobs */
};

/* The catalogue's definition without what the campaign's replaces as a whole. */
static struct json *under_of(const struct json *base, const struct json *over)
{
	struct json *out = json_object();

	for (const struct json *m = json_first(base); m; m = json_next(m)) {
		const char *key = json_key(m);
		bool drop = str_eq(key, "proof") && json_get(over, "proof");

		drop = drop ||
		       (str_eq(key, "passed") && (json_get(over, "env") || json_get(over, "arg")));
		drop = drop ||
		       (json_get(over, "arg") && (str_eq(key, "env") || str_eq(key, "subkey")));
		drop = drop ||
		       (json_get(over, "env") && (str_eq(key, "arg") || str_eq(key, "flag")));
		if (!drop)
			json_set(out, key, json_copy(m));
	}
	return out;
}

static int unknown_knob(const struct reading *rd, const char *name, const char *path, struct err *e)
{
	const char **names = xcalloc(rd->x->n + 1, sizeof(*names));
	_cleanup_free_ char *hint = NULL;
	int rc;

	for (size_t i = 0; i < rd->x->n; i++)
		names[i] = rd->x->v[i].name;
	hint = reader_did_you_mean(name, names);
	rc = reader_fault(rd->r, path, e,
			  "the catalogue has no knob \"%.64s\"%s; `fettle knobs` lists them, and a "
			  "knob of your "
			  "own needs env or arg, class and values",
			  name, hint);
	free(names);
	return rc;
}

/* What the baseline has: what the command or the environment says, unless the campaign says it too.
 */
static int settle_default(const struct reader *r, struct knob *k, const struct workload *w,
			  bool said, const char *path, struct err *e)
{
	_cleanup_free_ char *at = fieldpath_child(path, "default"), *present = knob_present(k, w);

	if (!present)
		return 0;
	if (said && !str_eq(present, k->default_value))
		return reader_fault(r, at, e,
				    "the default of knob %s is given as %s, but the workload "
				    "already passes %s %s",
				    k->name, k->default_value, k->target, present);
	free(k->default_value);
	k->default_value = TAKE(present);
	return 0;
}

/* The default is what every other arm is compared with: as a candidate it is a slip, unless it is
 * only the catalogue's list that holds it. */
static int settle_values(const struct reader *r, struct knob *k, bool said, const char *path,
			 struct err *e)
{
	_cleanup_free_ char *values = fieldpath_child(path, "values");
	struct strv kept = {0};

	for (size_t i = 0; i < k->values.n; i++) {
		_cleanup_free_ char *at = fieldpath_item(values, i + 1);

		if (!str_eq(k->values.v[i], k->default_value)) {
			strv_add(&kept, k->values.v[i]);
		} else if (said) {
			strv_free(&kept);
			return reader_fault(r, at, e,
					    "%s is the default of knob %s, which the baseline has "
					    "already; leave "
					    "it out, or set default = ...",
					    k->default_value, k->name);
		}
	}
	strv_free(&k->values);
	k->values = kept;
	if (k->values.n)
		return 0;
	return reader_fault(r, values, e, "knob %s has no value to try: values = { ... }", k->name);
}

/* What the workload says of its framework and of the versions that it runs on. */
static int fit_to_workload(const struct reader *r, struct knob *k, const struct workload *w,
			   bool said, const char *path, struct err *e)
{
	_cleanup_free_ char *missing = release_missing(k, &w->versions);
	const char *dflt = said ? NULL : release_default(k, w);

	if (missing)
		return reader_fault(r, path, e,
				    "knob %s does not exist in what the workload runs: %s "
				    "(workload.versions)",
				    k->name, missing);
	if (dflt) {
		free(k->default_value);
		k->default_value = xstrdup(dflt);
	}
	return passed_apply(r, k, w, path, e);
}

static int add_knob(struct reading *rd, const struct json *over, const char *path, struct err *e)
{
	const char *name = json_text(json_get(over, "name"), "");
	const struct knob_entry *entry = knob_index_find(rd->x, name);
	const struct reader_layer *top = reader_layer_of(rd->r, path);
	struct reader_layer layers[2] = {{over, top->src, path, ""}, {0}};
	struct reader r = {layers, 1};
	struct json *under = NULL, *merged = NULL;
	_cleanup_free_ char *prefix = NULL, *cls = fieldpath_child(path, "class");
	struct knob k = {0};
	struct knob_need need = {0};
	int rc;

	/* The entry's own path, as its file has it: site defaults stand below "defaults". */
	prefix = *top->prefix ? xasprintf("%s.%s", top->prefix, path) : xstrdup(path);
	layers[0].prefix = prefix;
	if (!entry && !json_get(over, "env") && !json_get(over, "arg") &&
	    !json_get(over, "bundle") && !json_get(over, "passed"))
		return unknown_knob(rd, name, path, e);
	if (entry && json_get(over, "class"))
		return reader_fault(&r, cls, e,
				    "the class of %s is fixed by the catalogue (%s); what is of "
				    "another class is "
				    "another knob: give it a name of its own",
				    name, entry->file->src->path);
	if (entry) {
		under = under_of(entry->value, over);
		layers[1] = (struct reader_layer){entry->value, entry->file->src, path,
						  entry->prefix};
		r.n = 2;
		entry->file->used = true;
	}
	merged = reader_merge(over, under);
	rc = knob_read(&r, merged, path, &k, &need, e);
	if (!rc) {
		k.user_defined = !entry || json_get(over, "proof");
		rc = fit_to_workload(&r, &k, &rd->out->workload, json_get(over, "default"), path,
				     e);
	}
	if (!rc) {
		rc = settle_default(&r, &k, &rd->out->workload, json_get(over, "default"), path, e);
	}
	if (!rc)
		rc = settle_values(&r, &k, json_get(over, "values") || k.bundles, path, e);
	json_free(under);
	json_free(merged);
	if (!rc && recipe_knob(rd->out, k.name))
		rc = reader_fault(&r, path, e, "knob %s stands there twice", k.name);
	if (rc) {
		knob_done(&k);
		knob_need_done(&need);
		return rc;
	}
	rd->needs[rd->out->n_knobs] = need;
	rd->out->knobs[rd->out->n_knobs++] = k;
	return 0;
}

/* The entry as a table with a name: "x", x = { 1, 2 }, x = 4, x = { values = ... }, { name = "x" }.
 */
static int normalise(const struct reading *rd, const struct json *v, const char *name,
		     const char *path, struct json **out, struct err *e)
{
	bool table = json_type(v) == JSON_OBJECT;
	struct json *t;

	if (!name && json_type(v) != JSON_STRING &&
	    !(table && json_text(json_get(v, "name"), NULL)))
		return reader_expected(
			rd->r, v, path,
			"the name of a knob, or a table with one: { name = \"x\", ... }", e);
	if (table && name && json_get(v, "name") &&
	    !str_eq(json_text(json_get(v, "name"), ""), name))
		return reader_fault(rd->r, path, e, "this knob has two names");
	t = table ? json_copy(v) : json_object();
	if (name && !json_get(t, "name"))
		json_set_text(t, "name", name);
	else if (!name && !table)
		json_set_text(t, "name", json_text(v, ""));
	if (name && json_type(v) == JSON_ARRAY) {
		json_set(t, "values", json_copy(v));
	} else if (name && !table) {
		struct json *list = json_array();

		json_add(list, json_copy(v));
		json_set(t, "values", list);
	}
	*out = t;
	return 0;
}

static int read_entries(struct reading *rd, const struct json *knobs, struct err *e)
{
	bool names = json_type(knobs) == JSON_OBJECT;
	size_t i = 0;
	int rc = 0;

	for (const struct json *v = json_first(knobs); v && !rc; v = json_next(v)) {
		const char *key = names ? json_key(v) : NULL;
		bool position = !key || !key[strspn(key, "0123456789")];
		_cleanup_free_ char *at = key ? fieldpath_child("knobs", key)
					      : fieldpath_item("knobs", ++i);
		struct json *entry = NULL;

		rc = normalise(rd, v, position ? NULL : key, at, &entry, e);
		if (!rc)
			rc = add_knob(rd, entry, at, e);
		json_free(entry);
	}
	return rc;
}

static bool meets(const struct knob_need *need, const char *value)
{
	double v;

	if (!value)
		return false;
	for (size_t i = 0; i < need->values.n; i++)
		if (str_eq(need->values.v[i], value))
			return true;
	return !isnan(need->above) && str_to_double(value, &v) && v > need->above;
}

/* The other knob is not part of the campaign: what it is now decides for good. */
static int settle_fixed_need(const struct reading *rd, struct knob *k, const struct knob_need *need,
			     struct err *e)
{
	const struct knob_entry *entry = knob_index_find(rd->x, need->knob);
	_cleanup_free_ char *present = NULL;
	struct knob_need unused = {0};
	struct knob other = {0};
	int rc;

	if (!entry)
		return err_set(e, ERR_RECIPE,
			       "%s:%d: knob %s requires a knob \"%s\", which is neither in the "
			       "campaign nor in "
			       "the catalogue",
			       k->at.file, k->at.line, k->name, need->knob);
	rc = knob_from_index(rd->x, (size_t)(entry - rd->x->v), &other, &unused, e);
	if (rc)
		return rc;
	entry->file->used = true;
	present = knob_present(&other, &rd->out->workload);
	if (!meets(need, present ? present : other.default_value))
		k->requires_knob = xstrdup(need->knob);
	knob_need_done(&unused);
	knob_done(&other);
	return 0;
}

/* "NAME=VALUE" of another setting with which the knob does nothing: as a need of its other values.
 * What the workload itself sets is settled here. */
static void settle_idle(const struct reading *rd, struct knob *k, const char *idle)
{
	const char *value = strchr(idle, '=');
	_cleanup_free_ char *name = value ? xstrndup(idle, (size_t)(value++ - idle)) : NULL;
	const struct knob *other = name ? recipe_knob(rd->out, name) : NULL;
	bool now;

	if (!name || k->requires_knob)
		return;
	now = str_eq(other ? other->default_value : kvs_get(&rd->out->workload.env, name), value);
	if (!other && now)
		k->requires_knob = TAKE(name);
	/* A knob that is not set has no value that could be asked for. */
	if (!other || !other->default_value)
		return;
	k->requires_knob = TAKE(name);
	if (!now)
		strv_add(&k->requires_values, other->default_value);
	for (size_t i = 0; i < other->values.n; i++)
		if (!str_eq(other->values.v[i], value))
			strv_add(&k->requires_values, other->values.v[i]);
}

/* What components must be told so that they say what they read. */
static void add_proof_env(struct recipe *r)
{
	struct kvs *env = &r->workload.env;

	for (size_t i = 0; i < r->n_knobs; i++) {
		const struct kvs *need = &r->knobs[i].proof.env;

		for (size_t j = 0; j < need->n; j++)
			if (!kvs_has(env, need->v[j].key)) {
				kvs_set(env, need->v[j].key, need->v[j].value);
				strv_add(&r->workload.told, need->v[j].key);
			}
	}
	kvs_sort(env);
}

static int settle_need(const struct reading *rd, struct knob *k, const struct knob_need *need,
		       struct err *e)
{
	const struct knob *other;

	if (!need->knob)
		return 0;
	other = recipe_knob(rd->out, need->knob);
	if (!other)
		return settle_fixed_need(rd, k, need, e);
	k->requires_knob = xstrdup(need->knob);
	if (meets(need, other->default_value))
		strv_add(&k->requires_values, other->default_value);
	for (size_t i = 0; i < other->values.n; i++)
		if (meets(need, other->values.v[i]))
			strv_add(&k->requires_values, other->values.v[i]);
	return 0;
}

int knobs_read(const struct reader *r, const struct json *knobs, const struct knob_index *x,
	       struct recipe *out, struct err *e)
{
	struct reading rd = {.r = r, .x = x, .out = out};
	int rc;

	if (json_type(knobs) != JSON_ARRAY && json_type(knobs) != JSON_OBJECT)
		return reader_expected(
			r, knobs, "knobs",
			"a list of knobs, e.g. { \"pin_memory\", num_workers = { 2, 4 } }", e);
	if (json_len(knobs) > KNOBS_MAX)
		return reader_fault(r, "knobs", e,
				    "%zu knobs are too many for one campaign; at most %d",
				    json_len(knobs), KNOBS_MAX);
	out->knobs = xcalloc(json_len(knobs) + 1, sizeof(*out->knobs));
	rd.needs = xcalloc(json_len(knobs) + 1, sizeof(*rd.needs));
	rc = read_entries(&rd, knobs, e);
	for (size_t i = 0; i < out->n_knobs; i++) {
		if (!rc)
			rc = settle_need(&rd, &out->knobs[i], &rd.needs[i], e);
		for (size_t j = 0; !rc && j < out->knobs[i].about.idle.n; j++)
			settle_idle(&rd, &out->knobs[i], out->knobs[i].about.idle.v[j]);
		knob_need_done(&rd.needs[i]);
	}
	free(rd.needs);
	add_proof_env(out);
	return rc;
}
