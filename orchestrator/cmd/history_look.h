/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What new points from outside mean: looked at as a night is, with the newest one of all series. */
#ifndef FETTLE_CMD_HISTORY_LOOK_H
#define FETTLE_CMD_HISTORY_LOOK_H

#include <stdbool.h>

#include "orchestrator/base/err.h"
#include "orchestrator/method/workspace.h"

/* Look at all series (method/track.h) and say in a line what was found; with as_json nothing is
 * said. Nothing happens while there is no point. */
int history_look(struct workspace *w, bool as_json, struct err *e);

#endif
