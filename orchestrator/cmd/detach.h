/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A campaign that drives itself from inside the cluster: `fettle run --detach` submits one small
 * job (a core, half a GiB, no GPU) that is `fettle` itself and goes on with the campaign, where
 * compute nodes may submit jobs. When that job's time is up it leaves the campaign's jobs running:
 * the next `fettle resume` or `fettle tick` adopts them.
 */
#ifndef FETTLE_CMD_DETACH_H
#define FETTLE_CMD_DETACH_H

#include "orchestrator/cmd/drive.h"

/* Submit the job for a stored campaign; `partition` NULL: the cluster's default. Says its number.
 * A campaign that has such a job already gets no other. */
int detach_submit(struct workspace *w, int64_t id, const struct drive_options *o,
		  const char *partition, struct err *e);

/* What that job runs: `path` is <workspace>/detached/<campaign>. The exit status. */
int detach_main(const char *path);

#endif
