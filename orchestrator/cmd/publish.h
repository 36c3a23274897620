/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A folder of files that others read while it is made anew. Everything is written beside what is
 * there, in `.new.PID`, and moved into place when all of it was: a disk that fills up or a folder
 * that cannot be written leaves the old files as they were. What has the same bytes is not touched.
 * `.files` in the folder lists what we wrote: only that is replaced, and removed when it is not
 * written any more. Files are made with mode 0666 and directories with 0777, less the umask.
 */
#ifndef FETTLE_CMD_PUBLISH_H
#define FETTLE_CMD_PUBLISH_H

#include <stddef.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct publish;

/* The folder is made when it is missing. */
int publish_begin(const char *dir, struct publish **out, struct err *e);
/* `name` is "NAME" or "FOLDER/NAME" of publish_is_name() parts. They come into place in the order
 * of these calls. ERR_USAGE: another file is in its place, which is not ours. */
int publish_put(struct publish *p, const char *name, const struct buf *text, struct err *e);
/* What stands there of ours by that name stays. */
void publish_keep(struct publish *p, const char *name);
/* Into place, then what is left over goes. written, removed (may be NULL): how many files. */
int publish_commit(struct publish *p, size_t *written, size_t *removed, struct err *e);
void publish_end(struct publish *p); /* also without a commit; NULL is fine */

/* Letters, digits, "-", "_", "." but not at the beginning; not empty, at most 100 bytes. */
bool publish_is_name(const char *s, size_t n);
/* s made such a name; heap. */
char *publish_name(const char *s);

#endif
