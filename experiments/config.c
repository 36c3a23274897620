/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configurations: knob settings turned into a command and an environment. Part of model.h. */
#include <stdlib.h>
#include <string.h>

#include "experiments/model.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

/* MAX_ARG_STRLEN of Linux: 32 pages of 4 KiB for one argument or one "NAME=value". */
enum { ARG_BYTES_MAX = 131072 };

/* A knob that is passed as an argument, taken apart. */
struct argument {
	char *name;     /* "--x", without a trailing '=' */
	size_t n;       /* its length */
	bool one_token; /* the knob asks for "--x=v" */
};

static struct argument argument_of(const struct knob *k)
{
	struct argument a = {.n = strlen(k->target)};

	a.one_token = a.n > 1 && k->target[a.n - 1] == '=';
	if (a.one_token)
		a.n--;
	a.name = xstrndup(k->target, a.n);
	return a;
}

/* The value that token i gives to the argument: the rest of "--x=v" or the next token; NULL if
 * token i is something else or the last one. */
static char **value_at(const struct argument *a, struct strv *argv, size_t i, bool *joined)
{
	*joined = strncmp(argv->v[i], a->name, a->n) == 0 && argv->v[i][a->n] == '=';
	if (*joined)
		return &argv->v[i];
	if (strcmp(argv->v[i], a->name) == 0 && i + 1 < argv->n)
		return &argv->v[i + 1];
	return NULL;
}

/* Most parsers take the last of two equal arguments, some the first: all are set. */
static void set_argument(const struct knob *k, const char *value, struct strv *argv)
{
	struct argument a = argument_of(k);
	bool found = false, joined;

	for (size_t i = 1; i < argv->n; i++) {
		char **at = value_at(&a, argv, i, &joined);
		char *text;

		if (!at)
			continue;
		text = joined ? xasprintf("%s=%s", a.name, value) : xstrdup(value);
		free(*at);
		*at = text;
		found = true;
		i += !joined;
	}
	if (!found && a.one_token) {
		strv_addf(argv, "%s=%s", a.name, value);
	} else if (!found) {
		strv_add(argv, a.name);
		strv_add(argv, value);
	}
	free(a.name);
}

static bool flag_present(const struct knob *k, const struct strv *argv)
{
	for (size_t i = 1; i < argv->n; i++) {
		if (strcmp(argv->v[i], k->target) == 0)
			return true;
	}
	return false;
}

static void set_flag(const struct knob *k, bool on, struct strv *argv)
{
	struct strv kept = {0};

	if (on) {
		if (!flag_present(k, argv))
			strv_add(argv, k->target);
		return;
	}
	for (size_t i = 0; i < argv->n; i++) {
		if (i == 0 || strcmp(argv->v[i], k->target) != 0)
			strv_add(&kept, argv->v[i]);
	}
	strv_free(argv);
	*argv = kept;
}

/* Bytes before the first comma. Commas inside brackets belong to a value
 * (PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2]). */
static size_t element_length(const char *list)
{
	size_t n = 0;

	for (int depth = 0; list[n] && (depth > 0 || list[n] != ','); n++)
		depth += (list[n] == '[') - (list[n] == ']');
	return n;
}

/* The element "subkey:value" of a list: where it starts and how long it is, or NULL. */
static const char *list_element(const char *list, const char *subkey, size_t *len)
{
	size_t key = strlen(subkey);

	while (*list) {
		size_t n = element_length(list);

		if (n > key && strncmp(list, subkey, key) == 0 && list[key] == ':') {
			*len = n;
			return list;
		}
		list += n + (list[n] == ',');
	}
	return NULL;
}

static void set_subkey(const struct knob *k, const char *value, struct kvs *env)
{
	const char *list = kvs_get(env, k->target);
	const char *at;
	struct buf b = {0};
	size_t n = 0;

	if (!list)
		list = "";
	at = list_element(list, k->subkey, &n);
	if (at) {
		buf_put(&b, list, (size_t)(at - list));
		buf_printf(&b, "%s:%s%s", k->subkey, value, at + n);
	} else {
		buf_printf(&b, "%s%s%s:%s", list, *list ? "," : "", k->subkey, value);
	}
	kvs_set(env, k->target, b.data);
	buf_free(&b);
}

