/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an error number of Slurm means for us. Pure; the numbers are the same from 20.11 to 26.05.
 */
#ifndef FETTLE_SCHED_SLURM_ERRORS_H
#define FETTLE_SCHED_SLURM_ERRORS_H

#include <stdbool.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* ERR_TEMP (the controller or the network is away, or a limit that time lifts), ERR_NOT_FOUND (a
 * named thing does not exist) or ERR_RECIPE (Slurm will refuse it again). */
enum err_code slurm_errors_class(int number);

/* The sentence that tells the user what to change, or NULL. */
const char *slurm_errors_advice(int number);

/* The number of an error by the words that Slurm's commands have for it; SLURM_ERRORS_UNKNOWN when
 * none is recognised (class ERR_RECIPE, no advice). */
enum { SLURM_ERRORS_UNKNOWN = 2999 };
int slurm_errors_number(const char *words);

/* libslurm, in fettle-slurm or in a command, gives up over its configuration before it asks any
 * controller (class ERR_NOT_FOUND): a machine of no cluster, or one that does not know its own. */
enum { SLURM_ERRORS_NO_CONF = 2998 };
#define SLURM_ERRORS_NOT_HERE "Slurm cannot be used on this machine"

/* What libslurm or a command printed (NULL: nothing), line by line, each after `before`, without
 * the "fettle-slurm: error: " that lines begin with. Lines in a row that differ only in the number
 * at their end (attempts at a name that does not resolve) are one, with how often it was said. */
void slurm_errors_put_lines(struct buf *out, const char *said, const char *before);

/* The job is over or forgotten: to a request to end it, that is success. */
bool slurm_errors_already_gone(int number);

#endif
