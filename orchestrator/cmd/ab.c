/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/ab.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/report/text.h"

enum { LABEL_BYTES_MAX = 60 }; /* a column of a table */

/* Where a field stands in the recipe, and what it is. A percentage is a share there. */
static const struct {
	const char *section, *name, *option;
	enum { TEXT, NUMBER, PERCENT } type;
} fields[AB_FIELDS] = {
	[AB_NAME] = {"", "name", "name", TEXT},
	[AB_QUESTION] = {"", "question", "question", TEXT},
	[AB_MODE] = {"", "mode", "mode", TEXT},
	[AB_ALPHA] = {"", "alpha", "alpha", NUMBER},
	[AB_MIN_EFFECT] = {"", "min_effect", "min-effect", PERCENT},
	[AB_REPEATS] = {"", "repeats", "repeats", NUMBER},
	[AB_WARMUP_TRIALS] = {"", "warmup_trials", "warmup-trials", NUMBER},
	[AB_SEED] = {"", "seed", "seed", NUMBER},
	[AB_MINUTES] = {"budget", "minutes", "minutes", NUMBER},
	[AB_NODE_HOURS] = {"budget", "node_hours", "node-hours", NUMBER},
	[AB_METRIC] = {"objective", "metric", "metric", TEXT},
	[AB_STAT] = {"objective", "stat", "stat", TEXT},
	[AB_BETTER] = {"objective", "better", "better", TEXT},
	[AB_PROBE] = {"metrics", "probe", "probe", TEXT},
	[AB_PATTERN] = {"metrics", "pattern", "pattern", TEXT},
	[AB_STEPS] = {"window", "steps", "steps", NUMBER},
	[AB_WARMUP_STEPS] = {"window", "warmup_steps", "warmup-steps", NUMBER},
	[AB_STEP_PATTERN] = {"window", "pattern", "step-pattern", TEXT},
	[AB_TRIAL_S] = {"limits", "trial_s", "trial", NUMBER},
	[AB_CLASS] = {"knob", "class", "class", TEXT},
	[AB_NODES] = {"resources", "nodes", "nodes", NUMBER},
	[AB_TASKS_PER_NODE] = {"resources", "tasks_per_node", "tasks-per-node", NUMBER},
	[AB_CPUS_PER_TASK] = {"resources", "cpus_per_task", "cpus-per-task", NUMBER},
	[AB_GPUS_PER_NODE] = {"resources", "gpus_per_node", "gpus-per-node", NUMBER},
	[AB_MEM_GIB] = {"resources", "mem_gib_per_node", "mem-gib", NUMBER},
	[AB_TIME_LIMIT] = {"resources", "time_limit_min", "time", NUMBER},
	[AB_PARTITION] = {"resources", "partition", "partition", TEXT},
	[AB_ACCOUNT] = {"resources", "account", "account", TEXT},
	[AB_QOS] = {"resources", "qos", "qos", TEXT},
	[AB_RESERVATION] = {"resources", "reservation", "reservation", TEXT},
	[AB_FEATURES] = {"resources", "constraint", "constraint", TEXT},
	[AB_NODELIST] = {"resources", "nodelist", "nodelist", TEXT},
	[AB_EXCLUDE] = {"resources", "exclude", "exclude", TEXT},
	[AB_LAUNCHER] = {"resources", "launcher", "launcher", TEXT},
};

/* -- Lua text ----------------------------------------------------------------------------------
 */

/* A Lua string of any bytes: what is not plain goes by its number. */
static void put_list(struct buf *b, const char *name, const struct strv *v)
{
	if (!v->n)
		return;
	buf_printf(b, "%s = {", name);
	for (size_t i = 0; i < v->n; i++) {
		buf_str(b, i ? ", " : " ");
		text_lua(b, v->v[i]);
	}
	buf_str(b, " },\n");
}

/* Variables that are set, and the names of those that are not. */
static void put_env(struct buf *b, const struct kvs *env)
{
	struct strv unset = {0};
	bool open = false;

	for (size_t i = 0; i < env->n; i++) {
		if (!env->v[i].value) {
			strv_add(&unset, env->v[i].key);
			continue;
		}
		buf_str(b, open ? ", [" : "env = { [");
		open = true;
		text_lua(b, env->v[i].key);
		buf_str(b, "] = ");
		text_lua(b, env->v[i].value);
	}
	if (open)
		buf_str(b, " },\n");
	put_list(b, "unset", &unset);
	strv_free(&unset);
}

