/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/knob.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/bundle.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/passed.h"
#include "orchestrator/script/pattern.h"
#include "orchestrator/script/release.h"
#include "orchestrator/script/schema.h"

/* What one definition says, before it is checked. */
struct knob_draft {
	struct knob k;
	char *env, *arg, *type;
	double min, max;
	struct strv one_of;
	const struct json *values, *dflt; /* borrowed */
	struct knob_need need;
};

#define AT(member) offsetof(struct knob_draft, member)

static const char *const class_words[] = {"neutral", "numerics", "optimisation", NULL};
static const char *const bottleneck_words[] = {
	"unknown", "compute", "communication", "storage", "host", "memory", NULL};
static const char *const type_words[] = {"int", "number", "bool", "text", NULL};
static const char *const level_words[] = {"delivered", "acknowledged", "effective", NULL};
static const char *const documented_words[] = {"user", "system", "debug", "no", NULL};
static const char *const change_words[] = {"up", "down", "change", NULL};

/* --- proof -------------------------------------------------------------------------------- */

struct proof_draft {
	struct proof p;
	char *level;
};

static int read_log_pattern(const struct reader *r, const struct json *v, const char *path,
			    void *out, struct err *e)
{
	struct buf why = {0};
	int rc = reader_text(r, v, path, out, e);

	if (!rc && !pattern_check(*(char **)out, true, NULL, &why))
		rc = reader_fault(r, path, e, "the pattern %s", why.data);
	buf_free(&why);
	return rc;
}

#define PROOF(member) offsetof(struct proof_draft, member)
static const struct field proof_fields[] = {
	{.name = "level",
	 .type = FIELD_CHOICE,
	 .words = level_words,
	 .required = true,
	 .offset = PROOF(level),
	 .doc = "what must be shown before a verdict may be accepted",
	 .example = "\"effective\""},
	{.name = "log",
	 .type = FIELD_CUSTOM,
	 .read = read_log_pattern,
	 .kind = "PCRE2 pattern",
	 .offset = PROOF(p.log_pattern),
	 .doc = "acknowledged: the component's own line; `{value}` stands for the setting",
	 .example = "\"using {value} threads\""},
	{.name = "fact",
	 .type = FIELD_TEXT,
	 .offset = PROOF(p.fact),
	 .doc = "acknowledged: a probe's fact whose text equals the setting",
	 .example = "\"nccl.env.NCCL_BUFFSIZE\""},
	{.name = "maps",
	 .type = FIELD_TEXT,
	 .offset = PROOF(p.maps),
	 .doc = "effective: a file with this in its name is mapped into every rank",
	 .example = "\"libjemalloc\""},
	{.name = "metric",
	 .type = FIELD_TEXT,
	 .offset = PROOF(p.metric),
	 .doc = "effective: the mean of this metric differs from the baseline's",
	 .example = "\"tree_procs\""},
	{.name = "expect",
	 .type = FIELD_CHOICE,
	 .words = change_words,
	 .offset = PROOF(p.metric_expect),
	 .dflt = "`\"change\"`",
	 .doc = "in which direction"},
	{.name = "env",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_env,
	 .kind = "table of texts by name",
	 .offset = PROOF(p.env),
	 .doc = "what makes the component say so: set in every arm, unless `workload.env` has it",
	 .example = "{ NCCL_DEBUG = \"INFO\" }"},
	{.name = NULL},
};
const struct schema schema_proof = {"proof", proof_fields};

static int check_proof(const struct reader *r, const struct proof *p, const char *path,
		       struct err *e)
{
	if (p->level == PROOF_ACKNOWLEDGED && !p->log_pattern && !p->fact)
		return reader_fault(
			r, path, e,
			"level \"acknowledged\" needs log (the component's own line) or fact "
			"(what a probe reads)");
	if (p->level == PROOF_EFFECTIVE && !p->maps && !p->metric)
		return reader_fault(
			r, path, e,
			"level \"effective\" needs maps (a mapped file) or metric (a measured "
			"consequence)");
	if (p->metric_expect && !p->metric)
		return reader_fault(r, path, e,
				    "expect says how metric must change, but there is no metric");
	if (p->metric && !metric_def_find(p->metric))
		return reader_fault(r, path, e,
				    "metric \"%.64s\" is not in the catalogue of metrics",
				    p->metric);
	return 0;
}

