/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/fingerprint.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "experiments/history.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/nodefacts.h"
#include "orchestrator/method/commit.h"
#include "orchestrator/method/method.h"

enum {
	FILE_MAX = 1 << 20, /* KEYS_MAX of NODEFACTS_VALUE_MAX bytes, four times over */
	/* of a node: 32 adapters have ten each, and there are 100 others */
	KEYS_MAX = 1000,
	KEY_MAX = 100,        /* bytes of a name */
	NOTES_MAX = 8,        /* keys in which nodes differ that are told by name */
	HEAD_BYTES = 1 << 20, /* of an output: NCCL names its version when it begins */
};

/* The recipe's own word counts for a key that we know as well. */
static bool is_named(const struct recipe *r, const char *key)
{
	for (size_t i = 0; i < r->n_fingerprint; i++)
		if (str_eq(r->fingerprint[i].name, key))
			return true;
	return false;
}

struct json *fingerprint_asked(const struct recipe *r)
{
	struct json *o = json_object(), *env = json_object(), *keys = json_array();

	json_set(o, "env", env);
	for (size_t i = 0; i < r->workload.env.n; i++)
		json_set_text(env, r->workload.env.v[i].key, r->workload.env.v[i].value);
	json_set(o, "keys", keys);
	for (size_t i = 0; i < r->n_fingerprint; i++) {
		const struct fingerprint_key *k = &r->fingerprint[i];
		struct json *key, *argv;

		if (k->how == FINGERPRINT_ENV) /* read here */
			continue;
		json_add(keys, key = json_object());
		json_set_text(key, "name", k->name);
		if (k->file) {
			json_set_text(key, "file", k->file);
			continue;
		}
		json_set(key, "command", argv = json_array());
		for (size_t a = 0; a < k->command.n; a++)
			json_add_text(argv, k->command.v[a]);
	}
	return o;
}

/* -- the agent's file -------------------------------------------------------------------------- */

/* Names of interfaces may hold anything but blanks and '/'. */
static bool key_valid(const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < n; i++)
		if (key[i] <= ' ' || key[i] == 0x7F)
			return false;
	return n > 0 && n <= KEY_MAX;
}

static void take_keys(const struct json *keys, struct kvs *out)
{
	for (const struct json *m = json_first(keys); m && out->n < KEYS_MAX; m = json_next(m))
		if (json_type(m) == JSON_STRING && key_valid(json_key(m)))
			nodefacts_put(out, json_key(m), json_text(m, ""));
}

static void take_absent(const struct json *absent, const char *node, struct strv *notes)
{
	struct kvs why = {0};

	take_keys(absent, &why);
	for (size_t i = 0; i < why.n && i < FINGERPRINT_KEYS_MAX; i++)
		strv_addf(notes, "node %s tells nothing of fingerprint.%s: %s", node, why.v[i].key,
			  why.v[i].value);
	kvs_free(&why);
}

int fingerprint_parse(const char *name, const char *text, size_t n, const char *token, char **node,
		      struct kvs *keys, struct strv *notes, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	struct kvs own = {0};
	int rc = json_parse(name, text, n, &j, e);

	if (rc < 0)
		return rc;
	if (!str_eq(json_text(json_get(j, "format"), ""), "fettle.environment/1"))
		return err_set(e, ERR_PARSE, "%s: format is not fettle.environment/1", name);
	if (!str_eq(json_text(json_get(j, "token"), ""), token))
		return err_set(e, ERR_PARSE, "%s: its token is that of another attempt", name);
	nodefacts_put(&own, "node", json_text(json_get(j, "node"), ""));
	if (kvs_get(&own, "node")) {
		*node = xstrdup(kvs_get(&own, "node"));
		take_keys(json_get(j, "keys"), keys);
		take_absent(json_get(j, "absent"), *node, notes);
	} else {
		rc = err_set(e, ERR_PARSE, "%s: node: expected its name", name);
	}
	kvs_free(&own);
	return rc;
}

