/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much a directory tree occupies: for the limit of what a trial may write. */
#ifndef FETTLE_AGENT_DISKUSE_H
#define FETTLE_AGENT_DISKUSE_H

#include <stdint.h>

/* Allocated bytes (holes do not count) of at most 200,000 entries, 64 levels deep; links are not
 * followed. */
int64_t diskuse_bytes(const char *dir);

#endif
