/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `schedule`, `canary` and `fingerprint` of a campaign file: what `fettle nightly` does with it. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/bundle.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/schema.h"

#define END                  \
	{                    \
		.name = NULL \
	}

/* --- schedule --------------------------------------------------------------------------------- */

static const char *const cadence_words[] = {"night", "week", NULL};

static const struct field schedule_fields[] = {
	{.name = "every",
	 .type = FIELD_WORD,
	 .words = cadence_words,
	 .offset = offsetof(struct schedule, every),
	 .dflt = "not by the calendar; a canary `\"night\"`",
	 .doc = "how often it is run anew"},
	{.name = "after_change",
	 .type = FIELD_BOOL,
	 .offset = offsetof(struct schedule, after_change),
	 .dflt = "`false`",
	 .doc = "also when the environment is another one than when it was last measured"},
	END,
};
const struct schema schema_schedule = {"schedule", schedule_fields};

int schema_read_schedule(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e)
{
	_cleanup_(json_freep) struct json *table = NULL;

	if (json_type(v) == JSON_STRING) {
		table = json_object();
		json_set(table, "every", json_copy(v));
	}
	return reader_table(r, &schema_schedule, table ? table : v, path, out, e);
}

/* --- canary ----------------------------------------------------------------------------------- */

static int read_reference(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e)
{
	struct canary *c = out;

	if (json_type(v) == JSON_BOOL && !json_bool(v, true)) {
		c->alone = true;
		return 0;
	}
	if (json_type(v) != JSON_OBJECT)
		return reader_expected(r, v, path,
				       "false, or what the reference differs in, e.g. { env = { "
				       "NCCL_HOME = \"/sw/nccl/2.18\" } }",
				       e);
	return bundle_read_settings(r, v, path, &c->reference, e);
}

static const struct field canary_fields[] = {
	{.name = "blocks",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = 1000,
	 .offset = offsetof(struct canary, blocks),
	 .dflt = "2",
	 .doc = "blocks a night, each of both arms"},
	{.name = "reference",
	 .type = FIELD_CUSTOM,
	 .read = read_reference,
	 .kind = "false, or table: [bundle](#bundle)",
	 .dflt = "the keys of `fingerprint` that can be set, as they were on the first night",
	 .doc = "what the arm beside it differs in; false: there is none, and a slow night cannot be "
		"told from a slow workload",
	 .example = "{ env = { NCCL_HOME = \"/sw/nccl/2.18\" } }"},
	END,
};
const struct schema schema_canary = {"canary", canary_fields};

enum { CANARY_BLOCKS = 2 };

int schema_read_canary(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e)
{
	struct canary *c = out;

	if (json_type(v) == JSON_BOOL) {
		c->blocks = json_bool(v, false) ? CANARY_BLOCKS : 0;
		return 0;
	}
	c->blocks = CANARY_BLOCKS;
	return reader_table(r, &schema_canary, v, path, c, e);
}

/* What is read is stored and shown. */
static int check_secrets(const struct reader *r, const struct recipe *x, struct err *e)
{
	for (size_t i = 0; i < x->n_fingerprint; i++)
		for (size_t k = 0; x->fingerprint[i].env && k < x->workload.secrets.n; k++)
			if (str_eq(x->fingerprint[i].env, x->workload.secrets.v[k])) {
				_cleanup_free_ char *at = xasprintf("fingerprint.%s",
								    x->fingerprint[i].name);

				return reader_fault(r, at, e,
						    "%s is a secret, and what is read for the "
						    "environment is stored and shown",
						    x->fingerprint[i].env);
			}
	return 0;
}

int schema_check_nightly(const struct reader *r, const struct recipe *x, struct err *e)
{
	int rc = check_secrets(r, x, e);

	if (rc || !x->canary.blocks)
		return rc;
	if (x->n_knobs)
		return reader_fault(r, "knobs", e,
				    "a canary measures one configuration night after night and "
				    "tunes nothing: tune it in a campaign of its own, whose fix "
				    "fettle nightly watches as well");
	if (x->ladder.n)
		return reader_fault(r, "ladder", e,
				    "a canary measures one configuration night after night: a "
				    "ladder is a campaign of its own");
	return 0;
}

/* --- fingerprint ------------------------------------------------------------------------------ */

#define AT(member) offsetof(struct fingerprint_key, member)

static int read_set(const struct reader *r, const struct json *v, const char *path, void *out,
		    struct err *e)
{
	return bundle_read_settings(r, v, path, out, e);
}

