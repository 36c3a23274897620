/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* -- reading -------------------------------------------------------------------------------- */

/* Step times, or what the rate of a step says about them: only their shape counts. */
static void read_steps(const struct window *w, struct quality_trial *out)
{
	static const char *const rates[] = {"throughput_samples_per_s", "throughput_tokens_per_s",
					    "throughput_steps_per_s"};
	size_t n;
	const double *v = window_values(w, "step_time_ms", &n);
	bool rate = v == NULL;

	for (size_t i = 0; !v && i < ARRAY_LEN(rates); i++)
		v = window_values(w, rates[i], &n);
	if (!v)
		return;
	out->step_ms = xcalloc(n + 1, sizeof *out->step_ms);
	out->n = n;
	for (size_t i = 0; i < n; i++)
		out->step_ms[i] = rate ? 1000 / v[i] : v[i];
}

static double ncpu_of(const struct window *w)
{
	size_t n;
	const struct window_fact *f = window_facts(w, &n);
	double v = NAN;

	for (size_t i = 0; i < n; i++)
		if (str_eq(f[i].key, "host.ncpu") && str_to_double(f[i].text, &v))
			return v;
	return NAN;
}

void quality_read(const struct window *steps, const struct window *samples,
		  const struct trial_result *t, struct quality_trial *out)
{
	double reasons = trial_result_get(t, "clock_event_reasons", "any");

	*out = (struct quality_trial){
		.slot = t->slot,
		.steal_pct = trial_result_get(t, "cpu_steal_pct", "mean"),
		.other_cpu_pct = NAN,
		.sm_clock_mhz = trial_result_get(t, "sm_clock_mhz", "mean"),
		.reasons_known = isfinite(reasons),
		.clock_reasons = isfinite(reasons) ? (uint64_t)reasons : 0,
	};
	read_steps(steps, out);
	if (samples)
		out->other_cpu_pct = trial_result_get(t, "cpu_user_pct", "mean") +
				     trial_result_get(t, "cpu_system_pct", "mean") -
				     100 * trial_result_get(t, "tree_cpu_cores", "mean") /
					     ncpu_of(samples);
}

/* -- judging -------------------------------------------------------------------------------- */

/* Timed trials that ended well; their number. *failed: is there one that did not? */
static size_t judged_trials(const struct attempt_files *a, struct quality_trial *out, bool *failed)
{
	size_t n = 0;

	*failed = false;
	if (!a->quality)
		return 0;
	for (size_t i = 0; i < a->n; i++) {
		if (a->trials[i].kind != SLOT_TIMED)
			continue;
		if (a->trials[i].state == TRIAL_OK)
			out[n++] = a->quality[i];
		else
			*failed = true;
	}
	return n;
}

static bool may_void(const struct stage_row *s, const struct block_row *b, bool failed,
		     const struct quality_finding *f)
{
	if (failed || s->kind == STAGE_SOAK || s->kind == STAGE_CONVERGE ||
	    s->kind == STAGE_PROFILE || f->action != QUALITY_VOID)
		return false;
	switch (f->rule) {
	case QUALITY_FAIL_SLOW:
	case QUALITY_STEADY:
	case QUALITY_DRIFT:
	case QUALITY_OUTLIERS:
		return b->voids == 0;
	case QUALITY_CLOCKS:
	case QUALITY_THROTTLE:
	case QUALITY_NEIGHBOUR:
		return true;
	}
	return false;
}

static int store(struct campaign *c, const struct block_row *b, const struct quality_finding *f,
		 size_t n, struct err *e)
{
	int rc = n ? db_begin(c->ws->db, "quality", e) : 0;

	if (n == 0 || rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct quality_row row = {.slot = f[i].slot,
					  .rule = f[i].rule,
					  .action = f[i].action,
					  .value = f[i].value,
					  .bound = f[i].bound,
					  .text = f[i].text};

		rc = query_quality_put(c->ws->db, b->attempt_id, (int)i, &row, e);
	}
	if (rc == 0)
		return db_commit(c->ws->db, e);
	db_rollback(c->ws->db);
	return rc;
}

int quality_check(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		  const struct attempt_files *a, char **reason, struct err *e)
{
	_cleanup_free_ struct quality_trial *t = xcalloc(a->n + 1, sizeof *t);
	struct quality_finding *f = NULL;
	bool failed;
	size_t n = judged_trials(a, t, &failed);
	int rc;

	*reason = NULL;
	n = quality_judge(&c->recipe->quality, t, n, &f);
	for (size_t i = 0; i < n; i++) {
		if (!may_void(s, b, failed, &f[i]))
			f[i].action = QUALITY_NOTE;
		else if (!*reason)
			*reason = xasprintf("quality (%s): %s", quality_rule_name(f[i].rule),
					    f[i].text);
	}
	rc = store(c, b, f, n, e);
	quality_findings_free(f, n);
	if (rc < 0) {
		free(*reason);
		*reason = NULL;
	}
	return rc;
}