static int read_proof(const struct reader *r, const struct json *v, const char *path, void *out,
		      struct err *e)
{
	struct knob_draft *d = out;
	struct proof_draft draft = {0};
	struct json *short_form = NULL;
	int rc;

	if (json_type(v) == JSON_STRING) {
		short_form = json_object();
		json_set_text(short_form, "level", json_text(v, ""));
	}
	rc = reader_table(r, &schema_proof, short_form ? short_form : v, path, &draft, e);
	json_free(short_form);
	d->k.proof = draft.p; /* from here on knob_done frees it */
	if (!rc)
		proof_level_parse(draft.level, &d->k.proof.level);
	free(draft.level);
	if (rc)
		return rc;
	if (d->k.proof.metric && !d->k.proof.metric_expect)
		d->k.proof.metric_expect = xstrdup("change");
	return check_proof(r, &d->k.proof, path, e);
}

/* --- requires ----------------------------------------------------------------------------- */

static const struct field requires_fields[] = {
	{.name = "knob",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = offsetof(struct knob_need, knob),
	 .doc = "the other knob",
	 .example = "\"num_workers\""},
	{.name = "above",
	 .type = FIELD_NUMBER,
	 .offset = offsetof(struct knob_need, above),
	 .doc = "its value must be greater than this",
	 .example = "0"},
	{.name = "values",
	 .type = FIELD_TEXTS,
	 .offset = offsetof(struct knob_need, values),
	 .doc = "its value must be one of these"},
	{.name = NULL},
};
const struct schema schema_requires = {"requires", requires_fields};

static int read_requires(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e)
{
	struct knob_draft *d = out;
	int rc;

	d->need.above = NAN;
	rc = reader_table(r, &schema_requires, v, path, &d->need, e);
	if (!rc && isnan(d->need.above) == !d->need.values.n)
		rc = reader_fault(r, path, e,
				  "expected either above or values, to say what %s must be",
				  d->need.knob);
	return rc;
}

void knob_need_done(struct knob_need *n)
{
	free(n->knob);
	strv_free(&n->values);
	memset(n, 0, sizeof(*n));
}

/* --- the fields of a knob -----------------------------------------------------------------------
 */

static int read_values(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e)
{
	if (json_type(v) != JSON_ARRAY)
		return reader_expected(r, v, path, "a list of values, e.g. { 1, 2, 4 }", e);
	if (json_len(v) > KNOB_VALUES_MAX)
		return reader_fault(r, path, e, "%zu values are too many to try; at most %d",
				    json_len(v), KNOB_VALUES_MAX);
	((struct knob_draft *)out)->values = v;
	return 0;
}

static int read_default(const struct reader *r, const struct json *v, const char *path, void *out,
			struct err *e)
{
	(void)r, (void)path, (void)e;
	((struct knob_draft *)out)->dflt = v;
	return 0;
}

static int read_bundle(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e)
{
	return bundle_read(r, v, path, &((struct knob_draft *)out)->k, e);
}

