/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs that live though all their blocks are done. Slurm takes back what it knew when it was killed
 * (slurmctld saves its state some seconds late): a job that had ended runs again in its books, or
 * is started again, finds its blocks claimed and ends. Unless somebody holds it: then it would stay
 * in the queue for ever.
 */
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	LOOKS = 6, /* the last agents are just about to end by themselves */
	LOOK_US = 500000,
};

/* Those of `v` that are this campaign's and have no block in flight; they stay in v[0..*n). */
static int keep_over(struct campaign *c, struct sched_status *v, size_t *n, struct err *e)
{
	size_t left = 0;
	int rc = 0;

	for (size_t i = 0; i < *n && rc == 0; i++) {
		bool over = false;

		rc = query_allocation_over(c->ws->db, c->row.id, v[i].token, &over, e);
		if (over)
			v[left++] = v[i];
	}
	*n = left;
	return rc;
}

static int end_them(struct campaign *c, const struct sched_status *v, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (c->sched->cancel(c->run, v[i].id, NULL) < 0)
			continue;
		campaign_tell(c, PROGRESS_NOTE, 0,
			      "job %s lives on though its blocks are done: cancelled", v[i].id);
		rc = campaign_event(c, e, "cancel",
				    "job %s (%s) lives on though its blocks are done: cancelled",
				    v[i].id, v[i].token);
	}
	return rc;
}

int sweep_jobs(struct campaign *c, struct err *e)
{
	char uuid[37], prefix[32];
	struct sched_status *v = NULL;
	size_t n = 0;
	int rc;

	if (!c->sched->alive)
		return 0;
	if ((rc = query_workspace_uuid(c->ws->db, c->ws->clock, uuid, e)) < 0)
		return rc;
	snprintf(prefix, sizeof prefix, "fettle:%.8s:a", uuid);
	for (int look = 0; rc == 0 && look < LOOKS; look++) {
		free(TAKE(v));
		n = 0;
		if (c->sched->alive(c->run, prefix, &v, &n, NULL) < 0)
			return 0; /* it cannot be asked: not worth waiting for */
		if ((rc = keep_over(c, v, &n, e)) < 0 || n == 0)
			break;
		rc = campaign_wait(c, LOOK_US, -1, e);
	}
	if (rc == 0)
		rc = end_them(c, v, n, e);
	free(v);
	return rc;
}
