/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The experiments of a campaign as one table, a row each; REPORT.md has the columns. */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

static const char
	head[] = "campaign,name,stage,round,rank,knob,from,to,class,bottleneck,predicted_pct,"
		 "ceiling_pct,screen_pct,screen_runs,state,outcome,reason,effect_pct,lo_pct,"
		 "hi_pct,pairs,runs,node_hours,gpu_hours,proof,proof_shown,guards\n";

/* What a row holds; texts NULL and numbers NaN or negative: an empty field. */
struct row {
	const char *stage, *knob, *from, *to, *class, *bottleneck, *state, *outcome, *reason,
		*proof, *shown, *guards;
	int round, rank, pairs;
	int64_t screen_runs, runs;
	double predicted, ceiling, screen, est, lo, hi, node_s;
};

static const struct row empty = {.round = -1,
				 .rank = -1,
				 .pairs = -1,
				 .screen_runs = -1,
				 .runs = -1,
				 .predicted = NAN,
				 .ceiling = NAN,
				 .screen = NAN,
				 .est = NAN,
				 .lo = NAN,
				 .hi = NAN,
				 .node_s = NAN};

static void put_text(struct buf *b, const char *s)
{
	buf_char(b, ',');
	if (s)
		text_csv(b, s);
}

static void put_count(struct buf *b, int64_t n)
{
	buf_char(b, ',');
	if (n >= 0)
		buf_printf(b, "%lld", (long long)n);
}

/* With so many digits that no more than a rounded text is lost. */
static void put_number(struct buf *b, double v)
{
	buf_char(b, ',');
	if (isfinite(v))
		buf_printf(b, "%.6g", v);
}

static void put_row(const struct report *r, const struct row *w, struct buf *b)
{
	double gpus = report_gpus_per_node(r);

	buf_printf(b, "%lld", (long long)r->campaign.id);
	put_text(b, r->campaign.name);
	put_text(b, w->stage);
	put_count(b, w->round);
	put_count(b, w->rank);
	put_text(b, w->knob);
	put_text(b, w->from);
	put_text(b, w->to);
	put_text(b, w->class);
	put_text(b, w->bottleneck);
	put_number(b, 100 * w->predicted);
	put_number(b, 100 * w->ceiling);
	put_number(b, 100 * w->screen);
	put_count(b, w->screen_runs);
	put_text(b, w->state);
	put_text(b, w->outcome);
	put_text(b, w->reason);
	put_number(b, 100 * w->est);
	put_number(b, 100 * w->lo);
	put_number(b, 100 * w->hi);
	put_count(b, w->pairs);
	put_count(b, w->runs);
	put_number(b, w->node_s / 3600);
	put_number(b, gpus > 0 ? w->node_s / 3600 * gpus : NAN);
	put_text(b, w->proof);
	put_text(b, w->shown);
	put_text(b, w->guards);
	buf_char(b, '\n');
}

static int64_t runs_of(const struct report_stage *s)
{
	int64_t n = 0;

	for (size_t i = 0; s && i < s->n_arms; i++)
		n += (int64_t)s->arms[i].n;
	return n;
}

static const struct report_stage *stage_of(const struct report *r, enum stage_kind k)
{
	for (size_t i = r->n_stages; i-- > 0;)
		if (r->stages[i].kind == k)
			return &r->stages[i];
	return NULL;
}

static void put_baseline(const struct report *r, struct buf *b)
{
	const struct report_stage *s = stage_of(r, STAGE_AA);
	struct row w = empty;

	if (!s)
		return;
	w.stage = stage_kind_name(STAGE_AA);
	w.state = s->open ? "open" : "done";
	w.est = r->aa_effect;
	w.lo = r->aa_lo;
	w.hi = r->aa_hi;
	w.pairs = s->blocks_valid;
	w.runs = runs_of(s);
	put_row(r, &w, b);
}

/* "loss (last): violated; step_time_ms (p99): passed". */
static char *guards_text(const struct guard_row *v, size_t n, int64_t verdict, int64_t stage)
{
	struct buf b = {0};

	for (size_t i = 0; i < n; i++)
		if (v[i].verdict == verdict && v[i].stage == stage)
			buf_printf(&b, "%s%s (%s): %s", b.len ? "; " : "", v[i].metric, v[i].stat,
				   v[i].state);
	return buf_take(&b);
}