static void read_file(const char *dir, const char *name, const char *token, struct attempt_files *a)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct node_keys *k = &a->environments[a->n_environments];
	struct buf b = {0};
	struct err e = {0};

	if (!fs_exists(path))
		return;
	if (fs_read(path, FILE_MAX, &b, &e) < 0 ||
	    fingerprint_parse(name, b.data ? b.data : "", b.len, token, &k->node, &k->keys,
			      &a->notes, &e) < 0)
		strv_addf(&a->notes, "the environment of a node is not known: %s", e.text);
	else
		a->n_environments++;
	ingest_unread(a, &e);
	buf_free(&b);
}

/* "NCCL version 2.18.3+cuda12.1" of the first trial: what runs, whatever packages there are. */
static void add_nccl(const char *dir, struct attempt_files *a)
{
	static const char says[] = "NCCL version ";
	char name[24];
	_cleanup_free_ char *path = NULL, *text = xmalloc(HEAD_BYTES + 1);
	struct err e = {0};
	char *at;
	ssize_t n;
	int fd;

	if (a->n == 0)
		return;
	snprintf(name, sizeof name, "t%02d/out", a->trials[0].slot);
	path = fs_join(dir, name);
	if ((fd = fs_open(path)) < 0)
		return;
	n = read(fd, text, HEAD_BYTES);
	if (n < 0)
		err_sys(&e, fs_code(errno), "cannot read %s", path);
	ingest_unread(a, &e);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = memmem(text, n > 0 ? (size_t)n : 0, says, strlen(says));
	if (!at)
		return;
	at += strlen(says);
	at[strcspn(at, " \t\r\n")] = '\0';
	for (size_t i = 0; i < a->n_environments; i++)
		nodefacts_put(&a->environments[i].keys, "nccl", at);
}

void fingerprint_read(const struct recipe *r, const char *dir, const char *token,
		      struct attempt_files *a)
{
	if (a->environments)
		return;
	a->environments = xcalloc(a->nodes.n + 1, sizeof *a->environments);
	read_file(dir, "environment.json", token, a);
	for (size_t i = 0; i < a->nodes.n; i++) {
		_cleanup_free_ char *name = xasprintf("environment.%s.json", a->nodes.v[i]);

		if (!strchr(name, '/') && a->n_environments < a->nodes.n)
			read_file(dir, name, token, a);
	}
	if (!is_named(r, "nccl"))
		add_nccl(dir, a);
}

/* -- what is known here ------------------------------------------------------------------------ */

/* The image as the recipe names it; of a file also its size and time, by which another one of that
 * name is told without reading all of it. */
static void put_container(const struct workload *w, struct kvs *out)
{
	const char *image = w->container.image;
	_cleanup_free_ char *path = NULL, *text = NULL;
	struct stat st;

	if (!w->container.runtime || !image)
		return;
	path = *image == '/' ? xstrdup(image) : fs_join(w->workdir, image);
	if (stat(path, &st) == 0)
		text = xasprintf("%s, %lld bytes of %lld", image, (long long)st.st_size,
				 (long long)st.st_mtim.tv_sec);
	nodefacts_put(out, "container", text ? text : image);
}

static const char *variable(const struct workload *w, const struct kvs *env, const char *name)
{
	return kvs_has(&w->env, name) ? kvs_get(&w->env, name) : kvs_get(env, name);
}

static void put_unnamed(const struct recipe *r, struct kvs *out, const char *key, const char *value)
{
	if (value && !is_named(r, key))
		nodefacts_put(out, key, value);
}

void fingerprint_here(const struct recipe *r, const struct kvs *env, bool host, struct kvs *out)
{
	const struct workload *w = &r->workload;
	_cleanup_free_ char *commit = commit_of(w->workdir);
	struct kvs container = {0};
	struct utsname u;

	put_container(w, &container);
	put_unnamed(r, out, "container", kvs_get(&container, "container"));
	put_unnamed(r, out, "git", commit);
	put_unnamed(r, out, "modules", kvs_get(env, "LOADEDMODULES"));
	if (host && uname(&u) == 0)
		put_unnamed(r, out, "host", u.nodename);
	for (size_t i = 0; i < r->n_fingerprint; i++) {
		const struct fingerprint_key *k = &r->fingerprint[i];
		const char *value = k->how == FINGERPRINT_ENV ? variable(w, env, k->env) : NULL;

		if (value)
			nodefacts_put(out, k->name, value);
	}
	kvs_free(&container);
}

