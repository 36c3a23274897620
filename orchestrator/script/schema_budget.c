/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `budget`: what a campaign may cost, and when and how much at a time it may run. */
#include "orchestrator/script/schema.h"

#include <stdlib.h>

#include "orchestrator/base/hours.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"

#define IN(type, member) offsetof(struct type, member)
#define END                  \
	{                    \
		.name = NULL \
	}

static int check_hours(const struct reader *r, const char *path, const char *text, struct err *e)
{
	struct hours h;
	struct err why = {0};

	return hours_parse(text, &h, &why) < 0 ? reader_fault(r, path, e, "%s", why.text) : 0;
}

/* One text, or a list of them. */
int schema_read_window(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e)
{
	struct strv list = {0};
	int rc = 0;

	if (json_type(v) == JSON_STRING)
		strv_add(&list, json_text(v, ""));
	else
		rc = reader_texts(r, v, path, &list, e);
	for (size_t i = 0; rc == 0 && i < list.n; i++) {
		_cleanup_free_ char *item = json_type(v) == JSON_STRING
						    ? xstrdup(path)
						    : fieldpath_item(path, i + 1);

		rc = check_hours(r, item, list.v[i], e);
	}
	if (rc < 0) {
		strv_free(&list);
		return rc;
	}
	strv_free(out);
	*(struct strv *)out = list;
	return 0;
}

static int read_deadline(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e)
{
	struct err why = {0};
	char **to = out;
	int64_t at;

	if (json_type(v) != JSON_STRING)
		return reader_expected(r, v, path, "a time like \"2026-12-01 06:00 Europe/Berlin\"",
				       e);
	if (hours_moment(json_text(v, ""), &at, &why) < 0)
		return reader_fault(r, path, e, "%s", why.text);
	free(*to);
	*to = xstrdup(json_text(v, ""));
	return 0;
}

#define COUNT(member, dflt_text, text)                                       \
	{                                                                    \
		.name = #member, .type = FIELD_INT, .min = 1, .max = 1e6,    \
		.offset = IN(budget, member), .dflt = dflt_text, .doc = text \
	}

static const struct field budget_fields[] = {
	{.name = "minutes",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e7,
	 .above = true,
	 .scale = 60,
	 .offset = IN(budget, wall_s),
	 .unit = "min",
	 .dflt = "no bound",
	 .doc = "running time of the campaign"},
	{.name = "node_hours",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e9,
	 .above = true,
	 .offset = IN(budget, node_hours),
	 .unit = "node hours",
	 .dflt = "no bound",
	 .doc = "what allocations may cost"},
	{.name = "trials",
	 .type = FIELD_INT64,
	 .min = 1,
	 .max = 1e9,
	 .offset = IN(budget, trials),
	 .unit = "trials",
	 .dflt = "no bound",
	 .doc = "runs of the workload"},
	{.name = "gpu_hours",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e9,
	 .above = true,
	 .offset = IN(budget, gpu_hours),
	 .unit = "GPU hours",
	 .dflt = "no bound",
	 .doc = "what allocations may cost, by `resources.gpus_per_node`"},
	{.name = "gpu_hour_price",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e6,
	 .above = true,
	 .offset = IN(budget, gpu_hour_price),
	 .unit = "of your own",
	 .dflt = "not told",
	 .doc = "what an hour of a GPU costs (a site tells it for all): trials and reports then say "
		"what they cost",
	 .example = "2.5"},
	{.name = "deadline",
	 .type = FIELD_CUSTOM,
	 .read = read_deadline,
	 .kind = "time",
	 .offset = IN(budget, deadline),
	 .dflt = "none",
	 .doc = "nothing is started after it; a zone may follow",
	 .example = "\"2026-12-01 06:00 Europe/Berlin\""},
	{.name = "window",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_window,
	 .kind = "hours, or list of hours",
	 .offset = IN(budget, window),
	 .dflt = "always",
	 .doc = "when blocks may run, days and zone may be added; a block that cannot end in time is "
		"not started",
	 .example = "\"Mon-Fri 22:00-06:00 Europe/Berlin\""},
	COUNT(jobs, "one a usable node, and some that wait", "most jobs in flight"),
	COUNT(nodes, "no bound", "most nodes that jobs in flight have together"),
	COUNT(idle_nodes, "0",
	      "a job is submitted only while so many nodes of the partition are idle"),
	{.name = "stuck_min",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e6,
	 .above = true,
	 .scale = 60,
	 .offset = IN(budget, stuck_s),
	 .unit = "min",
	 .dflt = "60",
	 .doc = "a job that waits so long to be released, or for nodes that are down, drained or "
		"reserved, is given up, and the campaign stops"},
	END,
};
const struct schema schema_budget = {"budget", budget_fields};
