/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading a report (report.h), part by part: each reads what it needs from the database and fills
 * its members of the report. They run in the order in which report_load() calls them.
 */
#ifndef FETTLE_REPORT_LOAD_H
#define FETTLE_REPORT_LOAD_H

#include "orchestrator/report/report.h"

struct loader {
	struct db *db;
	struct report *r;
	struct stage_row *stages;
	size_t n_stages;
	struct verdict_row *verdicts;
	size_t n_verdicts;
	/* The values of the screen that was asked for last: each of its hypotheses asks. */
	int64_t screen;
	struct value_row *values;
	size_t n_values;
};

/* load_stages.c: stages with their arms; where the time of a step goes. */
int load_stages(struct loader *l, struct err *e);
int load_profiles(struct loader *l, struct err *e);
/* The newest stage of a kind; NULL. */
const struct stage_row *load_stage_of(const struct loader *l, enum stage_kind k);

/* load_baseline.c: the default against itself; what is held against the target. */
int load_baseline(struct loader *l, struct err *e);
int load_target(struct loader *l, struct err *e);

/* load_hypotheses.c: each with its screen, its looks and what it did to other metrics. */
int load_hypotheses(struct loader *l, struct err *e);
/* The metrics beside the objective in a stage: arm 1 against arm 0. */
int load_effects(struct loader *l, const struct stage_row *s, struct report_effects *out,
		 struct err *e);
void load_effects_done(struct report_effects *x);

/* load_proofs.c: what processes showed of a knob; the baseline's values of all of them. */
int load_proofs(struct loader *l, int64_t arm, struct report_hypothesis *h, struct err *e);
int load_effective(struct loader *l, int64_t arm, struct err *e);

#endif
