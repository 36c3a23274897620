/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/method/gc.h"

extern const struct cmd cmd_gc;

enum { OPT_YES = 512 };
enum { DAYS = 30, DAYS_MAX = 36500 };

struct args {
	struct drive_options look;
	int64_t days;
	bool yes;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case OPT_YES:
		a->yes = true;
		return 0;
	case 'd':
		if (!str_to_i64(arg, &a->days) || a->days < 0 || a->days > DAYS_MAX)
			argp_error(state, "--days %s: a whole number of days, such as 30", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is taken, got %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_text(const struct gc_items *items, bool yes)
{
	size_t stays = 0;

	for (size_t i = 0; i < items->n; i++) {
		const struct gc_item *v = &items->v[i];

		if (!v->stays)
			printf("%12lld  %s: %s\n", (long long)v->bytes, v->path, v->why);
		stays += v->stays;
	}
	printf("%zu things, %lld bytes%s\n", items->n - stays, (long long)items->bytes,
	       yes                ? " removed"
	       : items->n > stays ? "; --yes removes them"
				  : ": there is nothing to remove");
	for (size_t i = 0; i < items->n; i++)
		if (items->v[i].stays)
			printf("stays: %s (%lld bytes), %s\n", items->v[i].path,
			       (long long)items->v[i].bytes, items->v[i].why);
}

static void print_json(const struct gc_items *items, bool yes)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL;
	struct json *list = json_array();

	for (size_t i = 0; i < items->n; i++) {
		struct json *v = json_object();

		json_set_text(v, "path", items->v[i].path);
		json_set_text(v, "why", items->v[i].why);
		json_set_i64(v, "bytes", items->v[i].bytes);
		json_set_bool(v, "stays", items->v[i].stays);
		json_add(list, v);
	}
	json_set_bool(o, "removed", yes);
	json_set_i64(o, "bytes", items->bytes);
	json_set(o, "items", list);
	text = json_print(o, true);
	printf("%s\n", text);
}

static int go(struct workspace *w, const struct args *a, struct err *e)
{
	struct gc_items items = {0};
	int rc = gc_find(w, (int)a->days, &items, e);

	if (rc == 0 && a->yes)
		rc = gc_remove(w, &items, e);
	if (rc == 0 && a->look.json)
		print_json(&items, a->yes);
	else if (rc == 0)
		print_text(&items, a->yes);
	gc_items_free(&items);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"days", 'd', "N", 0,
		 "how long copies of the database from before an upgrade are kept (30)", 0},
		{"yes", OPT_YES, NULL, 0, "remove it; without this it is only listed", 0},
		{0}};
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.doc = "List what of a workspace can go, with its bytes: leftovers of processes that "
		       "were killed, scratch of trials, copies of the database from before an upgrade "
		       "and of the agent for jobs that are over.\vRaw files and results are never "
		       "among it: `fettle archive` packs them. What a running campaign needs stays.",
		.children = children};
	struct args a = {.days = DAYS};
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_READ, &clock_system, &w, &e) <
		    0 ||
	    go(w, &a, &e) < 0)
		status = cmd_fail(&cmd_gc, &e);
	workspace_close(w);
	return status;
}

const struct cmd cmd_gc = {
	.name = "gc", .summary = "what of a workspace can go, and its removal", .run = run};
