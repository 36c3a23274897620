/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_backup;

struct args {
	struct drive_options look;
	const char *file;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_error(state, "one file at a time, got %s too", arg);
		a->file = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "where to? fettle backup FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print(const struct workspace *w, const struct args *a)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL;

	if (!a->look.json) {
		printf("%s/fettle.db: copied to %s and checked, %lld bytes\n", w->root, a->file,
		       (long long)fs_size(a->file));
		return;
	}
	json_set_text(o, "workspace", w->root);
	json_set_text(o, "file", a->file);
	json_set_i64(o, "bytes", fs_size(a->file));
	text = json_print(o, true);
	printf("%s\n", text);
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "FILE",
		.doc = "Copy the database of a workspace as it is at this moment, while campaigns run "
		       "and write, check the copy, and give it its name only then.\v"
		       "FILE must not exist yet. Raw files are not in it: `fettle archive` packs those. "
		       "To restore: with no fettle running, remove fettle.db, fettle.db-wal and "
		       "fettle.db-shm of the workspace, and copy FILE there as fettle.db; `fettle gc` "
		       "then names the directories of attempts that it does not know: move them away.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_READ, &clock_system, &w, &e) <
		    0 ||
	    db_backup(w->db, a.file, &e) < 0)
		status = cmd_fail(&cmd_backup, &e);
	else
		print(w, &a);
	workspace_close(w);
	return status;
}

const struct cmd cmd_backup = {.name = "backup",
			       .summary = "a checked copy of the database, while campaigns run",
			       .run = run};
