/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"

enum { WIDTH_DEFAULT = 80, ROWS_DEFAULT = 24, OPT_COLOR = 1024 };

static error_t parse_colours(int key, char *arg, struct argp_state *state)
{
	static const char *const words[] = {"auto", "always", "never"};
	enum terminal_colours *when = state->input;

	if (key != OPT_COLOR)
		return ARGP_ERR_UNKNOWN;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!arg || strcmp(arg, words[i]) == 0) {
			*when = arg ? (enum terminal_colours)i : COLOURS_ALWAYS;
			return 0;
		}
	argp_error(state, "--color wants auto, always or never, got %s", arg);
	return EINVAL;
}

static const struct argp_option options[] = {
	{"color", OPT_COLOR, "auto|always|never", OPTION_ARG_OPTIONAL,
	 "colours; auto, the default, is on a terminal without NO_COLOR", 0},
	{"colour", OPT_COLOR, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0},
	{0}};
const struct argp terminal_argp = {.options = options, .parser = parse_colours};

size_t terminal_width(FILE *f)
{
	struct winsize w;

	if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		return w.ws_col < TERMINAL_WIDTH_MAX ? w.ws_col : TERMINAL_WIDTH_MAX;
	return WIDTH_DEFAULT;
}

size_t terminal_rows(FILE *f)
{
	struct winsize w;

	return ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_row > 0 ? w.ws_row : ROWS_DEFAULT;
}

bool terminal_live(FILE *f)
{
	const char *term = getenv("TERM");

	return isatty(fileno(f)) && term && strcmp(term, "dumb") != 0;
}

bool terminal_foreground(FILE *f)
{
	pid_t front = tcgetpgrp(fileno(f));

	return front < 0 || front == getpgrp(); /* < 0: not our controlling terminal */
}

bool terminal_colour(FILE *f, enum terminal_colours when)
{
	const char *no_color = getenv("NO_COLOR");

	return when == COLOURS_ALWAYS ||
	       (when == COLOURS_AUTO && terminal_live(f) && !(no_color && *no_color));
}

bool terminal_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
