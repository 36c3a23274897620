/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/load.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"

static void arm_values(const struct value_row *v, size_t n, int64_t arm, struct report_arm *out)
{
	_cleanup_free_ double *x = xcalloc(n + 1, sizeof *x);
	size_t k = 0, cap = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].arm != arm)
			continue;
		out->n++;
		out->failed += v[i].state == TRIAL_FAILED;
		if (v[i].state != TRIAL_OK || !isfinite(v[i].value))
			continue;
		x[k] = v[i].value;
		out->values = xgrow(out->values, k, &cap, sizeof *out->values);
		out->values[k++] = (struct report_value){v[i].block_index, v[i].value};
	}
	out->n_values = k;
	out->mean = stats_mean(x, k);
	out->sd = stats_sd(x, k);
}

static int load_arms(struct loader *l, const struct stage_row *s, const struct value_row *v,
		     size_t n, struct report_stage *out, struct err *e)
{
	out->arms = xcalloc(s->n_arms + 1, sizeof *out->arms);
	for (size_t i = 0; i < s->n_arms; i++) {
		struct report_arm *a = &out->arms[out->n_arms++];
		struct config c = {0};
		int rc = query_config_get(l->db, s->arms[i].config, &c, e);

		if (rc < 0)
			return rc;
		a->label = xstrdup(s->arms[i].label);
		a->config_text = config_text(&c);
		config_done(&c);
		arm_values(v, n, s->arms[i].id, a);
	}
	return 0;
}

/* One statistic of the step times of the trials, which come in the same order each time. */
static int load_step_stat(struct loader *l, const struct stage_row *s, const char *stat, size_t at,
			  struct report_stage *out, struct err *e)
{
	struct value_row *v = NULL;
	size_t n = 0;
	int rc = query_stage_values(l->db, s->id, "step_time_ms", stat, &v, &n, e);

	if (rc == 0 && !out->steps) {
		out->steps = xcalloc(n + 1, sizeof *out->steps);
		out->n_steps = n;
	}
	for (size_t i = 0; rc == 0 && i < n && i < out->n_steps; i++) {
		struct report_steps *t = &out->steps[i];
		double *figures[] = {&t->min, &t->median, &t->p95, &t->p99};

		t->block = v[i].block_index;
		t->arm = v[i].arm == s->arms[0].id ? 0 : 1;
		*figures[at] = v[i].value;
	}
	value_rows_free(v, n);
	return rc;
}

/* Trials of which all of it is known stay. */
static int load_steps(struct loader *l, const struct stage_row *s, struct report_stage *out,
		      struct err *e)
{
	static const char *const stats[] = {"min", "median", "p95", "p99"};
	size_t kept = 0;
	int rc = 0;

	if ((s->kind != STAGE_CONFIRM && s->kind != STAGE_FINAL) || s->n_arms != 2)
		return 0;
	for (size_t k = 0; rc == 0 && k < ARRAY_LEN(stats); k++)
		rc = load_step_stat(l, s, stats[k], k, out, e);
	for (size_t i = 0; i < out->n_steps; i++) {
		const struct report_steps *t = &out->steps[i];

		if (isfinite(t->min) && isfinite(t->median) && isfinite(t->p95) && isfinite(t->p99))
			out->steps[kept++] = *t;
	}
	out->n_steps = kept;
	return rc;
}

static int load_stage(struct loader *l, const struct stage_row *s, struct report_stage *out,
		      struct err *e)
{
	const struct recipe *r = l->r->recipe;
	struct block_row *b = NULL;
	struct value_row *v = NULL;
	size_t n_blocks = 0, n = 0;
	int rc;

	*out = (struct report_stage){.id = s->id,
				     .hypothesis = s->hypothesis,
				     .alpha_share = s->alpha_share,
				     .open = s->open,
				     .kind = s->kind,
				     .seq = s->seq,
				     .round = s->round,
				     .blocks_planned = s->planned_blocks,
				     .note = xstrdup(s->note)};
	if ((rc = query_blocks(l->db, s->id, &b, &n_blocks, e)) < 0)
		return rc;
	for (size_t i = 0; i < n_blocks; i++) {
		if (b[i].attempt_id && b[i].state == ATTEMPT_VALID) {
			out->blocks_valid++;
			strv_add(&out->dirs, b[i].dir);
		}
		out->blocks_void += b[i].voids;
	}
	block_rows_free(b, n_blocks);
	if ((rc = query_stage_values(l->db, s->id, r->objective, r->objective_stat, &v, &n, e)) < 0)
		return rc;
	rc = load_arms(l, s, v, n, out, e);
	value_rows_free(v, n);
	return rc < 0 ? rc : load_steps(l, s, out, e);
}

