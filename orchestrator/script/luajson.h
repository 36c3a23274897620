/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lua values as JSON, and back: how values leave the sandbox's child and how signals enter it. A
 * table with positions 1..n is an array; one with names, or with both, an object whose keys are
 * texts; an empty one is []. A function becomes {"$function": "path.in.the.value"}, so that it can
 * be called later. Metatables are not looked at.
 */
#ifndef FETTLE_SCRIPT_LUAJSON_H
#define FETTLE_SCRIPT_LUAJSON_H

#include <lua.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"

#define LUAJSON_FUNCTION "$function"

enum {
	LUAJSON_DEPTH_MAX = 24,     /* a campaign is 5 deep; also ends a table that holds itself */
	LUAJSON_NODES_MAX = 100000, /* a campaign has hundreds */
	LUAJSON_TEXT_MAX = 65536,   /* bytes of one text */
	LUAJSON_BYTES_MAX = 4 * 1024 *
			    1024, /* bytes of all texts: one text may stand in many places */
};

/* A value on its way out. Zero-initialise; luajson_done() whatever happened. */
struct luajson {
	struct json *root; /* the value, or as much of it as was there when something went wrong */
	struct buf where;  /* path of what cannot be taken */
	const char *why;   /* why not; static */
	lua_State *l;      /* these are private */
	int depth, nodes;
	size_t bytes;
};

/* Take the value at `index` into out->root; false with `where` and `why` when it cannot be stored.
 * May raise a Lua error (memory, keys without an order), so it runs inside a protected call. */
bool luajson_take(lua_State *l, int index, struct luajson *out);
void luajson_done(struct luajson *t);

/* Push a JSON value; null is nil. */
void luajson_push(lua_State *l, const struct json *v);

/* Push the function at `path` of the value at `index`; false (nothing pushed) if there is none. */
bool luajson_push_function(lua_State *l, int index, const char *path);

#endif