static char *proofs_text(const struct report_hypothesis *h)
{
	struct buf b = {0};

	for (size_t i = 0; i < h->n_proofs; i++)
		buf_printf(&b, "%s%s: %s = %s", b.len ? "; " : "",
			   proof_level_name(h->proofs[i].level), h->proofs[i].key,
			   h->proofs[i].value);
	return buf_take(&b);
}

static void judge(const struct report_hypothesis *h, struct row *w)
{
	const struct verdict_row *v = &h->looks[h->n_looks - 1];

	w->outcome = h->has_verdict ? v->outcome : "open";
	if (v->reason)
		w->reason = v->reason;
	if (v->n > 0) {
		w->est = v->est;
		w->lo = v->lo;
		w->hi = v->hi;
	}
	w->pairs = v->n;
}

static void put_hypothesis(const struct report *r, const struct report_hypothesis *h, struct buf *b)
{
	const struct report_stage *s = h->stage >= 0 ? &r->stages[h->stage] : NULL;
	_cleanup_free_ char *shown = proofs_text(h), *guards = NULL;
	int nodes = r->recipe->resources.nodes;
	struct row w = empty;

	w.stage = s ? stage_kind_name(s->kind) : h->screen_runs ? "screen" : NULL;
	w.round = h->row.round;
	w.rank = h->row.rank;
	w.knob = h->row.knob;
	w.from = h->row.from_value;
	w.to = h->row.value;
	w.class = knob_class_name(h->row.cls);
	w.bottleneck = bottleneck_name(h->row.bottleneck);
	w.predicted = h->row.gain;
	w.ceiling = h->row.ceiling;
	w.screen = h->screen_mean;
	w.screen_runs = (int64_t)h->screen_runs;
	w.state = hypothesis_state_name(h->row.state);
	w.reason = h->row.reason;
	w.proof = proof_level_name(h->row.proof);
	w.shown = shown;
	if (s && s->kind == STAGE_CONFIRM) {
		w.runs = runs_of(s);
		w.node_s = h->effects.trial_s * (nodes > 0 ? nodes : 1);
	}
	if (h->n_looks) {
		judge(h, &w);
		guards = guards_text(r->guards, r->n_guards, h->looks[h->n_looks - 1].id, 0);
		w.guards = guards;
	}
	put_row(r, &w, b);
}

/* What the fix loses without one of its changes. */
static void put_ablation(const struct report *r, const struct ablation_row *a, struct buf *b)
{
	struct row w = empty;

	w.stage = stage_kind_name(STAGE_ABLATE);
	w.knob = a->knobs;
	w.outcome = ablation_outcome_name(a->outcome);
	w.reason = a->reason;
	w.est = a->est;
	w.lo = a->lo;
	w.hi = a->hi;
	w.pairs = a->n;
	put_row(r, &w, b);
}

static void put_fix(const struct report *r, struct buf *b)
{
	const struct report_stage *s = stage_of(r, STAGE_FINAL);
	_cleanup_free_ char *settings = config_text(&r->fix_config), *guards = NULL;
	struct row w = empty;

	w.stage = stage_kind_name(STAGE_FINAL);
	w.to = settings;
	w.outcome = r->fix.state;
	w.reason = r->fix.reason;
	w.est = r->fix.est;
	w.lo = r->fix.lo;
	w.hi = r->fix.hi;
	w.pairs = r->fix.n;
	w.runs = runs_of(s);
	guards = guards_text(r->fix_guards, r->n_fix_guards, 0, s ? s->id : -1);
	w.guards = guards;
	put_row(r, &w, b);
}

static int write_csv(const struct report *r, struct buf *b, struct err *e)
{
	(void)e;
	buf_str(b, head);
	put_baseline(r, b);
	for (size_t i = 0; i < r->n_hyps; i++)
		put_hypothesis(r, &r->hyps[i], b);
	for (size_t i = 0; i < r->n_ablations; i++)
		put_ablation(r, &r->ablations[i], b);
	if (r->has_fix)
		put_fix(r, b);
	return 0;
}

const struct report_format format_csv = {.name = "csv",
					 .extension = "csv",
					 .summary = "the experiments as a table, a row each",
					 .write = write_csv};
