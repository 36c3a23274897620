/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The environment that results hold for, as keys and texts: what the agent of each node told
 * (environment.json, orchestrator/agent/FORMATS.md), and what is known here: container, commit of
 * the workload's directory, loaded modules, variables that the recipe names. All of a node is
 * stored once; a stage has what its nodes share. A fix expires when a key changes.
 */
#ifndef FETTLE_METHOD_FINGERPRINT_H
#define FETTLE_METHOD_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "experiments/fingerprint.h"
#include "experiments/model.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/sched/sched.h"

struct campaign;
struct json;

/* -- an attempt -------------------------------------------------------------------------------- */

/* What its nodes are asked for: `fingerprint` of block.json. */
struct json *fingerprint_asked(const struct recipe *r);

/* The files of the agents in dir, of the nodes in a->nodes, into a->environments. One that is not
 * there is no error (an agent of before); one that cannot be read, and keys of the recipe that a
 * node could not read, are noted. */
void fingerprint_read(const struct recipe *r, const char *dir, const char *token,
		      struct attempt_files *a);
/* One file, text of n bytes. keys: cleaned; notes: what is absent and why. -ERR_PARSE. */
int fingerprint_parse(const char *name, const char *text, size_t n, const char *token, char **node,
		      struct kvs *keys, struct strv *notes, struct err *e);
/* Store them with the attempt, each with what is known here. Where its nodes differ is noted. In
 * the caller's transaction. */
int fingerprint_store(struct campaign *c, int64_t attempt, struct attempt_files *a, struct err *e);

/* What is known without a node. host: where trials run on this very machine its name counts. */
void fingerprint_here(const struct recipe *r, const struct kvs *env, bool host, struct kvs *out);

/* -- then and now ------------------------------------------------------------------------------ */

/* What changed since `then` was taken, one line a key ("kernel: 5.10 -> 6.1"), appended to out.
 * Empty: the fix still holds for this environment. A key that one of them lacks says nothing: it
 * was not recorded. Of a key whose value differs between nodes a change is a value that no node
 * had. The name of the host counts where trials run on it. ERR_PARSE for a text that is no
 * fingerprint. */
int fingerprint_changes(const char *then, const char *now, struct strv *out, struct err *e);
/* Is it one that a fettle before 0010 took of its own machine? Its trials ran there or not. */
bool fingerprint_is_old(const char *then);

/* The environment as far as it is known now: as it was measured last by a campaign of this name on
 * this scheduler; what is known here; and where trials run on this machine, what it is. No program
 * is started. r NULL: the recipe cannot be read. Heap. */
struct workspace;
struct campaign_row;
int fingerprint_now(struct workspace *w, const struct campaign_row *row, const struct recipe *r,
		    char **json, struct err *e);
/* This machine alone, as fingerprint_is_old() ones were taken; heap. */
char *fingerprint_this_machine(void);

#endif
