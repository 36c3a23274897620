/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/history.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

enum {
	NODES_NAMED_MAX = 3,  /* of those that share a value; the others are counted */
	ALTERNATIVES_MAX = 4, /* values of a key that are told apart */
};

/* Appends " (n1, n2 and 4 more)": those from `first` on whose value is that of `first`. */
static void put_nodes(const struct fingerprint_node *v, size_t n, const char *key, size_t first,
		      struct buf *out)
{
	const char *value = kvs_get(&v[first].keys, key);
	size_t named = 0, more = 0;

	for (size_t i = first; i < n; i++) {
		if (!str_eq(kvs_get(&v[i].keys, key), value))
			continue;
		if (named == NODES_NAMED_MAX)
			more++;
		else
			buf_printf(out, "%s%s", named++ ? ", " : " (", v[i].node);
	}
	if (more)
		buf_printf(out, " and %zu more", more);
	buf_char(out, ')');
}

static bool is_met(const struct fingerprint_node *v, const char *key, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (str_eq(kvs_get(&v[j].keys, key), kvs_get(&v[i].keys, key)))
			return true;
	return false;
}

/* The value of a key over all nodes; heap. */
static char *joined(const struct fingerprint_node *v, size_t n, const char *key)
{
	size_t values = 0, last = 0, put = 0;
	struct buf out = {0};

	for (size_t i = 0; i < n; i++)
		if (kvs_get(&v[i].keys, key) && !is_met(v, key, i)) {
			values++;
			last = i;
		}
	if (values == 1)
		return xstrdup(kvs_get(&v[last].keys, key));
	for (size_t i = 0; i < n && put < ALTERNATIVES_MAX; i++) {
		if (!kvs_get(&v[i].keys, key) || is_met(v, key, i))
			continue;
		buf_printf(&out, "%s%s", put++ ? ", " : "", kvs_get(&v[i].keys, key));
		put_nodes(v, n, key, i, &out);
	}
	if (values > put)
		buf_printf(&out, ", %zu more", values - put);
	return buf_take(&out);
}

char *fingerprint_join(const struct fingerprint_node *v, size_t n)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct kvs all = {0};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < v[i].keys.n; k++)
			kvs_set(&all, v[i].keys.v[k].key, "");
	kvs_sort(&all);
	for (size_t k = 0; k < all.n; k++) {
		_cleanup_free_ char *value = joined(v, n, all.v[k].key);

		json_set_text(o, all.v[k].key, value);
	}
	kvs_free(&all);
	return json_print(o, false);
}

int fingerprint_keys(const char *text, struct kvs *out, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	int rc = json_parse("environment", text, strlen(text), &j, e);

	for (const struct json *m = rc == 0 ? json_first(j) : NULL; m; m = json_next(m))
		kvs_set(out, json_key(m), json_text(m, ""));
	return rc;
}

int fingerprint_of_stage(struct db *db, int64_t stage, char **json, struct err *e)
{
	struct node_environment_row *rows = NULL;
	_cleanup_free_ struct fingerprint_node *v = NULL;
	size_t n = 0;
	int rc = history_node_environments(db, stage, &rows, &n, e);

	*json = NULL;
	v = xcalloc(n + 1, sizeof *v);
	for (size_t i = 0; i < n && rc == 0; i++) {
		v[i].node = rows[i].node;
		rc = fingerprint_keys(rows[i].text, &v[i].keys, e);
	}
	if (rc == 0 && n > 0)
		*json = fingerprint_join(v, n);
	for (size_t i = 0; i < n; i++)
		kvs_free(&v[i].keys);
	node_environment_rows_free(rows, n);
	return rc;
}
