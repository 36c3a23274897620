/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sections of the tuning log, in the order in which a reader needs them, and what several of
 * them say in the same way. They are calls of doc.h: what is Markdown or HTML is not known here.
 * Pure functions of the report.
 */
#ifndef FETTLE_REPORT_TLOG_H
#define FETTLE_REPORT_TLOG_H

#include "orchestrator/report/doc.h"
#include "orchestrator/report/report.h"

/* Each writes its heading and what belongs under it, or nothing where the campaign has no such
 * thing. NULL at the end. */
typedef void tlog_section(const struct report *r, struct doc *doc);
extern tlog_section *const tlog_sections[];

/* tlog_head.c: who ran what, what was asked for */
void tlog_head(const struct report *r, struct doc *doc);
void tlog_target(const struct report *r, struct doc *doc);
const char *tlog_target_word(enum report_target t); /* translated */

/* tlog_story.c: the answer with its figures; how it went */
void tlog_summary(const struct report *r, struct doc *doc);
void tlog_story(const struct report *r, struct doc *doc);

/* tlog_measure.c: steps 1 to 3 */
void tlog_baseline(const struct report *r, struct doc *doc);
void tlog_hypotheses(const struct report *r, struct doc *doc);
void tlog_experiment(const struct report *r, struct doc *doc);

/* tlog_ladder.c: in place of tlog_baseline() where the campaign has a ladder */
void tlog_ladder(const struct report *r, struct doc *doc);

/* tlog_judge.c and tlog_fix.c: steps 4 and 5 */
void tlog_validation(const struct report *r, struct doc *doc);
void tlog_fixing(const struct report *r, struct doc *doc);

/* tlog_found.c: knobs by effect, how changes act on each other, what was refuted or left out */
void tlog_ranking(const struct report *r, struct doc *doc);
void tlog_negatives(const struct report *r, struct doc *doc);
/* tlog_stack.c; a part of tlog_ranking() */
void tlog_interactions(const struct report *r, struct doc *doc);

/* tlog_canary.c, tlog_objectives.c, tlog_sizes.c: where the campaign has them */
void tlog_canaries(const struct report *r, struct doc *doc);
void tlog_unit_costs(const struct report *r, struct doc *doc);
void tlog_tradeoffs(const struct report *r, struct doc *doc);
void tlog_sizes(const struct report *r, struct doc *doc);

/* tlog_environment.c: what it was measured on */
void tlog_environment(const struct report *r, struct doc *doc);
void tlog_consumed(const struct report *r, struct doc *doc); /* a part of tlog_cost() */

/* tlog_record.c: what went wrong, what it cost, how to do it again */
void tlog_record(const struct report *r, struct doc *doc);
void tlog_packed(const struct report *r, struct doc *doc); /* where raw files lie, if packed */
void tlog_alpha(const struct report *r, struct doc *doc);
void tlog_cost(const struct report *r, struct doc *doc);
void tlog_reproduce(const struct report *r, struct doc *doc);

/* tlog_effects.c: what a stage showed beside the objective */
/* Rows of a verdict, or of a stage of the fix; the other is 0. */
void tlog_guards(const struct guard_row *v, size_t n, int64_t verdict, int64_t stage,
		 struct doc *doc);
void tlog_effects(const struct report *r, const struct report_effects *x, struct doc *doc);
bool tlog_moved(const struct report_pairs *p); /* by more than is written as 0.0 % */

/* tlog.c: shared */
/* Does the campaign test hypotheses? A ladder and a canary do not. */
bool tlog_tests(const struct report *r);
const char *tlog_or_unset(const char *value);                           /* NULL: "(not set)" */
void tlog_change(struct doc *doc, const struct hypothesis_row *h);      /* `knob` from -> to */
void tlog_cell_change(struct doc *doc, const struct hypothesis_row *h); /* the same, two cells */
const char *tlog_outcome(const struct report_hypothesis *h);            /* verdict, else state */
void tlog_verdict(const struct report_hypothesis *h, struct doc *doc);  /* all in a line */
void tlog_node_cost(const struct report *r, double node_s, struct doc *doc); /* ", node-hours" */
/* Of a raw log; false: the page could lead there, but it is gone. */
bool tlog_log(const struct report *r, const char *path, struct doc *doc);
void tlog_stage(const struct report_stage *s, struct doc *doc); /* line and conclusion */
void tlog_arms(const struct report *r, const struct report_stage *s, struct doc *doc);

#endif
