/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/lint.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/lint_input.h"
#include "orchestrator/script/reader.h"
#include "orchestrator/script/sandbox.h"
#include "orchestrator/script/source.h"

#define LINT_PRELUDE "lib/lint"
#define FACTS        "lint/facts/"
#define RULES        "lint/"

/* --- findings ------------------------------------------------------------------------------------
 */

static const char *const severity_words[] = {"error", "warning", "note", NULL};

const char *lint_severity_name(enum lint_severity s)
{
	return severity_words[s];
}

static void finding_done(struct lint_finding *f)
{
	free(f->rule);
	free(f->file);
	free(f->name);
	free(f->value);
	free(f->what);
	free(f->write);
	free(f->knob);
	free(f->arm);
}

void lint_findings_free(struct lint_finding *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		finding_done(&f[i]);
	free(f);
}

#define TEXT(field, says)                                                   \
	{                                                                   \
		.name = #field, .type = FIELD_TEXT,                         \
		.offset = offsetof(struct lint_finding, field), .doc = says \
	}
static const struct field finding_fields[] = {
	{.name = "severity",
	 .type = FIELD_WORD,
	 .required = true,
	 .words = severity_words,
	 .offset = offsetof(struct lint_finding, severity),
	 .doc = "how bad it is"},
	TEXT(rule, "name of the rule"),
	TEXT(file, "where"),
	{.name = "line",
	 .type = FIELD_INT,
	 .offset = offsetof(struct lint_finding, line),
	 .doc = "where"},
	TEXT(name, "the setting"),
	TEXT(value, "its value"),
	{.name = "what",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = offsetof(struct lint_finding, what),
	 .doc = "what happens in fact"},
	TEXT(write, "what to write instead"),
	TEXT(knob, "the knob that it is about"),
	TEXT(arm, "and its value"),
	{.name = NULL},
};
static const struct schema schema_lint_finding = {"finding of a lint rule", finding_fields};

char *lint_text(const struct lint_finding *f)
{
	struct buf b = {0};

	if (f->name)
		buf_printf(&b, "%s%s%s: ", f->name, f->value ? "=" : "", f->value ? f->value : "");
	buf_str(&b, f->what);
	if (f->write)
		buf_printf(&b, "; write: %s", f->write);
	return buf_take(&b);
}

const struct lint_finding *lint_refusal(const struct lint_finding *f, size_t n, const char *knob,
					const char *value)
{
	for (size_t i = 0; i < n; i++)
		if (f[i].severity == LINT_ERROR && str_eq(f[i].knob, knob) &&
		    str_eq(f[i].arm, value))
			return &f[i];
	return NULL;
}

/* As somebody reads a file: by place, the worst first where there is none. */
static int by_place(const void *pa, const void *pb)
{
	const struct lint_finding *a = pa, *b = pb;
	int c = strcmp(a->file ? a->file : "", b->file ? b->file : "");

	if (!c)
		c = a->line - b->line;
	if (!c)
		c = (int)a->severity - (int)b->severity;
	if (!c)
		c = strcmp(a->name ? a->name : "", b->name ? b->name : "");
	if (!c)
		c = strcmp(a->rule ? a->rule : "", b->rule ? b->rule : "");
	return c ? c : strcmp(a->what, b->what);
}

/* --- asking --------------------------------------------------------------------------------------
 */

struct asking {
	const struct script_sources *s;
	struct sandbox_job *jobs;
	struct json **values;
	size_t n;
	struct lint_finding *found;
	size_t n_found, cap;
};

/* What the files of facts return, by their names. */
static int read_facts(struct asking *a, struct json *facts, struct err *e)
{
	int rc;

	a->n = 0;
	for (size_t i = 0; i < a->s->n; i++)
		if (str_starts(a->s->v[i].name, FACTS))
			a->jobs[a->n++] = (struct sandbox_job){.src = &a->s->v[i]};
	rc = sandbox_run(sources_find(a->s, LINT_PRELUDE), a->jobs, a->n, a->values, e);
	for (size_t i = 0; rc == 0 && i < a->n; i++)
		json_set(facts, a->jobs[i].src->name + strlen(FACTS), a->values[i]);
	return rc;
}

