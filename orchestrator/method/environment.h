/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two environments. That of trials, their variables, is an allow-list, captured once at the first
 * run, so that resume from another shell changes nothing. What a scheduler or launcher sets for
 * itself (SLURM_*, SBATCH_*, PMI*, OMPI_*) is left out. That of results is what they hold for:
 * kernel, drivers, libraries, settings of the nodes, told by the agent of each (fingerprint.h).
 */
#ifndef FETTLE_METHOD_ENVIRONMENT_H
#define FETTLE_METHOD_ENVIRONMENT_H

#include <stdint.h>

#include "orchestrator/base/err.h"

struct campaign;
struct stage_row;

/* The allowed part of this process's environment as a JSON object, keys sorted; heap. */
char *environment_capture(void);

/* What the nodes of a stage's blocks were, as one object of texts (fingerprint_join); stored, and
 * its id. 0: nothing is known (made-up trials, an agent of before). In the caller's transaction. */
int environment_of_stage(struct campaign *c, const struct stage_row *s, int64_t *id, struct err *e);

#endif
