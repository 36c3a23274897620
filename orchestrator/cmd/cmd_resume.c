/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_resume;

struct args {
	struct drive_options drive;
	const char *campaign;
	double minutes;
};

enum { MINUTES_MAX = 10000000 }; /* as budget.minutes of a recipe */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->drive;
		return 0;
	case 'm':
		if (!str_to_double(arg, &a->minutes) || a->minutes <= 0 || a->minutes > MINUTES_MAX)
			argp_error(state, "--minutes wants a number above 0 and up to %d, got %s",
				   MINUTES_MAX, arg);
		return 0;
	case ARGP_KEY_ARG:
		return drive_one_campaign(state, arg, &a->campaign);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The stored text is what runs; a file that changed since is reported, not read. */
static int report_changed_files(struct workspace *w, int64_t id, struct err *e)
{
	struct script_sources s;
	int rc = campaign_sources(w, id, &s, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < s.n; i++) {
		char hash[33];

		if (s.v[i].path && fs_hash_file(s.v[i].path, hash, NULL) == 0 &&
		    !str_eq(hash, s.v[i].hash))
			fprintf(stderr,
				"fettle: warning: %s changed since the campaign began; it goes on "
				"with the stored text\n",
				s.v[i].path);
	}
	script_sources_free(&s);
	return 0;
}

/* A stopped campaign whose time is over gets the recipe's time again, or what --minutes says. */
static int extend(struct workspace *w, int64_t id, double minutes, struct err *e)
{
	struct campaign_row row;
	int64_t now = clock_utc_us(w->clock), length;
	int rc = query_campaign_get(w->db, id, &row, e);

	if (rc < 0)
		return rc;
	length = minutes > 0 ? (int64_t)(minutes * 60e6) : row.deadline_us - row.created_us;
	if (row.state != CAMPAIGN_DONE &&
	    (minutes > 0 || (row.deadline_us > 0 && row.deadline_us <= now)))
		rc = query_campaign_deadline(w->db, id, now + length, e);
	campaign_row_done(&row);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"minutes", 'm', "N", 0,
		 "time from now on (default: the recipe's budget again, once it is used up)", 0},
		{0}};
	static const struct argp_child children[] = {{&drive_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Go on with a campaign (number or name; default: the newest).\v"
		       "Jobs that still run are adopted; nothing is measured twice.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int64_t id = 0;
	int status;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.drive.workspace), DB_WRITE, &clock_system, &w, &e) <
		    0 ||
	    drive_find(w, a.campaign, &id, &e) < 0 || report_changed_files(w, id, &e) < 0 ||
	    extend(w, id, a.minutes, &e) < 0)
		status = cmd_fail(&cmd_resume, &e);
	else
		status = drive_campaign(&cmd_resume, w, id, &a.drive);
	workspace_close(w);
	free((char *)a.drive.fake_spec);
	return status;
}

const struct cmd cmd_resume = {
	.name = "resume", .summary = "go on with a stopped or killed campaign", .run = run};
