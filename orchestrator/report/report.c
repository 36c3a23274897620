/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/design.h"
#include "experiments/stats.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/objectives.h"
#include "orchestrator/report/sizes.h"

const struct report_format *report_format_find(const char *name)
{
	for (const struct report_format *const *f = report_format_table; *f; f++)
		if (str_eq((*f)->name, name))
			return *f;
	return NULL;
}

/* -- freeing ---------------------------------------------------------------------------------- */

static void stage_done(struct report_stage *s)
{
	for (size_t i = 0; i < s->n_arms; i++) {
		free(s->arms[i].label);
		free(s->arms[i].config_text);
		free(s->arms[i].values);
	}
	free(s->arms);
	free(s->note);
	strv_free(&s->dirs);
}

static void hypothesis_done(struct report_hypothesis *h)
{
	for (size_t i = 0; i < h->n_effects; i++)
		free(h->effects[i].metric);
	free(h->effects);
	shown_rows_free(h->proofs, h->n_proofs);
	verdict_rows_free(h->looks, h->n_looks);
}

void report_free(struct report *r)
{
	struct hypothesis_row *rows;

	if (!r)
		return;
	for (size_t i = 0; i < r->n_stages; i++)
		stage_done(&r->stages[i]);
	rows = xcalloc(r->n_hyps + 1, sizeof *rows);
	for (size_t i = 0; i < r->n_hyps; i++) {
		rows[i] = r->hyps[i].row;
		hypothesis_done(&r->hyps[i]);
	}
	hypothesis_rows_free(rows, r->n_hyps);
	for (size_t i = 0; i < r->n_profiles; i++)
		free(r->profiles[i].config_text);
	free(r->profiles);
	report_objectives_done(r);
	report_sizes_done(r);
	report_canaries_done(r);
	free(r->stages);
	free(r->hyps);
	finding_rows_free(r->findings, r->n_findings);
	signal_rows_free(r->signals, r->n_signals);
	fault_rows_free(r->faults, r->n_faults);
	event_rows_free(r->events, r->n_events);
	guard_rows_free(r->guards, r->n_guards);
	guard_rows_free(r->fix_guards, r->n_fix_guards);
	quality_rows_free(r->quality, r->n_quality);
	source_rows_free(r->sources, r->n_sources);
	kvs_free(&r->effective);
	ablation_rows_free(r->ablations, r->n_ablations);
	free(r->rungs);
	node_rows_free(r->nodes, r->n_nodes);
	run_rows_free(r->runs, r->n_runs);
	account_rows_free(r->account, r->n_account);
	consumed_row_done(&r->consumed);
	host_rows_free(r->hosts, r->n_hosts);
	if (r->has_fix) {
		fix_row_done(&r->fix);
		config_done(&r->fix_config);
	}
	campaign_row_done(&r->campaign);
	free(r->workspace);
	free(r->unit);
	free(r);
}

/* -- loading ---------------------------------------------------------------------------------- */

struct loader {
	struct db *db;
	struct report *r;
	struct stage_row *stages;
	size_t n_stages;
	struct verdict_row *verdicts;
	size_t n_verdicts;
	/* The values of the screen that was asked for last: each of its hypotheses asks. */
	int64_t screen;
	struct value_row *values;
	size_t n_values;
};

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
	return rc;
}

static const struct stage_row *stage_of(const struct loader *l, enum stage_kind k)
{
	for (size_t i = l->n_stages; i-- > 0;)
		if (l->stages[i].kind == k)
			return &l->stages[i];
	return NULL;
}

/* Paired log differences of arm 1 and arm 0 by block, + is better. */
static size_t paired(const struct recipe *r, const struct stage_row *s, const struct value_row *v,
		     size_t n, int64_t arm, double *d)
{
	double sign = r->better == BETTER_DOWN ? -1 : 1;
	size_t k = 0;

	for (size_t i = 0; i < n;) {
		double base = 0, treat = 0;
		size_t nb = 0, nt = 0, j = i;

		for (; j < n && v[j].block == v[i].block; j++) {
			if (v[j].state != TRIAL_OK || !(v[j].value > 0))
				continue;
			if (v[j].arm == s->arms[0].id) {
				base += log(v[j].value);
				nb++;
			} else if (v[j].arm == arm) {
				treat += log(v[j].value);
				nt++;
			}
		}
		if (nb && nt)
			d[k++] = sign * (treat / (double)nt - base / (double)nb);
		i = j;
	}
	return k;
}

/* -- what processes showed -------------------------------------------------------------------- */

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

