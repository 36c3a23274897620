/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an agent would have left in a block's directory, made up from the declared truth
 * (FORMATS.md). */
#ifndef FETTLE_SCHED_FAKE_FILES_H
#define FETTLE_SCHED_FAKE_FILES_H

#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/sched/fake_trial.h"

/* Write claim.json, tNN/ and tNN.json of each slot, and done.json last. Equal input gives equal
 * bytes. *end_us: when the last trial ended. */
int fake_files_write(const struct fake_run *r, int64_t *end_us, struct err *e);

/* Number of slots that the block has, from its block.json. */
int fake_files_slots(const char *dir, size_t *out, struct err *e);

#endif
