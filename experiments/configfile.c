/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings that stand in a framework's JSON file: part of model.h. The file is never changed; a
 * configuration has a copy with its settings, named after its content. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/model.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

/* --- reading ------------------------------------------------------------------------------ */

/* The fewest digits that give the same number. */
static char *number_text(double v)
{
	char text[40] = "";
	double back;

	if (v == floor(v) && fabs(v) < 1e15)
		return xasprintf("%.0f", v);
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (str_to_double(text, &back) && back == v)
			break;
	}
	return xstrdup(text);
}

static char *scalar_text(const struct json *v)
{
	switch (json_type(v)) {
	case JSON_BOOL:
		return xstrdup(json_bool(v, false) ? "true" : "false");
	case JSON_NUMBER:
		return number_text(json_number(v, 0));
	case JSON_STRING:
		return xstrdup(json_text(v, ""));
	case JSON_NULL:
	case JSON_ARRAY:
	case JSON_OBJECT:
		return NULL;
	}
	return NULL;
}

char *configfile_get(const char *text, const char *key)
{
	_cleanup_(json_freep) struct json *root = NULL;
	const struct json *at;

	if (!text || json_parse("config", text, strlen(text), &root, NULL) < 0)
		return NULL;
	at = root;
	while (at && *key) {
		size_t n = strcspn(key, ".");
		_cleanup_free_ char *part = xstrndup(key, n);

		at = json_type(at) == JSON_OBJECT ? json_get(at, part) : NULL;
		key += n + (key[n] == '.');
	}
	return at ? scalar_text(at) : NULL;
}

/* --- writing ------------------------------------------------------------------------------ */

static struct json *value_json(const char *text)
{
	double v;

	if (str_eq(text, "true") || str_eq(text, "false"))
		return json_new_bool(str_eq(text, "true"));
	return str_to_double(text, &v) ? json_new_number(v) : json_new_text(text);
}

/* A copy of `old` in which the key has the value; what is no table on the way becomes one. */
static struct json *with(const struct json *old, const char *key, const char *value)
{
	struct json *out = old && json_type(old) == JSON_OBJECT ? json_copy(old) : json_object();
	size_t n = strcspn(key, ".");
	_cleanup_free_ char *part = xstrndup(key, n);

	json_set(out, part,
		 key[n] ? with(json_get(out, part), key + n + 1, value) : value_json(value));
	return out;
}

char *configfile_text(const struct recipe *r, const struct kvs *settings)
{
	const char *text = r->workload.config_text;
	struct json *root = NULL, *next;
	char *out = NULL;

	for (size_t i = 0; text && i < settings->n; i++) {
		const struct knob *k = recipe_knob(r, settings->v[i].key);

		if (!k || k->how != HOW_KEY || !settings->v[i].value)
			continue;
		if (!root && json_parse("config", text, strlen(text), &root, NULL) < 0)
			return NULL;
		next = with(root, k->target, settings->v[i].value);
		json_free(root);
		root = next;
	}
	if (root)
		out = json_print(root, true);
	json_free(root);
	return out;
}

/* --- in the command ----------------------------------------------------------------------- */

/* The file in a token: all of it, or behind "--x="; NULL: another token. */
static const char *file_in(const char *token, const char *file)
{
	size_t n = strlen(token), m = strlen(file);

	if (n < m || strcmp(token + n - m, file) != 0)
		return NULL;
	return n == m || token[n - m - 1] == '=' ? token + n - m : NULL;
}

bool configfile_named(const struct workload *w)
{
	for (size_t i = 1; w->config && i < w->command.n; i++)
		if (file_in(w->command.v[i], w->config))
			return true;
	return false;
}

void configfile_apply(const struct recipe *r, struct config *c)
{
	_cleanup_free_ char *text = configfile_text(r, &c->settings);
	char hash[33];

	if (!text)
		return;
	fs_hash(text, strlen(text), hash);
	for (size_t i = 1; i < c->argv.n; i++) {
		const char *at = file_in(c->argv.v[i], r->workload.config);
		char *token;

		if (!at)
			continue;
		token = xasprintf("%.*s" CONFIGFILE_MARK "%s.json", (int)(at - c->argv.v[i]),
				  c->argv.v[i], hash);
		free(c->argv.v[i]);
		c->argv.v[i] = token;
	}
}

char *configfile_token(const char *token, const char *dir)
{
	const char *at = strstr(token, CONFIGFILE_MARK);

	if (!at)
		return NULL;
	return xasprintf("%.*s%s/%s", (int)(at - token), token, dir, at + strlen(CONFIGFILE_MARK));
}

const char *configfile_name(const struct config *c)
{
	for (size_t i = 0; i < c->argv.n; i++) {
		const char *at = strstr(c->argv.v[i], CONFIGFILE_MARK);

		if (at)
			return at + strlen(CONFIGFILE_MARK);
	}
	return NULL;
}