static int load_effective(struct loader *l, int64_t arm, struct err *e)
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

static int load_proofs(struct loader *l, int64_t arm, struct report_hypothesis *h, struct err *e)
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

/* -- baseline --------------------------------------------------------------------------------- */

/* Without an A/A stage the baseline is arm 0 of the first test. */
static int load_plain_baseline(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	const struct stage_row *s = stage_of(l, STAGE_CONFIRM);
	struct value_row *v = NULL;
	size_t n = 0, k = 0;
	double sum = 0;
	int rc;

	if (!s)
		return 0;
	if ((rc = query_stage_values(l->db, s->id, r->recipe->objective, r->recipe->objective_stat,
				     &v, &n, e)) < 0)
		return rc;
	for (size_t i = 0; i < n; i++)
		if (v[i].arm == s->arms[0].id && v[i].state == TRIAL_OK && isfinite(v[i].value)) {
			sum += v[i].value;
			k++;
		}
	r->base_mean = k ? sum / (double)k : NAN;
	value_rows_free(v, n);
	if ((rc = load_effective(l, s->arms[0].id, e)) < 0)
		return rc;
	return query_arm_signals(l->db, s->arms[0].id, &r->signals, &r->n_signals, e);
}

static int load_baseline(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	const struct stage_row *s = stage_of(l, STAGE_AA);
	_cleanup_free_ double *d = NULL;
	struct stats_mean_ci ci;
	struct value_row *v = NULL;
	size_t n = 0, k;
	int rc;

	r->base_mean = r->noise = r->aa_effect = r->aa_lo = r->aa_hi = r->final_mean = NAN;
	r->smallest = NAN;
	if (!s)
		return r->recipe->aa_blocks == BLOCKS_NONE ? load_plain_baseline(l, e) : 0;
	if ((rc = query_stage_values(l->db, s->id, r->recipe->objective, r->recipe->objective_stat,
				     &v, &n, e)) < 0)
		return rc;
	d = xcalloc(n + 1, sizeof *d);
	for (size_t i = k = 0; i < n; i++)
		if (v[i].state == TRIAL_OK && isfinite(v[i].value))
			d[k++] = v[i].value;
	r->base_mean = stats_mean(d, k);
	k = paired(r->recipe, s, v, n, s->arms[1].id, d);
	ci = stats_mean_ci(d, k, 0.95);
	r->noise = ci.sd / sqrt(2);
	r->aa_effect = stats_relative(ci.mean);
	r->aa_lo = stats_relative(ci.lo);
	r->aa_hi = stats_relative(ci.hi);
	if (r->noise > 0 && r->campaign.confirm_max > 0) {
		size_t stages = (size_t)r->campaign.confirm_max;

		r->smallest = design_mde(r->campaign.mode,
					 r->campaign.alpha * alpha_share(stages, 1), r->noise, 1,
					 0);
	}
	value_rows_free(v, n);
	if ((rc = load_effective(l, s->arms[0].id, e)) < 0)
		return rc;
	return query_arm_signals(l->db, s->arms[0].id, &r->signals, &r->n_signals, e);
}

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
			_cleanup_free_ double *d = NULL;
			size_t n;

			if (s->arms[a].hypothesis != h->row.id)
				continue;
			if ((rc = screen_values(l, s, e)) < 0)
				return rc;
			d = xcalloc(l->n_values + 1, sizeof *d);
			n = paired(l->r->recipe, s, l->values, l->n_values, s->arms[a].id, d);
			h->screen_mean = stats_relative(stats_mean(d, n));
			for (size_t k = 0; k < l->n_values; k++)
				h->screen_runs += l->values[k].arm == s->arms[a].id;
		}
	}
	return 0;
}

static double relative_change(double from, double to)
{
	if (from == to)
		return 0;
	return from != 0 ? to / from - 1 : NAN;
}

/* The other metrics of the confirm stage: means of both arms. */
static int load_effects(struct loader *l, const struct stage_row *s, struct report_hypothesis *h,
			struct err *e)
{
	struct signal_row *base = NULL, *treat = NULL;
	size_t nb = 0, nt = 0, cap = 0;
	int rc;

