/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a stream's other end can show. */
#ifndef FETTLE_CMD_TERMINAL_H
#define FETTLE_CMD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TERMINAL_WIDTH_MAX = 400 };
/* Columns of the terminal, at most that many; 80 where there is none. */
size_t terminal_width(FILE *f);
/* A terminal that moves its cursor: not piped, not TERM=dumb. */
bool terminal_live(FILE *f);
/* Live, and NO_COLOR is not set. */
bool terminal_colour(FILE *f);
/* Does the locale have UTF-8? */
bool terminal_utf8(void);

#endif
