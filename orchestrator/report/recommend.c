/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The validated configuration in a form that others read. It goes into scripts that people run
 * without looking, so that every value is quoted for the reader of its place: a shell word, the
 * option parser of sbatch, a comment.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

const char *const recommend_forms[] = {"config", "env", "json", "sbatch", NULL};
/* What the copy of the framework's file is called in a recommendation: beside the original. */
#define CONFIG_SUFFIX ".fettle.json"

/* The gain is there, but the long run did not hold the loss. */
static bool not_held(const struct report *r)
{
	return r->fix.state && str_eq(r->fix.state, "rejected: loss not held");
}

static bool breaks_guard(const struct report *r)
{
	return r->fix.state && str_eq(r->fix.state, "rejected: guard");
}

bool recommend_confirmed(const struct report *r)
{
	return r->has_fix && r->fix.n > 0 && r->fix.lo > 0 && !not_held(r) && !breaks_guard(r);
}

static bool pending(const struct report *r)
{
	return r->has_fix && r->fix.state && strstr(r->fix.state, "pending convergence");
}

/* -- comments --------------------------------------------------------------------------------- */

/* Lines of a comment: a newline in the text begins another comment line, never a command. */
static void comment(struct buf *out, const char *text)
{
	while (true) {
		size_t n = strcspn(text, "\n");
		_cleanup_free_ char *line = xstrndup(text, n);

		buf_str(out, *line ? "# " : "#");
		text_line(out, line);
		buf_char(out, '\n');
		if (!text[n])
			return;
		text += n + 1;
	}
}

static void commentf(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void commentf(struct buf *out, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	comment(out, b.data);
	buf_free(&b);
}

static void warnings(const struct report *r, struct buf *out)
{
	if (not_held(r)) {
		comment(out, "");
		comment(out, "!!!! REJECTED: a long run of this fix did not hold the loss.");
		comment(out, "!!!! Written because --force asked for it. Do not put it to use.");
	} else if (r->has_fix && breaks_guard(r)) {
		comment(out, "");
		comment(out, "!!!! REJECTED: this fix breaks a guard.");
		comment(out, "!!!! Written because --force asked for it. Do not put it to use.");
	} else if (!recommend_confirmed(r)) {
		comment(out, "");
		comment(out, "!!!! NOT CONFIRMED: the gain was not seen again on fresh blocks in "
			     "the final");
		comment(out,
			"!!!! stage. Written because --force asked for it. Do not put it to use.");
	}
	if (pending(r)) {
		comment(out, "");
		comment(out, "!! Pending convergence: a setting of this fix changes the training "
			     "itself (class");
		comment(out, "!! numerics or optimisation). `fettle converge` holds the loss of a "
			     "long run");
		comment(out, "!! before you rely on it.");
	}
}

/* Settings of the system and its adapters are many: the JSON form and the report have them. */
static bool is_setting(const char *key)
{
	return str_starts(key, "sysctl.") || str_starts(key, "nic.") || str_starts(key, "ib.");
}

static void holds_for(const char *fingerprint, struct buf *out)
{
	_cleanup_(json_freep) struct json *j = NULL;
	size_t more = 0;

	if (!fingerprint ||
	    json_parse("fingerprint", fingerprint, strlen(fingerprint), &j, NULL) < 0 ||
	    !json_first(j)) {
		comment(out, "holds for: unknown");
		return;
	}
	comment(out, "holds for:");
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		_cleanup_free_ char *value = json_type(m) == JSON_STRING ? xstrdup(json_text(m, ""))
									 : json_print(m, false);

		if (is_setting(json_key(m)))
			more++;
		else
			commentf(out, "  %s: %s", json_key(m), value);
	}
	if (more)
		commentf(out, "  and %zu settings of system and network (form json)", more);
}

static void header(const struct report *r, struct buf *out)
{
	_cleanup_free_ char *settings = config_text(&r->fix_config);
	char when[32];

	clock_iso(r->fix.at_us, when, sizeof when);
	commentf(out, "fettle: campaign %lld, %s", (long long)r->campaign.id, r->campaign.name);
	commentf(out, "configuration: %s", settings);
	commentf(out, "state: %s, %s", r->fix.state, when);
	if (isfinite(r->fix.est) && isfinite(r->fix.lo) && isfinite(r->fix.hi))
		commentf(out, "effect on %s: %+.1f %% [%+.1f, %+.1f] against the default, %d pairs",
			 r->recipe->objective, 100 * r->fix.est, 100 * r->fix.lo, 100 * r->fix.hi,
			 r->fix.n);
	else
		commentf(out, "effect on %s: unknown", r->recipe->objective);
	if (r->fix.reason)
		commentf(out, "note: %s", r->fix.reason);
	holds_for(r->fix.fingerprint, out);
	warnings(r, out);
}

