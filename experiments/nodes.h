/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each node does to the blocks that run on it. Pure: arrays in, values out.
 *
 * A unit is an allocation in one stage; its value is the mean of its log values, each less the mean
 * of its arm in that stage, so that arms and stages fall out and A/A runs count like any others.
 * Model: value = stage + sum of the effects of its nodes + noise, least squares. A node's effect is
 * told against the mean of all nodes that are not slow; slow ones are taken out of that mean one
 * after the other, the worst first. An interval's upper side errs with at most `alpha` over all
 * nodes together (Bonferroni), and a node is slow when that side is below -min_slow: what the
 * interval says and what is said of the node agree.
 */
#ifndef FETTLE_EXPERIMENTS_NODES_H
#define FETTLE_EXPERIMENTS_NODES_H

#include <stdbool.h>
#include <stddef.h>

enum {
	NODES_MAX = 512, /* least squares with more would take minutes */
	NODES_MAX_STAGES = 256,
};

/* One unit; `nodes` are indices below the number of nodes, at least one. */
struct node_unit {
	size_t stage;
	double y; /* log, + is better */
	const size_t *nodes;
	size_t n_nodes;
};

struct node_effect {
	double est, lo, hi; /* log; lo, hi: both sides of the interval; NAN unknown */
	int units;
	bool slow;
	/* false: no unit, or it cannot be told from the nodes that always ran with it */
	bool known;
};

struct node_fit {
	double sd; /* of a unit, what nodes and stages do not explain; NAN unknown */
	double df;
};

/* out: one element a node. alpha in (0, 0.5), min_slow >= 0 (0.01: one per cent). Values that are
 * not finite and indices out of range must not occur. False: too many nodes or stages, or no
 * degrees of freedom; then no node is known. */
bool nodes_estimate(const struct node_unit *units, size_t n, size_t n_nodes, size_t n_stages,
		    double alpha, double min_slow, struct node_effect *out, struct node_fit *fit);

#endif
