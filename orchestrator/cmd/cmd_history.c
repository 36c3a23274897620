/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/history_import.h"

extern const struct cmd cmd_history;

/* What begins with a word of its own. */
static const struct verb {
	const char *word, *title;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"import", "fettle history import", history_import},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_ARG:
		argp_error(state, "expected `import`, got %s", arg);
		return 0;
	case ARGP_KEY_END:
		argp_error(state, "expected `import` and a file");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "import FILE...",
		.doc = "Series over nights.\v`fettle history import --help` explains it."};

	for (size_t i = 0; i < ARRAY_LEN(verbs) && argc > 1; i++)
		if (str_eq(argv[1], verbs[i].word)) {
			_cleanup_free_ char *title = xstrdup(verbs[i].title);

			argv[1] = title;
			return verbs[i].run(argc - 1, argv + 1);
		}
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	return 0;
}

const struct cmd cmd_history = {
	.name = "history", .summary = "series over nights; bring in a team's own", .run = run};
