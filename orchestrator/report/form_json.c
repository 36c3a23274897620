/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All of the fix for programs: fettle.recommend/1, see REPORT.md. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/json_report.h"
#include "orchestrator/report/recommend.h"

extern const struct recommend_form form_json;

static struct json *pairs(const struct kvs *k)
{
	struct json *o = json_object();

	for (size_t i = 0; i < k->n; i++)
		json_report_text(o, k->v[i].key, k->v[i].value);
	return o;
}

static struct json *resources(const struct resources *s)
{
	struct json *o = json_object();

	json_set_i64(o, "nodes", s->nodes);
	json_set_i64(o, "tasks_per_node", s->tasks_per_node);
	json_set_i64(o, "cpus_per_task", s->cpus_per_task);
	json_set_i64(o, "gpus_per_node", s->gpus_per_node);
	json_set_i64(o, "mem_mib_per_node", s->mem_mib_per_node);
	json_report_text(o, "partition", s->partition);
	json_report_text(o, "account", s->account);
	json_report_text(o, "qos", s->qos);
	json_report_text(o, "reservation", s->reservation);
	json_report_text(o, "constraint", s->constraint);
	json_report_text(o, "nodelist", s->nodelist);
	json_report_text(o, "exclude", s->exclude);
	for (const struct job_option *k = job_option_table; k->key; k++) {
		_cleanup_free_ char *value = job_option_value(&s->options, k);

		if (value)
			json_report_text(o, k->key, value);
	}
	return o;
}

static void effect(const struct report *r, struct json *o)
{
	char when[32];

	clock_iso(r->fix.at_us, when, sizeof when);
	json_report_text(o, "state", r->fix.state);
	json_report_text(o, "reason", r->fix.reason);
	json_set_bool(o, "confirmed", recommend_confirmed(r));
	json_set_bool(o, "pending_convergence", recommend_pending(r));
	json_report_text(o, "objective", r->recipe->objective);
	json_report_text(o, "unit", r->unit);
	json_set_number(o, "est", r->fix.est);
	json_set_number(o, "lo", r->fix.lo);
	json_set_number(o, "hi", r->fix.hi);
	json_set_i64(o, "pairs", r->fix.n);
	json_set_text(o, "at_utc", when);
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL,
			    *file = configfile_text(r->recipe, &r->fix_config.settings);
	struct strv launch = {0}, shown = {0};
	struct json *print = NULL;

	(void)left; /* it holds all */
	(void)e;
	json_set_text(o, "format", "fettle.recommend/1");
	json_set_i64(o, "campaign", r->campaign.id);
	json_report_text(o, "name", r->campaign.name);
	effect(r, o);
	json_set(o, "settings", pairs(&r->fix_config.settings));
	json_set(o, "env", pairs(&r->fix_config.env));
	for (size_t i = 0; i < r->fix_config.argv.n; i++) {
		_cleanup_free_ char *token = recommend_token(r, r->fix_config.argv.v[i]);

		strv_add(&shown, token);
	}
	json_report_texts(o, "command", &shown);
	strv_free(&shown);
	if (file)
		json_report_text(o, "config", file);
	recommend_launch(r, true, &launch);
	json_report_texts(o, "launch", &launch);
	json_report_text(o, "workdir", r->recipe->workload.workdir);
	json_set(o, "resources", resources(&r->recipe->resources));
	if (r->fix.fingerprint && json_parse("fingerprint", r->fix.fingerprint,
					     strlen(r->fix.fingerprint), &print, NULL) == 0)
		json_set(o, "fingerprint", print);
	else
		json_set_text(o, "fingerprint", NULL);
	text = json_print(o, true);
	buf_printf(out, "%s\n", text);
	strv_free(&launch);
	return 0;
}

const struct recommend_form form_json = {
	.name = "json", .summary = "all of it for programs (fettle.recommend/1)", .write = write};
