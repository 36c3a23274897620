/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `fettle report --all -o DIR`: the tuning logs of all campaigns of some workspaces, their series
 * over nights, and the index over them (report/overview.h), as a folder of files (publish.h). */
#ifndef FETTLE_CMD_REPORT_ALL_H
#define FETTLE_CMD_REPORT_ALL_H

#include <stddef.h>

#include "orchestrator/base/err.h"

struct report_all {
	const char *dir;               /* of the site */
	const char *const *workspaces; /* directories; at least one */
	size_t n;
	const char *lang; /* as drive_options.lang */
};

/* Prints what was written. A campaign whose log cannot be made has a line that says why, its old
 * pages stay, and the error tells of it when all is written; any other error changes nothing. */
int report_all(const struct report_all *a, struct err *e);

#endif
