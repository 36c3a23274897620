/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The noise of a run within a block, from what a campaign of this workspace measured so far,
 * running or finished: the residual of arm and unit, pooled over its stages. An A/A stage gives it
 * as a screen does: what the arms differ by on average is taken out.
 */
#ifndef FETTLE_CMD_NOISE_H
#define FETTLE_CMD_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "experiments/model.h"
#include "orchestrator/base/err.h"
#include "orchestrator/method/workspace.h"

struct noise {
	int64_t campaign;                        /* 0: none was found */
	double sd;                               /* of the log of one run; NAN */
	size_t df_aa, df_screen, df_confirm, df; /* degrees of freedom, by stage and together */
};

/* `past`: the campaign's own recipe. Nothing measured yet: out->df is 0. */
int noise_of_campaign(struct workspace *w, int64_t campaign, const struct recipe *past,
		      struct noise *out, struct err *e);
/* "A/A (5 degrees of freedom) and screen (12)"; heap. */
char *noise_text(const struct noise *n);

#endif
