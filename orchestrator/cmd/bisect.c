/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan of a bisection. */
#include "orchestrator/cmd/bisect.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/text.h"

static void key_done(struct bisect_key *k)
{
	free(k->cannot);
	free(k->recipe);
	free(k->command);
	free(k->name);
}

void bisect_done(struct bisect *b)
{
	for (size_t i = 0; i < b->n; i++)
		key_done(&b->keys[i]);
	free(b->keys);
	campaign_row_done(&b->campaign);
	regression_view_done(&b->view);
	*b = (struct bisect){0};
}

/* -- what is compared -------------------------------------------------------------------------- */

static int choose_series(struct bisect *b, struct err *e)
{
	for (size_t i = 0; !b->moved && i < b->view.n_moved; i++)
		if (b->view.moved[i].series.campaign)
			b->moved = &b->view.moved[i];
	if (b->moved)
		return 0;
	return err_set(
		e, ERR_STATE,
		"regression %lld is of series that fettle does not measure itself, so that "
		"nothing can be measured again; a canary (recipes/README.md) would make it so",
		(long long)b->view.row.id);
}

/* The configuration as it is: the recipe's own, or the fix that is watched. */
static int current_config(struct workspace *w, const struct bisect *b, const struct recipe *r,
			  struct config *out, struct err *e)
{
	struct fix_row fix = {0};
	bool found = false;
	int rc = 0;

	if (r->canary.blocks)
		return config_build(r, NULL, out, e);
	if ((rc = query_fix_get(w->db, b->campaign.id, &fix, &found, e)) == 0)
		rc = found ? query_config_get(w->db, fix.config, out, e)
			   : config_build(r, NULL, out, e);
	fix_row_done(&fix);
	return rc;
}

static const struct fingerprint_key *fingerprint_of(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->n_fingerprint; i++)
		if (str_eq(r->fingerprint[i].name, name))
			return &r->fingerprint[i];
	return NULL;
}

/* What a recipe of two settings cannot hold; NULL: nothing. Static. */
static const char *not_for_recipe(const struct config *c)
{
	for (size_t i = 0; i < c->argv.n; i++)
		if (strstr(c->argv.v[i], CONFIGFILE_MARK))
			return "the fix sets something in a configuration file that fettle writes";
	for (size_t i = 0; i < c->env.n; i++)
		if (!c->env.v[i].value)
			return "it takes variables out of the environment";
	return NULL;
}

/* Can `fettle ab` ask the same? */
static bool fits_ab(const struct recipe *r)
{
	for (const struct job_option *k = job_option_table; k->key; k++) {
		_cleanup_free_ char *value = job_option_value(&r->resources.options, k);

		if (value)
			return false;
	}
	return !r->workload.container.runtime;
}

static char *why_not(const struct recipe *r, const struct config *c, const struct cause_row *cause)
{
	const struct fingerprint_key *k = fingerprint_of(r, cause->key);
	bool variable = k && k->how == FINGERPRINT_ENV; /* absent: it was not set */
	const char *reason;

	if (!cause->was && !variable)
		return xstrdup("its old value is not known");
	if (!k || (!k->set.env.n && !k->set.command.n))
		return xstrdup(str_eq(cause->key, "container")
				       ? "another image is none of what `set` puts back"
				       : "the recipe's `fingerprint` does not say how");
	if (k->set.command.n && !r->canary.blocks)
		return xstrdup("it is set by another command, and a fix has arguments of its own");
	if ((reason = not_for_recipe(c)))
		return xstrdup(reason);
	return NULL;
}

/* -- as fettle ab ------------------------------------------------------------------------------ */

/* An ab and the texts that its fields borrow. */
struct question {
	struct ab ab;
	struct kvs difference;
	struct strv texts;
};

static void question_done(struct question *q)
{
	kvs_free(&q->ab.base);
	kvs_free(&q->difference);
	strv_free(&q->ab.a);
	strv_free(&q->ab.b);
	strv_free(&q->ab.secrets);
	strv_free(&q->texts);
	free(q->ab.workdir);
}

/* Takes over text; "" is no value. */
static void set_field(struct question *q, enum ab_field f, char *text)
{
	if (text && *text) {
		strv_add(&q->texts, text);
		q->ab.field[f] = q->texts.v[q->texts.n - 1];
	}
	free(text);
}

static void set_count(struct question *q, enum ab_field f, int64_t v)
{
	if (v > 0)
		set_field(q, f, xasprintf("%lld", (long long)v));
}

