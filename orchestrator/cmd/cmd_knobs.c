/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_knobs;

struct args {
	struct drive_options look;
	const char *knob;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case ARGP_KEY_ARG:
		if (a->knob)
			argp_error(state, "one knob at a time, got %s too", arg);
		a->knob = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- what was tried here ---------------------------------------------------------------------- */

/* The verdict of one hypothesis in this workspace. */
struct trying {
	struct campaign_row *campaign; /* borrowed */
	struct hypothesis_row *hyp;    /* borrowed */
	struct verdict_row *verdict;   /* borrowed; NULL: none */
};

/* Everything that the workspace knows, by campaign. */
struct past {
	struct campaign_row *campaigns;
	size_t n;
	struct hypothesis_row **hyps;
	size_t *n_hyps;
	struct verdict_row **verdicts;
	size_t *n_verdicts;
	struct trying *v;
	size_t n_v, cap_v;
};

static void past_free(struct past *p)
{
	for (size_t i = 0; i < p->n; i++) {
		hypothesis_rows_free(p->hyps[i], p->n_hyps[i]);
		verdict_rows_free(p->verdicts[i], p->n_verdicts[i]);
	}
	campaign_rows_free(p->campaigns, p->n);
	free(p->hyps);
	free(p->n_hyps);
	free(p->verdicts);
	free(p->n_verdicts);
	free(p->v);
}

static struct verdict_row *last_verdict(struct past *p, size_t c, int64_t hypothesis)
{
	for (size_t i = p->n_verdicts[c]; i-- > 0;)
		if (p->verdicts[c][i].hypothesis == hypothesis && p->verdicts[c][i].final_look)
			return &p->verdicts[c][i];
	return NULL;
}

static int load_campaign(struct workspace *w, struct past *p, size_t c, struct err *e)
{
	int64_t id = p->campaigns[c].id;
	int rc = query_hypotheses(w->db, id, &p->hyps[c], &p->n_hyps[c], e);

	if (rc == 0)
		rc = query_verdicts(w->db, id, &p->verdicts[c], &p->n_verdicts[c], e);
	for (size_t i = 0; rc == 0 && i < p->n_hyps[c]; i++) {
		struct hypothesis_row *h = &p->hyps[c][i];

		p->v = xgrow(p->v, p->n_v, &p->cap_v, sizeof *p->v);
		p->v[p->n_v++] = (struct trying){&p->campaigns[c], h, last_verdict(p, c, h->id)};
	}
	return rc;
}

/* A workspace that is not there is no fault unless it was asked for. */
static int load_past(const char *dir, struct past *p, struct err *e)
{
	struct workspace *w = NULL;
	int rc;

	if (!dir && !fs_exists(workspace_default(NULL)))
		return 0;
	rc = workspace_open(workspace_default(dir), DB_READ, &clock_system, &w, e);
	if (rc == 0)
		rc = query_campaign_list(w->db, NULL, &p->campaigns, &p->n, e);
	p->hyps = xcalloc(p->n + 1, sizeof *p->hyps);
	p->n_hyps = xcalloc(p->n + 1, sizeof *p->n_hyps);
	p->verdicts = xcalloc(p->n + 1, sizeof *p->verdicts);
	p->n_verdicts = xcalloc(p->n + 1, sizeof *p->n_verdicts);
	for (size_t i = 0; rc == 0 && i < p->n; i++)
		rc = load_campaign(w, p, i, e);
	workspace_close(w);
	return rc;
}

static size_t count(const struct past *p, const char *knob, enum verdict_outcome *only)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_v; i++)
		n += str_eq(p->v[i].hyp->knob, knob) && p->v[i].verdict &&
		     (!only || str_eq(p->v[i].verdict->outcome, verdict_outcome_name(*only)));
	return n;
}

/* -- text ------------------------------------------------------------------------------------- */

static void put_clean(struct buf *b, const char *name, const char *text)
{
	if (!text)
		return;
	buf_printf(b, "  %-10s ", name);
	text_line(b, text);
	buf_char(b, '\n');
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
	return buf_take(&b);
}

