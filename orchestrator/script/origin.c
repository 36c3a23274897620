/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/origin.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/luajson.h"

void origins_done(struct origins *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->v[i].path);
		json_free(x->v[i].value);
		free(x->v[i].at.file);
	}
	free(x->v);
	*x = (struct origins){0};
}

static const char *layer_name(const struct script_source *src)
{
	static const char *const names[] = {"campaign", "user", "site"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(src->name, names[i]))
			return names[i];
	return "workload";
}

static void add(struct origins *x, const char *path, struct json *value, const char *from,
		struct place at)
{
	x->v = xgrow(x->v, x->n, &x->cap, sizeof *x->v);
	x->v[x->n++] = (struct origin){xstrdup(path), value, from, at};
}

/* A list of texts and numbers is one value; a table with names, or a list of such, is many. */
static bool is_plain(const struct json *v)
{
	if (json_type(v) == JSON_OBJECT)
		return json_get(v, LUAJSON_FUNCTION) != NULL;
	for (const struct json *m = json_type(v) == JSON_ARRAY ? json_first(v) : NULL; m;
	     m = json_next(m))
		if (json_type(m) == JSON_OBJECT || json_type(m) == JSON_ARRAY)
			return false;
	return true;
}

static void collect(const struct reader *r, const struct json *v, const char *path,
		    struct origins *out)
{
	bool names = json_type(v) == JSON_OBJECT;
	size_t i = 0;

	if (is_plain(v)) {
		add(out, path, names ? json_new_null() : json_copy(v),
		    layer_name(reader_layer_of(r, path)->src), reader_place(r, path));
		return;
	}
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		const char *key = names ? json_key(m) : NULL;
		bool position = !key || (*key && !key[strspn(key, "0123456789")]);
		_cleanup_free_ char *at = position ? fieldpath_item(path, ++i)
						   : fieldpath_child(path, key);

		collect(r, m, at, out);
	}
}

void origins_collect(const struct reader *r, const struct json *merged,
		     const struct script_source *site, const struct json *site_value,
		     struct origins *out)
{
	static const char *const limits[] = {"caps", "forbidden"};
	const struct reader_layer layer = {site_value, site, "", ""};
	const struct reader own = {&layer, 1};

	collect(r, merged, "", out);
	for (size_t i = 0; site && i < ARRAY_LEN(limits); i++)
		if (json_get(site_value, limits[i]))
			collect(&own, json_get(site_value, limits[i]), limits[i], out);
}
