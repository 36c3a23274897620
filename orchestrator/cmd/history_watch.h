/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `fettle history watch DIR...`: logs of ordinary jobs as points of an observed series. */
#ifndef FETTLE_CMD_HISTORY_WATCH_H
#define FETTLE_CMD_HISTORY_WATCH_H

/* argv[0] is "fettle history watch"; the exit status of DESIGN 5. */
int history_watch(int argc, char **argv);

#endif