static int put_number(struct buf *b, const char *option, const char *text, double scale,
		      struct err *e)
{
	double v;

	if (!str_to_double(text, &v))
		return err_set(e, ERR_USAGE, "--%s wants a number, got %.100s", option, text);
	buf_printf(b, "%.17g", v * scale);
	return 0;
}

/* "mem_mib_per_cpu", "4096M": in a recipe memory is in GiB. */
static void put_memory(struct buf *b, const char *key, const char *value)
{
	const char *mib = strstr(key, "mib");
	int64_t n = 0;
	_cleanup_free_ char *digits = xstrndup(value, strlen(value) - 1);

	str_to_i64(digits, &n);
	buf_printf(b, "%.*sgib%s = %.17g,\n", (int)(mib - key), key, mib + 3, (double)n / 1024);
}

static void put_job_options(struct buf *b, const struct job_options *o)
{
	for (const struct job_option *k = job_option_table; o && k->key; k++) {
		_cleanup_free_ char *value = job_option_value(o, k);

		if (!value)
			continue;
		switch (k->kind) {
		case JOB_OPTION_TEXT:
			buf_printf(b, "%s = ", k->key);
			text_lua(b, value);
			buf_str(b, ",\n");
			break;
		case JOB_OPTION_COUNT:
			buf_printf(b, "%s = %s,\n", k->key, value);
			break;
		case JOB_OPTION_MIB:
			put_memory(b, k->key, value);
			break;
		}
	}
}

static bool has_options(const struct job_options *o)
{
	for (const struct job_option *k = job_option_table; o && k->key; k++) {
		_cleanup_free_ char *value = job_option_value(o, k);

		if (value)
			return true;
	}
	return false;
}

static const char *field_text(const struct ab *ab, size_t i)
{
	return ab->field[i] || i != AB_METRIC ? ab->field[i] : "trial_wall_s";
}

static bool has_section(const struct ab *ab, const char *section)
{
	if (str_eq(section, "resources") && has_options(ab->options))
		return true;
	for (size_t i = 0; i < AB_FIELDS; i++)
		if (field_text(ab, i) && str_eq(fields[i].section, section))
			return true;
	return false;
}

/* All fields of a section that were given; as a table when it has a name. */
static int put_section(struct buf *b, const struct ab *ab, const char *section, struct err *e)
{
	int rc = 0;

	if (!has_section(ab, section))
		return 0;
	if (*section)
		buf_printf(b, "%s = {\n", section);
	for (size_t i = 0; rc == 0 && i < AB_FIELDS; i++) {
		const char *text = field_text(ab, i);

		if (!text || !str_eq(fields[i].section, section))
			continue;
		buf_printf(b, "%s = ", fields[i].name);
		if (fields[i].type == TEXT)
			text_lua(b, text);
		else
			rc = put_number(b, fields[i].option, text,
					fields[i].type == PERCENT ? 0.01 : 1, e);
		buf_str(b, ",\n");
	}
	if (str_eq(section, "resources"))
		put_job_options(b, ab->options);
	if (*section)
		buf_str(b, "},\n");
	return rc;
}

/* -- guards and limits --------------------------------------------------------------------------
 */

static int put_guards(struct buf *b, const struct ab *ab, struct err *e)
{
	int rc = 0;

	if (ab->guards.n)
		buf_str(b, "guards = {\n");
	for (size_t i = 0; rc == 0 && i < ab->guards.n; i++) {
		const char *text = ab->guards.v[i], *eq = strchr(text, '=');
		_cleanup_free_ char *metric = eq ? xstrndup(text, (size_t)(eq - text)) : NULL;

		if (!eq)
			return err_set(e, ERR_USAGE, "--guard wants METRIC=PERCENT, got %.100s",
				       text);
		buf_char(b, '[');
		text_lua(b, metric);
		buf_str(b, "] = ");
		rc = put_number(b, "guard", eq + 1, 0.01, e);
		buf_str(b, ",\n");
	}
	if (ab->guards.n)
		buf_str(b, "},\n");
	return rc;
}

