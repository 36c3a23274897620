/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A subcommand is one file cmd_<name>.c that defines `const struct cmd cmd_<name>`; the table of
 * them is generated from the file names. Only subcommands and main print results and errors.
 */
#ifndef FETTLE_CMD_CMD_H
#define FETTLE_CMD_CMD_H

#include <argp.h>
#include <stdbool.h>

#include "orchestrator/base/err.h"

struct cmd {
	const char *name;    /* as typed: "run" */
	const char *summary; /* one line for `fettle --help`, no full stop */
	/* argv[0] is "fettle NAME"; returns the exit status of DESIGN 5 (see cmd_fail). Handles
	 * --help itself. */
	int (*run)(int argc, char **argv);
	bool hidden; /* for programs and not for people: no help names it */
};

extern const struct cmd *const cmd_table[]; /* generated; NULL-terminated, by name */

/* The options and arguments of a command, the first thing that its run() does: argp_parse(), or the
 * answer to a shell that completes the line (complete.h). It ends the program where either says so.
 * Arguments that an error names cannot act on a terminal.
 */
void cmd_parse(const struct argp *argp, int argc, char **argv, void *input);

/* An argument made fit to print; heap. */
char *cmd_word(const char *arg);

/* Print "fettle NAME: error: TEXT" for e on stderr and return the exit status of its code. */
int cmd_fail(const struct cmd *c, const struct err *e);

#endif
