/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/block.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/agent/jread.h"
#include "orchestrator/base/address.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

enum {
	ARMS_MAX = 1024,   /* a screen of hundreds of candidates is already cut into rounds */
	SLOTS_MAX = 10000, /* tens of repeats of each arm */
	ARGV_MAX = 4096,
	ENV_MAX = 4096,
	PATTERN_MAX = 4096,
	KEYS_MAX = 64,      /* each may start a program; a recipe has half as many */
	PERIOD_MIN_MS = 10, /* below it the sampler would be a load of its own */
};
static const int64_t DAY_S = 86400;
static const int64_t STEPS_MAX = 1000000000;
static const int64_t BYTES_MAX = INT64_C(1) << 50;

static bool env_name_ok(const char *name)
{
	return *name && !strchr(name, '=');
}

static void check_env_names(struct jread *r, const char *key, const struct kvs *env)
{
	for (size_t i = 0; i < env->n; i++)
		if (!env_name_ok(env->v[i].key))
			jread_fail(r, key, "\"%s\" is no name of an environment variable",
				   env->v[i].key);
}

static void check_names(struct jread *r, const char *key, const struct strv *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!env_name_ok(names->v[i]))
			jread_fail(r, key, "\"%s\" is no name of an environment variable",
				   names->v[i]);
}

/* It becomes a job name and a part of an environment variable. */
static void read_token(struct jread *r, yajl_val top, char out[BLOCK_TOKEN_MAX + 1])
{
	const char *token = jread_need_text(r, top, "token");

	if (!str_copy(out, BLOCK_TOKEN_MAX + 1, token))
		jread_fail(r, "token", "is longer than %d bytes", BLOCK_TOKEN_MAX);
	if (!*token)
		jread_fail(r, "token", "is empty");
	for (const char *p = token; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(":_.-", *p))
			jread_fail(r, "token",
				   "holds a character that is not a letter, digit or one of :_.-");
}

static void read_window(struct jread *r, yajl_val top, struct block_window *w)
{
	yajl_val v = jread_object(r, top, "window");
	const char *source;

	jread_enter(r, "window");
	source = jread_text(r, v, "source", "out");
	w->pattern = xstrdup(jread_text(r, v, "pattern", ""));
	w->warmup = jread_int(r, v, "warmup", 0, 0, STEPS_MAX);
	w->steps = jread_int(r, v, "steps", 0, 0, STEPS_MAX);
	if (str_eq(source, "metrics"))
		w->source = WINDOW_METRICS;
	else if (!str_eq(source, "out"))
		jread_fail(r, "source", "expected \"out\" or \"metrics\", found \"%s\"", source);
	if (strlen(w->pattern) > PATTERN_MAX)
		jread_fail(r, "pattern", "is longer than %d bytes", PATTERN_MAX);
	if (w->steps > 0 && w->source == WINDOW_OUT && !*w->pattern)
		jread_fail(r, "pattern", "is empty, so no step can be counted in the output");
	jread_leave(r);
}

static void read_limits(struct jread *r, yajl_val top, struct block_limits *l)
{
	yajl_val v = jread_object(r, top, "limits");

	jread_enter(r, "limits");
	l->trial_s = jread_int(r, v, "trial_s", 3600, 1, 30 * DAY_S);
	l->log_bytes = jread_int(r, v, "log_bytes", 64 << 20, 4096, BYTES_MAX);
	l->work_bytes = jread_int(r, v, "work_bytes", 0, 0, BYTES_MAX);
	l->grace_s = jread_int(r, v, "grace_s", 5, 0, 600);
	jread_leave(r);
}

static void read_arm(struct jread *r, yajl_val v, struct block_arm *a)
{
	if (!YAJL_IS_OBJECT(v)) {
		jread_fail(r, NULL, "expected an object");
		return;
	}
	a->arm = jread_need_int(r, v, "arm", 0, INT64_MAX);
	jread_texts(r, v, "launch", ARGV_MAX, &a->launch);
	jread_texts(r, v, "argv", ARGV_MAX, &a->argv);
	jread_pairs(r, v, "env", ENV_MAX, &a->env);
	jread_texts(r, v, "unset", ENV_MAX, &a->unset);
	if (a->argv.n == 0 || !a->argv.v[0][0])
		jread_fail(r, "argv", "is missing or empty: the command of the workload");
	check_env_names(r, "env", &a->env);
	check_names(r, "unset", &a->unset);
}

static void read_arms(struct jread *r, yajl_val top, struct block *b)
{
	yajl_val list = jread_array(r, top, "arms", ARMS_MAX);

	if (!list || list->u.array.len == 0) {
		jread_fail(r, "arms", "is missing or empty");
		return;
	}
	b->arms = xcalloc(list->u.array.len, sizeof *b->arms);
	b->n_arms = list->u.array.len;
	for (size_t i = 0; i < b->n_arms; i++) {
		jread_enter_nth(r, "arms", i);
		read_arm(r, list->u.array.values[i], &b->arms[i]);
		for (size_t j = 0; j < i; j++)
			if (b->arms[j].arm == b->arms[i].arm)
				jread_fail(r, "arm", "%lld stands twice",
					   (long long)b->arms[i].arm);
	}
	jread_leave(r);
}

