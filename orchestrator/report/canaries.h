/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nights of a report: what canary stages were for and said, and where the series that they feed
 * stand. */
#ifndef FETTLE_REPORT_CANARIES_H
#define FETTLE_REPORT_CANARIES_H

#include "orchestrator/report/report.h"

struct json;

int report_canaries_load(struct db *db, struct report *r, struct err *e);
void report_canaries_done(struct report *r);
/* Members `canaries` and `series`. */
void report_canaries_json(const struct report *r, struct json *o);
/* A series in a sentence: "throughput_samples_per_s (pair): 0.998 on 2026-12-10, -0.2 % from the
 * median of 11 nights before; regression 3, a suspicion, is open". Appends to b. */
void report_series_text(const struct report_series *s, struct buf *b);
/* The note of a stage, or that it is open; borrowed. */
const char *report_canary_note(const struct report_canary *c);

#endif
