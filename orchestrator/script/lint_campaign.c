/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lint of a whole campaign: which values are left out, and whether it may run. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/lint_input.h"

/* Why each value is left out; how many are left. */
static size_t mark_knob(struct knob *k, const struct lint_finding *f, size_t n, const char **why)
{
	struct strv reasons = {0};
	size_t left = 0;

	for (size_t i = 0; i < k->values.n; i++) {
		const struct lint_finding *x = lint_refusal(f, n, k->name, k->values.v[i]);
		_cleanup_free_ char *text = x ? lint_text(x) : NULL;

		strv_add(&reasons, text ? text : "");
		if (text && !*why)
			*why = reasons.v[i];
		left += !text;
	}
	if (left == k->values.n)
		strv_free(&reasons);
	k->refused = reasons;
	return left;
}

int lint_settle(struct recipe *r, const struct script_sources *s, struct err *e)
{
	struct lint_input *in;
	struct lint_finding *f = NULL;
	size_t n = 0, blocking, left = 0;
	const char *why = NULL;
	int rc;

	if (!r->n_knobs)
		return 0;
	in = lint_input_new();
	rc = lint_campaign(in, r, s, &f, &n, &blocking, e);
	lint_input_free(in);
	if (rc)
		return rc;
	for (size_t i = 0; i < r->n_knobs; i++)
		left += mark_knob(&r->knobs[i], f, n, &why);
	lint_findings_free(f, n);
	if (left || !why)
		return 0;
	return err_set(e, ERR_RECIPE,
		       "%s:%d: knobs: no value is left to try, each of them is an error: %s%s",
		       r->knobs[0].at.file, r->knobs[0].at.line, why,
		       r->n_knobs > 1 || r->knobs[0].values.n > 1 ? "; and so on" : "");
}

int lint_accepted(const struct recipe *r, const struct script_sources *s,
		  const struct kvs *settings, struct lint_finding **out, size_t *n, struct err *e)
{
	struct lint_input *in = lint_input_new();
	int rc = lint_input_recipe(in, r, settings, e);

	if (rc == 0)
		rc = lint_run_stored(s, in, out, n, e);
	lint_input_free(in);
	return rc;
}

int lint_campaign(struct lint_input *in, const struct recipe *r, const struct script_sources *s,
		  struct lint_finding **out, size_t *n, size_t *blocking, struct err *e)
{
	int rc = lint_input_recipe(in, r, NULL, e);

	if (rc == 0)
		rc = lint_run_stored(s, in, out, n, e);
	if (rc)
		return rc;
	*blocking = 0;
	while (*blocking < *n &&
	       ((*out)[*blocking].severity != LINT_ERROR || (*out)[*blocking].knob))
		(*blocking)++;
	return 0;
}
