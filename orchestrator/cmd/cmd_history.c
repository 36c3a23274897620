/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/history_import.h"
#include "orchestrator/cmd/history_page.h"
#include "orchestrator/cmd/history_watch.h"
#include "orchestrator/cmd/output.h"
#include "orchestrator/cmd/terminal.h"
#include "orchestrator/report/nights.h"

extern const struct cmd cmd_history;

/* What begins with a word of its own. */
static const struct verb {
	const char *word, *title;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"import", "fettle history import", history_import},
	{"watch", "fettle history watch", history_watch},
};

struct args {
	struct drive_options look;
	const char *which, *since, *html;
	bool all;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &a->look;
		state->child_inputs[2] = &a->look.colours;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case 's':
		if (!history_night_valid(arg))
			argp_error(state, "--since wants a night like 2026-11-29, got %s", arg);
		a->since = arg;
		return 0;
	case 'H':
		a->html = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->which)
			argp_error(state, "one series or name at a time, got %s too", arg);
		a->which = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_json(const struct json *j)
{
	_cleanup_free_ char *text = json_print(j, true);

	printf("%s\n", text);
}

/* -- page ------------------------------------------------------------------------------------- */

static int page(struct workspace *w, struct nights *n, const struct nights_glance *g, size_t n_g,
		const struct args *a, struct err *e)
{
	struct buf text = {0};
	int rc = history_page(w, n, g, n_g, a->since, a->look.lang, &text, NULL, e);

	if (rc == 0)
		rc = output_write(a->html, &text, e);
	buf_free(&text);
	return rc;
}

/* -- terminal --------------------------------------------------------------------------------- */

static struct nights_style style(const struct args *a)
{
	return (struct nights_style){.width = terminal_width(stdout),
				     .ascii = !terminal_utf8(),
				     .colour = terminal_colour(stdout, a->look.colours),
				     .all = a->all};
}

static int one(struct nights *n, const struct nights_glance *g, const struct args *a, struct err *e)
{
	struct nights_style st = style(a);
	struct nights_series s = {0};
	struct json *j = NULL;
	struct buf text = {0};
	int rc = nights_load(n, &g->row, a->since, &s, e);

	if (rc == 0 && a->look.json) {
		if ((rc = nights_series_json(n, &s, &j, e)) == 0)
			print_json(j);
		json_free(j);
	} else if (rc == 0) {
		lang_begin(a->look.lang);
		nights_series_text(&s, &st, &text);
		lang_end();
		fputs(text.data, stdout);
	}
	buf_free(&text);
	nights_series_done(&s);
	return rc;
}

static void list(const struct nights_glance *g, size_t n, const struct args *a)
{
	struct nights_style st = style(a);
	struct buf text = {0};

	if (a->look.json) {
		_cleanup_(json_freep) struct json *j = nights_list_json(g, n);

		print_json(j);
		return;
	}
	lang_begin(a->look.lang);
	nights_list_text(g, n, &st, &text);
	lang_end();
	fputs(text.data, stdout);
	buf_free(&text);
}

static int history(struct workspace *w, const struct args *a, struct err *e)
{
	struct nights *n = NULL;
	struct nights_glance *g = NULL;
	size_t n_g = 0;
	int rc = nights_open(w->db, &n, e);

	if (rc == 0 && (rc = nights_glances(n, a->which, a->all, &g, &n_g, e)) == 0) {
		if (a->html)
			rc = page(w, n, g, n_g, a, e);
		else if (a->which && n_g == 1)
			rc = one(n, &g[0], a, e);
		else
			list(g, n_g, a);
	}
	nights_glances_free(g, n_g);
	nights_close(n);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"all", 'a', NULL, 0,
		 "series that ended too; of one series, every night and every change", 0},
		{"since", 's', "NIGHT", 0, "from this night on (2026-11-29)", 0},
		{"html", 'H', "FILE", 0, "write a page with the plot of every series (-: stdout)",
		 0},
		{0}};
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0},
						     {&lang_argp, 0, NULL, 0},
						     {&terminal_argp, 0, NULL, 0},
						     {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[SERIES|NAME]\nimport FILE...\nwatch DIR...",
		.doc = "Series over nights: all of them, or one with its plot, the nights on which "
		       "it changed, what of the environment changed when, and its points.\v"
		       "SERIES is a number of the list. NAME is a workload or a metric, or a part "
		       "of one; where it fits several series these are listed. The page is one "
		       "file without scripts. `fettle history import --help` explains how a history of "
		       "your own comes in, `fettle history watch --help` how logs of ordinary "
		       "jobs do. The fields of --json are in "
		       "orchestrator/report/HISTORY.md.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	for (size_t i = 0; i < ARRAY_LEN(verbs) && argc > 1; i++)
		if (str_eq(argv[1], verbs[i].word)) {
			_cleanup_free_ char *title = xstrdup(verbs[i].title);

			argv[1] = title;
			return verbs[i].run(argc - 1, argv + 1);
		}
	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_READ, &clock_system, &w, &e) <
		    0 ||
	    history(w, &a, &e) < 0)
		status = cmd_fail(&cmd_history, &e);
	workspace_close(w);
	return status;
}

const struct cmd cmd_history = {
	.name = "history", .summary = "series over nights, and where they changed", .run = run};
