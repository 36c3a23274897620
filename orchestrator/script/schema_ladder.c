/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `ladder` of a campaign file. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/schema.h"

enum {
	RUNGS_MAX = 64, /* doubling from one rank reaches any machine long before */
	NODES_MAX = 100000,
	TASKS_MAX = 4096, /* of a node: more than it has hardware threads */
};

static const struct field rung_fields[] = {
	{.name = "nodes",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = NODES_MAX,
	 .offset = offsetof(struct rung, nodes),
	 .dflt = "1",
	 .doc = "nodes of the allocation that it runs in"},
	{.name = "tasks_per_node",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = TASKS_MAX,
	 .offset = offsetof(struct rung, tasks_per_node),
	 .dflt = "1",
	 .doc = "ranks on each of them"},
	{.name = NULL},
};
const struct schema schema_rung = {"rung", rung_fields};

static int check_above(const struct reader *r, const struct rung *g, const char *path,
		       struct err *e)
{
	if (rung_tasks(&g[0]) > rung_tasks(&g[-1]))
		return 0;
	return reader_fault(r, path, e,
			    "has %d ranks and the rung below %d: each rung must have more than the "
			    "one before",
			    rung_tasks(&g[0]), rung_tasks(&g[-1]));
}

static int read_rungs(const struct reader *r, const struct json *v, const char *path, void *out,
		      struct err *e)
{
	struct ladder *l = out;
	size_t n = json_type(v) == JSON_ARRAY ? json_len(v) : 0;
	int rc = 0;

	if (n < 2 || n > RUNGS_MAX)
		return reader_expected(
			r, v, path,
			"a list of 2 to 64 rungs, e.g. { { nodes = 1 }, { nodes = 2 } }", e);
	l->rungs = xcalloc(n, sizeof *l->rungs);
	for (l->n = 0; l->n < n && rc == 0; l->n++) {
		_cleanup_free_ char *at = xasprintf("%s[%zu]", path, l->n + 1);
		struct rung *g = &l->rungs[l->n];

		*g = (struct rung){1, 1};
		rc = reader_table(r, &schema_rung, json_at(v, l->n), at, g, e);
		if (rc == 0 && l->n > 0)
			rc = check_above(r, g, at, e);
	}
	return rc;
}

static const struct field ladder_fields[] = {
	{.name = "rungs",
	 .type = FIELD_CUSTOM,
	 .required = true,
	 .read = read_rungs,
	 .kind = "list of [rungs](#rung)",
	 .offset = 0,
	 .doc = "from the fewest ranks to the most; each is compared with the one before, on the "
		"nodes of the larger one",
	 .example =
		 "{ { nodes = 1 }, { nodes = 1, tasks_per_node = 8 }, { nodes = 2, tasks_per_node "
		 "= 8 } }"},
	{.name = "blocks",
	 .type = FIELD_INT,
	 .min = 2,
	 .max = 100000,
	 .offset = offsetof(struct ladder, blocks),
	 .dflt = "quick 3, standard 4, long 6, strict 8",
	 .doc = "pairs of runs a rung"},
	{.name = "max_loss",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1,
	 .above = true,
	 .offset = offsetof(struct ladder, max_loss),
	 .unit = "share",
	 .dflt = "0.10",
	 .doc = "of efficiency from one rung to the next: a rung that loses more is the last, and "
		"its bottleneck is named"},
	{.name = NULL},
};
const struct schema schema_ladder = {"ladder", ladder_fields};

/* Ranks that nothing starts would be one process on every rung. */
static bool can_vary(const struct recipe *x)
{
	static const char *const words[] = {"{nodes}", "{tasks}", "{tasks_per_node}"};
	const struct strv *command = &x->workload.command;

	if (x->resources.launcher && !str_eq(x->resources.launcher, "exec"))
		return true;
	for (size_t i = 0; i < command->n; i++)
		for (size_t k = 0; k < ARRAY_LEN(words); k++)
			if (strstr(command->v[i], words[k]))
				return true;
	return false;
}

int schema_check_ladder(const struct reader *r, const struct recipe *x, struct err *e)
{
	if (!x->ladder.n)
		return 0;
	if (x->n_knobs)
		return reader_fault(r, "knobs", e,
				    "a ladder measures how one configuration scales: tune it in a "
				    "campaign of its own, at the number of nodes that matters");
	if (x->better != BETTER_UP)
		return reader_fault(r, "objective", e,
				    "a ladder needs the throughput of all ranks together, which is "
				    "better up; \"%s\" is not",
				    x->objective);
	if (!can_vary(x))
		return reader_fault(
			r, "ladder", e,
			"nothing starts more ranks on a higher rung: resources.launcher "
			"= \"srun\" or the like, or {tasks_per_node} and {nodes} in the "
			"command, e.g. \"--nproc-per-node={tasks_per_node}\"");
	return 0;
}
