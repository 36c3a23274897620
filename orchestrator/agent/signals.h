/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals as a descriptor: SIGCHLD wakes the loop, TERM, INT, HUP and USR1 (Slurm's warning) mean
 * "stop". */
#ifndef FETTLE_AGENT_SIGNALS_H
#define FETTLE_AGENT_SIGNALS_H

#include "orchestrator/base/err.h"

struct signals {
	int fd;
	int stop; /* the first signal that asked to stop, 0: none */
};

/* Blocks the signals in this process; SIGPIPE is ignored. */
int signals_open(struct signals *s, struct err *e);
void signals_close(struct signals *s);
void signals_read(struct signals *s); /* take what is there, without waiting */

#endif