char *knob_present(const struct knob *k, const struct workload *w)
{
	struct strv argv = {0};
	struct argument a;
	const char *text;
	char *out = NULL;
	bool joined;
	size_t n;

	if (k->how == HOW_BUNDLE)
		return NULL;
	if (k->how == HOW_ENV) {
		text = kvs_get(&w->env, k->target);
		if (!text || !k->subkey)
			return xstrdup(text);
		text = list_element(text, k->subkey, &n);
		return text ? xstrndup(text + strlen(k->subkey) + 1, n - strlen(k->subkey) - 1)
			    : NULL;
	}
	if (k->how == HOW_KEY)
		return configfile_get(w->config_text, k->target);
	if (k->flag)
		return flag_present(k, &w->command) ? xstrdup("true") : NULL;
	a = argument_of(k);
	strv_copy(&argv, &w->command);
	for (size_t i = 1; i < argv.n; i++) {
		char **at = value_at(&a, &argv, i, &joined);

		if (at) {
			free(out);
			out = xstrdup(joined ? *at + a.n + 1 : *at);
		}
	}
	strv_free(&argv);
	free(a.name);
	return out;
}

/* A setting that says what is so anyway is none. The default counts only if the command or the
 * environment do not say something else. */
static bool is_default(const struct knob *k, const char *value, const struct workload *w)
{
	_cleanup_free_ char *present = NULL;

	if (!str_eq(k->default_value, value))
		return false;
	present = knob_present(k, w);
	return !present || strcmp(present, value) == 0;
}

static int refuse(const struct knob *k, const char *value, struct err *e, const char *why)
{
	const char *file = k->at.file ? k->at.file : "recipe";

	return err_set(e, ERR_RECIPE, "%s:%d: knob %s: the value \"%.100s\" cannot be passed: %s",
		       file, k->at.line, k->name, value, why);
}

/* The exec of a trial refuses what is too long; it would look like a failure of the arm. */
static int check_bundle(const struct knob *k, const char *value, struct err *e)
{
	const struct bundle *b = knob_bundle(k, value);

	if (!b)
		return refuse(k, value, e, "the bundle has no such value");
	for (size_t i = 0; i < b->env.n; i++)
		if (b->env.v[i].value &&
		    strlen(b->env.v[i].key) + strlen(b->env.v[i].value) + 2 > ARG_BYTES_MAX)
			return refuse(k, value, e,
				      "Linux passes at most 128 KiB in one argument or variable");
	return 0;
}

static int check_value(const struct knob *k, const char *value, struct err *e)
{
	if (k->how == HOW_BUNDLE)
		return str_eq(value, k->default_value) ? 0 : check_bundle(k, value, e);
	if (!k->target || !*k->target)
		return refuse(k, value, e, "the knob names neither a variable nor an argument");
	if (strlen(k->target) + strlen(value) + 2 > ARG_BYTES_MAX)
		return refuse(k, value, e,
			      "Linux passes at most 128 KiB in one argument or variable");
	switch (k->how) {
	case HOW_ENV:
		if (strchr(k->target, '='))
			return refuse(k, value, e, "the name of a variable holds no '='");
		if (k->subkey && value[element_length(value)] != '\0')
			return refuse(k, value, e, "a comma would begin the list's next element");
		break;
	case HOW_ARG:
		if (k->flag && !str_eq(value, "true") && !str_eq(value, "false"))
			return refuse(k, value, e, "a flag takes \"true\" or \"false\"");
		break;
	case HOW_BUNDLE:
	case HOW_KEY:
		break;
	}
	return 0;
}

static void apply_bundle(const struct bundle *b, struct config *c)
{
	for (size_t i = 0; i < b->env.n; i++)
		kvs_set(&c->env, b->env.v[i].key, b->env.v[i].value);
	if (b->command.n)
		strv_copy(&c->argv, &b->command);
}

static void apply(const struct knob *k, const char *value, struct config *c)
{
	switch (k->how) {
	case HOW_ENV:
		if (k->subkey)
			set_subkey(k, value, &c->env);
		else
			kvs_set(&c->env, k->target, value);
		break;
	case HOW_ARG:
		if (k->flag)
			set_flag(k, strcmp(value, "true") == 0, &c->argv);
		else
			set_argument(k, value, &c->argv);
		break;
	case HOW_BUNDLE:
		apply_bundle(knob_bundle(k, value), c);
		break;
	case HOW_KEY: /* all of them at once: configfile_apply() */
		break;
	}
}

static int unknown_knob(const struct recipe *r, const char *name, struct err *e)
{
	const char **names = xcalloc(r->n_knobs + 1, sizeof *names);
	const char *near;
	int rc;

	for (size_t i = 0; i < r->n_knobs; i++)
		names[i] = r->knobs[i].name;
	near = str_nearest(name, names);
	if (near)
		rc = err_set(e, ERR_RECIPE, "campaign %s has no knob \"%s\"; did you mean \"%s\"?",
			     r->name ? r->name : "", name, near);
	else
		rc = err_set(e, ERR_RECIPE, "campaign %s has no knob \"%s\"",
			     r->name ? r->name : "", name);
	free(names);
	return rc;
}

