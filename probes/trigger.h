/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of some words occur in a line, all in one pass: a plain prefilter in front of parsers that
 * would each search it again. A word is known by a few of its bytes, the rarest by letter
 * frequency; a line without them costs a load and a test every third byte.
 */
#ifndef FETTLE_PROBES_TRIGGER_H
#define FETTLE_PROBES_TRIGGER_H

#include "probes/num.h"

enum { TRIGGER_IDS_MAX = 32 };

struct trigger;
struct trigger *trigger_new(void);
void trigger_free(struct trigger *t); /* NULL is fine */
/* From now on `word` (borrowed, not empty) sets bit `id`. */
void trigger_add(struct trigger *t, const char *word, unsigned id);
/* `found`, the bits that are set whatever the line holds, and those of all words that occur in it.
 */
uint32_t trigger_scan(const struct trigger *t, struct span line, uint32_t found);

#endif
