/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/output.h"
#include "orchestrator/cmd/report_all.h"
#include "orchestrator/report/report.h"

extern const struct cmd cmd_report;

struct args {
	struct drive_options look;
	const char *file;
	const char **names; /* campaign, or with --all workspaces */
	size_t n_names;
	bool all;
	const struct report_format *format;
};

static void choose_format(struct args *a, const char *name, struct argp_state *state)
{
	struct buf names = {0};

	a->format = report_format_find(name);
	if (a->format)
		return;
	for (const struct report_format *const *f = report_format_table; *f; f++)
		buf_printf(&names, "%s%s", names.len ? ", " : "", (*f)->name);
	argp_error(state, "there is no format \"%s\": %s", name, names.data);
	buf_free(&names);
}

static void check(struct args *a, struct argp_state *state)
{
	if (a->all && (!a->file || str_eq(a->file, "-")))
		argp_error(state, "--all writes a folder: -o DIR says where");
	if (a->all && (a->format || a->look.json))
		argp_error(state, "--all writes every format: --format and --json go with one "
				  "campaign");
	if (!a->all && a->n_names > 1)
		argp_error(state, "one campaign at a time, got %s too", a->names[1]);
	if (!a->format)
		a->format = report_format_find(a->look.json ? "json" : "markdown");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &a->look;
		return 0;
	case 'f':
		choose_format(a, arg, state);
		return 0;
	case 'o':
		a->file = arg;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case ARGP_KEY_ARG:
		a->names[a->n_names++] = arg;
		return 0;
	case ARGP_KEY_END:
		check(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* With the way from a file to the raw logs; a stream has no place. */
static void place(struct report *r, const char *file)
{
	_cleanup_free_ char *dir = NULL, *full = NULL;

	if (!file || str_eq(file, "-"))
		return;
	dir = xstrndup(file, (size_t)(fs_basename(file) - file));
	full = fs_absolute(*dir ? dir : ".", NULL);
	if (full)
		report_lies_in(r, full);
}

static int print(struct workspace *w, const struct args *a, struct err *e)
{
	struct recipe *recipe = NULL;
	struct report *report = NULL;
	struct buf text = {0};
	int64_t id;
	int rc = drive_find(w, a->names[0], &id, e);

	if (rc == 0)
		rc = drive_report(w, id, &recipe, &report, e);
	if (rc == 0)
		place(report, a->file);
	if (rc == 0 && (rc = drive_format(a->format, report, a->look.lang, &text, e)) == 0)
		rc = output_write(a->file, &text, e);
	buf_free(&text);
	report_free(report);
	recipe_free(recipe);
	return rc;
}

static int one(const struct args *a, struct err *e)
{
	struct workspace *w = NULL;
	int rc = workspace_open(workspace_default(a->look.workspace), DB_READ, &clock_system, &w,
				e);

	if (rc == 0)
		rc = print(w, a, e);
	workspace_close(w);
	return rc;
}

/* -w is one more workspace beside those that are named; without any the default one is meant. */
static int all(struct args *a, struct err *e)
{
	if (a->look.workspace || a->n_names == 0)
		a->names[a->n_names++] = workspace_default(a->look.workspace);
	return report_all(&(struct report_all){.dir = a->file,
					       .workspaces = a->names,
					       .n = a->n_names,
					       .lang = a->look.lang},
			  e);
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"format", 'f', "FORMAT", 0, "markdown (the default), html, json or csv", 0},
		{"output", 'o', "FILE", 0, "write there instead of to stdout", 0},
		{"all", 'a', NULL, 0,
		 "every campaign and the series over nights, as pages with an index: -o names a folder",
		 0},
		{0}};
	static const struct argp_child children[] = {
		{&look_argp, 0, NULL, 0}, {&lang_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[CAMPAIGN]\n--all -o DIR [WORKSPACE...]",
		.doc = "The tuning log of a campaign (number or name; default: the newest): what "
		       "was measured, proposed, tried, refuted and fixed, and how to do it again.\v"
		       "Also while the campaign runs. --json is --format json; the fields are in "
		       "orchestrator/report/REPORT.md.\n\n"
		       "With --all DIR/index.html lists the campaigns of the workspaces, to be opened "
		       "from a shared folder. The same command again writes what changed; when it "
		       "cannot, everything stays as it was. The umask says who may read it.",
		.children = children};
	struct args a = {0};
	struct err e = {0};
	int rc;

	a.names = xcalloc((size_t)argc + 1, sizeof *a.names);
	cmd_parse(&argp, argc, argv, &a);
	rc = a.all ? all(&a, &e) : one(&a, &e);
	free(a.names);
	return rc < 0 ? cmd_fail(&cmd_report, &e) : 0;
}

const struct cmd cmd_report = {.name = "report",
			       .summary = "the tuning log of a campaign, or of all with an index",
			       .run = run};