	if ((rc = query_arm_signals(l->db, s->arms[0].id, &base, &nb, e)) == 0)
		rc = query_arm_signals(l->db, s->arms[1].id, &treat, &nt, e);
	for (size_t i = 0; rc == 0 && i < nb; i++) {
		const struct signal_row *t = signal_rows_find(treat, nt, base[i].metric);

		if (!str_eq(base[i].stat, "mean") || !t)
			continue;
		h->effects = xgrow(h->effects, h->n_effects, &cap, sizeof *h->effects);
		h->effects[h->n_effects++] = (struct report_effect){
			.metric = xstrdup(base[i].metric),
			.base = base[i].mean,
			.treatment = t->mean,
			.change = relative_change(base[i].mean, t->mean)};
		if (str_eq(base[i].metric, "trial_wall_s"))
			h->trial_s += base[i].mean * (double)base[i].n + t->mean * (double)t->n;
	}
	signal_rows_free(base, nb);
	signal_rows_free(treat, nt);
	return rc;
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

static int load_hypotheses(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	struct hypothesis_row *rows = NULL;
	size_t n = 0;
	int rc = query_hypotheses(l->db, r->campaign.id, &rows, &n, e);

	if (rc < 0)
		return rc;
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
			rc = load_effects(l, s, h, e);
		if (rc == 0)
			rc = load_judge(l, h, e);
	}
	return rc;
}

static int load_stages(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	int rc = query_stages(l->db, r->campaign.id, &l->stages, &l->n_stages, e);

	r->stages = xcalloc(l->n_stages + 1, sizeof *r->stages);
	for (size_t i = 0; rc == 0 && i < l->n_stages; i++, r->n_stages++)
		rc = load_stage(l, &l->stages[i], &r->stages[i], e);
	return rc;
}

static int load_fix(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	int rc = query_fix_get(l->db, r->campaign.id, &r->fix, &r->has_fix, e);

	if (rc < 0 || !r->has_fix)
		return rc;
	return query_config_get(l->db, r->fix.config, &r->fix_config, e);
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

static int load_profiles(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	int rc = 0;

	r->profiles = xcalloc(r->n_stages + 1, sizeof *r->profiles);
	for (size_t i = 0; rc == 0 && i < r->n_stages; i++) {
		struct report_profile *p = &r->profiles[r->n_profiles];
		struct signal_row *v = NULL;
		size_t n = 0;

		if (r->stages[i].kind != STAGE_PROFILE || r->stages[i].n_arms == 0)
			continue;
		rc = query_arm_signals(l->db, l->stages[i].arms[0].id, &v, &n, e);
		if (rc == 0 && split(v, n, p->part)) {
			p->round = r->stages[i].round;
			p->config_text = xstrdup(r->stages[i].arms[0].config_text);
			r->n_profiles++;
		}
		signal_rows_free(v, n);
	}
	return rc;
}

/* The account of alpha is never stored: it is replayed from the verdicts, in order. */
static void load_alpha(struct loader *l)
{
	struct report *r = l->r;

	r->alpha = alpha_ledger_init(r->campaign.alpha, r->campaign.confirm_max > 0
								? (size_t)r->campaign.confirm_max
								: 1);
	for (size_t k = 0; k < l->n_verdicts; k++) {
		const struct verdict_row *v = &l->verdicts[k];
		enum verdict_outcome o;

		for (size_t i = 0; v->final_look && i < r->n_stages; i++)
			if (r->stages[i].id == v->stage && r->stages[i].kind == STAGE_CONFIRM &&
			    verdict_outcome_parse(v->outcome, &o))
				(void)alpha_ledger_settle(&r->alpha, o, (size_t)v->look);
	}
}

/* Means of an arm (-1: of both of an A/A stage) over the trials of each allocation, in order of
 * their appearance: what is independent. */
static struct stats_mean_ci allocation_means(const struct stage_row *s, const struct value_row *v,
					     size_t n, int arm)
{
	_cleanup_free_ double *x = xcalloc(n + 1, sizeof *x), *means = xcalloc(n + 1, sizeof *x);
	_cleanup_free_ size_t *unit = xcalloc(n + 1, sizeof *unit);
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].state != TRIAL_OK || !isfinite(v[i].value) ||
		    (arm >= 0 && v[i].arm != s->arms[arm].id))
			continue;
		x[k] = v[i].value;
		unit[k++] = (size_t)v[i].allocation;
	}
	return stats_mean_ci(means, stats_unit_means(x, unit, k, means), 0.95);
}

static int load_target(struct loader *l, struct err *e)
{
	const struct stage_row *final = stage_of(l, STAGE_FINAL);
	const struct stage_row *s = final ? final : stage_of(l, STAGE_AA);
	struct stats_mean_ci ci;
	struct value_row *v = NULL;
	size_t n = 0;
	int rc;

	l->r->target_lo = l->r->target_hi = NAN;
	if (!s || s->n_arms < 2)
		return 0;
	rc = query_stage_values(l->db, s->id, l->r->recipe->objective, l->r->recipe->objective_stat,
				&v, &n, e);
	if (rc < 0)
		return rc;
	ci = allocation_means(s, v, n, final ? 1 : -1);
	l->r->target_lo = ci.lo;
	l->r->target_hi = ci.hi;
	value_rows_free(v, n);
	return 0;
}

