/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second phase: functions of the stored sources, called with signals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/luajson.h"
#include "orchestrator/script/reader.h"
#include "orchestrator/script/sandbox.h"
#include "orchestrator/script/schema.h"
#include "orchestrator/script/script.h"
#include "orchestrator/script/source.h"

enum { RULES_MAX = 200 };

static const char *const bottleneck_words[] = {
	"unknown", "compute", "communication", "storage", "host", "memory", NULL};

/* --- calling ------------------------------------------------------------------------------ */

static struct json *signals_json(const struct script_signals *s)
{
	struct json *o = json_object();

	for (size_t i = 0; s && i < s->n; i++)
		if (isfinite(s->v[i].value))
			json_set_number(o, s->v[i].name, s->v[i].value);
	return o;
}

/* A setting as Lua wants it: numbers as numbers, true and false as such, the rest as text. */
static struct json *setting_json(const char *text)
{
	double v;

	if (!text)
		return json_new_null();
	if (str_to_double(text, &v))
		return json_new_number(v);
	if (str_eq(text, "true") || str_eq(text, "false"))
		return json_new_bool(str_eq(text, "true"));
	return json_new_text(text);
}

/* Take "source:path" apart: the source, and the path as a part of `function`. */
static int find_function(const struct script_sources *s, const char *function,
			 struct sandbox_job *job, struct err *e)
{
	const char *colon = strchr(function, ':');
	_cleanup_free_ char *name = colon ? xstrndup(function, (size_t)(colon - function)) : NULL;

	job->src = name ? sources_find(s, name) : NULL;
	if (!job->src)
		return err_set(e, ERR_STATE, "the stored sources hold no function \"%.100s\"",
			       function);
	job->call = colon + 1;
	return 0;
}

static int call(const struct script_sources *s, const char *function, struct json *args,
		struct json **value, const struct script_source **src, struct err *e)
{
	struct sandbox_job job = {.args = args};
	int rc = find_function(s, function, &job, e);

	*value = NULL;
	if (!rc)
		rc = sandbox_run(sources_find(s, "lib/prelude"), &job, 1, value, e);
	*src = job.src;
	json_free(args);
	return rc;
}

/* Errors in what a function returns name the function's place, which the layer finds by its path.
 */
static struct reader_layer returned(const struct json *v, const struct script_source *src,
				    const char *function)
{
	return (struct reader_layer){v, src, "", strchr(function, ':') + 1};
}

/* --- knobs -------------------------------------------------------------------------------- */

static const struct field expectation_fields[] = {
	{.name = "worth_trying",
	 .type = FIELD_BOOL,
	 .offset = offsetof(struct expectation, worth_trying),
	 .dflt = "true",
	 .doc = "false: leave this value out"},
	{.name = "gain",
	 .type = FIELD_NUMBER,
	 .offset = offsetof(struct expectation, gain),
	 .dflt = "unknown",
	 .unit = "share",
	 .doc = "what it will probably give"},
	{.name = "ceiling",
	 .type = FIELD_NUMBER,
	 .offset = offsetof(struct expectation, ceiling),
	 .dflt = "unknown",
	 .unit = "share",
	 .doc = "what it can give at most"},
	{.name = "bottleneck",
	 .type = FIELD_WORD,
	 .words = bottleneck_words,
	 .offset = offsetof(struct expectation, bottleneck),
	 .dflt = "the knob's",
	 .doc = "what it relieves"},
	{.name = "why",
	 .type = FIELD_TEXT,
	 .offset = offsetof(struct expectation, why),
	 .dflt = "none",
	 .doc = "one sentence with the evidence"},
	{.name = NULL},
};
const struct schema schema_expectation = {"expectation", expectation_fields};

void expectation_done(struct expectation *x)
{
	free(x->why);
	memset(x, 0, sizeof(*x));
}

int script_expect(const struct script_sources *s, const struct knob *k, const char *value,
		  const char *current, const struct script_signals *signals,
		  struct expectation *out, struct err *e)
{
	struct expectation x = {
		.worth_trying = true, .gain = NAN, .ceiling = NAN, .bottleneck = k->bottleneck};
	const struct script_source *src;
	struct json *args, *v = NULL;
	int rc = 0;

	if (k->expect) {
		args = json_array();
		json_add(args, setting_json(value));
		json_add(args, signals_json(signals));
		json_add(args, setting_json(current));
		rc = call(s, k->expect, args, &v, &src, e);
	}
	if (!rc && v && json_type(v) != JSON_NULL) {
		const struct reader_layer layer = returned(v, src, k->expect);
		const struct reader r = {&layer, 1};

		rc = reader_table(&r, &schema_expectation, v, "", &x, e);
	}
	json_free(v);
	if (rc)
		expectation_done(&x);
	else
		*out = x;
	return rc;
}

int script_lint(const struct script_sources *s, const struct knob *k, const char *value,
		const struct script_signals *signals, char **reason, struct err *e)
{
	const struct script_source *src;
	struct json *args, *v;
	int rc;

	*reason = NULL;
	if (!k->lint)
		return 0;
	args = json_array();
	json_add(args, setting_json(value));
	json_add(args, signals_json(signals));
	rc = call(s, k->lint, args, &v, &src, e);
	if (!rc && json_type(v) != JSON_NULL) {
		const struct reader_layer layer = returned(v, src, k->lint);
		const struct reader r = {&layer, 1};

		rc = reader_text(&r, v, "", reason, e);
	}
	json_free(v);
	return rc;
}

