/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sections of the tuning log in Markdown, in the order in which format_markdown.c puts them
 * together, and what several of them say in the same way. Pure functions of the report.
 */
#ifndef FETTLE_REPORT_MDLOG_H
#define FETTLE_REPORT_MDLOG_H

#include "orchestrator/report/report.h"

/* mdlog_measure.c: steps 1 to 3 */
void mdlog_baseline(const struct report *r, struct buf *b);
void mdlog_canaries(const struct report *r, struct buf *b);
void mdlog_hypotheses(const struct report *r, struct buf *b);
void mdlog_experiment(const struct report *r, struct buf *b);

/* mdlog_judge.c: steps 4 and 5, and what came out of them */
void mdlog_validation(const struct report *r, struct buf *b);
void mdlog_fixing(const struct report *r, struct buf *b);
void mdlog_ranking(const struct report *r, struct buf *b);
void mdlog_negatives(const struct report *r, struct buf *b);

/* mdlog_stack.c: what stacking showed, and where it ran; nothing when there is nothing */
/* In place of mdlog_baseline() where the campaign has a ladder. */
void mdlog_ladder(const struct report *r, struct buf *b);
void mdlog_ablation(const struct report *r, struct buf *b);
void mdlog_nodes(const struct report *r, struct buf *b);
const char *mdlog_ablation_words(const struct ablation_row *a);

/* mdlog_hosts.c: what the cluster says; nothing when it says nothing */
void mdlog_consumed(const struct report *r, struct buf *b);
void mdlog_hosts(const struct report *r, struct buf *b);

/* mdlog_record.c */
void mdlog_faults(const struct report *r, struct buf *b);
void mdlog_quality(const struct report *r, struct buf *b);
void mdlog_events(const struct report *r, struct buf *b);
void mdlog_alpha(const struct alpha_ledger *a, struct buf *b);
void mdlog_cost(const struct report *r, struct buf *b);
void mdlog_reproduce(const struct report *r, struct buf *b);

/* mdlog_objectives.c */
void mdlog_unit_costs(const struct report *r, struct buf *b);
void mdlog_tradeoffs(const struct report *r, struct buf *b);
void mdlog_sizes(const struct report *r, struct buf *b);

/* mdlog.c: shared */
const char *mdlog_or_unset(const char *value);                         /* NULL: "(not set)" */
void mdlog_change(struct buf *b, const struct hypothesis_row *h);      /* `knob` from -> to */
void mdlog_cell_change(struct buf *b, const struct hypothesis_row *h); /* the same, two cells */
const char *mdlog_outcome(const struct report_hypothesis *h);          /* verdict, else state */
void mdlog_node_cost(const struct report *r, double node_s, struct buf *b); /* ", node-hours" */
void mdlog_stage(const struct report_stage *s, struct buf *b); /* line and conclusion */
void mdlog_arms(const struct report *r, const struct report_stage *s, struct buf *b);

#endif
