/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record: faults, events, accounts, and what is needed to do it again. */
#include "orchestrator/report/mdlog.h"

#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"
#include "orchestrator/report/text.h"

enum {
	/* Rows of a list that grows with the campaign, not with the question: a person reads the
	 * first hundred, programs read the JSON, which holds all. */
	ROWS_MAX = 100,
};

static void rows_left_out(struct buf *b, size_t n, const char *what)
{
	if (n > ROWS_MAX)
		buf_printf(b, "\n%zu more %s: see the JSON form.\n", n - ROWS_MAX, what);
}

void mdlog_faults(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"stage", false},  {"block", true}, {"attempt", true},
					     {"slot", true},    {"arm", false},  {"state", false},
					     {"reason", false}, {"log", false}};

	buf_str(b, "\n## Trials that failed, attempts that were void\n\n");
	if (r->n_faults == 0) {
		buf_str(b, "None.\n");
		return;
	}
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_faults && i < ROWS_MAX; i++) {
		const struct fault_row *f = &r->faults[i];

		md_row(b);
		md_cell(b, f->stage);
		md_cell_i64(b, f->block_index + 1);
		md_cell_i64(b, f->attempt);
		if (f->slot >= 0)
			md_cell_i64(b, f->slot);
		else
			md_cell(b, "all");
		md_cell(b, f->arm);
		md_cell(b, f->state);
		md_cell(b, f->reason);
		md_cell_code(b, f->log_path);
		md_row_end(b);
	}
	rows_left_out(b, r->n_faults, "faults");
}

void mdlog_quality(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"stage", false},  {"block", true},
					     {"attempt", true}, {"slot", true},
					     {"rule", false},   {"attempt is", false},
					     {"finding", false}};

	buf_str(b, "\n## Trial quality\n\nRules over the trials of each attempt, blind to their "
		   "arms. ");
	if (r->n_quality == 0) {
		buf_str(b, "Nothing was found.\n");
		return;
	}
	buf_str(b, "A finding is a note unless it made the attempt void.\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_quality && i < ROWS_MAX; i++) {
		const struct quality_row *q = &r->quality[i];

		md_row(b);
		md_cell(b, q->stage);
		md_cell_i64(b, q->block_index + 1);
		md_cell_i64(b, q->attempt);
		if (q->slot >= 0)
			md_cell_i64(b, q->slot);
		else
			md_cell(b, "all");
		md_cell(b, quality_rule_name(q->rule));
		md_cell(b, q->action == QUALITY_VOID ? "void for it" : q->state);
		md_cell(b, q->text);
		md_row_end(b);
	}
	rows_left_out(b, r->n_quality, "findings");
}

void mdlog_events(const struct report *r, struct buf *b)
{
	buf_str(b, "\n## Events\n\n");
	for (size_t i = 0; i < r->n_events && i < ROWS_MAX; i++) {
		buf_str(b, "- ");
		md_time(b, r->events[i].at_us);
		buf_str(b, ", ");
		md_text(b, r->events[i].kind);
		buf_str(b, ": ");
		md_text(b, r->events[i].text);
		buf_char(b, '\n');
	}
	if (r->n_events == 0)
		buf_str(b, "None.\n");
	rows_left_out(b, r->n_events, "events");
}

/* -- accounts, reproduction ------------------------------------------------------------------- */

void mdlog_alpha(const struct alpha_ledger *a, struct buf *b)
{
	size_t left = alpha_ledger_left(a);

	buf_printf(b,
		   "\n## Account of alpha\n\nThe chance of any false win in the campaign is at "
		   "most %.4g, over at most %zu validation%s fixed before the first result. ",
		   a->total, a->stages, a->stages == 1 ? "" : "s");
	buf_printf(b, "Tested: %zu; spent %.4g; left: %zu validation%s", a->used, a->spent, left,
		   left == 1 ? "" : "s");
	if (left)
		buf_printf(b, ", the next one at %.4g", alpha_ledger_next(a));
	buf_str(b, ".\n");
}

