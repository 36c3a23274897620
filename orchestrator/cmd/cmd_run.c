/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/detach.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/forecast.h"
#include "orchestrator/cmd/outline.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_run;

enum { OPT_ANYWAY = 512, OPT_DETACH };

struct args {
	struct drive_options drive;
	const char *recipe;
	bool anyway, detach;
	const char *partition; /* of the job that drives a detached campaign */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->drive;
		return 0;
	case OPT_ANYWAY:
		a->anyway = true;
		return 0;
	case OPT_DETACH:
		a->detach = true;
		a->partition = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->recipe)
			argp_error(state, "one recipe at a time, got %s too", arg);
		a->recipe = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->recipe)
			argp_error(state,
				   "which recipe? (a Lua file; recipes/campaigns has examples)");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A campaign that cannot answer its own question is not begun. */
static int check_question(const struct args *a, const struct recipe *r, struct err *e)
{
	const struct outline_given given = {.workspace = a->drive.workspace};
	_cleanup_free_ char *why = NULL;
	struct outline o;

	if (a->anyway)
		return 0;
	outline_make(r, &given, &o);
	why = outline_refusal(r, &o);
	return why ? err_set(e, ERR_USAGE, "%s; --anyway insists", why) : 0;
}

/* The name is the recipe's. */
static void print_begun(const struct workspace *w, const struct recipe *r, const char *scheduler,
			int64_t id)
{
	_cleanup_free_ char *name = text_clean(r->name);

	printf("campaign %lld: %s (%s), workspace %s\n", (long long)id, name, scheduler, w->root);
}

static void warn(const struct recipe *r)
{
	_cleanup_(strv_free) struct strv warnings = {0};

	script_warnings(r, &warnings);
	for (size_t i = 0; i < warnings.n; i++)
		fprintf(stderr, "fettle: warning: %s\n", warnings.v[i]);
}

/* A recipe is checked whole before anything is written, and the cluster must be there. */
static int start(struct args *a, struct workspace **w, int64_t *id, struct err *e)
{
	const char *scheduler = a->drive.scheduler;
	_cleanup_free_ char *path = NULL;
	struct script_sources sources = {0};
	struct recipe *r = NULL;
	int rc = drive_load(a->recipe, scheduler, &r, &sources, e);

	if (rc < 0)
		return rc;
	warn(r);
	if (!scheduler)
		scheduler = r->scheduler ? r->scheduler : "local";
	rc = a->anyway ? 0 : drive_lint(r, &sources, e);
	if (rc == 0)
		rc = check_question(a, r, e);
	if (rc == 0)
		rc = forecast_reach(scheduler, r, e);
	if (rc < 0) {
		recipe_free(r);
		script_sources_free(&sources);
		return rc;
	}
	path = fs_absolute(a->recipe, e);
	rc = workspace_open(workspace_default(a->drive.workspace), DB_CREATE, &clock_system, w, e);
	if (rc == 0)
		rc = campaign_create(*w, r, &sources, path, scheduler, id, e);
	if (rc == 0 && !a->drive.json)
		print_begun(*w, r, scheduler, *id);
	recipe_free(r);
	script_sources_free(&sources);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&drive_argp, 0, NULL, 0}, {0}};
	static const struct argp_option opts[] = {
		{"anyway", OPT_ANYWAY, NULL, 0,
		 "also a campaign that cannot answer its own question (see fettle plan), or one of "
		 "whose settings does not do what it says (see fettle check)",
		 0},
		{"detach", OPT_DETACH, "PARTITION", OPTION_ARG_OPTIONAL,
		 "let a small job of the cluster drive it, where compute nodes may submit", 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "RECIPE",
		.doc = "Run a campaign: baseline, hypothesis, experiment, validation, fixing.\v"
		       "Ctrl-C cancels the jobs in flight; `fettle resume` goes on where it "
		       "stopped.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int64_t id = 0;
	int status;

	cmd_parse(&argp, argc, argv, &a);
	if (start(&a, &w, &id, &e) < 0)
		status = cmd_fail(&cmd_run, &e);
	else if (a.detach)
		status = detach_submit(w, id, &a.drive, a.partition, &e) < 0
				 ? cmd_fail(&cmd_run, &e)
				 : 0;
	else
		status = drive_campaign(&cmd_run, w, id, &a.drive);
	workspace_close(w);
	free((char *)a.drive.fake_spec);
	return status;
}

const struct cmd cmd_run = {.name = "run", .summary = "run a campaign from its recipe", .run = run};
