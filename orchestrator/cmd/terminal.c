/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 80 };

size_t terminal_width(FILE *f)
{
	struct winsize w;

	if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		return w.ws_col < TERMINAL_WIDTH_MAX ? w.ws_col : TERMINAL_WIDTH_MAX;
	return WIDTH_DEFAULT;
}

bool terminal_live(FILE *f)
{
	const char *term = getenv("TERM");

	return isatty(fileno(f)) && term && strcmp(term, "dumb") != 0;
}

bool terminal_colour(FILE *f)
{
	const char *no_color = getenv("NO_COLOR");

	return terminal_live(f) && !(no_color && *no_color);
}

bool terminal_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