/* A token of the fix's command: the copy of the framework's file gets a name; heap. */
static char *shown_token(const struct report *r, const char *token)
{
	const char *at = strstr(token, CONFIGFILE_MARK), *file = r->recipe->workload.config;
	size_t stem = file ? strlen(file) : 0;

	if (!at || !file)
		return xstrdup(token);
	if (str_ends(file, ".json"))
		stem -= strlen(".json");
	return xasprintf("%.*s%.*s" CONFIG_SUFFIX, (int)(at - token), token, (int)stem, file);
}

/* Keys of the framework's file that the fix sets, and how to get the file. */
static void config_keys(const struct report *r, struct buf *out)
{
	const struct kvs *s = &r->fix_config.settings;

	if (!configfile_name(&r->fix_config))
		return;
	comment(out, "");
	commentf(out, "keys of %s (fettle recommend --as config writes the file):",
		 r->recipe->workload.config);
	for (size_t i = 0; i < s->n; i++) {
		const struct knob *k = recipe_knob(r->recipe, s->v[i].key);

		if (k && k->how == HOW_KEY)
			commentf(out, "  %s = %s", k->target, s->v[i].value);
	}
}

/* Set so that components say what they read: a trial needs it, production does not. */
static bool only_told(const struct report *r, const struct kv *v)
{
	const struct strv *told = &r->recipe->workload.told;

	for (size_t i = 0; i < told->n; i++)
		if (str_eq(told->v[i], v->key) &&
		    str_eq(v->value, kvs_get(&r->recipe->workload.env, v->key)))
			return true;
	return false;
}

/* -- shell ------------------------------------------------------------------------------------ */

/* Variables in the order of the configuration: `export ` before each where a script runs. */
static void variables(const struct report *r, const char *before, struct buf *out)
{
	const struct config *c = &r->fix_config;

	for (size_t i = 0; i < c->env.n; i++) {
		const struct kv *v = &c->env.v[i];

		if (!text_is_name(v->key) || only_told(r, v))
			continue; /* env(1) before the command sets odd names */
		if (!v->value) {
			buf_printf(out, "unset %s\n", v->key);
			continue;
		}
		buf_printf(out, "%s%s=", before, v->key);
		text_sh(out, v->value);
		buf_char(out, '\n');
	}
}

static void word(struct buf *out, const char *s)
{
	if (out->len && out->data[out->len - 1] != ' ')
		buf_char(out, ' ');
	text_sh(out, s);
}

/* A shell cannot export a name like "a.b": env(1) can. */
static void odd_variables(const struct config *c, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < c->env.n; i++) {
		_cleanup_free_ char *pair = NULL;

		if (text_is_name(c->env.v[i].key))
			continue;
		if (!any)
			word(out, "env");
		any = true;
		if (c->env.v[i].value) {
			pair = xasprintf("%s=%s", c->env.v[i].key, c->env.v[i].value);
		} else {
			word(out, "-u");
			pair = xstrdup(c->env.v[i].key);
		}
		word(out, pair);
	}
}

/* What stands before the command: launcher and container. Whatever could not be mounted was told
 * when the campaign ran. */
static void launch_of(const struct report *r, bool launched, struct strv *out)
{
	const struct workload *w = &r->recipe->workload;
	const struct container_use use = {
		.workdir = w->workdir, .env = &r->fix_config.env, .by_name = &w->secrets};

	if (launched)
		resources_launch(&r->recipe->resources, out);
	if (w->container.runtime && (launched || !container_is_pyxis(&w->container)))
		(void)container_enter(&w->container, &use, out, NULL);
}

static void command(const struct report *r, bool launched, struct buf *out)
{
	struct strv launch = {0};
	struct buf line = {0};

	odd_variables(&r->fix_config, &line);
	launch_of(r, launched, &launch);
	for (size_t i = 0; i < launch.n; i++)
		word(&line, launch.v[i]);
	for (size_t i = 0; i < r->fix_config.argv.n; i++) {
		_cleanup_free_ char *token = shown_token(r, r->fix_config.argv.v[i]);

		word(&line, token);
	}
	buf_str(out, line.data ? line.data : ":");
	strv_free(&launch);
	buf_free(&line);
}

