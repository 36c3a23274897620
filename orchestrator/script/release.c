/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/release.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/passed.h"

const char *const release_components[] = {
	"nccl",      "torch",    "cuda",      "driver", "python",       "transformers",
	"lightning", "megatron", "deepspeed", "slurm",  "torchtitan",   "torchtune",
	"glibc",     "jemalloc", "libfabric", "lustre", "aws-ofi-nccl", NULL};

/* --- comparing ---------------------------------------------------------------------------- */

/* The number at *p, which moves behind it and one dot; 0 at the end. */
static unsigned long next_number(const char **p)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)**p))
		return 0;
	n = strtoul(*p, &end, 10);
	*p = *end == '.' ? end + 1 : end;
	return n;
}

int release_compare(const char *a, const char *b)
{
	while (isdigit((unsigned char)*a) || isdigit((unsigned char)*b)) {
		unsigned long x = next_number(&a), y = next_number(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

bool release_valid(const char *version)
{
	return isdigit((unsigned char)version[0]) && strlen(version) <= 64 &&
	       !version[strcspn(version, " \t\n")];
}

const char *release_of(const char *text, const char *component)
{
	size_t n = strlen(component);

	return text && strncmp(text, component, n) == 0 && text[n] == ' ' ? text + n + 1 : NULL;
}

/* --- reading ------------------------------------------------------------------------------ */

static bool is_component(const char *s, size_t n)
{
	for (size_t i = 0; release_components[i]; i++)
		if (strlen(release_components[i]) == n && !strncmp(release_components[i], s, n))
			return true;
	return false;
}

/* "nccl 2.17" */
static int check(const struct reader *r, const char *text, const char *path, struct err *e)
{
	size_t n = strcspn(text, " ");
	_cleanup_free_ char *component = xstrndup(text, n), *hint = NULL;

	if (text[n] && is_component(text, n) && release_valid(text + n + 1))
		return 0;
	hint = is_component(text, n) ? xstrdup("")
				     : reader_did_you_mean(component, release_components);
	return reader_fault(r, path, e,
			    "expected a component and its version, e.g. \"nccl 2.17.1\", got "
			    "\"%.64s\"%s",
			    text, hint);
}

int release_read(const struct reader *r, const struct json *v, const char *path, void *out,
		 struct err *e)
{
	int rc = reader_text(r, v, path, out, e);

	return rc ? rc : check(r, *(char **)out, path, e);
}

static int by_release(const void *pa, const void *pb)
{
	const struct kv *a = pa, *b = pb;
	size_t n = strcspn(a->key, " ");
	int rc = strncmp(a->key, b->key, n + 1);

	return rc || !a->key[n] ? rc : release_compare(a->key + n + 1, b->key + n + 1);
}

/* A table of texts or numbers by name; each key is checked by `key`. */
static int read_table(const struct reader *r, const struct json *v, const char *path,
		      struct kvs *out, bool numbers, const char *expected,
		      int (*entry)(const struct reader *r, const char *key, const char *value,
				   const char *path, struct err *e),
		      struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	if (json_type(v) != JSON_OBJECT)
		return reader_expected(r, v, path, expected, e);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		_cleanup_free_ char *at = fieldpath_child(path, json_key(m));

		buf_clear(&text);
		if (json_type(m) == JSON_NUMBER && numbers)
			reader_number_text(json_number(m, 0), &text);
		else if (json_type(m) == JSON_STRING)
			buf_str(&text, json_text(m, ""));
		else if (json_type(m) == JSON_BOOL && numbers)
			buf_str(&text, json_bool(m, false) ? "true" : "false");
		else
			rc = reader_expected(r, m, at,
					     numbers ? "a text or a number"
						     : "a text (as a number 2.10 would be 2.1)",
					     e);
		if (!rc)
			rc = entry(r, json_key(m), text.data ? text.data : "", at, e);
		if (!rc)
			kvs_set(out, json_key(m), text.data ? text.data : "");
	}
	buf_free(&text);
	return rc;
}

static int default_entry(const struct reader *r, const char *key, const char *value,
			 const char *path, struct err *e)
{
	(void)value;
	for (size_t i = 0; passed_frameworks[i]; i++)
		if (str_eq(key, passed_frameworks[i]))
			return 0;
	return check(r, key, path, e);
}

int release_read_defaults(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e)
{
	struct kvs *t = out;
	int rc = read_table(r, v, path, t, true,
			    "a table of defaults by version, e.g. { [\"nccl 2.14\"] = 18 }",
			    default_entry, e);

	if (!rc && t->n)
		qsort(t->v, t->n, sizeof *t->v, by_release);
	return rc;
}

static int running_entry(const struct reader *r, const char *key, const char *value,
			 const char *path, struct err *e)
{
	_cleanup_free_ char *text = xasprintf("%s %s", key, value);

	return check(r, text, path, e);
}

int release_read_running(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e)
{
	int rc = read_table(r, v, path, out, false,
			    "a table of versions by component, e.g. { nccl = \"2.18.3\" }",
			    running_entry, e);

	kvs_sort(out);
	return rc;
}

/* --- asking ------------------------------------------------------------------------------- */

char *release_missing(const struct knob *k, const struct kvs *running)
{
	for (size_t i = 0; i < running->n; i++) {
		const char *name = running->v[i].key, *have = running->v[i].value;
		const char *since = release_of(k->about.since, name);
		const char *gone = release_of(k->about.gone, name);

		if (since && release_compare(have, since) < 0)
			return xasprintf("%s %s does not have it: it came with %s", name, have,
					 since);
		if (gone && release_compare(have, gone) >= 0)
			return xasprintf("%s %s does not have it any more: it went with %s", name,
					 have, gone);
	}
	return NULL;
}

const char *release_default(const struct knob *k, const struct workload *w)
{
	const struct kvs *running = &w->versions;
	const char *out = w->framework ? kvs_get(&k->about.defaults, w->framework) : NULL;

	for (size_t i = 0; !out && i < running->n; i++)
		for (size_t j = 0; j < k->about.defaults.n; j++) {
			const char *from = release_of(k->about.defaults.v[j].key,
						      running->v[i].key);

			if (from && release_compare(running->v[i].value, from) >= 0)
				out = k->about.defaults.v[j].value;
		}
	return out;
}
