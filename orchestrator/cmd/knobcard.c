/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/knobcard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

char *knobcard_domain(const struct knob *k)
{
	const char *base = fs_basename(k->at.file);

	return xstrndup(base, strcspn(base, "."));
}

/* -- text ------------------------------------------------------------------------------------- */

static void put(struct buf *b, const char *name, const char *text)
{
	if (!text)
		return;
	buf_printf(b, "  %-10s ", name);
	text_line(b, text);
	buf_char(b, '\n');
}

/* Each on a line of its own, the name before the first. */
static void put_list(struct buf *b, const char *name, const struct strv *v)
{
	for (size_t i = 0; i < v->n; i++)
		put(b, i ? "" : name, v->v[i]);
}

static void put_joined(struct buf *b, const char *name, const struct strv *v)
{
	struct buf text = {0};

	for (size_t i = 0; i < v->n; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", v->v[i]);
	if (v->n)
		put(b, name, text.data);
	buf_free(&text);
}

static char *values_text(const struct knob *k)
{
	struct buf b = {0};

	for (size_t i = 0; i < k->values.n; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", k->values.v[i]);
	if (k->values.n == 0)
		buf_str(&b, "no values of its own: the campaign gives them");
	return buf_take(&b);
}

static char *how_text(const struct knob *k)
{
	if (k->how == HOW_BUNDLE)
		return xstrdup("a bundle: several settings at once");
	if (!k->target)
		return xstrdup("as its framework takes it");
	return xasprintf("%s %s%s%s%s", k->how == HOW_ENV ? "environment," : "argument,", k->target,
			 k->subkey ? ", list element " : "", k->subkey ? k->subkey : "",
			 k->flag ? " (a flag: true puts it in)" : "");
}

static char *proof_text(const struct knob *k)
{
	const struct proof *p = &k->proof;
	struct buf b = {0};

	buf_str(&b, proof_level_name(p->level));
	if (p->log_pattern)
		buf_printf(&b, "; the output must match %s", p->log_pattern);
	if (p->fact)
		buf_printf(&b, "; the fact %s must say the value", p->fact);
	if (p->maps)
		buf_printf(&b, "; a file named *%s* must be mapped into every rank", p->maps);
	if (p->metric)
		buf_printf(&b, "; %s must move (%s)", p->metric,
			   p->metric_expect ? p->metric_expect : "change");
	for (size_t i = 0; i < p->env.n; i++)
		buf_printf(&b, "%s%s=%s", i ? " " : "; every arm gets ", p->env.v[i].key,
			   p->env.v[i].value);
	return buf_take(&b);
}

/* "18 from nccl 2.14.3, 20 from nccl 2.23.4, True in hf_trainer" */
static char *default_text(const struct knob *k)
{
	const struct kvs *d = &k->about.defaults;
	struct buf b = {0};

	if (k->default_value || !d->n)
		buf_str(&b, k->default_value ? k->default_value : "(not set)");
	for (size_t i = 0; i < d->n; i++)
		buf_printf(&b, "%s%s %s %s", b.len ? ", " : "", d->v[i].value,
			   strchr(d->v[i].key, ' ') ? "from" : "in", d->v[i].key);
	return buf_take(&b);
}

static char *exists_text(const struct knob *k)
{
	const struct knob_about *a = &k->about;

	if (!a->since && !a->gone)
		return NULL;
	return xasprintf("%s%s%s%s%s", a->since ? "from " : "", a->since ? a->since : "",
			 a->since && a->gone ? ", " : "", a->gone ? "gone with " : "",
			 a->gone ? a->gone : "");
}

static const char *documented_text(const struct knob *k)
{
	static const char *const words[][2] = {
		{"user", "for users"},
		{"system", "for a system's set-up"},
		{"debug", "for debugging alone: fine in experiments, to be watched in production"},
		{"no", "nowhere: it may vanish without a word"},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i][0], k->about.documented))
			return words[i][1];
	return NULL;
}

static void put_passed(struct buf *b, const struct knob *k)
{
	struct strv ways = {0};

	for (size_t i = 0; i < k->about.passed.n; i++)
		strv_addf(&ways, "%-11s %s", k->about.passed.v[i].key, k->about.passed.v[i].value);
	put_list(b, "by", &ways);
	strv_free(&ways);
}

static void put_knob(struct buf *b, const struct knob *k)
{
	_cleanup_free_ char *values = values_text(k), *how = how_text(k), *proof = proof_text(k);
	_cleanup_free_ char *dflt = default_text(k), *exists = exists_text(k);

	put(b, "what", k->summary);
	put(b, "passed as", how);
	put_passed(b, k);
	put(b, "class", knob_class_name(k->cls));
	put(b, "addresses", bottleneck_name(k->bottleneck));
	put(b, "applies to", k->about.applies);
	put(b, "exists", exists);
	put(b, "documented", documented_text(k));
	put(b, "default", dflt);
	put(b, "values", values);
	put(b, "safe", k->about.safe);
	put(b, "try when", k->about.when);
	put(b, "proof", proof);
	put(b, "evidence", k->about.evidence);
	put(b, "requires", k->requires_knob);
	put_joined(b, "idle with", &k->about.idle);
	put_joined(b, "excludes", &k->about.excludes);
	put_joined(b, "implies", &k->implies);
	put(b, "risk", k->risk);
	put_list(b, "mistakes", &k->about.mistakes);
	put(b, "notes", k->notes);
	put(b, "from", k->at.file);
}

