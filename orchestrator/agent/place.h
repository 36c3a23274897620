/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the agent runs: this host, the nodes of its allocation, and which of them is this one. */
#ifndef FETTLE_AGENT_PLACE_H
#define FETTLE_AGENT_PLACE_H

#include "orchestrator/base/str.h"

enum { PLACE_HOST_MAX = 256 };

struct place {
	char host[PLACE_HOST_MAX], boot_id[37];
	struct strv nodes; /* never empty */
	char *node;        /* this one, as the scheduler calls it; else the host's name */
	char *switches;    /* those above it, the topmost first: "s0.s3"; "" unknown */
	int expected;      /* nodes that the scheduler says there are; 0: it says nothing */
};

void place_find(struct place *p);
void place_free(struct place *p);

#endif