static const struct field knob_fields[] = {
	{.name = "name",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = AT(k.name),
	 .doc = "letters, digits, `.`, `_` and `-`",
	 .example = "\"num_workers\""},
	{.name = "summary",
	 .type = FIELD_TEXT,
	 .offset = AT(k.summary),
	 .doc = "what it does, in one line"},
	{.name = "env",
	 .type = FIELD_TEXT,
	 .offset = AT(env),
	 .doc = "passed as this environment variable",
	 .example = "\"OMP_NUM_THREADS\""},
	{.name = "arg",
	 .type = FIELD_TEXT,
	 .offset = AT(arg),
	 .doc = "passed as this argument; with a `=` at its end, in one word with the value",
	 .example = "\"--num-workers\""},
	{.name = "subkey",
	 .type = FIELD_TEXT,
	 .offset = AT(k.subkey),
	 .doc = "the variable is a list `key:value,key:value`; this key of it",
	 .example = "\"max_split_size_mb\""},
	{.name = "flag",
	 .type = FIELD_BOOL,
	 .offset = AT(k.flag),
	 .dflt = "false",
	 .doc = "an argument without a value: `true` puts it in, `false` takes it out"},
	{.name = "passed",
	 .type = FIELD_CUSTOM,
	 .read = passed_read,
	 .kind = "table of texts: [passed](#how-a-knob-is-passed)",
	 .offset = AT(k.about.passed),
	 .doc = "how each framework takes it, in place of `arg`",
	 .example = "{ hf_trainer = \"--dataloader_num_workers\" }"},
	{.name = "bundle",
	 .type = FIELD_CUSTOM,
	 .read = read_bundle,
	 .kind = "table by name: [bundle](#bundle)",
	 .doc = "sets of settings that change together; its names are the values, and what it gains "
		"is credited to none of its settings",
	 .example = "{ tuned = { env = { A = 1, B = 2 } } }"},
	{.name = "class",
	 .type = FIELD_WORD,
	 .words = class_words,
	 .offset = AT(k.cls),
	 .dflt = "required of a new knob",
	 .doc = "neutral: results are bit-equal; numerics: rounding changes; optimisation: "
		"training dynamics change"},
	{.name = "type",
	 .type = FIELD_CHOICE,
	 .words = type_words,
	 .offset = AT(type),
	 .dflt = "that of its values",
	 .doc = "of its values"},
	{.name = "min", .type = FIELD_NUMBER, .offset = AT(min), .doc = "smallest value"},
	{.name = "max", .type = FIELD_NUMBER, .offset = AT(max), .doc = "largest value"},
	{.name = "one_of",
	 .type = FIELD_TEXTS,
	 .offset = AT(one_of),
	 .doc = "the only values that exist"},
	{.name = "default",
	 .type = FIELD_CUSTOM,
	 .read = read_default,
	 .kind = "text, number, true or false",
	 .dflt = "what the command or environment says, else not set",
	 .doc = "what the baseline has"},
	{.name = "values",
	 .type = FIELD_CUSTOM,
	 .read = read_values,
	 .kind = "list of texts, numbers, true, false",
	 .doc = "what to try; the default is not among them",
	 .example = "{ 1, 2, 4 }"},
	{.name = "proof",
	 .type = FIELD_CUSTOM,
	 .read = read_proof,
	 .kind = "a level, or table: [proof](#proof)",
	 .dflt = "`\"delivered\"`",
	 .doc = "how it is shown that the setting took effect"},
	{.name = "evidence",
	 .type = FIELD_TEXT,
	 .offset = AT(k.about.evidence),
	 .doc = "where else its effect shows, for people"},
	{.name = "implies",
	 .type = FIELD_TEXTS,
	 .offset = AT(k.implies),
	 .dflt = "nothing",
	 .doc = "other settings that may change with it: `env.NAME`, `arg.--name`"},
	{.name = "requires",
	 .type = FIELD_CUSTOM,
	 .read = read_requires,
	 .kind = "table: [requires](#requires)",
	 .doc = "when it counts at all",
	 .example = "{ knob = \"num_workers\", above = 0 }"},
	{.name = "excludes",
	 .type = FIELD_TEXTS,
	 .offset = AT(k.about.excludes),
	 .doc = "knobs or variables that must not be set beside it: a campaign with both is refused",
	 .example = "{ \"NCCL_MIN_NCHANNELS\" }"},
	{.name = "idle",
	 .type = FIELD_TEXTS,
	 .offset = AT(k.about.idle),
	 .doc = "`NAME=VALUE` of a knob or variable with which it does nothing: not tried then",
	 .example = "{ \"NCCL_IB_DISABLE=1\" }"},
	{.name = "applies",
	 .type = FIELD_TEXT,
	 .offset = AT(k.about.applies),
	 .doc = "transport, or condition, under which it does anything; for people"},
	{.name = "since",
	 .type = FIELD_CUSTOM,
	 .read = release_read,
	 .kind = "text: component and version",
	 .offset = AT(k.about.since),
	 .doc = "the first version that has it; see `workload.versions`",
	 .example = "\"nccl 2.17.1\""},
	{.name = "gone",
	 .type = FIELD_CUSTOM,
	 .read = release_read,
	 .kind = "text: component and version",
	 .offset = AT(k.about.gone),
	 .doc = "the first version without it",
	 .example = "\"nccl 2.30.7\""},
	{.name = "defaults",
	 .type = FIELD_CUSTOM,
	 .read = release_read_defaults,
	 .kind = "table of values by component and version, or by framework",
	 .offset = AT(k.about.defaults),
	 .doc = "what it is when nobody sets it, from that version on, or in that framework",
	 .example = "{ [\"nccl 2.14.3\"] = 18, [\"nccl 2.23.4\"] = 20 }"},
	{.name = "documented",
	 .type = FIELD_CHOICE,
	 .words = documented_words,
	 .offset = AT(k.about.documented),
	 .doc = "by its makers: for users, for systems, for debugging alone, not at all"},
	{.name = "safe",
	 .type = FIELD_TEXT,
	 .offset = AT(k.about.safe),
	 .doc = "values that are safe"},
	{.name = "when",
	 .type = FIELD_TEXT,
	 .offset = AT(k.about.when),
	 .doc = "when it is worth trying"},
	{.name = "bottleneck",
	 .type = FIELD_WORD,
	 .words = bottleneck_words,
	 .offset = AT(k.bottleneck),
	 .dflt = "`\"unknown\"`",
	 .doc = "what it relieves"},
	{.name = "expect",
	 .type = FIELD_FUNCTION,
	 .offset = AT(k.expect),
	 .doc = "see [functions](#functions)"},
	{.name = "lint",
	 .type = FIELD_FUNCTION,
	 .offset = AT(k.lint),
	 .doc = "see [functions](#functions)"},
	{.name = "risk", .type = FIELD_TEXT, .offset = AT(k.risk), .doc = "what can go wrong"},
	{.name = "mistakes",
	 .type = FIELD_TEXTS,
	 .offset = AT(k.about.mistakes),
	 .doc = "what users get wrong, a sentence each"},
	{.name = "notes", .type = FIELD_TEXT, .offset = AT(k.notes), .doc = "what else to know"},
	{.name = NULL},
};
const struct schema schema_knob = {"knob", knob_fields};

