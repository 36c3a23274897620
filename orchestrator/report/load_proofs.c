/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/load.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

/* The value of a knob's argument in the JSON text of an argv; heap, NULL when it is not there. */
static char *argument_value(const struct knob *k, const char *argv_json)
{
	_cleanup_(json_freep) struct json *argv = NULL;
	size_t n = strlen(k->target);

	if (json_parse("argv", argv_json, strlen(argv_json), &argv, NULL) < 0)
		return NULL;
	n -= n > 1 && k->target[n - 1] == '=';
	for (size_t i = json_len(argv); i-- > 1;) {
		const char *a = json_text(json_at(argv, i), "");

		if (strncmp(a, k->target, n) != 0)
			continue;
		if (k->flag && a[n] == '\0')
			return xstrdup("true");
		if (!k->flag && a[n] == '=')
			return xstrdup(a + n + 1);
		if (!k->flag && a[n] == '\0' && i + 1 < json_len(argv))
			return xstrdup(json_text(json_at(argv, i + 1), ""));
	}
	return k->flag ? xstrdup("false") : NULL;
}

static char *shown_of_bundle(const struct knob *k, const struct shown_row *row)
{
	for (size_t i = 0; str_starts(row->key, "env.") && i < k->values.n; i++)
		if (kvs_has(&k->bundles[i].env, row->key + 4))
			return xstrdup(row->value);
	return NULL;
}

/* What the row says about the knob, heap; NULL: nothing. */
static char *shown_of(const struct knob *k, const struct shown_row *row)
{
	if (str_starts(row->key, "ack."))
		return str_eq(row->key + 4, k->name) ? xstrdup(row->value) : NULL;
	if (str_starts(row->key, "maps."))
		return k->proof.maps && strstr(row->key, k->proof.maps) ? xstrdup(row->value)
									: NULL;
	if (k->how == HOW_ENV && str_starts(row->key, "env."))
		return str_eq(row->key + 4, k->target) ? xstrdup(row->value) : NULL;
	if (k->how == HOW_BUNDLE)
		return shown_of_bundle(k, row);
	if (k->how == HOW_ARG && str_eq(row->key, "argv"))
		return argument_value(k, row->value);
	return NULL;
}

int load_effective(struct loader *l, int64_t arm, struct err *e)
{
	const struct recipe *r = l->r->recipe;
	struct shown_row *v = NULL;
	size_t n = 0;
	int rc = query_arm_shown(l->db, arm, &v, &n, e);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; v[i].level == PROOF_DELIVERED && k < r->n_knobs; k++) {
			_cleanup_free_ char *text = r->knobs[k].how == HOW_BUNDLE
							    ? NULL
							    : shown_of(&r->knobs[k], &v[i]);

			if (text)
				kvs_set(&l->r->effective, r->knobs[k].name, text);
		}
	shown_rows_free(v, n);
	return rc;
}

/* Several command lines with one value of the knob become one row. */
static void keep_proofs(const struct knob *k, const struct shown_row *v, size_t n,
			struct report_hypothesis *h)
{
	size_t cap = 0;

	for (size_t i = 0; i < n; i++) {
		struct shown_row *last = h->n_proofs ? &h->proofs[h->n_proofs - 1] : NULL;
		char *text = shown_of(k, &v[i]);

		if (!text)
			continue;
		if (last && str_eq(last->key, v[i].key) && str_eq(last->value, text)) {
			last->n += v[i].n;
			free(text);
			continue;
		}
		h->proofs = xgrow(h->proofs, h->n_proofs, &cap, sizeof *h->proofs);
		h->proofs[h->n_proofs++] = (struct shown_row){
			.key = xstrdup(v[i].key), .value = text, .level = v[i].level, .n = v[i].n};
	}
}

int load_proofs(struct loader *l, int64_t arm, struct report_hypothesis *h, struct err *e)
{
	const struct knob *k = recipe_knob(l->r->recipe, h->row.knob);
	struct shown_row *v = NULL;
	size_t n = 0;
	int rc;

	if (!k)
		return 0;
	if ((rc = query_arm_shown(l->db, arm, &v, &n, e)) < 0)
		return rc;
	keep_proofs(k, v, n, h);
	shown_rows_free(v, n);
	return 0;
}