static int put_limit(struct buf *b, const char *text, struct err *e)
{
	const char *op = strpbrk(text, "<>");
	_cleanup_free_ char *metric = op ? xstrndup(text, (size_t)(op - text)) : NULL;
	int rc;

	if (!op || op[1] != '=')
		return err_set(e, ERR_USAGE,
			       "--limit wants METRIC>=VALUE or METRIC<=VALUE, got "
			       "%.100s",
			       text);
	buf_char(b, '[');
	text_lua(b, metric);
	buf_printf(b, "] = { %s = ", *op == '>' ? "at_least" : "at_most");
	rc = put_number(b, "limit", op + 2, 1, e);
	buf_str(b, " },\n");
	return rc;
}

static int put_limits(struct buf *b, const struct ab *ab, struct err *e)
{
	int rc = 0;

	if (ab->limits.n)
		buf_str(b, "constraints = {\n");
	for (size_t i = 0; rc == 0 && i < ab->limits.n; i++)
		rc = put_limit(b, ab->limits.v[i], e);
	if (ab->limits.n)
		buf_str(b, "},\n");
	return rc;
}

/* -- A against B -------------------------------------------------------------------------------
 */

void ab_difference(const struct kvs *base, const struct kvs *candidate, const struct kvs *captured,
		   struct kvs *out)
{
	for (size_t i = 0; i < candidate->n; i++) {
		const struct kv *v = &candidate->v[i];
		const struct kvs *of_a = kvs_has(base, v->key) ? base : captured;

		if (!str_eq(kvs_get(of_a, v->key), v->value))
			kvs_set(out, v->key, v->value);
	}
	for (size_t i = 0; i < base->n; i++)
		if (!kvs_has(candidate, base->v[i].key))
			kvs_set(out, base->v[i].key, kvs_get(captured, base->v[i].key));
	kvs_sort(out);
}

char *ab_label(const struct kvs *d, const struct strv *command)
{
	_cleanup_free_ char *text = NULL;

	if (command->n || d->n != 1 || !d->v[0].value)
		return xstrdup("B");
	text = xasprintf("%s=%s", d->v[0].key, d->v[0].value);
	for (const char *p = text; *p; p++)
		if (!isgraph((unsigned char)*p))
			return xstrdup("B");
	return strlen(text) <= LABEL_BYTES_MAX ? TAKE(text) : xstrdup("B");
}

static void put_container(struct buf *b, const struct container *c)
{
	if (!c || !c->runtime)
		return;
	buf_str(b, "container = {\nimage = ");
	text_lua(b, c->image);
	buf_str(b, ",\nruntime = ");
	text_lua(b, c->runtime);
	buf_str(b, ",\n");
	put_list(b, "mounts", &c->mounts);
	put_list(b, "args", &c->args);
	buf_str(b, "},\n");
}

static int put_workload(struct buf *b, const struct ab *ab, struct err *e)
{
	int rc;

	buf_str(b, "workload = {\n");
	put_list(b, "command", &ab->a);
	buf_str(b, "workdir = ");
	text_lua(b, ab->workdir);
	buf_str(b, ",\n");
	put_env(b, &ab->base);
	put_list(b, "secrets", &ab->secrets);
	put_container(b, ab->container);
	if (ab->metrics_file)
		buf_str(b, "metrics = { file = true },\n");
	if ((rc = put_section(b, ab, "window", e)) == 0 &&
	    (rc = put_section(b, ab, "metrics", e)) == 0)
		rc = put_section(b, ab, "limits", e);
	buf_str(b, "},\n");
	return rc;
}

static void put_knob(struct buf *b, const struct ab *ab, const struct kvs *difference)
{
	_cleanup_free_ char *label = ab_label(difference, &ab->b);

	buf_str(b, "knobs = { {\nname = \"ab\",\ndefault = \"A\",\nclass = ");
	text_lua(b, ab->field[AB_CLASS] ? ab->field[AB_CLASS] : "neutral");
	buf_str(b, ",\nbundle = { [");
	text_lua(b, label);
	buf_str(b, "] = {\n");
	put_env(b, difference);
	put_list(b, "command", &ab->b);
	buf_str(b, "} },\n} },\n");
}

