/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chrome trace JSON, streamed: `{"traceEvents": [ {...}, ... ], ...}` or the bare list. yajl
 * parses, but sees of the list only the events that are asked for: the others, nine of ten, are
 * stepped over brace by brace. So a trace is read faster than yajl could, and an event that is
 * broken costs itself and not what follows. What writers of traces do to JSON is mended before yajl
 * sees it:
 *
 * - control characters in strings: all become blanks, which changes nothing outside of strings;
 * - a backslash that begins no escape becomes a slash;
 * - a bare N/A, inf or nan: yajl is begun anew in the same nesting with null in its place.
 *
 * Any chunking gives the same calls.
 */
#ifndef FETTLE_PROBES_TRACEJSON_H
#define FETTLE_PROBES_TRACEJSON_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/str.h"
#include "probes/num.h"

enum tracejson_place {
	TRACEJSON_TOP,   /* member of the document beside the list */
	TRACEJSON_SIDE,  /* inside of one that was wanted */
	TRACEJSON_EVENT, /* member of an event */
	TRACEJSON_ARGS,  /* member of a map in an event that was wanted */
};

enum { TRACEJSON_HEAD_MAX = 256 }; /* of an event, for `skip` */

/* Texts live for the length of the call. */
struct tracejson_calls {
	/* The first bytes of an event, its brace the first of them; true: it is of no interest.
	 * Fewer than TRACEJSON_HEAD_MAX only at the end of the text. */
	bool (*skip)(void *ctx, struct span head);
	void (*begin)(void *ctx); /* an event that is not skipped */
	/* A key; true when its value is wanted: a scalar, or what is in its map. */
	bool (*key)(void *ctx, enum tracejson_place place, struct span key);
	void (*value)(void *ctx, struct span text); /* a string or number that was wanted */
	/* The event that began is over. `whole`: it was JSON. */
	void (*end)(void *ctx, bool whole);
};

struct tracejson;
struct tracejson *tracejson_new(const struct tracejson_calls *calls, void *ctx);
void tracejson_free(struct tracejson *s); /* NULL is fine */
void tracejson_feed(struct tracejson *s, const char *bytes, size_t n);
/* False when the text was cut or is no JSON from some point on; `why` (may be NULL) says it. */
bool tracejson_finish(struct tracejson *s, struct buf *why);
/* In `end`: 1-based line on which the event began. */
int64_t tracejson_line(const struct tracejson *s);

#endif
