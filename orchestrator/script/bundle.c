/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/bundle.h"

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/knob.h"
#include "orchestrator/script/schema.h"

struct bundle_draft {
	struct kvs env;
	struct strv unset, command;
};

#define AT(member) offsetof(struct bundle_draft, member)

static const struct field bundle_fields[] = {
	{.name = "env",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_env,
	 .kind = "table of texts by name",
	 .offset = AT(env),
	 .doc = "variables that it sets",
	 .example = "{ NCCL_MAX_CTAS = 8 }"},
	{.name = "unset",
	 .type = FIELD_TEXTS,
	 .offset = AT(unset),
	 .doc = "variables that it takes out"},
	{.name = "command",
	 .type = FIELD_TEXTS,
	 .offset = AT(command),
	 .dflt = "the workload's",
	 .doc = "program and arguments in place of the workload's"},
	{.name = NULL},
};
const struct schema schema_bundle = {"bundle", bundle_fields};

static int take_unset(const struct reader *r, struct bundle_draft *d, const char *path,
		      struct err *e)
{
	for (size_t i = 0; i < d->unset.n; i++) {
		_cleanup_free_ char *list = fieldpath_child(path, "unset");
		_cleanup_free_ char *at = fieldpath_item(list, i + 1);

		if (kvs_has(&d->env, d->unset.v[i]))
			return reader_fault(r, at, e, "%.60s is set by the same bundle",
					    d->unset.v[i]);
		kvs_set(&d->env, d->unset.v[i], NULL);
	}
	kvs_sort(&d->env);
	return 0;
}

int bundle_read_settings(const struct reader *r, const struct json *v, const char *path,
			 struct bundle *out, struct err *e)
{
	struct bundle_draft d = {0};
	int rc = reader_table(r, &schema_bundle, v, path, &d, e);

	if (!rc)
		rc = take_unset(r, &d, path, e);
	if (!rc && !d.env.n && !d.command.n)
		rc = reader_fault(r, path, e,
				  "changes nothing: env, unset or command says what it is");
	strv_free(&d.unset);
	out->env = d.env;
	out->command = d.command;
	return rc;
}

int bundle_read(const struct reader *r, const struct json *v, const char *path, struct knob *k,
		struct err *e)
{
	int rc = 0;

	if (json_type(v) != JSON_OBJECT || !json_len(v))
		return reader_expected(
			r, v, path, "a table of sets by name, e.g. { tuned = { env = { A = 1 } } }",
			e);
	if (json_len(v) > KNOB_VALUES_MAX)
		return reader_fault(r, path, e, "%zu sets are too many to try; at most %d",
				    json_len(v), KNOB_VALUES_MAX);
	k->bundles = xcalloc(json_len(v), sizeof *k->bundles);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		_cleanup_free_ char *at = fieldpath_child(path, json_key(m));

		strv_add(&k->values, json_key(m));
		rc = bundle_read_settings(r, m, at, &k->bundles[k->values.n - 1], e);
	}
	return rc;
}
