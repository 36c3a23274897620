/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/cmd/simulate.h"

/* A member of the truth as a table of its own, made if it is not there. Members that the user
 * wrote win over ours. */
struct tables {
	struct json *acks, *maps, *metrics, *effects, *hand_over;
};

static struct json *copy_or_new(const struct json *truth, const char *name)
{
	const struct json *have = json_get(truth, name);

	return have ? json_copy(have) : json_object();
}

/* The text that only arms with this value hold (sched/fake_truth.h). */
static char *text_of(const struct knob *k, const char *value)
{
	if (k->how == HOW_ENV)
		return k->subkey ? xasprintf("%s:%s", k->subkey, value)
				 : xasprintf("%s=%s", k->target, value);
	if (k->flag)
		return xstrdup(k->target);
	return str_ends(k->target, "=") ? xasprintf("%s%s", k->target, value)
					: xasprintf("%s %s", k->target, value);
}

static void want_stat(struct tables *t, const char *metric, const char *stat)
{
	const struct json *have = json_get(t->hand_over, metric);
	struct json *list = have ? json_copy(have) : json_array();

	for (const struct json *j = json_first(list); j; j = json_next(j))
		if (str_eq(json_text(j, ""), stat)) {
			json_free(list);
			return;
		}
	json_add_text(list, stat);
	json_set(t->hand_over, metric, list);
}

/* A sampled metric as proof: 10 in every arm, twice or half of it where the setting is. */
static void prove_by_metric(struct tables *t, const struct knob *k, const char *text)
{
	struct json *moved = copy_or_new(t->effects, text);

	want_stat(t, k->proof.metric, "mean");
	if (!json_get(t->metrics, k->proof.metric))
		json_set_number(t->metrics, k->proof.metric, 10);
	if (!json_get(moved, k->proof.metric))
		json_set_number(moved, k->proof.metric,
				str_eq(k->proof.metric_expect, "down") ? 5 : 20);
	json_set(t->effects, text, moved);
}

/* Settings take effect unless the truth says "undelivered": each shows the proof that it needs. */
static void prove(struct tables *t, const struct knob *k, const char *value)
{
	_cleanup_free_ char *text = text_of(k, value);

	if ((k->proof.fact || k->proof.log_pattern) && !json_get(t->acks, text))
		json_set_text(t->acks, text, k->name);
	if (k->proof.maps && !json_get(t->maps, text)) {
		_cleanup_free_ char *path = xasprintf("/usr/lib/%s", k->proof.maps);

		json_set_text(t->maps, text, path);
	}
	if (k->proof.metric)
		prove_by_metric(t, k, text);
}

static char *assemble(const struct recipe *r, struct json *truth)
{
	struct tables t = {copy_or_new(truth, "acks"), copy_or_new(truth, "maps"),
			   copy_or_new(truth, "metrics"), copy_or_new(truth, "metric_effects"),
			   copy_or_new(truth, "hand_over")};

	want_stat(&t, r->objective, r->objective_stat);
	for (size_t i = 0; i < r->n_guards; i++)
		want_stat(&t, r->guards[i].metric, r->guards[i].stat);
	for (size_t i = 0; i < r->n_knobs; i++)
		for (size_t j = 0; j < r->knobs[i].values.n; j++)
			prove(&t, &r->knobs[i], r->knobs[i].values.v[j]);
	json_set(truth, "acks", t.acks);
	json_set(truth, "maps", t.maps);
	json_set(truth, "metrics", t.metrics);
	json_set(truth, "metric_effects", t.effects);
	json_set(truth, "hand_over", t.hand_over);
	json_set_bool(truth, "in_memory", true);
	json_set_bool(truth, "by_job", true);
	if (r->blocks_per_allocation > 1 && !json_get(truth, "blocks_at_most"))
		json_set_i64(truth, "blocks_at_most", 0);
	return json_print(truth, false);
}

char *simulate_spec(const struct recipe *r, const char *truth, struct err *e)
{
	const char *text = truth && *truth ? truth : "{}";
	_cleanup_(json_freep) struct json *j = NULL;

	if (json_parse("truth", text, strlen(text), &j, e) < 0)
		return NULL;
	if (json_type(j) != JSON_OBJECT) {
		(void)err_set(e, ERR_PARSE, "truth: expected an object");
		return NULL;
	}
	return assemble(r, j);
}
