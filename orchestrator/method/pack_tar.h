/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a gzipped tar file as far as pack.c has tar(1) write it (format gnu: files, directories,
 * symbolic links, long names), to see what would come out of it without putting it anywhere.
 */
#ifndef FETTLE_METHOD_PACK_TAR_H
#define FETTLE_METHOD_PACK_TAR_H

#include "experiments/archive.h"

/* Append files and links, with the hashes of what is in the file, to `out`; `beat` is called after
 * each. ERR_STATE for what is cut, damaged, or no such file; ERR_NOT_FOUND. */
int pack_tar_read(const char *path, int (*beat)(void *ctx, struct err *e), void *ctx,
		  struct archive *out, struct err *e);

#endif
