/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block of lines at the bottom of a terminal, redrawn in place, while what is said goes on above
 * it and stays in the scrollback. There is no alternate screen, no hidden cursor and no other mode
 * of the terminal, so that nothing has to be put back when we are killed.
 *
 * Between two drawings the cursor stands on an empty line above the block. So a resize needs no
 * knowledge of how this terminal wraps what stands there (erase from the cursor down, draw again),
 * and what others write to the terminal meanwhile (a warning, what is typed) stands on that line
 * and not in the block.
 *
 * No terminfo: six sequences are used (CR, cursor up, erase the line's rest, erase below, colours,
 * their end), which are the same in every terminal since the VT102 that calls itself otherwise than
 * "dumb". ncurses would add a dependency that a login node may lack, and takes the whole screen.
 */
#ifndef FETTLE_CMD_SCREEN_H
#define FETTLE_CMD_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "orchestrator/base/str.h"

/* Zero-initialise, with `out`. */
struct screen {
	FILE *out;
	size_t shown; /* lines of the block that stands there; 0: none */
	bool gone;    /* the terminal is: nothing is written any more */
};

/* Draw the block anew, its first `rows` lines at most. */
void screen_draw(struct screen *s, const struct strv *lines, size_t rows);
/* Take it away: the cursor stands where it began, and others may write. */
void screen_clear(struct screen *s);
/* Put text (whole lines) above the block, which is gone until the next screen_draw(). */
void screen_say(struct screen *s, const char *text);

#endif
