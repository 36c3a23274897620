/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The further options of a job, in sbatch's words, into Slurm's job description: generic
 * resources, licences, switches, begin and deadline, dependency, nice, comment, mail.
 */
#ifndef FETTLE_SLURM_OPTIONS_H
#define FETTLE_SLURM_OPTIONS_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"
#include "orchestrator/slurm/compat.h"

/* Texts that the description borrows. */
struct options {
	char *tres_per_node, *tres_per_job, *tres_per_task, *cpus_per_tres, *mem_per_tres;
};

/* Set in *d what `job` names; the rest stays as it is. *o owns what *d borrows, beside the texts of
 * `job` itself. ERR_RECIPE: the text says which option, and what it may be. */
int options_set(struct options *o, const struct json *job, job_desc_msg_t *d, struct err *e);
void options_free(struct options *o);

/* "gpu:2,nvme:1" with the prefix that the API wants on each; appended to *out. */
void options_put_gres(const char *list, struct buf *out);
/* Bits of "END,FAIL"; ERR_RECIPE for a word that is none. */
int options_mail_type(const char *list, uint16_t *bits, struct err *e);

#endif
