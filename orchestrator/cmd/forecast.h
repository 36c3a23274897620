/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the cluster says of a campaign before anything of it runs: whether it is there, for `fettle
 * run`, and a dry run of its first job, for `fettle plan`. Nothing is queued.
 */
#ifndef FETTLE_CMD_FORECAST_H
#define FETTLE_CMD_FORECAST_H

#include <stdbool.h>

#include "experiments/model.h"
#include "orchestrator/sched/sched.h"

/* Is it a scheduler that a dry run is worth asking? (`local` would start at once, `fake` is none.)
 */
bool forecast_wanted(const char *scheduler);

/* Ask it. -ERR_RECIPE, -ERR_NOT_FOUND: the cluster refuses such a job, and *e says what to change;
 * *refused is true. Any other error: it could not be asked. */
int forecast_ask(const char *scheduler, const struct recipe *r, struct sched_forecast *out,
		 bool *refused, struct err *e);

/* Does it answer at all? Asked before a campaign is stored that nobody could begin. */
int forecast_reach(const char *scheduler, const struct recipe *r, struct err *e);

/* The slurm.conf of this machine: $SLURM_CONF, else the first of the usual places that is there;
 * NULL: none. Heap. libslurm looks for its configuration for a minute, so it is only asked where
 * there is one. */
char *forecast_slurm_conf(void);

#endif
