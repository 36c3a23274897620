/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of series over nights (report/nights.h), from the database. */
#ifndef FETTLE_CMD_HISTORY_PAGE_H
#define FETTLE_CMD_HISTORY_PAGE_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/workspace.h"
#include "orchestrator/report/nights.h"

/* Append the page of these series, from a night on (NULL: from the first), in that language (as
 * drive_options.lang). open (may be NULL): confirmed regressions for the worse that are open. */
int history_page(struct workspace *w, struct nights *n, const struct nights_glance *g, size_t n_g,
		 const char *since, const char *lang, struct buf *out, size_t *open, struct err *e);

#endif