static int read_findings(struct asking *a, const struct script_source *src, const struct json *list,
			 struct err *e)
{
	const struct reader_layer layer = {list, src, "", "check"};
	const struct reader r = {&layer, 1};
	size_t i = 0;
	int rc = 0;

	if (json_type(list) != JSON_ARRAY)
		return reader_expected(&r, list, "", "a list of findings: end with rules { ... }",
				       e);
	for (const struct json *v = json_first(list); v && rc == 0; v = json_next(v)) {
		_cleanup_free_ char *at = xasprintf("[%zu]", ++i);
		struct lint_finding f = {0};

		rc = reader_table(&r, &schema_lint_finding, v, at, &f, e);
		if (rc) {
			finding_done(&f);
			break;
		}
		a->found = xgrow(a->found, a->n_found, &a->cap, sizeof *a->found);
		a->found[a->n_found++] = f;
	}
	return rc;
}

/* x with those facts that the text of the rules names: most need none, and NCCL's are many. */
static struct json *arguments(const struct script_source *src, const struct json *x,
			      const struct json *facts)
{
	struct json *args = json_array(), *own = json_copy(x), *named = json_object();

	for (const struct json *f = json_first(facts); f; f = json_next(f)) {
		_cleanup_free_ char *name = xasprintf("facts.%s", json_key(f));

		if (strstr(src->text, name))
			json_set(named, json_key(f), json_borrow(f));
	}
	json_set(own, "facts", named);
	json_add(args, own);
	return args;
}

static int ask_rules(struct asking *a, const struct json *x, const struct json *facts,
		     struct err *e)
{
	int rc;

	a->n = 0;
	for (size_t i = 0; i < a->s->n; i++)
		if (str_starts(a->s->v[i].name, RULES) && !str_starts(a->s->v[i].name, FACTS))
			a->jobs[a->n++] = (struct sandbox_job){.src = &a->s->v[i],
							       .call = "check",
							       .args = arguments(&a->s->v[i], x,
										 facts)};
	rc = sandbox_run(sources_find(a->s, LINT_PRELUDE), a->jobs, a->n, a->values, e);
	for (size_t i = 0; rc == 0 && i < a->n; i++)
		rc = read_findings(a, a->jobs[i].src, a->values[i], e);
	for (size_t i = 0; i < a->n; i++) {
		json_free(a->values[i]);
		json_free((struct json *)(uintptr_t)a->jobs[i].args);
	}
	return rc;
}

int lint_run_stored(const struct script_sources *s, const struct lint_input *in,
		    struct lint_finding **out, size_t *n, struct err *e)
{
	struct asking a = {.s = s,
			   .jobs = xcalloc(s->n + 1, sizeof *a.jobs),
			   .values = xcalloc(s->n + 1, sizeof *a.values)};
	struct json *x = lint_input_json(in), *facts = json_object();
	int rc = read_facts(&a, facts, e);

	if (rc == 0)
		rc = ask_rules(&a, x, facts, e);
	json_free(x);
	json_free(facts);
	free(a.values);
	free(a.jobs);
	if (rc) {
		lint_findings_free(a.found, a.n_found);
		return rc;
	}
	if (a.n_found)
		qsort(a.found, a.n_found, sizeof *a.found, by_place);
	*out = a.found;
	*n = a.n_found;
	return 0;
}

int lint_sources(const struct script_path *path, struct script_sources *out, struct err *e)
{
	struct script_source prelude;
	int rc = source_on_path(path->dirs, "lib", "lint", &prelude, e);

	if (rc == -ERR_NOT_FOUND)
		return err_set(e, ERR_RECIPE,
			       "the shipped recipes are not where they should be: there is no "
			       "lib/lint.lua in %s; set FETTLE_RECIPES to their directory",
			       path->dirs && path->dirs[0] ? path->dirs[0]
							   : "an empty recipe path");
	if (rc)
		return rc;
	sources_add(out, &prelude);
	rc = sources_of_kind(path->dirs, "lint", out, e);
	return rc ? rc : sources_of_kind(path->dirs, "lint/facts", out, e);
}

int lint_run(const struct script_path *path, const struct lint_input *in, struct lint_finding **out,
	     size_t *n, struct err *e)
{
	struct script_sources s = {0};
	int rc = lint_sources(path, &s, e);

	if (rc == 0)
		rc = lint_run_stored(&s, in, out, n, e);
	script_sources_free(&s);
	return rc;
}