/* Every text with its length before it, so that no two configurations have one serialisation. */
static void put_text(struct buf *b, const char *s)
{
	if (s)
		buf_printf(b, "%zu:%s\n", strlen(s), s);
	else
		buf_str(b, "unset\n");
}

static void hash_config(struct config *c, const char *workload)
{
	struct buf b = {0};

	buf_str(&b, "fettle.config/1\n");
	put_text(&b, workload);
	buf_printf(&b, "argv %zu\n", c->argv.n);
	for (size_t i = 0; i < c->argv.n; i++)
		put_text(&b, c->argv.v[i]);
	buf_printf(&b, "env %zu\n", c->env.n);
	for (size_t i = 0; i < c->env.n; i++) {
		put_text(&b, c->env.v[i].key);
		put_text(&b, c->env.v[i].value);
	}
	fs_hash(b.data, b.len, c->hash);
	buf_free(&b);
}

/* Settings of bundles (or all but those): a bundle may bring another command, on which arguments of
 * other knobs are laid. */
static int apply_all(const struct recipe *r, const struct kvs *settings, bool bundles,
		     struct config *c, struct err *e)
{
	for (size_t i = 0; i < settings->n; i++) {
		const struct knob *k = recipe_knob(r, settings->v[i].key);
		const char *value = settings->v[i].value;
		int rc;

		if (!k)
			return unknown_knob(r, settings->v[i].key, e);
		if (!value || (k->how == HOW_BUNDLE) != bundles)
			continue;
		if ((rc = check_value(k, value, e)) < 0)
			return rc;
		if (is_default(k, value, &r->workload))
			continue;
		apply(k, value, c);
		kvs_set(&c->settings, k->name, value);
	}
	return 0;
}

int config_build(const struct recipe *r, const struct kvs *settings, struct config *out,
		 struct err *e)
{
	struct config c = {0};
	struct kvs sorted = {0};
	int rc = 0;

	strv_copy(&c.argv, &r->workload.command);
	kvs_copy(&c.env, &r->workload.env);
	if (settings)
		kvs_copy(&sorted, settings);
	kvs_sort(&sorted); /* so that the order in which settings came leaves no trace */
	if ((rc = apply_all(r, &sorted, true, &c, e)) == 0)
		rc = apply_all(r, &sorted, false, &c, e);
	kvs_sort(&c.settings);
	if (rc == 0)
		configfile_apply(r, &c);
	kvs_free(&sorted);
	if (rc < 0) {
		config_done(&c);
		return rc;
	}
	kvs_sort(&c.env);
	hash_config(&c, r->workload.name);
	*out = c;
	return 0;
}

void config_lay(const struct recipe *r, const struct bundle *b, struct config *c)
{
	apply_bundle(b, c);
	kvs_sort(&c->env);
	hash_config(c, r->workload.name);
}

void config_copy(struct config *dst, const struct config *src)
{
	if (dst == src)
		return;
	kvs_copy(&dst->settings, &src->settings);
	strv_copy(&dst->argv, &src->argv);
	kvs_copy(&dst->env, &src->env);
	memcpy(dst->hash, src->hash, sizeof dst->hash);
}

void config_done(struct config *c)
{
	if (!c)
		return;
	kvs_free(&c->settings);
	strv_free(&c->argv);
	kvs_free(&c->env);
	*c = (struct config){0};
}

char *config_text(const struct config *c)
{
	struct buf b = {0};

	for (size_t i = 0; i < c->settings.n; i++)
		buf_printf(&b, "%s%s=%s", i > 0 ? ", " : "", c->settings.v[i].key,
			   c->settings.v[i].value);
	if (c->settings.n == 0)
		buf_str(&b, "default");
	return buf_take(&b);
}

char *bundle_text(const struct bundle *b)
{
	struct buf out = {0};

	for (size_t i = 0; i < b->env.n; i++) {
		const char *value = b->env.v[i].value;

		buf_printf(&out, "%s%s%s%s%s", out.len ? ", " : "", value ? "" : "without ",
			   b->env.v[i].key, value ? "=" : "", value ? value : "");
	}
	if (b->command.n)
		buf_printf(&out, "%scommand", out.len ? ", " : "");
	for (size_t i = 0; i < b->command.n; i++)
		buf_printf(&out, " %s", b->command.v[i]);
	return buf_take(&out);
}
