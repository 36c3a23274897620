/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault tree of a slow-down: rules over signals. A rule without `under` is a branch of its own;
 * one with it splits the finding of another rule, and is asked only when that one found something.
 * A rule whose signals nobody measured is not asked at all: its branch stays open, with what would
 * close it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/locate.h"
#include "orchestrator/script/rules.h"
#include "orchestrator/script/schema.h"
#include "orchestrator/script/signals.h"
#include "orchestrator/script/source.h"

enum { RULES_MAX = 200 };

/* -- what is read ------------------------------------------------------------------------------ */

static const struct field finding_fields[] = {
	{.name = "bottleneck",
	 .type = FIELD_WORD,
	 .words = rules_bottlenecks,
	 .offset = offsetof(struct finding, bottleneck),
	 .dflt = "`\"unknown\"`; with `under`: what that rule said",
	 .doc = "what holds the workload back; a rule with `under` may correct the other one's word"},
	{.name = "share",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1,
	 .offset = offsetof(struct finding, share),
	 .dflt = "unknown",
	 .unit = "share",
	 .doc = "of the step that would be gone without it: the score by which findings are ordered, "
		"and their ceiling"},
	{.name = "evidence",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = offsetof(struct finding, evidence),
	 .doc = "one sentence with the figures"},
	{.name = "try",
	 .type = FIELD_TEXTS,
	 .offset = offsetof(struct finding, tries),
	 .dflt = "none",
	 .doc = "knobs that may help, the first to try first",
	 .example = "{ \"num_workers\" }"},
	{.name = NULL},
};
const struct schema schema_finding = {"finding", finding_fields};

struct rule {
	char *name, *when, *under, *asks, *run, *source;
	struct strv needs;
	double limit; /* NaN: it has none */
	const struct script_source *src;
	size_t index; /* in its file, from 1 */
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
	 .doc = "signals, limit -> finding, or nil"},
	{.name = "limit",
	 .type = FIELD_NUMBER,
	 .offset = offsetof(struct rule, limit),
	 .dflt = "none",
	 .doc = "its threshold, the second argument of `when`; `thresholds` of a campaign overrides it"},
	{.name = "source",
	 .type = FIELD_TEXT,
	 .offset = offsetof(struct rule, source),
	 .dflt = "none",
	 .doc = "where that number comes from"},
	{.name = "needs",
	 .type = FIELD_TEXTS,
	 .offset = offsetof(struct rule, needs),
	 .dflt = "none",
	 .doc = "signals without which it is not asked and its branch stays open; of names with a bar between them one is enough",
	 .example = "{ \"data_wait_ratio\" }"},
	{.name = "asks",
	 .type = FIELD_TEXT,
	 .offset = offsetof(struct rule, asks),
	 .dflt = "its name",
	 .doc = "the question that stays open then"},
	{.name = "run",
	 .type = FIELD_TEXT,
	 .offset = offsetof(struct rule, run),
	 .dflt = "none",
	 .doc = "what to run to answer it"},
	{.name = "under",
	 .type = FIELD_TEXT,
	 .offset = offsetof(struct rule, under),
	 .dflt = "none",
	 .doc = "name of the rule whose finding it splits; it is asked when that one found something"},
	{.name = NULL},
};
const struct schema schema_rule = {"rule", rule_fields};

static void finding_done(struct finding *f)
{
	free(f->evidence);
	free(f->rule);
	free(f->under);
	free(f->source);
	strv_free(&f->tries);
}

void diagnosis_done(struct diagnosis *d)
{
	for (size_t i = 0; i < d->n_found; i++)
		finding_done(&d->found[i]);
	for (size_t i = 0; i < d->n_open; i++) {
		free(d->open[i].rule);
		free(d->open[i].under);
		free(d->open[i].asks);
		free(d->open[i].missing);
		free(d->open[i].run);
	}
	free(d->found);
	free(d->open);
	memset(d, 0, sizeof(*d));
}

