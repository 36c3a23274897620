/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_check;

struct args {
	const char *recipe, *scheduler;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 's':
		a->scheduler = arg;
		if (!sched_find(arg))
			argp_error(state, "no scheduler is called %s: " SCHED_NAMES, arg);
		return 0;
	case ARGP_KEY_ARG:
		if (a->recipe)
			argp_error(state, "one recipe at a time, got %s too", arg);
		a->recipe = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->recipe)
			argp_error(state, "which recipe?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"scheduler", 's', "NAME", 0,
		 "check for this scheduler (default: the recipe's, else local)", 0},
		{0}};
	static const struct argp argp = {.options = opts,
					 .parser = parse,
					 .args_doc = "RECIPE",
					 .doc = "Check a campaign file and run nothing: every "
						"field, every knob, the command.\v"
						"Exit status 0 when it is fit to run, 2 with file, "
						"line and field when not."};
	struct args a = {0};
	struct script_sources s = {0};
	struct recipe *r = NULL;
	struct strv warnings = {0};
	struct err e = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (drive_load(a.recipe, a.scheduler, &r, &s, &e) < 0)
		return cmd_fail(&cmd_check, &e);
	script_warnings(r, &warnings);
	for (size_t i = 0; i < warnings.n; i++)
		printf("%s: warning: %s\n", a.recipe, warnings.v[i]);
	printf("%s: fit to run: campaign %s, %zu knob%s, mode %s\n", a.recipe, r->name, r->n_knobs,
	       r->n_knobs == 1 ? "" : "s", run_mode_name(r->mode));
	strv_free(&warnings);
	recipe_free(r);
	script_sources_free(&s);
	return 0;
}

const struct cmd cmd_check = {
	.name = "check", .summary = "check a campaign file and run nothing", .run = run};