static void set_workload(struct question *q, const struct recipe *r)
{
	const struct workload *w = &r->workload;

	switch (w->source) {
	case SOURCE_PROBE:
		set_field(q, AB_PROBE, xstrdup(w->probe));
		break;
	case SOURCE_PATTERN:
		set_field(q, AB_PATTERN, xstrdup(w->pattern));
		break;
	case SOURCE_METRICS_FILE:
		q->ab.metrics_file = true;
		break;
	}
	set_count(q, AB_STEPS, w->steps);
	if (w->steps)
		set_count(q, AB_WARMUP_STEPS, w->warmup_steps);
	set_field(q, AB_STEP_PATTERN, xstrdup(w->step_pattern));
	set_count(q, AB_TRIAL_S, w->trial_limit_s);
	strv_copy(&q->ab.secrets, &w->secrets);
	q->ab.workdir = xstrdup(w->workdir);
	q->ab.container = &w->container;
}

static void set_resources(struct question *q, const struct resources *r)
{
	set_count(q, AB_NODES, r->nodes);
	set_count(q, AB_TASKS_PER_NODE, r->tasks_per_node);
	set_count(q, AB_CPUS_PER_TASK, r->cpus_per_task);
	set_count(q, AB_GPUS_PER_NODE, r->gpus_per_node);
	if (r->mem_mib_per_node)
		set_field(q, AB_MEM_GIB, xasprintf("%.17g", (double)r->mem_mib_per_node / 1024));
	set_count(q, AB_TIME_LIMIT, r->time_limit_s / 60);
	set_field(q, AB_PARTITION, xstrdup(r->partition));
	set_field(q, AB_ACCOUNT, xstrdup(r->account));
	set_field(q, AB_QOS, xstrdup(r->qos));
	set_field(q, AB_RESERVATION, xstrdup(r->reservation));
	set_field(q, AB_FEATURES, xstrdup(r->constraint));
	set_field(q, AB_NODELIST, xstrdup(r->nodelist));
	set_field(q, AB_EXCLUDE, xstrdup(r->exclude));
	set_field(q, AB_LAUNCHER, xstrdup(r->launcher));
	q->ab.options = &r->options;
}

/* "bisect-3-nvidia_driver": letters of a key are those of a campaign's name, or "_". */
static char *campaign_name(int64_t regression, const char *key)
{
	char *name = xasprintf("bisect-%lld-%s", (long long)regression, key);

	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			*p = '_';
	return name;
}

static void set_metric(struct question *q, const struct bisect *b)
{
	const struct series_row *s = &b->moved->series;

	set_field(q, AB_METRIC, xstrdup(s->metric));
	set_field(q, AB_STAT, xstrdup(s->stat));
	if (!metric_def_find(s->metric) && s->better != BETTER_NONE)
		set_field(q, AB_BETTER, xstrdup(better_name(s->better)));
	set_field(q, AB_MIN_EFFECT, xasprintf("%.6g", 100 * s->min_effect));
}

/* A variable of the trial stands as it is in A, and as it was in B: whatever shell a bisection is
 * started from. */
static void set_variable(struct question *q, const struct fingerprint_key *k,
			 const struct cause_row *cause)
{
	if (cause->is)
		kvs_set(&q->ab.base, k->env, cause->is);
	kvs_set(&q->difference, k->env, cause->was);
}

/* What another key is set by, as B's; without what A has already. */
static void set_back(struct question *q, const struct fingerprint_key *k, const char *was)
{
	struct bundle old = {0};

	fingerprint_set(k, was, &old);
	for (size_t i = 0; i < old.env.n; i++)
		if (!str_eq(kvs_get(&q->ab.base, old.env.v[i].key), old.env.v[i].value))
			kvs_set(&q->difference, old.env.v[i].key, old.env.v[i].value);
	kvs_sort(&q->difference);
	strv_copy(&q->ab.b, &old.command);
	bundle_done(&old);
}

static void ask(const struct bisect *b, const struct recipe *r, const struct config *c,
		const struct bisect_key *k, struct question *q)
{
	const struct fingerprint_key *key = fingerprint_of(r, k->cause->key);

	set_field(q, AB_NAME, xstrdup(k->name));
	set_field(q, AB_QUESTION,
		  xasprintf("regression %lld: is it %s, %s (A) where it was %s (B)?",
			    (long long)b->view.row.id, k->cause->key,
			    k->cause->is ? k->cause->is : "(not set)",
			    k->cause->was ? k->cause->was : "(not set)"));
	set_metric(q, b);
	set_workload(q, r);
	set_resources(q, &r->resources);
	strv_copy(&q->ab.a, &c->argv);
	kvs_copy(&q->ab.base, &c->env);
	if (key->how == FINGERPRINT_ENV)
		set_variable(q, key, k->cause);
	else
		set_back(q, key, k->cause->was);
}

