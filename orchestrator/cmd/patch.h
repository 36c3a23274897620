/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fix as a patch of the user's own script: variables are exported before its launch line (or
 * changed where the script sets them), arguments stand on that line. The script is read, never run
 * and never written: what comes out is a unified diff for patch(1). What a reader of the patched
 * script would see is looked at before the patch is given out, so that it does what it says; what
 * cannot be expressed is told.
 */
#ifndef FETTLE_CMD_PATCH_H
#define FETTLE_CMD_PATCH_H

#include "orchestrator/report/recommend.h"

struct patch_options {
	const char *script; /* path; stands in the head of the diff */
	const char *launch; /* the line that starts the work; NULL: the only one */
	bool reverse;       /* from the patched script to this one */
};

/* Append the diff; nothing when the script has the whole fix already. `left` gets a sentence for
 * each part of the fix that is not in it. ERR_USAGE for a script that cannot be read or that has no
 * launch line, ERR_STATE when nothing of the fix can be put into it. recommend_allowed() is asked
 * by the caller. */
int patch_write(const struct report *r, const struct patch_options *o, struct strv *left,
		struct buf *out, struct err *e);

#endif
