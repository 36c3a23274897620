/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The environment of trials is an allow-list, captured once at the first run, so that resume from
 * another shell changes nothing. What a scheduler or launcher sets for itself (SLURM_*, SBATCH_*,
 * PMI*, OMPI_*) is left out.
 */
#ifndef FETTLE_METHOD_ENVIRONMENT_H
#define FETTLE_METHOD_ENVIRONMENT_H

/* The allowed part of this process's environment as a JSON object, keys sorted; heap. */
char *environment_capture(void);

#endif
