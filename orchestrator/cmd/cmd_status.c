/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_status;

struct args {
	struct drive_options look;
	const char *campaign;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case ARGP_KEY_ARG:
		if (a->campaign)
			argp_error(state, "one campaign at a time, got %s too", arg);
		a->campaign = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What is known of one campaign at a glance. */
struct glance {
	const struct campaign_row *row;
	struct cost_row cost;
	struct lease lease;
	bool held;
	struct strv expired; /* what changed in the environment since the fix */
	char stage[160];     /* open or last stage with its blocks or note */
};

static int load_stage(struct workspace *w, struct glance *g, struct err *e)
{
	struct stage_row *s = NULL;
	struct block_row *b = NULL;
	size_t n = 0, n_blocks = 0, valid = 0;
	int rc = query_stages(w->db, g->row->id, &s, &n, e);

	if (rc < 0)
		return rc;
	if (n == 0) {
		snprintf(g->stage, sizeof g->stage, "not begun");
	} else if (s[n - 1].open) {
		if ((rc = query_blocks(w->db, s[n - 1].id, &b, &n_blocks, e)) == 0)
			for (size_t i = 0; i < n_blocks; i++)
				valid += b[i].attempt_id && b[i].state == ATTEMPT_VALID;
		snprintf(g->stage, sizeof g->stage, "%s, %zu of %s%d blocks",
			 stage_kind_name(s[n - 1].kind), valid,
			 s[n - 1].kind == STAGE_CONFIRM ? "at most " : "", s[n - 1].planned_blocks);
		block_rows_free(b, n_blocks);
	} else {
		snprintf(g->stage, sizeof g->stage, "%s done: %s", stage_kind_name(s[n - 1].kind),
			 s[n - 1].note ? s[n - 1].note : "");
	}
	stage_rows_free(s, n);
	return rc;
}

static int load(struct workspace *w, const struct campaign_row *row, struct glance *g,
		struct err *e)
{
	int rc;

	*g = (struct glance){.row = row};
	if ((rc = query_cost(w->db, row->id, &g->cost, e)) < 0 ||
	    (rc = query_lease_get(w->db, row->id, &g->lease, &g->held, e)) < 0 ||
	    (rc = drive_expired(w, row, &g->expired, e)) < 0)
		return rc;
	return load_stage(w, g, e);
}

static void print_text(const struct workspace *w, const struct glance *g)
{
	_cleanup_free_ char *resume = drive_command("resume", w, g->row->id),
			    *name = text_clean(g->row->name), *stage = text_clean(g->stage),
			    *reason = text_clean(g->row->reason);
	char when[32], cost[32];

	clock_iso(g->row->created_us, when, sizeof when);
	progress_cost(g->cost.node_s, cost, sizeof cost);
	printf("%4lld  %-24s %-8s %-6s %s  %lld trials, %s\n      %s\n", (long long)g->row->id,
	       name, campaign_state_name(g->row->state), g->row->scheduler, when,
	       (long long)g->cost.trials_all, cost, stage);
	if (g->row->reason && !strstr(g->stage, g->row->reason))
		printf("      %s\n", reason);
	if (g->held && g->row->state == CAMPAIGN_RUNNING)
		printf("      driven by process %lld on %s\n", (long long)g->lease.pid,
		       g->lease.host);
	else if (g->row->state == CAMPAIGN_RUNNING)
		printf("      nobody drives it: %s\n", resume);
	else if (g->row->state == CAMPAIGN_STOPPED)
		printf("      to go on: %s\n", resume);
	if (g->expired.n)
		printf("      the fix has expired, since its environment changed:\n");
	for (size_t i = 0; i < g->expired.n; i++) {
		_cleanup_free_ char *change = text_clean(g->expired.v[i]);

		printf("        %s\n", change);
	}
}

static struct json *to_json(const struct glance *g)
{
	struct json *o = json_object(), *expired = json_array();

	json_set_i64(o, "campaign", g->row->id);
	json_set_text(o, "name", g->row->name);
	json_set_text(o, "state", campaign_state_name(g->row->state));
	json_set_text(o, "reason", g->row->reason);
	json_set_text(o, "scheduler", g->row->scheduler);
	json_set_text(o, "mode", run_mode_name(g->row->mode));
	json_set_i64(o, "created_us", g->row->created_us);
	json_set_text(o, "stage", g->stage);
	json_set_i64(o, "trials", g->cost.trials_all);
	json_set_number(o, "node_s", g->cost.node_s);
	json_set_bool(o, "driven", g->held);
	for (size_t i = 0; i < g->expired.n; i++)
		json_add_text(expired, g->expired.v[i]);
	json_set(o, "expired", expired);
	return o;
}

static int print_all(struct workspace *w, const struct campaign_row *rows, size_t n, bool json,
		     struct err *e)
{
	_cleanup_(json_freep) struct json *list = json_array();
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < n; i++) {
		struct glance g;
		int rc = load(w, &rows[i], &g, e);

		if (rc == 0 && json)
			json_add(list, to_json(&g));
		else if (rc == 0)
			print_text(w, &g);
		strv_free(&g.expired);
		if (rc < 0)
			return rc;
	}
	if (json) {
		text = json_print(list, true);
		printf("%s\n", text);
	} else if (n == 0) {
		printf("no campaign yet: `fettle run RECIPE` starts one\n");
	}
	return 0;
}

static int status(const struct args *a, struct err *e)
{
	struct workspace *w = NULL;
	struct campaign_row *rows = NULL, one = {0};
	size_t n = 0;
	int64_t id;
	int rc = workspace_open(workspace_default(a->look.workspace), DB_READ, &clock_system, &w,
				e);

	if (rc < 0)
		return rc;
	if (a->campaign) {
		if ((rc = drive_find(w, a->campaign, &id, e)) == 0 &&
		    (rc = query_campaign_get(w->db, id, &one, e)) == 0)
			rc = print_all(w, &one, 1, a->look.json, e);
		campaign_row_done(&one);
	} else if ((rc = query_campaign_list(w->db, NULL, &rows, &n, e)) == 0) {
		rc = print_all(w, rows, n, a->look.json, e);
		campaign_rows_free(rows, n);
	}
	workspace_close(w);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Say where the campaigns of the workspace stand (newest first).",
		.children = children};
	struct args a = {0};
	struct err e = {0};

	cmd_parse(&argp, argc, argv, &a);
	return status(&a, &e) < 0 ? cmd_fail(&cmd_status, &e) : 0;
}

const struct cmd cmd_status = {
	.name = "status", .summary = "where the campaigns stand", .run = run};