static void put_verdict(struct buf *b, const struct trying *t)
{
	const struct verdict_row *v = t->verdict;
	const char *reason = v && v->reason ? v->reason : v ? NULL : t->hyp->reason;

	buf_printf(b, "  campaign %lld ", (long long)t->campaign->id);
	text_line(b, t->campaign->name);
	buf_str(b, ": ");
	text_line(b, t->hyp->from_value ? t->hyp->from_value : "(not set)");
	buf_str(b, " -> ");
	text_line(b, t->hyp->value);
	buf_printf(b, ": %s", v ? v->outcome : hypothesis_state_name(t->hyp->state));
	if (v && v->n > 0 && isfinite(v->lo) && isfinite(v->hi))
		buf_printf(b, ", %+.1f %% [%+.1f, %+.1f] over %d pairs", 100 * v->est, 100 * v->lo,
			   100 * v->hi, v->n);
	if (reason) {
		buf_str(b, ": ");
		text_line(b, reason);
	}
	buf_char(b, '\n');
}

static void put_tried(struct buf *b, const char *name, const struct tried *t)
{
	if (!tried_known(t, name)) {
		buf_str(b, "in this workspace: never proposed\n");
		return;
	}
	buf_printf(b, "in this workspace: %zu tested, %zu accepted\n", tried_tested(t, name),
		   tried_accepted(t, name));
	for (size_t i = 0; i < tried_n(t); i++)
		if (str_eq(tried_at(t, i)->hyp->knob, name))
			put_verdict(b, tried_at(t, i));
}

void knobcard_text(const struct knob *k, const char *name, const struct tried *t, struct buf *out)
{
	text_line(out, name);
	buf_char(out, '\n');
	if (k)
		put_knob(out, k);
	put_tried(out, name, t);
}

/* -- json ------------------------------------------------------------------------------------- */

static struct json *trying_json(const struct trying *t)
{
	const struct verdict_row *v = t->verdict;
	struct json *o = json_object();

	json_set_i64(o, "campaign", t->campaign->id);
	json_set_text(o, "name", t->campaign->name);
	json_set_text(o, "from", t->hyp->from_value);
	json_set_text(o, "to", t->hyp->value);
	json_set_text(o, "state", hypothesis_state_name(t->hyp->state));
	json_set_text(o, "outcome", v ? v->outcome : NULL);
	json_set_text(o, "reason", v && v->reason ? v->reason : t->hyp->reason);
	json_set_number(o, "est", v && v->n ? v->est : NAN);
	json_set_number(o, "lo", v && v->n ? v->lo : NAN);
	json_set_number(o, "hi", v && v->n ? v->hi : NAN);
	json_set_i64(o, "pairs", v ? v->n : 0);
	return o;
}

static struct json *tried_json(const char *knob, const struct tried *t)
{
	struct json *a = json_array();

	for (size_t i = 0; i < tried_n(t); i++)
		if (str_eq(tried_at(t, i)->hyp->knob, knob))
			json_add(a, trying_json(tried_at(t, i)));
	return a;
}

static struct json *texts_json(const struct strv *v)
{
	struct json *a = json_array();

	for (size_t i = 0; i < v->n; i++)
		json_add_text(a, v->v[i]);
	return a;
}

static struct json *pairs_json(const struct kvs *v)
{
	struct json *o = json_object();

	for (size_t i = 0; i < v->n; i++)
		json_set_text(o, v->v[i].key, v->v[i].value);
	return o;
}

static void set_about(struct json *o, const struct knob_about *a)
{
	json_set(o, "passed", pairs_json(&a->passed));
	json_set_text(o, "since", a->since);
	json_set_text(o, "gone", a->gone);
	json_set(o, "defaults", pairs_json(&a->defaults));
	json_set_text(o, "documented", a->documented);
	json_set_text(o, "applies", a->applies);
	json_set(o, "excludes", texts_json(&a->excludes));
	json_set(o, "idle", texts_json(&a->idle));
	json_set(o, "mistakes", texts_json(&a->mistakes));
	json_set_text(o, "safe", a->safe);
	json_set_text(o, "when", a->when);
	json_set_text(o, "evidence", a->evidence);
}

static void set_knob(struct json *o, const struct knob *k)
{
	_cleanup_free_ char *domain = knobcard_domain(k);

	json_set_text(o, "domain", domain);
	json_set_text(o, "summary", k->summary);
	json_set_text(o, "how", k->target || k->bundles ? knob_how_name(k->how) : NULL);
	json_set_text(o, "passed_as", k->target);
	json_set_text(o, "subkey", k->subkey);
	json_set_bool(o, "flag", k->flag);
	json_set_text(o, "class", knob_class_name(k->cls));
	json_set_text(o, "bottleneck", bottleneck_name(k->bottleneck));
	json_set_text(o, "default", k->default_value);
	json_set(o, "values", texts_json(&k->values));
	json_set_text(o, "proof", proof_level_name(k->proof.level));
	json_set_text(o, "proof_log_pattern", k->proof.log_pattern);
	json_set_text(o, "proof_fact", k->proof.fact);
	json_set_text(o, "proof_maps", k->proof.maps);
	json_set_text(o, "proof_metric", k->proof.metric);
	json_set(o, "proof_env", pairs_json(&k->proof.env));
	json_set(o, "implies", texts_json(&k->implies));
	json_set_text(o, "requires", k->requires_knob);
	json_set_text(o, "risk", k->risk);
	json_set_text(o, "notes", k->notes);
	set_about(o, &k->about);
	json_set_text(o, "file", k->at.file);
}

struct json *knobcard_json(const struct knob *k, const char *name, const struct tried *t)
{
	struct json *o = json_object();

	json_set_text(o, "name", name);
	if (k)
		set_knob(o, k);
	json_set(o, "tried", tried_json(name, t));
	return o;
}