/* The newest campaign of this name that `fettle ab` or a bisection made. */
static int find_campaign(struct workspace *w, struct bisect_key *k, struct err *e)
{
	struct campaign_row *v = NULL;
	size_t n = 0;
	int rc = query_campaign_list(w->db, k->name, &v, &n, e);

	if (rc == 0 && n && str_eq(v[0].recipe_path, AB_RECIPE_NAME))
		k->campaign = v[0].id;
	campaign_rows_free(v, n);
	return rc;
}

static int cost(struct workspace *w, const struct bisect *b, struct bisect_key *k, struct err *e)
{
	struct outline_given given = {.workspace = w->root, .campaign = b->campaign.id};
	struct script_sources sources = {0};
	struct cost_row past = {0};
	struct recipe *r = NULL;
	int rc = query_cost(w->db, b->campaign.id, &past, e);

	if (rc < 0 || (rc = ab_load(k->recipe, b->scheduler, &r, &sources, e)) < 0)
		return rc;
	if (past.trials_all) /* the same workload: what its trials took so far */
		given.trial_s = past.trial_s / (double)past.trials_all;
	outline_make(r, &given, &k->outline);
	recipe_free(r);
	script_sources_free(&sources);
	return 0;
}

/* A key whose recipe does not load cannot be set, and that says why. */
static int plan_key(struct workspace *w, const struct bisect *b, const struct recipe *r,
		    const struct config *c, struct bisect_key *k, struct err *e)
{
	struct question q = {0};
	struct buf recipe = {0}, command = {0};
	struct err why = {0};

	if ((k->cannot = why_not(r, c, k->cause)))
		return 0;
	k->name = campaign_name(b->view.row.id, k->cause->key);
	ask(b, r, c, k, &q);
	if (ab_recipe(&q.ab, &q.difference, &recipe, &why) < 0) {
		k->cannot = xstrdup(why.text);
	} else {
		buf_str(&command, "ab -s ");
		text_sh(&command, b->scheduler);
		buf_str(&command, " -w ");
		text_sh(&command, w->root);
		ab_command(&q.ab, &q.difference, &command);
		k->recipe = buf_take(&recipe);
		if (fits_ab(r))
			k->command = buf_take(&command);
		if (cost(w, b, k, &why) < 0)
			k->cannot = xstrdup(why.text);
	}
	buf_free(&recipe);
	buf_free(&command);
	question_done(&q);
	return find_campaign(w, k, e);
}

static int plan_keys(struct workspace *w, struct bisect *b, const struct recipe *r, struct err *e)
{
	struct config c = {0};
	int rc = current_config(w, b, r, &c, e);

	b->keys = xcalloc(b->view.n_causes + 1, sizeof *b->keys);
	for (size_t i = 0; rc == 0 && i < b->view.n_causes; i++) {
		if (b->view.causes[i].kind != CAUSE_ENVIRONMENT)
			continue;
		b->keys[b->n].cause = &b->view.causes[i];
		rc = plan_key(w, b, r, &c, &b->keys[b->n++], e);
	}
	config_done(&c);
	if (rc == 0 && b->n == 0)
		rc = err_set(e, ERR_STATE,
			     "no key of the environment is known to have changed with regression "
			     "%lld",
			     (long long)b->view.row.id);
	return rc;
}

int bisect_plan(struct workspace *w, int64_t regression, const char *scheduler, struct bisect *out,
		struct err *e)
{
	struct bisect b = {0};
	struct script_sources sources = {0};
	struct recipe *r = NULL;
	int rc = regression_load(w->db, regression, &b.view, e);

	if (rc == 0 && (rc = choose_series(&b, e)) == 0 &&
	    (rc = query_campaign_get(w->db, b.moved->series.campaign, &b.campaign, e)) == 0 &&
	    (rc = campaign_sources(w, b.campaign.id, &sources, e)) == 0 &&
	    (rc = script_reload(&sources, &r, e)) == 0) {
		b.scheduler = scheduler ? scheduler : b.campaign.scheduler;
		rc = plan_keys(w, &b, r, e);
	}
	recipe_free(r);
	script_sources_free(&sources);
	if (rc < 0)
		bisect_done(&b);
	else
		*out = b;
	return rc;
}