/* Letters that a campaign's name may have. */
static void put_name(struct buf *b, const char *program)
{
	const char *slash = strrchr(program, '/');

	buf_str(b, "name = \"ab-");
	for (const char *p = slash ? slash + 1 : program; *p; p++)
		buf_char(b, isalnum((unsigned char)*p) || strchr("._-", *p) ? *p : '_');
	buf_str(b, "\",\n");
}

int ab_recipe(const struct ab *ab, const struct kvs *difference, struct buf *b, struct err *e)
{
	int rc;

	buf_str(b, "-- written by fettle ab\nreturn {\n");
	if (!ab->field[AB_NAME])
		put_name(b, ab->a.v[0]);
	if ((rc = put_section(b, ab, "", e)) == 0 && (rc = put_workload(b, ab, e)) == 0 &&
	    (rc = put_section(b, ab, "resources", e)) == 0 &&
	    (rc = put_section(b, ab, "budget", e)) == 0)
		rc = put_section(b, ab, "objective", e);
	if (rc == 0 && (rc = put_guards(b, ab, e)) == 0)
		rc = put_limits(b, ab, e);
	put_knob(b, ab, difference);
	buf_str(b, "rounds = 1,\nblocks = { aa = 0, final = 0, soak = 0 },\n}\n");
	return rc;
}

/* -- the same for a shell ---------------------------------------------------------------------- */

static void put_word(struct buf *b, const char *word)
{
	buf_char(b, ' ');
	text_sh(b, word);
}

static void put_option(struct buf *b, const char *option, const char *value)
{
	buf_printf(b, " --%s", option);
	put_word(b, value);
}

static void put_variables(struct buf *b, const char *option, const struct kvs *env)
{
	for (size_t i = 0; i < env->n; i++) {
		_cleanup_free_ char *text = xasprintf("%s=%s", env->v[i].key,
						      env->v[i].value ? env->v[i].value : "");

		if (env->v[i].value)
			put_option(b, option, text);
		else
			put_option(b, "unset", env->v[i].key);
	}
}

static void put_options(struct buf *b, const char *option, const struct strv *v)
{
	for (size_t i = 0; i < v->n; i++)
		put_option(b, option, v->v[i]);
}

void ab_command(const struct ab *ab, const struct kvs *difference, struct buf *b)
{
	put_variables(b, "env", difference);
	put_variables(b, "base-env", &ab->base);
	for (size_t i = 0; i < AB_FIELDS; i++)
		if (ab->field[i])
			put_option(b, fields[i].option, ab->field[i]);
	if (ab->metrics_file)
		buf_str(b, " --metrics-file");
	put_options(b, "guard", &ab->guards);
	put_options(b, "limit", &ab->limits);
	put_options(b, "secret", &ab->secrets);
	put_option(b, "workdir", ab->workdir);
	buf_str(b, " --");
	for (size_t i = 0; i < ab->a.n; i++)
		put_word(b, ab->a.v[i]);
	if (ab->b.n)
		buf_str(b, " ---");
	for (size_t i = 0; i < ab->b.n; i++)
		put_word(b, ab->b.v[i]);
}

/* -- reading it -------------------------------------------------------------------------------- */

/* The same command and environment under two names is no question. */
static int check_differs(const struct recipe *r, struct err *e)
{
	struct config a = {0}, b = {0};
	struct kvs settings = {0};
	int rc;

	kvs_set(&settings, r->knobs[0].name, r->knobs[0].values.v[0]);
	if ((rc = config_build(r, NULL, &a, e)) == 0 &&
	    (rc = config_build(r, &settings, &b, e)) == 0 && str_eq(a.hash, b.hash))
		rc = err_set(e, ERR_USAGE, "A and B are the same command with the same variables");
	kvs_free(&settings);
	config_done(&a);
	config_done(&b);
	return rc;
}

int ab_load(const char *text, const char *scheduler, struct recipe **r, struct script_sources *s,
	    struct err *e)
{
	int rc = drive_load_text(AB_RECIPE_NAME, text, scheduler, r, s, e);

	if (rc == 0 && (rc = check_differs(*r, e)) < 0) {
		recipe_free(*r);
		*r = NULL;
		script_sources_free(s);
	}
	return rc;
}