/* -- storing ----------------------------------------------------------------------------------- */

static void add_all(struct kvs *to, const struct kvs *from)
{
	for (size_t i = 0; i < from->n; i++)
		kvs_set(to, from->v[i].key, from->v[i].value);
}

static char *text_of(const struct kvs *keys)
{
	_cleanup_(json_freep) struct json *o = json_object();

	for (size_t i = 0; i < keys->n; i++)
		json_set_text(o, keys->v[i].key, keys->v[i].value);
	return json_print(o, false);
}

static int store_node(struct campaign *c, int64_t attempt, const struct node_keys *k, struct err *e)
{
	_cleanup_free_ char *text = text_of(&k->keys);
	int64_t id;
	int rc = history_environment_put(c->ws->db, text, &id, e);

	return rc < 0 ? rc : history_node_environment_put(c->ws->db, attempt, k->node, id, e);
}

static void note_differences(struct attempt_files *a)
{
	struct fingerprint_node *v = xcalloc(a->n_environments, sizeof *v);
	_cleanup_(json_freep) struct json *j = NULL;
	_cleanup_free_ char *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < a->n_environments; i++)
		v[i] = (struct fingerprint_node){a->environments[i].node, a->environments[i].keys};
	text = fingerprint_join(v, a->n_environments);
	if (json_parse("environment", text, strlen(text), &j, NULL) < 0)
		n = NOTES_MAX;
	for (const struct json *m = json_first(j); m && n < NOTES_MAX; m = json_next(m))
		for (size_t i = 0; i < a->n_environments; i++) {
			const char *own = kvs_get(&v[i].keys, json_key(m));

			if (own && !str_eq(own, json_text(m, ""))) {
				strv_addf(&a->notes, "nodes of one job differ: %s: %s", json_key(m),
					  json_text(m, ""));
				n++;
				break;
			}
		}
	free(v);
}

int fingerprint_store(struct campaign *c, int64_t attempt, struct attempt_files *a, struct err *e)
{
	struct kvs here = {0};
	int rc = 0;

	if (a->n_environments == 0)
		return 0;
	if (a->n_environments > 1)
		note_differences(a);
	fingerprint_here(c->recipe, &c->env, str_eq(c->sched->name, "local"), &here);
	for (size_t i = 0; i < a->n_environments && rc == 0; i++) {
		add_all(&a->environments[i].keys, &here);
		rc = store_node(c, attempt, &a->environments[i], e);
	}
	kvs_free(&here);
	return rc;
}

/* -- then and now ------------------------------------------------------------------------------ */

/* A field's value as people read it; heap. */
static char *value_text(const struct json *v)
{
	return json_type(v) == JSON_STRING ? xstrdup(json_text(v, "")) : json_print(v, false);
}

/* The values of "a (n1, n3), b (n2)", or the whole text when it is none of several. */
static void split_values(const char *text, struct strv *out)
{
	if (!str_ends(text, ")") || !strstr(text, "), ")) {
		strv_add(out, text);
		return;
	}
	while (*text) {
		const char *end = strstr(text, "), "), *open = NULL;
		size_t n = end ? (size_t)(end - text) + 1 : strlen(text);

		for (size_t i = 0; i + 1 < n; i++)
			if (text[i] == ' ' && text[i + 1] == '(')
				open = text + i;
		strv_addf(out, "%.*s", open ? (int)(open - text) : (int)n, text);
		text += n + (end ? strlen(", ") : 0);
	}
}

/* What an earlier fettle wrote another way is no change: memory in kB, the driver's whole line. */
static bool same_value(const char *key, const char *was, const char *is)
{
	double kib, gib;
	_cleanup_free_ char *a = xstrndup(was, strcspn(was, " ")),
			    *b = xstrndup(is, strcspn(is, " "));

	if (str_eq(was, is))
		return true;
	if (str_eq(key, "memory") && str_ends(was, " kB") && str_ends(is, " GiB"))
		return str_to_double(a, &kib) && str_to_double(b, &gib) &&
		       fabs(kib / 1048576 - gib) <= 0.5;
	return str_eq(key, "nvidia_driver") && strchr(was, ' ') && strstr(was, is);
}

