/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record: faults, events, accounts, and what is needed to do it again. */
#include "orchestrator/report/tlog.h"

#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/text.h"

enum {
	/* Rows of a list that grows with the campaign, not with the question: a person reads the
	 * first hundred, programs read the JSON, which holds all. */
	ROWS_MAX = 100,
};

static void rows_left_out(struct doc *doc, size_t n)
{
	if (n <= ROWS_MAX)
		return;
	doc_para(doc);
	doc_printf(doc, "%zu more: see the JSON form.", n - ROWS_MAX);
}

void tlog_packed(const struct report *r, struct doc *doc)
{
	struct buf names = {0};

	for (size_t i = 0; i < r->archives.n; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", r->archives.v[i]);
	if (names.len)
		doc_printf(
			doc,
			" The raw files are packed in `%s`; `fettle archive --restore %lld` brings "
			"them back.",
			names.data, (long long)r->campaign.id);
	buf_free(&names);
}

/* Of a trial, or of an attempt as a whole. */
static const char *fault_word(const struct fault_row *f)
{
	return f->slot >= 0 ? lang_word("trial_state", f->state)
			    : lang_word("attempt_state", f->state);
}

static void faults(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"stage", false},  {"block", true}, {"attempt", true},
					      {"slot", true},    {"arm", false},  {"state", false},
					      {"reason", false}, {"log", false}};

	doc_title(doc, 3, "Trials that failed, attempts that were void");
	if (r->n_faults == 0) {
		doc_say(doc, "None.");
		return;
	}
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_faults && i < ROWS_MAX; i++) {
		const struct fault_row *f = &r->faults[i];

		doc_row(doc);
		doc_cell(doc, lang_word("stage_kind", f->stage));
		doc_cell_i64(doc, f->block_index + 1);
		doc_cell_i64(doc, f->attempt);
		if (f->slot >= 0)
			doc_cell_i64(doc, f->slot);
		else
			doc_cell(doc, P_("slots", "all"));
		doc_cell_recorded(doc, f->arm);
		doc_cell(doc, fault_word(f));
		doc_cell_recorded(doc, f->reason);
		doc_cell_begin(doc);
		(void)tlog_log(r, f->log_path, doc);
		doc_cell_end(doc);
	}
	rows_left_out(doc, r->n_faults);
	if (r->archives.n)
		doc_para(doc);
	tlog_packed(r, doc);
}

static void quality(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"stage", false},  {"block", true},
					      {"attempt", true}, {"slot", true},
					      {"rule", false},   {"attempt is", false},
					      {"finding", false}};

	doc_title(doc, 3, "Trial quality");
	doc_say(doc, "Rules over the trials of each attempt, blind to their arms. ");
	if (r->n_quality == 0) {
		doc_str(doc, "Nothing was found.");
		return;
	}
	doc_str(doc, "A finding is a note unless it made the attempt void.");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_quality && i < ROWS_MAX; i++) {
		const struct quality_row *q = &r->quality[i];

		doc_row(doc);
		doc_cell(doc, lang_word("stage_kind", q->stage));
		doc_cell_i64(doc, q->block_index + 1);
		doc_cell_i64(doc, q->attempt);
		if (q->slot >= 0)
			doc_cell_i64(doc, q->slot);
		else
			doc_cell(doc, P_("slots", "all"));
		doc_cell(doc, lang_word("quality_rule", quality_rule_name(q->rule)));
		doc_cell(doc, q->action == QUALITY_VOID ? _("void for it")
							: lang_word("attempt_state", q->state));
		doc_cell_recorded(doc, q->text);
	}
	rows_left_out(doc, r->n_quality);
}

static void events(const struct report *r, struct doc *doc)
{
	doc_title(doc, 3, "Events");
	for (size_t i = 0; i < r->n_events && i < ROWS_MAX; i++) {
		_cleanup_free_ char *kind = recorded_text(r->events[i].kind),
				    *text = recorded_text(r->events[i].text);
		char time[DOC_FIGURES_MAX];

		doc_item(doc);
		doc_printf(doc, "%s, %s: %s", doc_time_text(time, r->events[i].at_us), kind,
			   text ? text : "");
	}
	if (r->n_events == 0)
		doc_say(doc, "None.");
	rows_left_out(doc, r->n_events);
}

void tlog_record(const struct report *r, struct doc *doc)
{
	doc_title(doc, 2, "What went wrong on the way");
	faults(r, doc);
	quality(r, doc);
	events(r, doc);
}

/* -- accounts, reproduction ------------------------------------------------------------------- */

