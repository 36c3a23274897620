/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Standard error of this process as a text that can be taken: libslurm says there, and nowhere
 * else, why it refused a job. What was not taken goes to the real stderr when the process ends. */
#ifndef FETTLE_SLURM_STDERRBUF_H
#define FETTLE_SLURM_STDERRBUF_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct stderrbuf {
	int fd;        /* memory file in the place of descriptor 2 */
	int stderr_fd; /* the real one */
};

int stderrbuf_start(struct stderrbuf *c, struct err *e);
/* Append what was written since the last call, at most STDERRBUF_MAX of its end; the rest is
 * dropped. */
void stderrbuf_take(struct stderrbuf *c, struct buf *out);
/* Write what is left to the real stderr, which becomes descriptor 2 again. */
void stderrbuf_stop(struct stderrbuf *c);

#endif