static void rules_free(struct rule *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].when);
		free(v[i].under);
		free(v[i].asks);
		free(v[i].run);
		free(v[i].source);
		strv_free(&v[i].needs);
	}
	free(v);
}

/* -- rules ------------------------------------------------------------------------------------- */

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
		_cleanup_free_ char *at = fieldpath_item("", ++i);

		if (*n >= RULES_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %d rules", src->path,
				       RULES_MAX);
		rules[*n].src = src;
		rules[*n].limit = NAN;
		rules[*n].index = i;
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

static const struct rule *rule_find(const struct rule *rules, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(rules[i].name, name))
			return &rules[i];
	return NULL;
}

static int fault(const struct rule *r, struct err *e, const char *field, const char *what,
		 const char *name, const char *hint)
{
	_cleanup_free_ char *at = fieldpath_item("", r->index);

	return err_set(e, ERR_RECIPE, "%s:%d: rule %s: %s: %s \"%.60s\"%s", r->src->path,
		       locate_line(r->src->text, at), r->name, field, what, name, hint);
}

/* Is every alternative of "a|b" a signal? */
static int check_need(const struct rule *r, const char *need, struct err *e)
{
	for (const char *at = need; *at;) {
		size_t n = strcspn(at, "|");
		_cleanup_free_ char *name = xstrndup(at, n), *hint = NULL;

		if (!signal_is_known(name)) {
			hint = signal_did_you_mean(name);
			return fault(r, e, "needs", "no signal is called", name, hint);
		}
		at += n + (at[n] == '|');
	}
	return 0;
}

/* `under` names a branch, and a tree has two levels. */
static int check_rules(const struct rule *rules, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		const struct rule *r = &rules[i];
		const struct rule *over = r->under ? rule_find(rules, n, r->under) : NULL;

		if (rule_find(rules, n, r->name) != r)
			rc = fault(r, e, "name", "there are two rules called", r->name, "");
		else if (r->under && !over)
			rc = fault(r, e, "under", "there is no rule", r->under, "");
		else if (over && over->under)
			rc = fault(r, e, "under", "splits another finding itself:", r->under, "");
		for (size_t k = 0; k < r->needs.n && !rc; k++)
			rc = check_need(r, r->needs.v[k], e);
	}
	return rc;
}

/* A threshold of the user's, for a rule that has one. */
static int set_limits(struct rule *rules, size_t n, const struct kvs *thresholds, struct err *e)
{
	for (size_t i = 0; thresholds && i < thresholds->n; i++) {
		const struct kv *t = &thresholds->v[i];
		struct strv names = {0};
		struct rule *r = NULL;

		for (size_t k = 0; k < n; k++) {
			if (isfinite(rules[k].limit))
				strv_add(&names, rules[k].name);
			if (str_eq(rules[k].name, t->key) && isfinite(rules[k].limit))
				r = &rules[k];
		}
		if (!r) {
			_cleanup_free_ char *hint = reader_did_you_mean(
				t->key, (const char *const *)strv_end(&names));

			err_set(e, ERR_RECIPE,
				"thresholds: no rule with a limit is called \"%.60s\"%s", t->key,
				hint);
		}
		strv_free(&names);
		if (!r)
			return -ERR_RECIPE;
		if (!str_to_double(t->value, &r->limit))
			return err_set(e, ERR_RECIPE,
				       "thresholds: %s: expected a number, got \"%.60s\"", t->key,
				       t->value);
		free(r->source);
		r->source = xstrdup("your threshold");
	}
	return 0;
}

static int load_rules(const struct script_sources *s, const struct kvs *thresholds,
		      struct rule **out, size_t *n, struct err *e)
{
	struct rule *rules = xcalloc(RULES_MAX, sizeof(*rules));
	int rc = collect_rules(s, rules, n, e);

	if (!rc)
		rc = check_rules(rules, *n, e);
	if (!rc)
		rc = set_limits(rules, *n, thresholds, e);
	if (rc)
		rules_free(rules, *n);
	else
		*out = rules;
	return rc;
}

/* -- asking ------------------------------------------------------------------------------------ */

