/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 2, hypothesis: rules over the signals name the bottleneck; each knob's own rule says what a
 * value could gain and why. What is not worth a trial is kept with the reason.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/design.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"
#include "orchestrator/script/lint.h"

/* Rank of a hypothesis without a predicted gain: below any prediction of 2 % and more. */
#define GAIN_UNKNOWN 0.02

struct plan {
	struct campaign *c;
	int round;
	struct config incumbent;
	struct signal *signals;
	size_t n_signals;
	struct signal_row *rows;
	size_t n_rows;
	struct hypothesis_row *hyps;
	size_t n, cap;
	struct lint_finding *lint; /* about the values, beside what was accepted */
	size_t n_lint;
};

/* "metric" for means, "metric.p95" for the other statistics that rules look at. */
static void name_signals(struct plan *p)
{
	size_t cap = 0;

	for (size_t i = 0; i < p->n_rows; i++) {
		const struct signal_row *r = &p->rows[i];
		bool mean = str_eq(r->stat, "mean");

		if (!mean && !str_eq(r->stat, "p95") && !str_eq(r->stat, "max") &&
		    !str_eq(r->stat, "min"))
			continue;
		p->signals = xgrow(p->signals, p->n_signals, &cap, sizeof *p->signals);
		p->signals[p->n_signals++] = (struct signal){
			.name = mean ? xstrdup(r->metric) : xasprintf("%s.%s", r->metric, r->stat),
			.value = r->mean};
	}
}

static void add_signal(struct plan *p, const char *name, double value)
{
	/* name_signals() grew the array by its own count: one more is asked for here. */
	p->signals = xrealloc(p->signals, p->n_signals + 1, sizeof *p->signals);
	p->signals[p->n_signals++] = (struct signal){.name = xstrdup(name), .value = value};
}

/* What a trial runs on, for rules and knobs: only what is asked for or seen, never a guess. A
 * torchrun in the command starts ranks that no resource asks for: so many were seen (0: none). */
static void add_facts(struct plan *p, int seen)
{
	const struct resources *r = &p->c->resources;
	int nodes = r->nodes ? r->nodes : 1, ranks = seen ? seen / nodes : r->tasks_per_node;
	long here = sysconf(_SC_NPROCESSORS_ONLN);

	add_signal(p, "nodes", nodes);
	if (ranks)
		add_signal(p, "ranks_per_node", ranks);
	if (r->gpus_per_node)
		add_signal(p, "gpus_per_node", r->gpus_per_node);
	if (r->cpus_per_task)
		add_signal(p, "ncpu",
			   (double)r->cpus_per_task * (r->tasks_per_node ? r->tasks_per_node : 1));
	else if (str_eq(p->c->row.scheduler, "local") && here > 0)
		add_signal(p, "ncpu", (double)here);
}

static bool has_signal(const struct plan *p, const struct signal_row *r)
{
	for (size_t i = 0; i < p->n_rows; i++)
		if (str_eq(p->rows[i].metric, r->metric) && str_eq(p->rows[i].stat, r->stat))
			return true;
	return false;
}

/* Behind those of timed trials what the trial under a profiler showed: it was slowed by it, so that
 * what both measured counts as the timed ones have it. */
static int add_profile(struct plan *p, struct err *e)
{
	const struct stage_row *s = facts_stage(&p->c->facts, STAGE_PROFILE, p->round);
	struct signal_row *rows = NULL;
	struct profile_price price;
	size_t n = 0;
	int rc = s ? query_profile_signals(p->c->ws->db, s->arms[0].id, &rows, &n, &price, e) : 0;

	if (rc < 0 || n == 0)
		return rc;
	p->rows = xrealloc(p->rows, p->n_rows + n, sizeof *p->rows);
	for (size_t i = 0, had = p->n_rows; i < n; i++) {
		struct plan before = {.rows = p->rows, .n_rows = had};

		if (has_signal(&before, &rows[i])) {
			free(rows[i].metric);
			free(rows[i].stat);
		} else {
			p->rows[p->n_rows++] = rows[i];
		}
	}
	free(rows);
	return 0;
}

