/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The environment of one trial: the block's base, then what the allocation gives (SLURM_*, the
 * devices), then the arm's own variables and removals, then what the agent adds so that trials
 * are isolated, then secrets. The arm and the base win over the agent's additions. Secret
 * values are read from the agent's own environment or from the 0600 file named by FETTLE_SECRETS,
 * and are known here so that they can be kept out of every file that the agent writes.
 */
#ifndef FETTLE_AGENT_TRIALENV_H
#define FETTLE_AGENT_TRIALENV_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* Values of the block's secrets; names without a value are left out. Fails when the file is
 * readable by others. */
int trialenv_secrets(const struct block *b, struct kvs *out, struct err *e);

struct trialenv {
	struct kvs vars;  /* the whole environment */
	struct kvs added; /* what the agent put there itself: it differs from trial to trial by
			     design */
	struct strv envp; /* the same as execve wants it */
};

/* Fill *out for the slot; dir is the trial's directory (absolute), secrets from trialenv_secrets,
 * host for MASTER_ADDR. */
int trialenv_make(const struct block *b, const struct block_slot *slot, const char *dir,
		  const struct kvs *secrets, const char *host, struct trialenv *out, struct err *e);
void trialenv_free(struct trialenv *t);

/* "FETTLE_TRIAL=<token>:<slot>": marks each process of a trial. Heap. */
char *trialenv_marker(const struct block *b, int slot);

/* Replace each secret value of 4 bytes or more in s by "***". Heap. */
char *trialenv_redact(const struct kvs *secrets, const char *s);

#endif
