/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What really ran: argv, environment and mapped libraries of each rank, read from /proc of the
 * live processes, never from what a workload says about itself. A process sees the ranks of its own
 * node: those of the others are found by the agent's process there (nodeside.h) and added here. A
 * value is kept verbatim when some arm names its variable or the block lists its prefix,
 * else as a hash: an undeclared difference shows without the value being stored. Secrets are never
 * kept in any form.
 */
#ifndef FETTLE_AGENT_EVIDENCE_H
#define FETTLE_AGENT_EVIDENCE_H

#include <stddef.h>
#include <sys/types.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/agent/jwrite.h"
#include "orchestrator/base/str.h"

struct evidence_rank {
	int rank; /* -1: the launcher of ranks that are listed beside it */
	pid_t pid;
	char *node; /* where it runs */
	struct strv argv;
	struct kvs env, env_other;
	struct strv maps;
	int64_t threads, children;
};

struct evidence {
	struct evidence_rank *v;
	size_t n, cap;
	int seen, expected; /* ranks: found, and in the whole job as their own variables say */
};

/* What to look for; all borrowed. */
struct evidence_spec {
	const struct block *block;
	const char *node; /* this one's name */
	const struct kvs *secrets;
	const struct kvs
		*added; /* the agent's own variables: left out while they hold the agent's value */
	const char *marker; /* trialenv_marker: finds ranks that are no descendants; NULL: do not
			       look */
};

/* Leader alone, without a walk over /proc: right after exec. 0 when anything was read. */
int evidence_quick(const struct evidence_spec *s, pid_t leader, struct evidence *out);
/* All ranks of this node; leader 0: on another node than the agent's. *out is replaced, unless it
 * holds ranks that have ended since; -1 (nothing of it lives) leaves it as it was. */
int evidence_take(const struct evidence_spec *s, pid_t leader, struct evidence *out);
void evidence_free(struct evidence *ev);
/* Add what evidence_write() wrote on another node: n bytes of the object that holds its members. A
 * launcher of ours (leader) that was taken for a rank, because no rank was seen here, is one no
 * more. ERR_IO when the text is not whole. */
int evidence_add(struct evidence *ev, const char *text, size_t n, pid_t leader, struct err *e);
/* Members "ranks", "ranks_seen", "ranks_expected" of the object that is open. */
void evidence_write(const struct evidence *ev, struct jwrite *w);

#endif
