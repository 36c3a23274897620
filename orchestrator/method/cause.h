/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why a trial failed, from its own output: out of device memory (PyTorch's text), out of host
 * memory or another end of Slurm's that explains it, a collective that timed out. Exit statuses say
 * that something went wrong; the report should say what.
 */
#ifndef FETTLE_METHOD_CAUSE_H
#define FETTLE_METHOD_CAUSE_H

#include "orchestrator/base/err.h"

/* Caller frees; NULL when the output at `path` names no cause that we know. A read of it that fails
 * is told in e. */
char *cause_of_failure(const char *path, struct err *e);

#endif
