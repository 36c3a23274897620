/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The index for programs: fettle.index/1. REPORT.md has the keys. */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/json_report.h"
#include "orchestrator/report/overview.h"

static void set_page(const struct overview *s, const struct overview_campaign *c,
		     struct json *pages, const char *extension)
{
	_cleanup_free_ char *path = overview_path(s, c, extension);

	json_set_text(pages, extension, path);
}

static struct json *pages_of(const struct overview *s, const struct overview_campaign *c)
{
	struct json *o = json_object();

	for (const struct report_format *const *f = report_format_table; !c->problem && *f; f++)
		set_page(s, c, o, (*f)->extension);
	return o;
}

static struct json *campaign(const struct overview *s, const struct overview_campaign *c)
{
	struct json *o = json_object();
	char when[32];

	clock_iso(c->created_us, when, sizeof when);
	json_report_text(o, "workspace", s->workspaces[c->workspace].path);
	json_set_i64(o, "campaign", c->id);
	json_report_text(o, "name", c->name);
	json_report_text(o, "question", c->question);
	json_report_text(o, "workload", c->workload);
	json_set_text(o, "state", campaign_state_name(c->state));
	json_report_text(o, "reason", c->reason);
	json_set_text(o, "mode", run_mode_name(c->mode));
	json_report_text(o, "scheduler", c->scheduler);
	json_set_text(o, "created_utc", when);
	json_report_text(o, "bottleneck", c->bottleneck);
	json_set_text(o, "result", overview_result_name(c->result));
	json_report_text(o, "outcome", c->outcome);
	json_report_text(o, "changes", c->changes);
	json_set_number(o, "est", c->est);
	json_set_number(o, "lo", c->lo);
	json_set_number(o, "hi", c->hi);
	json_set_number(o, "noise", c->noise);
	json_set_number(o, "runs", c->runs < 0 ? NAN : (double)c->runs);
	json_set_number(o, "node_hours", c->node_hours);
	json_set_number(o, "gpu_hours", c->gpu_hours);
	json_set(o, "pages", pages_of(s, c));
	json_report_text(o, "problem", c->problem);
	return o;
}

static struct json *workspace(const struct overview_workspace *w)
{
	_cleanup_free_ char *nights = w->series ? overview_nights_path(w) : NULL;
	struct json *o = json_object();

	json_report_text(o, "workspace", w->path);
	json_set_i64(o, "campaigns", (int64_t)w->campaigns);
	json_set_i64(o, "series", (int64_t)w->series);
	json_set_i64(o, "regressions", (int64_t)w->regressions);
	json_report_text(o, "nights", nights);
	return o;
}

struct json *overview_json(const struct overview *s)
{
	struct json *o = json_object(), *workspaces = json_array(), *campaigns = json_array();

	json_set_text(o, "format", "fettle.index/1");
	for (size_t i = 0; i < s->n_workspaces; i++)
		json_add(workspaces, workspace(&s->workspaces[i]));
	for (size_t i = 0; i < s->n_campaigns; i++)
		json_add(campaigns, campaign(s, &s->campaigns[i]));
	json_set(o, "workspaces", workspaces);
	json_set(o, "campaigns", campaigns);
	return o;
}