static void print_line(const struct knob *k, const struct past *p)
{
	enum verdict_outcome accepted = VERDICT_ACCEPTED;
	_cleanup_free_ char *values = values_text(k);
	size_t tested = count(p, k->name, NULL);
	struct buf b = {0};

	buf_printf(&b, "%-28s %-12s %-13s ", k->name, knob_class_name(k->cls),
		   bottleneck_name(k->bottleneck));
	text_line(&b, k->summary);
	buf_printf(&b, "\n%-28s ", "");
	text_line(&b, k->target);
	buf_str(&b, ": ");
	text_line(&b, values);
	if (tested)
		buf_printf(&b, "; here %zu tested, %zu accepted", tested,
			   count(p, k->name, &accepted));
	printf("%s\n", b.data);
	buf_free(&b);
}

static void put_verdict(struct buf *b, const struct trying *t)
{
	const struct verdict_row *v = t->verdict;

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
	if (v && v->reason) {
		buf_str(b, ": ");
		text_line(b, v->reason);
	} else if (!v && t->hyp->reason) {
		buf_str(b, ": ");
		text_line(b, t->hyp->reason);
	}
	buf_char(b, '\n');
}

static void print_detail(const struct knob *k, const char *name, const struct past *p)
{
	struct buf b = {0};
	bool any = false;

	text_line(&b, name);
	buf_char(&b, '\n');
	if (k) {
		_cleanup_free_ char *values = values_text(k), *how = how_text(k);
		_cleanup_free_ char *proof = proof_text(k);

		put_clean(&b, "what", k->summary);
		put_clean(&b, "passed as", how);
		put_clean(&b, "class", knob_class_name(k->cls));
		put_clean(&b, "addresses", bottleneck_name(k->bottleneck));
		put_clean(&b, "default", k->default_value ? k->default_value : "(not set)");
		put_clean(&b, "values", values);
		put_clean(&b, "proof", proof);
		put_clean(&b, "requires", k->requires_knob);
		put_clean(&b, "risk", k->risk);
		put_clean(&b, "notes", k->notes);
		put_clean(&b, "from", k->at.file);
	}
	for (size_t i = 0; i < p->n_v; i++) {
		if (!str_eq(p->v[i].hyp->knob, name))
			continue;
		if (!any)
			buf_str(&b, "in this workspace\n");
		any = true;
		put_verdict(&b, &p->v[i]);
	}
	if (!any)
		buf_str(&b, "in this workspace: never proposed\n");
	fputs(b.data, stdout);
	buf_free(&b);
}

/* -- json ------------------------------------------------------------------------------------- */

static struct json *verdicts_json(const char *knob, const struct past *p)
{
	struct json *a = json_array();

	for (size_t i = 0; i < p->n_v; i++) {
		const struct trying *t = &p->v[i];
		struct json *o;

		if (!str_eq(t->hyp->knob, knob))
			continue;
		o = json_object();
		json_set_i64(o, "campaign", t->campaign->id);
		json_set_text(o, "name", t->campaign->name);
		json_set_text(o, "from", t->hyp->from_value);
		json_set_text(o, "to", t->hyp->value);
		json_set_text(o, "state", hypothesis_state_name(t->hyp->state));
		json_set_text(o, "outcome", t->verdict ? t->verdict->outcome : NULL);
		json_set_text(o, "reason",
			      t->verdict && t->verdict->reason ? t->verdict->reason
							       : t->hyp->reason);
		json_set_number(o, "est", t->verdict && t->verdict->n ? t->verdict->est : NAN);
		json_set_number(o, "lo", t->verdict && t->verdict->n ? t->verdict->lo : NAN);
		json_set_number(o, "hi", t->verdict && t->verdict->n ? t->verdict->hi : NAN);
		json_set_i64(o, "pairs", t->verdict ? t->verdict->n : 0);
		json_add(a, o);
	}
	return a;
}

