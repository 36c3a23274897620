/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a fix consists of, what it rests on, and when there is nothing to recommend. */
#include "orchestrator/report/recommend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

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

bool recommend_pending(const struct report *r)
{
	return r->has_fix && r->fix.state && strstr(r->fix.state, "pending convergence");
}

/* -- the head --------------------------------------------------------------------------------- */

/* A character of UTF-8 is not torn. */
static size_t fitting(const char *text, size_t n, size_t most)
{
	if (most == 0 || n <= most)
		return n;
	for (n = most; n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

static void comment_line(struct buf *out, const char *mark, size_t most, const char *line, size_t n)
{
	_cleanup_free_ char *raw = xstrndup(line, n);
	struct buf clean = {0};
	size_t room = most ? most - strlen(mark) : 0;
	const char *p;

	text_line(&clean, raw);
	p = clean.data ? clean.data : "";
	if (!*p)
		buf_printf(out, "%.*s\n", (int)strcspn(mark, " "), mark);
	for (size_t left = clean.len, k; left > 0; p += k, left -= k) {
		k = fitting(p, left, room);
		buf_str(out, mark);
		buf_put(out, p, k);
		/* Tcl would take the next line for a part of this one. */
		buf_str(out, p[k - 1] == '\\' ? " \n" : "\n");
	}
	buf_free(&clean);
}

void recommend_comment(struct buf *out, const char *mark, size_t most, const char *text)
{
	while (true) {
		size_t n = strcspn(text, "\n");

		comment_line(out, mark, most, text, n);
		if (!text[n])
			return;
		text += n + 1;
	}
}

static void warnings(const struct report *r, struct buf *out)
{
	if (not_held(r))
		buf_str(out, "\n!!!! REJECTED: a long run of this fix did not hold the loss.\n"
			     "!!!! Written because --force asked for it. Do not put it to use.\n");
	else if (r->has_fix && breaks_guard(r))
		buf_str(out, "\n!!!! REJECTED: this fix breaks a guard.\n"
			     "!!!! Written because --force asked for it. Do not put it to use.\n");
	else if (!recommend_confirmed(r))
		buf_str(out,
			"\n!!!! NOT CONFIRMED: the gain was not seen again on fresh blocks in the "
			"final\n"
			"!!!! stage. Written because --force asked for it. Do not put it to "
			"use.\n");
	if (recommend_pending(r))
		buf_str(out, "\n!! Pending convergence: a setting of this fix changes the training "
			     "itself (class\n"
			     "!! numerics or optimisation). `fettle converge` holds the loss of a "
			     "long run\n"
			     "!! before you rely on it.\n");
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
		buf_str(out, "holds for: unknown\n");
		return;
	}
	buf_str(out, "holds for:\n");
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		_cleanup_free_ char *value = json_type(m) == JSON_STRING ? xstrdup(json_text(m, ""))
									 : json_print(m, false);

		if (is_setting(json_key(m)))
			more++;
		else
			buf_printf(out, "  %s: %s\n", json_key(m), value);
	}
	if (more)
		buf_printf(out, "  and %zu settings of system and network (form json)\n", more);
}

void recommend_head(const struct report *r, struct buf *out)
{
	_cleanup_free_ char *settings = config_text(&r->fix_config);
	char when[32];

	clock_iso(r->fix.at_us, when, sizeof when);
	buf_printf(out, "fettle: campaign %lld, %s\n", (long long)r->campaign.id, r->campaign.name);
	buf_printf(out, "configuration: %s\n", settings);
	buf_printf(out, "state: %s, %s\n", r->fix.state, when);
	if (isfinite(r->fix.est) && isfinite(r->fix.lo) && isfinite(r->fix.hi))
		buf_printf(out,
			   "effect on %s: %+.1f %% [%+.1f, %+.1f] against the default, %d pairs\n",
			   r->recipe->objective, 100 * r->fix.est, 100 * r->fix.lo, 100 * r->fix.hi,
			   r->fix.n);
	else
		buf_printf(out, "effect on %s: unknown\n", r->recipe->objective);
	if (r->fix.reason)
		buf_printf(out, "note: %s\n", r->fix.reason);
	holds_for(r->fix.fingerprint, out);
	warnings(r, out);
}

void recommend_title(const struct report *r, struct buf *out)
{
	_cleanup_free_ char *settings = config_text(&r->fix_config);
	struct buf text = {0};

	buf_printf(&text, "fettle: campaign %lld, %s: %s", (long long)r->campaign.id,
		   r->campaign.name, settings);
	if (isfinite(r->fix.est) && isfinite(r->fix.lo) && isfinite(r->fix.hi))
		buf_printf(&text, " (%+.1f %% [%+.1f, %+.1f] on %s)", 100 * r->fix.est,
			   100 * r->fix.lo, 100 * r->fix.hi, r->recipe->objective);
	if (!recommend_confirmed(r))
		buf_str(&text, ", NOT CONFIRMED");
	text_line(out, text.data);
	buf_free(&text);
}

