/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/report/slow_nodes.h"

extern const struct cmd cmd_nodes;

/* A node is accused wrongly in one list of twenty at most. */
#define ALPHA 0.05

struct args {
	struct drive_options look;
	const char *campaign;
	bool all;
	double slow_pct;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case 's':
		if (!str_to_double(arg, &a->slow_pct) || !(a->slow_pct >= 0 && a->slow_pct < 100))
			argp_error(state, "--slow wants per cent from 0 to 99, got %s", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (a->campaign)
			argp_error(state,
				   "one campaign at a time, got %s too; --all takes all of "
				   "them",
				   arg);
		a->campaign = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int add(struct slow_nodes_input *in, struct workspace *w, int64_t id, struct err *e)
{
	struct script_sources s = {0};
	struct recipe *r = NULL;
	int rc = campaign_sources(w, id, &s, e);

	if (rc == 0)
		rc = script_reload(&s, &r, e);
	if (rc == 0)
		rc = slow_nodes_add(in, w->db, id, r, e);
	recipe_free(r);
	script_sources_free(&s);
	return rc;
}

static int add_all(struct slow_nodes_input *in, struct workspace *w, struct err *e)
{
	struct campaign_row *rows = NULL;
	size_t n = 0;
	int rc = query_campaign_list(w->db, NULL, &rows, &n, e);

	for (size_t i = n; rc == 0 && i-- > 0;)
		rc = add(in, w, rows[i].id, e);
	campaign_rows_free(rows, n);
	return rc;
}

static int show(struct workspace *w, const struct args *a, struct err *e)
{
	struct slow_nodes_input *in = slow_nodes_new();
	struct slow_nodes s = {0};
	struct buf b = {0};
	int64_t id = 0;
	int rc = a->all ? add_all(in, w, e) : drive_find(w, a->campaign, &id, e);

	if (rc == 0 && !a->all)
		rc = add(in, w, id, e);
	if (rc == 0) {
		slow_nodes_estimate(in, ALPHA, a->slow_pct / 100, &s);
		if (a->look.json) {
			_cleanup_(json_freep) struct json *j = slow_nodes_json(&s);
			_cleanup_free_ char *text = json_print(j, true);

			printf("%s\n", text);
		} else {
			slow_nodes_text(&s, &b);
			fputs(b.data ? b.data : "", stdout);
		}
	}
	buf_free(&b);
	slow_nodes_done(&s);
	slow_nodes_free(in);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"all", 'a', NULL, 0, "all campaigns of the workspace, not only the newest", 0},
		{"slow", 's', "PCT", 0, "how much slower is slow (default: 1)", 0},
		{0}};
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "What each node does to the blocks that ran on it, and which nodes are slow "
		       "(campaign: number or name; default: the newest).\v"
		       "From what blocks leave unexplained and from A/A runs, with intervals, the "
		       "jobs that failed on a node, and what was measured there that could explain "
		       "it. `resources.placement = \"spread\"` gives each node its share of blocks.",
		.children = children};
	struct args a = {.slow_pct = 1};
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_READ, &clock_system, &w, &e) <
		    0 ||
	    show(w, &a, &e) < 0)
		status = cmd_fail(&cmd_nodes, &e);
	workspace_close(w);
	return status;
}

const struct cmd cmd_nodes = {
	.name = "nodes", .summary = "which nodes are slow, with intervals", .run = run};
