/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON documents of any length, streamed (yajl): each scalar is handed over with its path, so that
 * what a killed tool wrote before its document was cut is there. Paths join keys with "." and write
 * "[]" for an element of an array: "results[].out_of_place.bus_bw".
 */
#ifndef FETTLE_PROBES_JSONSTREAM_H
#define FETTLE_PROBES_JSONSTREAM_H

#include "probes/emit.h"

enum jsonstream_kind { JSONSTREAM_NULL, JSONSTREAM_BOOL, JSONSTREAM_NUMBER, JSONSTREAM_STRING };

struct jsonstream_calls {
	/* A scalar. `line` is of the form "path: text" and is the provenance of what is emitted; it
	 * lives until the next scalar. */
	void (*leaf)(void *ctx, const char *path, enum jsonstream_kind kind, struct span text,
		     const struct input_line *line);
	void (*open)(void *ctx, const char *path);  /* an object or array begins; may be NULL */
	void (*close)(void *ctx, const char *path); /* an object or array ends */
};

enum jsonstream_end {
	JSONSTREAM_WHOLE, /* one or more whole documents */
	JSONSTREAM_CUT,   /* ends inside a document */
	JSONSTREAM_BAD,   /* not JSON from some point on; what came before was handed over */
	JSONSTREAM_EMPTY, /* nothing but blanks */
};

struct jsonstream;
struct jsonstream *jsonstream_new(const struct jsonstream_calls *calls, void *ctx);
void jsonstream_feed(struct jsonstream *s, const char *bytes, size_t n);
/* Why it is not WHOLE is put to `why` (may be NULL). */
enum jsonstream_end jsonstream_finish(struct jsonstream *s, struct buf *why);
void jsonstream_free(struct jsonstream *s);

#endif
