/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the schedulers of Slurm share, whichever way leads to it: a way answers the requests of
 * orchestrator/slurm/PROTOCOL.md, through fettle-slurm or through Slurm's commands. Here is the
 * memory of jobs, the one decoding of their states, and politeness: one question for all our jobs,
 * every 2 s, rising to 30 s while nothing happens; poll() answers from memory in between. Results
 * do not wait for that: the campaign looks at files first.
 */
#ifndef FETTLE_SCHED_SLURM_CORE_H
#define FETTLE_SCHED_SLURM_CORE_H

#include <stdbool.h>

#include "orchestrator/base/json.h"
#include "orchestrator/sched/sched.h"

struct slurm_way {
	/* `req` (a root, kept by the caller) and its reply (a root) if it is ok. -ERR_TEMP: no
	 * answer, or try again; -ERR_NOT_FOUND, -ERR_RECIPE: as the codes notfound and perm. */
	int (*call)(void *ctx, struct json *req, bool repeatable, struct json **reply,
		    struct err *e);
	void (*close)(void *ctx);
};

/* Takes ctx over when it succeeds. */
int slurm_core_open(const struct sched_config *c, const struct slurm_way *way, void *ctx,
		    struct sched_run **out, struct err *e);
void slurm_core_close(struct sched_run *s);

/* As in struct sched. */
int slurm_core_submit(struct sched_run *s, const struct sched_job *job, char id[64], struct err *e);
int slurm_core_poll(struct sched_run *s, const char *const *ids, size_t n, struct sched_status *out,
		    struct err *e);
int slurm_core_cancel(struct sched_run *s, const char *id, struct err *e);
int slurm_core_find(struct sched_run *s, const char *token, struct sched_status *out,
		    struct err *e);
int slurm_core_alive(struct sched_run *s, const char *prefix, struct sched_status **out, size_t *n,
		     struct err *e);
int slurm_core_capacity(struct sched_run *s, struct sched_capacity *out, struct err *e);
int slurm_core_will_run(struct sched_run *s, const struct sched_job *job,
			struct sched_forecast *out, struct err *e);
int slurm_core_account(struct sched_run *s, const char *const *ids, size_t n,
		       struct sched_account *out, struct err *e);
int slurm_core_wait(struct sched_run *s, int64_t timeout_us, int fd, struct err *e);

/* The functions of a struct sched but open. */
#define SLURM_CORE_FUNCTIONS                                                                       \
	.close = slurm_core_close, .submit = slurm_core_submit, .poll = slurm_core_poll,           \
	.cancel = slurm_core_cancel, .find = slurm_core_find, .alive = slurm_core_alive,           \
	.capacity = slurm_core_capacity, .will_run = slurm_core_will_run, .wait = slurm_core_wait, \
	.account = slurm_core_account

#endif
