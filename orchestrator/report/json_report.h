/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of fettle.report/1 that are as the store has them: stages with their arms and what was
 * recorded on the way; and how a text from a log gets into JSON. Keys are documented in REPORT.md
 * and report.schema.json.
 */
#ifndef FETTLE_REPORT_JSON_REPORT_H
#define FETTLE_REPORT_JSON_REPORT_H

#include "orchestrator/base/json.h"
#include "orchestrator/report/report.h"

/* Members of o. A byte that is no UTF-8 is U+FFFD; NULL, and time 0, are null. */
void json_report_text(struct json *o, const char *key, const char *value);
void json_report_texts(struct json *o, const char *key, const struct strv *v);
void json_report_time(struct json *o, const char *key, int64_t utc_us);
/* A text that is JSON as what it is: the keys of an environment. */
void json_report_object(struct json *o, const char *key, const char *text);
struct json *json_report_effects(const struct report_effects *x);

/* Members `stages`, `profiles`, `ablation`, `starting_points` and `rungs` of o. */
void json_report_stages(const struct report *r, struct json *o);
/* Members `faults` to `environment`. */
void json_report_record(const struct report *r, struct json *o);

#endif