void recommend_comment_head(const struct report *r, const struct strv *left, const char *mark,
			    size_t most, struct buf *out)
{
	struct buf text = {0};

	recommend_head(r, &text);
	for (size_t i = 0; i < left->n; i++)
		buf_printf(&text, "%s%s\n", i ? "" : "\n", left->v[i]);
	text.data[text.len - 1] = '\0'; /* the last newline would give an empty line */
	recommend_comment(out, mark, most, text.data);
	buf_free(&text);
}

/* -- parts ------------------------------------------------------------------------------------ */

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

static void add_part(struct recommend_parts *p, struct recommend_part part)
{
	p->v = xgrow(p->v, p->n, &p->cap, sizeof *p->v);
	p->v[p->n++] = part;
}

static void add_setting(const struct report *r, const struct kv *s, struct recommend_parts *out)
{
	const struct knob *k = recipe_knob(r->recipe, s->key);
	const struct bundle *b;

	if (!k)
		return;
	switch (k->how) {
	case HOW_ENV: /* among the variables */
		break;
	case HOW_ARG:
		add_part(out, (struct recommend_part){RECOMMEND_ARGUMENT, k, k->target, s->value});
		break;
	case HOW_KEY:
		add_part(out, (struct recommend_part){RECOMMEND_KEY, k, k->target, s->value});
		break;
	case HOW_BUNDLE:
		b = knob_bundle(k, s->value);
		if (b && b->command.n)
			add_part(out,
				 (struct recommend_part){RECOMMEND_COMMAND, k, k->name, s->value});
		break;
	}
}

void recommend_parts(const struct report *r, struct recommend_parts *out)
{
	const struct config *c = &r->fix_config;

	for (size_t i = 0; i < c->env.n; i++)
		if (!only_told(r, &c->env.v[i]))
			add_part(out, (struct recommend_part){.how = RECOMMEND_VARIABLE,
							      .name = c->env.v[i].key,
							      .value = c->env.v[i].value});
	for (size_t i = 0; i < c->settings.n; i++)
		add_setting(r, &c->settings.v[i], out);
}

void recommend_parts_free(struct recommend_parts *p)
{
	free(p->v);
	*p = (struct recommend_parts){0};
}

static char *argument_text(const struct recommend_part *p)
{
	if (p->knob->flag)
		return xasprintf("%s%s", str_eq(p->value, "true") ? "" : "without ", p->name);
	return xasprintf("%s%s%s", p->name, str_ends(p->name, "=") ? "" : " ", p->value);
}

char *recommend_part_text(const struct recommend_part *p)
{
	switch (p->how) {
	case RECOMMEND_VARIABLE:
		return p->value ? xasprintf("%s=%s", p->name, p->value)
				: xasprintf("without %s", p->name);
	case RECOMMEND_ARGUMENT:
		return argument_text(p);
	case RECOMMEND_KEY:
	case RECOMMEND_COMMAND:
		break;
	}
	return xasprintf("%s = %s", p->name, p->value);
}

void recommend_leave(const struct report *r, const struct recommend_part *p, struct strv *left)
{
	_cleanup_free_ char *text = recommend_part_text(p);
	const char *file = r->recipe->workload.config;

	switch (p->how) {
	case RECOMMEND_VARIABLE:
		strv_addf(left, "not in here: %s: a variable of the job (--patch SCRIPT, --as env)",
			  text);
		break;
	case RECOMMEND_ARGUMENT:
		strv_addf(left, "not in here: %s: on the launch line (--patch SCRIPT)", text);
		break;
	case RECOMMEND_KEY:
		strv_addf(left, "not in here: %s: a key of %s (--as config writes the file)", text,
			  file ? file : "the framework's file");
		break;
	case RECOMMEND_COMMAND:
		strv_addf(left, "not in here: %s: another command (--as sbatch has it)", text);
		break;
	}
}

static int module_lines(const struct report *r, const struct recommend_syntax *x, struct strv *left,
			struct buf *out, struct err *e)
{
	struct recommend_parts p = {0};

	recommend_parts(r, &p);
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].how == RECOMMEND_VARIABLE && text_is_name(p.v[i].name))
			x->line(&p.v[i], out);
		else
			recommend_leave(r, &p.v[i], left);
	recommend_parts_free(&p);
	return out->len
		       ? 0
		       : err_set(e, ERR_NOT_FOUND,
				 "campaign %lld: no setting of the fix is a variable: --patch SCRIPT "
				 "puts it on the launch line",
				 (long long)r->campaign.id);
}

int recommend_module(const struct report *r, const struct recommend_syntax *x, struct strv *left,
		     struct buf *out, struct err *e)
{
	struct buf lines = {0}, title = {0};
	int rc = module_lines(r, x, left, &lines, e);

