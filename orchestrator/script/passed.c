/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/passed.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"

const char *const passed_frameworks[] = {"deepspeed", "hf_trainer", "lightning", "megatron",
					 "nanogpt",   "torchtitan", "torchtune", NULL};
static const char *const places[] = {"script", "shell", "srun", "torchrun", NULL};

static const struct {
	const char *word;
	enum passed_kind kind;
} words[] = {
	{"flag ", PASSED_FLAG}, {"env ", PASSED_ENV}, {"key ", PASSED_KEY},
	{"code ", PASSED_CODE}, {"not ", PASSED_NOT},
};

static bool listed(const char *const *list, const char *word)
{
	for (size_t i = 0; list[i]; i++)
		if (str_eq(list[i], word))
			return true;
	return false;
}

/* --- one text ----------------------------------------------------------------------------- */

void passed_done(struct passed *p)
{
	free(p->target);
	free(p->yes);
	free(p->no);
	*p = (struct passed){0};
}

/* " True/False" behind the name. */
static bool take_words(const char *text, struct passed *out)
{
	const char *slash = strchr(text, '/');

	if (!slash || slash == text || !slash[1] || text[strcspn(text, " \t")] ||
	    strchr(slash + 1, '/'))
		return false;
	out->yes = xstrndup(text, (size_t)(slash - text));
	out->no = xstrdup(slash + 1);
	return true;
}

static bool name_fits(const struct passed *p)
{
	const char *t = p->target;
	size_t n = strlen(t);

	switch (p->kind) {
	case PASSED_ARG:
		return (n > 1 && t[0] == '-') || (n > 1 && t[n - 1] == '=' && t[0] != '=');
	case PASSED_FLAG:
		return n > 1 && t[0] == '-' && t[n - 1] != '=';
	case PASSED_ENV:
		return n && !t[strspn(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
	case PASSED_KEY:
		return n && !t[strspn(t, "abcdefghijklmnopqrstuvwxyz0123456789_.")];
	case PASSED_CODE:
	case PASSED_NOT:
		return n;
	}
	return false;
}

bool passed_parse(const char *text, struct passed *out)
{
	const char *rest = text;
	size_t n;
	bool ok = true;

	*out = (struct passed){.kind = PASSED_ARG};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_starts(text, words[i].word)) {
			out->kind = words[i].kind;
			rest = text + strlen(words[i].word);
		}
	if (out->kind == PASSED_CODE || out->kind == PASSED_NOT) {
		out->target = xstrdup(rest);
		return name_fits(out) || (passed_done(out), false);
	}
	n = strcspn(rest, " ");
	out->target = xstrndup(rest, n);
	if (rest[n])
		ok = out->kind != PASSED_FLAG && take_words(rest + n + 1, out);
	return (ok && name_fits(out)) || (passed_done(out), false);
}

/* --- the table ---------------------------------------------------------------------------- */

static int read_entry(const struct reader *r, const struct json *m, const char *path,
		      struct kvs *out, struct err *e)
{
	const char *name = json_key(m);
	bool framework = listed(passed_frameworks, name);
	struct passed p = {0};
	_cleanup_free_ char *hint = NULL, *text = NULL;
	int rc;

	if (!framework && !listed(places, name)) {
		hint = reader_did_you_mean(name, passed_frameworks);
		return reader_fault(r, path, e, "there is no framework or place \"%.40s\"%s", name,
				    hint);
	}
	rc = reader_text(r, m, path, &text, e);
	if (!rc && framework && !passed_parse(text, &p))
		rc = reader_fault(r, path, e,
				  "expected \"--x\", \"--x=\", \"x=\", \"flag --x\", \"env NAME\", "
				  "\"key a.b\", \"code ...\" or \"not ...\", with the words for "
				  "true and false behind it if need be, got \"%.80s\"",
				  text);
	passed_done(&p);
	if (!rc)
		kvs_set(out, name, text);
	return rc;
}

int passed_read(const struct reader *r, const struct json *v, const char *path, void *out,
		struct err *e)
{
	int rc = 0;

	if (json_type(v) != JSON_OBJECT)
		return reader_expected(
			r, v, path, "a table by framework, e.g. { megatron = \"--num-workers\" }",
			e);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		_cleanup_free_ char *at = fieldpath_child(path, json_key(m));

		rc = read_entry(r, m, at, out, e);
	}
	kvs_sort(out);
	return rc;
}