/* Signals of the incumbent: the A/A stage's, or those of the arm that was accepted last. */
static int load_signals(struct plan *p, struct err *e)
{
	const struct facts *f = &p->c->facts;
	const struct stage_row *s = facts_last_accepted(f);
	int64_t arm;
	int rc, seen = 0;

	if (!s && !(s = facts_stage(f, STAGE_LADDER, p->round)) &&
	    !(s = facts_stage(f, STAGE_AA, 0))) { /* a campaign without a baseline stage */
		add_facts(p, 0);
		return 0;
	}
	arm = s->arms[s->kind == STAGE_AA ? 0 : 1].id;
	rc = query_arm_signals(p->c->ws->db, arm, &p->rows, &p->n_rows, e);
	if (rc == 0)
		rc = query_arm_ranks(p->c->ws->db, arm, &seen, e);
	if (rc == 0)
		rc = add_profile(p, e);
	if (rc == 0) {
		name_signals(p);
		add_facts(p, seen);
	}
	return rc;
}

static const char *current_value(const struct plan *p, const struct knob *k)
{
	const char *v = kvs_get(&p->incumbent.settings, k->name);

	return v ? v : k->default_value;
}

static bool requirement_met(const struct plan *p, const struct knob *k)
{
	const struct knob *other = k->requires_knob ? recipe_knob(p->c->recipe, k->requires_knob)
						    : NULL;
	const char *v = other ? current_value(p, other) : NULL;

	if (!k->requires_knob)
		return true;
	if (!other) /* the workload has it, with a value that will not do */
		return false;
	for (size_t i = 0; i < k->requires_values.n; i++)
		if (str_eq(v, k->requires_values.v[i]))
			return true;
	return false;
}

static const char *tested_before(const struct plan *p, const struct knob *k, const char *value)
{
	const struct facts *f = &p->c->facts;

	for (size_t i = 0; i < f->n_hyps; i++)
		if (f->hyps[i].state == HYP_TESTED && str_eq(f->hyps[i].knob, k->name) &&
		    str_eq(f->hyps[i].value, value)) {
			const struct verdict_row *v = facts_verdict(f, f->hyps[i].id);

			return v ? v->outcome : "tested";
		}
	return NULL;
}

static void judge(struct plan *p, const struct knob *k, const struct expectation *x,
		  struct hypothesis_row *h, const char *lint)
{
	const char *before = tested_before(p, k, h->value);

	if (lint) {
		h->state = HYP_LINTED_OUT;
		h->reason = xstrdup(lint);
	} else if (!requirement_met(p, k)) {
		const struct knob *other = recipe_knob(p->c->recipe, k->requires_knob);
		const char *now = other ? current_value(p, other) : "as it is";

		h->state = HYP_LINTED_OUT;
		h->reason = xasprintf("has no meaning while %s is %s", k->requires_knob,
				      now ? now : "not set");
	} else if (before) {
		h->state = HYP_NOT_TRIED;
		h->reason = xasprintf("tested in an earlier round: %s", before);
	} else if (!x->worth_trying) {
		h->state = HYP_NOT_TRIED;
		h->reason = xstrdup(x->why ? x->why : "its rule expects nothing here");
	}
}

/* What the rules of lint have against this value beside what was accepted; heap, NULL: nothing. */
static char *refused(const struct plan *p, const struct knob *k, const char *value)
{
	const struct lint_finding *f;

	if (p->incumbent.settings.n == 0)
		return xstrdup(knob_refused(k, value));
	f = lint_refusal(p->lint, p->n_lint, k->name, value);
	return f ? lint_text(f) : NULL;
}

