/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the cluster says: what jobs took by its accounts, and its nodes. */
#include "orchestrator/report/mdlog.h"

#include <math.h>
#include <stdio.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"

double report_energy_per_sample(const struct report *r)
{
	double rate = signal_rows_mean(r->signals, r->n_signals, "throughput_samples_per_s");

	if (r->consumed.jobs == 0 || r->consumed.energy_j < 0 || r->consumed.energy_s <= 0 ||
	    !(rate > 0))
		return NAN;
	return (double)r->consumed.energy_j / (double)r->consumed.energy_s / rate;
}

void mdlog_consumed(const struct report *r, struct buf *b)
{
	const struct consumed_row *c = &r->consumed;
	double sample_j = report_energy_per_sample(r);

	if (c->jobs == 0)
		return;
	buf_printf(b, "\nBy the cluster's accounts (%lld of %lld jobs)", (long long)c->jobs,
		   (long long)c->jobs_all);
	if (c->elapsed_s >= 0)
		buf_printf(b, ": %lld s of jobs", (long long)c->elapsed_s);
	if (c->tres && *c->tres) {
		buf_str(b, "; one held ");
		md_code(b, c->tres);
	}
	if (c->maxrss_kib >= 0)
		buf_printf(b, "; the largest task had %.1f MiB", (double)c->maxrss_kib / 1024);
	if (c->energy_j >= 0 && c->energy_s > 0)
		buf_printf(b, "; %.4g kJ, %.4g W on average", (double)c->energy_j / 1e3,
			   (double)c->energy_j / (double)c->energy_s);
	if (isfinite(sample_j))
		buf_printf(b, ", %.4g J a sample at the baseline's rate", sample_j);
	buf_str(b, ".\n");
}

static bool is_telling(const struct report *r)
{
	for (size_t i = 0; i < r->n_hosts; i++)
		if (r->hosts[i].switches)
			return true;
	return r->n_hosts > 1;
}

static void ranks(const struct host_row *h, struct buf *b)
{
	char text[32] = "-";

	if (h->first_rank >= 0 && h->first_rank == h->last_rank)
		snprintf(text, sizeof text, "%d", h->first_rank);
	else if (h->first_rank >= 0)
		snprintf(text, sizeof text, "%d to %d", h->first_rank, h->last_rank);
	md_cell(b, text);
}

void mdlog_hosts(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"node", false},
					     {"allocations", true},
					     {"switches above it", false},
					     {"ranks seen", true},
					     {"its clock less the first node's, ms", true},
					     {"sampler, % of a core", true}};

	if (!is_telling(r))
		return;
	buf_str(b, "\nEach node:\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_hosts; i++) {
		const struct host_row *h = &r->hosts[i];

		md_row(b);
		md_cell(b, h->node);
		md_cell_i64(b, h->allocations);
		md_cell(b, h->switches ? h->switches : "-");
		ranks(h, b);
		md_cell_number(b, h->clock_ms);
		md_cell_number(b, h->sampler_pct);
		md_row_end(b);
	}
}
