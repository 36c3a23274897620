/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names that rules and knobs may read of their signals: those of metrics.def, with or without a
 * statistic behind a point, and what a trial runs on. Any other name is a mistake of the recipe,
 * not a signal that nobody measured.
 */
#ifndef FETTLE_SCRIPT_SIGNALS_H
#define FETTLE_SCRIPT_SIGNALS_H

#include <stdbool.h>

#include "orchestrator/base/json.h"

bool signal_is_known(const char *name);
/* ` (did you mean "x"?)`, or "" when none is near; heap. */
char *signal_did_you_mean(const char *name);
/* Every signal at once, to try rules on before anything runs: 0, or a value so high (`high`) that
 * every threshold is passed. An object. */
struct json *signals_made_up(bool high);

#endif
