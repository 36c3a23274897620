/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/complete.h"

extern const struct cmd cmd_complete;

static const struct cmd *find(const char *name)
{
	for (const struct cmd *const *c = cmd_table; *c; c++)
		if (str_eq((*c)->name, name) && *c != &cmd_complete)
			return *c;
	return NULL;
}

static void print(struct buf *text)
{
	if (text->len)
		fputs(text->data, stdout);
	buf_free(text);
}

/* The first word: which command, or what the program itself knows. */
static int first_word(const char *typed)
{
	static const struct argp_option opts[] = {{"version", 'V', NULL, 0, "the version", 0}, {0}};
	static const struct argp argp = {.options = opts, .args_doc = "COMMAND|help"};
	char name[] = "fettle", *word = xstrdup(typed), *argv[] = {name, word, NULL};
	struct buf out = {0};

	complete_words(&argp, 2, argv, &out);
	print(&out);
	free(word);
	return 0;
}

/* argv[0] of the command is what is typed before its options, as main gives it. */
static int ask_command(const struct cmd *c, int argc, char **argv)
{
	_cleanup_free_ char *title = xasprintf("fettle %s", c->name),
			    *mark = xstrdup(COMPLETE_MARK);
	_cleanup_free_ char **to = xcalloc((size_t)argc + 2, sizeof *to);

	to[0] = title;
	for (int i = 1; i < argc; i++)
		to[i] = argv[i];
	to[argc] = mark;
	return c->run(argc + 1, to);
}

static int run(int argc, char **argv)
{
	const struct cmd *c;

	argc--, argv++;
	if (argc > 0 && str_eq(argv[0], "--"))
		argc--, argv++;
	while (argc > 1 && (str_eq(argv[0], "-v") || str_eq(argv[0], "-vv")))
		argc--, argv++;
	if (argc < 2)
		return first_word(argc ? argv[0] : "");
	if (str_eq(argv[0], "help"))
		return argc == 2 ? first_word(argv[1]) : 0;
	/* Behind -- stands a command of the user's. */
	for (int i = 1; i < argc - 1; i++)
		if (str_eq(argv[i], "--")) {
			puts(":files");
			return 0;
		}
	c = find(argv[0]);
	return c ? ask_command(c, argc, argv) : 0;
}

const struct cmd cmd_complete = {.name = "complete",
				 .summary = "what a shell offers for a command line (see "
					    "complete.h)",
				 .hidden = true,
				 .run = run};
