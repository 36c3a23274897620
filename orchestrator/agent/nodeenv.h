/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this node is when an attempt begins, for the orchestrator to hold results against:
 * <dir>/environment.json, on a node that is not the agent's environment.NODE.json (FORMATS.md). It
 * is what nodefacts.h reads, `nvidia-smi -q`, and the keys of the block: files, and commands that
 * are run in its directory with the environment of its trials, all at once.
 */
#ifndef FETTLE_AGENT_NODEENV_H
#define FETTLE_AGENT_NODEENV_H

#include "orchestrator/agent/block.h"
#include "orchestrator/base/str.h"

enum { NODEENV_LIMIT_US = 10000000 }; /* of the programs together; what still runs is killed */

/* What there is, into keys; why a key of the block is not there, into absent. */
void nodeenv_read(const struct block *b, int64_t limit_us, struct kvs *keys, struct kvs *absent);

/* Never fails: a file that cannot be written is absent, which the orchestrator bears. A block that
 * does not ask for it gets none. own: this is the agent's own node. */
void nodeenv_write(const struct block *b, const char *dir, const char *node, bool own);

#endif
