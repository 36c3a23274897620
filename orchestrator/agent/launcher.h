/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Telling a launcher's trouble from the workload's. srun may fail before any task has run ("Unable
 * to confirm allocation", "Socket timed out" under load): that says nothing about an arm and is
 * tried again. Once a task was started, srun says so when it fails ("task 0: Exited with exit code
 * 7").
 */
#ifndef FETTLE_AGENT_LAUNCHER_H
#define FETTLE_AGENT_LAUNCHER_H

#include <stdbool.h>

/* Is everything in the output file srun's own words, and no task among them? False for an empty
 * file. */
bool launcher_failed_before_start(const char *out_path);

#endif
