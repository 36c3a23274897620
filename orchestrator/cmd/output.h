/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the result of a command goes: stdout, or a file that is there whole or not at all. */
#ifndef FETTLE_CMD_OUTPUT_H
#define FETTLE_CMD_OUTPUT_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* `file` NULL or "-": stdout. An older file stays as it was when the new one cannot be written. A
 * file is made 0600 (for a group in its directory, see fs_shared()): reports hold command lines and
 * paths; share them on purpose. */
int output_write(const char *file, const struct buf *text, struct err *e);

#endif
