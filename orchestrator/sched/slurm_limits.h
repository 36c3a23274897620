/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Durations as Slurm writes them, and the limits of a partition against what a job asks for. Pure.
 */
#ifndef FETTLE_SCHED_SLURM_LIMITS_H
#define FETTLE_SCHED_SLURM_LIMITS_H

#include <stdint.h>

#include "orchestrator/base/err.h"

/* Seconds of "60" (minutes), "1:30" (minutes, seconds), "2:00:00", "1-12", "1-12:30", ...; -1: none
 * of these. */
int64_t slurm_limits_duration_s(const char *text);

/* Of one partition; 0: no limit. */
struct slurm_limits {
	const char *partition;
	int64_t nodes_total, nodes_most, minutes_most;
};

/* ERR_RECIPE with the sentence that tells what is asked for, what is allowed, and what to change.
 */
int slurm_limits_check(const struct slurm_limits *l, int64_t nodes, int64_t minutes, struct err *e);

#endif
