/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of environment settings, as `fettle recommend --as env` writes them and as people keep
 * them: lines NAME=VALUE, with or without `export`, and `unset NAME`; comments and blank lines. The
 * value is one word as a POSIX shell reads it: plain, '...' or "...", with backslashes. Nothing is
 * expanded or run: a $, a back quote or an unquoted operator is refused, since what a shell would
 * make of it is not what would be measured.
 */
#ifndef FETTLE_CMD_ENVFILE_H
#define FETTLE_CMD_ENVFILE_H

#include <stddef.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

enum { ENVFILE_BYTES_MAX = 1 << 20 }; /* an environment of Linux is at most a few MiB as a whole */

/* Read `n` bytes of text into out (value NULL: unset); later lines win. ERR_USAGE with
 * "NAME:LINE: ..."; out is left alone then. */
int envfile_parse(const char *name, const char *text, size_t n, struct kvs *out, struct err *e);
/* The same from a file. */
int envfile_read(const char *path, struct kvs *out, struct err *e);

/* "NAME=VALUE" of the command line, no quotes read; ERR_USAGE. */
int envfile_assignment(const char *text, struct kvs *out, struct err *e);

#endif
