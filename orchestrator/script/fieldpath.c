/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/fieldpath.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* Positions above this are no positions of a recipe; keeps the arithmetic below from wrapping. */
enum { INDEX_MAX = 1000000 };

static bool name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool name_rest(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool plain_name(const char *s)
{
	if (!name_start(*s))
		return false;
	while (*s && name_rest(*s))
		s++;
	return !*s;
}

static void take_name(struct fieldpath_part *out, size_t *n, char c)
{
	if (*n + 1 < sizeof(out->name))
		out->name[(*n)++] = c;
}

static bool quoted(const char **path, struct fieldpath_part *out)
{
	const char *p = *path + 2;
	size_t n = 0;

	while (*p && *p != '"') {
		if (*p == '\\' && p[1])
			p++;
		take_name(out, &n, *p++);
	}
	out->name[n] = '\0';
	if (p[0] != '"' || p[1] != ']' || !n)
		return false;
	*path = p + 2;
	return true;
}

static bool position(const char **path, struct fieldpath_part *out)
{
	const char *p = *path + 1;

	while (isdigit((unsigned char)*p) && out->index < INDEX_MAX)
		out->index = out->index * 10 + (size_t)(*p++ - '0');
	if (*p != ']' || !out->index)
		return false;
	*path = p + 1;
	return true;
}

bool fieldpath_next(const char **path, struct fieldpath_part *out)
{
	const char *p = *path;
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	if (p[0] == '[')
		return p[1] == '"' ? quoted(path, out) : position(path, out);
	if (*p == '.')
		p++;
	if (!name_start(*p))
		return false;
	while (name_rest(*p))
		take_name(out, &n, *p++);
	*path = p;
	return true;
}

void fieldpath_key(struct buf *path, const char *name)
{
	/* A table with positions and names became an object with keys like "3". */
	if (*name && !name[strspn(name, "0123456789")]) {
		buf_printf(path, "[%s]", name);
		return;
	}
	if (plain_name(name)) {
		buf_printf(path, "%s%s", path->len ? "." : "", name);
		return;
	}
	buf_str(path, "[\"");
	for (const char *p = name; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_char(path, '\\');
		buf_char(path, *p);
	}
	buf_str(path, "\"]");
}

void fieldpath_index(struct buf *path, size_t index)
{
	buf_printf(path, "[%zu]", index);
}

char *fieldpath_child(const char *base, const char *name)
{
	struct buf b = {0};

	buf_str(&b, base);
	fieldpath_key(&b, name);
	return buf_take(&b);
}

char *fieldpath_item(const char *base, size_t index)
{
	return xasprintf("%s[%zu]", base, index);
}

static const struct json *step(const struct json *v, const struct fieldpath_part *part)
{
	char key[24];

	if (!part->index)
		return json_type(v) == JSON_OBJECT ? json_get(v, part->name) : NULL;
	if (json_type(v) == JSON_ARRAY)
		return part->index <= json_len(v) ? json_at(v, part->index - 1) : NULL;
	snprintf(key, sizeof(key), "%zu", part->index);
	return json_type(v) == JSON_OBJECT ? json_get(v, key) : NULL;
}

const struct json *fieldpath_get(const struct json *value, const char *path)
{
	struct fieldpath_part part;

	while (value && *path) {
		if (!fieldpath_next(&path, &part))
			return NULL;
		value = step(value, &part);
	}
	return value;
}