static size_t find_arm(const struct block *b, int64_t arm)
{
	size_t i = 0;

	while (i < b->n_arms && b->arms[i].arm != arm)
		i++;
	return i;
}

static void read_slot(struct jread *r, yajl_val v, const struct block *b, size_t i,
		      struct block_slot *s)
{
	int64_t arm;

	if (!YAJL_IS_OBJECT(v)) {
		jread_fail(r, NULL, "expected an object");
		return;
	}
	s->slot = (int)jread_need_int(r, v, "slot", 0, SLOTS_MAX - 1);
	s->repeat = (int)jread_int(r, v, "repeat", 0, 0, INT32_MAX);
	s->kind = xstrdup(jread_text(r, v, "kind", "timed"));
	arm = jread_need_int(r, v, "arm", 0, INT64_MAX);
	s->arm_index = find_arm(b, arm);
	if (s->arm_index == b->n_arms)
		jread_fail(r, "arm", "%lld is not one of arms", (long long)arm);
	/* Records are named after the slot: two of one number would be one file. */
	for (size_t j = 0; j < i; j++)
		if (b->slots[j].slot == s->slot)
			jread_fail(r, "slot", "%d stands twice", s->slot);
}

static void read_slots(struct jread *r, yajl_val top, struct block *b)
{
	yajl_val list = jread_array(r, top, "slots", SLOTS_MAX);

	if (!list || list->u.array.len == 0) {
		jread_fail(r, "slots", "is missing or empty");
		return;
	}
	b->slots = xcalloc(list->u.array.len, sizeof *b->slots);
	b->n_slots = list->u.array.len;
	for (size_t i = 0; i < b->n_slots && !r->rc; i++) {
		jread_enter_nth(r, "slots", i);
		read_slot(r, list->u.array.values[i], b, i, &b->slots[i]);
	}
	jread_leave(r);
}

static void read_sampler(struct jread *r, yajl_val top, struct block *b)
{
	yajl_val v = jread_object(r, top, "sampler");

	jread_enter(r, "sampler");
	b->sampler_period_ms = jread_int(r, v, "period_ms", 0, 0, 3600 * 1000);
	if (b->sampler_period_ms > 0 && b->sampler_period_ms < PERIOD_MIN_MS)
		jread_fail(r, "period_ms", "%lld is below %d", (long long)b->sampler_period_ms,
			   PERIOD_MIN_MS);
	b->dcgm_url = xstrdup(jread_text(r, v, "dcgm_exporter", ""));
	if (!*b->dcgm_url) {
		free(b->dcgm_url);
		b->dcgm_url = NULL;
	} else if (address_fault(b->dcgm_url)) {
		jread_fail(r, "dcgm_exporter", "\"%s\": %s", b->dcgm_url,
			   address_fault(b->dcgm_url));
	}
	b->sample_nodes = jread_int(r, v, "every_node", 1, 0, 1);
	jread_enter(r, "evidence");
	jread_texts(r, jread_object(r, top, "evidence"), "env_prefixes", ENV_MAX, &b->env_prefixes);
	jread_leave(r);
}

static void read_container(struct jread *r, yajl_val top, struct block *b)
{
	static const char *const runtimes[] = {"pyxis", "apptainer", "singularity"};
	yajl_val o = jread_object(r, top, "container");
	bool known = false;

	if (!o)
		return;
	jread_enter(r, "container");
	b->container.runtime = xstrdup(jread_need_text(r, o, "runtime"));
	b->container.image = xstrdup(jread_need_text(r, o, "image"));
	for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
		known = known || str_eq(b->container.runtime, runtimes[i]);
	if (!known)
		jread_fail(r, "runtime", "\"%.64s\" is not pyxis, apptainer or singularity",
			   b->container.runtime);
	jread_texts(r, o, "mounts", ARGV_MAX, &b->container.mounts);
	jread_texts(r, o, "args", ARGV_MAX, &b->container.args);
	jread_texts(r, o, "env", ENV_MAX, &b->container_env);
	jread_leave(r);
}

static void read_key(struct jread *r, yajl_val v, struct block_key *k)
{
	if (!YAJL_IS_OBJECT(v)) {
		jread_fail(r, NULL, "expected an object");
		return;
	}
	k->name = xstrdup(jread_need_text(r, v, "name"));
	k->file = xstrdup(jread_text(r, v, "file", ""));
	jread_texts(r, v, "command", ARGV_MAX, &k->command);
	if (!*k->name)
		jread_fail(r, "name", "is empty");
	if (!!*k->file == !!k->command.n)
		jread_fail(r, "file", "expected either a file or a command");
}

