/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/hours.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum { UPPER_RUNG = 1 }; /* an allocation is as large as its largest arm */

void facts_done(struct facts *f)
{
	stage_rows_free(f->stages, f->n_stages);
	hypothesis_rows_free(f->hyps, f->n_hyps);
	verdict_rows_free(f->verdicts, f->n_verdicts);
	ablation_rows_free(f->ablations, f->n_ablations);
	free(f->rungs);
	block_rows_free(f->blocks, f->n_blocks);
	memset(f, 0, sizeof *f);
}

bool facts_block_dropped(const struct block_row *b)
{
	return b->voids >= METHOD_MAX_ATTEMPTS && b->state != ATTEMPT_VALID;
}

static void count_blocks(struct facts *f)
{
	f->in_flight = f->dropped = f->allocations = 0;
	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct block_row *b = &f->blocks[i];

		f->in_flight += b->attempt_id &&
				(b->state == ATTEMPT_PLANNED || b->state == ATTEMPT_SUBMITTED);
		f->dropped += facts_block_dropped(b);
		f->allocations += allocation_leads(f, b);
	}
	f->valid = f->total - f->n_blocks;
}

bool facts_deadline_passed(const struct campaign *c)
{
	const char *deadline = c->recipe->budget.deadline;
	int64_t at;

	return deadline && hours_moment(deadline, &at, NULL) == 0 &&
	       clock_utc_us(c->ws->clock) >= at;
}

/* Which budget is used up, or NULL. */
static const char *used_up(const struct campaign *c)
{
	const struct budget *b = &c->recipe->budget;
	double node_h = (c->node_s - c->row.resume_node_s) / 3600;

	if (facts_deadline_passed(c))
		return "time (its deadline)";
	if (c->row.deadline_us > 0 && clock_utc_us(c->ws->clock) >= c->row.deadline_us)
		return "time";
	if (b->node_hours > 0 && node_h >= b->node_hours)
		return "node hours";
	if (b->gpu_hours > 0 && node_h * c->resources.gpus_per_node >= b->gpu_hours)
		return "GPU hours";
	if (b->trials > 0 && c->trials - c->row.resume_trials >= b->trials)
		return "trials";
	return NULL;
}

static void judge_budget(struct campaign *c)
{
	struct facts *f = &c->facts;

	f->trials = c->trials;
	f->node_s = c->node_s;
	f->budget_text = used_up(c);
	f->over_budget = f->budget_text != NULL;
	f->room = reserve_room(c);
	f->unit = allocation_unit(c);
}

int facts_load_blocks(struct campaign *c, struct err *e)
{
	struct facts *f = &c->facts;
	const struct stage_row *last = f->n_stages ? &f->stages[f->n_stages - 1] : NULL;
	int rc;

	if (last && last->open &&
	    (rc = query_open_blocks(c->ws->db, last->id, &f->blocks, &f->n_blocks, &f->total, e)) <
		    0)
		return rc;
	count_blocks(f);
	judge_budget(c);
	return 0;
}

int facts_load(struct campaign *c, struct err *e)
{
	struct facts *f = &c->facts;
	struct db *db = c->ws->db;
	/* Whoever only reads what is stored has opened none. */
	const struct sched *sched = c->sched ? c->sched : sched_find(c->row.scheduler);
	int rc;

	facts_done(f);
	f->profiles = profile_wanted(c->recipe) && sched && !sched->results && !sched->keep;
	if ((rc = query_stages(db, c->row.id, &f->stages, &f->n_stages, e)) < 0 ||
	    (rc = query_hypotheses(db, c->row.id, &f->hyps, &f->n_hyps, e)) < 0 ||
	    (rc = query_verdicts(db, c->row.id, &f->verdicts, &f->n_verdicts, e)) < 0 ||
	    (rc = query_ablations(db, c->row.id, &f->ablations, &f->n_ablations, e)) < 0 ||
	    (rc = query_rungs(db, c->row.id, &f->rungs, &f->n_rungs, e)) < 0 ||
	    (rc = reserve_load_rates(c, e)) < 0)
		return rc;
	c->resources = ladder_resources(c->recipe, f->n_stages ? &f->stages[f->n_stages - 1] : NULL,
					UPPER_RUNG);
	return facts_load_blocks(c, e);
}

