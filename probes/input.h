/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one input layer in front of every probe that reads lines. Bytes are pushed in as they come
 * (any chunking gives the same lines); out come clean logical lines:
 *
 * - a UTF-8 BOM, NULs, control characters and ANSI sequences are gone (also `[36m` that lost its
 *   ESC), invalid UTF-8 is `?`, CRLF is one line end;
 * - a CR starts a new logical line of the same physical one. All but the last of them are
 *   `redrawn`: the states of a progress bar. Text behind a bar stays in its logical line, because a
 *   bar writes no line end: readers search their record anywhere in the line;
 * - prefixes of launchers (srun -l, mpirun --tag-output, torchrun, pdsh, Ray, compose, kubectl) are
 *   taken off, nested or not, and kept as rank and host;
 * - the last line is `complete` only if a line end followed it.
 */
#ifndef FETTLE_PROBES_INPUT_H
#define FETTLE_PROBES_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "probes/num.h"

/* No record of any format is longer: the longest are NCCL's ring lists (8 bytes a rank, so 8,192
 * ranks) and JSON of one step. What is longer keeps its head and is `cut`. */
enum { INPUT_LINE_MAX = 64 * 1024, INPUT_HOST_MAX = 64 };

struct input_line {
	const char *text; /* clean, terminated, without prefix */
	size_t len;
	const char *whole; /* the same with its prefix, in case that what looked like one is data */
	size_t whole_len;
	int64_t line;     /* 1-based number of the physical line */
	int rank;         /* -1 if no prefix names one */
	int local_rank;   /* of `[default3]:`, -1 if none */
	const char *host; /* worker-0, vm-07-14, or an address; "" if none */
	bool complete;    /* a line end (LF or CR) follows */
	bool redrawn;     /* a CR follows that writes over it */
	bool cut;         /* longer than INPUT_LINE_MAX; the rest is lost */
};

typedef void (*input_f)(void *ctx, const struct input_line *l);

struct input;
struct input *input_new(input_f f, void *ctx);
/* For a reader of few lines: asked of each clean line, its prefixes still there, before anything is
 * done with it. One that is not wanted counts as a line and goes no further. */
typedef bool (*input_wanted_f)(void *ctx, struct span whole);
void input_filter(struct input *in, input_wanted_f wanted);
void input_feed(struct input *in, const char *bytes, size_t n);
void input_finish(
	struct input *in); /* delivers a last line without LF; nothing may be fed after it */
void input_free(struct input *in);           /* NULL is fine */
int64_t input_lines(const struct input *in); /* physical lines so far */

/* fs_open() with gzopen(): plain or packed. NULL with errno. */
gzFile input_open(const char *path);

static inline struct span input_span(const struct input_line *l) /* all of its text */
{
	return (struct span){l->text, l->len};
}

/* Remove NULs, control characters and ANSI sequences from n bytes in place, make invalid UTF-8 `?`;
 * returns the new length. */
size_t input_clean(char *s, size_t n);

/* Who wrote a line, as its prefixes say. */
struct input_origin {
	int rank, local_rank; /* -1: unknown */
	char host[INPUT_HOST_MAX];
};
/* Bytes of all prefixes at the start of t; fills o (the innermost rank wins). */
size_t input_prefix(struct span t, struct input_origin *o);

#endif
