/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading JSON in the agent, in front of yajl's tree (a static library, which cJSON has not).
 *
 * A `struct jread` carries the file's name and the place inside it, so that each error reads
 * "block.json: arms[2].env.A: expected text, found a number". The first error is kept, later
 * getters then return their default: a reader checks once, at the end.
 */
#ifndef FETTLE_AGENT_JREAD_H
#define FETTLE_AGENT_JREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yajl/yajl_tree.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct jread {
	const char *file; /* borrowed: named in errors */
	char where[256];  /* "arms[2]", "" at the top */
	struct err *e;    /* may be NULL */
	int rc;           /* 0, or the first error */
};

/* Parse one value of n bytes. Nesting deeper than 32 and NUL characters in strings are refused
 * (yajl frees its tree by recursion and keeps C strings). NULL and r->rc set on failure; free with
 * yajl_tree_free. */
yajl_val jread_parse(struct jread *r, const char *text, size_t n);

/* Record an error at <where>.<key>; key may be NULL. Returns r->rc. */
int jread_fail(struct jread *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

yajl_val jread_get(yajl_val object, const char *key); /* NULL if absent */

/* Set the place of the errors that follow: "window", or "arms[2]". Places do not nest. */
void jread_enter(struct jread *r, const char *member);
void jread_enter_nth(struct jread *r, const char *array, size_t i);
void jread_leave(struct jread *r);

/* Members of an object. Required ones are an error when absent; the others give their default. */
const char *jread_text(struct jread *r, yajl_val object, const char *key, const char *dflt);
const char *jread_need_text(struct jread *r, yajl_val object, const char *key);
int64_t jread_int(struct jread *r, yajl_val object, const char *key, int64_t dflt, int64_t min,
		  int64_t max);
int64_t jread_need_int(struct jread *r, yajl_val object, const char *key, int64_t min, int64_t max);
/* NULL when absent. */
yajl_val jread_object(struct jread *r, yajl_val object, const char *key);
yajl_val jread_array(struct jread *r, yajl_val object, const char *key, size_t max);
/* Arrays of text and objects of text, appended to out. */
void jread_texts(struct jread *r, yajl_val object, const char *key, size_t max, struct strv *out);
void jread_pairs(struct jread *r, yajl_val object, const char *key, size_t max, struct kvs *out);

#endif