static void judge_target(struct report *r)
{
	double best, sign = r->recipe->better == BETTER_DOWN ? -1 : 1;

	for (size_t i = 0; i < r->n_stages; i++)
		if (r->stages[i].kind == STAGE_FINAL && r->stages[i].n_arms > 1)
			r->final_mean = r->stages[i].arms[1].mean;
	best = isfinite(r->final_mean) ? r->final_mean : r->base_mean;
	if (!isfinite(r->recipe->target))
		r->target = TARGET_NONE;
	else if (isfinite(best) && sign * (r->target_lo - r->recipe->target) >= 0 &&
		 sign * (r->target_hi - r->recipe->target) >= 0)
		r->target = TARGET_MET;
	else if (isfinite(best) && sign * (r->target_lo - r->recipe->target) < 0 &&
		 sign * (r->target_hi - r->recipe->target) < 0)
		r->target = TARGET_MISSED;
	else
		r->target = TARGET_OPEN;
}

int report_load(struct db *db, int64_t campaign, const struct recipe *recipe, const char *workspace,
		struct report **out, struct err *e)
{
	struct report *r = xcalloc(1, sizeof *r);
	const struct metric_def *def = metric_def_find(recipe->objective);
	struct loader l = {.db = db, .r = r};
	int rc;

	r->recipe = recipe;
	r->workspace = xstrdup(workspace);
	r->unit = xstrdup(def ? def->unit : "");
	if ((rc = query_campaign_get(db, campaign, &r->campaign, e)) == 0 &&
	    (rc = query_verdicts(db, campaign, &l.verdicts, &l.n_verdicts, e)) == 0 &&
	    (rc = load_stages(&l, e)) == 0 && (rc = load_baseline(&l, e)) == 0 &&
	    (rc = load_hypotheses(&l, e)) == 0 && (rc = load_fix(&l, e)) == 0 &&
	    (rc = query_findings(db, campaign, &r->findings, &r->n_findings, e)) == 0 &&
	    (rc = query_faults(db, campaign, &r->faults, &r->n_faults, e)) == 0 &&
	    (rc = query_events(db, campaign, &r->events, &r->n_events, e)) == 0 &&
	    (rc = query_guards(db, campaign, &r->guards, &r->n_guards, e)) == 0 &&
	    (rc = query_fix_guards(db, campaign, &r->fix_guards, &r->n_fix_guards, e)) == 0 &&
	    (rc = query_quality(db, campaign, &r->quality, &r->n_quality, e)) == 0)
		rc = query_cost(db, campaign, &r->cost, e);
	if (rc == 0 && (rc = load_target(&l, e)) == 0 &&
	    (rc = query_rungs(db, campaign, &r->rungs, &r->n_rungs, e)) == 0 &&
	    (rc = query_ablations(db, campaign, &r->ablations, &r->n_ablations, e)) == 0)
		rc = query_nodes(db, campaign, &r->nodes, &r->n_nodes, e);
	if (rc == 0)
		rc = query_runs(db, campaign, &r->runs, &r->n_runs, e);
	if (rc == 0)
		rc = query_account(db, campaign, &r->account, &r->n_account, e);
	if (rc == 0)
		rc = query_consumed(db, campaign, &r->consumed, e);
	if (rc == 0)
		rc = query_hosts(db, campaign, &r->hosts, &r->n_hosts, e);
	if (rc == 0)
		rc = query_campaign_sources(db, campaign, &r->sources, &r->n_sources, e);
	if (rc == 0)
		rc = report_objectives_load(db, r, l.stages, l.n_stages, e);
	if (rc == 0)
		rc = load_profiles(&l, e);
	if (rc == 0)
		rc = report_sizes_load(db, r, l.stages, l.n_stages, e);
	if (rc == 0)
		rc = report_canaries_load(db, r, e);
	if (rc == 0)
		load_alpha(&l);
	value_rows_free(l.values, l.n_values);
	stage_rows_free(l.stages, l.n_stages);
	verdict_rows_free(l.verdicts, l.n_verdicts);
	if (rc < 0) {
		report_free(r);
		return rc;
	}
	judge_target(r);
	*out = r;
	return 0;
}