/* The command is a copy of the user's script, made for trials: it saves nothing that lasts. */
static bool is_copy(const struct report *r)
{
	const struct strv *v = &r->recipe->workload.command;

	return str_eq(r->recipe->resources.launcher, "script") && v->n &&
	       str_ends(v->v[0], ".fettle.sh");
}

/* Those that the campaign says: the others are the script's. */
static void arguments(const struct report *r, struct buf *out)
{
	for (size_t i = 1; i < r->fix_config.argv.n; i++)
		word(out, r->fix_config.argv.v[i]);
}

static int write_env(const struct report *r, struct buf *out)
{
	struct buf line = {0};

	header(r, out);
	comment(out, "");
	if (is_copy(r))
		comment(out, "use: put this line behind the exports of your script: set -a; . "
			     "./FILE; set +a");
	else
		comment(out, "use: set -a; . ./FILE; set +a");
	comment(out,
		is_copy(r) ? "arguments for its launch line, in place of its own:" : "command:");
	if (is_copy(r))
		arguments(r, &line);
	else
		command(r, false, &line);
	comment(out, line.data ? line.data : "(none)");
	config_keys(r, out);
	variables(r, "", out);
	buf_free(&line);
	return 0;
}

/* -- sbatch ----------------------------------------------------------------------------------- */

/* One option. sbatch splits the line at blanks, takes quotes off and reads `\` as an escape (its
 * get_argument()); `#` outside of quotes begins a comment. A control character has no place in any
 * of them, and a newline would end the line. */
static int option(struct buf *out, const char *name, const char *value, struct err *e)
{
	if (!value || !*value)
		return 0;
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(
				e, ERR_STATE,
				"--%s of the campaign holds a control character: it cannot stand "
				"in an sbatch script",
				name);
	buf_printf(out, "#SBATCH --%s=", name);
	if (value[strcspn(value, " \"'\\#")] == '\0') {
		buf_printf(out, "%s\n", value);
		return 0;
	}
	buf_char(out, '"');
	for (const char *p = value; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_char(out, '\\');
		buf_char(out, *p);
	}
	buf_str(out, "\"\n");
	return 0;
}

static void number(struct buf *out, const char *name, int64_t v, const char *suffix)
{
	if (v > 0)
		buf_printf(out, "#SBATCH --%s=%lld%s\n", name, (long long)v, suffix);
}

/* The job's name in squeue: what Slurm takes without quoting. */
static void job_name(struct buf *out, const char *name)
{
	buf_str(out, "#SBATCH --job-name=");
	for (const char *p = name; *p && p - name < 64; p++) {
		bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			    (*p >= '0' && *p <= '9') || strchr("._-", *p);

		buf_char(out, fine ? *p : '_');
	}
	buf_char(out, '\n');
}

static int options(const struct report *r, struct buf *out, struct err *e)
{
	const struct resources *s = &r->recipe->resources;
	const struct {
		const char *name, *value;
	} texts[] = {{"partition", s->partition},
		     {"account", s->account},
		     {"qos", s->qos},
		     {"reservation", s->reservation},
		     {"constraint", s->constraint},
		     {"nodelist", s->nodelist},
		     {"exclude", s->exclude},
		     {"chdir", r->recipe->workload.workdir}};

	job_name(out, r->campaign.name);
	number(out, "nodes", s->nodes > 0 ? s->nodes : 1, "");
	number(out, "ntasks-per-node", s->tasks_per_node, "");
	number(out, "cpus-per-task", s->cpus_per_task, "");
	number(out, "gpus-per-node", s->gpus_per_node, "");
	number(out, "mem", s->mem_mib_per_node, "M");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int rc = option(out, texts[i].name, texts[i].value, e);

		if (rc < 0)
			return rc;
	}
	for (const struct job_option *k = job_option_table; k->key; k++) {
		_cleanup_free_ char *value = job_option_value(&s->options, k);
		int rc = option(out, k->sbatch, value, e);

		if (rc < 0)
			return rc;
	}
	buf_str(out, "#SBATCH --exclusive\n");
	comment(out, "The trials ran on nodes of their own. Without a --time the partition's "
		     "default holds:");
	comment(out, "#SBATCH --time=12:00:00");
	return 0;
}

