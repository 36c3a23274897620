/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `budget`: what a campaign may cost, and when and how much at a time it may run. */
#include "orchestrator/script/schema.h"

#define IN(type, member) offsetof(struct type, member)
#define END                  \
	{                    \
		.name = NULL \
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
