/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of the report about objectives: what one sample (token, step) costs in node-hours,
 * GPU-hours, network bytes and storage operations at the throughput that an arm reached, and how
 * configurations do in two objectives at once. Loaded with the report; NaN is what nobody measured.
 */
#ifndef FETTLE_REPORT_OBJECTIVES_H
#define FETTLE_REPORT_OBJECTIVES_H

#include "orchestrator/base/json.h"
#include "orchestrator/report/report.h"

/* s: the campaign's stages. Fills costs and tradeoffs of r. */
int report_objectives_load(struct db *db, struct report *r, const struct stage_row *s, size_t n,
			   struct err *e);
void report_objectives_done(struct report *r);

struct json *report_costs_json(const struct report *r);
struct json *report_tradeoffs_json(const struct report *r);

#endif
