/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a probe found in one text, as a table for a person: a row a series (metric and labels) with
 * its range, facts, and what was ignored and why. pivot.h shows what belongs to steps. Memory does
 * not grow with the text but with the kinds of things in it.
 */
#ifndef FETTLE_CMD_LISTING_H
#define FETTLE_CMD_LISTING_H

#include "probes/probe.h"

struct listing;
struct listing *listing_new(void);
void listing_free(struct listing *l); /* NULL is fine */

void listing_value(struct listing *l, const struct probe_value *v);
void listing_fact(struct listing *l, const struct probe_fact *f);
void listing_ignored(struct listing *l, const struct probe_ignored *i);

/* All of it, clean for a terminal. */
void listing_print(const struct listing *l);

/* s without what acts on a terminal. */
void listing_clean(const char *s);

#endif