/* --- rules -------------------------------------------------------------------------------- */

void findings_free(struct finding *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(f[i].evidence);
		free(f[i].rule);
	}
	free(f);
}

static const struct field finding_fields[] = {
	{.name = "bottleneck",
	 .type = FIELD_WORD,
	 .words = bottleneck_words,
	 .required = true,
	 .offset = offsetof(struct finding, bottleneck),
	 .doc = "what holds the workload back"},
	{.name = "share",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1,
	 .offset = offsetof(struct finding, share),
	 .dflt = "unknown",
	 .unit = "share",
	 .doc = "of the step"},
	{.name = "evidence",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = offsetof(struct finding, evidence),
	 .doc = "one sentence with the figures"},
	{.name = NULL},
};
const struct schema schema_finding = {"finding", finding_fields};

struct rule {
	char *name, *when;
};

static const struct field rule_fields[] = {
	{.name = "name",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = offsetof(struct rule, name),
	 .doc = "letters, digits, `_` and `-`"},
	{.name = "when",
	 .type = FIELD_FUNCTION,
	 .required = true,
	 .offset = offsetof(struct rule, when),
	 .doc = "signals -> finding, or nil"},
	{.name = NULL},
};
const struct schema schema_rule = {"rule", rule_fields};

static int read_rules(const struct script_source *src, const struct json *list, struct rule *rules,
		      size_t *n, struct err *e)
{
	const struct reader_layer layer = {list, src, "", ""};
	const struct reader r = {&layer, 1};
	size_t i = 0;
	int rc = 0;

	if (json_type(list) != JSON_ARRAY)
		return reader_expected(
			&r, list, "",
			"a list of rules: { { name = ..., when = function(s) ... end } }", e);
	for (const struct json *v = json_first(list); v && !rc; v = json_next(v)) {
		_cleanup_free_ char *at = xasprintf("[%zu]", ++i);

		if (*n >= RULES_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %d rules", src->path,
				       RULES_MAX);
		rc = reader_table(&r, &schema_rule, v, at, &rules[*n], e);
		(*n)++;
	}
	return rc;
}

/* Names and functions of the rules of all files; rules has room for RULES_MAX. */
static int collect_rules(const struct script_sources *s, struct rule *rules, size_t *n,
			 struct err *e)
{
	struct sandbox_job *jobs = xcalloc(s->n + 1, sizeof(*jobs));
	struct json **values = xcalloc(s->n + 1, sizeof(*values));
	size_t files = 0;
	int rc;

	for (size_t i = 0; i < s->n; i++)
		if (str_starts(s->v[i].name, "rules/"))
			jobs[files++].src = &s->v[i];
	rc = sandbox_run(sources_find(s, "lib/prelude"), jobs, files, values, e);
	for (size_t i = 0; i < files && !rc; i++)
		rc = read_rules(jobs[i].src, values[i], rules, n, e);
	for (size_t i = 0; i < files; i++)
		json_free(values[i]);
	free(values);
	free(jobs);
	return rc;
}

static int by_share(const void *pa, const void *pb)
{
	const struct finding *a = pa, *b = pb;
	double x = isnan(a->share) ? -1 : a->share, y = isnan(b->share) ? -1 : b->share;

	return x != y ? (x < y) - (x > y) : strcmp(a->rule, b->rule);
}

static int read_finding(const struct script_source *src, const struct rule *rule,
			const struct json *v, struct finding *f, struct err *e)
{
	const struct reader_layer layer = returned(v, src, rule->when);
	const struct reader r = {&layer, 1};

	f->share = NAN;
	f->rule = xstrdup(rule->name);
	return reader_table(&r, &schema_finding, v, "", f, e);
}

static int apply_rules(const struct script_sources *s, const struct rule *rules, size_t n,
		       struct json *args, struct finding *out, size_t *found, struct err *e)
{
	struct sandbox_job *jobs = xcalloc(n + 1, sizeof(*jobs));
	struct json **values = xcalloc(n + 1, sizeof(*values));
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		rc = find_function(s, rules[i].when, &jobs[i], e);
		jobs[i].args = args;
	}
	if (!rc)
		rc = sandbox_run(sources_find(s, "lib/prelude"), jobs, n, values, e);
	for (size_t i = 0; i < n && !rc; i++)
		if (json_type(values[i]) != JSON_NULL)
			rc = read_finding(jobs[i].src, &rules[i], values[i], &out[(*found)++], e);
	for (size_t i = 0; i < n; i++)
		json_free(values[i]);
	free(values);
	free(jobs);
	return rc;
}

int script_diagnose(const struct script_sources *s, const struct script_signals *signals,
		    struct finding **out, size_t *n, struct err *e)
{
	struct rule *rules = xcalloc(RULES_MAX, sizeof(*rules));
	struct finding *found;
	struct json *args = json_array();
	size_t n_rules = 0, n_found = 0;
	int rc = collect_rules(s, rules, &n_rules, e);

	json_add(args, signals_json(signals));
	found = xcalloc(n_rules + 1, sizeof(*found));
	if (!rc)
		rc = apply_rules(s, rules, n_rules, args, found, &n_found, e);
	json_free(args);
	for (size_t i = 0; i < n_rules; i++) {
		free(rules[i].name);
		free(rules[i].when);
	}
	free(rules);
	if (rc) {
		findings_free(found, n_found);
		return rc;
	}
	qsort(found, n_found, sizeof(*found), by_share);
	*out = found;
	*n = n_found;
	return 0;
}
