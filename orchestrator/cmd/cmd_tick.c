/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_tick;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

static int tick_all(struct workspace *w, const struct drive_options *o)
{
	struct campaign_row *rows = NULL;
	struct err e = {0};
	size_t n = 0;
	int status = 0;

	if (query_campaign_list(w->db, NULL, &rows, &n, &e) < 0)
		return cmd_fail(&cmd_tick, &e);
	for (size_t i = n; i-- > 0;)
		if (rows[i].state == CAMPAIGN_RUNNING)
			status = drive_worse(status, drive_campaign(&cmd_tick, w, rows[i].id, o));
	campaign_rows_free(rows, n);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&drive_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.doc = "Do all due work of every running campaign and exit without waiting.\v"
		       "For cron, scrontab and sites that end long processes on login nodes: call "
		       "it every "
		       "minute. A campaign that another live process drives is left alone (exit "
		       "3).",
		.children = children};
	struct drive_options o = {.once = true};
	struct workspace *w = NULL;
	struct err e = {0};
	int status;

	cmd_parse(&argp, argc, argv, &o);
	if (workspace_open(workspace_default(o.workspace), DB_WRITE, &clock_system, &w, &e) < 0)
		status = cmd_fail(&cmd_tick, &e);
	else
		status = tick_all(w, &o);
	workspace_close(w);
	free((char *)o.fake_spec);
	return status;
}

const struct cmd cmd_tick = {
	.name = "tick", .summary = "do all due work and exit (for cron)", .run = run};