/* --- values ------------------------------------------------------------------------------- */

static bool value_text(const struct json *v, struct buf *out)
{
	buf_clear(out);
	switch (json_type(v)) {
	case JSON_BOOL:
		buf_str(out, json_bool(v, false) ? "true" : "false");
		return true;
	case JSON_NUMBER:
		reader_number_text(json_number(v, 0), out);
		return true;
	case JSON_STRING:
		buf_str(out, json_text(v, ""));
		return out->len > 0;
	case JSON_NULL:
	case JSON_ARRAY:
	case JSON_OBJECT:
		return false;
	}
	return false;
}

static bool fits_number(const struct knob_draft *d, const char *text, bool whole)
{
	double v;

	return str_to_double(text, &v) && (!whole || v == floor(v)) && !(v < d->min) &&
	       !(v > d->max);
}

static bool fits(const struct knob_draft *d, const struct json *v, const char *text)
{
	bool listed = !d->one_of.n;

	for (size_t i = 0; i < d->one_of.n; i++)
		listed = listed || str_eq(d->one_of.v[i], text);
	if (!listed)
		return false;
	if (str_eq(d->type, "int"))
		return json_type(v) != JSON_BOOL && fits_number(d, text, true);
	if (str_eq(d->type, "number"))
		return json_type(v) != JSON_BOOL && fits_number(d, text, false);
	if (str_eq(d->type, "bool"))
		return str_eq(text, "true") || str_eq(text, "false");
	return true;
}

static void describe_type(const struct knob_draft *d, struct buf *out)
{
	bool low = !isnan(d->min), high = !isnan(d->max);

	if (d->one_of.n) {
		buf_str(out, "one of ");
		for (size_t i = 0; i < d->one_of.n; i++)
			buf_printf(out, "%s\"%s\"", i ? ", " : "", d->one_of.v[i]);
		return;
	}
	buf_str(out, str_eq(d->type, "int")      ? "a whole number"
		     : str_eq(d->type, "number") ? "a number"
		     : str_eq(d->type, "bool")   ? "true or false"
						 : "a text, a number, true or false");
	if (low && high)
		buf_str(out, " from ");
	else if (low || high)
		buf_str(out, low ? " >= " : " <= ");
	if (low)
		reader_number_text(d->min, out);
	if (low && high)
		buf_str(out, " to ");
	if (high)
		reader_number_text(d->max, out);
}

