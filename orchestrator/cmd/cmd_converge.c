/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_converge;

enum { EXIT_NEGATIVE = 1 };

struct args {
	struct drive_options drive;
	const char *campaign;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->drive;
		return 0;
	case ARGP_KEY_ARG:
		return drive_one_campaign(state, arg, &a->campaign);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int plan(struct args *a, struct workspace *w, int64_t *id, struct err *e)
{
	_cleanup_free_ char *agent = paths_agent(), *helper = paths_slurm_helper();
	struct campaign_options o = {.sched = a->drive.scheduler ? sched_find(a->drive.scheduler)
								 : NULL,
				     .agent = agent,
				     .helper = helper,
				     .spec = a->drive.fake_spec,
				     .take_over = a->drive.take_over};
	int rc = drive_find(w, a->campaign, id, e);

	return rc < 0 ? rc : campaign_converge(w, *id, &o, e);
}

/* Held is 0, not held or not judged is a measured, negative answer; a run that was stopped or
 * failed keeps its own status. */
static int status_of(struct workspace *w, int64_t id, int status)
{
	struct fix_row fix = {0};
	struct err e = {0};
	bool found = false;

	if (status != 0)
		return status;
	if (query_fix_get(w->db, id, &fix, &found, &e) < 0)
		return cmd_fail(&cmd_converge, &e);
	if (!found || !str_eq(fix.state, "validated"))
		status = EXIT_NEGATIVE;
	fix_row_done(&fix);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&drive_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Hold the loss of a long run of a fix against the default's: for a fix that is "
		       "accepted, pending convergence (campaign by number or name; default: the "
		       "newest).\v"
		       "Default and fix run side by side in paired blocks, one a seed, as `converge` "
		       "of the recipe declares. Within the margin the fix is validated, else it is "
		       "rejected and the exit status is 1. A run that was stopped goes on with the "
		       "same command.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int64_t id = 0;
	int status;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.drive.workspace), DB_WRITE, &clock_system, &w, &e) <
		    0 ||
	    plan(&a, w, &id, &e) < 0)
		status = cmd_fail(&cmd_converge, &e);
	else
		status = status_of(w, id, drive_campaign(&cmd_converge, w, id, &a.drive));
	workspace_close(w);
	free((char *)a.drive.fake_spec);
	return status;
}

const struct cmd cmd_converge = {.name = "converge",
				 .summary = "the long run of a fix that is pending convergence",
				 .run = run};
