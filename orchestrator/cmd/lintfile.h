/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files whose settings `fettle check` looks at without a campaign: files of NAME=VALUE lines as
 * shells, containers and services read them, nccl.conf, and job scripts. Nothing of them is run.
 */
#ifndef FETTLE_CMD_LINTFILE_H
#define FETTLE_CMD_LINTFILE_H

#include "orchestrator/base/err.h"
#include "orchestrator/script/lint.h"

enum lintfile_kind {
	LINTFILE_CAMPAIGN, /* NAME.lua */
	LINTFILE_CONF,     /* NAME.conf: NCCL's own file, NAME=VALUE to the end of the line */
	LINTFILE_SCRIPT,   /* begins with #! or holds #SBATCH */
	LINTFILE_ENV,
};

/* By name and beginning. ERR_USAGE when it cannot be read. */
int lintfile_kind(const char *path, enum lintfile_kind *out, struct err *e);

/* Add the settings and commands of a file that is no campaign. ERR_USAGE: cannot be read, no text.
 */
int lintfile_add(struct lint_input *in, enum lintfile_kind kind, const char *path, struct err *e);

/* NCCL's own files of this machine, where there are any: what is added after them is stronger. */
void lintfile_add_nccl_conf(struct lint_input *in);

#endif
