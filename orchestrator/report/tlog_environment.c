/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What it was measured on: the environment, the nodes; what jobs took by the cluster's accounts. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"

double report_energy_per_sample(const struct report *r)
{
	double rate = signal_rows_mean(r->signals, r->n_signals, "throughput_samples_per_s");

	if (r->consumed.jobs == 0 || r->consumed.energy_j < 0 || r->consumed.energy_s <= 0 ||
	    !(rate > 0))
		return NAN;
	return (double)r->consumed.energy_j / (double)r->consumed.energy_s / rate;
}

void tlog_consumed(const struct report *r, struct doc *doc)
{
	const struct consumed_row *c = &r->consumed;
	double sample_j = report_energy_per_sample(r);

	if (c->jobs == 0)
		return;
	doc_para(doc);
	doc_printf(doc, "By the cluster's accounts (%lld of %lld jobs)", (long long)c->jobs,
		   (long long)c->jobs_all);
	if (c->elapsed_s >= 0)
		doc_printf(doc, ": %lld s of jobs", (long long)c->elapsed_s);
	if (c->tres && *c->tres)
		doc_printf(doc, "; one held `%s`", c->tres);
	if (c->maxrss_kib >= 0)
		doc_printf(doc, "; the largest task had %.1f MiB", (double)c->maxrss_kib / 1024);
	if (c->energy_j >= 0 && c->energy_s > 0)
		doc_printf(doc, "; %.4g kJ, %.4g W on average", (double)c->energy_j / 1e3,
			   (double)c->energy_j / (double)c->energy_s);
	if (isfinite(sample_j))
		doc_printf(doc, ", %.4g J a sample at the baseline's rate", sample_j);
	doc_str(doc, ".");
}

static bool is_telling(const struct report *r)
{
	for (size_t i = 0; i < r->n_hosts; i++)
		if (r->hosts[i].switches)
			return true;
	return r->n_hosts > 1;
}

static void ranks(const struct host_row *h, struct doc *doc)
{
	char text[32] = "-";

	if (h->first_rank >= 0 && h->first_rank == h->last_rank)
		snprintf(text, sizeof text, "%d", h->first_rank);
	else if (h->first_rank >= 0)
		snprintf(text, sizeof text, _("%d to %d"), h->first_rank, h->last_rank);
	doc_cell(doc, text);
}

static void hosts(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"node", false},
					      {"allocations", true},
					      {"switches above it", false},
					      {"ranks seen", true},
					      {"its clock less the first node's, ms", true},
					      {"sampler, % of a core", true}};

	if (!is_telling(r))
		return;
	doc_say(doc, "Each node:");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_hosts; i++) {
		const struct host_row *h = &r->hosts[i];

		doc_row(doc);
		doc_cell(doc, h->node);
		doc_cell_i64(doc, h->allocations);
		doc_cell(doc, h->switches ? h->switches : "-");
		ranks(h, doc);
		doc_cell_number(doc, h->clock_ms);
		doc_cell_number(doc, h->sampler_pct);
	}
}

static int seq_of(const struct report *r, int64_t stage)
{
	for (size_t i = 0; i < r->n_stages; i++)
		if (r->stages[i].id == stage)
			return r->stages[i].seq;
	return 0;
}

static void nodes(const struct report *r, struct doc *doc)
{
	int64_t stage = 0;

	if (r->n_nodes == 0)
		return;
	doc_say(doc, "Nodes that each stage used (with the valid blocks on each):");
	for (size_t i = 0; i < r->n_nodes; i++) {
		const struct node_row *n = &r->nodes[i];

		if (n->stage != stage) {
			doc_item(doc);
			doc_printf(doc, "%d, %s: ", seq_of(r, n->stage),
				   lang_word("stage_kind", stage_kind_name(n->kind)));
		} else {
			doc_str(doc, ", ");
		}
		stage = n->stage;
		doc_printf(doc, "%s (%d)", n->node, n->blocks);
	}
}

static void fingerprint(const char *text, struct doc *doc)
{
	static const struct doc_column c[] = {{"environment", false}, {"value", false}};
	_cleanup_(json_freep) struct json *j = NULL;

	if (!text || json_parse("fingerprint", text, strlen(text), &j, NULL) < 0) {
		doc_say(doc, "No agent told what its node is.");
		return;
	}
	doc_table(doc, c, ARRAY_LEN(c));
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		_cleanup_free_ char *value = json_type(m) == JSON_STRING ? xstrdup(json_text(m, ""))
									 : json_print(m, false);

		doc_row(doc);
		doc_cell(doc, json_key(m));
		doc_cell(doc, value);
	}
}

void tlog_environment(const struct report *r, struct doc *doc)
{
	doc_title(doc, 2, "Environment and nodes");
	if (r->has_fix)
		doc_say(doc, "The fix holds for this environment and expires when it changes.");
	fingerprint(r->environment, doc);
	nodes(r, doc);
	hosts(r, doc);
}