static int add_value(struct plan *p, const struct knob *k, const char *value, struct err *e)
{
	struct script_signals signals = {p->signals, p->n_signals};
	const char *current = current_value(p, k);
	struct expectation x = {0};
	struct hypothesis_row *h;
	char *lint = NULL;
	int rc;

	if (str_eq(current, value))
		return 0;
	if ((rc = script_expect(&p->c->sources, k, value, current, &signals, &x, e)) < 0 ||
	    (rc = script_lint(&p->c->sources, k, value, &signals, &lint, e)) < 0) {
		expectation_done(&x);
		return rc;
	}
	p->hyps = xgrow(p->hyps, p->n, &p->cap, sizeof *p->hyps);
	h = &p->hyps[p->n++];
	*h = (struct hypothesis_row){.campaign = p->c->row.id,
				     .round = p->round,
				     .knob = xstrdup(k->name),
				     .value = xstrdup(value),
				     .from_value = xstrdup(current),
				     .cls = k->cls,
				     .proof = k->proof.level,
				     .user_defined = k->user_defined,
				     .bottleneck = x.bottleneck,
				     .evidence = xstrdup(x.why),
				     .gain = x.gain,
				     .ceiling = x.ceiling,
				     .state = HYP_PROPOSED};
	if (!lint)
		lint = refused(p, k, value);
	judge(p, k, &x, h, lint);
	free(lint);
	expectation_done(&x);
	return 0;
}

static int compare_gain(const void *a, const void *b)
{
	const struct hypothesis_row *x = a, *y = b;
	double gx = isfinite(x->gain) ? x->gain : GAIN_UNKNOWN,
	       gy = isfinite(y->gain) ? y->gain : GAIN_UNKNOWN;
	bool px = x->state == HYP_PROPOSED, py = y->state == HYP_PROPOSED;

	if (px != py)
		return px ? -1 : 1;
	if (gx != gy)
		return gx > gy ? -1 : 1;
	return x->rank - y->rank; /* the recipe's own order */
}

static void rank(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		p->hyps[i].rank = (int)i;
	qsort(p->hyps, p->n, sizeof *p->hyps, compare_gain);
	for (size_t i = 0; i < p->n; i++) {
		p->hyps[i].rank = (int)i + 1;
		if (i >= DESIGN_MAX_ARMS - 1 && p->hyps[i].state == HYP_PROPOSED) {
			p->hyps[i].state = HYP_NOT_TRIED;
			p->hyps[i].reason = xasprintf("more than %d candidates",
						      DESIGN_MAX_ARMS - 1);
		}
	}
}

static int store_finding(struct plan *p, enum bottleneck b, double share, const char *rule,
			 const char *evidence, struct err *e)
{
	struct finding_row row = {.round = p->round,
				  .bottleneck = xstrdup(bottleneck_name(b)),
				  .evidence = xstrdup(evidence),
				  .rule = xstrdup(rule),
				  .share = share};
	int rc = query_finding_add(p->c->ws->db, p->c->row.id, &row, e);

	free(row.bottleneck);
	free(row.evidence);
	free(row.rule);
	return rc;
}

/* One row a branch: what splits a finding belongs to its evidence. */
static int store_findings(struct plan *p, const struct diagnosis *d, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < d->n_found && rc == 0; i++) {
		const struct finding *f = &d->found[i];
		struct buf text = {0};

		if (f->under)
			continue;
		buf_str(&text, f->evidence);
		for (size_t k = i + 1; k < d->n_found && d->found[k].under; k++)
			buf_printf(&text, "; %s", d->found[k].evidence);
		rc = store_finding(p, f->bottleneck, f->share, f->rule, text.data, e);
		buf_free(&text);
	}
	return rc;
}

/* Branches that stay open, as rows without a bottleneck. */
static int store_open(struct plan *p, const struct diagnosis *d, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < d->n_open && rc == 0; i++) {
		const struct open_branch *o = &d->open[i];
		_cleanup_free_ char *text = xasprintf("open: %s Not measured: %s", o->asks,
						      o->missing);

		rc = store_finding(p, BOTTLENECK_UNKNOWN, NAN, o->rule, text, e);
	}
	return rc;
}

