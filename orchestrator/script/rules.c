/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second phase: functions of the stored sources, called with signals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/luajson.h"
#include "orchestrator/script/reader.h"
#include "orchestrator/script/rules.h"
#include "orchestrator/script/sandbox.h"
#include "orchestrator/script/schema.h"
#include "orchestrator/script/script.h"
#include "orchestrator/script/source.h"

const char *const rules_bottlenecks[] = {"unknown", "compute", "communication", "storage", "host",
					 "memory",  NULL};

/* --- calling ------------------------------------------------------------------------------ */

struct json *rules_signals(const struct script_signals *s)
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

int rules_function(const struct script_sources *s, const char *function, struct sandbox_job *job,
		   struct err *e)
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
	struct sandbox_job job = {.args = args, .signals = true};
	int rc = rules_function(s, function, &job, e);

	*value = NULL;
	if (!rc)
		rc = sandbox_run(sources_find(s, "lib/prelude"), &job, 1, value, e);
	*src = job.src;
	json_free(args);
	return rc;
}

struct reader_layer rules_returned(const struct json *v, const struct script_source *src,
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
	 .words = rules_bottlenecks,
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
		json_add(args, rules_signals(signals));
		json_add(args, setting_json(current));
		rc = call(s, k->expect, args, &v, &src, e);
	}
	if (!rc && v && json_type(v) != JSON_NULL) {
		const struct reader_layer layer = rules_returned(v, src, k->expect);
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
	json_add(args, rules_signals(signals));
	rc = call(s, k->lint, args, &v, &src, e);
	if (!rc && json_type(v) != JSON_NULL) {
		const struct reader_layer layer = rules_returned(v, src, k->lint);
		const struct reader r = {&layer, 1};

		rc = reader_text(&r, v, "", reason, e);
	}
	json_free(v);
	return rc;
}
