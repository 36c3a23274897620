/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which changes are one event: ranges of nights that meet, the same kind, and something in common:
 * a canary, a workload, a place, or a key of the environment that became the same. People are told
 * of an event once.
 */
#ifndef FETTLE_METHOD_EVENT_H
#define FETTLE_METHOD_EVENT_H

#include "orchestrator/method/past.h"

/* The regression that a change of `s` belongs to, be it fixed or accepted meanwhile; *out NULL: it
 * is one of its own. */
int event_find(struct past *w, const struct past_series *s, const struct regress_span *span,
	       enum regression_kind kind, struct regression_row **out, struct err *e);

/* `r` was confirmed: it becomes part of one that was confirmed before and is the same event; if
 * there is none, suspicions of the event that were found on other nights become part of it. */
int event_absorb(struct past *w, struct regression_row *r, int64_t now_us, struct err *e);

#endif