const struct stage_row *load_stage_of(const struct loader *l, enum stage_kind k)
{
	for (size_t i = l->n_stages; i-- > 0;)
		if (l->stages[i].kind == k)
			return &l->stages[i];
	return NULL;
}

int load_stages(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	int rc = query_stages(l->db, r->campaign.id, &l->stages, &l->n_stages, e);

	r->stages = xcalloc(l->n_stages + 1, sizeof *r->stages);
	for (size_t i = 0; rc == 0 && i < l->n_stages; i++, r->n_stages++)
		rc = load_stage(l, &l->stages[i], &r->stages[i], e);
	return rc;
}

static double share_of(const struct signal_row *v, size_t n, const char *metric)
{
	double share = signal_rows_mean(v, n, metric);

	return isfinite(share) ? fmin(fmax(share, 0), 1) : NAN;
}

/* False: the profiler saw no step. What is left of the step is idle or was not told apart. */
static bool split(const struct signal_row *v, size_t n, double part[REPORT_PARTS])
{
	double wait = share_of(v, n, "data_gap_ratio"), left = 1;

	part[PART_COMPUTE] = share_of(v, n, "compute_ratio");
	part[PART_COMMUNICATION] = share_of(v, n, "comm_exposed_ratio");
	part[PART_COPIES] = share_of(v, n, "copy_exposed_ratio");
	part[PART_DATA] = isfinite(wait) ? wait : share_of(v, n, "data_wait_ratio");
	if (!isfinite(part[PART_COMPUTE]))
		return false;
	for (int k = 0; k < PART_REST; k++) {
		part[k] = isfinite(part[k]) ? fmin(part[k], left) : 0;
		left -= part[k];
	}
	part[PART_REST] = left;
	return true;
}

/* As far as the timed trials of an arm tell: without a profiler only the wait for data is known. */
static int load_wait(struct loader *l, size_t stage, size_t arm, struct err *e)
{
	struct report *r = l->r;
	struct report_profile p = {.round = r->stages[stage].round};
	struct signal_row *v = NULL;
	size_t n = 0;
	int rc = query_arm_signals(l->db, l->stages[stage].arms[arm].id, &v, &n, e);

	for (int k = 0; k < PART_REST; k++)
		p.part[k] = NAN;
	p.part[PART_DATA] = share_of(v, n, "data_wait_ratio");
	p.part[PART_REST] = 1 - p.part[PART_DATA];
	signal_rows_free(v, n);
	if (rc < 0 || !isfinite(p.part[PART_DATA]))
		return rc;
	p.config_text = xstrdup(r->stages[stage].arms[arm].config_text);
	r->profiles[r->n_profiles++] = p;
	return 0;
}

static int load_profile(struct loader *l, size_t stage, struct err *e)
{
	struct report *r = l->r;
	struct report_profile *p = &r->profiles[r->n_profiles];
	struct signal_row *v = NULL;
	size_t n = 0;
	int rc = query_profile_signals(l->db, l->stages[stage].arms[0].id, &v, &n, &p->price, e);

	if (rc == 0 && split(v, n, p->part)) {
		p->round = r->stages[stage].round;
		p->profiler = true;
		p->config_text = xstrdup(r->stages[stage].arms[0].config_text);
		r->n_profiles++;
	}
	signal_rows_free(v, n);
	return rc;
}

int load_profiles(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	size_t final = r->n_stages;
	bool few;
	int rc = 0;

	r->profiles = xcalloc(r->n_stages + 2, sizeof *r->profiles);
	for (size_t i = 0; rc == 0 && i < r->n_stages; i++) {
		if (r->stages[i].kind == STAGE_PROFILE && r->stages[i].n_arms)
			rc = load_profile(l, i, e);
		if (r->stages[i].kind == STAGE_FINAL && r->stages[i].n_arms > 1)
			final = i;
	}
	few = r->n_profiles < 2;
	/* Where no profiler saw both a before and an after. */
	for (size_t arm = 0; rc == 0 && few && final < r->n_stages && arm < 2; arm++)
		rc = load_wait(l, final, arm, e);
	return rc;
}
