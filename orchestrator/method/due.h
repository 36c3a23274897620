/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a night is for: which campaigns are due, in which order they are worth their cost, what fits
 * into the budget, and which nodes a canary looks at. Pure: arrays in, decisions out.
 *
 * A look is worth the chance that it shows a change which nobody has seen, over what it costs (the
 * idea of SuperBench's selector, USENIX ATC 2024; there the chance comes from a survival model of
 * nodes). That chance is put together from three:
 *
 *   time         changes come as a Poisson process whose rate is Gamma(DUE_PRIOR_CHANGES,
 *                DUE_PRIOR_NIGHTS) beforehand; after k changes in T nights the chance of one in the
 *                d nights since the last look is 1 - ((B + T) / (B + T + d))^(A + k)
 *   environment  it is another one than at the last look: (1 + k) / (DUE_PRIOR_ENVIRONMENTS + n)
 *                of n earlier such nights that k of them brought a change
 *   suspicions   each open one is true with DUE_SUSPECT
 *
 * What never was looked at counts as certain. Canaries come before sweeps, what earlier nights left
 * before what begins, and what has waited DUE_OVERDUE times its period before anything cheaper.
 */
#ifndef FETTLE_METHOD_DUE_H
#define FETTLE_METHOD_DUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One change in 60 nights beforehand, worth half a change of evidence: a series' own history
 * outweighs it within two months. */
#define DUE_PRIOR_CHANGES 0.5
#define DUE_PRIOR_NIGHTS  30.0
/* Beforehand one change of the environment in ten is felt. */
#define DUE_PRIOR_ENVIRONMENTS 10.0
/* A suspicion asks for one more look at a third of the price: false alarms of the first stage are
 * frequent by design. */
#define DUE_SUSPECT (1.0 / 3)
/* Periods without a look after which nothing cheaper comes first: expensive canaries wait, but not
 * for ever. */
#define DUE_OVERDUE 7

/* Nights from the first date to the second, by the calendar; false: one of them is no date. */
bool due_nights_between(const char *from, const char *to, int64_t *nights);

struct due_item {
	const char *name;
	bool canary;               /* else a sweep */
	bool left;                 /* an earlier night began it and did not end it */
	int period;                /* nights from one look to the next; 0: only after a change */
	bool after_change;         /* also on the first night whose environment differs */
	const char *const *nights; /* of its looks so far, any order */
	size_t n_nights;
	int changes;         /* that they showed */
	int environment_now; /* keys of the environment that differ from those of the last look */
	/* times that it differed before, and brought a change */
	int environments, environment_changes;
	int suspects; /* open suspicions */
	/* Expected; NaN: not known. gpu_hours 0 where there are no GPUs. */
	double gpu_hours, node_hours, minutes;
};

enum due_state {
	DUE_RUN,
	DUE_DONE,    /* looked at on this very night */
	DUE_NOT_YET, /* its period is not over, and nothing changed */
	DUE_NO_ROOM, /* due, and more than what is left of the budget */
};

struct due_choice {
	enum due_state state;
	size_t place;  /* of those that run: 0 is the first; of the others: of no meaning */
	double risk;   /* chance that there is something that nobody has seen */
	double worth;  /* risk for each GPU-hour (else node-hour, else hour) */
	int64_t since; /* nights since the last look; -1: never */
	size_t ahead;  /* looks on record for later nights: the clock was set back */
	/* a phrase: "3 nights since the last look, 2 keys of the environment changed" */
	char why[280];
};

/* What is left of the night; INFINITY: no bound. */
struct due_budget {
	double gpu_hours, node_hours, minutes;
};

/* out has n elements, one an item. Returns how many run. A sweep runs as long as anything is left:
 * it can be cut at any block and goes on another night. Unknown costs count as nothing here; the
 * bound on what is spent holds all the same. */
size_t due_choose(const struct due_item *v, size_t n, const char *night,
		  const struct due_budget *left, struct due_choice *out);

/* When a canary looked at a node last, and how often it did; night "": never. */
struct due_node {
	const char *name;
	char night[11];
	int looks;
};
/* Which of the known nodes tonight's blocks stay away from, so that those looked at longest ago
 * have their turn: marks them in `avoid` (n elements, false before). `usable` nodes there are in
 * all, seen or not; each of `blocks` blocks takes `need`. Where some were never seen one block's
 * nodes fewer are left than the blocks take, for one of those; but always enough for a block, since
 * nobody knows whether the others are fit. Of one night those with more looks are avoided first.
 * Returns how many are marked. */
size_t due_avoid(const struct due_node *v, size_t n, size_t usable, size_t need, size_t blocks,
		 bool *avoid);

#endif
