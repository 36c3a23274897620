/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment that a result holds for, as JSON text: kernel, CPU, memory, drivers, scheduler.
 */
#ifndef FETTLE_METHOD_FINGERPRINT_H
#define FETTLE_METHOD_FINGERPRINT_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* Heap. Reads only files under /proc and /sys of this host and uname. */
char *fingerprint_json(const char *scheduler);

/* What changed since `then` was taken, one line a field ("kernel: 5.10 -> 6.1"), appended to out.
 * Empty: the fix still holds for this environment. A field that one of them lacks says nothing: an
 * older program did not record it. The name of the host counts where trials run on it (local): on a
 * cluster it is that of a login node. ERR_PARSE for a text that is no fingerprint. */
int fingerprint_changes(const char *then, const char *now, struct strv *out, struct err *e);

#endif
