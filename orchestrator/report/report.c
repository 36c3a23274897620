/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/report.h"

#include <stdlib.h>

#include "experiments/archive.h"
#include "experiments/fingerprint.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/load.h"
#include "orchestrator/report/objectives.h"
#include "orchestrator/report/sizes.h"

const struct report_format *report_format_find(const char *name)
{
	if (str_eq(name, "md")) /* as its files are called */
		name = "markdown";
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
	free(s->steps);
	strv_free(&s->dirs);
}

static void hypothesis_done(struct report_hypothesis *h)
{
	load_effects_done(&h->effects);
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
	strv_free(&r->archives);
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
	place_rows_free(r->places, r->n_places);
	account_rows_free(r->account, r->n_account);
	consumed_row_done(&r->consumed);
	host_rows_free(r->hosts, r->n_hosts);
	if (r->has_fix) {
		fix_row_done(&r->fix);
		config_done(&r->fix_config);
	}
	load_effects_done(&r->fix_effects);
	campaign_row_done(&r->campaign);
	strv_free(&r->submitters);
	free(r->environment);
	free(r->workspace);
	free(r->logs);
	free(r->home);
	free(r->unit);
	free(r);
}

/* -- loading ---------------------------------------------------------------------------------- */

static int load_fix(struct loader *l, struct err *e)
{
	const struct stage_row *final = load_stage_of(l, STAGE_FINAL);
	struct report *r = l->r;
	int rc = query_fix_get(l->db, r->campaign.id, &r->fix, &r->has_fix, e);

	if (rc == 0 && final && final->n_arms > 1)
		rc = load_effects(l, final, &r->fix_effects, e);
	if (rc < 0 || !r->has_fix)
		return rc;
	return query_config_get(l->db, r->fix.config, &r->fix_config, e);
}

/* Of the newest stage whose nodes told; of what was measured before nodes did, that of the fix. */
static int load_environment(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	int rc = 0;

	for (size_t i = r->n_stages; rc == 0 && i-- > 0 && !r->environment;)
		rc = fingerprint_of_stage(l->db, r->stages[i].id, &r->environment, e);
	if (rc == 0 && !r->environment && r->has_fix && r->fix.fingerprint)
		r->environment = xstrdup(r->fix.fingerprint);
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

/* What is as the store has it. */
static int load_lists(struct loader *l, struct err *e)
{
	struct report *r = l->r;
	struct db *db = l->db;
	int64_t id = r->campaign.id;
	int rc;

	if ((rc = query_findings(db, id, &r->findings, &r->n_findings, e)) == 0 &&
	    (rc = query_faults(db, id, &r->faults, &r->n_faults, e)) == 0 &&
	    (rc = query_events(db, id, &r->events, &r->n_events, e)) == 0 &&
	    (rc = query_guards(db, id, &r->guards, &r->n_guards, e)) == 0 &&
	    (rc = query_fix_guards(db, id, &r->fix_guards, &r->n_fix_guards, e)) == 0 &&
	    (rc = query_quality(db, id, &r->quality, &r->n_quality, e)) == 0 &&
	    (rc = query_cost(db, id, &r->cost, e)) == 0 &&
	    (rc = query_rungs(db, id, &r->rungs, &r->n_rungs, e)) == 0 &&
	    (rc = query_ablations(db, id, &r->ablations, &r->n_ablations, e)) == 0 &&
	    (rc = query_nodes(db, id, &r->nodes, &r->n_nodes, e)) == 0 &&
	    (rc = query_runs(db, id, &r->runs, &r->n_runs, e)) == 0 &&
	    (rc = query_places(db, id, &r->places, &r->n_places, e)) == 0 &&
	    (rc = query_account(db, id, &r->account, &r->n_account, e)) == 0 &&
	    (rc = query_consumed(db, id, &r->consumed, e)) == 0 &&
	    (rc = query_hosts(db, id, &r->hosts, &r->n_hosts, e)) == 0)
		rc = query_campaign_sources(db, id, &r->sources, &r->n_sources, e);
	return rc;
}

static int load_archives(struct report *r, struct err *e)
{
	struct archives v = {0};
	int rc = archives_load(r->workspace, r->campaign.id, &v, e);

	for (size_t i = 0; i < v.n; i++)
		strv_add(&r->archives, v.v[i].tar);
	archives_free(&v);
	return rc;
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
	    (rc = query_campaign_submitters(db, campaign, &r->submitters, e)) == 0 &&
	    (rc = query_verdicts(db, campaign, &l.verdicts, &l.n_verdicts, e)) == 0 &&
	    (rc = load_stages(&l, e)) == 0 && (rc = load_baseline(&l, e)) == 0 &&
	    (rc = load_hypotheses(&l, e)) == 0 && (rc = load_fix(&l, e)) == 0 &&
	    (rc = load_target(&l, e)) == 0 && (rc = load_profiles(&l, e)) == 0 &&
	    (rc = load_lists(&l, e)) == 0 && (rc = load_environment(&l, e)) == 0 &&
	    (rc = report_objectives_load(db, r, l.stages, l.n_stages, e)) == 0 &&
	    (rc = report_sizes_load(db, r, l.stages, l.n_stages, e)) == 0 &&
	    (rc = report_canaries_load(db, r, e)) == 0 && (rc = load_archives(r, e)) == 0)
		load_alpha(&l);
	value_rows_free(l.values, l.n_values);
	stage_rows_free(l.stages, l.n_stages);
	verdict_rows_free(l.verdicts, l.n_verdicts);
	if (rc < 0) {
		report_free(r);
		return rc;
	}
	*out = r;
	return 0;
}
