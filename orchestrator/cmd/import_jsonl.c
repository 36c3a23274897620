/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON lines: an object a line. Members of objects within it are fields "outer.inner", but those of
 * `metrics`, `environment`, `env`, `attributes`, `labels` and `tags` have no prefix. Numbers may be
 * metrics, texts are what the values hold for; null, and Python's NaN, are no value; lists are
 * passed over.
 */
#include "orchestrator/cmd/import.h"

#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "probes/input.h"

enum { DEPTH_MAX = 8 };

static void *open_jsonl(void)
{
	return NULL;
}

static void close_jsonl(void *state)
{
	(void)state;
}

/* The line with words that Python writes and JSON does not know, outside of strings, in quotes. */
static char *quote_nan(struct span line)
{
	static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
	bool quoted = false;
	struct buf b = {0};

	for (size_t i = 0; i < line.n; i++) {
		struct span rest = {line.s + i, line.n - i};
		size_t k = 0;

		while (!quoted && k < ARRAY_LEN(words) && !span_starts(rest, words[k]))
			k++;
		if (!quoted && k < ARRAY_LEN(words)) {
			buf_printf(&b, "\"%s\"", words[k]);
			i += strlen(words[k]) - 1;
			continue;
		}
		if (quoted && line.s[i] == '\\' && i + 1 < line.n)
			buf_char(&b, line.s[i++]);
		else if (line.s[i] == '"')
			quoted = !quoted;
		buf_char(&b, line.s[i]);
	}
	return buf_take(&b);
}

static bool is_plain_group(const char *key)
{
	static const char *const groups[] = {"metrics",    "environment", "env",
					     "attributes", "labels",      "tags"};

	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (str_eq(groups[i], key))
			return true;
	return false;
}

static void add(struct import_table *t, const char *name, const struct json *value)
{
	uint32_t field = import_field(t, name, strlen(name));
	struct buf b = {0};

	switch (json_type(value)) {
	case JSON_NUMBER:
		buf_number(&b, json_number(value, 0));
		import_cell_add(t, field, b.data, b.len, CELL_NUMBER);
		break;
	case JSON_STRING:
		buf_str(&b, json_text(value, ""));
		import_cell_add(t, field, b.data, b.len, CELL_TEXT);
		break;
	case JSON_BOOL:
		buf_str(&b, json_bool(value, false) ? "true" : "false");
		import_cell_add(t, field, b.data, b.len, CELL_TEXT);
		break;
	case JSON_NULL:
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	buf_free(&b);
}

/* False: a member has no name. */
static bool add_members(struct import_table *t, const struct json *o, const char *prefix, int depth)
{
	for (const struct json *m = json_first(o); m; m = json_next(m)) {
		_cleanup_free_ char *name = xasprintf("%s%s", prefix, json_key(m));
		_cleanup_free_ char *dotted = xasprintf("%s.", name);
		bool plain = depth == 0 && is_plain_group(name);

		if (!*name)
			return false;
		if (json_type(m) != JSON_OBJECT)
			add(t, name, m);
		else if (depth < DEPTH_MAX && !add_members(t, m, plain ? "" : dotted, depth + 1))
			return false;
	}
	return true;
}

static int line_jsonl(void *state, const struct import_rules *r, const struct input_line *l,
		      struct import_table *t, struct err *e)
{
	_cleanup_free_ char *text = quote_nan((struct span){l->whole, l->whole_len});
	_cleanup_free_ char *name = xasprintf("%s, line %lld", t->file, (long long)l->line);
	_cleanup_(json_freep) struct json *j = NULL;
	int rc;

	(void)state;
	(void)r;
	if (text[strspn(text, " \t")] == '[')
		return err_set(
			e, ERR_PARSE,
			"%s: expected an object a line (JSON lines), got a list: jq -c '.[]' "
			"makes lines of it",
			name);
	if ((rc = json_parse(name, text, strlen(text), &j, e)) < 0)
		return rc;
	if (json_type(j) != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "%s: expected an object a line (JSON lines)", name);
	import_row_begin(t, l->line);
	return add_members(t, j, "", 0)
		       ? 0
		       : err_set(e, ERR_PARSE, "%s: a member has an empty name (\"\": ...)", name);
}

const struct import_reading import_jsonl = {open_jsonl, line_jsonl, close_jsonl};
