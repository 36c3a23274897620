/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of a night as a JSON object, "fettle.nightly/1". */
#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/nightly.h"

static void set_known(struct json *j, const char *key, double v)
{
	if (isfinite(v))
		json_set_number(j, key, v);
}

static void set_result(struct json *j, const struct nightly_result *r)
{
	json_set_text(j, "outcome", nightly_outcome_name(r->outcome));
	if (r->said)
		json_set_text(j, "said", r->said);
	json_set_number(j, "node_hours", r->node_s / 3600);
}

static const char *state_word(enum due_state s)
{
	switch (s) {
	case DUE_RUN:
		return "run";
	case DUE_DONE:
		return "done";
	case DUE_NOT_YET:
		return "not_due";
	case DUE_NO_ROOM:
		return "no_room";
	}
	return "";
}

static struct json *item_json(const struct nightly *n, const struct nightly_item *it)
{
	struct json *j = json_object();

	json_set_text(j, "campaign", it->due.name);
	if (it->campaign)
		json_set_i64(j, "id", it->campaign);
	json_set_text(j, "kind", it->due.canary ? "canary" : "sweep");
	json_set_bool(j, "watches_fix", it->watches_fix);
	json_set_text(j, "due", state_word(it->choice.state));
	if (n->o->plan && it->choice.state == DUE_RUN)
		json_set_i64(j, "place", (int64_t)it->choice.place + 1);
	json_set_number(j, "risk", it->choice.risk);
	json_set_number(j, "worth", it->choice.worth);
	json_set_text(j, "why", it->choice.why);
	set_known(j, "expected_gpu_hours", it->due.gpu_hours);
	set_known(j, "expected_node_hours", it->due.node_hours);
	if (!n->o->plan)
		set_result(j, &it->result);
	return j;
}

static struct json *check_json(const struct nightly_check *c)
{
	struct json *j = json_object();

	json_set_i64(j, "id", c->campaign);
	if (c->regression)
		json_set_i64(j, "regression", c->regression);
	json_set_text(j, "about", c->about);
	set_result(j, &c->result);
	return j;
}

static struct json *cause_json(const struct cause_row *c)
{
	struct json *j = json_object();

	json_set_text(j, "kind", cause_kind_name(c->kind));
	json_set_text(j, "key", c->key);
	if (c->was)
		json_set_text(j, "was", c->was);
	if (c->is)
		json_set_text(j, "is", c->is);
	json_set_bool(j, "proved", c->proved);
	return j;
}

static struct json *regression_json(const struct nightly_regression *r)
{
	struct json *j = json_object();

	json_set_i64(j, "regression", r->row.id);
	json_set_text(j, "kind", regression_kind_name(r->row.kind));
	json_set_text(j, "level", change_level_name(r->row.level));
	json_set_text(j, "state", regression_state_name(r->row.state));
	json_set_text(j, "night", r->row.night);
	json_set_i64(j, "series", (int64_t)r->n_changes);
	if (r->worst) {
		json_set_text(j, "workload", r->series.workload);
		json_set_text(j, "place", r->series.place);
		json_set_text(j, "metric", r->series.metric);
		json_set_number(j, "est", r->worst->est);
		set_known(j, "lo", r->worst->lo);
		set_known(j, "hi", r->worst->hi);
	}
	if (r->n_causes)
		json_set(j, "cause", cause_json(&r->causes[0]));
	return j;
}

static void set_arrays(struct nightly *n, struct json *j)
{
	struct json *items = json_array(), *checks = json_array(), *faults = json_array();

	for (size_t i = 0; i < n->n_items; i++)
		json_add(items, item_json(n, &n->items[i]));
	for (size_t i = 0; i < n->n_checks; i++)
		json_add(checks, check_json(&n->checks[i]));
	for (size_t i = 0; i < n->n_recipes; i++)
		if (n->recipes[i].fault)
			json_add_text(faults, n->recipes[i].fault);
	json_set(j, "items", items);
	json_set(j, "checks", checks);
	json_set(j, "bad_recipes", faults);
}

int nightly_json(struct nightly *n, struct buf *out, struct err *e)
{
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *text = NULL;
	struct nightly_regression *v = NULL;
	struct json *regressions = json_array();
	size_t count = 0;
	int rc = nightly_regressions(n, &v, &count, e);

	for (size_t i = 0; rc == 0 && i < count; i++)
		json_add(regressions, regression_json(&v[i]));
	nightly_regressions_free(v, rc < 0 ? 0 : count);
	json_set_text(j, "format", "fettle.nightly/1");
	json_set_text(j, "night", n->night);
	json_set_bool(j, "plan", n->o->plan);
	set_arrays(n, j);
	json_set(j, "regressions", regressions);
	json_set_i64(j, "open_confirmed", n->alarms);
	json_set_number(j, "node_hours", n->spent_node_s / 3600);
	json_set_number(j, "gpu_hours", n->spent_gpu_s / 3600);
	json_set_number(j, "false_wins_year", n->false_wins_year);
	if (!n->o->plan)
		json_set_i64(j, "status", nightly_status(n));
	text = json_print(j, true);
	buf_printf(out, "%s\n", text);
	return rc;
}
