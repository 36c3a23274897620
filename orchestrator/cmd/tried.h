/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a workspace knows about knobs: every hypothesis of every campaign, with its verdict. For
 * those who ask whether anybody has tried a setting here.
 */
#ifndef FETTLE_CMD_TRIED_H
#define FETTLE_CMD_TRIED_H

#include "orchestrator/cmd/drive.h"

/* One hypothesis. All borrowed from struct tried. */
struct trying {
	const struct campaign_row *campaign;
	const struct hypothesis_row *hyp;
	const struct verdict_row *verdict; /* NULL: none yet, or not tested */
};

struct tried;
/* Read all campaigns of the workspace in dir (NULL: the usual one, which need not be there). */
int tried_load(const char *dir, struct tried **out, struct err *e);
void tried_free(struct tried *t); /* NULL is fine */

size_t tried_n(const struct tried *t);
const struct trying *tried_at(const struct tried *t, size_t i); /* newest campaign first */

/* How many hypotheses about the knob have a verdict, and how many of these are accepted. */
size_t tried_tested(const struct tried *t, const char *knob);
size_t tried_accepted(const struct tried *t, const char *knob);
/* Was it ever proposed? */
bool tried_known(const struct tried *t, const char *knob);

#endif
