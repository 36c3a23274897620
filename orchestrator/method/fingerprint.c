/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "experiments/history.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

enum {
	PROC_FILE_MAX = 1 << 20, /* /proc/cpuinfo of 512 CPUs is about 800 KB */
	NODES_NAMED_MAX = 3,     /* of those that share a value; the others are counted */
	ALTERNATIVES_MAX = 4,    /* values of a key that are told apart */
};

/* The text after "key<blanks>:" on its first line of a /proc file, or NULL; heap. */
static char *proc_field(const char *path, const char *key)
{
	struct buf b = {0};
	char *out = NULL, *p;

	if (fs_read(path, PROC_FILE_MAX, &b, NULL) == 0 && b.data && (p = strstr(b.data, key))) {
		p += strlen(key);
		p += strspn(p, " \t:");
		out = xstrndup(p, strcspn(p, "\n"));
	}
	buf_free(&b);
	return out;
}

static void set_field(struct json *o, const char *name, const char *path, const char *key)
{
	_cleanup_free_ char *text = proc_field(path, key);

	size_t n = text ? strlen(text) : 0;

	if (n >= 2 && text[0] == '"' && text[n - 1] == '"') { /* values of /etc/os-release */
		text[n - 1] = '\0';
		json_set_text(o, name, text + 1);
	} else if (text) {
		json_set_text(o, name, text);
	}
}

char *fingerprint_json(const char *scheduler)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct utsname u;

	if (uname(&u) == 0) {
		json_set_text(o, "host", u.nodename);
		json_set_text(o, "kernel", u.release);
		json_set_text(o, "machine", u.machine);
	}
	json_set_i64(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	set_field(o, "cpu", "/proc/cpuinfo", "model name");
	set_field(o, "microcode", "/proc/cpuinfo", "microcode");
	set_field(o, "memory", "/proc/meminfo", "MemTotal");
	set_field(o, "nvidia_driver", "/proc/driver/nvidia/version", "NVRM version");
	set_field(o, "os", "/etc/os-release", "PRETTY_NAME=");
	json_set_text(o, "scheduler", scheduler);
	return json_print(o, false);
}

/* A field's value as people read it; heap. */
static char *value_text(const struct json *v)
{
	return json_type(v) == JSON_STRING ? xstrdup(json_text(v, "")) : json_print(v, false);
}

int fingerprint_changes(const char *then, const char *now, struct strv *out, struct err *e)
{
	_cleanup_(json_freep) struct json *a = NULL, *b = NULL;
	bool local;
	int rc;

	if ((rc = json_parse("stored fingerprint", then, strlen(then), &a, e)) < 0 ||
	    (rc = json_parse("fingerprint", now, strlen(now), &b, e)) < 0)
		return rc;
	local = str_eq(json_text(json_get(a, "scheduler"), ""), "local");
	for (const struct json *m = json_first(a); m; m = json_next(m)) {
		const struct json *other = json_get(b, json_key(m));
		_cleanup_free_ char *was = value_text(m), *is = other ? value_text(other) : NULL;

		if (!is || str_eq(was, is) || (str_eq(json_key(m), "host") && !local))
			continue;
		strv_addf(out, "%s: %s -> %s", json_key(m), was, is);
	}
	return 0;
}

/* -- nodes together ---------------------------------------------------------------------------- */

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

static int read_keys(const char *text, struct kvs *out, struct err *e)
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
		rc = read_keys(rows[i].text, &v[i].keys, e);
	}
	if (rc == 0 && n > 0)
		*json = fingerprint_join(v, n);
	for (size_t i = 0; i < n; i++)
		kvs_free(&v[i].keys);
	node_environment_rows_free(rows, n);
	return rc;
}
