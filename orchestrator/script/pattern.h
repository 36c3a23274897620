/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCRE2 patterns of a recipe: are they right, and what do their named groups feed? They are only
 * compiled here; the agent and the probes match. */
#ifndef FETTLE_SCRIPT_PATTERN_H
#define FETTLE_SCRIPT_PATTERN_H

#include <stdbool.h>

#include "orchestrator/base/str.h"

/* Longest pattern, as in the probe `pattern`. */
enum { PATTERN_BYTES_MAX = 4096 };

/* Compile `text`, in which "{value}" (if with_value) stands for a setting. false with the reason
 * and its offset in `why`. `groups` (may be NULL) gets the names of its groups. */
bool pattern_check(const char *text, bool with_value, struct strv *groups, struct buf *why);

#endif
