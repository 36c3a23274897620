/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dispatch and exit status only: every subcommand is a file in orchestrator/cmd/. */
#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/base/version.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/detach.h"

enum { EXIT_USAGE = 2, EXIT_PERMANENT = 4 };

static void print_help(FILE *to)
{
	fputs("usage: fettle [-v] COMMAND [ARGUMENT...]\n"
	      "       fettle --help | --version\n"
	      "\n"
	      "fettle measures a training job, finds what limits it, tries one change at a time "
	      "and\n"
	      "keeps what is proved to help.\n"
	      "\n"
	      "commands:\n",
	      to);
	for (const struct cmd *const *c = cmd_table; *c; c++)
		if (!(*c)->hidden)
			fprintf(to, "  %-12s %s\n", (*c)->name, (*c)->summary);
	fputs("\n`fettle COMMAND --help` explains a command. -v: say more on stderr (-vv: much "
	      "more).\n"
	      "\n"
	      "exit status: 0 done, 1 measured and negative, 2 usage or bad recipe,\n"
	      "             3 temporary (go on later), 4 permanent\n",
	      to);
}

static const struct cmd *find(const char *name)
{
	for (const struct cmd *const *c = cmd_table; *c; c++)
		if (str_eq((*c)->name, name))
			return *c;
	return NULL;
}

static int unknown(const char *name)
{
	_cleanup_free_ const char **names = NULL;
	_cleanup_free_ char *shown = NULL;
	size_t n = 0, cap = 0;
	const char *near;

	for (const struct cmd *const *c = cmd_table; *c; c++) {
		if ((*c)->hidden)
			continue;
		names = xgrow(names, n, &cap, sizeof *names);
		names[n++] = (*c)->name;
	}
	names = xgrow(names, n, &cap, sizeof *names);
	names[n] = NULL;
	near = str_nearest(name, names);
	shown = cmd_word(name);
	fprintf(stderr, "fettle: error: there is no command `%s`", shown);
	if (near)
		fprintf(stderr, "; did you mean `%s`?", near);
	fputs("\nTry `fettle --help`.\n", stderr);
	return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
	const struct cmd *c = find(argv[0]);
	_cleanup_free_ char *title = NULL;

	if (!c)
		return unknown(argv[0]);
	title = xasprintf("fettle %s", c->name);
	argv[0] = title;
	return c->run(argc, argv);
}

/* `fettle help` and `fettle help run` are what people type. */
static int help(int argc, char **argv)
{
	char flag[] = "--help";
	char *sub[] = {argc > 1 ? argv[1] : NULL, flag, NULL};

	if (argc > 1)
		return dispatch(2, sub);
	print_help(stdout);
	return 0;
}

static int command_line(int argc, char **argv)
{
	enum log_level level = LOG_LVL_WARN;
	int i = 1;

	for (; i < argc && (str_eq(argv[i], "-v") || str_eq(argv[i], "-vv")); i++)
		level = argv[i][2] || level == LOG_LVL_INFO ? LOG_LVL_DEBUG : LOG_LVL_INFO;
	log_init("fettle", level);
	if (i == argc) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h") || str_eq(argv[i], "help"))
		return help(argc - i, argv + i);
	if (str_eq(argv[i], "--version")) {
		printf("fettle %s\n", version_text());
		return 0;
	}
	if (argv[i][0] == '/' && argc == i + 1)
		return detach_main(argv[i]);
	if (argv[i][0] == '-') {
		_cleanup_free_ char *shown = cmd_word(argv[i]);

		fprintf(stderr, "fettle: error: unknown option `%s`\nTry `fettle --help`.\n",
			shown);
		return EXIT_USAGE;
	}
	return dispatch(argc - i, argv + i);
}

static bool reader_left(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* Of a UTF-8 locale that this machine lacks the codeset still says what the terminal shows. */
static void set_locale(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value = NULL, *codeset;

	if (setlocale(LC_CTYPE, ""))
		return;
	for (size_t i = 0; i < ARRAY_LEN(names) && !(value && *value); i++)
		value = getenv(names[i]);
	codeset = value ? strchr(value, '.') : NULL;
	if (codeset && (strcasecmp(codeset, ".UTF-8") == 0 || strcasecmp(codeset, ".utf8") == 0))
		(void)setlocale(LC_CTYPE, "C.UTF-8");
}

int main(int argc, char **argv)
{
	int status;

	set_locale(); /* widths of characters only: numbers stay those of the C locale */
	argp_err_exit_status = EXIT_USAGE; /* of glibc, for the options of every command */
	signal(SIGPIPE, SIG_IGN); /* a helper that dies is an error to report, not our death */
	status = command_line(argc, argv);
	/* A full disk under a redirected report must not look like success. A reader that went away
	 * (`| head`) has what it wanted. */
	errno = 0; /* an earlier write may have failed, and its reason is gone */
	if ((fflush(stdout) || ferror(stdout)) && !reader_left()) {
		fprintf(stderr, "fettle: error: cannot write the output: %s\n",
			errno ? strerror(errno) : "is the disk full?");
		return status ? status : EXIT_PERMANENT;
	}
	return status;
}