static int store(struct plan *p, const struct diagnosis *d, struct err *e)
{
	struct db *db = p->c->ws->db;
	int64_t id;
	int rc = db_begin(db, "hypotheses", e);

	if (rc == 0)
		rc = store_findings(p, d, e);
	if (rc == 0)
		rc = store_open(p, d, e);
	for (size_t i = 0; rc == 0 && i < p->n; i++)
		rc = query_hypothesis_add(db, &p->hyps[i], &id, e);
	if (rc == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	return rc;
}

static void tell(struct plan *p, const struct diagnosis *d)
{
	size_t proposed = 0;

	for (size_t i = 0; i < p->n; i++)
		proposed += p->hyps[i].state == HYP_PROPOSED;
	if (p->c->recipe->aa_blocks == BLOCKS_NONE)
		campaign_tell(p->c, PROGRESS_STEP, 2,
			      "hypothesis: as the recipe has it, no baseline was asked for");
	else if (d->n_found)
		campaign_tell(p->c, PROGRESS_STEP, 2, "hypothesis: %s: %s",
			      bottleneck_name(d->found[0].bottleneck), d->found[0].evidence);
	else
		campaign_tell(p->c, PROGRESS_STEP, 2, "hypothesis: no rule names a bottleneck");
	campaign_tell(p->c, PROGRESS_STAGE, 2, "%zu candidate%s to try, %zu left out", proposed,
		      proposed == 1 ? "" : "s", p->n - proposed);
}

static void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		free((char *)p->signals[i].name);
	free(p->signals);
	signal_rows_free(p->rows, p->n_rows);
	hypothesis_rows_free(p->hyps, p->n);
	lint_findings_free(p->lint, p->n_lint);
	config_done(&p->incumbent);
}

/* A round whose hypotheses are all refuted on paper still leaves rows: the state machine sees that
 * the round was planned. A recipe without any other value leaves one that says so. */
static void nothing_to_vary(struct plan *p)
{
	const struct knob *k = p->c->recipe->n_knobs ? &p->c->recipe->knobs[0] : NULL;

	p->hyps = xgrow(p->hyps, 0, &p->cap, sizeof *p->hyps);
	p->hyps[p->n++] = (struct hypothesis_row){
		.campaign = p->c->row.id,
		.round = p->round,
		.knob = xstrdup(k ? k->name : "none"),
		.value = xstrdup(k && current_value(p, k) ? current_value(p, k) : ""),
		.gain = NAN,
		.ceiling = NAN,
		.proof = k ? k->proof.level : PROOF_DELIVERED,
		.state = HYP_NOT_TRIED,
		.reason = xstrdup(p->c->recipe->ladder.n ? "a ladder measures and tunes nothing"
							 : "no knob has another value to try"),
		.rank = 1};
}

int hypothesis_plan(struct campaign *c, int round, struct err *e)
{
	struct plan p = {.c = c, .round = round};
	struct script_signals signals;
	struct diagnosis d = {0};
	int rc;

	if ((rc = campaign_incumbent(c, &p.incumbent, e)) < 0 || (rc = load_signals(&p, e)) < 0)
		goto out;
	signals = (struct script_signals){p.signals, p.n_signals};
	if (p.incumbent.settings.n > 0 &&
	    (rc = lint_accepted(c->recipe, &c->sources, &p.incumbent.settings, &p.lint, &p.n_lint,
				e)) < 0)
		goto out;
	if ((rc = script_diagnose(&c->sources, &signals, &c->recipe->thresholds, &d, e)) < 0)
		goto out;
	for (size_t i = 0; i < c->recipe->n_knobs; i++)
		for (size_t j = 0; j < c->recipe->knobs[i].values.n; j++)
			if ((rc = add_value(&p, &c->recipe->knobs[i],
					    c->recipe->knobs[i].values.v[j], e)) < 0)
				goto out;
	if (p.n == 0)
		nothing_to_vary(&p);
	rank(&p);
	tell(&p, &d);
	rc = store(&p, &d, e);
out:
	diagnosis_done(&d);
	plan_done(&p);
	return rc;
}