/* -- telling ---------------------------------------------------------------------------------- */

static void cost_text(const struct outline *o, struct buf *out)
{
	buf_printf(out, "at most %zu blocks, with warm-up %zu runs", o->confirm_runs / 2, o->runs);
	if (isfinite(o->node_hours)) {
		char text[32];

		progress_cost(o->node_hours * 3600, text, sizeof text);
		buf_printf(out, ", %s", text);
	}
	if (isfinite(o->gpu_hours))
		buf_printf(out, ", %.2f GPU-hours", o->gpu_hours);
	if (!isfinite(o->node_hours))
		buf_str(out, " (how long one takes is not known yet)");
}

static void by_hand(const struct bisect *b, const struct cause_row *c, struct buf *out)
{
	buf_str(out, "     by hand: put ");
	text_line(out, c->was ? c->was : "the old value");
	buf_printf(out,
		   " back on a few nodes, let the canary run there (resources.nodelist), then "
		   "`fettle history %lld`\n     or tell fettle how: fingerprint = { [\"",
		   (long long)b->moved->series.id);
	text_line(out, c->key);
	buf_str(out, "\"] = { ..., set = { env = { NAME = \"...{value}\" } } } }\n");
}

static void key_text(const struct bisect *b, const struct bisect_key *k, const char *program,
		     struct buf *out)
{
	buf_printf(out, "\n  %d. ", k->cause->rank);
	regression_cause(k->cause, out);
	if (k->cause->proved)
		buf_str(out, "  (proved)");
	if (k->cannot) {
		buf_str(out, "\n     cannot be set: ");
		text_line(out, k->cannot);
		buf_char(out, '\n');
		by_hand(b, k->cause, out);
		return;
	}
	buf_str(out, "\n     ");
	cost_text(&k->outline, out);
	if (k->campaign)
		buf_printf(out, "; campaign %lld has begun it", (long long)k->campaign);
	buf_str(out, "\n     ");
	if (!k->command) {
		buf_str(out, "by --run: its container or its job options are none that `fettle ab` "
			     "asks for\n");
		return;
	}
	text_sh(out, program);
	buf_printf(out, " %s\n", k->command);
}

void bisect_text(const struct bisect *b, const struct workspace *w, const char *program,
		 struct buf *out)
{
	const struct change_row *c = &b->moved->change;
	_cleanup_free_ char *title = nights_title(&b->moved->series);
	size_t settable = 0;

	buf_printf(out, "regression %lld: ", (long long)b->view.row.id);
	text_line(out, title);
	buf_str(out, " of ");
	text_line(out, b->moved->series.workload);
	buf_str(out, ", ");
	nights_effect(c->est, c->lo, c->hi, out);
	buf_printf(
		out,
		" from %s\neach key alone: as it is (A) against as it was (B), in paired blocks on "
		"the same nodes\n",
		c->night);
	for (size_t i = 0; i < b->n; i++) {
		key_text(b, &b->keys[i], program, out);
		settable += !b->keys[i].cannot;
	}
	if (!settable)
		return;
	buf_printf(out, "\nto run %s and keep the answers: ",
		   settable == 1 ? "it" : "them, one after the other,");
	text_sh(out, program);
	buf_printf(out, " regressions bisect %lld --run -w ", (long long)b->view.row.id);
	text_sh(out, w->root);
	buf_char(out, '\n');
}

struct json *bisect_json(const struct bisect *b)
{
	struct json *doc = json_object(), *list = json_array();

	json_set_text(doc, "format", "fettle.bisect/1");
	json_set_i64(doc, "regression", b->view.row.id);
	json_set_i64(doc, "campaign", b->campaign.id);
	json_set_text(doc, "metric", b->moved->series.metric);
	for (size_t i = 0; i < b->n; i++) {
		const struct bisect_key *k = &b->keys[i];
		struct json *o = json_object();

		json_set_text(o, "key", k->cause->key);
		json_set_text(o, "was", k->cause->was);
		json_set_text(o, "is", k->cause->is);
		json_set_bool(o, "proved", k->cause->proved);
		json_set_text(o, "cannot", k->cannot);
		json_set_text(o, "command", k->cannot ? NULL : k->command);
		json_set_number(o, "runs", k->cannot ? NAN : (double)k->outline.runs);
		json_set_number(o, "node_hours", k->cannot ? NAN : k->outline.node_hours);
		json_set_number(o, "gpu_hours", k->cannot ? NAN : k->outline.gpu_hours);
		json_add(list, o);
	}
	json_set(doc, "keys", list);
	return doc;
}