static const struct field key_fields[] = {
	{.name = "file",
	 .type = FIELD_TEXT,
	 .offset = AT(file),
	 .doc = "its first line; relative to `workdir`",
	 .example = "\"/sw/current/VERSION\""},
	{.name = "command",
	 .type = FIELD_TEXTS,
	 .offset = AT(command),
	 .doc = "the first line that this prints within 10 s; no shell reads it",
	 .example = "{ \"python3\", \"-c\", \"import torch; print(torch.__version__)\" }"},
	{.name = "env",
	 .type = FIELD_TEXT,
	 .offset = AT(env),
	 .doc = "this variable, as a trial gets it",
	 .example = "\"NCCL_HOME\""},
	{.name = "set",
	 .type = FIELD_CUSTOM,
	 .read = read_set,
	 .kind = "table: [bundle](#bundle)",
	 .offset = AT(set),
	 .dflt = "none; with `env` that variable",
	 .doc = "how an older value is put back for comparison, `{value}` stands for it",
	 .example = "{ env = { NCCL_HOME = \"/sw/nccl/{value}\" } }"},
	END,
};
const struct schema schema_fingerprint = {"fingerprint", key_fields};

static bool has_place(const struct bundle *b)
{
	for (size_t i = 0; i < b->env.n; i++)
		if (b->env.v[i].value && strstr(b->env.v[i].value, "{value}"))
			return true;
	for (size_t i = 0; i < b->command.n; i++)
		if (strstr(b->command.v[i], "{value}"))
			return true;
	return false;
}

/* What can be put back although the recipe does not say how. */
static int settle_set(const struct reader *r, struct fingerprint_key *k, const char *path,
		      struct err *e)
{
	_cleanup_free_ char *at = fieldpath_child(path, "set");

	if (k->how == FINGERPRINT_ENV) {
		if (k->set.env.n || k->set.command.n)
			return reader_fault(r, at, e, "%s is put back as it was by itself", k->env);
		kvs_set(&k->set.env, k->env, "{value}");
	} else if ((k->set.env.n || k->set.command.n) && !has_place(&k->set)) {
		return reader_fault(r, at, e,
				    "says nowhere where the older value goes: write {value} there");
	}
	return 0;
}

static int settle_key(const struct reader *r, struct fingerprint_key *k, const char *path,
		      struct err *e)
{
	if (!!k->file + !!k->command.n + !!k->env != 1)
		return reader_fault(r, path, e,
				    "needs exactly one of file, command and env: what is read");
	k->how = k->file ? FINGERPRINT_FILE : k->env ? FINGERPRINT_ENV : FINGERPRINT_COMMAND;
	if (k->env && !schema_env_name_valid(k->env)) {
		_cleanup_free_ char *at = fieldpath_child(path, "env");

		return reader_fault(r, at, e, "\"%.60s\" is no name of an environment variable",
				    k->env);
	}
	return settle_set(r, k, path, e);
}

static int read_key(const struct reader *r, const struct json *v, const char *path,
		    struct fingerprint_key *k, struct err *e)
{
	int rc;

	k->name = xstrdup(json_key(v));
	k->at = reader_place(r, path);
	if (!metric_name_valid(k->name))
		return reader_fault(r, path, e,
				    "\"%.80s\" is no name of a key: at most 64 small letters, "
				    "digits, '.' and '_', beginning with a letter",
				    k->name);
	rc = reader_table(r, &schema_fingerprint, v, path, k, e);
	return rc ? rc : settle_key(r, k, path, e);
}

int schema_read_fingerprint(const struct reader *r, const struct json *v, const char *path,
			    void *out, struct err *e)
{
	struct recipe *x = out;
	int rc = 0;

	if (json_type(v) == JSON_ARRAY && !json_len(v))
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return reader_expected(
			r, v, path,
			"a table by name, e.g. { toolchain = { file = \"/sw/VERSION\" } }", e);
	if (json_len(v) > FINGERPRINT_KEYS_MAX)
		return reader_fault(r, path, e, "%zu keys are too many: at most %d", json_len(v),
				    FINGERPRINT_KEYS_MAX);
	x->fingerprint = xcalloc(json_len(v), sizeof *x->fingerprint);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		_cleanup_free_ char *at = fieldpath_child(path, json_key(m));

		rc = read_key(r, m, at, &x->fingerprint[x->n_fingerprint++], e);
	}
	return rc;
}