const struct stage_row *facts_stage(const struct facts *f, enum stage_kind k, int round)
{
	for (size_t i = f->n_stages; i-- > 0;)
		if (f->stages[i].kind == k && (round == 0 || f->stages[i].round == round))
			return &f->stages[i];
	return NULL;
}

const struct hypothesis_row *facts_hypothesis(const struct facts *f, int64_t id)
{
	for (size_t i = 0; i < f->n_hyps; i++)
		if (f->hyps[i].id == id)
			return &f->hyps[i];
	return NULL;
}

const struct verdict_row *facts_verdict(const struct facts *f, int64_t hypothesis)
{
	for (size_t i = f->n_verdicts; i-- > 0;)
		if (f->verdicts[i].hypothesis == hypothesis && f->verdicts[i].final_look)
			return &f->verdicts[i];
	return NULL;
}

static bool is_accepted(const struct facts *f, const struct hypothesis_row *h)
{
	const struct verdict_row *v = facts_verdict(f, h->id);

	return v && str_eq(v->outcome, verdict_outcome_name(VERDICT_ACCEPTED));
}

const struct stage_row *facts_last_accepted(const struct facts *f)
{
	for (size_t i = f->n_stages; i-- > 0;) {
		const struct stage_row *s = &f->stages[i];
		const struct verdict_row *v = s->kind == STAGE_CONFIRM
						      ? facts_verdict(f, s->hypothesis)
						      : NULL;

		if (v && str_eq(v->outcome, verdict_outcome_name(VERDICT_ACCEPTED)))
			return s;
	}
	return NULL;
}

size_t facts_changes(const struct facts *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_hyps; i++) {
		bool counts = is_accepted(f, &f->hyps[i]);

		for (size_t j = 0; counts && j < i; j++)
			counts = !str_eq(f->hyps[j].knob, f->hyps[i].knob) ||
				 !is_accepted(f, &f->hyps[j]);
		n += counts;
	}
	return n;
}

const struct arm_row *facts_ablated(const struct facts *f, const struct stage_row *s)
{
	for (size_t i = 0; i < f->n_ablations; i++)
		for (size_t a = 0; a < s->n_arms; a++)
			if (f->ablations[i].arm == s->arms[a].id &&
			    f->ablations[i].outcome == ABLATION_DROPPED)
				return &s->arms[a];
	return NULL;
}

/* The account of alpha is never stored: it is replayed from the verdicts, in order. */
struct alpha_ledger facts_alpha(const struct campaign_row *row, const struct facts *f)
{
	struct alpha_ledger l = alpha_ledger_init(row->alpha, (size_t)row->confirm_max);

	for (size_t i = 0; i < f->n_stages; i++) {
		const struct stage_row *s = &f->stages[i];
		const struct verdict_row *v;
		enum verdict_outcome o;

		if (s->kind != STAGE_CONFIRM || s->open)
			continue;
		v = facts_verdict(f, s->hypothesis);
		if (v && verdict_outcome_parse(v->outcome, &o))
			(void)alpha_ledger_settle(&l, o, (size_t)v->look);
	}
	return l;
}

struct alpha_ledger facts_ledger(const struct campaign *c)
{
	return facts_alpha(&c->row, &c->facts);
}

int campaign_default(struct campaign *c, struct config *out, struct err *e)
{
	const struct kvs none = {0};

	return config_build(c->recipe, &none, out, e);
}

/* An ablate stage leaves one of its own arms, so the fix was measured as it is. */
int campaign_incumbent(struct campaign *c, struct config *out, struct err *e)
{
	const struct stage_row *s = facts_last_accepted(&c->facts);
	const struct stage_row *ablate = facts_stage(&c->facts, STAGE_ABLATE, 0);
	const struct arm_row *arm = NULL;

	if (!s)
		return campaign_default(c, out, e);
	if (ablate && !ablate->open && ablate->seq > s->seq) {
		arm = facts_ablated(&c->facts, ablate);
		return query_config_get(c->ws->db, arm ? arm->config : ablate->arms[0].config, out,
					e);
	}
	return query_config_get(c->ws->db, s->arms[1].config, out, e);
}
