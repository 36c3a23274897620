/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is there what the campaign's questions are asked about? A baseline that measures nothing, or a
 * guard on a metric that no trial gives, cannot lead to a verdict: said after the first block, not
 * after the last.
 */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* Blocks of a test in which its baseline may fail before it is given up: one failure is bad luck.
 */
enum { BASELINE_FAILURES_MAX = 2 };

/* All arms of an A/A stage are the baseline. */
static bool nothing_measured(const struct stage_row *s, const struct pairs *p)
{
	size_t arms = s->kind == STAGE_AA ? p->arms : 1;

	if (s->kind != STAGE_AA && p->blocks < BASELINE_FAILURES_MAX)
		return false;
	for (size_t b = 0; b < p->blocks; b++)
		for (size_t a = 0; a < arms; a++)
			if (isfinite(p->y[b * p->arms + a]))
				return false;
	return true;
}

/* Did any ended trial of the stage give this metric? True also when none ended well. */
static int given(struct campaign *c, const struct stage_row *s, const struct guard *g, bool *out,
		 struct err *e)
{
	struct value_row *v = NULL;
	size_t n = 0, ok = 0, have = 0;
	int rc = query_stage_values(c->ws->db, s->id, g->metric, g->stat, &v, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		ok += v[i].state == TRIAL_OK;
		have += v[i].state == TRIAL_OK && isfinite(v[i].value);
	}
	value_rows_free(v, n);
	*out = ok == 0 || have > 0;
	return rc;
}

static const char *source_text(const struct workload *w)
{
	switch (w->source) {
	case SOURCE_PROBE:
		return w->probe;
	case SOURCE_PATTERN:
		return "the pattern";
	case SOURCE_METRICS_FILE:
		return "$FETTLE_METRICS";
	}
	return "";
}

int inputs_fault(struct campaign *c, const struct stage_row *s, const struct pairs *p,
		 char **reason, struct err *e)
{
	const struct recipe *r = c->recipe;
	int rc = 0;

	*reason = NULL;
	if (p->blocks == 0)
		return 0;
	if (nothing_measured(s, p)) {
		*reason = xasprintf("the baseline measured nothing: %s",
				    p->fail_reason[0]   ? p->fail_reason[0]
				    : p->fail_reason[1] ? p->fail_reason[1]
							: "no timed trial ended");
		return 0;
	}
	for (size_t i = 0; rc == 0 && !*reason && i < r->n_guards; i++) {
		const struct guard *g = &r->guards[i];
		bool is_given = true;

		rc = given(c, s, g, &is_given, e);
		if (rc == 0 && !is_given)
			*reason = xasprintf("%s %s (%s): no trial gives this metric: it is not in "
					    "what comes from %s",
					    g->constraint ? "constraint" : "guard", g->metric,
					    g->stat, source_text(&r->workload));
	}
	return rc;
}
