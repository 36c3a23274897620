/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/overview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/recommend.h"

static void campaign_done(struct overview_campaign *c)
{
	free(c->name);
	free(c->question);
	free(c->workload);
	free(c->reason);
	free(c->scheduler);
	free(c->bottleneck);
	free(c->problem);
	free(c->outcome);
	free(c->changes);
}

void overview_done(struct overview *s)
{
	for (size_t i = 0; i < s->n_workspaces; i++) {
		free(s->workspaces[i].name);
		free(s->workspaces[i].path);
		free(s->workspaces[i].url);
		free(s->workspaces[i].folder);
	}
	for (size_t i = 0; i < s->n_campaigns; i++)
		campaign_done(&s->campaigns[i]);
	free(s->workspaces);
	free(s->campaigns);
	*s = (struct overview){0};
}

size_t overview_add_workspace(struct overview *s, const struct overview_workspace *w)
{
	s->workspaces = xgrow(s->workspaces, s->n_workspaces, &s->cap_workspaces, sizeof *w);
	s->workspaces[s->n_workspaces] = *w;
	return s->n_workspaces++;
}

const char *overview_result_name(enum overview_result r)
{
	switch (r) {
	case OVERVIEW_UNKNOWN:
		return "unknown";
	case OVERVIEW_OPEN:
		return "open";
	case OVERVIEW_DEFAULT:
		return "default";
	case OVERVIEW_FIX:
		return "fix";
	case OVERVIEW_TEST:
		return "test";
	case OVERVIEW_LADDER:
		return "ladder";
	case OVERVIEW_CANARY:
		return "canary";
	}
	return "";
}

static struct overview_campaign *add(struct overview *s, const struct campaign_row *c)
{
	struct overview_campaign *out;

	s->campaigns = xgrow(s->campaigns, s->n_campaigns, &s->cap_campaigns, sizeof *out);
	out = &s->campaigns[s->n_campaigns++];
	*out = (struct overview_campaign){.workspace = s->n_workspaces - 1,
					  .id = c->id,
					  .created_us = c->created_us,
					  .name = xstrdup(c->name),
					  .reason = xstrdup(c->reason),
					  .scheduler = xstrdup(c->scheduler),
					  .state = c->state,
					  .mode = c->mode,
					  .est = NAN,
					  .lo = NAN,
					  .hi = NAN,
					  .noise = NAN,
					  .runs = -1,
					  .node_hours = NAN,
					  .gpu_hours = NAN};
	s->workspaces[out->workspace].campaigns++;
	return out;
}

void overview_add_problem(struct overview *s, const struct campaign_row *c, const char *problem)
{
	add(s, c)->problem = xstrdup(problem);
}

/* -- what came out ---------------------------------------------------------------------------- */

static void of_fix(const struct report *r, struct overview_campaign *c)
{
	bool confirmed = recommend_confirmed(r);

	c->result = OVERVIEW_FIX;
	c->outcome = xstrdup(r->fix.state);
	c->changes = config_text(&r->fix_config);
	c->judge = confirmed ? 1 : str_starts(r->fix.state, "rejected") ? -1 : 0;
	c->est = r->fix.est;
	c->lo = r->fix.lo;
	c->hi = r->fix.hi;
}

/* Where no final stage was asked for: what was accepted, else what moved most. */
static void of_test(const struct report *r, struct overview_campaign *c)
{
	_cleanup_free_ size_t *order = xcalloc(r->n_hyps + 1, sizeof *order);
	const struct report_hypothesis *h;
	enum verdict_outcome o;

	if (report_ranking(r, order) == 0)
		return;
	h = &r->hyps[order[0]];
	c->result = OVERVIEW_TEST;
	c->changes = report_bundle(r, &h->row);
	if (!c->changes)
		c->changes = xasprintf("%s=%s", h->row.knob, h->row.value);
	c->outcome = xstrdup(h->verdict.outcome);
	if (verdict_outcome_parse(h->verdict.outcome, &o))
		c->judge = o == VERDICT_ACCEPTED                        ? 1
			   : str_starts(h->verdict.outcome, "rejected") ? -1
									: 0;
	c->est = h->verdict.est;
	c->lo = h->verdict.lo;
	c->hi = h->verdict.hi;
}

static void of_ladder(const struct report *r, struct overview_campaign *c)
{
	c->result = OVERVIEW_LADDER;
	c->count = 0;
	c->of = r->n_rungs;
	for (size_t i = 0; i < r->n_rungs; i++)
		c->count += r->rungs[i].held;
}

static void outcome(const struct report *r, struct overview_campaign *c)
{
	c->result = r->campaign.state == CAMPAIGN_DONE ? OVERVIEW_DEFAULT : OVERVIEW_OPEN;
	for (size_t i = 0; i < r->n_hyps; i++)
		c->count += r->hyps[i].has_verdict;
	if (r->recipe->canary.blocks) {
		c->result = OVERVIEW_CANARY;
		c->count = r->n_canaries;
	} else if (r->recipe->ladder.n) {
		of_ladder(r, c);
	} else if (r->has_fix) {
		of_fix(r, c);
	} else if (r->recipe->final_blocks == BLOCKS_NONE) {
		of_test(r, c);
	}
}

void overview_add(struct overview *s, const struct report *r)
{
	struct overview_campaign *c = add(s, &r->campaign);
	int gpus = r->recipe->resources.gpus_per_node;

	c->question = xstrdup(r->recipe->question);
	c->workload = xstrdup(r->recipe->workload.name);
	for (size_t i = 0; i < r->n_findings && !c->bottleneck; i++)
		if (!report_finding_is_open(&r->findings[i]))
			c->bottleneck = xstrdup(r->findings[i].bottleneck);
	outcome(r, c);
	c->noise = r->noise;
	c->runs = r->cost.trials_timed;
	c->node_hours = r->cost.node_s / 3600;
	if (gpus > 0)
		c->gpu_hours = c->node_hours * gpus;
}

/* -- order and names -------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	const struct overview_campaign *x = a, *y = b;

	if (x->created_us != y->created_us)
		return x->created_us < y->created_us ? 1 : -1;
	if (x->workspace != y->workspace)
		return x->workspace < y->workspace ? -1 : 1;
	return x->id < y->id ? 1 : -1;
}

void overview_sort(struct overview *s)
{
	if (s->n_campaigns)
		qsort(s->campaigns, s->n_campaigns, sizeof *s->campaigns, newest_first);
}

char *overview_path(const struct overview *s, const struct overview_campaign *c,
		    const char *extension)
{
	return xasprintf("%s/campaign-%lld.%s", s->workspaces[c->workspace].folder,
			 (long long)c->id, extension);
}

char *overview_nights_path(const struct overview_workspace *w)
{
	return xasprintf("%s/nights.html", w->folder);
}