/* Is there a value now that there was not? */
static bool differs(const char *key, const char *was, const char *is)
{
	struct strv a = {0}, b = {0};
	bool new = false;

	split_values(was, &a);
	split_values(is, &b);
	for (size_t i = 0; i < b.n && !new; i++) {
		bool there = false;

		for (size_t k = 0; k < a.n; k++)
			there = there || same_value(key, a.v[k], b.v[i]);
		new = !there;
	}
	strv_free(&a);
	strv_free(&b);
	return new;
}

bool fingerprint_is_old(const char *then)
{
	_cleanup_(json_freep) struct json *j = NULL;

	return json_parse("stored fingerprint", then, strlen(then), &j, NULL) == 0 &&
	       json_get(j, "scheduler");
}

/* Of a cluster's nodes the name says nothing, nor does that of the login node. */
static bool is_local(const struct json *then)
{
	return str_eq(json_text(json_get(then, "scheduler"), "local"), "local");
}

int fingerprint_changes(const char *then, const char *now, struct strv *out, struct err *e)
{
	_cleanup_(json_freep) struct json *a = NULL, *b = NULL;
	int rc;

	if ((rc = json_parse("stored fingerprint", then, strlen(then), &a, e)) < 0 ||
	    (rc = json_parse("fingerprint", now, strlen(now), &b, e)) < 0)
		return rc;
	for (const struct json *m = json_first(a); m; m = json_next(m)) {
		const struct json *other = json_get(b, json_key(m));
		_cleanup_free_ char *was = value_text(m), *is = other ? value_text(other) : NULL;

		if (is && differs(json_key(m), was, is) &&
		    (!str_eq(json_key(m), "host") || is_local(a)))
			strv_addf(out, "%s: %s -> %s", json_key(m), was, is);
	}
	return 0;
}

static void add_machine(struct kvs *out)
{
	struct utsname u;

	nodefacts_read("", out);
	if (uname(&u) == 0)
		nodefacts_put(out, "host", u.nodename);
}

char *fingerprint_this_machine(void)
{
	struct kvs keys = {0};
	char *text;

	add_machine(&keys);
	kvs_sort(&keys);
	text = text_of(&keys);
	kvs_free(&keys);
	return text;
}

/* Files that the recipe names, where this machine is the node. */
static void add_files(const struct recipe *r, struct kvs *out)
{
	for (size_t i = 0; i < r->n_fingerprint; i++) {
		const struct fingerprint_key *k = &r->fingerprint[i];
		_cleanup_free_ char *path = NULL;
		char line[NODEFACTS_VALUE_MAX * 4];

		if (k->how != FINGERPRINT_FILE)
			continue;
		path = *k->file == '/' ? xstrdup(k->file) : fs_join(r->workload.workdir, k->file);
		if (nodefacts_line(path, line, sizeof line) == 0)
			nodefacts_put(out, k->name, line);
	}
}

static int captured(const struct campaign_row *row, struct kvs *out, struct err *e)
{
	return row->env_json ? fingerprint_keys(row->env_json, out, e) : 0;
}

int fingerprint_now(struct workspace *w, const struct campaign_row *row, const struct recipe *r,
		    char **json, struct err *e)
{
	_cleanup_free_ char *measured = NULL;
	bool local = str_eq(row->scheduler, "local");
	struct kvs now = {0}, env = {0};
	int64_t stage;
	int rc = history_environment_newest(w->db, row->name, row->scheduler, &stage, e);

	if (rc == 0 && stage)
		rc = fingerprint_of_stage(w->db, stage, &measured, e);
	if (rc == 0 && measured)
		rc = fingerprint_keys(measured, &now, e);
	if (rc == 0)
		rc = captured(row, &env, e);
	if (rc == 0 && local)
		add_machine(&now);
	if (rc == 0 && local && r)
		add_files(r, &now);
	if (rc == 0 && r && stage)
		fingerprint_here(r, &env, local, &now);
	if (rc == 0) {
		kvs_sort(&now);
		*json = text_of(&now);
	}
	kvs_free(&now);
	kvs_free(&env);
	return rc;
}