struct asking {
	const struct script_sources *sources;
	struct rule *rules;
	size_t n;
	struct json *signals; /* an object */
	struct diagnosis *out;
	size_t cap_found, cap_open;
};

static bool is_there(const struct asking *a, const char *need)
{
	for (const char *at = need; *at;) {
		size_t n = strcspn(at, "|");
		_cleanup_free_ char *name = xstrndup(at, n);

		if (json_get(a->signals, name))
			return true;
		at += n + (at[n] == '|');
	}
	return false;
}

/* "data_wait_ratio, ncpu or cpu_user_pct": what is needed and not there, heap; NULL: nothing. */
static char *missing_of(const struct asking *a, const struct rule *r)
{
	struct buf b = {0};

	for (size_t i = 0; i < r->needs.n; i++) {
		if (is_there(a, r->needs.v[i]))
			continue;
		buf_str(&b, b.len ? ", " : "");
		for (const char *p = r->needs.v[i]; *p; p++)
			if (*p == '|')
				buf_str(&b, " or ");
			else
				buf_char(&b, *p);
	}
	return b.len ? buf_take(&b) : NULL;
}

static void leave_open(struct asking *a, const struct rule *r, char *missing)
{
	struct diagnosis *d = a->out;

	d->open = xgrow(d->open, d->n_open, &a->cap_open, sizeof(*d->open));
	d->open[d->n_open++] = (struct open_branch){.rule = xstrdup(r->name),
						    .under = xstrdup(r->under),
						    .asks = xstrdup(r->asks ? r->asks : r->name),
						    .missing = missing,
						    .run = xstrdup(r->run)};
}

static int read_finding(struct asking *a, const struct rule *rule, const struct script_source *src,
			const struct json *v, struct err *e)
{
	const struct reader_layer layer = rules_returned(v, src, rule->when);
	const struct reader r = {&layer, 1};
	struct diagnosis *d = a->out;
	struct finding *f;

	d->found = xgrow(d->found, d->n_found, &a->cap_found, sizeof(*d->found));
	f = &d->found[d->n_found++];
	*f = (struct finding){.share = NAN,
			      .limit = rule->limit,
			      .source = xstrdup(rule->source),
			      .rule = xstrdup(rule->name),
			      .under = xstrdup(rule->under)};
	return reader_table(&r, &schema_finding, v, "", f, e);
}

/* A rule, and the signals that it is asked about. */
struct question {
	const struct rule *rule;
	const struct json *signals;
};

/* What `when` is called with. */
static struct json *arguments(const struct question *q)
{
	struct json *args = json_array();

	json_add(args, json_borrow(q->signals));
	json_add(args,
		 isfinite(q->rule->limit) ? json_new_number(q->rule->limit) : json_new_null());
	return args;
}

/* All of them in one child. */
static int ask(struct asking *a, const struct question *q, size_t n, struct err *e)
{
	struct sandbox_job *jobs = xcalloc(n + 1, sizeof(*jobs));
	struct json **values = xcalloc(n + 1, sizeof(*values)), **args;
	int rc = 0;

	args = xcalloc(n + 1, sizeof(*args));
	for (size_t i = 0; i < n && !rc; i++) {
		rc = rules_function(a->sources, q[i].rule->when, &jobs[i], e);
		jobs[i].args = args[i] = arguments(&q[i]);
		jobs[i].signals = true;
	}
	if (!rc)
		rc = sandbox_run(sources_find(a->sources, "lib/prelude"), jobs, n, values, e);
	for (size_t i = 0; i < n && !rc; i++)
		if (json_type(values[i]) != JSON_NULL && json_bool(values[i], true))
			rc = read_finding(a, q[i].rule, jobs[i].src, values[i], e);
	for (size_t i = 0; i < n; i++) {
		json_free(values[i]);
		json_free(args[i]);
	}
	free(args);
	free(values);
	free(jobs);
	return rc;
}

static bool has_found(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->n_found; i++)
		if (str_eq(d->found[i].rule, rule))
			return true;
	return false;
}

