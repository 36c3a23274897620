/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output of one trial: one pipe, one file `out` of bounded size, and `out.idx`.
 *
 * The head is written as it comes, so that it is there if the agent dies. Once it is full, the
 * newest bytes are kept in a ring in memory (a file would be rewritten over and over on a shared
 * file system) and written at the end after one marker line: "[fettle: N bytes cut here]".
 * `out.idx` holds lines "<offset in out> <utc_us>": the bytes from that offset on arrived at that
 * time; a line each 64 KiB or second, whichever comes first. Whole lines are handed to a callback
 * as they arrive.
 */
#ifndef FETTLE_AGENT_CAPTURE_H
#define FETTLE_AGENT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"

enum {
	CAPTURE_LINE_MAX = 64 << 10, /* of a longer line the first 64 KiB are looked at */
	CAPTURE_LAST_MAX = 200,      /* of the last line, for the reason of a failure */
};

struct capture;

/* One line without its end; "\r" ends lines too (progress bars). Empty lines are left out. */
typedef void (*capture_line_f)(void *ctx, const char *line, size_t n, int64_t utc_us);

struct capture_result {
	int64_t bytes, total_bytes; /* in `out`, and printed by the trial */
	bool cut;
	char xxh[33]; /* of `out` as it is on disk */
	char last_line[CAPTURE_LAST_MAX + 1];
};

/* Files <dir>/out and <dir>/out.idx; log_bytes bounds `out` (marker line not counted). f may be
 * NULL. */
int capture_open(const char *dir, int64_t log_bytes, capture_line_f f, void *ctx,
		 struct capture **out, struct err *e);
/* Bytes that arrived at utc_us. A failed write of ours is returned once and then ignored. */
int capture_put(struct capture *c, const char *data, size_t n, int64_t utc_us, struct err *e);
/* Hand out the last unfinished line, write the tail, close the files. */
int capture_finish(struct capture *c, int64_t utc_us, struct capture_result *r, struct err *e);
void capture_free(struct capture *c); /* NULL is fine */
void capture_freep(struct capture **c);

#endif