static void secrets(const struct report *r, struct buf *out)
{
	const struct strv *s = &r->recipe->workload.secrets;

	for (size_t i = 0; i < s->n; i++)
		if (text_is_name(s->v[i]))
			buf_printf(out,
				   ": \"${%s:?is a secret of the workload: export it before "
				   "sbatch}\"\n",
				   s->v[i]);
}

static int write_sbatch(const struct report *r, struct buf *out, struct err *e)
{
	struct buf b = {0};
	int rc;

	if (is_copy(r))
		return err_set(e, ERR_USAGE,
			       "the campaign ran %s, a copy of your script for its trials: take "
			       "--as env, and put its variables behind the exports of the script "
			       "itself and its arguments on the launch line",
			       r->recipe->workload.command.v[0]);
	buf_str(&b, "#!/bin/bash\n");
	if ((rc = options(r, &b, e)) < 0) {
		buf_free(&b);
		return rc;
	}
	comment(&b, "");
	header(r, &b);
	buf_char(&b, '\n');
	secrets(r, &b);
	config_keys(r, &b);
	variables(r, "export ", &b);
	buf_str(&b, "\nexec ");
	command(r, true, &b);
	buf_char(&b, '\n');
	buf_put(out, b.data, b.len);
	buf_free(&b);
	return 0;
}

/* -- json ------------------------------------------------------------------------------------- */

static void set_text(struct json *o, const char *key, const char *value)
{
	struct buf b = {0};

	if (value)
		text_utf8(&b, value);
	json_set_text(o, key, value ? (b.data ? b.data : "") : NULL);
	buf_free(&b);
}

static struct json *pairs(const struct kvs *k)
{
	struct json *o = json_object();

	for (size_t i = 0; i < k->n; i++)
		set_text(o, k->v[i].key, k->v[i].value);
	return o;
}

static struct json *resources(const struct resources *s)
{
	struct json *o = json_object();

	json_set_i64(o, "nodes", s->nodes);
	json_set_i64(o, "tasks_per_node", s->tasks_per_node);
	json_set_i64(o, "cpus_per_task", s->cpus_per_task);
	json_set_i64(o, "gpus_per_node", s->gpus_per_node);
	json_set_i64(o, "mem_mib_per_node", s->mem_mib_per_node);
	set_text(o, "partition", s->partition);
	set_text(o, "account", s->account);
	set_text(o, "qos", s->qos);
	set_text(o, "reservation", s->reservation);
	set_text(o, "constraint", s->constraint);
	set_text(o, "nodelist", s->nodelist);
	set_text(o, "exclude", s->exclude);
	for (const struct job_option *k = job_option_table; k->key; k++) {
		_cleanup_free_ char *value = job_option_value(&s->options, k);

		if (value)
			set_text(o, k->key, value);
	}
	return o;
}

static void set_argv(struct json *o, const char *key, const struct strv *argv)
{
	struct json *a = json_array();

	for (size_t i = 0; i < argv->n; i++) {
		struct buf b = {0};

		text_utf8(&b, argv->v[i]);
		json_add_text(a, b.data ? b.data : "");
		buf_free(&b);
	}
	json_set(o, key, a);
}

static void effect(const struct report *r, struct json *o)
{
	char when[32];

	clock_iso(r->fix.at_us, when, sizeof when);
	set_text(o, "state", r->fix.state);
	set_text(o, "reason", r->fix.reason);
	json_set_bool(o, "confirmed", recommend_confirmed(r));
	json_set_bool(o, "pending_convergence", pending(r));
	set_text(o, "objective", r->recipe->objective);
	set_text(o, "unit", r->unit);
	json_set_number(o, "est", r->fix.est);
	json_set_number(o, "lo", r->fix.lo);
	json_set_number(o, "hi", r->fix.hi);
	json_set_i64(o, "pairs", r->fix.n);
	json_set_text(o, "at_utc", when);
}

/* The framework's file with the fix in it. */
static int write_config(const struct report *r, struct buf *out, struct err *e)
{
	_cleanup_free_ char *text = configfile_text(r->recipe, &r->fix_config.settings);

	if (!text)
		return err_set(e, ERR_NOT_FOUND,
			       "campaign %lld: no setting of the fix is a key of a framework's "
			       "file",
			       (long long)r->campaign.id);
	buf_printf(out, "%s\n", text);
	return 0;
}