static struct json *texts_json(const struct strv *v)
{
	struct json *a = json_array();

	for (size_t i = 0; i < v->n; i++)
		json_add_text(a, v->v[i]);
	return a;
}

static struct json *knob_json(const struct knob *k, const struct past *p)
{
	struct json *o = json_object();

	json_set_text(o, "name", k->name);
	json_set_text(o, "summary", k->summary);
	json_set_text(o, "how", knob_how_name(k->how));
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
	json_set(o, "implies", texts_json(&k->implies));
	json_set_text(o, "requires", k->requires_knob);
	json_set_text(o, "risk", k->risk);
	json_set_text(o, "notes", k->notes);
	json_set_text(o, "file", k->at.file);
	json_set(o, "tried", verdicts_json(k->name, p));
	return o;
}

static void print_json(struct json *root)
{
	_cleanup_free_ char *text = json_print(root, true);

	printf("%s\n", text);
	json_free(root);
}

/* -- what was asked --------------------------------------------------------------------------- */

static int unknown(const char *name, const struct knob *v, size_t n, struct err *e)
{
	_cleanup_free_ const char **names = xcalloc(n + 1, sizeof *names);
	const char *near;

	for (size_t i = 0; i < n; i++)
		names[i] = v[i].name;
	near = str_nearest(name, names);
	return err_set(
		e, ERR_NOT_FOUND,
		"the catalogue has no knob \"%s\" and no campaign here used one%s%s%s; `fettle "
		"knobs` lists them",
		name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static bool used_here(const struct past *p, const char *name)
{
	for (size_t i = 0; i < p->n_v; i++)
		if (str_eq(p->v[i].hyp->knob, name))
			return true;
	return false;
}

static int show_one(const struct args *a, const struct knob *v, size_t n, const struct past *p,
		    struct err *e)
{
	const struct knob *k = NULL;

	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].name, a->knob))
			k = &v[i];
	if (!k && !used_here(p, a->knob))
		return unknown(a->knob, v, n, e);
	if (!a->look.json) {
		print_detail(k, a->knob, p);
	} else if (k) {
		print_json(knob_json(k, p));
	} else {
		struct json *o = json_object();

		json_set_text(o, "name", a->knob);
		json_set(o, "tried", verdicts_json(a->knob, p));
		print_json(o);
	}
	return 0;
}

static void show_all(const struct args *a, const struct knob *v, size_t n, const struct past *p)
{
	struct json *all = json_array();

	for (size_t i = 0; i < n; i++) {
		if (a->look.json)
			json_add(all, knob_json(&v[i], p));
		else
			print_line(&v[i], p);
	}
	if (a->look.json) {
		print_json(all);
		return;
	}
	json_free(all);
	printf("%zu knobs; `fettle knobs NAME` says more about one\n", n);
}

static int show(const struct args *a, struct err *e)
{
	struct drive_path path;
	struct past past = {0};
	struct knob *v = NULL;
	size_t n = 0;
	int rc;

	drive_path_init(&path);
	rc = script_catalogue(&path.path, &v, &n, e);
	drive_path_done(&path);
	if (rc == 0)
		rc = load_past(a->look.workspace, &past, e);
	if (rc == 0 && a->knob)
		rc = show_one(a, v, n, &past, e);
	else if (rc == 0)
		show_all(a, v, n, &past);
	past_free(&past);
	for (size_t i = 0; i < n; i++)
		knob_done(&v[i]);
	free(v);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[NAME]",
		.doc = "The catalogue of knobs: what each is, how it is passed, its class, its "
		       "values, "
		       "the proof that it asks for, and every verdict about it in this workspace.",
		.children = children};
	struct args a = {0};
	struct err e = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	return show(&a, &e) < 0 ? cmd_fail(&cmd_knobs, &e) : 0;
}

const struct cmd cmd_knobs = {
	.name = "knobs", .summary = "the catalogue of knobs, and what was tried here", .run = run};