/* The questions of one level to q, which has room for all rules; how many they are. What lacks its
 * signals is left open. `all`: whatever was found, as for a trial of the rules themselves. */
static size_t choose(struct asking *a, bool splits, bool all, struct question *q)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct rule *r = &a->rules[i];
		char *missing;

		if ((r->under != NULL) != splits)
			continue;
		if (splits && !all && !has_found(a->out, r->under))
			continue;
		missing = missing_of(a, r);
		if (missing)
			leave_open(a, r, missing);
		else
			q[n++] = (struct question){r, a->signals};
	}
	return n;
}

static int ask_level(struct asking *a, bool splits, struct err *e)
{
	struct question *q = xcalloc(a->n + 1, sizeof(*q));
	int rc = ask(a, q, choose(a, splits, false, q), e);

	free(q);
	return rc;
}

/* -- order ------------------------------------------------------------------------------------- */

static int by_share(const void *pa, const void *pb)
{
	const struct finding *a = pa, *b = pb;
	double x = isnan(a->share) ? -1 : a->share, y = isnan(b->share) ? -1 : b->share;

	if ((a->under != NULL) != (b->under != NULL))
		return a->under ? 1 : -1;
	if (a->under)
		return a->seq - b->seq;
	return x != y ? (x < y) - (x > y) : strcmp(a->rule, b->rule);
}

/* What splits a finding stands right behind it, in the order of the rules; the first of them that
 * names a bottleneck corrects it. */
static void order(struct diagnosis *d)
{
	struct finding *v = xcalloc(d->n_found + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < d->n_found; i++)
		d->found[i].seq = (int)i;
	if (d->n_found)
		qsort(d->found, d->n_found, sizeof(*v), by_share);
	for (size_t i = 0; i < d->n_found && !d->found[i].under; i++) {
		size_t head = n;
		bool told = false;

		v[n++] = d->found[i];
		for (size_t k = i + 1; k < d->n_found; k++) {
			const struct finding *f = &d->found[k];

			if (!str_eq(f->under, v[head].rule))
				continue;
			if (!told && f->bottleneck != BOTTLENECK_UNKNOWN) {
				v[head].bottleneck = f->bottleneck;
				told = true;
			}
			v[n++] = *f;
		}
	}
	free(d->found);
	d->found = v;
}

/* -- entry points ------------------------------------------------------------------------------ */

int script_diagnose(const struct script_sources *s, const struct script_signals *signals,
		    const struct kvs *thresholds, struct diagnosis *out, struct err *e)
{
	struct asking a = {.sources = s, .out = out, .signals = rules_signals(signals)};
	int rc;

	memset(out, 0, sizeof(*out));
	rc = load_rules(s, thresholds, &a.rules, &a.n, e);
	if (!rc) {
		rc = ask_level(&a, false, e);
		if (!rc)
			rc = ask_level(&a, true, e);
		rules_free(a.rules, a.n);
	}
	json_free(a.signals);
	if (rc)
		diagnosis_done(out);
	else
		order(out);
	return rc;
}

int script_check_rules(const struct script_sources *s, const struct kvs *thresholds, struct err *e)
{
	struct json *const signals[] = {json_object(), signals_made_up(false),
					signals_made_up(true)};
	struct diagnosis d = {0}; /* what they find is of no interest */
	struct asking a = {.sources = s, .out = &d};
	struct question *q;
	size_t n = 0;
	int rc = load_rules(s, thresholds, &a.rules, &a.n, e);

	q = xcalloc(a.n * ARRAY_LEN(signals) + 1, sizeof(*q));
	for (size_t i = 0; !rc && i < ARRAY_LEN(signals); i++) {
		a.signals = signals[i];
		n += choose(&a, false, true, q + n);
		n += choose(&a, true, true, q + n);
	}
	if (!rc) {
		rc = ask(&a, q, n, e);
		rules_free(a.rules, a.n);
	}
	free(q);
	diagnosis_done(&d);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		json_free(signals[i]);
	return rc;
}
