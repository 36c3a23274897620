/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The results of a block straight from the declared truth: what ingest would read from the files of
 * fake_files.c, without the files. */
#ifndef FETTLE_SCHED_FAKE_MEMORY_H
#define FETTLE_SCHED_FAKE_MEMORY_H

#include "orchestrator/sched/fake_trial.h"
#include "orchestrator/sched/sched.h"

/* `block` is what block.json would hold. -ERR_NOT_FOUND: the run broke off, there is no manifest.
 * The caller frees *out with attempt_files_done(). */
int fake_memory_results(const struct fake_run *r, const struct json *block,
			struct attempt_files *out, struct err *e);

#endif
