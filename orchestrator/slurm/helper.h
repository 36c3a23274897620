/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fettle-slurm: Slurm's API behind a pipe. One JSON line in, one JSON line out, in order
 * (PROTOCOL.md). It is a program of its own because libslurm may exit(1), may block for minutes,
 * and has another binary interface in every release. It decides nothing: it passes on raw facts,
 * and dies with its parent.
 *
 * An operation reads `req`, adds to `reply` and returns 0; or it sets *e and returns negative. The
 * code of *e becomes the `code` of the reply: ERR_TEMP temp, ERR_NOT_FOUND notfound, others perm.
 */
#ifndef FETTLE_SLURM_HELPER_H
#define FETTLE_SLURM_HELPER_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/slurm/stderrbuf.h"

struct helper {
	struct stderrbuf stderrbuf; /* stderr of libslurm */
	int64_t request_id;         /* -1 between requests */
	bool ready;                 /* slurm_init was called */
	bool away;                  /* the controller did not answer the last time */
	int slurm_errno;            /* of the failure of this request, 0: not Slurm's */
	int out;                    /* where replies go */
};

typedef int (*helper_op)(struct helper *h, const struct json *req, struct json *reply,
			 struct err *e);

int helper_hello(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_ping(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_submit(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_willrun(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_poll(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_find(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_cancel(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_capacity(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_acct(struct helper *h, const struct json *req, struct json *reply, struct err *e);
int helper_nodes(struct helper *h, const struct json *req, struct json *reply, struct err *e);

/* 0 when the controller may be asked. One that is away costs every call MessageTimeout seconds; a
 * ping finds that out at once where the connection is refused, so it goes first while h->away. */
int helper_check_controller(struct helper *h, struct err *e);

/* Is the `job` of a request within the limits of its partition? Slurm's own answer depends on the
 * release and on EnforcePartLimits: it may queue the job for ever. Not asked for a job that names a
 * QOS, which may lift the limits, nor for several partitions. */
int helper_check_limits(struct helper *h, const struct json *job, struct err *e);

/* Set *e from errno as libslurm left it: "what: text of Slurm". Remembers the number in *h. */
int helper_slurm_failed(struct helper *h, struct err *e, const char *what);

/* The same for a number that came with a reply rather than through errno. */
int helper_slurm_verdict(struct helper *h, int number, struct err *e, const char *what);

/* Host names of a Slurm node list ("n[1-3]"), comma separated; heap, "" for NULL. */
char *helper_expand_nodes(const char *list);

#endif
