/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The nodes of one campaign or several, what each does to the blocks that ran on it
 * (experiments/nodes.h), what failed on it, and what was measured there that could explain it.
 */
#ifndef FETTLE_REPORT_SLOW_NODES_H
#define FETTLE_REPORT_SLOW_NODES_H

#include "experiments/nodes.h"
#include "experiments/query.h"
#include "orchestrator/base/json.h"

/* A metric that stands out on a node. */
struct node_evidence {
	const char *metric, *unit; /* of the catalogue */
	double here, others;       /* means; others: of the nodes that are not slow */
};
struct slow_node {
	char *name;
	struct node_effect effect;
	int faults; /* jobs that ended through their nodes' fault */
	struct node_evidence *evidence;
	size_t n_evidence;
};
struct slow_nodes {
	struct slow_node *v; /* the slowest first, those not known last */
	size_t n, units, stages;
	struct node_fit fit;
	double alpha, min_slow;
	bool estimated; /* false: too few blocks, or all of them on one node */
};

/* Gather campaigns, then estimate once. */
struct slow_nodes_input;
struct slow_nodes_input *slow_nodes_new(void);
void slow_nodes_free(struct slow_nodes_input *in); /* NULL is fine */
int slow_nodes_add(struct slow_nodes_input *in, struct db *db, int64_t campaign,
		   const struct recipe *r, struct err *e);
void slow_nodes_estimate(struct slow_nodes_input *in, double alpha, double min_slow,
			 struct slow_nodes *out);
void slow_nodes_done(struct slow_nodes *s);

void slow_nodes_text(const struct slow_nodes *s, struct buf *out);
struct json *slow_nodes_json(const struct slow_nodes *s);

#endif
