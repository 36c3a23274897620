/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/output.h"
#include "orchestrator/report/report.h"

extern const struct cmd cmd_recommend;

enum { OPT_FORCE = 256 };
enum { EXIT_NEGATIVE = 1 };

struct args {
	struct drive_options look;
	const char *campaign, *form, *file;
	bool force;
};

static void check_form(const char *form, struct argp_state *state)
{
	const char *near = str_nearest(form, recommend_forms);

	for (const char *const *f = recommend_forms; *f; f++)
		if (str_eq(*f, form))
			return;
	argp_error(state, "there is no form \"%s\": env, sbatch, json or config%s%s%s", form,
		   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case 'a':
		a->form = arg;
		check_form(arg, state);
		return 0;
	case 'o':
		a->file = arg;
		return 0;
	case OPT_FORCE:
		a->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->campaign)
			argp_error(state, "one campaign at a time, got %s too", arg);
		a->campaign = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->form)
			a->form = a->look.json ? "json" : "env";
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* To people at the terminal, and never into the file. */
static void warn_expired(struct workspace *w, const struct report *r)
{
	_cleanup_(strv_free) struct strv changes = {0};

	if (drive_expired(w, &r->campaign, &changes, NULL) < 0 || changes.n == 0)
		return;
	fputs("fettle: warning: this fix has expired, since its environment changed; measure it "
	      "again:\n",
	      stderr);
	for (size_t i = 0; i < changes.n; i++)
		fprintf(stderr, "  %s\n", changes.v[i]);
}

/* A gain that was not seen again is a measured, negative answer and no fault. */
static int print(struct workspace *w, const struct args *a, bool *negative, struct err *e)
{
	struct recipe *recipe = NULL;
	struct report *report = NULL;
	struct buf text = {0};
	int64_t id;
	int rc = drive_find(w, a->campaign, &id, e);

	if (rc == 0)
		rc = drive_report(w, id, &recipe, &report, e);
	if (rc == 0) {
		*negative = report->has_fix && !recommend_confirmed(report);
		warn_expired(w, report);
		if ((rc = recommend_write(report, a->form, a->force, &text, e)) == 0)
			rc = output_write(a->file, &text, e);
	}
	buf_free(&text);
	report_free(report);
	recipe_free(recipe);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"as", 'a', "FORM", 0, "env (the default), sbatch, json or config", 0},
		{"output", 'o', "FILE", 0, "write there instead of to stdout", 0},
		{"force", OPT_FORCE, NULL, 0,
		 "also when the gain was not seen again or the fix breaks a guard", 0},
		{0}};
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {.options = opts,
					 .parser = parse,
					 .args_doc = "[CAMPAIGN]",
					 .doc = "The validated configuration of a campaign (number "
						"or name; default: the newest) "
						"in the form asked for.\v"
						"env: KEY=value lines for `set -a; . ./FILE`, the "
						"command as a comment. sbatch: a "
						"whole script with the campaign's resources. "
						"--json is --as json. Exit status 1 "
						"when the gain was not seen again on the fresh "
						"blocks of the final stage, 4 when "
						"the campaign has no fix.",
					 .children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	bool negative = false;
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_READ, &clock_system, &w, &e) <
		    0 ||
	    print(w, &a, &negative, &e) < 0) {
		status = cmd_fail(&cmd_recommend, &e);
		if (negative && e.code == ERR_STATE)
			status = EXIT_NEGATIVE;
	}
	workspace_close(w);
	return status;
}

const struct cmd cmd_recommend = {
	.name = "recommend",
	.summary = "the validated configuration as env file, sbatch script or JSON",
	.run = run};
