/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a stream's other end can show. */
#ifndef FETTLE_CMD_TERMINAL_H
#define FETTLE_CMD_TERMINAL_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TERMINAL_WIDTH_MAX = 400 };

/* When there are colours: on a terminal unless NO_COLOR says otherwise, always, never. */
enum terminal_colours { COLOURS_AUTO, COLOURS_ALWAYS, COLOURS_NEVER };
/* An argp child with --color; its input is an enum terminal_colours. */
extern const struct argp terminal_argp;

/* Columns of the terminal, at most that many; 80 where there is none. */
size_t terminal_width(FILE *f);
/* Lines of it, 24 where there is none. */
size_t terminal_rows(FILE *f);
/* A terminal that moves its cursor: not piped, not TERM=dumb. */
bool terminal_live(FILE *f);
/* It is ours to draw on: the shell did not put us into the background. */
bool terminal_foreground(FILE *f);
/* Colours there, as the option says: auto is live without NO_COLOR. */
bool terminal_colour(FILE *f, enum terminal_colours when);
/* Does the locale have UTF-8? */
bool terminal_utf8(void);

#endif