/* --- passing ------------------------------------------------------------------------------ */

static char *translated(const struct passed *p, const char *value)
{
	if (p->yes && str_eq(value, "true"))
		return xstrdup(p->yes);
	if (p->no && str_eq(value, "false"))
		return xstrdup(p->no);
	return xstrdup(value);
}

static void translate(const struct passed *p, struct knob *k)
{
	char *text;

	for (size_t i = 0; i < k->values.n; i++) {
		text = translated(p, k->values.v[i]);
		free(k->values.v[i]);
		k->values.v[i] = text;
	}
	text = translated(p, k->default_value);
	free(k->default_value);
	k->default_value = text;
}

static void take(struct passed *p, struct knob *k)
{
	k->how = p->kind == PASSED_ENV ? HOW_ENV : p->kind == PASSED_KEY ? HOW_KEY : HOW_ARG;
	k->flag = p->kind == PASSED_FLAG;
	free(k->target);
	k->target = TAKE(p->target);
	free(k->subkey);
	k->subkey = NULL;
	if (!k->flag)
		translate(p, k);
}

static int by_hand(const struct reader *r, const struct knob *k, const struct passed *p,
		   const char *framework, const char *path, struct err *e)
{
	if (p->kind == PASSED_KEY)
		return reader_fault(r, path, e,
				    "%s takes knob %s in its JSON file, as %s: say which one the "
				    "command names, workload.config = \"ds_config.json\"",
				    framework, k->name, p->target);
	if (p->kind == PASSED_CODE)
		return reader_fault(r, path, e,
				    "%s takes knob %s in code alone: %s; let your script read it "
				    "from an argument, and say arg = ... here",
				    framework, k->name, p->target);
	return reader_fault(r, path, e, "knob %s cannot be passed to %s: %s", k->name, framework,
			    p->target);
}

static int no_way(const struct reader *r, const struct knob *k, const char *framework,
		  const char *path, struct err *e)
{
	struct buf ways = {0};
	int rc;

	for (size_t i = 0; i < k->about.passed.n; i++)
		buf_printf(&ways, "%s%s: %s", i ? "; " : "", k->about.passed.v[i].key,
			   k->about.passed.v[i].value);
	rc = reader_fault(r, path, e,
			  "how knob %s is passed to %s is not known; the catalogue has %s; say it "
			  "yourself with arg or env%s",
			  k->name, framework ? framework : "this workload", ways.data,
			  framework ? "" : ", or name workload.framework");
	buf_free(&ways);
	return rc;
}

int passed_apply(const struct reader *r, struct knob *k, const struct workload *w, const char *path,
		 struct err *e)
{
	const char *how = w->framework ? kvs_get(&k->about.passed, w->framework) : NULL;
	struct passed p = {0};
	int rc = 0;

	if (!how) {
		bool plain = k->target &&
			     (!w->framework || k->how == HOW_ENV || !k->about.passed.n);

		return plain || k->bundles ? 0 : no_way(r, k, w->framework, path, e);
	}
	if (!passed_parse(how, &p))
		return err_set(e, ERR_STATE, "knob %s: bad text %s", k->name, how);
	switch (p.kind) {
	case PASSED_ARG:
	case PASSED_FLAG:
	case PASSED_ENV:
		take(&p, k);
		break;
	case PASSED_KEY:
		if (w->config_text)
			take(&p, k);
		else
			rc = by_hand(r, k, &p, w->framework, path, e);
		break;
	case PASSED_CODE:
	case PASSED_NOT:
		rc = by_hand(r, k, &p, w->framework, path, e);
		break;
	}
	passed_done(&p);
	return rc;
}