static void read_fingerprint(struct jread *r, yajl_val top, struct block *b)
{
	yajl_val o = jread_object(r, top, "fingerprint"), list;

	if (!o)
		return;
	b->tells_environment = true;
	jread_enter(r, "fingerprint");
	jread_pairs(r, o, "env", ENV_MAX, &b->key_env);
	check_env_names(r, "env", &b->key_env);
	list = jread_array(r, o, "keys", KEYS_MAX);
	if (list && list->u.array.len) {
		b->keys = xcalloc(list->u.array.len, sizeof *b->keys);
		b->n_keys = list->u.array.len;
	}
	for (size_t i = 0; i < b->n_keys; i++) {
		jread_enter_nth(r, "fingerprint.keys", i);
		read_key(r, list->u.array.values[i], &b->keys[i]);
	}
	jread_leave(r);
}

static void read_top(struct jread *r, yajl_val top, struct block *b)
{
	const char *format = jread_need_text(r, top, "format");

	if (!str_eq(format, "fettle.block/1"))
		jread_fail(r, "format",
			   "expected \"fettle.block/1\", found \"%s\": this agent and the "
			   "fettle that wrote the file are of different versions",
			   format);
	read_token(r, top, b->token);
	b->block = jread_need_int(r, top, "block", 0, INT64_MAX);
	b->attempt = jread_need_int(r, top, "attempt", 0, INT64_MAX);
	b->deadline_us = jread_int(r, top, "deadline_us", 0, 0, INT64_MAX);
	read_window(r, top, &b->window);
	read_limits(r, top, &b->limits);
	jread_texts(r, top, "launch", ARGV_MAX, &b->launch);
	read_container(r, top, b);
	jread_texts(r, top, "profiler", ARGV_MAX, &b->profiler);
	b->workdir = xstrdup(jread_need_text(r, top, "workdir"));
	if (b->workdir[0] != '/')
		jread_fail(r, "workdir", "\"%s\" is not an absolute path", b->workdir);
	jread_pairs(r, top, "env", ENV_MAX, &b->env);
	check_env_names(r, "env", &b->env);
	jread_texts(r, top, "secrets", ENV_MAX, &b->secrets);
	check_names(r, "secrets", &b->secrets);
	read_sampler(r, top, b);
	read_fingerprint(r, top, b);
	read_arms(r, top, b);
	if (!r->rc)
		read_slots(r, top, b);
}

int block_parse(const char *name, const char *text, size_t n, struct block **out, struct err *e)
{
	struct jread r = {.file = name, .e = e};
	_cleanup_(block_freep) struct block *b = xcalloc(1, sizeof *b);
	yajl_val top = jread_parse(&r, text, n);

	if (top && !YAJL_IS_OBJECT(top))
		jread_fail(&r, NULL, "expected an object");
	if (!r.rc)
		read_top(&r, top, b);
	yajl_tree_free(top);
	if (!r.rc)
		*out = TAKE(b);
	return r.rc;
}

int block_read(const char *path, struct block **out, struct err *e)
{
	struct buf b = {0};
	int rc = fs_read(path, BLOCK_FILE_MAX, &b, e);

	if (!rc)
		rc = block_parse(path, b.data, b.len, out, e);
	buf_free(&b);
	return rc;
}

bool block_profiles(const struct block *b, const char *path)
{
	_cleanup_free_ char *found = b->profiler.n && !b->container.runtime
					     ? proc_which(b->profiler.v[0], path ? path : "")
					     : NULL;

	return found && fs_exists("/dev/nvidiactl");
}

const struct strv *block_launch(const struct block *b, const struct block_slot *slot)
{
	const struct block_arm *a = &b->arms[slot->arm_index];

	return a->launch.n ? &a->launch : &b->launch;
}

bool block_launches(const struct block *b, const struct block_slot *slot)
{
	return block_launch(b, slot)->n > 0 ||
	       str_eq(fs_basename(b->arms[slot->arm_index].argv.v[0]), "srun");
}

const struct block_slot *block_slot_of(const struct block *b, int slot)
{
	for (size_t i = 0; i < b->n_slots; i++)
		if (b->slots[i].slot == slot)
			return &b->slots[i];
	return NULL;
}

void block_free(struct block *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_arms; i++) {
		strv_free(&b->arms[i].launch);
		strv_free(&b->arms[i].argv);
		kvs_free(&b->arms[i].env);
		strv_free(&b->arms[i].unset);
	}
	for (size_t i = 0; i < b->n_slots; i++)
		free(b->slots[i].kind);
	for (size_t i = 0; i < b->n_keys; i++) {
		free(b->keys[i].name);
		free(b->keys[i].file);
		strv_free(&b->keys[i].command);
	}
	kvs_free(&b->key_env);
	free(b->keys);
	free(b->arms);
	free(b->slots);
	free(b->window.pattern);
	free(b->workdir);
	free(b->dcgm_url);
	strv_free(&b->launch);
	container_done(&b->container);
	strv_free(&b->container_env);
	strv_free(&b->profiler);
	strv_free(&b->secrets);
	strv_free(&b->env_prefixes);
	kvs_free(&b->env);
	free(b);
}

void block_freep(struct block **b)
{
	block_free(*b);
	*b = NULL;
}
