/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was sampled on the nodes of a trial, cut to its measured window. The first node is the
 * agent's: its samples are the trial's own metrics, without a label. Each other node has its file,
 * by its own clock: the window is moved by what that clock differs, as the record says, and what is
 * kept of it is short and has the label `node`. A file that is there and cannot be read is told in
 * e, which keeps what it has.
 */
#ifndef FETTLE_METHOD_SAMPLES_H
#define FETTLE_METHOD_SAMPLES_H

#include "experiments/model.h"
#include "orchestrator/base/json.h"
#include "orchestrator/method/window.h"

/* Keys of effective values: the node of a rank; of rank -1, why not all ranks of a trial on several
 * nodes were seen. */
#define EFFECTIVE_NODE    "node"
#define EFFECTIVE_MISSING "ranks.missing"

/* The first node's /proc, into t; NULL when it was not sampled. dir: the block's; rec: tNN.json. */
struct window *samples_read(const char *dir, const struct json *rec, struct trial_result *t,
			    struct err *e);
/* The first node's devices, into t: the name of the first one, heap (NULL unknown), and how many
 * there are. What nvidia-smi said of an error is a sentence in notes. */
char *samples_devices(const char *dir, const struct json *rec, struct trial_result *t,
		      int *n_devices, struct strv *notes, struct err *e);
/* The other nodes', into t. A node of which there is nothing, or whose clock is far off, is a
 * sentence in notes, and so is what its nvidia-smi said of an error. */
void samples_other_nodes(const char *dir, const struct json *rec, struct trial_result *t,
			 struct strv *notes, struct err *e);
/* Ranks of other nodes that nobody saw: nothing about them is proved. */
void samples_missing_ranks(const struct json *rec, struct trial_result *t);

#endif
