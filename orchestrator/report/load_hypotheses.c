/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/load.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/pairs.h"

static const struct stage_row *confirm_of(const struct loader *l, int64_t hypothesis)
{
	for (size_t i = l->n_stages; i-- > 0;)
		if (l->stages[i].kind == STAGE_CONFIRM && l->stages[i].hypothesis == hypothesis)
			return &l->stages[i];
	return NULL;
}

static int screen_values(struct loader *l, const struct stage_row *s, struct err *e)
{
	int rc;

	if (l->screen == s->id)
		return 0;
	value_rows_free(l->values, l->n_values);
	l->values = NULL;
	l->n_values = 0;
	rc = query_stage_values(l->db, s->id, l->r->recipe->objective, l->r->recipe->objective_stat,
				&l->values, &l->n_values, e);
	l->screen = rc < 0 ? 0 : s->id;
	return rc;
}

static int load_screen(struct loader *l, struct report_hypothesis *h, struct err *e)
{
	h->screen_mean = NAN;
	for (size_t i = 0; i < l->n_stages; i++) {
		const struct stage_row *s = &l->stages[i];
		int rc;

		if (s->kind != STAGE_SCREEN || s->round != h->row.round)
			continue;
		for (size_t a = 1; a < s->n_arms; a++) {
			_cleanup_free_ struct pairs_value *x = NULL;

			if (s->arms[a].hypothesis != h->row.id)
				continue;
			if ((rc = screen_values(l, s, e)) < 0)
				return rc;
			x = xcalloc(l->n_values + 1, sizeof *x);
			h->screen_mean = pairs_logs(x, pairs_of_values(l->values, l->n_values, x),
						    s->arms[0].id, s->arms[a].id,
						    l->r->recipe->better, NULL)
						 .effect.est;
			for (size_t k = 0; k < l->n_values; k++)
				h->screen_runs += l->values[k].arm == s->arms[a].id;
		}
	}
	return 0;
}

/* Rows of one metric. */
static struct report_pairs effect_of(const struct mean_row *v, size_t n, const struct stage_row *s)
{
	_cleanup_free_ struct pairs_value *x = xcalloc(n, sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = (struct pairs_value){v[i].arm, v[i].block_index, v[i].value};
	return pairs_any(x, n, s->arms[0].id, s->arms[1].id);
}

static size_t same_metric(const struct mean_row *v, size_t n)
{
	size_t k = 0;

	while (k < n && str_eq(v[k].metric, v[0].metric))
		k++;
	return k;
}

static double sum_of(const struct mean_row *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i].value;
	return sum;
}

int load_effects(struct loader *l, const struct stage_row *s, struct report_effects *out,
		 struct err *e)
{
	struct mean_row *v = NULL;
	size_t n = 0, cap = 0;
	int rc = query_stage_means(l->db, s->id, &v, &n, e);

	for (size_t i = 0, k; rc == 0 && i < n; i += k) {
		struct report_pairs p;

		k = same_metric(v + i, n - i);
		if (str_eq(v[i].metric, "trial_wall_s"))
			out->trial_s = sum_of(v + i, k);
		if (str_eq(v[i].metric, "trial_gpu_hours"))
			out->gpu_hours = sum_of(v + i, k);
		p = effect_of(v + i, k, s);
		if (p.effect.n == 0)
			continue;
		out->v = xgrow(out->v, out->n, &cap, sizeof *out->v);
		out->v[out->n++] = (struct report_effect){xstrdup(v[i].metric), p};
	}
	mean_rows_free(v, n);
	return rc;
}

void load_effects_done(struct report_effects *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->v[i].metric);
	free(x->v);
}

/* Copies: the verdict rows of one hypothesis with texts of their own. */
static void load_looks(struct loader *l, struct report_hypothesis *h)
{
	size_t cap = 0;

	for (size_t i = 0; i < l->n_verdicts; i++) {
		struct verdict_row *v;

		if (l->verdicts[i].hypothesis != h->row.id)
			continue;
		h->looks = xgrow(h->looks, h->n_looks, &cap, sizeof *h->looks);
		v = &h->looks[h->n_looks++];
		*v = l->verdicts[i];
		v->outcome = xstrdup(v->outcome);
		v->reason = xstrdup(v->reason);
		v->inputs_hash = xstrdup(v->inputs_hash);
	}
	if (h->n_looks && h->looks[h->n_looks - 1].final_look) {
		h->has_verdict = true;
		h->verdict = h->looks[h->n_looks - 1]; /* borrows its texts from looks */
	}
}

/* The stage of its newest look, and what its treatment arm showed there. */
static int load_judge(struct loader *l, struct report_hypothesis *h, struct err *e)
{
	for (size_t i = 0; h->n_looks && i < l->n_stages; i++) {
		const struct stage_row *s = &l->stages[i];

		if (s->id != h->looks[h->n_looks - 1].stage)
			continue;
		h->stage = (int)i;
		for (size_t a = 1; a < s->n_arms; a++)
			if (s->arms[a].hypothesis == h->row.id)
				return load_proofs(l, s->arms[a].id, h, e);
	}
	return 0;
}

int load_hypotheses(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	struct hypothesis_row *rows = NULL;
	size_t n = 0;
	int rc = query_hypotheses(l->db, r->campaign.id, &rows, &n, e);

	if (rc < 0)
		return rc;
	if (r->recipe->n_knobs == 0) { /* there is one row, which says that the round was planned */
		hypothesis_rows_free(rows, n);
		return 0;
	}
	r->hyps = xcalloc(n + 1, sizeof *r->hyps);
	for (size_t i = 0; i < n; i++)
		r->hyps[i].row = rows[i]; /* texts move here */
	r->n_hyps = n;
	free(rows);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct report_hypothesis *h = &r->hyps[i];
		const struct stage_row *s = confirm_of(l, h->row.id);

		h->stage = -1;
		load_looks(l, h);
		rc = load_screen(l, h, e);
		if (rc == 0 && s)
			rc = load_effects(l, s, &h->effects, e);
		if (rc == 0)
			rc = load_judge(l, h, e);
	}
	return rc;
}
