/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way to fettle-slurm: starts it, sends a request, waits for the reply within a bound, and
 * kills and starts it again when it hangs or dies. Bounds: a call takes at most twice
 * MessageTimeout + 5 s (the longest that libslurm blocks, plus its own work); after three failures
 * in a row nothing is started for 30 s, so that a broken Slurm costs little.
 */
#ifndef FETTLE_SCHED_SLURM_PIPE_H
#define FETTLE_SCHED_SLURM_PIPE_H

#include <stdbool.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"

struct slurm_pipe;

/* Start `helper` (absolute path, copied) and greet it; *clock is borrowed. ERR_NOT_FOUND when the
 * program or what it needs is absent (the text says what to install), ERR_STATE when it speaks
 * another protocol. */
int slurm_pipe_open(const char *helper, const struct clock *clock, struct slurm_pipe **out,
		    struct err *e);
void slurm_pipe_close(struct slurm_pipe *p); /* NULL is fine */

/* Send `req` (a root; an id is added, the caller keeps it) and give the reply (a root) if it is ok.
 * A `repeatable` request is sent once more to a fresh helper when the first died over it; not when
 * it hung. -ERR_TEMP: no answer, or try again; -ERR_NOT_FOUND, -ERR_RECIPE: as fettle-slurm's codes
 * notfound and perm. */
int slurm_pipe_call(struct slurm_pipe *p, struct json *req, bool repeatable, struct json **reply,
		    struct err *e);

#endif
