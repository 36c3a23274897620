/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of sbatch.h: sbatch.c, sbatch_options.c, sbatch_launch.c. */
#ifndef FETTLE_SCRIPT_SBATCH_PRIV_H
#define FETTLE_SCRIPT_SBATCH_PRIV_H

#include "orchestrator/script/sbatch.h"

void sbatch_notef(struct sbatch *s, enum sbatch_note_kind kind, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The #SBATCH lines of s->text into s->options. */
int sbatch_read_options(struct sbatch *s, struct err *e);

/* Is command `which` of the body a launch? Then it is added to s->launches. `values` are the
 * variables as they are there. */
void sbatch_read_launch(struct sbatch *s, size_t which, const struct shell_vars *values);

#endif
