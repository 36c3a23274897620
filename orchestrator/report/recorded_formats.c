/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the store's sentences are made by: method/, the jobs' accounts, the rules. `make check-po`
 * holds each against the sources. The longer one wins where several fit. */
#include "orchestrator/base/lang.h"
#include "orchestrator/report/recorded.h"

#include <stddef.h>

const char *const recorded_formats[] = {
	N_("default"),
	NULL,
};