	if (rc == 0) {
		buf_str(out, x->first);
		recommend_comment_head(r, left, x->comment, 0, out);
		recommend_comment(out, x->comment, 0, x->use);
		recommend_title(r, &title);
		x->whatis(title.data, out);
		buf_put(out, lines.data, lines.len);
	}
	buf_free(&lines);
	buf_free(&title);
	return rc;
}

/* -- shell ------------------------------------------------------------------------------------ */

bool recommend_is_copy(const struct report *r)
{
	const struct strv *v = &r->recipe->workload.command;

	return str_eq(r->recipe->resources.launcher, "script") && v->n &&
	       str_ends(v->v[0], ".fettle.sh");
}

/* What the copy of the framework's file is called in a recommendation: beside the original. */
#define CONFIG_SUFFIX ".fettle.json"

char *recommend_token(const struct report *r, const char *token)
{
	const char *at = strstr(token, CONFIGFILE_MARK), *file = r->recipe->workload.config;
	size_t stem = file ? strlen(file) : 0;

	if (!at || !file)
		return xstrdup(token);
	if (str_ends(file, ".json"))
		stem -= strlen(".json");
	return xasprintf("%.*s%.*s" CONFIG_SUFFIX, (int)(at - token), token, (int)stem, file);
}

void recommend_config_keys(const struct report *r, struct buf *out)
{
	struct recommend_parts p = {0};
	struct buf text = {0};

	if (!configfile_name(&r->fix_config))
		return;
	recommend_parts(r, &p);
	buf_printf(&text, "\nkeys of %s (fettle recommend --as config writes the file):",
		   r->recipe->workload.config);
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].how == RECOMMEND_KEY)
			buf_printf(&text, "\n  %s = %s", p.v[i].name, p.v[i].value);
	recommend_comment(out, "# ", 0, text.data);
	recommend_parts_free(&p);
	buf_free(&text);
}

void recommend_variables(const struct report *r, const char *before, struct buf *out)
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

void recommend_word(struct buf *out, const char *s)
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
			recommend_word(out, "env");
		any = true;
		if (c->env.v[i].value) {
			pair = xasprintf("%s=%s", c->env.v[i].key, c->env.v[i].value);
		} else {
			recommend_word(out, "-u");
			pair = xstrdup(c->env.v[i].key);
		}
		recommend_word(out, pair);
	}
}

/* Whatever could not be mounted was told when the campaign ran. */
void recommend_launch(const struct report *r, bool launched, struct strv *out)
{
	const struct workload *w = &r->recipe->workload;
	const struct container_use use = {
		.workdir = w->workdir, .env = &r->fix_config.env, .by_name = &w->secrets};

	if (launched)
		resources_launch(&r->recipe->resources, out);
	if (w->container.runtime && (launched || !container_is_pyxis(&w->container)))
		(void)container_enter(&w->container, &use, out, NULL);
}

void recommend_command(const struct report *r, bool launched, struct buf *out)
{
	struct strv launch = {0};
	struct buf line = {0};

	odd_variables(&r->fix_config, &line);
	recommend_launch(r, launched, &launch);
	for (size_t i = 0; i < launch.n; i++)
		recommend_word(&line, launch.v[i]);
	for (size_t i = 0; i < r->fix_config.argv.n; i++) {
		_cleanup_free_ char *token = recommend_token(r, r->fix_config.argv.v[i]);

		recommend_word(&line, token);
	}
	buf_str(out, line.data ? line.data : ":");
	strv_free(&launch);
	buf_free(&line);
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

int recommend_find(const char *name, const struct recommend_form **out, struct err *e)
{
	const char *names[32] = {NULL}, *near;
	struct buf list = {0};
	size_t n = 0;

	for (const struct recommend_form *const *f = recommend_form_table; *f; f++) {
		if (str_eq((*f)->name, name)) {
			buf_free(&list);
			*out = *f;
			return 0;
		}
		buf_printf(&list, "%s%s", n ? ", " : "", (*f)->name);
		if (n + 1 < ARRAY_LEN(names))
			names[n++] = (*f)->name;
	}
	near = str_nearest(name, names);
	err_set(e, ERR_USAGE, "there is no form \"%s\": there are %s%s%s%s", name, list.data,
		near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	buf_free(&list);
	return -ERR_USAGE;
}

int recommend_allowed(const struct report *r, bool force, struct err *e)
{
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
	return 0;
}

int recommend_write(const struct report *r, const struct recommend_form *form, bool force,
		    struct strv *left, struct buf *out, struct err *e)
{
	struct strv none = {0};
	struct buf text = {0};
	int rc = recommend_allowed(r, force, e);

	if (rc == 0)
		rc = form->write(r, left ? left : &none, &text, e);
	if (rc == 0)
		buf_put(out, text.data, text.len);
	buf_free(&text);
	strv_free(&none);
	return rc;
}
