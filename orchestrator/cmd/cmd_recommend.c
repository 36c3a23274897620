/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/output.h"
#include "orchestrator/cmd/patch.h"
#include "orchestrator/report/recommend.h"

extern const struct cmd cmd_recommend;

enum { OPT_FORCE = 256, OPT_PATCH, OPT_REVERSE, OPT_LAUNCH };
enum { EXIT_NEGATIVE = 1 };

struct args {
	struct drive_options look;
	struct patch_options patch; /* script NULL: a form */
	const char *campaign, *file;
	const struct recommend_form *form;
	bool force;
};

static const struct recommend_form *form_named(const char *name, struct argp_state *state)
{
	const struct recommend_form *form = NULL;
	struct err e = {0};

	if (recommend_find(name, &form, &e) < 0)
		argp_error(state, "%s", e.text);
	return form;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case 'a':
		a->form = form_named(arg, state);
		return 0;
	case OPT_PATCH:
		a->patch.script = arg;
		return 0;
	case OPT_REVERSE:
		a->patch.reverse = true;
		return 0;
	case OPT_LAUNCH:
		a->patch.launch = arg;
		return 0;
	case 'o':
		a->file = arg;
		return 0;
	case OPT_FORCE:
		a->force = true;
		return 0;
	case ARGP_KEY_ARG:
		return drive_one_campaign(state, arg, &a->campaign);
	case ARGP_KEY_END:
		if (a->patch.script && (a->form || a->look.json))
			argp_error(state,
				   "--patch is a form of its own: leave out --as and --json");
		if (!a->patch.script && (a->patch.reverse || a->patch.launch))
			argp_error(state, "--reverse and --launch belong to --patch SCRIPT");
		if (!a->form)
			a->form = form_named(a->look.json ? "json" : "env", state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* To people at the terminal, and never into the file. */
static void warn_expired(struct workspace *w, const struct report *r)
{
	_cleanup_(strv_free) struct strv changes = {0};

	if (drive_expired(w, &r->campaign, r->recipe, &changes, NULL) < 0 || changes.n == 0)
		return;
	fputs("fettle: warning: this fix has expired, since its environment changed; measure it "
	      "again:\n",
	      stderr);
	for (size_t i = 0; i < changes.n; i++)
		fprintf(stderr, "  %s\n", changes.v[i]);
}

static int make(const struct args *a, const struct report *r, struct buf *text, struct err *e)
{
	struct strv left = {0};
	int rc;

	if (!a->patch.script)
		rc = recommend_write(r, a->form, a->force, &left, text, e);
	else if ((rc = recommend_allowed(r, a->force, e)) == 0)
		rc = patch_write(r, &a->patch, &left, text, e);
	for (size_t i = 0; rc == 0 && i < left.n; i++)
		fprintf(stderr, "fettle: %s\n", left.v[i]);
	if (rc == 0 && a->patch.script && text->len == 0)
		fprintf(stderr, "fettle: %s has the fix: there is nothing to change\n",
			a->patch.script);
	strv_free(&left);
	return rc;
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
		if ((rc = make(a, report, &text, e)) == 0)
			rc = output_write(a->file, &text, e);
	}
	buf_free(&text);
	report_free(report);
	recipe_free(recipe);
	return rc;
}

/* The forms with what each is, behind the text of the help. */
static char *forms(int key, const char *text, void *input)
{
	struct buf b = {0};

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	buf_str(&b, "Forms:");
	for (const struct recommend_form *const *f = recommend_form_table; *f; f++)
		buf_printf(&b, "\n  %-11s %s", (*f)->name, (*f)->summary);
	buf_printf(&b, "\n\n%s", text ? text : "");
	return buf_take(&b);
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"as", 'a', "FORM", 0, "one of the forms below (env)", 0},
		{"patch", OPT_PATCH, "SCRIPT", 0,
		 "a unified diff that puts it into this script of yours, for patch(1); the script "
		 "is only read",
		 0},
		{"reverse", OPT_REVERSE, NULL, 0, "the diff that takes --patch back", 0},
		{"launch", OPT_LAUNCH, "LINE", 0,
		 "which line of the script starts the work, where several do", 0},
		{"output", 'o', "FILE", 0, "write there instead of to stdout", 0},
		{"force", OPT_FORCE, NULL, 0,
		 "also when the gain was not seen again or the fix breaks a guard", 0},
		{0}};
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "The validated configuration of a campaign (number or name; default: the "
		       "newest) in the form asked for. What a form cannot hold is said on "
		       "stderr, and how it is passed instead.\v"
		       "--json is --as json. Exit status 1 when the gain was not seen again on the "
		       "fresh blocks of the final stage, 4 when the campaign has no fix, or none "
		       "that the form can hold.",
		.children = children,
		.help_filter = forms};
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
	.summary = "the validated configuration: patch of your script, env file, nccl.conf, ...",
	.run = run};
