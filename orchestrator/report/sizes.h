/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of the report about collectives: bus bandwidth by message size, each arm against the
 * baseline of the same blocks. An average over sizes hides that a setting helps the small ones and
 * harms the large ones. Loaded with the report; nothing where no metric has sizes.
 */
#ifndef FETTLE_REPORT_SIZES_H
#define FETTLE_REPORT_SIZES_H

#include "orchestrator/base/json.h"
#include "orchestrator/report/report.h"

/* s: the campaign's stages. Fills sizes of r. */
int report_sizes_load(struct db *db, struct report *r, const struct stage_row *s, size_t n,
		      struct err *e);
void report_sizes_done(struct report *r);
struct json *report_sizes_json(const struct report *r);

#endif