static int take_value(const struct reader *r, const struct knob_draft *d, const struct json *v,
		      const char *at, struct buf *text, struct err *e)
{
	struct buf what = {0};
	int rc;

	if (value_text(v, text) && fits(d, v, text->data))
		return 0;
	describe_type(d, &what);
	buf_printf(&what, " for knob %s", d->k.name);
	rc = reader_expected(r, v, at, what.data, e);
	buf_free(&what);
	return rc;
}

/* Without a declared type all values must be of one kind: { 1, "2", true } is a slip. */
static int same_kind(const struct reader *r, const struct knob_draft *d, const char *path,
		     struct err *e)
{
	size_t i = 1;

	if (d->type)
		return 0;
	for (const struct json *v = json_first(d->values); v; v = json_next(v), i++) {
		_cleanup_free_ char *at = fieldpath_item(path, i);

		if (json_type(v) != json_type(json_first(d->values)))
			return reader_fault(
				r, at, e,
				"the values of knob %s are of different kinds (the first is a %s, "
				"this one is not)",
				d->k.name,
				json_type(json_first(d->values)) == JSON_NUMBER ? "number"
				: json_type(json_first(d->values)) == JSON_BOOL ? "true or false"
										: "text");
	}
	return 0;
}

static int take_values(const struct reader *r, struct knob_draft *d, const char *path,
		       struct err *e)
{
	_cleanup_free_ char *values = fieldpath_child(path, "values"),
			    *dflt = fieldpath_child(path, "default");
	struct buf text = {0};
	size_t i = 0;
	int rc = 0;

	if (d->dflt) {
		rc = take_value(r, d, d->dflt, dflt, &text, e);
		if (!rc)
			d->k.default_value = xstrdup(text.data);
	}
	if (!rc && d->values)
		rc = same_kind(r, d, values, e);
	for (const struct json *v = d->values ? json_first(d->values) : NULL; v && !rc;
	     v = json_next(v)) {
		_cleanup_free_ char *at = fieldpath_item(values, ++i);

		rc = take_value(r, d, v, at, &text, e);
		for (size_t j = 0; j < d->k.values.n && !rc; j++)
			if (str_eq(d->k.values.v[j], text.data))
				rc = reader_fault(r, at, e, "%s stands there twice", text.data);
		if (!rc)
			strv_add(&d->k.values, text.data);
	}
	buf_free(&text);
	return rc;
}

/* --- one definition -----------------------------------------------------------------------------
 */

static bool name_valid(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && n <= 64 && !s[n];
}

