/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a campaign would run at most, what that costs and what effect it can show: printed by
 * `fettle plan`, and asked by `fettle run` before anything is started.
 *
 * The noise is the one given, else that of a campaign of this workspace that measured the same
 * workload and objective (the one that is planned, else the newest; cmd/noise.h), else assumed. A
 * campaign is refused when it states a gain to find (min_effect in the recipe, --gain) that it
 * cannot show at a noise that is known, or within its budget; and when not even a gain of half
 * could be seen.
 */
#ifndef FETTLE_CMD_OUTLINE_H
#define FETTLE_CMD_OUTLINE_H

#include "experiments/design.h"
#include "experiments/model.h"
#include "orchestrator/cmd/noise.h"

/* What the user says; 0: nothing. */
struct outline_given {
	const char *workspace; /* NULL: the default one */
	double noise, gain;    /* shares */
	double trial_s;        /* time of a run */
	int64_t campaign;      /* asked first */
};

enum outline_source { OUTLINE_ASSUMED, OUTLINE_GIVEN, OUTLINE_MEASURED };

struct outline {
	size_t candidates, aa_blocks, aa_runs, screen_runs, confirm_runs, final_runs, soak_runs,
		ladder_runs, warm_runs, profile_runs, runs; /* of a ladder: when every rung holds */
	size_t night_runs; /* of a canary, whose runs are those of one night */
	/* Of a search: kept for the final stage and the soak once a change is accepted; the fewest
	 * that lead to a fix. */
	size_t kept_runs, shortest_runs;
	double budget_runs; /* that the budget has room for; INFINITY: no bound, or not known */
	struct design_answer answer;
	double noise, gain, trial_s;  /* trial_s 0: unknown */
	double node_hours, gpu_hours; /* NaN: unknown, or no GPUs are asked for */
	enum outline_source noise_from, trial_from;
	struct noise measured; /* its campaign gave the time of a run, too */
	bool gain_stated;
	size_t blocks_left; /* of one confirm stage within the budget; SIZE_MAX: no bound */
	double mde;         /* of one confirm stage within the budget; INFINITY */
};

void outline_make(const struct recipe *r, const struct outline_given *g, struct outline *o);
/* Why the campaign cannot answer its own question and what to change, a sentence; heap, NULL: it
 * can. */
char *outline_refusal(const struct recipe *r, const struct outline *o);

#endif