void tlog_alpha(const struct report *r, struct doc *doc)
{
	const struct alpha_ledger *a = &r->alpha;
	size_t left = alpha_ledger_left(a);

	if (r->recipe->canary.blocks)
		return;
	doc_title(doc, 2, "Account of alpha");
	doc_para(doc);
	doc_printf(doc,
		   _n("The chance of any false win in the campaign is at most %.4g, over at most "
		      "%zu validation fixed before the first result. ",
		      "The chance of any false win in the campaign is at most %.4g, over at most "
		      "%zu validations fixed before the first result. ",
		      a->stages),
		   a->total, a->stages);
	doc_printf(doc,
		   _n("Tested: %zu; spent %.4g; left: %zu validation",
		      "Tested: %zu; spent %.4g; left: %zu validations", left),
		   a->used, a->spent, left);
	if (left)
		doc_printf(doc, ", the next one at %.4g", alpha_ledger_next(a));
	doc_str(doc, ".");
}

/* Every node hour once: what was measured, and what was not. */
static void account(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"where the time went", false},
					      {"allocations", true},
					      {"node-hours", true},
					      {"GPU-hours", true},
					      {"share", true}};
	double gpus = report_gpus_per_node(r), total = 0;

	for (size_t i = 0; i < r->n_account; i++)
		total += r->account[i].node_s;
	if (r->n_account == 0)
		return;
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_account; i++) {
		const struct account_row *a = &r->account[i];
		char h[32], g[32], share[32];

		snprintf(h, sizeof h, "%.3f", a->node_s / 3600);
		snprintf(g, sizeof g, "%.3f", a->node_s / 3600 * gpus);
		snprintf(share, sizeof share, "%.1f %%", total > 0 ? 100 * a->node_s / total : 0);
		doc_row(doc);
		doc_cell_recorded(doc, a->kind);
		doc_cell_i64(doc, a->allocations);
		doc_cell(doc, h);
		doc_cell(doc, gpus > 0 ? g : "-");
		doc_cell(doc, share);
	}
}

void tlog_cost(const struct report *r, struct doc *doc)
{
	const struct cost_row *c = &r->cost;

	doc_title(doc, 2, "Cost");
	doc_para(doc);
	doc_printf(doc, "%lld timed trials, %lld with warm-up; %.0f s of trials",
		   (long long)c->trials_timed, (long long)c->trials_all, c->trial_s);
	tlog_node_cost(r, c->node_s, doc);
	doc_printf(doc, "; %lld allocations; %lld attempts, of which %lld void or lost.",
		   (long long)c->allocations, (long long)c->attempts, (long long)c->attempts_void);
	account(r, doc);
	tlog_consumed(r, doc);
	if (str_eq(r->campaign.scheduler, "local"))
		doc_say(doc, "Measured on one machine: the conclusion holds for this machine.");
}

/* A command to copy: no byte of it may end the block or act on a terminal. */
static void shell_block(struct doc *doc, const char *const *argv, size_t n)
{
	struct buf words = {0}, line = {0};

	for (size_t i = 0; i < n; i++) {
		buf_str(&words, i ? " " : "");
		text_sh(&words, argv[i]);
	}
	text_line(&line, words.data);
	doc_command(doc);
	doc->writer->words(doc, line.data ? line.data : "");
	buf_free(&words);
	buf_free(&line);
}

static void sources_table(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {
		{"source", false}, {"file", false}, {"XXH3-128", false}};

	if (r->n_sources == 0)
		return;
	doc_say(doc,
		"The texts that it runs on are stored with it, so that a file that changes later "
		"changes nothing:");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_sources; i++) {
		doc_row(doc);
		doc_cell(doc, r->sources[i].name);
		doc_cell_code(doc, r->sources[i].path);
		doc_cell_code(doc, r->sources[i].hash);
	}
}

void tlog_reproduce(const struct report *r, struct doc *doc)
{
	const struct campaign_row *c = &r->campaign;
	const struct workload *w = &r->recipe->workload;
	const char *again[] = {"fettle", "run", c->recipe_path, "--scheduler", c->scheduler};

	doc_title(doc, 2, "How to reproduce");
	doc_item(doc);
	doc_printf(doc, "Recipe: `%s`, hash of all its sources `%s`", c->recipe_path,
		   c->recipe_hash);
	doc_item(doc);
	doc_printf(doc, "Seed of the orders of blocks: %llu", (unsigned long long)c->seed);
	doc_item(doc);
	doc_printf(doc, "Workload: `%s` in `%s`; window: %lld warm-up steps, then %lld steps",
		   w->name, w->workdir, (long long)w->warmup_steps, (long long)w->steps);
	if (w->container.runtime) {
		doc_item(doc);
		doc_printf(doc, "In a container (%s): `%s`", w->container.runtime,
			   w->container.image);
	}
	if (w->secrets.n) {
		doc_item(doc);
		doc_str(doc, "Secrets, passed by name and never stored: ");
	}
	for (size_t i = 0; i < w->secrets.n; i++) {
		if (i)
			doc_str(doc, ", ");
		doc_code(doc, w->secrets.v[i]);
	}
	doc_say(doc, "The workload's command:");
	shell_block(doc, (const char *const *)w->command.v, w->command.n);
	doc_say(doc, "The campaign again:");
	shell_block(doc, again, ARRAY_LEN(again));
	sources_table(r, doc);
}