static bool env_name(const char *s)
{
	return (isalpha((unsigned char)*s) || *s == '_') &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

static int take_target(const struct reader *r, struct knob_draft *d, const char *path,
		       struct err *e)
{
	_cleanup_free_ char *env = fieldpath_child(path, "env"),
			    *arg = fieldpath_child(path, "arg");
	_cleanup_free_ char *sub = fieldpath_child(path, "subkey"),
			    *flag = fieldpath_child(path, "flag");

	if (!d->env && !d->arg && !d->k.bundles && d->k.about.passed.n) {
		d->k.how = HOW_ARG; /* without a target until a framework is named */
		return 0;
	}
	if (!!d->env + !!d->arg + !!d->k.bundles != 1)
		return reader_fault(
			r, path, e,
			"knob %s: expected either env or arg, to say how it is passed%s", d->k.name,
			d->env && d->arg ? "; it has both"
			: d->k.bundles   ? "; a bundle has neither"
					 : "");
	if (d->k.bundles) {
		if (d->values)
			return reader_fault(r, path, e,
					    "knob %s: the values of a bundle are the names of its "
					    "sets: leave values out",
					    d->k.name);
		d->k.how = HOW_BUNDLE;
		return 0;
	}
	if (d->env && (!env_name(d->env) || str_starts(d->env, "FETTLE_")))
		return reader_fault(r, env, e,
				    "\"%.60s\" cannot be the name of an environment variable here",
				    d->env);
	if (d->arg && strpbrk(d->arg, " \t\n"))
		return reader_fault(r, arg, e, "an argument's name has no blanks in it");
	if (d->k.subkey && d->arg)
		return reader_fault(r, sub, e, "subkey belongs to env, not to arg");
	if (d->k.flag && d->env)
		return reader_fault(r, flag, e, "flag belongs to arg, not to env");
	d->k.how = d->env ? HOW_ENV : HOW_ARG;
	d->k.target = d->env ? TAKE(d->env) : TAKE(d->arg);
	return 0;
}

static void draft_done(struct knob_draft *d)
{
	knob_done(&d->k);
	free(d->env);
	free(d->arg);
	free(d->type);
	strv_free(&d->one_of);
	knob_need_done(&d->need);
}

static int read_draft(const struct reader *r, const struct json *v, const char *path,
		      struct knob_draft *d, struct err *e)
{
	_cleanup_free_ char *name = fieldpath_child(path, "name"),
			    *cls = fieldpath_child(path, "class");
	int rc = reader_table(r, &schema_knob, v, path, d, e);

	if (!rc && !name_valid(d->k.name))
		rc = reader_fault(r, name, e,
				  "\"%.80s\" is no name of a knob: at most 64 letters, digits, "
				  "'.', '_' and '-'",
				  d->k.name);
	if (!rc && !json_get(v, "class"))
		rc = reader_fault(
			r, cls, e,
			"missing: is knob %s \"neutral\" (results are bit-equal), \"numerics\" "
			"(rounding changes) or \"optimisation\" (training dynamics change)?",
			d->k.name);
	if (!rc)
		rc = take_target(r, d, path, e);
	if (!rc && d->k.flag && !d->type)
		d->type = xstrdup("bool");
	if (!rc && d->k.proof.level == PROOF_NONE)
		d->k.proof.level = PROOF_DELIVERED;
	if (!rc)
		rc = take_values(r, d, path, e);
	d->k.at = reader_place(r, path);
	return rc;
}

int knob_read(const struct reader *r, const struct json *v, const char *path, struct knob *out,
	      struct knob_need *need, struct err *e)
{
	struct knob_draft d = {.min = NAN, .max = NAN, .need.above = NAN};
	int rc = read_draft(r, v, path, &d, e);

	if (!rc) {
		*out = d.k;
		*need = d.need;
		memset(&d.k, 0, sizeof(d.k));
		memset(&d.need, 0, sizeof(d.need));
	}
	draft_done(&d);
	return rc;
}

/* --- the catalogue ------------------------------------------------------------------------------
 */

static int index_one(struct knob_index *x, struct evaluated *file, const struct json *v,
		     char *prefix, struct err *e)
{
	const struct reader_layer layer = {v, file->src, "", prefix};
	const struct reader r = {&layer, 1};
	const char *name = json_type(v) == JSON_OBJECT ? json_text(json_get(v, "name"), NULL)
						       : NULL;

	if (!name) {
		int rc = reader_fault(&r, "", e,
				      "expected a table that describes a knob, with a name");

		free(prefix);
		return rc;
	}
	for (size_t i = 0; i < x->n; i++) {
		if (str_eq(x->v[i].name, name)) {
			free(prefix);
			return 0;
		}
	}
	x->v = xgrow(x->v, x->n, &x->cap, sizeof(*x->v));
	x->v[x->n++] = (struct knob_entry){name, v, prefix, file};
	return 0;
}

int knob_index_build(struct evaluated *files, size_t n, struct knob_index *out, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		size_t at = 0;

		if (json_type(files[i].value) != JSON_ARRAY) {
			rc = index_one(out, &files[i], files[i].value, xstrdup(""), e);
			continue;
		}
		for (const struct json *v = json_first(files[i].value); v && !rc; v = json_next(v))
			rc = index_one(out, &files[i], v, fieldpath_item("", ++at), e);
	}
	if (rc)
		knob_index_free(out);
	return rc;
}

void knob_index_free(struct knob_index *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->v[i].prefix);
	free(x->v);
	memset(x, 0, sizeof(*x));
}

const struct knob_entry *knob_index_find(const struct knob_index *x, const char *name)
{
	for (size_t i = 0; i < x->n; i++)
		if (str_eq(x->v[i].name, name))
			return &x->v[i];
	return NULL;
}

int knob_from_index(const struct knob_index *x, size_t i, struct knob *out, struct knob_need *need,
		    struct err *e)
{
	const struct knob_entry *k = &x->v[i];
	const struct reader_layer layer = {k->value, k->file->src, "", k->prefix};
	const struct reader r = {&layer, 1};
	int rc = knob_read(&r, k->value, "", out, need, e);

	if (!rc && need->knob) {
		out->requires_knob = xstrdup(need->knob);
		strv_copy(&out->requires_values, &need->values);
	}
	return rc;
}
