/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `fettle history import FILE...`: a team's own history becomes imported series. */
#ifndef FETTLE_CMD_HISTORY_IMPORT_H
#define FETTLE_CMD_HISTORY_IMPORT_H

/* argv[0] is "fettle history import"; the exit status of DESIGN 5. */
int history_import(int argc, char **argv);

#endif
