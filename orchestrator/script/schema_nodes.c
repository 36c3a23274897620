/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `samplers` and `agent`: what is sampled beside a trial, and how the agent comes to
 * the nodes. */
#include "orchestrator/script/schema.h"

#include <stddef.h>

#include "orchestrator/base/address.h"

#define IN(type, member) offsetof(struct type, member)

static int read_address(const struct reader *r, const struct json *v, const char *path, void *out,
			struct err *e)
{
	char **text = out;
	int rc = reader_text(r, v, path, text, e);
	const char *fault = rc ? NULL : address_fault(*text);

	return fault ? reader_fault(r, path, e,
				    "\"%.200s\": %s; expected one like "
				    "\"http://localhost:9400/metrics\"",
				    *text, fault)
		     : rc;
}

static const struct field samplers_fields[] = {
	{.name = "period_ms",
	 .type = FIELD_INT64,
	 .min = 10,
	 .max = 3600000,
	 .offset = IN(samplers, period_ms),
	 .unit = "ms",
	 .dflt = "200",
	 .doc = "time between two samples"},
	{.name = "every_node",
	 .type = FIELD_BOOL,
	 .offset = IN(samplers, every_node),
	 .dflt = "`true`",
	 .doc = "samples and evidence of all nodes of an allocation (one job step beside the "
		"trials, `srun --overlap`); `false`: of the first one only, and what only other "
		"nodes show is not proved"},
	{.name = "dcgm_exporter",
	 .type = FIELD_CUSTOM,
	 .kind = "text",
	 .read = read_address,
	 .offset = IN(samplers, dcgm_exporter),
	 .dflt = "none",
	 .doc = "the dcgm-exporter of each node, asked once a second; host `localhost` or an IPv4 "
		"address",
	 .example = "\"http://localhost:9400/metrics\""},
	{0},
};
const struct schema schema_samplers = {"samplers", samplers_fields};

static const struct field agent_fields[] = {
	{.name = "sbcast",
	 .type = FIELD_BOOL,
	 .offset = IN(agent_options, sbcast),
	 .dflt = "`false`",
	 .doc = "each node of a job gets its own copy of fettle-agent first (`sbcast`), from one in "
		"the workspace: where nodes do not see the installed one, or should not read it "
		"over the network"},
	{.name = "dir",
	 .type = FIELD_TEXT,
	 .offset = IN(agent_options, dir),
	 .dflt = "`\"/tmp\"`",
	 .doc = "where that copy is put: a directory of each node's own"},
	{0},
};
const struct schema schema_agent = {"agent", agent_fields};
