/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing JSON in the agent, in front of yajl's generator. Text may hold any bytes (arguments, the
 * last line of an output): what is not UTF-8 becomes U+FFFD, so that every reader accepts the file.
 */
#ifndef FETTLE_AGENT_JWRITE_H
#define FETTLE_AGENT_JWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include <yajl/yajl_gen.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct jwrite {
	yajl_gen g;
	struct buf clean; /* scratch of the UTF-8 repair */
};

void jwrite_init(struct jwrite *w);
void jwrite_free(struct jwrite *w);

/* `key` is NULL inside an array. */
void jwrite_object(struct jwrite *w, const char *key);
void jwrite_object_end(struct jwrite *w);
void jwrite_array(struct jwrite *w, const char *key);
void jwrite_array_end(struct jwrite *w);
void jwrite_text(struct jwrite *w, const char *key, const char *value); /* NULL gives "" */
void jwrite_int(struct jwrite *w, const char *key, int64_t value);
void jwrite_bool(struct jwrite *w, const char *key, bool value);
void jwrite_texts(struct jwrite *w, const char *key, char *const *v, size_t n);

/* The finished text; borrowed until jwrite_free. */
void jwrite_result(struct jwrite *w, const char **text, size_t *n);

/* Write it to path by tmp, fsync and rename. The directory is not synced: done.json, written last
 * in the same directory with fs_write_atomic, makes all earlier names durable at once. */
int jwrite_file(struct jwrite *w, const char *path, struct err *e);

/* Append the n bytes at s to out as UTF-8. */
void jwrite_utf8(struct buf *out, const char *s, size_t n);

#endif