static int write_json(const struct report *r, struct buf *out)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL,
			    *file = configfile_text(r->recipe, &r->fix_config.settings);
	struct strv launch = {0}, shown = {0};
	struct json *print = NULL;

	json_set_text(o, "format", "fettle.recommend/1");
	json_set_i64(o, "campaign", r->campaign.id);
	set_text(o, "name", r->campaign.name);
	effect(r, o);
	json_set(o, "settings", pairs(&r->fix_config.settings));
	json_set(o, "env", pairs(&r->fix_config.env));
	for (size_t i = 0; i < r->fix_config.argv.n; i++) {
		_cleanup_free_ char *token = shown_token(r, r->fix_config.argv.v[i]);

		strv_add(&shown, token);
	}
	set_argv(o, "command", &shown);
	strv_free(&shown);
	if (file)
		set_text(o, "config", file);
	launch_of(r, true, &launch);
	set_argv(o, "launch", &launch);
	set_text(o, "workdir", r->recipe->workload.workdir);
	json_set(o, "resources", resources(&r->recipe->resources));
	if (r->fix.fingerprint && json_parse("fingerprint", r->fix.fingerprint,
					     strlen(r->fix.fingerprint), &print, NULL) == 0)
		json_set(o, "fingerprint", print);
	else
		json_set_text(o, "fingerprint", NULL);
	text = json_print(o, true);
	buf_printf(out, "%s\n", text);
	strv_free(&launch);
	return 0;
}

/* -- entry ------------------------------------------------------------------------------------ */

static int no_fix(const struct report *r, struct err *e)
{
	long long id = (long long)r->campaign.id;

	switch (r->campaign.state) {
	case CAMPAIGN_RUNNING:
		return err_set(
			e, ERR_NOT_FOUND,
			"campaign %lld still runs and has no fix yet; `fettle status %lld` says "
			"how far it is",
			id, id);
	case CAMPAIGN_STOPPED:
		return err_set(e, ERR_NOT_FOUND,
			       "campaign %lld was stopped before it had a fix; `fettle resume "
			       "%lld` goes on",
			       id, id);
	case CAMPAIGN_DONE:
		return err_set(
			e, ERR_NOT_FOUND,
			"campaign %lld accepted nothing: the default configuration stays; `fettle "
			"report %lld` says what was tried, refuted and left out",
			id, id);
	case CAMPAIGN_FAILED:
		return err_set(
			e, ERR_NOT_FOUND,
			"campaign %lld failed and has no fix: %s; mend it and `fettle run` the "
			"recipe again",
			id, r->campaign.reason ? r->campaign.reason : "no reason is stored");
	}
	return err_set(e, ERR_NOT_FOUND, "campaign %lld has no fix", id);
}

static int unknown_form(const char *form, struct err *e)
{
	const char *near = str_nearest(form, recommend_forms);

	return err_set(e, ERR_USAGE, "there is no form \"%s\": env, sbatch, json or config%s%s%s",
		       form, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

int recommend_write(const struct report *r, const char *form, bool force, struct buf *out,
		    struct err *e)
{
	const char *const *known = recommend_forms;

	while (*known && !str_eq(*known, form))
		known++;
	if (!*known)
		return unknown_form(form, e);
	if (!r->has_fix)
		return no_fix(r, e);
	if (not_held(r) && !force)
		return err_set(e, ERR_STATE,
			       "campaign %lld: the long run of `fettle converge` did not hold the "
			       "loss, so that there is nothing to recommend; --force writes the "
			       "configuration all the same",
			       (long long)r->campaign.id);
	if (breaks_guard(r) && !force)
		return err_set(e, ERR_STATE,
			       "campaign %lld: the fix breaks a guard: %s; there is nothing to "
			       "recommend, --force writes the configuration all the same",
			       (long long)r->campaign.id,
			       r->fix.reason ? r->fix.reason : "no reason is stored");
	if (!recommend_confirmed(r) && !force)
		return err_set(
			e, ERR_STATE,
			"campaign %lld: the gain was not seen again on the fresh blocks of the "
			"final stage (%+.1f %% [%+.1f, %+.1f] over %d pairs), so that there is "
			"nothing to recommend; --force writes the configuration all the same",
			(long long)r->campaign.id, 100 * r->fix.est, 100 * r->fix.lo,
			100 * r->fix.hi, r->fix.n);
	if (str_eq(form, "env"))
		return write_env(r, out);
	if (str_eq(form, "config"))
		return write_config(r, out, e);
	return str_eq(form, "sbatch") ? write_sbatch(r, out, e) : write_json(r, out);
}