/* Every node hour once: what was measured, and what was not. */
static void account(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"where the time went", false},
					     {"allocations", true},
					     {"node-hours", true},
					     {"GPU-hours", true},
					     {"share", true}};
	int gpus = r->recipe->resources.gpus_per_node;
	double total = 0;

	for (size_t i = 0; i < r->n_account; i++)
		total += r->account[i].node_s;
	if (r->n_account == 0)
		return;
	buf_char(b, '\n');
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_account; i++) {
		const struct account_row *a = &r->account[i];
		char h[32], g[32], share[32];

		snprintf(h, sizeof h, "%.3f", a->node_s / 3600);
		snprintf(g, sizeof g, "%.3f", a->node_s / 3600 * gpus);
		snprintf(share, sizeof share, "%.1f %%", total > 0 ? 100 * a->node_s / total : 0);
		md_row(b);
		md_cell(b, a->kind);
		md_cell_i64(b, a->allocations);
		md_cell(b, h);
		md_cell(b, gpus > 0 ? g : "-");
		md_cell(b, share);
		md_row_end(b);
	}
}

void mdlog_cost(const struct report *r, struct buf *b)
{
	const struct cost_row *c = &r->cost;

	buf_printf(b, "\n## Cost\n\n%lld timed trials, %lld with warm-up; %.0f s of trials",
		   (long long)c->trials_timed, (long long)c->trials_all, c->trial_s);
	mdlog_node_cost(r, c->node_s, b);
	buf_printf(b, "; %lld allocations; %lld attempts, of which %lld void or lost.\n",
		   (long long)c->allocations, (long long)c->attempts, (long long)c->attempts_void);
	account(r, b);
	mdlog_consumed(r, b);
	if (str_eq(r->campaign.scheduler, "local"))
		buf_str(b, "\nMeasured on one machine: the conclusion holds for this machine.\n");
}

/* A command to copy: no byte of it may end the block or act on a terminal. */
static void shell_block(struct buf *b, const char *const *argv, size_t n)
{
	buf_str(b, "\n    ");
	for (size_t i = 0; i < n; i++) {
		struct buf word = {0};

		text_sh(&word, argv[i]);
		buf_str(b, i ? " " : "");
		text_line(b, word.data);
		buf_free(&word);
	}
	buf_str(b, "\n");
}

static void sources_table(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {
		{"source", false}, {"file", false}, {"XXH3-128", false}};

	if (r->n_sources == 0)
		return;
	buf_str(b,
		"\nThe texts that it runs on are stored with it, so that a file that changes later "
		"changes nothing:\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_sources; i++) {
		md_row(b);
		md_cell(b, r->sources[i].name);
		md_cell_code(b, r->sources[i].path);
		md_cell_code(b, r->sources[i].hash);
		md_row_end(b);
	}
}

void mdlog_reproduce(const struct report *r, struct buf *b)
{
	const struct campaign_row *c = &r->campaign;
	const struct workload *w = &r->recipe->workload;
	const char *again[] = {"fettle", "run", c->recipe_path, "--scheduler", c->scheduler};

	buf_str(b, "\n## How to reproduce\n\n- Recipe: ");
	md_code(b, c->recipe_path);
	buf_str(b, ", hash of all its sources ");
	md_code(b, c->recipe_hash);
	buf_printf(b, "\n- Seed of the orders of blocks: %llu\n- Workload: ",
		   (unsigned long long)c->seed);
	md_code(b, w->name);
	buf_str(b, " in ");
	md_code(b, w->workdir);
	buf_printf(b, "; window: %lld warm-up steps, then %lld steps\n", (long long)w->warmup_steps,
		   (long long)w->steps);
	if (w->container.runtime) {
		buf_printf(b, "- In a container (%s): ", w->container.runtime);
		md_code(b, w->container.image);
		buf_str(b, "\n");
	}
	if (w->secrets.n)
		buf_str(b, "- Secrets, passed by name and never stored: ");
	for (size_t i = 0; i < w->secrets.n; i++) {
		buf_str(b, i ? ", " : "");
		md_code(b, w->secrets.v[i]);
	}
	buf_str(b, w->secrets.n ? "\n\nThe workload's command:\n" : "\nThe workload's command:\n");
	shell_block(b, (const char *const *)w->command.v, w->command.n);
	buf_str(b, "\nThe campaign again:\n");
	shell_block(b, again, ARRAY_LEN(again));
	sources_table(r, b);
}
